use proptest::prelude::*;

use super::super::adts::tests::frame;
use super::*;

const PROGRAMME: u16 = 0x1000;
const PICTURES: u16 = 0x100;
const SOUND: u16 = 0x101;

/// The checksum of a table.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |mut crc, byte| {
        crc ^= u32::from(*byte) << 24;
        for _ in 0..8 {
            crc = if crc & 1 << 31 == 0 { crc << 1 } else { crc << 1 ^ 0x04c1_1db7 };
        }
        crc
    })
}

/// A table in a packet's payload.
fn table(id: u8, version: u8, body: &[u8]) -> Vec<u8> {
    let length = 5 + body.len() + 4;
    let mut table = vec![id, 0xb0 | (length >> 8) as u8, length as u8, 0, 1, 0xc1 | version << 1, 0, 0];
    table.extend_from_slice(body);
    let crc = crc(&table);
    table.extend(crc.to_be_bytes());
    [vec![0], table].concat()
}

fn pat() -> Vec<u8> {
    table(0, 0, &[0, 1, 0xe0 | (PROGRAMME >> 8) as u8, PROGRAMME as u8])
}

fn pmt(version: u8, streams: &[(u8, u16)]) -> Vec<u8> {
    let mut body = vec![0xe0 | (SOUND >> 8) as u8, SOUND as u8, 0xf0, 0];
    for (kind, pid) in streams {
        body.extend([*kind, 0xe0 | (pid >> 8) as u8, *pid as u8, 0xf0, 0]);
    }
    table(2, version, &body)
}

/// Writes packets, with their counters.
#[derive(Default)]
pub(in crate::stream::hls) struct Writer {
    pub bytes: Vec<u8>,
    counters: std::collections::HashMap<u16, u8>,
}

impl Writer {
    /// A payload of any length in as many packets as it takes.
    fn payload(&mut self, pid: u16, payload: &[u8], tables: bool) {
        let mut rest = payload;
        let mut first = true;
        while first || !rest.is_empty() {
            let counter = self.counters.entry(pid).or_insert(15);
            *counter = (*counter + 1) & 15;
            let start = if first { 0x40 } else { 0 };
            let mut packet = vec![SYNC, start | (pid >> 8) as u8, pid as u8, 0x10 | *counter];
            let room = PACKET - 4;
            if rest.len() < room && !tables {
                let stuffing = room - rest.len();
                packet[3] |= 0x20;
                packet.push((stuffing - 1) as u8);
                if stuffing > 1 {
                    packet.push(0);
                    packet.resize(4 + stuffing, 0xff);
                }
            }
            let taken = rest.len().min(room);
            packet.extend_from_slice(&rest[..taken]);
            packet.resize(PACKET, 0xff);
            self.bytes.extend(packet);
            rest = &rest[taken..];
            first = false;
        }
    }

    pub fn tables(&mut self, kind: u8) {
        self.payload(0, &pat(), true);
        self.payload(PROGRAMME, &pmt(0, &[(0x1b, PICTURES), (kind, SOUND)]), true);
    }

    pub fn sound(&mut self, bytes: &[u8]) {
        self.packet(SOUND, 0xc0, bytes);
    }

    fn packet(&mut self, pid: u16, id: u8, bytes: &[u8]) {
        let length = bytes.len() + 8;
        let mut packet =
            vec![0, 0, 1, id, (length >> 8) as u8, length as u8, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1];
        packet.extend_from_slice(bytes);
        self.payload(pid, &packet, false);
    }
}

fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| frame(4, &vec![n as u8; 150 + n * 7 % 300])).collect()
}

fn demuxed(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Transport) {
    let (mut transport, mut out) = (Transport::default(), Sink::default());
    for piece in pieces {
        transport.push(piece, &mut out);
    }
    transport.end(&mut out);
    (out.take(), transport)
}

/// Packets of sound among pictures and tables.
fn stream(frames: &[Vec<u8>]) -> Vec<u8> {
    stream_with(frames, SYNC)
}

/// The same with pictures of this byte alone.
fn stream_with(frames: &[Vec<u8>], pictures: u8) -> Vec<u8> {
    let mut writer = Writer::default();
    for (n, group) in frames.chunks(3).enumerate() {
        if n % 4 == 0 {
            writer.tables(0x0f);
        }
        writer.packet(PICTURES, 0xe0, &[pictures; 500]);
        writer.sound(&group.concat());
    }
    writer.bytes
}

#[test]
fn sound_is_taken_from_among_pictures_whole() {
    let frames = frames(50);
    let (runs, transport) = demuxed(&[&stream(&frames)]);
    assert_eq!(runs, [frames.concat()]);
    assert_eq!(transport.codec(), Some(Codec::Aac));
}

#[test]
fn frames_that_span_packets_and_segments_are_joined() {
    let frames = frames(40);
    let all = frames.concat();
    let mut writer = Writer::default();
    writer.tables(0x0f);
    // No packet but the last ends with a frame.
    for piece in all.chunks(1_000) {
        writer.sound(piece);
    }
    let half = writer.bytes.len() / PACKET / 2 * PACKET;
    let (mut transport, mut out) = (Transport::default(), Sink::default());
    transport.push(&writer.bytes[..half], &mut out);
    transport.finish(&mut out);
    transport.push(&writer.bytes[half..], &mut out);
    transport.end(&mut out);
    assert_eq!(out.take(), [all]);
}

