//! SCReAM: self-clocked rate adaptation for multimedia, the sender of RFC 8298.
//!
//! ```text
//! report -> bytes in flight -> newest packet -> queuing delay -> delay trend ---+
//!    |                              |                 |                         v
//!    |                              |                 +-> delay target -> congestion window (mode)
//!    +-> lost packets, ECN -> congestion events ------------------------^       |
//!                                   |                                           v
//!                                   |      sender transmission: send window, pacing, minimum rate
//!                                   v
//! source, sender, receiver -> throughput -> media rate control (every 200 ms) -> target bitrate
//! ```
//!
//! The state of the network limits the bytes in flight. The send queue between source and network
//! limits the target bitrate. Comments in the source refer to the deviations as SCREAM-D1 to
//! SCREAM-D13.

mod congestion_events;
mod congestion_window;
mod delay_trend;
mod media_rate_control;
mod recent_flight;
mod sender_transmission;
#[cfg(test)]
mod tests;
mod throughput;

use crate::controller::{
    Controller, EcnMode, Metrics, RateLimits, Reason, Settings, Signals, Target,
};
use crate::controllers::scream_common::{
    Acknowledgement, BytesInFlight, DelayTarget, LossEventRate, LostPackets, QueuingDelay, Silence,
    SmoothedRtt,
};
use crate::feedback::{FeedbackReport, PacketReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use congestion_events::{Congestion, CongestionEvents};
use congestion_window::{CongestionWindow, DelaySignals, Mode};
use delay_trend::DelayTrend;
use media_rate_control::{Conditions, MediaRateControl, RATE_ADJUST_INTERVAL};
use recent_flight::RecentFlight;
use sender_transmission::{pacing_rate, send_window};
use throughput::Throughput;

/// `QDELAY_TARGET_LO`: the lowest delay target [SCREAM §4.1.1.1].
const QDELAY_TARGET_LO: TimeDelta = TimeDelta::from_millis(100);

/// The SCReAM controller, RFC 8298.
#[derive(Clone, Debug)]
pub struct Scream {
    flight: BytesInFlight,
    recent_flight: RecentFlight,
    rtt: SmoothedRtt,
    queuing_delay: QueuingDelay,
    trend: DelayTrend,
    delay_target: DelayTarget,
    lost: LostPackets,
    events: CongestionEvents,
    loss_events: LossEventRate,
    window: CongestionWindow,
    silence: Silence,
    throughput: Throughput,
    media: MediaRateControl,
    /// If ECN is off, marks are ignored.
    settings: Settings,
    receiver_limit: Option<Bitrate>,
    /// End of the current adjustment interval; `None` before the first packet.
    adjust_at: Option<Timestamp>,
}

impl Scream {
    /// A controller that starts at the start bitrate.
    pub fn new(settings: impl Into<Settings>) -> Self {
        let settings = settings.into();
        let limits = settings.limits;
        Self {
            settings,
            flight: BytesInFlight::default(),
            recent_flight: RecentFlight::default(),
            rtt: SmoothedRtt::default(),
            queuing_delay: QueuingDelay::default(),
            trend: DelayTrend::default(),
            delay_target: DelayTarget::new(QDELAY_TARGET_LO),
            lost: LostPackets::default(),
            events: CongestionEvents::default(),
            loss_events: LossEventRate::default(),
            window: CongestionWindow::new(limits.start()),
            silence: Silence::default(),
            throughput: Throughput::default(),
            media: MediaRateControl::new(limits),
            receiver_limit: None,
            adjust_at: None,
        }
    }

    /// Queuing delay relative to its target, `qdelay / qdelay_target`.
    fn delay_fraction(&self) -> f64 {
        self.queuing_delay.value() / self.delay_target.value()
    }

    fn measure_delay(&mut self, now: Timestamp, newest: &PacketReport) {
        let rtt = self.rtt.update(now - newest.send_time);
        if let Some(one_way_delay) = newest.one_way_delay() {
            self.queuing_delay.update(now, one_way_delay, rtt);
        }
        self.trend.update(now, self.delay_fraction());
        self.silence.on_acknowledged(now, self.flight.bytes());
    }

    fn back_off(&mut self, congestion: Congestion) {
        self.window.on_congestion(congestion);
        self.media.on_congestion(congestion);
    }

    fn grow_window(&mut self, now: Timestamp, ack: &Acknowledgement) {
        let mode = self.window.mode();
        let delay = DelaySignals { fraction: self.delay_fraction(), trend: self.trend.value() };
        let (in_flight, recent) = (self.flight.bytes(), self.recent_flight.max(now));
        self.window.on_acknowledged(now, ack, delay, in_flight, recent);
        if (mode, self.window.mode()) == (Mode::FastIncrease, Mode::Normal) {
            self.media.on_incipient_congestion();
        }
    }
}

impl Controller for Scream {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.adjust_at.get_or_insert(now + RATE_ADJUST_INTERVAL);
        self.throughput.on_media(added, queued);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.adjust_at.get_or_insert(now + RATE_ADJUST_INTERVAL);
        self.throughput.on_sent(packet.size, packet.queued);
        self.flight.on_packet_sent(packet);
        self.recent_flight.record(now, self.flight.bytes());
        self.silence.on_packet_sent(now, packet.size, self.rtt.value());
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.queuing_delay.begin_report(report);
        let ack = self.flight.on_report(report);
        self.throughput.on_acknowledged(ack.received);
        if let Some(newest) = &ack.newest {
            self.measure_delay(now, newest);
        }
        self.lost.on_report(now, report, self.rtt.value());
        let lost = self.lost.take_lost(now) > 0;
        self.loss_events.on_report(now, self.rtt.value(), lost);
        let marked = self.settings.ecn != EcnMode::Off && ack.marked_packets > 0;
        match self.events.on_acknowledged(now, self.rtt.value(), lost, marked) {
            Some(congestion) => self.back_off(congestion),
            None if ack.newest.is_some() => self.grow_window(now, &ack),
            None => {}
        }
        if ack.newest.is_some() {
            let delay = self.queuing_delay.value();
            self.delay_target.update(delay, self.loss_events.value());
        }
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.settings.limits = limits;
        self.window.limit(limits.max());
        self.media.set_limits(limits);
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        let fresh = Self::new(self.settings);
        *self = Self { receiver_limit: self.receiver_limit, ..fresh };
        self.media.on_new_route();
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        self.window.scale(share / self.media.target());
        self.media.share(share);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.silence.on_late(now);
        let Some(due) = self.adjust_at.filter(|&due| due <= now) else { return };
        let elapsed = now - due + RATE_ADJUST_INTERVAL;
        // The next tick stays on the grid unless a whole interval was missed.
        let next = due + RATE_ADJUST_INTERVAL;
        self.adjust_at = Some(if next > now { next } else { now + RATE_ADJUST_INTERVAL });
        self.throughput.end_interval(elapsed);
        if self.silence.on_tick(now, RATE_ADJUST_INTERVAL, self.rtt.value()) {
            self.back_off(Congestion::Silence);
        } else {
            self.media.adjust(&Conditions {
                silent: self.silence.is_silent(),
                fast_increase: self.window.mode() == Mode::FastIncrease,
                current_rate: self.throughput.current_rate(),
                media_rate: self.throughput.media_rate(),
                trend: self.trend.value(),
                trend_memory: self.trend.memory(),
                queued: self.throughput.queued(),
            });
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        [self.adjust_at, self.silence.late_at()].into_iter().flatten().min()
    }

    fn target(&self) -> Target {
        let cwnd = self.window.size();
        let bitrate = self.settings.limits.cap(self.media.target(), self.receiver_limit);
        let pacing_rate = pacing_rate(cwnd, self.rtt.value(), self.media.max_bitrate());
        let fraction = self.delay_fraction();
        let in_flight = self.flight.bytes();
        let allowance = self.silence.allowance(bitrate, self.rtt.value(), in_flight);
        let window = send_window(cwnd, in_flight, fraction, allowance);
        Target { window: Some(window), ..Target::new(bitrate, pacing_rate) }
    }

    fn metrics(&self) -> Metrics {
        let state = match (self.silence.is_silent(), self.window.mode()) {
            (true, _) => "feedback lost",
            (false, Mode::FastIncrease) => "fast increase",
            (false, Mode::Normal) => "normal",
        };
        Metrics {
            reason: match self.receiver_limit {
                Some(limit) if limit < self.media.target() => Reason::ReceiverLimit,
                _ => self.media.reason(),
            },
            state,
            rtt: self.rtt.measured(),
            queuing_delay: self.queuing_delay.measured(),
            loss_ratio: self.loss_events.value(),
            acknowledged_bitrate: self.rtt.measured().map(|_| self.throughput.rate_ack()),
            signals: Signals::new([
                ("cwnd_bytes", self.window.size().as_bytes() as f64),
                ("bytes_in_flight_bytes", self.flight.bytes().as_bytes() as f64),
                ("qdelay_target_ms", self.delay_target.value().as_millis_f64()),
                ("qdelay_trend_ratio", self.trend.value()),
            ]),
        }
    }
}
