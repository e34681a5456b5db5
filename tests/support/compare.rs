//! What was heard beside what should be.

use super::audio::Recording;

/// How far a lag is looked for, in frames.
const MOST_LAG: usize = 3_000;
/// So many frames decide about the lag.
const WINDOW: usize = 16_384;

/// Bit for bit the same, but for silence before and after.
#[track_caller]
pub fn assert_exact(heard: &Recording, source: &Recording) {
    let (heard, source) = (heard.trimmed(), source.trimmed());
    assert_eq!((heard.rate, heard.channels), (source.rate, source.channels), "rate and channels");
    if heard.samples != source.samples {
        panic!("not what was recorded: {}", difference(&heard, &source));
    }
}

/// Bit for bit the same, but for silence around and for these ranges of frames (fades).
#[track_caller]
pub fn assert_exact_outside(heard: &Recording, source: &Recording, faded: &[std::ops::Range<usize>]) {
    let (mut heard, mut source) = (heard.trimmed(), source.trimmed());
    assert_eq!(heard.frames(), source.frames(), "{}", difference(&heard, &source));
    for range in faded {
        for sample in range.start * heard.channels..range.end.min(heard.frames()) * heard.channels {
            heard.samples[sample] = 1;
            source.samples[sample] = 1;
        }
    }
    assert_exact(&heard, &source);
}

/// Where in `source` a piece goes on that fades in over its first frames; all that follows is bit for bit the same.
#[track_caller]
pub fn goes_on_at(piece: &Recording, source: &Recording) -> usize {
    let (piece, channels) = (piece.trimmed(), source.channels);
    let fade = source.rate as usize * 6 / 1_000;
    let sound = &piece.samples[channels * fade..channels * (fade + 8)];
    let found = source.samples.windows(sound.len()).step_by(channels).position(|window| window == sound);
    // The first frame of a fade may be silent, which moves the start by one.
    let start = found.expect("what goes on is not of this recording") - fade;
    let end = (start + piece.frames()).min(source.frames());
    let faded = 0..fade;
    assert_exact_outside(&piece, &source.cut(start..end), &[faded]);
    start
}

/// That sound which ended at a frame went on at another: nothing skipped, and at most a period of so many repeated.
#[track_caller]
pub fn assert_not_skipped(end: usize, start: usize, period: usize) {
    assert!(start <= end + 1, "{} frames were skipped", start - end);
    assert!(end - start.min(end) <= period, "{} frames were repeated, a period has {period}", end - start);
}

/// Bit for bit the same, but where it was silent in between, or stood still, and fades in after that. Nothing is lost
/// there; but a card that is many times as fast as the clock plays on between the moment when it is asked how far it is
/// and the one when it is stopped, and what it played meanwhile may be heard again, up to half a second of it.
#[track_caller]
pub fn assert_exact_but_for_gaps(heard: &Recording, source: &Recording) {
    let (heard, source) = (heard.trimmed(), source.trimmed());
    assert_eq!((heard.rate, heard.channels), (source.rate, source.channels), "rate and channels");
    let frame = |of: &Recording, at: usize| of.samples[at * of.channels..(at + 1) * of.channels].to_vec();
    let fade = heard.rate as usize * 6 / 1_000;
    let (mut at, mut wanted) = (0, 0);
    while at < heard.frames() && wanted < source.frames() {
        if frame(&heard, at) == frame(&source, wanted) {
            (at, wanted) = (at + 1, wanted + 1);
            continue;
        }
        let silent = (at..heard.frames()).take_while(|at| frame(&heard, *at).iter().all(|s| *s == 0)).count();
        let goes_on = |at: usize, wanted: usize| {
            let rest = &source.samples[(wanted * source.channels).min(source.samples.len())..];
            let rest = &rest[..rest.len().min(256)];
            heard.samples.get(at * heard.channels..).is_some_and(|samples| samples.starts_with(rest))
        };
        let again = heard.rate as usize / 2;
        let places = (0..=again.min(wanted)).flat_map(|back| {
            // The first frames of the fade may be silent, too; and who only stood still does not fade.
            let faded =
                (0..=fade.min(silent)).map(move |early| (at + silent + fade - early, wanted - back + fade));
            faded.chain([(at + silent, wanted - back)])
        });
        let found = places.into_iter().find(|(at, wanted)| goes_on(*at, *wanted));
        (at, wanted) = found.unwrap_or_else(|| panic!("lost at a gap: {}", difference(&heard, &source)));
    }
    assert_eq!(
        heard.frames() - at.min(heard.frames()),
        source.frames() - wanted.min(source.frames()),
        "the end"
    );
}

