"""The demo plugin's HTTP server: three files behind URLs that expire, sent little faster than they play.

It behaves the way CDNs with signed URLs behave when they check the signature during a transfer too: a new
request with an expired URL is answered 403, and a transfer under way is cut when its URL expires (the
latter can be turned off). It is strict about ranges, so that what a player gets wrong shows here first.
"""

import hashlib
import os
import re
import socket
import socketserver
import threading
import time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler

#: At most this many connections at once; more are closed unanswered.
MAX_CONNECTIONS = 32
#: At most this many URLs are remembered; of more, the oldest are forgotten, and a forgotten URL is an expired one.
MAX_URLS = 1024
#: A throttled transfer sends one small piece this often, in seconds: smooth for the listener's meter.
TICK_S = 0.05
#: This much music is sent at once at the start of each transfer, in seconds, so that sound begins without waiting.
HEAD_START_S = 0.5
#: A client that takes no byte for this long, in seconds, is given up.
STALL_S = 60
#: Between requests a connection is kept open for this long, in seconds.
KEEP_ALIVE_S = 15


class Settings:
    """What a person may change in the plugin's configuration; a mistake is a ValueError that says what to write."""

    def __init__(self, config=None):
        config = {} if config is None else config
        if not isinstance(config, dict):
            raise ValueError("config must be an object")
        known = ("url_lifetime_ms", "rate_factor", "cut_at_expiry")
        for key in config:
            if key not in known:
                raise ValueError("config: unknown key %s; known are %s" % (key, ", ".join(known)))
        self.url_lifetime_ms = config.get("url_lifetime_ms", 4000)
        self.rate_factor = config.get("rate_factor", 1.5)
        self.cut_at_expiry = config.get("cut_at_expiry", True)
        if type(self.url_lifetime_ms) is not int or not 100 <= self.url_lifetime_ms <= 86400000:
            raise ValueError("config: url_lifetime_ms must be a whole number from 100 to 86400000")
        factor = self.rate_factor
        if type(factor) not in (int, float) or not (factor == 0 or 0.1 <= factor <= 1000):
            raise ValueError("config: rate_factor must be 0 (as fast as possible) or a number from 0.1 to 1000")
        if type(self.cut_at_expiry) is not bool:
            raise ValueError("config: cut_at_expiry must be true or false")


class Grant:
    """One URL that was handed out: for which piece, until when (monotonic seconds), under which settings."""

    def __init__(self, piece, settings):
        self.piece = piece
        self.settings = settings
        self.deadline = time.monotonic() + settings.url_lifetime_ms / 1000.0

    def remaining(self):
        return self.deadline - time.monotonic()


class File:
    """Size and strong ETag of a piece's file."""

    def __init__(self, path):
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(65536), b""):
                digest.update(block)
        self.size = os.path.getsize(path)
        self.etag = '"%s"' % digest.hexdigest()[:32]


