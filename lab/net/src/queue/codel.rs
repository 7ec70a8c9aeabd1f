//! CoDel: drops packets at the head while even the smallest queuing delay stays above a target.
//!
//! Implements [RFC8289 §5]. Marks ECN-capable packets instead of dropping them [RFC3168 §5].

use std::fmt::Debug;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::fifo::Fifo;
use super::{Discipline, Log, Room};
use crate::packet::Waiting;

/// `maxpacket`: with at most this many bytes left, CoDel never drops [RFC8289 §5.6].
const LARGEST_PACKET: DataSize = DataSize::from_bytes(1_500);
/// A dropping state that begins within this many intervals of the last one continues with its drop
/// rate [RFC8289 §5.5].
const REENTRY_INTERVALS: i64 = 16;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CoDelConfig {
    /// `TARGET`: acceptable minimum queuing delay [RFC8289 §4.3].
    ///
    /// [RFC8289 §4.3]: https://www.rfc-editor.org/rfc/rfc8289#section-4.3
    pub target: TimeDelta,
    /// `INTERVAL`: how long the delay must stay above the target before a drop. About the
    /// round-trip time of most flows [RFC8289 §4.2].
    ///
    /// [RFC8289 §4.2]: https://www.rfc-editor.org/rfc/rfc8289#section-4.2
    pub interval: TimeDelta,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl CoDelConfig {
    weir::with! {
        with_target: target: TimeDelta,
        with_interval: interval: TimeDelta,
        with_ecn: ecn: bool,
    }
}

impl Default for CoDelConfig {
    fn default() -> Self {
        Self { target: TimeDelta::from_millis(5), interval: TimeDelta::from_millis(100), ecn: true }
    }
}

/// A queue managed by CoDel.
#[derive(Clone, Debug)]
pub(crate) struct CoDel<T> {
    queue: Fifo<T>,
    control: Control,
}

/// The drop decisions of CoDel, based on the packets at the head of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    config: CoDelConfig,
    /// `first_above_time`: when the delay will have been above the target for one interval.
    first_above: Option<Timestamp>,
    /// `drop_next`: time of the next drop, or of the drop that would have followed the last
    /// dropping state.
    drop_next: Timestamp,
    /// `count`: drops since the dropping state was entered.
    count: u32,
    /// `lastcount`: value to which `count` was set when the dropping state was entered.
    last_count: u32,
    dropping: bool,
}

/// `dodequeue_result`: the packet at the head, and whether it may be dropped.
struct Head<T> {
    packet: Waiting<T>,
    ok_to_drop: bool,
}

impl<T> CoDel<T> {
    pub(crate) fn new(config: CoDelConfig) -> Self {
        Self { queue: Fifo::new(), control: Control::new(config) }
    }
}

impl<T: Debug> Discipline<T> for CoDel<T> {
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>) {
        if self.queue.has_room(now, room, packet.size()) {
            self.queue.push(packet);
        } else {
            log.drop_full(now, packet);
        }
    }

    fn dequeue(&mut self, now: Timestamp, log: &mut Log<T>) -> Option<Waiting<T>> {
        self.control.dequeue(now, &mut self.queue, log)
    }

    fn bytes(&self) -> DataSize {
        self.queue.bytes()
    }

    fn head_delay(&self, now: Timestamp) -> TimeDelta {
        self.queue.head_delay(now)
    }
}

