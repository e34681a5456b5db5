"""segued, by D-Bus on a private bus."""

import subprocess
import time

from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
from jeepney.io.blocking import open_dbus_connection

from card import DEVICE

from . import PLAIN, Player, PlayerFailed, first_line

NAME = "org.segue.Segue1"
PLAYER = DBusAddress("/org/segue/Segue1", bus_name=NAME, interface="org.segue.Player1")
PROPERTIES = DBusAddress("/org/segue/Segue1", bus_name=NAME, interface="org.freedesktop.DBus.Properties")
MPRIS = DBusAddress("/org/mpris/MediaPlayer2", bus_name="org.mpris.MediaPlayer2.segue", interface=PROPERTIES.interface)
BUS = DBusAddress("/org/freedesktop/DBus", bus_name="org.freedesktop.DBus", interface="org.freedesktop.DBus")

# The card is given back as soon as the daemon may, since a cold start is what is timed.
# Everything else is as it comes.
CONFIGURATION = """\
[dbus]
bus = "{bus}"

[output]
device = "{device}"
release_after_s = 1
"""
FOLLOW_TAGS = """\

[sound]
replay_gain = "track"
"""


class PrivateBus:
    """A dbus-daemon of our own; its work is charged to nobody."""

    def __init__(self, folder):
        (folder / "bus").unlink(missing_ok=True)
        with (folder / "dbus-daemon.log").open("w") as log:
            self.process = subprocess.Popen(
                ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--nosyslog", "--print-address"]
                + [f"--address=unix:path={folder}/bus"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("dbus-daemon did not start; apt-get install dbus-daemon")

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=10)


class Segued(Player):
    name = "segued"
    closes = "keeps the card for 1 s after stop (release_after_s), and is given that time"

    def __init__(self, card, program, settings=PLAIN):
        super().__init__(card, settings)
        self.program = program
        self.bus = PrivateBus(card.folder)
        self.connection = None

    def version(self):
        return first_line(self.program, "--version")

    def start(self):
        folder = self.card.folder
        configuration = folder / "segue.toml"
        configuration.write_text(self.configuration())
        places = {}
        for name in ("STATE", "CACHE", "CONFIGURATION", "RUNTIME"):
            place = folder / name.lower()
            place.mkdir(exist_ok=True)
            places[f"{name}_DIRECTORY"] = str(place)
        self.spawn([self.program, "--config", configuration], environment=places)
        self.connection = open_dbus_connection(bus=self.bus.address)
        self.retry(self.look_for_name)
        if self.settings.volume != 100:
            self.call(MPRIS, "Set", "ssv", "org.mpris.MediaPlayer2.Player", "Volume", ("d", self.settings.volume / 100))

    def configuration(self):
        plain = CONFIGURATION.format(bus=self.bus.address, device=DEVICE)
        return plain if self.settings.track_gain is None else plain + FOLLOW_TAGS

    def look_for_name(self):
        if not self.call(BUS, "NameHasOwner", "s", NAME)[0]:
            raise OSError(f"{NAME} is not on the bus yet")

    def call(self, where, method, signature=None, *arguments):
        message = new_method_call(where, method, signature, arguments)
        answer = self.connection.send_and_get_reply(message, timeout=20)
        if answer.header.message_type == MessageType.error:
            error = answer.header.fields.get(HeaderFields.error_name)
            raise PlayerFailed(f"segued answers {method} with {error}: {' '.join(map(str, answer.body))}")
        return answer.body

    def play(self, url):
        sent = time.monotonic_ns()
        self.call(PLAYER, "PlayUri", "s", url)
        return sent

    def play_both(self, urls):
        self.call(PLAYER, "PlayUris", "as", urls)

    def seek(self, seconds):
        self.call(PLAYER, "SeekBy", "x", int((seconds - self.position()) * 1_000_000))

    def position(self):
        return self.property("Position") / 1e6

    def output(self):
        """What it says of its output: rate, format, `bit_perfect`, `reason`, `xruns` and so on."""
        return {name: value for name, (_, value) in self.property("Output").items()}

    def property(self, name):
        return self.call(PROPERTIES, "Get", "ss", PLAYER.interface, name)[0][1]

    def next(self):
        self.call(PLAYER, "Next")

    def stop(self):
        self.call(PLAYER, "Stop")

    def disconnect(self):
        if self.connection:
            self.connection.close()

    def close(self):
        super().close()
        self.bus.close()
