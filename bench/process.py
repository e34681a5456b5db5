"""What the kernel knows about a process: CPU time, wake-ups, memory."""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

MIB = 1024.0


def cpu_ns(pid):
    """CPU time of all threads, those that have ended included, in ns.

    It is the process's CPU-time clock (clock_getcpuclockid(3)), to which the kernel adds what
    /proc/PID/task/*/schedstat shows for each thread; ended threads stay in it, as they do
    not in schedstat, and it does not count in ticks, as /proc/PID/stat does."""
    return time.clock_gettime_ns((~pid << 3) | 2)


@dataclass(frozen=True)
class Switches:
    """Times that threads were put to work: after waiting for something (`voluntary`), and after having been put aside for
    another thread (`involuntary`), which says more about what else runs than about the process."""

    voluntary: int = 0
    involuntary: int = 0

    @property
    def all(self):
        return self.voluntary + self.involuntary

    def since(self, before):
        return Switches(self.voluntary - before.voluntary, self.involuntary - before.involuntary)

    def plus(self, other):
        return Switches(self.voluntary + other.voluntary, self.involuntary + other.involuntary)


class Wakeups:
    """Context switches of all threads since this object was made.

    The kernel forgets the count of a thread that ends: `look` often, and what is lost is what a
    thread did between the last look and its end."""

    def __init__(self, pid):
        self.tasks = Path(f"/proc/{pid}/task")
        self.first = {}
        self.last = {}
        self.first = self.look_at_threads()

    def look_at_threads(self):
        seen = {}
        for task in self.tasks.iterdir():
            try:
                status = (task / "status").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            seen[task.name] = Switches(
                int(field(status, "voluntary_ctxt_switches")), int(field(status, "nonvoluntary_ctxt_switches"))
            )
        self.last.update(seen)
        return seen

    def look(self):
        """The count so far."""
        self.look_at_threads()
        total = Switches()
        for task, count in self.last.items():
            total = total.plus(count.since(self.first.get(task, Switches())))
        return total


@dataclass(frozen=True)
class Memory:
    """MiB: the most that was resident (`VmHWM`), what is now, what of it is nobody else's (heap and stacks), the process's
    share of it where pages that several map are divided among them (PSS), and how many threads there are."""

    peak: float
    resident: float
    anonymous: float
    shared_out: float
    threads: int


def memory(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kib = [int(field(status, name)) for name in ("VmHWM", "VmRSS", "RssAnon")] + [int(field(rollup, "Pss"))]
    return Memory(*(value / MIB for value in kib), int(field(status, "Threads")))


def real_time_threads(pid):
    """How many of its threads run under SCHED_FIFO or SCHED_RR."""
    ranks = (os.SCHED_FIFO, os.SCHED_RR)
    count = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            count += os.sched_getscheduler(int(task.name)) & ~os.SCHED_RESET_ON_FORK in ranks
        except ProcessLookupError:
            continue
    return count


def field(status, name):
    return re.search(rf"^{name}:\s*(\d+)", status, re.MULTILINE).group(1)
