//! One stretch of sound with its decoder: a whole track, or one link of a chained Ogg stream.

use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::{AudioCodecId, AudioCodecParameters, AudioDecoder, well_known as id};
use symphonia::core::errors::Error;
use symphonia::core::formats::{FormatReader, Track, TrackType};
use symphonia::core::packet::Packet;
use symphonia::core::units::{Duration, TimeBase, Timestamp};

use super::blocks::{self, Blocks, Lengths, Note, Numbers};
use super::codec::{codec_name, format_of, is_pcm, make_codec};
use super::error::DecodeError;
use super::quirks::{aac, mkv, mp4, ogg, opus, pcm};
use super::registry::Container;
use super::tags::{ItunesGapless, Tags};
use crate::track::SourceFormat;

mod doubled;

/// AAC encoders put one frame of priming in front unless the container says otherwise.
const AAC_PRIMING: i64 = 1024;

/// No file has a higher rate: eight times that of the highest that converters have, 192 kHz.
const MOST_RATE: u32 = 1_536_000;
/// No file has more channels.
const MOST_CHANNELS: u16 = 64;
/// No packet holds more frames; that of WAV, AIFF and CAF is 1152, the longest of FLAC 65535.
const LONGEST_PACKET: u64 = 1 << 20;

/// A decoder with what is needed to number its frames.
///
/// *Raw* frames are numbered as the container does, with what the encoder added; frame 0 of the recording is
/// raw frame `start`.
pub(super) struct Link {
    pub(super) track_id: u32,
    codec_id: AudioCodecId,
    codec: Box<dyn AudioDecoder>,
    lag: aac::Lag,
    params: AudioCodecParameters,
    /// Of an Opus stream.
    head: Option<opus::Head>,
    pub(super) codec_name: String,
    pub(super) gain: f32,
    time_base: Option<TimeBase>,
    pub(super) start: i64,
    /// First raw frame behind the recording, where the container is to be believed.
    pub(super) end: Option<i64>,
    /// Length of the recording in frames, as stated.
    pub(super) frames: Option<u64>,
    pub(super) format: SourceFormat,
    /// First raw frame that this link gave since it was opened.
    pub(super) origin: Option<i64>,
    /// First raw frame after the last jump.
    pub(super) landed: Option<i64>,
    raw_next: Option<i64>,
    container: Container,
    /// By an MP4.
    told: Option<Told>,
    /// Of the packet that was decoded last.
    packet_frames: u32,
    /// Priming frames that the demuxer numbers below 0.
    pub(super) delay: u64,
    /// What is to be added to the labels of a demuxer that began in the middle.
    pub(super) shift: i64,
    /// What was counted, where the container tells only about when a packet begins.
    pub(super) blocks: Option<Blocks>,
    /// How sure the numbers since the last jump are, where there are blocks.
    numbers: Numbers,
}

/// What an MP4 tells about where its sound begins and ends, in its own units.
#[derive(Clone, Copy)]
struct Told {
    media: Option<i64>,
    pre_skip: i64,
    edit: Option<mp4::Edit>,
    itunes: Option<ItunesGapless>,
}

/// What a packet gave.
pub(super) enum Outcome {
    /// Frames, now in [`Link::decoded`]; the last `trim_end` are padding.
    Sound { raw: i64, frames: usize, trim_end: u64 },
    /// Nothing yet; some decoders need a first packet to begin.
    Nothing,
    /// It could not be decoded.
    Lost(String),
}

