//! Every width and rate that a container can hold comes out bit for bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::fixture::*;

/// How samples lie in a file.
#[derive(Clone, Copy)]
enum Layout {
    /// RIFF with the short header.
    Wav,
    /// RIFF with WAVE_FORMAT_EXTENSIBLE, which tells how many bits of each sample are used.
    Extensible,
    /// The same without the bits, as floats.
    Float,
    /// AIFF, whose samples are as wide as the next whole byte.
    Aiff,
    /// AIFC of a compression type.
    Aifc(&'static [u8; 4]),
}

/// Writes `pcm` with `bytes` bytes a sample. What has fewer bits stands at the upper end, as the formats demand.
fn file(pcm: &Pcm, layout: Layout, bytes: usize) -> Vec<u8> {
    let (channels, bits) = (pcm.channels as u16, pcm.bits);
    let data: Vec<u8> = pcm.samples.iter().flat_map(|&sample| place(sample, layout, bytes)).collect();
    let mut out = Vec::new();
    match layout {
        Layout::Wav | Layout::Extensible | Layout::Float => {
            let tag: u16 = match layout {
                Layout::Wav => 1,
                Layout::Float => 3,
                _ => 0xfffe,
            };
            let block = channels * bytes as u16;
            let mut head = Vec::new();
            head.extend(tag.to_le_bytes());
            head.extend(channels.to_le_bytes());
            head.extend(pcm.rate.to_le_bytes());
            head.extend((pcm.rate * u32::from(block)).to_le_bytes());
            head.extend(block.to_le_bytes());
            head.extend((8 * bytes as u16).to_le_bytes());
            if tag == 0xfffe {
                head.extend(22u16.to_le_bytes());
                head.extend(bits.to_le_bytes());
                // Mono comes from the front.
                let mask = if channels == 1 { 4 } else { (1u32 << channels) - 1 };
                head.extend(mask.to_le_bytes());
                head.extend(b"\x01\0\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71");
            }
            chunk(&mut out, b"fmt ", &head, u32::to_le_bytes);
            chunk(&mut out, b"data", &data, u32::to_le_bytes);
            let mut file = b"RIFF".to_vec();
            file.extend((out.len() as u32 + 4).to_le_bytes());
            file.extend(b"WAVE");
            file.extend(out);
            file
        }
        Layout::Aiff | Layout::Aifc(_) => {
            let mut head = Vec::new();
            head.extend(channels.to_be_bytes());
            head.extend((pcm.frames() as u32).to_be_bytes());
            head.extend(bits.to_be_bytes());
            // An 80-bit float: exponent, and 64 bits with the leading one.
            let exponent = 31 - pcm.rate.leading_zeros();
            head.extend((16_383 + exponent as u16).to_be_bytes());
            head.extend((u64::from(pcm.rate) << (63 - exponent)).to_be_bytes());
            let kind = match layout {
                Layout::Aifc(compression) => {
                    chunk(&mut out, b"FVER", &0xa280_5140u32.to_be_bytes(), u32::to_be_bytes);
                    head.extend(compression);
                    head.extend(b"\0\0");
                    b"AIFC"
                }
                _ => b"AIFF",
            };
            chunk(&mut out, b"COMM", &head, u32::to_be_bytes);
            chunk(&mut out, b"SSND", &[&[0; 8], &data[..]].concat(), u32::to_be_bytes);
            let mut file = b"FORM".to_vec();
            file.extend((out.len() as u32 + 4).to_be_bytes());
            file.extend(kind);
            file.extend(out);
            file
        }
    }
}

fn chunk(out: &mut Vec<u8>, name: &[u8; 4], body: &[u8], size: fn(u32) -> [u8; 4]) {
    out.extend(name);
    out.extend(size(body.len() as u32));
    out.extend(body);
    out.extend(&[0][..body.len() % 2]);
}

fn place(sample: i32, layout: Layout, bytes: usize) -> Vec<u8> {
    let float = f64::from(sample) / 2f64.powi(31);
    match layout {
        Layout::Float if bytes == 4 => (float as f32).to_le_bytes().to_vec(),
        Layout::Float => float.to_le_bytes().to_vec(),
        Layout::Aifc(b"fl32") => (float as f32).to_be_bytes().to_vec(),
        Layout::Aifc(b"fl64") => float.to_be_bytes().to_vec(),
        Layout::Aifc(b"raw ") => vec![((sample >> 24) + 0x80) as u8],
        Layout::Wav | Layout::Extensible if bytes == 1 => vec![((sample >> 24) + 0x80) as u8],
        Layout::Aifc(b"sowt" | b"23ni") | Layout::Wav | Layout::Extensible => {
            sample.to_le_bytes()[4 - bytes..].to_vec()
        }
        Layout::Aiff | Layout::Aifc(_) => sample.to_be_bytes()[..bytes].to_vec(),
    }
}

fn check(pcm: &Pcm, decoder: &mut crate::decode::Decoder, bits: u16, what: &str) {
    let format = decoder.format();
    assert_eq!((format.rate, usize::from(format.channels)), (pcm.rate, pcm.channels), "{what}");
    assert_eq!((format.bits, format.lossy), (bits, false), "{what}");
    let got = rest(decoder);
    assert_eq!(got.len(), pcm.samples.len(), "{what}");
    let differs = got.iter().zip(&pcm.samples).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{what}: {:08x?} for {:08x?}", &got[..8], &pcm.samples[..8]);
    assert_eq!(decoder.lost_packets(), 0, "{what}");
}

#[test]
fn riff_and_aiff_of_every_width_are_exact() {
    use Layout::*;
    let rows: [(&str, Layout, u16, usize); 28] = [
        ("wav", Wav, 8, 1),
        ("wav", Wav, 16, 2),
        ("wav", Wav, 24, 3),
        ("wav", Wav, 32, 4),
        ("extensible", Extensible, 8, 1),
        ("extensible", Extensible, 12, 2),
        ("extensible", Extensible, 16, 2),
        ("extensible", Extensible, 20, 3),
        ("extensible", Extensible, 24, 3),
        ("extensible", Extensible, 24, 4),
        ("extensible", Extensible, 20, 4),
        ("extensible", Extensible, 32, 4),
        ("float wav", Float, 24, 4),
        ("float wav", Float, 32, 8),
        ("aiff", Aiff, 8, 1),
        ("aiff", Aiff, 12, 2),
        ("aiff", Aiff, 16, 2),
        ("aiff", Aiff, 20, 3),
        ("aiff", Aiff, 24, 3),
        ("aiff", Aiff, 32, 4),
        ("aifc none", Aifc(b"NONE"), 16, 2),
        ("aifc twos", Aifc(b"twos"), 16, 2),
        ("aifc sowt", Aifc(b"sowt"), 16, 2),
        ("aifc in24", Aifc(b"in24"), 24, 3),
        ("aifc in32", Aifc(b"in32"), 32, 4),
        ("aifc raw", Aifc(b"raw "), 8, 1),
        ("aifc fl32", Aifc(b"fl32"), 24, 4),
        ("aifc fl64", Aifc(b"fl64"), 32, 8),
    ];
    for (name, layout, bits, bytes) in rows {
        for channels in [1, 2, 6] {
            let what = format!("{name}, {bits} bits in {bytes} bytes, {channels} channels");
            let pcm = Pcm::music(44_100, channels, bits, 10_007);
            let (told, stated) = match layout {
                Float | Aifc(b"fl32" | b"fl64") => (32, if bytes == 4 { 32 } else { 64 }),
                _ => (bits, bits),
            };
            let written = Pcm { bits: stated, ..pcm.clone() };
            let bytes = file(&written, layout, bytes);
            check(&pcm, &mut from_memory(bytes), told, &what);
        }
    }
}

/// What an installed encoder makes of a WAV file of this width.
fn made(pcm: &Pcm, name: &str, command: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/decode-fixtures");
    let path = folder.join(name);
    if path.exists() {
        return path;
    }
    fs::create_dir_all(&folder).unwrap();
    let work = tempfile::tempdir_in(&folder).unwrap();
    let (input, output) = (work.path().join("in.wav"), work.path().join(name));
    fs::write(&input, file(pcm, Layout::Extensible, usize::from(pcm.bits.div_ceil(8)))).unwrap();
    let arguments = command[1..].iter().map(|&argument| match argument {
        "IN" => input.as_os_str().to_owned(),
        "OUT" => output.as_os_str().to_owned(),
        other => other.into(),
    });
    let run = Command::new(command[0]).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
    fs::rename(&output, &path).unwrap();
    path
}

fn ffmpeg_line<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["ffmpeg", "-nostdin", "-y", "-i", "IN"][..], options, &["OUT"]].concat()
}

