//! Copa (NSDI 2018) as a media controller: the base of Vidaptive.
//!
//! ```text
//! report -> standing queue dq -> mode (delta) ---+
//!    |            |                              v
//!    +-> acknowledged bytes ---------> window <- velocity
//!                                        |
//!                       target = cwnd / RTTstanding, pacing twice that
//! ```
//!
//! Copa aims at `1 / (delta dq)` packets a second. Comments in the source name the deviations from
//! the paper, COPA-D1 to COPA-D7.

mod mode;
mod standing;
#[cfg(test)]
mod tests;
mod velocity;
mod window;

use crate::measure::{Delivered, Flight, INITIAL_RTT, PACKET, Reports, Silence};
use mode::Mode;
use standing::{BASE_WINDOW, StandingQueue};
use velocity::Velocity;
use weir::controller::{
    Burst, Controller, Metrics, RateLimits, Reason, Settings, Signals, Target, Window as SendWindow,
};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use window::{Move, Path, Window};

/// Pacing rate over the rate of the window [COPA §2.1].
const PACING_FACTOR: f64 = 2.0;
/// The window grows while this multiple of the delivered rate is not below the target: COPA-D3.
const USED: f64 = 2.0;
/// Bytes that may be in flight over the window: COPA-D2.
const FLIGHT_FACTOR: f64 = 2.0;
/// Lowest window, in packets.
const LEAST_PACKETS: f64 = 2.0;
/// Factor of the window when feedback is missing: COPA-D6.
const SILENCE_FACTOR: f64 = 0.5;

/// The controller of the Copa paper.
#[derive(Clone, Debug)]
pub struct Copa {
    queue: StandingQueue,
    reports: Reports,
    mode: Mode,
    velocity: Velocity,
    window: Window,
    flight: Flight,
    delivered: Delivered,
    /// Rate of the last round; `None` before the first.
    delivered_rate: Option<Bitrate>,
    loss_ratio: f64,
    silence: Silence,
    settings: Settings,
    receiver_limit: Option<Bitrate>,
    target: Bitrate,
    reason: Reason,
}

impl Copa {
    /// A controller at the start bitrate.
    pub fn new(settings: impl Into<Settings>) -> Self {
        let settings = settings.into();
        let start = settings.limits.start();
        Self {
            queue: StandingQueue::new(),
            reports: Reports::default(),
            mode: Mode::new(),
            velocity: Velocity::new(),
            window: Window::new((start * INITIAL_RTT).as_bytes() as f64),
            flight: Flight::default(),
            delivered: Delivered::default(),
            delivered_rate: None,
            loss_ratio: 0.0,
            silence: Silence::default(),
            settings,
            receiver_limit: None,
            target: start,
            reason: Reason::Start,
        }
    }

    /// `RTTstanding`: the lowest round-trip time plus the standing queue.
    fn standing_rtt(&self) -> TimeDelta {
        self.reports.min_rtt() + self.queue.delay().unwrap_or_default()
    }

    fn measure(&mut self, now: Timestamp, report: &FeedbackReport) {
        let rtt = self.reports.smoothed_rtt().unwrap_or(INITIAL_RTT);
        self.queue.on_report(now, rtt, report);
        if let Some(round) = self.delivered.on_report(now, rtt, report) {
            self.delivered_rate = Some(round.rate);
            self.loss_ratio = round.loss_ratio;
        }
        let lost = report.loss_counts().lost > 0;
        let round_trip = rtt.max(self.reports.interval());
        self.mode.update(now, round_trip, &self.queue, lost);
    }

    /// Whether the source uses what it may send, and the path what it may carry: COPA-D3.
    fn may_grow(&self) -> bool {
        let used = self.delivered_rate.is_none_or(|rate| rate * USED >= self.target);
        used && self.target < self.most()
    }

    fn most(&self) -> Bitrate {
        self.settings.limits.cap(self.settings.limits.max(), self.receiver_limit)
    }

    fn move_window(&mut self, now: Timestamp, report: &FeedbackReport) -> Move {
        let mut acked = DataSize::ZERO;
        for packet in report.received().filter(|packet| !packet.recovered) {
            acked += packet.size;
        }
        let path = Path {
            queue: self.queue.delay().unwrap_or_default(),
            standing_rtt: self.standing_rtt(),
            delta: self.mode.delta(),
            velocity: self.velocity.value(),
            may_grow: self.may_grow(),
        };
        let moved = self.window.on_acknowledged(acked, &path);
        self.hold_window();
        let packets = self.window.bytes() / PACKET.as_bytes() as f64;
        if !self.window.is_slow_start() && moved != Move::Stay {
            self.velocity.update(now, path.standing_rtt, packets, path.delta);
        }
        moved
    }

