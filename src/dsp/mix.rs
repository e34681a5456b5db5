//! How channels become others. Frames have the order of WAVE: left, right, centre, LFE, back, side.

use Speaker::*;

/// Minus 3 dB, for what comes from the centre and from behind (ITU-R BS.775).
const MINUS_3_DB: f32 = std::f32::consts::FRAC_1_SQRT_2;

/// What a channel is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Left,
    Right,
    Centre,
    Lfe,
    BackLeft,
    BackRight,
    BackCentre,
    SideLeft,
    SideRight,
}

/// What so many channels are meant for; of more than eight, the first eight.
fn layout(channels: usize) -> &'static [Speaker] {
    match channels {
        0 => &[],
        1 => &[Centre],
        2 => &[Left, Right],
        3 => &[Left, Right, Centre],
        4 => &[Left, Right, BackLeft, BackRight],
        5 => &[Left, Right, Centre, BackLeft, BackRight],
        6 => &[Left, Right, Centre, Lfe, BackLeft, BackRight],
        7 => &[Left, Right, Centre, Lfe, BackCentre, SideLeft, SideRight],
        _ => &[Left, Right, Centre, Lfe, BackLeft, BackRight, SideLeft, SideRight],
    }
}

/// Where a channel is heard, in order of preference: from the first set of speakers that are all there. The LFE is
/// heard from its own or not at all.
fn places(speaker: Speaker) -> &'static [&'static [(Speaker, f32)]] {
    const D: f32 = MINUS_3_DB;
    match speaker {
        Left => &[&[(Left, 1.0)], &[(Centre, D)]],
        Right => &[&[(Right, 1.0)], &[(Centre, D)]],
        Centre => &[&[(Centre, 1.0)], &[(Left, D), (Right, D)]],
        Lfe => &[&[(Lfe, 1.0)]],
        BackLeft => &[&[(BackLeft, 1.0)], &[(SideLeft, 1.0)], &[(Left, D)], &[(Centre, 0.5)]],
        BackRight => &[&[(BackRight, 1.0)], &[(SideRight, 1.0)], &[(Right, D)], &[(Centre, 0.5)]],
        SideLeft => &[&[(SideLeft, 1.0)], &[(BackLeft, 1.0)], &[(Left, D)], &[(Centre, 0.5)]],
        SideRight => &[&[(SideRight, 1.0)], &[(BackRight, 1.0)], &[(Right, D)], &[(Centre, 0.5)]],
        BackCentre => &[
            &[(BackCentre, 1.0)],
            &[(BackLeft, D), (BackRight, D)],
            &[(SideLeft, D), (SideRight, D)],
            &[(Left, 0.5), (Right, 0.5)],
            &[(Centre, 0.5)],
        ],
    }
}

/// How channels become others.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mix {
    Keep,
    /// Each output channel is one input channel or silent.
    Pick(Vec<Option<usize>>),
    /// One row of factors for each output channel.
    Matrix(Vec<Vec<f32>>),
}

impl Mix {
    /// From so many channels to so many; with `mono`, left and right get the same.
    pub(super) fn new(from: usize, to: usize, mono: bool) -> Mix {
        match (from, to) {
            (2.., 2..) if mono => Mix::Matrix(both_ears(from, to)),
            _ if from == to => Mix::Keep,
            // What was made for one loudspeaker comes from both, as loud as it is.
            (1, _) => Mix::Pick((0..to).map(|c| (c < 2).then_some(0)).collect()),
            _ => Mix::from_rows(normalised(rows(layout(from), layout(to), from, to))),
        }
    }

    fn from_rows(rows: Vec<Vec<f32>>) -> Mix {
        let is_single = |row: &Vec<f32>| row.iter().filter(|f| **f != 0.0).all(|f| *f == 1.0);
        let is_single = |row: &Vec<f32>| is_single(row) && row.iter().sum::<f32>() <= 1.0;
        if !rows.iter().all(is_single) {
            return Mix::Matrix(rows);
        }
        Mix::Pick(rows.iter().map(|row| row.iter().position(|f| *f == 1.0)).collect())
    }

    /// The same as factors, whatever it is.
    fn matrix(&self, from: usize) -> Vec<Vec<f32>> {
        let unit = |c: Option<usize>| (0..from).map(|i| if Some(i) == c { 1.0 } else { 0.0 }).collect();
        match self {
            Mix::Keep => (0..from).map(|c| unit(Some(c))).collect(),
            Mix::Pick(channels) => channels.iter().map(|c| unit(*c)).collect(),
            Mix::Matrix(rows) => rows.clone(),
        }
    }

    pub(super) fn apply(&self, channels: usize, input: &[f32], out: &mut Vec<f32>) {
        match self {
            Mix::Keep => out.extend_from_slice(input),
            Mix::Pick(from) => pick(from, channels, input, out, 0.0),
            Mix::Matrix(rows) => {
                for frame in input.chunks_exact(channels) {
                    out.extend(rows.iter().map(|row| dot(row, frame)));
                }
            }
        }
    }
}

