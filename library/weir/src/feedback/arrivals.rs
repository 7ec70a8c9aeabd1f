//! The receiver's record of arrivals by transport-wide sequence number.

use super::restarts::{Place, Restarts};
use super::{SeqUnwrapper, Unwrapper};
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
    restarts: Restarts,
    /// The last packet, if its number is far from the others.
    far: Option<(i64, i64)>,
    /// Sequence number and arrival in microseconds, by increasing number.
    arrivals: Fifo<(i64, i64)>,
    /// True if two packets in the list may have arrived in another order than that of their
    /// numbers.
    is_reordered: bool,
    /// Lowest number that arrived since the last batch.
    fresh: Option<i64>,
}

impl ArrivalRecorder {
    /// Records a packet. Of duplicates, the first arrival counts. A sender whose numbers begin anew
    /// is recorded from its first packet on.
    pub fn on_packet(&mut self, now: Timestamp, sequence_number: u16) {
        let number = self.unwrapper.peek(sequence_number.into());
        let far = self.far.take();
        match self.restarts.place(now, number, i64::MAX) {
            Place::Newer => self.push(number, now.as_micros()),
            Place::Late => self.insert(number, now.as_micros()),
            Place::Far => self.far = Some((number, now.as_micros())),
            Place::Anew => {
                // Numbers wrap: these follow the others, one cycle later.
                let cycle = Unwrapper::<16>::PERIOD;
                if let Some((first, at)) = far {
                    self.push(first + cycle, at);
                }
                self.push(number + cycle, now.as_micros());
                self.restarts.begin(now, number + cycle);
            }
        }
    }

    /// Adds the newest number. It is the reference: a very late packet must not pull it back.
    fn push(&mut self, number: i64, arrival_us: i64) {
        self.unwrapper.set_last(number);
        self.arrivals.push((number, arrival_us));
        self.fresh = Some(self.fresh.map_or(number, |fresh| fresh.min(number)));
    }

    /// Adds a number that comes late.
    fn insert(&mut self, number: i64, arrival_us: i64) {
        let place = self.arrivals.binary_search_by_key(&number, |arrival| arrival.0);
        let Err(at) = place else { return };
        self.arrivals.insert(at, (number, arrival_us));
        self.is_reordered = true;
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

    // [RFC3550 §A.1]
    #[test]
    fn a_sender_that_begins_anew_is_recorded_from_its_first_packet_on() {
        for new in [0, 200, 20_000, 39_000, 44_500, 65_500_u16] {
            let mut recorder = ArrivalRecorder::default();
            for step in 0..5_000_u16 {
                recorder.on_packet(at(i64::from(step)), 40_000 + step);
                recorder.take_batch(at(i64::from(step)));
            }
            let mut told = alloc::vec::Vec::new();
            for step in 0..10_000_u16 {
                let now = at(5_000 + i64::from(step));
                recorder.on_packet(now, new.wrapping_add(step));
                for &(number, arrival_us) in recorder.take_batch(now) {
                    // What was told before the restart is not told again as something new.
                    assert!(now.as_micros() - arrival_us < 1_100_000, "{new} at {step}");
                    told.push(number as u16);
                }
            }
            let is_told = |step: &u16| told.contains(&new.wrapping_add(*step));
            let missed = (0..1_000_u16).filter(|step| !is_told(step)).count();
            assert!(missed <= 300, "{new}: {missed}");
            assert!((1_000..10_000_u16).step_by(97).all(|step| is_told(&step)), "{new}");
            assert!(recorder.arrivals.len() <= 600);
        }
    }

    #[test]
    fn a_number_far_from_the_others_is_not_told() {
        let mut recorder = ArrivalRecorder::default();
        for number in 1_000..1_100 {
            recorder.on_packet(at(1), number);
        }
        recorder.take_batch(at(2));
        recorder.on_packet(at(3), 40_000);
        assert!(!recorder.has_fresh());
        recorder.on_packet(at(4), 1_100);
        assert_eq!(recorder.take_batch(at(5)), [(1_100, 4_000)]);
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
