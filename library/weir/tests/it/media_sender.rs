//! Properties that a sender keeps with every controller, whatever happens in whatever order.

use std::collections::VecDeque;

use proptest::prelude::*;
use weir::controller::Controller;
use weir::feedback::TwccHeader;
use weir::{Algorithm, Bitrate, DataSize, MediaSender, RateLimits, TimeDelta, Timestamp};

/// One step of a script.
#[derive(Clone, Debug)]
enum Op {
    /// Time passes, and each due task runs on time.
    Advance(i64),
    /// Time passes, and due tasks run late, all at the end.
    Sleep(i64),
    Enqueue {
        packets: u64,
        bytes: u64,
    },
    Urgent {
        packets: u64,
        bytes: u64,
    },
    Parity {
        bytes: u64,
    },
    Clear,
    /// TWCC feedback on this many of the unreported packets, of which every `lost_each`-th is lost.
    Feedback {
        packets: usize,
        lost_each: usize,
    },
    Limit(Option<u64>),
    Share(u64),
    RoundTrip(i64),
}

fn any_op() -> impl Strategy<Value = Op> {
    let bytes = || 40_u64..1_500;
    prop_oneof![
        6 => (1_i64..300).prop_map(Op::Advance),
        1 => (1_i64..20_000).prop_map(Op::Sleep),
        6 => (0_u64..20, bytes()).prop_map(|(packets, bytes)| Op::Enqueue { packets, bytes }),
        1 => (0_u64..5, bytes()).prop_map(|(packets, bytes)| Op::Urgent { packets, bytes }),
        1 => bytes().prop_map(|bytes| Op::Parity { bytes }),
        1 => Just(Op::Clear),
        6 => (1_usize..100, 1_usize..40)
            .prop_map(|(packets, lost_each)| Op::Feedback { packets, lost_each }),
        1 => prop::option::of(0_u64..10_000).prop_map(Op::Limit),
        1 => (1_u64..10_000).prop_map(Op::Share),
        1 => (0_i64..2_000).prop_map(Op::RoundTrip),
    ]
}

fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

struct Driver {
    sender: MediaSender<u64>,
    limits: RateLimits,
    now: Timestamp,
    /// Packets expected in the queue: size and name.
    queue: VecDeque<(u64, u64)>,
    /// Number of urgent packets at the front of `queue`.
    urgent: usize,
    next_name: u64,
    next_number: i64,
    unreported: VecDeque<(i64, Timestamp)>,
    feedback_count: u8,
    target: Bitrate,
}

impl Driver {
    fn new(algorithm: Algorithm) -> Self {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(150), kbps(500), kbps(5_000)).unwrap();
        Self {
            sender: MediaSender::new(algorithm.build(limits)),
            limits,
            now: Timestamp::from_secs(1),
            queue: VecDeque::new(),
            urgent: 0,
            next_name: 0,
            next_number: 0,
            unreported: VecDeque::new(),
            feedback_count: 0,
            target: limits.start(),
        }
    }

    fn named(&mut self, packets: u64, bytes: u64) -> Vec<(DataSize, u64)> {
        let first = self.next_name;
        self.next_name += packets;
        (first..self.next_name).map(|name| (DataSize::from_bytes(bytes), name)).collect()
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Advance(by) => self.advance(self.now + ms(by)),
            Op::Sleep(by) => self.now += ms(by),
            Op::Enqueue { packets, bytes } => {
                let frame = self.named(packets, bytes);
                self.queue.extend(frame.iter().map(|(size, name)| (size.as_bytes(), *name)));
                self.sender.enqueue(self.now, frame);
            }
            Op::Urgent { packets, bytes } => {
                let frame = self.named(packets, bytes);
                for (size, name) in &frame {
                    self.queue.insert(self.urgent, (size.as_bytes(), *name));
                    self.urgent += 1;
                }
                self.sender.enqueue_urgent(self.now, frame);
            }
            Op::Parity { bytes } => {
                let (size, name) = self.named(1, bytes)[0];
                self.queue.push_back((bytes, name));
                self.sender.enqueue_parity(size, name);
            }
            Op::Clear => {
                self.queue.clear();
                self.urgent = 0;
                self.sender.clear_queue(self.now);
            }
            Op::Feedback { packets, lost_each } => self.feed_back(packets, lost_each),
            Op::Limit(kbps) => {
                self.sender.on_receiver_limit(self.now, kbps.map(Bitrate::from_kbps));
            }
            Op::Share(kbps) => self.sender.on_shared_rate(self.now, Bitrate::from_kbps(kbps)),
            Op::RoundTrip(rtt_ms) => self.sender.on_round_trip_time(self.now, ms(rtt_ms)),
        }
        self.check();
    }

    fn advance(&mut self, until: Timestamp) {
        loop {
            self.drain();
            let next = self.sender.next_timeout();
            assert!(next.is_none_or(|next| next > self.now), "{next:?} is not after {}", self.now);
            match next.filter(|next| *next <= until) {
                Some(next) => self.now = next,
                None => break,
            }
        }
        self.now = until;
    }

    /// Runs all tasks that are due.
    fn drain(&mut self) {
        self.sender.on_timeout(self.now);
        while let Some(packet) = self.sender.next_packet(self.now) {
            assert_eq!(packet.sent.sequence_number, self.next_number);
            assert_eq!(packet.content.is_none(), packet.sent.padding);
            if let Some(name) = packet.content {
                let expected = self.queue.pop_front();
                assert_eq!(expected, Some((packet.size.as_bytes(), name)));
                self.urgent = self.urgent.saturating_sub(1);
            }
            self.next_number += 1;
            self.unreported.push_back((packet.sent.sequence_number, self.now));
        }
    }

    fn feed_back(&mut self, packets: usize, lost_each: usize) {
        let count = packets.min(self.unreported.len());
        let reported: Vec<(i64, Timestamp)> = self.unreported.drain(..count).collect();
        let arrivals = reported.iter().enumerate().map(|(index, (number, sent))| {
            let is_lost = lost_each > 1 && index % lost_each == 1;
            let ticks = (*sent + ms(20)).as_micros() / 250;
            (*number as u16, (!is_lost).then_some(ticks as i32))
        });
        let header = TwccHeader { reference_time: 0, feedback_count: self.feedback_count };
        self.feedback_count = self.feedback_count.wrapping_add(1);
        self.sender.on_feedback(self.now, |sent| sent.on_twcc(header, arrivals));
    }

    fn check(&mut self) {
        let queued: u64 = self.queue.iter().map(|(size, _)| size).sum();
        assert_eq!(self.sender.queued().as_bytes(), queued);
        let target = *self.sender.target();
        assert_eq!(target, self.sender.controller().target());
        assert_eq!(self.limits.clamp(target.bitrate), target.bitrate);
        if let Some(change) = self.sender.take_change() {
            assert_eq!(change.from, self.target);
            assert_ne!(change.to, self.target);
            self.target = change.to;
        }
        assert_eq!(self.target, target.bitrate);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn packets_leave_in_order_and_changes_of_the_target_follow_each_other(
        algorithm in prop::sample::select(Algorithm::all().collect::<Vec<_>>()),
        ops in prop::collection::vec(any_op(), 1..120),
    ) {
        let mut driver = Driver::new(algorithm);
        for op in &ops {
            driver.apply(op);
        }
    }
}
