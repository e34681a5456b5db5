/* Clock, ring and faults of the virtual card; see card.h. All functions are
 * called with the card's lock held. */
#include "card.h"

#include <inttypes.h>
#include <math.h>
#include <sys/timerfd.h>

snd_pcm_sframes_t card_buffered(const struct card *c, snd_pcm_uframes_t appl)
{
	snd_pcm_uframes_t ahead = appl >= c->hw ? appl - c->hw : c->boundary - c->hw + appl;

	if (ahead > c->boundary / 2)
		return -(snd_pcm_sframes_t)(c->boundary - ahead);
	return (snd_pcm_sframes_t)ahead;
}

void card_store(struct card *c)
{
	snd_pcm_uframes_t size = c->io.buffer_size;

	while (c->unstored > 0) {
		/* boundary is a multiple of size, so indices go on over it. */
		snd_pcm_uframes_t from = (c->hw % size + size - c->unstored) % size;
		snd_pcm_uframes_t n = size - from < c->unstored ? size - from : c->unstored;

		record_frames(&c->record, c->ring + from * c->frame_bytes, n * c->frame_bytes);
		c->unstored -= n;
	}
}

static void log_first_frame(struct card *c, uint64_t at_ns)
{
	c->first_due = false;
	record_event(&c->record, "first_frame", "at=%" PRIu64, at_ns);
}

static void advance(struct card *c, uint64_t frames, bool silent)
{
	snd_pcm_uframes_t size = c->io.buffer_size;

	if (frames > 0 && c->first_due)
		log_first_frame(c, now_ns());
	while (frames > 0) {
		snd_pcm_uframes_t at = c->hw % size;
		snd_pcm_uframes_t n = size - at;

		if (c->unstored == size)
			card_store(c);
		if (n > size - c->unstored)
			n = size - c->unstored;
		if (n > frames)
			n = (snd_pcm_uframes_t)frames;
		if (silent)
			memset(c->ring + at * c->frame_bytes, 0, n * c->frame_bytes);
		c->hw = (c->hw + n) % c->boundary;
		c->unstored += n;
		c->consumed += n;
		c->since_base += n;
		frames -= n;
	}
}

void card_consume_until(struct card *c, snd_pcm_uframes_t appl)
{
	snd_pcm_sframes_t have = card_buffered(c, appl);

	if (have > 0)
		advance(c, (uint64_t)have, false);
}

void card_rebase(struct card *c)
{
	c->base_ns = now_ns();
	c->since_base = 0;
}

void card_start(struct card *c)
{
	card_rebase(c);
	c->started = true;
	record_event(&c->record, "start", "buffered=%ld", (long)card_buffered(c, c->io.appl_ptr));
	if (c->first_due && !c->frozen)
		log_first_frame(c, c->base_ns);
}

static void enter_xrun(struct card *c, uint64_t at_ns)
{
	card_store(c);
	c->started = false;
	snd_pcm_ioplug_set_state(&c->io, SND_PCM_STATE_XRUN);
	record_event(&c->record, "xrun", "count=%u consumed=%" PRIu64 " at=%" PRIu64,
		     ++c->xruns, c->consumed, at_ns);
}

static void end_drain(struct card *c)
{
	card_store(c);
	c->started = c->draining = false;
	snd_pcm_ioplug_set_state(&c->io, SND_PCM_STATE_SETUP);
	record_event(&c->record, "drain", "state=end consumed=%" PRIu64, c->consumed);
}

/* The moment at which the `frames`th frame from now on is over. */
static uint64_t time_after(const struct card *c, uint64_t frames)
{
	/* A microsecond later, lest rounding makes the wake-up a frame early. */
	return c->base_ns + 1000 +
	       (uint64_t)ceil((double)(c->since_base + frames) * 1e9 / c->frames_per_s);
}

/* Beyond the last written frame (stop_threshold above the buffer's size) a card
 * plays its stale ring again, or silence if it was told to fill with it. */
static void play(struct card *c, int64_t have, int64_t due)
{
	if (have < 0)
		have = 0;
	advance(c, (uint64_t)(due < have ? due : have), false);
	if (due > have)
		advance(c, (uint64_t)(due - have), c->silence);
}

static void run_clock(struct card *c)
{
	bool draining = c->io.state == SND_PCM_STATE_DRAINING;
	int64_t have, due, limit;

	if ((c->io.state != SND_PCM_STATE_RUNNING && !draining) || !c->started || c->frozen || c->dead)
		return;
	have = card_buffered(c, c->io.appl_ptr);
	limit = have;
	if (c->on_demand) {
		card_consume_until(c, c->io.appl_ptr);
		if (draining)
			end_drain(c);
		return;
	}
	if (!draining)
		limit += (int64_t)c->stop_threshold - (int64_t)c->io.buffer_size;
	due = (int64_t)((double)(now_ns() - c->base_ns) * c->frames_per_s / 1e9) - (int64_t)c->since_base;
	if (due < 0)
		due = 0;
	if (due >= limit) {
		uint64_t n = limit > 0 ? (uint64_t)limit : 0;
		uint64_t at = time_after(c, n);

		play(c, have, (int64_t)n);
		if (draining)
			end_drain(c);
		else
			enter_xrun(c, at);
		return;
	}
	play(c, have, due);
}

static void log_fault(struct card *c, enum fault_kind kind, const char *state)
{
	record_event(&c->record, "fault", "kind=%s state=%s consumed=%" PRIu64,
		     fault_name(kind), state, c->consumed);
}

