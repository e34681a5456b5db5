/* A sound card without hardware, for tests: an alsa-lib PCM plugin that
 * consumes what is played to it by a clock of its own, stores it, logs what
 * happens and fails on demand. What it does and how it is configured is in
 * README.md; this file is its ALSA side, card.c the card, record.c its files. */
#include "card.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define MAX_LIST 32

static struct card *locked(snd_pcm_ioplug_t *io)
{
	struct card *c = io->private_data;

	pthread_mutex_lock(&c->lock);
	return c;
}

static int unlocked(struct card *c, int result)
{
	pthread_mutex_unlock(&c->lock);
	return result;
}

static int vcard_start(snd_pcm_ioplug_t *io)
{
	struct card *c = locked(io);

	card_update(c, false);
	if (c->dead)
		return unlocked(c, -ENODEV);
	/* As the kernel does: a start with nothing written is an underrun. */
	if (card_buffered(c, io->appl_ptr) <= 0)
		return unlocked(c, -EPIPE);
	card_start(c);
	card_arm(c, SND_PCM_STATE_RUNNING, io->appl_ptr);
	return unlocked(c, 0);
}

static int vcard_stop(snd_pcm_ioplug_t *io)
{
	struct card *c = locked(io);
	snd_pcm_sframes_t have;

	card_update(c, false);
	have = card_buffered(c, io->appl_ptr);
	if (!c->dead && io->state != SND_PCM_STATE_XRUN && io->state != SND_PCM_STATE_SETUP &&
	    (c->started || have > 0))
		record_event(&c->record, "drop", "consumed=%" PRIu64 " discarded=%ld",
			     c->consumed, (long)(have > 0 ? have : 0));
	card_store(c);
	c->started = c->draining = false;
	card_arm(c, SND_PCM_STATE_SETUP, io->appl_ptr);
	return unlocked(c, 0);
}

static snd_pcm_sframes_t vcard_pointer(snd_pcm_ioplug_t *io)
{
	struct card *c = locked(io);
	snd_pcm_sframes_t at;

	card_update(c, false);
	if (c->dead) {
		/* snd_pcm_avail of a real card fails with ENODEV now, but ioplug has
		 * no way to say so: any error becomes an xrun. It computes
		 * hw_ptr + buffer_size - appl_ptr modulo the boundary; these two
		 * pointers make that -ENODEV. Nothing else reads them any more. */
		io->appl_ptr = 0;
		io->hw_ptr = (snd_pcm_uframes_t)-ENODEV - io->buffer_size;
	} else {
		card_arm(c, io->state, io->appl_ptr);
	}
	at = (snd_pcm_sframes_t)c->hw;
	pthread_mutex_unlock(&c->lock);
	return at;
}

static snd_pcm_sframes_t vcard_transfer(snd_pcm_ioplug_t *io, const snd_pcm_channel_area_t *areas,
					snd_pcm_uframes_t offset, snd_pcm_uframes_t size)
{
	struct card *c = locked(io);
	const char *from = (const char *)areas[0].addr + (areas[0].first + offset * areas[0].step) / 8;
	snd_pcm_uframes_t at = io->appl_ptr % io->buffer_size;
	snd_pcm_uframes_t first, end;

	/* The library offers more than a buffer to a writer that the card has
	 * passed (see stop_threshold); it comes back with the rest. */
	if (size > io->buffer_size)
		size = io->buffer_size;
	first = io->buffer_size - at < size ? io->buffer_size - at : size;
	card_update(c, false);
	if (c->dead)
		return unlocked(c, -ENODEV);
	if (io->state == SND_PCM_STATE_XRUN)
		return unlocked(c, -EPIPE);
	if (io->state == SND_PCM_STATE_SUSPENDED)
		return unlocked(c, -ESTRPIPE);
	card_store(c); /* the new frames may take the place of consumed ones */
	memcpy(c->ring + at * c->frame_bytes, from, first * c->frame_bytes);
	memcpy(c->ring, from + first * c->frame_bytes, (size - first) * c->frame_bytes);
	end = (io->appl_ptr + size) % c->boundary;
	c->offered = false;
	if (c->on_demand && c->started && !c->frozen)
		card_consume_until(c, end);
	card_arm(c, io->state, end);
	pthread_mutex_unlock(&c->lock);
	return (snd_pcm_sframes_t)size;
}

