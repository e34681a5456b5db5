"""What the server saw of a soak: faults that happened, requests, resolves, downloads at a time."""

import json
from collections import Counter, defaultdict


class Served:
    """`together`: the most bodies that were open at once for one item. Twice for a moment is no harm: a player that
    left a connection is seen to have left it only at the next write."""

    def __init__(self):
        self.faults = Counter()
        self.requests = 0
        self.resolves = 0
        self.sent = 0
        self.together = 0
        self.refused = 0
        self.most_resolves = Counter()
        self.failures = []

    def words(self):
        return (
            f"{self.requests} requests, {self.refused} of them refused after expiry, {self.sent / 2**20:.0f} MiB sent; "
            f"{self.resolves} addresses given; at most {self.together} bodies open at once for one item"
        )


def of(log):
    served = Served()
    lives = defaultdict(list)
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            note = json.loads(line)
            what = note["what"]
            if what == "fault":
                served.faults[note["kind"]] += 1
            elif what == "open":
                served.requests += 1
                served.together = max(served.together, note["together"])
            elif what == "refused":
                served.refused += 1
            elif what == "sent":
                served.sent += note["bytes"]
                if note["why"] == "expired":
                    served.faults["cut at expiry"] += 1
            elif what == "address":
                served.resolves += 1
                lives[note["item"]].append(note["at"])
    return served
