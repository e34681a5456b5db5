//! Decoded samples of any type as left-justified 32-bit integers.

use symphonia::core::audio::{Audio, AudioBuffer, GenericAudioBufferRef, sample::Sample};

/// Appends frames `from..to` of `buf`, interleaved. Integers are exact; floats are multiplied by `gain`,
/// clipped to [-1, 1) and scaled by 2^31.
pub(super) fn append(buf: &GenericAudioBufferRef<'_>, from: usize, to: usize, gain: f32, out: &mut Vec<i32>) {
    use GenericAudioBufferRef as B;
    match buf {
        B::U8(b) => interleave(b, from, to, out, |s| (i32::from(s) - 0x80) << 24),
        B::U16(b) => interleave(b, from, to, out, |s| (i32::from(s) - 0x8000) << 16),
        B::U24(b) => interleave(b, from, to, out, |s| (s.inner() as i32 - 0x80_0000) << 8),
        B::U32(b) => interleave(b, from, to, out, |s| (s ^ 0x8000_0000) as i32),
        B::S8(b) => interleave(b, from, to, out, |s| i32::from(s) << 24),
        B::S16(b) => interleave(b, from, to, out, |s| i32::from(s) << 16),
        B::S24(b) => interleave(b, from, to, out, |s| s.inner() << 8),
        B::S32(b) => interleave(b, from, to, out, |s| s),
        B::F32(b) => interleave(b, from, to, out, |s| (s * gain * 2_147_483_648.0) as i32),
        B::F64(b) => interleave(b, from, to, out, |s| from_float(s * f64::from(gain))),
    }
}

/// A float sample as a left-justified integer. The cast saturates, and NaN becomes silence.
pub(super) fn from_float(sample: f64) -> i32 {
    (sample * 2_147_483_648.0).round() as i32
}

fn interleave<S: Sample>(
    buf: &AudioBuffer<S>,
    from: usize,
    to: usize,
    out: &mut Vec<i32>,
    convert: impl Fn(S) -> i32,
) {
    let channels = buf.spec().channels().count();
    let start = out.len();
    out.resize(start + (to - from) * channels, 0);
    let out = &mut out[start..];
    let mut planes = buf.iter_planes().map(|plane| plane.get(from..to).unwrap_or_default());
    if channels == 2 {
        // Most music, in one pass, which the compiler does for several frames at once.
        let (left, right) = (planes.next().unwrap_or_default(), planes.next().unwrap_or_default());
        let (frames, _) = out.as_chunks_mut::<2>();
        for (frame, (&left, &right)) in frames.iter_mut().zip(left.iter().zip(right)) {
            *frame = [convert(left), convert(right)];
        }
        return;
    }
    for (c, samples) in planes.enumerate() {
        for (frame, &sample) in out.chunks_exact_mut(channels).zip(samples) {
            frame[c] = convert(sample);
        }
    }
}