/// Whether frames of so many channels become those of so many others without being mixed: each sample goes to a speaker
/// of its own as it is, or, as an LFE may, to none.
pub fn keeps_samples(from: usize, to: usize) -> bool {
    let heard = layout(to);
    let place = |speaker: &Speaker| heard.iter().position(|other| other == speaker);
    let mut taken = [false; 8];
    from == to
        || from == 1
        || layout(from).iter().all(|speaker| {
            match places(*speaker).iter().find(|set| set.iter().all(|(other, _)| place(other).is_some())) {
                Some([(other, 1.0)]) => {
                    place(other).is_some_and(|place| !std::mem::replace(&mut taken[place], true))
                }
                other => other.is_none(),
            }
        })
}

/// What each of `to` speakers takes from `from` channels; the lists may be shorter than the counts.
fn rows(speakers: &[Speaker], heard: &[Speaker], from: usize, to: usize) -> Vec<Vec<f32>> {
    let mut rows = vec![vec![0.0; from]; to];
    let place = |speaker: &Speaker| heard.iter().position(|other| other == speaker);
    for (channel, speaker) in speakers.iter().enumerate() {
        let all_there = |set: &&&[(Speaker, f32)]| set.iter().all(|(speaker, _)| place(speaker).is_some());
        for (speaker, factor) in places(*speaker).iter().find(all_there).copied().unwrap_or_default() {
            if let Some(row) = place(speaker) {
                rows[row][channel] = *factor;
            }
        }
    }
    rows
}

/// One way of mixing that turns into another over some frames, so that nothing clicks.
#[derive(Clone, Debug)]
pub(super) struct Blend {
    rows: Vec<(Vec<f32>, Vec<f32>)>,
    done: usize,
    length: usize,
}

impl Blend {
    pub(super) fn new(before: &Mix, after: &Mix, from: usize, length: usize) -> Blend {
        let rows = before.matrix(from).into_iter().zip(after.matrix(from)).collect();
        Blend { rows, done: 0, length }
    }

    /// What it is on the way.
    pub(super) fn now(&self) -> Mix {
        let part = self.part();
        let between = |(before, after): &(f32, f32)| before + (after - before) * part;
        let row = |(before, after): &(Vec<f32>, Vec<f32>)| {
            before.iter().copied().zip(after.iter().copied()).map(|pair| between(&pair)).collect()
        };
        Mix::Matrix(self.rows.iter().map(row).collect())
    }

    fn part(&self) -> f32 {
        (self.done as f32 / self.length.max(1) as f32).min(1.0)
    }

    pub(super) fn is_done(&self) -> bool {
        self.done >= self.length
    }

    /// Frames until then.
    pub(super) fn left(&self) -> usize {
        self.length.saturating_sub(self.done)
    }

    /// Mixes whole frames and goes on by as many.
    pub(super) fn apply(&mut self, channels: usize, input: &[f32], out: &mut Vec<f32>) {
        for frame in input.chunks_exact(channels) {
            let part = self.part();
            out.extend(self.rows.iter().map(|(before, after)| {
                let (before, after) = (dot(before, frame), dot(after, frame));
                before + (after - before) * part
            }));
            self.done += 1;
        }
    }
}

/// Takes channels as they are.
pub(super) fn pick<T: Copy>(
    from: &[Option<usize>],
    channels: usize,
    input: &[T],
    out: &mut Vec<T>,
    silence: T,
) {
    for frame in input.chunks_exact(channels) {
        out.extend(from.iter().map(|c| c.map_or(silence, |c| frame[c])));
    }
}

fn dot(row: &[f32], frame: &[f32]) -> f32 {
    row.iter().zip(frame).map(|(factor, sample)| factor * sample).sum()
}

/// For who hears with one ear: left and right get all, the other channels nothing.
fn both_ears(from: usize, to: usize) -> Vec<Vec<f32>> {
    let all = normalised(rows(layout(from), layout(1), from, 1)).pop().unwrap_or_default();
    (0..to).map(|c| if c < 2 { all.clone() } else { vec![0.0; from] }).collect()
}

