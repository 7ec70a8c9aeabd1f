//! SCReAM in a closed loop: filler source, pacer, drop-tail bottleneck, transport-wide feedback.

use std::collections::VecDeque;

use weir::controllers::scream::Scream;
use weir::feedback::Ecn;
use weir::pacer::{Pacer, Release};
use weir::{
    Bitrate, Controller, DataSize, FeedbackReport, PacketReport, RateLimits, SentPacket, TimeDelta,
    Timestamp,
};

const PACKET_BYTES: u64 = 1200;
const STEP: TimeDelta = TimeDelta::from_millis(1);
const FEEDBACK_STEPS: u64 = 50;
const FRAME_STEPS: u64 = 33;

/// A sender, a bottleneck and a receiver, in steps of 1 ms.
struct Loop {
    now: Timestamp,
    steps: u64,
    controller: Scream,
    pacer: Pacer<()>,
    limits: RateLimits,
    /// Share of the target that the source makes.
    source_share: f64,
    capacity: Bitrate,
    queue_limit: TimeDelta,
    one_way_delay: TimeDelta,
    /// Packets lost at random, out of 100.
    loss_percent: u64,
    feedback_lost: bool,
    /// Clock of the receiver minus clock of the sender.
    clock_offset: TimeDelta,
    random: u64,
    next_number: i64,
    /// When the bottleneck has served what is in it.
    busy_until: Timestamp,
    /// Sent and not reported yet; without arrival time if lost.
    on_the_way: VecDeque<PacketReport>,
    reports: VecDeque<(Timestamp, FeedbackReport)>,
    delivered: DataSize,
    lost: u64,
    longest_queue: TimeDelta,
}

impl Loop {
    fn new(capacity_kbps: u64, one_way_ms: i64) -> Self {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(2_500)).unwrap();
        let controller = Scream::new(limits);
        Self {
            now: Timestamp::from_secs(1),
            steps: 0,
            pacer: Pacer::new(&controller.target()),
            controller,
            limits,
            source_share: 1.0,
            capacity: kbps(capacity_kbps),
            queue_limit: TimeDelta::from_millis(300),
            one_way_delay: TimeDelta::from_millis(one_way_ms),
            loss_percent: 0,
            feedback_lost: false,
            clock_offset: TimeDelta::from_secs(-77),
            random: 1,
            next_number: 0,
            busy_until: Timestamp::ZERO,
            on_the_way: VecDeque::new(),
            reports: VecDeque::new(),
            delivered: DataSize::ZERO,
            lost: 0,
            longest_queue: TimeDelta::ZERO,
        }
    }

    /// Runs for `secs` and returns the bitrate delivered meanwhile, in kbit/s.
    fn run(&mut self, secs: u64) -> u64 {
        (self.delivered, self.lost, self.longest_queue) = (DataSize::ZERO, 0, TimeDelta::ZERO);
        (0..secs * 1_000).for_each(|_| self.step());
        self.delivered.as_bits() / secs / 1_000
    }

    fn step(&mut self) {
        self.now += STEP;
        self.steps += 1;
        if self.controller.next_timeout().is_some_and(|due| due <= self.now) {
            self.controller.on_timeout(self.now);
            assert!(self.controller.next_timeout().unwrap() > self.now);
        }
        while let Some((_, report)) = self.reports.pop_front_if(|(due, _)| *due <= self.now) {
            self.controller.on_feedback(self.now, &report);
        }
        if self.steps.is_multiple_of(FRAME_STEPS) {
            self.make_frame();
        }
        self.pacer.set_target(self.now, &self.controller.target());
        while let Some(Release { size, .. }) = self.pacer.dequeue(self.now) {
            self.send(size);
            self.pacer.set_target(self.now, &self.controller.target());
        }
        if self.steps.is_multiple_of(FEEDBACK_STEPS) {
            self.report();
        }
        let bitrate = self.controller.target().bitrate;
        assert!(self.limits.min() <= bitrate && bitrate <= self.limits.max());
    }

    fn make_frame(&mut self) {
        let rate = self.controller.target().bitrate * self.source_share;
        let mut left = (rate * (STEP * FRAME_STEPS as i64)).as_bytes();
        while left > 0 {
            let size = DataSize::from_bytes(left.min(PACKET_BYTES));
            left -= size.as_bytes();
            self.pacer.enqueue(size, ());
            self.controller.on_media_queued(self.now, size, self.pacer.queued());
        }
    }

    fn send(&mut self, size: DataSize) {
        let (sequence_number, queued) = (self.next_number, self.pacer.queued());
        self.next_number += 1;
        self.controller.on_packet_sent(
            self.now,
            &SentPacket { sequence_number, size, queued, probe: None, padding: false },
        );
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let queue = self.busy_until.max(self.now) - self.now;
        let lost = queue > self.queue_limit || (self.random >> 33) % 100 < self.loss_percent;
        let mut arrival_time = None;
        if lost {
            self.lost += 1;
        } else {
            self.busy_until = self.busy_until.max(self.now) + size / self.capacity;
            self.longest_queue = self.longest_queue.max(queue);
            arrival_time = Some(self.busy_until + self.one_way_delay);
            self.delivered += size;
        }
        let (send_time, ecn) = (self.now, Ecn::NotEct);
        self.on_the_way.push_back(PacketReport {
            sequence_number,
            size,
            send_time,
            arrival_time,
            ecn,
            recovered: false,
            probe: None,
        });
    }

    /// Reports all packets up to the last that arrived; those missing below it are lost.
    fn report(&mut self) {
        let arrived = |packet: &PacketReport| packet.arrival_time.is_some_and(|at| at <= self.now);
        let Some(last) = self.on_the_way.iter().rposition(arrived) else { return };
        let mut packets: Vec<_> = self.on_the_way.drain(..=last).collect();
        for packet in &mut packets {
            packet.arrival_time = packet.arrival_time.map(|at| at + self.clock_offset);
        }
        if !self.feedback_lost {
            let report =
                FeedbackReport { packets, missing_feedback: 0, ..FeedbackReport::default() };
            self.reports.push_back((self.now + self.one_way_delay, report));
        }
    }

    fn target_kbps(&self) -> u64 {
        self.controller.target().bitrate.as_bps() / 1_000
    }
}