impl Link {
    pub(super) fn new(
        reader: &dyn FormatReader,
        container: Container,
        layout: &mp4::Layout,
        tags: &Tags,
    ) -> Result<Link, DecodeError> {
        let no_sound = || no_sound(layout.entry);
        let track = reader.default_track(TrackType::Audio).ok_or_else(no_sound)?;
        let Some(CodecParameters::Audio(params)) = &track.codec_params else { return Err(no_sound()) };
        let mut params = params.clone();
        if is_pcm(params.codec) {
            pcm::put_right(&mut params, layout.entry);
        }
        let head = match (params.codec, &params.extra_data) {
            (id::CODEC_ID_OPUS, Some(extra)) => opus::Head::parse(extra),
            (id::CODEC_ID_OPUS, None) => opus::Head::plain(params.channels.as_ref().map_or(0, |c| c.count())),
            _ => None,
        };
        let mut format = format_of(&params);
        if let Some(head) = head {
            (format.rate, format.channels) = (48_000, u16::from(head.channels));
        }
        check_sizes(&params, &format)?;
        let lag = aac::Lag::default();
        let mut link = Link {
            track_id: track.id,
            codec_id: params.codec,
            codec_name: codec_name(params.codec),
            codec: make_codec(&params, head.as_ref(), &lag)?,
            lag,
            params,
            head,
            gain: head.map_or(1.0, |head| head.gain),
            time_base: track.time_base,
            start: 0,
            end: None,
            frames: None,
            format,
            origin: None,
            landed: None,
            raw_next: None,
            container,
            told: None,
            packet_frames: 0,
            delay: track.delay.map_or(0, u64::from),
            shift: 0,
            blocks: (container == Container::Mkv).then(Blocks::default),
            numbers: Numbers::Counted,
        };
        link.place(track, head.map_or(0, |head| i64::from(head.pre_skip)), layout, tags);
        Ok(link)
    }

    /// Finds out where the recording begins and ends.
    fn place(&mut self, track: &Track, pre_skip: i64, layout: &mp4::Layout, tags: &Tags) {
        let stated = track.num_frames.filter(|&n| n > 0).and_then(|n| i64::try_from(n).ok());
        match self.container {
            // Without a LAME tag the length may be a guess, by which nothing may be cut.
            Container::Mpeg => self.end = stated.filter(|_| track.delay.is_some()),
            Container::Mp4 => {
                let media = track.duration.and_then(|ticks| i64::try_from(ticks.get()).ok());
                self.told = Some(Told { media, pre_skip, edit: layout.edit, itunes: tags.itunes_gapless });
                self.place_mp4();
            }
            Container::Caf => {
                // Else the last packet counts whole, of which only a part may be sound.
                self.end = stated.filter(|_| track.delay.is_some());
                self.frames = layout.caf.told.or(track.num_frames).filter(|_| is_pcm(self.codec_id));
            }
            // The demuxer marks padding in the packets themselves; the length is that of the last page.
            Container::Ogg => {
                self.start = pre_skip;
                self.frames = stated.map(|end| end.saturating_sub(pre_skip).max(0) as u64);
            }
            Container::Mkv => self.start = self.place_mkv(pre_skip, layout.mkv.delay),
            Container::Adts => {}
            Container::Flac | Container::Wav | Container::Aiff | Container::Unknown => {
                self.frames = track.num_frames;
            }
        }
        if let Some(end) = self.end {
            self.frames = Some(end.saturating_sub(self.start).max(0) as u64);
        }
    }

    /// Its container speaks of the first of several recordings, as when a station sends files one by one.
    pub(super) fn forget_end(&mut self) {
        (self.end, self.frames) = (None, None);
    }

    /// How many frames in front are no sound, in Matroska.
    fn place_mkv(&self, pre_skip: i64, delay: Option<mkv::CodecDelay>) -> i64 {
        match (self.codec_id, delay) {
            // The same number stands in both, and nanoseconds are not exact.
            (id::CODEC_ID_OPUS, _) => pre_skip,
            (_, Some(delay)) => delay.frames(self.format.rate),
            // ffmpeg before 6 and mkvmerge say nothing about it.
            (id::CODEC_ID_AAC, None) => AAC_PRIMING * self.doubling(),
            _ => 0,
        }
    }

