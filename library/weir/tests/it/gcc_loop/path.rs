//! A path for closed-loop tests: a source of 30 frames per second, the pacer, a drop-tail
//! bottleneck with propagation delay, and a receiver that sends transport-wide feedback.

use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec; // the crate itself is no_std

use weir::controller::Controller;
use weir::feedback::{ArrivalRecorder, Outgoing, SendHistory, TwccHeader};
use weir::pacer::Pacer;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

const TICK: TimeDelta = TimeDelta::from_micros(250);
const FRAME_INTERVAL: TimeDelta = TimeDelta::from_micros(33_250);
const MAX_PACKET_BYTES: u64 = 1_200;
const FEEDBACK_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
const PROPAGATION: TimeDelta = TimeDelta::from_millis(25);
/// Units of the TWCC reference time and of receive deltas, in microseconds.
const REFERENCE_TICK_US: i64 = 64_000;
const DELTA_TICK_US: i64 = 250;

/// Conditions on the path and at the source.
#[derive(Clone)]
pub struct Path {
    /// Start second and capacity in kbit/s; each entry applies until the next one.
    pub capacity: Vec<(i64, u64)>,
    /// Longest queue at the bottleneck; packets that would wait longer are dropped.
    pub max_queue: TimeDelta,
    /// Ratio of packets lost at random after the bottleneck.
    pub loss: f64,
    /// Longest extra delay after the bottleneck, uniformly distributed; packets may overtake each
    /// other.
    pub jitter: TimeDelta,
    /// Seconds in which the source sends nothing.
    pub pause: std::ops::Range<i64>,
    /// Seconds in which neither media nor feedback gets through.
    pub outage: std::ops::Range<i64>,
    /// Maximum bitrate of the source.
    pub source_max: Bitrate,
    /// Seed of the losses, the jitter and the sizes of the frames.
    pub seed: u64,
    /// Pacing rate as a multiple of the target bitrate, instead of the controller's.
    pub pacing_factor: Option<f64>,
}

impl Path {
    pub fn new(capacity: &[(i64, u64)]) -> Self {
        Self {
            capacity: capacity.to_vec(),
            max_queue: TimeDelta::from_millis(300),
            loss: 0.0,
            jitter: TimeDelta::ZERO,
            pause: 0..0,
            outage: 0..0,
            source_max: Bitrate::MAX,
            seed: 1,
            pacing_factor: None,
        }
    }

    fn capacity_at(&self, now: Timestamp) -> Bitrate {
        let begun = |entry: &&(i64, u64)| Timestamp::from_secs(entry.0) <= now;
        Bitrate::from_kbps(self.capacity.iter().rev().find(begun).expect("begins at 0").1)
    }
}

/// Times of one packet, for the statistics.
#[derive(Clone, Copy)]
pub struct Journey {
    pub frame_time: Timestamp,
    pub send_time: Timestamp,
    pub size: DataSize,
    /// Waiting and transmission time at the bottleneck; `None` if lost.
    pub link_delay: Option<TimeDelta>,
}

/// Packets and targets of a run.
#[derive(Default)]
pub struct Trace {
    pub packets: Vec<Journey>,
    /// Target bitrate after each tick in which it changed.
    pub targets: Vec<(Timestamp, Bitrate)>,
}

fn seconds(range: &std::ops::Range<i64>, at: Timestamp) -> bool {
    (Timestamp::from_secs(range.start)..Timestamp::from_secs(range.end)).contains(&at)
}

