"""CPU, memory and wake-ups of each codec, with nothing done to the samples and with something done to them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import card as cards
import measure
import media
import report
from players import PLAIN, Settings

# So many recordings run side by side, with all players: about half of one slow core.
AT_ONCE = 7


@dataclass(frozen=True)
class Scene:
    """A recording, on which card, and what is to be done to it."""

    label: str
    recording: media.Recording
    settings: Settings = PLAIN

    def clock(self):
        rate = self.settings.card_rate
        return cards.REAL_TIME if rate is None else f'{cards.REAL_TIME} rates "{rate}"'

    def rate_at_card(self):
        return self.settings.card_rate or self.recording.rate


PROCESSED = (
    Scene("as it is", media.named("FLAC")),
    Scene("volume at 50 %", media.named("FLAC"), Settings(volume=50)),
    Scene("track gain, -6.5 dB", media.TAGGED, Settings(track_gain=media.TAG_DB)),
    Scene("44.1 to 48 kHz", media.named("FLAC"), Settings(card_rate=48000)),
    Scene("MPD with soxr", media.named("FLAC"), Settings(card_rate=48000, well_resampled=True)),
)


def side_by_side(bench, part, scenes, seconds, failures):
    """Plays so many seconds in real time with all players and scenes at once, each with its own card and process.

    Each uses about a hundredth of a core, so that they hardly disturb each other, and whatever else
    the machine does meanwhile meets them all alike. Returns, for each scene, results by name,
    and notes on what went wrong."""

    def one(scene, name):
        url = bench.server.url(scene.recording)
        folder = f"{part}-{scene.label}".replace("%", "percent")
        with bench.player(name, folder, scene.clock(), seconds + 30, scene.rate_at_card(), scene.settings) as player:
            return measure.in_real_time(player, url, seconds)

    names = [*bench.names, report.ZERO]
    found = []
    with ThreadPoolExecutor(len(names) * len(scenes)) as pool:
        running = [{name: pool.submit(one, scene, name) for name in names} for scene in scenes]
        for by_name in running:
            seen, notes = {}, []
            for name, result in by_name.items():
                try:
                    seen[name] = result.result()
                except failures as failure:
                    notes.append(f"{name}: {failure}")
            notes += [f"{name}: {run.xruns} underruns" for name, run in seen.items() if run.xruns]
            found.append((seen, notes))
    return found


def compare_in_real_time(bench, seconds, failures):
    """Each codec in real time."""
    scenes = [Scene(recording.label, recording) for recording in media.RECORDINGS]
    found = []
    for first in range(0, len(scenes), AT_ONCE):
        now = scenes[first : first + AT_ONCE]
        bench.say(f"cpu: {', '.join(scene.label for scene in now)}: {seconds} s")
        found += side_by_side(bench, "cpu", now, seconds, failures)
    title = f"{seconds} s of music over HTTP, in real time, from Play on"
    return tables(scenes, found, title)


def compare_processing(bench, seconds, failures):
    """What it costs to do something to the samples. Each player does it by its own settings."""
    bench.say(f"processed: {', '.join(scene.label for scene in PROCESSED)}: {seconds} s")
    found = side_by_side(bench, "processed", PROCESSED, seconds, failures)
    for seen, notes in found:
        if "segued" in seen and (said := seen["segued"].output):
            notes.append(f"segued: {said.get('rate')} Hz, {said.get('format')}, {said.get('reason') or 'bit-perfect'}")
    made = tables(PROCESSED, found, f"{seconds} s of FLAC over HTTP, in real time, with something done to the samples")
    made[0].notes.append("volume: each in its own software; the card has no mixer")
    made[0].notes.append("44.1 to 48 kHz, on a card of 48 kHz only: each by its default, which is libsamplerate's fastest sinc for")
    made[0].notes.append("MPD and swresample for mpv; then MPD with soxr at high quality")
    return made


def tables(scenes, found, title):
    """CPU, memory and wake-ups, a row for each scene."""
    cpu, memory, heap, share, wakeups = [], [], [], [], []
    for scene, (seen, notes) in zip(scenes, found):

        def row(unit, pick, aim=None, notes=(), above_zero=False):
            values = {name: pick(run) for name, run in seen.items()}
            return report.Row(scene.label, unit, values, aim, list(notes), above_zero)

        cpu.append(row("CPU s", lambda run: run.cpu_s, report.HALF_OF_MPD, notes, above_zero=True))
        memory.append(row("MiB", lambda run: run.memory.peak, report.QUARTER_OF_MPD))
        share.append(row("MiB", lambda run: run.memory.shared_out))
        heap.append(row("MiB", lambda run: run.memory.anonymous))
        wakeups.append(row("1/s", lambda run: run.wakeups_per_s, report.FEW_WAKEUPS))
    involuntary = [run.involuntary_per_s for seen, _ in found for name, run in seen.items() if name == "segued"]
    return [
        report.Table(f"CPU: {title}", cpu),
        report.Table(
            "Peak of resident memory (VmHWM) meanwhile",
            memory,
            ["all pages that are mapped, those of shared libraries included, which other programs may use too"],
        ),
        report.Table(
            "Proportional memory (PSS) at the end",
            share,
            ["pages that several processes map are divided among them, also among the players of this very run"],
        ),
        report.Table("Anonymous memory (heap and stacks, RssAnon) at the end", heap, ["what the process alone has"]),
        report.Table(
            "Wake-ups a second meanwhile",
            wakeups,
            [
                "context switches of all threads; the first seconds, in which players fetch ahead, are in it",
                f"of segued's, involuntary: at most {max(involuntary, default=0):.1f} a second",
            ],
        ),
    ]


def compare_on_demand(bench, failures):
    """CPU seconds for whole recordings, as fast as the player decodes, one player after another."""
    rows = []
    for recording in media.RECORDINGS:
        seen, notes = {}, []
        for name in [*bench.names, report.ZERO]:
            bench.say(f"demand: {recording.label}, {name}")
            try:
                seen[name] = on_demand(bench, recording, name)
            except failures as failure:
                notes.append(f"{name}: {failure}")
        for name, run in seen.items():
            if run.seconds_heard > media.SECONDS * 1.01:
                notes.append(f"{name} wrote {run.seconds_heard:.0f} s: silence whenever it was not ahead of the card")
        cpu = {name: run.cpu_s for name, run in seen.items()}
        rows.append(report.Row(recording.label, "CPU s", cpu, report.HALF_OF_MPD, notes))
    notes = [
        "MPD has no card here but its own output `null` with `sync no`: on a card that takes everything it writes silence",
        "whenever its decoder is not ahead, which is always. So the card's work is in all numbers but MPD's.",
    ]
    return [report.Table(f"CPU for {media.SECONDS} s of music over HTTP, as fast as it is decoded", rows, notes)]


def on_demand(bench, recording, name):
    part, url = f"demand-{recording.label}", bench.server.url(recording)
    if name == "mpd":
        with bench.mpd_without_card(part) as player:
            return measure.nowhere(player, url, media.SECONDS)
    with bench.player(name, part, cards.ON_DEMAND, media.SECONDS, recording.rate) as player:
        return measure.whole(player, url, media.SECONDS)


def look_closely(bench, seconds, failures):
    """FLAC in real time, the second half apart."""
    scene = Scene("FLAC", media.named("FLAC"))
    bench.say(f"realtime: {scene.label}, {seconds} s")
    ((seen, notes),) = side_by_side(bench, "realtime", [scene], seconds, failures)

    def row(label, unit, pick, aim=None, above_zero=False):
        return report.Row(label, unit, {name: pick(run) for name, run in seen.items()}, aim, above_zero=above_zero)

    rows = [
        row("CPU", "% of a core", lambda run: run.cpu_percent, report.HALF_OF_MPD, above_zero=True),
        row("CPU, second half", "%", lambda run: run.steady_cpu_percent, above_zero=True),
        row("wake-ups", "1/s", lambda run: run.wakeups_per_s, report.FEW_WAKEUPS),
        row("wake-ups, second half", "1/s", lambda run: run.steady_wakeups_per_s, report.FEW_WAKEUPS),
        row("peak memory", "MiB", lambda run: run.memory.peak, report.QUARTER_OF_MPD),
        row("resident", "MiB", lambda run: run.memory.resident),
        row("proportional (PSS)", "MiB", lambda run: run.memory.shared_out),
        row("of it anonymous", "MiB", lambda run: run.memory.anonymous),
        row("threads", "count", lambda run: run.memory.threads),
    ]
    return [report.Table(f"In real time, {seconds} s of {scene.label} over HTTP, from Play on", rows, notes)]
