"""What the bench asks of a player, whichever it is."""

import subprocess
import time
from dataclasses import dataclass


class PlayerFailed(Exception):
    """A player could not do its part; the message says which and where its log is."""


@dataclass(frozen=True)
class Settings:
    """What a player is to do to the samples: nothing, unless something is said here.

    `volume` is in per cent, `track_gain` in dB as the recording's tag says it (only followed, never searched for, by
    squeezelite), `card_rate` the only rate that the card has. With `well_resampled` MPD, whose default is libsamplerate's
    fastest converter, takes soxr at high quality."""

    volume: int = 100
    track_gain: float | None = None
    card_rate: int | None = None
    well_resampled: bool = False


PLAIN = Settings()


class Player:
    """One process with a card of its own, and an open connection for its commands.

    Subclasses start it, and say how to play and stop. All waiting is done on the card's log,
    so that no player pays for being asked how far it is."""

    name = "?"
    # Whether `stop` makes this player give the card back, in words for the report.
    closes = "closes the card on stop"

    def __init__(self, card, settings=PLAIN):
        self.card = card
        self.settings = settings
        self.process = None
        self.log_path = card.folder / f"{self.name}.log"

    @property
    def pid(self):
        return self.process.pid

    def spawn(self, command, **options):
        log = self.log_path.open("ab")
        environment = {**self.card.environment(), **options.pop("environment", {})}
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", log)
        self.process = subprocess.Popen(command, stderr=log, env=environment, cwd=self.card.folder, **options)
        log.close()

    def check_alive(self):
        if self.process.poll() is not None:
            raise PlayerFailed(f"{self.name} ended by itself (status {self.process.returncode}); see {self.log_path}")

    def retry(self, attempt, seconds=20):
        """Calls `attempt` until it raises no OSError: the way to wait for a socket to be listened on."""
        deadline = time.monotonic() + seconds
        while True:
            self.check_alive()
            try:
                return attempt()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise PlayerFailed(f"{self.name} does not answer ({error}); see {self.log_path}") from error
                time.sleep(0.02)

    def start(self):
        """Starts the process and returns when it takes commands."""
        raise NotImplementedError

    def prepare(self, url):
        """What a client may do ahead of Play."""

    def play(self, url):
        """Plays; returns the monotonic time in ns just before the request was sent."""
        raise NotImplementedError

    def play_both(self, urls):
        """Plays the first, with the second behind it."""
        raise NotImplementedError

    def seek(self, seconds):
        """To this position in the track."""
        raise NotImplementedError

    def next(self):
        """Skips to the next track."""
        raise NotImplementedError

    def stop(self):
        raise NotImplementedError

    def output(self):
        """What the player says of its output, where it says anything."""
        return {}

    def disconnect(self):
        """Closes the connection for commands."""

    def version(self):
        """The first line of what the program says about its version."""
        raise NotImplementedError

    def close(self):
        if self.process is None:
            return
        self.disconnect()
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()


def first_line(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.splitlines()[0].strip() if done.stdout else "?"
