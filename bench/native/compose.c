/* compose SECONDS OUT.wav: a piece of music for the bench, the same on each run.
 *
 * Codecs take longer over music than over tones or silence, so this has what a pop
 * recording has: plucked strings, a bass, a pad of detuned saws, drums made of noise,
 * a stereo image, loud and quiet parts. 44.1 kHz, 16 bit, stereo. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE = 44100, VOICES = 12, LONGEST = 2048, STEP = RATE * 60 / 108 / 4 };

static uint32_t seed = 1;

/* White noise in -1..1. */
static double noise(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (double)(int32_t)seed / 2147483648.0;
}

/* A plucked string after Karplus and Strong. */
struct string {
	float line[LONGEST];
	int length, at;
	float left, right;
};

static struct string strings[VOICES];
static int next_string;

static double pitch(int semitones)
{
	return 110.0 * pow(2.0, semitones / 12.0);
}

static void pluck(int semitones, double strength, double pan)
{
	struct string *s = &strings[next_string++ % VOICES];
	s->length = (int)(RATE / pitch(semitones));
	if (s->length > LONGEST)
		s->length = LONGEST;
	s->at = 0;
	s->left = (float)(strength * cos(pan * M_PI / 2));
	s->right = (float)(strength * sin(pan * M_PI / 2));
	double smooth = 0;
	for (int i = 0; i < s->length; i++) {
		smooth = 0.6 * noise() + 0.4 * smooth;
		s->line[i] = (float)smooth;
	}
}

static void sound_strings(double *left, double *right)
{
	for (int v = 0; v < VOICES; v++) {
		struct string *s = &strings[v];
		if (!s->length)
			continue;
		int after = s->at + 1 == s->length ? 0 : s->at + 1;
		float now = s->line[s->at];
		s->line[s->at] = 0.4985f * (now + s->line[after]);
		s->at = after;
		*left += now * s->left;
		*right += now * s->right;
	}
}

struct drums {
	double kick, kick_phase, snare, hat, hat_before;
};

static double sound_drums(struct drums *d)
{
	d->kick_phase += 2 * M_PI * (45 + 120 * d->kick) / RATE;
	double raw = noise(), bright = raw - d->hat_before;
	d->hat_before = raw;
	double out = 0.55 * d->kick * sin(d->kick_phase) + 0.25 * d->snare * raw + 0.12 * d->hat * bright;
	d->kick *= 0.9998;
	d->snare *= 0.9995;
	d->hat *= 0.998;
	return out;
}

/* Three detuned saws for each of three notes, one-pole low-pass, left and right apart. */
struct pad {
	double phase[18], low[2];
};

static void sound_pad(struct pad *p, const int *chord, double open, double *left, double *right)
{
	double sum[2] = {0, 0};
	for (int i = 0; i < 18; i++) {
		double detune = 1 + ((i * 7) % 5 - 2) * 0.0017;
		p->phase[i] += pitch(chord[i % 3] + 12) * detune / RATE;
		p->phase[i] -= floor(p->phase[i]);
		sum[i & 1] += 2 * p->phase[i] - 1;
	}
	for (int c = 0; c < 2; c++)
		p->low[c] += open * (0.03 * sum[c] - p->low[c]);
	*left += p->low[0];
	*right += p->low[1];
}

static void put32(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

static void put_header(FILE *out, uint32_t bytes)
{
	uint8_t head[44] = "RIFF....WAVEfmt ";
	put32(head + 4, 36 + bytes);
	put32(head + 16, 16);
	put32(head + 20, 1 | 2 << 16);
	put32(head + 24, RATE);
	put32(head + 28, RATE * 4);
	put32(head + 32, 4 | 16 << 16);
	memcpy(head + 36, "data", 4);
	put32(head + 40, bytes);
	fwrite(head, 1, sizeof head, out);
}

static int16_t quantise(double sample)
{
	double soft = tanh(sample) * 32000 + 0.5 * (noise() + noise());
	return (int16_t)lrint(soft);
}

int main(int argc, char **argv)
{
	static const int chords[8][3] = {{0, 3, 7}, {-4, 0, 3}, {3, 7, 10}, {-2, 2, 5},
	                                 {0, 3, 7}, {5, 8, 12}, {-4, 0, 3}, {-5, -1, 2}};
	static const int arpeggio[8] = {0, 1, 2, 1, 0, 2, 1, 2};
	if (argc != 3) {
		fprintf(stderr, "usage: compose SECONDS OUT.wav\n");
		return 64;
	}
	uint32_t frames = (uint32_t)atoi(argv[1]) * RATE;
	FILE *out = fopen(argv[2], "wb");
	if (!out) {
		perror(argv[2]);
		return 1;
	}
	put_header(out, frames * 4);
	struct drums drums = {0};
	struct pad pad = {0};
	const int *chord = chords[0];
	for (uint32_t frame = 0; frame < frames; frame++) {
		uint32_t step = frame / STEP, bar = step / 16;
		int full = bar % 16 >= 4; /* each sixteen bars begin with four without drums */
		if (frame % STEP == 0) {
			int beat = step % 16;
			chord = chords[bar % 8];
			pluck(chord[arpeggio[step % 8]] + 12 + 12 * (step % 3 == 0), 0.35, 0.5 + 0.4 * sin(step * 0.7));
			if (beat % 4 == 0)
				pluck(chord[0] - 12, 0.5, 0.5);
			if (full && (beat == 0 || beat == 6 || beat == 10))
				drums.kick = 1, drums.kick_phase = 0;
			if (full && beat % 8 == 4)
				drums.snare = 1;
			if (full)
				drums.hat = beat % 2 ? 0.4 : 1;
		}
		double left = 0, right = 0, centre = sound_drums(&drums);
		sound_strings(&left, &right);
		sound_pad(&pad, chord, 0.05 + 0.04 * sin(frame / (double)RATE * 0.3), &left, &right);
		double swell = 0.7 + 0.3 * sin(frame / (double)RATE * 2 * M_PI / 71);
		int16_t pair[2] = {quantise(swell * (left + centre)), quantise(swell * (right + centre))};
		uint8_t bytes[4] = {(uint8_t)pair[0], (uint8_t)(pair[0] >> 8), (uint8_t)pair[1], (uint8_t)(pair[1] >> 8)};
		fwrite(bytes, 1, 4, out);
	}
	if (fclose(out)) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
