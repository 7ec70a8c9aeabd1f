//! Gaps: tracks missing media packets, when to request them, and when to give them up.
//!
//! A packet is missing once a later one has arrived. It may only be late, so a request waits as
//! long as recent late packets took.
//!
//! With NACK, the receiver repeats a request after each response time, ten times in all. If it
//! knows the round-trip time, it repeats the request after each round-trip time, a hundred times in
//! all. Without NACK, a missing packet gets the time that parity may take to arrive.

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

/// Maximum number of requests for one packet, without and with a known round-trip time
/// [LIBWEBRTC §NackRequester].
const MAX_REQUESTS: u32 = 10;
const MAX_REQUESTS_WITH_RTT: u32 = 100;
/// Minimum time between requests for the same packet [LIBWEBRTC §NackRequester].
const MIN_INTERVAL: TimeDelta = TimeDelta::from_millis(20);
/// Maximum number of packets to request at a time (libwebrtc). In a larger gap the older packets
/// are given up.
const MAX_MISSING: usize = 1_000;
/// Response time before the first answer (libwebrtc's default round-trip time).
const INITIAL_RESPONSE_TIME: TimeDelta = TimeDelta::from_millis(100);
/// Maximum time that a request waits for a packet that may only be late.
const MAX_TOLERANCE: TimeDelta = TimeDelta::from_millis(200);
/// When a packet turns out to be lost, this wait falls by one part in this many.
const TOLERANCE_DECAY: i64 = 16;

// The response time's estimator [RFC6298 §2].
/// `alpha`, as a divisor.
const MEAN_GAIN: i64 = 8;
/// `beta`, as a divisor.
const DEVIATION_GAIN: i64 = 4;
/// `K`.
const DEVIATIONS: i64 = 4;
/// `G`, the minimum margin above the mean.
const GRANULARITY: TimeDelta = TimeDelta::from_millis(10);

/// How a media packet became available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Received as first transmitted.
    Original,
    /// Received as a retransmission.
    Retransmitted,
    /// Restored from parity.
    Recovered,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: i64,
    since: Timestamp,
    /// Time of the next request, or of giving up. `None` once it is given up.
    due: Option<Timestamp>,
    requests: u32,
    requested: Timestamp,
}

/// The missing packets of a stream.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// Whether missing packets are requested.
    nack: bool,
    /// Time before a missing packet is given up, without NACK.
    patience: TimeDelta,
    newest: Option<i64>,
    /// Sorted by sequence number.
    missing: VecDeque<Missing>,
    /// Time by which a packet may be late before it counts as lost.
    tolerance: TimeDelta,
    response_time: ResponseTime,
    /// The round-trip time, if the receiver knows it.
    known_rtt: Option<TimeDelta>,
}

impl Gaps {
    pub(super) fn new(nack: bool, patience: TimeDelta) -> Self {
        Self {
            nack,
            patience,
            newest: None,
            missing: VecDeque::new(),
            tolerance: TimeDelta::ZERO,
            response_time: ResponseTime::default(),
            known_rtt: None,
        }
    }

    /// Sets the round-trip time. It then replaces the measured response time.
    pub(super) fn on_round_trip_time(&mut self, rtt: TimeDelta) {
        self.known_rtt = Some(rtt.max(MIN_INTERVAL));
    }

    /// Time after which a request may be repeated.
    pub(super) fn response_timeout(&self) -> TimeDelta {
        self.known_rtt.unwrap_or_else(|| self.response_time.timeout())
    }

