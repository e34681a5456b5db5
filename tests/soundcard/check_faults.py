"""The card fails as real ones do, when it is told to."""

import errno
import os
import select
import threading
import time

from cards import NONBLOCK, WORK, Pcm, blocked_poll, captured, events, fails, fault, noise


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
