"""The three measurements. Each returns plain numbers and knows nothing of which player it drives."""

import time
from dataclasses import dataclass
from statistics import median

import card as cards
import process

# How long to wait for a card's first frame, and for it to be given back.
FIRST_FRAME_S = 30
GIVEN_BACK_S = 5


@dataclass(frozen=True)
class Whole:
    """What a whole recording cost. `seconds_heard` is what the card consumed, silence included."""

    cpu_s: float
    seconds_heard: float
    memory: process.Memory
    xruns: int


@dataclass(frozen=True)
class RealTime:
    """A while of a recording in real time, from Play on. Wake-ups are all context switches, the involuntary ones included.

    `output` is what segued itself says of its output, and empty for others."""

    cpu_s: float
    cpu_percent: float
    wakeups_per_s: float
    involuntary_per_s: float
    steady_cpu_percent: float
    steady_wakeups_per_s: float
    memory: process.Memory
    xruns: int
    real_time_threads: int
    output: dict


@dataclass
class Starts:
    """Times from Play to the first frame, ms, in the order taken, and how often the card had been given back."""

    times_ms: list
    cold: int

    def add(self, time_ms, cold):
        self.times_ms.append(time_ms)
        self.cold += cold

    @property
    def median_ms(self):
        return median(self.times_ms)


def whole(player, url, seconds):
    """Plays a recording of so many seconds to its end, and says what it cost."""
    player.prepare(url)
    here = player.card.here()
    before = process.cpu_ns(player.pid)
    player.play(url)
    heard = wait_for_end(player, here, seconds)
    used = settled_cpu(player) - before
    return Whole(used / 1e9, heard, process.memory(player.pid), underruns(player.card.events(here)))


def nowhere(player, url, seconds):
    """As `whole`, for a player that has no card and says when it has stopped."""
    player.prepare(url)
    before = process.cpu_ns(player.pid)
    player.play(url)
    deadline = time.monotonic() + 60 + seconds
    # What asking costs is charged to the player: four times a second is little beside what it does meanwhile.
    while not player.has_stopped():
        player.check_alive()
        if time.monotonic() > deadline:
            raise TimeoutError(f"it was not through after {60 + seconds} s")
        time.sleep(0.25)
    used = settled_cpu(player) - before
    return Whole(used / 1e9, seconds, process.memory(player.pid), 0)


def wait_for_end(player, here, seconds):
    """Waits until the card has consumed the whole recording and was told that this was all.

    Returns how many seconds it consumed. A player that sets up the card more than once is
    counted over all its sessions."""
    deadline = time.monotonic() + 60 + seconds
    while True:
        heard, over = consumed(player.card.events(here))
        if over and heard >= seconds - 0.5:
            return heard
        player.check_alive()
        if time.monotonic() > deadline:
            log = player.card.log
            raise TimeoutError(f"after {60 + seconds} s the card has heard {heard:.1f} of {seconds} s; its log is {log}")
        time.sleep(0.1)


def underruns(events):
    """Underruns in mid-track. A player may end a track by letting the card run dry: the last event but `close` is none."""
    kinds = [event.kind for event in events if event.kind != "close"]
    return kinds[:-1].count("xrun")


def consumed(events):
    """Seconds consumed in all sessions, and whether the last of them is over."""
    rates, frames, over = {}, {}, False
    for event in events:
        session = event.keys.get("session")
        if event.kind == "params":
            rates[session] = event.number("rate")
            over = False
        elif event.kind in cards.ENDS and event.keys.get("state") != "begin" and "consumed" in event.keys:
            frames[session] = event.number("consumed")
            over = True
    return sum(count / rates[session] for session, count in frames.items() if session in rates), over


def settled_cpu(player):
    """The CPU clock once the player has tidied up after a track: unchanged for a quarter second, or 2 s later."""
    now = process.cpu_ns(player.pid)
    for _ in range(8):
        time.sleep(0.25)
        before, now = now, process.cpu_ns(player.pid)
        if now - before < 200_000:
            break
    return now


def in_real_time(player, url, seconds):
    """Plays for a while and looks once a second. `steady` is the second half, when fetching ahead is over or even."""
    player.prepare(url)
    here = player.card.here()
    wakeups = process.Wakeups(player.pid)
    marks = [(time.monotonic(), process.cpu_ns(player.pid), process.Switches())]
    player.play(url)
    player.card.wait(lambda event: event.kind == "first_frame", here, FIRST_FRAME_S, player.check_alive)
    end = marks[0][0] + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(1, left))
        player.check_alive()
        marks.append((time.monotonic(), process.cpu_ns(player.pid), wakeups.look()))
    held = process.memory(player.pid)
    xruns, real_time = underruns(player.card.events(here)), process.real_time_threads(player.pid)
    output = player.output()
    player.stop()
    cpu, wakeups, involuntary = between(marks[0], marks[-1])
    steady_cpu, steady_wakeups, _ = between(marks[len(marks) // 2], marks[-1])
    used = (marks[-1][1] - marks[0][1]) / 1e9
    return RealTime(used, cpu, wakeups, involuntary, steady_cpu, steady_wakeups, held, xruns, real_time, output)


def between(first, last):
    """CPU in per cent of one core, and context switches a second: all, and the involuntary ones."""
    seconds = last[0] - first[0]
    switches = last[2].since(first[2])
    return (last[1] - first[1]) / 1e7 / seconds, switches.all / seconds, switches.involuntary / seconds


def one_start(player, url):
    """Plays until the first frame and stops.

    Returns the time in ms, whether the card had been free before, and the moment of the first frame in ns."""
    player.prepare(url)
    cold = not cards.is_open(player.card.events())
    here = player.card.here()
    sent = player.play(url)
    first = player.card.wait(lambda event: event.kind == "first_frame", here, FIRST_FRAME_S, player.check_alive)
    time.sleep(0.3)
    player.stop()
    wait_until_given_back(player)
    return (first.number("at") - sent) / 1e6, cold, first.number("at")


def wait_until_given_back(player):
    deadline = time.monotonic() + GIVEN_BACK_S
    while cards.is_open(player.card.events()) and time.monotonic() < deadline:
        player.check_alive()
        time.sleep(0.05)
    # A breath, so that what the player does after it is not in the next start.
    time.sleep(0.2)
