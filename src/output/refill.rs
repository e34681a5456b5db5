//! How much has to be there before sound goes on after the ring ran empty.
//!
//! A stream that is a little slower than its music would otherwise stutter several times a second: one longer
//! silence is better than many short ones.

use std::time::{Duration, Instant};

/// So much is gathered after the ring ran empty once.
const FIRST: Duration = Duration::from_secs(1);
/// Doubled each time that it runs empty again soon, up to this.
const MOST: Duration = Duration::from_secs(8);
/// Running empty again within this time is soon.
const SOON: Duration = Duration::from_secs(30);

/// Decides when sound goes on.
#[derive(Debug, Default)]
pub(super) struct Refill {
    hold: Duration,
    emptied_at: Option<Instant>,
    /// Sound waits; since the first frame came, once it has.
    waiting: Option<Option<Instant>>,
}

impl Refill {
    /// The ring ran empty although more was to come.
    pub fn emptied(&mut self, now: Instant) {
        let soon = self.emptied_at.is_some_and(|at| now.duration_since(at) < SOON);
        self.hold = if soon { (self.hold * 2).min(MOST) } else { FIRST };
        self.emptied_at = Some(now);
        self.waiting = Some(None);
    }

    /// Other sound was asked for: it begins at once.
    pub fn forget(&mut self) {
        *self = Refill::default();
    }

    /// Whether sound may begin with so much in the ring, of so much that it can hold. Frames that came so long ago as
    /// what is gathered lasts are played in any case: perhaps nothing follows them.
    pub fn is_enough(&mut self, held: Duration, capacity: Duration, now: Instant) -> bool {
        let Some(since) = &mut self.waiting else { return true };
        let since = *since.get_or_insert(now);
        let enough = held >= self.hold.min(capacity * 3 / 4) || now.duration_since(since) >= self.hold;
        if enough {
            self.waiting = None;
        }
        enough
    }

    /// How long until what is there is played in any case.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        let since = self.waiting??;
        Some((since + self.hold).saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: Duration = Duration::from_secs(2);
    const LITTLE: Duration = Duration::from_millis(100);

    #[test]
    fn without_a_stall_sound_begins_with_what_is_there() {
        assert!(Refill::default().is_enough(Duration::ZERO, RING, Instant::now()));
    }

    #[test]
    fn after_a_stall_a_second_is_gathered_and_more_if_it_comes_again_soon() {
        let (mut refill, start) = (Refill::default(), Instant::now());
        refill.emptied(start);
        assert!(!refill.is_enough(LITTLE, RING, start));
        assert!(refill.is_enough(FIRST, RING, start));
        assert!(refill.is_enough(LITTLE, RING, start), "once begun it goes on");
        refill.emptied(start + FIRST);
        assert!(!refill.is_enough(FIRST, RING, start + FIRST));
        assert!(refill.is_enough(RING * 3 / 4, RING, start + FIRST), "as far as the ring can hold it");
        refill.emptied(start + FIRST + SOON);
        assert!(refill.is_enough(FIRST, RING, start + FIRST + SOON), "long ago is forgotten");
    }

    #[test]
    fn what_is_there_is_played_in_the_end_and_other_sound_at_once() {
        let (mut refill, start) = (Refill::default(), Instant::now());
        refill.emptied(start);
        assert_eq!(refill.patience(start), None, "nothing is there yet");
        assert!(!refill.is_enough(LITTLE, RING, start + SOON));
        assert_eq!(refill.patience(start + SOON), Some(FIRST));
        assert!(refill.is_enough(LITTLE, RING, start + SOON + FIRST));
        refill.emptied(start + SOON);
        refill.forget();
        assert!(refill.is_enough(LITTLE, RING, start + SOON));
    }
}