static void suspend(struct card *c, enum fault_kind kind)
{
	snd_pcm_state_t state = c->io.state;

	if (state != SND_PCM_STATE_RUNNING && state != SND_PCM_STATE_DRAINING && state != SND_PCM_STATE_PREPARED)
		return;
	card_store(c);
	c->before_suspend = state;
	c->can_resume = kind == FAULT_SUSPEND;
	snd_pcm_ioplug_set_state(&c->io, SND_PCM_STATE_SUSPENDED);
	record_event(&c->record, "suspend", "consumed=%" PRIu64 " buffered=%ld", c->consumed,
		     (long)card_buffered(c, c->io.appl_ptr));
}

int card_resume(struct card *c)
{
	if (c->io.state != SND_PCM_STATE_SUSPENDED)
		return -EBADFD;
	if (!c->can_resume)
		return -ENOSYS;
	if (c->fault.kind == FAULT_SUSPEND)
		return -EAGAIN;
	card_rebase(c);
	snd_pcm_ioplug_set_state(&c->io, c->before_suspend);
	record_event(&c->record, "resume", "consumed=%" PRIu64, c->consumed);
	return 0;
}

static void obey_fault(struct card *c, enum fault_kind before)
{
	enum fault_kind kind = c->fault.kind;

	if (before != kind && before != FAULT_NONE && before != FAULT_XRUN)
		log_fault(c, before, "end");
	if (before == FAULT_FREEZE && kind != FAULT_FREEZE) {
		c->frozen = false;
		card_rebase(c);
	}
	if (before == kind || kind == FAULT_NONE || kind == FAULT_XRUN)
		return;
	log_fault(c, kind, "begin");
	if (kind == FAULT_FREEZE)
		c->frozen = true;
	if ((kind == FAULT_SUSPEND || kind == FAULT_SLEEP) && !c->dead)
		suspend(c, kind);
	if (kind == FAULT_UNPLUG && !c->dead) {
		snd_pcm_sframes_t lost = c->boundary ? card_buffered(c, c->io.appl_ptr) : 0;

		card_store(c);
		c->dead = true;
		c->started = false;
		record_event(&c->record, "disconnect", "consumed=%" PRIu64 " lost=%ld",
			     c->consumed, (long)(lost > 0 ? lost : 0));
	}
}

/* As a real underrun, a forced one comes after the last written frame. */
static void force_xrun(struct card *c)
{
	if (!c->started || c->io.state != SND_PCM_STATE_RUNNING)
		return;
	fault_xrun_spent(&c->fault);
	log_fault(c, FAULT_XRUN, "begin");
	card_consume_until(c, c->io.appl_ptr);
	enter_xrun(c, now_ns());
	log_fault(c, FAULT_XRUN, "end");
}

void card_update(struct card *c, bool look_now)
{
	enum fault_kind before = c->fault.kind;

	run_clock(c);
	if (fault_check(&c->fault, now_ns(), look_now))
		obey_fault(c, before);
	if (c->dead)
		snd_pcm_ioplug_set_state(&c->io, SND_PCM_STATE_DISCONNECTED);
	else if (c->fault.xrun_armed)
		force_xrun(c);
	if ((double)c->unstored >= c->frames_per_s / 50)
		card_store(c);
}

void card_arm_at(struct card *c, uint64_t at_ns)
{
	struct itimerspec t = { .it_value = { 0, 0 } };

	if (at_ns == c->armed_ns)
		return;
	/* Fired and never read: the descriptor is readable already. */
	if (at_ns == ARMED_AT_ONCE && c->armed_ns != ARMED_NEVER && c->armed_ns <= now_ns())
		return;
	t.it_value.tv_sec = (time_t)(at_ns / 1000000000u);
	t.it_value.tv_nsec = (long)(at_ns % 1000000000u);
	timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
	c->armed_ns = at_ns;
}

static uint64_t next_wake(const struct card *c, snd_pcm_state_t state, snd_pcm_uframes_t appl)
{
	int64_t have = card_buffered(c, appl);
	int64_t avail = (int64_t)c->io.buffer_size - have;
	bool room = avail >= (int64_t)c->avail_min;

	switch (state) {
	case SND_PCM_STATE_PREPARED:
	case SND_PCM_STATE_PAUSED:
		return room ? ARMED_AT_ONCE : ARMED_NEVER;
	case SND_PCM_STATE_RUNNING:
		if (room)
			return ARMED_AT_ONCE;
		if (c->frozen)
			return ARMED_NEVER;
		if (c->on_demand)
			return ARMED_AT_ONCE;
		return time_after(c, (uint64_t)((int64_t)c->avail_min - avail));
	case SND_PCM_STATE_DRAINING:
		if (c->frozen)
			return ARMED_NEVER;
		return time_after(c, have > 0 ? (uint64_t)have : 0);
	default:
		return ARMED_AT_ONCE;
	}
}

void card_arm(struct card *c, snd_pcm_state_t state, snd_pcm_uframes_t appl)
{
	if (c->dead) {
		card_arm_at(c, ARMED_AT_ONCE);
		return;
	}
	/* On demand a writer with nothing to write would spin: see poll_revents. */
	if (c->on_demand && c->offered && state == SND_PCM_STATE_RUNNING)
		return;
	card_arm_at(c, next_wake(c, state, appl));
}

void card_rewind_all(struct card *c)
{
	card_store(c);
	c->hw = 0;
	c->since_base = 0;
	c->started = c->draining = c->offered = false;
	c->first_due = true;
}
