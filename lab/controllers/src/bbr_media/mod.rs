//! BBR version 3 (draft-ietf-ccwg-bbr) as a media controller.
//!
//! ```text
//! report -> rounds -> max bandwidth, full pipe -+
//!    |        |                                 v
//!    |        +-> losses -> bounds ----------> cycle: startup, drain, down, cruise, refill, up
//!    +-> lowest round-trip time -------------->   |    and probe rtt
//!                                                 v
//!             target = pacing gain x bandwidth, window = window gain x bandwidth x round trip
//! ```
//!
//! What BBR paces at is the target bitrate of the media. Comments in the source name the deviations
//! from the draft, BBRM-D1 to BBRM-D7.

mod bounds;
mod cycle;
mod full_pipe;
mod max_bandwidth;
#[cfg(test)]
mod tests;

use crate::measure::{Delivered, Flight, INITIAL_RTT, PACKET, Reports, Round, Silence};
use bounds::Bounds;
use cycle::{Cycle, Phase, Seen, Step};
use max_bandwidth::MaxBandwidth;
use weir::controller::{
    Burst, Controller, Metrics, RateLimits, Reason, Settings, Signals, Target, Window,
};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// `MinRTTFilterLen` [BBR3 §2].
const MIN_RTT_WINDOW: TimeDelta = TimeDelta::from_secs(10);
/// `BBRPacingMarginPercent`: the rate stays below the bandwidth [BBR3 §5.6.2].
const MARGIN: f64 = 0.99;
/// `BBRMinPipeCwnd`, in packets [BBR3 §5.6.4].
const LEAST_PACKETS: f64 = 4.0;
/// Rate of the pacer over the target: BBRM-D2.
const PACING_FACTOR: f64 = 1.5;
/// A round is limited by the source if it sends less than this share of the target.
const LIMITED: f64 = 0.9;
/// Factor of the bandwidth when feedback is missing: BBRM-D6.
const SILENCE_FACTOR: f64 = 0.5;

/// The controller of draft-ietf-ccwg-bbr.
#[derive(Clone, Debug)]
pub struct BbrMedia {
    reports: Reports,
    delivered: Delivered,
    flight: Flight,
    max: MaxBandwidth,
    bounds: Bounds,
    cycle: Cycle,
    silence: Silence,
    /// Whether the window held packets back in this round.
    window_closed: bool,
    /// Target at the start of the round.
    round_target: Bitrate,
    last: Option<Round>,
    settings: Settings,
    receiver_limit: Option<Bitrate>,
    target: Bitrate,
    reason: Reason,
}

impl BbrMedia {
    /// A controller at the start bitrate.
    pub fn new(settings: impl Into<Settings>) -> Self {
        let settings = settings.into();
        let start = settings.limits.start();
        Self {
            reports: Reports::default(),
            delivered: Delivered::default(),
            flight: Flight::default(),
            max: MaxBandwidth::new(start),
            bounds: Bounds::default(),
            cycle: Cycle::new(),
            silence: Silence::default(),
            window_closed: false,
            round_target: start,
            last: None,
            settings,
            receiver_limit: None,
            target: start,
            reason: Reason::Start,
        }
    }

    /// `bw`: the highest bandwidth, as far as short-term losses allow.
    fn bandwidth(&self) -> Bitrate {
        self.bounds.cap_rate(self.max.value()).max(self.settings.limits.min())
    }

    /// A multiple of the bandwidth-delay product. BBRM-D3: with what is sent between two reports,
    /// in place of the draft's `extra_acked`.
    fn product(&self, gain: f64) -> DataSize {
        let bandwidth = self.bandwidth();
        let held_back = bandwidth * self.reports.interval();
        bandwidth * (self.reports.min_rtt() * gain) + held_back
    }

    /// `cwnd` [BBR3 §5.6.4].
    fn window(&self) -> DataSize {
        let phase = self.cycle.phase();
        let bytes = self.product(phase.window_gain());
        let bounded = self.bounds.cap_flight(bytes, phase == Phase::Cruise);
        bounded.max(PACKET * LEAST_PACKETS)
    }

    fn is_source_limited(&self, round: &Round) -> bool {
        round.sent < self.round_target * LIMITED && !self.window_closed
    }

    /// Takes a round into the model. Returns whether the source limited it.
    fn learn(&mut self, round: &Round) -> bool {
        let limited = self.is_source_limited(round);
        self.max.update(round.rate, limited);
        if round.lost > 0 && !self.cycle.phase().probes() {
            self.bounds.on_loss(round, self.max.value());
        }
        self.last = Some(*round);
        (self.round_target, self.window_closed) = (self.target, false);
        limited
    }