class Server(socketserver.ThreadingTCPServer):
    """Listens on 127.0.0.1 on a port that the kernel chooses. (http.server's own class would look up a host name.)"""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, log):
        super().__init__(("127.0.0.1", 0), Handler)
        self.log = log
        self.port = self.server_address[1]
        self._lock = threading.Lock()
        self._grants = OrderedDict()
        self._files = {}
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 60}, daemon=True).start()

    def file(self, piece):
        """The file's size and ETag; read once. OSError when the file is missing."""
        with self._lock:
            if piece.file not in self._files:
                self._files[piece.file] = File(piece.path)
            return self._files[piece.file]

    def grant(self, piece, settings):
        """A fresh URL for a piece."""
        token = os.urandom(16).hex()
        with self._lock:
            self._grants[token] = Grant(piece, settings)
            while len(self._grants) > MAX_URLS:
                self._grants.popitem(last=False)
        return "http://127.0.0.1:%d/%s/%s" % (self.port, token, piece.file)

    def find(self, token):
        with self._lock:
            return self._grants.get(token)

    def process_request(self, request, client_address):
        if not self._places.acquire(blocking=False):
            return self.shutdown_request(request)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread to be had
            self._places.release()
            raise

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request, client_address):
        pass  # a client that went away is no error, and a traceback on stderr helps nobody


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "segue-demo"
    sys_version = ""
    timeout = KEEP_ALIVE_S
    disable_nagle_algorithm = True

    def setup(self):
        # Small, so that the kernel does not take in a whole file for a client that has paused.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        super().setup()

    def log_message(self, *_):
        pass  # own log lines below; never the URL, which is a secret while it lives

    def version_string(self):
        return self.server_version

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def refuse(self, status, reason, headers=()):
        text = (reason + "\n").encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def answer(self, body):
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # a body nobody asked for would be read as the next request
        match = re.fullmatch(r"/([0-9a-f]{32})/([^/?#]+)", self.path)
        if not match:
            return self.refuse(404, "no such resource")
        grant = self.server.find(match.group(1))
        if grant is None or grant.remaining() <= 0:
            self.server.log("I", "403: this URL has expired")
            return self.refuse(403, "this URL has expired: ask the plugin for a fresh one")
        piece = grant.piece
        if match.group(2) != piece.file:
            return self.refuse(404, "no such resource")
        file = self.server.file(piece)
        start, end, status = 0, file.size, 200
        if body:  # Range has a meaning for GET only (RFC 9110, 14.2)
            wanted = self.wanted_range(file)
            if wanted == "unsatisfiable":
                return self.refuse(416, "range not satisfiable", [("Content-Range", "bytes */%d" % file.size)])
            if wanted:
                (start, end), status = wanted, 206
        self.send_response(status)
        self.send_header("Content-Type", piece.content_type)
        self.send_header("Content-Length", str(end - start))
        if status == 206:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (start, end - 1, file.size))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", file.etag)
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if body:
            self.server.log("I", "%s: %d, from byte %d, URL lives %.1f s more"
                            % (piece.content_id, status, start, grant.remaining()))
            self.transfer(grant, file, start, end)

    def wanted_range(self, file):
        """(start, end) of the one range asked for; None: the whole file; "unsatisfiable": answer 416."""
        header = self.headers.get("Range")
        if header is None or self.headers.get("If-Range", file.etag).strip() != file.etag:
            return None
        match = re.fullmatch(r"\s*bytes\s*=\s*([0-9]{0,18})-([0-9]{0,18})\s*", header, re.IGNORECASE)
        if not match or match.groups() == ("", ""):
            return None  # malformed, another unit or several ranges: a server may send the whole
        first, last = match.groups()
        if first == "":
            length = min(int(last), file.size)
            return (file.size - length, file.size) if length else "unsatisfiable"
        start, end = int(first), min(int(last) + 1 if last else file.size, file.size)
        if last and int(last) < int(first):
            return None
        return (start, end) if start < file.size else "unsatisfiable"

    def transfer(self, grant, file, start, end):
        """Sends bytes start to end at the throttled rate, and cuts the connection when the URL expires."""
        settings, piece = grant.settings, grant.piece
        music_rate = file.size * 1000.0 / piece.duration_ms  # bytes for one second of music
        rate = music_rate * settings.rate_factor
        step = max(512, int(rate * TICK_S)) if rate else 65536
        due = time.monotonic()
        size = max(step, int(music_rate * HEAD_START_S)) if rate else step
        with open(piece.path, "rb") as source:
            source.seek(start)
            while start < end:
                wait = due - time.monotonic()
                if settings.cut_at_expiry:
                    wait = min(wait, grant.remaining())
                if wait > 0:
                    time.sleep(wait)
                if settings.cut_at_expiry and grant.remaining() <= 0:
                    return self.cut(piece, start)
                data = source.read(min(size, end - start))
                if not data:
                    return self.cut(piece, start)
                self.connection.settimeout(
                    min(STALL_S, max(0.001, grant.remaining())) if settings.cut_at_expiry else STALL_S)
                try:
                    self.wfile.write(data)
                except OSError:
                    return self.cut(piece, start)
                start += len(data)
                size = step
                if rate:  # after a client's pause go on from now: catching up would be a burst
                    due = max(due, time.monotonic() - TICK_S) + TICK_S
        self.connection.settimeout(KEEP_ALIVE_S)

    def cut(self, piece, at):
        self.server.log("I", "%s: connection closed near byte %d" % (piece.content_id, at))
        self.close_connection = True
