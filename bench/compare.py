#!/usr/bin/python3
"""Compares segued with MPD, mpv and squeezelite in one run: CPU, memory, wake-ups, time to sound. See README.md."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import card as cards
import codecs_compared as codecs
import loaded
import long
import measure
import media
import network
import report
from players import PLAIN, PlayerFailed
from players.mpd import Mpd
from players.mpv import Mpv
from players.silence import Silence
from players.squeezelite import Squeezelite

PARTS = ("cpu", "demand", "realtime", "processed", "start", "distance", "twice", "hour", "large", "loaded")
LONG = ("demand", "hour", "large", "loaded")
# squeezelite is silent aloud: its card runs before there is anything to hear, and on demand it runs without end.
WITH_SQUEEZELITE = ("cpu", "realtime", "processed", "loaded")
# An address of D-Bus takes no blanks and commas, a path no slash.
NO_BLANKS = str.maketrans({" ": "-", "/": "-", ",": None})
FAILURES = (PlayerFailed, TimeoutError, OSError)


class Bench:
    """What all measurements share: the card's library, the server and the players."""

    def __init__(self, target, names, segued):
        self.target = target
        self.names = names
        self.segued = segued
        self.library = cards.build(target)
        self.writer = media.compile_native(target, "silence", "-lasound")
        self.media = media.prepare(target, say)
        self.server = media.Server(self.media)
        self.say = say

    def player(self, name, part, clock, silent_seconds=0, rate=44100, settings=PLAIN):
        """A player on a card of its own, not started. `silent_seconds` and `rate` are for the writer of silence."""
        card = cards.Card(self.library, self.target / "run" / f"{part}-{name}".translate(NO_BLANKS), clock)
        if name == "segued":
            from players.segued import Segued

            return Segued(card, self.segued, settings)
        if name == "silence":
            return Silence(card, self.writer, silent_seconds, rate)
        return {"mpd": Mpd, "mpv": Mpv, "squeezelite": Squeezelite}[name](card, settings)

    def mpd_without_card(self, part):
        card = cards.Card(self.library, self.target / "run" / f"{part}-mpd".translate(NO_BLANKS), cards.ON_DEMAND)
        return Mpd(card, nowhere=True)

    def versions(self):
        """Name and version of each player, without starting it."""
        found = {peer.name: peer.version(None) for peer in (Mpd, Mpv, Squeezelite) if peer.name in self.names}
        if self.segued:
            from players import first_line

            found["segued"] = f"{first_line(self.segued, '--version')} ({self.segued})"
        return {name: found[name] for name in self.names}


def say(text):
    print(text, file=sys.stderr, flush=True)


def compare_starts(bench, recordings, plays):
    """Time from Play to the card's first frame. All players run, and take turns, so that a busy moment meets each."""
    rows, notes = [], []
    for recording in recordings:
        say(f"start: {recording.label}, {plays} plays each")
        starts = take_turns(bench, recording, plays, notes)
        row = report.Row(
            recording.label, "ms", {name: taken.median_ms for name, taken in starts.items()}, report.NO_MORE_THAN_MPV
        )
        spread = []
        for name, taken in starts.items():
            times = sorted(taken.times_ms)
            warm = "" if taken.cold == plays else f", card free before {taken.cold} of {plays}"
            spread.append(f"{name} {times[0]:.1f} to {times[-1]:.1f}{warm}")
        row.notes.append("; ".join(spread))
        rows.append(row)
    return [report.Table(f"Play to the card's first frame, median of {plays} cold plays over HTTP", rows, notes)]


def take_turns(bench, recording, plays, notes):
    """`Starts` by name. A player that fails once is left out from then on."""
    taken = {name: measure.Starts([], 0) for name in bench.names}
    with ExitStack() as running:
        players = {}
        for turn in range(plays + 1):
            for name in list(taken):
                try:
                    if turn == 0:
                        player = bench.player(name, f"start-{recording.label}", cards.REAL_TIME)
                        players[name] = running.enter_context(player)
                    time_ms, cold, _ = measure.one_start(players[name], bench.server.url(recording))
                except FAILURES as failure:
                    notes.append(f"{recording.label}, {name}: {failure}")
                    del taken[name]
                    continue
                # The first play pages in code that the later ones find in memory, and is not counted.
                if turn > 0:
                    taken[name].add(time_ms, cold)
    return {name: starts for name, starts in taken.items() if starts.times_ms}


