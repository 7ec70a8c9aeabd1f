//! The receiver's record of arrivals by transport-wide sequence number.

use super::SeqUnwrapper;
use crate::fifo::Fifo;
use crate::units::{TimeDelta, Timestamp};

/// Time for which an arrival is kept after it was fed back. Feedback on a late packet must repeat
/// the packets after it, or it would report them as lost.
pub(super) const LOOK_BACK: TimeDelta = TimeDelta::from_millis(500);

/// Records arrivals by transport-wide sequence number and returns them in batches, one per feedback
/// packet. A batch starts at the lowest number that arrived since the last batch, so that reordered
/// packets are fed back too.
#[derive(Clone, Debug, Default)]
pub struct ArrivalRecorder {
    unwrapper: SeqUnwrapper,
    /// Sequence number and arrival in microseconds, by increasing number.
    arrivals: Fifo<(i64, i64)>,
    /// True if two packets in the list may have arrived in another order than that of their
    /// numbers.
    is_reordered: bool,
    /// Lowest number that arrived since the last batch.
    fresh: Option<i64>,
}

impl ArrivalRecorder {
    /// Records a packet. Of duplicates, the first arrival counts.
    pub fn on_packet(&mut self, now: Timestamp, sequence_number: u16) {
        let number = self.unwrapper.peek(sequence_number.into());
        let at = match self.arrivals.last() {
            Some(&(last, _)) if number <= last => {
                match self.arrivals.binary_search_by_key(&number, |arrival| arrival.0) {
                    Ok(_) => return,
                    Err(at) => at,
                }
            }
            _ => self.arrivals.len(),
        };
        // Keep the newest number as reference: a very late packet must not pull it back.
        if at == self.arrivals.len() {
            self.unwrapper.set_last(number);
        }
        let arrival = (number, now.as_micros());
        if at == self.arrivals.len() {
            self.arrivals.push(arrival);
        } else {
            self.arrivals.insert(at, arrival);
            self.is_reordered = true;
        }
        self.fresh = Some(self.fresh.map_or(number, |fresh| fresh.min(number)));
    }

    /// True if a packet arrived since the last batch.
    pub fn has_fresh(&self) -> bool {
        self.fresh.is_some()
    }

    /// Removes arrivals that are before the horizon and not fresh.
    fn forget(&mut self, fresh: i64, horizon: i64) {
        let is_old = |arrival: &(i64, i64)| arrival.0 < fresh && arrival.1 < horizon;
        if self.is_reordered {
            self.arrivals.retain(|arrival| !is_old(arrival));
            self.is_reordered = !self.arrivals.is_sorted_by_key(|arrival| arrival.1);
        } else {
            // Without reordering, the oldest arrivals are at the front.
            self.arrivals.remove_first(self.arrivals.partition_point(is_old));
        }
    }

    /// The arrivals to feed back now, from the lowest fresh number on: unwrapped sequence number
    /// and arrival in microseconds, by increasing number. Empty if there is no fresh one.
    pub fn take_batch(&mut self, now: Timestamp) -> &[(i64, i64)] {
        let horizon = (now - LOOK_BACK).as_micros();
        let Some(fresh) = self.fresh.take() else { return &[] };
        self.forget(fresh, horizon);
        let from = self.arrivals.partition_point(|&(number, _)| number < fresh);
        &self.arrivals[from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_batch_holds_what_arrived_since_the_last_one() {
        let mut recorder = ArrivalRecorder::default();
        recorder.on_packet(at(1), 65_535);
        recorder.on_packet(at(2), 0);
        assert_eq!(recorder.take_batch(at(3)), [(65_535, 1_000), (65_536, 2_000)]);
        assert!(!recorder.has_fresh());
        assert_eq!(recorder.take_batch(at(4)), []);
    }

    #[test]
    fn a_late_packet_brings_its_later_neighbours_along() {
        let mut recorder = ArrivalRecorder::default();
        for number in [1, 3, 4] {
            recorder.on_packet(at(number.into()), number);
        }
        recorder.take_batch(at(5));
        recorder.on_packet(at(6), 2);
        assert_eq!(recorder.take_batch(at(7)), [(2, 6_000), (3, 3_000), (4, 4_000)]);
    }

    #[test]
    fn a_duplicate_keeps_its_first_arrival() {
        let mut recorder = ArrivalRecorder::default();
        recorder.on_packet(at(1), 7);
        recorder.on_packet(at(9), 7);
        assert_eq!(recorder.take_batch(at(10)), [(7, 1_000)]);
    }

    #[test]
    fn old_arrivals_are_forgotten() {
        let mut recorder = ArrivalRecorder::default();
        for number in 0..2_000_u16 {
            recorder.on_packet(at(i64::from(number) * 10), number);
            recorder.take_batch(at(i64::from(number) * 10));
        }
        assert!(recorder.arrivals.len() <= 51);
    }

    #[test]
    fn old_arrivals_are_forgotten_behind_a_late_one_as_well() {
        let mut recorder = ArrivalRecorder::default();
        for number in [1, 3, 4] {
            recorder.on_packet(at(number.into()), number);
        }
        recorder.take_batch(at(5));
        recorder.on_packet(at(400), 2);
        recorder.take_batch(at(400));
        recorder.on_packet(at(600), 5);
        recorder.take_batch(at(600));
        assert_eq!(*recorder.arrivals, [(2, 400_000), (5, 600_000)]);
    }
}
