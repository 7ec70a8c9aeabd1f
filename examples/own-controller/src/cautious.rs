//! A controller of our own: it grows slowly, and backs off from delay, loss and silence.

use weir::controller::Settings;
use weir::{
    Bitrate, Controller, FeedbackReport, Metrics, RateLimits, Reason, SentPacket, Target,
    TimeDelta, Timestamp,
};

/// Queuing delay above which the rate sinks.
const QUEUE_MAX: TimeDelta = TimeDelta::from_millis(60);
/// How long the smallest delay counts as that of an empty queue: clocks drift, and routes change.
const BASE_DELAY_AGE: TimeDelta = TimeDelta::from_secs(10);
/// Without feedback for this long, the rate sinks, and again after each further time.
const SILENCE: TimeDelta = TimeDelta::from_millis(500);
/// Growth of the rate in a second.
const GROWTH: f64 = 0.1;

/// Grows by a tenth a second, and backs off from queuing delay, loss and silence.
pub struct Cautious {
    limits: RateLimits,
    bitrate: Bitrate,
    receiver_limit: Option<Bitrate>,
    reason: Reason,
    last_report: Option<Timestamp>,
    next_timeout: Timestamp,
    /// Smallest one-way delay of this and of the last window, and when this window began.
    base: [TimeDelta; 2],
    base_since: Timestamp,
}

impl Cautious {
    pub fn new(settings: Settings) -> Self {
        Self {
            limits: settings.limits,
            bitrate: settings.limits.start(),
            receiver_limit: None,
            reason: Reason::Start,
            last_report: None,
            next_timeout: Timestamp::MAX,
            base: [TimeDelta::MAX; 2],
            base_since: Timestamp::ZERO,
        }
    }

    /// How long the queue on the path is, by the delays of a report.
    fn queuing_delay(&mut self, now: Timestamp, report: &FeedbackReport) -> Option<TimeDelta> {
        let delay = report.received().filter_map(|packet| packet.one_way_delay()).min()?;
        if report.new_clock {
            self.base = [TimeDelta::MAX; 2];
        }
        if now - self.base_since > BASE_DELAY_AGE {
            self.base = [TimeDelta::MAX, self.base[0]];
            self.base_since = now;
        }
        self.base[0] = self.base[0].min(delay);
        Some(delay - self.base[0].min(self.base[1]))
    }

    fn scale(&mut self, factor: f64, reason: Reason) {
        self.bitrate = self.limits.clamp(self.bitrate * factor);
        self.reason = reason;
    }
}

impl Controller for Cautious {
    fn on_packet_sent(&mut self, now: Timestamp, _packet: &SentPacket) {
        // The clock of silence starts with the first packet.
        if self.next_timeout == Timestamp::MAX {
            self.next_timeout = now + SILENCE;
        }
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        let since = self.last_report.replace(now).map_or(TimeDelta::ZERO, |last| now - last);
        self.next_timeout = now + SILENCE;
        let queue = self.queuing_delay(now, report);
        let counts = report.loss_counts();
        let loss = counts.lost as f64 / (counts.lost + counts.received).max(1) as f64;
        if loss > 0.1 {
            self.scale(1.0 - 0.5 * loss, Reason::Loss);
        } else if queue.is_some_and(|queue| queue > QUEUE_MAX) {
            self.scale(0.95, Reason::QueuingDelay);
        } else if queue.is_some() {
            let seconds = since.min(SILENCE).as_secs_f64();
            self.scale(1.0 + GROWTH * seconds, Reason::Increase);
        }
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.limits = limits;
        self.bitrate = limits.clamp(self.bitrate);
        self.reason = Reason::Limits;
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        self.bitrate = self.limits.start();
        self.base = [TimeDelta::MAX; 2];
        self.reason = Reason::NewRoute;
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        self.bitrate = self.limits.clamp(share);
        self.reason = Reason::Coupled;
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if now >= self.next_timeout {
            self.scale(0.8, Reason::FeedbackLost);
            self.next_timeout = now + SILENCE;
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        (self.next_timeout < Timestamp::MAX).then_some(self.next_timeout)
    }

    fn target(&self) -> Target {
        let bitrate = self.limits.cap(self.bitrate, self.receiver_limit);
        Target::new(bitrate, bitrate * 1.5)
    }

    fn metrics(&self) -> Metrics {
        Metrics::new(self.reason, "cautious")
    }
}