/// Mean delay of the send queue, sampled every 100 ms over `secs`, in ms at the capacity.
fn mean_send_queue_ms(path: &mut Loop, secs: u64) -> u64 {
    let mut queued = DataSize::ZERO;
    for _ in 0..secs * 10 {
        (0..100).for_each(|_| path.step());
        queued += path.pacer.queued();
    }
    (queued / path.capacity).as_millis() as u64 / (secs * 10)
}

// [SCREAM §4.1.3]: 200 kbit/s a second from 300 kbit/s is 1 Mbit/s after 3.5 s.
#[test]
fn it_fills_a_path_of_1_mbps_within_5_s_and_keeps_it_full_without_loss() {
    let mut path = Loop::new(1_000, 50);
    path.run(5);
    let (kbps, lost) = (path.run(55), path.lost);
    println!("{kbps} kbit/s, longest queue {}", path.longest_queue);
    assert!(kbps >= 980);
    assert_eq!(lost, 0);
    assert!(path.longest_queue < TimeDelta::from_millis(200), "half of QDELAY_TARGET_HI");
}

// [SCREAM §4.1.2.2], [SCREAM §4.1.3]
#[test]
fn it_follows_a_drop_to_300_kbps_and_the_way_back() {
    let mut path = Loop::new(1_000, 50);
    path.run(15);
    path.capacity = Bitrate::from_kbps(300);
    path.run(10);
    let (low, low_lost) = (path.run(20), path.lost);
    path.capacity = Bitrate::from_kbps(1_000);
    path.run(10);
    let high = path.run(20);
    println!("{low}, {low_lost} lost, then {high} kbit/s");
    assert!((270..=300).contains(&low));
    assert!(low_lost <= 20, "at most one packet a second");
    assert!(high >= 950);
}

