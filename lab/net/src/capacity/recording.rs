//! Rates of a recording, which has an end: there it repeats, or its last rate stays.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::ScheduleError;

/// Bits times nanoseconds per second: at 1 bit/s a nanosecond carries one of these. They keep the
/// fraction of a byte that a short step carries.
type BitNanos = u128;

const NANOS_PER_BIT: BitNanos = 1_000_000_000;

/// A transmission that is not over after this time, some 70 years, is never over.
const NEVER: TimeDelta = TimeDelta::from_nanos(i64::MAX / 4);

/// What follows the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceEnd {
    /// The trace starts again.
    #[default]
    Repeat,
    /// The last value stays.
    Hold,
}

/// That the steps of a schedule are a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recording {
    pub(super) length: TimeDelta,
    pub(super) end: TraceEnd,
    /// What one round carries.
    carried: BitNanos,
}

impl Recording {
    /// The steps start at zero, rise, and are not all zero.
    pub(super) fn new(
        steps: &[(Timestamp, Bitrate)],
        length: TimeDelta,
        end: TraceEnd,
    ) -> Result<Self, ScheduleError> {
        let stop = Timestamp::ZERO + length;
        if steps.last().is_none_or(|step| step.0 >= stop) {
            return Err(ScheduleError::new("the last step must begin before the recording ends"));
        }
        let ends = steps.iter().skip(1).map(|step| step.0).chain([stop]);
        let of_step =
            |((from, rate), to): (&(Timestamp, Bitrate), Timestamp)| carried(*rate, to - *from);
        Ok(Self { length, end, carried: steps.iter().zip(ends).map(of_step).sum() })
    }

    /// When the round that contains a time began, since the start.
    pub(super) fn round(&self, at: Timestamp) -> TimeDelta {
        let elapsed = at.as_nanos().max(0);
        match self.end {
            TraceEnd::Repeat => TimeDelta::from_nanos(elapsed - elapsed % self.length.as_nanos()),
            TraceEnd::Hold => TimeDelta::ZERO,
        }
    }

    /// Mean rate over one round, at least 1 bit/s.
    pub(super) fn mean_rate(&self) -> Bitrate {
        let mean = self.carried / self.length.as_nanos().unsigned_abs() as BitNanos;
        Bitrate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX).max(1))
    }

    /// When the transmission of data that starts at `start` ends. `None` if it never ends.
    pub(super) fn finish(
        &self,
        steps: &[(Timestamp, Bitrate)],
        start: Timestamp,
        size: DataSize,
    ) -> Option<Timestamp> {
        let mut left = BitNanos::from(size.as_bytes()) * 8 * NANOS_PER_BIT;
        let mut round = self.round(start);
        let mut now = start;
        let mut index = steps.partition_point(|step| step.0 <= now - round).saturating_sub(1);
        loop {
            let rate = steps[index].1;
            let next = match steps.get(index + 1) {
                Some(step) => step.0 + round,
                None if self.end == TraceEnd::Hold => {
                    return if rate > Bitrate::ZERO { Some(now + time(left, rate)) } else { None };
                }
                None => Timestamp::ZERO + round + self.length,
            };
            let until_next = carried(rate, next - now);
            if left <= until_next && rate > Bitrate::ZERO {
                return Some(now + time(left, rate));
            }
            left -= until_next;
            now = next;
            index += 1;
            if index == steps.len() {
                // Whole rounds are skipped at once: a slow link may need millions. Something is
                // left for the last round, so that the time is that of the last bit.
                let rounds = left.saturating_sub(1) / self.carried;
                left -= rounds * self.carried;
                round += self.length * i64::try_from(rounds + 1).unwrap_or(i64::MAX);
                if round > NEVER {
                    return None;
                }
                now = Timestamp::ZERO + round;
                index = 0;
            }
        }
    }
}

fn carried(rate: Bitrate, time: TimeDelta) -> BitNanos {
    BitNanos::from(rate.as_bps()) * BitNanos::from(time.as_nanos().max(0).unsigned_abs())
}

