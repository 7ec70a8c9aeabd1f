//! Delivery rate estimation for BBR: the number of segments delivered from the time a segment was
//! sent to the time it was acknowledged, and the length of that interval [DELIVERY-RATE §3].

use weir::units::{TimeDelta, Timestamp};

/// The connection's state when a segment was sent. Names in backticks are the draft's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// `P.delivered`: segments delivered so far.
    delivered: u64,
    /// `P.delivered_time`: time of the last delivery.
    delivered_at: Timestamp,
    /// `P.first_sent_time`: start of the sending interval.
    first_sent_at: Timestamp,
    /// `P.is_app_limited`: the application had less to send than the window allowed.
    app_limited: bool,
}

/// A rate sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Segments delivered in the interval.
    pub(super) delivered: u64,
    pub(super) interval: TimeDelta,
    /// Segments delivered before the sampled segment was sent.
    pub(super) prior_delivered: u64,
    pub(super) app_limited: bool,
}

/// The estimator of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    delivered: u64,
    delivered_at: Timestamp,
    first_sent_at: Timestamp,
    /// `C.app_limited`: samples are application-limited until this many segments are delivered.
    app_limited_until: Option<u64>,
    /// The stamp of the newest segment in this acknowledgement, and the length of its sending
    /// interval.
    newest: Option<(Stamp, TimeDelta)>,
}

impl DeliveryRate {
    /// A segment leaves.
    pub(super) fn on_sent(&mut self, now: Timestamp, in_flight: u64) -> Stamp {
        if in_flight == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// There is nothing more to send although the window allows it.
    pub(super) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight.max(1));
    }

    /// A segment with this stamp was delivered. It was last sent at `sent_at`.
    pub(super) fn on_delivered(&mut self, now: Timestamp, sent_at: Timestamp, stamp: Stamp) {
        self.delivered += 1;
        self.delivered_at = now;
        if self.newest.is_none_or(|(newest, _)| stamp.delivered >= newest.delivered) {
            self.newest = Some((stamp, sent_at - stamp.first_sent_at));
            self.first_sent_at = sent_at;
        }
    }

    /// Returns the sample of an acknowledgement after `on_delivered` was called for all its
    /// segments.
    pub(super) fn take_sample(&mut self, min_rtt: TimeDelta) -> Option<Sample> {
        self.app_limited_until = self.app_limited_until.filter(|&until| self.delivered <= until);
        let (stamp, sending) = self.newest.take()?;
        // The longer of the sending and the acknowledgement interval. So neither bursts of data nor
        // bursts of acknowledgements cause an overestimate.
        let interval = sending.max(self.delivered_at - stamp.delivered_at);
        (interval >= min_rtt && interval > TimeDelta::ZERO).then_some(Sample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            app_limited: stamp.app_limited,
        })
    }

    /// `C.delivered`: segments delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Scoreboard;
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Sends segments of ten bytes at these times, starting with number `first`.
    fn send(rate: &mut DeliveryRate, board: &mut Scoreboard, first: u64, times: &[i64]) {
        for (number, &ms) in (first..).zip(times) {
            let stamp = rate.on_sent(at(ms), board.in_flight());
            board.on_sent(at(ms), number * 10..(number + 1) * 10, stamp);
        }
    }

    fn sample(
        rate: &mut DeliveryRate,
        board: &mut Scoreboard,
        ms: i64,
        next: u64,
    ) -> Option<Sample> {
        board.on_ack(next, &[], |sent| rate.on_delivered(at(ms), sent.sent_at, sent.stamp));
        rate.take_sample(TimeDelta::from_millis(50))
    }

    #[test]
    fn the_interval_is_the_longer_of_sending_and_arriving() {
        let (mut rate, mut board) = (DeliveryRate::default(), Scoreboard::default());
        send(&mut rate, &mut board, 0, &[0, 10, 20, 30]);
        // All four arrive at the same time. The sending interval is 30 ms; the other one, since the
        // first was sent, is 60 ms.
        let bunched = sample(&mut rate, &mut board, 60, 40).unwrap();
        assert_eq!((bunched.delivered, bunched.interval), (4, TimeDelta::from_millis(60)));
        // Two are sent at the same time and arrive 40 ms apart, 100 ms after the last arrival
        // before them.
        send(&mut rate, &mut board, 4, &[110, 110]);
        sample(&mut rate, &mut board, 160, 50);
        let spread = sample(&mut rate, &mut board, 200, 60).unwrap();
        assert_eq!((spread.delivered, spread.interval), (2, TimeDelta::from_millis(90)));
        assert_eq!(spread.prior_delivered, 4);
    }

    #[test]
    fn an_interval_shorter_than_the_round_trip_time_is_no_sample() {
        let (mut rate, mut board) = (DeliveryRate::default(), Scoreboard::default());
        send(&mut rate, &mut board, 0, &[0]);
        assert_eq!(sample(&mut rate, &mut board, 49, 10), None);
        send(&mut rate, &mut board, 1, &[100]);
        assert!(sample(&mut rate, &mut board, 150, 20).is_some());
    }

    #[test]
    fn a_sample_is_application_limited_until_what_was_sent_then_has_arrived() {
        let (mut rate, mut board) = (DeliveryRate::default(), Scoreboard::default());
        send(&mut rate, &mut board, 0, &[0]);
        rate.on_app_limited(1);
        send(&mut rate, &mut board, 1, &[20]);
        assert!(!sample(&mut rate, &mut board, 60, 10).unwrap().app_limited);
        assert!(sample(&mut rate, &mut board, 80, 20).unwrap().app_limited);
        send(&mut rate, &mut board, 2, &[90]);
        assert!(!sample(&mut rate, &mut board, 150, 30).unwrap().app_limited);
    }
}