impl Trace {
    fn sent(&self, range: std::ops::Range<i64>) -> impl Iterator<Item = &Journey> {
        self.packets.iter().filter(move |packet| seconds(&range, packet.send_time))
    }
    /// Mean receive rate of the packets sent in these seconds, in kbit/s.
    pub fn received_kbps(&self, range: std::ops::Range<i64>) -> f64 {
        let span = TimeDelta::from_secs(range.end - range.start);
        let arrived = self.sent(range).filter(|packet| packet.link_delay.is_some());
        (arrived.map(|packet| packet.size).sum::<DataSize>() / span).as_kbps_f64()
    }
    /// A percentile of the delay at the bottleneck, in ms.
    pub fn link_delay_ms(&self, range: std::ops::Range<i64>, percent: usize) -> f64 {
        percentile(self.sent(range).filter_map(|packet| packet.link_delay), percent)
    }
    /// A percentile of the time from a frame to the sending of its packets, in ms.
    pub fn pacer_delay_ms(&self, range: std::ops::Range<i64>, percent: usize) -> f64 {
        percentile(self.sent(range).map(|packet| packet.send_time - packet.frame_time), percent)
    }
    pub fn loss_ratio(&self, range: std::ops::Range<i64>) -> f64 {
        let lost = self.sent(range.clone()).filter(|packet| packet.link_delay.is_none()).count();
        lost as f64 / self.sent(range).count().max(1) as f64
    }
    /// Target bitrate at this second, in kbit/s.
    pub fn target_kbps(&self, second: i64) -> f64 {
        let at = Timestamp::from_secs(second);
        let begun = |entry: &&(Timestamp, Bitrate)| entry.0 <= at;
        self.targets.iter().rev().find(begun).expect("begins at 0").1.as_kbps_f64()
    }
    /// Seconds after `after` until the target is at least `kbps`.
    pub fn reaches_kbps(&self, after: i64, kbps: u64) -> Option<f64> {
        let after = Timestamp::from_secs(after);
        let goal = Bitrate::from_kbps(kbps);
        let reached = self.targets.iter().find(|(at, target)| *at >= after && *target >= goal);
        reached.map(|(at, _)| (*at - after).as_secs_f64())
    }
}

fn percentile(delays: impl Iterator<Item = TimeDelta>, percent: usize) -> f64 {
    let mut delays: Vec<_> = delays.collect();
    delays.sort_unstable();
    delays.get(delays.len() * percent / 100).map_or(0.0, |delay| delay.as_millis_f64())
}

/// Runs the loop for `duration_s` seconds.
pub fn run(controller: &mut dyn Controller, path: &Path, duration_s: i64) -> Trace {
    let mut state = Loop::new(controller.target(), path);
    let mut now = Timestamp::ZERO;
    while now < Timestamp::from_secs(duration_s) {
        if controller.next_timeout().is_some_and(|timeout| timeout <= now) {
            controller.on_timeout(now);
        }
        state.deliver_feedback(now, controller);
        state.set_target(now, controller);
        state.produce(now, controller.target().bitrate.min(path.source_max));
        state.send(now, controller);
        state.receive(now);
        now += TICK;
    }
    state.trace
}

struct Feedback {
    due: Timestamp,
    header: TwccHeader,
    arrivals: Vec<(u16, Option<i32>)>,
}

struct Loop<'a> {
    path: &'a Path,
    pacer: Pacer<Timestamp>,
    history: SendHistory,
    recorder: ArrivalRecorder,
    /// Time at which the bottleneck will be empty.
    busy_until: Timestamp,
    /// Packets in flight, by arrival and then by sequence number.
    in_flight: BTreeMap<(Timestamp, i64), u16>,
    feedback: VecDeque<Feedback>,
    next_frame: Timestamp,
    next_feedback: Timestamp,
    feedback_count: u8,
    random: u64,
    trace: Trace,
}

impl<'a> Loop<'a> {
    fn new(target: weir::Target, path: &'a Path) -> Self {
        Self {
            path,
            pacer: Pacer::new(&target),
            history: SendHistory::new(0),
            recorder: ArrivalRecorder::default(),
            busy_until: Timestamp::ZERO,
            in_flight: BTreeMap::new(),
            feedback: VecDeque::new(),
            next_frame: Timestamp::ZERO,
            next_feedback: Timestamp::ZERO,
            feedback_count: 0,
            random: path.seed,
            trace: Trace::default(),
        }
    }

