"""A plugin made with the Python SDK that does what its calls say, as a package of its own for each test.

SEGUE_PYTHON names another interpreter to run plugins with.
"""

import json
import os
import shutil
import sys
import tempfile
import time
import unittest

from plugin_process import SDK, WAIT_S, PluginProcess

PYTHON = os.environ.get("SEGUE_PYTHON", sys.executable)
MODULE = os.path.join(SDK, "python", "segue_plugin.py")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
sys.path.insert(0, os.path.dirname(MODULE))
import segue_plugin as sdk  # noqa: E402

MANIFEST = {"schema": 1, "id": "odd", "name": "Odd", "version": "3.2.1", "protocol": sdk.PROTOCOL, "executable": "odd",
            "capabilities": list(sdk.CAPABILITIES), "scopes": [{"scope": "network", "reason": "a test"}]}

#: A plugin whose get_track does what its content id says.
ODD = '''
import sys
sys.dont_write_bytecode = True
print("a banner at import")
import ctypes, os, subprocess, threading, time
from segue_plugin import *

gate = threading.Event()
STUB = TrackStub("a", "A")

class Odd(Plugin):
    threads = int(os.environ.get("THREADS", 4))

    def start(self, context):
        print("a print in start")
        if "fail" in context.config:
            raise AuthRequired("give a password")
        if "crash" in context.config:
            raise RuntimeError("cannot start")
        if "withdraw" in context.config:
            self.withdraw("stream", "no network")
        if "hang" in context.config:
            log.info("hanging")
            time.sleep(1000)
        log.info("context %s %r", context.dirs.data, context)

    def search(self, query, limit, kinds):
        if query == "huge":
            return [SearchResult("track", str(i), "x" * 100000) for i in range(limit)]
        return (SearchResult(kind, str(i), "T%d \\u2603" % i) for i in range(1000) for kind in KINDS)

    def get_track(self, content_id):
        return getattr(self, "do_" + content_id.replace("-", "_"))()

    def do_print(self):
        print("printed")
        sys.stdout.write("without a newline")
        sys.stdout.flush()
        os.write(1, b"by os.write\\n")
        ctypes.CDLL(None).puts(b"by puts")
        ctypes.CDLL(None).fflush(None)
        subprocess.run(["/bin/sh", "-c", "echo by a child; cat"], check=True)
        return Track("print", "Caf\\u00e9 \\u2603 \\U0001f3b5 \\u2028 \\"")

    def do_wait(self):
        gate.wait()
        return Track("wait", "Waited")

    def do_release(self):
        gate.set()
        return Track("release", "Released")

    def do_sleep(self):
        log.info("sleeping")
        time.sleep(1000)

    def do_slow(self):
        log.info("slow")
        time.sleep(0.3)
        return Track("slow", "Slow")

    def do_stuck_in_c(self):
        log.info("stuck")
        ctypes.CDLL(None).sleep(1000)

    def do_crash(self):
        return {}["no\\nsuch key"]

    def do_exit(self):
        sys.exit(3)

    def do_typo(self):
        return Track("a", "A", durations_ms=1)

    def do_dict(self):
        return {"content_id": "a", "title": "A"}

    def do_nothing(self):
        pass

    def do_log(self):
        log.debug("one\\ntwo"); log.info("100%"); log.warn("%s", "w"); log.error("e \\udcff")
        return Track("a", "A")

    def get_album(self, content_id):
        raise {"query": InvalidQuery(), "missing": ContentNotFound("no \\ud800"), "auth": AuthRequired(),
               "rate": RateLimited(1500), "region": ContentUnavailable("region"), "down": UpstreamUnavailable("down"),
               "no": NotSupported(), "own": PluginError("mine", x=1)}[content_id]

    def get_artist(self, content_id):
        return Artist(content_id, "N", albums=[AlbumRef("B")], top_tracks=[Track("a", "A", isrc="x").stub()])

    def stream(self, content_id):
        return StreamInfo("https://h/x", "audio/flac", expires_in_ms=0, headers={"X-Key": "v"}, live=False)

if __name__ == "__main__":
    Odd().run()
'''


def package(test, script=ODD, manifest=MANIFEST):
    folder = tempfile.mkdtemp()
    test.addCleanup(shutil.rmtree, folder, True)
    shutil.copy(MODULE, folder)
    with open(os.path.join(folder, "plugin.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    with open(os.path.join(folder, "odd"), "w", encoding="utf-8") as file:
        file.write(script)
    return os.path.join(folder, "odd")


class Case(unittest.TestCase):
    def odd(self, script=ODD, manifest=MANIFEST):
        return self.started(PYTHON, package(self, script, manifest))

    def started(self, *command):
        plugin = PluginProcess(*command)
        self.addCleanup(plugin.close)
        return plugin

    def assertEnds(self, plugin, within, status=0):
        begin = time.monotonic()
        self.assertEqual(plugin.process.wait(WAIT_S), status)
        self.assertLess(time.monotonic() - begin, within)
