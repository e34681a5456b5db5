#!/usr/bin/env python3
"""The Python SDK from outside: real plugin processes over pipes, its example, and the template.

    python3 tests/plugins/test_python_sdk.py

Standard library only. SEGUE_PYTHON names another interpreter to run the plugins with.
"""

import sys

sys.dont_write_bytecode = True

import filecmp  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import stat  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import unittest  # noqa: E402

from plugin_process import ENVIRONMENT, MAX_LINE, SDK, WAIT_S, PluginProcess  # noqa: E402

PYTHON = os.environ.get("SEGUE_PYTHON", sys.executable)
MODULE = os.path.join(SDK, "python", "segue_plugin.py")
EXAMPLE = os.path.join(SDK, "python", "example")
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


class Handshake(Case):
    def test_id_version_and_capabilities_come_from_the_manifest_and_scopes_from_the_grant(self):
        odd = self.odd()
        self.assertEqual(odd.initialize(scopes=["network"]), {
            "protocol": sdk.PROTOCOL, "id": "odd", "version": "3.2.1", "capabilities": list(sdk.CAPABILITIES),
            "scopes": ["network"]})
        self.assertEqual(odd.result("ping"), {"status": "ok", "version": "3.2.1",
                                              "capabilities": list(sdk.CAPABILITIES)})
        self.assertEqual(odd.error("initialize", protocol=sdk.PROTOCOL)["code"], -32600)

    def test_start_gets_the_context_and_its_repr_hides_the_secrets(self):
        odd = self.odd()
        odd.initialize(scopes=["secret:p"], secrets={"p": "hunter2"}, config={"a": [1]})
        line = odd.wait_err("context")
        self.assertIn("/data", line)
        self.assertIn("'a': [1]", line)
        self.assertNotIn("hunter2", line)

    def test_what_start_raises_fails_the_handshake_and_the_calls(self):
        for config, code in (({"fail": 1}, 4), ({"crash": 1}, 1)):
            odd = self.odd()
            params = {"protocol": sdk.PROTOCOL, "config": config}
            self.assertEqual(odd.error("initialize", **params)["code"], code)
            self.assertEqual(odd.error("stream", content_id="x")["code"], code)
            odd.result("initialize", protocol=sdk.PROTOCOL)
            odd.result("stream", content_id="x")

    def test_another_protocol_and_wrong_params_are_refused(self):
        odd = self.odd()
        for params in ({"protocol": "segue.plugin/2"}, {}, {"protocol": sdk.PROTOCOL, "scopes": [1]},
                       {"protocol": sdk.PROTOCOL, "scopes": "network"}, {"protocol": sdk.PROTOCOL, "config": []}):
            self.assertEqual(odd.error("initialize", **params)["code"], -32602, params)

    def test_what_is_withdrawn_is_not_offered_and_not_supported(self):
        odd = self.odd()
        self.assertNotIn("stream", odd.initialize(config={"withdraw": 1})["capabilities"])
        self.assertNotIn("stream", odd.result("ping")["capabilities"])
        self.assertEqual(odd.error("stream", content_id="x")["code"], 8)

    def test_a_manifest_that_cannot_be_is_said_at_once(self):
        for manifest, part in ((dict(MANIFEST, capabilities=["serch"]), "'serch' is not a capability"),
                               ({"id": "x"}, "KeyError")):
            odd = self.odd(manifest=manifest)
            odd.wait_err(part)
            self.assertEnds(odd, WAIT_S, 1)
        script = "from segue_plugin import *\nclass P(Plugin): pass\nP().run()"
        odd = self.odd(script, dict(MANIFEST, capabilities=["stream"]))
        odd.wait_err("lists stream, but the class P has no such method")
        self.assertEnds(odd, WAIT_S, 1)


