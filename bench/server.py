"""server.py FOLDER: serves its files over HTTP/1.1 with byte ranges, as fast as it can.

Prints its port, then runs until the end of standard input. `/<number>/<file>` is `/<file>`. A path that comes on
standard input is answered with the ranges of it that were sent, as JSON."""

import collections
import fcntl
import http.server
import json
import os
import re
import socket
import struct
import sys
import termios
import threading
from pathlib import Path

TYPES = {
    ".flac": "audio/flac",
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".wav": "audio/wav",
    ".aiff": "audio/aiff",
    ".caf": "audio/x-caf",
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = Path(".")
    # Path → ranges, as [first byte, one past the last].
    sent = collections.defaultdict(list)

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        path = self.folder / Path(self.path.split("?")[0]).name
        try:
            file = path.open("rb")
        except OSError:
            self.send_error(404)
            return
        with file:
            size = os.fstat(file.fileno()).st_size
            first, last = wanted(self.headers.get("Range"), size)
            if first > last:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{size}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.head(path, size, first, last)
            if body:
                self.send(file, first, last - first + 1)

    def head(self, path, size, first, last):
        part = "Range" in self.headers
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Content-Type", TYPES.get(path.suffix, "application/octet-stream"))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{path.name}-{size}"')
        self.end_headers()

    def send(self, file, offset, left):
        self.wfile.flush()
        reach = [offset, offset]
        self.sent[self.path].append(reach)
        try:
            while left:
                sent = os.sendfile(self.connection.fileno(), file.fileno(), offset, min(left, 1 << 18))
                if not sent:
                    break
                offset, left = offset + sent, left - sent
                # What only this side's kernel holds has not been sent.
                reach[1] = offset - unsent(self.connection)
            reach[1] = offset
        except OSError:
            # The player has heard enough.
            self.close_connection = True

    def log_message(self, *_):
        pass


def unsent(connection):
    """Bytes that the kernel has and the other side has not acknowledged (SIOCOUTQ)."""
    return struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0]


def wanted(header, size):
    """First and last byte that a Range header asks for; the whole file without one."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header or "")
    if not match or match.group(0) == "bytes=-":
        return 0, size - 1
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size - 1
    return int(first), min(int(last), size - 1) if last else size - 1


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self):
        connection, address = super().get_request()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        return connection, address

    def handle_error(self, *_):
        pass


def main():
    Handler.folder = Path(sys.argv[1])
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    for path in sys.stdin:
        print(json.dumps(Handler.sent[path.strip()]), flush=True)


if __name__ == "__main__":
    main()
