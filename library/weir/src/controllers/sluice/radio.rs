//! Whether the bottleneck is a radio link that the flow has for itself, and how fast it is now.
//!
//! The capacity of a radio link changes from one moment to the next, that of a wired link does not.
//! It shows in the gaps between packets that waited behind each other, whatever the flow sends. The
//! gaps beside other flows vary as well, so the flow must be known to be alone (S-28).

use super::Parameters;
use crate::units::{Bitrate, DataSize, TimeDelta};

/// Packets of a bin at least.
const BIN_PACKETS: u32 = 3;

/// How the capacity varies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Radio {
    /// The bin that is being filled: time for which the link was busy, and what it sent in it.
    busy: TimeDelta,
    sent: DataSize,
    packets: u32,
    /// Rate of the newest complete bin.
    newest: Option<Bitrate>,
    /// Mean change of the rate from one bin to the next, as a logarithm.
    variation: f64,
    /// Own part of the capacity when it was last known.
    own: f64,
    /// Seconds for which others are believed to be there.
    others_s: f64,
    /// How far the link is believed to be a radio link.
    belief: f64,
}

impl Radio {
    /// The link sent this packet in this time, for which it was surely busy.
    pub(super) fn on_busy(&mut self, gap: TimeDelta, size: DataSize, noise: TimeDelta, p: &Parameters) {
        if gap > p.t_outage {
            // The link was away: that says nothing about its rate.
            self.vary(1.0, p);
            return;
        }
        self.busy += gap;
        self.sent += size;
        self.packets += 1;
        if self.busy < p.t_bin || self.packets < BIN_PACKETS {
            return;
        }
        let rate = self.sent / self.busy;
        if let Some(last) = self.newest.replace(rate) {
            let change = libm::log(rate / last).abs().min(1.0);
            self.vary((change - noise / self.busy).max(0.0), p);
        }
        (self.busy, self.sent, self.packets) = Default::default();
    }

    fn vary(&mut self, change: f64, p: &Parameters) {
        self.variation += p.radio_gain * (change - self.variation);
    }

    /// A report is complete. The own part may be unknown.
    pub(super) fn update(&mut self, own: Option<f64>, scale: f64, step_s: f64, p: &Parameters) {
        self.own = own.unwrap_or(self.own);
        self.others_s -= step_s;
        if self.own < p.radio_own {
            self.others_s = p.t_others.as_secs_f64();
        }
        let part = |value: f64, least: f64, ramp: f64| ((value - least) / ramp).clamp(0.0, 1.0);
        self.belief = if self.others_s > 0.0 {
            0.0
        } else {
            part(self.variation, p.radio_variation, p.radio_variation_ramp)
                * part(self.own, p.radio_own, p.radio_own_ramp)
                * part(scale, p.radio_scale, 1.0 - p.radio_scale)
        };
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

    /// The rate of the link just now, if it is known.
    pub(super) fn capacity(&self) -> Option<Bitrate> {
        self.newest
    }
}
