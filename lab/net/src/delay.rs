//! Propagation delay over time.

use weir::units::{TimeDelta, Timestamp};

use crate::capacity::ScheduleError;

/// A propagation delay in steps. The first step applies from the start, and the last one applies
/// forever. When the delay decreases, later packets can arrive before earlier ones, as on a new
/// route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    steps: Vec<(Timestamp, TimeDelta)>,
    keeps_order: bool,
}

impl From<TimeDelta> for Delay {
    fn from(delay: TimeDelta) -> Self {
        Self { steps: vec![(Timestamp::ZERO, delay)], keeps_order: false }
    }
}

impl Delay {
    /// Builds a delay from steps.
    ///
    /// # Errors
    /// If the first step is not at zero, the times do not increase, or a delay is negative.
    pub fn new(steps: Vec<(Timestamp, TimeDelta)>) -> Result<Self, ScheduleError> {
        if steps.first().is_none_or(|step| step.0 != Timestamp::ZERO) {
            return Err(ScheduleError::new("a delay schedule must start at 0s"));
        }
        if steps.iter().any(|step| step.1 < TimeDelta::ZERO) {
            return Err(ScheduleError::new("a delay must not be negative"));
        }
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            let at = pair[1].0.as_secs_f64();
            return Err(ScheduleError::new(&format!("the delay step at {at} s must come later")));
        }
        Ok(Self { steps, keeps_order: false })
    }

    /// The same delay, but no packet overtakes another: as in a queue, or on one path.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self { keeps_order: true, ..self }
    }

    pub(crate) fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// The steps, by increasing time.
    pub fn steps(&self) -> &[(Timestamp, TimeDelta)] {
        &self.steps
    }

    /// The delay of a packet that leaves the bottleneck at `now`.
    pub fn at(&self, now: Timestamp) -> TimeDelta {
        self.steps[self.steps.partition_point(|step| step.0 <= now).saturating_sub(1)].1
    }

    /// The smallest delay of all steps.
    pub(crate) fn minimum(&self) -> TimeDelta {
        self.steps.iter().map(|step| step.1).min().unwrap_or(TimeDelta::ZERO)
    }

    /// Whether a packet may overtake an earlier one.
    pub(crate) fn may_reorder(&self) -> bool {
        !self.keeps_order && self.steps.windows(2).any(|pair| pair[1].1 < pair[0].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_holds_from_its_time_on() {
        let ms = |ms| (Timestamp::from_millis(ms), TimeDelta::from_millis(ms / 100 + 1));
        let delay = Delay::new(vec![ms(0), ms(1_000)]).unwrap();
        assert_eq!(delay.at(Timestamp::from_millis(999)), TimeDelta::from_millis(1));
        assert_eq!(delay.at(Timestamp::from_millis(1_000)), TimeDelta::from_millis(11));
    }

    #[test]
    fn steps_start_at_zero_rise_and_are_not_negative() {
        let step = |s, ms| (Timestamp::from_secs(s), TimeDelta::from_millis(ms));
        for steps in [vec![], vec![step(1, 1)], vec![step(0, -1)], vec![step(0, 1), step(0, 2)]] {
            assert!(Delay::new(steps).is_err());
        }
    }
}
