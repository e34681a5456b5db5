//! Formats that are not decoded here, told by their first bytes.
//!
//! Some of them keep the header of the WAV file that they were made of. Whoever searches them for a format finds that
//! one, and plays a moment of noise.

use super::error::DecodeError;

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
    (b"MThd", "MIDI"),
    (b"#!AMR", "AMR"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "Windows Media"),
];
/// In the first packet of an Ogg stream.
const SPEEX: &[u8] = b"Speex   ";
/// So many bytes are looked at.
pub(super) const HEAD: usize = 36;

/// Why a file that begins so is not played, if it is of a format that is known not to be.
pub(super) fn refusal(head: &[u8]) -> Option<DecodeError> {
    let begins = FOREIGN.iter().find(|(mark, _)| head.starts_with(mark)).map(|(_, name)| *name);
    let name = begins.or_else(|| head.get(28..)?.starts_with(SPEEX).then_some("Speex"));
    name.map(refused)
}

/// The same for marks that are too short to be believed before everything else has been tried.
pub(super) fn late_refusal(head: &[u8]) -> Option<DecodeError> {
    head.starts_with(&[0x0b, 0x77]).then(|| refused("AC-3"))
}

fn refused(name: &str) -> DecodeError {
    DecodeError::Unsupported { codec: name.to_owned(), reason: "there is no decoder for it".to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::decode::tests::fixture::{Memory, Pcm};
    use crate::decode::{DecodeError, Decoder, Hints};

    fn refused(bytes: Vec<u8>) -> DecodeError {
        match Decoder::open(Memory::boxed(bytes, true), &Hints::default()) {
            Ok(decoder) => panic!("{} is played", decoder.codec()),
            Err(e) => e,
        }
    }

    #[test]
    fn a_wav_header_inside_of_another_format_is_not_played() {
        let wav = Pcm::music(44_100, 2, 16, 4410).wav();
        for (mark, name) in [("wvpk", "WavPack"), ("MAC ", "Monkey's Audio"), ("OFR ", "OptimFROG")] {
            let told = refused([mark.as_bytes(), &[0; 60], &wav].concat()).to_string();
            assert!(told.starts_with(&format!("{name} cannot be played")), "{told}");
        }
    }

    #[test]
    fn formats_that_are_not_decoded_are_named() {
        let mut ogg = b"OggS".to_vec();
        ogg.resize(28, 0);
        ogg.extend_from_slice(b"Speex   1.2");
        let asf = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11".to_vec();
        let ac3 = [0x0b, 0x77, 0x2a, 0x67, 0x54, 0x40].to_vec();
        let dsf = b"DSD \x1c\0\0\0".to_vec();
        for (head, name) in [(ogg, "Speex"), (asf, "Windows Media"), (ac3, "AC-3"), (dsf, "DSD")] {
            let mut bytes = head;
            bytes.resize(20_000, 0);
            let told = refused(bytes).to_string();
            assert!(told.starts_with(&format!("{name} cannot be played")), "{told}");
        }
    }
}