    /// By what the MP4 tells, at the present rate.
    fn place_mp4(&mut self) {
        let Some(told) = self.told else { return };
        let is_aac = self.codec_id == id::CODEC_ID_AAC;
        if let Some(note) = told.itunes.filter(|_| is_aac && self.has_exact_labels()) {
            self.start = note.delay as i64;
            self.end = Some(self.start.saturating_add_unsigned(note.frames));
        } else {
            self.start = match told.edit {
                Some(edit) => self.to_frames(i64::try_from(edit.start).unwrap_or(0)),
                None if is_aac => AAC_PRIMING * self.doubling(),
                None => told.pre_skip,
            };
            let media = told.media.map(|ticks| self.to_frames(ticks)).filter(|&frames| frames > 0);
            let frames = media.map(|media| media.saturating_sub(self.start).max(0) as u64);
            let frames = match (frames, told.edit) {
                (Some(frames), Some(edit)) => Some(edit.frames(frames, self.format.rate)),
                (frames, _) => frames,
            };
            self.end = frames.map(|frames| self.start.saturating_add_unsigned(frames));
        }
        self.frames = self.end.map(|end| end.saturating_sub(self.start).max(0) as u64);
    }

    /// Whether the container counts frames, not milliseconds.
    pub(super) fn has_exact_labels(&self) -> bool {
        self.time_base.is_some_and(|tb| {
            u64::from(tb.numer.get()) * u64::from(self.format.rate) == u64::from(tb.denom.get())
        })
    }

    /// Whether the container's time tells each frame: its unit is no longer than one, or, where the rate is that of the
    /// lower half of HE-AAC, just twice as long.
    fn has_fine_labels(&self) -> bool {
        self.time_base.is_some_and(|tb| {
            let rate = u64::from(tb.numer.get()) * u64::from(self.format.rate);
            let units = u64::from(tb.denom.get());
            units >= rate || self.codec_id == id::CODEC_ID_AAC && 2 * units == rate
        })
    }

    /// Whether it holds bare samples.
    pub(super) fn is_pcm(&self) -> bool {
        is_pcm(self.codec_id)
    }

    /// Whether the numbers of frames since the last jump are sure.
    pub(super) fn is_sure(&self) -> bool {
        self.has_fine_labels() || self.blocks.is_some() && self.numbers != Numbers::Timed
    }

    /// What tells how many frames packets give, where that needs no decoding.
    pub(super) fn lengths(&self) -> Option<Lengths> {
        let bits = self.params.bits_per_coded_sample.or(self.params.bits_per_sample);
        let bytes =
            bits.filter(|_| is_pcm(self.codec_id)).map(|bits| bits / 8 * u32::from(self.format.channels));
        Lengths::of(&self.params, bytes, self.packet_frames)
    }

    fn to_frames(&self, ts: i64) -> i64 {
        let Some(tb) = self.time_base.filter(|_| !self.has_exact_labels()) else { return ts };
        let scaled = i128::from(ts) * i128::from(tb.numer.get()) * i128::from(self.format.rate);
        let denom = i128::from(tb.denom.get());
        i64::try_from((scaled + denom / 2).div_euclid(denom)).unwrap_or(i64::MAX)
    }

    /// The container's time of a raw frame.
    pub(super) fn to_timestamp(&self, raw: i64) -> Timestamp {
        let Some(tb) = self.time_base.filter(|_| !self.has_exact_labels()) else {
            return Timestamp::new(raw);
        };
        let scaled = i128::from(raw) * i128::from(tb.denom.get());
        let ts = scaled.div_euclid(i128::from(tb.numer.get()) * i128::from(self.format.rate.max(1)));
        Timestamp::new(i64::try_from(ts).unwrap_or(i64::MAX))
    }

    /// Frames that a decoder needs before the first good one after a jump.
    pub(super) fn warm_up(&self) -> i64 {
        match self.codec_id {
            // The bit reservoir, the overlap and the filter bank.
            id::CODEC_ID_MP3 => 3 * 1152,
            id::CODEC_ID_MP1 | id::CODEC_ID_MP2 => 2 * 1152,
            // A packet; of HE-AAC several, since only some bring what its upper half is made by.
            id::CODEC_ID_AAC if self.packet_frames > 1024 => 12 * i64::from(self.packet_frames),
            id::CODEC_ID_AAC => 1024,
            // RFC 7845 asks for 80 ms, after which the sound still differs audibly from what it should be, by
            // -33 dB of full scale; after a quarter of a second by less than -75 dB.
            id::CODEC_ID_OPUS => 12_000,
            _ => 0,
        }
    }

