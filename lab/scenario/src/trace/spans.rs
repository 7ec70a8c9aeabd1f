//! Rows that say from when to when they are, in the order of a log.

/// Where the rows are. What a log lacks between two of them leaves the value as it was. A test
/// after another one begins at zero again, and its rows follow those of the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spans {
    /// When the test of the last row began; `None` before the first row.
    start: Option<i64>,
    end: i64,
}

impl Spans {
    /// Where the next row begins, since the first one, in nanoseconds; `None` if it does not last.
    pub(super) fn place(&mut self, from: i64, to: i64) -> Option<i64> {
        let lasts = to.checked_sub(from)?;
        if lasts <= 0 {
            return None;
        }
        let start = match self.start {
            // Rows may begin a little before the last one ends.
            Some(start) if start + from > self.end - lasts / 2 => start,
            _ => self.end - from,
        };
        let at = (start + from).max(self.end);
        *self = Self { start: Some(start), end: at + lasts };
        Some(at)
    }

    /// When the last row ends.
    pub(super) fn end(&self) -> i64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(rows: &[(i64, i64)]) -> (Vec<i64>, i64) {
        let mut spans = Spans::default();
        let at = rows.iter().map(|(from, to)| spans.place(*from, *to).unwrap()).collect();
        (at, spans.end())
    }

    #[test]
    fn rows_keep_their_times_where_a_log_lacks_some() {
        assert_eq!(placed(&[(0, 10), (10, 20), (50, 60)]), (vec![0, 10, 50], 60));
        assert_eq!(placed(&[(30, 40), (40, 50)]), (vec![0, 10], 20));
        // Times that are rounded.
        assert_eq!(placed(&[(0, 10), (9, 20), (21, 30)]), (vec![0, 10, 21], 30));
    }

    #[test]
    fn a_second_test_follows_the_first() {
        assert_eq!(placed(&[(0, 10), (10, 20), (0, 10), (10, 20)]), (vec![0, 10, 20, 30], 40));
        assert_eq!(placed(&[(0, 10), (10, 20), (20, 25), (0, 10)]), (vec![0, 10, 20, 25], 35));
        assert_eq!(Spans::default().place(5, 5), None);
    }
}
