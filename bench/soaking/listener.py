"""The listener: keeps the queue filled, seeks, skips, pauses and edits as planned, and judges what is heard of it."""

import time
from collections import Counter, deque
from dataclasses import dataclass

from players import PlayerFailed

from .daemon import MPRIS, PLAYER, QUEUE
from .plan import GUESTS, GUESTS_EACH, guest

# Entries that are queued behind the current one.
AHEAD = 3
# An edit that was answered so lately may come too late for a join, s.
LATELY = 0.5
# No sound for so long, though nobody paused, is a hang: longer than any planned silence with all its pauses.
HANG_S = 90.0
# An entry may be taken back when it was heard for less than this by the wall clock, s: the daemon learns that it is heard
# by the nominal rate, which a fast card outruns.
TAKEN_BACK_S = 0.05
# A seek may land off by so many frames: D-Bus counts microseconds.
LANDING = 1


@dataclass
class Slot:
    entry: int
    item: object
    # Taken out; it may be heard all the same for a moment, and keeps its place until it is past.
    removed: bool = False


@dataclass
class Pending:
    """What was asked for and has not been heard yet."""

    kind: str
    item: object
    target: int
    asked: float
    exact: int


class Listener:
    """`numbers` gives the numbers of the items to play; `failures` collects what was wrong, one sentence each."""

    def __init__(self, daemon, plan, numbers, watch):
        self.daemon = daemon
        self.plan = plan
        self.numbers = iter(numbers)
        self.watch = watch
        self.follower = None
        self.queue = []
        self.current = None
        self.recent = deque(maxlen=8)
        self.pending = None
        self.done = set()
        self.declared = {}
        self.gone = set()
        self.guests = Counter()
        self.no_more = False
        self.counts = Counter()
        self.failures = []
        self.buffering_seen = 0
        self.xruns = 0
        self.unplanned = 0
        self.progress = time.monotonic()

    # --- what may be heard next

    def ahead(self):
        """Slots behind the current one that have not been given up."""
        place = self.queue.index(self.current) + 1 if self.current in self.queue else 0
        return [slot for slot in self.queue[place:] if slot.item.number not in self.declared and not slot.removed]

    def successor(self):
        ahead = self.ahead()
        return ahead[0].item if ahead else None

    def admissible(self):
        """The successor, and those that were it until a moment ago."""
        now = time.monotonic()
        return [self.successor()] + [item for at, item in self.recent if now - at < LATELY]

    def candidates(self):
        """For the follower: whatever may be heard now, likeliest first."""
        self.daemon.listen()
        self.note()
        found = [item for item in self.admissible() if item]
        found += [slot.item for slot in self.queue if slot.item not in found]
        return found

    # --- judging

    def wrong(self, text):
        where = self.follower.heard_s if self.follower else 0
        self.failures.append(f"at {where:.1f} s of audio: {text}")

    def note(self):
        """Takes what the daemon announced."""
        while self.daemon.heard:
            _, kind, *more = self.daemon.heard.popleft()
            if kind == "error":
                number, text = more
                self.counts["declared errors"] += 1
                if number is None:
                    self.wrong(f"an error that names no track: {text}")
                    continue
                self.declared[number] = text
                if not self.plan.item(number).hopeless:
                    planned = self.plan.item(number).faults()
                    self.wrong(f"item {number} was given up although it could be had: {text} ({planned})")

    def judge(self, gap):
        """One break of the sound: it must have a reason."""
        self.counts["breaks"] += 1
        buffered = self.daemon.buffering > self.buffering_seen
        self.buffering_seen = self.daemon.buffering
        pending, self.pending = self.pending, None
        item, was = gap.item, gap.was
        interrupted = buffered or (pending and pending.kind == "pause") or gap.session
        asked = pending.kind if pending else ""
        if item is was and gap.found == gap.left:
            self.counts["resumed after buffering" if buffered else "resumed"] += 1
            if not interrupted and not self.lately_edited():
                self.wrong(f"item {item.number}: a break at frame {gap.left} for no reason ({describe(gap)})")
            if asked in ("seek", "next"):
                self.pending = pending
        elif item is was and asked == "seek" and pending.item is item:
            self.counts["seeks heard"] += 1
            if abs(gap.found - pending.target) > LANDING:
                self.wrong(f"item {item.number}: a seek to frame {pending.target} landed at {gap.found}")
        elif item is was and gap.found == 0 and self.just_begun(gap):
            self.counts["taken back when it had just begun"] += 1
        elif gap.found == 0 and item is not was and item in self.admissible():
            self.judge_next(gap, asked, interrupted)
            self.enter(item)
        else:
            self.wrong(
                f"the sound went from frame {gap.left} of item {was.number if was else '-'} to frame {gap.found} of item "
                f"{item.number}, expected item {[one.number for one in self.admissible() if one]} ({describe(gap)}; asked: {asked or 'nothing'})"
            )
            if item is not was:
                self.enter(item)

    def judge_next(self, gap, asked, interrupted):
        was = gap.was
        skipped = asked in ("next", "remove-current")
        if was is None:
            self.counts["starts"] += 1
        elif gap.whole:
            same = was.track.rate == gap.item.track.rate
            clean = not gap.silence and not gap.faded
            self.counts["gapless joins" if same and clean else "joins after buffering" if interrupted else "other joins"] += 1
            if not clean and same and not interrupted and not skipped and not self.lost_since(was, gap.item):
                self.wrong(f"a break between items {was.number} and {gap.item.number} for no reason ({describe(gap)})")
        elif skipped:
            self.counts["skips heard"] += 1
        elif self.just_begun(gap):
            self.counts["taken back when it had just begun"] += 1
        elif was.number in self.declared or self.wait_for_error(was.number):
            self.counts["ended by a declared error"] += 1
        else:
            self.wrong(
                f"item {was.number} ended at frame {gap.left} of {was.track.frames} without a word, then item {gap.item.number} "
                f"({was.faults()})"
            )

    def lost_since(self, was, item):
        """Whether an item between these two was given up."""
        numbers = [slot.item.number for slot in self.queue]
        if was.number not in numbers or item.number not in numbers:
            return False
        return any(number in self.declared for number in numbers[numbers.index(was.number) : numbers.index(item.number)])

    def just_begun(self, gap):
        return self.lately_edited() and gap.left < TAKEN_BACK_S * self.daemon.speed * gap.was.track.rate

    def lately_edited(self):
        return any(time.monotonic() - at < 3 * LATELY for at, _ in self.recent)

    def wait_for_error(self, number):
        """The word may come a moment after the sound."""
        until = time.monotonic() + 1
        while time.monotonic() < until and number not in self.declared:
            self.daemon.listen(0.1)
            self.note()
        return number in self.declared

    def enter(self, item):
        self.current = next((slot for slot in self.queue if slot.item is item), None)
        self.counts["tracks"] += 1

    # --- acting

    def pump(self, seconds):
        """Follows the sound for so long."""
        until = time.monotonic() + seconds
        while True:
            if self.follower.poll():
                self.progress = time.monotonic()
            self.daemon.listen()
            self.note()
            self.count_underruns()
            self.daemon.check_alive()
            self.watch.look()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(0.01, left))

    def count_underruns(self):
        """On a fast clock a ring that runs empty becomes an underrun: the daemon times its silence by the nominal rate.

        Those that nothing in the plan explains come from a machine that is too slow for the pace, or from a fault."""
        new, self.xruns = self.follower.capture.xruns - self.xruns, self.follower.capture.xruns
        if new and self.current:
            near = [self.current.item] + [slot.item for slot in self.ahead()[:1]]
            if not any(item.may_starve() for item in near):
                self.unplanned += new

    def fill(self):
        while not self.no_more and len(self.ahead()) < AHEAD:
            number = next(self.numbers, None)
            if number is None:
                self.no_more = True
                return
            item = self.plan.item(number)
            (entries,) = self.daemon.call(QUEUE, "Add", "ast", [item.uri], 0)
            self.queue.append(Slot(entries[0], item))

    def tidy(self):
        """Takes what was heard out of the queue."""
        if self.current in self.queue and (place := self.queue.index(self.current)) > 2:
            old, self.queue = self.queue[: place - 1], self.queue[place - 1 :]
            self.daemon.call(QUEUE, "Remove", "at", [slot.entry for slot in old if not slot.removed])

    def begin(self):
        self.fill()
        self.daemon.call(QUEUE, "Play", "t", self.queue[0].entry)

    def tick(self):
        """One look round. Returns false when there is no more to come."""
        self.pump(0.01)
        self.tidy()
        self.fill()
        if time.monotonic() - self.progress > HANG_S:
            raise TimeoutError(f"no sound for {HANG_S:.0f} s: {self.daemon.buffer()}")
        if self.daemon.state == "stopped" and self.counts["tracks"]:
            return self.look_after_stop()
        if self.pending:
            self.expect()
        elif self.current and self.follower.item is self.current.item:
            self.act()
        return True

    def look_after_stop(self):
        self.pump(0.3)
        if self.no_more and not self.ahead():
            last = self.follower
            if last.sound and last.frame != last.sound.frames and not self.wait_for_error(last.item.number):
                place = f"frame {last.frame} of {last.sound.frames} of the last item, {last.item.number}"
                self.wrong(f"stopped at {place}, without a word")
            return False
        if self.daemon.state != "stopped":
            return True
        if not any(slot.item.number in self.declared for slot in self.queue):
            self.wrong(f"stopped by itself in mid-queue: {self.daemon.buffer()}")
        self.counts["started again after a stop"] += 1
        self.daemon.call(QUEUE, "Play", "t", self.ahead()[0].entry)
        self.pump(0.3)
        return True

    def expect(self):
        """Looks whether what was asked for has been heard, or can be heard no more."""
        pending = self.pending
        moved_on = self.follower.item is not pending.item
        if pending.kind == "pause" and self.follower.exact - pending.exact > self.follower.capture.rate:
            # It went on without a fade that could be seen.
            self.pending = None
        elif moved_on or pending.item.number in self.declared:
            self.counts[f"{pending.kind} overtaken by the track's end"] += 1
            self.pending = None
        elif time.monotonic() - pending.asked > HANG_S:
            self.wrong(f"a {pending.kind} in item {pending.item.number} was never heard: {self.daemon.buffer()}")
            self.pending = None

    def act(self):
        item, frame = self.current.item, self.follower.frame
        for act in item.acts:
            if (item.number, act) in self.done:
                continue
            left_s = (item.track.frames - frame) / item.track.rate
            late = act.kind.endswith("-late")
            if left_s <= act.value if late else frame >= act.at * item.track.frames:
                self.done.add((item.number, act))
                try:
                    self.perform(act, item, frame, left_s)
                except PlayerFailed as refusal:
                    self.refused(act, item, refusal)
                return

    def refused(self, act, item, refusal):
        """A command may come too late for its entry; all others must be obeyed."""
        self.pump(0.2)
        if self.follower.item is item and "NoSuchEntry" not in str(refusal):
            self.wrong(f"{act.kind} in item {item.number}: {refusal}")
        self.counts["refused"] += 1
        self.pending = None

    def perform(self, act, item, frame, left_s):
        kind = act.kind.removesuffix("-late")
        if kind == "seek":
            target = round(act.value * item.track.frames)
            micros = round(target * 1_000_000 / item.track.rate)
            if abs(target - frame) > 2 * item.track.rate and left_s > 4:
                self.counts[act.kind] += 1
                self.ask("seek", item, round(micros * item.track.rate / 1_000_000))
                self.daemon.call(MPRIS, "SetPosition", "ox", f"/org/segue/track/{self.current.entry}", micros)
        elif kind == "next" and left_s > 4 and self.ahead():
            self.counts["next"] += 1
            self.ask("next", item, 0)
            self.daemon.call(PLAYER, "Next")
        elif kind == "pause" and left_s > 4:
            self.pause(act.value, item)
        elif kind == "insert" and self.ahead():
            self.insert(self.ahead()[0])
        elif kind == "remove" and len(self.ahead()) > 1:
            self.remove(self.ahead()[0])

    def ask(self, kind, item, target):
        self.pending = Pending(kind, item, target, time.monotonic(), self.follower.exact)

    def pause(self, seconds, item):
        self.counts["pause"] += 1
        self.ask("pause", item, 0)
        self.daemon.call(PLAYER, "Pause")
        self.pump(0.2)
        before = self.follower.heard_s
        self.pump(seconds)
        if self.follower.heard_s != before:
            self.wrong(f"{self.follower.heard_s - before:.3f} s were heard while item {item.number} was paused")
        self.ask("pause", item, 0)
        self.progress = time.monotonic()
        self.daemon.call(PLAYER, "Play")

    def insert(self, before):
        number = self.current.item.number
        if number >= GUESTS or self.guests[number] >= GUESTS_EACH:
            return
        item = self.plan.item(guest(number, self.guests[number]))
        self.guests[number] += 1
        self.counts["insert"] += 1
        former = self.successor()
        (entries,) = self.daemon.call(QUEUE, "Add", "ast", [item.uri], before.entry)
        self.recent.append((time.monotonic(), former))
        self.queue.insert(self.queue.index(before), Slot(entries[0], item))

    def remove(self, slot):
        self.counts["remove"] += 1
        self.daemon.call(QUEUE, "Remove", "at", [slot.entry])
        self.recent.append((time.monotonic(), slot.item))
        slot.removed = True
        # Where it had begun a moment before, this is a skip.
        self.pump(0.1)
        if self.follower.item is slot.item:
            self.ask("remove-current", slot.item, 0)


def describe(gap):
    words = [f"{gap.silence} frames of silence" if gap.silence else "", f"{gap.faded} frames faded" if gap.faded else ""]
    words += ["the card was set up anew" if gap.session else "", "after its end" if gap.whole else ""]
    return ", ".join(word for word in words if word) or "no silence"