    /// The next packet does not follow the last one.
    pub(super) fn reset(&mut self) {
        self.codec.reset();
        self.raw_next = None;
        self.landed = None;
        if let Some(blocks) = &mut self.blocks {
            blocks.wait_for(None);
        }
    }

    /// Takes another decoder of the same kind, which knows nothing of what was before.
    pub(super) fn begin_codec_anew(&mut self) -> Result<(), DecodeError> {
        self.codec = make_codec(&self.params, self.head.as_ref(), &self.lag)?;
        self.raw_next = None;
        Ok(())
    }

    /// Decodes a packet, of whose frames the last `padding` are none of the recording's.
    pub(super) fn decode(&mut self, mut packet: Packet, padding: u64) -> Result<Outcome, DecodeError> {
        // Elsewhere it may come from a guess at the length.
        let trim_end = if self.container == Container::Ogg { packet.trim_end.get() } else { padding };
        let (label, ts) = (self.label(&packet), packet.pts.get());
        if self.blocks.as_ref().is_some_and(|blocks| blocks.pass_over(ts)) {
            return Ok(Outcome::Nothing);
        }
        // Trimming happens here, by frame numbers; decoders differ in what they trim.
        (packet.trim_start, packet.trim_end) = (Duration::ZERO, Duration::ZERO);
        let decoded = match self.codec.decode(&packet) {
            Err(Error::ResetRequired) => {
                self.codec = make_codec(&self.params, self.head.as_ref(), &self.lag)?;
                self.codec.decode(&packet)
            }
            decoded => decoded,
        };
        let (frames, rate, channels) = match decoded {
            Ok(buf) => (buf.frames(), buf.spec().rate(), buf.spec().channels().count()),
            Err(Error::Unsupported(reason)) if self.origin.is_none() => {
                return Err(DecodeError::Unsupported {
                    codec: self.codec_name.clone(),
                    reason: reason.to_owned(),
                });
            }
            Err(e) => {
                self.raw_next = None;
                return Ok(Outcome::Lost(e.to_string()));
            }
        };
        let told = self.blocks.as_mut().and_then(|blocks| blocks.arrive(ts));
        if let Some(end) = told {
            // It may give no frame, as the first one of Vorbis.
            self.raw_next = Some(end.saturating_sub_unsigned(frames as u64));
            self.numbers = Numbers::Counted;
        }
        if frames == 0 || channels == 0 || rate == 0 {
            return Ok(Outcome::Nothing);
        }
        if rate > MOST_RATE {
            return Err(makes_no_sense(&self.codec_name, format!("a sample rate of {rate} Hz")));
        }
        self.packet_frames = u32::try_from(frames).unwrap_or(u32::MAX);
        let doubled = self.origin.is_none() && self.doubling() > 1;
        let label = if rate != self.format.rate || doubled { self.be_at(rate, &packet) } else { label };
        let label = label.saturating_sub(self.lag.frames());
        self.format.channels = u16::try_from(channels).unwrap_or(u16::MAX);
        if self.blocks.is_some() {
            self.count(label, told.is_some());
        }
        let raw = self.number(label);
        let end = raw.saturating_add(frames as i64);
        self.raw_next = Some(end);
        if let Some(blocks) = self.blocks.as_mut().filter(|_| self.numbers == Numbers::Counted) {
            blocks.pass(Note { ts, end }, frames as u32);
        }
        Ok(Outcome::Sound { raw, frames, trim_end: trim_end.min(frames as u64) })
    }

    /// The raw frame that a packet begins with, by the container.
    fn label(&self, packet: &Packet) -> i64 {
        if matches!(self.container, Container::Ogg | Container::Mkv) && self.codec_id == id::CODEC_ID_FLAC {
            // STREAMINFO begins with the block size.
            let block = self.params.extra_data.as_deref().and_then(|info| info.first_chunk());
            let block = block.map(|&size| u64::from(u16::from_be_bytes(size)));
            if let Some(start) = block.and_then(|block| ogg::flac_start(&packet.data, block)) {
                return start;
            }
        }
        self.to_frames(packet.pts.get()).saturating_add(self.shift)
    }

