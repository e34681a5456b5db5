//! Playlists of albums, on a real server.

use crate::support::prelude::*;

#[tokio::test]
async fn an_albums_playlist_becomes_its_tracks_and_plays_them_without_a_break() {
    let (card, server) = (Card::new().plug(), Server::start());
    let tracks = [60, 61, 62].map(|seed| Recording::music(seed, 44_100, 16, 1.3));
    for (name, track) in ["/album/one.flac", "/album/two.wav", "/three.flac"].iter().zip(&tracks) {
        let codec = if name.ends_with("wav") { Codec::Wav } else { Codec::Flac };
        server.serve(name, track.encode(codec));
    }
    let text = "#EXTM3U\r\n#EXTINF:1,Somebody - One\r\none.flac\r\n#EXTINF:1,Two\r\ntwo.wav\r\n\
                #EXTINF:1,Three\r\n/three.flac\r\n";
    let url = server.serve_text("/album/list.m3u", "audio/x-mpegurl", text);
    let last = Recording::music(63, 44_100, 16, 0.7);
    let after = server.serve("/after.flac", last.encode(Codec::Flac));
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url, after.clone()]).await;
    let whole = tracks[0].clone().then(&tracks[1]).then(&tracks[2]).then(&last);
    assert_exact(&card.music(), &whole);
    let queued: Vec<String> = daemon.listed().await.into_iter().map(|(_, uri)| uri).collect();
    let paths = ["/album/one.flac", "/album/two.wav", "/three.flac"].map(|path| server.url(path));
    assert_eq!(queued, [&paths[..], &[after]].concat());
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
    for path in ["/album/list.m3u", "/album/one.flac", "/album/two.wav", "/three.flac"] {
        assert_eq!(server.requests(path).len(), 1, "{path} is fetched once");
    }
}

#[tokio::test]
async fn a_dead_link_of_an_album_costs_that_track_alone() {
    let (card, server) = (Card::new().plug(), Server::start());
    let tracks = [64, 65].map(|seed| Recording::music(seed, 44_100, 16, 1.0));
    server.serve("/one.flac", tracks[0].encode(Codec::Flac));
    server.serve("/three.flac", tracks[1].encode(Codec::Flac));
    let text =
        "[playlist]\nFile1=one.flac\nLength1=1\nFile2=gone.flac\nLength2=1\nFile3=three.flac\nLength3=1\n";
    let url = server.serve_text("/list.pls", "audio/x-scpls", text);
    let mut daemon = Daemon::new().card(&card).start().await;
    daemon.play_to_the_end(&[url]).await;
    assert_exact(&card.music(), &tracks[0].clone().then(&tracks[1]));
    let errors = daemon.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("gone.flac"), "{errors:?}");
}
