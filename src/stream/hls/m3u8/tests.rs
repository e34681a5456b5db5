//! Playlists that were seen, and such as nobody should send.

use proptest::prelude::*;

use super::*;

pub(super) fn base() -> Url {
    Url::parse("https://radio.example/live/list.m3u8?key=secret").unwrap()
}

fn media(text: &str) -> Media {
    match parse(text, &base()).unwrap() {
        Playlist::Media(media) => media,
        Playlist::Master(_) => panic!("taken for a master playlist"),
    }
}

#[test]
fn a_live_window_is_read_with_its_numbers() {
    let media = media(
        "\u{feff}#EXTM3U\r\n#EXT-X-VERSION:3\r\n#EXT-X-TARGETDURATION:6\r\n#EXT-X-MEDIA-SEQUENCE:1000\r\n\
         #EXTINF:6.0,Artist, with a comma, Song\r\na.aac\r\n#EXT-X-PROGRAM-DATE-TIME:nonsense\r\n\
         #EXTINF:5.5\r\n/b.aac?x=1\r\n#EXT-X-DISCONTINUITY-SEQUENCE:4\r\n#EXT-X-DISCONTINUITY\r\n#EXTINF:6,\r\n\
         https://cdn.example/c.aac\r\n#EXT-X-GAP\r\n#EXTINF:6,\r\nd.aac"
            .trim_start_matches('\u{feff}'),
    );
    assert_eq!((media.sequence, media.end(), media.ended), (1000, 1004, false));
    assert_eq!(media.target, Duration::from_secs(6));
    let links: Vec<_> = media.segments.iter().map(|segment| segment.url.as_str()).collect();
    assert_eq!(
        links,
        [
            "https://radio.example/live/a.aac",
            "https://radio.example/b.aac?x=1",
            "https://cdn.example/c.aac",
            "https://radio.example/live/d.aac",
        ]
    );
    let broken: Vec<_> = media.segments.iter().map(|segment| segment.discontinuity).collect();
    assert_eq!(broken, [false, false, true, false]);
    assert!(media.segments[3].gap && !media.segments[2].gap);
    assert_eq!(media.segments[1].duration, Duration::from_secs_f32(5.5));
    assert_eq!(media.live_edge(), 1001);
    assert_eq!(media.segment(1002), Some(&media.segments[2]));
    assert_eq!(media.segment(999), None);
    assert_eq!(media.segment(1004), None);
}

#[test]
fn ranges_follow_each_other_and_heads_hold_until_the_next() {
    let media = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"700\"\n\
         #EXTINF:4,\n#EXT-X-BYTERANGE:1000@700\nall.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:500\nall.mp4\n\
         #EXT-X-MAP:URI=\"two.mp4\"\n#EXTINF:4,\nother.mp4\n#EXT-X-ENDLIST\n",
    );
    let range = |from, to| Some(Range { from, to });
    let ranges: Vec<_> = media.segments.iter().map(|segment| segment.range).collect();
    assert_eq!(ranges, [range(700, 1700), range(1700, 2200), None]);
    let maps: Vec<_> = media.segments.iter().map(|segment| segment.map.as_ref().unwrap().range).collect();
    assert_eq!(maps, [range(0, 700), range(0, 700), None]);
    assert!(media.ended);
}

#[test]
fn a_key_holds_until_the_one_that_is_none() {
    let media = media(
        "#EXTM3U\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\na\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:4,\nb\n\
         #EXTINF:4,\nc\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\nd\n#EXT-X-KEY:URI=\"k\"\n#EXTINF:4,\ne\n",
    );
    let encrypted: Vec<_> = media.segments.iter().map(|segment| segment.encrypted).collect();
    assert_eq!(encrypted, [false, true, true, false, true]);
}

