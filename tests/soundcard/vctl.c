/*
 * The mixer of a virtual card: a control plugin for alsa-lib with one volume
 * (with a dB scale) and one switch. See README.md.
 *
 * Its values are in the file `mixer` of the card's folder, where a test, or
 * another program's hand on the knob, may change them.
 */
#define _GNU_SOURCE
#include <alsa/asoundlib.h>
#include <alsa/control_external.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

enum { VOLUME, SWITCH, ELEMENTS };

struct vctl {
	snd_ctl_ext_t ext;
	char file[PATH_MAX], log[PATH_MAX], dir[PATH_MAX];
	char element[44];
	long steps, min_cdb, step_cdb;
	bool has_switch;
	long value[ELEMENTS];	/* as last read */
	unsigned pending;	/* elements whose change is not told yet */
	int watch;
};

static int elements(const struct vctl *v)
{
	return v->has_switch ? 2 : 1;
}

static void read_values(struct vctl *v, long *value)
{
	FILE *file = fopen(v->file, "re");

	if (!file)
		return;
	if (fscanf(file, "%ld %ld", &value[VOLUME], &value[SWITCH]) < 1)
		value[VOLUME] = v->value[VOLUME];
	fclose(file);
	if (value[VOLUME] < 0)
		value[VOLUME] = 0;
	if (value[VOLUME] > v->steps)
		value[VOLUME] = v->steps;
}

static int write_values(struct vctl *v)
{
	char temporary[PATH_MAX + 8];
	struct timespec t;
	FILE *file;

	/* The log first: whoever sees the value finds the line. */
	file = fopen(v->log, "ae");
	if (!file)
		return -errno;
	clock_gettime(CLOCK_MONOTONIC, &t);
	fprintf(file, "%lld%09ld write volume=%ld switch=%ld\n", (long long)t.tv_sec, t.tv_nsec,
		v->value[VOLUME], v->value[SWITCH]);
	fclose(file);
	snprintf(temporary, sizeof temporary, "%s.new", v->file);
	file = fopen(temporary, "we");
	if (!file)
		return -errno;
	fprintf(file, "%ld %ld\n", v->value[VOLUME], v->value[SWITCH]);
	fclose(file);
	return rename(temporary, v->file) < 0 ? -errno : 0;
}

static bool is_away(const struct vctl *v)
{
	char path[PATH_MAX + 8], word[16] = "";
	FILE *file;

	snprintf(path, sizeof path, "%s/fault", v->dir);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%15s", word) < 1)
		word[0] = 0;
	fclose(file);
	return strcmp(word, "unplug") == 0;
}

static void vctl_close(snd_ctl_ext_t *ext)
{
	struct vctl *v = ext->private_data;

	close(v->watch);
	free(v);
}

static int vctl_count(snd_ctl_ext_t *ext)
{
	return elements(ext->private_data);
}

static int name_element(const struct vctl *v, unsigned element, snd_ctl_elem_id_t *id)
{
	char name[64];

	snprintf(name, sizeof name, "%s Playback %s", v->element, element == VOLUME ? "Volume" : "Switch");
	snd_ctl_elem_id_set_interface(id, SND_CTL_ELEM_IFACE_MIXER);
	snd_ctl_elem_id_set_name(id, name);
	return 0;
}

static int vctl_list(snd_ctl_ext_t *ext, unsigned offset, snd_ctl_elem_id_t *id)
{
	struct vctl *v = ext->private_data;

	return (int)offset < elements(v) ? name_element(v, offset, id) : -EINVAL;
}

static snd_ctl_ext_key_t vctl_find(snd_ctl_ext_t *ext, const snd_ctl_elem_id_t *id)
{
	struct vctl *v = ext->private_data;
	unsigned numid = snd_ctl_elem_id_get_numid(id);
	const char *name = snd_ctl_elem_id_get_name(id);

	if (numid > 0)
		return (int)numid <= elements(v) ? numid - 1 : SND_CTL_EXT_KEY_NOT_FOUND;
	if (strstr(name, "Volume"))
		return VOLUME;
	return v->has_switch && strstr(name, "Switch") ? SWITCH : SND_CTL_EXT_KEY_NOT_FOUND;
}

static int vctl_attribute(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, int *type, unsigned *access, unsigned *count)
{
	(void)ext;
	*type = key == VOLUME ? SND_CTL_ELEM_TYPE_INTEGER : SND_CTL_ELEM_TYPE_BOOLEAN;
	*access = SND_CTL_EXT_ACCESS_READWRITE;
	if (key == VOLUME)
		*access |= SND_CTL_EXT_ACCESS_TLV_READ | SND_CTL_EXT_ACCESS_TLV_CALLBACK;
	*count = 1;
	return 0;
}

static int vctl_integer(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, long *min, long *max, long *step)
{
	struct vctl *v = ext->private_data;

	*min = 0;
	*max = key == VOLUME ? v->steps : 1;
	*step = 0;
	return 0;
}

static int vctl_read(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, long *value)
{
	struct vctl *v = ext->private_data;

	if (is_away(v))
		return -ENODEV;
	read_values(v, v->value);
	*value = v->value[key];
	return 0;
}

static int vctl_write(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, long *value)
{
	struct vctl *v = ext->private_data;
	int error;

	if (is_away(v))
		return -ENODEV;
	read_values(v, v->value);
	if (v->value[key] == *value)
		return 0;
	v->value[key] = *value;
	error = write_values(v);
	v->pending |= 1u << key;
	return error < 0 ? error : 1;
}

