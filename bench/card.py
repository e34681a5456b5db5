"""The virtual card of tests/soundcard: built, configured, and its log read."""

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEVICE = "bench"
# The clocks, as the card's configuration says them.
REAL_TIME = 'clock "real"'
ON_DEMAND = 'clock "demand"'

# Events with which a session is over, with or without the card being given back.
ENDS = ("drain", "drop", "xrun", "close")


@dataclass(frozen=True)
class Event:
    """One line of `events.log`: when it was written (CLOCK_MONOTONIC, ns), what, and its keys."""

    time_ns: int
    kind: str
    keys: dict

    def number(self, key):
        return int(self.keys[key])


def build(target):
    """Builds the card's library into a folder below `target`; returns its path."""
    script = ROOT / "tests" / "soundcard" / "build.sh"
    done = subprocess.run([script, target / "vcard"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


class Card:
    """A card of its own for one player, so that no two logs mix. `clock` is what asound.conf says of it.

    With `capture` it keeps what it hears, in its folder."""

    def __init__(self, library, folder, clock, capture=False):
        self.folder = folder
        self.log = folder / "events.log"
        folder.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        self.configuration = folder / "asound.conf"
        kept = "yes" if capture else "no"
        self.configuration.write_text(
            "</usr/share/alsa/alsa.conf>\n"
            f'pcm_type.vcard {{ lib "{library}" }}\n'
            f'pcm.{DEVICE} {{ type vcard dir "{folder}" {clock} capture "{kept}" }}\n'
        )

    def environment(self):
        """What a player needs in its environment to find this card and nothing of the user's."""
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return {
            **kept,
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home),
            "LC_ALL": "C.UTF-8",
            "ALSA_CONFIG_PATH": str(self.configuration),
        }

    def events(self, since=0):
        """What is in the log from byte `since` on, whole lines only."""
        try:
            with self.log.open("rb") as log:
                log.seek(since)
                lines = log.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        return [parse(line.decode()) for line in lines]

    def here(self):
        """The log's length: events from now on are `events(here)`."""
        return self.log.stat().st_size if self.log.exists() else 0

    def wait(self, wanted, since, seconds, alive, interval=0.02):
        """The first event after byte `since` for which `wanted` is true.

        `alive` is called between looks and raises when the player is gone."""
        deadline = time.monotonic() + seconds
        while True:
            for event in self.events(since):
                if wanted(event):
                    return event
            alive()
            if time.monotonic() > deadline:
                raise TimeoutError(f"the card saw nothing of that within {seconds} s; its log is {self.log}")
            time.sleep(interval)


def parse(line):
    time_ns, kind, *keys = line.split()
    return Event(int(time_ns), kind, dict(key.split("=", 1) for key in keys))


def is_open(events):
    """Whether the last word of the log leaves the card in somebody's hands."""
    for event in reversed(events):
        if event.kind in ("open", "close"):
            return event.kind == "open"
    return False
