//! Capacity of a link over time: a schedule of rates, or a trace of delivery opportunities.

mod opportunities;
mod recording;

use std::fmt;
use std::sync::Arc;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

pub(crate) use opportunities::TraceCursor;
pub use opportunities::{CapacityTrace, Opportunity, TraceLines};
use recording::Recording;
pub use recording::TraceEnd;

/// Capacity of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Unlimited: packets pass at once, and no queue forms.
    Unlimited,
    /// Rates that change at given times.
    Schedule(Schedule),
    /// Recorded delivery opportunities.
    Trace(CapacityTrace),
}

impl Capacity {
    /// The rate at a time; zero in an outage. For a trace it is the mean rate over the whole second
    /// that contains the time. `None` if unlimited.
    pub fn rate(&self, at: Timestamp) -> Option<Bitrate> {
        match self {
            Self::Unlimited => None,
            Self::Schedule(schedule) => Some(schedule.rate(at)),
            Self::Trace(trace) => Some(trace.rate(at)),
        }
    }

    /// The rate that converts a queue limit in time into bytes. An outage does not change it;
    /// otherwise the queue would have no room just when packets must wait. For a schedule it is the
    /// rate at that time. In an outage it is the last rate above zero, or the first one if none
    /// came before. For a trace and for a recorded schedule it is the mean over the whole length.
    /// `None` if unlimited.
    pub fn nominal_rate(&self, at: Timestamp) -> Option<Bitrate> {
        match self {
            Self::Unlimited => None,
            Self::Schedule(schedule) => schedule.nominal_rate(at),
            Self::Trace(trace) => Some(trace.mean_rate()),
        }
    }

    /// What can leave from `from` on and before `to`, in bits: the integral of the rate. Of a
    /// trace, each opportunity counts whole. `None` if unlimited.
    pub fn bits(&self, from: Timestamp, to: Timestamp) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Schedule(schedule) => Some(schedule.bits(from, to)),
            Self::Trace(trace) => Some(trace.bits(from, to)),
        }
    }

    /// The length of the recording that this capacity is. `None` if it is none.
    pub fn recorded_length(&self) -> Option<TimeDelta> {
        match self {
            Self::Unlimited => None,
            Self::Schedule(schedule) => schedule.recording().map(|recording| recording.0),
            Self::Trace(trace) => Some(trace.length()),
        }
    }

    /// How long data whose last bit leaves at `finish` takes at the rate of that moment. Unlike the
    /// actual transmission time, this excludes outages.
    pub(crate) fn transmission_time(&self, finish: Timestamp, size: DataSize) -> TimeDelta {
        match self {
            Self::Unlimited => TimeDelta::ZERO,
            // At the boundary of a step, the last bit still left at the earlier step's rate.
            Self::Schedule(schedule) => size / schedule.rate(finish - TimeDelta::from_nanos(1)),
            Self::Trace(trace) => size / trace.rate(finish),
        }
    }

    /// Sets the rate from a time on. All planned changes are discarded.
    pub(crate) fn set(&mut self, at: Timestamp, rate: Bitrate) {
        let steps = match self.nominal_rate(at) {
            // Keep the nominal rate before the change. It determines the queue limit if the new
            // rate is zero.
            Some(before) => {
                vec![(Timestamp::ZERO, before), (at.max(Timestamp::from_nanos(1)), rate)]
            }
            None => vec![(Timestamp::ZERO, rate)],
        };
        *self = Self::Schedule(Schedule { steps: Arc::new(steps), recording: None });
    }
}

/// Rates in steps. The first step applies from the start. The last one applies forever, unless the
/// steps are a recording that repeats. At a rate of zero no data leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Copies of a recording share them.
    steps: Arc<Vec<(Timestamp, Bitrate)>>,
    recording: Option<Recording>,
}

/// The reason why a schedule or a trace was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError(String);

impl ScheduleError {
    pub(crate) fn new(what: &str) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for ScheduleError {}

impl Schedule {
    /// One constant rate.
    ///
    /// # Errors
    /// If the rate is zero.
    pub fn constant(rate: Bitrate) -> Result<Self, ScheduleError> {
        Self::new(vec![(Timestamp::ZERO, rate)])
    }

