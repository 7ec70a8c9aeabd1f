//! Delay-based control: connects arrival groups, trendline, over-use detector and rate control.
//!
//! Implements [LIBWEBRTC §DelayBasedBwe].

use alloc::vec::Vec;

use super::arrival_groups::{ArrivalGroups, Passage};
use super::delay_signal::{BandwidthUsage, RateState};
use super::overuse_detector::OveruseDetector;
use super::rate_control::RateControl;
use super::trendline::{Step, Trendline};
use crate::controller::{RateLimits, Reason};
use crate::units::{Bitrate, TimeDelta, Timestamp};

/// After a longer time without feedback, groups and detector are reset [LIBWEBRTC §DelayBasedBwe].
const STREAM_TIMEOUT: TimeDelta = TimeDelta::from_secs(2);

/// Effects of a report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Reason if the estimate was set; otherwise `None`.
    pub reason: Option<Reason>,
    /// The queue has drained after over-use.
    pub recovered: bool,
}

/// Runs the delay-based control and stores its estimate.
#[derive(Clone, Debug)]
pub(super) struct DelayBased {
    groups: ArrivalGroups,
    trendline: Trendline,
    detector: OveruseDetector,
    rate_control: RateControl,
    last_report: Option<Timestamp>,
    /// Differences between the groups of the current report. The allocation is reused.
    steps: Vec<Step>,
}

impl DelayBased {
    pub(super) fn new(limits: RateLimits, compete_with_tcp: bool) -> Self {
        Self {
            groups: ArrivalGroups::default(),
            trendline: Trendline::default(),
            detector: OveruseDetector::new(compete_with_tcp),
            rate_control: RateControl::new(limits),
            last_report: None,
            steps: Vec::new(),
        }
    }

    /// Resets the delays, which are no longer comparable. The estimate stays.
    pub(super) fn restart(&mut self) {
        self.groups = ArrivalGroups::default();
        self.trendline = Trendline::default();
        self.detector.restart();
    }

    /// Takes the packets of a report in arrival order, as pairs of send and arrival time.
    pub(super) fn on_arrivals(
        &mut self,
        now: Timestamp,
        packets: impl Iterator<Item = (Timestamp, Timestamp)>,
        acknowledged: Option<Bitrate>,
        probed: Option<Bitrate>,
    ) -> Outcome {
        if self.last_report.replace(now).is_some_and(|last| now - last > STREAM_TIMEOUT) {
            self.restart();
        }
        let mut steps = core::mem::take(&mut self.steps);
        steps.clear();
        for (send_time, arrival_time) in packets {
            let packet = Passage { send_time, arrival_time, feedback_time: now };
            let delta = self.groups.on_packet(packet);
            steps.extend(delta.map(|delta| (delta, arrival_time)));
        }
        let recovered = self.on_steps(&steps);
        self.steps = steps;
        self.update(now, acknowledged, probed, recovered)
    }

    /// Takes the differences between the groups of a report. Returns true if the queue has drained
    /// with one of them. The trendline processes several of them together, which is faster.
    fn on_steps(&mut self, steps: &[Step]) -> bool {
        let (quads, rest) = steps.as_chunks();
        let mut recovered = false;
        for &quad in quads {
            recovered |= self.on_steps_together::<4>(quad);
        }
        recovered |= match *rest {
            [first, second, third] => self.on_steps_together([first, second, third]),
            [first, second] => self.on_steps_together([first, second]),
            [step] => self.on_steps_together([step]),
            _ => false,
        };
        recovered
    }

    fn on_steps_together<const STEPS: usize>(&mut self, steps: [Step; STEPS]) -> bool {
        let slopes = self.trendline.update(steps);
        let mut recovered = false;
        for ((delta, arrival_time), slope) in steps.into_iter().zip(slopes) {
            let before = self.usage();
            self.detector.on_slope(slope, delta.send, arrival_time);
            recovered |=
                (before, self.usage()) == (BandwidthUsage::Underuse, BandwidthUsage::Normal);
        }
        recovered
    }

    fn update(
        &mut self,
        now: Timestamp,
        acknowledged: Option<Bitrate>,
        probed: Option<Bitrate>,
        recovered: bool,
    ) -> Outcome {
        let usage = self.usage();
        let mut reason = None;
        if usage == BandwidthUsage::Overuse {
            if self.rate_control.may_cut(now, acknowledged) {
                reason = Some(match acknowledged {
                    Some(_) => self.rate_control.update(now, usage, acknowledged),
                    None => self.rate_control.halve(now),
                });
            }
            return Outcome { reason, recovered: false };
        }
        if let Some(probed) = probed {
            self.rate_control.set_estimate(now, probed);
            return Outcome { reason: Some(Reason::Probe), recovered: false };
        }
        reason = Some(self.rate_control.update(now, usage, acknowledged));
        Outcome { reason, recovered }
    }

    pub(super) fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rate_control.set_rtt(rtt);
    }

    /// The lowest estimate from now on.
    pub(super) fn set_min(&mut self, min: Bitrate) {
        self.rate_control.set_min(min);
    }

    /// Adopts this flow's share of a coupled rate.
    pub(super) fn share(&mut self, share: Bitrate) {
        self.rate_control.share(share);
    }

    pub(super) fn estimate(&self) -> Bitrate {
        self.rate_control.estimate()
    }

    pub(super) fn usage(&self) -> BandwidthUsage {
        self.detector.usage()
    }

    pub(super) fn state(&self) -> RateState {
        self.rate_control.state()
    }

    pub(super) fn detector(&self) -> &OveruseDetector {
        &self.detector
    }
}
