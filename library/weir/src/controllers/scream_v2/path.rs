//! What a report says about the path: round trip, queuing delay, the way back, and a new path.

use super::reference_window::{LONG_RTT, ReferenceWindow, VIRTUAL_RTT};
use super::segment::Segment;
use super::way_back::Sample;
use super::{ClockDrift, DelayTarget, QDELAY_TARGET_LO, ScreamV2};
use crate::controllers::longer_path::Ways;
use crate::feedback::PacketReport;
use crate::units::{TimeDelta, Timestamp};

impl ScreamV2 {
    pub(super) fn measure_delay(&mut self, now: Timestamp, newest: &PacketReport) {
        let first = self.rtt.measured().is_none();
        let sample = self.rtt.update_after(now, now - newest.send_time, self.wait);
        if first {
            // SCREAMV2-D1: window for the start bitrate at the measured round-trip time.
            let window = self.rate.window_for(self.settings.limits.start(), sample);
            self.window = ReferenceWindow::new(window, self.p);
        }
        if let Some(one_way_delay) = newest.one_way_delay() {
            self.queuing_delay.update(now, one_way_delay, sample);
            self.follow_way_back(now, newest, sample);
        }
        let (delay, rtt) = (self.queuing_delay.value(), self.rtt.value());
        let target = self.delay_target.value();
        if let Some(jitter) = &mut self.jitter {
            jitter.on_delay(delay, target);
        }
        if self.average_delay.update(now, rtt.min(VIRTUAL_RTT), self.wait, delay)
            && let Some(jitter) = &mut self.jitter
        {
            jitter.update();
        }
        if self.drift.update(now, rtt, delay, target) {
            self.queuing_delay.forget_base();
            self.way_back.forget();
        }
        if self.p.adapts_delay_target {
            self.delay_target.update(delay, self.loss_events.value());
        }
    }

    /// SCREAMV2-D12: over another round trip, the window is that of the same rate.
    fn follow_way_back(&mut self, now: Timestamp, newest: &PacketReport, rtt: TimeDelta) {
        let Some(arrival) = newest.arrival_time else { return };
        let path = (rtt - self.queuing_delay.value()).max(TimeDelta::ZERO);
        let sample = Sample { path, back: now - arrival };
        let queue = self.average_delay.value() + self.wait;
        let factor = self.way_back.on_report(now, sample, queue);
        if factor != 1.0 {
            self.window.scale(factor);
        }
    }

    /// SCREAMV2-D13: a path that became longer both ways has a new base delay and the rate of
    /// before.
    pub(super) fn look_for_new_path(&mut self, now: Timestamp, newest: &PacketReport) {
        let Some((there, arrival)) = newest.one_way_delay().zip(newest.arrival_time) else {
            return;
        };
        let (ways, rtt) = (Ways { there, back: now - arrival }, self.rtt.value());
        if let Some(rate) = self.longer_path.on_report(now, ways, rtt, self.target) {
            self.queuing_delay.forget_base();
            self.average_delay.forget();
            self.delay_target = DelayTarget::new(QDELAY_TARGET_LO);
            self.drift = ClockDrift::default();
            self.way_back.forget();
            let window = self.rate.window_for(rate, now - newest.send_time + self.wait);
            self.window.scale(window / self.window.size());
        }
    }

    /// SCREAMV2-D11. Over a long path the draft's window takes no longer than the round trip, and
    /// growth is the draft's before the path was ever full.
    pub(super) fn update_segment(&mut self) {
        let path = self.rtt.value() - self.queuing_delay.value();
        let (mut mss, mut growth) = (self.p.mss, 1.0);
        if path <= LONG_RTT {
            mss = self.segment.size(self.target, &self.p);
            if self.window.has_reacted() {
                growth = Segment::growth(self.target, self.rtt.value(), &self.p);
            }
        }
        self.window.set_segment(mss, growth);
        self.rate.set_segment(mss);
    }
}
