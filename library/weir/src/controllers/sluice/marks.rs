//! The share of packets marked Congestion Experienced.

/// Marks since the last look, and their smoothed share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    marked: u64,
    received: u64,
    alpha: f64,
}

impl Marks {
    /// Counts the packets of a report.
    pub(super) fn on_report(&mut self, marked: u64, received: u64) {
        self.marked += marked;
        self.received += received;
    }

    /// A round trip is over: smooths its share. Returns the smoothed share if a packet was marked.
    pub(super) fn take(&mut self, gain: f64) -> Option<f64> {
        if self.received == 0 {
            return None;
        }
        let share = self.marked as f64 / self.received as f64;
        self.alpha += gain * (share - self.alpha);
        let any = self.marked > 0;
        (self.marked, self.received) = (0, 0);
        any.then_some(self.alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAIN: f64 = 1.0 / 16.0;

    // S-8
    #[test]
    fn the_share_of_a_round_trip_moves_the_smoothed_one_by_a_sixteenth() {
        let mut marks = Marks::default();
        assert_eq!(marks.take(GAIN), None);
        marks.on_report(5, 10);
        assert_eq!(marks.take(GAIN), Some(1.0 / 32.0));
        marks.on_report(0, 10);
        assert_eq!(marks.take(GAIN), None, "no mark, no response");
        marks.on_report(10, 10);
        let expected = 1.0 / 32.0 * (15.0 / 16.0);
        assert_eq!(marks.take(GAIN), Some(expected + GAIN * (1.0 - expected)));
    }
}