/// The time that a rate above zero takes, rounded up.
fn time(left: BitNanos, rate: Bitrate) -> TimeDelta {
    let nanos = left.div_ceil(BitNanos::from(rate.as_bps()));
    TimeDelta::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::Schedule;
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// 1000 kbit/s for 10 ms, an outage of 20 ms, 100 kbit/s for 10 ms.
    fn recorded(end: TraceEnd) -> Schedule {
        let step = |at, kbps| (ms(at), Bitrate::from_kbps(kbps));
        let steps = vec![step(0, 1000), step(10, 0), step(30, 100)];
        Schedule::recorded(steps, TimeDelta::from_millis(40), end).unwrap()
    }

    #[test]
    fn a_recording_repeats_or_holds_its_last_rate() {
        let kbps = |end, at| recorded(end).rate(ms(at)).as_bps() / 1000;
        let times = [0, 15, 39, 40, 55, 79, 4_000_000];
        assert_eq!(times.map(|at| kbps(TraceEnd::Repeat, at)), [1000, 0, 100, 1000, 0, 100, 1000]);
        assert_eq!(times.map(|at| kbps(TraceEnd::Hold, at)), [1000, 0, 100, 100, 100, 100, 100]);
    }

    #[test]
    fn a_packet_goes_on_in_the_next_round() {
        // One round carries 1250 + 125 bytes.
        let finish = |end, start, bytes| {
            recorded(end).finish(ms(start), DataSize::from_bytes(bytes)).unwrap().as_millis()
        };
        assert_eq!(finish(TraceEnd::Repeat, 0, 1250), 10);
        assert_eq!(finish(TraceEnd::Repeat, 5, 625 + 125), 40);
        assert_eq!(finish(TraceEnd::Repeat, 5, 625 + 125 + 125), 41);
        assert_eq!(finish(TraceEnd::Repeat, 0, 1375 * 1000), 40_000);
        assert_eq!(finish(TraceEnd::Repeat, 0, 1375 * 1000 + 125), 40_001);
        assert_eq!(finish(TraceEnd::Repeat, 85, 625), 90);
        assert_eq!(finish(TraceEnd::Hold, 5, 625 + 125 + 125), 50);
    }

    #[test]
    fn steps_that_carry_less_than_a_byte_add_up() {
        let steps = (0..1000).map(|at| (ms(at), Bitrate::from_bps(1000 + at as u64 % 2)));
        let length = TimeDelta::from_secs(1);
        let schedule = Schedule::recorded(steps.collect(), length, TraceEnd::Repeat).unwrap();
        // 1500 bytes at 1000.5 bit/s.
        let finish = schedule.finish(ms(0), DataSize::from_bytes(1500)).unwrap();
        assert_eq!(finish.as_millis(), 11_994);
    }

    #[test]
    fn a_recording_of_one_bit_per_second_for_a_nanosecond_ends_at_once() {
        let steps = vec![(ms(0), Bitrate::from_bps(1))];
        let length = TimeDelta::from_nanos(1);
        let schedule = Schedule::recorded(steps, length, TraceEnd::Repeat).unwrap();
        let finish = schedule.finish(ms(0), DataSize::from_bytes(1500)).unwrap();
        assert_eq!(finish, Timestamp::from_secs(12_000));
    }

    #[test]
    fn a_recording_that_carries_next_to_nothing_carries_no_packet() {
        let steps = vec![(ms(0), Bitrate::from_bps(1)), (Timestamp::from_nanos(1), Bitrate::ZERO)];
        let length = TimeDelta::from_secs(3_600_000);
        let schedule = Schedule::recorded(steps, length, TraceEnd::Repeat).unwrap();
        assert_eq!(schedule.finish(ms(0), DataSize::from_bytes(1)), None);
    }

    #[test]
    fn a_recording_that_ends_in_an_outage_and_holds_it_never_ends() {
        let steps = vec![(ms(0), Bitrate::from_kbps(8)), (ms(1), Bitrate::ZERO)];
        let hold = Schedule::recorded(steps, TimeDelta::from_millis(2), TraceEnd::Hold).unwrap();
        assert_eq!(hold.finish(ms(0), DataSize::from_bytes(1)), Some(ms(1)));
        assert_eq!(hold.finish(ms(0), DataSize::from_bytes(2)), None);
    }

    #[test]
    fn the_nominal_rate_of_a_recording_is_its_mean() {
        let mean = Some(Bitrate::from_bps(275_000));
        for end in [TraceEnd::Repeat, TraceEnd::Hold] {
            let capacity = crate::Capacity::Schedule(recorded(end));
            assert_eq!([0, 15, 1_000].map(|at| capacity.nominal_rate(ms(at))), [mean; 3]);
        }
    }

    #[test]
    fn the_last_step_begins_within_the_recording() {
        let steps = || vec![(ms(0), Bitrate::from_kbps(1)), (ms(10), Bitrate::from_kbps(2))];
        let recorded =
            |length| Schedule::recorded(steps(), TimeDelta::from_millis(length), TraceEnd::Repeat);
        assert!(recorded(10).is_err());
        assert!(recorded(11).is_ok());
    }
}
