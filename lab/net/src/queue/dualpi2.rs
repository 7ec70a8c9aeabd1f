//! DualPI2: a short queue for scalable senders beside a queue for classic ones. The signals of both
//! are coupled so that the two kinds of senders share the link fairly.
//!
//! Implements [RFC9332 §A] with the overload handling of [RFC9332 §A.2]. Signals are not random:
//! each queue accumulates its probability and signals when the sum exceeds 1 [RFC9332 §A.1].
//!
//! ```text
//! ECT(1), CE -> L queue: mark by max(ramp(delay), k p') --+
//!                          p' <- PI(delay)                +-> weighted round robin, L first
//! others     -> C queue: drop or mark by p'^2 ------------+
//! ```

use std::fmt::Debug;

use weir::feedback::Ecn;
use weir::units::{DataSize, TimeDelta, Timestamp};

use super::fifo::Fifo;
use super::ticks::Ticks;
use super::{Discipline, Log, Room};
use crate::packet::Waiting;

/// `RTT_max`: largest round-trip time, in seconds, for which the loop is stable [RFC9332 §A.1].
const RTT_MAX: f64 = 0.1;
/// `Tupdate`: maximum time between two updates [RFC9332 §A.1].
const UPDATE_INTERVAL_MAX: TimeDelta = TimeDelta::from_micros(33_333);
/// `beta`, in Hz: weight of the change since the last update [RFC9332 §A.1].
const BETA: f64 = 0.3 / RTT_MAX;
/// `k`: scalable senders get k times the square root of the classic probability [RFC9332 §2.1].
const COUPLING: f64 = 2.0;
/// `p_Cmax`: from this probability on, ECN-capable classic packets are dropped too [RFC9332 §A.2].
const CLASSIC_MAX: f64 = 1.0 / (COUPLING * COUPLING);
/// `p_Lmax`: from this coupled probability on, the link counts as overloaded [RFC9332 §A.2].
const L4S_MAX: f64 = 1.0;
/// `range`: increase of the delay from no marks to marks on all packets [RFC9332 §A.1].
const RAMP: TimeDelta = TimeDelta::from_micros(400);
/// `Th_len`: with at most this many packets in the L queue, the ramp marks none [RFC9332 §A.1].
const RAMP_PACKETS: usize = 1;
/// Bytes of the L queue that are sent per byte of the C queue while both wait [RFC9332 §A.1].
const L4S_WEIGHT: i64 = 15;

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DualPi2Config {
    /// `target`: the queuing delay of classic packets that the controller aims at [RFC9332 §A.1].
    ///
    /// [RFC9332 §A.1]: https://www.rfc-editor.org/rfc/rfc9332#appendix-A.1
    pub target: TimeDelta,
    /// `minTh`: queuing delay above which L4S packets are marked [RFC9332 §A.1].
    ///
    /// [RFC9332 §A.1]: https://www.rfc-editor.org/rfc/rfc9332#appendix-A.1
    pub l4s_threshold: TimeDelta,
}

impl DualPi2Config {
    weir::with! {
        with_target: target: TimeDelta,
        with_l4s_threshold: l4s_threshold: TimeDelta,
    }
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self { target: TimeDelta::from_millis(15), l4s_threshold: TimeDelta::from_micros(800) }
    }
}

/// A DualPI2 queue: the L queue, the C queue, and their shared controller.
#[derive(Clone, Debug)]
pub(crate) struct DualPi2<T> {
    config: DualPi2Config,
    l4s: Fifo<T>,
    classic: Fifo<T>,
    scheduler: Scheduler,
    updates: Ticks,
    control: Control,
    /// Probability accumulated since the last signal, for each queue.
    l4s_signals: Accumulator,
    classic_signals: Accumulator,
}

/// The proportional-integral controller of the queuing delay.
#[derive(Clone, Debug)]
struct Control {
    target: TimeDelta,
    /// `alpha`, in Hz: weight of the deviation from the target.
    alpha: f64,
    /// `p'`: base probability, from which those of both queues are computed.
    base: f64,
    /// `prevq`: the queuing delay at the last update.
    last_delay: TimeDelta,
}

/// `recur`: signals as often as the probability requires, evenly spread [RFC9332 §A.1].
#[derive(Clone, Debug, Default)]
struct Accumulator(f64);

