//! The rules by which rivals choose layers.

use weir::controller::Reason;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_sfu::TrackConfig;

use super::levels::{Choice, best, cost, step, total};
use super::mediasoup::Mediasoup;

/// How often the greedy allocator chooses.
const GREEDY_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// How often LiveKit's looks for congestion.
const LIVEKIT_INTERVAL: TimeDelta = TimeDelta::from_millis(100);
/// Congestion: the target falls below this part of what is sent.
const CONGESTED: f64 = 0.95;
/// Time between probes: first, factor, and most.
const PROBE_INTERVAL: TimeDelta = TimeDelta::from_secs(3);
const PROBE_BACKOFF: f64 = 1.5;
const MAX_PROBE_INTERVAL: TimeDelta = TimeDelta::from_secs(120);
/// How long a probe may take to show its goal.
const PROBE_PATIENCE: TimeDelta = TimeDelta::from_secs(2);
/// A probe aims this factor above what the next layer needs.
const OVERAGE: f64 = 1.2;

/// The rules of a rival.
pub(in super::super) enum Policy {
    /// Layers from the smallest on, while they fit.
    Greedy,
    /// The best layers until congestion, and one more after each probe.
    LiveKit(LiveKit),
    /// One layer of each track after the other once a second, and none up for 10 s after a fall.
    Mediasoup(Mediasoup),
}

impl Policy {
    pub(in super::super) fn livekit() -> Self {
        Self::LiveKit(LiveKit {
            capacity: None,
            next_probe: Timestamp::ZERO,
            interval: PROBE_INTERVAL,
            probe: None,
        })
    }

    /// Chooses under a target. `tracks` come with the layer that each has now.
    pub(super) fn choose(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        reason: Reason,
        tracks: &[(&TrackConfig, Option<usize>)],
    ) -> Choice {
        match self {
            Self::Greedy => Choice {
                levels: raise(tracks, target),
                desired: Some(total(tracks, &best(tracks))),
                again: GREEDY_INTERVAL,
            },
            Self::LiveKit(livekit) => livekit.choose(now, target, reason, tracks),
            Self::Mediasoup(mediasoup) => mediasoup.choose(now, target, tracks),
        }
    }
}

/// The state of LiveKit's allocator.
pub(in super::super) struct LiveKit {
    /// What the path carried at the last congestion or probe; `None` before the first.
    capacity: Option<Bitrate>,
    next_probe: Timestamp,
    interval: TimeDelta,
    /// The goal of the running probe, and when it began.
    probe: Option<(Bitrate, Timestamp)>,
}

impl LiveKit {
    fn choose(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        reason: Reason,
        tracks: &[(&TrackConfig, Option<usize>)],
    ) -> Choice {
        let current: Vec<Option<usize>> = tracks.iter().map(|track| track.1).collect();
        let sent = total(tracks, &current);
        let is_congestion = matches!(reason, Reason::OverUse | Reason::Loss | Reason::QueuingDelay);
        if is_congestion && target < sent * CONGESTED {
            self.capacity = Some(target);
            self.probe = None;
            self.interval = PROBE_INTERVAL;
            self.next_probe = now + self.interval;
        } else if let Some((goal, began)) = self.probe {
            self.judge(now, target, goal, began);
        }
        let levels = match self.capacity {
            None => best(tracks),
            Some(capacity) => raise(tracks, capacity),
        };
        let most = total(tracks, &best(tracks));
        let chosen = total(tracks, &levels);
        if chosen < most && self.probe.is_none() && now >= self.next_probe {
            self.probe = Some((next_need(tracks, &levels), now));
        }
        let desired = self.probe.map(|(goal, _)| goal * OVERAGE);
        Choice { levels, desired, again: LIVEKIT_INTERVAL }
    }