#[test]
fn encoded_files_of_every_width_are_exact() {
    let flac = vec!["flac", "-s", "-f", "-o", "OUT", "IN"];
    let flac_ogg = vec!["flac", "-s", "--ogg", "-f", "-o", "OUT", "IN"];
    let alac24 = ["-c:a", "alac", "-sample_fmt", "s32p", "-bits_per_raw_sample", "24"];
    let rows = [
        (8, "flac", flac.clone()),
        (12, "flac", flac.clone()),
        (16, "flac", flac.clone()),
        (20, "flac", flac.clone()),
        (24, "flac", flac.clone()),
        (32, "flac", flac.clone()),
        (16, "oga", flac_ogg.clone()),
        (24, "oga", flac_ogg),
        (16, "flac.mka", ffmpeg_line(&["-c:a", "flac"])),
        (24, "flac.mka", ffmpeg_line(&["-c:a", "flac"])),
        (16, "flac.mp4", ffmpeg_line(&["-c:a", "flac", "-strict", "-2"])),
        (24, "flac.mp4", ffmpeg_line(&["-c:a", "flac", "-strict", "-2"])),
        (16, "alac.m4a", ffmpeg_line(&["-c:a", "alac"])),
        (24, "alac.m4a", ffmpeg_line(&alac24)),
        (16, "alac.caf", ffmpeg_line(&["-c:a", "alac"])),
        (24, "alac.caf", ffmpeg_line(&alac24)),
        (16, "alac.mka", ffmpeg_line(&["-c:a", "alac"])),
        (24, "alac.mka", ffmpeg_line(&alac24)),
        (16, "s16le.caf", ffmpeg_line(&["-c:a", "pcm_s16le"])),
        (16, "s16be.caf", ffmpeg_line(&["-c:a", "pcm_s16be"])),
        (24, "s24le.caf", ffmpeg_line(&["-c:a", "pcm_s24le"])),
        (24, "s24be.caf", ffmpeg_line(&["-c:a", "pcm_s24be"])),
        (32, "s32le.caf", ffmpeg_line(&["-c:a", "pcm_s32le"])),
        (32, "s32be.caf", ffmpeg_line(&["-c:a", "pcm_s32be"])),
        (16, "s16le.mka", ffmpeg_line(&["-c:a", "pcm_s16le"])),
        (16, "s16be.mka", ffmpeg_line(&["-c:a", "pcm_s16be"])),
        (24, "s24le.mka", ffmpeg_line(&["-c:a", "pcm_s24le"])),
        (32, "s32le.mka", ffmpeg_line(&["-c:a", "pcm_s32le"])),
        (16, "s16be.mov", ffmpeg_line(&["-c:a", "pcm_s16be"])),
        (16, "s16le.mov", ffmpeg_line(&["-c:a", "pcm_s16le"])),
        (24, "s24be.mov", ffmpeg_line(&["-c:a", "pcm_s24be"])),
        (24, "s24le.mov", ffmpeg_line(&["-c:a", "pcm_s24le"])),
        (32, "s32be.mov", ffmpeg_line(&["-c:a", "pcm_s32be"])),
    ];
    for (bits, name, command) in rows {
        for channels in [1, 2] {
            let pcm = Pcm::music(44_100, channels, bits, 50_021);
            let name = format!("width{bits}-{channels}.{name}");
            let path = made(&pcm, &name, &command);
            check(&pcm, &mut open(&path), bits, &name);
        }
    }
}

