//! Applies operations to one controller, and checks its invariants after each call.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::controller::{Burst, Controller, RateLimits, Settings};
use crate::factory::ControllerFactory;
use crate::feedback::{ArrivalTimes, Ecn, FeedbackReport, PacketReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Number of reported packets kept, so that later feedback can report them again.
const REPEATABLE: usize = 64;
/// Minimum round-trip time: 25 ms in each direction.
const ROUND_TRIP: TimeDelta = TimeDelta::from_millis(50);
/// A window that holds what leaves in this time is too large for any path.
const HOUR: TimeDelta = TimeDelta::from_secs(3_600);
/// If one advance causes more timeouts than this, the controller requests them in a loop.
const MAX_TIMEOUTS: usize = 1_000_000;

/// A violation of the contract by a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl core::error::Error for Violation {}

/// Returns an error with this message unless the condition is true.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        // Not `if !$condition`: a comparison with NaN must count as a violation.
        match $condition {
            true => {}
            false => return Err(Violation(format!($($words)+))),
        }
    };
}
pub(super) use ensure;

type Checked<T = ()> = Result<T, Violation>;

/// One step of a script.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Op {
    /// Time passes; due timeouts are delivered.
    Advance(TimeDelta),
    /// Time passes while the host sleeps, or its clock is set forward; one late timeout is
    /// delivered.
    Jump(TimeDelta),
    /// Packets are sent at once, regardless of the controller's window.
    Send {
        /// Number of packets.
        packets: usize,
        /// Size of each.
        bytes: u64,
    },
    /// A feedback report on the oldest packets not reported yet.
    Feedback(Feedback),
    /// The receiver's clock jumps.
    ReceiverClock(TimeDelta),
    /// The receiver switches to another feedback format.
    Format(Format),
    /// The length of the send queue changes.
    Queue {
        /// Bytes in the send queue.
        bytes: u64,
    },
    /// A receiver report gives a round-trip time, which may be absurd.
    RoundTrip(TimeDelta),
    /// The application changes the range of the target bitrate.
    Limits(RateLimits),
    /// The source can use another bitrate at most.
    Desired(Option<Bitrate>),
    /// Packets take another route, and those under way are forgotten.
    NewRoute,
}

/// What a feedback format reports about arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Arrival times by the receiver's clock, as in transport-wide feedback.
    Measured,
    /// Arrival times by another clock, which is this much ahead, with ECN bits, as in RFC 8888.
    Ccfb(TimeDelta),
    /// Only round-trip times, as in receiver reports.
    RoundTrip,
}

/// Content of a feedback report.
#[derive(Clone, Debug)]
pub struct Feedback {
    /// Number of packets reported.
    pub packets: usize,
    /// Share of them reported as lost.
    pub loss: f64,
    /// Maximum jitter of the arrival times. Jitter larger than the packet spacing causes
    /// reordering.
    pub jitter: TimeDelta,
    /// Seed that decides which packets are lost and how late each one is.
    pub salt: u64,
    /// Whether earlier packets are reported again, lost ones as recovered.
    pub repeat: bool,
}

/// A controller with a simulated sender, path and receiver.
pub struct Driver {
    /// The controller under test.
    pub controller: Box<dyn Controller + Send>,
    /// The start time of the next operation.
    pub now: Timestamp,
    limits: RateLimits,
    next_number: i64,
    last_sent: Timestamp,
    /// All bytes sent.
    sent: DataSize,
    unreported: VecDeque<(SentPacket, Timestamp)>,
    reported: VecDeque<PacketReport>,
    receiver_clock: TimeDelta,
    format: Format,
    /// The next report is the first in its format.
    new_clock: bool,
}

impl Driver {
    /// A new controller of this kind, at time 10 s.
    pub fn new(factory: impl Into<ControllerFactory>, settings: impl Into<Settings>) -> Self {
        let (factory, settings) = (factory.into(), settings.into());
        let limits = settings.limits;
        Self {
            controller: factory.build(settings),
            now: Timestamp::from_secs(10),
            limits,
            next_number: 0,
            last_sent: Timestamp::ZERO,
            sent: DataSize::ZERO,
            unreported: VecDeque::new(),
            reported: VecDeque::new(),
            receiver_clock: TimeDelta::from_secs(-3),
            format: Format::Measured,
            new_clock: false,
        }
    }

