//! Probe controller: decides when to probe the path, and at which rates.
//!
//! Implements [LIBWEBRTC §ProbeController]. Departs from it in GOOGCC-D3 and GOOGCC-D6.

use alloc::collections::VecDeque;

use crate::controller::{Probe, ProbeId, RateLimits};
use crate::feedback::SentPacket;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §ProbeController].
/// The two probes at the start, as factors on the start bitrate.
const INITIAL_FACTORS: [f64; 2] = [3.0, 6.0];
/// If the estimate exceeds `FURTHER_THRESHOLD` of the last probe's rate, a further probe runs at
/// `FURTHER_FACTOR` times the estimate.
const FURTHER_FACTOR: f64 = 2.0;
const FURTHER_THRESHOLD: f64 = 0.7;
/// Duration of a probe, and its minimum number of packets.
const PROBE_LENGTH: TimeDelta = TimeDelta::from_millis(15);
const PROBE_PACKETS: u32 = 5;
/// Time to wait for a probe's result.
const RESULT_TIMEOUT: TimeDelta = TimeDelta::from_secs(1);
/// Time between probes while the source is application-limited, and their factor on the estimate.
const ALR_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
const ALR_FACTOR: f64 = 2.0;
/// No probe is above this factor of what the source could use. If that changes while the source is
/// application-limited, two probes with `DESIRED_FACTORS` of it check whether it fits, at most at
/// `DESIRED_MAX` times the estimate.
const CEILING_FACTOR: f64 = 2.0;
const DESIRED_FACTORS: [f64; 2] = [1.0, 2.0];
const DESIRED_MAX: f64 = 2.0;
/// A fall of the estimate below `LARGE_DROP` of its value is a large drop. Once over-use has ended,
/// a probe runs at `RECOVERY_FACTOR` of the rate before the drop. Conditions: the drop is less than
/// `RECOVERY_TIMEOUT` ago, the source is application-limited or was so less than
/// `ALR_ENDED_TIMEOUT` ago, and the last such probe is more than `RECOVERY_INTERVAL` ago.
const LARGE_DROP: f64 = 0.66;
const RECOVERY_FACTOR: f64 = 0.85;
const RECOVERY_TIMEOUT: TimeDelta = TimeDelta::from_secs(5);
const ALR_ENDED_TIMEOUT: TimeDelta = TimeDelta::from_secs(3);
const RECOVERY_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
/// Share by which a probe's result may fall short of the probe's rate.
const UNCERTAINTY: f64 = 0.05;
/// A probe that is not fully sent after this time is given up.
const SEND_TIMEOUT: TimeDelta = TimeDelta::from_secs(5);

/// A probe waiting to be sent.
#[derive(Clone, Copy, Debug)]
struct Pending {
    probe: Probe,
    /// Time of the request; `None` before the first packet.
    since: Option<Timestamp>,
    sent: DataSize,
    packets: u32,
}

/// Holds the waiting probes and the conditions for the next one.
#[derive(Clone, Debug)]
pub(super) struct ProbeController {
    max: Bitrate,
    /// The most that the source could use, if the host says so.
    desired: Option<Bitrate>,
    probes_when_limited: bool,
    estimate: Bitrate,
    pending: VecDeque<Pending>,
    next_id: u32,
    /// Time of the last request.
    asked: Option<Timestamp>,
    /// While a result is awaited: an estimate above this requests a further probe.
    further_above: Option<Bitrate>,
    /// Time of the last large drop, and the estimate before it.
    drop: Option<(Timestamp, Bitrate)>,
    last_recovery: Option<Timestamp>,
    alr_ended: Option<Timestamp>,
    /// False while over-use, loss or missing feedback limits the estimate.
    is_allowed: bool,
}

impl ProbeController {
    /// Makes a controller that requests the initial probes.
    pub(super) fn new(limits: RateLimits, probes_when_limited: bool) -> Self {
        let mut controller = Self {
            max: limits.max(),
            desired: None,
            probes_when_limited,
            estimate: limits.start(),
            pending: VecDeque::new(),
            next_id: 0,
            asked: None,
            further_above: None,
            drop: None,
            last_recovery: None,
            alr_ended: None,
            is_allowed: true,
        };
        controller.ask(None, &INITIAL_FACTORS.map(|factor| limits.start() * factor), true);
        controller
    }