impl Control {
    pub(crate) fn new(config: CoDelConfig) -> Self {
        Self {
            config,
            first_above: None,
            drop_next: Timestamp::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// `deque` [RFC8289 §5.5]: returns the next packet after dropping or marking those that are
    /// due.
    pub(crate) fn dequeue<T>(
        &mut self,
        now: Timestamp,
        queue: &mut Fifo<T>,
        log: &mut Log<T>,
    ) -> Option<Waiting<T>> {
        let mut head = self.pop(now, queue);
        let ok_to_drop = head.as_ref().is_some_and(|head| head.ok_to_drop);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let marked;
                (head, marked) = self.signal(now, head?, queue, log);
                self.dropping = head.as_ref().is_some_and(|head| head.ok_to_drop);
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next);
                }
                if marked {
                    break;
                }
            }
        } else if ok_to_drop {
            head = self.signal(now, head?, queue, log).0;
            self.enter_dropping(now);
        }
        head.map(|head| head.packet)
    }

    /// `dodequeue`: returns the next packet, and whether the delay has been above the target for an
    /// interval [RFC8289 §5.6].
    fn pop<T>(&mut self, now: Timestamp, queue: &mut Fifo<T>) -> Option<Head<T>> {
        let Some(packet) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let sojourn = now - packet.since;
        if sojourn < self.config.target || queue.bytes() <= LARGEST_PACKET {
            self.first_above = None;
            return Some(Head { packet, ok_to_drop: false });
        }
        let first_above = *self.first_above.get_or_insert(now + self.config.interval);
        Some(Head { packet, ok_to_drop: now >= first_above })
    }

    /// Signals congestion to the sender of the packet at the head. A marked packet stays at the
    /// head; a dropped one is replaced by the next. The flag says whether the packet was marked.
    fn signal<T>(
        &mut self,
        now: Timestamp,
        mut head: Head<T>,
        queue: &mut Fifo<T>,
        log: &mut Log<T>,
    ) -> (Option<Head<T>>, bool) {
        if self.config.ecn && head.packet.header.is_ecn_capable() {
            log.mark(&mut head.packet);
            return (Some(head), true);
        }
        log.drop_managed(now, head.packet);
        (self.pop(now, queue), false)
    }

    /// Enters the dropping state. If the last one ended recently, continues with its drop rate,
    /// because that rate controlled the queue then and will probably do so again [RFC8289 §5.5].
    fn enter_dropping(&mut self, now: Timestamp) {
        let drops = self.count - self.last_count;
        let recent = now - self.drop_next < self.config.interval * REENTRY_INTERVALS;
        self.dropping = true;
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }

    /// `control_law`: the time between drops decreases with the square root of their number, so
    /// that the throughput of TCP decreases linearly [RFC8289 §5.6].
    fn control_law(&self, from: Timestamp) -> Timestamp {
        from + self.config.interval * (1.0 / libm::sqrt(f64::from(self.count)))
    }
}

#[cfg(test)]
mod tests {
    use weir::feedback::Ecn;

    use super::super::testing::{Bench, ms, packet};
    use super::*;
    use crate::queue::QueueLimit;

    fn bench(config: CoDelConfig) -> Bench<CoDel<u32>> {
        Bench::new(CoDel::new(config))
    }

    /// Times at which packets are dropped or marked while one packet leaves every 10 ms.
    fn signals(bench: &mut Bench<CoDel<u32>>, from: i64, until: i64) -> Vec<i64> {
        let mut times = Vec::new();
        for now in (from..until).step_by(10) {
            let before = bench.signals();
            assert!(bench.dequeue(ms(now)).is_some());
            times.extend((before..bench.signals()).map(|_| now));
        }
        times
    }

    fn empty(bench: &mut Bench<CoDel<u32>>, now: i64) {
        while bench.dequeue(ms(now)).is_some() {}
    }

    // At 110 ms the delay has been above the target for an interval. The gaps are then 100 ms /
    // sqrt(1, 2, 3, ...): 210, 280.7, 338.4, 388.4, 433.2, 474.0, 511.8, 547.1 ms. Each drop
    // happens at the next packet.
    const SCHEDULE: [i64; 9] = [110, 210, 290, 340, 390, 440, 480, 520, 550];

    // [RFC8289 §5.6]
    #[test]
    fn drops_come_closer_by_the_square_root_of_their_number() {
        let mut bench = bench(CoDelConfig::default());
        bench.fill(ms(0), Ecn::NotEct, 1_000);
        assert_eq!(signals(&mut bench, 10, 560), SCHEDULE);
        assert_eq!((bench.log.managed, bench.log.marked), (9, 0));
    }

    #[test]
    fn packets_that_can_be_marked_are_marked_on_the_same_schedule_and_go_out() {
        let mut bench = bench(CoDelConfig::default());
        bench.fill(ms(0), Ecn::Ect0, 1_000);
        assert_eq!(signals(&mut bench, 10, 560), SCHEDULE);
        assert_eq!((bench.log.managed, bench.log.marked), (0, 9));
        assert_eq!(bench.queue.bytes(), DataSize::from_bytes((1_000 - 55) * 1_500));
    }

