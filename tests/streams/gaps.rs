//! Sound that had to wait: the source, each frame once and in order, with silence in between.

use crate::support::audio::Recording;
use crate::support::card::Card;
use crate::support::compare::difference;

/// After a silence sound fades in over 5 ms.
const FADE_MS: usize = 6;

/// Everything that the card was given since it had been given so many frames, with the silence in between.
pub fn heard_since(card: &Card, before: usize) -> Option<Recording> {
    let sessions = card.sessions().into_iter().map(|session| session.heard);
    let all = sessions.reduce(|all, next| all.then(&next))?;
    Some(all.cut(before.min(all.frames())..all.frames()).trimmed())
}

/// How often there was silence in between; or what else is wrong. The end may be missing where that is said.
pub fn heard_with_gaps(heard: &Recording, source: &Recording, cut_short: bool) -> Result<usize, String> {
    if heard.frames() == 0 {
        return if cut_short { Ok(0) } else { Err("nothing was heard".to_owned()) };
    }
    let wrong = |what: String| Err(format!("{what}; {}", difference(heard, source)));
    if (heard.rate, heard.channels) != (source.rate, source.channels) {
        return wrong("another rate or number of channels".to_owned());
    }
    let (ours, theirs) = (frames(heard), frames(source));
    let fade = heard.rate as usize * FADE_MS / 1_000;
    let (mut at, mut of, mut gaps) = (0, 0, 0);
    while at < ours.len() {
        if of < theirs.len() && ours[at] == theirs[of] {
            (at, of) = (at + 1, of + 1);
            continue;
        }
        let silent = ours[at..].iter().take_while(|frame| frame.iter().all(|sample| *sample == 0)).count();
        if silent == 0 {
            return wrong(format!("after {gaps} silences frame {of} of the source is not heard"));
        }
        gaps += 1;
        at += silent;
        // The first frame of a fade is silent too, and belongs to the silence as far as can be seen.
        let Some(first) =
            (of..(of + fade).min(theirs.len())).find(|of| goes_on(&ours, at, &theirs, *of, fade))
        else {
            return wrong(format!("after silence {gaps}, frame {of} of the source does not go on"));
        };
        let faded = (first + fade).min(theirs.len()) - first;
        (at, of) = ((at + faded).min(ours.len()), first + faded);
    }
    if of < theirs.len() && !cut_short {
        return wrong(format!("only {of} of {} frames were heard", theirs.len()));
    }
    Ok(gaps)
}

fn frames(of: &Recording) -> Vec<&[i32]> {
    of.samples.chunks(of.channels).collect()
}

/// Whether `ours` from `at` on is `theirs` from `of` on, faded in.
fn goes_on(ours: &[&[i32]], at: usize, theirs: &[&[i32]], of: usize, fade: usize) -> bool {
    let quieter = |(ours, theirs): (&&[i32], &&[i32])| {
        ours.iter().zip(theirs.iter()).all(|(ours, theirs)| {
            ours.unsigned_abs() <= theirs.unsigned_abs() + (1 << 16)
                && (i64::from(*ours) * i64::from(*theirs) >= 0 || ours.unsigned_abs() < 1 << 17)
        })
    };
    let after = ours.iter().skip(at + fade).zip(theirs.iter().skip(of + fade)).take(8);
    ours[at..].iter().zip(&theirs[of..]).take(fade).all(quieter) && after.into_iter().all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source with a silence and a fade after it at this frame.
    fn with_gap(source: &Recording, at: usize) -> Recording {
        let silence = Recording { samples: vec![0; 2 * 400], ..source.clone() };
        let mut rest = source.cut(at..source.frames());
        let fade = source.rate as usize * 5 / 1_000;
        for (nth, frame) in rest.samples.chunks_mut(2).take(fade).enumerate() {
            frame
                .iter_mut()
                .for_each(|sample| *sample = (i64::from(*sample) * nth as i64 / fade as i64) as i32);
        }
        source.cut(0..at).then(&silence).then(&rest)
    }

    #[test]
    fn silence_in_between_is_counted_and_everything_else_is_seen() {
        let source = Recording::music(1, 44_100, 16, 0.2);
        assert_eq!(heard_with_gaps(&source, &source, false), Ok(0));
        let broken = with_gap(&source, 3_000);
        assert_eq!(heard_with_gaps(&broken, &source, false), Ok(1));
        assert_eq!(heard_with_gaps(&source.cut(0..5_000), &source, true), Ok(0));
        assert!(heard_with_gaps(&source.cut(0..5_000), &source, false).is_err(), "the end is missing");
        let lost = source.cut(0..3_000).then(&source.cut(3_001..source.frames()));
        assert!(heard_with_gaps(&lost, &source, false).is_err(), "a frame is missing");
        let twice = source.cut(0..3_000).then(&source.cut(2_999..source.frames()));
        assert!(heard_with_gaps(&twice, &source, false).is_err(), "a frame is heard twice");
        let jumped = with_gap(&source.cut(0..3_000).then(&source.cut(3_500..source.frames())), 3_000);
        assert!(heard_with_gaps(&jumped, &source, false).is_err(), "frames are lost in a silence");
        let mut wrong = broken;
        wrong.samples[2 * 5_000] ^= 1 << 20;
        assert!(heard_with_gaps(&wrong, &source, false).is_err(), "a sample is wrong");
    }
}
