"""Instruments and room for compose.py: sound made from arithmetic, standard library only.

Every instrument is a function that returns one note as a list of floats (mono, RATE frames a second,
peak about 1). Rendering is deterministic: noise comes from generators with fixed seeds.
"""

import math
import os
import random
from functools import lru_cache

#: Frames a second of everything rendered here.
RATE = int(os.environ.get("RATE", "48000"))
TABLE = 8192


def hertz(midi):
    """The frequency of a MIDI note number, A4 = 69 = 440 Hz."""
    return 440.0 * 2.0 ** ((midi - 69) / 12.0)


def frames(seconds):
    return int(round(seconds * RATE))


def fade(note, attack_s, release_s):
    """Raised-cosine attack and release, in place: a note that starts or stops at once would click."""
    attack, release = min(frames(attack_s), len(note)), min(frames(release_s), len(note))
    for i in range(attack):
        note[i] *= 0.5 - 0.5 * math.cos(math.pi * i / attack)
    for i in range(release):
        note[-1 - i] *= 0.5 - 0.5 * math.cos(math.pi * i / release)
    return note


@lru_cache(maxsize=None)
def pluck(midi, seconds=2.8, bright=0.35):
    """A plucked string (Karplus-Strong): a burst of noise runs round a delay line that dulls it each time.

    A whole number of frames in the loop would be out of tune, so the loop is made a little short and
    the result is read back at the ratio that makes the pitch right.
    """
    pitch = hertz(midi)
    blend = 0.5 if pitch < 300 else 0.5 * 300 / pitch  # high strings must not die at once
    loop = int(RATE / pitch - blend)
    ratio = pitch * (loop + blend) / RATE
    noise = random.Random(1000 + midi)
    line = [noise.uniform(-1, 1) for _ in range(loop)]
    for _ in range(2):  # a soft fingertip, not a plectrum
        line = [bright * x + (1 - bright) * line[i - 1] for i, x in enumerate(line)]
    mean = sum(line) / loop
    line = [x - mean for x in line]
    peak = max(abs(x) for x in line)
    line = [x / peak for x in line]
    keep = 10 ** (-3.0 * loop / (RATE * (4.5 if midi < 60 else 3.2)))
    out = []
    wanted = frames(seconds)
    while len(out) < wanted * ratio + 2:
        out.extend(line)
        last = line[-1]
        line = [keep * ((1 - blend) * x + blend * y) for x, y in zip(line, [last] + line[:-1])]
    note = []
    for i in range(wanted):
        at = i * ratio
        k = int(at)
        note.append(out[k] + (at - k) * (out[k + 1] - out[k]))
    return fade(note, 0.002, 0.25)


def partials(midi, seconds, recipe):
    """A sum of decaying sines; recipe is [(frequency ratio, level, seconds to a thousandth)]."""
    length = frames(seconds)
    note = [0.0] * length
    for ratio, level, decay in recipe:
        step = 2 * math.pi * hertz(midi) * ratio / RATE
        if step > 2.6:  # near half the sample rate: would alias or hiss
            continue
        keep = 10 ** (-3.0 / (decay * RATE))
        # y[n] = 2 r cos(w) y[n-1] - r^2 y[n-2] is a decaying sine without calling sin() for each frame
        a, b = 2 * keep * math.cos(step), -keep * keep
        y2, y1 = 0.0, level * math.sin(step)
        for i in range(min(length, frames(decay * 1.2))):
            note[i] += y2
            y2, y1 = y1, a * y1 + b * y2
    return note


@lru_cache(maxsize=None)
def bell(midi):
    recipe = [(0.5, 0.15, 3.5), (1, 0.6, 3.6), (2.0, 0.22, 2.4), (2.76, 0.12, 1.4), (5.40, 0.05, 0.5)]
    return fade(partials(midi, 3.8, recipe), 0.004, 0.6)


@lru_cache(maxsize=None)
def marimba(midi):
    low = max(0.6, 1.5 - (midi - 50) * 0.025)
    recipe = [(1, 0.8, low), (3.93, 0.16, 0.32), (9.2, 0.05, 0.09)]
    return fade(partials(midi, low + 0.1, recipe), 0.002, 0.08)


@lru_cache(maxsize=None)
def bass(midi, seconds=2.6):
    recipe = [(1, 0.75, 3.6), (2, 0.2, 2.0), (3, 0.06, 1.0)]
    return fade(partials(midi, seconds, recipe), 0.02, 0.5)


def wave_table(levels):
    return [sum(v * math.sin(2 * math.pi * k * i / TABLE) for k, v in enumerate(levels, 1)) for i in range(TABLE)]


WARM = wave_table([0.6, 0.24, 0.12, 0.05, 0.03, 0.012])


@lru_cache(maxsize=None)
def pad(midi, seconds, detune):
    """A warm held tone; two of them, detuned by some cents to left and right, make the width."""
    step = hertz(midi) * 2 ** (detune / 1200.0) * TABLE / RATE
    mask = TABLE - 1
    start = midi * 977 % TABLE
    table = WARM
    note = [table[int(start + i * step) & mask] for i in range(frames(seconds))]
    swell = 2 * math.pi * (0.17 + 0.01 * (midi % 5)) / RATE
    note = [x * (0.85 + 0.15 * math.sin(i * swell)) for i, x in enumerate(note)]
    return fade(note, 1.1, 1.6)


# The room

def comb(signal, delay, gain):
    """An echo that feeds itself and loses its highs, done block by block of `delay` frames."""
    out, previous = [], [0.0] * delay
    half = gain * 0.5
    for at in range(0, len(signal), delay):
        dull = [half * (a + b) for a, b in zip(previous, [previous[-1]] + previous[:-1])]
        previous = [x + y for x, y in zip(signal[at:at + delay], dull)]
        out.extend(previous)
    return out


def all_pass(signal, delay, gain=0.5):
    """Thickens echoes without colouring them."""
    out, line = [], [0.0] * delay
    for at in range(0, len(signal), delay):
        block = signal[at:at + delay]
        line_next = [x + gain * y for x, y in zip(block, line)]
        out.extend([y - gain * v for y, v in zip(line, line_next)])
        line = line_next
    return out


def reverb(signal, spread, seconds=2.2):
    """A small hall (Schroeder): parallel combs, then all-passes. `spread` in frames makes left differ from right."""
    total = [0.0] * len(signal)
    for ms in (29.7, 37.1, 41.1, 43.7):
        delay = frames(ms / 1000) + spread
        echo = comb(signal, delay, 10 ** (-3.0 * delay / (RATE * seconds)))
        total = [a + 0.25 * b for a, b in zip(total, echo)]
    for ms in (5.0, 1.7):
        total = all_pass(total, frames(ms / 1000) + spread // 2)
    return total


def limit(x, knee=0.6, ceiling=0.84):
    """A soft limiter: untouched below the knee, then bent so that it never reaches the ceiling (-1.5 dBFS)."""
    size = abs(x)
    if size <= knee:
        return x
    room = ceiling - knee
    return math.copysign(knee + room * math.tanh((size - knee) / room), x)
