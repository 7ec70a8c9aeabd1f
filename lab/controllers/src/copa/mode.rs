//! Mode switching: `delta` against flows that fill the queue [COPA §2.2].

use super::standing::StandingQueue;
use weir::units::{TimeDelta, Timestamp};

// Parameters [COPA §2.1], [COPA §2.2].
/// `delta` of the default mode.
const DEFAULT_DELTA: f64 = 0.5;
/// Share of `RTTmax - RTTmin` below which the queue counts as nearly empty.
const NEARLY_EMPTY: f64 = 0.1;
/// Round trips in which the queue of Copa's own flows is nearly empty once.
const PATIENCE_ROUND_TRIPS: f64 = 5.0;
/// Lowest `delta` of the competitive mode. COPA-D5: the paper has none.
const LEAST_DELTA: f64 = 0.004;

/// `delta`, and the mode that decides it.
#[derive(Clone, Debug)]
pub(super) struct Mode {
    /// `1/delta` in the competitive mode; `None` in the default mode.
    competitive: Option<f64>,
    /// When the queue was nearly empty last.
    empty_at: Option<Timestamp>,
    /// Whether packets were lost in this round trip.
    lost: bool,
    round_start: Timestamp,
}

impl Mode {
    pub(super) fn new() -> Self {
        Self { competitive: None, empty_at: None, lost: false, round_start: Timestamp::ZERO }
    }

    /// Takes the queue after a report.
    pub(super) fn update(
        &mut self,
        now: Timestamp,
        round_trip: TimeDelta,
        queue: &StandingQueue,
        lost: bool,
    ) {
        let Some(delay) = queue.delay() else { return };
        let since = *self.empty_at.get_or_insert(now);
        self.lost |= lost;
        if delay <= queue.swing() * NEARLY_EMPTY {
            self.empty_at = Some(now);
            self.competitive = None;
        } else if now - since > round_trip * PATIENCE_ROUND_TRIPS {
            self.competitive.get_or_insert(1.0 / DEFAULT_DELTA);
        }
        if now - self.round_start < round_trip {
            return;
        }
        self.round_start = now;
        let lost = core::mem::take(&mut self.lost);
        if let Some(inverse) = &mut self.competitive {
            // Additive increase and multiplicative decrease, as of TCP.
            let next = if lost { *inverse * 0.5 } else { *inverse + 1.0 };
            *inverse = next.clamp(1.0 / DEFAULT_DELTA, 1.0 / LEAST_DELTA);
        }
    }

    pub(super) fn delta(&self) -> f64 {
        self.competitive.map_or(DEFAULT_DELTA, |inverse| 1.0 / inverse)
    }

    pub(super) fn is_competitive(&self) -> bool {
        self.competitive.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::{FeedbackReport, PacketReport};
    use weir::units::DataSize;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    /// `1/delta` after each of these delays in ms, one per round trip, with or without a loss.
    fn inverses(rounds: &[(i64, bool)]) -> Vec<f64> {
        let (mut mode, mut queue) = (Mode::new(), StandingQueue::new());
        let mut seen = Vec::new();
        for (number, &(delay_ms, lost)) in rounds.iter().enumerate() {
            let sent = Timestamp::from_millis(1_000 + 100 * number as i64);
            let arrival = sent + TimeDelta::from_millis(delay_ms);
            let packet = PacketReport::new(0, DataSize::from_bytes(100), sent)
                .with_arrival_time(Some(arrival));
            queue.on_report(sent, RTT, &FeedbackReport::new(vec![packet]));
            mode.update(sent, RTT, &queue, lost);
            seen.push(1.0 / mode.delta());
        }
        seen
    }

    // [COPA §2.2]
    #[test]
    fn a_queue_that_is_never_empty_for_five_round_trips_is_anothers() {
        let mut rounds = vec![(10, false)];
        rounds.extend([(90, false); 7]);
        let inverse = inverses(&rounds);
        assert_eq!(inverse[..6], [2.0; 6]);
        assert_eq!(inverse[6..], [3.0, 4.0], "one more in each round trip");
    }

    // [COPA §2.2]
    #[test]
    fn a_loss_halves_the_share_and_an_empty_queue_ends_the_competition() {
        let mut rounds = vec![(10, false)];
        rounds.extend([(90, false); 14]);
        rounds.extend([(90, true), (10, false)]);
        let inverse = inverses(&rounds);
        assert_eq!(inverse[14..], [11.0, 5.5, 2.0]);
    }
}
