"""What the server saw of a soak: faults that happened, requests, resolves, bytes, downloads at a time."""

import json
from collections import Counter, defaultdict
from itertools import combinations

# A connection that was left is seen to have been left only at the next write. Two that bring bytes for longer are two
# downloads.
TOGETHER_S = 1.0


class Served:
    def __init__(self):
        self.faults = Counter()
        self.requests = 0
        self.resolves = 0
        self.sent = 0
        self.twice = 0
        self.refused = 0
        self.failures = []

    def words(self):
        return (
            f"{self.requests} requests, {self.refused} of them refused after expiry or for good; {self.resolves} addresses given; "
            f"{self.sent / 2**20:.0f} MiB sent, {self.twice / 2**20:.0f} of them not for the first time"
        )


def of(log):
    served, bodies = Served(), defaultdict(list)
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            note = json.loads(line)
            what = note["what"]
            served.faults[note.get("kind", "")] += what == "fault"
            served.requests += what == "open"
            served.refused += what == "refused"
            served.resolves += what == "address"
            if what == "sent":
                served.sent += note["bytes"]
                served.faults["cut at expiry"] += note["why"] == "expired"
                bodies[note["item"]].append(note)
    served.faults = +served.faults
    for item, sent in bodies.items():
        served.twice += sent_twice([(body["begin"], body["begin"] + body["bytes"]) for body in sent])
        for one, other in combinations(sent, 2):
            together = min(one["last"], other["last"]) - max(one["began"], other["began"])
            if together > TOGETHER_S:
                numbers = f"{one['request']} and {other['request']}"
                served.failures.append(f"item {item}: requests {numbers} brought bytes side by side for {together:.1f} s")
    return served


def sent_twice(ranges):
    """Bytes of these ranges beyond those of their union."""
    total = sum(last - first for first, last in ranges)
    union, end = 0, 0
    for first, last in sorted(map(tuple, ranges)):
        union += max(0, last - max(first, end))
        end = max(end, last)
    return total - union