    /// The current feedback format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// When the last packet was sent.
    pub fn last_sent(&self) -> Timestamp {
        self.last_sent
    }

    /// Applies one step of a script and checks the controller.
    ///
    /// # Errors
    ///
    /// The violation of the contract.
    pub fn try_apply(&mut self, op: &Op) -> Result<(), Violation> {
        match op {
            Op::Advance(by) => self.advance(self.now + *by)?,
            Op::Jump(by) => self.jump(self.now + *by)?,
            Op::Send { packets, bytes } => {
                for left in (0..*packets).rev() {
                    self.send(*bytes, bytes.saturating_mul(left as u64));
                }
            }
            Op::Feedback(feedback) => self.feed_back(feedback),
            Op::ReceiverClock(by) => self.receiver_clock += *by,
            Op::Format(format) => {
                self.new_clock |= self.format != *format;
                self.format = *format;
            }
            Op::Queue { bytes } => {
                let bytes = DataSize::from_bytes(*bytes);
                self.controller.on_media_queued(self.now, bytes, bytes);
            }
            Op::RoundTrip(rtt) => self.controller.on_round_trip_time(self.now, *rtt),
            Op::Limits(limits) => {
                self.limits = *limits;
                self.controller.set_limits(self.now, *limits);
            }
            Op::Desired(desired) => self.controller.set_desired_bitrate(self.now, *desired),
            Op::NewRoute => {
                self.unreported.clear();
                self.reported.clear();
                self.controller.on_route_change(self.now);
            }
        }
        self.check()
    }

    /// Like [`try_apply`](Driver::try_apply), but panics on a violation.
    ///
    /// # Panics
    ///
    /// If the controller violated the contract.
    pub fn apply(&mut self, op: &Op) {
        self.try_apply(op).unwrap_or_else(|violation| panic!("{violation}"));
    }

    pub(super) fn advance(&mut self, until: Timestamp) -> Checked {
        for _ in 0..MAX_TIMEOUTS {
            let Some(due) = self.due(until) else {
                self.now = until;
                return Ok(());
            };
            self.now = self.now.max(due);
            self.time_out()?;
        }
        Err(Violation("the controller asks for timeouts without end".into()))
    }

    /// The time of the next timeout, if it is due by then. The last time of all means never.
    fn due(&self, until: Timestamp) -> Option<Timestamp> {
        let next = self.controller.next_timeout()?;
        (next <= until && next < Timestamp::MAX).then_some(next)
    }

    fn time_out(&mut self) -> Checked {
        self.controller.on_timeout(self.now);
        let next = self.controller.next_timeout();
        let is_later = next.is_none_or(|next| next > self.now || next == Timestamp::MAX);
        ensure!(is_later, "a timeout in the past: {next:?}");
        Ok(())
    }

    fn jump(&mut self, until: Timestamp) -> Checked {
        self.now = self.now.max(until);
        if self.due(self.now).is_some() { self.time_out() } else { Ok(()) }
    }

    fn send(&mut self, bytes: u64, queued: u64) {
        let packet = SentPacket::new(self.next_number, DataSize::from_bytes(bytes))
            .with_queued(DataSize::from_bytes(queued));
        self.next_number += 1;
        self.sent += packet.size;
        self.last_sent = self.now;
        self.unreported.push_back((packet, self.now));
        self.controller.on_packet_sent(self.now, &packet);
    }

    /// Whether the controller's window lets a packet leave.
    pub(super) fn may_send(&self) -> bool {
        self.controller.target().window.is_none_or(|window| window.available > DataSize::ZERO)
    }

    /// Sends a packet of a link, which reports on it itself. Returns its number.
    pub(super) fn send_one(&mut self, size: DataSize, queued: DataSize) -> i64 {
        self.send(size.as_bytes(), queued.as_bytes());
        self.unreported.pop_back();
        self.next_number - 1
    }