static int vcard_prepare(snd_pcm_ioplug_t *io)
{
	struct card *c = locked(io);

	card_rewind_all(c);
	card_update(c, false);
	if (c->dead)
		return unlocked(c, -ENODEV);
	record_event(&c->record, "prepare", "consumed=%" PRIu64, c->consumed);
	/* Poll-driven players write only when told that they may. */
	card_arm(c, SND_PCM_STATE_PREPARED, 0);
	return unlocked(c, 0);
}

static int vcard_pause(snd_pcm_ioplug_t *io, int enable)
{
	struct card *c = locked(io);

	if (!c->can_pause)
		return unlocked(c, -ENOSYS);
	card_update(c, false);
	if (c->dead)
		return unlocked(c, -ENODEV);
	if (enable && io->state != SND_PCM_STATE_RUNNING)
		return unlocked(c, -EPIPE);
	card_store(c);
	card_rebase(c);
	record_event(&c->record, "pause", "state=%s consumed=%" PRIu64 " buffered=%ld",
		     enable ? "begin" : "end", c->consumed, (long)card_buffered(c, io->appl_ptr));
	card_arm(c, enable ? SND_PCM_STATE_PAUSED : SND_PCM_STATE_RUNNING, io->appl_ptr);
	return unlocked(c, 0);
}

static int vcard_resume(snd_pcm_ioplug_t *io)
{
	struct card *c = locked(io);
	int err;

	card_update(c, true);
	err = c->dead ? -ENODEV : card_resume(c);
	card_arm(c, io->state, io->appl_ptr);
	return unlocked(c, err);
}

static int vcard_hw_params(snd_pcm_ioplug_t *io, snd_pcm_hw_params_t *params)
{
	struct card *c = locked(io);
	size_t frame = (size_t)snd_pcm_format_physical_width(io->format) / 8 * io->channels;
	char *ring;
	int err;

	(void)params;
	card_update(c, false);
	if (c->dead)
		return unlocked(c, -ENODEV);
	ring = calloc(io->buffer_size, frame);
	if (!ring)
		return unlocked(c, -ENOMEM);
	card_store(c);
	free(c->ring);
	c->ring = ring;
	c->frame_bytes = frame;
	c->frames_per_s = io->rate * c->speed;
	/* The library says "can pause" if there is a callback while parameters are
	 * negotiated, and lets a pause succeed if there is none afterwards. */
	c->callbacks.pause = vcard_pause;
	c->hw = c->unstored = 0;
	c->consumed = 0;
	c->xruns = 0;
	err = record_begin_session(&c->record);
	if (err < 0)
		return unlocked(c, err);
	record_event(&c->record, "params",
		     "format=%s rate=%u channels=%u period=%lu buffer=%lu capture=%s",
		     snd_pcm_format_name(io->format), io->rate, io->channels,
		     (unsigned long)io->period_size, (unsigned long)io->buffer_size, c->record.capture);
	return unlocked(c, 0);
}

static int vcard_hw_free(snd_pcm_ioplug_t *io)
{
	struct card *c = locked(io);

	if (c->ring)
		card_store(c);
	if (!c->can_pause)
		c->callbacks.pause = NULL;
	return unlocked(c, 0);
}

static int vcard_sw_params(snd_pcm_ioplug_t *io, snd_pcm_sw_params_t *params)
{
	struct card *c = locked(io);
	snd_pcm_uframes_t silence_size = 0;

	snd_pcm_sw_params_get_boundary(params, &c->boundary);
	snd_pcm_sw_params_get_avail_min(params, &c->avail_min);
	snd_pcm_sw_params_get_stop_threshold(params, &c->stop_threshold);
	snd_pcm_sw_params_get_silence_size(params, &silence_size);
	c->silence = silence_size > 0;
	if (c->stop_threshold > c->boundary)
		c->stop_threshold = c->boundary;
	if (c->avail_min > io->buffer_size)
		c->avail_min = io->buffer_size;
	card_arm(c, io->state, io->appl_ptr);
	return unlocked(c, 0);
}

static int vcard_delay(snd_pcm_ioplug_t *io, snd_pcm_sframes_t *delay)
{
	struct card *c = locked(io);
	snd_pcm_state_t state;

	card_update(c, false);
	state = io->state;
	*delay = card_buffered(c, io->appl_ptr);
	if (c->is_server)
		*delay = *delay > c->too_little ? *delay - c->too_little : 0;
	if (c->dead)
		return unlocked(c, -ENODEV);
	if (state == SND_PCM_STATE_XRUN)
		return unlocked(c, -EPIPE);
	if (state == SND_PCM_STATE_SUSPENDED)
		return unlocked(c, -ESTRPIPE);
	if (state == SND_PCM_STATE_OPEN || state == SND_PCM_STATE_SETUP)
		return unlocked(c, -EBADFD);
	if (c->is_server && state == SND_PCM_STATE_PREPARED)
		return unlocked(c, -EIO);
	return unlocked(c, 0);
}

