//! RED: drops arriving packets with a probability that increases with the mean queue length.
//!
//! Implements [RED §4] with the gentle slope of [RED-GENTLE]. At a mean of `max` the original
//! starts to drop every packet. Here the probability rises further and reaches 1 at twice `max`.

use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::fifo::Fifo;
use super::{Discipline, Log, Room};
use crate::packet::Waiting;
use crate::seed::Stream;

/// `w_q`: weight of a new sample in the mean length [RED §6].
const WEIGHT: f64 = 0.002;
/// Packet size for the number of packets that could have been sent during an idle time [RED §4].
const IDLE_PACKET: DataSize = DataSize::from_bytes(1_500);

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RedConfig {
    /// `min_th`: mean length in packets below which nothing is dropped.
    pub min: f64,
    /// `max_th`: mean length in packets at which the probability is `max_probability`.
    pub max: f64,
    /// `max_p`: probability of a drop at a mean length of `max`.
    pub max_probability: f64,
    /// Whether ECN-capable packets are marked instead of dropped, as long as the probability is
    /// below 1.
    pub ecn: bool,
}

impl RedConfig {
    weir::with! {
        with_min: min: f64,
        with_max: max: f64,
        with_max_probability: max_probability: f64,
        with_ecn: ecn: bool,
    }
}

impl Default for RedConfig {
    fn default() -> Self {
        Self { min: 5.0, max: 15.0, max_probability: 0.1, ecn: true }
    }
}

/// A queue managed by RED.
#[derive(Clone, Debug)]
pub(crate) struct Red<T> {
    queue: Fifo<T>,
    config: RedConfig,
    /// `avg`: mean queue length in packets.
    mean: f64,
    /// `count`: packets since the last drop. `None` while the mean is below `min`; the original
    /// uses -1.
    count: Option<u32>,
    /// `q_time`: when the queue became empty; `None` while packets wait.
    empty_since: Option<Timestamp>,
    stream: Stream,
}

impl<T> Red<T> {
    pub(crate) fn new(config: RedConfig, stream: Stream) -> Self {
        Self {
            queue: Fifo::new(),
            config,
            mean: 0.0,
            count: None,
            empty_since: Some(Timestamp::ZERO),
            stream,
        }
    }

    /// Updates the mean length at an arrival. After an idle time, the mean decays as if it had
    /// sampled an empty queue once for each packet that could have been sent [RED §4].
    fn update_mean(&mut self, now: Timestamp, room: Room<'_>) {
        match (self.empty_since.take(), room.capacity.nominal_rate(now)) {
            (Some(since), Some(rate)) => {
                self.mean *= libm::pow(1.0 - WEIGHT, (now - since) / (IDLE_PACKET / rate));
            }
            _ => self.mean += WEIGHT * (self.queue.len() as f64 - self.mean),
        }
    }

    /// `p_b`: the probability at the present mean length; `None` below `min`.
    fn base_probability(&self) -> Option<f64> {
        let RedConfig { min, max, max_probability, .. } = self.config;
        if self.mean < min {
            None
        } else if self.mean < max {
            Some(max_probability * (self.mean - min) / (max - min))
        } else {
            // [RED-GENTLE]
            Some((max_probability + (1.0 - max_probability) * (self.mean - max) / max).min(1.0))
        }
    }

    /// Decides whether the new packet is dropped or marked. The probability `p_a` increases with
    /// the packets since the last drop. This makes the gaps uniformly, not geometrically,
    /// distributed [RED §7].
    fn picks(&mut self, base: f64) -> bool {
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        let spread = 1.0 - f64::from(count) * base;
        let pick = spread <= 0.0 || self.stream.chance(base / spread);
        self.count = Some(if pick { 0 } else { count });
        pick
    }
}

