#!/usr/bin/python3
"""Compares segued with MPD and mpv in one run: CPU, memory, wake-ups, time to sound. See README.md."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import card as cards
import long
import measure
import media
import network
import report
from players import PlayerFailed
from players.mpd import Mpd
from players.mpv import Mpv
from players.silence import Silence

PARTS = ("cpu", "demand", "realtime", "start", "distance", "twice", "hour", "large")
LONG = ("demand", "hour", "large")
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

    def player(self, name, part, clock, silent_seconds=0, rate=44100):
        """A player on a card of its own, not started. The last two are for the writer of silence."""
        # Without blanks, which an address of D-Bus does not take.
        card = cards.Card(self.library, self.target / "run" / f"{part}-{name}".replace(" ", "-"), clock)
        if name == "segued":
            from players.segued import Segued

            return Segued(card, self.segued)
        if name == "silence":
            return Silence(card, self.writer, silent_seconds, rate)
        return {"mpd": Mpd, "mpv": Mpv}[name](card)

    def versions(self):
        """Name and version of each player, without starting it."""
        found = {"mpd": Mpd.version(None), "mpv": Mpv.version(None)}
        if self.segued:
            from players import first_line

            found["segued"] = f"{first_line(self.segued, '--version')} ({self.segued})"
        return {name: found[name] for name in self.names}


def say(text):
    print(text, file=sys.stderr, flush=True)


def side_by_side(bench, part, recordings, seconds):
    """Plays so many seconds in real time with all players and recordings at once, each with its own card and process.

    Each uses about a hundredth of a core, so that they hardly disturb each other, and whatever else
    the machine does meanwhile meets them all alike. Returns, for each recording, results by name,
    and notes on what went wrong."""

    def one(recording, name, url):
        with bench.player(name, f"{part}-{recording.label}", cards.REAL_TIME, seconds + 30, recording.rate) as player:
            return measure.in_real_time(player, url, seconds)

    names = [*bench.names, "silence"]
    found = []
    with ThreadPoolExecutor(len(names) * len(recordings)) as pool:
        running = [
            {name: pool.submit(one, recording, name, bench.server.url(recording)) for name in names}
            for recording in recordings
        ]
        for by_name in running:
            seen, notes = {}, []
            for name, result in by_name.items():
                try:
                    seen[name] = result.result()
                except FAILURES as failure:
                    notes.append(f"{name}: {failure}")
            notes += [f"{name}: {run.xruns} underruns" for name, run in seen.items() if run.xruns]
            found.append((seen, notes))
    return found


def compare_cpu(bench, seconds):
    """CPU seconds for each codec in real time."""
    say(f"cpu: all recordings, {seconds} s")
    cpu_rows, memory_rows = [], []
    for recording, (seen, notes) in zip(media.RECORDINGS, side_by_side(bench, "cpu", media.RECORDINGS, seconds)):
        cpu = {name: run.cpu_s for name, run in seen.items()}
        peak = {name: run.memory.peak for name, run in seen.items()}
        cpu_rows.append(report.Row(recording.label, "CPU s", cpu, report.HALF_OF_MPD, notes))
        memory_rows.append(report.Row(recording.label, "peak MiB", peak, report.QUARTER_OF_MPD))
    return [
        report.Table(f"CPU for {seconds} s of music over HTTP, in real time, from Play on", cpu_rows),
        report.Table("Peak memory (VmHWM) meanwhile", memory_rows),
    ]


def compare_on_demand(bench):
    """CPU seconds for whole recordings on a card that takes all that it is given at once, one player after another."""
    rows = []
    for recording in media.RECORDINGS:
        seen, notes = {}, []
        for name in [*bench.names, "silence"]:
            say(f"demand: {recording.label}, {name}")
            try:
                with bench.player(name, f"demand-{recording.label}", cards.ON_DEMAND, media.SECONDS, recording.rate) as player:
                    seen[name] = measure.whole(player, bench.server.url(recording), media.SECONDS)
            except FAILURES as failure:
                notes.append(f"{name}: {failure}")
        for name, run in seen.items():
            if run.seconds_heard > media.SECONDS * 1.01:
                notes.append(f"{name} wrote {run.seconds_heard:.0f} s: silence whenever it was not ahead of the card")
        rows.append(report.Row(recording.label, "CPU s", {name: run.cpu_s for name, run in seen.items()}, None, notes))
    return [
        report.Table(
            f"CPU for {media.SECONDS} s of music over HTTP, card's clock on demand",
            rows,
            ["no aim here: a player that fills gaps with silence spends its time on that"],
        )
    ]


def compare_real_time(bench, seconds):
    """CPU, wake-ups and memory in real time."""
    recording = media.named("FLAC")
    say(f"realtime: {recording.label}, {seconds} s")
    ((seen, notes),) = side_by_side(bench, "realtime", [recording], seconds)

    def row(label, unit, pick, aim=None):
        return report.Row(label, unit, {name: pick(run) for name, run in seen.items()}, aim)

    rows = [
        row("CPU", "% of a core", lambda run: run.cpu_percent, report.HALF_OF_MPD),
        row("CPU, second half", "%", lambda run: run.steady_cpu_percent),
        row("wake-ups", "1/s", lambda run: run.wakeups_per_s),
        row("wake-ups, second half", "1/s", lambda run: run.steady_wakeups_per_s),
        row("peak memory", "MiB", lambda run: run.memory.peak, report.QUARTER_OF_MPD),
        row("resident", "MiB", lambda run: run.memory.resident),
        row("of it anonymous", "MiB", lambda run: run.memory.anonymous),
        row("threads", "count", lambda run: run.memory.threads),
    ]
    if "silence" in seen:
        above = {name: run.cpu_percent - seen["silence"].cpu_percent for name, run in seen.items() if name != "silence"}
        rows.insert(1, report.Row("CPU above silence", "%", above))
    return [report.Table(f"In real time, {seconds} s of {recording.label} over HTTP, from Play on", rows, notes)]


def compare_starts(bench, plays):
    """Time from Play to the card's first frame. All players run, and take turns, so that a busy moment meets each."""
    rows, notes = [], []
    for recording in (media.named("FLAC"), media.named("MP3")):
        say(f"start: {recording.label}, {plays} plays each")
        starts = take_turns(bench, recording, plays, notes)
        row = report.Row(
            recording.label, "ms", {name: taken.median_ms for name, taken in starts.items()}, report.NO_MORE_THAN_MPV
        )
        for name, taken in starts.items():
            times = sorted(taken.times_ms)
            row.notes.append(f"{name}: {times[0]:.1f} to {times[-1]:.1f} ms; card free before {taken.cold} of {plays}")
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
                    notes.append(f"{name}: {failure}")
                    del taken[name]
                    continue
                # The first play pages in code that the later ones find in memory, and is not counted.
                if turn > 0:
                    taken[name].add(time_ms, cold)
    return {name: starts for name, starts in taken.items() if starts.times_ms}


