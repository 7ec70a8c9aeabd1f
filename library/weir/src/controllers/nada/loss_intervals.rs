//! The mean loss interval `loss_int` and the expiry of the last loss, both in packets [NADA §4.2].
//!
//! A loss event is one or more losses within a round-trip time. The mean is TFRC's weighted mean of
//! the last eight intervals between loss events [RFC5348 §5.4].

use alloc::collections::VecDeque;

use super::parameters::Parameters;
use crate::units::{TimeDelta, Timestamp};

/// Weights of the intervals, newest first [RFC5348 §5.4].
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Nine events delimit eight intervals. One more event is kept because the newest may be cancelled.
const MAX_EVENTS: usize = WEIGHTS.len() + 2;

/// First packet of a loss event.
#[derive(Clone, Copy, Debug)]
struct Event {
    sequence_number: i64,
    send_time: Timestamp,
}

/// The recent loss events of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct LossIntervals {
    /// Newest first. Until it is pushed out, the last entry is the flow's first packet, not a loss.
    events: VecDeque<Event>,
    /// Number of packets of the newest event that are still missing.
    missing: u32,
    /// Highest sequence number that feedback has reported.
    newest: i64,
    /// `loss_int`; meaningful after the first loss.
    mean: f64,
    /// The path has been calm since the last loss (NADA-D17).
    is_over: bool,
}

impl LossIntervals {
    /// Takes any packet that feedback reports, received or lost.
    pub(super) fn on_packet(&mut self, sequence_number: i64, send_time: Timestamp) {
        if self.events.is_empty() {
            self.events.push_front(Event { sequence_number, send_time });
            self.newest = sequence_number;
        }
        self.newest = self.newest.max(sequence_number);
    }

    /// Takes a lost packet. Call [`LossIntervals::on_packet`] for it first.
    pub(super) fn on_loss(&mut self, sequence_number: i64, send_time: Timestamp, rtt: TimeDelta) {
        let Some(&last) = self.events.front() else { return };
        if sequence_number < last.sequence_number {
            return;
        }
        if self.has_event() && send_time - last.send_time < rtt {
            self.missing = self.missing.saturating_add(1);
            return;
        }
        self.events.push_front(Event { sequence_number, send_time });
        self.events.truncate(MAX_EVENTS);
        self.missing = 1;
        self.mean = self.weighted_mean();
        self.is_over = false;
    }

    /// NADA-D17: the path shows no sign of congestion. What filled its queue is gone, so the last
    /// loss has expired.
    pub(super) fn on_calm(&mut self) {
        self.is_over = true;
    }

    /// NADA-D5: a packet reported as lost has arrived. If all packets of an event arrive, the event
    /// is cancelled.
    pub(super) fn on_recovery(&mut self, sequence_number: i64) {
        let in_newest = self.events.front().is_some_and(|e| sequence_number >= e.sequence_number);
        if !in_newest || self.missing == 0 {
            return;
        }
        self.missing -= 1;
        if self.missing == 0 {
            self.events.pop_front();
            self.mean = self.weighted_mean();
        }
    }

    fn has_event(&self) -> bool {
        self.events.len() > 1
    }

    /// NADA-D3: the mean of the closed intervals. TFRC also counts the open interval. Its weight is
    /// at least 1/6, so with it the open interval could never reach `MULTILOSS` = 7 times the mean.
    fn weighted_mean(&self) -> f64 {
        let starts = self.events.iter().zip(self.events.iter().skip(1));
        let (mut sum, mut weights) = (0.0, 0.0);
        for ((later, earlier), weight) in starts.zip(WEIGHTS) {
            sum += weight * later.sequence_number.saturating_sub(earlier.sequence_number) as f64;
            weights += weight;
        }
        if weights > 0.0 { (sum / weights).max(1.0) } else { 0.0 }
    }

