//! A closed loop: a source that fills its rate, pacer, drop-tail bottleneck that can mark packets,
//! and transport-wide feedback.

use std::collections::VecDeque;

use weir::controller::{RateLimits, Settings};
use weir::feedback::Ecn;
use weir::pacer::{Pacer, Release};
use weir::{
    Algorithm, Bitrate, Controller, DataSize, FeedbackReport, PacketReport, SentPacket, TimeDelta,
    Timestamp,
};

const PACKET_BYTES: u64 = 1200;
const STEP: TimeDelta = TimeDelta::from_millis(1);
const FEEDBACK_STEPS: u64 = 50;
const FRAME_STEPS: u64 = 33;

/// Size of a key frame relative to other frames.
const KEY_FRAME: u64 = 8;

/// A sender, a bottleneck and a receiver, simulated in steps of 1 ms.
pub struct Loop {
    pub now: Timestamp,
    steps: u64,
    pub controller: Box<dyn Controller + Send>,
    pub pacer: Pacer<()>,
    limits: RateLimits,
    /// Share of the target that the source produces, and its maximum bitrate.
    pub source_share: f64,
    pub source_cap: Bitrate,
    /// One frame of this many is [`KEY_FRAME`] times as large.
    pub key_frame_every: Option<u64>,
    frames: u64,
    /// The host of the sender wakes up every so many steps, and does nothing in between.
    pub host_steps: u64,
    pub capacity: Bitrate,
    pub queue_limit: TimeDelta,
    /// Packets that would wait longer than this are marked.
    pub mark_above: TimeDelta,
    pub one_way_delay: TimeDelta,
    /// Percentage of packets lost at random.
    pub loss_percent: u64,
    /// Percentage of packets that are overtaken by the next ones, and their extra delay.
    pub late_percent: u64,
    pub late_by: TimeDelta,
    /// Longest jitter after the bottleneck; packets keep their order.
    pub jitter: TimeDelta,
    last_arrival: Timestamp,
    pub feedback_lost: bool,
    /// Clock of the receiver minus clock of the sender.
    pub clock_offset: TimeDelta,
    random: u64,
    next_number: i64,
    /// Time at which the bottleneck will be empty.
    busy_until: Timestamp,
    /// Packets sent and not reported yet; without arrival time if lost.
    on_the_way: VecDeque<PacketReport>,
    /// Packets reported as lost that are only late.
    late: Vec<PacketReport>,
    reports: VecDeque<(Timestamp, FeedbackReport)>,
    delivered: DataSize,
    pub lost: u64,
    pub marked: u64,
    pub longest_queue: TimeDelta,
}