    /// Continues the numbers of the controller for the route before, for the probes that wait too:
    /// the pacer starts a probe only if its number is new. What the source could use stays.
    pub(super) fn continue_from(&mut self, before: &Self) {
        for pending in &mut self.pending {
            pending.probe.id.0 += before.next_id;
        }
        self.next_id += before.next_id;
        self.desired = before.desired;
    }

    /// The most that the source could use changed. A new amount above the estimate is probed for
    /// while the source is application-limited.
    pub(super) fn set_desired(&mut self, now: Timestamp, desired: Option<Bitrate>, in_alr: bool) {
        let has_changed = self.desired != desired;
        self.desired = desired;
        let Some(desired) = desired else { return };
        if has_changed && in_alr && desired > self.estimate {
            let most = self.estimate * DESIRED_MAX;
            self.ask(Some(now), &DESIRED_FACTORS.map(|factor| (desired * factor).min(most)), false);
        }
    }

    /// Adopts the maximum. A higher one is probed at once if the estimate may rise to it.
    pub(super) fn set_max(&mut self, now: Timestamp, max: Bitrate) {
        let is_higher = max > self.max;
        self.max = max;
        for pending in &mut self.pending {
            pending.probe.rate = pending.probe.rate.min(max);
        }
        if is_higher {
            self.ask(Some(now), &[max], false);
        }
    }

    /// The probe to send now.
    pub(super) fn probe(&self) -> Option<Probe> {
        self.pending.front().map(|pending| pending.probe)
    }

