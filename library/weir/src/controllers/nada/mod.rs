//! NADA: Network-Assisted Dynamic Adaptation [NADA §4], run entirely at the sender.
//!
//! ```text
//! report -+-> one-way delay --> d_queue -------+
//!         +-> loss intervals -> warping share -+-> congestion signal -> x_curr +
//!         +-> log window -+---> p_loss, p_mark +                               |
//!         |               +---> mode -> rmode ---------------------------------+-> reference rate
//!         +-> receive rate ---> r_recv ----------------------------------------+      |
//!         +-> rtt -------------------------------------------------------------+    r_ref
//!                                                                                     |
//! send queue -> buffer_len -> shaping buffer <----------------------------------------+
//!                                   +-> r_vin = target bitrate, r_send = pacing rate
//! ```
//!
//! In the standard, the receiver does the upper half and reports three numbers. Here feedback
//! covers each packet, so the sender does both halves, as in [NADA §6.4]. Comments in the source
//! refer to the deviations from the standard as NADA-D1 to NADA-D20.
//!
//! [NADA §4]: https://www.rfc-editor.org/rfc/rfc8698#section-4
//! [NADA §6.4]: https://www.rfc-editor.org/rfc/rfc8698#section-6.4

mod congestion_signal;
mod delay;
mod log_window;
mod loss_intervals;
mod mode;
mod parameters;
mod receive_rate;
mod reference_rate;
mod shaping_buffer;
#[cfg(test)]
mod tests;

pub use parameters::Parameters;

