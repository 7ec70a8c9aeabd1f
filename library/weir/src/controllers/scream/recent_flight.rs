//! `max_bytes_in_flight`: the maximum of bytes in flight over the last 5 s [SCREAM §4.1.2.2].

use crate::units::{DataSize, TimeDelta, Timestamp};

/// Length of the sliding window.
const WINDOW: TimeDelta = TimeDelta::from_secs(5);
const SLOT: TimeDelta = TimeDelta::from_millis(100);
const SLOTS: usize = (WINDOW.as_nanos() / SLOT.as_nanos()) as usize;

/// Maximum over a sliding window, which is divided into slots in a ring buffer.
#[derive(Clone, Debug)]
pub(super) struct RecentFlight {
    /// Number of each slot, counted from time zero, and the maximum in it.
    slots: [(i64, DataSize); SLOTS],
}

impl Default for RecentFlight {
    fn default() -> Self {
        Self { slots: [(i64::MIN, DataSize::ZERO); SLOTS] }
    }
}

impl RecentFlight {
    pub fn record(&mut self, now: Timestamp, in_flight: DataSize) {
        let number = slot_number(now);
        let slot = &mut self.slots[number.rem_euclid(SLOTS as i64) as usize];
        let before = if slot.0 == number { slot.1 } else { DataSize::ZERO };
        *slot = (number, before.max(in_flight));
    }

    /// The maximum over the last 5 s.
    pub fn max(&self, now: Timestamp) -> DataSize {
        let oldest = slot_number(now) - SLOTS as i64;
        let live = self.slots.iter().filter(|(number, _)| *number > oldest);
        live.map(|(_, in_flight)| *in_flight).max().unwrap_or(DataSize::ZERO)
    }
}

fn slot_number(now: Timestamp) -> i64 {
    now.as_nanos().div_euclid(SLOT.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_forgets_after_5_s() {
        let bytes = DataSize::from_bytes;
        let mut recent = RecentFlight::default();
        recent.record(Timestamp::from_millis(20), bytes(3_000));
        recent.record(Timestamp::from_millis(60), bytes(2_000));
        assert_eq!(recent.max(Timestamp::from_millis(4_999)), bytes(3_000));
        recent.record(Timestamp::from_secs(1), bytes(700));
        assert_eq!(recent.max(Timestamp::from_secs(5)), bytes(700));
        assert_eq!(recent.max(Timestamp::from_secs(6)), DataSize::ZERO);
    }
}