/// In words, for a failed assertion.
pub fn difference(heard: &Recording, source: &Recording) -> String {
    let (frames, wanted) = (heard.frames(), source.frames());
    let pairs = heard.samples.chunks(heard.channels).zip(source.samples.chunks(source.channels));
    let first = pairs.clone().position(|(a, b)| a != b);
    let different = pairs.filter(|(a, b)| a != b).count();
    let place = match first {
        Some(frame) => {
            let show = |of: &Recording| {
                of.samples
                    .iter()
                    .skip(frame * of.channels)
                    .take(6)
                    .map(|s| format!("{s:08x}"))
                    .collect::<Vec<_>>()
            };
            let jump = found_at(heard, source, frame);
            format!(
                "first different at frame {frame} ({:.3} s): heard {:?}, recorded {:?}; {different} frames differ{jump}",
                frame as f64 / f64::from(source.rate),
                show(heard),
                show(source),
            )
        }
        None => "the same as far as both go".to_owned(),
    };
    format!("{frames} frames heard, {wanted} recorded; {place}")
}

/// Where the source goes on after the first difference: tells lost frames from repeated and from altered ones.
fn found_at(heard: &Recording, source: &Recording, frame: usize) -> String {
    let channels = heard.channels;
    let Some(next) = heard.samples.get(frame * channels..(frame + 8) * channels) else {
        return String::new();
    };
    let found =
        (0..source.frames().saturating_sub(8)).find(|at| source.samples[at * channels..].starts_with(next));
    match found {
        Some(at) if at > frame => format!("; {} frames are missing there", at - frame),
        Some(at) => format!("; it went back {} frames there", frame - at),
        None => {
            let wanted = &source.samples[(frame * channels).min(source.samples.len())..];
            let wanted = &wanted[..wanted.len().min(8 * channels)];
            let later = (frame..heard.frames().saturating_sub(8)).find(|at| {
                wanted.len() == 8 * channels && heard.samples[at * channels..].starts_with(wanted)
            });
            match later {
                Some(at) => format!("; {} foreign frames were put in there", at - frame),
                None => "; it goes on altered".to_owned(),
            }
        }
    }
}

/// How alike two recordings are.
#[derive(Clone, Copy, Debug)]
pub struct Likeness {
    /// Frames by which the heard one is late; negative: early.
    pub lag: i64,
    /// Pearson's, of the left channels, at that lag. 1 is the same.
    pub correlation: f64,
}

/// Finds the lag at which they are most alike.
pub fn likeness(heard: &Recording, source: &Recording) -> Likeness {
    let left = |of: &Recording| {
        of.samples.iter().step_by(of.channels).map(|s| f64::from(*s) / 2e9).collect::<Vec<_>>()
    };
    let (heard, source) = (left(heard), left(source));
    let middle = source.len() / 2;
    let window = middle.saturating_sub(WINDOW / 2)..(middle + WINDOW / 2).min(source.len());
    let score = |lag: i64| {
        let products = window.clone().step_by(4).filter_map(|at| {
            let other = usize::try_from(at as i64 + lag).ok()?;
            Some(source[at] * heard.get(other)?)
        });
        products.sum::<f64>()
    };
    let most = MOST_LAG as i64;
    let lag = (-most..=most).max_by(|a, b| score_order(score(*a), score(*b))).unwrap_or(0);
    let pairs: Vec<(f64, f64)> = source
        .iter()
        .enumerate()
        .filter_map(|(at, sample)| Some((*sample, *heard.get(usize::try_from(at as i64 + lag).ok()?)?)))
        .collect();
    Likeness { lag, correlation: correlation(&pairs) }
}

fn score_order(a: f64, b: f64) -> std::cmp::Ordering {
    a.total_cmp(&b)
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let (mean_a, mean_b) = pairs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / count, b + y / count));
    let (mut both, mut a, mut b) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        both += (x - mean_a) * (y - mean_b);
        a += (x - mean_a).powi(2);
        b += (y - mean_b).powi(2);
    }
    both / (a * b).sqrt()
}