def measurements(bench, quick):
    """Each part by its name."""
    return {
        "cpu": lambda: compare_cpu(bench, 20 if quick else media.SECONDS),
        "demand": lambda: compare_on_demand(bench),
        "realtime": lambda: compare_real_time(bench, 20 if quick else 120),
        "start": lambda: compare_starts(bench, 3 if quick else 10),
        "distance": lambda: network.compare_distances(bench, 3 if quick else 10, FAILURES),
        "twice": lambda: network.compare_refetching(bench, FAILURES),
        "hour": lambda: long.compare_hour(bench, FAILURES),
        "large": lambda: long.compare_large(bench, FAILURES),
    }


def arguments():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    daemon = root / "target/release/segued"
    parser.add_argument("--segued", type=Path, default=daemon, metavar="PATH", help="the daemon (default: %(default)s)")
    parser.add_argument("--players", default="segued,mpd,mpv", help="which of them (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="20 s instead of 300 and 120, 3 plays, nothing that takes long")
    parser.add_argument("--only", choices=PARTS, help="one of the measurements")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here too")
    parser.add_argument("--target", type=Path, default=root / "target/bench", help=argparse.SUPPRESS)
    return parser.parse_args()


def check(options, names):
    """Says in one go what is missing."""
    unknown = set(names) - {"segued", "mpd", "mpv"}
    if unknown or not names:
        sys.exit(f"bench: --players takes segued, mpd and mpv with commas between, not {', '.join(unknown) or 'nothing'}")
    absent = media.missing_programs() + [name for name in names if name != "segued" and not shutil.which(name)]
    if absent:
        packages = "gcc libasound2-dev ffmpeg flac lame vorbis-tools opus-tools mpd mpv"
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
