"""What a process holds, looked at once a second: memory, descriptors, threads, children."""

import collections
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import process

# How much the resident memory may rise after the first minute, MiB.
FLAT_MIB = 2.0
FIRST_S = 60.0


@dataclass(frozen=True)
class Holdings:
    descriptors: collections.Counter
    threads: collections.Counter
    children: list
    zombies: int

    def words(self):
        held = sum(self.descriptors.values())
        names = ", ".join(f"{count} {name}" for name, count in sorted(self.descriptors.items()))
        threads = ", ".join(f"{count} {name}" for name, count in sorted(self.threads.items()))
        return (
            f"{held} descriptors ({names}); {sum(self.threads.values())} threads ({threads}); "
            f"{len(self.children)} processes ({', '.join(sorted(self.children)) or 'none'}), {self.zombies} zombies"
        )

    def more_than(self, before):
        """What there is more of than before, in words; empty when nothing has leaked."""
        grown = []
        for what, now, then in (
            ("descriptor", self.descriptors, before.descriptors),
            ("thread", self.threads, before.threads),
            ("process", collections.Counter(self.children), collections.Counter(before.children)),
        ):
            grown += [f"{count} more {what} {name}" for name, count in (now - then).items()]
        if self.zombies > before.zombies:
            grown.append(f"{self.zombies - before.zombies} more zombies")
        return grown


def holdings(pid):
    descriptors, threads = collections.Counter(), collections.Counter()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            # socket:[123] → socket; /tmp/x/events.log → events.log
            descriptors[re.sub(r":?\[\d+\]$", "", os.readlink(one)).rsplit("/", 1)[-1]] += 1
        except OSError:
            continue
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            threads[(task / "comm").read_text().strip()] += 1
        except OSError:
            continue
    children, zombies = [], 0
    for name, state in descendants(pid):
        children.append(name)
        zombies += state == "Z"
    return Holdings(descriptors, threads, children, zombies)


def descendants(pid):
    """(name, state) of the children of a process, and theirs."""
    parents = collections.defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            state, parent = rest.split()[:2]
            parents[int(parent)].append((int(entry.name), name.split("(", 1)[1], state))
    found, look = [], [pid]
    while look:
        for child, name, state in parents[look.pop()]:
            found.append((name, state))
            look.append(child)
    return found


class Watch:
    """Samples of one process. `warm_s`: how long its memory may still grow."""

    def __init__(self, pid, warm_s=FIRST_S):
        self.pid = pid
        self.warm_s = warm_s
        self.began = time.monotonic()
        self.next = self.began
        self.cpu_before = process.cpu_ns(pid)
        self.resident = []
        self.most = {"descriptors": 0, "threads": 0, "children": 0, "zombies": 0}

    def look(self):
        """Once a second, however often it is called."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = max(self.next + 1, now + 0.5)
        memory = process.memory(self.pid)
        self.resident.append((now - self.began, memory.resident))
        counts = {
            "descriptors": len(os.listdir(f"/proc/{self.pid}/fd")),
            "threads": memory.threads,
        }
        if len(self.resident) % 5 == 0:
            family = descendants(self.pid)
            counts |= {"children": len(family), "zombies": sum(state == "Z" for _, state in family)}
        for name, count in counts.items():
            self.most[name] = max(self.most[name], count)

    def cpu_s(self):
        return (process.cpu_ns(self.pid) - self.cpu_before) / 1e9

    def memory(self):
        return Trend([sample for sample in self.resident if sample[0] >= self.warm_s], self.resident, process.memory(self.pid).peak)


class Trend:
    """How resident memory went after the first minute, by linear regression, and by the peaks of its quarters."""

    def __init__(self, after, everything, peak):
        self.peak = peak
        self.samples = len(after)
        self.last = everything[-1][1] if everything else 0.0
        self.judged = len(after) >= 60
        self.rise = self.per_hour = self.crest = 0.0
        if len(after) >= 2:
            span = after[-1][0] - after[0][0]
            slope = regression(after)
            self.rise, self.per_hour = slope * span, slope * 3600
            quarter = max(1, len(after) // 4)
            tops = [max(value for _, value in part) for part in (after[:quarter], after[-quarter:])]
            self.crest = tops[1] - tops[0]
        self.flat = self.rise <= FLAT_MIB and self.crest <= FLAT_MIB

    def words(self):
        verdict = ("flat" if self.flat else "NOT FLAT") if self.judged else "not judged: under a minute of samples"
        return (
            f"peak {self.peak:.1f} MiB, last {self.last:.1f} MiB; after the first minute the trend rose by {self.rise:+.2f} MiB "
            f"({self.per_hour:+.2f} MiB/h) and the crest by {self.crest:+.2f} MiB: {verdict} (within {FLAT_MIB:g} MiB)"
        )

    def as_json(self):
        return {name: getattr(self, name) for name in ("peak", "last", "rise", "per_hour", "crest", "flat", "judged", "samples")}


def regression(samples):
    """The slope of the straight line through (x, y) that fits best."""
    x_mean = sum(x for x, _ in samples) / len(samples)
    y_mean = sum(y for _, y in samples) / len(samples)
    below = sum((x - x_mean) ** 2 for x, _ in samples)
    return sum((x - x_mean) * (y - y_mean) for x, y in samples) / below if below else 0.0