    /// A media packet was received or restored.
    pub(super) fn on_packet(&mut self, now: Timestamp, number: i64, arrival: Arrival) {
        let newest = *self.newest.get_or_insert(number - 1);
        for missing in newest + 1..number {
            let wait = if self.nack { self.tolerance } else { self.tolerance.max(self.patience) };
            let few = number - missing <= MAX_MISSING as i64;
            let due = few.then_some(now + wait);
            self.missing.push_back(Missing {
                number: missing,
                since: now,
                due,
                requests: 0,
                requested: now,
            });
        }
        self.newest = Some(newest.max(number));
        let Ok(index) = self.missing.binary_search_by_key(&number, |missing| missing.number) else {
            return;
        };
        let missing = self.missing.remove(index).expect("the search found it");
        match arrival {
            Arrival::Original => {
                let late = (now - missing.since).min(MAX_TOLERANCE);
                self.tolerance = self.tolerance.max(late);
            }
            Arrival::Retransmitted => {
                self.tolerance -= self.tolerance / TOLERANCE_DECAY;
                // After several requests it is unknown which one was answered [RFC6298 §3].
                if missing.requests == 1 {
                    self.response_time.on_sample(now - missing.requested);
                }
            }
            Arrival::Recovered => {}
        }
    }

    /// Forgets packets before this one. They are not needed any more.
    pub(super) fn forget_before(&mut self, number: i64) {
        while self.missing.front().is_some_and(|missing| missing.number < number) {
            self.missing.pop_front();
        }
    }

    /// When [`Gaps::requests`] is due.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.missing.iter().filter_map(|missing| missing.due).min()
    }

    /// Returns the packets to request now, sorted by sequence number. Gives up packets that have
    /// reached the maximum number of requests.
    pub(super) fn requests(&mut self, now: Timestamp) -> Vec<i64> {
        let again = now + self.response_timeout();
        let most = if self.known_rtt.is_some() { MAX_REQUESTS_WITH_RTT } else { MAX_REQUESTS };
        let mut requests = Vec::new();
        let due = |missing: &&mut Missing| missing.due.is_some_and(|due| due <= now);
        for missing in self.missing.iter_mut().filter(due) {
            if !self.nack || missing.requests == most {
                missing.due = None;
                continue;
            }
            missing.requests += 1;
            missing.requested = now;
            missing.due = Some(again);
            requests.push(missing.number);
        }
        requests
    }

    /// Sequence number of the newest missing packet that was given up.
    pub(super) fn given_up(&self) -> Option<i64> {
        self.missing.iter().rev().find(|missing| missing.due.is_none()).map(|m| m.number)
    }
}

/// Time from a request to its answer, smoothed as TCP smooths its round-trip time [RFC6298 §2].
#[derive(Clone, Copy, Debug, Default)]
struct ResponseTime {
    /// `SRTT` and `RTTVAR`.
    estimate: Option<(TimeDelta, TimeDelta)>,
}

impl ResponseTime {
    fn on_sample(&mut self, sample: TimeDelta) {
        self.estimate = Some(match self.estimate {
            None => (sample, sample / 2),
            Some((mean, deviation)) => (
                mean + (sample - mean) / MEAN_GAIN,
                deviation + ((sample - mean).abs() - deviation) / DEVIATION_GAIN,
            ),
        });
    }

