#!/usr/bin/python3
"""Hours of music with planned faults, many times faster than real time: every frame exact, or an error that says so.

The seed decides tracks, faults and their places; the same seed plays the same again. See README.md."""

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A failure that repeats is shown so often before the soak ends.
ENOUGH = 20


def say(text):
    print(text, file=sys.stderr, flush=True)


class Soak:
    """One run, in a temporary folder."""

    def __init__(self, options, folder):
        from soaking.plan import Plan

        self.options = options
        self.folder = folder
        self.plan = Plan(options.seed, options.minutes)
        self.library = cards.build(options.target)
        self.recordings = {}
        self.failures = []
        self.result = {}

    def prepare(self):
        """Writes the recordings, and has the lossy ones played once without faults: what they sound like."""
        from soaking.sounds import Sound, encode

        music = self.folder / "music"
        music.mkdir()
        tracks = self.plan.tracks + self.plan.guest_tracks
        say(f"soak: making {len(tracks)} recordings, {sum(track.seconds for track in tracks) / 60:.0f} minutes")
        for track in tracks:
            self.recordings[track.number] = Sound(track.key, track.rate, track.frames)
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool:
            jobs = [
                pool.submit(encode, self.recordings[track.number], track.kind, track.options, music / track.file)
                for track in tracks
            ]
            for job in jobs:
                job.result()
        lossy = sorted((track for track in tracks if track.kind == "mp3"), key=lambda track: track.rate)
        for rate, group in itertools.groupby(lossy, key=lambda track: track.rate):
            self.recordings |= references.play(self, rate, list(group))

    def start_server(self):
        log = self.folder / "server.jsonl"
        command = [sys.executable, ROOT / "bench/soaking/faults.py", self.options.seed, str(self.options.minutes)]
        command += [str(self.options.speed), self.folder / "music", log, self.options.sabotage or ""]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ports = server.stdout.readline().split()
        if len(ports) != 2:
            raise RuntimeError("the soak's web server did not start")
        return server, int(ports[1])

    def daemon(self, name, clock):
        """segued with a card of its own that keeps what it hears."""
        from soaking.daemon import Daemon

        card = cards.Card(self.library, self.folder / name, clock, capture=True)
        plugins = card.folder / "plugins"
        plugins.mkdir(mode=0o755)
        return Daemon(card, self.options.segued, self.folder / "music", plugins, self.plan.buffer, self.options.speed)

    def run(self):
        from soaking import mind
        from soaking.follow import Capture, Follower, Lost
        from soaking.listener import Listener
        from soaking.watch import Watch, holdings

        self.prepare()
        server, port = self.start_server()
        clock = f'clock "real" speed {self.options.speed} formats "S32_LE"'
        daemon = self.daemon("soak", clock)
        mind.install(daemon.plugins, port)
        try:
            with daemon:
                daemon.trust_and_enable(mind.PLUGIN, mind.SCOPES)
                capture = Capture(daemon.card)
                watch = Watch(daemon.pid, warm_s=min(60.0, self.options.minutes * 60 / self.options.speed / 3))
                listener = Listener(daemon, self.plan, self.numbers(), watch)
                listener.follower = Follower(capture, self.recordings, listener.candidates, listener.judge)
                self.listener, self.watch, self.capture = listener, watch, capture
                before = holdings(daemon.pid)
                self.began = time.monotonic()
                try:
                    self.listen(listener)
                except (Lost, TimeoutError) as failure:
                    listener.wrong(str(failure))
                self.wall_s = time.monotonic() - self.began
                self.cpu_s = watch.cpu_s()
                self.settle(daemon, before)
        finally:
            server.stdin.close()
            server.wait(timeout=10)
        return self.report()

    def numbers(self):
        if self.options.only:
            first, _, last = self.options.only.partition("-")
            return range(int(first), int(last or first) + 1)
        return itertools.count()

    def listen(self, listener):
        listener.begin()
        told = 0
        wanted = self.options.minutes * 60
        while listener.tick():
            heard = listener.follower.heard_s
            # The last ones are heard to their end.
            if heard >= wanted:
                listener.no_more = True
            if heard >= told + max(60, wanted / 20):
                told = heard
                wall = time.monotonic() - self.began
                say(
                    f"soak: {heard / 60:.1f} min of audio in {wall:.0f} s, {listener.counts['tracks']} tracks, "
                    f"{self.watch.resident[-1][1]:.1f} MiB, {len(listener.failures)} failures"
                )
            if len(listener.failures) >= ENOUGH:
                say("soak: enough failures")
                return

    def settle(self, daemon, before):
        """Stops it and waits until it holds no more than at the start; what stays is a leak.

        Connections of a client's pool live for 90 s, threads of a pool for 10 s."""
        from players.segued import PLAYER
        from soaking.watch import holdings

        with contextlib.suppress(Exception):
            daemon.call(PLAYER, "Stop")
        until = time.monotonic() + self.options.settle_s
        while True:
            self.after = holdings(daemon.pid)
            self.leaks = [leak for leak in self.after.more_than(before) if not allowed(leak)]
            if not self.leaks or time.monotonic() > until:
                break
            time.sleep(0.5)
        self.before = before
        self.trend = self.watch.memory()

    def report(self):
        listener, capture = self.listener, self.capture
        heard = listener.follower.heard_s
        failures = list(listener.failures)
        if self.leaks:
            failures.append(f"leaked: {', '.join(self.leaks)}")
        if self.trend.judged and not self.trend.flat:
            failures.append(f"memory is not flat: {self.trend.words()}")
        served = summary.of(self.folder / "server.jsonl")
        failures += served.failures
        self.result = {
            "seed": self.options.seed,
            "audio_s": heard,
            "wall_s": self.wall_s,
            "speed": self.options.speed,
            "exact_frames": listener.follower.exact,
            "xruns": capture.xruns,
            "xruns_unplanned": listener.unplanned,
            "buffer": self.plan.buffer,
            "counts": dict(listener.counts),
            "faults": dict(served.faults),
            "requests": served.requests,
            "resolves": served.resolves,
            "memory": self.trend.as_json(),
            "cpu_s": self.cpu_s,
            "failures": failures,
        }
        print(f"\nSeed {self.options.seed}: {heard / 60:.1f} minutes of audio in {self.wall_s:.0f} s")
        pace = heard / max(self.wall_s, 1)
        print(f"  pace: card at {self.options.speed:g} times real time, {pace:.1f} times with all faults and pauses")
        dry = f"{capture.xruns} underruns, {listener.unplanned} of them without a planned cause"
        print(f"  sound: {listener.follower.exact} frames exact; {dry}; {capture.setups} set-ups of the card")
        print(f"  listener: {words(listener.counts)}")
        print(f"  faults: {words(served.faults) or 'none'}")
        print(f"  server: {served.words()}")
        print(f"  memory: {self.trend.words()}")
        print(f"  processor: {self.cpu_s:.1f} s, {self.cpu_s / max(heard, 1) * 3600:.1f} s for an hour of audio")
        print(f"  at the start: {self.before.words()}")
        print(f"  at the end: {self.after.words()}; at most {words(Counter(self.watch.most))}")
        for number, text in listener.declared.items():
            print(f"  declared: {text}")
        for failure in failures:
            print(f"FAILED {failure}")
        print("All of it exact or declared." if not failures else f"{len(failures)} failures; again: {self.again()}")
        return not failures

    def again(self):
        only = f" --only {self.options.only}" if self.options.only else ""
        return f"./dev soak --seed {self.options.seed} --minutes {self.options.minutes:g} --speed {self.options.speed:g}{only}"


