//! Retry policy: after how many attempts a station gives a packet up. The number is fixed, or
//! larger while losses come from the channel and not from congestion.
//!
//! Implements [INTERDIGITAL §3.1, §3.3]. The mechanism compares the bits that arrive at the station
//! with the bits that it delivers. Their difference, divided by the measured capacity, is the
//! congestion level.
//!
//! ```text
//! bits that arrive   --+
//! bits delivered     --+-> sums of the last second -> excess / capacity = level -+
//! transmit delays    --+                                                         v
//! attempts, bytes in the queue ------------------------------------------------> verdict
//! ```
//!
//! The paper leaves some points open. They are decided here as follows. If nothing was delivered,
//! the level is zero without excess and infinite with excess. Until the window is full, the excess
//! is averaged over the time so far. Algorithm 3 as printed counts attempts only in the branch of
//! the extension; here ordinary attempts count as well, so a packet has `limit + extension`
//! attempts in all. Both sums count a packet with the same size. Otherwise the headers alone would
//! create or hide an excess.
//!
//! [INTERDIGITAL §3.1, §3.3]: https://doi.org/10.1145/2713168.2713173

use std::collections::VecDeque;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// `tau`: how often the window of sums moves forward [INTERDIGITAL §3.3, Algorithm 1].
const INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// `w`: number of intervals in the window.
const WINDOW: usize = 10;

/// How many times a station tries to send a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RetryPolicy {
    /// This many attempts in all, as in the standard.
    Limit(u32),
    /// More attempts while the channel is not congested.
    CongestionAware(CongestionAware),
}

/// `dot11ShortRetryLimit`: maximum number of attempts [IEEE80211 §9.19.2.6].
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
#[non_exhaustive]
pub struct CongestionAware {
    /// `R`: number of attempts that every packet gets.
    pub limit: u32,
    /// `R_ex`: number of additional attempts.
    pub extension: u32,
    /// `CL_th`: congestion level at and above which there are no additional attempts.
    pub level_threshold: f64,
    /// `BF_th`: bytes in the queue at and above which there are no additional attempts.
    pub queue_threshold: DataSize,
    /// Whether the contention window is reset before the first additional attempt, as in the paper.
    pub reset_window: bool,
}

impl CongestionAware {
    /// The paper's mechanism with this extension. The paper gives no thresholds. The level 0.1 lies
    /// above what channel losses alone cause, and 16 kB are half the buffer of its network
    /// simulator.
    pub const fn new(extension: u32) -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            extension,
            level_threshold: 0.1,
            queue_threshold: DataSize::from_bytes(16_000),
            reset_window: true,
        }
    }

    weir::with! {
        with_limit: limit: u32,
        with_level_threshold: level_threshold: f64,
        with_queue_threshold: queue_threshold: DataSize,
        with_reset_window: reset_window: bool,
    }
}

/// Decision on a packet before its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Send the packet.
    Transmit {
        /// Whether to reset the contention window to its minimum, as for a new packet.
        reset_window: bool,
    },
    /// Give the packet up.
    Drop,
}

/// Congestion that a station has measured over the last second.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Congestion {
    /// `EDR`: the rate of bits that arrived and were not delivered [INTERDIGITAL §3.1.1, Eq. 4].
    ///
    /// [INTERDIGITAL §3.1.1, Eq. 4]: https://doi.org/10.1145/2713168.2713173
    pub excess: Bitrate,
    /// `MC`: bits delivered per second of transmit delay [INTERDIGITAL §3.1.1, Eq. 6]; `None` if no
    /// packet was sent.
    ///
    /// [INTERDIGITAL §3.1.1, Eq. 6]: https://doi.org/10.1145/2713168.2713173
    pub capacity: Option<Bitrate>,
    /// `CL`: excess divided by capacity [INTERDIGITAL §3.1.1, Eq. 5]; infinite if there is an
    /// excess and nothing was delivered.
    ///
    /// [INTERDIGITAL §3.1.1, Eq. 5]: https://doi.org/10.1145/2713168.2713173
    pub level: f64,
}

/// A retry policy with its state, for one queue of one station.
#[derive(Clone, Debug)]
pub struct Retry {
    policy: RetryPolicy,
    /// The intervals that have ended, the latest at the back.
    ended: VecDeque<Sums>,
    /// Sum of the ended intervals.
    window: Sums,
    /// The current interval.
    current: Sums,
    /// When the current interval ends; `None` before the first packet.
    interval_end: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    arrived: DataSize,
    delivered: DataSize,
    transmit_delay: TimeDelta,
}