/// Weighted scheduler: the L queue is served first, but the C queue gets its share.
#[derive(Clone, Debug, Default)]
struct Scheduler {
    /// Bytes sent from L while C waited, minus the price of the bytes sent from C.
    credit: i64,
}

impl<T> DualPi2<T> {
    pub(crate) fn new(config: DualPi2Config) -> Self {
        let interval = config.target.min(UPDATE_INTERVAL_MAX);
        Self {
            config,
            l4s: Fifo::new(),
            classic: Fifo::new(),
            scheduler: Scheduler::default(),
            updates: Ticks::new(interval),
            control: Control {
                target: config.target,
                alpha: 0.1 * interval.as_secs_f64() / (RTT_MAX * RTT_MAX),
                base: 0.0,
                last_delay: TimeDelta::ZERO,
            },
            l4s_signals: Accumulator::default(),
            classic_signals: Accumulator::default(),
        }
    }

    /// Runs the updates that were due by now. The queues have not changed since the last event.
    fn update_until(&mut self, now: Timestamp) {
        while let Some(tick) = self.updates.pass(now) {
            // The longer delay of the two, because L packets alone can overload the link too
            // [RFC9332 §A.2].
            self.control.update(self.l4s.head_delay(tick).max(self.classic.head_delay(tick)));
            if self.is_empty() && self.control.is_at_rest() {
                self.updates.skip(now);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.l4s.len() + self.classic.len() == 0
    }

    /// Decides on the L packet at the head.
    fn signal_l4s(&mut self, now: Timestamp, packet: &Waiting<T>, queued: usize) -> Signal {
        let coupled = self.control.coupled();
        if coupled < L4S_MAX {
            let ramp = if queued > RAMP_PACKETS { self.ramp(now - packet.since) } else { 0.0 };
            return Signal::mark_if(self.l4s_signals.fires(ramp.max(coupled)));
        }
        // In overload, marks alone do not slow the senders down enough [RFC9332 §A.2].
        if self.l4s_signals.fires(self.control.classic()) {
            return Signal::Drop;
        }
        Signal::mark_if(self.l4s_signals.fires(coupled))
    }

    /// `laqm`: mark probability at a queuing delay of the L queue [RFC9332 §A.1].
    fn ramp(&self, delay: TimeDelta) -> f64 {
        ((delay - self.config.l4s_threshold) / RAMP).clamp(0.0, 1.0)
    }

    /// Decides on the C packet at the head.
    fn signal_classic(&mut self, packet: &Waiting<T>) -> Signal {
        let probability = self.control.classic();
        if !self.classic_signals.fires(probability) {
            Signal::None
        } else if packet.header.is_ecn_capable() && probability < CLASSIC_MAX {
            Signal::Mark
        } else {
            Signal::Drop
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    Mark,
    Drop,
}

impl Signal {
    fn mark_if(fires: bool) -> Self {
        if fires { Self::Mark } else { Self::None }
    }
}

impl<T: Debug> Discipline<T> for DualPi2<T> {
    /// `dualpi2_enqueue` [RFC9332 §A.1]: selects the queue by the ECN bits.
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>) {
        self.update_until(now);
        let packets = self.l4s.len() + self.classic.len() + 1;
        if !room.holds(now, self.bytes() + packet.size(), packets) {
            return log.drop_full(now, packet);
        }
        match packet.header.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(packet),
        }
    }

    /// `dualpi2_dequeue` [RFC9332 §A.2]: signals are decided when a packet leaves.
    fn dequeue(&mut self, now: Timestamp, log: &mut Log<T>) -> Option<Waiting<T>> {
        self.update_until(now);
        while !self.is_empty() {
            let queued = self.l4s.len();
            let (packet, signal) = if self.scheduler.selects_l4s(&self.l4s, &self.classic) {
                let packet = self.l4s.pop()?;
                let signal = self.signal_l4s(now, &packet, queued);
                (packet, signal)
            } else {
                let packet = self.classic.pop()?;
                let signal = self.signal_classic(&packet);
                (packet, signal)
            };
            let mut packet = packet;
            match signal {
                Signal::Drop => {
                    log.drop_managed(now, packet);
                    continue;
                }
                Signal::Mark => log.mark(&mut packet),
                Signal::None => {}
            }
            return Some(packet);
        }
        None
    }

    fn bytes(&self) -> DataSize {
        self.l4s.bytes() + self.classic.bytes()
    }

    fn head_delay(&self, now: Timestamp) -> TimeDelta {
        self.l4s.head_delay(now).max(self.classic.head_delay(now))
    }
}

impl Control {
    /// `dualpi2_update` [RFC9332 §A.1]: updates the base probability.
    fn update(&mut self, delay: TimeDelta) {
        let deviation = (delay - self.target).as_secs_f64();
        let change = (delay - self.last_delay).as_secs_f64();
        self.base = (self.base + self.alpha * deviation + BETA * change).clamp(0.0, 1.0);
        self.last_delay = delay;
    }

    /// `p_CL`: mark probability of L packets that follows from the controller.
    fn coupled(&self) -> f64 {
        (COUPLING * self.base).min(L4S_MAX)
    }

    /// `p_C`: drop or mark probability of C packets.
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// Whether further updates of empty queues would change nothing.
    fn is_at_rest(&self) -> bool {
        self.base == 0.0 && self.last_delay == TimeDelta::ZERO
    }
}

impl Accumulator {
    fn fires(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let fires = self.0 > 1.0;
        if fires {
            self.0 -= 1.0;
        }
        fires
    }
}

impl Scheduler {
    fn selects_l4s<T>(&mut self, l4s: &Fifo<T>, classic: &Fifo<T>) -> bool {
        let (Some(l4s), Some(classic)) = (l4s.head_size(), classic.head_size()) else {
            // Credit counts only while both queues wait.
            self.credit = 0;
            return l4s.len() > 0;
        };
        let price = L4S_WEIGHT * classic.as_bytes().cast_signed();
        let is_l4s = self.credit < price;
        self.credit += if is_l4s { l4s.as_bytes().cast_signed() } else { -price };
        is_l4s
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms, packet};
    use super::*;
    use crate::queue::QueueLimit;

    fn bench() -> Bench<DualPi2<u32>> {
        Bench::new(DualPi2::new(DualPi2Config::default()))
    }

    /// A queue with a base probability that no update changes, because none is due at 0 ms.
    fn with_base(base: f64) -> Bench<DualPi2<u32>> {
        let mut bench = bench();
        bench.queue.control.base = base;
        bench
    }

    /// Marks and drops among `count` packets of one kind that do not wait.
    fn signals(base: f64, ecn: Ecn, count: u32) -> (u64, u64) {
        let mut bench = with_base(base);
        bench.fill(ms(0), ecn, count);
        while bench.dequeue(ms(0)).is_some() {}
        (bench.log.marked, bench.log.managed)
    }

    // [RFC9332 §A.1]
    #[test]
    fn the_gains_are_those_of_the_default_parameters() {
        let mut control = bench().queue.control;
        assert!((control.alpha - 0.15).abs() < 1e-12 && (BETA - 3.0).abs() < 1e-12);
        // 0.15 * (40 - 15 ms) + 3 * 40 ms
        control.update(TimeDelta::from_millis(40));
        assert!((control.base - 0.123_75).abs() < 1e-12);
        // At the target: 3 * -25 ms
        control.update(TimeDelta::from_millis(15));
        assert!((control.base - 0.048_75).abs() < 1e-12);
        control.update(TimeDelta::ZERO);
        control.update(TimeDelta::ZERO);
        assert_eq!(control.base, 0.0);
        assert!(control.is_at_rest());
    }

    // [RFC9332 §2.1]
    #[test]
    fn l4s_packets_are_marked_k_times_the_root_of_the_classic_probability() {
        // The first signal comes when the sum exceeds 1, so there is one signal fewer than the
        // share.
        assert_eq!(signals(0.125, Ecn::Ect1, 1_024), (255, 0), "2 * 1/8");
        assert_eq!(signals(0.125, Ecn::Ect0, 1_024), (15, 0), "1/8 ^ 2");
        assert_eq!(signals(0.125, Ecn::NotEct, 1_024), (0, 15), "and dropped, if not ECN-capable");
    }

    // [RFC9332 §A.2]
    #[test]
    fn in_overload_both_queues_drop_by_the_classic_probability() {
        assert_eq!(signals(0.499, Ecn::Ect0, 1_000).1, 0, "below p_Cmax");
        assert_eq!(signals(0.5, Ecn::Ect0, 1_000), (0, 249), "0.5 ^ 2, at p_Cmax");
        assert_eq!(signals(0.499, Ecn::Ect1, 1_000).1, 0, "below p_Lmax");
        assert_eq!(with_base(0.9).queue.control.coupled(), 1.0);
        let (marked, dropped) = signals(0.5, Ecn::Ect1, 1_000);
        assert!((200..=250).contains(&dropped), "{dropped}");
        assert!(marked + dropped >= 999, "all that are left are marked: {marked}");
    }

    // [RFC9332 §A.1]
    #[test]
    fn the_ramp_goes_from_no_marks_to_all_in_400_us() {
        let queue = bench().queue;
        let ramp = |us| queue.ramp(TimeDelta::from_micros(us));
        assert_eq!([0, 800, 900, 1_000, 1_200, 9_000].map(ramp), [0.0, 0.0, 0.25, 0.5, 1.0, 1.0]);
    }

    // [RFC9332 §A.1]
    #[test]
    fn an_l4s_packet_that_waited_alone_is_not_marked() {
        let waited = |count| {
            let mut bench = bench();
            bench.fill(ms(0), Ecn::Ect1, count);
            while bench.dequeue(ms(5)).is_some() {}
            bench.log.marked
        };
        // The first mark comes once the sum exceeds 1. The last packet has none behind it.
        assert_eq!([1, 2, 3, 10].map(waited), [0, 0, 1, 8]);
    }

    // [RFC9332 §A.1]
    #[test]
    fn l4s_goes_first_and_classic_gets_a_sixteenth_while_both_wait() {
        let mut bench = bench();
        bench.fill(ms(0), Ecn::Ect0, 100);
        bench.fill(ms(0), Ecn::Ect1, 320);
        let order: Vec<bool> =
            (0..320).map(|_| bench.dequeue(ms(0)).unwrap().header.ecn == Ecn::Ect0).collect();
        assert!(order[..15].iter().all(|&classic| !classic));
        assert!(order[15]);
        assert_eq!(order.iter().filter(|&&classic| classic).count(), 20);
    }

    #[test]
    fn marked_packets_and_ect_1_are_l4s_and_the_others_classic() {
        let mut bench = bench();
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            bench.enqueue(ms(0), packet(ms(0), ecn, 0));
        }
        assert_eq!((bench.queue.l4s.len(), bench.queue.classic.len()), (2, 2));
    }

    // [RFC9332 §A.1]
    #[test]
    fn a_classic_queue_that_only_grows_older_raises_the_probability() {
        let mut bench = bench();
        bench.fill(ms(0), Ecn::Ect0, 1_000);
        for now in (10..=200).step_by(10) {
            assert!(bench.dequeue(ms(now)).is_some());
        }
        // The last of 13 updates saw a delay of 195 ms: 3 * 195 ms, and 0.15 * (0 + 15 + ... + 180
        // ms).
        assert!((bench.queue.control.base - 0.760_5).abs() < 1e-12);
        assert!(bench.log.managed > 0);
    }

    // [RFC9332 §A.1]
    #[test]
    fn the_probability_falls_with_each_update_while_nothing_waits() {
        let mut bench = with_base(0.5);
        assert!(bench.dequeue(ms(1_000)).is_none());
        // 66 updates of 0.15 * -15 ms.
        assert!((bench.queue.control.base - 0.351_5).abs() < 1e-12);
        assert!(bench.dequeue(Timestamp::from_secs(1_000_000_000)).is_none());
        assert!(bench.queue.control.is_at_rest());
    }

    // [RFC9332 §A.1]
    #[test]
    fn both_queues_share_one_limit() {
        for limit in [QueueLimit::Packets(4), QueueLimit::Bytes(DataSize::from_bytes(6_000))] {
            let mut bench = Bench::new(bench().queue).with_limit(limit);
            bench.fill(ms(0), Ecn::Ect0, 3);
            bench.fill(ms(0), Ecn::Ect1, 3);
            assert_eq!((bench.queue.classic.len(), bench.queue.l4s.len()), (3, 1), "{limit:?}");
            assert_eq!((bench.dropped(), bench.log.full), (vec![1, 2], 2));
        }
    }
}
