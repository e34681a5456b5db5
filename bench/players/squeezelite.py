"""squeezelite, by a server of our own that speaks as much slimproto as starts and stops a stream."""

import socket
import struct
import threading
import time
import urllib.parse

from card import DEVICE

from . import Player, PlayerFailed, first_line

# What the `strm` message calls each kind of file: the format; sample size (or container), rate, channels, byte order.
FORMATS = {
    ".flac": b"f????",
    ".oga": b"fo???",
    ".mp3": b"m????",
    ".m4a": b"a5???",
    ".aac": b"a2???",
    ".alac.m4a": b"l????",
    ".ogg": b"o????",
    ".opus": b"u????",
    ".wav": b"p1321",
    ".aiff": b"p1320",
}
# It believes a server dead that says nothing for 35 s.
STILL_THERE_S = 15
UNITY = 1 << 16


class Slim:
    """The server's end of one connection: sends commands, reads and forgets what the player tells."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.port = self.listener.getsockname()[1]
        self.connection = None
        self.lock = threading.Lock()
        self.over = threading.Event()

    def accept(self):
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(20)
        if self.connection.recv(4) != b"HELO":
            raise PlayerFailed("squeezelite did not say HELO")
        for work in (self.forget, self.be_there):
            threading.Thread(target=work, daemon=True).start()

    def forget(self):
        self.connection.settimeout(None)
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass

    def be_there(self):
        while not self.over.wait(STILL_THERE_S):
            try:
                self.stream(b"t")
            except OSError:
                return

    def send(self, opcode, body):
        with self.lock:
            self.connection.sendall(struct.pack("!H", len(opcode) + len(body)) + opcode + body)

    def stream(self, what, kind=b"?????", gain=0, port=0, address=b"\0\0\0\0", request=b""):
        """`strm`: `what` is s(tart), q(uit) or t(ime); what is not known about the sound is `?`. `gain` is 16.16, 0: none."""
        fixed = struct.pack("!1s1s5sBBB1sBBBIH4s", what, b"1", kind, 64, 0, 0, b"0", 0, 0, 0, gain, port, address)
        self.send(b"strm", fixed + request)

    def close(self):
        self.over.set()
        for end in (self.connection, self.listener):
            if end:
                end.close()


class Squeezelite(Player):
    name = "squeezelite"

    def __init__(self, card, settings):
        super().__init__(card, settings)
        self.slim = Slim()

    def version(self):
        return first_line("squeezelite", "-?").split(",")[0]

    def start(self):
        # The card is given back a second after the end, as segued does here. Headers tell what a WAV or AIFF is.
        command = ["squeezelite", "-o", DEVICE, "-s", f"127.0.0.1:{self.slim.port}", "-C", "1", "-W"]
        if self.settings.card_rate:
            # With -r and -u it takes the card at that rate, and plays the samples too fast.
            raise PlayerFailed("squeezelite does not resample here")
        self.spawn(command)
        self.slim.accept()
        level = UNITY * self.settings.volume // 100
        self.slim.send(b"audg", struct.pack("!IIBBII", 0, 0, 1, 255, level, level))
        self.slim.send(b"aude", b"\1\1")

    def play(self, url):
        parts = urllib.parse.urlsplit(url)
        name = parts.path.rsplit("/", 1)[-1]
        kind = FORMATS.get(name[name.find(".") :])
        if kind is None:
            raise PlayerFailed(f"squeezelite does not play {name}")
        request = f"GET {parts.path} HTTP/1.0\r\n\r\n".encode()
        gain = 0 if self.settings.track_gain is None else int(UNITY * 10 ** (self.settings.track_gain / 20))
        sent = time.monotonic_ns()
        self.slim.stream(b"s", kind, gain, parts.port, socket.inet_aton(parts.hostname), request)
        return sent

    def stop(self):
        self.slim.stream(b"q")

    def close(self):
        super().close()
        self.slim.close()