impl Retry {
    /// A retry policy before the first packet.
    pub fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            ended: VecDeque::with_capacity(WINDOW),
            window: Sums::default(),
            current: Sums::default(),
            interval_end: None,
        }
    }

    /// A packet of this size arrived at the queue, whether or not it found room.
    pub fn on_arrival(&mut self, now: Timestamp, size: DataSize) {
        self.advance(now);
        self.current.arrived += size;
    }

    /// A packet was acknowledged or given up; in the second case `delivered` is zero. The transmit
    /// delay is the time since the packet reached the head of the queue.
    pub fn on_finished(&mut self, now: Timestamp, delivered: DataSize, transmit_delay: TimeDelta) {
        self.advance(now);
        self.current.delivered += delivered;
        self.current.transmit_delay += transmit_delay;
    }

    /// Decides on a packet after this many attempts [INTERDIGITAL §3.3, Algorithm 3].
    ///
    /// [INTERDIGITAL §3.3, Algorithm 3]: https://doi.org/10.1145/2713168.2713173
    pub fn verdict(&mut self, now: Timestamp, attempts: u32, queued: DataSize) -> RetryDecision {
        let policy = match self.policy {
            RetryPolicy::Limit(limit) if attempts >= limit => return RetryDecision::Drop,
            RetryPolicy::CongestionAware(policy) if attempts >= policy.limit => policy,
            _ => return RetryDecision::Transmit { reset_window: false },
        };
        let may_extend = attempts < policy.limit + policy.extension
            && queued < policy.queue_threshold
            && self.congestion(now).level < policy.level_threshold;
        if !may_extend {
            return RetryDecision::Drop;
        }
        RetryDecision::Transmit { reset_window: policy.reset_window && attempts == policy.limit }
    }

    /// The channel's congestion over the intervals of the window [INTERDIGITAL §3.3, Algorithm 2].
    ///
    /// [INTERDIGITAL §3.3, Algorithm 2]: https://doi.org/10.1145/2713168.2713173
    pub fn congestion(&mut self, now: Timestamp) -> Congestion {
        self.advance(now);
        let Sums { arrived, delivered, transmit_delay } = self.window;
        let excess = arrived.saturating_sub(delivered) / (INTERVAL * self.ended.len() as i64);
        let has_sent = transmit_delay > TimeDelta::ZERO;
        let capacity = if has_sent { Some(delivered / transmit_delay) } else { None };
        let level = match capacity {
            _ if excess == Bitrate::ZERO => 0.0,
            None | Some(Bitrate::ZERO) => f64::INFINITY,
            Some(capacity) => excess / capacity,
        };
        Congestion { excess, capacity, level }
    }

    /// Ends the intervals whose time has passed [INTERDIGITAL §3.3, Algorithm 1].
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

    const GO: RetryDecision = RetryDecision::Transmit { reset_window: false };
    const GO_AFRESH: RetryDecision = RetryDecision::Transmit { reset_window: true };
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

    /// One packet of 1000 bytes every 10 ms for a second. Every `lost`th packet is given up. Each
    /// takes 1 ms.
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
        assert_eq!(retry.verdict(ms(0), 7, EMPTY), RetryDecision::Drop);
    }

    // [INTERDIGITAL §3.3, Algorithm 3]
    #[test]
    fn the_extension_starts_with_a_fresh_window_and_ends_at_its_last_attempt() {
        let mut retry = aware(3);
        let verdicts: Vec<RetryDecision> =
            (5..11).map(|k| retry.verdict(ms(0), k, EMPTY)).collect();
        assert_eq!(verdicts, [GO, GO, GO_AFRESH, GO, GO, RetryDecision::Drop]);
    }

    #[test]
    fn without_an_extension_the_policy_is_the_plain_limit() {
        let mut retry = aware(0);
        assert_eq!(retry.verdict(ms(0), 6, EMPTY), GO);
        assert_eq!(retry.verdict(ms(0), 7, EMPTY), RetryDecision::Drop);
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
        assert_eq!(retry.verdict(ms(0), 8, bytes(16_000)), RetryDecision::Drop);
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
        assert_eq!(retry.verdict(ms(1000), 7, EMPTY), RetryDecision::Drop);
    }

    #[test]
    fn five_percent_of_channel_losses_are_no_congestion() {
        let mut retry = aware(3);
        load(&mut retry, Some(20));
        let congestion = retry.congestion(ms(1000));
        // 5 of 100 kB in a second are lost. The other 95 kB take 100 ms.
        assert_eq!(congestion.excess, Bitrate::from_kbps(40));
        assert_eq!(congestion.capacity, Some(Bitrate::from_kbps(7_600)));
        assert_eq!(retry.verdict(ms(1000), 7, EMPTY), GO_AFRESH);
    }

    #[test]
    fn nothing_delivered_is_no_congestion_or_with_excess_total_congestion() {
        let mut retry = aware(3);
        assert_eq!(retry.congestion(ms(0)).level, 0.0);
        retry.on_arrival(ms(0), bytes(1000));
        retry.on_finished(ms(50), EMPTY, TimeDelta::from_millis(50));
        let congestion = retry.congestion(ms(100));
        assert_eq!(congestion.capacity, Some(Bitrate::ZERO));
        assert_eq!(congestion.level, f64::INFINITY);
        assert_eq!(retry.verdict(ms(100), 7, EMPTY), RetryDecision::Drop);
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
        // Until the window is full, the average is over the time so far.
        assert_eq!(excess(&mut retry, 100), 80_000);
        assert_eq!(excess(&mut retry, 200), 40_000);
        assert_eq!(excess(&mut retry, 1_000), 8_000);
        assert_eq!(excess(&mut retry, 1_099), 8_000);
        assert_eq!(excess(&mut retry, 1_100), 0);
    }
}
