"""The checks of selftest.sh: python3 selftest.py LIBRARY WORKDIR."""

import errno
import glob
import os
import random
import resource
import select
import subprocess
import sys
import threading
import time
import traceback

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
from alsapcm import NONBLOCK, Pcm  # noqa: E402 (reads ALSA_CONFIG_PATH when it opens)


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


def the_pace_is_real_time():
    data = noise(96000, 4)
    done, _ = aplay("real", data)
    assert done.returncode == 0, done.stderr
    frames = len(captured("real")) // 4
    assert captured("real")[:len(data)] == data
    took = sounding_s("real")
    assert abs(took / (frames / 48000) - 1) < 0.05, "%.3f s" % took


def a_speed_of_8_and_of_one_half_hold():
    for card, speed, frames in (("fast", 8, 384000), ("slow", 0.5, 24000)):
        data = noise(frames, 4)
        done, _ = aplay(card, data)
        assert done.returncode == 0, done.stderr
        assert captured(card)[:len(data)] == data
        took = sounding_s(card)
        want = len(captured(card)) / 4 / 48000 / speed
        assert abs(took / want - 1) < 0.05, "%s: %.3f s, not %.3f" % (card, took, want)


def the_clock_on_demand_takes_a_minute_at_once():
    done, took = aplay("demand", noise(48000 * 60, 4))
    assert done.returncode == 0 and took < 10, "%.1f s" % took
    assert len(captured("demand")) >= 48000 * 60 * 4
    assert not events("demand", "xrun")


def an_idle_writer_on_demand_neither_spins_nor_underruns():
    pcm = Pcm("idle").setup()
    pcm.write(noise(6000, 4))
    until = time.monotonic() + 0.5
    wakes = 0
    while time.monotonic() < until:
        pcm.poll(100)
        wakes += 1
    assert 10 < wakes < 400, wakes
    assert pcm.state() == "RUNNING" and pcm.delay() == 0
    pcm.write(noise(6000, 4))
    assert pcm.poll(100) & select.POLLOUT
    pcm.close()


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


def delay_avail_and_the_timer_follow_the_clock():
    pcm = Pcm("api", NONBLOCK).setup()
    assert pcm.state() == "PREPARED" and pcm.avail() == 12000
    assert pcm.poll(0) & select.POLLOUT, "not ready when prepared"
    assert pcm.write(noise(12000, 4)) == 12000 and pcm.state() == "RUNNING"
    start = time.monotonic()
    fails(errno.EAGAIN, pcm.write, bytes(12000 * 4))
    assert pcm.poll(0) is None, "ready with a full buffer"
    assert pcm.poll(2000) & select.POLLOUT
    waited = time.monotonic() - start
    assert 0.12 < waited < 0.2, "avail_min of 125 ms after %.3f s" % waited
    avail, delay = pcm.avail(), pcm.delay()
    assert 6000 <= avail < 10000 and 0 <= 12000 - avail - delay < 100
    time.sleep(0.05)
    assert 8000 < pcm.avail() < 12000, "no progress without poll"
    pcm.close()
    drop = events("api", "drop")[-1][2]
    assert int(drop["consumed"]) + int(drop["discarded"]) == 12000
    assert len(captured("api")) == int(drop["consumed"]) * 4, "not what was heard"


def the_start_threshold_is_honoured():
    pcm = Pcm("api").setup(start=6000)
    pcm.write(noise(5999, 4))
    time.sleep(0.02)
    assert pcm.state() == "PREPARED" and pcm.delay() == 5999
    pcm.write(noise(1, 4))
    assert pcm.state() == "RUNNING"
    pcm.close()


def an_underrun_is_found_at_the_time_it_was_due():
    pcm = Pcm("api").setup()
    data = noise(4800, 4)
    pcm.write(data)
    time.sleep(0.2)
    assert pcm.poll(0) & select.POLLERR
    assert pcm.state() == "XRUN"
    fails(errno.EPIPE, pcm.avail)
    fails(errno.EPIPE, pcm.write, data)
    xrun = events("api", "xrun")[-1][2]
    first = events("api", "first_frame")[-1][2]
    assert abs(int(xrun["at"]) - int(first["at"]) - 100e6) < 1e6
    pcm.call("prepare")
    pcm.write(data)
    pcm.call("drain")
    pcm.close()
    assert captured("api") == data * 2
    assert events("api", "close")[-1][2]["xruns"] == "1"


