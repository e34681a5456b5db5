"""The zero line: a program that writes silence to the same card."""

import subprocess
import time

from card import DEVICE

from . import Player


class Silence(Player):
    name = "silence"

    def __init__(self, card, program, seconds, rate=44100):
        super().__init__(card)
        self.command = [program, DEVICE, str(rate), str(seconds)]

    def start(self):
        self.spawn(self.command, stdin=subprocess.PIPE)

    def stop(self):
        """It ends with its time, or with `close`."""

    def play(self, url):
        sent = time.monotonic_ns()
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()
        return sent

    def disconnect(self):
        self.process.stdin.close()
