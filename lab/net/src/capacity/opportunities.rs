//! A trace of opportunities to send, as mahimahi records and replays them.

use std::sync::Arc;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::{ScheduleError, TraceEnd};

/// What an opportunity carries of packets of full size: 1500 bytes of IP. All rates of a trace are
/// of such packets.
const FULL_PACKET: DataSize = DataSize::from_bytes(1500);
/// The header with which a TUN device hands a packet to mahimahi. It counts as part of the packet.
const TUN_HEADER: DataSize = DataSize::from_bytes(4);
/// How much of the end of a trace repeats if the end is held.
const HELD_MS: i64 = 1_000;

/// What an opportunity carries, and which packets may use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opportunity {
    /// As mahimahi's `mm-link`: 1504 bytes, and each packet counts 4 bytes more, which are the
    /// header of a TUN device. A packet that arrives in the millisecond of an opportunity takes the
    /// next one.
    #[default]
    Mahimahi,
    /// So many bytes of IP. A packet that arrives at the very time of an opportunity may use it.
    Bytes(DataSize),
}

impl Opportunity {
    fn size(self) -> DataSize {
        match self {
            Self::Mahimahi => FULL_PACKET + TUN_HEADER,
            Self::Bytes(size) => size,
        }
    }

    /// What it carries of packets of full size.
    fn payload(self) -> DataSize {
        match self {
            Self::Mahimahi => FULL_PACKET,
            Self::Bytes(size) => size,
        }
    }

    fn of_packet(self, size: DataSize) -> DataSize {
        match self {
            Self::Mahimahi => size + TUN_HEADER,
            Self::Bytes(_) => size,
        }
    }

    /// The earliest time of an opportunity for a packet that arrived at `since` and is at the head
    /// of the queue from `start` on.
    fn earliest(self, since: Timestamp, start: Timestamp) -> Timestamp {
        match self {
            // Its clock has whole milliseconds, and it spends the opportunities that are due before
            // it takes the packet.
            Self::Mahimahi => Timestamp::from_millis(since.as_nanos().max(0) / 1_000_000 + 1),
            Self::Bytes(_) => start,
        }
    }
}

/// The lines of a mahimahi trace as they are read, so that nobody needs to hold a large text.
#[derive(Debug, Default)]
pub struct TraceLines {
    opportunities_ms: Vec<u32>,
    count: usize,
}

impl TraceLines {
    /// Adds a line. Empty lines and lines that start with `#` are skipped.
    ///
    /// # Errors
    /// If it is not a time in whole milliseconds, or is earlier than the line before.
    pub fn add(&mut self, line: &str) -> Result<(), ScheduleError> {
        self.count += 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let Ok(ms) = line.parse::<u32>() else {
            return Err(self.refused("expected a time in whole milliseconds", line));
        };
        if self.opportunities_ms.last().is_some_and(|&last| last > ms) {
            return Err(self.refused("expected a time no earlier than the line before", line));
        }
        self.opportunities_ms.push(ms);
        Ok(())
    }

    fn refused(&self, what: &str, line: &str) -> ScheduleError {
        let shown: String = line.chars().take(30).collect();
        ScheduleError(format!("trace line {}: {what}, not '{shown}'", self.count))
    }

    /// The trace, at the end of its lines.
    ///
    /// # Errors
    /// If no line is a time above zero.
    pub fn finish(self) -> Result<CapacityTrace, ScheduleError> {
        let length_ms = self.opportunities_ms.last().copied().unwrap_or(0).into();
        if length_ms == 0 {
            return Err(ScheduleError::new("a trace needs a line with a time above 0"));
        }
        let opportunities_ms = Arc::new(self.opportunities_ms);
        let opportunity = Opportunity::default();
        Ok(CapacityTrace { opportunities_ms, opportunity, length_ms, repeats_from_ms: 0 })
    }
}

