#!/usr/bin/env python3
"""What comes with the Python SDK: its example and its template.

    python3 tests/plugins/test_python_sdk_packages.py
"""

import sys

sys.dont_write_bytecode = True

import filecmp  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import stat  # noqa: E402
import tempfile  # noqa: E402
import unittest  # noqa: E402

from odd_plugin import MODULE, PYTHON, Case  # noqa: E402
from plugin_process import SDK  # noqa: E402


EXAMPLE = os.path.join(SDK, "python", "example")


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
