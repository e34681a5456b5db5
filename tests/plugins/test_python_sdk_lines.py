#!/usr/bin/env python3
"""The Python SDK: the handshake, and what is made of the lines that come.

    python3 tests/plugins/test_python_sdk_lines.py
"""

import sys

sys.dont_write_bytecode = True

import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import unittest  # noqa: E402

from odd_plugin import MANIFEST, PING, PYTHON, Case, package, sdk  # noqa: E402
from plugin_lines import Lines  # noqa: E402
from plugin_process import ENVIRONMENT, WAIT_S  # noqa: E402


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


class Reading(Lines, Case):
    def plugin(self):
        return self.odd()

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


if __name__ == "__main__":
    unittest.main()
