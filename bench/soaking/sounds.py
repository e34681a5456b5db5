"""Recordings of which every frame is known: noise by seed, loud and quiet by the second, no two seconds alike.

Sixteen frames of it occur nowhere else, so that whatever is heard can be told by its sound alone: which track, and
which frame of it."""

import array
import functools
import math
import mmap
import random
import subprocess
import wave

CHANNELS = 2
# What the card is given, S32_LE: there nothing is dithered. The recordings themselves have 16 bits.
FRAME = 4 * CHANNELS
FILE_FRAME = 2 * CHANNELS
# So many frames are unique.
MARK = 16


def high_bytes(bits):
    """A random byte → the high byte of a 16-bit sample that uses so many bits."""
    span = 1 << (bits - 8)
    return bytes((value % span - span // 2) & 0xFF for value in range(256))


LOUDNESS = {bits: high_bytes(bits) for bits in range(9, 15)}


class Sound:
    """What a decoder must make of a track. `key` is its seed."""

    def __init__(self, key, rate, frames):
        self.key = key
        self.rate = rate
        self.frames = frames

    def second(self, number):
        """PCM of the second with this number (S32_LE, stereo); the last one may be shorter."""
        return second(self.key, self.rate, number)[: max(0, self.frames - number * self.rate) * FRAME]

    def pcm(self, first, count):
        """Frames from `first` on, fewer at the end."""
        count = min(count, self.frames - first)
        parts = []
        while count > 0:
            number, offset = divmod(first, self.rate)
            part = self.second(number)[offset * FRAME : (offset + count) * FRAME]
            parts.append(part)
            first, count = first + len(part) // FRAME, count - len(part) // FRAME
        return b"".join(parts)

    def find(self, mark, about=0):
        """The frame at which `mark` (PCM of MARK frames) stands, or None. Looked for around second `about` first."""
        seconds = math.ceil(self.frames / self.rate)
        for number in sorted(range(seconds), key=lambda number: abs(number - about)):
            found = find_aligned(self.pcm(number * self.rate, self.rate + MARK), mark)
            if found is not None:
                return number * self.rate + found
        return None

    def write(self, path):
        with wave.open(str(path), "wb") as out:
            out.setnchannels(CHANNELS)
            out.setsampwidth(2)
            out.setframerate(self.rate)
            for number in range(math.ceil(self.frames / self.rate)):
                pcm = self.second(number)
                short = bytearray(len(pcm) // 2)
                short[0::2], short[1::2] = pcm[2::4], pcm[3::4]
                out.writeframesraw(short)


@functools.lru_cache(maxsize=16)
def second(key, rate, number):
    generator = random.Random(f"{key}/{number}")
    noise = generator.randbytes(rate * FILE_FRAME)
    pcm = bytearray(rate * FRAME)
    pcm[2::4], pcm[3::4] = noise[0::2], noise[1::2].translate(LOUDNESS[generator.randrange(9, 15)])
    return bytes(pcm)


class Decoded:
    """The same for a lossy track: what the very daemon made of it when nothing disturbed it."""

    def __init__(self, path, rate, first, frames):
        with path.open("rb") as file:
            self.whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rate = rate
        self.first = first
        self.frames = frames

    def pcm(self, first, count):
        count = min(count, self.frames - first)
        return self.whole[(self.first + first) * FRAME : (self.first + first + count) * FRAME]

    def find(self, mark, about=0):
        start, end = self.first * FRAME, (self.first + self.frames) * FRAME
        at = max(start, start + (about - 1) * self.rate * FRAME)
        for begin in (at, start):
            while (begin := self.whole.find(mark, begin, end)) >= 0:
                if (begin - start) % FRAME == 0:
                    return (begin - start) // FRAME
                begin += 1
        return None


def find_aligned(pcm, mark):
    at = pcm.find(mark)
    while at >= 0 and at % FRAME:
        at = pcm.find(mark, at + 1)
    return at // FRAME if at >= 0 else None


def encode(sound, kind, options, path):
    """Writes the recording as WAV, FLAC or MP3."""
    wav = path.with_suffix(".part.wav")
    sound.write(wav)
    if kind == "wav":
        wav.rename(path)
        return
    command = {"flac": ["flac", "-s", "-f", *options, "-o", path, wav], "mp3": ["lame", "--quiet", *options, wav, path]}
    subprocess.run(command[kind], check=True, stdout=subprocess.DEVNULL)
    wav.unlink()


def samples(pcm):
    values = array.array("i")
    values.frombytes(pcm[: len(pcm) // 4 * 4])
    return values


def is_faded(heard, meant):
    """Whether `heard` is `meant` coming in from silence by a straight line of 5 ms (220 or 240 frames), exact after it.

    A few frames at the line's beginning may be missing, since they are silence."""
    for place, (soft, full) in enumerate(zip(samples(heard), samples(meant))):
        frame = place // CHANNELS
        low, high = min(1, (frame - 2) / 240) * abs(full) - 1, min(1, (frame + 8) / 220) * abs(full) + 1
        if soft * full < 0 or not low <= abs(soft) <= high:
            return False
    return True


def likeness(one, other):
    """How alike two pieces of PCM are, -1 to 1: the correlation of their samples."""
    a, b = samples(one), samples(other)
    norm = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b)) / norm if norm else 0.0
