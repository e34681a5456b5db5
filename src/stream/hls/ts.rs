//! Sound out of an MPEG transport stream.
//!
//! The crate reads tables and packets; here packets are found in the bytes, a programme's first sound that can be
//! played is chosen, and what was lost on the way is kept from the decoder.

use mpeg2ts_reader::demultiplex::{
    Demultiplex, DemuxContext, FilterChangeset, FilterRequest, NullPacketFilter, PatPacketFilter,
    PmtPacketFilter,
};
use mpeg2ts_reader::packet::Pid;
use mpeg2ts_reader::pes::{ElementaryStreamConsumer, PesContents, PesHeader, PesPacketFilter};
use mpeg2ts_reader::{StreamType, packet_filter_switch};

use super::adts::Frames;
use super::sink::Sink;

/// Of a packet, in bytes.
pub(super) const PACKET: usize = 188;
/// What each packet begins with.
pub(super) const SYNC: u8 = 0x47;

/// Of a sound that can be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// In ADTS.
    Aac,
    /// Layers 1 to 3.
    Mpeg,
}

impl Codec {
    fn of(kind: StreamType) -> Option<Codec> {
        match kind {
            StreamType::ADTS => Some(Codec::Aac),
            StreamType::ISO_11172_AUDIO | StreamType::ISO_138183_AUDIO => Some(Codec::Mpeg),
            _ => None,
        }
    }
}

/// Why AAC in another frame than ADTS is not played.
const LATM: &str = "its sound is AAC in LATM, which cannot be played";

/// Why there is no sound that can be played.
fn obstacle(kind: StreamType) -> Option<&'static str> {
    match kind.0 {
        0x11 | 0x1c => Some(LATM),
        0x81 | 0x83 | 0x85 | 0x86 | 0x87 | 0x8a => Some("its sound is AC-3 or DTS, which cannot be played"),
        0xc1 | 0xc2 | 0xcf => Some(super::ENCRYPTED),
        _ => None,
    }
}

packet_filter_switch! {
    Filter<Context> {
        Pat: PatPacketFilter<Context>,
        Pmt: PmtPacketFilter<Context>,
        Sound: PesPacketFilter<Context, Sound>,
        Other: NullPacketFilter<Context>,
    }
}

/// What the filters of packets share.
pub struct Context {
    changes: FilterChangeset<Filter>,
    /// Programme and packets of the sound that is played.
    chosen: Option<(Pid, Pid, Codec)>,
    obstacle: Option<&'static str>,
    frames: Frames,
    out: Sink,
}

impl Context {
    fn sound(&mut self, bytes: &[u8]) {
        match self.chosen {
            Some((.., Codec::Aac)) => self.frames.push(bytes, &mut self.out),
            Some((.., Codec::Mpeg)) => self.out.push(bytes),
            None => {}
        }
    }

    /// Bytes of it are missing.
    fn lost(&mut self) {
        self.frames.finish(&mut self.out);
    }

    fn choose(&mut self, programme: Pid, sound: Pid, codec: Codec) {
        let chosen = Some((programme, sound, codec));
        if self.chosen.is_some() && self.chosen != chosen {
            self.lost();
            self.out.cut();
        }
        self.chosen = chosen;
    }
}

impl DemuxContext for Context {
    type F = Filter;

    fn filter_changeset(&mut self) -> &mut FilterChangeset<Filter> {
        &mut self.changes
    }

    fn construct(&mut self, request: FilterRequest<'_, '_>) -> Filter {
        match request {
            FilterRequest::ByPid(Pid::PAT) => Filter::Pat(PatPacketFilter::default()),
            FilterRequest::Pmt { pid, program_number } => {
                Filter::Pmt(PmtPacketFilter::new(pid, program_number))
            }
            FilterRequest::ByStream { program_pid, stream_type, pmt, stream_info } => {
                let first = pmt
                    .streams()
                    .find_map(|stream| Some((stream.elementary_pid(), Codec::of(stream.stream_type())?)));
                // Of several programmes the first one that can be played.
                let ours = self.chosen.is_none_or(|(programme, ..)| programme == program_pid);
                match first {
                    Some((pid, codec)) if ours && pid == stream_info.elementary_pid() => {
                        self.choose(program_pid, pid, codec);
                        Filter::Sound(PesPacketFilter::new(Sound))
                    }
                    _ => {
                        self.obstacle = self.obstacle.or(obstacle(stream_type));
                        Filter::Other(NullPacketFilter::default())
                    }
                }
            }
            FilterRequest::ByPid(_) | FilterRequest::Nit { .. } => Filter::Other(NullPacketFilter::default()),
        }
    }
}

