//! HTTP Live Streaming: the pieces that playlists list, as one run of bytes.

#![allow(dead_code)] // TEMP

mod m3u8;
