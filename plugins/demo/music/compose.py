#!/usr/bin/env python3
"""Composes and renders "First Light", the three pieces of Segue's demo plugin.

    python3 compose.py FOLDER      writes 1-dew.wav, 2-slow-mist.wav, 3-eclaircie.wav and whole.wav

One recording in D major at 96 beats a minute, cut at bar lines into three: strings are still ringing and
the pad is already swelling where the first cut falls. Played without a gap the cuts cannot be heard;
a player that loses or adds even a few milliseconds stumbles there.
Standard library only; RATE=48000 in the environment renders at another rate. Takes about a minute.
"""

import array
import os
import sys
import wave

sys.dont_write_bytecode = True  # a __pycache__ in the package would change its fingerprint

from instruments import RATE, bass, bell, frames, limit, marimba, pad, pluck, reverb  # noqa: E402

BEAT = 0.625
BAR = 4 * BEAT
#: (file name, bars). Bars are 2.5 s, so each piece is a whole number of milliseconds and of frames.
PIECES = [("1-dew", 8), ("2-slow-mist", 8), ("3-eclaircie", 10)]

#: The walk that the outer pieces share, one chord a bar, from the bass up.
WALK = [
    [50, 57, 62, 64, 66],  # D add9
    [49, 57, 61, 64, 69],  # A over C sharp
    [47, 54, 62, 66, 69],  # B minor 7
    [43, 50, 59, 62, 69],  # G add9
    [42, 50, 57, 62, 66],  # D over F sharp
    [40, 52, 59, 62, 67],  # E minor 7
    [43, 50, 59, 62, 66],  # G major 7
    [45, 52, 57, 62, 64],  # A sus4, resolved in its second half
]

#: Melody of the first piece: (bar, beat, MIDI note).
TUNE = [
    (1, 2, 76), (1, 3, 74),
    (2, 0, 78), (2, 1.5, 76), (2, 2, 74), (3, 0, 71), (3, 1, 74), (3, 2, 76),
    (4, 0, 81), (4, 1.5, 78), (4, 2, 76), (4, 3, 74), (5, 0, 76), (5, 1, 79), (5, 2, 78), (5, 3, 76),
    (6, 0, 74), (6, 1.5, 78), (6, 2, 81), (7, 0, 76), (7, 2, 73),
]

#: Held chords of the second piece: (first bar, bars, notes).
MIST = [
    (7.5, 2.9, [50, 57, 61, 64, 66]),
    (10, 2.4, [47, 54, 57, 62, 66]),
    (12, 2.4, [43, 50, 57, 59, 66]),
    (14, 1.4, [45, 52, 57, 62, 64]),
    (15, 1.5, [45, 52, 57, 61, 64]),
    (16, 2.2, [50, 57, 62, 66]),
]
MIST_BASS = [(8, 38), (9, 38), (10, 35), (11, 35), (12, 43), (13, 43), (14, 45), (15, 33)]

#: Bells of the second piece, in groups of three beats against four: (beat from bar 8, MIDI note).
BELLS = [
    (0, 78), (1.5, 81), (3, 85), (4.5, 81), (6, 76), (8, 78), (9.5, 74), (11, 73), (12.5, 69), (14, 78),
    (16, 83), (17.5, 81), (19, 78), (20.5, 74), (22, 76), (24, 76), (25.5, 74), (27, 69), (28, 73), (30, 76),
]


class Mix:
    """Stereo tracks that notes are added to: dry, and a send to the room."""

    def __init__(self, seconds):
        length = frames(seconds)
        self.left, self.right, self.send = ([0.0] * length for _ in range(3))

    def add(self, seconds, note, level, pan=0.0, wet=0.3):
        """Adds a note at a time; pan from -1 (left) to 1 (right)."""
        at = frames(seconds)
        end = min(at + len(note), len(self.left))
        for track, gain in ((self.left, level * (1 - max(0.0, pan))), (self.right, level * (1 + min(0.0, pan))),
                            (self.send, level * wet)):
            track[at:end] = [x + gain * y for x, y in zip(track[at:end], note)]

    def render(self):
        """Dry and room together through the limiter, the very end faded to silence."""
        sides = []
        for dry, spread in ((self.left, 0), (self.right, 23)):
            wet = reverb(self.send, spread)
            side = [limit(LOUDNESS * (a + b)) for a, b in zip(dry, wet)]
            tail = frames(1.2)
            for i in range(tail):
                side[-1 - i] *= (i / tail) ** 1.5
            sides.append(side)
        return sides


#: Brings the loudest bar just under the limiter's knee.
LOUDNESS = 0.9


