//! Matroska as mkvmerge lays it out: cues that lead into the middle of clusters, and several frames in a block.

use std::ops::Range;
use std::path::PathBuf;

use super::fixture::*;

const EBML: u32 = 0x1a45_dfa3;
const SEGMENT: u32 = 0x1853_8067;
const SEEK_HEAD: u32 = 0x114d_9b74;
const INFO: u32 = 0x1549_a966;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK: u32 = 0xae;
const LACING: u32 = 0x9c;
const DEFAULT_DURATION: u32 = 0x23_e383;
const CLUSTER: u32 = 0x1f43_b675;
const TIMESTAMP: u32 = 0xe7;
const SIMPLE_BLOCK: u32 = 0xa3;
const BLOCK_GROUP: u32 = 0xa0;
const BLOCK: u32 = 0xa1;
const CUES: u32 = 0x1c53_bb6b;

struct Element {
    id: u32,
    body: Range<usize>,
}

/// The elements in a part of a file that is as it should be.
fn elements(bytes: &[u8], within: Range<usize>) -> Vec<Element> {
    let (mut at, mut found) = (within.start, Vec::new());
    while at < within.end {
        let len = bytes[at].leading_zeros() as usize + 1;
        let id = bytes[at..at + len].iter().fold(0, |id, &byte| id << 8 | u32::from(byte));
        at += len;
        let len = bytes[at].leading_zeros() as usize + 1;
        let size = bytes[at..at + len].iter().fold(0u64, |size, &byte| size << 8 | u64::from(byte));
        at += len;
        let body = at..at + (size & ((1 << (7 * len)) - 1)) as usize;
        at = body.end;
        found.push(Element { id, body });
    }
    found
}

fn wrap(id: u32, body: &[u8]) -> Vec<u8> {
    let id: Vec<u8> = id.to_be_bytes().into_iter().skip_while(|&byte| byte == 0).collect();
    let size = (body.len() as u64 | 1 << 56).to_be_bytes();
    [&id[..], &size, body].concat()
}

fn number(id: u32, value: u64) -> Vec<u8> {
    wrap(id, &value.to_be_bytes())
}

/// One frame of the codec, with its time in milliseconds.
struct Frame {
    ts: u64,
    data: Vec<u8>,
    /// What stands beside it in its group.
    beside: Vec<u8>,
}

fn frames(bytes: &[u8], segment: &[Element]) -> Vec<Frame> {
    let mut found = Vec::new();
    for cluster in segment.iter().filter(|element| element.id == CLUSTER) {
        let mut start = 0;
        for inner in elements(bytes, cluster.body.clone()) {
            let body = &bytes[inner.body.clone()];
            let mut take = |block: &[u8], beside: Vec<u8>| {
                let ts = start + u64::from(u16::from_be_bytes([block[1], block[2]]));
                found.push(Frame { ts, data: block[4..].to_vec(), beside });
            };
            match inner.id {
                TIMESTAMP => start = body.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
                SIMPLE_BLOCK => take(body, Vec::new()),
                BLOCK_GROUP => {
                    let parts = elements(bytes, inner.body.clone());
                    let block = parts.iter().find(|part| part.id == BLOCK).unwrap();
                    take(&bytes[block.body.clone()], bytes[block.body.end..inner.body.end].to_vec());
                }
                _ => {}
            }
        }
    }
    found
}

/// Several frames as one block, by Xiph's lacing.
fn block(frames: &[Frame], cluster: u64) -> Vec<u8> {
    let ts = ((frames[0].ts - cluster) as u16).to_be_bytes();
    let mut block = vec![0x81, ts[0], ts[1], if frames.len() > 1 { 0x02 } else { 0 }];
    if let [front @ .., _] = frames
        && !front.is_empty()
    {
        block.push(front.len() as u8);
        for frame in front {
            block.extend(std::iter::repeat_n(255, frame.data.len() / 255));
            block.push((frame.data.len() % 255) as u8);
        }
    }
    frames.iter().for_each(|frame| block.extend(&frame.data));
    match frames {
        [frame] if !frame.beside.is_empty() => {
            wrap(BLOCK_GROUP, &[wrap(BLOCK, &block), frame.beside.clone()].concat())
        }
        _ => wrap(SIMPLE_BLOCK, &block),
    }
}

