//! The delay-based half: computes the receiver's rate `Ar` from arrivals. It belongs to the
//! receiver. It runs at the sender if feedback contains each arrival (BARI-D7).

use super::arrival_time_filter::ArrivalTimeFilter;
use super::frames::{Arrival, Frames, Framing};
use super::overuse_detector::{OveruseDetector, is_within_threshold};
use super::remote_rate::{RemoteRate, Update};
use crate::gcc_draft::acknowledged_bitrate::AcknowledgedBitrate;
use weir::units::{Bitrate, TimeDelta, Timestamp};

/// Interval of the rate control without over-use. Over-use runs it at once
/// [LW2013 §remote_bitrate_estimator].
pub(super) const UPDATE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// Frames, filter, detector and rate control, connected in series.
#[derive(Clone, Debug)]
pub(super) struct DelayBased {
    frames: Frames,
    filter: ArrivalTimeFilter,
    detector: OveruseDetector,
    /// `R`, the receive rate over 500 ms.
    received: AcknowledgedBitrate,
    control: RemoteRate,
}

impl DelayBased {
    pub(super) fn new() -> Self {
        Self {
            frames: Frames::default(),
            filter: ArrivalTimeFilter::new(),
            detector: OveruseDetector::new(),
            received: AcknowledgedBitrate::new(),
            control: RemoteRate::new(),
        }
    }

    /// Takes the next packet in arrival order. Over-use cuts the rate at once.
    pub(super) fn on_packet(&mut self, now: Timestamp, packet: &Arrival) {
        self.received.on_packet(packet.arrival, packet.size);
        match self.frames.on_packet(packet) {
            Framing::Pending => {}
            Framing::Complete(delta) => {
                let steady = is_within_threshold(self.filter.scaled_offset_ms());
                self.filter.update(&delta, self.detector.usage(), steady);
                if self.detector.on_frame(&self.filter, delta.departure) && self.may_cut(now) {
                    self.update(now);
                }
            }
            Framing::Restarted => {
                self.filter = ArrivalTimeFilter::new();
                self.detector = OveruseDetector::new();
            }
        }
    }

    fn may_cut(&self, now: Timestamp) -> bool {
        self.received.bitrate().is_some_and(|received| self.control.may_cut_again(now, received))
    }

    /// Runs the rate control, if there is a receive rate.
    pub(super) fn update(&mut self, now: Timestamp) {
        let Some(received) = self.received.bitrate() else { return };
        let noise_variance = self.filter.noise_variance();
        self.control
            .update(now, &Update { usage: self.detector.usage(), received, noise_variance });
    }

    /// `Ar`; `None` before the first receive rate.
    pub(super) fn rate(&self) -> Option<Bitrate> {
        self.control.rate()
    }

    pub(super) fn state(&self) -> &'static str {
        self.control.state().as_str()
    }

    pub(super) fn scaled_offset_ms(&self) -> f64 {
        self.filter.scaled_offset_ms()
    }
}
