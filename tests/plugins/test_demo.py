#!/usr/bin/env python3
"""Drives the bundled demo plugin from outside: the real process over pipes, its real HTTP server over sockets.

    python3 tests/plugins/test_demo.py

Standard library only. DEMO_PYTHON names another interpreter to run the plugin with.
"""

import http.client
import json
import os
import queue
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest
from urllib.parse import urlsplit

PACKAGE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "plugins", "demo"))
COMMAND = ([os.environ["DEMO_PYTHON"]] if "DEMO_PYTHON" in os.environ else []) + [os.path.join(PACKAGE, "demo")]
MUSIC = {"dew": ("1-dew.flac", "audio/flac"), "slow-mist": ("2-slow-mist.mp3", "audio/mpeg"),
         "eclaircie": ("3-eclaircie.opus", "audio/ogg")}
SCOPES = ["network", "local-network"]
WAIT_S = 10
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8"}


def content(content_id):
    with open(os.path.join(PACKAGE, "music", MUSIC[content_id][0]), "rb") as file:
        return file.read()


class Demo:
    """The plugin's process; every line it prints is kept, so that pollution of stdout is seen."""

    def __init__(self, command=None, **config):
        self.process = subprocess.Popen(command or COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=ENVIRONMENT, cwd="/")
        self.out, self.err = queue.Queue(), []
        self.readers = [threading.Thread(target=self._read_out), threading.Thread(target=self._read_err)]
        for reader in self.readers:
            reader.start()
        self.last_id = 0
        if config:
            self.result("initialize", protocol="segue.plugin/1", scopes=SCOPES, config=config)

    def _read_out(self):
        for line in self.process.stdout:
            self.out.put(line)

    def _read_err(self):
        for line in self.process.stderr:
            self.err.append(line.decode())

    def send(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self):
        line = self.out.get(timeout=WAIT_S)
        assert line.endswith(b"\n"), line
        return json.loads(line)

    def raw(self, line):
        self.send(line)
        return self.receive()

    def call(self, method, **params):
        self.last_id += 1
        reply = self.raw(json.dumps(
            {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}).encode())
        assert reply["jsonrpc"] == "2.0" and reply["id"] == self.last_id, reply
        return reply

    def result(self, method, **params):
        reply = self.call(method, **params)
        assert "result" in reply, reply
        return reply["result"]

    def code(self, method, **params):
        error = self.call(method, **params)["error"]
        assert set(error) == {"code", "message"} and error["message"], error
        return error["code"]

    def url(self, content_id="dew"):
        return self.result("stream", content_id=content_id)["url"]

    def close(self):
        """Ends the process by closing its stdin; returns (exit status, seconds that it took)."""
        start = time.monotonic()
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            status = self.process.wait(WAIT_S)
        finally:
            self.process.kill()
        took = time.monotonic() - start
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return status, took


