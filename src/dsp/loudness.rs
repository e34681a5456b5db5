//! What loudness tags make of a track.

use super::settings::{ReplayGain, Settings};

/// What a track's tags say about its loudness.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loudness {
    /// For the track by itself.
    pub track: Option<Level>,
    /// For the album that it belongs to.
    pub album: Option<Level>,
}

/// How loud something is, as ReplayGain 2 puts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// What brings it to -18 LUFS, in dB.
    pub gain_db: f32,
    /// The largest sample, 1 being full scale.
    pub peak: Option<f32>,
}

/// What samples are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amplification {
    /// The factor.
    pub factor: f32,
    /// The same in dB.
    pub db: f32,
}

impl Amplification {
    /// Samples stay as they are.
    pub const NONE: Amplification = Amplification { factor: 1.0, db: 0.0 };
}

impl Settings {
    /// What to do with a track. `in_album`: a neighbour in the queue is of the same album.
    pub fn amplification(&self, loudness: &Loudness, in_album: bool) -> Amplification {
        let of_album = match self.replay_gain {
            ReplayGain::Off => return Amplification::NONE,
            ReplayGain::Track => false,
            ReplayGain::Album => true,
            ReplayGain::Auto => in_album,
        };
        let (first, second) =
            if of_album { (loudness.album, loudness.track) } else { (loudness.track, loudness.album) };
        let level = first.or(second);
        let wanted = level.map_or(self.untagged_db, |level| level.gain_db + self.preamp_db);
        let peak = level.and_then(|level| level.peak);
        // As loud as it may be without touching full scale, where that is known.
        let db = match peak.filter(|peak| *peak > 0.0) {
            Some(peak) => wanted.min((-20.0 * peak.log10()).max(0.0)),
            None => wanted,
        };
        if db == 0.0 {
            return Amplification::NONE;
        }
        Amplification { factor: 10f32.powf(db / 20.0), db }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGGED: Loudness = Loudness {
        track: Some(Level { gain_db: -8.0, peak: Some(0.9) }),
        album: Some(Level { gain_db: 3.0, peak: Some(0.8) }),
    };

    fn db(mode: ReplayGain, loudness: &Loudness, in_album: bool) -> f32 {
        let settings = Settings { replay_gain: mode, untagged_db: -6.0, ..Settings::default() };
        settings.amplification(loudness, in_album).db
    }

    #[test]
    fn each_mode_takes_its_tag_and_the_other_where_that_is_missing() {
        use ReplayGain::*;
        assert_eq!(db(Off, &TAGGED, true), 0.0);
        assert_eq!(db(Track, &TAGGED, true), -8.0);
        assert!((db(Album, &TAGGED, false) - 1.938).abs() < 0.001, "as far as the peak allows");
        assert_eq!(db(Auto, &TAGGED, false), -8.0);
        assert!(db(Auto, &TAGGED, true) > 0.0);
        let single = Loudness { album: None, ..TAGGED };
        assert_eq!(db(Album, &single, true), -8.0);
        assert_eq!(db(Track, &Loudness::default(), false), -6.0, "untagged");
    }

    #[test]
    fn a_known_peak_never_passes_full_scale() {
        let settings = Settings { replay_gain: ReplayGain::Track, preamp_db: 12.0, ..Settings::default() };
        let with = settings.amplification(&TAGGED, false);
        assert!((with.factor * 0.9 - 1.0).abs() < 1e-5, "{with:?}");
        let level = Level { gain_db: -8.0, peak: None };
        let without = settings.amplification(&Loudness { track: Some(level), album: None }, false);
        assert!((without.db - 4.0).abs() < 1e-5, "{without:?}");
        // A tag of a master that clips already: it is turned down only as its gain says.
        let hot = Level { gain_db: 0.0, peak: Some(1.4) };
        let hot = Settings { preamp_db: 0.0, ..settings }
            .amplification(&Loudness { track: Some(hot), album: None }, false);
        assert_eq!(hot, Amplification::NONE);
    }
}
