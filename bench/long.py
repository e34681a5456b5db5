"""What takes long: an hour of MP3, and files far larger than any memory for them."""

import random
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import card as cards
import measure
import media
import process
import report
from soaking.watch import FLAT_MIB, regression

# The fast clock. mpv looks after its device by timers of its own, and runs dry on it: its card takes all at once.
SPEED = 20
FAST = f'clock "real" speed {SPEED}'
LOOK_S = 0.25
RATE, FLAC_BYTES = 96_000, 1_000_000_000
MP3_TIMES = 9
# What an appliance has for it, MiB.
MOST_MIB = 64


@dataclass(frozen=True)
class Streamed:
    """MiB: the most that was resident; how much more at the end than after a fifth, by the straight line through it."""

    peak: float
    rise: float
    seconds_heard: float
    xruns: int
    cpu_s: float


def compare_hour(bench, failures):
    """CPU for an hour of 320 kbit/s over HTTP: 300 s, times twelve, by two clocks that are each fair to some."""
    recording, times = media.named("MP3 CBR"), 3600 / media.SECONDS
    rows = []
    # On demand MPD fills in silence without end, and on the fast clock mpv runs dry.
    for label, clock, left_out, aim in (
        (f"{SPEED} times real time", FAST, "mpv", report.HALF_OF_MPD),
        ("on demand", cards.ON_DEMAND, "mpd", None),
    ):
        row = report.Row(label, "CPU s/h", {}, aim)
        for name in [*bench.names, "silence"]:
            if name == left_out:
                continue
            bench.say(f"hour: {label}, {name}")
            try:
                with bench.player(name, "hour", clock, media.SECONDS, recording.rate) as player:
                    run = measure.whole(player, bench.server.url(recording), media.SECONDS)
                row.values[name] = run.cpu_s * times
                if run.xruns:
                    row.notes.append(f"{name}: {run.xruns} underruns")
            except failures as failure:
                row.notes.append(f"{name}: {failure}")
        rows.append(row)
    notes = ["MPD is left out on demand, where it writes silence without end, and mpv on the fast clock, where it runs dry"]
    return [report.Table(f"CPU for an hour of MP3, 320 kbit/s, over HTTP ({media.SECONDS} s, times {times:g})", rows, notes)]


def compare_large(bench, failures):
    """Peak and trend of memory over a 100 MB MP3 and a 1 GB FLAC, each streamed whole."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as folder:
        server = media.Server(Path(folder))
        try:
            for make in (large_mp3, large_flac):
                recording, seconds = make(bench, Path(folder))
                rows += stream_whole(bench, server, recording, seconds, failures)
                (Path(folder) / recording.file).unlink()
        finally:
            server.close()
    notes = [
        f"segued and MPD at {SPEED} times real time, side by side; mpv on demand, since it runs dry on a fast clock",
        "rise: of the straight line through resident memory, from a fifth of the time on",
    ]
    return [report.Table("Memory for large files, streamed whole over HTTP", rows, notes)]


def large_mp3(bench, folder):
    """Nine times the 300 s at 320 kbit/s, frame after frame: without a LAME tag that is one MP3."""
    whole = (bench.media / media.named("MP3 CBR").file).read_bytes()
    with (folder / "large.mp3").open("wb") as out:
        for _ in range(MP3_TIMES):
            out.write(whole)
    return media.Recording("MP3, 100 MB", "large.mp3", 44100, ()), MP3_TIMES * media.SECONDS


def large_flac(bench, folder):
    """Noise, 24 bit, 96 kHz, stereo: half a minute of it again and again, which FLAC cannot know."""
    bench.say("large: making 1 GB of FLAC")
    noise = folder / "noise.raw"
    noise.write_bytes(random.Random(1).randbytes(30 * RATE * 6))
    seconds = FLAC_BYTES // (RATE * 6)
    command = ["ffmpeg", "-v", "error", "-y", "-stream_loop", "-1", "-f", "s24le", "-ar", str(RATE), "-ac", "2", "-i", noise]
    command += ["-t", str(seconds), "-c:a", "flac", "-compression_level", "0", "-sample_fmt", "s32", folder / "large.flac"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    noise.unlink()
    return media.Recording("FLAC, 1 GB", "large.flac", RATE, ()), seconds


def stream_whole(bench, server, recording, seconds, failures):
    def one(name):
        clock = cards.ON_DEMAND if name == "mpv" else FAST
        with bench.player(name, f"large-{recording.file}", clock) as player:
            return watch_whole(player, server.url(recording), seconds)

    seen, notes = {}, []
    bench.say(f"large: {recording.label}, {seconds} s of sound")
    with ThreadPoolExecutor(len(bench.names)) as pool:
        running = {name: pool.submit(one, name) for name in bench.names}
        for name, job in running.items():
            try:
                seen[name] = job.result()
            except failures as failure:
                notes.append(f"{name}: {failure}")
    for name, run in seen.items():
        notes.append(f"{name}: {run.seconds_heard:.0f} of {seconds} s heard, {run.xruns} underruns, {run.cpu_s:.1f} s of CPU")
    pick = lambda which: {name: getattr(run, which) for name, run in seen.items()}  # noqa: E731
    return [
        report.Row(f"{recording.label}: peak", "MiB", pick("peak"), report.Limit(MOST_MIB), notes),
        report.Row(f"{recording.label}: rise", "MiB", pick("rise"), report.Limit(FLAT_MIB)),
    ]


def watch_whole(player, url, seconds):
    player.prepare(url)
    here = player.card.here()
    before = process.cpu_ns(player.pid)
    began = time.monotonic()
    player.play(url)
    # Long enough for a player that needs half of real time on a busy machine.
    deadline, samples = began + max(300, seconds / 2), []
    while True:
        samples.append((time.monotonic() - began, process.memory(player.pid).resident))
        heard, over = measure.consumed(player.card.events(here))
        if over and heard >= seconds * 0.999:
            break
        player.check_alive()
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {heard:.0f} of {seconds} s were heard in {deadline - began:.0f} s")
        time.sleep(LOOK_S)
    late = samples[len(samples) // 5 :]
    rise = regression(late) * (late[-1][0] - late[0][0]) if len(late) > 1 else 0.0
    xruns = measure.underruns(player.card.events(here))
    return Streamed(process.memory(player.pid).peak, rise, heard, xruns, (process.cpu_ns(player.pid) - before) / 1e9)