def dew(mix):
    """Plucked strings: the walk in broken chords, a tune above it."""
    for bar, chord in enumerate(WALK):
        swell = 0.2 + 0.017 * bar
        for step, voice in enumerate([0, 2, 3, 4, 3, 2, 4, 3]):
            midi = chord[voice]
            if bar == 7 and step > 3 and midi == 62:
                midi = 61
            lift = 1.15 if step in (0, 3) else 0.85
            late = 0.006 * ((step * 5 + bar * 3) % 4)  # fingers are not a clock
            mix.add(bar * BAR + step * BEAT / 2 + late, pluck(midi), swell * lift, -0.35 + 0.1 * voice, 0.22)
    for bar, beat, midi in TUNE:
        mix.add(bar * BAR + beat * BEAT + 0.008, pluck(midi, 2.4, 0.5), 0.36, 0.3, 0.45)


def mist(mix):
    """A warm pad that breathes, bells with echoes, and a low pulse."""
    for bar, bars, notes in MIST:
        for i, midi in enumerate(notes):
            level = 0.062 if i else 0.075
            for detune, pan in ((-5, -0.6), (5, 0.6)):
                mix.add(bar * BAR, pad(midi, bars * BAR, detune), level, pan, 0.35)
    for bar, midi in MIST_BASS:
        mix.add(bar * BAR, bass(midi), 0.21, 0.0, 0.1)
        mix.add((bar + 0.625) * BAR, bass(midi, 1.4), 0.09, 0.0, 0.1)
    for i, (beat, midi) in enumerate(BELLS):
        for echo, level in enumerate((0.17, 0.065, 0.026)):
            pan = (-0.45, 0.5, -0.6)[echo] * (1 if i % 2 else -1)
            mix.add(8 * BAR + (beat + 0.75 * echo) * BEAT, bell(midi), level, pan, 0.5)


def eclaircie(mix):
    """Two marimbas: six notes against eight, over the walk; the tune returns in bells; then a last chord."""
    start = 16
    for bar, chord in enumerate(WALK):
        upper = [n + 12 if n < 60 else n for n in chord[1:]]
        growth = min(1.0, 0.62 + 0.07 * bar)
        for step in range(16):
            at = (start + bar) * BAR + step * BEAT / 4
            right = sorted(upper)[(0, 2, 1, 3, 2, 1)[(bar * 16 + step) % 6]] + (12 if bar >= 4 and step % 8 == 6 else 0)
            if bar == 7 and step > 7 and right % 12 == 2:
                right -= 1
            mix.add(at, marimba(right), (0.24 if step % 4 == 0 else 0.17) * growth, 0.35, 0.28)
            if bar >= 2 and step % 8 in (0, 3, 6):
                mix.add(at, marimba(sorted(upper)[step % 3]), 0.2 * growth, -0.4, 0.28)
        mix.add((start + bar) * BAR, bass(chord[0] if chord[0] < 47 else chord[0] - 12), 0.24, 0.0, 0.1)
        mix.add((start + bar) * BAR, pluck(chord[0]), 0.15, -0.15, 0.25)
    for bar, beat, midi in TUNE:
        if bar >= 4:
            mix.add((start + bar) * BAR + beat * BEAT, bell(midi), 0.12, -0.2 if beat < 2 else 0.25, 0.5)
    end = (start + 8) * BAR
    mix.add(end, bass(38, 4.6), 0.26, 0.0, 0.15)
    for i, midi in enumerate([50, 57, 62, 66, 69, 74, 76, 81]):
        mix.add(end + 0.07 * i, pluck(midi, 4.4), 0.17, -0.5 + 0.14 * i, 0.4)
    for i, midi in enumerate([66, 69, 74, 76, 81]):
        mix.add(end + (0.5 + 0.25 * i) * BEAT, marimba(midi), 0.18 - 0.025 * i, 0.35, 0.4)
    mix.add(end + 2 * BEAT, bell(86), 0.09, -0.3, 0.6)
    for midi in (50, 57, 62, 66, 69):
        for detune, pan in ((-5, -0.6), (5, 0.6)):
            mix.add(end - 0.8, pad(midi, 2.3 * BAR, detune), 0.05, pan, 0.35)


def write(path, left, right):
    samples = array.array("h", [0]) * (2 * len(left))
    samples[0::2] = array.array("h", [int(round(32767 * x)) for x in left])
    samples[1::2] = array.array("h", [int(round(32767 * x)) for x in right])
    if sys.byteorder == "big":
        samples.byteswap()
    with wave.open(path, "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes(samples.tobytes())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    mix = Mix(sum(bars for _, bars in PIECES) * BAR)
    for piece in (dew, mist, eclaircie):
        piece(mix)
    left, right = mix.render()
    write(os.path.join(folder, "whole.wav"), left, right)
    at = 0
    for name, bars in PIECES:
        end = at + frames(bars * BAR)
        write(os.path.join(folder, name + ".wav"), left[at:end], right[at:end])
        at = end


if __name__ == "__main__":
    main()
