"""The cards of the self-test, and what they recorded. Reads the arguments of selftest.py."""

import glob
import os
import random
import subprocess
import sys
import threading
import time

LIBRARY, WORK = sys.argv[1:3]
CONF = os.path.join(WORK, "asound.conf")
os.environ["ALSA_CONFIG_PATH"] = CONF
CARDS = {
    "real": "", "fast": "speed 8", "demand": 'clock "demand"', "slow": "speed 0.5",
    "strict": 'clock "demand" formats "S16_LE,S24_3LE" rates "44100,48000" channels "2"',
    "quiet": 'capture "no"', "pausing": 'pause "yes"', "faults": "", "api": "", "rewinds": "",
    "drains": "", "idle": 'clock "demand"', "held": 'clock "demand"', "frozen": "", "pulled": "", "mapped": "", "asleep": "",
}


def configure():
    with open(CONF, "w") as f:
        f.write("</usr/share/alsa/alsa.conf>\npcm_type.vcard { lib \"%s\" }\n" % LIBRARY)
        for name, extra in CARDS.items():
            os.makedirs(os.path.join(WORK, name))
            f.write('pcm.%s { type vcard dir "%s/%s" %s }\n' % (name, WORK, name, extra))


configure()
from alsapcm import NONBLOCK, Pcm  # noqa: E402, F401 (for the checks; reads ALSA_CONFIG_PATH when it opens)


def noise(frames, frame_bytes, seed=1):
    return random.Random(seed).randbytes(frames * frame_bytes)


def captures(card):
    return sorted(glob.glob(os.path.join(WORK, card, "capture-*.raw")))


def captured(card, index=-1):
    with open(captures(card)[index], "rb") as f:
        return f.read()


def events(card, kind=None):
    """[(ns, event, {key: value})] of a card's log."""
    result = []
    with open(os.path.join(WORK, card, "events.log")) as f:
        for line in f:
            ns, event, *pairs = line.split()
            if kind in (None, event):
                result.append((int(ns), event, dict(p.split("=", 1) for p in pairs)))
    return result


def fault(card, text):
    path = os.path.join(WORK, card, "fault")
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def aplay(card, data, fmt="S16_LE", rate=48000, channels=2):
    started = time.monotonic()
    done = subprocess.run(["aplay", "-q", "-D", card, "-t", "raw", "-f", fmt, "-r", str(rate),
                           "-c", str(channels)], input=data, capture_output=True, timeout=60)
    return done, time.monotonic() - started


def fails(code, call, *args):
    try:
        call(*args)
    except OSError as e:
        assert e.errno == code, "errno %s, expected %s" % (e.errno, code)
        return
    raise AssertionError("succeeded, expected errno %d" % code)


def sounding_s(card):
    """Seconds from the last first frame to the end of the last drain."""
    return (events(card, "drain")[-1][0] - int(events(card, "first_frame")[-1][2]["at"])) / 1e9


def blocked_poll(pcm, change, limit_ms):
    """Milliseconds from a change of the fault file to the wake-up by it."""
    changed = []
    timer = threading.Timer(0.03, lambda: (changed.append(time.monotonic()), change()))
    timer.start()
    while (seen := pcm.poll(limit_ms)) == 0:  # null events: other files of the folder
        pass
    woken = time.monotonic()
    timer.join()
    return seen, (woken - changed[0]) * 1000