    fn set_target(&mut self, now: Timestamp, controller: &dyn Controller) {
        let mut target = controller.target();
        if let Some(factor) = self.path.pacing_factor {
            target.pacing_rate = target.bitrate * factor;
        }
        if self.trace.targets.last().is_none_or(|last| last.1 != target.bitrate) {
            self.trace.targets.push((now, target.bitrate));
        }
        self.pacer.set_target(now, &target);
    }

    /// A random number, uniform in 0..1 (linear congruential generator MMIX by Knuth).
    fn random(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Produces a frame of the wanted size, plus or minus 20 %, in equal packets.
    fn produce(&mut self, now: Timestamp, bitrate: Bitrate) {
        if now < self.next_frame {
            return;
        }
        self.next_frame += FRAME_INTERVAL;
        if seconds(&self.path.pause, now) {
            return;
        }
        let bytes = ((bitrate * FRAME_INTERVAL) * (0.8 + 0.4 * self.random())).as_bytes().max(100);
        let count = bytes.div_ceil(MAX_PACKET_BYTES);
        for _ in 0..count {
            self.pacer.enqueue(DataSize::from_bytes(bytes / count), now);
        }
    }

    fn send(&mut self, now: Timestamp, controller: &mut dyn Controller) {
        while let Some(release) = self.pacer.dequeue(now) {
            let size = release.size;
            let padding = release.media.is_none();
            let frame_time = release.media.unwrap_or(now);
            let packet = self.history.on_packet_sent(
                now,
                Outgoing::media(size)
                    .with_queued(self.pacer.queued())
                    .with_probe(release.probe)
                    .with_padding(padding),
            );
            controller.on_packet_sent(now, &packet);
            self.set_target(now, controller);
            let transmission = size / self.path.capacity_at(now);
            let leaves = self.busy_until.max(now) + transmission;
            let lost = self.random() < self.path.loss || seconds(&self.path.outage, now);
            let fits = leaves - now <= self.path.max_queue;
            if fits {
                self.busy_until = leaves;
            }
            let link_delay = (fits && !lost).then_some(leaves - now);
            if link_delay.is_some() {
                let arrival = leaves + PROPAGATION + self.path.jitter * self.random();
                let number = packet.sequence_number;
                self.in_flight.insert((arrival, number), number as u16);
            }
            self.trace.packets.push(Journey { frame_time, send_time: now, size, link_delay });
        }
    }

    fn receive(&mut self, now: Timestamp) {
        while let Some(next) = self.in_flight.first_entry().filter(|next| next.key().0 <= now) {
            let ((arrival, _), number) = next.remove_entry();
            self.recorder.on_packet(arrival, number);
        }
        if now < self.next_feedback {
            return;
        }
        self.next_feedback += FEEDBACK_INTERVAL;
        let batch = self.recorder.take_batch(now);
        let Some(&(first, first_us)) = batch.first() else { return };
        let reference_time = (first_us / REFERENCE_TICK_US) as u32;
        let base_us = i64::from(reference_time) * REFERENCE_TICK_US;
        // Packets missing between two arrivals of the batch are reported as lost.
        let mut arrivals = Vec::new();
        let mut next = first;
        for &(number, arrival_us) in batch {
            arrivals.extend((next..number).map(|missing| (missing as u16, None)));
            arrivals.push((number as u16, Some(((arrival_us - base_us) / DELTA_TICK_US) as i32)));
            next = number + 1;
        }
        let header = TwccHeader { reference_time, feedback_count: self.feedback_count };
        self.feedback_count = self.feedback_count.wrapping_add(1);
        if !seconds(&self.path.outage, now) {
            self.feedback.push_back(Feedback { due: now + PROPAGATION, header, arrivals });
        }
    }

    fn deliver_feedback(&mut self, now: Timestamp, controller: &mut dyn Controller) {
        while let Some(feedback) = self.feedback.pop_front_if(|next| next.due <= now) {
            let arrivals = feedback.arrivals.into_iter();
            if let Some(report) = self.history.on_twcc(feedback.header, arrivals) {
                controller.on_feedback(now, report);
            }
        }
    }
}