def with_a_high_stop_threshold_it_plays_on():
    pcm = Pcm("api").setup(never_stop=True)
    data = noise(4800, 4)
    pcm.write(data)
    time.sleep(0.4)
    assert pcm.state() == "RUNNING" and pcm.delay() < -12000 and pcm.avail() > 24000
    late = noise(36000, 4, seed=3)
    pcm.write(late)  # more than a buffer, most of it too late to be heard
    pcm.close()
    assert captured("api")[:len(data)] == data and len(captured("api")) > 19200 * 4


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


def unplugged_everything_says_enodev_and_poll_wakes():
    pcm = Pcm("pulled", NONBLOCK).setup()
    data = noise(12000, 4)
    pcm.write(data)
    seen, ms = blocked_poll(pcm, lambda: fault("pulled", "unplug\n"), 5000)
    assert seen and seen & select.POLLERR and seen & select.POLLHUP and ms < 50, (seen, ms)
    assert pcm.poll(0) & select.POLLHUP, "not ready any more"
    assert pcm.state() == "DISCONNECTED"
    for call in (pcm.avail, pcm.delay, lambda: pcm.call("prepare"), lambda: pcm.call("drop"),
                 lambda: pcm.call("avail_update"), lambda: pcm.write(data), lambda: pcm.call("wait", 1000)):
        fails(errno.ENODEV, call)
    fails(errno.ENODEV, Pcm, "pulled")
    fault("pulled", "")
    time.sleep(0.02)
    fails(errno.ENODEV, pcm.avail)  # this handle is lost for good
    pcm.close()
    gone = events("pulled", "disconnect")[-1][2]
    assert int(gone["consumed"]) + int(gone["lost"]) == 12000 and int(gone["lost"]) > 6000
    assert captured("pulled") == data[:int(gone["consumed"]) * 4]
    Pcm("pulled").setup().close()  # plugged in again


def unplugged_in_a_blocking_write_or_drain_it_returns_enodev():
    for act in ("write", "drain"):
        pcm = Pcm("pulled").setup()
        pcm.write(noise(12000, 4))
        threading.Timer(0.03, fault, ("pulled", "unplug")).start()
        start = time.monotonic()
        fails(errno.ENODEV, (lambda: pcm.write(noise(12000, 4))) if act == "write"
              else (lambda: pcm.call("drain")))
        assert time.monotonic() - start < 0.2
        pcm.close()
        os.unlink(os.path.join(WORK, "pulled", "fault"))


def unplugged_before_prepare_it_fails():
    pcm = Pcm("pulled").setup()
    fault("pulled", "unplug")
    time.sleep(0.02)
    fails(errno.ENODEV, pcm.call, "prepare")
    pcm.close()
    fault("pulled", "")


def busy_refuses_opens_and_leaves_the_open_one():
    pcm = Pcm("faults").setup()
    pcm.write(noise(9600, 4))
    fault("faults", "busy")
    time.sleep(0.02)
    fails(errno.EBUSY, Pcm, "faults")
    assert events("faults", "open_failed")[-1][2]["error"] == "EBUSY"
    pcm.write(noise(4800, 4))
    pcm.call("drain")
    pcm.close()
    assert len(captured("faults")) == 14400 * 4
    fault("faults", "")


def a_forced_xrun_comes_once_after_what_was_written():
    pcm = Pcm("faults").setup()
    data = noise(12000, 4)
    for count in (1, 2):
        pcm.write(data)
        fault("faults", "xrun")
        time.sleep(0.02)
        fails(errno.EPIPE, pcm.avail)
        assert captured("faults") == data * (2 * count - 1)
        pcm.call("prepare")
        pcm.write(data)
        pcm.call("drain")  # the same file does it no second time
        assert captured("faults") == data * 2 * count
        pcm.call("prepare")
    pcm.close()
    assert len(events("faults", "xrun")) == 2
    pcm = Pcm("faults").setup()  # nor after another open
    pcm.write(data)
    pcm.call("drain")
    pcm.close()
    assert len(events("faults", "xrun")) == 2
    fault("faults", "")