    /// Weight of the warped delay [NADA §4.2]. It is 1 until the last loss expires, that is for
    /// `loss_exp` = `MULTILOSS * loss_int` packets. Then it falls to 0 over another `loss_int`
    /// packets.
    pub(super) fn warping_share(&self, parameters: &Parameters) -> f64 {
        if !self.has_event() || self.is_over {
            return 0.0;
        }
        let open = self.newest.saturating_sub(self.events[0].sequence_number) as f64;
        let expiry = parameters.multiloss * self.mean;
        (1.0 - (open - expiry) / self.mean).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    /// Packet `number` is sent at `number` times 10 ms.
    fn send_time(number: i64) -> Timestamp {
        Timestamp::from_millis(10 * number)
    }

    /// A flow of packets 0..=`newest` of which these were lost.
    fn flow(newest: i64, lost: &[i64]) -> LossIntervals {
        let mut intervals = LossIntervals::default();
        for number in 0..=newest {
            intervals.on_packet(number, send_time(number));
            if lost.contains(&number) {
                intervals.on_loss(number, send_time(number), RTT);
            }
        }
        intervals
    }

    // [RFC5348 §5.4]
    #[test]
    fn the_mean_weighs_the_newest_four_of_eight_intervals_fully() {
        // Intervals, oldest first: 100 (forgotten), then 20 30 40 50 60 70 80 90.
        let lost = [100, 120, 150, 190, 240, 300, 370, 450, 540];
        let weighted =
            90.0 + 80.0 + 70.0 + 60.0 + 0.8 * 50.0 + 0.6 * 40.0 + 0.4 * 30.0 + 0.2 * 20.0;
        assert_eq!(flow(540, &lost).mean, weighted / 6.0);
    }

    #[test]
    fn losses_within_a_round_trip_time_are_one_event() {
        assert_eq!(flow(200, &[100, 101, 109]).mean, 100.0);
        assert_eq!(flow(200, &[100, 110]).mean, 55.0);
    }

    // [NADA §4.2]: a loss expires after 7 intervals; the weight falls during the eighth.
    #[test]
    fn the_last_loss_expires_after_seven_intervals_and_blends_out_in_one() {
        for (newest, share) in
            [(99, 0.0), (100, 1.0), (800, 1.0), (850, 0.5), (900, 0.0), (5000, 0.0)]
        {
            let share_of_flow = flow(newest, &[100]).warping_share(&Parameters::DEFAULT);
            assert_eq!(share_of_flow, share, "{newest}");
        }
    }

    // NADA-D3
    #[test]
    fn counting_the_open_interval_would_keep_the_last_loss_for_ever() {
        let lost: alloc::vec::Vec<_> = (1..=9).map(|event| 100 * event).collect();
        for open in [699, 701, 100_000] {
            let intervals = flow(900 + open, &lost);
            assert_eq!(intervals.mean, 100.0);
            assert_eq!(intervals.warping_share(&Parameters::DEFAULT) == 1.0, open <= 700);
            // TFRC's mean: the open interval is the newest of eight.
            let closed: f64 = WEIGHTS[1..].iter().map(|weight| weight * 100.0).sum();
            let with_open = (WEIGHTS[0] * open as f64 + closed) / 6.0;
            assert!((open as f64) < Parameters::DEFAULT.multiloss * with_open);
        }
    }

    // NADA-D17
    #[test]
    fn a_calm_path_ends_the_last_loss_until_the_next_one() {
        let mut intervals = flow(200, &[100]);
        intervals.on_calm();
        assert_eq!(intervals.warping_share(&Parameters::DEFAULT), 0.0);
        intervals.on_loss(210, send_time(210), RTT);
        assert_eq!(intervals.warping_share(&Parameters::DEFAULT), 1.0);
    }

    // NADA-D5
    #[test]
    fn an_event_whose_packets_all_turn_up_was_none() {
        let mut intervals = flow(400, &[100, 300, 301]);
        assert_eq!(intervals.mean, 150.0);
        intervals.on_recovery(300);
        assert_eq!(intervals.mean, 150.0, "one is still missing");
        intervals.on_recovery(301);
        assert_eq!(intervals.mean, 100.0);
        intervals.on_recovery(100);
        assert_eq!(intervals.mean, 100.0, "events before the newest are settled");
        assert_eq!(intervals.warping_share(&Parameters::DEFAULT), 1.0);
    }

    #[test]
    fn a_flow_whose_only_loss_turns_up_is_not_warped() {
        let mut intervals = flow(200, &[100]);
        intervals.on_recovery(100);
        assert_eq!(intervals.warping_share(&Parameters::DEFAULT), 0.0);
    }

    #[test]
    fn a_flow_that_begins_with_a_loss_has_an_interval_of_one() {
        let intervals = flow(5, &[0]);
        assert_eq!(intervals.mean, 1.0);
        assert_eq!(intervals.warping_share(&Parameters::DEFAULT), 1.0);
    }

    #[test]
    fn memory_is_bounded() {
        let lost: alloc::vec::Vec<_> = (0..1000).step_by(20).collect();
        assert_eq!(flow(1000, &lost).events.len(), MAX_EVENTS);
    }
}