static int vctl_tlv(snd_ctl_ext_t *ext, snd_ctl_ext_key_t key, int op, unsigned numid, unsigned *tlv, unsigned size)
{
	struct vctl *v = ext->private_data;

	(void)numid;
	if (op != 0 || key != VOLUME)
		return -ENXIO;
	if (size < 4 * sizeof *tlv)
		return -ENOMEM;
	tlv[0] = SND_CTL_TLVT_DB_SCALE;
	tlv[1] = 2 * sizeof *tlv;
	tlv[2] = (unsigned)v->min_cdb;
	tlv[3] = (unsigned)v->step_cdb;
	return 0;
}

static void vctl_subscribe(snd_ctl_ext_t *ext, int on)
{
	(void)ext;
	(void)on;
}

static int vctl_event(snd_ctl_ext_t *ext, snd_ctl_elem_id_t *id, unsigned *mask)
{
	struct vctl *v = ext->private_data;
	char junk[4096];
	long now[ELEMENTS] = { v->value[VOLUME], v->value[SWITCH] };

	while (read(v->watch, junk, sizeof junk) > 0)
		;
	if (is_away(v))
		return -ENODEV;
	read_values(v, now);
	for (unsigned element = 0; (int)element < elements(v); element++)
		if (now[element] != v->value[element])
			v->pending |= 1u << element;
	memcpy(v->value, now, sizeof now);
	for (unsigned element = 0; (int)element < elements(v); element++)
		if (v->pending & 1u << element) {
			v->pending &= ~(1u << element);
			name_element(v, element, id);
			snd_ctl_elem_id_set_numid(id, element + 1);
			*mask = SND_CTL_EVENT_MASK_VALUE;
			return 1;
		}
	return -EAGAIN;
}

static const snd_ctl_ext_callback_t callbacks = {
	.close = vctl_close,
	.elem_count = vctl_count,
	.elem_list = vctl_list,
	.find_elem = vctl_find,
	.get_attribute = vctl_attribute,
	.get_integer_info = vctl_integer,
	.read_integer = vctl_read,
	.write_integer = vctl_write,
	.subscribe_events = vctl_subscribe,
	.read_event = vctl_event,
};

SND_CTL_PLUGIN_DEFINE_FUNC(vctl)
{
	const char *dir = NULL, *element = "Digital", *card = "vctl", *driver = "vctl";
	struct vctl *v = calloc(1, sizeof *v);
	snd_config_iterator_t i, next;
	int error;

	if (!v)
		return -ENOMEM;
	(void)root;
	/* As a PCM512x, the chip of many hats: from -103.5 to +24 dB in steps of half a dB. */
	v->steps = 255;
	v->min_cdb = -10350;
	v->step_cdb = 50;
	v->has_switch = true;
	v->value[VOLUME] = 207;
	v->value[SWITCH] = 1;
	snd_config_for_each(i, next, conf) {
		snd_config_t *entry = snd_config_iterator_entry(i);
		const char *id;

		if (snd_config_get_id(entry, &id) < 0 || strcmp(id, "type") == 0 || strcmp(id, "comment") == 0)
			continue;
		if (strcmp(id, "dir") == 0)
			snd_config_get_string(entry, &dir);
		else if (strcmp(id, "element") == 0)
			snd_config_get_string(entry, &element);
		else if (strcmp(id, "id") == 0)
			snd_config_get_string(entry, &card);
		else if (strcmp(id, "driver") == 0)
			snd_config_get_string(entry, &driver);
		else if (strcmp(id, "steps") == 0)
			snd_config_get_integer(entry, &v->steps);
		else if (strcmp(id, "min_cdb") == 0)
			snd_config_get_integer(entry, &v->min_cdb);
		else if (strcmp(id, "step_cdb") == 0)
			snd_config_get_integer(entry, &v->step_cdb);
		else if (strcmp(id, "switch") == 0)
			v->has_switch = snd_config_get_bool(entry) == 1;
		else {
			SNDERR("unknown field %s", id);
			free(v);
			return -EINVAL;
		}
	}
	if (!dir || snprintf(v->file, sizeof v->file, "%s/mixer", dir) >= PATH_MAX - 8) {
		free(v);
		return -EINVAL;
	}
	snprintf(v->dir, sizeof v->dir, "%s", dir);
	snprintf(v->log, sizeof v->log, "%s/mixer.log", dir);
	snprintf(v->element, sizeof v->element, "%s", element);
	if (is_away(v)) {
		free(v);
		return -ENODEV;
	}
	read_values(v, v->value);
	v->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (v->watch < 0 || inotify_add_watch(v->watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
		error = -errno;
		free(v);
		return error;
	}
	v->ext.version = SND_CTL_EXT_VERSION;
	v->ext.card_idx = 0;
	snprintf(v->ext.id, sizeof v->ext.id, "%s", card);
	snprintf(v->ext.driver, sizeof v->ext.driver, "%s", driver);
	strcpy(v->ext.name, "Virtual mixer");
	strcpy(v->ext.longname, "The mixer of a virtual card");
	strcpy(v->ext.mixername, "Virtual mixer");
	v->ext.callback = &callbacks;
	v->ext.private_data = v;
	v->ext.poll_fd = v->watch;
	v->ext.tlv.c = vctl_tlv;
	error = snd_ctl_ext_create(&v->ext, name, mode);
	if (error < 0) {
		close(v->watch);
		free(v);
		return error;
	}
	*handlep = v->ext.handle;
	return 0;
}

SND_CTL_PLUGIN_SYMBOL(vctl);
