//! The lowest or highest value of a recent time.

use alloc::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

/// Which value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Lowest,
    Highest,
}

/// The lowest or highest of the values of a window. It keeps only values that can still become the
/// extreme: each is newer and less extreme than the one before it.
#[derive(Clone, Debug)]
pub(crate) struct RecentExtreme {
    kind: Extreme,
    values: VecDeque<(Timestamp, TimeDelta)>,
}

impl RecentExtreme {
    pub(crate) fn new(kind: Extreme) -> Self {
        Self { kind, values: VecDeque::new() }
    }

    /// Takes a value, and forgets those that are older than `window`.
    pub(crate) fn push(&mut self, now: Timestamp, window: TimeDelta, value: TimeDelta) {
        while self.values.back().is_some_and(|&(_, old)| !self.exceeds(old, value)) {
            self.values.pop_back();
        }
        self.values.push_back((now, value));
        while self.values.len() > 1 && self.values.front().is_some_and(|&(at, _)| now - at > window)
        {
            self.values.pop_front();
        }
    }

    fn exceeds(&self, old: TimeDelta, new: TimeDelta) -> bool {
        match self.kind {
            Extreme::Lowest => old < new,
            Extreme::Highest => old > new,
        }
    }

    /// The extreme of the window; `None` before the first value.
    pub(crate) fn value(&self) -> Option<TimeDelta> {
        self.values.front().map(|&(_, value)| value)
    }

    pub(crate) fn forget(&mut self) {
        self.values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(kind: Extreme, samples: &[(i64, i64)]) -> Vec<i64> {
        let mut recent = RecentExtreme::new(kind);
        let mut seen = Vec::new();
        for &(at, value) in samples {
            let value = TimeDelta::from_millis(value);
            recent.push(Timestamp::from_millis(at), TimeDelta::from_millis(100), value);
            seen.extend(recent.value().map(TimeDelta::as_millis));
        }
        seen
    }

    #[test]
    fn an_extreme_lasts_for_its_window_and_the_last_value_for_ever() {
        let samples = [(0, 5), (50, 7), (100, 6), (101, 9), (900, 8)];
        assert_eq!(values(Extreme::Lowest, &samples), [5, 5, 5, 6, 8]);
        let samples = [(0, 5), (50, 3), (100, 4), (101, 1), (900, 2)];
        assert_eq!(values(Extreme::Highest, &samples), [5, 5, 5, 4, 2]);
    }
}
