"""MPD with its own settings as far as possible, by its socket."""

import socket
import time

from card import DEVICE

from . import PLAIN, Player, PlayerFailed, first_line

# The time-out is that of the control connection, which is silent while a measurement lasts.
CONFIGURATION = """\
connection_timeout "3600"
bind_to_address "{folder}/mpd.socket"
log_file "{folder}/mpd.log"
zeroconf_enabled "no"
input {{
    plugin "curl"
}}
replaygain "{replay_gain}"
audio_output {{
    name "bench"
{output}
}}
"""
CARD = """\
    type "alsa"
    device "{device}"
    mixer_type "{mixer}"
"""
WELL_RESAMPLED = """\
resampler {
    plugin "soxr"
    quality "high"
}
"""
# It takes sound as fast as it is decoded, and does nothing with it.
NOWHERE = """\
    type "null"
    sync "no"
    mixer_type "none"
"""


class Mpd(Player):
    name = "mpd"

    def __init__(self, card, settings=PLAIN, nowhere=False):
        super().__init__(card, settings)
        self.nowhere = nowhere
        self.socket = None
        self.reader = None

    def version(self):
        return first_line("mpd", "--version")

    def start(self):
        folder = self.card.folder
        configuration = folder / "mpd.conf"
        configuration.write_text(self.configuration(folder))
        (folder / "mpd.socket").unlink(missing_ok=True)
        self.spawn(["mpd", "--no-daemon", configuration])
        self.socket = self.retry(self.connect)
        self.reader = self.socket.makefile("rb")
        if not self.reader.readline().startswith(b"OK MPD"):
            raise PlayerFailed(f"MPD did not greet; see {self.log_path}")

        if self.settings.volume != 100:
            self.command(f"setvol {self.settings.volume}")

    def configuration(self, folder):
        mixer = "none" if self.settings.volume == 100 else "software"
        output = NOWHERE if self.nowhere else CARD.format(device=DEVICE, mixer=mixer)
        replay_gain = "off" if self.settings.track_gain is None else "track"
        plain = CONFIGURATION.format(folder=folder, output=output, replay_gain=replay_gain)
        return plain + WELL_RESAMPLED if self.settings.well_resampled else plain

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.card.folder / "mpd.socket"))
        connection.settimeout(20)
        return connection

    def command(self, line):
        return self.ask(line)[0]

    def ask(self, line):
        """When the request was sent, and the lines of the answer."""
        sent, said = time.monotonic_ns(), []
        self.socket.sendall(line.encode() + b"\n")
        while True:
            answer = self.reader.readline()
            if answer == b"OK\n":
                return sent, said
            if not answer or answer.startswith(b"ACK"):
                raise PlayerFailed(f"MPD answers “{line}” with {answer.decode().strip() or 'nothing'}")
            said.append(answer.decode().strip())

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

    def has_stopped(self):
        return "state: stop" in self.ask("status")[1]

    def stop(self):
        self.command("stop")

    def disconnect(self):
        if self.socket:
            self.socket.close()
