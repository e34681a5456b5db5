"""What lossy recordings sound like: the daemon's own decoding of the files, undisturbed, checked against the source."""

import time

import card as cards
from players.segued import PLAYER

from .sounds import FRAME, Decoded, likeness

# Codecs change much of a quiet noise, but what is left of it stays where it is: elsewhere the likeness is 0.01.
ALIKE = 0.1
SECONDS = 300


def play(soak, rate, tracks):
    """Plays files of one rate from the disk, on a card that takes at once what it is given. Recordings by number."""
    name = f"reference-{rate}"
    with soak.daemon(name, f'{cards.ON_DEMAND} formats "S32_LE"') as daemon:
        uris = [f"file://{soak.folder}/music/{track.file}" for track in tracks]
        daemon.call(PLAYER, "PlayUris", "as", uris)
        until = time.monotonic() + SECONDS
        while not any(kind == "finished" for _, kind, *_ in daemon.heard):
            daemon.listen(0.2)
            daemon.check_alive()
            errors = [more for _, kind, *more in daemon.heard if kind == "error"]
            if errors or time.monotonic() > until:
                raise RuntimeError(f"the MP3 files cannot be played undisturbed: {errors or 'no end'}")
    captures = sorted(daemon.card.folder.glob("capture-*.raw"))
    wanted = sum(track.frames for track in tracks)
    if len(captures) != 1 or captures[0].stat().st_size < wanted * FRAME:
        raise RuntimeError(f"of {wanted} frames of MP3 only {[one.stat().st_size // FRAME for one in captures]} were heard")
    found, first = {}, 0
    for track in tracks:
        decoded = Decoded(captures[0], rate, first, track.frames)
        for at in (rate, track.frames // 2, track.frames - 2 * rate):
            alike = likeness(decoded.pcm(at, 3000), soak.recordings[track.number].pcm(at, 3000))
            if alike < ALIKE:
                raise RuntimeError(f"MP3 {track.number} at frame {at} is not its source (likeness {alike:.2f})")
        found[track.number] = decoded
        first += track.frames
    return found
