"""Rows of numbers, their ratios and aims, as tables for people and as JSON for machines."""

from dataclasses import dataclass, field

PLAYERS = ("segued", "mpd", "mpv", "squeezelite")
PEERS = PLAYERS[1:]
ZERO = "silence"
LABEL, VALUE, RATIO = 26, 9, 9
SHORT = {"squeezelite": "squeeze"}


@dataclass(frozen=True)
class Aim:
    """segued's value over a peer's shall be `at_most`."""

    peer: str
    at_most: float

    def text(self):
        share = {0.5: "half", 0.25: "a quarter", 1.0: "no more"}.get(self.at_most, str(self.at_most))
        return f"{share} of {self.peer}'s" if self.at_most < 1 else f"{share} than {self.peer}'s"


@dataclass(frozen=True)
class Limit:
    """segued's value itself shall be `at_most`, whatever the others' are."""

    at_most: float

    def text(self):
        return f"at most {self.at_most:g}" if self.at_most else "none"


# Wake-ups a second of all of segued's threads.
FEW_WAKEUPS = Limit(15)
HALF_OF_MPD = Aim("mpd", 0.5)
QUARTER_OF_MPD = Aim("mpd", 0.25)
NO_MORE_THAN_MPV = Aim("mpv", 1.0)


@dataclass
class Row:
    """One quantity for all players. A value that could not be had is missing, and `notes` says why.

    `above_zero`: ratios are of what is left when the writer of silence is taken off, since that much is the card's."""

    label: str
    unit: str
    values: dict
    aim: Aim | Limit | None = None
    notes: list = field(default_factory=list)
    above_zero: bool = False

    def ratio(self, peer):
        ours, theirs = self.values.get("segued"), self.values.get(peer)
        if ours is None or theirs is None:
            return None
        zero = self.values.get(ZERO, 0) if self.above_zero else 0
        return (ours - zero) / (theirs - zero) if theirs > zero else None

    def met(self):
        """True or False, or None where there is no aim or it could not be judged."""
        if isinstance(self.aim, Limit):
            ours = self.values.get("segued")
            return None if ours is None else ours <= self.aim.at_most
        ratio = self.ratio(self.aim.peer) if self.aim else None
        return None if ratio is None else ratio <= self.aim.at_most

    def verdict(self):
        if not self.aim:
            return ""
        return {None: "not judged", True: "met", False: "missed"}[self.met()] + f" (aim: {self.aim.text()})"

    def as_json(self):
        return {
            "label": self.label,
            "unit": self.unit,
            "values": self.values,
            "ratios": {peer: self.ratio(peer) for peer in PEERS},
            "above_zero": self.above_zero,
            "aim": {"peer": getattr(self.aim, "peer", None), "at_most": self.aim.at_most, "met": self.met()} if self.aim else None,
            "notes": self.notes,
        }


@dataclass
class Table:
    title: str
    rows: list
    notes: list = field(default_factory=list)

    def as_json(self):
        return {"title": self.title, "rows": [row.as_json() for row in self.rows], "notes": self.notes}


def show(table):
    """Columns are shown for those who have a value somewhere in the table."""
    shown = [name for name in (*PLAYERS, ZERO) if any(name in row.values for row in table.rows)]
    peers = [name for name in PEERS if any(row.ratio(name) is not None for row in table.rows)]
    print(f"\n{table.title}")
    print(line("", [SHORT.get(name, name) for name in shown], [":" + SHORT.get(name, name) for name in peers]))
    for row in table.rows:
        numbers = [number(row.values.get(name)) for name in shown]
        ratios = [number(row.ratio(peer)) for peer in peers]
        print(f"{line(f'{row.label}, {row.unit}', numbers, ratios)}  {row.verdict()}".rstrip())
        for note in row.notes:
            print(f"    {note}")
    if any(row.above_zero for row in table.rows):
        print("  Ratios (segued : peer) are of what is above the writer of silence.")
    for note in table.notes:
        print(f"  {note}")


def line(label, values, ratios):
    return label.ljust(LABEL) + "".join(cell.rjust(VALUE) for cell in values) + "".join(cell.rjust(RATIO) for cell in ratios)


def number(value):
    """Three significant digits, which is more than these measurements repeat to."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def summary(tables):
    judged = [(table, row) for table in tables for row in table.rows if row.met() is not None]
    met = sum(row.met() for _, row in judged)
    print(f"\n{met} of {len(judged)} aims met")
    for table, row in judged:
        if not row.met():
            if isinstance(row.aim, Limit):
                found = f"{number(row.values['segued'])} {row.unit}, aim {row.aim.text()}"
            else:
                found = f"{number(row.ratio(row.aim.peer))} of {row.aim.peer}'s, aim {row.aim.at_most}"
            print(f"  missed: {row.label} ({table.title}): {found}")
