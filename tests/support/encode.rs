//! Recordings as files, by the encoders that people use. Each file is made once and kept by its content.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::audio::Recording;

/// Format and container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// FLAC by `flac`.
    Flac,
    /// MP3 of constant bit rate by `lame`, with its gapless tag.
    Mp3,
    /// AAC in MP4 by `ffmpeg`, index first.
    AacMp4,
    /// AAC in MP4 whose index (`moov`) comes last.
    AacMp4IndexLast,
    /// AAC in ADTS.
    AacAdts,
    /// Vorbis in Ogg by `oggenc`.
    Vorbis,
    /// Opus in Ogg by `opusenc`.
    Opus,
    /// Apple Lossless in MP4.
    Alac,
    /// PCM.
    Wav,
}

/// An encoded file.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The whole file.
    pub bytes: Arc<Vec<u8>>,
    /// As a server tells it.
    pub content_type: &'static str,
}

impl Codec {
    /// As a server tells it.
    pub fn content_type(self) -> &'static str {
        match self {
            Codec::Flac => "audio/flac",
            Codec::Mp3 => "audio/mpeg",
            Codec::AacMp4 | Codec::AacMp4IndexLast | Codec::Alac => "audio/mp4",
            Codec::AacAdts => "audio/aac",
            Codec::Vorbis | Codec::Opus => "audio/ogg",
            Codec::Wav => "audio/wav",
        }
    }

    /// Of the file name.
    pub fn extension(self) -> &'static str {
        match self {
            Codec::Flac => "flac",
            Codec::Mp3 => "mp3",
            Codec::AacMp4 | Codec::AacMp4IndexLast | Codec::Alac => "m4a",
            Codec::AacAdts => "aac",
            Codec::Vorbis => "ogg",
            Codec::Opus => "opus",
            Codec::Wav => "wav",
        }
    }

    fn encoder(self, from: &Path, to: &Path) -> Command {
        let ffmpeg = |arguments: &[&str]| {
            let mut ffmpeg = Command::new("ffmpeg");
            ffmpeg.args(["-v", "error", "-y", "-i"]).arg(from).args(arguments).arg(to);
            ffmpeg
        };
        let mut command = match self {
            Codec::Flac => program("flac", &["--silent", "--force", "-5", "-o"]),
            Codec::Mp3 => program("lame", &["--quiet", "-b", "192"]),
            Codec::Vorbis => program("oggenc", &["--quiet", "-q", "6", "-o"]),
            Codec::Opus => program("opusenc", &["--quiet", "--bitrate", "160"]),
            Codec::AacMp4 => return ffmpeg(&["-c:a", "aac", "-b:a", "192k", "-movflags", "+faststart"]),
            Codec::AacMp4IndexLast => return ffmpeg(&["-c:a", "aac", "-b:a", "192k"]),
            Codec::AacAdts => return ffmpeg(&["-c:a", "aac", "-b:a", "192k", "-f", "adts"]),
            Codec::Alac => return ffmpeg(&["-c:a", "alac", "-movflags", "+faststart"]),
            Codec::Wav => program("cp", &[]),
        };
        match self {
            Codec::Flac | Codec::Vorbis => command.arg(to).arg(from),
            _ => command.arg(from).arg(to),
        };
        command
    }
}

fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments);
    command
}

impl Recording {
    /// The recording as a file of this kind.
    pub fn encode(&self, codec: Codec) -> Encoded {
        let wav = self.to_wav();
        let content_type = codec.content_type();
        if codec == Codec::Wav {
            return Encoded { bytes: Arc::new(wav), content_type };
        }
        let mut hasher = DefaultHasher::new();
        (&wav, codec).hash(&mut hasher);
        let kept = kept_files().join(format!("{:016x}.{}", hasher.finish(), codec.extension()));
        if !kept.exists() {
            // Whoever comes second makes it too, and the rename lets one of them win.
            let work = tempfile::tempdir_in(kept_files()).unwrap();
            let (from, to) =
                (work.path().join("in.wav"), work.path().join("out").with_extension(codec.extension()));
            fs::write(&from, wav).unwrap();
            let mut encoder = codec.encoder(&from, &to);
            let done = encoder
                .output()
                .unwrap_or_else(|error| panic!("{encoder:?}: {error}; ./dev test installs it"));
            assert!(done.status.success(), "{encoder:?}: {}", String::from_utf8_lossy(&done.stderr));
            fs::rename(&to, &kept).unwrap();
        }
        Encoded { bytes: Arc::new(fs::read(&kept).unwrap()), content_type }
    }
}

fn kept_files() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("encoded");
    fs::create_dir_all(&folder).unwrap();
    folder
}
