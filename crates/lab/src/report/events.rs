//! Rate changes, thinned: a controller changes its target several times a second.

use serde_json::{Map, Value};
use weir::units::{TimeDelta, Timestamp};
use weir_sim::trace;

use super::format::RateChange;
use super::rounded;

/// Changes of one reason and direction become one within this time.
pub(super) const MERGED: TimeDelta = TimeDelta::from_secs(1);

/// Consecutive changes with the same reason and direction, merged: from the first one's rate to the
/// last one's, with the last one's time, state and signals.
struct Step<'a> {
    first: &'a trace::RateChange,
    last: &'a trace::RateChange,
}

impl Step<'_> {
    fn continues_with(&self, next: &trace::RateChange) -> bool {
        let rises = |change: &trace::RateChange| change.to > change.from;
        self.last.reason == next.reason
            && rises(self.last) == rises(next)
            && next.time - self.first.time < MERGED
    }

    fn size_bps(&self) -> u64 {
        self.last.to.as_bps().abs_diff(self.first.from.as_bps())
    }
}

/// Rate changes of one flow, by time, merged; of each of `most` equal spans of the run the
/// largest stays where there are more.
pub(super) fn thin<'a>(
    changes: impl Iterator<Item = &'a trace::RateChange>,
    duration: TimeDelta,
    most: usize,
) -> Vec<RateChange> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for change in changes {
        match steps.last_mut() {
            Some(step) if step.continues_with(change) => step.last = change,
            _ => steps.push(Step { first: change, last: change }),
        }
    }
    if steps.len() > most {
        steps = largest_of_each_span(steps, duration, most);
    }
    steps.iter().map(rate_change).collect()
}

fn largest_of_each_span<'a>(
    steps: Vec<Step<'a>>,
    duration: TimeDelta,
    most: usize,
) -> Vec<Step<'a>> {
    let span = |step: &Step<'_>| {
        let share = (step.last.time - Timestamp::ZERO) / duration;
        ((share * most as f64) as usize).min(most - 1)
    };
    let mut kept: Vec<Step<'a>> = Vec::with_capacity(most);
    for step in steps {
        match kept.last_mut() {
            Some(largest) if span(largest) == span(&step) => {
                if step.size_bps() > largest.size_bps() {
                    *largest = step;
                }
            }
            _ => kept.push(step),
        }
    }
    kept
}

fn rate_change(step: &Step<'_>) -> RateChange {
    let Step { first, last } = step;
    let named = last.signals.iter().filter(|(name, _)| !name.is_empty());
    let signals: Map<String, Value> =
        named.map(|(name, value)| (name.to_string(), Value::from(rounded(*value, 6)))).collect();
    RateChange {
        time_s: rounded(last.time.as_secs_f64(), 3),
        from_mbps: rounded(first.from.as_mbps_f64(), 4),
        target_mbps: rounded(last.to.as_mbps_f64(), 4),
        reason: last.reason.to_string(),
        state: last.state.to_string(),
        signals,
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use weir::units::Bitrate;

    use super::*;

    const MOST: usize = 400;

    fn change(ms: i64, from_kbps: u64, to_kbps: u64, reason: &'static str) -> trace::RateChange {
        let mut signals = [const { (Cow::Borrowed(""), 0.0) }; 4];
        signals[0] = ("gradient_ms".into(), ms as f64 / 3.0);
        trace::RateChange {
            time: Timestamp::from_millis(ms),
            flow: 0,
            from: Bitrate::from_kbps(from_kbps),
            to: Bitrate::from_kbps(to_kbps),
            reason: reason.into(),
            state: "Increase".into(),
            signals,
        }
    }

    fn thinned(changes: &[trace::RateChange]) -> Vec<(f64, f64, f64)> {
        let thinned = thin(changes.iter(), TimeDelta::from_secs(10), MOST);
        thinned.iter().map(|c| (c.time_s, c.from_mbps, c.target_mbps)).collect()
    }

    #[test]
    fn changes_of_one_reason_and_direction_become_one() {
        let changes = [
            change(100, 300, 400, "increase"),
            change(200, 400, 500, "increase"),
            change(300, 500, 450, "increase"),
            change(400, 450, 400, "loss"),
            change(500, 400, 300, "loss"),
            change(600, 300, 400, "increase"),
        ];
        let expected = [(0.2, 0.3, 0.5), (0.3, 0.5, 0.45), (0.5, 0.45, 0.3), (0.6, 0.3, 0.4)];
        assert_eq!(thinned(&changes), expected);
        let first = &thin(changes.iter(), TimeDelta::from_secs(10), MOST)[0];
        assert_eq!(first.signals["gradient_ms"], 66.666667);
        assert_eq!(first.signals.len(), 1);
    }

    #[test]
    fn a_long_climb_keeps_a_change_a_second() {
        let changes: Vec<_> = (0..40).map(|i| change(i * 100, 100, 200, "increase")).collect();
        let times: Vec<f64> = thinned(&changes).iter().map(|change| change.0).collect();
        assert_eq!(times, [0.9, 1.9, 2.9, 3.9]);
    }

    #[test]
    fn of_too_many_changes_the_largest_of_each_span_stays() {
        // Each reason differs from the one before, so none is merged; every fifth step is large.
        let changes: Vec<_> = (0..2_000)
            .map(|i| {
                let reason = if i % 2 == 0 { "increase" } else { "loss" };
                change(i * 5, 100, if i % 5 == 3 { 900 } else { 200 }, reason)
            })
            .collect();
        let thinned = thinned(&changes);
        assert_eq!(thinned.len(), MOST);
        assert!(thinned.iter().all(|change| change.2 == 0.9));
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0));
    }
}
