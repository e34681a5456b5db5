#!/usr/bin/env python3
"""The Python SDK: the values that a plugin answers with.

    python3 tests/plugins/test_python_sdk_models.py
"""

import sys

sys.dont_write_bytecode = True

import unittest  # noqa: E402

from odd_plugin import sdk  # noqa: E402


class Models(unittest.TestCase):
    def test_a_wrong_name_or_type_is_a_type_error(self):
        for make in (
            lambda: sdk.StreamInfo("https://h/", "audio/flac", expire_at=None), lambda: sdk.StreamInfo("https://h/"),
            lambda: sdk.Track(1, "A"), lambda: sdk.Track("a", None), lambda: sdk.Track("a", "A", duration_ms=1.0),
            lambda: sdk.Track("a", "A", duration_ms=True), lambda: sdk.Track("a", "A", explicit=1),
            lambda: sdk.Track("a", "A", artists=["N"]), lambda: sdk.Track("a", "A", genres="rock"),
            lambda: sdk.Track("a", "A", genres=[1]), lambda: sdk.Track("a", "A", album={"title": "B"}),
            lambda: sdk.Album("a", "A", [sdk.Track("a", "A")]), lambda: sdk.Album("a", "A"),
            lambda: sdk.Gain(track_db="1"), lambda: sdk.StreamInfo("https://h/", "a/b", headers={"a": 1}),
            lambda: sdk.StreamInfo("https://h/", "a/b", alternatives="https://h/"), lambda: sdk.RateLimited("soon"),
        ):
            self.assertRaises(TypeError, make)

    def test_a_value_that_the_host_would_refuse_is_a_value_error(self):
        def stream(**more):
            return sdk.StreamInfo(**dict({"url": "https://h/", "content_type": "audio/flac"}, **more))
        for make in (
            lambda: sdk.SearchResult("song", "a", "A"), lambda: sdk.Track("", "A"), lambda: sdk.Track("x" * 2001, "A"),
            lambda: sdk.Track("a", "\udcff"), lambda: sdk.Track("a", "A", duration_ms=-1),
            lambda: sdk.Track("a", "A", track_no=2 ** 32), lambda: sdk.Track("a", "A", duration_ms=2 ** 64),
            lambda: sdk.Track("a", "A", date="2026-1-1"), lambda: sdk.Track("a", "A", date="2026-13-01"),
            lambda: sdk.Track("a", "A", date="2026\n"), lambda: sdk.Gain(track_db=float("nan")),
            lambda: sdk.Album("a", "A", [], album_type="lp"), lambda: stream(url="ftp://h/"),
            lambda: stream(url="h/x"), lambda: stream(url="https://h/a b"), lambda: stream(url="https://"),
            lambda: stream(content_type=""), lambda: stream(expires_at="tomorrow"),
            lambda: stream(headers={"Range": "x"}), lambda: stream(headers={"a b": "x"}),
            lambda: stream(headers={"a": "x\r\ny"}), lambda: stream(alternatives=["https://h/"] * 17),
            lambda: stream(alternatives=["ftp://h/"]), lambda: sdk.ContentUnavailable("because"),
        ):
            self.assertRaises(ValueError, make)
        with self.assertRaisesRegex(ValueError, "StreamInfo.headers") as raised:
            stream(headers={"a": "secret\n"})
        self.assertNotIn("secret", str(raised.exception))

    def test_good_values_of_every_field_are_sent_as_they_are(self):
        track = {"content_id": "a", "title": "A", "artists": [{"name": "N", "content_id": "n"}], "track_no": 0,
                 "disc_no": 1, "duration_ms": 5, "album": {"title": "B", "content_id": "b"}, "date": "2026-02-28",
                 "genres": ["g"], "isrc": "i", "musicbrainz_id": "m", "explicit": False,
                 "artwork": [{"url": "http://h/i", "width": 1, "height": 2}],
                 "gain": {"track_db": -1, "track_peak": 0.5, "album_db": 0.0, "album_peak": 1.5}}
        self.assertEqual(sdk.Track(**dict(track, artists=[sdk.ArtistRef("N", "n")], album=sdk.AlbumRef("B", "b"),
                                          artwork=(sdk.Image("http://h/i", 1, 2),),
                                          gain=sdk.Gain(-1, 0.5, 0.0, 1.5))).to_wire(), track)
        self.assertEqual(sdk.Album("a", "A", []).to_wire(), {"content_id": "a", "title": "A", "tracks": []})
        info = {"url": "https://u:p@h:1/x?y#z", "content_type": "audio/flac", "duration_ms": 1, "file_size_bytes": 2 ** 40,
                "expires_at": "2026-01-31T12:00:00.5+01:00", "expires_in_ms": 2 ** 64 - 1, "headers": {},
                "seekable": False, "live": True, "alternatives": ["file:///music/a"]}
        self.assertEqual(sdk.StreamInfo(**info).to_wire(), info)

    def test_models_cannot_be_changed_to_a_wrong_field(self):
        with self.assertRaises(AttributeError):
            sdk.Track("a", "A").durations_ms = 1


if __name__ == "__main__":
    unittest.main()
