"""A thin ctypes face of libasound's PCM calls, for probing the virtual card."""

import ctypes as c
import errno
import select

lib = c.CDLL("libasound.so.2")
for name in ("avail", "avail_update", "writei", "rewind", "forward", "rewindable"):
    getattr(lib, "snd_pcm_" + name).restype = c.c_long
lib.snd_pcm_format_value.argtypes = [c.c_char_p]
STATES = "OPEN SETUP PREPARED RUNNING XRUN DRAINING PAUSED SUSPENDED DISCONNECTED".split()
NONBLOCK = 1


def check(result):
    if result < 0:
        raise OSError(-result, errno.errorcode.get(-result, str(result)))
    return result


class Pcm:
    """A playback PCM; every failed call raises OSError with ALSA's errno."""

    def __init__(self, name, mode=0):
        self.p = c.c_void_p()
        check(lib.snd_pcm_open(c.byref(self.p), name.encode(), 0, mode))

    def setup(self, fmt="S16_LE", rate=48000, channels=2, buffer=12000, period=3000,
              avail_min=6000, start=1, access=3, never_stop=False):
        hw = c.create_string_buffer(lib.snd_pcm_hw_params_sizeof())
        check(lib.snd_pcm_hw_params_any(self.p, hw))
        check(lib.snd_pcm_hw_params_set_access(self.p, hw, access))
        check(lib.snd_pcm_hw_params_set_format(
            self.p, hw, lib.snd_pcm_format_value(fmt.encode())))
        check(lib.snd_pcm_hw_params_set_channels(self.p, hw, channels))
        check(lib.snd_pcm_hw_params_set_rate(self.p, hw, rate, 0))
        check(lib.snd_pcm_hw_params_set_buffer_size(self.p, hw, c.c_ulong(buffer)))
        check(lib.snd_pcm_hw_params_set_period_size(self.p, hw, c.c_ulong(period), 0))
        self.can_pause = lib.snd_pcm_hw_params_can_pause(hw)
        check(lib.snd_pcm_hw_params(self.p, hw))
        sw = c.create_string_buffer(lib.snd_pcm_sw_params_sizeof())
        check(lib.snd_pcm_sw_params_current(self.p, sw))
        check(lib.snd_pcm_sw_params_set_avail_min(self.p, sw, c.c_ulong(avail_min)))
        check(lib.snd_pcm_sw_params_set_start_threshold(self.p, sw, c.c_ulong(start)))
        if never_stop:
            boundary = c.c_ulong()
            check(lib.snd_pcm_sw_params_get_boundary(sw, c.byref(boundary)))
            check(lib.snd_pcm_sw_params_set_stop_threshold(self.p, sw, boundary))
        check(lib.snd_pcm_sw_params(self.p, sw))
        self.frame = channels * lib.snd_pcm_format_physical_width(
            lib.snd_pcm_format_value(fmt.encode())) // 8
        count = lib.snd_pcm_poll_descriptors_count(self.p)
        self.fds = c.create_string_buffer(8 * count)
        check(lib.snd_pcm_poll_descriptors(self.p, self.fds, count))
        return self

    def write(self, data):
        return check(lib.snd_pcm_writei(self.p, data, c.c_ulong(len(data) // self.frame)))

    def call(self, name, *args):
        return check(getattr(lib, "snd_pcm_" + name)(self.p, *args))

    def avail(self):
        return self.call("avail")

    def delay(self):
        frames = c.c_long()
        self.call("delay", c.byref(frames))
        return frames.value

    def state(self):
        return STATES[lib.snd_pcm_state(self.p)]

    def poll(self, ms):
        """One poll(2) of the card's descriptor; the demangled events, or None."""
        fd = int.from_bytes(self.fds.raw[0:4], "little")
        p = select.poll()
        p.register(fd, select.POLLIN)
        got = p.poll(ms)
        if not got:
            return None
        buf = c.create_string_buffer(self.fds.raw[:6] + got[0][1].to_bytes(2, "little"), 8)
        out = c.c_ushort()
        check(lib.snd_pcm_poll_descriptors_revents(self.p, buf, 1, c.byref(out)))
        return out.value

    def close(self):
        check(lib.snd_pcm_close(self.p))
