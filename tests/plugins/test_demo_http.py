#!/usr/bin/env python3
"""The demo plugin's HTTP server: ranges, URLs that run out, and its pace.

    python3 tests/plugins/test_demo_http.py
"""

import sys

sys.dont_write_bytecode = True

import http.client  # noqa: E402
import re  # noqa: E402
import socket  # noqa: E402
import time  # noqa: E402
import unittest  # noqa: E402
from urllib.parse import urlsplit  # noqa: E402

from demo_process import MUSIC, Case, Get, content, status  # noqa: E402
from plugin_process import WAIT_S  # noqa: E402


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
            demo.wait_err("connection closed")
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


if __name__ == "__main__":
    unittest.main()