    /// `RTO`, without TCP's lower bound of a second, because an unnecessary request costs only one
    /// packet.
    fn timeout(&self) -> TimeDelta {
        self.estimate.map_or(INITIAL_RESPONSE_TIME, |(mean, deviation)| {
            mean + (deviation * DEVIATIONS).max(GRANULARITY)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Arrival::{Original, Recovered, Retransmitted};
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn millis(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Packets 0 and 3 at time zero.
    fn two_missing(nack: bool) -> Gaps {
        let mut gaps = Gaps::new(nack, millis(100));
        gaps.on_packet(at(0), 0, Original);
        gaps.on_packet(at(0), 3, Original);
        gaps
    }

    #[test]
    fn missing_packets_are_asked_for_at_once_and_after_the_response_time() {
        let mut gaps = two_missing(true);
        assert_eq!(gaps.next_deadline(), Some(at(0)));
        assert_eq!(gaps.requests(at(0)), [1, 2]);
        assert_eq!(gaps.next_deadline(), Some(at(100)));
        assert_eq!(gaps.requests(at(99)), []);
        gaps.on_packet(at(99), 1, Retransmitted);
        assert_eq!(gaps.requests(at(100)), [2]);
    }

    #[test]
    fn a_packet_is_given_up_after_ten_requests() {
        let mut gaps = two_missing(true);
        let mut count = 0;
        while let Some(now) = gaps.next_deadline() {
            assert_eq!(gaps.given_up(), None);
            count += gaps.requests(now).len();
        }
        assert_eq!(count, 20);
        assert_eq!(gaps.given_up(), Some(2));
        gaps.on_packet(at(9_000), 2, Recovered);
        assert_eq!(gaps.given_up(), Some(1));
        gaps.forget_before(2);
        assert_eq!(gaps.given_up(), None);
    }

    #[test]
    fn without_nack_a_packet_is_given_up_when_parity_cannot_come_any_more() {
        let mut gaps = two_missing(false);
        assert_eq!(gaps.next_deadline(), Some(at(100)));
        assert_eq!(gaps.requests(at(100)), []);
        assert_eq!(gaps.given_up(), Some(2));
        assert_eq!(gaps.next_deadline(), None);
    }

    #[test]
    fn a_late_packet_teaches_patience_and_losses_unteach_it() {
        let mut gaps = two_missing(true);
        gaps.on_packet(at(16), 1, Original);
        gaps.on_packet(at(20), 6, Original);
        assert_eq!(gaps.requests(at(35)), [2], "4 and 5 may still be late");
        assert_eq!(gaps.requests(at(36)), [4, 5]);
        gaps.on_packet(at(90), 4, Retransmitted);
        gaps.on_packet(at(100), 8, Original);
        assert_eq!(gaps.missing.back().unwrap().due, Some(at(115)));
        gaps.on_packet(at(900), 7, Original);
        gaps.on_packet(at(1_000), 10, Original);
        assert_eq!(gaps.missing.back().unwrap().due, Some(at(1_200)), "no more than 200 ms");
    }

    // [RFC6298 §2], [RFC6298 §3]
    #[test]
    fn the_response_time_is_learned_from_packets_that_were_asked_for_once() {
        let mut gaps = two_missing(true);
        gaps.requests(at(0));
        gaps.on_packet(at(40), 1, Retransmitted);
        assert_eq!(gaps.response_timeout(), millis(40 + 4 * 20));
        gaps.requests(at(100));
        gaps.on_packet(at(600), 2, Retransmitted);
        assert_eq!(gaps.response_timeout(), millis(120), "asked for twice: no sample");
        for number in (5..105).step_by(2) {
            gaps.on_packet(at(1_000), number, Original);
            gaps.requests(at(1_000));
            gaps.on_packet(at(1_040), number - 1, Retransmitted);
        }
        assert_eq!(gaps.response_timeout(), millis(50));
    }

    // [RFC6298 §2]
    #[test]
    fn an_eighth_of_a_sample_enters_the_mean_and_a_quarter_the_deviation() {
        let mut response_time = ResponseTime::default();
        response_time.on_sample(millis(40));
        response_time.on_sample(millis(80));
        // 40 + 40 / 8, and 20 + (40 - 20) / 4.
        assert_eq!(response_time.timeout(), millis(45 + 4 * 25));
    }

    // [LIBWEBRTC §NackRequester]
    #[test]
    fn a_receiver_that_knows_the_round_trip_asks_a_hundred_of_them_apart() {
        let mut gaps = two_missing(true);
        gaps.on_round_trip_time(millis(4));
        assert_eq!(gaps.requests(at(0)), [1, 2]);
        assert_eq!(gaps.next_deadline(), Some(at(20)));
        gaps.on_round_trip_time(millis(300));
        assert_eq!(gaps.requests(at(20)), [1, 2]);
        assert_eq!(gaps.next_deadline(), Some(at(320)));
        let mut count = 4;
        while let Some(now) = gaps.next_deadline() {
            count += gaps.requests(now).len();
        }
        assert_eq!(count, 200);
    }

    #[test]
    fn of_a_huge_gap_only_the_newest_thousand_packets_are_asked_for() {
        let mut gaps = Gaps::new(true, TimeDelta::ZERO);
        gaps.on_packet(at(0), 0, Original);
        gaps.on_packet(at(0), 5_001, Original);
        assert_eq!(gaps.requests(at(0)), (4_001..=5_000).collect::<Vec<i64>>());
        assert_eq!(gaps.given_up(), Some(4_000));
    }
}
