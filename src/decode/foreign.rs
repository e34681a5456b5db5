//! Formats that are not decoded here, told by their first bytes.
//!
//! Some of them keep the header of the WAV file that they were made of. Whoever searches them for a format finds that
//! one, and plays a moment of noise.

use super::error::DecodeError;
use super::quirks::opus;

/// What the file begins with, and what people call the format.
const FOREIGN: &[(&[u8], &str)] = &[
    (b"wvpk", "WavPack"),
    (b"MAC ", "Monkey's Audio"),
    (b"OFR ", "OptimFROG"),
    (b"TTA1", "True Audio"),
    (b"TTA2", "True Audio"),
    (b"MPCK", "Musepack"),
    (b"MP+", "Musepack"),
    (b"DSD ", "DSD"),
    (b"FRM8", "DSD"),
    (b"ADIF", "AAC in ADIF"),
    (b"RF64", "RF64 (WAV beyond 4 GiB)"),
    (b"BW64", "RF64 (WAV beyond 4 GiB)"),
    (b"riff\x2e\x91\xcf\x11", "Wave64"),
    (b".snd", "Sun audio"),
    (b"MThd", "MIDI"),
    (b"#!AMR", "AMR"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "Windows Media"),
    (b".RMF", "RealAudio"),
    (b".ra\xfd", "RealAudio"),
    // In words of 16 and of 14 bits, either byte first.
    (b"\x7f\xfe\x80\x01", "DTS"),
    (b"\xfe\x7f\x01\x80", "DTS"),
    (b"\x1f\xff\xe8\x00", "DTS"),
    (b"\xff\x1f\x00\xe8", "DTS"),
    (b"DTSHDHDR", "DTS"),
];
/// What stands further inside: at which byte, what, and what people call the format.
const FOREIGN_INSIDE: &[(usize, &[u8], &str)] = &[
    // Behind the length of an access unit and its time.
    (4, b"\xf8\x72\x6f\xba", "TrueHD"),
    (4, b"\xf8\x72\x6f\xbb", "MLP"),
    // In the first packet of an Ogg stream.
    (28, b"Speex   ", "Speex"),
];
/// What is no sound at all.
const OTHER: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "an image"),
    (0, b"\xff\xd8\xff", "an image"),
    (0, b"GIF8", "an image"),
    (0, b"II*\0", "an image"),
    (0, b"MM\0*", "an image"),
    (8, b"WEBP", "an image"),
    (4, b"ftypavif", "an image"),
    (4, b"ftypheic", "an image"),
    (4, b"ftypmif1", "an image"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"PK\x03\x04", "an archive"),
    (0, b"\x1f\x8b\x08", "an archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "an archive"),
    (0, b"Rar!\x1a\x07", "an archive"),
];
/// So many bytes are looked at.
pub(super) const HEAD: usize = 48;

/// Why a file that begins so is not played, if it is of a format that is known not to be.
pub(super) fn refusal(head: &[u8]) -> Option<DecodeError> {
    let stands = |at: usize, mark: &[u8]| head.get(at..).is_some_and(|bytes| bytes.starts_with(mark));
    let begins = FOREIGN.iter().find(|(mark, _)| stands(0, mark)).map(|(_, name)| *name);
    let inside = || FOREIGN_INSIDE.iter().find(|(at, mark, _)| stands(*at, mark)).map(|(.., name)| *name);
    let other = || OTHER.iter().find(|(at, mark, _)| stands(*at, mark)).map(|(.., what)| no_audio(what));
    begins.or_else(inside).map(refused).or_else(other).or_else(|| opus_in_ogg(head))
}

/// Opus in Ogg whose channels the demuxer does not know, so that it finds no stream at all.
fn opus_in_ogg(head: &[u8]) -> Option<DecodeError> {
    let opus = head.get(28..).filter(|opus| opus.starts_with(b"OpusHead"))?;
    let family = *opus.get(18)?;
    let reason = match opus::refusal(opus) {
        _ if family < 2 => return None,
        Some(reason) => reason,
        None => {
            "which loudspeaker each of its channels is for is not told, which is not read in Ogg".to_owned()
        }
    };
    Some(DecodeError::Unsupported { codec: "Opus".to_owned(), reason })
}