    /// Keeps the window to what the limits of the target allow.
    fn hold_window(&mut self) {
        let rtt = self.standing_rtt();
        let least = (self.settings.limits.min() * rtt).as_bytes() as f64;
        let most = (self.most() * rtt).as_bytes() as f64 + 1.0;
        let packets = LEAST_PACKETS * PACKET.as_bytes() as f64;
        self.window.clamp(least, most.max(packets));
    }

    fn retarget(&mut self, reason: Reason) {
        let bytes = DataSize::from_bytes(self.window.bytes() as u64);
        let rate = self.settings.limits.clamp(bytes / self.standing_rtt());
        let target = self.settings.limits.cap(rate, self.receiver_limit);
        if target != self.target {
            self.reason = match reason {
                // The window stood, but a longer or shorter queue changed its rate.
                Reason::RampUp | Reason::Increase | Reason::Competing if target < self.target => {
                    Reason::QueuingDelay
                }
                Reason::QueuingDelay if target > self.target => Reason::Increase,
                reason => reason,
            };
            self.target = target;
        }
    }

    fn reason_of(&self, moved: Move) -> Reason {
        match moved {
            Move::Double => Reason::RampUp,
            Move::Up if self.mode.is_competitive() => Reason::Competing,
            Move::Up | Move::Stay => Reason::Increase,
            Move::Down => Reason::QueuingDelay,
        }
    }
}

impl Controller for Copa {
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.silence.on_packet_sent(now, self.reports.smoothed_rtt().unwrap_or(INITIAL_RTT));
        self.flight.on_packet_sent(packet);
        self.delivered.on_packet_sent(packet.size, self.flight.bytes());
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.flight.on_report(report);
        let first = self.reports.smoothed_rtt().is_none();
        if self.reports.on_report(now, BASE_WINDOW, report).is_none() {
            return;
        }
        self.silence.on_feedback();
        if first {
            // COPA-D7: the window of the start bitrate at the round-trip time that was measured.
            let bytes = (self.target * self.reports.min_rtt()).as_bytes();
            self.window = Window::new(bytes as f64);
        }
        self.measure(now, report);
        let moved = self.move_window(now, report);
        self.retarget(self.reason_of(moved));
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        let target = self.settings.limits.cap(self.target, limit);
        if target != self.target {
            (self.target, self.reason) = (target, Reason::ReceiverLimit);
            self.hold_window();
        }
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        let target = limits.cap(limits.clamp(self.target), self.receiver_limit);
        if target != self.target {
            self.window.scale(target / self.target);
            (self.target, self.reason) = (target, Reason::Limits);
        }
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        let fresh = Self::new(self.settings);
        let target = fresh.settings.limits.cap(fresh.target, self.receiver_limit);
        *self =
            Self { receiver_limit: self.receiver_limit, reason: Reason::NewRoute, target, ..fresh };
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        let target =
            self.settings.limits.cap(self.settings.limits.clamp(share), self.receiver_limit);
        if target != self.target {
            self.window.scale(target / self.target);
            (self.target, self.reason) = (target, Reason::Coupled);
        }
    }

    /// COPA-D6: the paper has no rule for missing feedback.
    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.has_ended(now) {
            self.window.scale(SILENCE_FACTOR);
            self.window.end_slow_start();
            self.velocity.reset();
            self.flight.forget();
            self.delivered.restart();
            self.delivered_rate = None;
            self.retarget(Reason::FeedbackLost);
            self.hold_window();
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.silence.deadline()
    }

    fn target(&self) -> Target {
        // COPA-D2: room for frames, and for what is sent while a report is on its way.
        let waiting = self.target * self.reports.interval();
        let most = (self.window.bytes() + waiting.as_bytes() as f64) * FLIGHT_FACTOR;
        let most = most.max(LEAST_PACKETS * PACKET.as_bytes() as f64);
        let available = DataSize::from_bytes(most as u64).saturating_sub(self.flight.bytes());
        let window = DataSize::from_bytes(self.window.bytes() as u64);
        Target::new(self.target, self.target * PACING_FACTOR)
            .with_burst(Burst::Ahead(TimeDelta::ZERO))
            .with_window(Some(SendWindow::new(window, available)))
    }

    fn metrics(&self) -> Metrics {
        let state = match (self.window.is_slow_start(), self.mode.is_competitive()) {
            (true, _) => "slow start",
            (false, false) => "default",
            (false, true) => "competitive",
        };
        Metrics::new(self.reason, state)
            .with_rtt(self.reports.smoothed_rtt())
            .with_queuing_delay(self.queue.delay())
            .with_loss_ratio(self.loss_ratio)
            .with_acknowledged_bitrate(self.delivered_rate)
            .with_signals(Signals::new([
                ("window_bytes", self.window.bytes()),
                ("bytes_in_flight_bytes", self.flight.bytes().as_bytes() as f64),
                ("delta_ratio", self.mode.delta()),
                ("velocity_ratio", self.velocity.value()),
            ]))
    }
}