class Get:
    """One HTTP request, answered but with its body unread."""

    def __init__(self, url, method="GET", connection=None, **headers):
        parts = urlsplit(url)
        self.connection = connection or http.client.HTTPConnection(parts.hostname, parts.port, timeout=WAIT_S)
        self.connection.request(method, url.split(parts.netloc, 1)[1], headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.header = self.response.headers.get

    def whole(self):
        body = self.response.read()
        self.connection.close()
        return body

    def until_cut(self):
        """The bytes that came, and whether the body was complete."""
        try:
            return self.response.read(), True
        except http.client.IncompleteRead as short:
            return short.partial, False
        except ConnectionError:
            return b"", False
        finally:
            self.connection.close()


def status(url, method="GET", **headers):
    got = Get(url, method, **headers)
    got.connection.close()
    got.response.close()
    return got.status


class Case(unittest.TestCase):
    def demo(self, *args, **config):
        demo = Demo(*args, **config)
        self.addCleanup(demo.close)
        return demo


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


class Protocol(Case):
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

    def test_a_message_without_an_id_and_a_stray_reply_get_no_answer(self):
        demo = self.demo()
        demo.send(b'{"jsonrpc":"2.0","method":"ping"}')
        demo.send(b'{"jsonrpc":"2.0","method":"nope"}')
        demo.send(b'{}')
        demo.send(b'{"jsonrpc":"2.0","id":3,"result":{}}')
        demo.result("ping")  # replies come in order: this one is the first
        self.assertTrue(demo.out.empty())

    def test_a_line_of_ten_mebibytes_is_read_and_one_byte_more_is_refused_and_dropped(self):
        demo = self.demo()
        head, tail = b'{"jsonrpc":"2.0","id":1,"method":"ping","x_pad":"', b'"}'
        for extra, expected in ((0, 1), (1, None), (3000000, None)):
            pad = b"a" * (10 * 1024 * 1024 - len(head) - len(tail) + extra)
            self.assertEqual(demo.raw(head + pad + tail)["id"], expected)
        demo.result("ping")

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
        self.assertTrue(demo.err)
        for line in demo.err:
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


class Http(Case):
    def test_each_piece_arrives_whole_with_honest_headers(self):
        demo = self.demo(rate_factor=0)
        for content_id, (file, content_type) in MUSIC.items():
            info = demo.result("stream", content_id=content_id)
            want = content(content_id)
            self.assertEqual((info["content_type"], info["file_size_bytes"]), (content_type, len(want)))
            self.assertRegex(info["url"], r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/%s$" % re.escape(file))
            self.assertRegex(info["expires_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertEqual(info["expires_in_ms"], 4000)
            got = Get(info["url"])
            self.assertEqual((got.status, got.header("Content-Type"), got.header("Content-Length"),
                              got.header("Accept-Ranges")), (200, content_type, str(len(want)), "bytes"))
            self.assertRegex(got.header("ETag"), r'^"[0-9a-f]{32}"$')
            self.assertTrue(got.header("Date"))
            self.assertEqual(got.whole(), want)

    def test_ranges_are_exact_over_one_kept_connection(self):
        demo = self.demo(rate_factor=0)
        url, want = demo.url("slow-mist"), content("slow-mist")
        size = len(want)
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=WAIT_S)
        head = Get(url, "HEAD", connection=connection)
        etag = head.header("ETag")
        head.response.read()
        for value, start, end in [("bytes=0-0", 0, 1), ("bytes=1000-", 1000, size), ("bytes=5-99", 5, 100),
                                  ("bytes=-7", size - 7, size), ("bytes=10-999999999", 10, size),
                                  ("bytes=-999999999", 0, size), ("Bytes=3-4", 3, 5)]:
            for condition in ({}, {"If_Range": etag}):
                got = Get(url, connection=connection, Range=value, **condition)
                self.assertEqual((got.status, got.header("Content-Range")),
                                 (206, "bytes %d-%d/%d" % (start, end - 1, size)), value)
                self.assertEqual(got.header("ETag"), etag)
                self.assertEqual(got.response.read(), want[start:end])
        for value, condition in [("bytes=1-2", '"other"'), ("bytes=1-2", "W/" + etag), ("bytes=9-3", None),
                                 ("bytes=a-", None), ("bytes=-", None), ("lines=1-2", None), ("bytes=0-1,5-6", None)]:
            got = Get(url, connection=connection, Range=value, **({"If_Range": condition} if condition else {}))
            self.assertEqual((got.status, got.header("Content-Range")), (200, None), value)
            self.assertEqual(got.response.read(), want)
        for value in ("bytes=%d-" % size, "bytes=%d-%d" % (size, size + 5), "bytes=-0"):
            got = Get(url, connection=connection, Range=value)
            self.assertEqual((got.status, got.header("Content-Range")), (416, "bytes */%d" % size), value)
            got.response.read()
        connection.close()

    def test_head_has_the_headers_of_get_and_no_body(self):
        demo = self.demo(rate_factor=0)
        url = demo.url()
        got = Get(url, "HEAD")
        self.assertEqual((got.status, got.header("Content-Length")), (200, str(len(content("dew")))))
        self.assertEqual(got.whole(), b"")
        self.assertEqual(status(url + "x", "HEAD"), 404)

    def test_an_unknown_token_is_403_and_an_unknown_path_404(self):
        demo = self.demo(rate_factor=0)
        base, token, file = demo.url().rsplit("/", 2)
        self.assertEqual(status("%s/%s/%s" % (base, "0" * 32, file)), 403)
        for path in ("", file, token, token + "/2-slow-mist.mp3", token + "/../demo", "%s/%s?x" % (token, file)):
            self.assertEqual(status(base + "/" + path), 404, path)
        self.assertEqual(status("%s/%s/%s" % (base, token, file), "POST"), 501)

    def test_junk_on_a_connection_harms_nobody(self):
        demo = self.demo(rate_factor=0)
        url = demo.url()
        for junk in (b"\x16\x03\x01\x00\xa5\x01\n\r\n", b"GET\r\n\r\n", b"A" * 70000 + b"\r\n\r\n", b""):
            with socket.create_connection(("127.0.0.1", urlsplit(url).port), WAIT_S) as raw:
                try:
                    raw.sendall(junk)
                except ConnectionError:
                    pass
        self.assertEqual(Get(url).whole(), content("dew"))


class Expiry(Case):
    def test_a_new_request_with_an_expired_url_is_403_also_on_a_kept_connection(self):
        demo = self.demo(rate_factor=0, url_lifetime_ms=300)
        url = demo.url()
        granted = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(url).port, timeout=WAIT_S)
        got = Get(url, connection=connection, Range="bytes=0-9")
        self.assertEqual((got.status, len(got.response.read())), (206, 10))
        time.sleep(max(0.0, granted + 0.31 - time.monotonic()))  # what is tested is the passing of time
        got = Get(url, connection=connection, Range="bytes=10-19")
        self.assertEqual(got.status, 403)
        self.assertIn(b"expired", got.whole())
        self.assertEqual(status(url, "HEAD"), 403)
        self.assertEqual(status(demo.url(), Range="bytes=10-19"), 206)

    def test_a_transfer_is_cut_when_its_url_expires_and_ranges_with_fresh_urls_complete_it(self):
        demo = self.demo(rate_factor=6, url_lifetime_ms=600)
        want, got, urls, etags = content("eclaircie"), b"", 0, set()
        while len(got) < len(want):
            url = demo.url("eclaircie")
            start = time.monotonic()
            answer = Get(url, Range="bytes=%d-" % len(got), **({"If_Range": etags.copy().pop()} if etags else {}))
            self.assertEqual(answer.status, 206)
            etags.add(answer.header("ETag"))
            part, complete = answer.until_cut()
            got += part
            urls += 1
            if not complete:
                self.assertAlmostEqual(time.monotonic() - start, 0.6, delta=0.4)
            self.assertTrue(part)
        self.assertEqual(got, want)
        self.assertEqual(len(etags), 1)
        self.assertGreaterEqual(urls, 4)

    def test_without_cut_at_expiry_a_transfer_under_way_continues(self):
        demo = self.demo(rate_factor=20, url_lifetime_ms=200, cut_at_expiry=False)
        url = demo.url("slow-mist")
        got = Get(url)
        self.assertEqual(got.whole(), content("slow-mist"))
        self.assertEqual(status(url), 403)

    def test_a_client_that_reads_nothing_is_cut_too(self):
        demo = self.demo(rate_factor=0, url_lifetime_ms=500)
        parts = urlsplit(demo.url("dew"))
        with socket.socket() as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.settimeout(WAIT_S)
            raw.connect((parts.hostname, parts.port))
            raw.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % parts.path.encode())
            deadline = time.monotonic() + WAIT_S
            while not any("connection closed" in line for line in list(demo.err)):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            got = 0
            while True:
                try:
                    data = raw.recv(65536)
                except ConnectionError:
                    break
                if not data:
                    break
                got += len(data)
        self.assertLess(got, len(content("dew")))

    def test_the_throttle_is_smooth_and_a_little_faster_than_the_music(self):
        demo = self.demo(url_lifetime_ms=60000)
        size, seconds = len(content("slow-mist")), 20.0
        got = Get(demo.url("slow-mist"))
        start, arrived = time.monotonic(), []
        while time.monotonic() - start < 3.0:
            data = got.response.read1(65536)
            arrived.append((time.monotonic() - start, len(data)))
        got.connection.close()
        total = sum(n for _, n in arrived)
        rate = size / seconds
        self.assertLess(total, rate * (0.5 + 3.3 * 1.5 + 0.3))
        self.assertGreater(total, rate * (0.5 + 2.0 * 1.5))
        gaps = [b - a for (a, _), (b, _) in zip(arrived, arrived[1:])]
        self.assertGreater(len(gaps), 20)
        self.assertLess(max(n for at, n in arrived if at > 0.2), rate)


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
        status, took = demo.close()
        self.assertEqual(status, 0)
        self.assertLess(took, 1.5)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
