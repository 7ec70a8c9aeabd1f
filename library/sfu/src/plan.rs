//! The best choice of layers under a budget: the next step is always the one that is worth most per
//! bit.
//!
//! Worth is concave in bits over the steps that remain when dominated layers are left out (the
//! upper hull), so this greedy choice is at most one step from the best one.

use alloc::vec::Vec;

use weir::units::Bitrate;

/// A chosen layer of a track, as its place in the list; `None` is a pause.
pub(crate) type Level = Option<usize>;

/// What can be chosen for a track.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// What each layer is worth and costs. A layer that costs nothing is not sent.
    pub layers: Vec<(f64, Bitrate)>,
    pub may_pause: bool,
}

impl Options {
    /// What a level costs.
    pub fn cost(&self, level: Level) -> Bitrate {
        level.and_then(|layer| self.layers.get(layer)).map_or(Bitrate::ZERO, |&(_, cost)| cost)
    }

    /// What a level is worth.
    fn worth(&self, level: Level) -> f64 {
        level.and_then(|layer| self.layers.get(layer)).map_or(0.0, |&(worth, _)| worth)
    }

    /// Whether the publisher sends the layer.
    pub fn is_sent(&self, layer: usize) -> bool {
        self.layers.get(layer).is_some_and(|&(_, cost)| cost > Bitrate::ZERO)
    }

    /// The cheapest layer that is sent.
    pub fn cheapest(&self) -> Level {
        (0..self.layers.len()).find(|&layer| self.is_sent(layer))
    }

    /// The step up from a level that is worth most per bit, of those that cost at most `room` more
    /// and lead to `cap` at most.
    pub fn best_step(&self, from: Level, room: Bitrate, cap: Level) -> Option<Step> {
        let first = from.map_or(0, |layer| layer + 1);
        let (worth, cost) = (self.worth(from), self.cost(from));
        let mut best: Option<Step> = None;
        for layer in first..=cap? {
            if !self.is_sent(layer) {
                continue;
            }
            let more = self.cost(Some(layer)).saturating_sub(cost);
            let gain = self.worth(Some(layer)) - worth;
            if gain <= 0.0 || more > room {
                continue;
            }
            // A layer that costs no more than what it replaces is the best step of all.
            let slope = gain / more.as_bps_f64().max(1.0);
            if best.is_none_or(|best| slope > best.slope) {
                best = Some(Step { layer, more, slope });
            }
        }
        best
    }
}

/// A step up of one track.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Where it leads.
    pub layer: usize,
    /// What it costs more.
    pub more: Bitrate,
    /// Worth per bit/s.
    pub slope: f64,
}

/// Whether a level is above another. A pause is below all.
pub(crate) fn is_above(one: Level, other: Level) -> bool {
    one > other
}

/// What all levels cost together.
pub(crate) fn total(options: &[Options], levels: &[Level]) -> Bitrate {
    let mut sum = Bitrate::ZERO;
    for (track, &level) in options.iter().zip(levels) {
        sum = sum + track.cost(level);
    }
    sum
}

/// What all levels are worth together.
pub(crate) fn worth(options: &[Options], levels: &[Level]) -> f64 {
    let mut sum = 0.0;
    for (track, &level) in options.iter().zip(levels) {
        sum += track.worth(level);
    }
    sum
}

/// Raises the levels step by step while they fit the budget and stay at or below the caps.
pub(crate) fn raise(options: &[Options], levels: &mut [Level], budget: Bitrate, caps: &[Level]) {
    let mut room = budget.saturating_sub(total(options, levels));
    // The best step of each track changes only with the track's level, or when it no longer fits.
    let mut steps: Vec<Option<Step>> = Vec::with_capacity(options.len());
    for (index, track) in options.iter().enumerate() {
        steps.push(track.best_step(levels[index], room, caps[index]));
    }
    while let Some((index, step)) = best_of(&steps) {
        if step.more > room {
            steps[index] = options[index].best_step(levels[index], room, caps[index]);
            continue;
        }
        levels[index] = Some(step.layer);
        room = room.saturating_sub(step.more);
        steps[index] = options[index].best_step(levels[index], room, caps[index]);
    }
}

