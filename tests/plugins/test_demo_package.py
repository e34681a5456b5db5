#!/usr/bin/env python3
"""The demo plugin as a package: its files, its catalogue, and its work in a sandbox.

    python3 tests/plugins/test_demo_package.py
"""

import sys

sys.dont_write_bytecode = True

import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import stat  # noqa: E402
import subprocess  # noqa: E402
import time  # noqa: E402
import unittest  # noqa: E402

from demo_process import MUSIC, PACKAGE, SCOPES, Case, Get, content  # noqa: E402


class Package(Case):
    def test_the_package_follows_the_rules(self):
        with open(os.path.join(PACKAGE, "plugin.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertEqual(manifest["id"], os.path.basename(PACKAGE))
        self.assertLessEqual(set(manifest), {"schema", "id", "name", "version", "protocol", "executable", "arguments",
                                             "capabilities", "scopes", "timeouts_ms", "idle_stop_s"})
        self.assertEqual([s["scope"] for s in manifest["scopes"]], SCOPES)
        self.assertTrue(all(s["reason"] for s in manifest["scopes"]))
        total = 0
        for folder, folders, files in os.walk(PACKAGE):
            self.assertNotIn("__pycache__", folders)
            for name in files + folders:
                info = os.lstat(os.path.join(folder, name))
                self.assertTrue(stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode), name)
                self.assertFalse(info.st_mode & 0o022, "%s is writable by others" % name)
                total += info.st_size if stat.S_ISREG(info.st_mode) else 0
        self.assertLess(total, 3 * 1024 * 1024)
        self.assertTrue(os.access(os.path.join(PACKAGE, manifest["executable"]), os.X_OK))

    def test_initialize_and_ping_agree_with_the_manifest(self):
        with open(os.path.join(PACKAGE, "plugin.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        demo = self.demo()
        said = demo.result("initialize", protocol="segue.plugin/1", host={"name": "segue", "version": "0"},
                           scopes=SCOPES, dirs={"data": "/x", "cache": "/y"}, config={}, secrets={})
        self.assertEqual(said, {"protocol": manifest["protocol"], "id": manifest["id"], "version": manifest["version"],
                                "capabilities": manifest["capabilities"], "scopes": SCOPES})
        self.assertEqual(demo.result("ping"), {"status": "ok", "version": manifest["version"],
                                               "capabilities": manifest["capabilities"]})


class Catalogue(Case):
    def titles(self, demo, query, **more):
        return [r["title"] for r in demo.result("search", query=query, **more)["results"]]

    def test_search_folds_case_and_accents_and_wants_every_word(self):
        demo = self.demo()
        for query, kinds, titles in [
            ("eclaircie", ["track"], ["Éclaircie"]), ("ÉCLAIR", ["track"], ["Éclaircie"]),
            ("e\u0301clair", ["track"], ["Éclaircie"]), ("MIST slow", ["track"], ["Slow Mist"]),
            ("first-light dew", ["track"], ["Dew"]), ("dew mist", ["track"], []), ("!?", ["track"], []),
            ("", ["track"], ["Dew", "Slow Mist", "Éclaircie"]), (" ", ["album"], ["First Light"]),
            ("developers", ["artist"], ["The Segue developers"]), ("", [], []),
        ]:
            with self.subTest(query=query, kinds=kinds):
                self.assertEqual(self.titles(demo, query, kinds=kinds), titles)
        self.assertEqual(self.titles(demo, ""),
                         ["Dew", "Slow Mist", "Éclaircie", "First Light", "The Segue developers"])
        self.assertEqual(self.titles(demo, "", limit=2), ["Dew", "Slow Mist"])

    def test_everything_that_is_found_can_be_looked_up(self):
        demo = self.demo()
        for found in demo.result("search", query="")["results"]:
            kind = found["kind"]
            thing = demo.result("get_" + kind, content_id=found["content_id"])[kind]
            self.assertEqual(thing["name" if kind == "artist" else "title"], found["title"])
            self.assertEqual(thing["content_id"], found["content_id"])
        album = demo.result("get_album", content_id="first-light")["album"]
        self.assertEqual([t["content_id"] for t in album["tracks"]], list(MUSIC))
        self.assertEqual([t["track_no"] for t in album["tracks"]], [1, 2, 3])

    @unittest.skipUnless(shutil.which("ffmpeg"), "needs ffmpeg to decode the music")
    def test_durations_are_those_of_the_decoded_music_and_nothing_clips(self):
        demo = self.demo()
        for content_id, (file, _) in MUSIC.items():
            pcm = subprocess.run(["ffmpeg", "-v", "error", "-i", os.path.join(PACKAGE, "music", file), "-f", "f32le",
                                  "-"], stdout=subprocess.PIPE, check=True).stdout
            track = demo.result("get_track", content_id=content_id)["track"]
            self.assertEqual(len(pcm) // 8 * 1000, track["duration_ms"] * 48000, content_id)
            samples = memoryview(pcm).cast("f")
            self.assertAlmostEqual(max(max(samples), -min(samples)), track["gain"]["track_peak"], delta=0.02)
            self.assertLess(track["gain"]["track_peak"], 1.0)


@unittest.skipUnless(shutil.which("bwrap"), "needs bubblewrap")
class Confined(Case):
    def test_it_works_in_a_sandbox_with_a_read_only_package_and_no_proc(self):
        sandbox = ["bwrap", "--unshare-user", "--unshare-pid", "--die-with-parent", "--ro-bind", "/usr", "/usr",
                   "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
                   "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", PACKAGE, "/plugin", "--chdir", "/plugin",
                   "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin",
                   "--setenv", "PYTHONDONTWRITEBYTECODE", "1"]
        if subprocess.run(sandbox + ["/usr/bin/python3", "-V"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode:
            self.skipTest("bubblewrap or /usr/bin/python3 does not work here")
        demo = self.demo(sandbox + ["--", "./demo"], rate_factor=0)
        self.assertEqual(Get(demo.url("eclaircie")).whole(), content("eclaircie"))
        asked = time.monotonic()
        self.assertEqual(demo.close(), 0)
        self.assertLess(time.monotonic() - asked, 1.5)


if __name__ == "__main__":
    unittest.main()