def measurements(bench, quick):
    """Each part by its name."""
    return {
        "cpu": lambda: codecs.compare_in_real_time(bench, 20 if quick else media.SECONDS, FAILURES),
        "demand": lambda: codecs.compare_on_demand(bench, FAILURES),
        "realtime": lambda: codecs.look_closely(bench, 20 if quick else 120, FAILURES),
        "processed": lambda: codecs.compare_processing(bench, 20 if quick else media.SECONDS, FAILURES),
        "start": lambda: compare_starts(bench, media.RECORDINGS[:2] if quick else media.RECORDINGS, 3 if quick else 5),
        "distance": lambda: network.compare_distances(bench, 3 if quick else 10, FAILURES),
        "twice": lambda: network.compare_refetching(bench, FAILURES),
        "hour": lambda: long.compare_hour(bench, FAILURES),
        "large": lambda: long.compare_large(bench, FAILURES),
        "loaded": lambda: loaded.compare_loaded(bench, 20 if quick else loaded.SECONDS, FAILURES),
    }


def arguments():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    daemon = root / "target/release/segued"
    parser.add_argument("--segued", type=Path, default=daemon, metavar="PATH", help="the daemon (default: %(default)s)")
    parser.add_argument("--players", default=",".join(report.PLAYERS), help="which of them (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="20 s instead of minutes, 3 plays, nothing that takes long")
    parser.add_argument("--only", choices=PARTS, help="one of the measurements")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here too")
    parser.add_argument("--target", type=Path, default=root / "target/bench", help=argparse.SUPPRESS)
    return parser.parse_args()


def check(options, names):
    """Says in one go what is missing."""
    unknown = set(names) - set(report.PLAYERS)
    if unknown or not names:
        sys.exit(f"bench: --players takes {', '.join(report.PLAYERS)}, not {', '.join(unknown) or 'nothing'}")
    absent = media.missing_programs() + loaded.missing_programs() + [name for name in names if name != "segued" and not shutil.which(name)]
    if absent:
        packages = "gcc libasound2-dev ffmpeg flac lame vorbis-tools opus-tools stress-ng mpd mpv squeezelite"
        sys.exit(f"bench: not found: {', '.join(absent)}. apt-get install {packages}")
    if "segued" in names:
        if not os.access(options.segued, os.X_OK):
            sys.exit(f"bench: there is no {options.segued}: cargo build --release, or name another with --segued")
        try:
            import jeepney  # noqa: F401
        except ImportError:
            sys.exit("bench: python3-jeepney is missing: apt-get install python3-jeepney, and run with /usr/bin/python3")


def main():
    options = arguments()
    names = [name for name in options.players.split(",") if name]
    check(options, names)
    target = options.target.resolve()
    target.mkdir(parents=True, exist_ok=True)
    bench = Bench(target, names, options.segued.resolve() if "segued" in names else None)
    about = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}",
        "load_before": os.getloadavg()[0],
        "players": bench.versions(),
    }
    tables = []
    try:
        for part in PARTS:
            if options.only == part or options.only is None and not (options.quick and part in LONG):
                bench.names = [name for name in names if name != Squeezelite.name or part in WITH_SQUEEZELITE]
                tables += measurements(bench, options.quick)[part]()
    finally:
        bench.server.close()
    print(f"{about['machine']}, load {about['load_before']:.2f} before and {os.getloadavg()[0]:.2f} after")
    for name, version in about["players"].items():
        print(f"  {name}: {version}")
    for table in tables:
        report.show(table)
    report.summary(tables)
    if options.json:
        options.json.write_text(json.dumps({**about, "tables": [table.as_json() for table in tables]}, indent=2) + "\n")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