/// Scales all rows alike, so that full scale on all channels is not clipped.
fn normalised(mut rows: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    let loudest = rows.iter().map(|row| row.iter().sum::<f32>()).fold(1.0, f32::max);
    for factor in rows.iter_mut().flatten() {
        *factor /= loudest;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(from: usize, to: usize) -> Vec<Vec<f32>> {
        Mix::new(from, to, false).matrix(from)
    }

    /// Scaled so that the first factor is 1.
    fn check(from: usize, to: usize, want: &[&[f32]]) {
        let rows = matrix(from, to);
        let first = rows[0][0];
        for (row, want) in rows.iter().zip(want) {
            let same = row.iter().zip(*want).all(|(factor, want)| (factor / first - want).abs() < 1e-6);
            assert!(same && row.len() == want.len(), "{from} to {to}: {row:?} is not {want:?}");
        }
    }

    #[test]
    fn down_to_two_and_one_by_the_standard() {
        const D: f32 = MINUS_3_DB;
        check(3, 2, &[&[1.0, 0.0, D], &[0.0, 1.0, D]]);
        check(4, 2, &[&[1.0, 0.0, D, 0.0], &[0.0, 1.0, 0.0, D]]);
        check(6, 2, &[&[1.0, 0.0, D, 0.0, D, 0.0], &[0.0, 1.0, D, 0.0, 0.0, D]]);
        check(7, 2, &[&[1.0, 0.0, D, 0.0, 0.5, D, 0.0], &[0.0, 1.0, D, 0.0, 0.5, 0.0, D]]);
        check(8, 2, &[&[1.0, 0.0, D, 0.0, D, 0.0, D, 0.0], &[0.0, 1.0, D, 0.0, 0.0, D, 0.0, D]]);
        check(2, 1, &[&[1.0, 1.0]]);
        check(6, 1, &[&[1.0, 1.0, 1.0 / D, 0.0, 0.5 / D, 0.5 / D]]);
    }

    #[test]
    fn between_surrounds_every_channel_keeps_its_side() {
        // The sides go to the back, and the LFE is not mistaken for anything.
        let rows = matrix(8, 6);
        assert!(
            rows[4][4] > 0.0 && rows[4][4] == rows[4][6] && rows[4][5] == 0.0 && rows[5][7] == rows[4][6]
        );
        assert!(rows[3].iter().enumerate().all(|(c, f)| (*f > 0.0) == (c == 3)), "{rows:?}");
        assert_eq!(
            Mix::new(5, 6, false),
            Mix::Pick([0, 1, 2].map(Some).into_iter().chain([None, Some(3), Some(4)]).collect())
        );
        assert_eq!(Mix::new(4, 6, false), Mix::Pick(vec![Some(0), Some(1), None, None, Some(2), Some(3)]));
        assert_eq!(
            Mix::new(2, 8, false),
            Mix::Pick([Some(0), Some(1)].into_iter().chain([None; 6]).collect())
        );
        assert_eq!(Mix::new(1, 2, false), Mix::Pick(vec![Some(0), Some(0)]));
    }

    #[test]
    fn what_is_only_moved_is_not_called_mixed() {
        for (from, to) in (1..=10).flat_map(|from| (1..=10).map(move |to| (from, to))) {
            let is_mixed = matches!(Mix::new(from, to, false), Mix::Matrix(_));
            assert_eq!(keeps_samples(from, to), !is_mixed, "{from} to {to}");
        }
        assert!(keeps_samples(6, 8) && keeps_samples(2, 6) && !keeps_samples(6, 2) && !keeps_samples(7, 6));
    }

    #[test]
    fn nothing_is_lost_or_clipped_and_left_is_left() {
        let mirror = |speaker: &Speaker| match speaker {
            Left => Right,
            Right => Left,
            BackLeft => BackRight,
            BackRight => BackLeft,
            SideLeft => SideRight,
            SideRight => SideLeft,
            middle => *middle,
        };
        let place = |speakers: &[Speaker], speaker: &Speaker| {
            speakers.iter().position(|other| *other == mirror(speaker)).unwrap()
        };
        for (from, to) in (1..=8).flat_map(|from| (1..=8).map(move |to| (from, to))) {
            for mono in [false, true] {
                let rows = Mix::new(from, to, mono).matrix(from);
                assert_eq!(rows.len(), to);
                let (ins, outs) = (layout(from), layout(to));
                for (c, speaker) in ins.iter().enumerate() {
                    let heard = rows.iter().any(|row| row[c] > 0.0);
                    assert!(heard || *speaker == Lfe, "{from} to {to}: {speaker:?} is not heard");
                }
                for (row, out) in rows.iter().zip(outs) {
                    assert!(row.iter().sum::<f32>() <= 1.000_001, "{from} to {to}: {row:?}");
                    let other = &rows[place(outs, out)];
                    let alike = ins.iter().enumerate().all(|(c, i)| row[c] == other[place(ins, i)]);
                    assert!(alike || from == 1, "{from} to {to}: {rows:?}");
                }
                if mono && to > 1 && from > 1 {
                    assert_eq!(rows[0], rows[1]);
                    assert!(rows[2..].iter().flatten().all(|factor| *factor == 0.0));
                }
            }
        }
    }

    #[test]
    fn more_channels_than_have_names_do_no_harm() {
        for (from, to) in [(12, 2), (12, 8), (2, 12), (32, 12), (12, 32)] {
            let mut out = Vec::new();
            Mix::new(from, to, false).apply(from, &vec![1.0; from * 3], &mut out);
            assert_eq!(out.len(), to * 3);
            assert!(out.iter().all(|s| *s <= 1.000_001));
        }
    }
}
