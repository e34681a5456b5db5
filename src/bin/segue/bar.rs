//! The progress bar: what is played, what is fetched, what is still to come.

use crate::out::{Look, paint};

const PLAYED: &str = "━";
const FETCHED: &str = "─";
const EMPTY: &str = "·";

/// How many cells of a bar are what. They add up to its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    pub played: usize,
    pub fetched: usize,
    pub empty: usize,
}

/// Divides `width` cells. Times are microseconds; without a length nothing can be said.
pub fn cells(width: usize, position: i64, fetched: i64, length: Option<i64>) -> Cells {
    let Some(length) = length.filter(|length| *length > 0) else {
        return Cells { played: 0, fetched: 0, empty: width };
    };
    let until = |time: i64| {
        let part = time.clamp(0, length) as f64 / length as f64;
        ((part * width as f64).round() as usize).min(width)
    };
    let played = until(position);
    let fetched = until(fetched).max(played);
    Cells { played, fetched: fetched - played, empty: width - fetched }
}

/// Draws the bar.
pub fn draw(cells: Cells, colour: bool) -> String {
    let played = PLAYED.repeat(cells.played);
    let fetched = FETCHED.repeat(cells.fetched);
    let empty = EMPTY.repeat(cells.empty);
    if !colour {
        return format!("{played}{fetched}{empty}");
    }
    format!("{}{}{}", paint(Look::Green, &played), fetched, paint(Look::Dim, &empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(position: i64, fetched: i64, length: Option<i64>) -> String {
        draw(cells(10, position, fetched, length), false)
    }

    #[test]
    fn the_bar_shows_played_fetched_and_empty_parts() {
        assert_eq!(drawn(0, 0, Some(100)), "··········");
        assert_eq!(drawn(30, 60, Some(100)), "━━━───····");
        assert_eq!(drawn(100, 100, Some(100)), "━━━━━━━━━━");
        assert_eq!(drawn(50, 0, Some(100)), "━━━━━·····"); // what is heard was fetched
    }

    #[test]
    fn nonsense_draws_no_more_than_the_width() {
        assert_eq!(drawn(5, 5, None), "··········");
        assert_eq!(drawn(5, 5, Some(0)), "··········");
        assert_eq!(drawn(i64::MAX, i64::MIN, Some(1)), "━━━━━━━━━━");
        assert_eq!(drawn(-5, i64::MAX, Some(i64::MAX)), "──────────");
    }

    #[test]
    fn colour_adds_nothing_but_colour() {
        let coloured = draw(cells(10, 30, 60, Some(100)), true);
        assert!(coloured.contains('\x1b'));
        assert_eq!(coloured.chars().filter(|c| "━─·".contains(*c)).count(), 10);
    }
}