def allowed(leak):
    """What is there once the first track has played, and stays: no leak."""
    return leak.startswith("1 more") and any(word in leak for word in ("relay", "python3", "segue-plugin", "bwrap"))


def words(counts):
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def arguments():
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    daemon = ROOT / "target/release/segued"
    parser.add_argument("--minutes", type=float, default=120, help="of audio (default: %(default)s)")
    parser.add_argument("--seed", default=None, help="play this again (default: a new one)")
    parser.add_argument("--only", metavar="A-B", help="only these items of the seed's queue")
    parser.add_argument("--speed", type=float, default=20, help="how many times real time the card runs (default: %(default)s)")
    parser.add_argument("--segued", type=Path, default=daemon, metavar="PATH", help="the daemon (default: %(default)s)")
    parser.add_argument("--sabotage", choices=("flip", "skip", "repeat"), help="falsify every WAV: the soak has to fail")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers here too")
    parser.add_argument("--settle-s", type=float, default=120, help=argparse.SUPPRESS)
    parser.add_argument("--target", type=Path, default=ROOT / "target/bench", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.seed = options.seed or f"{random.SystemRandom().randrange(1 << 32):08x}"
    options.segued = options.segued.resolve()
    options.target = options.target.resolve()
    return options


def check(options):
    missing = [name for name in ("gcc", "flac", "lame", "dbus-daemon") if not shutil.which(name)]
    if missing:
        sys.exit(f"soak: not found: {', '.join(missing)}. apt-get install gcc libasound2-dev flac lame dbus")
    if not os.access(options.segued, os.X_OK):
        sys.exit(f"soak: there is no {options.segued}: cargo build --release, or name another with --segued")


def keep(folder, options):
    """Saves the logs of a run that failed; all else goes with the temporary folder."""
    kept = options.target / "soak" / options.seed
    kept.mkdir(parents=True, exist_ok=True)
    for name in ("soak/segued.log", "soak/events.log", "server.jsonl"):
        with contextlib.suppress(OSError):
            shutil.copy(folder / name, kept)
    say(f"soak: the logs are in {kept}")


def main():
    options = arguments()
    check(options)
    options.target.mkdir(parents=True, exist_ok=True)
    # A shell that starts it in the background has it ignore the one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    folder = Path(tempfile.mkdtemp(prefix="segue-soak-"))
    say(f"soak: seed {options.seed}, {options.minutes:g} minutes of audio at {options.speed:g} times real time, in {folder}")
    good = False
    try:
        soak = Soak(options, folder)
        try:
            good = soak.run()
        except PlayerFailed as failure:
            print(f"FAILED {failure}\n1 failure; again: {soak.again()}")
        if options.json:
            options.json.write_text(json.dumps(soak.result, indent=2) + "\n")
    finally:
        if not good:
            keep(folder, options)
        # Verified copies of plugins are read-only.
        subprocess.run(["chmod", "-R", "u+w", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        import card as cards
        from players import PlayerFailed
        from soaking import references, summary
    except ImportError as error:
        sys.exit(f"soak: {error}: apt-get install python3-jeepney, and run with /usr/bin/python3")
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