#[test]
fn a_live_stream_begins_where_it_asks() {
    let text = |start: &str| {
        let mut text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:10\n{start}\n");
        for n in 0..8 {
            text += &format!("#EXTINF:4,\n{n}.ts\n");
        }
        media(&text).live_edge()
    };
    assert_eq!(text(""), 15);
    assert_eq!(text("#EXT-X-START:TIME-OFFSET=-20.0"), 13);
    assert_eq!(text("#EXT-X-START:TIME-OFFSET=9"), 12);
    assert_eq!(text("#EXT-X-START:TIME-OFFSET=-900"), 10);
    assert_eq!(text("#EXT-X-START:TIME-OFFSET=900"), 17);
}

#[test]
fn https_does_not_lead_to_http_nor_anything_to_the_disk() {
    for uri in ["http://radio.example/a.ts", "file:///etc/passwd", "data:audio/aac,x"] {
        assert!(parse(&format!("#EXTM3U\n#EXTINF:4,\n{uri}\n"), &base()).is_err(), "{uri}");
    }
}

#[test]
fn a_playlist_has_a_limit() {
    let text = format!("#EXTM3U\n{}", "#EXTINF:1,\na\n".repeat(MOST_SEGMENTS + 1));
    assert_eq!(parse(&text, &base()), Err("it lists more than 10,000 segments"));
}

#[test]
fn numbers_without_a_successor_are_refused() {
    let text = |first: u64, count: usize| {
        let segments = "#EXTINF:1,\na\n".repeat(count);
        parse(&format!("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:{first}\n{segments}"), &base())
    };
    assert_eq!(text(u64::MAX, 1), Err("the numbers of its segments are too large"));
    assert_eq!(text(u64::MAX - 2, 5), Err("the numbers of its segments are too large"));
    let Ok(Playlist::Media(last)) = text(u64::MAX - 1, 1) else { panic!("it is not read") };
    assert_eq!((last.end(), last.segment(u64::MAX - 1).is_some()), (u64::MAX, true));
}

#[test]
fn no_text_takes_long() {
    let began = std::time::Instant::now();
    let hostile = ["#EXT-X-KEY:a\n", "#EXT-X-MAP:a,", "#EXTINF:1,\n", "#EXT-X-STREAM-INF:a\n", "a\n"];
    for text in hostile {
        let _ = parse(&format!("#EXTM3U\n{}", text.repeat(1024 * 1024 / text.len())), &base());
        let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na\n";
        let _ = parse(&format!("{master}{}", text.repeat(1024 * 1024 / text.len())), &base());
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser_or_leads_elsewhere_than_to_a_server(
        words in prop::collection::vec(prop::sample::select(vec![
            "#EXTM3U", "\n", "\r\n", "#EXTINF:", "1", "99999999999999999999", "1e39", "-", ".", ",", "=", "\"", "@", "a",
            "http://b/", "file:///x", "//", "#EXT-X-KEY:", "METHOD=", "NONE", "AES-128", "#EXT-X-MAP:", "URI=", "BYTERANGE=",
            "#EXT-X-BYTERANGE:", "#EXT-X-MEDIA-SEQUENCE:", "#EXT-X-TARGETDURATION:", "#EXT-X-ENDLIST", "#EXT-X-START:",
            "TIME-OFFSET=", "#EXT-X-STREAM-INF:", "BANDWIDTH=", "CODECS=", "AUDIO=", "#EXT-X-MEDIA:", "TYPE=AUDIO", "GROUP-ID=",
            "NAME=", "DEFAULT=YES", "\u{feff}", "é", " ", "#", "mp4a.40.2",
        ]), 0..80),
    ) {
        match parse(&format!("#EXTM3U\n{}", words.concat()), &base()) {
            Ok(Playlist::Media(media)) => {
                for segment in &media.segments {
                    prop_assert_eq!(segment.url.scheme(), "https");
                    prop_assert!(segment.range.is_none_or(|range| range.from < range.to));
                }
                let edge = media.live_edge();
                prop_assert!(media.segments.is_empty() || media.segment(edge).is_some());
            }
            Ok(Playlist::Master(urls)) => {
                prop_assert!(!urls.is_empty());
                prop_assert!(urls.iter().all(|url| url.scheme() == "https"));
            }
            Err(_) => {}
        }
    }
}