    /// Builds a schedule from steps.
    ///
    /// # Errors
    /// If the first step is not at zero, the times do not increase, or no rate is above zero.
    pub fn new(steps: Vec<(Timestamp, Bitrate)>) -> Result<Self, ScheduleError> {
        if steps.first().is_none_or(|step| step.0 != Timestamp::ZERO) {
            return Err(ScheduleError("a capacity schedule must start at 0s".into()));
        }
        if steps.iter().all(|step| step.1 == Bitrate::ZERO) {
            return Err(ScheduleError(
                "a capacity of 0 for ever carries nothing; for an outage write steps, such as \
                 [[\"0s\", \"2Mbps\"], [\"20s\", \"0bps\"], [\"24s\", \"2Mbps\"]]"
                    .into(),
            ));
        }
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            let at = pair[1].0.as_secs_f64();
            return Err(ScheduleError(format!("the capacity step at {at} s must come later")));
        }
        Ok(Self { steps: Arc::new(steps), recording: None })
    }

    /// Builds a schedule from the rates of a recording of this length.
    ///
    /// # Errors
    /// Those of [`Schedule::new`], and if the last step does not begin within the recording.
    pub fn recorded(
        steps: Vec<(Timestamp, Bitrate)>,
        length: TimeDelta,
        end: TraceEnd,
    ) -> Result<Self, ScheduleError> {
        let schedule = Self::new(steps)?;
        let recording = Recording::new(&schedule.steps, length, end)?;
        Ok(Self { recording: Some(recording), ..schedule })
    }

    /// The length of the recording and what follows its end; `None` if the steps are no recording.
    pub fn recording(&self) -> Option<(TimeDelta, TraceEnd)> {
        self.recording.map(|recording| (recording.length, recording.end))
    }

    /// The steps, by increasing time. Of a recording that repeats, those of its first round.
    pub fn steps(&self) -> &[(Timestamp, Bitrate)] {
        &self.steps
    }

    fn index(&self, at: Timestamp) -> usize {
        self.steps.partition_point(|step| step.0 <= at).saturating_sub(1)
    }

    /// The rate at a time.
    pub fn rate(&self, at: Timestamp) -> Bitrate {
        let round = self.recording.map_or(TimeDelta::ZERO, |recording| recording.round(at));
        self.steps[self.index(at - round)].1
    }

    /// The rate at a time. If it is zero, the last rate above zero before it, or else the first one
    /// after it. For a recording it is the mean over its length. `None` if all rates are zero.
    fn nominal_rate(&self, at: Timestamp) -> Option<Bitrate> {
        if let Some(recording) = self.recording {
            return Some(recording.mean_rate());
        }
        let (past, later) = self.steps.split_at(self.index(at) + 1);
        let nearest_first = past.iter().rev().chain(later);
        nearest_first.map(|step| step.1).find(|&rate| rate > Bitrate::ZERO)
    }

    /// What the rates between two times carry, in bits; nothing if `to` is not after `from`.
    pub fn bits(&self, from: Timestamp, to: Timestamp) -> f64 {
        let (mut now, mut bits) = (from, 0.0);
        while now < to {
            let round = self.recording.map_or(TimeDelta::ZERO, |recording| recording.round(now));
            let index = self.index(now - round);
            let next = match (self.steps.get(index + 1), self.recording) {
                (Some(step), _) => step.0 + round,
                (None, Some(Recording { length, end: TraceEnd::Repeat, .. })) => {
                    Timestamp::ZERO + round + length
                }
                (None, _) => to,
            };
            let until = next.min(to);
            bits += self.steps[index].1.as_bps_f64() * (until - now).as_secs_f64();
            now = until;
        }
        bits
    }

    /// The time since which the tokens of a bucket flowed in that it holds at `now`, if they have
    /// flowed in since `since` and what is above its size is lost.
    pub(crate) fn filling_since(
        &self,
        since: Timestamp,
        now: Timestamp,
        size: DataSize,
    ) -> Timestamp {
        let over = self.bits(since, now) - size.as_bits() as f64;
        match over > 0.0 {
            true => self.finish(since, DataSize::from_bytes((over / 8.0) as u64)).unwrap_or(since),
            false => since,
        }
    }

