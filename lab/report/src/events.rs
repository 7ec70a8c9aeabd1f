//! Thins rate changes: a controller changes its target several times a second.

use serde_json::{Map, Value};
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_sim::trace;

use super::format::RateChange;
use super::rounded;

/// Changes with the same reason and direction within this time are merged.
pub(super) const MERGED: TimeDelta = TimeDelta::from_secs(1);

/// Consecutive changes with the same reason and direction, merged: from the first one's rate to the
/// last one's, with the last one's time, state and signals.
struct Step {
    start: Timestamp,
    from: Bitrate,
    last: trace::RateChange,
}

impl Step {
    fn continues_with(&self, next: &trace::RateChange) -> bool {
        self.last.reason == next.reason
            && (self.last.to > self.last.from) == (next.to > next.from)
            && next.time - self.start < MERGED
    }

    fn size_bps(&self) -> u64 {
        self.last.to.as_bps().abs_diff(self.from.as_bps())
    }
}

/// Takes the rate changes of one flow, by time, and merges them. If more than `most` remain, it
/// divides the run into `most` equal spans and keeps the largest change of each.
pub(super) struct Thinner {
    duration: TimeDelta,
    most: usize,
    /// The step that the next change may continue.
    open: Option<Step>,
    steps: Vec<Step>,
    /// Whether there were more than `most`.
    is_thinned: bool,
}

impl Thinner {
    pub(super) fn new(duration: TimeDelta, most: usize) -> Self {
        Self { duration, most, open: None, steps: Vec::new(), is_thinned: false }
    }

    pub(super) fn push(&mut self, change: trace::RateChange) {
        match &mut self.open {
            Some(step) if step.continues_with(&change) => step.last = change,
            open => {
                let step = Step { start: change.time, from: change.from, last: change };
                if let Some(whole) = open.replace(step) {
                    self.keep(whole);
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<RateChange> {
        if let Some(last) = self.open.take() {
            self.keep(last);
        }
        self.steps.iter().map(rate_change).collect()
    }

    fn keep(&mut self, step: Step) {
        if self.is_thinned {
            return self.keep_if_largest(step);
        }
        self.steps.push(step);
        if self.steps.len() > self.most {
            self.is_thinned = true;
            let steps = std::mem::take(&mut self.steps);
            for step in steps {
                self.keep_if_largest(step);
            }
        }
    }

    fn keep_if_largest(&mut self, step: Step) {
        let (duration, most) = (self.duration, self.most);
        let span = |step: &Step| {
            let share = (step.last.time - Timestamp::ZERO) / duration;
            ((share * most as f64) as usize).min(most - 1)
        };
        match self.steps.last_mut() {
            Some(largest) if span(largest) == span(&step) => {
                if step.size_bps() > largest.size_bps() {
                    *largest = step;
                }
            }
            _ => self.steps.push(step),
        }
    }
}

fn rate_change(step: &Step) -> RateChange {
    let last = &step.last;
    let mut signals = Map::new();
    for (name, value) in last.signals.iter() {
        signals.insert(name.to_string(), Value::from(rounded(*value, 6)));
    }
    RateChange {
        time_s: rounded(last.time.as_secs_f64(), 3),
        from_mbps: rounded(step.from.as_mbps_f64(), 4),
        target_mbps: rounded(last.to.as_mbps_f64(), 4),
        reason: last.reason.to_string(),
        state: last.state.to_string(),
        signals,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 400;

    fn change(ms: i64, from_kbps: u64, to_kbps: u64, reason: &'static str) -> trace::RateChange {
        let signals = vec![("gradient_ms".into(), ms as f64 / 3.0)];
        let (from, to) = (Bitrate::from_kbps(from_kbps), Bitrate::from_kbps(to_kbps));
        trace::RateChange::new(Timestamp::from_millis(ms), 0, from, to)
            .with_reason(reason.into())
            .with_state("Increase".into())
            .with_signals(signals)
    }

    fn thin(changes: &[trace::RateChange]) -> Vec<RateChange> {
        let mut thinner = Thinner::new(TimeDelta::from_secs(10), MOST);
        for change in changes {
            thinner.push(change.clone());
        }
        thinner.finish()
    }

    fn thinned(changes: &[trace::RateChange]) -> Vec<(f64, f64, f64)> {
        thin(changes).iter().map(|c| (c.time_s, c.from_mbps, c.target_mbps)).collect()
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
        let first = &thin(&changes)[0];
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
