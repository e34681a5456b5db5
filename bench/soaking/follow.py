"""What was heard, told by its sound: follows the card's capture as it grows, and says where the sound stands.

The capture is compared with the recordings frame by frame. Where it leaves the expected course, it is found again by
its sound, and the break between is handed to whoever judges it. What was compared is given back to the disk at once,
so that hours of audio need no room."""

import ctypes
import ctypes.util
import os
from dataclasses import dataclass

import card as cards

from .sounds import FRAME, MARK, is_faded

# Sound comes in within 5 ms after a cut; so many frames at the highest rate, and a few to be sure.
FADE = 260
# So many frames are needed to find the sound again after a break.
NEEDED = FADE + MARK
READ = 1 << 20
PUNCH_HOLE = 0x01 | 0x02


@dataclass(frozen=True)
class Break:
    """The sound left frame `left` of `was` (an item, or None at the start) and went on at frame `found` of `item`.

    `whole`: the former track was heard to its end. `silence`: frames of silence in between. `faded`: it came in from
    silence. `session`: the card was set up anew in between."""

    was: object
    left: int
    whole: bool
    silence: int
    faded: int
    item: object
    found: int
    session: bool


class Lost(Exception):
    """The sound is nowhere in the recordings."""


class Capture:
    """The bytes that the card has heard, over all its sessions."""

    def __init__(self, card):
        self.card = card
        self.sessions = []
        self.log_at = 0
        self.file = None
        self.at = 0
        self.punched = 0
        self.rate = 0
        self.libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
        self.xruns = 0
        self.setups = 0

    def look(self):
        """Reads the log on: sessions that began, and underruns."""
        if not self.card.log.exists():
            return
        with self.card.log.open("rb") as log:
            log.seek(self.log_at)
            new = log.read()
        new = new[: new.rfind(b"\n") + 1]
        self.log_at += len(new)
        for event in (cards.parse(line) for line in new.decode().splitlines()):
            if event.kind == "params":
                self.sessions.append((event.keys["capture"], event.number("rate"), event.keys["format"]))
                self.setups += 1
            elif event.kind == "xrun":
                self.xruns += 1

    def read(self):
        """(new bytes, whether the session ends with them). Nothing new: (b"", False)."""
        # Whoever follows in the list began after all of this one was written.
        self.look()
        if self.file is None:
            if not self.sessions:
                return b"", False
            self.open(*self.sessions.pop(0))
        more = bool(self.sessions)
        data = self.file.read(READ)
        if data or not more:
            self.at += len(data)
            self.punch()
            return data, False
        os.unlink(self.file.name)
        self.file.close()
        self.file = None
        return b"", True

    def open(self, name, rate, form):
        if form != "S32_LE":
            raise Lost(f"the card was set up with {form} instead of S32_LE")
        self.file = (self.card.folder / name).open("rb+", buffering=0)
        self.at = self.punched = 0
        self.rate = rate

    def punch(self):
        """Gives the disk back what was read; where the file system cannot, the file grows."""
        whole = self.at // READ * READ
        if whole > self.punched:
            length = ctypes.c_long(whole - self.punched)
            self.libc.fallocate(self.file.fileno(), PUNCH_HOLE, ctypes.c_long(self.punched), length)
            self.punched = whole

    def close(self):
        if self.file:
            self.file.close()


