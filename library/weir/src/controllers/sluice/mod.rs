//! `sluice`: Weir's own controller.
//!
//! ```text
//! report -+-> queue ------> standing queue, noise -> reference delay -+
//!         +-> rate meter -> delivered rate, sent rate ----------------+-> law -> rate -> target,
//!         +-> losses -----> inherent, or by a queue ------------------+    ^           pacing rate
//!         +-> marks ------> share ------------------------------------+    |
//!         +-> sharing ----> own part of the capacity -----------------+    |
//!                           competition: crowding, tests of the rival -----+
//! ```
//!
//! While a queue stands, the delivered rate is the capacity. So the controller keeps a short queue
//! standing and follows the delivered rate. Without a queue it grows, faster the longer none shows.
//! `docs/reference/controllers/sluice.md` states the rules. Comments refer to them as S-1 to S-38.

mod base;
mod clock;
mod competition;
mod hand_over;
mod in_order;
mod law;
mod losses;
mod marks;
mod measure;
mod parameters;
mod policer;
mod queue;
mod radio;
mod rate_meter;
mod sharing;
#[cfg(test)]
mod tests;

pub use parameters::Parameters;

use self::clock::ReceiverClock;
use self::competition::{Crowding, RivalTests};
use self::hand_over::Cuts;
use self::law::{BaseTest, Seen, State};
use self::losses::Losses;
use self::marks::Marks;
use self::parameters::Switch;
use self::policer::Policer;
use self::queue::Queue;
use self::radio::{Flight, Radio};
use self::rate_meter::RateMeter;
use self::sharing::Sharing;
use crate::controller::{
    Burst, Controller, EcnMode, Metrics, RateLimits, Reason, Settings, Signals, Target, Window,
};
use crate::controllers::longer_path::LongerPath;
use crate::controllers::rare_reports::beyond;
use crate::controllers::reported_packets::ReportedPackets;
use crate::controllers::silence::{ReportInterval, Silence};
use crate::feedback::{FeedbackReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Share of a new value in the smoothed round-trip time and in that of the report interval.
const TIME_GAIN: f64 = 1.0 / 8.0;
/// Round-trip time until one is measured, and the longest that counts.
const RTT_UNKNOWN: TimeDelta = TimeDelta::from_millis(100);
const RTT_MAX: TimeDelta = TimeDelta::from_secs(2);
/// Time between two reports until it is known, and the longest that counts. Receiver reports come
/// about once a second.
const REPORT_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
const REPORT_INTERVAL_MAX: TimeDelta = TimeDelta::from_secs(2);
/// Size of a packet until some were sent.
const PACKET_SIZE: DataSize = DataSize::from_bytes(1_200);
/// Such packets that may be in flight beyond what the feedback's time needs (S-31).
const SPARE: f64 = 2.0;
/// Share of a new packet in the mean size.
const SIZE_GAIN: f64 = 1.0 / 64.0;

/// The controller.
#[derive(Clone, Debug)]
pub struct Sluice {
    p: Parameters,
    settings: Settings,
    receiver_limit: Option<Bitrate>,
    clock: ReceiverClock,
    queue: Queue,
    coverage: ReportedPackets,
    delivered: RateMeter,
    sent: RateMeter,
    losses: Losses,
    cuts: Cuts,
    longer_path: LongerPath,
    policer: Policer,
    sharing: Sharing,
    radio: Radio,
    marks: Marks,
    silence: Silence,
    flight: Flight,
    rtt: Option<TimeDelta>,
    /// The delays are round-trip times of receiver reports.
    is_round_trip: bool,
    /// Mean packet size in bytes.
    packet_bytes: f64,
    state: State,
    /// The capacity as far as it is known.
    level: Bitrate,
    /// The level before the last drain.
    anchor: Bitrate,
    /// When that began.
    drains_since: Timestamp,
    /// The level before the queue became crowded.
    uncrowded: Bitrate,
    /// Scale of the reference delay: below 1 after losses at a standing queue.
    scale: f64,
    last_report: Option<Timestamp>,
    /// The rate before the first silence, until the first report says that it was none (S-23).
    unheard: Option<Bitrate>,
    reports: ReportInterval,
    /// Seconds for which no queue has stood; `None` while one stands. A report counts with at most
    /// `Parameters::step_max`: rare reports do not make the growth fast.
    calm_s: Option<f64>,
    crowding: Crowding,
    rival_tests: RivalTests,
    /// Last mark under L4S.
    marked: Option<Timestamp>,
    /// Last response to losses or marks.
    responded: Option<Timestamp>,
    /// Last sight of the empty path.
    empty_at: Timestamp,
    /// End of the base test that runs.
    test_until: Option<Timestamp>,
    /// Until then the rate of the base test does not rise.
    held_until: Timestamp,
    base_test: Option<BaseTest>,
    /// The rate before the limits of the receiver.
    rate: Bitrate,
    target: Target,
    reason: Reason,
}

impl Sluice {
    /// A controller with the documented constants.
    pub fn new(settings: impl Into<Settings>) -> Self {
        Self::with_parameters(settings, Parameters::DEFAULT)
    }

    /// A controller with other constants, for experiments.
    pub fn with_parameters(settings: impl Into<Settings>, parameters: Parameters) -> Self {
        let settings = settings.into();
        let start = settings.limits.start();
        let mut sluice = Self {
            p: parameters,
            settings,
            receiver_limit: None,
            clock: ReceiverClock::default(),
            queue: Queue::new(),
            coverage: ReportedPackets::default(),
            delivered: RateMeter::of_arrivals(),
            sent: RateMeter::default(),
            losses: Losses::default(),
            cuts: Cuts::default(),
            longer_path: LongerPath::default(),
            policer: Policer::default(),
            sharing: Sharing::default(),
            radio: Radio::default(),
            marks: Marks::default(),
            silence: Silence::default(),
            flight: Flight::default(),
            rtt: None,
            is_round_trip: false,
            packet_bytes: PACKET_SIZE.as_bytes() as f64,
            state: if parameters.has(Switch::Start) { State::Start } else { State::Track },
            level: start,
            anchor: Bitrate::ZERO,
            drains_since: Timestamp::ZERO,
            uncrowded: start,
            scale: 1.0,
            last_report: None,
            unheard: None,
            reports: ReportInterval::default(),
            calm_s: None,
            crowding: Crowding::default(),
            rival_tests: RivalTests::new(),
            marked: None,
            responded: None,
            empty_at: Timestamp::ZERO,
            test_until: None,
            held_until: Timestamp::ZERO,
            base_test: None,
            rate: start,
            target: Target::new(start, start),
            reason: Reason::Start,
        };
        sluice.retarget(Reason::Start);
        sluice
    }

    fn rtt(&self) -> TimeDelta {
        self.rtt.unwrap_or(RTT_UNKNOWN)
    }

    /// Smoothed time between two reports.
    fn report_interval(&self) -> TimeDelta {
        self.reports.usual().unwrap_or(REPORT_INTERVAL)
    }

    /// The time of the loop beyond that of reports that come often enough.
    fn loop_delay(&self) -> TimeDelta {
        let interval = self.reports.usual().unwrap_or(TimeDelta::ZERO);
        beyond(interval, self.p.t_often)
    }

    /// The round trip without the queue.
    fn path_time(&self) -> TimeDelta {
        (self.rtt() - self.queue.standing().unwrap_or(TimeDelta::ZERO)).max(TimeDelta::ZERO)
    }

    /// Time in which a deviation of the queue from the reference is corrected (S-13).
    fn correction_time(&self) -> TimeDelta {
        self.p.t_loop + self.loop_delay() + beyond(self.path_time(), self.p.t_loop)
    }

    /// How many times as long as usual it takes to drain a queue where reports are rare.
    fn loops(&self) -> f64 {
        1.0 + self.loop_delay() / self.p.t_loop
    }

    /// Time of one packet at the current rate.
    fn packet_time(&self) -> TimeDelta {
        DataSize::from_bytes(self.packet_bytes as u64) / self.rate
    }

    /// The queuing delay that the controller keeps standing (S-5).
    fn reference(&self) -> TimeDelta {
        let p = &self.p;
        let whole = self.reference_alone();
        let least = (p.q_min + self.queue.noise()).min(whole);
        (whole * self.gentle(p.share_scale)).max(least)
    }

    /// The same for a flow that does not give way.
    fn reference_alone(&self) -> TimeDelta {
        let p = &self.p;
        let path = (p.q_min + self.queue.noise() * p.k_noise).min(p.q_max) * self.scale;
        path + (self.packet_time() * (p.k_packet * self.settings.priority)).min(p.q_packet)
    }

    /// How clearly the flow has more than its part beside others, 0 to 1 (S-26).
    fn surplus(&self) -> f64 {
        self.sharing.surplus(&self.p)
    }

    /// The factor of a flow that gives way: from 1 without a surplus to `most` with a clear one.
    fn gentle(&self, most: f64) -> f64 {
        1.0 - self.surplus() * (1.0 - most)
    }

    /// The step of the rate after a report.
    fn act(&mut self, now: Timestamp) {
        self.silence.on_feedback();
        if let Some(rate) = self.unheard.take()
            && self.losses.ratio() == 0.0
        {
            (self.rate, self.level) = (rate, rate);
        }
        let seen = self.see(now);
        let reason = self.step(&seen);
        let tests = self.test_base(&seen);
        self.retarget(if tests { Reason::BaseTest } else { reason });
    }

    /// What the law needs to know, after the response to losses and marks.
    fn see(&mut self, now: Timestamp) -> Seen {
        let last = self.last_report.replace(now).unwrap_or(now);
        self.reports.on_report(now);
        let step_s = elapsed(last, now).min(self.p.step_max()).as_secs_f64();
        self.radio.update(self.sharing.own_long(), self.scale, step_s, &self.p);
        let delivered = self.delivered.rate(self.p.w_level).unwrap_or(self.rate);
        let standing = self.queue.standing().unwrap_or(TimeDelta::ZERO);
        let newest = self.queue.newest().unwrap_or(standing);
        Seen {
            now,
            step_s,
            queue: (standing + (newest - standing) * self.radio.belief()).max(TimeDelta::ZERO),
            reference: self.reference(),
            delivered,
            delivered_soon: self.delivered.rate(self.p.t_loop).unwrap_or(delivered),
            sent: self.sent.rate(self.p.w_level).unwrap_or(self.rate),
            congestion: self.respond(now),
        }
    }

    /// Derives target and pacing rate from the rate (S-24, S-25).
    fn retarget(&mut self, reason: Reason) {
        let p = &self.p;
        let rate = self.settings.limits.clamp(self.rate);
        // S-32: what waits in the sender must leave before what comes.
        let belief = if p.has(Switch::SenderWait) { self.radio.belief() } else { 0.0 };
        let waits = self.flight.waits() / p.t_soon * belief;
        let own = self.settings.limits.clamp(self.rate.saturating_sub(waits));
        let bitrate = self.settings.limits.cap(own, self.receiver_limit);
        if bitrate != self.target.bitrate {
            self.reason = if bitrate < own { Reason::ReceiverLimit } else { reason };
        }
        let tests = self.test_until.is_some() || self.policer.sends_less();
        let drains = self.state == State::Drain || tests;
        let factor = match self.settings.ecn {
            _ if drains => p.pacing_drain,
            EcnMode::L4s => p.pacing_drain,
            EcnMode::Off | EcnMode::Classic if self.scale < p.s_pacing => {
                p.pacing_drain + (p.pacing - p.pacing_drain) * (self.scale / p.s_pacing)
            }
            EcnMode::Off | EcnMode::Classic => p.pacing,
        };
        let paced = self.settings.limits.cap(rate, self.receiver_limit) * factor;
        self.target = Target::new(bitrate, paced)
            .with_burst(Burst::Ahead(TimeDelta::ZERO))
            .with_window(self.window());
    }

    /// What may be in flight on a radio link (S-31).
    fn window(&self) -> Option<Window> {
        let belief = self.radio.belief();
        if belief == 0.0 || !self.p.has(Switch::Window) {
            return None;
        }
        let queue = self.p.q_rival * (1.0 / belief.max(0.01));
        let feedback = self.flight.feedback_time(self.p.k_window) + self.report_interval();
        let time = feedback + queue;
        let time = if self.flight.is_lost() { TimeDelta::ZERO } else { time };
        // Limits that fell count at once, not only from the next report.
        let level = self.level.min(self.settings.limits.max() * self.p.level_max());
        let window = level * time + PACKET_SIZE * SPARE;
        let flight = self.flight.bytes(self.packet_bytes);
        Some(Window::new(window, window.saturating_sub(flight)))
    }
}

/// The time between two reports: none if the host's clock was set back in between.
fn elapsed(last: Timestamp, now: Timestamp) -> TimeDelta {
    (now - last).max(TimeDelta::ZERO)
}

impl Controller for Sluice {
    fn on_media_queued(&mut self, _now: Timestamp, added: DataSize, queued: DataSize) {
        self.flight.on_media_queued(queued.saturating_sub(added));
        if self.radio.belief() > 0.0 {
            self.retarget(self.reason);
        }
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.reports.on_packet_sent(now);
        if !self.silence.is_running() {
            let patience = self.reports.patience_for(self.p.w_level, self.p.missed_reports);
            self.silence.on_packet_sent(now, self.rtt, patience);
        }
        self.flight.on_packet_sent(packet);
        if self.radio.belief() > 0.0 {
            self.target.window = self.window();
        }
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.packets.is_empty() {
            return;
        }
        // S-23: a path that carries nothing is as silent as one without reports.
        if self.measure(now, report) {
            self.act(now);
        }
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.retarget(Reason::ReceiverLimit);
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        self.rate = limits.clamp(self.rate);
        if let Some(rate) = &mut self.unheard {
            *rate = limits.clamp(*rate);
        }
        self.retarget(Reason::Limits);
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        let fresh = Self::with_parameters(self.settings, self.p);
        *self = Self { receiver_limit: self.receiver_limit, reason: Reason::NewRoute, ..fresh };
        self.retarget(Reason::NewRoute);
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        (self.rate, self.level) = (share, share);
        self.retarget(Reason::Coupled);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.has_ended(now) {
            if self.last_report.is_none() {
                self.unheard.get_or_insert(self.rate);
            }
            let least = self.settings.limits.min();
            self.rate = (self.rate * 0.5).max(least);
            self.level = self.radio.between(self.rate, (self.level * 0.5).max(least));
            self.flight.forget();
            self.retarget(Reason::FeedbackLost);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.silence.deadline()
    }

    fn target(&self) -> Target {
        self.target
    }

    fn metrics(&self) -> Metrics {
        let standing = self.queue.standing();
        Metrics::new(self.reason, self.state.as_str())
            .with_rtt(self.rtt)
            .with_queuing_delay(standing)
            .with_loss_ratio(self.losses.ratio())
            .with_acknowledged_bitrate(self.delivered.rate(self.p.w_level))
            .with_signals(Signals::new([
                ("queue_ms", standing.unwrap_or(TimeDelta::ZERO).as_millis_f64()),
                ("reference_ms", self.reference().as_millis_f64()),
                ("noise_ms", self.queue.noise().as_millis_f64()),
                ("level_kbps", self.level.as_kbps_f64()),
                ("scale_ratio", self.scale),
                ("crowded_s", self.crowding.time().as_secs_f64()),
                ("share_ratio", self.sharing.own()),
                ("radio_ratio", self.radio.belief()),
            ]))
    }
}