/// The same for what can be told only after everything else has been tried: marks that are too short to be believed,
/// and text.
pub(super) fn late_refusal(head: &[u8]) -> Option<DecodeError> {
    match head {
        // The version of the bit stream, of which those from 11 on are another codec.
        [0x0b, 0x77, _, _, _, version, ..] => {
            Some(refused(if version >> 3 > 10 { "E-AC-3" } else { "AC-3" }))
        }
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => Some(no_audio("an image")),
        _ => text(head).map(no_audio),
    }
}

/// What a text is, by its beginning.
fn text(head: &[u8]) -> Option<&'static str> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let text = match str::from_utf8(head) {
        Ok(text) => text,
        // The last character may be cut in two.
        Err(e) if e.error_len().is_none() => str::from_utf8(&head[..e.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    let text = text.trim_start().to_ascii_lowercase();
    let begins = |marks: &[&str]| marks.iter().any(|mark| text.starts_with(mark));
    Some(match text.chars().next()? {
        _ if text.contains(|c: char| c.is_control() && !c.is_ascii_whitespace()) => return None,
        _ if begins(&["<?xml"]) => "an XML document",
        _ if begins(&["<svg"]) => "an image",
        '<' => "a web page",
        _ if begins(&["#extm3u", "[playlist]"]) => "a playlist",
        '{' | '[' => "a JSON document",
        _ => "a text",
    })
}

fn refused(name: &str) -> DecodeError {
    DecodeError::Unsupported { codec: name.to_owned(), reason: "there is no decoder for it".to_owned() }
}

fn no_audio(what: &str) -> DecodeError {
    DecodeError::NotAudio { found: format!("it is {what}") }
}

#[cfg(test)]
mod tests {
    use crate::decode::tests::fixture::{Pcm, refused};

    #[test]
    fn a_wav_header_inside_of_another_format_is_not_played() {
        let wav = Pcm::music(44_100, 2, 16, 4410).wav();
        for (mark, name) in [("wvpk", "WavPack"), ("MAC ", "Monkey's Audio"), ("OFR ", "OptimFROG")] {
            let told = refused(&[mark.as_bytes(), &[0; 60], &wav].concat(), true).to_string();
            assert!(told.starts_with(&format!("{name} cannot be played")), "{told}");
        }
    }

    /// What such files begin with, as their specifications have it.
    const HEADS: &[(&[u8], &str)] = &[
        (b"wvpk\xba\x1a\0\0\x10\x04", "WavPack cannot be played"),
        (b"MAC \x96\x0f\0\0\x34\0\0\0", "Monkey's Audio cannot be played"),
        (b"OFR \x0f\0\0\0", "OptimFROG cannot be played"),
        (b"TTA1\x01\0\x02\0\x10\0\x44\xac", "True Audio cannot be played"),
        (b"TTA2\x01\0\x02\0\x10\0\x44\xac", "True Audio cannot be played"),
        (b"MPCKSH\x0f", "Musepack cannot be played"),
        (b"MP+\x27\x9a\x02\0\0", "Musepack cannot be played"),
        (b"DSD \x1c\0\0\0\0\0\0\0", "DSD cannot be played"),
        (b"FRM8\0\0\0\0\0\x01\0\0DSD FVER", "DSD cannot be played"),
        (b"ADIF\0\x10\0\0", "AAC in ADIF cannot be played"),
        (b"RF64\xff\xff\xff\xffWAVEds64", "RF64 (WAV beyond 4 GiB) cannot be played"),
        (b"BW64\xff\xff\xff\xffWAVEds64", "RF64 (WAV beyond 4 GiB) cannot be played"),
        (b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0", "Wave64 cannot be played"),
        (b".snd\0\0\0\x20\xff\xff\xff\xff", "Sun audio cannot be played"),
        (b"MThd\0\0\0\x06\0\x01\0\x02\x01\xe0MTrk", "MIDI cannot be played"),
        (b"#!AMR\n\x3c\x91\x17\x16", "AMR cannot be played"),
        (b"#!AMR-WB\n\x04\x10", "AMR cannot be played"),
        (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9", "Windows Media cannot be played"),
        (b".RMF\0\0\0\x12\0\x01", "RealAudio cannot be played"),
        (b".ra\xfd\0\x04\0\0", "RealAudio cannot be played"),
        (b"\x7f\xfe\x80\x01\xfc\x3c\x3f\xf0", "DTS cannot be played"),
        (b"\xfe\x7f\x01\x80\x3c\xfc\xf0\x3f", "DTS cannot be played"),
        (b"\x1f\xff\xe8\x00\x07\xf0", "DTS cannot be played"),
        (b"\xff\x1f\x00\xe8\xf0\x07", "DTS cannot be played"),
        (b"DTSHDHDR\0\0\0\0", "DTS cannot be played"),
        (b"\xf0\x58\0\0\xf8\x72\x6f\xba\0\x10", "TrueHD cannot be played"),
        (b"\xf0\x58\0\0\xf8\x72\x6f\xbb\0\x10", "MLP cannot be played"),
        (
            b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x50Speex   1.2",
            "Speex cannot be played",
        ),
        (b"\x0b\x77\x2a\x67\x54\x40", "AC-3 cannot be played"),
        (b"\x0b\x77\x02\x7f\x34\x86", "E-AC-3 cannot be played"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "this is not audio that can be played: it is an image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "this is not audio that can be played: it is an image"),
        (b"GIF89a\x10\0", "this is not audio that can be played: it is an image"),
        (b"II*\0\x08\0\0\0", "this is not audio that can be played: it is an image"),
        (b"MM\0*\0\0\0\x08", "this is not audio that can be played: it is an image"),
        (b"BM\x46\0\0\0\0\0\0\0\x36", "this is not audio that can be played: it is an image"),
        (b"RIFF\x24\x10\0\0WEBPVP8 ", "this is not audio that can be played: it is an image"),
        (b"\0\0\0\x20ftypavif", "this is not audio that can be played: it is an image"),
        (b"\0\0\0\x18ftypheic", "this is not audio that can be played: it is an image"),
        (b"%PDF-1.7\n%\xe2\xe3", "this is not audio that can be played: it is a PDF document"),
        (b"PK\x03\x04\x14\0", "this is not audio that can be played: it is an archive"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "this is not audio that can be played: it is an archive"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "this is not audio that can be played: it is an archive"),
        (b"Rar!\x1a\x07\x01\0", "this is not audio that can be played: it is an archive"),
    ];

    /// Whole texts.
    const TEXTS: &[(&str, &str)] = &[
        ("<!DOCTYPE html><html><body>Please log in</body></html>", "a web page"),
        ("\u{feff}<!doctype html>", "a web page"),
        ("<!-- served by a portal --><html>", "a web page"),
        ("<p>Not found</p>", "a web page"),
        ("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "an XML document"),
        ("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "an image"),
        ("{\"error\":\"expired\"}", "a JSON document"),
        ("#EXTM3U\nhttp://host/a.mp3\n", "a playlist"),
        ("[playlist]\nFile1=http://host/a.mp3\n", "a playlist"),
        ("404 page not found\n", "a text"),
        // So many bytes are looked at as end in the middle of a character.
        ("Die gew\u{fc}nschte Datei ist nicht vorhanden bei n\u{e4}herem Hinsehen", "a text"),
    ];

    #[test]
    fn formats_that_are_not_decoded_are_named() {
        for (head, said) in HEADS {
            let mut bytes = head.to_vec();
            bytes.resize(20_000, 0);
            let told = refused(&bytes, true).to_string();
            assert!(told.starts_with(said), "{told}");
        }
    }

    #[test]
    fn texts_are_told_apart() {
        for (text, what) in TEXTS {
            let told = refused(text.as_bytes(), true).to_string();
            assert!(told.contains(&format!("it is {what};")), "{text}: {told}");
        }
    }
}
