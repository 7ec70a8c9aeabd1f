//! Feedback whose delays and losses a test chooses.

use std::collections::VecDeque;

use weir::Controller;
use weir::controller::{RateLimits, Reason, Settings};
use weir::controllers::sluice::Sluice;
use weir::feedback::{ArrivalTimes, Ecn, FeedbackReport, PacketReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Time between two reports, and how long the packets take without a queue.
const WINDOW: TimeDelta = TimeDelta::from_millis(50);
pub const ONE_WAY: TimeDelta = TimeDelta::from_millis(25);
/// Packets of a window, whose mean size of 1250 bytes makes 2 Mbit/s.
pub const PACKETS: i64 = 10;
/// The round-trip time: from the last packet of a window to its report.
const RTT_MS: i64 = 300;

pub fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

pub fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

#[track_caller]
pub fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

/// When a report comes if one on packets that did not wait came at this time: the way back is as
/// long for all.
pub fn comes(at: Timestamp, report: &FeedbackReport) -> Timestamp {
    let delay = report.packets.last().and_then(PacketReport::one_way_delay);
    at + delay.map_or(TimeDelta::ZERO, |delay| delay - ONE_WAY)
}

/// A sender of 2 Mbit/s, and a receiver whose reports come 300 ms after the last packet in them,
/// and later by what this packet waited in the queue.
pub struct Feed {
    pub sluice: Sluice,
    pub now: Timestamp,
    pub number: i64,
    pub packets: i64,
    pub rtt: TimeDelta,
    /// Whether the packet of this number is lost.
    pub is_lost: fn(i64) -> bool,
    pub ecn: Ecn,
    pub arrival_times: ArrivalTimes,
    pub new_clock: bool,
    /// Offset of the receiver's clock.
    pub clock: TimeDelta,
    /// Windows of packets without a report, and when the last report came.
    sent: VecDeque<Vec<PacketReport>>,
    last_report: Timestamp,
    /// Reason of the target after each report.
    pub reasons: Vec<Reason>,
}

impl Feed {
    pub fn new(start: u64) -> Self {
        Self::with(Settings::new(RateLimits::new(kbps(150), kbps(start), kbps(20_000)).unwrap()))
    }

    pub fn with(settings: Settings) -> Self {
        Self {
            sluice: Sluice::new(settings),
            now: Timestamp::from_secs(100),
            number: 0,
            packets: PACKETS,
            rtt: ms(RTT_MS),
            is_lost: |_| false,
            ecn: Ecn::NotEct,
            arrival_times: ArrivalTimes::Measured,
            new_clock: false,
            clock: TimeDelta::ZERO,
            sent: VecDeque::new(),
            last_report: Timestamp::ZERO,
            reasons: Vec::new(),
        }
    }

    /// In track at 2 Mbit/s, after a queue at the reference for long enough to forget the start.
    pub fn settled() -> Self {
        Self::new(2_000).settle()
    }

    pub fn settle(mut self) -> Self {
        self.run(600, 0);
        // The second drain begins at 2 Mbit/s, so that nothing is left to recover (S-11).
        for time_ms in [3_000, 5_000] {
            self.grow(60);
            self.run(400, 60);
            self.run(time_ms, 14);
        }
        assert_eq!(self.state(), "track");
        near(self.signal("level_kbps"), 2_000.0, 20.0);
        self
    }

    /// Sends a window, and reports on the one of a round-trip time ago, of which packet `i` waited
    /// for `queue_ms[i]`, and all others for the last value.
    pub fn window(&mut self, queue_ms: &[i64]) {
        let sent = (0..self.packets).map(|index| {
            let at = self.now + WINDOW / self.packets * index;
            // Sizes differ, because equal ones say nothing about other flows (S-26).
            let size = DataSize::from_bytes(if self.number % 2 == 0 { 1_200 } else { 1_300 });
            self.sluice.on_packet_sent(at, &SentPacket::new(self.number, size));
            self.number += 1;
            PacketReport::new(self.number - 1, size, at)
        });
        let sent = sent.collect();
        self.sent.push_back(sent);
        self.now += WINDOW;
        let wait = |index: usize| ms(*queue_ms.get(index).or(queue_ms.last()).expect("a delay"));
        let due = self.sent[0].last().expect("a packet").send_time + self.rtt;
        if due > self.now {
            return;
        }
        // A way back that was as long for all reports, and kept their order.
        let due = (due + wait(self.sent[0].len() - 1)).max(self.last_report);
        self.last_report = due;
        let mut packets = self.sent.pop_front().expect("a window");
        for (index, packet) in packets.iter_mut().enumerate() {
            let arrival = packet.send_time + ONE_WAY + wait(index) + self.clock;
            packet.arrival_time = (!(self.is_lost)(packet.sequence_number)).then_some(arrival);
            packet.ecn = self.ecn;
        }
        // A receiver that gets nothing reports nothing.
        if packets.iter().all(|packet| packet.arrival_time.is_none()) {
            let next = self.sent.front_mut().expect("the window after it");
            next.splice(0..0, packets);
            return;
        }
        let report = FeedbackReport::new(packets)
            .with_arrival_times(self.arrival_times)
            .with_new_clock(std::mem::take(&mut self.new_clock));
        self.sluice.on_feedback(due, &report);
        self.reasons.push(self.sluice.metrics().reason);
    }

    /// Reports for this long on packets that all waited for this long. Returns target and level in
    /// kbit/s after each of them.
    pub fn run(&mut self, time_ms: i64, queue_ms: i64) -> Vec<(f64, f64)> {
        self.reasons.clear();
        let mut after_each = Vec::new();
        for _ in 0..time_ms / 50 {
            self.window(&[queue_ms]);
            after_each.push((self.target(), self.signal("level_kbps")));
        }
        after_each
    }

    /// The queue grows by 20 ms a report to this delay: a larger step may be a longer path (S-19).
    pub fn grow(&mut self, queue_ms: i64) {
        let now = self.signal("queue_ms") as i64;
        (now..queue_ms).step_by(20).for_each(|delay| drop(self.run(50, delay)));
    }

    /// The queue falls by 20 ms a report: packets keep their order.
    pub fn shrink(&mut self, queue_ms: i64) {
        let now = self.signal("queue_ms") as i64;
        (queue_ms..now).rev().step_by(20).for_each(|delay| drop(self.run(50, delay)));
    }

    pub fn signal(&self, name: &str) -> f64 {
        let metrics = self.sluice.metrics();
        metrics.signals.iter().find(|(of, _)| *of == name).expect("a signal of sluice").1
    }

    pub fn target(&self) -> f64 {
        self.sluice.target().bitrate.as_kbps_f64()
    }

    pub fn state(&self) -> &'static str {
        self.sluice.metrics().state
    }

    pub fn pacing_factor(&self) -> f64 {
        self.sluice.target().pacing_rate / self.sluice.target().bitrate
    }
}
