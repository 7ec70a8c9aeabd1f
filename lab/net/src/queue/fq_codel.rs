//! FQ-CoDel: one CoDel queue per flow, served in turn. Flows that send little are served first.
//!
//! Implements [RFC8290 §4].

use std::fmt::Debug;

use std::collections::VecDeque;

use weir::units::{DataSize, TimeDelta, Timestamp};

use super::codel::{CoDelConfig, Control};
use super::fifo::Fifo;
use super::{Discipline, Log, Room};
use crate::packet::{FlowKey, Waiting};

/// Number of queues to which flows are hashed [RFC8290 §5.2.5].
const QUEUES: usize = 1_024;
/// Bytes that a queue may send per turn [RFC8290 §5.2.4].
const QUANTUM: i64 = 1_514;
/// Maximum number of packets dropped at once when the limit is exceeded [RFC8290 §4.1].
const DROP_BATCH: usize = 64;

/// One CoDel queue per flow.
#[derive(Clone, Debug)]
pub(crate) struct FqCoDel<T> {
    queues: Vec<FlowQueue<T>>,
    /// Queues that have just become active, in the order of their turns.
    new: VecDeque<usize>,
    /// Active queues that are no longer new, in the order of their turns.
    old: VecDeque<usize>,
    bytes: DataSize,
    packets: usize,
    /// Makes the hash different in each run.
    salt: u64,
}

#[derive(Clone, Debug)]
struct FlowQueue<T> {
    queue: Fifo<T>,
    control: Control,
    /// Bytes that it may still send in this turn. Below zero its turn is over.
    credit: i64,
    /// Whether it is in one of the two lists.
    active: bool,
}

impl<T> FqCoDel<T> {
    pub(crate) fn new(config: CoDelConfig, salt: u64) -> Self {
        let queues = (0..QUEUES).map(|_| FlowQueue {
            queue: Fifo::new(),
            control: Control::new(config),
            credit: 0,
            active: false,
        });
        Self {
            queues: queues.collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: DataSize::ZERO,
            packets: 0,
            salt,
        }
    }

    /// The queue of a flow [RFC8290 §4.1].
    fn queue_of(&self, flow: FlowKey) -> usize {
        // The finaliser of SplitMix64: every bit of the key affects every bit of the result.
        let mut hash = flow.0 ^ self.salt;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (hash ^ (hash >> 31)) as usize % QUEUES
    }

    /// Drops half of the longest queue from its head. So the flow that fills the memory gets the
    /// signal first [RFC8290 §4.1].
    fn drop_from_longest(&mut self, now: Timestamp, log: &mut Log<T>) {
        // A queue of packets with zero bytes still counts as longer than an empty one.
        let length = |flow: &FlowQueue<T>| (flow.queue.bytes(), flow.queue.len() > 0);
        let longest = self
            .queues
            .iter_mut()
            .reduce(|longest, other| if length(other) > length(longest) { other } else { longest });
        let longest = &mut longest.expect("there are queues").queue;
        let count = longest.len().div_ceil(2).min(DROP_BATCH);
        for packet in (0..count).filter_map(|_| longest.pop()) {
            self.bytes = self.bytes.saturating_sub(packet.size());
            self.packets -= 1;
            log.drop_full(now, packet);
        }
    }

    /// Returns the queue whose turn it is, and whether it is a new one [RFC8290 §4.2].
    fn select(&mut self) -> Option<(usize, bool)> {
        loop {
            let (index, is_new) = match self.new.front() {
                Some(&index) => (index, true),
                None => (*self.old.front()?, false),
            };
            let queue = &mut self.queues[index];
            if queue.credit >= 0 {
                return Some((index, is_new));
            }
            queue.credit += QUANTUM;
            self.leave(is_new);
            self.old.push_back(index);
        }
    }

    /// Removes the queue at the front of its list.
    fn leave(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }
}

impl<T: Debug> Discipline<T> for FqCoDel<T> {
    fn enqueue(&mut self, now: Timestamp, room: Room<'_>, packet: Waiting<T>, log: &mut Log<T>) {
        let index = self.queue_of(packet.header.flow);
        let queue = &mut self.queues[index];
        self.bytes += packet.size();
        self.packets += 1;
        queue.queue.push(packet);
        if !queue.active {
            queue.active = true;
            queue.credit = QUANTUM;
            self.new.push_back(index);
        }
        while !room.holds(now, self.bytes, self.packets) {
            self.drop_from_longest(now, log);
        }
    }

    fn dequeue(&mut self, now: Timestamp, log: &mut Log<T>) -> Option<Waiting<T>> {
        while let Some((index, is_new)) = self.select() {
            let FlowQueue { queue, control, credit, active } = &mut self.queues[index];
            let before = (queue.bytes(), queue.len());
            let packet = control.dequeue(now, queue, log);
            let gone = before.0.saturating_sub(queue.bytes());
            self.bytes = self.bytes.saturating_sub(gone);
            self.packets -= before.1 - queue.len();
            if let Some(packet) = packet {
                *credit -= packet.size().as_bytes().cast_signed();
                return Some(packet);
            }
            // A new queue that is empty moves to the end of the old ones. Otherwise a flow could
            // stay new by sending one packet at a time. An old queue that is empty becomes
            // inactive.
            *active = is_new;
            self.leave(is_new);
            if is_new {
                self.old.push_back(index);
            }
        }
        None
    }

    fn bytes(&self) -> DataSize {
        self.bytes
    }

