//! Sound in which each frame tells its number, whatever its volume: the right side is the left one in the proportion of
//! the number.

/// What the left side has at full volume.
const REFERENCE: i32 = 1 << 30;
/// Greater than any number.
const NUMBERS: i64 = 1 << 17;

/// A frame for a card with so many channels; those that music does not need are silent.
pub fn frame(number: u32, channels: usize) -> impl Iterator<Item = i32> {
    let right = (i64::from(REFERENCE) * (i64::from(number) + 1) / NUMBERS) as i32;
    (0..channels).map(move |channel| match channel {
        0 => REFERENCE,
        1 => right,
        _ => 0,
    })
}

/// What was heard of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard {
    Silence,
    /// Too quiet to be read.
    Dim,
    Frame {
        number: u32,
        gain: f64,
    },
}

/// Reads the first two samples of a frame.
///
/// # Errors
/// When it is no frame of this sound.
pub fn read(samples: &[i32]) -> Result<Heard, String> {
    let (left, right) = (f64::from(samples[0]), f64::from(samples[1]));
    let gain = left / f64::from(REFERENCE);
    if samples[..2] == [0, 0] {
        return Ok(Heard::Silence);
    }
    // Dither may be in the way by two steps of the last bit.
    if gain.abs() < 0.01 {
        return Ok(Heard::Dim);
    }
    let number = right / left * NUMBERS as f64 - 1.0;
    if gain > 1.0 + 1e-8 || (number - number.round()).abs() > 0.1 || number < -0.1 {
        return Err(format!("{samples:x?} is no frame of the sound"));
    }
    Ok(Heard::Frame { number: number.round() as u32, gain })
}
