"""What the network sees: time to sound at a distance, bytes before the first frame, bytes fetched twice."""

import time
from contextlib import ExitStack
from statistics import median

import card as cards
import measure
import media
import report
from soaking.summary import sent_twice

ROUND_TRIPS_MS = (0, 20, 100)
CODECS = ("FLAC", "MP3 VBR", "Vorbis")


def compare_distances(bench, plays, failures):
    """Play to the first frame through `delay.py`, and what had been fetched by then. All players take turns."""
    times, sizes = [], []
    line = media.Line(bench.server)
    try:
        for round_trip_ms in ROUND_TRIPS_MS:
            for codec in CODECS:
                bench.say(f"distance: {codec} at {round_trip_ms} ms, {plays} plays each")
                label = f"{codec}, {round_trip_ms} ms away"
                taken, notes = take_turns(bench, line, media.named(codec), round_trip_ms, plays, failures)
                pick = lambda which: {name: median(one[which] for one in many) for name, many in taken.items()}  # noqa: E731
                spread = [
                    f"{name}: {min(one[0] for one in many):.1f} to {max(one[0] for one in many):.1f} ms"
                    for name, many in taken.items()
                ]
                times.append(report.Row(label, "ms", pick(0), report.NO_MORE_THAN_MPV, notes + ["; ".join(spread)]))
                sizes.append(report.Row(label, "KiB", pick(1)))
    finally:
        line.close()
    model = (
        "delay.py, a line of our own: half of the round trip each way, one to connect, then ten segments, doubled with each "
        "round trip; a new connection for each play"
    )
    return [
        report.Table(f"Play to the card's first frame over a line with a delay, median of {plays}", times, [model]),
        report.Table(
            "Fetched before the first frame (sent to the player's side of the connection, heads included)",
            sizes,
            ["at 0 ms the loopback brings megabytes in the time that a decoder needs to start"],
        ),
    ]


def take_turns(bench, line, recording, round_trip_ms, plays, failures):
    """(ms, KiB) of each play by name, and notes. A player that fails once is left out from then on."""
    taken, notes = {name: [] for name in bench.names}, []
    with ExitStack() as running:
        players = {}
        for turn in range(plays + 1):
            for name in list(taken):
                try:
                    if turn == 0:
                        player = bench.player(name, f"distance-{recording.label}-{round_trip_ms}", cards.REAL_TIME)
                        players[name] = running.enter_context(player)
                    url = line.url(recording, round_trip_ms)
                    time_ms, _, at_ns = measure.one_start(players[name], url)
                except failures as failure:
                    notes.append(f"{name}: {failure}")
                    del taken[name]
                    continue
                # The first play pages in code that the later ones find in memory, and is not counted.
                if turn > 0:
                    taken[name].append((time_ms, line.brought(at_ns) / 1024))
    return {name: many for name, many in taken.items() if many}, notes


def compare_refetching(bench, failures):
    """Bytes that were sent more than once, over plays in which nothing had to be."""
    rows = []
    for label, scene in (("short, back and on to the next", back_and_next), ("long, 3 s back", a_little_back)):
        row = report.Row(label, "KiB", {}, report.Limit(0))
        for name in bench.names:
            bench.say(f"twice: {label}, {name}")
            try:
                with bench.player(name, f"twice-{label.split(',')[0]}", cards.REAL_TIME) as player:
                    urls, asked = scene(bench, player)
                row.values[name] = sum(sent_twice(bench.server.ranges(url)) for url in urls) / 1024
                row.notes.append(f"{name}: {sum(len(bench.server.ranges(url)) for url in urls)} requests; {asked}")
            except failures as failure:
                row.notes.append(f"{name}: {failure}")
        rows.append(row)
    notes = [
        f"short: two FLACs of {media.SHORT_SECONDS} s; 8 s of the first, back to 2 s, 10 s on, skip to the second, 5 s of it",
        "long: 300 s of FLAC; 12 s of it, 3 s back, 8 s on",
        "sent means acknowledged by the player's kernel, whether the player read it or not",
    ]
    return [report.Table("Bytes sent twice (aim: none)", rows, notes)]


def back_and_next(bench, player):
    urls = [bench.server.url(recording) for recording in media.SHORT]
    begin(player, lambda: player.play_both(urls))
    time.sleep(8)
    player.seek(2)
    time.sleep(10)
    preloaded = bool(bench.server.ranges(urls[1]))
    player.next()
    time.sleep(5)
    player.stop()
    return urls, "the second was being fetched before the skip" if preloaded else "the second was asked for at the skip"


def a_little_back(bench, player):
    url = bench.server.url(media.named("FLAC"))
    player.prepare(url)
    begin(player, lambda: player.play(url))
    time.sleep(12)
    player.seek(9)
    time.sleep(8)
    player.stop()
    return [url], f"{sum(last - first for first, last in bench.server.ranges(url)) / 2**20:.1f} MiB sent in all"


def begin(player, play):
    here = player.card.here()
    play()
    player.card.wait(lambda event: event.kind == "first_frame", here, measure.FIRST_FRAME_S, player.check_alive)

