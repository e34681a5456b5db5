"""Whatever a program may do with a card that works."""

import errno
import os
import subprocess
import threading
import time

from cards import NONBLOCK, Pcm, aplay, captured, captures, events, fails, fault, noise


def aplay_is_captured_bit_exact():
    for fmt, frame in (("S16_LE", 4), ("S24_3LE", 6), ("S24_LE", 8), ("S32_LE", 8)):
        data = noise(100003, frame)
        done, _ = aplay("demand", data, fmt, 44100)
        assert done.returncode == 0, done.stderr
        params = events("demand", "params")[-1][2]
        assert params["format"] == fmt and params["rate"] == "44100"
        assert params["capture"] == os.path.basename(captures("demand")[-1])
        got = captured("demand")
        # aplay fills its last period with silence.
        assert got[:len(data)] == data and not any(got[len(data):]), fmt
    assert len(captures("demand")) == 4


def a_restricted_card_refuses_other_settings():
    data = noise(1000, 8)
    for fmt, rate, channels in (("S32_LE", 48000, 2), ("S16_LE", 48000, 1)):
        done, _ = aplay("strict", data, fmt, rate, channels)
        assert done.returncode != 0, (fmt, rate, channels)
    fails(errno.EINVAL, lambda: Pcm("strict").setup(rate=96000))
    done, _ = aplay("strict", noise(1000, 6), "S24_3LE", 44100)
    assert done.returncode == 0, done.stderr


def capture_no_only_counts():
    done, _ = aplay("quiet", noise(4800, 4))
    assert done.returncode == 0 and not captures("quiet")
    assert int(events("quiet", "close")[-1][2]["consumed"]) >= 4800


def a_conversion_above_the_card_works_and_reports_the_unplugging():
    done, _ = aplay("plug:demand", noise(44100, 4), "S16_LE", 44100)
    assert done.returncode == 0, done.stderr
    pcm = Pcm("plug:pulled").setup(rate=32000, fmt="S16_BE")
    pcm.write(noise(12000, 4))
    threading.Timer(0.03, fault, ("pulled", "unplug")).start()
    fails(errno.ENODEV, lambda: [pcm.write(noise(12000, 4)) for _ in range(3)])
    pcm.close()
    fault("pulled", "")


def a_rewound_and_rewritten_frame_is_heard_once():
    pcm = Pcm("rewinds").setup()
    data, other = noise(12000, 4), noise(4000, 4, seed=2)
    for _ in range(3):  # around the ring
        pcm.write(data)
        assert pcm.call("rewind", 4000) == 4000
        pcm.write(other)
        assert pcm.call("rewind", 1000) == 1000
        assert pcm.call("forward", 1000) == 1000
    pcm.call("drain")
    assert pcm.state() == "SETUP"
    pcm.close()
    assert captured("rewinds") == (data[:8000 * 4] + other) * 3


def drain_waits_and_a_non_blocking_one_does_not():
    pcm = Pcm("drains", NONBLOCK).setup()
    data = noise(9600, 4)
    pcm.write(data)
    start = time.monotonic()
    fails(errno.EAGAIN, pcm.call, "drain")
    assert time.monotonic() - start < 0.1 and pcm.state() == "DRAINING"
    while not pcm.poll(1000):
        pass
    assert 0.19 < time.monotonic() - start < 0.3 and pcm.state() == "SETUP"
    pcm.close()
    assert captured("drains") == data and not events("drains", "drop")


def mmap_access_works():
    done = subprocess.run(["aplay", "-q", "-M", "-D", "mapped", "-t", "raw", "-f", "S16_LE", "-r",
                           "48000", "-c", "2"], input=noise(24000, 4), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert captured("mapped")[:96000] == noise(24000, 4)


def hardware_pause_is_refused_or_works():
    pcm = Pcm("api").setup()
    pcm.write(noise(9600, 4))
    assert not pcm.can_pause
    fails(errno.ENOSYS, pcm.call, "pause", 1)
    assert pcm.state() == "RUNNING"
    pcm.close()
    pcm = Pcm("pausing").setup()
    pcm.write(noise(9600, 4))
    assert pcm.can_pause
    pcm.call("pause", 1)
    held = pcm.delay()
    time.sleep(0.3)
    assert pcm.delay() == held and pcm.state() == "PAUSED"
    pcm.call("pause", 0)
    assert 0 <= held - pcm.delay() < 1000
    pcm.call("drain")
    pcm.close()
    assert captured("pausing") == noise(9600, 4)