#[test]
fn every_rate_is_exact() {
    let flac = vec!["flac", "-s", "--lax", "-f", "-o", "OUT", "IN"];
    for rate in [
        8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000,
        176_400, 192_000, 352_800, 384_000,
    ] {
        let pcm = Pcm::music(rate, 2, 24, 20_011);
        let what = format!("{rate} Hz");
        for layout in [Layout::Wav, Layout::Extensible, Layout::Aiff] {
            check(&pcm, &mut from_memory(file(&pcm, layout, 3)), 24, &what);
        }
        let alac = ["-c:a", "alac", "-sample_fmt", "s32p", "-bits_per_raw_sample", "24"];
        for (name, command) in [
            ("flac", flac.clone()),
            ("m4a", ffmpeg_line(&alac)),
            ("caf", ffmpeg_line(&["-c:a", "pcm_s24le"])),
            ("pcm.mka", ffmpeg_line(&["-c:a", "pcm_s24le"])),
        ] {
            let name = format!("rate{rate}.{name}");
            check(&pcm, &mut open(&made(&pcm, &name, &command)), 24, &name);
        }
    }
}

#[test]
fn companded_telephony_becomes_what_it_stands_for() {
    let pcm = Pcm::music(8_000, 1, 16, 20_011);
    for codec in ["pcm_alaw", "pcm_mulaw"] {
        for container in ["wav", "aifc", "caf"] {
            let name = format!("{codec}.{container}");
            let format = if container == "aifc" { "aiff" } else { container };
            let path = made(&pcm, &name, &ffmpeg_line(&["-c:a", codec, "-f", format]));
            let plain = ["ffmpeg", "-v", "error", "-i"].map(str::to_owned);
            let told =
                Command::new(&plain[0]).args(&plain[1..]).arg(&path).args(["-f", "s16le", "-"]).output();
            let want: Vec<i32> = told
                .unwrap()
                .stdout
                .as_chunks()
                .0
                .iter()
                .map(|&b| i32::from(i16::from_le_bytes(b)) << 16)
                .collect();
            let mut decoder = open(&path);
            assert_eq!(decoder.format().bits, 16, "{name}");
            assert!(rest(&mut decoder) == want, "{name}");
            assert_eq!(want.len(), pcm.frames(), "{name}");
        }
    }
}