    fn head_delay(&self, now: Timestamp) -> TimeDelta {
        let active = self.new.iter().chain(&self.old);
        let delays = active.map(|queue| self.queues[*queue].queue.head_delay(now));
        delays.max().unwrap_or(TimeDelta::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use weir::feedback::Ecn;

    use super::super::testing::{Bench, ms, of_flow, packet};
    use super::*;
    use crate::queue::QueueLimit;

    fn bench() -> Bench<FqCoDel<u32>> {
        Bench::new(FqCoDel::new(CoDelConfig::default(), 1))
    }

    /// Enqueues `count` packets of a flow, with the flow's number as payload.
    fn fill(bench: &mut Bench<FqCoDel<u32>>, flow: u32, count: usize) {
        let packet = || of_flow(u64::from(flow), packet(ms(0), Ecn::NotEct, flow));
        for _ in 0..count {
            bench.enqueue(ms(0), packet());
        }
    }

    /// The flow numbers of the next `count` packets.
    fn next(bench: &mut Bench<FqCoDel<u32>>, count: usize) -> Vec<u32> {
        (0..count).filter_map(|_| bench.dequeue(ms(1))).map(|packet| packet.payload).collect()
    }

    // [RFC8290 §4.2]
    #[test]
    fn flows_take_turns() {
        let mut bench = bench();
        for flow in 1..=3 {
            fill(&mut bench, flow, 6);
        }
        // With a quantum of 1514 B, two packets of 1500 B can start in the first turn, then one per
        // turn.
        assert_eq!(next(&mut bench, 12), [1, 1, 2, 2, 3, 3, 1, 2, 3, 1, 2, 3]);
    }

    // [RFC8290 §4.2]
    #[test]
    fn a_flow_that_sends_little_goes_before_the_others() {
        let mut bench = bench();
        fill(&mut bench, 1, 100);
        fill(&mut bench, 2, 100);
        assert_eq!(next(&mut bench, 6), [1, 1, 2, 2, 1, 2]);
        fill(&mut bench, 3, 1);
        assert_eq!(next(&mut bench, 4), [3, 1, 2, 1]);
    }

    // [RFC8290 §4.2]
    #[test]
    fn a_flow_that_has_run_dry_must_wait_its_turn_before_it_is_new_again() {
        let mut bench = bench();
        fill(&mut bench, 1, 100);
        fill(&mut bench, 3, 1);
        assert_eq!(next(&mut bench, 4), [1, 1, 3, 1]);
        // It was empty in the list of new queues, so it moved to the end of the old ones.
        fill(&mut bench, 3, 1);
        assert_eq!(next(&mut bench, 2), [3, 1]);
        // It was empty in the list of old queues, so it became inactive, and then new again.
        assert_eq!(next(&mut bench, 2), [1, 1]);
        assert!(!bench.queue.queues[bench.queue.queue_of(FlowKey(3))].active);
        fill(&mut bench, 3, 1);
        assert_eq!(next(&mut bench, 1), [3]);
    }

    // [RFC8290 §4.1]
    #[test]
    fn one_packet_too_many_drops_half_of_the_longest_queue_from_its_head() {
        let mut bench = bench().with_limit(QueueLimit::Packets(60));
        fill(&mut bench, 2, 20);
        fill(&mut bench, 3, 40);
        assert!(bench.dropped().is_empty());
        fill(&mut bench, 2, 1);
        assert_eq!(bench.dropped(), [3; 20]);
        assert_eq!(bench.log.full, 20);
        assert_eq!(bench.queue.packets, 41);
        assert_eq!(bench.queue.bytes(), DataSize::from_bytes(41 * 1_500));
    }

    #[test]
    fn packets_without_a_byte_are_dropped_too_where_too_many_wait() {
        let mut bench = bench().with_limit(QueueLimit::Packets(1));
        for number in 0..2 {
            let mut empty = of_flow(2, packet(ms(0), Ecn::NotEct, number));
            empty.header.size = DataSize::ZERO;
            bench.enqueue(ms(0), empty);
        }
        assert_eq!((bench.dropped(), bench.queue.packets), (vec![0], 1));
    }

    // [RFC8290 §4.1]
    #[test]
    fn a_batch_is_at_most_64_packets() {
        let mut bench = bench().with_limit(QueueLimit::Packets(1_000));
        fill(&mut bench, 1, 1_000);
        fill(&mut bench, 2, 1);
        assert_eq!(bench.dropped(), [1; 64]);
    }

    #[test]
    fn each_queue_has_a_codel_of_its_own() {
        let mut bench = bench();
        fill(&mut bench, 1, 1_000);
        let mut sparse_waited = 0;
        for n in 0..400 {
            let now = ms(n * 10);
            if n % 4 == 0 {
                let packet = of_flow(2, packet(now, Ecn::NotEct, 2));
                bench.enqueue(now, packet);
            }
            let out = bench.dequeue(now).unwrap();
            if out.payload == 2 {
                sparse_waited = sparse_waited.max((now - out.since).as_millis());
            }
        }
        assert!(bench.log.managed > 10);
        assert!(bench.dropped().iter().all(|&flow| flow == 1));
        // It waits for at most one turn of the other flow.
        assert!(sparse_waited <= 20, "{sparse_waited}");
    }

    #[test]
    fn the_salt_decides_which_flows_share_a_queue() {
        let collisions = |salt| -> Vec<u64> {
            let queue = FqCoDel::<u32>::new(CoDelConfig::default(), salt);
            let first = queue.queue_of(FlowKey(0));
            (1..20_000).filter(|&flow| queue.queue_of(FlowKey(flow)) == first).collect()
        };
        assert_ne!(collisions(1), collisions(2));
        // 19999 / 1024 = 19.5 expected.
        assert!((10..30).contains(&collisions(1).len()));
    }
}
