//! PIE: drops arriving packets with a probability set by a proportional-integral controller of the
//! queuing delay.
//!
//! Implements [RFC8033 §4] with these parts of [RFC8033 §5]: ECN, de-randomisation, and the limit
//! on steps of the probability. The queuing delay is the age of the packet at the head, measured by
//! time stamps [RFC8033 §4.3], so no departure rate is estimated. PIE is always active.

use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::fifo::Fifo;
use super::ticks::Ticks;
use super::{Discipline, Log, Room};
use crate::packet::Waiting;
use crate::seed::Stream;

/// `T_UPDATE`: time between two updates of the probability [RFC8033 §4.2].
const UPDATE_INTERVAL: TimeDelta = TimeDelta::from_millis(15);
/// `MAX_BURST`: how long a burst may fill a previously short queue without drops [RFC8033 §4.4].
const MAX_BURST: TimeDelta = TimeDelta::from_millis(150);
/// `alpha`, in Hz: weight of the deviation from the target [RFC8033 §4.2].
const ALPHA: f64 = 1.0 / 8.0;
/// `beta`, in Hz: weight of the change since the last update [RFC8033 §4.2].
const BETA: f64 = 1.0 + 1.0 / 4.0;
/// Below the first number of a row, a step of the probability is divided by the second. So the
/// relative change of small probabilities is similar to that of large ones [RFC8033 §4.2].
const TUNING: [(f64, f64); 6] =
    [(1e-6, 2_048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
/// From this probability on, a step is at most [`STEP_MAX`] [RFC8033 §5.5].
const STEP_CAP_FROM: f64 = 0.1;
const STEP_MAX: f64 = 0.02;
/// Factor on the probability at each update of an empty queue [RFC8033 §4.2].
const DECAY: f64 = 0.98;
/// Below this probability a queue with a small delay drops nothing [RFC8033 §4.1].
const SHORT_QUEUE_PROBABILITY: f64 = 0.2;
/// `MEAN_PKTSIZE`: with at most two of these in the queue nothing is dropped [RFC8033 §4.1]. The
/// value is our choice: media packets have 1200 B, and other packets are slightly larger or much
/// smaller.
const MEAN_PACKET: DataSize = DataSize::from_bytes(1_000);
/// `mark_ecnth`: from this probability on, ECN-capable packets are dropped too [RFC8033 §5.1].
const MARK_BELOW: f64 = 0.1;
/// Below the first sum of probabilities no packet is dropped. From the second one on, the next
/// packet is always dropped [RFC8033 §5.4].
const ACCUMULATED_LOW: f64 = 0.85;
const ACCUMULATED_HIGH: f64 = 8.5;

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PieConfig {
    /// `QDELAY_REF`: the queuing delay that the controller aims at [RFC8033 §4.2].
    ///
    /// [RFC8033 §4.2]: https://www.rfc-editor.org/rfc/rfc8033#section-4.2
    pub target: TimeDelta,
    /// Whether ECN-capable packets are marked instead of dropped while the probability is small.
    pub ecn: bool,
}

impl PieConfig {
    weir::with! {
        with_target: target: TimeDelta,
        with_ecn: ecn: bool,
    }
}

impl Default for PieConfig {
    fn default() -> Self {
        Self { target: TimeDelta::from_millis(15), ecn: true }
    }
}

/// A queue managed by PIE.
#[derive(Clone, Debug)]
pub(crate) struct Pie<T> {
    queue: Fifo<T>,
    updates: Ticks,
    control: Control,
}

/// State of the algorithm without the queue.
#[derive(Clone, Debug)]
struct Control {
    config: PieConfig,
    /// `drop_prob`: probability that an arriving packet is dropped.
    probability: f64,
    /// `accu_prob`: the sum of the probabilities since the last drop.
    accumulated: f64,
    /// `qdelay_old`: the queuing delay at the last update.
    last_delay: TimeDelta,
    /// `burst_allowance`: time left in which nothing is dropped.
    burst_allowance: TimeDelta,
    stream: Stream,
}

impl<T> Pie<T> {
    pub(crate) fn new(config: PieConfig, stream: Stream) -> Self {
        let control = Control {
            config,
            probability: 0.0,
            accumulated: 0.0,
            last_delay: TimeDelta::ZERO,
            burst_allowance: MAX_BURST,
            stream,
        };
        Self { queue: Fifo::new(), updates: Ticks::new(UPDATE_INTERVAL), control }
    }

    /// Runs the updates that were due by now. The queue has not changed since the last event.
    fn update_until(&mut self, now: Timestamp) {
        while let Some(tick) = self.updates.pass(now) {
            self.control.update(self.queue.head_delay(tick));
            if self.queue.len() == 0 && self.control.is_at_rest() {
                self.updates.skip(now);
            }
        }
    }
}

impl<T: Debug> Discipline<T> for Pie<T> {
    /// `enque` [RFC8033 §4.1]: drops, marks or enqueues an arriving packet.
    fn enqueue(
        &mut self,
        now: Timestamp,
        room: Room<'_>,
        mut packet: Waiting<T>,
        log: &mut Log<T>,
    ) {
        self.update_until(now);
        if !self.queue.has_room(now, room, packet.size()) {
            return log.drop_full(now, packet);
        }
        let control = &mut self.control;
        control.refresh_burst_allowance(self.queue.head_delay(now));
        if control.burst_allowance == TimeDelta::ZERO && control.drop_early(self.queue.bytes()) {
            if !control.may_mark() || !packet.header.is_ecn_capable() {
                return log.drop_managed(now, packet);
            }
            log.mark(&mut packet);
        }
        self.queue.push(packet);
    }

    fn dequeue(&mut self, now: Timestamp, _log: &mut Log<T>) -> Option<Waiting<T>> {
        self.update_until(now);
        self.queue.pop()
    }

    fn bytes(&self) -> DataSize {
        self.queue.bytes()
    }

    fn head_delay(&self, now: Timestamp) -> TimeDelta {
        self.queue.head_delay(now)
    }
}

impl Control {
    /// `status_update` [RFC8033 §4.2]: updates the probability from the present queuing delay.
    fn update(&mut self, delay: TimeDelta) {
        let deviation = (delay - self.config.target).as_secs_f64();
        let change = (delay - self.last_delay).as_secs_f64();
        let mut step = (ALPHA * deviation + BETA * change) / tuning(self.probability);
        if self.probability >= STEP_CAP_FROM {
            step = step.min(STEP_MAX);
        }
        self.probability += step;
        if delay == TimeDelta::ZERO && self.last_delay == TimeDelta::ZERO {
            self.probability *= DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.last_delay = delay;
        self.burst_allowance = (self.burst_allowance - UPDATE_INTERVAL).max(TimeDelta::ZERO);
    }

    /// Whether further updates of an empty queue would have no effect. The burst allowance still
    /// decreases, but the next packet resets it.
    fn is_at_rest(&self) -> bool {
        self.probability == 0.0 && self.last_delay == TimeDelta::ZERO
    }

    /// Allows the next burst once congestion has ended [RFC8033 §4.4].
    fn refresh_burst_allowance(&mut self, delay: TimeDelta) {
        let half = self.config.target / 2;
        if self.probability == 0.0 && delay < half && self.last_delay < half {
            self.burst_allowance = MAX_BURST;
        }
    }

    /// `drop_early` [RFC8033 §4.1] with de-randomisation [RFC8033 §5.4], which avoids both drops in
    /// quick succession and long times without a drop.
    fn drop_early(&mut self, queued: DataSize) -> bool {
        let half = self.config.target / 2;
        let short = self.last_delay < half && self.probability < SHORT_QUEUE_PROBABILITY;
        if short || queued.as_bytes() <= 2 * MEAN_PACKET.as_bytes() {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < ACCUMULATED_LOW {
            return false;
        }
        let drop = self.accumulated >= ACCUMULATED_HIGH || self.stream.chance(self.probability);
        if drop {
            self.accumulated = 0.0;
        }
        drop
    }

    /// Whether the next signal may be a mark instead of a drop [RFC8033 §5.1].
    fn may_mark(&self) -> bool {
        self.config.ecn && self.probability < MARK_BELOW
    }
}

/// Divisor of a step at a probability [RFC8033 §4.2].
fn tuning(probability: f64) -> f64 {
    TUNING.iter().find(|row| probability < row.0).map_or(1.0, |row| row.1)
}

#[cfg(test)]
mod tests {
    use weir::feedback::Ecn;

    use super::super::testing::{Bench, ms, packet};
    use super::*;
    use crate::seed::Seed;

    fn bench() -> Bench<Pie<u32>> {
        Bench::new(Pie::new(PieConfig::default(), Seed::new(1).stream("queue")))
    }

    /// A controller with this probability, and this delay at its last update.
    fn control(probability: f64, last_delay_ms: i64) -> Control {
        let last_delay = TimeDelta::from_millis(last_delay_ms);
        Control { probability, last_delay, ..bench().queue.control }
    }

    /// The probability after an update.
    fn updated(mut control: Control, delay_ms: i64) -> f64 {
        control.update(TimeDelta::from_millis(delay_ms));
        control.probability
    }

    // [RFC8033 §4.2]
    #[test]
    fn a_step_weighs_deviation_and_change() {
        // 1/8 * (35 - 15 ms) + 5/4 * (35 - 31 ms) = 7.5e-3, divided by 2 at a probability of 0.05.
        assert!((updated(control(0.05, 31), 35) - 0.053_75).abs() < 1e-12);
        // At the target and with a steady delay, nothing changes.
        assert_eq!(updated(control(0.05, 15), 15), 0.05);
        // Below the target the probability decreases: 1/8 * -10 ms + 5/4 * -5 ms = -7.5e-3.
        assert!((updated(control(0.05, 10), 5) - 0.046_25).abs() < 1e-12);
    }

    // [RFC8033 §4.2]
    #[test]
    fn a_step_is_tuned_by_the_probability() {
        let table = [
            (0.0, 2_048.0),
            (9.9e-7, 2_048.0),
            (1e-6, 512.0),
            (9.9e-6, 512.0),
            (1e-5, 128.0),
            (1e-4, 32.0),
            (1e-3, 8.0),
            (1e-2, 2.0),
            (9.9e-2, 2.0),
            (1e-1, 1.0),
            (1.0, 1.0),
        ];
        for (probability, divisor) in table {
            assert_eq!(tuning(probability), divisor, "{probability}");
        }
    }

    // [RFC8033 §5.5]
    #[test]
    fn a_great_probability_grows_by_two_hundredths_at_most() {
        assert!((updated(control(0.1, 0), 300) - 0.12).abs() < 1e-12);
        // Decreases are not limited: 1/8 * -15 ms + 5/4 * -300 ms = -0.376875.
        assert!((updated(control(0.5, 300), 0) - 0.123_125).abs() < 1e-12);
    }

    // [RFC8033 §4.2]
    #[test]
    fn an_empty_queue_lets_the_probability_decay_to_zero() {
        // (0.5 - 1/8 * 15 ms) * 0.98
        assert!((updated(control(0.5, 0), 0) - 0.488_162_5).abs() < 1e-12);
        assert_eq!(updated(control(1e-7, 0), 0), 0.0);
    }

    // [RFC8033 §4.2]
    #[test]
    fn the_probability_decays_with_each_15_ms_that_nothing_waits() {
        let mut bench = bench();
        bench.queue.control.probability = 0.5;
        bench.queue.control.last_delay = TimeDelta::from_millis(2);
        assert!(bench.dequeue(ms(45)).is_none());
        // Each of three updates adds 1/8 * -15 ms. The first also adds 5/4 * -2 ms and does not
        // decay yet.
        let expect = ((0.495_625 - 0.001_875) * 0.98 - 0.001_875) * 0.98;
        assert!((bench.queue.control.probability - expect).abs() < 1e-12);
    }

    // [RFC8033 §4.4]
    #[test]
    fn a_burst_of_150_ms_passes_and_what_follows_does_not() {
        let mut bench = bench();
        // 20 packets at once, then one for each that leaves: the queuing delay settles at 200 ms.
        bench.fill(ms(0), Ecn::NotEct, 20);
        let mut first_drop = None;
        for now in (0..2_000).step_by(10) {
            bench.dequeue(ms(now));
            while bench.queue.queue.len() < 20 && first_drop.is_none() {
                bench.enqueue(ms(now), packet(ms(now), Ecn::NotEct, 0));
                first_drop = (bench.signals() > 0).then_some(now);
            }
        }
        // The allowance lasts until 150 ms. The delay reaches 200 ms then. The tuning makes the
        // probability grow slowly from zero, and the sum must reach 0.85.
        assert!(first_drop.is_some_and(|at| at > 150), "{first_drop:?}");
        assert!(bench.queue.control.burst_allowance == TimeDelta::ZERO);
    }

    // [RFC8033 §4.2]
    #[test]
    fn an_update_takes_its_15_ms_from_the_burst_allowance() {
        let mut control = control(0.0, 30);
        let left = [0; 11].map(|_| {
            control.update(TimeDelta::from_millis(30));
            control.burst_allowance.as_millis()
        });
        assert_eq!(left, [135, 120, 105, 90, 75, 60, 45, 30, 15, 0, 0]);
    }

    // [RFC8033 §4.4]
    #[test]
    fn the_allowance_comes_back_when_congestion_has_gone() {
        let refreshed = |probability, last_delay, delay_ms| {
            let mut control = control(probability, last_delay);
            control.burst_allowance = TimeDelta::ZERO;
            control.refresh_burst_allowance(TimeDelta::from_millis(delay_ms));
            control.burst_allowance == MAX_BURST
        };
        assert!(refreshed(0.0, 7, 7));
        assert!(!refreshed(1e-9, 7, 7));
        assert!(!refreshed(0.0, 8, 7));
        assert!(!refreshed(0.0, 7, 8));
    }

    // [RFC8033 §4.1]
    #[test]
    fn a_short_queue_drops_nothing() {
        let drops = |mut control: Control, bytes| {
            (0..100).any(|_| control.drop_early(DataSize::from_bytes(bytes)))
        };
        assert!(!drops(control(0.19, 7), 100_000), "half the target at the last update");
        assert!(drops(control(0.2, 7), 100_000), "but not with a high probability");
        assert!(drops(control(0.19, 8), 100_000));
        assert!(!drops(control(1.0, 100), 2_000), "two packets of mean size");
        assert!(drops(control(1.0, 100), 2_001));
    }

    // [RFC8033 §5.4]
    #[test]
    fn drops_are_neither_closer_nor_further_apart_than_the_sums_allow() {
        let mut control = control(0.05, 30);
        let mut gaps = Vec::new();
        let mut gap = 0;
        while gaps.len() < 10_000 {
            gap += 1;
            if control.drop_early(DataSize::from_bytes(100_000)) {
                gaps.push(gap);
                gap = 0;
            }
        }
        // 0.85 / 0.05 = 17; 8.5 / 0.05 = 170, or one more by rounding.
        assert_eq!(gaps.iter().min(), Some(&17));
        assert!(gaps.iter().all(|&gap| gap <= 171));
        // 16 packets that cannot be dropped, and then 1 / 0.05 on average.
        let mean = f64::from(gaps.iter().sum::<u32>()) / 10_000.0;
        assert!((mean - 36.0).abs() < 0.6, "{mean}");
    }

    // [RFC8033 §5.1]
    #[test]
    fn packets_are_marked_below_a_probability_of_a_tenth_and_dropped_above() {
        let outcome = |probability, ecn| {
            let mut bench = bench();
            bench.fill(ms(0), ecn, 10);
            bench.queue.control.probability = probability;
            bench.queue.control.last_delay = TimeDelta::from_millis(30);
            bench.queue.control.burst_allowance = TimeDelta::ZERO;
            bench.queue.control.accumulated = ACCUMULATED_HIGH;
            bench.enqueue(ms(1), packet(ms(1), ecn, 10));
            (bench.log.marked, bench.log.managed)
        };
        assert_eq!(outcome(0.099, Ecn::Ect0), (1, 0));
        assert_eq!(outcome(0.099, Ecn::Ect1), (1, 0));
        assert_eq!(outcome(0.1, Ecn::Ect0), (0, 1));
        assert_eq!(outcome(0.099, Ecn::NotEct), (0, 1));
    }

    #[test]
    fn updates_nobody_waits_for_are_made_up_for_and_a_rest_costs_nothing() {
        let mut bench = bench();
        bench.fill(ms(0), Ecn::NotEct, 100);
        // Nothing leaves for 1 s: 66 updates see an ever older head.
        bench.dequeue(ms(1_000));
        assert!(bench.queue.control.probability > 0.5);
        assert_eq!(bench.queue.control.last_delay, TimeDelta::from_millis(990));
        while bench.dequeue(ms(1_001)).is_some() {}
        bench.dequeue(Timestamp::from_secs(1_000_000_000));
        assert!(bench.queue.control.is_at_rest());
    }
}