class Lines(Case):
    def test_what_is_not_a_call_gets_the_standard_codes(self):
        odd = self.odd()
        for line, code, reply_id in [
            (b"junk", -32700, None), (b"", -32700, None), (b'{"a":', -32700, None), (b"\xff\xfe", -32700, None),
            (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None), (b"\0", -32700, None),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700, None),
            (b"[" * 200000, -32700, None), (b'{"a":' * 100000 + b"1" + b"}" * 100000, -32700, None),
            (b"[" + PING + b"]", -32700, None), (b"7", -32700, None), (b'"x"', -32700, None), (b"null", -32700, None),
            (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
            (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
            (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600, None),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
            (b'{"id":4,"method":"ping"}', -32600, 4), (b'{"jsonrpc":"2.0","id":5}', -32600, 5),
            (b'{"jsonrpc":"2.0","id":6,"method":7}', -32600, 6), (b'{"jsonrpc":"2.0","id":7,"method":"run"}', -32601, 7),
            (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}', -32602, "a"),
        ]:
            with self.subTest(line=line[:60]):
                reply = odd.raw(line)
                self.assertEqual((reply["error"]["code"], reply["id"]), (code, reply_id))
        self.assertEqual(odd.raw(PING + b"\r")["id"], 1)

    def test_a_message_without_an_id_and_a_stray_reply_get_no_answer(self):
        odd = self.odd()
        for line in (b'{"jsonrpc":"2.0","method":"ping"}', b'{"jsonrpc":"2.0","method":"nope"}', b"{}",
                     b'{"jsonrpc":"2.0","id":3,"result":{}}', b'{"jsonrpc":"2.0","method":"get_track","params":{}}'):
            odd.send(line)
        odd.result("ping")
        self.assertEqual(odd.close(), 0)
        self.assertEqual(odd.rest_of_out(), [])

    def test_a_line_of_ten_mebibytes_is_read_and_one_byte_more_is_refused_and_dropped(self):
        odd = self.odd()
        head, tail = b'{"jsonrpc":"2.0","id":1,"method":"ping","x_pad":"', b'"}'
        for extra, end, expected in ((0, b"", 1), (0, b"\r", 1), (1, b"", None), (1, b"\r", None), (3000000, b"", None)):
            pad = b"a" * (MAX_LINE - len(head) - len(tail) + extra)
            self.assertEqual(odd.raw(head + pad + tail + end)["id"], expected)
        odd.result("ping")

    def test_a_reply_that_is_too_long_becomes_an_error_that_says_so(self):
        odd = self.odd()
        error = odd.error("search", query="huge", limit=200)
        self.assertEqual(error["code"], 1)
        self.assertIn("more than the 10485760", error["message"])
        self.assertEqual(len(odd.result("search", query="huge", limit=100)["results"]), 100)

    def test_parameters_are_checked(self):
        odd = self.odd()
        for method, params in [
            ("search", {}), ("search", {"query": 1}), ("search", {"query": "", "limit": 0}),
            ("search", {"query": "", "limit": 501}), ("search", {"query": "", "limit": True}),
            ("search", {"query": "", "kinds": ["song"]}), ("search", {"query": "", "kinds": "track"}),
            ("search", {"query": "", "kinds": [[]]}), ("stream", {}), ("get_track", {"content_id": None}),
            ("get_album", {"content_id": 1}),
        ]:
            with self.subTest(method=method, params=params):
                self.assertEqual(odd.error(method, **params)["code"], -32602)

    def test_a_pipe_alone_is_enough_also_for_slow_calls(self):
        script = package(self)
        for call, key in ((PING, "status"), (
                b'{"jsonrpc":"2.0","id":1,"method":"get_track","params":{"content_id":"slow"}}', "track")):
            for end in (b"\n", b""):
                done = subprocess.run([PYTHON, script], input=call + end, env=ENVIRONMENT, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=WAIT_S)
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stdout.count(b"\n"), 1)
                self.assertIn(key, json.loads(done.stdout)["result"])
        self.assertFalse(os.path.exists(os.path.join(os.path.dirname(script), "__pycache__")))

    def test_more_calls_than_are_read_ahead_are_all_answered(self):
        calls = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"stream","params":{"content_id":"x"}}\n' % i
                         for i in range(300))
        done = subprocess.run([PYTHON, package(self)], input=calls, env=ENVIRONMENT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=WAIT_S)
        self.assertEqual({json.loads(line)["id"] for line in done.stdout.splitlines()}, set(range(300)))


