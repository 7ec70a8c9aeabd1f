//! Whether the bottleneck is a radio link that the flow has for itself, and how fast it is now.
//!
//! The capacity of a radio link changes from one moment to the next, that of a wired link does not.
//! It shows in the gaps between packets that waited behind each other, whatever the flow sends. The
//! gaps beside other flows vary as well, so the flow must be known to be alone (S-28).

use super::Parameters;
use super::sharing::Busy;
use crate::feedback::{FeedbackReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta};

/// Busy time of a bin at least: as much as closes a bucket. A gap of a scheduler is shorter.
const BIN: TimeDelta = super::queue::CLOSES;
/// Packets of a bin at least.
const BIN_PACKETS: u32 = 3;
/// Share of a new value in the round-trip time of the empty path.
const RTT_GAIN: f64 = 1.0 / 8.0;

/// The part of the link's memory of absence that this time takes.
fn share(time: TimeDelta, p: &Parameters) -> f64 {
    time / (time + p.t_effect)
}

/// How the capacity varies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Radio {
    /// The bin that is being filled: time for which the link was busy, and what it sent in it.
    busy: TimeDelta,
    sent: DataSize,
    packets: u32,
    /// Rate of the newest complete bin.
    newest: Option<Bitrate>,
    /// Part of the time for which the link was away of late.
    absence: f64,
    /// Mean change of the rate from one bin to the next, as a logarithm.
    variation: f64,
    /// Seconds since the variation or the own part last spoke against a radio link.
    sure_s: f64,
    /// The arrivals of this report are not those of a queue.
    is_doubtful: bool,
    /// How far the link is believed to be a radio link.
    belief: f64,
}

impl Radio {
    /// The link sent this packet in this time, for which it was surely busy.
    pub(super) fn on_busy(
        &mut self,
        gap: TimeDelta,
        size: DataSize,
        noise: TimeDelta,
        p: &Parameters,
    ) {
        if gap > p.outage() {
            // The link was away: that says nothing about its rate.
            self.vary(1.0, p);
            self.absence += (1.0 - self.absence) * share(gap.min(p.w_level), p);
            return;
        }
        self.busy += gap;
        self.sent += size;
        self.packets += 1;
        if self.busy < BIN || self.packets < BIN_PACKETS {
            return;
        }
        self.absence -= self.absence * share(self.busy, p);
        let rate = self.sent / self.busy;
        if let Some(last) = self.newest.replace(rate) {
            let change = libm::log(rate / last).abs().min(1.0);
            self.vary((change - noise / self.busy).max(0.0), p);
        }
        (self.busy, self.sent, self.packets) = Default::default();
    }

    /// Whether no bin is complete, and no outage seen, after the link was busy for this long more.
    pub(super) fn has_room(&self, time: TimeDelta, p: &Parameters) -> bool {
        self.busy + time < BIN && time <= p.outage()
    }

    /// The link was busy for a time for which there is room.
    pub(super) fn on_all_busy(&mut self, busy: Busy) {
        self.busy += busy.time;
        self.sent += busy.size;
        self.packets += busy.packets;
    }

    fn vary(&mut self, change: f64, p: &Parameters) {
        self.variation += p.radio_gain * (change - self.variation);
    }

    /// The arrivals are not those of a queue: packets have overtaken each other, or the times are
    /// derived.
    pub(super) fn doubt(&mut self) {
        self.is_doubtful = true;
    }

    /// A report is complete. The own part may be unknown.
    pub(super) fn update(&mut self, own: Option<f64>, scale: f64, step_s: f64, p: &Parameters) {
        let alone = p.share_alone - p.share_alone_ramp();
        let own = part(own.unwrap_or(0.0), alone, p.share_alone_ramp() * 2.0);
        let varies = part(self.variation, p.radio_variation, p.radio_variation * 0.5);
        self.sure_s += step_s;
        if core::mem::take(&mut self.is_doubtful) || own * varies == 0.0 {
            self.sure_s = 0.0;
        }
        let is_sure = self.sure_s > (p.t_effect * 4).as_secs_f64();
        let scale = part(scale, p.share_scale, 1.0 - p.share_scale);
        self.belief = if is_sure { own * varies * scale } else { 0.0 };
    }