static int vcard_drain(snd_pcm_ioplug_t *io)
{
	struct card *c = locked(io);

	if (!c->draining) {
		c->draining = true;
		record_event(&c->record, "drain", "state=begin buffered=%ld",
			     (long)card_buffered(c, io->appl_ptr));
		if (!c->started)
			card_start(c);
	}
	for (;;) {
		struct pollfd p = { .fd = c->epoll_fd, .events = POLLIN };

		card_update(c, fault_woken(&c->fault));
		if (io->state != SND_PCM_STATE_DRAINING)
			break;
		card_arm(c, io->state, io->appl_ptr);
		if (io->nonblock)
			return unlocked(c, -EAGAIN);
		pthread_mutex_unlock(&c->lock);
		poll(&p, 1, -1);
		pthread_mutex_lock(&c->lock);
	}
	return unlocked(c, c->dead ? -ENODEV : 0);
}

/* On demand there is always room. A writer that polls and has nothing to write
 * gets POLLOUT once at once and then every 2 ms, so that it does not spin. */
static unsigned short offer(struct card *c)
{
	if (c->on_demand && c->io.state == SND_PCM_STATE_RUNNING) {
		if (c->offered)
			card_arm_at(c, now_ns() + 2000000);
		c->offered = true;
	}
	return POLLOUT;
}

static int vcard_poll_revents(snd_pcm_ioplug_t *io, struct pollfd *pfd, unsigned int nfds,
			      unsigned short *revents)
{
	struct card *c = locked(io);
	int64_t avail;

	if (nfds != 1)
		return unlocked(c, -EINVAL);
	*revents = 0;
	card_update(c, fault_woken(&c->fault));
	avail = (int64_t)io->buffer_size - card_buffered(c, io->appl_ptr);
	card_arm(c, io->state, io->appl_ptr);
	if (c->dead)
		*revents = POLLERR | POLLHUP;
	else if (io->state == SND_PCM_STATE_PREPARED || io->state == SND_PCM_STATE_RUNNING ||
		 io->state == SND_PCM_STATE_PAUSED)
		*revents = avail >= (int64_t)c->avail_min && (pfd->revents & POLLIN) ? offer(c) : 0;
	else if (io->state != SND_PCM_STATE_DRAINING)
		*revents = POLLOUT | POLLERR;
	return unlocked(c, 0);
}

static void card_free(struct card *c)
{
	fault_close(&c->fault);
	record_close(&c->record);
	if (c->timer_fd >= 0)
		close(c->timer_fd);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	pthread_mutex_destroy(&c->lock);
	free(c->ring);
	free(c);
}

static int vcard_close(snd_pcm_ioplug_t *io)
{
	struct card *c = io->private_data;

	if (c->ring)
		card_store(c);
	record_event(&c->record, "close", "consumed=%" PRIu64 " xruns=%u", c->consumed, c->xruns);
	card_free(c);
	return 0;
}

/* As a card tells which of its channels is which loudspeaker, if it does. */
static snd_pcm_chmap_t *vcard_get_chmap(snd_pcm_ioplug_t *io)
{
	struct card *c = io->private_data;
	snd_pcm_chmap_t *map = *c->chmap ? snd_pcm_chmap_parse_string(c->chmap) : NULL;

	if (map && map->channels != io->channels) {
		free(map);
		map = NULL;
	}
	return map;
}

static const snd_pcm_ioplug_callback_t callbacks = {
	.start = vcard_start,
	.stop = vcard_stop,
	.pointer = vcard_pointer,
	.transfer = vcard_transfer,
	.close = vcard_close,
	.hw_params = vcard_hw_params,
	.hw_free = vcard_hw_free,
	.sw_params = vcard_sw_params,
	.prepare = vcard_prepare,
	.resume = vcard_resume,
	.drain = vcard_drain,
	.poll_revents = vcard_poll_revents,
	.delay = vcard_delay,
	.get_chmap = vcard_get_chmap,
};

/* What the configuration says, before it is applied. */
struct settings {
	const char *dir;
	const char *name;
	char chmap[128];
	bool on_demand, can_pause, keep;
	double speed;
	unsigned formats[MAX_LIST], n_formats;
	unsigned rates[MAX_LIST], n_rates;
	unsigned channels[MAX_LIST], n_channels;
	unsigned period_min, period_max, buffer_min, buffer_max;
	bool is_server;
	long too_little;
};

