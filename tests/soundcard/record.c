/* The files of a virtual card; see record.h and README.md. */
#define _GNU_SOURCE
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int join(char *out, const char *dir, const char *file)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, file);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int record_open(struct record *r, const char *dir, bool keep)
{
	char path[PATH_MAX];

	r->log_fd = r->capture_fd = -1;
	r->keep = keep;
	strcpy(r->capture, "-");
	if (join(path, dir, "events.log") < 0)
		return -ENAMETOOLONG;
	strcpy(r->dir, dir);
	r->log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	return r->log_fd < 0 ? -errno : 0;
}

void record_close(struct record *r)
{
	record_end_session(r);
	if (r->log_fd >= 0)
		close(r->log_fd);
	r->log_fd = -1;
}

static void write_all(int fd, const char *data, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = write(fd, data, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* A test must not go on with half a recording. */
			fprintf(stderr, "vcard: cannot write: %s\n", strerror(errno));
			return;
		}
		data += n;
		bytes -= (size_t)n;
	}
}

void record_event(struct record *r, const char *event, const char *format, ...)
{
	char line[512];
	size_t room = sizeof(line) - 1;
	size_t n;
	va_list args;

	n = (size_t)snprintf(line, room, "%" PRIu64 " %s pid=%d", now_ns(), event, (int)getpid());
	if (r->in_session)
		n += (size_t)snprintf(line + n, room - n, " session=%03u", r->session);
	if (*format) {
		line[n++] = ' ';
		va_start(args, format);
		n += (size_t)vsnprintf(line + n, room - n, format, args);
		va_end(args);
	}
	if (n > room)
		n = room;
	line[n++] = '\n';
	write_all(r->log_fd, line, n);
}

int record_begin_session(struct record *r)
{
	char path[PATH_MAX];
	unsigned number;

	record_end_session(r);
	/* With capture "no" the numbers still count, in this process alone. */
	if (!r->keep) {
		r->session++;
		r->in_session = true;
		return 0;
	}
	for (number = r->session + 1; number < 1000000; number++) {
		char name[sizeof(r->capture)];

		snprintf(name, sizeof(name), "capture-%03u.raw", number);
		if (join(path, r->dir, name) < 0)
			return -ENAMETOOLONG;
		r->capture_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
		if (r->capture_fd >= 0) {
			strcpy(r->capture, name);
			r->session = number;
			r->in_session = true;
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -ENOSPC;
}

void record_end_session(struct record *r)
{
	if (r->capture_fd >= 0)
		close(r->capture_fd);
	r->capture_fd = -1;
	r->in_session = false;
	strcpy(r->capture, "-");
}

void record_frames(struct record *r, const void *data, size_t bytes)
{
	if (r->capture_fd >= 0)
		write_all(r->capture_fd, data, bytes);
}

const char *fault_name(enum fault_kind kind)
{
	static const char *const names[] = { "none", "unplug", "busy", "xrun", "freeze", "suspend", "sleep" };

	return names[kind];
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static enum fault_kind read_kind(const char *path)
{
	char word[32] = "";
	FILE *file = fopen(path, "re");
	int kind;

	if (!file)
		return FAULT_NONE;
	if (fscanf(file, "%31s", word) != 1)
		word[0] = 0;
	fclose(file);
	for (kind = FAULT_UNPLUG; kind <= FAULT_SLEEP; kind++)
		if (!strcmp(word, fault_name((enum fault_kind)kind)))
			return (enum fault_kind)kind;
	if (word[0])
		fprintf(stderr, "vcard: unknown fault \"%s\" in %s\n", word, path);
	return FAULT_NONE;
}

static void identity(const struct stat *s, char *out, size_t size)
{
	snprintf(out, size, "%ju.%ju.%jd.%ld", (uintmax_t)s->st_ino, (uintmax_t)s->st_size,
		 (intmax_t)s->st_mtim.tv_sec, (long)s->st_mtim.tv_nsec);
}

/* Was this very file's xrun spent by an earlier open of the card? */
static bool spent_before(const struct fault *f)
{
	char want[128], have[128] = "";
	FILE *file = fopen(f->spent_path, "re");

	if (!file)
		return false;
	if (fscanf(file, "%127s", have) != 1)
		have[0] = 0;
	fclose(file);
	identity(&f->seen, want, sizeof(want));
	return !strcmp(want, have);
}

void fault_xrun_spent(struct fault *f)
{
	char text[128];
	int fd = open(f->spent_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	f->xrun_armed = false;
	if (fd < 0)
		return;
	identity(&f->seen, text, sizeof(text));
	write_all(fd, text, strlen(text));
	close(fd);
}

bool fault_check(struct fault *f, uint64_t now, bool look_now)
{
	struct stat s;
	bool there;
	enum fault_kind before = f->kind;
	bool armed_before = f->xrun_armed;

	if (!look_now && now - f->checked_ns < 10000000)
		return false;
	f->checked_ns = now;
	there = stat(f->path, &s) == 0;
	if (!there && !f->seen_any)
		return false;
	if (there && f->seen_any && same_file(&s, &f->seen))
		return false;
	f->seen_any = there;
	f->kind = FAULT_NONE;
	if (there) {
		f->seen = s;
		if (s.st_size > 0)
			f->kind = read_kind(f->path);
	}
	f->xrun_armed = f->kind == FAULT_XRUN && !spent_before(f);
	return f->kind != before || f->xrun_armed != armed_before;
}

int fault_open(struct fault *f, const char *dir)
{
	f->inotify_fd = -1;
	if (join(f->path, dir, "fault") < 0 || join(f->spent_path, dir, "fault.spent") < 0)
		return -ENAMETOOLONG;
	/* A writer that sleeps in poll() learns of a fault by this descriptor.
	 * The card's own writes are IN_MODIFY and wake nobody. */
	f->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (f->inotify_fd < 0)
		return -errno;
	if (inotify_add_watch(f->inotify_fd, dir, IN_CLOSE_WRITE | IN_MOVED_TO |
			      IN_MOVED_FROM | IN_DELETE) < 0)
		return -errno;
	fault_check(f, now_ns(), true);
	return 0;
}

void fault_close(struct fault *f)
{
	if (f->inotify_fd >= 0)
		close(f->inotify_fd);
	f->inotify_fd = -1;
}

bool fault_woken(struct fault *f)
{
	char events[4096];
	bool any = false;

	while (read(f->inotify_fd, events, sizeof(events)) > 0)
		any = true;
	return any;
}