def frozen_it_stands_and_goes_on_where_it_was():
    pcm = Pcm("frozen", NONBLOCK).setup()
    data = noise(12000, 4)
    pcm.write(data)
    fault("frozen", "freeze")
    time.sleep(0.02)
    held = pcm.delay()
    assert pcm.poll(300) in (None, 0)  # the change of the file itself may wake it
    assert pcm.poll(300) is None
    assert pcm.state() == "RUNNING" and pcm.delay() == held
    fault("frozen", "")
    while not pcm.poll(1000):
        pass
    assert 4000 < pcm.delay() <= 6000 and pcm.state() == "RUNNING"
    fails(errno.EAGAIN, pcm.call, "drain")
    while pcm.poll(1000) == 0 or pcm.state() == "DRAINING":
        pass
    pcm.close()
    assert captured("frozen") == data
    assert [e[2]["state"] for e in events("frozen", "fault")] == ["begin", "end"]


def frozen_on_demand_it_takes_one_buffer():
    fault("held", "freeze")
    pcm = Pcm("held", NONBLOCK).setup()
    assert pcm.write(noise(12000, 4)) == 12000
    fails(errno.EAGAIN, pcm.write, noise(1, 4))
    assert pcm.poll(50) in (None, 0) and not captured("held")
    fault("held", "")
    while not pcm.poll(1000):
        pass
    assert pcm.delay() == 0
    pcm.close()
    assert len(captured("held")) == 48000


def asleep_it_plays_nothing_and_goes_on_where_it_was():
    data = noise(24000, 4)
    pcm = Pcm("asleep", NONBLOCK).setup(buffer=24000)
    pcm.write(data)
    seen, _ = blocked_poll(pcm, lambda: fault("asleep", "suspend"), 5000)
    assert seen & select.POLLERR and pcm.state() == "SUSPENDED"
    fails(errno.ESTRPIPE, pcm.delay)
    fails(errno.ESTRPIPE, pcm.write, data[:4])
    time.sleep(0.1)
    # The library drops what a plugin's resume returns (EAGAIN): only the state tells.
    pcm.call("resume")
    assert pcm.state() == "SUSPENDED"
    fault("asleep", "")
    pcm.call("resume")
    assert pcm.state() == "RUNNING" and pcm.delay() > 15000
    while pcm.state() == "RUNNING":
        pcm.poll(1000)
    pcm.close()
    assert captured("asleep") == data


def a_card_that_cannot_resume_is_prepared():
    data = noise(24000, 4)
    pcm = Pcm("asleep", NONBLOCK).setup(buffer=24000)
    pcm.write(data)
    blocked_poll(pcm, lambda: fault("asleep", "sleep"), 5000)
    fault("asleep", "")
    pcm.call("resume")
    assert pcm.state() == "SUSPENDED"
    pcm.call("prepare")
    assert pcm.state() == "PREPARED" and pcm.write(data) == 24000
    pcm.close()


def a_writer_of_silence_costs_little():
    pcm = Pcm("quiet", NONBLOCK).setup(buffer=12000, avail_min=6000)
    zeros = bytes(48000)
    before = resource.getrusage(resource.RUSAGE_SELF)
    until = time.monotonic() + 4
    while time.monotonic() < until:
        if pcm.poll(1000):
            pcm.write(zeros[:pcm.avail() * 4])
    after = resource.getrusage(resource.RUSAGE_SELF)
    pcm.close()
    percent = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 4 * 100
    assert percent < 0.3, "%.3f %% of a core" % percent
    return "%.3f %% of a core, the Python writer included" % percent


def every_line_of_the_log_can_be_read():
    for card in CARDS:
        last = 0
        if not os.path.exists(os.path.join(WORK, card, "events.log")):
            continue
        for ns, _, keys in events(card):
            assert ns >= last and "pid" in keys
            last = ns


CHECKS = [value for name, value in list(globals().items())
          if getattr(value, "__module__", None) == "__main__" and "_" in name
          and name not in ("sounding_s", "blocked_poll")]


def main():
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            note = check()
            print("ok    " + name + (": " + note if note else ""), flush=True)
        except Exception as problem:
            failed += 1
            print("FAIL  %s: %s" % (name, problem or type(problem).__name__), flush=True)
            traceback.print_exc()
    print("%d checks, %d failed" % (len(CHECKS), failed))
    return 1 if failed else 0


sys.exit(main())