    fn step(&mut self, now: Timestamp, round: Option<&Round>, rtt: TimeDelta) {
        let source_limited = round.is_some_and(|round| self.learn(round));
        let seen = Seen {
            round,
            source_limited,
            in_flight: self.flight.bytes(),
            product: self.product(1.0),
            lowest_rtt: rtt <= self.reports.min_rtt(),
        };
        match self.cycle.update(now, &seen, &mut self.bounds) {
            Step::EndCycle => self.max.advance(),
            Step::MeasureRtt => self.reports.forget_min_rtt(),
            Step::Enter | Step::Stay => {}
        }
    }

    fn retarget(&mut self, reason: Reason) {
        let rate = self.bandwidth() * (self.cycle.phase().pacing_gain() * MARGIN);
        let limits = self.settings.limits;
        let target = limits.cap(limits.clamp(rate), self.receiver_limit);
        if target != self.target {
            (self.target, self.reason) = (target, reason);
        }
    }

    /// Why the model moves the target: by its phase, or by what was lost.
    fn cause(&self) -> Reason {
        let lost = self.last.is_some_and(|round| round.lost > 0);
        match self.cycle.phase() {
            Phase::Startup => Reason::RampUp,
            Phase::ProbeRtt => Reason::BaseTest,
            Phase::Drain | Phase::Down | Phase::Cruise if lost => Reason::Loss,
            Phase::Drain | Phase::Down => Reason::QueuingDelay,
            Phase::Cruise | Phase::Refill | Phase::Up => Reason::Increase,
        }
    }
}

impl Controller for BbrMedia {
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.silence.on_packet_sent(now, self.reports.smoothed_rtt().unwrap_or(INITIAL_RTT));
        self.flight.on_packet_sent(packet);
        self.delivered.on_packet_sent(packet.size, self.flight.bytes());
        self.window_closed |=
            packet.queued > DataSize::ZERO && self.flight.bytes() >= self.window();
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.flight.on_report(report);
        let Some(rtt) = self.reports.on_report(now, MIN_RTT_WINDOW, report) else { return };
        self.silence.on_feedback();
        // BBRM-D1: a round is at least 100 ms.
        let round = self.delivered.on_report(now, rtt, report);
        self.step(now, round.as_ref(), rtt);
        if self.last.is_some() {
            self.retarget(self.cause());
        }
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        let target = self.settings.limits.cap(self.target, limit);
        if target != self.target {
            (self.target, self.reason) = (target, Reason::ReceiverLimit);
        }
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        let target = limits.cap(limits.clamp(self.target), self.receiver_limit);
        if target != self.target {
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
        self.max.set(share);
        let limits = self.settings.limits;
        let target = limits.cap(limits.clamp(share), self.receiver_limit);
        if target != self.target {
            (self.target, self.reason) = (target, Reason::Coupled);
        }
    }

    /// BBRM-D6: the draft leaves missing feedback to the transport's timer.
    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.has_ended(now) {
            let rate = self.bandwidth().min(self.target) * SILENCE_FACTOR;
            self.max.set(rate.max(self.settings.limits.min()));
            self.flight.forget();
            self.delivered.restart();
            self.retarget(Reason::FeedbackLost);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.silence.deadline()
    }

    fn target(&self) -> Target {
        let window = self.window();
        let available = window.saturating_sub(self.flight.bytes());
        Target::new(self.target, self.target * PACING_FACTOR)
            .with_burst(Burst::Ahead(TimeDelta::ZERO))
            .with_window(Some(Window::new(window, available)))
    }

    fn metrics(&self) -> Metrics {
        let bound = self.bounds.long_term().unwrap_or(DataSize::ZERO);
        Metrics::new(self.reason, self.cycle.phase().as_str())
            .with_rtt(self.reports.smoothed_rtt())
            .with_loss_ratio(self.last.map_or(0.0, |round| round.loss_ratio))
            .with_acknowledged_bitrate(self.last.map(|round| round.rate))
            .with_signals(Signals::new([
                ("max_bw_kbps", self.max.value().as_kbps_f64()),
                ("bw_kbps", self.bandwidth().as_kbps_f64()),
                ("min_rtt_ms", self.reports.min_rtt().as_millis_f64()),
                ("inflight_longterm_bytes", bound.as_bytes() as f64),
                ("bytes_in_flight_bytes", self.flight.bytes().as_bytes() as f64),
            ]))
    }
}
