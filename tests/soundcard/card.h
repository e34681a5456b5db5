/* The card itself: a ring, a clock that consumes it, and its faults. The ALSA
 * side is vcard.c. */
#ifndef VCARD_CARD_H
#define VCARD_CARD_H

#include <alsa/asoundlib.h>
#include <alsa/pcm_external.h>
#include <pthread.h>

#include "record.h"

/* Values of `armed_ns` that are no times. */
#define ARMED_NEVER 0u
#define ARMED_AT_ONCE 1u

struct card {
	snd_pcm_ioplug_t io;
	snd_pcm_ioplug_callback_t callbacks;
	pthread_mutex_t lock;
	struct record record;
	struct fault fault;
	char name[128];
	char chmap[128]; /* such as "FL FR RL RR", or nothing is said of it */
	bool on_demand;
	bool can_pause;
	bool is_server;  /* by its name, and by what it says of its delay: so many frames too little */
	long too_little;
	double speed;

	int timer_fd;
	int epoll_fd;      /* what a writer polls: the timer and the fault file */
	uint64_t armed_ns; /* when the timer fires, absolute */
	bool offered;      /* POLLOUT was given and nothing written since */

	/* The ring is indexed by application pointer, so that a rewound and
	 * rewritten frame lands where the first one was. Positions are frames
	 * since prepare, modulo `boundary`, as in the ALSA library. */
	char *ring;
	size_t frame_bytes;
	snd_pcm_uframes_t boundary;
	snd_pcm_uframes_t avail_min;
	snd_pcm_uframes_t stop_threshold;
	bool silence;            /* an underrun that may go on sounds as silence */
	snd_pcm_uframes_t hw;       /* next frame to be consumed */
	snd_pcm_uframes_t unstored; /* frames just before hw, not yet in the capture */

	double frames_per_s;  /* rate * speed */
	uint64_t base_ns;     /* the clock's zero … */
	uint64_t since_base;  /* … and the frames consumed since */

	uint64_t consumed;    /* frames of this session */
	unsigned xruns;
	bool started;         /* between start and stop */
	bool draining;        /* drain has been logged */
	bool first_due;       /* no frame consumed since prepare */
	bool frozen;
	bool can_resume;        /* of a suspended stream */
	snd_pcm_state_t before_suspend;
	bool dead;            /* unplugged: stays so until closed */
};

/* Frames written and not consumed, with the application at `appl`; negative
 * when the card has played past it. */
snd_pcm_sframes_t card_buffered(const struct card *c, snd_pcm_uframes_t appl);
/* Consumes what is due by now and obeys the fault file. */
void card_update(struct card *c, bool look_now);
/* Consumes all frames up to `appl` (the clock on demand). */
void card_consume_until(struct card *c, snd_pcm_uframes_t appl);
/* Stores what is consumed and not yet in the capture. */
void card_store(struct card *c);
/* The clock begins to run. */
void card_start(struct card *c);
void card_rebase(struct card *c);
/* ALSA's resume: 0 once the stream goes on, or a negative errno. */
int card_resume(struct card *c);
/* Sets the timer for a writer that polls. */
void card_arm(struct card *c, snd_pcm_state_t state, snd_pcm_uframes_t appl);
void card_arm_at(struct card *c, uint64_t at_ns);
/* Back to the state after hw_params: an empty ring at position 0. */
void card_rewind_all(struct card *c);

#endif
