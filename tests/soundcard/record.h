/* What a virtual card leaves behind for a test to read: its event log, its
 * captures, and the fault file that the test writes. */
#ifndef VCARD_RECORD_H
#define VCARD_RECORD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t now_ns(void);

struct record {
	char dir[PATH_MAX];
	int log_fd;
	int capture_fd;    /* -1: nothing is kept */
	bool keep;         /* store the frames, not only count them */
	bool in_session;
	unsigned session;  /* number of the current session */
	char capture[32];  /* name of its capture, "-" without one */
};

/* Opens `dir`/events.log. Returns 0 or a negative errno. */
int record_open(struct record *r, const char *dir, bool keep);
void record_close(struct record *r);
/* Appends one line to the log with a single write(2). */
void record_event(struct record *r, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Takes the next free session number by creating its file. */
int record_begin_session(struct record *r);
void record_end_session(struct record *r);
/* Appends consumed frames to the capture. */
void record_frames(struct record *r, const void *data, size_t bytes);

enum fault_kind { FAULT_NONE, FAULT_UNPLUG, FAULT_BUSY, FAULT_XRUN, FAULT_FREEZE, FAULT_SUSPEND, FAULT_SLEEP };

struct fault {
	char path[PATH_MAX];
	char spent_path[PATH_MAX];
	int inotify_fd;
	uint64_t checked_ns;
	struct stat seen;
	bool seen_any;        /* `seen` describes an existing file */
	enum fault_kind kind; /* what the file says */
	bool xrun_armed;      /* a one-shot xrun that has not happened yet */
};

/* Begins to follow `dir`/fault and reads it. Returns 0 or a negative errno. */
int fault_open(struct fault *f, const char *dir);
void fault_close(struct fault *f);
/* Reads the file again if it changed; looks at most every 10 ms unless told
 * to look now. Returns true if what it says changed. */
bool fault_check(struct fault *f, uint64_t now, bool look_now);
/* True if the folder changed since the last call (never blocks). */
bool fault_woken(struct fault *f);
/* Notes that the armed xrun happened, for later opens of the same file too. */
void fault_xrun_spent(struct fault *f);
const char *fault_name(enum fault_kind kind);

#endif
