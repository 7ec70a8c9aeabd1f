//! How long a sender takes to come back after the link has risen.

use weir::units::{Bitrate, DataSize};
use weir_sim::trace::{ROW_INTERVAL, Row};

use crate::table::with_spread;

/// Rows of the window over which a rate counts: a second.
const WINDOW: usize = 20;
/// The part of the link that a sender has to use to be back, as the scenarios of the arena ask.
const BACK: f64 = 0.5;

/// What a run did after the last rise of its link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Return {
    /// The link never rose.
    NoRise,
    /// After so many seconds, half of it was used for a second.
    After(f64),
    /// That did not happen before the end.
    Never,
}

impl Return {
    /// From the rows of a record, of which the first flow is the call's.
    pub fn of(rows: &[Row]) -> Self {
        let mut capacity = None;
        let mut risen = None;
        let mut window = Vec::new();
        let mut returned = Self::NoRise;
        for row in rows.iter().filter(|row| row.flow == 0) {
            if let (Some(before), Some(now)) = (capacity, row.capacity) {
                if now > before {
                    (risen, returned) = (row.capacity, Self::Never);
                    window.clear();
                } else if now < before {
                    risen = None;
                }
            }
            capacity = row.capacity;
            let Some(wanted) = risen else { continue };
            window.push(row.received);
            if returned == Self::Never && share(&window, wanted) >= BACK {
                returned = Self::After((ROW_INTERVAL * window.len() as i64).as_secs_f64());
            }
        }
        returned
    }
}

/// What the last second of the rows used of the link; zero before there is one.
fn share(received: &[DataSize], capacity: Bitrate) -> f64 {
    let Some(first) = received.len().checked_sub(WINDOW) else { return 0.0 };
    let bytes: DataSize = received[first..].iter().copied().sum();
    bytes / (ROW_INTERVAL * WINDOW as i64) / capacity
}

/// Mean and spread of the runs of a cell, or how many did not return.
pub fn in_words(returns: &[Return]) -> String {
    let mut seconds = Vec::new();
    let mut never = 0;
    for one in returns {
        match one {
            Return::After(after) => seconds.push(*after),
            Return::Never => never += 1,
            Return::NoRise => {}
        }
    }
    match (never, seconds.len()) {
        (0, 0) => "-".into(),
        (0, _) => with_spread(&seconds, 1),
        (_, 0) => "never".into(),
        (never, _) => format!("never in {never} of {}", returns.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a second each: capacity and what is received, in kbit/s.
    fn rows(seconds: &[(u64, u64)]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (capacity, received) in seconds {
            let mut row = Row::default();
            row.capacity = Some(Bitrate::from_kbps(*capacity));
            row.received = DataSize::from_bytes(received * 1_000 / 8 / WINDOW as u64);
            rows.extend([row; WINDOW]);
        }
        rows
    }

    #[test]
    fn the_time_counts_from_the_last_rise_to_a_second_at_half_of_the_link() {
        let fallen = [(1_000, 800), (300, 300), (300, 300)];
        let back = [&fallen[..], &[(1_200, 300), (1_200, 400), (1_200, 700)]].concat();
        // The last second begins to count before it is over: 20 rows of 400, 700 in its place.
        assert_eq!(Return::of(&rows(&back)), Return::After(2.7));
        assert_eq!(Return::of(&rows(&back[..5])), Return::Never);
        assert_eq!(Return::of(&rows(&fallen)), Return::NoRise);
        let twice = [(500, 500), (800, 800), (500, 500), (900, 900)];
        assert_eq!(Return::of(&rows(&twice)), Return::After(1.0));
    }

    #[test]
    fn a_cell_says_how_many_of_its_runs_did_not_return() {
        assert_eq!(in_words(&[Return::NoRise]), "-");
        assert_eq!(in_words(&[Return::After(2.0)]), "2.0");
        assert_eq!(in_words(&[Return::Never]), "never");
        assert_eq!(in_words(&[Return::After(2.0), Return::Never]), "never in 1 of 2");
    }
}
