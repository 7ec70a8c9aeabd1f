//! When a station gives a packet up: at a fixed number of attempts, or later where the channel and not
//! congestion takes its frames.
//!
//! Implements [INTERDIGITAL §3.1, §3.3]. The mechanism compares what arrives at the station with what it
//! delivers; the excess over the capacity that the station finds is the congestion level.
//!
//! ```text
//! bits that arrive   --+
//! bits delivered     --+-> sums of the last second -> excess / capacity = level -+
//! transmit delays    --+                                                         v
//! attempts, bytes in the queue ------------------------------------------------> verdict
//! ```
//!
//! What the paper leaves open is decided here. Where nothing was delivered, the level is zero without
//! excess and infinite with it. Before the window has filled, the excess counts over the time so far.
//! Algorithm 3 as printed counts attempts in the branch of the extension only; ordinary attempts count
//! as well, so that a packet has `limit + extension` attempts in all. Both sums take a packet with the
//! same size: otherwise headers alone would make a constant excess, or hide one.
//!
//! [INTERDIGITAL §3.1, §3.3]: https://doi.org/10.1145/2713168.2713173

use std::collections::VecDeque;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// `tau`: how often the sums move on [INTERDIGITAL §3.3, Algorithm 1].
const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// `w`: intervals of a sum.
const WINDOW: usize = 10;

/// How often a station tries to send a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RetryPolicy {
    /// So many times in all, as the standard has it.
    Limit(u32),
    /// More often where the channel is not congested.
    CongestionAware(CongestionAware),
}

/// `dot11ShortRetryLimit`: attempts in all [IEEE80211 §9.19.2.6].
///
/// [IEEE80211 §9.19.2.6]: https://doi.org/10.1109/IEEESTD.2012.6178212
pub const DEFAULT_LIMIT: u32 = 7;

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::Limit(DEFAULT_LIMIT)
    }
}

/// Parameters of the congestion-aware policy [INTERDIGITAL §3.3, Algorithm 3].
///
/// [INTERDIGITAL §3.3, Algorithm 3]: https://doi.org/10.1145/2713168.2713173
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionAware {
    /// `R`: attempts that a packet always has.
    pub limit: u32,
    /// `R_ex`: further attempts.
    pub extension: u32,
    /// `CL_th`: congestion level from which there are none.
    pub level_threshold: f64,
    /// `BF_th`: bytes in the queue from which there are none.
    pub queue_threshold: DataSize,
    /// Whether the contention window is reset before the first of them, as in the paper.
    pub reset_window: bool,
}

impl CongestionAware {
    /// The paper's mechanism with this extension. It gives no thresholds: 0.1 lies above what channel
    /// losses alone amount to, and 16 kB are half the buffer of its network simulator.
    pub const fn new(extension: u32) -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            extension,
            level_threshold: 0.1,
            queue_threshold: DataSize::from_bytes(16_000),
            reset_window: true,
        }
    }
}

/// What is to become of a packet before its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent; `reset_window`: with the smallest contention window, as a fresh packet.
    Transmit {
        /// Whether the contention window starts anew.
        reset_window: bool,
    },
    /// It is given up.
    Drop,
}

/// What a station finds out about its channel in the last second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Congestion {
    /// `EDR`: what arrived and was not delivered [INTERDIGITAL §3.1.1, Eq. 4].
    ///
    /// [INTERDIGITAL §3.1.1, Eq. 4]: https://doi.org/10.1145/2713168.2713173
    pub excess: Bitrate,
    /// `MC`: bits delivered a second of transmit delay [INTERDIGITAL §3.1.1, Eq. 6]; `None` where no
    /// packet was sent.
    ///
    /// [INTERDIGITAL §3.1.1, Eq. 6]: https://doi.org/10.1145/2713168.2713173
    pub capacity: Option<Bitrate>,
    /// `CL`: one over the other [INTERDIGITAL §3.1.1, Eq. 5]; infinite where there is an excess and
    /// nothing was delivered.
    ///
    /// [INTERDIGITAL §3.1.1, Eq. 5]: https://doi.org/10.1145/2713168.2713173
    pub level: f64,
}

/// A retry policy at work, for one queue of one station.
#[derive(Clone, Debug)]
pub struct Retry {
    policy: RetryPolicy,
    /// The intervals that have ended, the latest last.
    ended: VecDeque<Sums>,
    /// Their sum.
    window: Sums,
    /// The interval that runs.
    current: Sums,
    /// When that ends; `None` before the first packet.
    interval_end: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    arrived: DataSize,
    delivered: DataSize,
    transmit_delay: TimeDelta,
}