static int parse_list(const char *text, bool formats, unsigned *list, unsigned *count)
{
	char *copy = strdup(text), *rest = copy, *word;
	int err = 0;

	*count = 0;
	while (copy && !err && (word = strsep(&rest, ", "))) {
		long value;

		if (!*word)
			continue;
		value = formats ? (long)snd_pcm_format_value(word) : strtol(word, NULL, 10);
		if (*count == MAX_LIST || value < 0 || (!formats && value == 0))
			err = -EINVAL;
		else
			list[(*count)++] = (unsigned)value;
	}
	free(copy);
	return *count ? err : -EINVAL;
}

static int parse_one(struct settings *s, const char *key, const char *value)
{
	unsigned *number = !strcmp(key, "period_min") ? &s->period_min :
			   !strcmp(key, "period_max") ? &s->period_max :
			   !strcmp(key, "buffer_min") ? &s->buffer_min :
			   !strcmp(key, "buffer_max") ? &s->buffer_max : NULL;
	bool yes = !strcmp(value, "yes");

	if (number) {
		*number = (unsigned)strtoul(value, NULL, 10);
		return *number > 0 ? 0 : -EINVAL;
	}
	if (!strcmp(key, "server")) {
		s->is_server = true;
		s->too_little = strtol(value, NULL, 10);
		return s->too_little >= 0 ? 0 : -EINVAL;
	}
	if (!strcmp(key, "chmap")) {
		int length = snprintf(s->chmap, sizeof(s->chmap), "%s", value);

		return length < (int)sizeof(s->chmap) ? 0 : -EINVAL;
	}
	if (!strcmp(key, "formats"))
		return parse_list(value, true, s->formats, &s->n_formats);
	if (!strcmp(key, "rates"))
		return parse_list(value, false, s->rates, &s->n_rates);
	if (!strcmp(key, "channels"))
		return parse_list(value, false, s->channels, &s->n_channels);
	if (!strcmp(key, "speed")) {
		s->speed = strtod(value, NULL);
		return s->speed > 0 ? 0 : -EINVAL;
	}
	if (!strcmp(key, "clock")) {
		s->on_demand = !strcmp(value, "demand");
		return s->on_demand || !strcmp(value, "real") ? 0 : -EINVAL;
	}
	if (!strcmp(key, "capture"))
		s->keep = yes;
	else if (!strcmp(key, "pause"))
		s->can_pause = yes;
	else
		return -EINVAL;
	return yes || !strcmp(value, "no") ? 0 : -EINVAL;
}

static int parse(struct settings *s, snd_config_t *conf)
{
	snd_config_iterator_t i, next;

	snd_config_for_each(i, next, conf) {
		snd_config_t *node = snd_config_iterator_entry(i);
		const char *key;
		char *value;
		int err;

		if (snd_config_get_id(node, &key) < 0 || !strcmp(key, "type") ||
		    !strcmp(key, "comment") || !strcmp(key, "hint"))
			continue;
		if (!strcmp(key, "dir") || !strcmp(key, "name")) {
			err = snd_config_get_string(node, *key == 'd' ? &s->dir : &s->name);
		} else {
			err = snd_config_get_ascii(node, &value);
			if (err >= 0) {
				err = parse_one(s, key, value);
				free(value);
			}
		}
		if (err < 0) {
			SNDERR("vcard: bad key or value: %s", key);
			return -EINVAL;
		}
	}
	if (!s->dir)
		SNDERR("vcard: no dir given");
	return s->dir ? 0 : -EINVAL;
}

static int constrain(struct card *c, const struct settings *s)
{
	static const unsigned access[] = { SND_PCM_ACCESS_RW_INTERLEAVED,
					   SND_PCM_ACCESS_MMAP_INTERLEAVED };
	snd_pcm_ioplug_t *io = &c->io;
	int err;

	err = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_ACCESS, 2, access);
	if (err >= 0)
		err = snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_FORMAT, s->n_formats, s->formats);
	if (err >= 0)
		err = s->n_rates ?
			snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_RATE, s->n_rates, s->rates) :
			snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_RATE, 8000, 384000);
	if (err >= 0)
		err = s->n_channels ?
			snd_pcm_ioplug_set_param_list(io, SND_PCM_IOPLUG_HW_CHANNELS, s->n_channels, s->channels) :
			snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_CHANNELS, 1, 8);
	if (err >= 0)
		err = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_PERIOD_BYTES,
						      s->period_min, s->period_max);
	if (err >= 0)
		err = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_BUFFER_BYTES,
						      s->buffer_min, s->buffer_max);
	if (err >= 0)
		err = snd_pcm_ioplug_set_param_minmax(io, SND_PCM_IOPLUG_HW_PERIODS, 2, 1024);
	return err;
}

