//! The prober as a controller: it passes events on, and adds what it knows to the inner target.

use weir::controller::{Controller, Metrics, RateLimits, Target, Window};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::{AFTER_FAILURE, MIN_ALLOWANCE, Probing, Running, WHILE_OPEN};
use crate::ceiling::Ceiling;
use crate::pairs::Pairs;
use crate::usual_loss::UsualLoss;

/// Pacing above the rate of a receiver without feedback.
const FIXED_PACING: f64 = 1.5;

impl<C: Controller> Controller for Probing<C> {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.inner.on_media_queued(now, added, queued);
        self.after_event(now);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.inner.on_packet_sent(now, packet);
        if let Some(running) = &mut self.running {
            running.on_sent(now, packet);
        }
        if !packet.padding {
            self.resumed = if self.is_idle(now) { Some(now) } else { self.resumed };
            self.last_sent = Some(now);
        }
        let bytes = packet.size.as_bytes() as f64;
        let pays = if packet.padding { 0.0 } else { self.padding_share * bytes };
        self.paid += pays;
        let change = if packet.padding { -bytes } else { pays };
        self.allowance = (self.allowance + change).min(self.max_allowance());
        // The inner target hardly changes with a packet, and metrics are dear: wait for feedback.
        self.inner_rate = self.inner.target().bitrate;
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.new_clock {
            self.trains.clear();
            self.ceiling.on_new_clock();
        }
        if let Some(lower) = self.ceiling.on_feedback(report) {
            self.lower_rest(lower);
        }
        self.loss.on_feedback(report);
        // The controller may have less than what was proved, and no reason to fall.
        if self.loss.is_congestion() {
            self.on_path_full(now, self.inner.target().bitrate, true);
        }
        self.look_at_pairs(now, report);
        self.measure_answer(now, report);
        if core::mem::take(&mut self.is_unheard) {
            // An outage is over. It was no queue, so none has to drain.
            self.not_before = self.not_before.min(now + WHILE_OPEN);
        }
        self.last_feedback = Some(now);
        let known = self.proved.map_or(Bitrate::ZERO, |proof| proof.rate);
        for packet in &report.packets {
            self.ended.extend(self.trains.on_packet(packet, known));
        }
        self.inner.on_feedback(now, report);
        self.follow_inner(now);
        for index in 0..self.ended.len() {
            self.on_train(now, self.ended[index]);
        }
        self.ended.clear();
        if let Some(Running { probe, .. }) = self.running
            && let Some(train) = self.trains.end_probe(probe.id, probe.size, self.last_sent)
        {
            self.on_train(now, train);
        }
        self.end_unheard(now, report);
        if let Some(train) = self.trains.open_media() {
            self.learn_from_media(now, train);
        }
        self.after_event(now);
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.inner.on_round_trip_time(now, rtt);
        self.after_event(now);
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.inner.on_receiver_limit(now, limit);
        self.after_event(now);
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.limits = limits;
        self.inner.set_limits(now, limits);
        self.after_event(now);
    }

    /// Here it is the bitrate that the next layer needs. `None` ends probing.
    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.goal = desired;
        self.after_event(now);
    }

    fn on_route_change(&mut self, now: Timestamp) {
        self.inner.on_route_change(now);
        self.trains.clear();
        self.ceiling = Ceiling::default();
        (self.loss, self.pairs) = (UsualLoss::default(), Pairs::default());
        (self.proved, self.running, self.dip) = (None, None, None);
        (self.is_open, self.arrived) = (false, 0);
        // What failed or is owed was of the old one. It begins as a subscriber that joins.
        (self.after_failure, self.not_before) = (AFTER_FAILURE, now);
        self.allowance = self.allowance.max(MIN_ALLOWANCE);
        self.after_event(now);
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.inner.on_shared_rate(now, share);
        self.proved = None;
        self.after_event(now);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.inner.next_timeout().is_some_and(|due| due <= now) {
            self.inner.on_timeout(now);
        }
        self.after_event(now);
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        [self.inner.next_timeout(), self.next_tick].into_iter().flatten().min()
    }

    fn target(&self) -> Target {
        let inner = self.inner.target();
        if let Some(fixed) = self.fixed() {
            return Target::new(fixed, fixed * FIXED_PACING);
        }
        let bitrate = self.bitrate().max(inner.bitrate);
        let mut target = inner.with_probe(self.running.map(|running| running.probe));
        target.padding_rate = Bitrate::ZERO;
        let mut more = self.running.map_or(DataSize::ZERO, |running| running.probe.size);
        if bitrate > inner.bitrate && inner.bitrate > Bitrate::ZERO {
            let factor = bitrate / inner.bitrate;
            target.bitrate = bitrate;
            target.source_bitrate = inner.source_bitrate * factor;
            target.pacing_rate = inner.pacing_rate * factor;
            if let Some(window) = inner.window {
                more += window.congestion_window * (factor - 1.0);
            }
        }
        // What was proved, and the probe, need more than the inner controller's window.
        target.window = inner
            .window
            .map(|window| Window::new(window.congestion_window + more, window.available + more));
        target
    }

    fn metrics(&self) -> Metrics {
        self.inner.metrics()
    }
}
