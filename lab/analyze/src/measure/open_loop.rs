//! Every controller under the recorded feedback: where would its target have been?
//!
//! This is open loop. The controllers see what the recorded sender sent and what its far end
//! reported. Their targets change nothing of that, because none of the packets that they would have
//! sent crosses a network.

use weir::RateLimits;
use weir::controller::{Controller, Settings};
use weir::feedback::FeedbackReport;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_controllers::{ReceivedPacket, ReceiverEstimator};

use crate::read::packets::PacketLog;
use crate::read::packets::play::{Event, Indices, play};

/// Limits of the targets: those of a browser's camera, unless the recorded sender sent more.
const MIN: Bitrate = Bitrate::from_kbps(30);
const MAX: Bitrate = Bitrate::from_kbps(2_500);
/// The targets begin with what was sent in this time. Recorded probes have no marks, and without
/// probes some controllers would need longer than the call to come from the usual start to its
/// rate.
const BEGIN: TimeDelta = TimeDelta::from_secs(2);
/// The targets may exceed the recorded rate by this.
const HEADROOM: f64 = 2.0;
/// Handlers that a controller may ask for at one time. More is a controller that does not advance.
const TIMEOUTS_MAX: u32 = 10_000;
/// Handlers of a controller in a whole call: two hours with one each 10 ms. Then its targets end.
const HANDLERS_MAX: u32 = 720_000;

/// The targets of a controller under the recorded feedback.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLoop {
    /// The controller.
    pub algorithm: LabAlgorithm,
    /// Each target with the time from which it held.
    pub targets: Vec<(Timestamp, Bitrate)>,
    /// When the recorded packets end.
    pub end: Timestamp,
    /// Whether the controller was stopped before the end, because it had too much to do.
    pub is_cut: bool,
}

impl OpenLoop {
    /// The target at a time; `None` before the first packet.
    pub fn at(&self, time: Timestamp) -> Option<Bitrate> {
        let known = self.targets.partition_point(|(from, _)| *from <= time);
        known.checked_sub(1).map(|at| self.targets[at].1)
    }

    /// Mean over time.
    pub fn mean(&self) -> Bitrate {
        let ends = self.targets.iter().skip(1).map(|(time, _)| *time).chain([self.end]);
        let (mut bits, mut seconds) = (0.0, 0.0);
        for ((from, target), to) in self.targets.iter().zip(ends) {
            let length = (to - *from).as_secs_f64().max(0.0);
            bits += target.as_bps() as f64 * length;
            seconds += length;
        }
        Bitrate::from_bps_f64(if seconds > 0.0 { bits / seconds } else { 0.0 })
    }

    /// Smallest and largest target.
    pub fn range(&self) -> (Bitrate, Bitrate) {
        let targets = self.targets.iter().map(|(_, target)| *target);
        (targets.clone().min().unwrap_or_default(), targets.max().unwrap_or_default())
    }
}

/// Plays the recorded feedback into every controller. Empty without feedback.
pub fn open_loop(log: &PacketLog) -> Vec<OpenLoop> {
    if !log.has_feedback() {
        return Vec::new();
    }
    let limits = limits(log);
    let mut played: Vec<Played> = LabAlgorithm::all().map(|it| Played::new(it, limits)).collect();
    let mut end = Timestamp::ZERO;
    let mut reports = 0;
    play(log, &mut |now, event| {
        end = now;
        reports += u32::from(matches!(event, Event::Report { .. }));
        for it in &mut played {
            it.take(now, &event, log);
        }
    });
    if reports == 0 {
        return Vec::new();
    }
    let finished = played.into_iter().map(|it| OpenLoop {
        algorithm: it.algorithm,
        is_cut: it.handlers >= HANDLERS_MAX,
        targets: it.targets,
        end,
    });
    finished.collect()
}

fn limits(log: &PacketLog) -> RateLimits {
    let first = log.sent.first().map_or(Timestamp::ZERO, |packet| packet.time);
    let last = log.sent.last().map_or(Timestamp::ZERO, |packet| packet.time);
    let [early, mean] = [BEGIN, (last - first).max(BEGIN)].map(|length| {
        let sent = log.sent.iter().take_while(|packet| packet.time <= first + length);
        let bytes: f64 = sent.map(|packet| f64::from(packet.size)).sum();
        Bitrate::from_bps_f64(bytes * 8.0 / length.as_secs_f64())
    });
    let max = MAX.max(mean * HEADROOM);
    let start = early.clamp(MIN, max);
    RateLimits::new(MIN, start, max).expect("0 < min <= start <= max")
}

struct Played {
    algorithm: LabAlgorithm,
    controller: Box<dyn Controller + Send>,
    /// The receiver's half, of a controller that has one.
    receiver: Option<Box<dyn ReceiverEstimator + Send>>,
    /// The receiver's time so far.
    receiver_now: Timestamp,
    /// Handlers so far.
    handlers: u32,
    targets: Vec<(Timestamp, Bitrate)>,
}

impl Played {
    fn new(algorithm: LabAlgorithm, limits: RateLimits) -> Self {
        Self {
            algorithm,
            controller: algorithm.build(Settings::new(limits)),
            receiver: algorithm.build_receiver(),
            receiver_now: Timestamp::from_nanos(i64::MIN),
            handlers: 0,
            targets: Vec::new(),
        }
    }

    fn take(&mut self, now: Timestamp, event: &Event<'_>, log: &PacketLog) {
        if self.handlers >= HANDLERS_MAX {
            return;
        }
        self.advance(now);
        match event {
            Event::Sent(packet) => self.controller.on_packet_sent(now, packet),
            Event::Report { report, indices } => {
                self.controller.on_feedback(now, report);
                self.receive(now, report, indices, log);
            }
            Event::RoundTrip(rtt) => self.controller.on_round_trip_time(now, *rtt),
        }
        self.note(now);
    }

    /// Calls the handlers that are due.
    fn advance(&mut self, now: Timestamp) {
        for _ in 0..TIMEOUTS_MAX {
            let Some(due) = self.controller.next_timeout().filter(|due| *due <= now) else {
                return;
            };
            self.handlers += 1;
            self.controller.on_timeout(due);
            self.note(due);
        }
    }

    /// Gives the arrived packets to the receiver's half. What it sends reaches the sender with the
    /// feedback that reported them.
    fn receive(
        &mut self,
        now: Timestamp,
        report: &FeedbackReport,
        indices: &Indices,
        log: &PacketLog,
    ) {
        let Some(receiver) = &mut self.receiver else { return };
        let mut arrived: Vec<_> = report.received().collect();
        arrived.sort_by_key(|packet| packet.arrival_time);
        for packet in arrived {
            let Some(arrival) = packet.arrival_time else { continue };
            self.receiver_now = self.receiver_now.max(arrival);
            for _ in 0..TIMEOUTS_MAX {
                let due = receiver.next_timeout().filter(|due| *due <= self.receiver_now);
                let Some(due) = due else { break };
                self.handlers += 1;
                receiver.on_timeout(due);
            }
            let rtp_timestamp =
                indices.get(packet.sequence_number).map_or(0, |at| log.sent[at].rtp_timestamp);
            let received = ReceivedPacket::new(packet.send_time, rtp_timestamp, packet.size);
            receiver.on_packet(self.receiver_now, &received);
        }
        if let Some(limit) = receiver.take_limit() {
            self.controller.on_receiver_limit(now, Some(limit));
        }
    }

    fn note(&mut self, now: Timestamp) {
        let target = self.controller.target().bitrate;
        if self.targets.last().is_none_or(|(_, last)| *last != target) {
            self.targets.push((now, target));
        }
    }
}