impl<T: Debug> Discipline<T> for Red<T> {
    fn enqueue(
        &mut self,
        now: Timestamp,
        room: Room<'_>,
        mut packet: Waiting<T>,
        log: &mut Log<T>,
    ) {
        self.update_mean(now, room);
        if !self.queue.has_room(now, room, packet.size()) {
            return log.drop_full(now, packet);
        }
        match self.base_probability() {
            None => self.count = None,
            Some(base) => {
                if self.picks(base) {
                    if base >= 1.0 || !self.config.ecn || !packet.header.is_ecn_capable() {
                        return log.drop_managed(now, packet);
                    }
                    log.mark(&mut packet);
                }
            }
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, now: Timestamp, _log: &mut Log<T>) -> Option<Waiting<T>> {
        let packet = self.queue.pop();
        if self.queue.len() == 0 {
            self.empty_since.get_or_insert(now);
        }
        packet
    }

    fn bytes(&self) -> DataSize {
        self.queue.bytes()
    }

    fn head_delay(&self, now: Timestamp) -> TimeDelta {
        self.queue.head_delay(now)
    }
}

#[cfg(test)]
mod tests {
    use weir::feedback::Ecn;

    use super::super::testing::{Bench, ms, packet};
    use super::*;
    use crate::seed::Seed;

    fn bench() -> Bench<Red<u32>> {
        Bench::new(Red::new(RedConfig::default(), Seed::new(1).stream("queue")))
    }

    fn with_mean(mean: f64) -> Red<u32> {
        Red { mean, ..bench().queue }
    }

    // [RED §4], [RED-GENTLE]
    #[test]
    fn the_probability_rises_from_min_to_max_and_then_to_one() {
        let table = [
            (4.999, None),
            (5.0, Some(0.0)),
            (10.0, Some(0.05)),
            (15.0, Some(0.1)),
            (22.5, Some(0.55)),
            (30.0, Some(1.0)),
            (99.0, Some(1.0)),
        ];
        for (mean, probability) in table {
            assert_eq!(with_mean(mean).base_probability(), probability, "{mean}");
        }
    }

    // [RED §4]
    #[test]
    fn the_mean_moves_by_a_five_hundredth_a_packet() {
        let mut bench = bench();
        bench.fill(ms(0), Ecn::NotEct, 3);
        // The first packet sampled an empty queue, the second one packet, the third two packets.
        assert!((bench.queue.mean - (0.002 * 0.998 + 0.002 * 2.0)).abs() < 1e-12);
    }

    // [RED §4]
    #[test]
    fn a_rest_counts_as_the_packets_that_could_have_been_sent() {
        let mut bench = bench();
        bench.fill(ms(0), Ecn::NotEct, 1);
        assert!(bench.dequeue(ms(0)).is_some());
        bench.queue.mean = 10.0;
        // At 10 ms per packet, 1 s counts as 100 samples of an empty queue.
        bench.enqueue(ms(1_000), packet(ms(1_000), Ecn::NotEct, 1));
        assert!((bench.queue.mean - 8.185_668).abs() < 1e-6, "{}", bench.queue.mean);
        assert_eq!(bench.signals(), 0);
    }

    // [RED §7] With p_a = p_b / (1 - count p_b) the gap is uniform from 1 to 1 / p_b.
    #[test]
    fn gaps_between_drops_are_uniform() {
        let mut red = with_mean(10.0);
        red.count = Some(0);
        let mut gaps = [0_u32; 21];
        let mut gap = 0;
        for _ in 0..200_000 {
            gap += 1;
            if red.picks(0.05) {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        let drops: u32 = gaps.iter().sum();
        let share = |gap: usize| f64::from(gaps[gap]) / f64::from(drops);
        assert!((1..=19).all(|gap| (share(gap) - 1.0 / 19.0).abs() < 0.01), "{gaps:?}");
    }

    #[test]
    fn marks_replace_drops_up_to_the_end_of_the_slope() {
        let outcome = |mean, ecn| {
            let mut bench = bench();
            bench.queue.empty_since = None;
            bench.queue.mean = mean;
            for n in 0..50 {
                bench.enqueue(ms(0), packet(ms(0), ecn, n));
            }
            (bench.log.marked > 0, bench.log.managed > 0)
        };
        assert_eq!(outcome(12.0, Ecn::Ect0), (true, false));
        assert_eq!(outcome(12.0, Ecn::NotEct), (false, true));
        assert_eq!(outcome(200.0, Ecn::Ect0), (false, true));
    }
}