// SCREAM-D1
#[test]
fn a_long_path_carries_the_start_bitrate_in_the_first_second() {
    let mut path = Loop::new(2_000, 210);
    let first = path.run(1);
    println!("{first} kbit/s");
    assert!(first >= 300);
}

// SCREAM-D2
#[test]
fn without_feedback_50_kbps_leave_and_with_it_the_rate_comes_back() {
    let mut path = Loop::new(1_000, 50);
    path.run(20);
    path.feedback_lost = true;
    path.run(3);
    let silent = path.run(20);
    assert_eq!(path.controller.metrics().state, "feedback lost");
    assert_eq!(path.target_kbps(), 50);
    path.feedback_lost = false;
    path.run(10);
    let back = path.run(10);
    println!("{silent}, then {back} kbit/s");
    assert!((49..=51).contains(&silent));
    assert!(back >= 950);
}

// SCREAM-D3
#[test]
fn a_step_of_the_receivers_clock_does_not_hold_the_rate_down() {
    for hours in [-5, 5] {
        let mut path = Loop::new(1_000, 50);
        path.run(20);
        path.clock_offset += TimeDelta::from_secs(3_600) * hours;
        let kbps = path.run(20);
        println!("{hours} h: {kbps} kbit/s");
        assert!(kbps >= 900);
    }
}

// [SCREAM §4.1.2], [RFC6817 §3.4.2]: a longer route looks like a queue until the base delay of the
// old one is forgotten.
#[test]
fn a_route_that_is_200_ms_longer_slows_it_for_ten_minutes_at_most() {
    let mut path = Loop::new(1_000, 50);
    path.run(20);
    path.one_way_delay += TimeDelta::from_millis(200);
    path.run(10);
    let soon = path.run(50);
    path.run(9 * 60);
    let later = path.run(60);
    println!("{soon} in the first minute, {later} kbit/s after ten");
    assert!(soon >= 250);
    assert!(later >= 900);
}

// SCREAM-D8
#[test]
fn a_pause_keeps_the_target_bitrate() {
    let mut path = Loop::new(2_000, 50);
    path.run(6);
    path.source_share = 0.0;
    path.run(1);
    let before = path.target_kbps();
    path.run(60);
    assert_eq!(path.target_kbps(), before);
    path.source_share = 1.0;
    path.run(2);
    let after = path.run(10);
    println!("{before} before, {after} kbit/s after");
    assert!(after >= 1_500);
}

// SCREAM-D8
#[test]
fn an_application_limited_source_keeps_the_target_where_it_is() {
    let mut path = Loop::new(2_000, 50);
    path.source_share = 0.3;
    path.run(60);
    assert_eq!(path.target_kbps(), 300);
    path.source_share = 1.0;
    path.run(8);
    assert!(path.target_kbps() >= 1_500);
}

// SCREAM-D9
#[test]
fn a_slow_path_does_not_collect_a_second_of_media_in_the_send_queue() {
    let mut fast = Loop::new(1_000, 50);
    fast.run(15);
    let mut slow = Loop::new(300, 50);
    slow.run(15);
    let delays = (mean_send_queue_ms(&mut fast, 45), mean_send_queue_ms(&mut slow, 45));
    println!("{delays:?} ms at 1 Mbit/s and 300 kbit/s");
    assert!(delays.0 < 70 && delays.1 < 250);
}

// [SCREAM §4.1.2.1]: 5 % random loss is an event in nearly every round trip.
#[test]
fn five_percent_random_loss_leaves_a_bitrate_above_the_minimum() {
    let mut path = Loop::new(5_000, 50);
    path.loss_percent = 5;
    path.run(15);
    let lossy = path.run(45);
    path.loss_percent = 0;
    path.run(15);
    let healed = path.run(10);
    println!("{lossy}, then {healed} kbit/s");
    assert!(lossy >= 150);
    assert!(healed >= 2_300);
}
