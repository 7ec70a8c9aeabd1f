//! `max_bytes_in_flight` and `max_bytes_in_flight_prev`: maximum bytes in flight during this round
//! trip and during the previous one [SCREAMV2 §4.1.1].

use crate::units::{DataSize, TimeDelta, Timestamp};

/// Maxima of the current and of the previous round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTripFlight {
    current: DataSize,
    previous: DataSize,
    started: Timestamp,
}

impl RoundTripFlight {
    pub fn record(&mut self, in_flight: DataSize) {
        self.current = self.current.max(in_flight);
    }

    /// Starts a new round trip if one has passed.
    pub fn on_feedback(&mut self, now: Timestamp, rtt: TimeDelta) {
        if now - self.started >= rtt {
            self.previous = core::mem::take(&mut self.current);
            self.started = now;
        }
    }

    /// The larger of the two.
    pub fn max(&self) -> DataSize {
        self.current.max(self.previous)
    }

    /// Maximum during the previous round trip, `max_bytes_in_flight_prev`.
    pub fn previous(&self) -> DataSize {
        self.previous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [SCREAMV2 §4.1.1]
    #[test]
    fn a_maximum_lives_for_its_round_trip_and_the_next() {
        let rtt = TimeDelta::from_millis(100);
        let mut flight = RoundTripFlight::default();
        let mut step = |millis: i64, bytes| {
            flight.record(DataSize::from_bytes(bytes));
            flight.on_feedback(Timestamp::from_millis(1_000 + millis), rtt);
            (flight.max().as_bytes(), flight.previous().as_bytes())
        };
        assert_eq!(step(0, 3_000), (3_000, 3_000));
        assert_eq!(step(99, 1_000), (3_000, 3_000));
        assert_eq!(step(100, 500), (1_000, 1_000));
        assert_eq!(step(200, 200), (200, 200));
    }
}