    fn feed_back(&mut self, feedback: &Feedback) {
        let mut packets = Vec::new();
        if feedback.repeat {
            packets.extend(self.reported.drain(..).map(|old| {
                old.with_arrival_time(old.arrival_time.or(Some(self.now + self.receiver_clock)))
                    .with_recovered(old.arrival_time.is_none())
            }));
        }
        for index in 0..feedback.packets.min(self.unreported.len()) {
            let Some((packet, send_time)) = self.unreported.pop_front() else { break };
            let draw = mix(feedback.salt, index as u64);
            let lost = (draw % 1_000) as f64 / 1_000.0 < feedback.loss;
            let late = feedback.jitter * ((draw >> 32) as f64 / f64::from(u32::MAX));
            let arrival = send_time + TimeDelta::from_millis(25) + late + self.receiver_clock;
            packets.push(
                PacketReport::new(packet.sequence_number, packet.size, send_time)
                    .with_arrival_time((!lost).then_some(arrival))
                    .with_ecn(if draw.is_multiple_of(97) { Ecn::Ce } else { Ecn::NotEct }),
            );
        }
        self.reported.extend(packets.iter().copied());
        while self.reported.len() > REPEATABLE {
            self.reported.pop_front();
        }
        let missing_feedback = (feedback.salt % 3) as u32;
        // A script may report a packet right after sending it, but no path is that short.
        let report = FeedbackReport::new(packets).with_missing_feedback(missing_feedback);
        self.report(report, ROUND_TRIP);
    }

    /// Converts a report to the current feedback format and passes it to the controller. Its
    /// arrival times are by the receiver's clock. The round trip of the path is this long at least.
    pub(super) fn report(&mut self, mut report: FeedbackReport, least: TimeDelta) {
        let newest = report.received().map(|packet| packet.send_time).max();
        let round_trip = newest.map_or(least, |newest| least.max(self.now - newest));
        for packet in &mut report.packets {
            let arrival = packet.arrival_time.as_mut();
            match self.format {
                Format::Measured => packet.ecn = Ecn::NotEct,
                Format::Ccfb(ahead) => arrival.into_iter().for_each(|time| *time += ahead),
                Format::RoundTrip => {
                    let send_time = packet.send_time;
                    if let Some(time) = arrival {
                        *time = send_time + round_trip;
                    }
                    packet.ecn = Ecn::NotEct;
                }
            }
        }
        if self.format == Format::RoundTrip {
            report.arrival_times = ArrivalTimes::RoundTrip;
        }
        report.new_clock = core::mem::take(&mut self.new_clock);
        self.controller.on_feedback(self.now, &report);
    }

    pub(super) fn check(&self) -> Checked {
        let target = self.controller.target();
        let (Burst::Ahead(burst) | Burst::Whole(burst)) = target.burst;
        ensure!(burst >= TimeDelta::ZERO, "a negative burst: {burst}");
        let padding = target.padding_rate;
        ensure!(padding <= self.limits.max(), "padding of {padding}, above the largest bitrate");
        let probe = target.probe;
        ensure!(probe.is_none_or(|p| p.rate > Bitrate::ZERO), "a probe without a rate: {probe:?}");
        let bitrate = target.bitrate;
        ensure!(self.limits.clamp(bitrate) == bitrate, "a target of {bitrate}, out of the limits");
        let pacing = target.pacing_rate;
        let most = self.limits.max() * 100.0 + Bitrate::from_kbps(100_000);
        ensure!(pacing > Bitrate::ZERO && pacing <= most, "pacing at {pacing}");
        if let Some(window) = target.window {
            let size = window.congestion_window;
            // What is sent decides how large a window may be.
            let most = DataSize::from_bytes(1 << 40).max(self.sent);
            let is_sane = size > DataSize::ZERO && size <= most.max(self.limits.max() * HOUR);
            ensure!(is_sane, "a congestion window of {size}");
        }
        let metrics = self.controller.metrics();
        let loss = metrics.loss_ratio;
        ensure!((0.0..=1.0).contains(&loss), "a loss ratio of {loss}");
        for (name, value) in metrics.signals.iter() {
            ensure!(value.is_finite(), "the signal {name} is {value}");
        }
        Ok(())
    }