/// How many frames are missing in what else consists of nothing but frames.
fn missing(frames: &[Vec<u8>], kept: &[u8]) -> usize {
    let (mut at, mut missing) = (0, 0);
    for frame in frames {
        if kept[at..].starts_with(frame) {
            at += frame.len();
        } else {
            missing += 1;
        }
    }
    assert_eq!(at, kept.len(), "something is left that is no frame");
    missing
}

#[test]
fn a_lost_packet_costs_the_frames_that_it_held_and_no_others() {
    let frames = frames(60);
    let whole = stream(&frames);
    for lost in 3..whole.len() / PACKET {
        let mut damaged = whole.clone();
        damaged.drain(lost * PACKET..(lost + 1) * PACKET);
        assert!(missing(&frames, &demuxed(&[&damaged]).0[0]) <= 4, "packet {lost}");
    }
}

#[test]
fn packets_are_found_again_where_bytes_are_missing_or_too_many() {
    let frames = frames(30);
    let whole = stream_with(&frames, 0xaa);
    for at in (PACKET * 4..whole.len() - PACKET).step_by(67) {
        let inserted = [b"rubbish G in front", &whole[..at], &[1, 2, 3, 4, 5], &whole[at..]].concat();
        assert!(missing(&frames, &demuxed(&[&inserted]).0[0]) <= 4, "byte {at}");
        let dropped = [&whole[..at], &whole[at + 5..]].concat();
        assert!(missing(&frames, &demuxed(&[&dropped]).0[0]) <= 4, "byte {at}");
    }
}

#[test]
fn a_segment_without_tables_is_understood_by_those_of_the_one_before() {
    let frames = frames(20);
    let mut writer = Writer::default();
    writer.tables(0x0f);
    writer.sound(&frames[..10].concat());
    let first = std::mem::take(&mut writer.bytes);
    writer.sound(&frames[10..].concat());
    let (mut transport, mut out) = (Transport::default(), Sink::default());
    transport.push(&first, &mut out);
    transport.finish(&mut out);
    transport.push(&writer.bytes, &mut out);
    transport.end(&mut out);
    assert_eq!(out.take(), [frames.concat()]);
}

#[test]
fn tables_that_are_damaged_are_read_in_the_next_segment() {
    let frames = frames(20);
    let whole = stream(&frames);
    let mut damaged = whole.clone();
    damaged[PACKET + 20] ^= 1;
    let (mut transport, mut out) = (Transport::default(), Sink::default());
    transport.push(&damaged[..PACKET * 8], &mut out);
    transport.finish(&mut out);
    assert_eq!(transport.codec(), None);
    transport.push(&whole, &mut out);
    transport.end(&mut out);
    assert_eq!(out.take(), [frames.concat()]);
}

#[test]
fn sound_in_other_packets_or_of_another_kind_is_another_recording() {
    let (a, b) = (frames(6), frames(9));
    let mut writer = Writer::default();
    writer.tables(0x0f);
    writer.sound(&a.concat());
    writer.payload(PROGRAMME, &pmt(1, &[(0x0f, SOUND + 7)]), true);
    writer.packet(SOUND + 7, 0xc0, &b.concat());
    assert_eq!(demuxed(&[&writer.bytes]).0, [a.concat(), b.concat()]);
}

#[test]
fn what_cannot_be_played_is_named() {
    let obstacle = |kind| {
        let mut writer = Writer::default();
        writer.tables(kind);
        demuxed(&[&writer.bytes]).1.obstacle()
    };
    assert_eq!(obstacle(0x11), Some("its sound is AAC in LATM, which cannot be played"));
    assert_eq!(obstacle(0x81), Some("its sound is AC-3 or DTS, which cannot be played"));
    assert_eq!(obstacle(0xcf), Some(crate::stream::hls::ENCRYPTED));
    assert_eq!(obstacle(0x0f), None);
    let mut mislabelled = Writer::default();
    mislabelled.tables(0x0f);
    mislabelled.sound(&[&[0x56, 0xe1, 0x9b][..], &[7; 400]].concat());
    let (runs, transport) = demuxed(&[&mislabelled.bytes]);
    assert!(runs.concat().is_empty() && transport.obstacle() == Some(LATM));
    let mut writer = Writer::default();
    writer.tables(0x0f);
    let tables = writer.bytes.len();
    writer.sound(&frames(3).concat());
    writer.bytes[tables + 3] |= 0x80;
    assert_eq!(demuxed(&[&writer.bytes]).1.obstacle(), Some(crate::stream::hls::ENCRYPTED));
}

#[test]
fn mp3_is_given_on_as_it_is() {
    let mut writer = Writer::default();
    writer.tables(0x03);
    writer.sound(&[7; 1_000]);
    let (runs, transport) = demuxed(&[&writer.bytes]);
    assert_eq!((runs, transport.codec()), (vec![vec![7; 1_000]], Some(Codec::Mpeg)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_does_not_matter_how_the_bytes_are_cut(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let frames = frames(40);
        let whole = stream(&frames);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([whole.len()]) {
            pieces.push(&whole[from..cut]);
            from = cut;
        }
        prop_assert_eq!(demuxed(&pieces).0, [frames.concat()]);
    }

    #[test]
    fn no_damage_breaks_it(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = stream(&frames(20));
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let cut = cut.index(bytes.len());
        demuxed(&[&bytes[..cut], &bytes[cut..]]);
    }
}
