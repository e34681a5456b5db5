#!/usr/bin/env python3
"""The sh and jq plugins from outside, in every shell of dash, busybox ash and /bin/sh that is there.

    python3 tests/plugins/test_sh_example.py

Needs jq. Standard library only.
"""

import sys

sys.dont_write_bytecode = True

import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import unittest  # noqa: E402

from plugin_process import ENVIRONMENT, MAX_LINE, SDK, WAIT_S, PluginProcess  # noqa: E402

EXAMPLE = os.path.join(SDK, "sh", "example")
TEMPLATE = os.path.join(SDK, "templates", "sh")
SHELLS = [[]] + [shell for shell in (["dash"], ["busybox", "ash"]) if shutil.which(shell[0])]
CAPABILITIES = ["search", "get_track", "stream"]


class Kept:
    """What both plugins do; `path` and `plugin_id` say which, `known` is a track that it has."""

    def each(self):
        for shell in SHELLS:
            plugin = PluginProcess(*shell, self.path)
            self.addCleanup(plugin.close)
            yield plugin

    def test_the_package_is_one(self):
        folder = os.path.dirname(self.path)
        with open(os.path.join(folder, "plugin.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertEqual(manifest["capabilities"], CAPABILITIES)
        self.assertEqual(os.path.join(folder, manifest["executable"]), self.path)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            self.assertTrue(os.path.isfile(path) and not os.path.islink(path), name)
        self.assertTrue(os.access(self.path, os.X_OK))
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.readline(), "#!/bin/sh\n")

    def test_the_handshake_agrees_with_the_manifest(self):
        for plugin in self.each():
            said = plugin.initialize(scopes=["network"])
            self.assertEqual(plugin.result("ping"), {"status": "ok", "version": said["version"],
                                                     "capabilities": CAPABILITIES})
            self.assertEqual(said, {"protocol": "segue.plugin/1", "id": self.plugin_id, "version": said["version"],
                                    "capabilities": CAPABILITIES, "scopes": ["network"]})

    def test_what_is_found_can_be_looked_up_and_streamed(self):
        for plugin in self.each():
            found = plugin.result("search", query="")["results"]
            self.assertGreaterEqual(len(found), 2)
            for thing in found:
                track = plugin.result("get_track", content_id=thing["content_id"])["track"]
                self.assertEqual((track["content_id"], track["title"]), (thing["content_id"], thing["title"]))
                info = plugin.result("stream", content_id=thing["content_id"])
                self.assertRegex(info["url"], "^https?://")
                self.assertTrue(info["content_type"].startswith("audio/"))
            self.assertEqual(plugin.result("search", query="", limit=1)["results"], found[:1])
            self.assertEqual(plugin.result("search", query="no such thing")["results"], [])
            title = found[1]["title"].encode().upper().decode()  # jq 1.6 knows the case of ASCII letters only
            self.assertEqual(plugin.result("search", query=title)["results"], found[1:2])

    def test_odd_strings_are_only_strings(self):
        odd = ['"\\', "$(exit 1) `id`; exit '*", "a\nb\tEND", "%s%d", "-n", "\u2603\U0001f3b5\u2028", "\\(1)", "END"]
        for plugin in self.each():
            for text in odd:
                self.assertEqual(plugin.error("stream", content_id=text)["code"], 3, text)
                self.assertEqual(len(plugin.result("search", query=text)["results"]) > 1, False, text)
                line = json.dumps({"jsonrpc": "2.0", "id": text, "method": "ping"}).encode()
                self.assertEqual(plugin.raw(line)["id"], text)

    def test_what_is_not_a_call_gets_the_standard_codes(self):
        for plugin in self.each():
            for line, code, reply_id in [
                (b"junk", -32700, None), (b"", -32700, None), (b'{"a":', -32700, None), (b"\xff\xfe", -32700, None),
                (b"7", -32700, None), (b"null", -32700, None), (b"[]", -32700, None), (b"{} {}", -32700, None),
                (b'"x', -32700, None), (b"\\", -32700, None), (b"[" * 100000, -32700, None),
                (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
                (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
                (b'{"id":4,"method":"ping"}', -32600, 4), (b'{"jsonrpc":"2.0","id":6,"method":7}', -32600, 6),
                (b'{"jsonrpc":"2.0","id":7,"method":"get_album","params":{"content_id":"a"}}', -32601, 7),
                (b'{"jsonrpc":"2.0","id":8,"method":"fail 3; exit"}', -32601, 8),
                (b'{"jsonrpc":"2.0","id":8,"method":"a\\nb"}', -32601, 8),
                (b'{"jsonrpc":"2.0","id":8,"method":""}', -32601, 8),
                (b'{"jsonrpc":"2.0","id":9,"method":"search","params":[]}', -32602, 9),
                (b'{"jsonrpc":"2.0","id":9,"method":"search"}', -32602, 9),
                (b'{"jsonrpc":"2.0","id":9,"method":"stream","params":{"content_id":1}}', -32602, 9),
            ]:
                with self.subTest(line=line[:50]):
                    reply = plugin.raw(line)
                    self.assertEqual((reply["error"]["code"], reply["id"]), (code, reply_id), reply)
            self.assertEqual(plugin.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r')["id"], 1)

    def test_a_message_without_an_id_and_a_stray_reply_get_no_answer(self):
        for plugin in self.each():
            for line in (b'{"jsonrpc":"2.0","method":"ping"}', b'{"jsonrpc":"2.0","method":"nope"}', b"{}",
                         b'{"jsonrpc":"2.0","id":3,"result":{}}'):
                plugin.send(line)
            plugin.result("ping")
            self.assertEqual(plugin.close(), 0)
            self.assertEqual(plugin.rest_of_out(), [])

    def test_sixteen_calls_at_once_and_a_long_line_are_answered(self):
        for plugin in self.each():
            ids = [plugin.begin("stream", content_id=self.known) for _ in range(16)]
            self.assertEqual([plugin.receive()["id"] for _ in ids], ids)
            self.assertEqual(plugin.error("stream", content_id="x" * 100000)["code"], 3)

    def test_a_pipe_alone_is_enough(self):
        for shell in SHELLS:
            for end in (b"\n", b""):
                done = subprocess.run(shell + [self.path], input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}' + end,
                                      env=ENVIRONMENT, stdout=subprocess.PIPE, timeout=WAIT_S, cwd="/")
                self.assertEqual(done.returncode, 0)
                self.assertEqual(json.loads(done.stdout)["result"]["status"], "ok")

    def test_end_of_input_and_sigterm_end_it(self):
        for plugin in self.each():
            plugin.result("ping")
            self.assertEqual(plugin.close(), 0)
        for plugin in self.each():
            plugin.result("ping")
            plugin.process.send_signal(signal.SIGTERM)
            self.assertEqual(plugin.process.wait(WAIT_S), -signal.SIGTERM)


class Example(Kept, unittest.TestCase):
    path, plugin_id, known = os.path.join(EXAMPLE, "stations"), "stations", "cafe"

    def test_text_is_escaped_as_json_wants_it(self):
        for plugin in self.each():
            found = plugin.result("search", query='"zur')["results"]
            self.assertEqual([f["title"] for f in found], ['Café "Zur Welle"'])
            self.assertEqual(plugin.result("search", query="", kinds=["album"])["results"], [])
            for more in ({"limit": 0}, {"limit": 501}, {"limit": "1"}, {"kinds": "track"}):
                self.assertEqual(plugin.error("search", query="", **more)["code"], -32602)

    def test_ten_mebibytes_are_read(self):
        plugin = PluginProcess(self.path)
        self.addCleanup(plugin.close)
        head, tail = b'{"jsonrpc":"2.0","id":1,"method":"ping","x_pad":"', b'"}'
        self.assertEqual(plugin.raw(head + b"a" * (MAX_LINE - len(head) - len(tail)) + tail)["id"], 1)


class Template(Kept, unittest.TestCase):
    plugin_id, known = "mine", "two"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        for name in os.listdir(TEMPLATE):
            with open(os.path.join(TEMPLATE, name), encoding="utf-8") as file:
                text = file.read().replace("{{id}}", "mine").replace("{{name}}", "Mine")
            assert "{{" not in text, name
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        cls.path = os.path.join(folder, "plugin")
        os.chmod(cls.path, 0o755)


if __name__ == "__main__":
    unittest.main()