impl Loop {
    pub fn new(algorithm: Algorithm, capacity_kbps: u64, one_way_ms: i64) -> Self {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(50), kbps(300), kbps(2_500)).unwrap();
        Self::with_settings(algorithm, Settings::new(limits), capacity_kbps, one_way_ms)
    }

    pub fn with_settings(
        algorithm: Algorithm,
        settings: Settings,
        capacity_kbps: u64,
        one_way_ms: i64,
    ) -> Self {
        Self::with_controller(algorithm.build(settings), settings.limits, capacity_kbps, one_way_ms)
    }

    pub fn with_controller(
        controller: Box<dyn Controller + Send>,
        limits: RateLimits,
        capacity_kbps: u64,
        one_way_ms: i64,
    ) -> Self {
        Self {
            now: Timestamp::from_secs(1),
            steps: 0,
            pacer: Pacer::new(&controller.target()),
            controller,
            limits,
            source_share: 1.0,
            source_cap: Bitrate::MAX,
            key_frame_every: None,
            frames: 0,
            host_steps: 1,
            capacity: Bitrate::from_kbps(capacity_kbps),
            queue_limit: TimeDelta::from_millis(300),
            mark_above: TimeDelta::MAX,
            one_way_delay: TimeDelta::from_millis(one_way_ms),
            loss_percent: 0,
            late_percent: 0,
            late_by: TimeDelta::ZERO,
            jitter: TimeDelta::ZERO,
            last_arrival: Timestamp::ZERO,
            feedback_lost: false,
            clock_offset: TimeDelta::from_secs(-77),
            random: 1,
            next_number: 0,
            busy_until: Timestamp::ZERO,
            on_the_way: VecDeque::new(),
            late: Vec::new(),
            reports: VecDeque::new(),
            delivered: DataSize::ZERO,
            lost: 0,
            marked: 0,
            longest_queue: TimeDelta::ZERO,
        }
    }

    /// Runs for `secs` and returns the delivered bitrate in kbit/s.
    pub fn run(&mut self, secs: u64) -> u64 {
        (self.delivered, self.lost, self.marked) = (DataSize::ZERO, 0, 0);
        self.longest_queue = TimeDelta::ZERO;
        (0..secs * 1_000).for_each(|_| self.step());
        self.delivered.as_bits() / secs / 1_000
    }

    pub fn step(&mut self) {
        self.now += STEP;
        self.steps += 1;
        if self.steps.is_multiple_of(self.host_steps) {
            self.wake_up();
        }
        if self.steps.is_multiple_of(FEEDBACK_STEPS) {
            self.report();
        }
    }

    fn wake_up(&mut self) {
        if self.controller.next_timeout().is_some_and(|due| due <= self.now) {
            self.controller.on_timeout(self.now);
            assert!(self.controller.next_timeout().is_none_or(|next| next > self.now));
        }
        while let Some((_, report)) = self.reports.pop_front_if(|(due, _)| *due <= self.now) {
            self.controller.on_feedback(self.now, &report);
        }
        while self.frames < self.steps / FRAME_STEPS {
            self.make_frame();
        }
        self.pacer.set_target(self.now, &self.controller.target());
        while let Some(release) = self.pacer.dequeue(self.now) {
            self.send(&release);
            self.pacer.set_target(self.now, &self.controller.target());
        }
    }

    pub fn is_within_limits(&self) -> bool {
        let bitrate = self.controller.target().bitrate;
        self.limits.clamp(bitrate) == bitrate
    }

    fn make_frame(&mut self) {
        let rate = (self.controller.target().bitrate * self.source_share).min(self.source_cap);
        let mut left = (rate * (STEP * FRAME_STEPS as i64)).as_bytes();
        self.frames += 1;
        if self.key_frame_every.is_some_and(|every| self.frames.is_multiple_of(every)) {
            left *= KEY_FRAME;
        }
        while left > 0 {
            let size = DataSize::from_bytes(left.min(PACKET_BYTES));
            left -= size.as_bytes();
            self.pacer.enqueue(size, ());
            self.controller.on_media_queued(self.now, size, self.pacer.queued());
        }
    }

    fn send(&mut self, release: &Release<()>) {
        let (sequence_number, queued) = (self.next_number, self.pacer.queued());
        let Release { size, probe, .. } = *release;
        let padding = release.media.is_none();
        self.next_number += 1;
        self.controller.on_packet_sent(
            self.now,
            &SentPacket::new(sequence_number, size)
                .with_queued(queued)
                .with_probe(probe)
                .with_padding(padding),
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
            arrival_time = Some(self.arrival());
            self.delivered += size;
        }
        let ecn = if queue > self.mark_above { Ecn::Ce } else { Ecn::NotEct };
        self.marked += u64::from(!lost && ecn == Ecn::Ce);
        let send_time = self.now;
        self.on_the_way.push_back(
            PacketReport::new(sequence_number, size, send_time)
                .with_arrival_time(arrival_time)
                .with_ecn(ecn)
                .with_probe(probe),
        );
    }

    /// Arrival time of the packet that the bottleneck has just served.
    fn arrival(&mut self) -> Timestamp {
        let share = (self.random >> 40) as f64 / f64::from(1 << 24);
        let arrival = self.busy_until + self.one_way_delay + self.jitter * share;
        self.last_arrival = self.last_arrival.max(arrival);
        let is_late = (self.random >> 13) % 100 < self.late_percent;
        if is_late { self.last_arrival + self.late_by } else { self.last_arrival }
    }

    /// Reports all packets up to the last that arrived. Packets missing below it are reported lost;
    /// a later report recovers them if they were only late.
    fn report(&mut self) {
        let now = self.now;
        let arrived = |packet: &PacketReport| packet.arrival_time.is_some_and(|at| at <= now);
        let Some(last) = self.on_the_way.iter().rposition(arrived) else { return };
        let mut packets: Vec<_> = self.late.extract_if(.., |packet| arrived(packet)).collect();
        for packet in self.on_the_way.drain(..=last) {
            let is_late = packet.arrival_time.is_some_and(|at| at > now);
            if is_late {
                self.late.push(packet.with_recovered(true));
            }
            let arrival_time = packet.arrival_time.filter(|_| !is_late);
            packets.push(packet.with_arrival_time(arrival_time));
        }
        for packet in &mut packets {
            packet.arrival_time = packet.arrival_time.map(|at| at + self.clock_offset);
        }
        if !self.feedback_lost {
            let report = FeedbackReport::new(packets);
            self.reports.push_back((now + self.one_way_delay, report));
        }
    }

    pub fn target_kbps(&self) -> u64 {
        self.controller.target().bitrate.as_bps() / 1_000
    }
}

/// Mean delay of the send queue at the capacity in ms, sampled every 100 ms over `secs`.
pub fn mean_send_queue_ms(path: &mut Loop, secs: u64) -> u64 {
    let mut queued = DataSize::ZERO;
    for _ in 0..secs * 10 {
        (0..100).for_each(|_| path.step());
        queued += path.pacer.queued();
    }
    (queued / path.capacity).as_millis() as u64 / (secs * 10)
}
