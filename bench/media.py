"""The recordings and the web server that hands them out."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 300
NEEDED = ("gcc", "ffmpeg", "flac", "lame", "oggenc", "opusenc")


@dataclass(frozen=True)
class Recording:
    """One encoded file. `rate` is the one at which it is decoded."""

    label: str
    file: str
    rate: int
    encode: tuple


WAV = "music.wav"


def ffmpeg(*options):
    return ("ffmpeg", "-v", "error", "-y", "-i", "{wav}", "-map_metadata", "-1", *options, "{out}")


RECORDINGS = (
    Recording("FLAC", "music.flac", 44100, ("flac", "-s", "-f", "-5", "-o", "{out}", "{wav}")),
    Recording(
        "FLAC 24/96", "music-96.flac", 96000, ffmpeg("-ar", "96000", "-sample_fmt", "s32", "-bits_per_raw_sample", "24", "-c:a", "flac")
    ),
    Recording("ALAC", "music.alac.m4a", 44100, ffmpeg("-c:a", "alac", "-sample_fmt", "s16p", "-movflags", "+faststart")),
    Recording("WAV", WAV, 44100, ()),
    Recording("AIFF", "music.aiff", 44100, ffmpeg("-c:a", "pcm_s16be")),
    Recording("MP3 VBR", "music.mp3", 44100, ("lame", "--quiet", "-V", "2", "{wav}", "{out}")),
    Recording("MP3 CBR", "music-320.mp3", 44100, ("lame", "--quiet", "-b", "320", "-t", "{wav}", "{out}")),
    Recording("AAC, MP4", "music.m4a", 44100, ffmpeg("-c:a", "aac", "-b:a", "192k", "-movflags", "+faststart")),
    Recording("AAC, ADTS", "music.aac", 44100, ffmpeg("-c:a", "aac", "-b:a", "192k", "-f", "adts")),
    Recording("Vorbis", "music.ogg", 44100, ("oggenc", "-Q", "-q", "6", "-s", "1", "-o", "{out}", "{wav}")),
    Recording("Opus", "music.opus", 48000, ("opusenc", "--quiet", "--serial", "1", "--bitrate", "128", "{wav}", "{out}")),
    Recording(
        "FLAC in Ogg", "music.oga", 44100, ("flac", "-s", "-f", "--ogg", "--serial-number=1", "-5", "-o", "{out}", "{wav}")
    ),
    Recording("ALAC in CAF", "music.caf", 44100, ffmpeg("-c:a", "alac", "-sample_fmt", "s16p")),
)
# Its tag says how much quieter it is to be; the peak leaves room, so that no limiter is needed.
TAG_DB = -6.5
TAGGED = Recording(
    "FLAC with tags",
    "music-tagged.flac",
    44100,
    ("flac", "-s", "-f", "-5", f"--tag=REPLAYGAIN_TRACK_GAIN={TAG_DB:.2f} dB", "--tag=REPLAYGAIN_TRACK_PEAK=0.977")
    + ("-o", "{out}", "{wav}"),
)


def looped(*options):
    """Eleven minutes: the 300 s more than twice."""
    return ("ffmpeg", "-v", "error", "-y", "-stream_loop", "2", "-i", "{wav}", "-t", "660", *options, "{out}")


LOOPED = (
    Recording("FLAC", "looped.flac", 44100, looped("-c:a", "flac")),
    Recording(
        "FLAC 24/96", "looped-96.flac", 96000, looped("-ar", "96000", "-sample_fmt", "s32", "-bits_per_raw_sample", "24", "-c:a", "flac")
    ),
    Recording("Opus", "looped.opus", 48000, looped("-c:a", "libopus", "-b:a", "128k")),
)


# The first and the next 40 s: what fits into every player's memory.
SHORT_SECONDS = 40
SHORT = (
    Recording("first", "first.flac", 44100, ("flac", "-s", "-f", "-5", "--until=0:40", "-o", "{out}", "{wav}")),
    Recording("second", "second.flac", 44100, ("flac", "-s", "-f", "-5", "--skip=0:40", "--until=1:20", "-o", "{out}", "{wav}")),
)


def named(label):
    return next(recording for recording in RECORDINGS if recording.label == label)


def missing_programs():
    return [name for name in NEEDED if not shutil.which(name)]


def compile_native(target, name, *libraries):
    """Builds bench/native/NAME.c unless it is there already; returns the program's path."""
    source, program = HERE / "native" / f"{name}.c", target / name
    command = ["gcc", "-O2", "-ffp-contract=off", "-o", "{out}", source, *libraries]
    make(program, fingerprint(source.read_text(), command), command)
    return program


def prepare(target, say):
    """Composes and encodes what is not there yet. Returns the folder with the files."""
    folder = target / "media"
    folder.mkdir(parents=True, exist_ok=True)
    wav = folder / WAV
    compose = [compile_native(target, "compose", "-lm"), str(SECONDS), "{out}"]
    make(wav, composed(target), compose, say)
    encode(target, (*RECORDINGS, TAGGED, *SHORT), say)
    return folder


def composed(target):
    """What the music was made from."""
    compose = [target / "compose", str(SECONDS), "{out}"]
    return fingerprint((HERE / "native" / "compose.c").read_text(), compose)


def encode(target, recordings, say):
    """Encodes those that are not there yet."""
    folder, music = target / "media", composed(target)
    for recording in recordings:
        command = [word.replace("{wav}", str(folder / WAV)) for word in recording.encode]
        if command:
            make(folder / recording.file, fingerprint(music, command), command, say)


def fingerprint(text, command):
    """What a cached file was made from."""
    return hashlib.sha256("\0".join([text, *map(str, command)]).encode()).hexdigest()


def make(path, made_from, command, say=lambda text: None):
    """Runs a program that writes `{out}`, unless `path` was made from the very same already.

    Written under another name first, so that the cache holds whole files only."""
    stamp = path.with_name(f".{path.name}.made-from")
    if path.exists() and stamp.exists() and stamp.read_text() == made_from:
        return
    say(f"making {path.name}")
    stamp.unlink(missing_ok=True)
    part = path.with_name("part-" + path.name)
    words = [str(part) if word == "{out}" else word for word in command]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    part.rename(path)
    stamp.write_text(made_from)


class Server:
    """`server.py` in a process of its own, so that its work is charged to no player."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, HERE / "server.py", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the web server of the bench did not start")
        self.port = int(line)
        self.base = f"http://127.0.0.1:{self.port}"
        self.asked = 0

    def url(self, recording):
        """A URL that nobody has asked for before, so that no player can have it cached."""
        self.asked += 1
        return f"{self.base}/{self.asked}/{recording.file}"

    def ranges(self, url):
        """The ranges of this URL that were sent so far: (first byte, one past the last), in the order of sending."""
        self.process.stdin.write(url.removeprefix(self.base) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


class Line:
    """`delay.py` in front of a server: each play gets a line of its own, so that no connection is there already."""

    def __init__(self, server):
        self.server = server
        self.process = subprocess.Popen(
            [sys.executable, HERE / "delay.py", str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def order(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer:
            raise RuntimeError("the delaying line of the bench has ended")
        return [int(word) for word in answer]

    def url(self, recording, round_trip_ms):
        """A fresh URL over a fresh line with this round trip."""
        (port,) = self.order("open", round_trip_ms)
        return self.server.url(recording).replace(self.server.base, f"http://127.0.0.1:{port}")

    def brought(self, until_ns):
        """Bytes that the line of the newest URL had brought up to this moment, heads included."""
        return self.order("count", until_ns)[0]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)
