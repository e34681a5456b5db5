#!/usr/bin/python3
"""How soon segued does what it is told: from the call on the bus to what the card does, in real time.

    bench/latency.py --segued target/release/segued [--times 10]

Pause, seek and skip cut the sound within 50 ms, and what follows sounds within 50 ms more; a volume is heard within
250 ms, and a track of this machine sounds 100 ms after Play. A busy machine only makes numbers larger, so the best of
all times is held against these limits; the exit status is 1 where one is not kept."""

import argparse
import struct
import sys
import time
import wave
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import card as cards
import media
from players.segued import MPRIS, PLAYER, Segued

RATE = 44100
SECONDS = 120
# A constant, so that a change of volume shows at its very frame.
LEVEL = 8000
PATIENCE_S = 30
# Sound that plays before something is asked: long enough for the next track to be fetched.
SETTLED_S = 1.5


@dataclass
class Measured:
    """Times in ms, and how many they may be."""

    what: str
    limit_ms: float
    times: list = field(default_factory=list)

    def line(self):
        best, worst = min(self.times), max(self.times)
        kept = "" if best <= self.limit_ms else "  MISSED"
        return f"{self.what:<36} {best:7.1f} {median(self.times):7.1f} {worst:7.1f}   {self.limit_ms:5.0f}{kept}"


@dataclass(frozen=True)
class File:
    file: str


class Latency:
    def __init__(self, player, server):
        self.player = player
        self.card = player.card
        self.server = server
        self.start = Measured("Play, a card that is closed", 100)
        self.cut = {what: Measured(f"{what}: silence", 50) for what in ("pause", "seek", "skip")}
        self.sound = {what: Measured(f"{what}: sound, from the silence on", 50) for what in ("seek", "skip")}
        self.resume = Measured("resume: sound", 100)
        self.volume = Measured("volume: heard", 250)

    def all(self):
        return [self.start, *self.cut.values(), *self.sound.values(), self.resume, self.volume]

    def wait(self, kind, here):
        return self.card.wait(lambda event: event.kind == kind, here, PATIENCE_S, self.player.check_alive, 0.005)

    def urls(self):
        return [self.server.url(File(name)) for name in ("one.wav", "two.wav")]

    def told(self, method, *arguments):
        """Calls, and returns the moment before and the card's log as it was then."""
        here, sent = self.card.here(), time.monotonic_ns()
        self.player.call(PLAYER, method, *arguments)
        return sent, here

    def round(self):
        here = self.card.here()
        sent = time.monotonic_ns()
        self.player.play_both(self.urls())
        first = self.wait("first_frame", here)
        self.start.times.append((first.number("at") - sent) / 1e6)
        time.sleep(SETTLED_S)

        sent, here = self.told("Pause")
        self.cut["pause"].times.append((self.wait("drop", here).time_ns - sent) / 1e6)
        time.sleep(0.3)
        sent, here = self.told("Play")
        self.resume.times.append((self.wait("first_frame", here).number("at") - sent) / 1e6)
        time.sleep(0.5)

        self.cut_and_sound("seek", "SeekBy", "x", 5_000_000)
        self.cut_and_sound("skip", "Next")
        self.louder_and_quieter()
        self.player.stop()
        while cards.is_open(self.card.events()):
            time.sleep(0.05)

    def cut_and_sound(self, what, *call):
        sent, here = self.told(*call)
        dropped = self.wait("drop", here)
        first = self.wait("first_frame", here)
        self.cut[what].times.append((dropped.time_ns - sent) / 1e6)
        self.sound[what].times.append((first.number("at") - dropped.time_ns) / 1e6)
        time.sleep(SETTLED_S)

    def louder_and_quieter(self):
        """The card keeps what it plays: the frame at which the level changes has its moment."""
        last = [event for event in self.card.events() if event.kind in ("params", "drop", "first_frame")]
        began = next(event.number("at") for event in reversed(last) if event.kind == "first_frame")
        before = next((event.number("consumed") for event in reversed(last) if event.kind in ("drop", "params") and "consumed" in event.keys), 0)
        capture = next(event for event in reversed(last) if event.kind == "params")
        sent = time.monotonic_ns()
        self.player.call(MPRIS, "Set", "ssv", "org.mpris.MediaPlayer2.Player", "Volume", ("d", 0.5))
        time.sleep(0.8)
        data = (self.card.folder / capture.keys["capture"]).read_bytes()
        samples = [value for (value, _) in struct.iter_unpack("<ii", data[: len(data) // 8 * 8])]
        full = LEVEL << 16
        # From a while before the call on: the fade in of the skip is long over.
        from_frame = before + int((sent - began) / 1e9 * RATE) - RATE // 10
        changed = next(at for at in range(from_frame, len(samples)) if samples[at] != full)
        heard = began + (changed - before) * 1_000_000_000 // RATE
        self.volume.times.append((heard - sent) / 1e6)
        self.player.call(MPRIS, "Set", "ssv", "org.mpris.MediaPlayer2.Player", "Volume", ("d", 1.0))


def record(folder):
    folder.mkdir(parents=True, exist_ok=True)
    frames = struct.pack("<hh", LEVEL, LEVEL) * (RATE * SECONDS)
    for name in ("one.wav", "two.wav"):
        with wave.open(str(folder / name), "wb") as file:
            file.setparams((2, 2, RATE, 0, "NONE", ""))
            file.writeframes(frames)


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segued", type=Path, default=root / "target/release/segued", metavar="PATH")
    parser.add_argument("--times", type=int, default=10, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--target", type=Path, default=root / "target/bench", help=argparse.SUPPRESS)
    options = parser.parse_args()
    record(options.target / "latency")
    server = media.Server(options.target / "latency")
    card = cards.Card(cards.build(options.target), options.target / "run" / "latency", cards.REAL_TIME + ' formats "S32_LE"', capture=True)
    for old in card.folder.glob("capture-*.raw"):
        old.unlink()
    player = Segued(card, options.segued.resolve())
    try:
        player.start()
        latency = Latency(player, server)
        for _ in range(options.times):
            latency.round()
    finally:
        player.close()
        server.close()
    print(f"{'ms':<36} {'best':>7} {'median':>7} {'worst':>7}   limit")
    for measured in latency.all():
        print(measured.line())
    return any(min(measured.times) > measured.limit_ms for measured in latency.all())


if __name__ == "__main__":
    sys.exit(main())
