"""mpv without a window, by its JSON IPC."""

import json
import socket
import time

from card import DEVICE

from . import PLAIN, Player, PlayerFailed, first_line


class Mpv(Player):
    name = "mpv"

    def __init__(self, card, settings=PLAIN):
        super().__init__(card, settings)
        self.socket = None
        self.reader = None
        self.requests = 0

    def version(self):
        return first_line("mpv", "--version")

    def start(self):
        path = self.card.folder / "mpv.socket"
        path.unlink(missing_ok=True)
        self.spawn(
            ["mpv", "--no-config", "--no-terminal", "--no-video", "--idle", "--ao=alsa"]
            + [f"--audio-device=alsa/{DEVICE}", f"--input-ipc-server={path}", f"--volume={self.settings.volume}"]
            + ([] if self.settings.track_gain is None else ["--replaygain=track"])
        )
        self.socket = self.retry(lambda: self.connect(path))
        self.reader = self.socket.makefile("rb")
        self.command("get_property", "idle-active")

    @staticmethod
    def connect(path):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        connection.settimeout(20)
        return connection

    def command(self, *words):
        self.requests += 1
        line = json.dumps({"command": words, "request_id": self.requests}).encode() + b"\n"
        sent = time.monotonic_ns()
        self.socket.sendall(line)
        while True:
            answer = json.loads(self.reader.readline() or b"null")
            if answer is None:
                raise PlayerFailed(f"mpv closed its connection; see {self.log_path}")
            if answer.get("request_id") == self.requests and "error" in answer:
                if answer["error"] != "success":
                    raise PlayerFailed(f"mpv answers {words[0]} with {answer['error']}")
                return sent

    def play(self, url):
        return self.command("loadfile", url)

    def play_both(self, urls):
        self.command("loadfile", urls[0])
        self.command("loadfile", urls[1], "append")

    def seek(self, seconds):
        self.command("seek", seconds, "absolute+exact")

    def next(self):
        self.command("playlist-next")

    def stop(self):
        self.command("stop")

    def disconnect(self):
        if self.socket:
            self.socket.close()