    /// Finds out how sure the number of a packet will be that says `label`, and its number if the label alone is less
    /// than that.
    fn count(&mut self, label: i64, awaited: bool) {
        self.numbers = match self.raw_next {
            _ if self.codec_id == id::CODEC_ID_FLAC => Numbers::Told,
            Some(_) if awaited => Numbers::Counted,
            Some(next) if label.saturating_sub(next) > self.tolerance() => {
                if let Some(blocks) = self.blocks.as_mut().filter(|_| self.numbers == Numbers::Counted) {
                    blocks.tear();
                }
                Numbers::Timed
            }
            Some(_) => self.numbers,
            None if self.origin.is_none_or(|origin| origin == label) => Numbers::Counted,
            None => match self.on_grid(label) {
                Some(raw) => {
                    self.raw_next = Some(raw);
                    Numbers::Told
                }
                None => Numbers::Timed,
            },
        };
    }

    /// The raw frame that a packet with a rounded label begins with, if all packets have one length.
    fn on_grid(&self, label: i64) -> Option<i64> {
        let each = i64::from(self.blocks.as_ref()?.each().filter(|_| blocks::is_even(self.codec_id))?);
        let behind = label.saturating_sub(self.origin?);
        let raw = behind.saturating_add(each / 2).div_euclid(each).saturating_mul(each);
        // Of a millisecond, and one for rounding once more.
        let rounding = i64::from(self.format.rate / 1000 + 1);
        let fits = each > 2 * rounding && raw.abs_diff(behind) <= rounding.unsigned_abs();
        fits.then_some(self.origin?.saturating_add(raw))
    }

    /// The raw frame of a packet that says `label` and gave sound.
    fn number(&mut self, label: i64) -> i64 {
        if self.origin.is_none() {
            // A recording of a radio station, or Matroska's milliseconds: it begins where it begins.
            if self.container == Container::Mkv {
                self.start = self.start.saturating_add(label);
            } else if label > self.start {
                self.start = label;
            }
            self.origin = Some(label);
        }
        let raw = match self.raw_next {
            Some(next) if label.saturating_sub(next) > self.tolerance() => label,
            Some(next) => next,
            None => label,
        };
        self.landed.get_or_insert(raw);
        raw
    }

    /// Whether something is missing between raw frame `next` and a packet of this time.
    pub(super) fn is_gap(&self, ts: i64, next: i64) -> bool {
        self.to_frames(ts).saturating_sub(next) > self.tolerance()
    }

    /// By how many frames a label may run ahead before it means that something is missing.
    fn tolerance(&self) -> i64 {
        match self.container {
            Container::Flac | Container::Mp4 if self.has_exact_labels() => 0,
            _ => i64::from(self.format.rate / 5),
        }
    }

    pub(super) fn decoded(&self) -> GenericAudioBufferRef<'_> {
        self.codec.last_decoded()
    }
}

/// Refuses what would need more memory than there is, by numbers from the file that nobody can mean.
fn check_sizes(params: &AudioCodecParameters, format: &SourceFormat) -> Result<(), DecodeError> {
    let SourceFormat { rate, channels, .. } = *format;
    let packet = params.max_frames_per_packet.unwrap_or(0);
    let what = if rate > MOST_RATE {
        format!("a sample rate of {rate} Hz")
    } else if channels > MOST_CHANNELS {
        format!("a number of {channels} channels")
    } else if packet > LONGEST_PACKET {
        format!("a packet of {packet} frames")
    } else {
        return Ok(());
    };
    Err(makes_no_sense(&codec_name(params.codec), what))
}

fn makes_no_sense(codec: &str, what: String) -> DecodeError {
    DecodeError::Unsupported { codec: codec.to_owned(), reason: format!("{what} makes no sense") }
}

/// There is no track that can be decoded; an MP4 may tell of one.
fn no_sound(entry: Option<mp4::Entry>) -> DecodeError {
    let Some(codec) = entry.map(|entry| entry.codec()) else {
        return DecodeError::NotAudio { found: "it holds no sound track".to_owned() };
    };
    DecodeError::Unsupported { codec, reason: "there is no decoder for it in an MP4".to_owned() }
}