/// A mahimahi trace. Each line is the time in milliseconds of an opportunity to deliver a packet.
/// The trace repeats after the time of its last line.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityTrace {
    /// Times in milliseconds. They never decrease, and the last is above zero. Copies of the trace
    /// share them: there may be tens of millions.
    opportunities_ms: Arc<Vec<u32>>,
    opportunity: Opportunity,
    /// How long the trace is, at least until its last opportunity.
    length_ms: i64,
    /// What repeats starts after this time: 0 for the whole trace.
    repeats_from_ms: i64,
}

impl CapacityTrace {
    /// Parses a trace. Empty lines and lines that start with `#` are skipped.
    ///
    /// # Errors
    /// Those of [`TraceLines`].
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        let mut lines = TraceLines::default();
        for line in text.lines() {
            lines.add(line)?;
        }
        lines.finish()
    }

    /// The same trace with another reading of its lines.
    #[must_use]
    pub fn with_opportunity(self, opportunity: Opportunity) -> Self {
        Self { opportunity, ..self }
    }

    /// The part after `from` and until `to`, both since the start of the trace.
    ///
    /// # Errors
    /// If the part is not in the trace, is no time in whole milliseconds, or has no opportunity.
    pub fn part(
        mut self,
        from: Option<TimeDelta>,
        to: Option<TimeDelta>,
    ) -> Result<Self, ScheduleError> {
        let [from, to] = [from.unwrap_or(TimeDelta::ZERO), to.unwrap_or(self.length())];
        if from < TimeDelta::ZERO || to > self.length() || from >= to {
            let seconds = self.length().as_secs_f64();
            let message = format!("from and to must lie in the trace, which has {seconds} s");
            return Err(ScheduleError(message));
        }
        let [from_ms, to_ms] = [from, to].map(TimeDelta::as_millis);
        if [from_ms, to_ms].map(TimeDelta::from_millis) != [from, to] {
            return Err(ScheduleError::new("from and to must be whole milliseconds"));
        }
        // What is at the beginning belongs to the part before, if there is one.
        let opportunities_ms = Arc::make_mut(&mut self.opportunities_ms);
        opportunities_ms.retain(|&ms| {
            let is_after = i64::from(ms) > from_ms || (ms == 0 && from_ms == 0);
            is_after && i64::from(ms) <= to_ms
        });
        if opportunities_ms.last().is_none_or(|&last| last == 0) {
            return Err(ScheduleError::new("this part of the trace has no opportunity"));
        }
        for ms in opportunities_ms {
            *ms -= u32::try_from(from_ms).unwrap_or(u32::MAX);
        }
        self.length_ms = to_ms - from_ms;
        Ok(self)
    }

    /// The same trace with another end. Held is the last second, which repeats: its opportunities
    /// are the rate at the end.
    #[must_use]
    pub fn with_end(self, end: TraceEnd) -> Self {
        let repeats_from_ms = match end {
            TraceEnd::Repeat => 0,
            TraceEnd::Hold => (self.length_ms - HELD_MS).max(0),
        };
        Self { repeats_from_ms, ..self }
    }

    /// The times of its opportunities in milliseconds.
    pub fn opportunities_ms(&self) -> &[u32] {
        &self.opportunities_ms
    }

    pub(super) fn length(&self) -> TimeDelta {
        TimeDelta::from_millis(self.length_ms)
    }

    /// The number of opportunities in the first round, and in each of the others.
    fn lines(&self) -> (u64, u64) {
        let of_first = self.opportunities_ms.len();
        let from = self.repeats_from_ms;
        let once = match from {
            0 => 0,
            _ => self.opportunities_ms.partition_point(|&ms| i64::from(ms) <= from),
        };
        (of_first as u64, (of_first - once) as u64)
    }

    /// The time of an opportunity; `index` counts over all repetitions. `None` if the trace has
    /// ended in an outage that lasts.
    fn time(&self, index: u64) -> Option<Timestamp> {
        let (of_first, of_others) = self.lines();
        let after = match index.checked_sub(of_first) {
            None => 0,
            Some(_) if of_others == 0 => return None,
            Some(over) => 1 + over / of_others,
        };
        let line = index - after * of_others;
        let round_ms = self.length_ms - self.repeats_from_ms;
        let ms = i64::from(self.opportunities_ms[line as usize]);
        let over = i64::try_from(after).ok()?.checked_mul(round_ms)?;
        Some(Timestamp::from_millis(over.checked_add(ms)?))
    }

    /// Index of the first opportunity at or after a time.
    fn first_at(&self, at: Timestamp) -> u64 {
        let (of_first, of_others) = self.lines();
        let ms = TimeDelta::from_nanos(at.as_nanos().max(0) + 999_999).as_millis();
        if ms > self.length_ms && of_others == 0 {
            return of_first;
        }
        // The end of one round is also the start of the next. Count such a time as the end.
        let round_ms = self.length_ms - self.repeats_from_ms;
        let round = (ms - 1 - self.repeats_from_ms).max(0) / round_ms;
        let within = ms - round * round_ms;
        let line = self.opportunities_ms.partition_point(|&time| i64::from(time) < within);
        round as u64 * of_others + line as u64
    }

    /// Mean rate over the whole second that contains a time.
    pub(super) fn rate(&self, at: Timestamp) -> Bitrate {
        let second = Timestamp::from_secs(at.as_nanos().max(0) / 1_000_000_000);
        let end = second + TimeDelta::from_secs(1);
        let opportunities = self.first_at(end) - self.first_at(second);
        Bitrate::from_bps(opportunities * self.opportunity.payload().as_bits())
    }

    /// What the opportunities from `from` on and before `to` carry, in bits.
    pub(super) fn bits(&self, from: Timestamp, to: Timestamp) -> f64 {
        let opportunities = self.first_at(to).saturating_sub(self.first_at(from));
        (opportunities * self.opportunity.payload().as_bits()) as f64
    }

    /// Mean rate over the whole length.
    pub(super) fn mean_rate(&self) -> Bitrate {
        let of_each = self.opportunity.payload().as_bytes();
        DataSize::from_bytes(self.opportunities_ms.len() as u64 * of_each) / self.length()
    }
}