use self::congestion_signal::{CongestionSignal, Measurements};
use self::delay::{MinFilter, OneWayDelay};
use self::log_window::{LogWindow, Reported};
use self::loss_intervals::LossIntervals;
use self::mode::Mode;
use self::receive_rate::ReceiveRate;
use self::reference_rate::{DELTA_MAX, Input, ReferenceRate};
use self::shaping_buffer::ShapingBuffer;
use crate::controller::{
    Controller, EcnMode, Metrics, RateLimits, Reason, Settings, Signals, Target,
};
use crate::controllers::longer_path::{LongerPath, Ways};
use crate::controllers::reported_packets::{Covered, ReportedPackets};
use crate::controllers::silence::{ReportInterval, Silence};
use crate::feedback::{ArrivalTimes, Ecn, FeedbackReport, PacketReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// The NADA controller.
#[derive(Clone, Debug)]
pub struct Nada {
    parameters: Parameters,
    settings: Settings,
    receiver_limit: Option<Bitrate>,
    delay: OneWayDelay,
    longer_path: LongerPath,
    rtt: MinFilter,
    window: LogWindow,
    loss_intervals: LossIntervals,
    /// Smoothed loss ratio `p_loss`.
    loss_ratio: f64,
    /// Smoothed marking ratio `p_mark`.
    marking_ratio: f64,
    coverage: ReportedPackets,
    receive_rate: ReceiveRate,
    mode: Mode,
    signal: CongestionSignal,
    reference: ReferenceRate,
    shaping: ShapingBuffer,
    silence: Silence,
    reports: ReportInterval,
    target: Target,
    reason: Reason,
}

impl Nada {
    /// A controller with the standard's default parameters.
    pub fn new(settings: impl Into<Settings>) -> Self {
        let settings = settings.into();
        let parameters = Parameters { prio: settings.priority, ..Parameters::DEFAULT };
        Self::with_parameters(settings, parameters)
    }

    /// A controller with custom parameters. Their `PRIO` is used; the priority in the settings is
    /// ignored.
    pub fn with_parameters(settings: impl Into<Settings>, parameters: Parameters) -> Self {
        let settings = settings.into();
        let start = settings.limits.start();
        Self {
            parameters,
            settings,
            receiver_limit: None,
            delay: OneWayDelay::new(),
            longer_path: LongerPath::default(),
            rtt: MinFilter::new(),
            window: LogWindow::default(),
            loss_intervals: LossIntervals::default(),
            loss_ratio: 0.0,
            marking_ratio: 0.0,
            coverage: ReportedPackets::default(),
            receive_rate: ReceiveRate::default(),
            mode: Mode::RampUp,
            signal: CongestionSignal::default(),
            reference: ReferenceRate::new(settings.limits),
            shaping: ShapingBuffer::default(),
            silence: Silence::default(),
            reports: ReportInterval::default(),
            target: Target::new(start, start),
            reason: Reason::Start,
        }
    }

    /// `LOGWIN`, but at least the usual time between two reports: what one report tells must count
    /// (NADA-D14).
    fn window_length(&self) -> TimeDelta {
        self.parameters.logwin.max(self.reports.usual().unwrap_or(TimeDelta::ZERO))
    }

    /// Per-packet steps that the standard assigns to the receiver [NADA §4.2].
    fn on_packet_report(&mut self, now: Timestamp, packet: &PacketReport, window: TimeDelta) {
        let p = &self.parameters;
        let (number, send_time) = (packet.sequence_number, packet.send_time);
        let covered = self.coverage.on_packet(packet);
        let mut reported = Reported { lost: true, ..Reported::default() };
        if let (Some(arrival), Some(delay)) = (packet.arrival_time, packet.one_way_delay()) {
            self.delay.on_packet(now, send_time, delay, packet.size);
            // NADA-D13: packets on which no report came have arrived, too.
            if let Covered::New { missing } = covered {
                self.receive_rate.on_unreported(arrival, missing, window);
                self.receive_rate.on_arrival(arrival, packet.size, window);
            }
            reported = Reported {
                lost: false,
                // Marks count only if the sender uses ECN.
                marked: packet.ecn == Ecn::Ce && self.settings.ecn != EcnMode::Off,
                // This uses `d_fwd`, the filtered delay [NADA §4.1] [NADA §4.2].
                delayed: self.delay.queuing_delay() >= Some(p.qeps),
            };
        }
        self.window.on_packet(number, send_time, reported, window);
        self.loss_intervals.on_packet(number, send_time);
        if reported.lost {
            let rtt = self.rtt.min().unwrap_or(TimeDelta::ZERO);
            self.loss_intervals.on_loss(number, send_time, rtt);
        } else if packet.recovered {
            self.loss_intervals.on_recovery(number);
        }
    }

    /// Update once per `DELTA`: first the receiver's report, then the sender's reaction [NADA §4.2]
    /// [NADA §4.3].
    fn update(&mut self, now: Timestamp) {
        let p = &self.parameters;
        // NADA-D4: smoothed once per update, not once per packet.
        self.loss_ratio += p.alpha * (self.window.loss_ratio() - self.loss_ratio);
        self.marking_ratio += p.alpha * (self.window.marking_ratio() - self.marking_ratio);
        let report_interval = self.reports.usual().unwrap_or(TimeDelta::ZERO);
        let fresh = self.delay.reported_queuing_delay().filter(|_| report_interval > DELTA_MAX);
        let queuing_delay = fresh.or(self.delay.queuing_delay()).unwrap_or(TimeDelta::ZERO);
        let measured = Measurements {
            queuing_delay,
            warping_share: self.loss_intervals.warping_share(p),
            loss_ratio: self.loss_ratio,
            marking_ratio: self.marking_ratio,
        };
        self.signal = CongestionSignal::new(&measured, p);
        self.mode = Mode::of(&self.window);
        if self.mode == Mode::RampUp {
            self.loss_intervals.on_calm();
        }
        let input = Input {
            mode: self.mode,
            signal: self.signal,
            receive_rate: self.receive_rate.bitrate(self.window_length()).unwrap_or(Bitrate::ZERO),
            rtt: self.rtt.min().unwrap_or(TimeDelta::ZERO),
            report_interval,
            queuing_delay,
        };
        let before = self.reference.rate();
        let reason = self.reference.update(now, &input, p);
        self.retarget(before, reason);
    }

    /// NADA-D18: a path that became longer both ways has a new base delay and the rate of before.
    fn look_for_new_path(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.arrival_times == ArrivalTimes::RoundTrip {
            return;
        }
        let mut newest = None;
        for packet in report.received() {
            newest = packet.one_way_delay().zip(packet.arrival_time);
        }
        let Some((there, arrival)) = newest else { return };
        let (ways, before) = (Ways { there, back: now - arrival }, self.reference.rate());
        let round_trip = there + ways.back;
        if let Some(rate) = self.longer_path.on_report(now, ways, round_trip, before) {
            self.delay.on_new_path();
            self.window.forget_delays();
            self.reference.on_new_path(rate);
            self.retarget(before, Reason::NewRoute);
        }
    }

    /// NADA-D10: derives target bitrate and pacing rate from `r_ref`, each time `r_ref` is updated.
    fn retarget(&mut self, r_ref_before: Bitrate, reason: Reason) {
        let r_ref = self.reference.rate();
        let shaped = self.shaping.video_rate(r_ref, &self.settings.limits, &self.parameters);
        let bitrate = self.settings.limits.cap(shaped, self.receiver_limit);
        let pacing_rate = self.shaping.sending_rate(r_ref, &self.settings.limits, &self.parameters);
        let moved = bitrate.cmp(&self.target.bitrate);
        if moved.is_ne() {
            // If the target moved in another direction than `r_ref`, the send queue is the cause.
            let follows = moved == r_ref.cmp(&r_ref_before);
            self.reason = match (bitrate < shaped, follows) {
                (true, _) => Reason::ReceiverLimit,
                (false, true) => reason,
                (false, false) => Reason::SendQueue,
            };
        }
        self.target = Target::new(bitrate, pacing_rate);
    }
}

impl Controller for Nada {
    fn on_media_queued(&mut self, _now: Timestamp, _added: DataSize, queued: DataSize) {
        self.shaping.set_length(queued);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.shaping.set_length(packet.queued);
        // NADA-D9
        self.reports.on_packet_sent(now);
        let patience = self.reports.patience(self.parameters.logwin);
        self.silence.on_packet_sent(now, self.rtt.min(), patience);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.packets.is_empty() {
            return;
        }
        self.silence.on_feedback();
        self.reports.on_report(now);
        if report.new_clock {
            self.delay.on_new_clock();
            self.longer_path = LongerPath::default();
            self.receive_rate = ReceiveRate::default();
        }
        if let Some(rtt) = report.rtt(now) {
            self.rtt.push(rtt.max(TimeDelta::ZERO));
        }
        self.coverage.begin_report();
        let window = self.window_length();
        let arrives = self.receive_rate.bitrate(window).unwrap_or(Bitrate::ZERO);
        self.delay.begin_report(now, report, arrives.max(self.reference.rate()));
        self.look_for_new_path(now, report);
        for packet in &report.packets {
            self.on_packet_report(now, packet, window);
        }
        if self.reference.is_due(now, &self.parameters) {
            self.update(now);
        }
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.retarget(self.reference.rate(), Reason::ReceiverLimit);
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        let before = self.reference.rate();
        self.reference.set_limits(limits);
        self.retarget(before, Reason::Limits);
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        let fresh = Self::with_parameters(self.settings, self.parameters);
        *self = Self { receiver_limit: self.receiver_limit, reason: Reason::NewRoute, ..fresh };
        self.retarget(self.reference.rate(), Reason::NewRoute);
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        let before = self.reference.rate();
        self.reference.set_rate(share);
        self.retarget(before, Reason::Coupled);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.has_ended(now) {
            let before = self.reference.rate();
            self.reference.on_silence();
            self.retarget(before, Reason::FeedbackLost);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.silence.deadline()
    }

    fn target(&self) -> Target {
        self.target
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            reason: self.reason,
            state: self.mode.as_str(),
            rtt: self.rtt.min(),
            queuing_delay: self.delay.queuing_delay(),
            loss_ratio: self.loss_ratio,
            acknowledged_bitrate: self.receive_rate.bitrate(self.window_length()),
            signals: Signals::new([
                ("x_curr_ms", self.signal.total().as_millis_f64()),
                ("d_tilde_ms", self.signal.warped_delay.as_millis_f64()),
                ("r_ref_kbps", self.reference.rate().as_kbps_f64()),
                ("p_mark_ratio", self.marking_ratio),
            ]),
        }
    }
}