static int open_descriptors(struct card *c)
{
	struct epoll_event in = { .events = EPOLLIN };

	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->timer_fd < 0 || c->epoll_fd < 0 ||
	    epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->timer_fd, &in) < 0 ||
	    epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->fault.inotify_fd, &in) < 0)
		return -errno;
	return 0;
}

/* Events are split at blanks. */
static void set_name(struct card *c, const char *name)
{
	char *p;

	snprintf(c->name, sizeof(c->name), "%s", name);
	for (p = c->name; *p; p++)
		if (*p == ' ' || *p == '\n' || *p == '\t')
			*p = '_';
}

static int card_open(struct card *c, const struct settings *s, const char *pcm_name)
{
	int err;

	c->timer_fd = c->epoll_fd = -1;
	c->fault.inotify_fd = -1;
	c->on_demand = s->on_demand;
	c->can_pause = s->can_pause;
	memcpy(c->chmap, s->chmap, sizeof(c->chmap));
	c->speed = s->speed;
	set_name(c, s->name ? s->name : pcm_name);
	pthread_mutex_init(&c->lock, NULL);
	err = record_open(&c->record, s->dir, s->keep);
	if (err >= 0)
		err = fault_open(&c->fault, s->dir);
	if (err >= 0)
		err = open_descriptors(c);
	if (err < 0) {
		SNDERR("vcard: cannot open %s: %s", s->dir, strerror(-err));
		return err;
	}
	if (c->fault.kind == FAULT_UNPLUG || c->fault.kind == FAULT_BUSY) {
		err = c->fault.kind == FAULT_UNPLUG ? -ENODEV : -EBUSY;
		record_event(&c->record, "open_failed", "card=%s error=%s", c->name,
			     err == -ENODEV ? "ENODEV" : "EBUSY");
		return err;
	}
	c->frozen = c->fault.kind == FAULT_FREEZE;
	return 0;
}

SND_PCM_PLUGIN_DEFINE_FUNC(vcard)
{
	struct settings s = {
		.keep = true, .speed = 1.0, .n_formats = 4,
		.formats = { SND_PCM_FORMAT_S32_LE, SND_PCM_FORMAT_S24_3LE,
			     SND_PCM_FORMAT_S24_LE, SND_PCM_FORMAT_S16_LE },
		.period_min = 64, .period_max = 4 << 20, .buffer_min = 128, .buffer_max = 8 << 20,
	};
	struct card *c;
	int err = parse(&s, conf);

	(void)root;
	if (err < 0)
		return err;
	if (stream != SND_PCM_STREAM_PLAYBACK)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->record.log_fd = c->record.capture_fd = -1;
	err = card_open(c, &s, name);
	if (err < 0) {
		card_free(c);
		return err;
	}
	c->callbacks = callbacks;
	c->callbacks.pause = s.can_pause ? vcard_pause : NULL;
	c->io.version = SND_PCM_IOPLUG_VERSION;
	c->is_server = s.is_server;
	c->too_little = s.too_little;
	c->io.name = s.is_server ? "ALSA <-> virtual server PCM I/O Plugin" : "virtual card";
	c->io.flags = SND_PCM_IOPLUG_FLAG_MONOTONIC | SND_PCM_IOPLUG_FLAG_BOUNDARY_WA;
	c->io.poll_fd = c->epoll_fd;
	c->io.poll_events = POLLIN;
	c->io.callback = &c->callbacks;
	c->io.private_data = c;
	c->io.nonblock = (mode & SND_PCM_NONBLOCK) != 0;
	err = snd_pcm_ioplug_create(&c->io, name, stream, mode);
	if (err < 0) {
		card_free(c);
		return err;
	}
	err = constrain(c, &s);
	if (err < 0) {
		snd_pcm_ioplug_delete(&c->io);
		return err;
	}
	record_event(&c->record, "open", "card=%s clock=%s speed=%g", c->name,
		     c->on_demand ? "demand" : "real", c->speed);
	if (c->fault.kind == FAULT_FREEZE)
		record_event(&c->record, "fault", "kind=freeze state=begin consumed=0");
	*pcmp = c->io.pcm;
	return 0;
}

SND_PCM_PLUGIN_SYMBOL(vcard);
