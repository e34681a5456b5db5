//! How channels become others. Frames have the order of WAVE: left, right, centre, LFE, rear, side.

/// Minus 3 dB, for what comes from the centre and from behind (ITU-R BS.775).
const MINUS_3_DB: f32 = std::f32::consts::FRAC_1_SQRT_2;

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
            // Mono goes to the left and the right.
            (1, _) => Mix::Pick((0..to).map(|c| (c < 2).then_some(0)).collect()),
            _ if from < to => Mix::Pick((0..to).map(|c| (c < from).then_some(c)).collect()),
            (_, 2) => Mix::Matrix(normalised(stereo(from))),
            (_, 1) => Mix::Matrix(normalised([sum_of_ears(from)])),
            _ => Mix::Pick((0..to).map(Some).collect()),
        }
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

    pub(super) fn is_done(&self) -> bool {
        self.done >= self.length
    }

    /// Mixes whole frames and goes on by as many.
    pub(super) fn apply(&mut self, channels: usize, input: &[f32], out: &mut Vec<f32>) {
        for frame in input.chunks_exact(channels) {
            let part = (self.done as f32 / self.length.max(1) as f32).min(1.0);
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

/// What left and right take from `channels` channels. The LFE is left out.
fn stereo(channels: usize) -> [Vec<f32>; 2] {
    const D: f32 = MINUS_3_DB;
    let (left, right): (&[f32], &[f32]) = match channels {
        2 => (&[1.0, 0.0], &[0.0, 1.0]),
        3 => (&[1.0, 0.0, D], &[0.0, 1.0, D]),
        4 => (&[1.0, 0.0, D, 0.0], &[0.0, 1.0, 0.0, D]),
        5 => (&[1.0, 0.0, D, D, 0.0], &[0.0, 1.0, D, 0.0, D]),
        6 => (&[1.0, 0.0, D, 0.0, D, 0.0], &[0.0, 1.0, D, 0.0, 0.0, D]),
        // With one channel at the back centre.
        7 => (&[1.0, 0.0, D, 0.0, 0.5, D, 0.0], &[0.0, 1.0, D, 0.0, 0.5, 0.0, D]),
        _ => (&[1.0, 0.0, D, 0.0, D, 0.0, D, 0.0], &[0.0, 1.0, D, 0.0, 0.0, D, 0.0, D]),
    };
    [left, right].map(|row| {
        let mut row = row.to_vec();
        row.resize(channels, 0.0);
        row
    })
}

fn sum_of_ears(channels: usize) -> Vec<f32> {
    let [left, right] = stereo(channels);
    left.iter().zip(right).map(|(l, r)| l + r).collect()
}

/// For who hears with one ear: left and right get all of both, the other channels nothing.
fn both_ears(from: usize, to: usize) -> Vec<Vec<f32>> {
    let [sum] = <[Vec<f32>; 1]>::try_from(normalised([sum_of_ears(from)])).unwrap_or_default();
    (0..to).map(|c| if c < 2 { sum.clone() } else { vec![0.0; from] }).collect()
}

/// Scales all rows alike, so that full scale on all channels is not clipped.
fn normalised<const N: usize>(mut rows: [Vec<f32>; N]) -> Vec<Vec<f32>> {
    let loudest = rows.iter().map(|row| row.iter().sum::<f32>()).fold(1.0, f32::max);
    for factor in rows.iter_mut().flatten() {
        *factor /= loudest;
    }
    rows.into()
}