/// The same sound in clusters of one and a half seconds, each with three cues, `lace` frames in a block.
fn laid_out(bytes: &[u8], lace: usize, frame_ns: u64) -> Vec<u8> {
    let all = elements(bytes, 0..bytes.len());
    let segment = elements(bytes, all.iter().find(|element| element.id == SEGMENT).unwrap().body.clone());
    let part = |id: u32| segment.iter().find(|element| element.id == id).unwrap().body.clone();
    let track = elements(bytes, part(TRACKS)).into_iter().find(|element| element.id == TRACK).unwrap();
    let kept = elements(bytes, track.body).into_iter().filter(|field| field.id != LACING);
    let mut fields: Vec<u8> = kept.flat_map(|field| wrap(field.id, &bytes[field.body])).collect();
    fields.extend([number(LACING, 1), number(DEFAULT_DURATION, frame_ns)].concat());
    let head = [wrap(INFO, &bytes[part(INFO)]), wrap(TRACKS, &wrap(TRACK, &fields))].concat();
    let seek_head = |at: u64| {
        wrap(SEEK_HEAD, &wrap(0x4dbb, &[wrap(0x53ab, &CUES.to_be_bytes()), number(0x53ac, at)].concat()))
    };

    let (mut body, mut cues) = ([seek_head(0), head].concat(), Vec::new());
    let frames = frames(bytes, &segment);
    let mut rest = &frames[..];
    while let Some(first) = rest.first() {
        let within = rest.partition_point(|frame| frame.ts < first.ts + 1_500);
        let (cluster, behind) = rest.split_at(within);
        let (mut inner, mut cued) = (number(TIMESTAMP, first.ts), None);
        let mut blocks = cluster;
        while !blocks.is_empty() {
            // What stands beside a frame is its own.
            let alone = blocks.iter().position(|frame| !frame.beside.is_empty()).unwrap_or(blocks.len());
            let (laced, more) = blocks.split_at(lace.min(alone.max(1)).min(blocks.len()));
            if cued.is_none_or(|ts| laced[0].ts >= ts + 500) {
                cued = Some(laced[0].ts);
                let fields =
                    [number(0xf7, 1), number(0xf1, body.len() as u64), number(0xf0, inner.len() as u64)];
                cues.extend(wrap(0xbb, &[number(0xb3, laced[0].ts), wrap(0xb7, &fields.concat())].concat()));
            }
            inner.extend(block(laced, first.ts));
            blocks = more;
        }
        body.extend(wrap(CLUSTER, &inner));
        rest = behind;
    }
    let seek_head = seek_head(body.len() as u64);
    body[..seek_head.len()].copy_from_slice(&seek_head);
    body.extend(wrap(CUES, &cues));
    let ebml = all.iter().find(|element| element.id == EBML).unwrap().body.clone();
    [wrap(EBML, &bytes[ebml]), wrap(SEGMENT, &body)].concat()
}

/// A file, the length of its frames, and the noise in dB that may differ after a jump; None where nothing may.
fn files() -> Vec<(PathBuf, u64, Option<f64>)> {
    let pcm = recording();
    let opus = Pcm::music(48_000, 2, 16, 254_321);
    vec![
        (ffmpeg(&opus, "opus.webm", &["-c:a", "libopus", "-b:a", "160k"]), 20_000_000, Some(-60.0)),
        (ffmpeg(&pcm, "aac.mka", &["-c:a", "aac", "-b:a", "192k"]), 23_219_955, Some(-45.0)),
        (ffmpeg(&pcm, "mp3.mka", &["-c:a", "libmp3lame", "-b:a", "192k"]), 26_122_449, None),
        (ffmpeg(&pcm, "flac.mka", &["-c:a", "flac"]), 104_489_796, None),
    ]
}

#[test]
fn files_of_mkvmerge_play_and_jump_as_those_of_ffmpeg() {
    for (path, frame_ns, limit) in files() {
        let bytes = std::fs::read(&path).unwrap();
        let whole = rest(&mut from_memory(bytes.clone()));
        let frames = whole.len() / 2;
        for lace in [1, 8] {
            let name = format!("{} in blocks of {lace}", path.file_name().unwrap().display());
            let laced = laid_out(&bytes, lace, frame_ns);
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), laced).unwrap();
            assert!(rest(&mut open(file.path())) == whole, "{name}");
            let mut decoder = open(file.path());
            let mut loudest = f64::NEG_INFINITY;
            for jump in 1..120usize {
                let frame = jump * 7_919_317 % (frames - 600);
                let landed = decoder.seek(frame as u64).unwrap();
                assert_eq!((landed.frame, landed.exact), (frame as u64, true), "{name}, jump {jump}");
                // So much that it does not end with a block.
                let got = some(&mut decoder, 500 + jump * 50);
                let want = &whole[frame * 2..][..got.len()];
                match limit {
                    None => assert!(got == want, "{name}, jump {jump} to {frame}"),
                    Some(_) => loudest = loudest.max(difference_db(want, &got)),
                }
            }
            eprintln!("{name}: at most {loudest:.1} dB");
            assert!(loudest < limit.unwrap_or(0.0), "{name}: {loudest:.1} dB");
        }
    }
}