impl Retry {
    /// A policy before the first packet.
    pub fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            ended: VecDeque::with_capacity(WINDOW),
            window: Sums::default(),
            current: Sums::default(),
            interval_end: None,
        }
    }

    /// A packet of this size came to the queue, whether or not it found room.
    pub fn on_arrival(&mut self, now: Timestamp, size: DataSize) {
        self.advance(now);
        self.current.arrived += size;
    }

    /// A packet was acknowledged, or given up: then `delivered` is zero. The transmit delay is the time
    /// since it came to the head of the queue.
    pub fn on_finished(&mut self, now: Timestamp, delivered: DataSize, transmit_delay: TimeDelta) {
        self.advance(now);
        self.current.delivered += delivered;
        self.current.transmit_delay += transmit_delay;
    }

    /// What is to become of a packet that has had so many attempts [INTERDIGITAL §3.3, Algorithm 3].
    ///
    /// [INTERDIGITAL §3.3, Algorithm 3]: https://doi.org/10.1145/2713168.2713173
    pub fn verdict(&mut self, now: Timestamp, attempts: u32, queued: DataSize) -> Verdict {
        let policy = match self.policy {
            RetryPolicy::Limit(limit) if attempts >= limit => return Verdict::Drop,
            RetryPolicy::CongestionAware(policy) if attempts >= policy.limit => policy,
            _ => return Verdict::Transmit { reset_window: false },
        };
        let may_extend = attempts < policy.limit + policy.extension
            && queued < policy.queue_threshold
            && self.congestion(now).level < policy.level_threshold;
        if !may_extend {
            return Verdict::Drop;
        }
        Verdict::Transmit { reset_window: policy.reset_window && attempts == policy.limit }
    }

    /// The channel's congestion over the last intervals that have ended [INTERDIGITAL §3.3, Algorithm 2].
    ///
    /// [INTERDIGITAL §3.3, Algorithm 2]: https://doi.org/10.1145/2713168.2713173
    pub fn congestion(&mut self, now: Timestamp) -> Congestion {
        self.advance(now);
        let Sums { arrived, delivered, transmit_delay } = self.window;
        let excess = arrived.saturating_sub(delivered) / (INTERVAL * self.ended.len() as i64);
        let has_sent = transmit_delay > TimeDelta::ZERO;
        let capacity = has_sent.then(|| delivered / transmit_delay);
        let level = match capacity {
            _ if excess == Bitrate::ZERO => 0.0,
            None | Some(Bitrate::ZERO) => f64::INFINITY,
            Some(capacity) => excess / capacity,
        };
        Congestion { excess, capacity, level }
    }

    /// Ends the intervals that are over [INTERDIGITAL §3.3, Algorithm 1].
    fn advance(&mut self, now: Timestamp) {
        let mut end = self.interval_end.unwrap_or(now + INTERVAL);
        while now >= end {
            if self.ended.len() == WINDOW {
                self.ended.pop_front();
            }
            self.ended.push_back(std::mem::take(&mut self.current));
            self.window = Sums {
                arrived: self.ended.iter().map(|sums| sums.arrived).sum(),
                delivered: self.ended.iter().map(|sums| sums.delivered).sum(),
                transmit_delay: self
                    .ended
                    .iter()
                    .fold(TimeDelta::ZERO, |sum, sums| sum + sums.transmit_delay),
            };
            end += INTERVAL;
        }
        self.interval_end = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO: Verdict = Verdict::Transmit { reset_window: false };
    const GO_AFRESH: Verdict = Verdict::Transmit { reset_window: true };
    const EMPTY: DataSize = DataSize::ZERO;

    fn ms(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn bytes(size: u64) -> DataSize {
        DataSize::from_bytes(size)
    }

    fn aware(extension: u32) -> Retry {
        Retry::new(RetryPolicy::CongestionAware(CongestionAware::new(extension)))
    }

    /// A packet of 1000 bytes every 10 ms for a second, of which each `lost`th is given up; each takes
    /// 1 ms.
    fn load(retry: &mut Retry, lost: Option<i64>) {
        for k in 0..100 {
            let is_lost = lost.is_some_and(|lost| k % lost == 0);
            retry.on_arrival(ms(10 * k), bytes(1000));
            let delivered = if is_lost { EMPTY } else { bytes(1000) };
            retry.on_finished(ms(10 * k + 1), delivered, TimeDelta::from_millis(1));
        }
    }

    #[test]
    fn a_limit_is_the_number_of_attempts_in_all() {
        let mut retry = Retry::new(RetryPolicy::default());
        assert_eq!(retry.verdict(ms(0), 0, EMPTY), GO);
        assert_eq!(retry.verdict(ms(0), 6, EMPTY), GO);
        assert_eq!(retry.verdict(ms(0), 7, EMPTY), Verdict::Drop);
    }

    // [INTERDIGITAL §3.3, Algorithm 3]
    #[test]
    fn the_extension_starts_with_a_fresh_window_and_ends_at_its_last_attempt() {
        let mut retry = aware(3);
        let verdicts: Vec<Verdict> = (5..11).map(|k| retry.verdict(ms(0), k, EMPTY)).collect();
        assert_eq!(verdicts, [GO, GO, GO_AFRESH, GO, GO, Verdict::Drop]);
    }

    #[test]
    fn without_an_extension_the_policy_is_the_plain_limit() {
        let mut retry = aware(0);
        assert_eq!(retry.verdict(ms(0), 6, EMPTY), GO);
        assert_eq!(retry.verdict(ms(0), 7, EMPTY), Verdict::Drop);
    }

    #[test]
    fn without_the_reset_the_window_goes_on_doubling() {
        let policy = CongestionAware { reset_window: false, ..CongestionAware::new(3) };
        let mut retry = Retry::new(RetryPolicy::CongestionAware(policy));
        assert_eq!(retry.verdict(ms(0), 7, EMPTY), GO);
    }

    #[test]
    fn a_queue_at_its_threshold_ends_the_extension_and_nothing_else() {
        let mut retry = aware(3);
        assert_eq!(retry.verdict(ms(0), 6, bytes(16_000)), GO);
        assert_eq!(retry.verdict(ms(0), 7, bytes(15_999)), GO_AFRESH);
        assert_eq!(retry.verdict(ms(0), 8, bytes(16_000)), Verdict::Drop);
    }

    #[test]
    fn congestion_ends_the_extension_and_nothing_else() {
        let mut retry = aware(3);
        for k in 0..100 {
            retry.on_arrival(ms(10 * k), bytes(1000));
        }
        // Half is delivered, each packet in 10 ms: excess 400 kbit/s, capacity 800 kbit/s.
        for k in 0..50 {
            retry.on_finished(ms(990 + k / 10), bytes(1000), TimeDelta::from_millis(10));
        }
        let congestion = retry.congestion(ms(1000));
        assert_eq!(congestion.excess, Bitrate::from_kbps(400));
        assert_eq!(congestion.capacity, Some(Bitrate::from_kbps(800)));
        assert!((congestion.level - 0.5).abs() < 1e-12);
        assert_eq!(retry.verdict(ms(1000), 6, EMPTY), GO);
        assert_eq!(retry.verdict(ms(1000), 7, EMPTY), Verdict::Drop);
    }

    #[test]
    fn five_percent_of_channel_losses_are_no_congestion() {
        let mut retry = aware(3);
        load(&mut retry, Some(20));
        let congestion = retry.congestion(ms(1000));
        // 5 of 100 kB in a second; 95 kB in 100 ms.
        assert_eq!(congestion.excess, Bitrate::from_kbps(40));
        assert_eq!(congestion.capacity, Some(Bitrate::from_kbps(7_600)));
        assert_eq!(retry.verdict(ms(1000), 7, EMPTY), GO_AFRESH);
    }

    #[test]
    fn nothing_delivered_is_no_congestion_without_excess_and_total_congestion_with_it() {
        let mut retry = aware(3);
        assert_eq!(retry.congestion(ms(0)).level, 0.0);
        retry.on_arrival(ms(0), bytes(1000));
        retry.on_finished(ms(50), EMPTY, TimeDelta::from_millis(50));
        let congestion = retry.congestion(ms(100));
        assert_eq!(congestion.capacity, Some(Bitrate::ZERO));
        assert_eq!(congestion.level, f64::INFINITY);
        assert_eq!(retry.verdict(ms(100), 7, EMPTY), Verdict::Drop);
    }

    #[test]
    fn more_delivered_than_arrived_is_no_excess() {
        let mut retry = aware(3);
        retry.on_finished(ms(0), bytes(1000), TimeDelta::from_millis(1));
        assert_eq!(retry.congestion(ms(100)).excess, Bitrate::ZERO);
    }

    // [INTERDIGITAL §3.3, Algorithm 1]
    #[test]
    fn an_interval_counts_once_it_is_over_and_for_a_second() {
        let mut retry = aware(3);
        retry.on_arrival(ms(0), bytes(1000));
        let excess = |retry: &mut Retry, at| retry.congestion(ms(at)).excess.as_bps();
        assert_eq!(excess(&mut retry, 99), 0);
        // Over the time so far until the window is full.
        assert_eq!(excess(&mut retry, 100), 80_000);
        assert_eq!(excess(&mut retry, 200), 40_000);
        assert_eq!(excess(&mut retry, 1_000), 8_000);
        assert_eq!(excess(&mut retry, 1_099), 8_000);
        assert_eq!(excess(&mut retry, 1_100), 0);
    }
}
