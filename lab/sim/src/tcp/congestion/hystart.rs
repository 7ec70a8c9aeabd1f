//! Exit from slow start before the queue overflows: HyStart++ [RFC9406], and HyStart, its
//! predecessor, as in Linux.

use weir::units::{TimeDelta, Timestamp};

use super::{AckEvent, Window};

// Parameters [RFC9406 §4.3]. HyStart has the same thresholds.
/// `MIN_RTT_THRESH`, `MAX_RTT_THRESH`, `MIN_RTT_DIVISOR`: allowed rise of the round-trip time.
const LEAST_RISE: TimeDelta = TimeDelta::from_millis(4);
const MOST_RISE: TimeDelta = TimeDelta::from_millis(16);
const RISE_DIVISOR: i64 = 8;
/// `N_RTT_SAMPLE`: minimum number of samples in a round.
const SAMPLES: u32 = 8;
/// `CSS_GROWTH_DIVISOR`: growth of conservative slow start relative to slow start.
const CONSERVATIVE_GROWTH: f64 = 1.0 / 4.0;
/// `CSS_ROUNDS`: number of rounds of conservative slow start before slow start ends.
const CONSERVATIVE_ROUNDS: u32 = 5;
/// `L`: maximum number of segments counted per acknowledgement, for a sender without pacing.
const MOST_ACKNOWLEDGED: f64 = 8.0;

fn rise(base: TimeDelta) -> TimeDelta {
    (base / RISE_DIVISOR).clamp(LEAST_RISE, MOST_RISE)
}

/// Round-trip times of one round: from a segment's departure to its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// `windowEnd`: the round ends when this is acknowledged.
    end: u64,
    /// `currentRoundMinRTT`.
    min_rtt: TimeDelta,
    /// `rttSampleCount`.
    samples: u32,
}

impl Round {
    fn new(end: u64) -> Self {
        Self { end, min_rtt: TimeDelta::MAX, samples: 0 }
    }

    fn on_sample(&mut self, rtt: TimeDelta) {
        self.min_rtt = self.min_rtt.min(rtt);
        self.samples += 1;
    }
}

/// HyStart++.
#[derive(Debug, Default)]
pub(super) struct HyStartPlusPlus {
    round: Option<Round>,
    /// `lastRoundMinRTT`.
    last_min_rtt: Option<TimeDelta>,
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// `cssBaselineMinRtt`.
    baseline: TimeDelta,
    rounds: u32,
}

impl HyStartPlusPlus {
    /// Returns the growth of the window per acknowledged segment, in segments [RFC9406 §4.2].
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) -> f64 {
        if !window.is_slow_start() {
            return 1.0;
        }
        if self.round.is_none_or(|round| ack.acknowledged >= round.end) {
            self.start_round(window, ack.next);
        }
        let round = self.round.get_or_insert(Round::new(ack.next));
        if let Some(rtt) = ack.rtt {
            round.on_sample(rtt);
        }
        if round.samples >= SAMPLES {
            let current = round.min_rtt;
            match self.conservative {
                None if self.last_min_rtt.is_some_and(|last| current >= last + rise(last)) => {
                    self.conservative = Some(Conservative { baseline: current, rounds: 0 });
                }
                // The rise did not last, so normal slow start resumes.
                Some(conservative) if current < conservative.baseline => self.conservative = None,
                _ => {}
            }
        }
        let counted =
            (ack.delivered as f64).min(MOST_ACKNOWLEDGED) / (ack.delivered as f64).max(1.0);
        counted * self.conservative.map_or(1.0, |_| CONSERVATIVE_GROWTH)
    }

    fn start_round(&mut self, window: &mut Window, end: u64) {
        let ended = self.round.replace(Round::new(end));
        self.last_min_rtt = ended.filter(|round| round.samples > 0).map(|round| round.min_rtt);
        if let Some(conservative) = &mut self.conservative {
            conservative.rounds += 1;
            if conservative.rounds >= CONSERVATIVE_ROUNDS {
                window.threshold = window.congestion;
            }
        }
    }
}

// Parameters of HyStart in Linux (`net/ipv4/tcp_cubic.c`).
/// Minimum window for the detection.
const LOW_WINDOW: f64 = 16.0;
/// Maximum gap between acknowledgements of the same train.
const TRAIN_GAP: TimeDelta = TimeDelta::from_millis(2);
/// Allowance for segment aggregation by a host in the length of a train.
const TRAIN_SLACK: TimeDelta = TimeDelta::from_millis(1);

/// HyStart as in Linux. It ends slow start immediately.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    round: Option<Round>,
    round_start: Timestamp,
    /// Time of the last acknowledgement of the train.
    train: Timestamp,
    /// Minimum round-trip time of the connection.
    min_rtt: Option<TimeDelta>,
}