    /// Sends at the controller's rate over a FIFO link with a round-trip time of 50 ms and a queue
    /// of 300 ms. Feedback arrives every 50 ms. Returns the mean target of the last quarter.
    ///
    /// # Panics
    ///
    /// If the controller violated the contract.
    pub fn run_clean_link(
        &mut self,
        capacity: Bitrate,
        length: TimeDelta,
        source_cap: Option<Bitrate>,
    ) -> Bitrate {
        self.try_run_clean_link(capacity, length, source_cap)
            .unwrap_or_else(|violation| panic!("{violation}"))
    }

    /// Like [`run_clean_link`](Driver::run_clean_link), but returns an error on a violation.
    ///
    /// # Errors
    ///
    /// The violation of the contract.
    pub fn try_run_clean_link(
        &mut self,
        capacity: Bitrate,
        length: TimeDelta,
        source_cap: Option<Bitrate>,
    ) -> Result<Bitrate, Violation> {
        const STEP: TimeDelta = TimeDelta::from_millis(5);
        const PACKET: DataSize = DataSize::from_bytes(1_200);
        self.unreported.clear();
        self.reported.clear();
        let start = self.now;
        let (mut free_at, mut credit) = (start, DataSize::ZERO);
        let mut on_the_way: VecDeque<PacketReport> = VecDeque::new();
        let (mut sum, mut samples, mut step) = (0.0, 0_u32, 0_i64);
        while self.now < start + length {
            step += 1;
            self.advance(start + STEP * step)?;
            let target = self.controller.target();
            let rate = source_cap.map_or(target.bitrate, |cap| cap.min(target.bitrate));
            // Packets that do not fit the window stay in the send queue; the controller is
            // notified.
            credit = (credit + rate * STEP).min(PACKET * 200.0);
            let whole =
                |credit: DataSize| credit.as_bytes() / PACKET.as_bytes() * PACKET.as_bytes();
            self.controller.on_media_queued(
                self.now,
                rate * STEP,
                DataSize::from_bytes(whole(credit)),
            );
            let open = |driver: &Self| {
                driver.controller.target().window.is_none_or(|w| w.available > DataSize::ZERO)
            };
            while credit >= PACKET && open(self) {
                credit = credit.saturating_sub(PACKET);
                self.send(PACKET.as_bytes(), whole(credit));
                let (packet, send_time) = self.unreported.pop_back().expect("just sent");
                let dropped = free_at - self.now > TimeDelta::from_millis(300);
                if !dropped {
                    free_at = free_at.max(self.now) + PACKET / capacity;
                }
                let arrival = free_at + TimeDelta::from_millis(25) + self.receiver_clock;
                on_the_way.push_back(
                    PacketReport::new(packet.sequence_number, packet.size, send_time)
                        .with_arrival_time((!dropped).then_some(arrival)),
                );
            }
            if step % 10 == 0 {
                self.report_arrived(&mut on_the_way);
            }
            self.check()?;
            if self.now - start > length * 0.75 {
                sum += self.controller.target().bitrate.as_bps_f64();
                samples += 1;
            }
        }
        Ok(Bitrate::from_bps_f64(sum / f64::from(samples)))
    }

    /// Reports packets that arrived at least 25 ms ago, and drops that later arrivals revealed.
    fn report_arrived(&mut self, on_the_way: &mut VecDeque<PacketReport>) {
        let horizon = self.now - TimeDelta::from_millis(25) + self.receiver_clock;
        let arrived =
            on_the_way.iter().rposition(|p| p.arrival_time.is_some_and(|time| time <= horizon));
        if let Some(last) = arrived {
            let packets = on_the_way.drain(..=last).collect();
            self.report(FeedbackReport::new(packets), ROUND_TRIP);
        }
    }
}

/// SplitMix64: a hash that spreads a small change over all bits.
pub(super) fn mix(salt: u64, index: u64) -> u64 {
    let mut z = salt.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