/// Position in a trace: the current opportunity and what is left of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceCursor {
    index: u64,
    /// `None` if all of it is.
    left: Option<DataSize>,
    /// The packet whose transmission began last.
    packet: Pieces,
}

/// How a packet is spread over opportunities.
#[derive(Clone, Copy, Debug, Default)]
struct Pieces {
    /// Index of its first opportunity.
    first: u64,
    /// What of it goes with the first one. All others but the last are filled.
    with_first: DataSize,
    /// All of it, with the header that an opportunity counts.
    size: DataSize,
}

impl TraceCursor {
    /// When the transmission ends of a packet that arrived at `since` and is at the head of the
    /// queue from `start` on. `None` if the trace ends before. What is left of an opportunity when
    /// no packet waits is lost.
    pub(crate) fn finish(
        &mut self,
        trace: &CapacityTrace,
        since: Timestamp,
        start: Timestamp,
        size: DataSize,
    ) -> Option<Timestamp> {
        let earliest = trace.opportunity.earliest(since, start);
        if trace.time(self.index)? < earliest {
            self.index = trace.first_at(earliest);
            self.left = None;
        }
        let whole = trace.opportunity.size();
        let mut size = trace.opportunity.of_packet(size);
        let mut left = self.left.unwrap_or(whole);
        self.packet = Pieces { first: self.index, with_first: size.min(left), size };
        while size > left {
            size = size.saturating_sub(left);
            self.index += 1;
            left = whole;
        }
        let finish = trace.time(self.index)?;
        left = left.saturating_sub(size);
        self.left = Some(left);
        if left == DataSize::ZERO {
            self.index += 1;
            self.left = None;
        }
        Some(finish)
    }

