//! Cards that can do little, and music of every width, rate and number of channels: bit for bit where the card can
//! carry it, and the right reason where it cannot.

use crate::support::card::Session;
use crate::support::prelude::*;

/// What a card may be able to do, by what it lacks.
struct Able {
    name: &'static str,
    formats: &'static [&'static str],
    rates: &'static [u32],
    channels: &'static [u32],
}

const ALL_FORMATS: &[&str] = &["S32_LE", "S24_3LE", "S24_LE", "S16_LE"];
const ALL_RATES: &[u32] = &[
    8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 37_800, 44_100, 48_000, 64_000, 88_200, 96_000,
    176_400, 192_000, 352_800, 384_000,
];
const ALL_CHANNELS: &[u32] = &[1, 2, 3, 4, 5, 6, 7, 8];

const CARDS: [Able; 9] = [
    Able { name: "all", formats: ALL_FORMATS, rates: ALL_RATES, channels: ALL_CHANNELS },
    Able { name: "16 bits", formats: &["S16_LE"], rates: ALL_RATES, channels: ALL_CHANNELS },
    Able { name: "24 bits packed", formats: &["S24_3LE"], rates: ALL_RATES, channels: ALL_CHANNELS },
    Able { name: "24 bits in 32", formats: &["S24_LE"], rates: ALL_RATES, channels: ALL_CHANNELS },
    Able { name: "32 bits", formats: &["S32_LE"], rates: ALL_RATES, channels: ALL_CHANNELS },
    Able { name: "48 kHz", formats: ALL_FORMATS, rates: &[48_000], channels: ALL_CHANNELS },
    Able { name: "stereo", formats: ALL_FORMATS, rates: ALL_RATES, channels: &[2] },
    Able { name: "mono", formats: ALL_FORMATS, rates: ALL_RATES, channels: &[1] },
    Able { name: "8 channels", formats: &["S24_3LE"], rates: &[44_100, 48_000], channels: &[8] },
];

/// Rate, bits, channels.
const SOURCES: [(u32, u32, usize); 20] = [
    (8_000, 8, 1),
    (11_025, 16, 2),
    (12_000, 16, 2),
    (16_000, 16, 1),
    (22_050, 16, 2),
    (24_000, 24, 2),
    (32_000, 16, 2),
    // Of a disc, and no rate that is asked of cards.
    (37_800, 16, 2),
    (44_100, 16, 2),
    (44_100, 24, 2),
    (44_100, 32, 2),
    (48_000, 16, 6),
    (48_000, 24, 8),
    (64_000, 16, 2),
    (88_200, 24, 2),
    (96_000, 24, 6),
    (176_400, 24, 2),
    (192_000, 24, 2),
    (352_800, 32, 2),
    (384_000, 24, 2),
];

fn recording(seed: u64, (rate, bits, channels): (u32, u32, usize)) -> Recording {
    let stereo = Recording::music(seed, rate, bits.max(16), 0.4);
    let mask = if bits == 8 { !0xff_ffff } else { -1 };
    // In 8 bits a small sample would be silent, by which the end of the music is found.
    let samples: Vec<i32> = stereo.samples.iter().map(|s| s & mask | i32::from(bits == 8) << 24).collect();
    let whole = samples.len() / channels * channels;
    Recording { rate, channels, bits, samples: samples[..whole].to_vec() }
}

fn wav(recording: &Recording) -> Vec<u8> {
    let mut wav = recording.to_wav();
    if recording.bits == 8 {
        // Bytes are unsigned.
        wav[44..].iter_mut().for_each(|byte| *byte = byte.wrapping_add(0x80));
    }
    wav
}

/// What must be said of this source on this card: nothing, or words of the reason.
fn expected(able: &Able, (rate, bits, channels): (u32, u32, usize)) -> Option<String> {
    let width = able.formats.iter().map(|format| match *format {
        "S32_LE" => 32,
        "S16_LE" => 16,
        _ => 24,
    });
    let width = width.max().unwrap();
    if !able.rates.contains(&rate) {
        let multiple = able.rates.iter().find(|r| **r > rate && r.is_multiple_of(rate));
        return Some(format!("the card runs at {} Hz", multiple.unwrap_or(&48_000)));
    }
    if !able.channels.contains(&(channels as u32)) {
        return Some(format!("the card runs with {} channels", able.channels[0]));
    }
    (bits > width).then(|| format!("the card takes {width} bits"))
}

