"""The card keeps time: its pace, its buffer, and what happens when that is empty."""

import errno
import resource
import select
import time

from cards import NONBLOCK, Pcm, aplay, captured, events, fails, noise, sounding_s


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