class Follower:
    """Where the sound stands. `candidates()` gives the items that may be heard next, likeliest first, and `judge` is
    called with each `Break`."""

    def __init__(self, capture, recordings, candidates, judge):
        self.capture = capture
        self.recordings = recordings
        self.candidates = candidates
        self.judge = judge
        self.rest = b""
        self.item = None
        self.frame = 0
        self.sound = None
        self.left = None
        self.silence = 0
        self.session = False
        self.exact = 0
        self.heard_s = 0.0

    def poll(self):
        """Takes what is new. Returns how many frames there were."""
        frames = 0
        while True:
            data, over = self.capture.read()
            if not data and not over:
                return frames
            frames += len(data) // FRAME
            if self.capture.rate:
                self.heard_s += len(data) / FRAME / self.capture.rate
            self.take(data, over)

    def take(self, data, over):
        data = self.rest + data
        if not over:
            data, self.rest = data[: len(data) // FRAME * FRAME], data[len(data) // FRAME * FRAME :]
        else:
            self.rest = b""
        while data:
            data = self.on_course(data)
            if not data:
                break
            # Off it: silence, another place, or more is needed to say.
            self.leave()
            quiet = self.silent_frames(data)
            if quiet:
                self.silence += quiet
                data = data[quiet * FRAME :]
                continue
            if len(data) < NEEDED * FRAME and not over:
                self.rest = data + self.rest
                return
            data = self.join(data)
        if over:
            self.leave()
            self.session = True

    def on_course(self, data):
        """Goes along with the expected sound; returns what is left from the first frame that differs."""
        while data and self.sound:
            meant = self.sound.pcm(self.frame, min(len(data) // FRAME, self.sound.rate))
            if not meant:
                break
            same = len(meant) if data.startswith(meant) else first_difference(data, meant)
            self.frame += same // FRAME
            self.exact += same // FRAME
            data = data[same:]
            if same < len(meant):
                break
        return data

    def leave(self):
        if self.sound:
            self.left = (self.item, self.frame, self.frame == self.sound.frames)
            self.sound = None
            self.silence = 0
            self.session = False

    @staticmethod
    def silent_frames(data):
        """Frames of silence at the beginning. Recordings have frames of zeros too, but not so many in a row."""
        count = (len(data) - len(data.lstrip(b"\0"))) // FRAME
        return count if count >= MARK or count == len(data) // FRAME else 0

    def join(self, data):
        """Finds where the sound goes on, has it judged, and goes on from there."""
        was, left, whole = self.left or (None, 0, False)
        item, found, faded, early = self.locate(data, was, left)
        self.item, self.frame, self.sound = item, found + early, self.recordings[item.track.number]
        self.judge(Break(was, left, whole, self.silence, faded, item, found, self.session))
        self.silence, self.session = 0, False
        self.frame += faded
        return data[faded * FRAME :]

    def locate(self, data, was, left):
        """(item, frame, how many frames are faded in, how many of them went as silence before)."""
        options = self.candidates()
        # The usual ones first: straight on where it broke off, or the start of what follows.
        places = [(was, left)] if was else []
        places += [(item, 0) for item in options]
        for item, frame in places:
            sound = self.recordings[item.track.number]
            if sound.rate == self.capture.rate:
                # The first frames of a fade are silence too, and may have been counted as such.
                for early in range(4 if self.silence else 1):
                    faded = self.agrees(data, sound, frame + early)
                    if faded is not None:
                        self.silence -= early
                        return item, frame, faded, early
        for item in ([was] if was else []) + options:
            sound = self.recordings[item.track.number]
            if sound.rate != self.capture.rate:
                continue
            for skip in (0, FADE):
                mark = data[skip * FRAME : (skip + MARK) * FRAME]
                found = sound.find(mark, left // sound.rate) if len(mark) == MARK * FRAME else None
                if found is not None and found >= skip and self.agrees(data, sound, found - skip) is not None:
                    return item, found - skip, self.agrees(data, sound, found - skip), 0
        raise Lost(self.describe(data, was, left, options))

    @staticmethod
    def agrees(data, sound, frame):
        """How many frames are faded in when the sound at `frame` is that of `data`; None when it is not."""
        count = min(NEEDED, len(data) // FRAME, sound.frames - frame)
        meant = sound.pcm(frame, count)
        same = first_difference(data, meant)
        if count and same == len(meant):
            return 0
        # Near the end of a track less than a whole fade may be left.
        faded = min(FADE, count)
        tail = faded * FRAME
        if count and data[tail : count * FRAME] == meant[tail:] and is_faded(data[:tail], meant[:tail]):
            return faded
        return None

    def describe(self, data, was, left, options):
        """What little can be said of a sound that was not expected here."""
        said = f"at {self.heard_s:.2f} s, after frame {left} of item {was.number if was else '-'}"
        for number, sound in self.recordings.items():
            for skip in (0, FADE, 2 * FADE):
                mark = data[skip * FRAME : (skip + MARK) * FRAME]
                found = sound.find(mark) if len(mark) == MARK * FRAME and sound.rate == self.capture.rate else None
                if found is not None:
                    return (
                        f"{said}: frame {found - skip} of track {number} is heard; expected one of items "
                        f"{[(item.number, item.track.number) for item in options]}"
                    )
        meant = self.recordings[was.track.number].pcm(left, 8) if was else b""
        return f"{said}: heard {data[:32].hex()}, which is in no recording; its next frames are {meant.hex()}"


def first_difference(data, meant):
    """Bytes of whole frames that agree."""
    low, high = 0, min(len(data), len(meant))
    if data[:high] == meant[:high]:
        return high // FRAME * FRAME
    while high - low > 1:
        middle = (low + high) // 2
        if data[low:middle] == meant[low:middle]:
            low = middle
        else:
            high = middle
    return low // FRAME * FRAME