/// The step that is worth most per bit; the first of equal ones.
fn best_of(steps: &[Option<Step>]) -> Option<(usize, Step)> {
    let mut best: Option<(usize, Step)> = None;
    for (index, step) in steps.iter().enumerate() {
        if let Some(step) = *step
            && best.is_none_or(|(_, best)| step.slope > best.slope)
        {
            best = Some((index, step));
        }
    }
    best
}

/// The best levels under the budget, none above its cap. Tracks that may not pause come first.
pub(crate) fn choose(options: &[Options], budget: Bitrate, caps: &[Level]) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::with_capacity(options.len());
    for track in options {
        levels.push(if track.may_pause { None } else { track.cheapest() });
    }
    raise(options, &mut levels, budget, caps);
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    fn options(layers: &[(f64, u64)]) -> Options {
        let layers = layers.iter().map(|&(worth, bps)| (worth, Bitrate::from_bps(bps))).collect();
        Options { layers, may_pause: true }
    }

    #[test]
    fn the_step_that_is_worth_most_per_bit_comes_first() {
        let tracks = [options(&[(50.0, 100), (60.0, 300)]), options(&[(40.0, 100), (80.0, 300)])];
        let caps = [Some(1), Some(1)];
        let chosen = |bps| choose(&tracks, Bitrate::from_bps(bps), &caps);
        assert_eq!(chosen(99), [None, None]);
        assert_eq!(chosen(199), [Some(0), None]);
        assert_eq!(chosen(399), [Some(0), Some(0)]);
        assert_eq!(chosen(599), [Some(0), Some(1)]);
        assert_eq!(chosen(600), [Some(1), Some(1)]);
    }

    #[test]
    fn a_layer_that_is_not_sent_is_not_chosen_but_a_track_that_may_not_pause() {
        let mut track = options(&[(10.0, 0), (50.0, 100)]);
        assert_eq!(choose(&[track.clone()], Bitrate::from_bps(50), &[Some(1)]), [None]);
        track.may_pause = false;
        assert_eq!(choose(&[track], Bitrate::from_bps(50), &[Some(1)]), [Some(1)]);
    }

    /// The best worth by trying all combinations.
    fn best_worth(tracks: &[Options], budget: u64) -> f64 {
        let Some((first, rest)) = tracks.split_first() else { return 0.0 };
        let mut best = best_worth(rest, budget);
        for &(worth, cost) in &first.layers {
            if cost.as_bps() <= budget && cost > Bitrate::ZERO {
                best = best.max(worth + best_worth(rest, budget - cost.as_bps()));
            }
        }
        best
    }

    proptest! {
        #[test]
        fn a_plan_fits_and_is_at_most_one_step_from_the_best(
            costs in prop::collection::vec([50_u64..200, 100..800, 200..2_000], 1..5),
            budget in 0_u64..5_000,
        ) {
            let mut tracks = vec![];
            let mut largest: f64 = 0.0;
            for [low, mid, high] in costs {
                let (mid, high) = (low + mid, low + mid + high);
                let worth = |cost: u64| libm::sqrt(cost as f64);
                largest = largest.max(worth(high));
                tracks.push(options(&[(worth(low), low), (worth(mid), mid), (worth(high), high)]));
            }
            let caps = vec![Some(2); tracks.len()];
            let levels = choose(&tracks, Bitrate::from_bps(budget), &caps);
            prop_assert!(total(&tracks, &levels) <= Bitrate::from_bps(budget));
            let mut found = 0.0;
            for (track, &level) in tracks.iter().zip(&levels) {
                found += track.worth(level);
            }
            prop_assert!(found + largest + 1e-9 >= best_worth(&tracks, budget));
        }
    }
}
