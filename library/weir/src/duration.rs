//! Conversions between [`TimeDelta`] and the standard library's unsigned duration.

use core::fmt;
use core::time::Duration;

use crate::units::TimeDelta;

impl From<Duration> for TimeDelta {
    /// A duration beyond 292 years becomes [`TimeDelta::MAX`].
    #[inline]
    fn from(duration: Duration) -> Self {
        i64::try_from(duration.as_nanos()).map_or(Self::MAX, Self::from_nanos)
    }
}

/// Error: a [`TimeDelta`] below zero cannot be converted to a [`Duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegativeDuration;

impl fmt::Display for NegativeDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a negative duration")
    }
}
impl core::error::Error for NegativeDuration {}

impl TryFrom<TimeDelta> for Duration {
    type Error = NegativeDuration;
    fn try_from(delta: TimeDelta) -> Result<Self, NegativeDuration> {
        u64::try_from(delta.as_nanos()).map(Self::from_nanos).map_err(|_| NegativeDuration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_come_back_as_they_were_and_negative_ones_are_refused() {
        let delta = TimeDelta::from(Duration::from_micros(1_500));
        assert_eq!(delta, TimeDelta::from_micros(1_500));
        assert_eq!(Duration::try_from(delta), Ok(Duration::from_micros(1_500)));
        assert_eq!(Duration::try_from(TimeDelta::from_nanos(-1)), Err(NegativeDuration));
        assert_eq!(TimeDelta::from(Duration::MAX), TimeDelta::MAX);
    }
}