/// Takes the packets of the sound that is played.
pub struct Sound;

impl ElementaryStreamConsumer<Context> for Sound {
    fn start_stream(&mut self, _: &mut Context) {}

    fn begin_packet(&mut self, context: &mut Context, header: PesHeader<'_>) {
        let bytes = match header.contents() {
            PesContents::Parsed(Some(parsed)) => parsed.payload(),
            PesContents::Payload(bytes) => bytes,
            PesContents::Parsed(None) => return context.lost(),
        };
        // Some writers call it ADTS. What is one of these frames and no other begins so.
        if matches!(bytes, [0x56, b, ..] if b & 0xe0 == 0xe0) {
            context.obstacle = context.obstacle.or(Some(LATM));
        }
        context.sound(bytes);
    }

    fn continue_packet(&mut self, context: &mut Context, bytes: &[u8]) {
        context.sound(bytes);
    }

    fn end_packet(&mut self, _: &mut Context) {}

    fn continuity_error(&mut self, context: &mut Context) {
        context.lost();
    }
}

/// Takes bytes as they come and gives on sound.
pub(super) struct Transport {
    demux: Demultiplex<Context>,
    context: Context,
    /// Less than a packet, or what may be the beginning of one.
    held: Vec<u8>,
}

impl Default for Transport {
    fn default() -> Self {
        let mut context = Context {
            changes: FilterChangeset::default(),
            chosen: None,
            obstacle: None,
            frames: Frames::default(),
            out: Sink::default(),
        };
        Transport { demux: Demultiplex::new(&mut context), context, held: Vec::new() }
    }
}

impl Transport {
    /// What the sound is, once that is known.
    pub fn codec(&self) -> Option<Codec> {
        self.context.chosen.map(|(.., codec)| codec)
    }

    /// Why there is no sound, as far as is known.
    pub fn obstacle(&self) -> Option<&'static str> {
        self.context.obstacle
    }

    /// Goes on with these bytes.
    pub fn push(&mut self, bytes: &[u8], out: &mut Sink) {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        // Sound may hold the byte that packets begin with: a packet is believed when another follows it.
        while self.held.len() - at > PACKET {
            let rest = &self.held[at..];
            let follows = |i: usize| rest[i] == SYNC && rest[i + PACKET] == SYNC;
            let packets = (0..(rest.len() - 1) / PACKET).take_while(|n| follows(n * PACKET)).count();
            if packets == 0 {
                at += (1..rest.len() - PACKET).find(|&i| follows(i)).unwrap_or(rest.len() - PACKET);
                continue;
            }
            let length = packets * PACKET;
            self.demux.push(&mut self.context, &self.held[at..at + length]);
            self.scrambled(at, length);
            at += length;
        }
        self.held.drain(..at);
        self.give(out);
    }

    /// Whether packets of the sound are scrambled. They are left out.
    fn scrambled(&mut self, at: usize, length: usize) {
        let Some((_, sound, _)) = self.context.chosen else { return };
        let mut packets = self.held[at..at + length].chunks_exact(PACKET);
        let is_ours =
            |packet: &[u8]| u16::from_be_bytes([packet[1], packet[2]]) & Pid::MAX_VALUE == u16::from(sound);
        if packets.any(|packet| is_ours(packet) && packet[3] & 0xc0 != 0) {
            self.context.obstacle = Some(super::ENCRYPTED);
        }
    }

    /// No more bytes of this segment come; the next one begins with a packet, and with tables where these were
    /// missing or broken.
    pub fn finish(&mut self, out: &mut Sink) {
        if self.held.len() == PACKET && self.held[0] == SYNC {
            self.demux.push(&mut self.context, &self.held);
        }
        self.held.clear();
        if self.context.chosen.is_none() {
            self.demux = Demultiplex::new(&mut self.context);
        }
        self.give(out);
    }

    /// The recording is over: gives the last frame.
    pub fn end(&mut self, out: &mut Sink) {
        self.finish(out);
        self.context.lost();
        self.give(out);
    }

    fn give(&mut self, out: &mut Sink) {
        for (n, run) in self.context.out.take().iter().enumerate() {
            if n > 0 {
                out.cut();
            }
            out.push(run);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
