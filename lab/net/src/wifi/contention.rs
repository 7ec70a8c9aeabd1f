//! When an access category may send: AIFS, backoff, contention window.
//!
//! ```text
//!  busy | AIFS | slot | slot | slot |  backoff of 3 done: frame
//!   busy | AIFS | slot | busy ...       frozen with 1 left, resumed after the next AIFS
//! ```
//!
//! Implements [IEEE80211 §9.3.4, §9.19.2]. It does not count slots one by one. The end of the
//! backoff follows from the time since which the channel is idle. The number of slots left follows
//! from the time at which the channel became busy.

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
    /// `CW[AC]`: the backoff is drawn from 0 to this number, inclusive.
    window: u32,
    /// Slots left when the channel was last known to be busy; `None` if no backoff is pending.
    backoff: Option<u32>,
    /// Arrival time of the packet that found the channel idle and no backoff pending.
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

    pub(super) fn has_backoff(&self) -> bool {
        self.backoff.is_some()
    }

    /// When to send a waiting packet, if the channel has been idle since `idle_from` and stays
    /// idle.
    pub(super) fn access(&self, idle_from: Timestamp) -> Timestamp {
        let slots = idle_from + self.aifs;
        match self.backoff {
            Some(backoff) => slots + self.slot * i64::from(backoff),
            None => slots.max(self.ready_at),
        }
    }

    /// A packet arrives at an empty queue. If the channel is idle and no backoff is pending, it
    /// needs no backoff (immediate access) [IEEE80211 §9.3.4.2].
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

    /// The channel becomes busy, so the backoff pauses. It has counted down one slot at each slot
    /// boundary since the end of AIFS [IEEE80211 §9.19.2.3]. A packet that waited for immediate
    /// access must now draw a backoff.
    #[inline]
    pub(super) fn freeze(
        &mut self,
        now: Timestamp,
        idle_from: Timestamp,
        has_packets: bool,
        chance: &mut Stream,
    ) {
        // The fast path: most categories of most nodes have neither a backoff nor packets.
        if self.backoff.is_some() || has_packets {
            self.stand_still(now, idle_from, has_packets, chance);
        }
    }

    fn stand_still(
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
        // The first slot boundary is the end of AIFS. Each boundary counts down one slot, including
        // the boundary at which the other node begins to send.
        let boundaries = u32::try_from(idle.as_nanos() / self.slot.as_nanos()).unwrap_or(u32::MAX);
        let slots = boundaries.saturating_add(1);
        *backoff = backoff.saturating_sub(slots);
        if *backoff == 0 && !has_packets {
            self.backoff = None;
        }
    }

    /// A frame was answered or a packet given up. The window is reset, and a backoff follows even
    /// if no packet waits [IEEE80211 §9.3.4.2, §9.19.2.5].
    pub(super) fn on_done(&mut self, chance: &mut Stream) {
        self.window = self.cw_min;
        self.draw(chance);
    }

    /// A frame was not answered, so the window doubles [IEEE80211 §9.3.3].
    pub(super) fn on_failure(&mut self, chance: &mut Stream) {
        self.window = (2 * self.window + 1).min(self.cw_max);
        self.draw(chance);
    }

    fn draw(&mut self, chance: &mut Stream) {
        let choices = f64::from(self.window) + 1.0;
        self.backoff = Some((chance.uniform() * choices) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    const SLOT: TimeDelta = TimeDelta::from_micros(9);
    const AIFS: TimeDelta = TimeDelta::from_micros(37);

    fn at(us: i64) -> Timestamp {
        Timestamp::from_micros(us)
    }

    /// Contention with best-effort defaults and no backoff pending.
    fn best_effort() -> (Contention, Stream) {
        let parameters =
            EdcaParameters { aifsn: 3, cw_min: 15, cw_max: 1_023, txop: TimeDelta::ZERO };
        (Contention::new(&parameters, AIFS, SLOT), Seed::new(1).stream("backoff"))
    }

    /// The same with a pending backoff of this many slots.
    fn backing_off(slots: u32) -> (Contention, Stream) {
        let (contention, chance) = best_effort();
        (Contention { backoff: Some(slots), ..contention }, chance)
    }

    // [IEEE80211 §9.3.4.2]
    #[test]
    fn a_packet_that_finds_the_channel_idle_for_aifs_goes_at_once() {
        let (mut contention, mut chance) = best_effort();
        contention.on_packet(at(500), Some(at(100)), &mut chance);
        assert_eq!(contention.access(at(100)), at(500));
    }

    // [IEEE80211 §9.3.4.2]
    #[test]
    fn a_packet_that_comes_within_aifs_waits_for_its_end_and_no_longer() {
        let (mut contention, mut chance) = best_effort();
        contention.on_packet(at(110), Some(at(100)), &mut chance);
        assert_eq!(contention.access(at(100)), at(137));
    }

    // [IEEE80211 §9.3.4.2]
    #[test]
    fn a_packet_that_finds_the_channel_busy_draws_a_backoff() {
        let (mut contention, mut chance) = best_effort();
        contention.on_packet(at(110), None, &mut chance);
        assert!(contention.backoff.is_some_and(|slots| slots <= 15));
    }

    // [IEEE80211 §9.3.4.2]
    #[test]
    fn a_packet_that_waits_for_aifs_draws_a_backoff_if_the_channel_gets_busy() {
        let (mut contention, mut chance) = best_effort();
        contention.on_packet(at(110), Some(at(100)), &mut chance);
        contention.freeze(at(120), at(100), true, &mut chance);
        assert!(contention.backoff.is_some());
    }

    // [IEEE80211 §9.3.4.3]
    #[test]
    fn a_frozen_backoff_has_lost_a_slot_at_each_boundary_from_aifs_on() {
        for (busy_after_us, left) in [(36, 5), (37, 4), (45, 4), (46, 3), (54, 3), (55, 2)] {
            let (mut contention, mut chance) = backing_off(5);
            contention.freeze(at(100 + busy_after_us), at(100), true, &mut chance);
            assert_eq!(contention.backoff, Some(left), "{busy_after_us}");
        }
    }

    // [IEEE80211 §9.3.4.3]
    #[test]
    fn a_frozen_backoff_is_taken_up_after_the_next_aifs() {
        let (mut contention, mut chance) = backing_off(5);
        contention.freeze(at(100 + 37 + 2 * 9), at(100), true, &mut chance);
        assert_eq!(contention.access(at(1_000)), at(1_000 + 37 + 2 * 9));
    }

    // [IEEE80211 §9.3.3]
    #[test]
    fn the_window_doubles_to_its_ceiling_and_is_the_first_again_once_done() {
        let (mut contention, mut chance) = best_effort();
        let mut windows = Vec::new();
        for _ in 0..8 {
            windows.push(contention.window);
            contention.on_failure(&mut chance);
        }
        assert_eq!(windows, [15, 31, 63, 127, 255, 511, 1_023, 1_023]);
        contention.on_done(&mut chance);
        assert_eq!(contention.window, 15);
    }

    #[test]
    fn a_backoff_is_drawn_from_all_of_the_window() {
        let (mut contention, mut chance) = best_effort();
        let mut drawn = [0; 16];
        for _ in 0..16_000 {
            contention.draw(&mut chance);
            drawn[contention.backoff.unwrap() as usize] += 1;
        }
        assert!(drawn.iter().all(|count| (850..1_150).contains(count)), "{drawn:?}");
    }

    // [IEEE80211 §9.3.4.2]
    #[test]
    fn a_backoff_follows_a_frame_even_if_nothing_waits() {
        let (mut contention, mut chance) = backing_off(4);
        // The backoff ends at 100 + 37 + 36 = 173 us. A packet that arrives earlier waits for that.
        contention.on_packet(at(150), Some(at(100)), &mut chance);
        assert_eq!(contention.access(at(100)), at(173));
        // A packet that arrives later is sent at once.
        let (mut contention, mut chance) = backing_off(4);
        contention.on_packet(at(180), Some(at(100)), &mut chance);
        assert_eq!(contention.access(at(100)), at(180));
    }

    #[test]
    fn a_backoff_that_ends_while_nothing_waits_is_over() {
        let (mut contention, mut chance) = backing_off(4);
        contention.freeze(at(173), at(100), false, &mut chance);
        assert_eq!(contention.backoff, None);
    }
}