class Calls(Case):
    def test_nothing_but_replies_reaches_stdout_whoever_prints(self):
        odd = self.odd()
        odd.initialize()
        self.assertEqual(odd.result("get_track", content_id="print"),
                         {"track": {"content_id": "print", "title": "Café ☃ 🎵 \u2028 \""}})
        for part in ("a banner at import", "a print in start", "printed", "by os.write", "by puts", "by a child"):
            odd.wait_err(part)
        self.assertEqual(odd.close(), 0)
        self.assertEqual(odd.rest_of_out(), [])

    def test_sixteen_calls_at_once_are_answered_out_of_order_and_ping_in_between(self):
        odd = self.odd()
        odd.initialize()
        waiting = {odd.begin("get_track", content_id="wait") for _ in range(3)}
        quick = {odd.begin("stream", content_id="x") for _ in range(12)}
        self.assertEqual({odd.receive()["id"] for _ in range(12)}, quick)
        odd.result("ping")
        release = odd.begin("get_track", content_id="release")
        self.assertEqual({odd.receive()["id"] for _ in range(4)}, waiting | {release})

    def test_ping_is_answered_while_every_thread_is_busy(self):
        odd = self.odd()
        odd.initialize()
        for _ in range(16):
            odd.begin("get_track", content_id="wait")
        odd.result("ping")

    def test_with_one_thread_calls_are_answered_in_order(self):
        odd = self.odd(ODD.replace('int(os.environ.get("THREADS", 4))', "1"))
        odd.initialize()
        ids = [odd.begin("get_track", content_id=name) for name in ("slow", "release", "wait", "log")]
        self.assertEqual([odd.receive()["id"] for _ in ids], ids)

    def test_errors_have_their_codes_and_data(self):
        odd = self.odd()
        for content_id, code, data in (("query", 2, None), ("missing", 3, None), ("auth", 4, None),
                                       ("rate", 5, {"retry_after_ms": 1500}), ("region", 6, {"reason": "region"}),
                                       ("down", 7, None), ("no", 8, None), ("own", 1, {"x": 1})):
            error = odd.error("get_album", content_id=content_id)
            self.assertEqual((error["code"], error.get("data")), (code, data), error)

    def test_an_uncaught_exception_is_an_internal_error_with_its_traceback_in_the_log(self):
        odd = self.odd()
        for content_id, name in (("crash", "KeyError"), ("exit", "SystemExit"), ("typo", "TypeError"),
                                 ("dict", "TypeError: what get_track returns must be a Track, not dict"),
                                 ("nothing", "not NoneType"), ("unheard-of", "AttributeError")):
            error = odd.error("get_track", content_id=content_id)
            self.assertEqual(error["code"], 1)
            self.assertIn(name, error["message"])
            self.assertTrue(odd.wait_err("Traceback").startswith("E! "))
            self.assertTrue(odd.wait_err(name[:20]).startswith("E! "))
        odd.result("ping")

    def test_log_lines_carry_their_level_each(self):
        odd = self.odd()
        odd.result("get_track", content_id="log")
        for line in ("D! one", "D! two", "I! 100%", "W! w", "E! e \\udcff"):
            self.assertEqual(odd.wait_err(line), line)

    def test_search_is_cut_to_limit_and_kinds(self):
        odd = self.odd()
        self.assertEqual(len(odd.result("search", query="")["results"]), 50)
        found = odd.result("search", query="", limit=3, kinds=["album"])["results"]
        self.assertEqual(found, [{"kind": "album", "content_id": str(i), "title": "T%d ☃" % i} for i in range(3)])
        self.assertEqual(odd.result("search", query="", kinds=[])["results"], [])

    def test_what_is_none_or_empty_is_left_out_and_what_is_false_or_zero_is_not(self):
        odd = self.odd()
        self.assertEqual(odd.result("stream", content_id="x"), {
            "url": "https://h/x", "content_type": "audio/flac", "expires_in_ms": 0, "headers": {"X-Key": "v"},
            "live": False})
        self.assertEqual(odd.result("get_artist", content_id="n"), {"artist": {
            "content_id": "n", "name": "N", "albums": [{"title": "B"}],
            "top_tracks": [{"content_id": "a", "title": "A"}]}})


class Ending(Case):
    def test_end_of_input_while_a_call_runs_answers_it_if_it_is_quick(self):
        odd = self.odd()
        odd.initialize()
        call_id = odd.begin("get_track", content_id="slow")
        odd.wait_err("slow")
        odd.process.stdin.close()
        self.assertEqual(odd.receive()["id"], call_id)
        self.assertEnds(odd, WAIT_S)

    def test_end_of_input_ends_it_within_two_seconds_whatever_runs(self):
        for content_id, said in (("sleep", "sleeping"), ("stuck-in-c", "stuck")):
            odd = self.odd()
            odd.initialize()
            odd.begin("get_track", content_id=content_id)
            odd.wait_err(said)
            odd.process.stdin.close()
            self.assertEnds(odd, 2.0)

    def test_sigterm_ends_it_within_a_moment_idle_busy_and_starting(self):
        for method, params, said in (
                ("ping", {}, None), ("get_track", {"content_id": "stuck-in-c"}, "stuck"),
                ("initialize", {"protocol": sdk.PROTOCOL, "config": {"hang": 1}}, "hanging")):
            odd = self.odd()
            odd.begin(method, **params)
            odd.wait_err(said) if said else odd.receive()
            odd.process.send_signal(signal.SIGTERM)
            self.assertEnds(odd, 1.0)

    def test_a_host_that_reads_no_more_ends_it_quietly(self):
        reader, writer = os.pipe()
        process = subprocess.Popen([PYTHON, package(self)], stdin=subprocess.PIPE, stdout=writer,
                                   stderr=subprocess.PIPE, env=ENVIRONMENT)
        os.close(writer)
        os.close(reader)
        self.addCleanup(process.kill)
        process.stdin.write(PING + b"\n")
        process.stdin.flush()
        self.assertEqual(process.wait(WAIT_S), 0)
        said = process.stderr.read()
        process.stderr.close()
        process.stdin.close()
        self.assertNotIn(b"Traceback", said)

    def test_folders_that_were_made_up_by_hand_are_gone_afterwards(self):
        odd = self.odd()
        odd.result("stream", content_id="x")
        folder = odd.wait_err("context").split("context ")[1].split(" ")[0]
        self.assertTrue(os.path.isdir(folder))
        self.assertEqual(odd.close(), 0)
        self.assertFalse(os.path.exists(folder))


