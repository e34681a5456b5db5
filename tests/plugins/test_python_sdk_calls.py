#!/usr/bin/env python3
"""The Python SDK: calls and their answers, and the end of a plugin.

    python3 tests/plugins/test_python_sdk_calls.py
"""

import sys

sys.dont_write_bytecode = True

import os  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import unittest  # noqa: E402

from odd_plugin import ODD, PING, PYTHON, Case, package, sdk  # noqa: E402
from plugin_process import ENVIRONMENT, WAIT_S  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