    #[test]
    fn without_ecn_packets_that_could_be_marked_are_dropped() {
        let mut bench = bench(CoDelConfig { ecn: false, ..CoDelConfig::default() });
        bench.fill(ms(0), Ecn::Ect0, 1_000);
        assert_eq!(signals(&mut bench, 10, 560), SCHEDULE);
        assert_eq!((bench.log.managed, bench.log.marked), (9, 0));
    }

    // [RFC8289 §5.5]
    #[test]
    fn a_dropping_state_soon_after_the_last_takes_up_its_rate() {
        let mut bench = bench(CoDelConfig::default());
        bench.fill(ms(0), Ecn::NotEct, 70);
        assert_eq!(signals(&mut bench, 10, 520), SCHEDULE[..7]);
        empty(&mut bench, 515);
        bench.fill(ms(530), Ecn::NotEct, 1_000);
        // At 640 ms the delay has been above the target for an interval. The count had risen from 1
        // to 8, so it continues at 7: the next drops come after 100 / sqrt(7) = 37.8 ms, then 35.4,
        // then 33.3.
        assert_eq!(signals(&mut bench, 540, 760), [640, 680, 720, 750]);
    }

    // [RFC8289 §5.5]
    #[test]
    fn a_dropping_state_long_after_the_last_begins_anew() {
        let mut bench = bench(CoDelConfig::default());
        bench.fill(ms(0), Ecn::NotEct, 70);
        assert_eq!(signals(&mut bench, 10, 520), SCHEDULE[..7]);
        empty(&mut bench, 515);
        // The next drop would have been at 511.8 ms; 16 intervals later is 2111.8 ms.
        bench.fill(ms(2_200), Ecn::NotEct, 1_000);
        assert_eq!(signals(&mut bench, 2_210, 2_500), [2_310, 2_410, 2_490]);
    }

    /// Replaces all waiting packets by new ones.
    fn replace(bench: &mut Bench<CoDel<u32>>, now: i64, waiting: u32) {
        bench.fill(ms(now), Ecn::NotEct, 1_000);
        for _ in 0..waiting {
            assert!(bench.dequeue(ms(now + 1)).is_some());
        }
        assert!(bench.dequeue(ms(now + 2)).is_some());
    }

    // [RFC8289 §5.6]
    #[test]
    fn a_head_that_waited_for_less_than_5_ms_starts_the_interval_again() {
        let mut bench = bench(CoDelConfig::default());
        bench.fill(ms(0), Ecn::NotEct, 10);
        assert_eq!(signals(&mut bench, 10, 70), []);
        replace(&mut bench, 86, 4);
        // At 91 ms the head has waited for 5 ms, which is the target; an interval later is 191 ms.
        assert_eq!(signals(&mut bench, 91, 320), [191, 291]);
    }

    // [RFC8289 §5.5]
    #[test]
    fn a_head_that_waited_for_less_than_5_ms_ends_the_dropping_state() {
        let mut bench = bench(CoDelConfig::default());
        bench.fill(ms(0), Ecn::NotEct, 100);
        assert_eq!(signals(&mut bench, 10, 150), [110]);
        replace(&mut bench, 152, 85);
        // The next drop would have been at 210 ms. The delay is above the target again from 160 ms
        // on.
        assert_eq!(signals(&mut bench, 160, 300), [260]);
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_told() {
        let codel = CoDel::new(CoDelConfig::default());
        let mut bench = Bench::new(codel).with_limit(QueueLimit::Packets(2));
        bench.fill(ms(0), Ecn::NotEct, 4);
        assert_eq!((bench.dropped(), bench.signals()), (vec![2, 3], 0));
    }

    // [RFC8289 §5.6]
    #[test]
    fn one_packet_of_the_largest_size_behind_the_head_is_no_queue_and_two_are() {
        let signals = |behind| {
            let mut bench = bench(CoDelConfig::default());
            for n in 0..100 {
                // Each packet waits for 10 or 20 ms, and leaves when the next one has arrived.
                let now = ms(i64::from(n) * 10);
                bench.enqueue(now, packet(now, Ecn::Ect0, n));
                if n >= behind {
                    assert!(bench.dequeue(now).is_some());
                }
            }
            bench.signals()
        };
        assert_eq!(signals(1), 0);
        assert!(signals(2) > 5);
    }
}