impl HyStart {
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        let Some(rtt) = ack.rtt else { return };
        let min_rtt = self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt));
        self.min_rtt = Some(min_rtt);
        if window.is_slow_start() && self.is_time_to_leave(window, ack, rtt, min_rtt) {
            window.threshold = window.congestion;
        }
    }

    fn is_time_to_leave(
        &mut self,
        window: &Window,
        ack: &AckEvent,
        rtt: TimeDelta,
        min_rtt: TimeDelta,
    ) -> bool {
        if self.round.is_none_or(|round| ack.acknowledged > round.end) {
            self.round = Some(Round::new(ack.next));
            (self.round_start, self.train) = (ack.now, ack.now);
        }
        if window.congestion < LOW_WINDOW {
            return false;
        }
        let mut train_is_long = false;
        if ack.now - self.train <= TRAIN_GAP {
            self.train = ack.now;
            train_is_long = ack.now - self.round_start > (min_rtt + TRAIN_SLACK) / 2;
        }
        let round = self.round.get_or_insert(Round::new(ack.next));
        // The first samples only determine the minimum of the round. Later samples can trigger the
        // exit.
        let judges = round.samples >= SAMPLES;
        round.on_sample(rtt);
        train_is_long || (judges && round.min_rtt > min_rtt + rise(min_rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ack;
    use super::*;

    /// One round with a constant round-trip time: 20 acknowledgements, one per millisecond, with a
    /// window of 32. Returns the growth at its end.
    fn round(
        number: i64,
        rtt_ms: i64,
        window: &mut Window,
        mut on_ack: impl FnMut(&mut Window, &AckEvent) -> f64,
    ) -> f64 {
        let mut growth = 0.0;
        for index in 0..20 {
            let first = index == 0;
            let event = AckEvent {
                rtt: Some(TimeDelta::from_millis(rtt_ms)),
                acknowledged: number as u64 * 100 + u64::from(first),
                next: number as u64 * 100 + 100,
                ..ack(number * 1_000 + index * 5, 1)
            };
            growth = on_ack(window, &event);
        }
        growth
    }

    fn window() -> Window {
        Window { congestion: 32.0, threshold: f64::INFINITY }
    }

    /// Growth at the end of each round, and the window after the last.
    fn plus_plus(rtts_ms: &[i64]) -> (Vec<f64>, Window) {
        let (mut hystart, mut window) = (HyStartPlusPlus::default(), window());
        let growths = rtts_ms.iter().enumerate().map(|(number, &rtt_ms)| {
            round(number as i64, rtt_ms, &mut window, |window, ack| hystart.on_ack(window, ack))
        });
        (growths.collect(), window)
    }

    // [RFC9406 §4.2]
    #[test]
    fn a_longer_round_trip_slows_growth_and_five_such_rounds_end_slow_start() {
        // The second rise, of 17 ms, exceeds an eighth of 113 ms. The first rise is below its
        // threshold.
        let (growths, window) = plus_plus(&[100, 100, 111, 113, 130, 130, 130, 130, 130]);
        assert_eq!(growths, [1.0, 1.0, 1.0, 1.0, 0.25, 0.25, 0.25, 0.25, 0.25]);
        assert!(window.is_slow_start());
        let (_, window) = plus_plus(&[100, 100, 111, 113, 130, 130, 130, 130, 130, 130]);
        assert!(!window.is_slow_start());
    }

    #[test]
    fn slow_start_goes_on_if_the_round_trip_falls_again() {
        let (growths, window) = plus_plus(&[100, 100, 120, 120, 119, 119]);
        assert_eq!(growths, [1.0, 1.0, 0.25, 0.25, 1.0, 1.0]);
        assert!(window.is_slow_start());
    }

    #[test]
    fn many_segments_acknowledged_at_once_count_for_eight() {
        let mut hystart = HyStartPlusPlus::default();
        assert_eq!(hystart.on_ack(&mut window(), &ack(0, 32)), 0.25);
    }

    #[test]
    fn linux_ends_slow_start_when_the_round_trip_grows_by_an_eighth() {
        let (mut hystart, mut window) = (HyStart::default(), window());
        let mut ended = Vec::new();
        for (number, rtt) in [100, 100, 112, 113].iter().enumerate() {
            round(number as i64, *rtt, &mut window, |window, ack| {
                hystart.on_ack(window, ack);
                1.0
            });
            ended.push(!window.is_slow_start());
        }
        assert_eq!(ended, [false, false, false, true]);
    }

    #[test]
    fn linux_ends_slow_start_when_a_train_lasts_half_a_round_trip() {
        let (mut hystart, mut window) = (HyStart::default(), window());
        let mut ended_at = None;
        for ms in 0..100 {
            let event = AckEvent { acknowledged: u64::from(ms == 0), next: 100, ..ack(ms, 1) };
            hystart.on_ack(&mut window, &event);
            if !window.is_slow_start() {
                ended_at.get_or_insert(ms);
            }
        }
        // (100 + 1) / 2 = 50.5 ms.
        assert_eq!(ended_at, Some(51));
    }
}