class Models(unittest.TestCase):
    def test_a_wrong_name_or_type_is_a_type_error(self):
        for make in (
            lambda: sdk.StreamInfo("https://h/", "audio/flac", expire_at=None), lambda: sdk.StreamInfo("https://h/"),
            lambda: sdk.Track(1, "A"), lambda: sdk.Track("a", None), lambda: sdk.Track("a", "A", duration_ms=1.0),
            lambda: sdk.Track("a", "A", duration_ms=True), lambda: sdk.Track("a", "A", explicit=1),
            lambda: sdk.Track("a", "A", artists=["N"]), lambda: sdk.Track("a", "A", genres="rock"),
            lambda: sdk.Track("a", "A", genres=[1]), lambda: sdk.Track("a", "A", album={"title": "B"}),
            lambda: sdk.Album("a", "A", [sdk.Track("a", "A")]), lambda: sdk.Album("a", "A"),
            lambda: sdk.Gain(track_db="1"), lambda: sdk.StreamInfo("https://h/", "a/b", headers={"a": 1}),
            lambda: sdk.StreamInfo("https://h/", "a/b", alternatives="https://h/"), lambda: sdk.RateLimited("soon"),
        ):
            self.assertRaises(TypeError, make)

    def test_a_value_that_the_host_would_refuse_is_a_value_error(self):
        def stream(**more):
            return sdk.StreamInfo(**dict({"url": "https://h/", "content_type": "audio/flac"}, **more))
        for make in (
            lambda: sdk.SearchResult("song", "a", "A"), lambda: sdk.Track("", "A"), lambda: sdk.Track("x" * 2001, "A"),
            lambda: sdk.Track("a", "\udcff"), lambda: sdk.Track("a", "A", duration_ms=-1),
            lambda: sdk.Track("a", "A", track_no=2 ** 32), lambda: sdk.Track("a", "A", duration_ms=2 ** 64),
            lambda: sdk.Track("a", "A", date="2026-1-1"), lambda: sdk.Track("a", "A", date="2026-13-01"),
            lambda: sdk.Track("a", "A", date="2026\n"), lambda: sdk.Gain(track_db=float("nan")),
            lambda: sdk.Album("a", "A", [], album_type="lp"), lambda: stream(url="ftp://h/"),
            lambda: stream(url="h/x"), lambda: stream(url="https://h/a b"), lambda: stream(url="https://"),
            lambda: stream(content_type=""), lambda: stream(expires_at="tomorrow"),
            lambda: stream(headers={"Range": "x"}), lambda: stream(headers={"a b": "x"}),
            lambda: stream(headers={"a": "x\r\ny"}), lambda: stream(alternatives=["https://h/"] * 17),
            lambda: stream(alternatives=["ftp://h/"]), lambda: sdk.ContentUnavailable("because"),
        ):
            self.assertRaises(ValueError, make)
        with self.assertRaisesRegex(ValueError, "StreamInfo.headers") as raised:
            stream(headers={"a": "secret\n"})
        self.assertNotIn("secret", str(raised.exception))

    def test_good_values_of_every_field_are_sent_as_they_are(self):
        track = {"content_id": "a", "title": "A", "artists": [{"name": "N", "content_id": "n"}], "track_no": 0,
                 "disc_no": 1, "duration_ms": 5, "album": {"title": "B", "content_id": "b"}, "date": "2026-02-28",
                 "genres": ["g"], "isrc": "i", "musicbrainz_id": "m", "explicit": False,
                 "artwork": [{"url": "http://h/i", "width": 1, "height": 2}],
                 "gain": {"track_db": -1, "track_peak": 0.5, "album_db": 0.0, "album_peak": 1.5}}
        self.assertEqual(sdk.Track(**dict(track, artists=[sdk.ArtistRef("N", "n")], album=sdk.AlbumRef("B", "b"),
                                          artwork=(sdk.Image("http://h/i", 1, 2),),
                                          gain=sdk.Gain(-1, 0.5, 0.0, 1.5))).to_wire(), track)
        self.assertEqual(sdk.Album("a", "A", []).to_wire(), {"content_id": "a", "title": "A", "tracks": []})
        info = {"url": "https://u:p@h:1/x?y#z", "content_type": "audio/flac", "duration_ms": 1, "file_size_bytes": 2 ** 40,
                "expires_at": "2026-01-31T12:00:00.5+01:00", "expires_in_ms": 2 ** 64 - 1, "headers": {},
                "seekable": False, "live": True, "alternatives": ["file:///music/a"]}
        self.assertEqual(sdk.StreamInfo(**info).to_wire(), info)

    def test_models_cannot_be_changed_to_a_wrong_field(self):
        with self.assertRaises(AttributeError):
            sdk.Track("a", "A").durations_ms = 1