    fn judge(&mut self, now: Timestamp, target: Bitrate, goal: Bitrate, began: Timestamp) {
        if target >= goal {
            self.capacity = Some(self.capacity.map_or(goal, |capacity| capacity.max(goal)));
            self.interval = PROBE_INTERVAL;
        } else if now - began >= PROBE_PATIENCE {
            let longer = TimeDelta::from_secs_f64(self.interval.as_secs_f64() * PROBE_BACKOFF);
            self.interval = longer.min(MAX_PROBE_INTERVAL);
        } else {
            return;
        }
        self.probe = None;
        self.next_probe = now + self.interval;
    }
}

/// Layers from nothing up, one step of each track after the other, the largest pictures first,
/// while they fit.
fn raise(tracks: &[(&TrackConfig, Option<usize>)], budget: Bitrate) -> Vec<Option<usize>> {
    let caps = best(tracks);
    let mut levels = vec![None; tracks.len()];
    let mut order: Vec<usize> = (0..tracks.len()).collect();
    order.sort_by_key(|&index| {
        let track = tracks[index].0;
        std::cmp::Reverse(u32::from(track.shown_width) * u32::from(track.shown_height))
    });
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for &index in &order {
            let Some(next) = step(tracks[index].0, levels[index], caps[index]) else { continue };
            let before = levels[index].replace(next);
            if total(tracks, &levels) <= budget {
                is_changed = true;
            } else {
                levels[index] = before;
            }
        }
    }
    levels
}

/// What is needed for the cheapest step up.
fn next_need(tracks: &[(&TrackConfig, Option<usize>)], levels: &[Option<usize>]) -> Bitrate {
    let now = total(tracks, levels);
    let caps = best(tracks);
    let mut least: Option<Bitrate> = None;
    for (index, (track, _)) in tracks.iter().enumerate() {
        if let Some(next) = step(track, levels[index], caps[index]) {
            let more = cost(track, Some(next)).saturating_sub(cost(track, levels[index]));
            least = Some(least.map_or(more, |least| least.min(more)));
        }
    }
    now + least.unwrap_or(Bitrate::ZERO)
}

#[cfg(test)]
mod tests {
    use super::super::levels::samples::{camera, kbps};
    use super::*;
    use weir_sfu::Layer;

    #[test]
    fn the_greedy_rule_takes_what_fits_and_asks_for_all() {
        let track = camera();
        for (target, level) in [(100, None), (150, Some(0)), (1_499, Some(1)), (1_500, Some(2))] {
            let choice = Policy::Greedy.choose(
                Timestamp::ZERO,
                kbps(target),
                Reason::Increase,
                &[(&track, None)],
            );
            assert_eq!(choice.levels, [level], "{target}");
            assert_eq!(choice.desired, Some(kbps(1_500)));
        }
    }

    #[test]
    fn livekit_s_rule_begins_with_the_best_layers_and_falls_at_congestion() {
        let track = camera();
        let mut policy = Policy::livekit();
        let at = Timestamp::from_secs;
        let start = policy.choose(at(0), kbps(300), Reason::Increase, &[(&track, None)]);
        assert_eq!(start.levels, [Some(2)]);
        let fallen = policy.choose(at(1), kbps(600), Reason::OverUse, &[(&track, Some(2))]);
        assert_eq!(fallen.levels, [Some(1)]);
        // 3 s later it probes for the next layer, and takes it when the target has got there.
        let probing = policy.choose(at(4), kbps(700), Reason::Increase, &[(&track, Some(1))]);
        assert_eq!((probing.levels[0], probing.desired), (Some(1), Some(kbps(1_800))));
        let risen = policy.choose(at(5), kbps(1_600), Reason::Increase, &[(&track, Some(1))]);
        assert_eq!(risen.levels, [Some(2)]);
    }

    #[test]
    fn a_small_window_gets_no_more_than_fills_it() {
        let small = camera().with_shown(320, 180);
        let hidden = camera().with_shown(0, 0);
        let half = Layer::new(0, 320, 180, kbps(90)).with_temporal(0);
        let temporal = TrackConfig::camera(vec![half, Layer::new(0, 320, 180, kbps(150))])
            .with_shown(320, 180);
        let tracks = [(&small, None), (&hidden, None), (&temporal, None)];
        assert_eq!(best(&tracks), [Some(0), None, Some(1)]);
    }
}