/// Whether the samples arrive although the card is not what the source is: more channels than the music needs.
fn arrives(recording: &Recording, heard: &Recording) -> bool {
    let (from, to) = (recording.channels, heard.channels);
    let frames = heard.samples.chunks(to).zip(recording.samples.chunks(from));
    heard.rate == recording.rate && heard.frames() == recording.frames() && {
        let places: &[usize] = match from {
            1 => &[0, 0],
            2 => &[0, 1],
            _ => &[0, 1, 2, 3, 4, 5, 6, 7],
        };
        frames.into_iter().all(|(heard, sent)| {
            let own = heard.iter().zip(places.iter().take(from.max(2)));
            own.into_iter().all(|(sample, place)| *sample == sent[*place])
        })
    }
}

/// What was heard since then; a format that runs already goes on in the same session.
fn since(card: &Card, before: &[Session]) -> Recording {
    let (after, known) = (card.sessions(), before.len().saturating_sub(1));
    let mut heard = after[known..].iter().map(|session| session.heard.clone());
    let first = heard.next().expect("something was heard");
    let old = before.last().map_or(0, |session| session.heard.frames());
    let first = first.cut(old.min(first.frames())..first.frames()).trimmed();
    heard.rfind(|session| session.frames() > 0).map_or(first, |last| last.trimmed())
}

async fn check(able: &Able) {
    let card = Card::new().formats(able.formats).rates(able.rates).channels(able.channels).plug();
    let server = Server::start();
    let mut daemon = Daemon::new().card(&card).log_level("info").start().await;
    for (seed, source) in SOURCES.into_iter().enumerate() {
        let what = format!("{source:?} on the card “{}”", able.name);
        let recording = recording(seed as u64 + 1, source);
        let url = server.serve(
            &format!("/{seed}.wav"),
            Encoded { bytes: Arc::new(wav(&recording)), content_type: "audio/wav" },
        );
        daemon.segue(&["queue", "clear"]).await;
        let (before, said) = (card.sessions(), daemon.record.len());
        daemon.play_uris(&[url]).await;
        daemon.wait_event_from(said, "playing").await;
        let output = daemon.output().await;
        daemon.wait_end(said).await;
        let reason = expected(able, source);
        assert_eq!(get::<bool>(&output, "bit_perfect"), reason.is_none(), "{what}: {output:?}");
        assert_eq!(get::<String>(&output, "reason"), reason.clone().unwrap_or_default(), "{what}");
        let heard = since(&card, &before);
        match reason {
            None => assert_exact(&heard, &recording),
            // What is wider than the card is dithered.
            Some(reason)
                if reason.contains("channels")
                    && heard.channels > recording.channels
                    && recording.bits <= 24 =>
            {
                assert!(arrives(&recording, &heard), "{what}: {} of {}", heard.frames(), recording.frames());
            }
            // Converted: it is as long in time.
            Some(_) => {
                let (long, wanted) = (heard.seconds(), recording.seconds());
                assert!((long - wanted).abs() < 0.02, "{what}: {long:.3} s of {wanted:.3} s");
            }
        }
    }
    assert!(daemon.errors().is_empty(), "{:?}", daemon.errors());
}

#[tokio::test]
async fn a_card_that_can_do_everything_gets_everything_untouched() {
    check(&CARDS[0]).await;
}

#[tokio::test]
async fn cards_of_one_format_get_what_fits_untouched() {
    for able in &CARDS[1..5] {
        check(able).await;
    }
}

#[tokio::test]
async fn cards_of_one_rate_or_few_channels_say_what_they_change() {
    for able in &CARDS[5..] {
        check(able).await;
    }
}
