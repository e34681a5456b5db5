#!/usr/bin/env python3
"""The demo plugin as one that keeps to the protocol, and to its end.

    python3 tests/plugins/test_demo_protocol.py
"""

import sys

sys.dont_write_bytecode = True

import json  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import time  # noqa: E402
import unittest  # noqa: E402
from urllib.parse import urlsplit  # noqa: E402

from demo_process import COMMAND, MUSIC, SCOPES, Case, Get  # noqa: E402
from plugin_lines import Lines  # noqa: E402
from plugin_process import ENVIRONMENT, WAIT_S  # noqa: E402


class Protocol(Lines, Case):
    def plugin(self):
        return self.demo()

    def test_a_pipe_alone_is_enough(self):
        done = subprocess.run(COMMAND, input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', env=ENVIRONMENT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=WAIT_S)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.count(b"\n"), 1)
        self.assertEqual(json.loads(done.stdout)["result"]["status"], "ok")

    def test_what_is_not_a_call_gets_the_standard_codes(self):
        demo = self.demo()
        for line, code, reply_id in [
            (b"junk", -32700, None), (b"", -32700, None), (b'{"a":', -32700, None), (b"\xff\xfe", -32700, None),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700, None), (b"[" * 200000, -32700, None),
            (b"[]", -32600, None), (b"7", -32600, None), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
            (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None), (b'{"id":4,"method":"ping"}', -32600, 4),
            (b'{"jsonrpc":"2.0","id":5}', -32600, 5), (b'{"jsonrpc":"2.0","id":6,"method":7}', -32600, 6),
            (b'{"jsonrpc":"2.0","id":7,"method":"play"}', -32601, 7),
            (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}', -32602, "a"),
            (b'{"jsonrpc":"2.0","id":8,"method":"stream","params":{"content_id":"\\ud800"}}', 3, 8),
        ]:
            with self.subTest(line=line[:60]):
                reply = demo.raw(line)
                self.assertEqual((reply["error"]["code"], reply["id"]), (code, reply_id))
        self.assertEqual(demo.raw(b'{"jsonrpc":"2.0","id":9,"method":"ping"}\r')["result"]["status"], "ok")

    def test_many_calls_at_once_are_all_answered(self):
        demo = self.demo()
        for i in range(16):
            demo.send(b'{"jsonrpc":"2.0","id":%d,"method":"stream","params":{"content_id":"dew"}}' % i)
        self.assertEqual({demo.receive()["id"] for _ in range(16)}, set(range(16)))

    def test_parameters_are_checked(self):
        demo = self.demo()
        for code, method, params in [
            (-32602, "search", {}), (-32602, "search", {"query": 1}), (-32602, "search", {"query": "", "limit": 0}),
            (-32602, "search", {"query": "", "limit": 501}), (-32602, "search", {"query": "", "limit": True}),
            (-32602, "search", {"query": "", "kinds": ["song"]}), (2, "search", {"query": "a" * 1025}),
            (-32602, "stream", {}), (-32602, "get_track", {"content_id": None}), (3, "get_track", {"content_id": "x"}),
            (3, "get_track", {"content_id": "first-light"}), (3, "get_album", {"content_id": "dew"}),
            (3, "get_artist", {"content_id": "../demo"}), (3, "stream", {"content_id": ""}),
        ]:
            with self.subTest(method=method, params=params):
                self.assertEqual(demo.code(method, **params), code)

    def test_initialize_refuses_what_it_cannot_obey(self):
        demo = self.demo()
        for config in [{"url_lifetime": 1}, {"url_lifetime_ms": 99}, {"url_lifetime_ms": "4000"}, {"rate_factor": -1},
                       {"url_lifetime_ms": True}, {"rate_factor": True}, {"cut_at_expiry": 1}, 5]:
            with self.subTest(config=config):
                self.assertEqual(
                    demo.code("initialize", protocol="segue.plugin/1", scopes=SCOPES, config=config), -32602)
        self.assertEqual(demo.code("initialize", protocol="segue.plugin/2", scopes=SCOPES), -32602)

    def test_without_its_scopes_the_plugin_leaves_out_stream(self):
        demo = self.demo()
        said = demo.result("initialize", protocol="segue.plugin/1", scopes=["network"])
        self.assertEqual(said["scopes"], ["network"])
        self.assertEqual(said["capabilities"], ["search", "get_track", "get_album", "get_artist"])
        self.assertEqual(demo.code("stream", content_id="dew"), 8)
        demo.result("get_track", content_id="dew")

    def test_log_lines_carry_a_level_and_never_a_url(self):
        demo = self.demo(rate_factor=0)
        url = demo.url()
        Get(url).whole()
        demo.raw(b"junk")
        demo.close()
        said = demo.rest_of_err()
        self.assertTrue(said)
        for line in said:
            self.assertRegex(line, r"^[EWID]! ")
            self.assertNotIn(urlsplit(url).path.split("/")[1], line)


class Stopping(Case):
    def check_stop(self, demo, stop, status):
        transfers = [Get(demo.url(piece)) for piece in MUSIC]
        start = time.monotonic()
        stop()
        self.assertEqual(demo.process.wait(WAIT_S), status)
        self.assertLess(time.monotonic() - start, 1.0)
        for transfer in transfers:
            self.assertFalse(transfer.until_cut()[1])

    def test_end_of_stdin_ends_it_at_once_while_transfers_run(self):
        demo = self.demo()
        self.check_stop(demo, demo.process.stdin.close, 0)

    def test_sigterm_ends_it_at_once_while_transfers_run(self):
        demo = self.demo()
        self.check_stop(demo, lambda: demo.process.send_signal(signal.SIGTERM), 0)


if __name__ == "__main__":
    unittest.main()
