/* silence DEVICE RATE SECONDS: the zero line of the bench.
 *
 * Waits for a line on standard input, then writes silence to an ALSA device as a player
 * with nothing to do would: 16 bit, stereo, a buffer of 250 ms that is refilled when half of
 * it has been heard. Then it waits for the end of standard input, so that what it used can
 * still be read from /proc. */
#include <alsa/asoundlib.h>
#include <stdio.h>
#include <stdlib.h>

static int check(const char *what, int result)
{
	if (result >= 0)
		return result;
	fprintf(stderr, "silence: %s: %s\n", what, snd_strerror(result));
	exit(1);
}

static snd_pcm_t *open_card(const char *device, unsigned rate)
{
	snd_pcm_t *pcm;
	snd_pcm_hw_params_t *hardware;
	snd_pcm_sw_params_t *software;
	snd_pcm_uframes_t buffer = rate / 4, period = rate / 8;
	snd_pcm_hw_params_alloca(&hardware);
	snd_pcm_sw_params_alloca(&software);
	check("open", snd_pcm_open(&pcm, device, SND_PCM_STREAM_PLAYBACK, 0));
	check("params", snd_pcm_hw_params_any(pcm, hardware));
	check("access", snd_pcm_hw_params_set_access(pcm, hardware, SND_PCM_ACCESS_RW_INTERLEAVED));
	check("format", snd_pcm_hw_params_set_format(pcm, hardware, SND_PCM_FORMAT_S16_LE));
	check("channels", snd_pcm_hw_params_set_channels(pcm, hardware, 2));
	check("rate", snd_pcm_hw_params_set_rate(pcm, hardware, rate, 0));
	check("period", snd_pcm_hw_params_set_period_size_near(pcm, hardware, &period, NULL));
	check("buffer", snd_pcm_hw_params_set_buffer_size_near(pcm, hardware, &buffer));
	check("params", snd_pcm_hw_params(pcm, hardware));
	check("params", snd_pcm_sw_params_current(pcm, software));
	check("threshold", snd_pcm_sw_params_set_start_threshold(pcm, software, buffer));
	check("avail_min", snd_pcm_sw_params_set_avail_min(pcm, software, period));
	check("params", snd_pcm_sw_params(pcm, software));
	return pcm;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: silence DEVICE RATE SECONDS\n");
		return 64;
	}
	unsigned rate = (unsigned)atoi(argv[2]);
	snd_pcm_uframes_t left = (snd_pcm_uframes_t)rate * (unsigned)atoi(argv[3]), step = rate / 8;
	int16_t *zeros = calloc(step, 2 * sizeof *zeros);
	if (!zeros || getchar() == EOF)
		return 1;
	snd_pcm_t *pcm = open_card(argv[1], rate);
	while (left) {
		snd_pcm_sframes_t written = snd_pcm_writei(pcm, zeros, left < step ? left : step);
		if (written < 0)
			check("write", snd_pcm_recover(pcm, (int)written, 1));
		else
			left -= (snd_pcm_uframes_t)written;
	}
	snd_pcm_drop(pcm);
	snd_pcm_close(pcm);
	while (getchar() != EOF)
		;
	return 0;
}
