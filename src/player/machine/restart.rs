//! An entry whose bytes turned out to be others than at its beginning, or a station whose sound broke off, is
//! opened again where the sound of the first opening ends.

use std::time::Duration;

use super::Machine;
use super::slot::Slot;
use crate::player::effect::{Effect, Ticket};
use crate::player::event::Failure;

/// So many openings in a row may bring the music no further.
const USELESS: u32 = 3;
/// So much further is further.
const FURTHER: Duration = Duration::from_secs(1);

/// How often the current entry was opened again without coming further.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Restarts {
    count: u32,
    /// Where the last of them began.
    from: Duration,
}

impl Restarts {
    /// Counts one that is to begin at `at`, after the one before came as far as `reached`; false when it is enough.
    fn may(&mut self, reached: Duration, at: Duration) -> bool {
        if reached > self.from + FURTHER {
            self.count = 0;
        }
        self.count += 1;
        self.from = at;
        self.count <= USELESS
    }
}

impl Machine {
    /// The decoder had to give up this opening at `reached`. Whether another opening of the entry follows.
    pub(super) fn goes_on_again(&mut self, ticket: Ticket, failure: &Failure, reached: Duration) -> bool {
        if !failure.again {
            return false;
        }
        // A station has no place to go on at but now.
        let at = if self.is_live(ticket) { Duration::ZERO } else { reached };
        let may = self.restarts.may(reached, at);
        if may {
            self.again = Some((ticket, at));
        }
        may
    }

    /// The same for an opening that failed before it gave a sound.
    pub(super) fn opens_again(
        &mut self,
        failure: &Failure,
        start: Duration,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(entry) = self.current.filter(|_| failure.again && self.restarts.may(start, start)) else {
            return false;
        };
        self.slot = self.open(entry, start, effects);
        self.slot != Slot::Empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_further_may_be_opened_again_for_ever_and_what_does_not_three_times() {
        let at = Duration::from_secs;
        let mut restarts = Restarts::default();
        assert!((1..100).all(|n| restarts.may(at(10 * n), at(10 * n))));
        assert_eq!([1, 2, 3].map(|_| restarts.may(at(990), at(990))), [true, true, false]);
        let mut station = Restarts::default();
        assert!((1..100).all(|_| station.may(at(60), at(0))));
    }
}