    /// How far the link is believed to be a radio link that the flow has for itself, 0 to 1.
    pub(super) fn belief(&self) -> f64 {
        self.belief
    }

    /// Between the value of a wired link and that of a radio link.
    pub(super) fn blend(&self, wired: f64, radio: f64) -> f64 {
        wired + (radio - wired) * self.belief
    }

    /// The same between two rates.
    pub(super) fn between(&self, wired: Bitrate, radio: Bitrate) -> Bitrate {
        if self.belief > 0.0 { wired * (1.0 - self.belief) + radio * self.belief } else { wired }
    }

    /// The rate of the newest bin, absences left out.
    pub(super) fn newest(&self) -> Option<Bitrate> {
        self.newest
    }

    /// The rate of the link just now, if it is known.
    pub(super) fn capacity(&self) -> Option<Bitrate> {
        self.newest.map(|rate| rate * (1.0 - self.absence))
    }
}

/// What is on the way, and what waits in the sender (S-31, S-32).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// Numbers of the last packet sent and of the newest one that was reported on.
    last_sent: i64,
    newest: i64,
    /// No feedback has come for long.
    is_lost: bool,
    /// Round-trip time without the wait in the queue.
    base_rtt: Option<TimeDelta>,
    /// Mean deviation of that time and the interval of reports together.
    deviation: TimeDelta,
    /// What waited in the sender when the source added the last frame.
    waits: DataSize,
}

impl Flight {
    pub(super) fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.last_sent = packet.sequence_number;
    }

    pub(super) fn on_media_queued(&mut self, waits: DataSize) {
        self.waits = waits;
    }

    /// A report came, this time after the one before. The newest packet in it that arrived had this
    /// round-trip time without its wait in the queue.
    pub(super) fn on_report(
        &mut self,
        report: &FeedbackReport,
        base_rtt: TimeDelta,
        interval: TimeDelta,
        usual_interval: TimeDelta,
    ) {
        if let Some(packet) = report.packets.last() {
            self.newest = self.newest.max(packet.sequence_number);
        }
        self.is_lost = false;
        let old = self.base_rtt.unwrap_or(base_rtt);
        self.base_rtt = Some(old + (base_rtt - old) * RTT_GAIN);
        let late = (base_rtt + interval) - (old + usual_interval);
        let distance = late.max(TimeDelta::ZERO - late);
        self.deviation += (distance - self.deviation) * RTT_GAIN;
    }

    /// No feedback comes: what is on the way may be lost.
    pub(super) fn forget(&mut self) {
        self.newest = self.last_sent;
        self.is_lost = true;
    }

    /// Whether no feedback has come since what was on the way was taken for lost.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Data on the way, with packets of this mean size in bytes.
    pub(super) fn bytes(&self, packet_bytes: f64) -> DataSize {
        let packets = self.last_sent.saturating_sub(self.newest).max(0);
        DataSize::from_bytes((packets as f64 * packet_bytes) as u64)
    }

    /// How long feedback on a packet takes without a queue, `deviations` mean deviations above the
    /// mean.
    pub(super) fn feedback_time(&self, deviations: f64) -> TimeDelta {
        let mean = self.base_rtt.unwrap_or(TimeDelta::ZERO).max(TimeDelta::ZERO);
        mean + self.deviation * deviations
    }

    pub(super) fn waits(&self) -> DataSize {
        self.waits
    }
}

/// How far a value is above the least one, as a part of the ramp, 0 to 1.
fn part(value: f64, least: f64, ramp: f64) -> f64 {
    ((value - least) / ramp).clamp(0.0, 1.0)
}