def check_package(test, folder, manifest):
    for name in os.listdir(folder):
        info = os.lstat(os.path.join(folder, name))
        test.assertTrue(stat.S_ISREG(info.st_mode), name)
        test.assertFalse(info.st_mode & 0o002, "%s is writable by others" % name)
    test.assertTrue(os.access(os.path.join(folder, manifest["executable"]), os.X_OK))


class Bundled(Case):
    def command(self, path):
        return [PYTHON, path] if "SEGUE_PYTHON" in os.environ else [path]

    def test_the_example_is_a_package_with_the_very_same_sdk(self):
        self.assertTrue(filecmp.cmp(MODULE, os.path.join(EXAMPLE, "segue_plugin.py"), shallow=False),
                        "copy plugins/sdk/python/segue_plugin.py into its example folder")
        with open(os.path.join(EXAMPLE, "plugin.json"), encoding="utf-8") as file:
            check_package(self, EXAMPLE, json.load(file))

    def test_the_example_finds_looks_up_and_streams(self):
        shelf = self.started(*self.command(os.path.join(EXAMPLE, "shelf")))
        shelf.initialize(scopes=["network", "local-network"], config={"server": "http://h:1/"})
        found = shelf.result("search", query="")["results"]
        self.assertEqual([f["kind"] for f in found], ["track"] * 3 + ["album", "artist"])
        for thing in found:
            kind = thing["kind"]
            got = shelf.result("get_" + kind, content_id=thing["content_id"])[kind]
            self.assertEqual(got["name" if kind == "artist" else "title"], thing["title"])
        self.assertEqual(shelf.result("stream", content_id="two"), {
            "url": "http://h:1/two.flac", "content_type": "audio/flac", "duration_ms": 201000})
        for method in ("get_track", "get_album", "get_artist", "stream"):
            self.assertEqual(shelf.error(method, content_id="\u2603")["code"], 3)

    def test_without_its_scopes_the_example_leaves_out_stream(self):
        shelf = self.started(*self.command(os.path.join(EXAMPLE, "shelf")))
        self.assertNotIn("stream", shelf.initialize()["capabilities"])

    def test_the_template_works_at_once(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(MODULE, folder)
        template = os.path.join(SDK, "templates", "python")
        for name in os.listdir(template):
            with open(os.path.join(template, name), encoding="utf-8") as file:
                text = file.read().replace("{{id}}", "mine").replace("{{name}}", "Mine")
            self.assertNotIn("{{", text)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(os.path.join(folder, "plugin"), 0o755)
        mine = self.started(*self.command(os.path.join(folder, "plugin")))
        self.assertEqual(mine.initialize()["id"], "mine")
        for found in mine.result("search", query="")["results"]:
            self.assertEqual(mine.result("get_track", content_id=found["content_id"])["track"]["title"], found["title"])
            self.assertTrue(mine.result("stream", content_id=found["content_id"])["url"].startswith("https://"))
        self.assertEqual(mine.error("stream", content_id="x")["code"], 3)
        self.assertEqual(mine.close(), 0)
        self.assertNotIn("__pycache__", os.listdir(folder))


if __name__ == "__main__":
    unittest.main()
