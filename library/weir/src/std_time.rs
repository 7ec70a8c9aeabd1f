//! Conversions from and to `std::time`, for drivers that use the system clock (feature `std`).
//!
//! A driver records one `Instant` at its start, the origin, and converts all later instants to the
//! time since then. Nothing here reads a clock.

use std::time::{Duration, Instant};

use crate::units::{TimeDelta, Timestamp};

impl Timestamp {
    /// The time from `origin` to `instant`; negative if `instant` is earlier.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use weir::Timestamp;
    ///
    /// let origin = Instant::now();
    /// let now = Timestamp::from_instant(origin, origin + Duration::from_millis(20));
    /// assert_eq!(now, Timestamp::from_millis(20));
    /// assert_eq!(now.to_instant(origin), Some(origin + Duration::from_millis(20)));
    /// ```
    #[inline]
    pub fn from_instant(origin: Instant, instant: Instant) -> Self {
        match instant.checked_duration_since(origin) {
            Some(since) => Self::ZERO + TimeDelta::from(since),
            None => Self::ZERO - TimeDelta::from(origin.saturating_duration_since(instant)),
        }
    }

    /// The instant at this time after `origin`. `None` if the system cannot represent it, as with
    /// [`Timestamp::MAX`] on some systems.
    pub fn to_instant(self, origin: Instant) -> Option<Instant> {
        let nanos = self.as_nanos();
        let away = Duration::from_nanos(nanos.unsigned_abs());
        if nanos < 0 { origin.checked_sub(away) } else { origin.checked_add(away) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_on_both_sides_of_the_origin_come_back_as_they_were() {
        let origin = Instant::now() + Duration::from_secs(10);
        for instant in [origin, origin + Duration::from_nanos(7), origin - Duration::from_secs(3)] {
            let time = Timestamp::from_instant(origin, instant);
            assert_eq!(time.to_instant(origin), Some(instant), "{time}");
        }
        let before = Timestamp::from_instant(origin, origin - Duration::from_secs(3));
        assert_eq!(before, Timestamp::from_secs(-3));
    }
}
