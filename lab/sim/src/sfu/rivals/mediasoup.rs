//! The rules by which mediasoup's transports give layers to their consumers.

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_sfu::{Kind, TrackConfig};

use super::levels::{Choice, best, cost, step, total};

/// How often its controller's target is looked at.
const LOOK_INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// Layers are given anew this often at most, and at once when the target falls or rises by these
/// factors from one look to the next.
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const SUDDEN_FALL: f64 = 0.75;
const SUDDEN_RISE: f64 = 1.5;
/// No larger layer for this time after a track had to leave one.
const AFTER_FALL: TimeDelta = TimeDelta::from_secs(10);
/// A track younger than this is not held back after a fall.
const MIN_AGE: TimeDelta = TimeDelta::from_secs(8);
/// Its controller may go this factor above what all consumers want.
const ABOVE_DESIRED: f64 = 1.35;
/// What all want falls by this share of its highest value a second, and rises at once.
const DESIRED_DECAY: f64 = 0.05;
/// What its transports have for a start, whatever is wanted.
const LEAST_DESIRED: Bitrate = Bitrate::from_kbps(600);

/// The state of a transport.
#[derive(Default)]
pub(in super::super) struct Mediasoup {
    tracks: Vec<Consumer>,
    /// The target at the last look.
    target: Bitrate,
    given: Option<Timestamp>,
    /// The highest sum that all wanted, and when.
    desired: Option<(Bitrate, Timestamp)>,
}

/// What is remembered of a track, by its place.
#[derive(Clone, Copy)]
struct Consumer {
    since: Timestamp,
    fell: Option<Timestamp>,
    /// The best layer at the last look: a change of what is shown or sent gives layers anew.
    best: Option<usize>,
}

impl Mediasoup {
    pub(super) fn choose(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        tracks: &[(&TrackConfig, Option<usize>)],
    ) -> Choice {
        let is_changed = self.follow(now, tracks);
        let is_sudden = target < self.target * SUDDEN_FALL || target > self.target * SUDDEN_RISE;
        let is_due = self.given.is_none_or(|given| now - given >= INTERVAL);
        self.target = target;
        let mut levels: Vec<Option<usize>> = tracks.iter().map(|track| track.1).collect();
        if is_changed || is_sudden || is_due {
            self.given = Some(now);
            levels = self.give(now, target, tracks);
        }
        Choice { levels, desired: Some(self.desired(now, tracks)), again: LOOK_INTERVAL }
    }

    /// Notes the tracks. Returns whether one is new, gone, or wants another layer.
    fn follow(&mut self, now: Timestamp, tracks: &[(&TrackConfig, Option<usize>)]) -> bool {
        let best = best(tracks);
        let mut is_changed = self.tracks.len() != tracks.len();
        if is_changed {
            self.tracks.clear();
        }
        for (index, best) in best.into_iter().enumerate() {
            match self.tracks.get_mut(index) {
                Some(known) => {
                    is_changed |= known.best != best;
                    known.best = best;
                }
                None => self.tracks.push(Consumer { since: now, fell: None, best }),
            }
        }
        is_changed
    }

    /// Gives each track one step, those of the highest priority first; then as many steps a round
    /// as its priority says, while there is something left.
    fn give(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        tracks: &[(&TrackConfig, Option<usize>)],
    ) -> Vec<Option<usize>> {
        let mut levels = vec![None; tracks.len()];
        let mut order: Vec<usize> = (0..tracks.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(priority(tracks[index].0)));
        let mut left = target.saturating_sub(total(tracks, &levels));
        let mut is_first = true;
        let mut is_given = true;
        while is_given {
            is_given = false;
            for &index in &order {
                let steps = if is_first { 1 } else { priority(tracks[index].0) };
                for _ in 0..steps {
                    let Some(next) = self.step(now, index, tracks, levels[index]) else { break };
                    let config = tracks[index].0;
                    let before = cost(config, levels[index]);
                    let more = cost(config, Some(next)).saturating_sub(before);
                    if more > left {
                        break;
                    }
                    left = left.saturating_sub(more);
                    levels[index] = Some(next);
                    is_given = true;
                }
            }
            is_first = false;
        }
        for (index, &level) in levels.iter().enumerate() {
            let consumer = &mut self.tracks[index];
            if level < tracks[index].1.min(consumer.best) && now - consumer.since > MIN_AGE {
                consumer.fell = Some(now);
            }
        }
        levels
    }

