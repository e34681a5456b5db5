"""segued as the soak runs it: with a plugin, and with an ear for what it announces."""

import re
import time
from collections import deque

from jeepney import DBusAddress, MatchRule, MessageType, message_bus
from jeepney.io.blocking import open_dbus_connection

from card import DEVICE
from players.segued import NAME, PLAYER, Segued

PATH = "/org/segue/Segue1"
QUEUE = DBusAddress(PATH, bus_name=NAME, interface="org.segue.Queue1")
PLUGINS = DBusAddress(PATH, bus_name=NAME, interface="org.segue.Plugins1")
MPRIS = DBusAddress(
    "/org/mpris/MediaPlayer2", bus_name="org.mpris.MediaPlayer2.segue", interface="org.mpris.MediaPlayer2.Player"
)

# The card holds a quarter of a second by the wall clock, as far as it may: at many times real time even that is little,
# and more would let the capture lag behind, since a card counts what it consumed when it is asked.
CONFIGURATION = """\
[dbus]
bus = "{bus}"

[output]
device = "{device}"
release_after_s = 1
buffer_ms = {buffer_ms}

[stream]
buffer = "{buffer}"

[files]
folders = ["{files}"]

[plugins]
folders = ["{plugins}"]

[log]
level = "info,segue::stream=debug"
"""


class Daemon(Segued):
    """`heard` is what it announced: (time, kind, …), newest last, until it is taken."""

    def __init__(self, card, program, files, plugins, buffer, speed=1.0):
        super().__init__(card, program)
        self.files = files
        self.plugins = plugins
        self.stream_buffer = buffer
        self.speed = speed
        self.buffer_ms = int(min(2000, 250 * max(1, speed)))
        self.ear = None
        self.state = "stopped"
        self.buffering = 0
        self.heard = deque()

    def configuration(self):
        places = {"files": self.files, "plugins": self.plugins, "buffer": self.stream_buffer, "buffer_ms": self.buffer_ms}
        return CONFIGURATION.format(bus=self.bus.address, device=DEVICE, **places)

    def start(self):
        super().start()
        self.ear = open_dbus_connection(bus=self.bus.address)
        for interface in ("org.segue.Player1", "org.freedesktop.DBus.Properties"):
            rule = MatchRule(type="signal", interface=interface, path=PATH)
            self.ear.send_and_get_reply(message_bus.AddMatch(rule), timeout=20)

    def trust_and_enable(self, plugin, scopes):
        packages = self.call(PLUGINS, "List")[0]
        entry = next(package for package in packages if package["id"][1] == plugin)
        self.call(PLUGINS, "Trust", "ss", plugin, entry["fingerprint"][1])
        self.call(PLUGINS, "Enable", "sas", plugin, list(scopes))

    def listen(self, seconds=0.0):
        """Takes in what was announced; waits so long for a first word."""
        while True:
            try:
                message = self.ear.receive(timeout=seconds)
            except TimeoutError:
                return
            seconds = 0.0
            fields = {code.name: value for code, value in message.header.fields.items()}
            if message.header.message_type == MessageType.signal and fields.get("path") == PATH:
                self.understand(fields["member"], message.body)

    def understand(self, member, body):
        now = time.monotonic()
        if member == "PropertiesChanged" and "State" in body[1]:
            self.state = body[1]["State"][1]
            self.buffering += self.state == "buffering"
            self.heard.append((now, "state", self.state, ""))
        elif member == "Error":
            match = re.search(r"item-(\d+)", body[1])
            self.heard.append((now, "error", int(match.group(1)) if match else None, f"{body[0]}: {body[1]}"))
        elif member == "Event":
            self.heard.append((now, body[0], body[1], body[2]))

    def buffer(self):
        properties = DBusAddress(PATH, bus_name=NAME, interface="org.freedesktop.DBus.Properties")
        answer = self.call(properties, "GetAll", "s", "org.segue.Player1")[0]
        return {name: answer[name][1] for name in ("State", "StateReason", "Current", "Position", "Buffer", "LastError")}

    def disconnect(self):
        if self.ear:
            self.ear.close()
        super().disconnect()


__all__ = ["Daemon", "MPRIS", "PLAYER", "QUEUE"]