    pub(super) fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        // No time was known before the first packet, so the first requests count from here.
        self.asked.get_or_insert(now);
        if self.pending.is_empty() {
            return;
        }
        for pending in &mut self.pending {
            pending.since.get_or_insert(now);
        }
        let Some(front) = self.pending.front_mut() else { return };
        if packet.probe == Some(front.probe.id) {
            front.sent += packet.size;
            front.packets += 1;
        }
        let is_sent = front.sent >= front.probe.size && front.packets >= front.probe.packets;
        let is_late = front.since.is_some_and(|since| now - since > SEND_TIMEOUT);
        if is_sent || is_late {
            self.pending.pop_front();
        }
    }

    /// Adopts the estimate. `is_allowed` is false while over-use, loss or missing feedback limits
    /// it.
    pub(super) fn set_estimate(&mut self, now: Timestamp, estimate: Bitrate, is_allowed: bool) {
        self.is_allowed = is_allowed;
        if estimate < self.estimate * LARGE_DROP {
            self.drop = Some((now, self.estimate));
        }
        self.estimate = estimate;
        if self.further_above.is_some_and(|threshold| estimate > threshold) {
            self.ask(Some(now), &[estimate * FURTHER_FACTOR], true);
        }
    }

    /// The application-limited region ended.
    pub(super) fn on_alr_ended(&mut self, now: Timestamp) {
        self.alr_ended = Some(now);
    }

    /// Over-use has ended and the queue has drained. Requests a probe to check a large drop.
    pub(super) fn on_recovered(&mut self, now: Timestamp, in_alr: bool) {
        let alr_is_near =
            in_alr || self.alr_ended.is_some_and(|ended| now - ended < ALR_ENDED_TIMEOUT);
        let may_again = self.last_recovery.is_none_or(|last| now - last > RECOVERY_INTERVAL);
        let Some((dropped, before)) = self.drop else { return };
        let rate = before * RECOVERY_FACTOR;
        let is_worth_it = rate * (1.0 - UNCERTAINTY) > self.estimate;
        let is_recent = now - dropped < RECOVERY_TIMEOUT;
        if alr_is_near && may_again && is_worth_it && is_recent && self.further_above.is_none() {
            self.last_recovery = Some(now);
            self.ask(Some(now), &[rate], false);
        }
    }

    /// Runs the timed steps. The source has been application-limited since `alr_since`.
    pub(super) fn process(&mut self, now: Timestamp, alr_since: Option<Timestamp>) {
        if self.asked.is_some_and(|asked| now - asked > RESULT_TIMEOUT) {
            self.further_above = None;
        }
        // GOOGCC-D6: applies to every source, not only to screen content.
        let may = self.probes_when_limited && self.further_above.is_none();
        let Some(alr_since) = alr_since.filter(|_| may) else { return };
        let since = self.asked.map_or(alr_since, |asked| asked.max(alr_since));
        if now - since >= ALR_INTERVAL {
            self.ask(Some(now), &[self.estimate * ALR_FACTOR], true);
        }
    }

    fn ask(&mut self, now: Option<Timestamp>, rates: &[Bitrate], mut further: bool) {
        let desired = self.desired.map_or(Bitrate::MAX, |desired| desired * CEILING_FACTOR);
        let ceiling = self.max.min(desired);
        // GOOGCC-D3: at the ceiling a probe cannot raise the estimate, or nobody needs it.
        if !self.is_allowed || self.estimate >= ceiling {
            return;
        }
        for &wanted in rates {
            let rate = wanted.min(ceiling);
            further &= rate == wanted;
            let (id, size) = (ProbeId(self.next_id), rate * PROBE_LENGTH);
            self.next_id += 1;
            let probe = Probe { id, rate, size, packets: PROBE_PACKETS };
            self.pending.push_back(Pending { probe, since: now, sent: DataSize::ZERO, packets: 0 });
        }
        self.asked = now;
        let last = rates.last().copied().filter(|_| further);
        self.further_above = last.map(|rate| rate * FURTHER_THRESHOLD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn controller(max_kbps: u64) -> ProbeController {
        ProbeController::new(RateLimits::new(kbps(50), kbps(300), kbps(max_kbps)).unwrap(), true)
    }

    /// Sends all requested probes at this time; returns their rates in kbit/s.
    fn send_all(controller: &mut ProbeController, ms: i64) -> Vec<u64> {
        let mut rates = Vec::new();
        while let Some(probe) = controller.probe() {
            rates.push(probe.rate.as_bps() / 1_000);
            while controller.probe().is_some_and(|still| still.id == probe.id) {
                let packet = SentPacket {
                    sequence_number: 0,
                    size: DataSize::from_bytes(1_000),
                    queued: DataSize::ZERO,
                    probe: Some(probe.id),
                    padding: false,
                };
                controller.on_packet_sent(at(ms), &packet);
            }
        }
        rates
    }

    // [LIBWEBRTC §ProbeController]: 15 ms of 900 kbit/s.
    #[test]
    fn it_begins_with_3_and_6_times_the_start_bitrate() {
        let mut controller = controller(5_000);
        let first = controller.probe().unwrap();
        assert_eq!((first.size, first.packets), (DataSize::from_bytes(1_687), 5));
        assert_eq!(send_all(&mut controller, 0), [900, 1_800]);
        assert_eq!(controller.probe(), None);
    }

    // [LIBWEBRTC §ProbeController]: 0.7 * 1800 = 1260.
    #[test]
    fn a_result_above_70_percent_of_the_last_probe_asks_for_twice_as_much() {
        let mut controller = controller(5_000);
        send_all(&mut controller, 0);
        controller.set_estimate(at(100), kbps(1_260), true);
        assert_eq!(send_all(&mut controller, 100), [0; 0]);
        controller.set_estimate(at(150), kbps(1_700), true);
        assert_eq!(send_all(&mut controller, 150), [3_400]);
        controller.set_estimate(at(250), kbps(3_000), true);
        assert_eq!(send_all(&mut controller, 250), [5_000], "capped at the maximum");
        controller.set_estimate(at(350), kbps(4_900), true);
        assert_eq!(send_all(&mut controller, 350), [0; 0], "and so the last one");
    }

    // [LIBWEBRTC §ProbeController]
    #[test]
    fn a_result_is_waited_for_a_second() {
        let mut controller = controller(5_000);
        send_all(&mut controller, 0);
        controller.process(at(1_001), None);
        controller.set_estimate(at(1_001), kbps(1_700), true);
        assert_eq!(controller.probe(), None);
    }

    // [LIBWEBRTC §ProbeController]
    #[test]
    fn nothing_is_probed_while_over_use_or_loss_limits_the_estimate() {
        let mut controller = controller(5_000);
        send_all(&mut controller, 0);
        controller.set_estimate(at(100), kbps(1_700), false);
        assert_eq!(controller.probe(), None);
        controller.process(at(60_000), Some(at(0)));
        assert_eq!(controller.probe(), None);
    }

    // GOOGCC-D6
    #[test]
    fn a_limited_source_is_probed_for_each_5_s_at_twice_the_estimate() {
        let mut controller = controller(5_000);
        send_all(&mut controller, 0);
        let probes = |controller: &mut ProbeController, ms| {
            controller.process(at(ms), Some(at(2_000)));
            send_all(controller, ms)
        };
        assert_eq!(probes(&mut controller, 6_999), [0; 0]);
        assert_eq!(probes(&mut controller, 7_000), [600]);
        assert_eq!(probes(&mut controller, 11_999), [0; 0]);
        assert_eq!(probes(&mut controller, 12_000), [600]);
        controller.probes_when_limited = false;
        assert_eq!(probes(&mut controller, 60_000), [0; 0]);
    }

    // [LIBWEBRTC §ProbeController]: 0.85 * 2000.
    #[test]
    fn after_a_drop_near_a_limited_region_the_rate_before_is_probed_for() {
        let dropped = |to_kbps: u64| {
            let mut controller = controller(5_000);
            send_all(&mut controller, 0);
            controller.process(at(5_000), None);
            controller.set_estimate(at(5_000), kbps(2_000), true);
            controller.set_estimate(at(10_000), kbps(to_kbps), true);
            controller
        };
        let rates = |mut controller: ProbeController, ms: i64, in_alr| {
            controller.on_recovered(at(ms), in_alr);
            send_all(&mut controller, ms)
        };
        assert_eq!(rates(dropped(1_000), 12_000, true), [1_700]);
        assert_eq!(rates(dropped(1_400), 12_000, true), [0; 0], "no large drop");
        assert_eq!(rates(dropped(1_000), 15_000, true), [0; 0], "too late");
        assert_eq!(rates(dropped(1_000), 12_000, false), [0; 0], "the path was measured");
        let mut after_alr = dropped(1_000);
        after_alr.on_alr_ended(at(9_500));
        assert_eq!(rates(after_alr, 12_000, false), [1_700]);
    }

    // [LIBWEBRTC §ProbeController]
    #[test]
    fn no_probe_is_above_twice_what_the_source_could_use() {
        let mut controller = controller(5_000);
        send_all(&mut controller, 0);
        controller.set_desired(at(10), Some(kbps(500)), false);
        controller.process(at(20_000), Some(at(2_000)));
        assert_eq!(send_all(&mut controller, 20_000), [600], "twice the estimate");
        controller.set_estimate(at(20_100), kbps(900), true);
        assert_eq!(send_all(&mut controller, 20_100), [1_000], "twice the desired bitrate");
    }

    // [LIBWEBRTC §ProbeController]
    #[test]
    fn a_new_desired_bitrate_is_probed_for_while_the_source_is_limited() {
        let mut controller = controller(5_000);
        send_all(&mut controller, 0);
        controller.set_desired(at(10), Some(kbps(900)), false);
        assert_eq!(controller.probe(), None, "the source fills its target");
        controller.set_desired(at(20), Some(kbps(500)), true);
        assert_eq!(send_all(&mut controller, 20), [500, 600], "at most twice the estimate");
        controller.set_desired(at(30), Some(kbps(500)), true);
        controller.set_desired(at(40), Some(kbps(200)), true);
        assert_eq!(controller.probe(), None, "nothing new, or less than the estimate");
    }

    // GOOGCC-D3
    #[test]
    fn nothing_is_probed_for_at_the_maximum() {
        let at_maximum = RateLimits::new(kbps(300), kbps(300), kbps(300)).unwrap();
        assert_eq!(ProbeController::new(at_maximum, true).probe(), None);
    }

    // [LIBWEBRTC §ProbeController]
    #[test]
    fn a_probe_that_does_not_leave_is_given_up_after_5_s() {
        let mut controller = controller(5_000);
        let media = SentPacket {
            sequence_number: 0,
            size: DataSize::from_bytes(1_000),
            queued: DataSize::ZERO,
            probe: None,
            padding: false,
        };
        controller.on_packet_sent(at(0), &media);
        controller.on_packet_sent(at(5_000), &media);
        assert!(controller.probe().is_some());
        controller.on_packet_sent(at(5_001), &media);
        controller.on_packet_sent(at(5_002), &media);
        assert_eq!(controller.probe(), None);
    }
}
