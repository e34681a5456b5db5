"""MPD with its own settings as far as possible, by its socket."""

import socket
import time

from card import DEVICE

from . import Player, PlayerFailed, first_line

# The time-out is that of the control connection, which is silent while a measurement lasts.
CONFIGURATION = """\
connection_timeout "3600"
bind_to_address "{folder}/mpd.socket"
log_file "{folder}/mpd.log"
zeroconf_enabled "no"
input {{
    plugin "curl"
}}
audio_output {{
    type "alsa"
    name "bench"
    device "{device}"
    mixer_type "none"
}}
"""


class Mpd(Player):
    name = "mpd"

    def __init__(self, card):
        super().__init__(card)
        self.socket = None
        self.reader = None

    def version(self):
        return first_line("mpd", "--version")

    def start(self):
        folder = self.card.folder
        configuration = folder / "mpd.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, device=DEVICE))
        (folder / "mpd.socket").unlink(missing_ok=True)
        self.spawn(["mpd", "--no-daemon", configuration])
        self.socket = self.retry(self.connect)
        self.reader = self.socket.makefile("rb")
        if not self.reader.readline().startswith(b"OK MPD"):
            raise PlayerFailed(f"MPD did not greet; see {self.log_path}")

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.card.folder / "mpd.socket"))
        connection.settimeout(20)
        return connection

    def command(self, line):
        sent = time.monotonic_ns()
        self.socket.sendall(line.encode() + b"\n")
        while True:
            answer = self.reader.readline()
            if answer == b"OK\n":
                return sent
            if not answer or answer.startswith(b"ACK"):
                raise PlayerFailed(f"MPD answers “{line}” with {answer.decode().strip() or 'nothing'}")

    def prepare(self, url):
        self.command("clear")
        self.command(f'add "{url}"')

    def play(self, url):
        return self.command("play")

    def play_both(self, urls):
        self.command("clear")
        for url in urls:
            self.command(f'add "{url}"')
        self.command("play")

    def seek(self, seconds):
        self.command(f"seekcur {seconds}")

    def next(self):
        self.command("next")

    def stop(self):
        self.command("stop")

    def disconnect(self):
        if self.socket:
            self.socket.close()