    /// When the transmission of data that starts at `start` ends. `None` if it never ends, because
    /// the rate stays zero from some time on.
    pub fn finish(&self, start: Timestamp, size: DataSize) -> Option<Timestamp> {
        if let Some(recording) = self.recording {
            return recording.finish(&self.steps, start, size);
        }
        let mut index = self.index(start);
        let (mut now, mut left) = (start, size);
        loop {
            let rate = self.steps[index].1;
            let finish = now + left / rate;
            let Some(&(next, _)) = self.steps.get(index + 1) else {
                return (rate > Bitrate::ZERO).then_some(finish);
            };
            if finish <= next {
                return Some(finish);
            }
            left = left.saturating_sub(rate * (next - now));
            now = next;
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_packet_that_spans_a_step_is_sent_at_both_rates() {
        let steps = vec![(ms(0), Bitrate::from_kbps(1000)), (ms(10), Bitrate::from_kbps(100))];
        let schedule = Schedule::new(steps).unwrap();
        // 1250 B take 10 ms at 1000 kbit/s. Half of them pass before the step; the other half take
        // 50 ms.
        assert_eq!(schedule.finish(ms(5), DataSize::from_bytes(1250)), Some(ms(60)));
        assert_eq!(schedule.finish(ms(0), DataSize::from_bytes(1250)), Some(ms(10)));
        assert_eq!(schedule.rate(ms(10)), Bitrate::from_kbps(100));
    }

    #[test]
    fn a_packet_waits_out_an_outage_and_for_ever_one_that_does_not_end() {
        let step = |at, kbps| (ms(at), Bitrate::from_kbps(kbps));
        let mut steps = vec![step(0, 1000), step(10, 0), step(4_010, 1000)];
        let packet = DataSize::from_bytes(1250);
        let schedule = Schedule::new(steps.clone()).unwrap();
        assert_eq!(schedule.finish(ms(5), packet), Some(ms(4_015)));
        assert_eq!(schedule.finish(ms(2_000), packet), Some(ms(4_020)));
        steps.pop();
        let schedule = Schedule::new(steps).unwrap();
        assert_eq!(schedule.finish(ms(0), packet), Some(ms(10)));
        assert_eq!(schedule.finish(ms(5), packet), None);
        assert_eq!(schedule.finish(ms(2_000), packet), None);
    }

    #[test]
    fn the_nominal_rate_is_the_moments_and_in_an_outage_the_last_above_zero() {
        let step = |at, kbps| (ms(at), Bitrate::from_kbps(kbps));
        let steps = vec![step(0, 0), step(10, 300), step(20, 100), step(30, 0), step(40, 200)];
        let capacity = Capacity::Schedule(Schedule::new(steps).unwrap());
        let kbps = |at| capacity.nominal_rate(ms(at)).unwrap().as_kbps_f64();
        assert_eq!([5, 15, 25, 35, 45].map(kbps), [300.0, 300.0, 100.0, 100.0, 200.0]);
        assert_eq!(capacity.rate(ms(35)), Some(Bitrate::ZERO));
    }

    #[test]
    fn the_nominal_rate_of_a_trace_is_the_mean_over_its_period() {
        // 100 opportunities in the first second. In the next three seconds there is only one, at
        // the end.
        let lines: Vec<String> = (1..=100).chain([400]).map(|n| (n * 10).to_string()).collect();
        let capacity = Capacity::Trace(CapacityTrace::parse(&lines.join("\n")).unwrap());
        let mean = Some(Bitrate::from_bps(101 * 12_000 / 4));
        assert_eq!([0, 500, 2_500, 7_000].map(|at| capacity.nominal_rate(ms(at))), [mean; 4]);
        assert_eq!(capacity.rate(ms(2_500)), Some(Bitrate::ZERO));
    }

    #[test]
    fn a_change_by_hand_ends_the_plan_and_an_outage_keeps_the_nominal_rate() {
        let step = |at, kbps| (ms(at), Bitrate::from_kbps(kbps));
        let kbps = |capacity: &Capacity, at| {
            [capacity.rate(ms(at)), capacity.nominal_rate(ms(at))]
                .map(|rate| rate.map(|rate| rate.as_bps() / 1_000))
        };
        let schedule = Schedule::new(vec![step(0, 500), step(10, 300), step(20, 100)]).unwrap();
        let mut capacity = Capacity::Schedule(schedule);
        let mut at_once = capacity.clone();
        at_once.set(ms(0), Bitrate::ZERO);
        assert_eq!(kbps(&at_once, 30), [Some(0), Some(500)]);
        capacity.set(ms(15), Bitrate::ZERO);
        assert_eq!(kbps(&capacity, 30), [Some(0), Some(300)]);
        capacity.set(ms(40), Bitrate::from_kbps(200));
        assert_eq!(kbps(&capacity, 40), [Some(200); 2]);
        let mut capacity = Capacity::Trace(CapacityTrace::parse("1\n2\n3\n").unwrap());
        capacity.set(ms(5), Bitrate::ZERO);
        assert_eq!(kbps(&capacity, 5), [Some(0), Some(12_000)]);
        let mut capacity = Capacity::Unlimited;
        capacity.set(ms(5), Bitrate::ZERO);
        assert_eq!(kbps(&capacity, 5), [Some(0), None]);
    }

    #[test]
    fn a_schedule_must_start_at_zero_rise_and_carry_something() {
        let kbps = Bitrate::from_kbps(1);
        assert!(Schedule::new(vec![]).is_err());
        assert!(Schedule::new(vec![(ms(1), kbps)]).is_err());
        assert!(Schedule::new(vec![(ms(0), kbps), (ms(0), kbps)]).is_err());
        assert!(Schedule::constant(Bitrate::ZERO).is_err());
        assert!(Schedule::new(vec![(ms(0), Bitrate::ZERO), (ms(1), Bitrate::ZERO)]).is_err());
    }

    /// 1000 kbit/s for 10 ms, an outage of 20 ms, then 100 kbit/s.
    fn three_steps() -> Vec<(Timestamp, Bitrate)> {
        [(0, 1000), (10, 0), (30, 100)].map(|(at, kbps)| (ms(at), Bitrate::from_kbps(kbps))).into()
    }

    fn recorded(end: TraceEnd) -> Capacity {
        let length = TimeDelta::from_millis(40);
        Capacity::Schedule(Schedule::recorded(three_steps(), length, end).unwrap())
    }

    /// The bits from 5 to 15, from 35 to 55 and from 0 to 80 ms.
    fn three_spans(of: &Capacity) -> [f64; 3] {
        [(5, 15), (35, 55), (0, 80)].map(|(from, to)| of.bits(ms(from), ms(to)).unwrap().round())
    }

    #[test]
    fn bits_are_counted_over_steps_rounds_and_opportunities() {
        assert_eq!(three_spans(&recorded(TraceEnd::Repeat)), [5e3, 5e2 + 1e4, 2.0 * 1.1e4]);
        assert_eq!(three_spans(&recorded(TraceEnd::Hold)), [5e3, 2e3, 1e4 + 5e3]);
        let plain = Capacity::Schedule(Schedule::new(three_steps()).unwrap());
        assert_eq!(three_spans(&plain), [5e3, 2e3, 1e4 + 5e3]);
        // The opportunities at 10, 12, 14, 14 ms; 40 to 54 ms; all of eight rounds but the last.
        let trace = Capacity::Trace(CapacityTrace::parse("2\n4\n4\n10\n").unwrap());
        assert_eq!(three_spans(&trace), [4.0, 8.0, 31.0].map(|count| count * 12e3));
        assert_eq!(Capacity::Unlimited.bits(ms(0), ms(1)), None);
    }

    #[test]
    fn only_a_recording_has_a_length() {
        let ms = TimeDelta::from_millis;
        let trace = Capacity::Trace(CapacityTrace::parse("2\n4\n4\n10\n").unwrap());
        assert_eq!(recorded(TraceEnd::Hold).recorded_length(), Some(ms(40)));
        assert_eq!(trace.recorded_length(), Some(ms(10)));
        let plain = Capacity::Schedule(Schedule::new(three_steps()).unwrap());
        assert_eq!(plain.recorded_length(), None);
    }
}
