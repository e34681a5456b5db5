"""What a soak plays, and what befalls it: all of it follows from the seed.

The driver and the server make the same plan from the same seed. Each item of the queue has a track, a server's
manners, faults with their places, and what the listener does meanwhile."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass

# Items that a listener puts in between have numbers from here on, three for each item of the queue. They have short
# tracks of their own, so that no two near ones sound alike.
GUESTS = 100_000
GUESTS_EACH = 3
GUEST_TRACKS = 9
# Within so many items no track occurs twice, so that a join can be told by its sound.
APART = 5
PLUGIN = "soak"


@dataclass(frozen=True)
class Track:
    number: int
    kind: str
    rate: int
    frames: int
    options: tuple
    key: str

    @property
    def file(self):
        return f"{self.number}.{self.kind}"

    @property
    def seconds(self):
        return self.frames / self.rate


@dataclass(frozen=True)
class Fault:
    """`at` is a share of the file (a body's faults) or the number of a request or call; `value` is of its kind."""

    kind: str
    at: float
    value: float = 0.0


@dataclass(frozen=True)
class Act:
    """What the listener does when so much of the track was heard: `at` is a share of it."""

    kind: str
    at: float
    value: float = 0.0


@dataclass(frozen=True)
class Item:
    number: int
    track: Track
    # The URL's life in seconds; how the plugin tells ("in", "at" or ""); whether a running body is cut at its end.
    life: float | None
    tells: str
    cuts: bool
    # Sent at so many times what the card consumes.
    pace: float | None
    ranges: bool
    chunked: bool
    redirects: int
    validator: str
    keep_alive: bool
    body: tuple
    answers: tuple
    calls: tuple
    acts: tuple
    # Nothing can save it, or it pretends to have become another file: an error that names it is right.
    hopeless: bool

    @property
    def content_id(self):
        return f"item-{self.number}"

    @property
    def uri(self):
        return f"segue:{PLUGIN}:track:{self.content_id}"

    def faults(self):
        """In words, for whoever looks at what went wrong."""
        words = [f"life {self.life:.1f} s, told {self.tells or 'never'}" if self.life else "", "no ranges" * (not self.ranges)]
        words += [f"pace {self.pace:.1f}" if self.pace else "", "chunked" * self.chunked, "hopeless" * self.hopeless]
        words += [f"{self.redirects} redirects" * (self.redirects > 0)]
        words += [f"{one.kind}@{one.at:.2f}({one.value:g})" for one in (*self.body, *self.answers, *self.calls, *self.acts)]
        return ", ".join(word for word in words if word) or "nothing"

    def may_starve(self):
        """Whether something of the plan may keep bytes from coming in time."""
        slow = self.pace is not None and self.pace < 1.3
        return slow or bool(self.life or self.body or self.answers or self.calls or self.acts)


class Plan:
    """Everything that follows from a seed, for a soak of so many minutes of audio."""

    def __init__(self, seed, minutes):
        self.seed = seed
        pick = random.Random(f"{seed}/tracks")
        wanted, self.tracks = min(45.0, max(6.0, minutes * 0.6)) * 60, []
        longest = 420 if minutes > 30 else 150
        # With a small one, longer stretches of a track are still to be fetched while it is heard.
        self.buffer = pick.choice(("2 MiB", "6 MiB"))
        while sum(track.seconds for track in self.tracks) < wanted or len(self.tracks) < 3 * APART:
            self.tracks.append(self.make_track(pick, len(self.tracks), longest))
        first = len(self.tracks)
        self.guest_tracks = [self.make_track(pick, first + nth, 30) for nth in range(GUEST_TRACKS)]

    def make_track(self, pick, number, longest):
        # At least two of each kind, also in a short soak.
        kind = ("flac", "wav", "mp3")[number] if number < 3 else pick.choices(("flac", "wav", "mp3"), (6, 2, 2))[0]
        rate = pick.choice((44100, 44100, 44100, 48000))
        # No round numbers: tracks end within an encoder's block.
        seconds = pick.choice((pick.uniform(8, 30), pick.uniform(20, longest)))
        options = {
            "flac": lambda: (f"-{pick.choice('0358')}", *pick.choice(((), ("--no-seektable",), ("--no-padding",)))),
            "mp3": lambda: pick.choice((("-b", "192"), ("-V", "2"), ("-b", "320"))),
            "wav": lambda: (),
        }[kind]()
        return Track(number, kind, rate, int(seconds * rate), options, f"{self.seed}/track/{number}")

    @functools.lru_cache(maxsize=None)
    def round(self, number):
        """The tracks in the order of this round; its first ones are not among the last of the round before."""
        pick = random.Random(f"{self.seed}/round/{number}")
        before = self.round(number - 1)[-APART:] if number else []
        while True:
            order = pick.sample(self.tracks, len(self.tracks))
            if not set(order[:APART]) & set(before):
                return order

    def track(self, number):
        order = self.round(number // len(self.tracks))
        return order[number % len(self.tracks)]

    @functools.lru_cache(maxsize=None)
    def item(self, number):
        pick = random.Random(f"{self.seed}/item/{number}")
        guest = number >= GUESTS
        track = self.guest_tracks[(number - GUESTS) % GUEST_TRACKS] if guest else self.track(number)
        return make_item(pick, number, track)


def guest(number, nth):
    """The number of the nth guest of an item."""
    return GUESTS + number * GUESTS_EACH + nth


def make_item(pick, number, track):
    chance = lambda share: pick.random() < share  # noqa: E731
    ranges = chance(0.9)
    life = pick.choice((pick.uniform(3, 7), pick.uniform(5, 20))) if chance(0.6) else None
    hopeless = chance(0.03)
    validator = pick.choice(("etag", "etag", "date", "both", ""))
    clean = chance(0.15)
    # A slow server without ranges would have to send everything again and again.
    pace = pick.choice((None, 1.3, 2.0, 4.0, 0.9)) if ranges else None
    body = () if clean else body_faults(pick, hopeless, track.seconds)
    answers = () if clean else answer_faults(pick, ranges)
    wished = [act for act in acts(pick, ranges, life) if number < GUESTS or not act.kind.startswith("insert")]
    hopeless = not clean and hopeless or any(fault.kind == "wrong-total" for fault in answers)
    return Item(
        number, track, life, pick.choice(("in", "in", "at", "")) if life else "", chance(0.5), pace, ranges, chance(0.2),
        pick.choice((0, 0, 0, 1, 3)), validator, chance(0.7), body, answers,
        () if clean else call_faults(pick), tuple(wished), hopeless,
    )  # fmt: skip


def body_faults(pick, hopeless, seconds):
    """Each happens once, when the transfer passes its place; a hopeless file is refused from there on."""
    found = []
    # A long track has time for more.
    for _ in range(pick.choice((0, 1, 1, 2, 3)) + int(seconds / 120)):
        kind = pick.choices(("reset", "short", "stall", "trickle", "cut", "junk"), (6, 5, 2, 2, 1, 2))[0]
        value = {"stall": pick.choice((0.5, 2.0, 4.0, 12.0)), "trickle": pick.uniform(0.5, 3), "cut": pick.uniform(0.3, 5)}
        found.append(Fault(kind, pick.random(), value.get(kind, 0.0)))
    if hopeless:
        found.append(Fault("gone", pick.uniform(0.05, 0.9)))
    return tuple(sorted(found, key=lambda fault: fault.at))


def answer_faults(pick, ranges):
    """What the request with this number gets instead of a good answer."""
    found = {}
    for _ in range(pick.choice((0, 0, 1, 1, 2))):
        kinds = ["429", "503", "503", "500", "403", "slow-head", "reset-head", "404"]
        kinds += ["wrong-range", "wrong-range", "whole", "whole", "416", "416"] if ranges else []
        kind = "wrong-total" if ranges and pick.random() < 0.03 else pick.choice(kinds)
        value = pick.choice((1, 2)) if kind in ("429", "503") else pick.uniform(0.3, 2)
        found[pick.randrange(4)] = Fault(kind, 0, value)
    return tuple(Fault(fault.kind, nth, fault.value) for nth, fault in sorted(found.items()))


def call_faults(pick):
    """What the plugin does at its call with this number."""
    found = {}
    if pick.random() < 0.2:
        kind = pick.choice(("crash", "late", "late", "unavailable", "limited"))
        found[pick.choice((0, 0, 1, 2))] = Fault(kind, 0, pick.uniform(0.3, 2.5))
    return tuple(Fault(fault.kind, nth, fault.value) for nth, fault in sorted(found.items()))


def acts(pick, ranges, life):
    found = []
    for _ in range(pick.choice((0, 0, 1, 1, 2, 3))):
        kind = pick.choice(("seek", "seek", "pause", "next", "insert", "remove", "insert-late", "remove-late"))
        value = {"seek": pick.uniform(0, 0.97), "pause": pick.choice((0.3, 1.0, min((life or 4) + 0.5, 8)))}.get(kind, 0.0)
        # The late ones fall about the join: so long before the end, in seconds of audio.
        if kind.endswith("-late"):
            value = pick.choice((0.3, 1.0, 3.0, 8.0, 25.0))
        if kind == "seek" and not ranges:
            continue
        found.append(Act(kind, pick.uniform(0.05, 0.8), value))
        if kind == "next":
            break
    return tuple(sorted(found, key=lambda act: (act.kind.endswith("-late"), act.at)))
