"""What the kernel knows about a process: CPU time, wake-ups, memory."""

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


class Wakeups:
    """Voluntary context switches of all threads since this object was made.

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
            seen[task.name] = int(field(status, "voluntary_ctxt_switches"))
        self.last.update(seen)
        return seen

    def look(self):
        """The count so far."""
        self.look_at_threads()
        return sum(count - self.first.get(task, 0) for task, count in self.last.items())


@dataclass(frozen=True)
class Memory:
    """MiB: the most that was resident, what is now, what of it is nobody else's, and how many threads there are."""

    peak: float
    resident: float
    anonymous: float
    threads: int


def memory(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    kib = [int(field(status, name)) for name in ("VmHWM", "VmRSS", "RssAnon")]
    return Memory(*(value / MIB for value in kib), int(field(status, "Threads")))


def field(status, name):
    return re.search(rf"^{name}:\s*(\d+)", status, re.MULTILINE).group(1)
