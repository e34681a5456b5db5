"""What the demo plugin has to offer: three pieces, one album, one artist, and how they are found."""

import os
import unicodedata

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "music")

ARTIST = {"name": "The Segue developers", "content_id": "segue-developers"}
ALBUM = {"title": "First Light", "content_id": "first-light"}
DATE = "2026"
GENRES = ["Acoustic", "Ambient", "Minimalism"]
#: ReplayGain 2 (reference -18 LUFS), measured over the three decoded files together.
ALBUM_GAIN = {"album_db": 0.9, "album_peak": 0.566}


class Piece:
    """One recording: its metadata, and the encoded file that its URL leads to."""

    def __init__(self, number, content_id, title, file, content_type, duration_ms, genre, track_db, track_peak):
        self.number = number
        self.content_id = content_id
        self.title = title
        self.file = file
        self.path = os.path.join(FOLDER, file)
        self.content_type = content_type
        self.duration_ms = duration_ms
        self.genre = genre
        self.gain = dict(track_db=track_db, track_peak=track_peak, **ALBUM_GAIN)

    def stub(self):
        return {"content_id": self.content_id, "title": self.title, "artists": [ARTIST], "track_no": self.number,
                "disc_no": 1, "duration_ms": self.duration_ms}

    def track(self):
        return dict(self.stub(), album=ALBUM, date=DATE, genres=[self.genre], explicit=False, artwork=[],
                    gain=self.gain)


PIECES = [
    Piece(1, "dew", "Dew", "1-dew.flac", "audio/flac", 20000, "Acoustic", 2.3, 0.509),
    Piece(2, "slow-mist", "Slow Mist", "2-slow-mist.mp3", "audio/mpeg", 20000, "Ambient", 0.4, 0.498),
    Piece(3, "eclaircie", "Éclaircie", "3-eclaircie.opus", "audio/ogg", 25000, "Minimalism", 0.6, 0.566),
]
BY_ID = {piece.content_id: piece for piece in PIECES}


def album():
    return {"content_id": ALBUM["content_id"], "title": ALBUM["title"], "tracks": [p.stub() for p in PIECES],
            "artists": [ARTIST], "album_type": "ep", "date": DATE, "artwork": []}


def artist():
    return {"content_id": ARTIST["content_id"], "name": ARTIST["name"], "genres": GENRES, "albums": [ALBUM],
            "top_tracks": [p.stub() for p in PIECES], "artwork": [],
            "biography": "The people who write Segue. The music is composed and played by a Python script."}


KINDS = ("track", "album", "artist")


def words(text):
    """Folds case and accents away, and splits at everything that is not a letter or a digit."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return "".join(c if c.isalnum() else " " for c in plain.casefold()).split()


def search(query, limit, kinds):
    """Everything that contains each word of the query in its title, artist or album: tracks, then album, then artist.

    A blank query finds everything. Punctuation alone finds nothing.
    """
    wanted = words(query)
    if query.strip() and not wanted:
        return []
    results = []
    for piece in PIECES:
        result = dict(kind="track", album=ALBUM, explicit=False, **piece.stub())
        del result["track_no"], result["disc_no"]
        results.append((result, " ".join((piece.title, ARTIST["name"], ALBUM["title"]))))
    results.append((dict(kind="album", artists=[ARTIST], **ALBUM), ALBUM["title"] + " " + ARTIST["name"]))
    results.append(({"kind": "artist", "content_id": ARTIST["content_id"], "title": ARTIST["name"]}, ARTIST["name"]))

    def matches(text):
        hay = " ".join(words(text))
        return all(word in hay for word in wanted)

    return [result for result, text in results if result["kind"] in kinds and matches(text)][:limit]
