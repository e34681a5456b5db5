"""A plugin's process, driven over its pipes from outside."""

import json
import os
import queue
import subprocess
import threading

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SDK = os.path.join(ROOT, "plugins", "sdk")
WAIT_S = 30
MAX_LINE = 10 * 1024 * 1024
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8"}


class PluginProcess:
    """Every line it prints is kept, so that pollution of stdout is seen."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=ENVIRONMENT, cwd="/")
        self.out, self.err = queue.Queue(), queue.Queue()
        self.seen_err = []
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self.readers:
            reader.start()
        self.last_id = 0

    @staticmethod
    def _read(source, lines):
        for line in source:
            lines.put(line)
        lines.put(None)

    def send(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def begin(self, method, **params):
        self.last_id += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).encode())
        return self.last_id

    def receive(self):
        line = self.out.get(timeout=WAIT_S)
        assert line is not None and line.endswith(b"\n"), "it ended: %r" % line
        reply = json.loads(line)
        assert reply["jsonrpc"] == "2.0" and set(reply) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        return reply

    def raw(self, line):
        self.send(line)
        return self.receive()

    def call(self, method, **params):
        call_id = self.begin(method, **params)
        reply = self.receive()
        assert reply["id"] == call_id, reply
        return reply

    def result(self, method, **params):
        reply = self.call(method, **params)
        assert "result" in reply, reply
        return reply["result"]

    def error(self, method, **params):
        reply = self.call(method, **params)
        assert "error" in reply, reply
        assert isinstance(reply["error"]["message"], str) and reply["error"]["message"], reply
        return reply["error"]

    def initialize(self, **params):
        return self.result("initialize", **dict(
            {"protocol": "segue.plugin/1", "host": {"name": "segue", "version": "0"}, "scopes": [],
             "dirs": {"data": "/data", "cache": "/cache"}, "config": {}, "secrets": {}}, **params))

    def wait_err(self, part):
        """The first line on stderr that has this in it."""
        while True:
            line = self.err.get(timeout=WAIT_S)
            assert line is not None, "%r was never said, but %r" % (part, self.seen_err)
            self.seen_err.append(line.decode("utf-8", "replace").rstrip("\n"))
            if part in self.seen_err[-1]:
                return self.seen_err[-1]

    def rest_of_out(self):
        """What was not received yet, of a process that has ended."""
        return self._rest(self.out)

    def rest_of_err(self):
        """What nobody waited for, likewise."""
        return [line.decode() for line in self._rest(self.err)]

    def _rest(self, queue_of_lines):
        for reader in self.readers:
            reader.join(WAIT_S)
        lines = []
        while not queue_of_lines.empty():
            lines.append(queue_of_lines.get())
        return [line for line in lines if line is not None]

    def close(self):
        """Ends the process by closing its stdin; returns its exit status."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            return self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            self.process.wait()
            for reader in self.readers:
                reader.join(WAIT_S)
            self.process.stdout.close()
            self.process.stderr.close()
