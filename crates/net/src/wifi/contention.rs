//! When an access category may send: AIFS, backoff, contention window.
//!
//! ```text
//!  busy | AIFS | slot | slot | slot |  backoff of 3 done: frame
//!  busy | AIFS | slot | busy ...       frozen with 2 left, taken up after the next AIFS
//! ```
//!
//! Implements [IEEE80211 §9.3.4, §9.19.2]. Nothing ticks: from the time since which the channel is idle
//! follows when the backoff would be done, and from the time at which it got busy how many slots are
//! left.

use weir::units::{TimeDelta, Timestamp};

use super::config::EdcaParameters;
use crate::seed::Stream;

/// The contention of one access category of one node.
#[derive(Clone, Debug)]
pub(super) struct Contention {
    aifs: TimeDelta,
    slot: TimeDelta,
    cw_min: u32,
    cw_max: u32,
    /// `CW[AC]`: the backoff is drawn from 0 to this.
    window: u32,
    /// Slots left, as of when the channel was last known busy; `None` if no backoff is pending.
    backoff: Option<u32>,
    /// When the packet came that found the channel idle and no backoff pending.
    ready_at: Timestamp,
}

impl Contention {
    pub(super) fn new(parameters: &EdcaParameters, aifs: TimeDelta, slot: TimeDelta) -> Self {
        let EdcaParameters { cw_min, cw_max, .. } = *parameters;
        Self {
            aifs,
            slot,
            cw_min,
            cw_max,
            window: cw_min,
            backoff: None,
            ready_at: Timestamp::ZERO,
        }
    }

    /// When to send what waits, if the channel stays idle as it is since this time.
    pub(super) fn access(&self, idle_from: Timestamp) -> Timestamp {
        let slots = idle_from + self.aifs;
        match self.backoff {
            Some(backoff) => slots + self.slot * i64::from(backoff),
            None => slots.max(self.ready_at),
        }
    }

    /// A packet comes while none waits. With the channel idle and no backoff pending it needs none
    /// (immediate access) [IEEE80211 §9.3.4.2].
    pub(super) fn on_packet(
        &mut self,
        now: Timestamp,
        idle_from: Option<Timestamp>,
        chance: &mut Stream,
    ) {
        match idle_from {
            Some(idle_from) => {
                if self.backoff.is_some() && self.access(idle_from) <= now {
                    self.backoff = None;
                }
                self.ready_at = now;
            }
            None if self.backoff.is_none() => self.draw(chance),
            None => {}
        }
    }

    /// The channel gets busy: the backoff stands still. Slots that were idle to their end count
    /// [IEEE80211 §9.3.4.3]. A packet that had hoped for immediate access has to draw a backoff now.
    pub(super) fn freeze(
        &mut self,
        now: Timestamp,
        idle_from: Timestamp,
        has_packets: bool,
        chance: &mut Stream,
    ) {
        let Some(backoff) = &mut self.backoff else {
            if has_packets {
                self.draw(chance);
            }
            return;
        };
        let idle = now - (idle_from + self.aifs);
        if idle < TimeDelta::ZERO {
            return;
        }
        let slots = u32::try_from(idle.as_nanos() / self.slot.as_nanos()).unwrap_or(u32::MAX);
        *backoff = backoff.saturating_sub(slots);
        if *backoff == 0 && !has_packets {
            self.backoff = None;
        }
    }

    /// A frame was answered, or a packet given up: the window is the first one again, and a backoff
    /// follows even if nothing waits [IEEE80211 §9.3.4.2, §9.19.2.5].
    pub(super) fn on_done(&mut self, chance: &mut Stream) {
        self.window = self.cw_min;
        self.draw(chance);
    }

    /// A frame was not answered: the window doubles [IEEE80211 §9.3.3].
    pub(super) fn on_failure(&mut self, chance: &mut Stream) {
        self.window = (2 * self.window + 1).min(self.cw_max);
        self.draw(chance);
    }

    fn draw(&mut self, chance: &mut Stream) {
        let choices = f64::from(self.window) + 1.0;
        self.backoff = Some((chance.uniform() * choices) as u32);
    }
}