    /// The share of the last packet that goes with opportunities before `now`.
    pub(crate) fn share_before(&self, trace: &CapacityTrace, now: Timestamp) -> f64 {
        let Pieces { first, with_first, size } = self.packet;
        let full = match trace.first_at(now).checked_sub(first) {
            None | Some(0) => return 0.0,
            Some(count) => trace.opportunity.size().as_bytes() as f64 * (count - 1) as f64,
        };
        (with_first.as_bytes() as f64 + full) / size.as_bytes() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn parse(text: &str) -> CapacityTrace {
        CapacityTrace::parse(text).unwrap()
    }

    #[test]
    fn a_trace_with_text_in_it_is_refused_with_its_line() {
        let error = CapacityTrace::parse("1\n2\nthree\n").unwrap_err().to_string();
        assert_eq!(error, "trace line 3: expected a time in whole milliseconds, not 'three'");
        assert!(CapacityTrace::parse("").is_err());
        assert!(CapacityTrace::parse("0\n0\n").is_err());
        assert!(CapacityTrace::parse("5\n4\n").is_err());
        assert!(CapacityTrace::parse("-5\n").is_err());
    }

    /// The times of the first opportunities. Each is the first at its own time and after the one
    /// before.
    fn times(trace: &CapacityTrace, count: u64) -> Vec<i64> {
        let mut times = Vec::new();
        for index in 0..count {
            let Some(time) = trace.time(index) else { break };
            let first = trace.first_at(time);
            assert!(first <= index && trace.time(first) == Some(time), "{index}");
            assert!(first == 0 || trace.time(first - 1) < Some(time), "{index}");
            times.push(time.as_millis());
        }
        times
    }

    #[test]
    fn a_trace_gives_1500_bytes_a_line_and_repeats() {
        let trace = parse("# comment\n2\n4\n4\n10\n");
        assert_eq!(times(&trace, 60)[..6], [2, 4, 4, 10, 12, 14]);
        assert_eq!(trace.rate(ms(1_000)), Bitrate::from_bps(400 * 1500 * 8));
        // The line 0 is at the end of each round, too.
        assert_eq!(times(&parse("0\n2\n"), 5), [0, 2, 2, 4, 4]);
    }

    #[test]
    fn a_part_of_a_trace_starts_after_from_and_lasts_until_to() {
        let of = |from, to| {
            let [from, to] = [from, to].map(|ms| Some(TimeDelta::from_millis(ms)));
            parse("0\n2\n4\n4\n10\n").part(from, to)
        };
        assert_eq!(times(&of(2, 8).unwrap(), 5), [2, 2, 8, 8, 14]);
        assert_eq!(times(&of(0, 10).unwrap(), 6), [0, 2, 4, 4, 10, 10]);
        assert_eq!(of(2, 8).unwrap().mean_rate(), Bitrate::from_kbps(4_000));
        for (from, to) in [(4, 9), (4, 4), (2, 11), (-1, 4)] {
            assert!(of(from, to).is_err(), "{from} to {to}");
        }
    }

    #[test]
    fn the_end_of_a_trace_is_held_by_its_last_second() {
        let held = parse("10\n20\n1500\n2000\n").with_end(TraceEnd::Hold);
        assert_eq!(times(&held, 8), [10, 20, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000]);
        assert_eq!(times(&parse("3\n9\n").with_end(TraceEnd::Hold), 4), [3, 9, 12, 18]);
        let part = parse("10\n20\n5000\n").part(None, Some(TimeDelta::from_secs(4))).unwrap();
        let outage = part.with_end(TraceEnd::Hold);
        assert_eq!(times(&outage, 9), [10, 20]);
        assert_eq!(outage.bits(ms(0), ms(60_000)), 24_000.0);
        let mut cursor = TraceCursor::default();
        let size = DataSize::from_bytes(1_500);
        assert_eq!(cursor.finish(&outage, ms(10), ms(10), size), Some(ms(20)));
        assert_eq!(cursor.finish(&outage, ms(11), ms(20), size), None);
    }

    /// The finish times of packets of these times in µs and sizes, in ms.
    fn finished(trace: &CapacityTrace, packets: &[(i64, u64)]) -> Vec<i64> {
        let mut cursor = TraceCursor::default();
        let (mut before, mut finished) = (Timestamp::ZERO, Vec::new());
        for &(at_us, bytes) in packets {
            let since = Timestamp::from_micros(at_us);
            let size = DataSize::from_bytes(bytes);
            before = cursor.finish(trace, since, since.max(before), size).unwrap();
            finished.push(before.as_millis());
        }
        finished
    }

    #[test]
    fn with_plain_bytes_small_packets_share_an_opportunity() {
        let plain = Opportunity::Bytes(DataSize::from_bytes(1_500));
        let trace = parse("2\n4\n6\n").with_opportunity(plain);
        // The packet at 7 ms finds that the rest of the opportunity at 6 ms is lost.
        let packets = [(0, 2_000), (0, 900), (0, 200), (7_000, 100)];
        assert_eq!(finished(&trace, &packets), [4, 4, 6, 8]);
        assert_eq!(finished(&trace, &[(2_000, 1_500)]), [2]);
        let small = Opportunity::Bytes(DataSize::from_bytes(100));
        assert_eq!(finished(&trace.with_opportunity(small), &[(0, 250)]), [6]);
    }

    #[test]
    fn mahimahi_counts_the_tun_header_of_each_packet() {
        let trace = parse("2\n4\n6\n");
        // 1504 bytes carry one packet of 1500, or 15 of 96 and 4 bytes of one more.
        assert_eq!(finished(&trace, &[(0, 1_500), (0, 1_500)]), [2, 4]);
        let mut small = [2; 16];
        small[15] = 4;
        assert_eq!(finished(&trace, &[(0, 96); 16]), small);
    }

    #[test]
    fn in_mahimahi_a_packet_takes_no_opportunity_of_its_own_millisecond() {
        let trace = parse("2\n4\n6\n");
        assert_eq!(finished(&trace, &[(1_999, 100)]), [2]);
        assert_eq!(finished(&trace, &[(2_000, 100)]), [4]);
        assert_eq!(finished(&trace, &[(2_999, 100)]), [4]);
        // Nor what another packet has left of it.
        assert_eq!(finished(&trace, &[(0, 100), (2_000, 100)]), [2, 4]);
        assert_eq!(finished(&trace, &[(0, 100), (1_500, 100)]), [2, 2]);
    }

    /// mahimahi's link queue, as its source describes it, run once a millisecond.
    fn departures(opportunities: &[i64], packets: &[(i64, u64)]) -> Vec<i64> {
        let mut left: Vec<u64> = packets.iter().map(|packet| packet.1 + 4).collect();
        let (mut head, mut departures) = (0, Vec::new());
        for &at in opportunities {
            let mut bytes = 1504;
            while bytes > 0 && head < packets.len() && packets[head].0 / 1_000 < at {
                let sent = bytes.min(left[head]);
                (bytes, left[head]) = (bytes - sent, left[head] - sent);
                if left[head] == 0 {
                    departures.push(at);
                    head += 1;
                }
            }
        }
        departures
    }

    #[test]
    fn all_departures_are_those_of_mahimahi_whatever_the_packets() {
        let mut random = Seed::new(7).stream("packets");
        for round in 0..40_i64 {
            let mut lines: Vec<u32> =
                (0..30).map(|_| (random.uniform() * 60.0) as u32 + 1).collect();
            lines.sort_unstable();
            let text: Vec<String> = lines.iter().map(u32::to_string).collect();
            let trace = parse(&text.join("\n"));
            let mut packets: Vec<(i64, u64)> = Vec::new();
            let mut at = 0;
            for _ in 0..500 {
                at += (random.uniform() * (500 + 100 * round) as f64) as i64;
                packets.push((at, (random.uniform() * 1_460.0) as u64 + 40));
            }
            let opportunities: Vec<i64> =
                (0..3_000).map(|index| trace.time(index).unwrap().as_millis()).collect();
            let expected = departures(&opportunities, &packets);
            assert_eq!(finished(&trace, &packets)[..expected.len()], expected, "{round}");
            assert!(expected.len() > 100, "{round}");
        }
    }
}