    /// The next step of a track: none above what is sent soon after a fall.
    fn step(
        &self,
        now: Timestamp,
        index: usize,
        tracks: &[(&TrackConfig, Option<usize>)],
        level: Option<usize>,
    ) -> Option<usize> {
        let (config, sent) = tracks[index];
        let consumer = self.tracks[index];
        let next = step(config, level, consumer.best)?;
        let is_held = consumer.fell.is_some_and(|fell| now - fell < AFTER_FALL);
        let is_refused = is_held && level.is_some() && Some(next) > sent;
        (!is_refused).then_some(next)
    }

    /// What its controller may reach.
    fn desired(&mut self, now: Timestamp, tracks: &[(&TrackConfig, Option<usize>)]) -> Bitrate {
        let mut sum = Bitrate::ZERO;
        for (config, _) in tracks {
            let mut most = Bitrate::ZERO;
            for layer in &config.layers {
                most = most.max(layer.bitrate);
            }
            sum = sum + most;
        }
        let (highest, since) = self.desired.unwrap_or((sum, now));
        let decay = (1.0 - DESIRED_DECAY * (now - since).as_secs_f64()).max(0.0);
        let trend = highest * decay;
        if sum >= trend {
            self.desired = Some((sum, now));
        }
        (trend.max(sum) * ABOVE_DESIRED).max(LEAST_DESIRED)
    }
}

/// mediasoup's priorities are whole numbers from 1 to 255.
fn priority(track: &TrackConfig) -> u64 {
    match track.kind {
        Kind::Audio => 1,
        _ => track.priority.round().clamp(1.0, 255.0) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::samples::{camera, kbps};
    use super::*;
    use weir_sfu::Layer;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn every_track_gets_its_first_layer_before_one_gets_its_second() {
        let tracks = [camera(), camera().with_priority(3.0)];
        let seen = [(&tracks[0], None), (&tracks[1], None)];
        for (target, levels) in [
            (200, [None, Some(0)]),
            (400, [Some(0), Some(0)]),
            (700, [Some(0), Some(1)]),
            (1_700, [Some(0), Some(2)]),
            (2_000, [Some(1), Some(2)]),
        ] {
            let choice = Mediasoup::default().choose(at(0), kbps(target), &seen);
            assert_eq!(choice.levels, levels, "{target}");
        }
    }

    #[test]
    fn layers_are_given_once_a_second_and_at_once_when_the_target_jumps() {
        let track = camera();
        let mut server = Mediasoup::default();
        let first = server.choose(at(0), kbps(600), &[(&track, None)]);
        assert_eq!(first.levels, [Some(1)]);
        let ms = Timestamp::from_millis;
        let soon = server.choose(ms(100), kbps(460), &[(&track, Some(1))]);
        assert_eq!(soon.levels, [Some(1)], "a small fall waits");
        let sudden = server.choose(ms(200), kbps(300), &[(&track, Some(1))]);
        assert_eq!(sudden.levels, [Some(0)]);
        let later = server.choose(ms(1_200), kbps(420), &[(&track, Some(0))]);
        assert_eq!(later.levels, [Some(0)]);
    }

    #[test]
    fn a_larger_layer_waits_for_ten_seconds_after_a_fall() {
        let track = camera();
        let mut server = Mediasoup::default();
        server.choose(at(0), kbps(2_000), &[(&track, None)]);
        let fallen = server.choose(at(20), kbps(600), &[(&track, Some(2))]);
        assert_eq!(fallen.levels, [Some(1)]);
        let held = server.choose(at(29), kbps(2_000), &[(&track, Some(1))]);
        assert_eq!(held.levels, [Some(1)]);
        let back = server.choose(at(31), kbps(2_000), &[(&track, Some(1))]);
        assert_eq!(back.levels, [Some(2)]);
    }

    #[test]
    fn what_is_wanted_rises_at_once_and_falls_slowly() {
        let large = camera();
        let small = TrackConfig::camera(vec![Layer::new(0, 320, 180, kbps(500))]);
        let mut server = Mediasoup::default();
        let first = server.choose(at(0), kbps(600), &[(&large, None)]);
        assert_eq!(first.desired, Some(kbps(2_025)));
        let soon = server.choose(at(4), kbps(600), &[(&small, None)]);
        assert_eq!(soon.desired, Some(kbps(1_620)));
        let late = server.choose(at(60), kbps(600), &[(&small, None)]);
        assert_eq!(late.desired, Some(kbps(675)));
    }
}
