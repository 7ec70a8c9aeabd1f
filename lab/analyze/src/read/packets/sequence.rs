//! The sequence numbers of a stream: which packets are missing, late, or there twice
//! [RFC3550 §A.1, §A.3].
//!
//! A number is lost if it never came. A late packet fills its hole, and a second copy fills none.
//! Numbers that begin anew, as after a hold, are no hole: what could have been sent meanwhile
//! bounds a hole, where RFC 3550 has a number of packets (`MAX_DROPOUT`).

use std::collections::BTreeMap;

/// A hole that has not closed after this time in ns stays: what comes later is a copy.
const SETTLED: i64 = 10_000_000_000;
/// So many packets may be missing at any rate, as those of a lost burst [RFC3550 §A.1].
const BURST: i64 = 100;
/// A hole may have as many packets as would have come at this multiple of the stream's rate.
const RATES: f64 = 4.0;
/// Packets that come this much too late, in ns, are no longer those of the same numbers.
const LATEST: i64 = 2_000_000_000;
/// Time over which the rate is measured, in ns.
const RATE_WINDOW: i64 = 1_000_000_000;
/// How much the RTP time may differ from the time that passed, in s and as a share, while a stream
/// goes on.
const CLOCK_SLACK_S: f64 = 1.0;
const CLOCK_SLACK: f64 = 0.2;
/// A timestamp that is so far from the time that passed, in s, is that of another begin: beyond any
/// wait on the way.
const OTHER_BEGIN_S: f64 = 30.0;
/// Most holes that are open at a time.
const HOLES_MAX: usize = 8_192;

/// What a packet is among its stream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next number, or one behind a hole.
    Ahead,
    /// It fills a hole.
    Late,
    /// Its number was there before.
    Copy,
    /// The numbers begin anew.
    Anew,
}

/// Missing numbers between two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub count: u32,
    /// When the packets before and behind it came, in ns.
    pub from: i64,
    pub to: i64,
}

impl Hole {
    /// How many of its packets should have come before a time within it, if they were sent as far
    /// apart as they could be.
    pub fn due(&self, time: i64) -> u32 {
        let (passed, length) = (i128::from(time - self.from), i128::from(self.to - self.from));
        let apart = i128::from(self.count) + 1;
        let due = (passed * apart - 1).div_euclid(length.max(1));
        u32::try_from(due.max(0)).unwrap_or(u32::MAX).min(self.count)
    }
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    end: i64,
    from: i64,
    to: i64,
}

/// The numbers of a stream so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    /// The highest number with its cycles, and the lowest of this run.
    highest: Option<i64>,
    lowest: i64,
    /// When the highest came, and its RTP timestamp.
    time: i64,
    timestamp: u32,
    /// Begin of this run: time, and RTP time in units, unwrapped.
    run_from: i64,
    run_units: i64,
    /// Open holes by their first number.
    holes: BTreeMap<i64, Missing>,
    /// Holes that stay, not yet taken.
    settled: Vec<Hole>,
    /// A packet whose number fits nowhere: the number that would follow it [RFC3550 §A.1].
    bad: Option<u16>,
    /// Packets of the running window, and the packets a second of the fullest recent one.
    window: (i64, u32),
    rate: f64,
    pub unique: u64,
    pub late: u64,
    pub copies: u64,
    /// How often the numbers began anew.
    pub runs: u64,
    /// Numbers of all runs that have ended.
    expected_before: u64,
}

impl Sequence {
    /// Adds a packet that came at a time in ns.
    pub fn add(&mut self, now: i64, number: u16, timestamp: u32) -> Arrival {
        let Some(highest) = self.highest else {
            self.begin(now, number, timestamp);
            return Arrival::Ahead;
        };
        // The difference of 16 bits with a sign: half of the numbers are ahead.
        let step = i64::from(number.wrapping_sub(highest as u16) as i16);
        let arrival = if step > 0 {
            self.ahead(now, step, timestamp)
        } else {
            self.behind(now, highest + step, (step, timestamp), number)
        };
        match arrival {
            Arrival::Anew => self.anew(now, number, timestamp),
            Arrival::Copy => self.copies += 1,
            Arrival::Late => (self.unique, self.late) = (self.unique + 1, self.late + 1),
            Arrival::Ahead => self.unique += 1,
        }
        if arrival != Arrival::Copy {
            self.count(now);
        }
        arrival
    }

    fn begin(&mut self, now: i64, number: u16, timestamp: u32) {
        self.highest = Some(i64::from(number));
        self.lowest = i64::from(number);
        (self.time, self.timestamp) = (now, timestamp);
        (self.run_from, self.run_units) = (now, 0);
        self.bad = None;
        self.unique += 1;
        self.count(now);
    }

    fn ahead(&mut self, now: i64, step: i64, timestamp: u32) -> Arrival {
        let missing = step - 1;
        let silent_s = (now - self.time).max(0) as f64 / 1e9;
        let is_other_begin = self.is_other_begin(now, timestamp);
        let possible = match is_other_begin {
            true => RATES * self.rate * silent_s,
            false => BURST as f64 + RATES * self.rate * (silent_s + RATE_WINDOW as f64 / 1e9),
        };
        // Packets that waited and then come all at once have other times, too.
        let is_after_silence = missing > BURST && silent_s >= CLOCK_SLACK_S;
        let is_clear = is_after_silence && self.goes_on(now, timestamp) == Some(false);
        if missing as f64 > possible || is_clear {
            return Arrival::Anew;
        }
        let before = self.highest.unwrap_or_default();
        let highest = before + step;
        if missing > 0 {
            let hole = Missing { end: highest, from: self.time, to: now };
            self.holes.insert(before + 1, hole);
        }
        self.highest = Some(highest);
        self.run_units += i64::from(timestamp.wrapping_sub(self.timestamp) as i32);
        if is_other_begin {
            // Another source with the same numbers, as behind a mixer: its clock is to be learnt.
            (self.run_from, self.run_units) = (now, 0);
        }
        (self.time, self.timestamp) = (now.max(self.time), timestamp);
        self.bad = None;
        self.settle(now - SETTLED);
        Arrival::Ahead
    }

    /// Whether the RTP time of a packet is that of a stream that went on meanwhile; `None` while
    /// the clock is not known.
    fn goes_on(&self, now: i64, timestamp: u32) -> Option<bool> {
        let passed_s = (now - self.time) as f64 / 1e9;
        Some(self.clock_error_s(now, timestamp)? <= CLOCK_SLACK_S + CLOCK_SLACK * passed_s)
    }

    /// Whether the RTP time of a packet is that of no packet of this run.
    fn is_other_begin(&self, now: i64, timestamp: u32) -> bool {
        let passed_s = ((now - self.time) as f64 / 1e9).abs();
        self.clock_error_s(now, timestamp)
            .is_some_and(|error| error > OTHER_BEGIN_S + CLOCK_SLACK * passed_s)
    }

    /// Whether the RTP time of a packet is older than that of packets which still come.
    fn is_too_late(&self, now: i64, timestamp: u32) -> bool {
        self.clock_error_s(now, timestamp).is_some_and(|error| error > LATEST as f64 / 1e9)
    }

    /// How far RTP time moved from the time that passed since the highest number, in s.
    fn clock_error_s(&self, now: i64, timestamp: u32) -> Option<f64> {
        let known_s = (self.time - self.run_from) as f64 / 1e9;
        if known_s < CLOCK_SLACK_S || self.run_units <= 0 {
            return None;
        }
        let units = f64::from(timestamp.wrapping_sub(self.timestamp) as i32);
        let passed_s = (now - self.time) as f64 / 1e9;
        Some((units / (self.run_units as f64 / known_s) - passed_s).abs())
    }

    fn behind(
        &mut self,
        now: i64,
        number: i64,
        (step, timestamp): (i64, u32),
        on_the_wire: u16,
    ) -> Arrival {
        let hole = self.holes.range(..=number).next_back().map(|(start, hole)| (*start, *hole));
        if let Some((start, hole)) = hole.filter(|(_, hole)| number < hole.end) {
            self.holes.remove(&start);
            if start < number {
                self.holes.insert(start, Missing { end: number, ..hole });
            }
            if number + 1 < hole.end {
                self.holes.insert(number + 1, hole);
            }
            return Arrival::Late;
        }
        let reach = BURST + (self.rate * LATEST as f64 / 1e9) as i64;
        if -step <= reach && !self.is_too_late(now, timestamp) {
            // The first packets may be out of order, too.
            if number < self.lowest && now - self.run_from < LATEST {
                let hole = Missing { end: self.lowest, from: self.run_from, to: now };
                if number + 1 < self.lowest {
                    self.holes.insert(number + 1, hole);
                }
                self.lowest = number;
                return Arrival::Late;
            }
            return Arrival::Copy;
        }
        // Two in sequence are a new begin [RFC3550 §A.1].
        if self.bad == Some(on_the_wire) {
            return Arrival::Anew;
        }
        self.bad = Some(on_the_wire.wrapping_add(1));
        Arrival::Copy
    }

    fn anew(&mut self, now: i64, number: u16, timestamp: u32) {
        // The first of the two was counted as a copy.
        let first = u64::from(self.bad == Some(number));
        self.copies -= first.min(self.copies);
        self.unique += first;
        self.runs += 1;
        self.expected_before += self.expected_of_run();
        self.settle(i64::MAX);
        self.begin(now, number, timestamp);
        self.lowest -= first as i64;
    }

    fn count(&mut self, now: i64) {
        let (from, count) = &mut self.window;
        if now - *from >= RATE_WINDOW {
            self.rate = f64::from(*count).max(self.rate / 2.0);
            (*from, *count) = (now, 0);
        }
        *count += 1;
        self.rate = self.rate.max(f64::from(*count));
    }

    fn settle(&mut self, before: i64) {
        while let Some((start, hole)) = self.holes.first_key_value()
            && (hole.to <= before || self.holes.len() > HOLES_MAX)
        {
            let (start, hole) = (*start, *hole);
            self.holes.remove(&start);
            let count = u32::try_from(hole.end - start).unwrap_or(u32::MAX);
            self.settled.push(Hole { count, from: hole.from, to: hole.to });
        }
    }

    /// Holes that have stayed since they were asked for last.
    pub fn take_settled(&mut self) -> Vec<Hole> {
        std::mem::take(&mut self.settled)
    }

    /// All holes that are left stay.
    pub fn finish(&mut self) -> Vec<Hole> {
        self.settle(i64::MAX);
        self.take_settled()
    }

    fn expected_of_run(&self) -> u64 {
        self.highest.map_or(0, |highest| (highest - self.lowest + 1).unsigned_abs())
    }

    /// The highest number, as on the wire.
    pub fn highest(&self) -> u16 {
        self.highest.unwrap_or_default() as u16
    }

    /// Packets that were sent, as far as numbers tell.
    pub fn expected(&self) -> u64 {
        self.expected_before + self.expected_of_run()
    }

    /// Of these, packets that never came.
    pub fn lost(&self) -> u64 {
        self.expected().saturating_sub(self.unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Voice: a packet each 20 ms with 160 units, by index.
    fn play(packets: &[(i64, i64)]) -> (Sequence, Vec<Hole>) {
        let mut sequence = Sequence::default();
        for (time_ms, index) in packets {
            sequence.add(time_ms * MS, (65_000 + index) as u16, (index * 160) as u32);
        }
        let holes = sequence.finish();
        let missing: u64 = holes.iter().map(|it| u64::from(it.count)).sum();
        assert_eq!(missing, sequence.lost());
        (sequence, holes)
    }

    fn regular(count: i64) -> Vec<(i64, i64)> {
        (0..count).map(|index| (index * 20, index)).collect()
    }

    #[test]
    fn a_packet_of_a_hole_is_due_at_its_own_time() {
        // The packets of 10.00 to 11.98 s.
        let hole = Hole { count: 100, from: 9_980 * MS, to: 12_000 * MS };
        let due = [9_980, 10_000, 10_001, 10_500, 11_980, 11_981, 12_000];
        assert_eq!(due.map(|ms| hole.due(ms * MS)), [0, 0, 1, 25, 99, 100, 100]);
        let at_once = Hole { count: 3, from: 5, to: 5 };
        assert_eq!(at_once.due(5), 0);
    }

    #[test]
    fn what_is_missing_is_lost_across_the_wrap() {
        let mut packets = regular(1_500);
        packets.retain(|(_, index)| index % 10 != 5);
        let (sequence, holes) = play(&packets);
        assert_eq!((sequence.expected(), sequence.lost(), holes.len()), (1_500, 150, 150));
        assert_eq!(holes[0], Hole { count: 1, from: 80 * MS, to: 120 * MS });
    }

    #[test]
    fn late_packets_are_not_lost_and_copies_hide_no_loss() {
        let mut packets = regular(1_000);
        for (time, index) in &mut packets {
            *time += if *index % 7 == 3 { 90 } else { 0 };
        }
        packets.retain(|(_, index)| index % 100 != 51);
        packets.sort_unstable();
        let (sequence, _) = play(&packets);
        assert_eq!((sequence.lost(), sequence.copies), (10, 0));
        assert!((138..=143).contains(&sequence.late), "{}", sequence.late);
        let twice: Vec<(i64, i64)> = packets.iter().flat_map(|it| [*it, *it]).collect();
        let (sequence, _) = play(&twice);
        assert_eq!((sequence.lost(), sequence.copies), (10, packets.len() as u64));
    }

    #[test]
    fn an_outage_is_lost_at_any_rate_and_length() {
        for (step_ms, outage_ms) in
            [(20, 3_000), (20, 60_000), (1, 3_000), (1, 20_000), (200, 9_000)]
        {
            let mut sequence = Sequence::default();
            let (mut sent, mut came) = (0_u64, 0_u64);
            for time_ms in (0..100_000_i64).step_by(step_ms) {
                let is_out = (10_000..10_000 + outage_ms).contains(&time_ms);
                if !is_out {
                    sequence.add(time_ms * MS, sent as u16, (time_ms * 90) as u32);
                    came += 1;
                }
                sent += 1;
            }
            assert_eq!(sequence.lost(), sent - came, "{step_ms} ms, {outage_ms} ms");
            assert_eq!(sequence.runs, 0);
        }
    }

    #[test]
    fn a_recording_that_is_played_again_has_new_packets_of_the_same_numbers() {
        // So many packets each time; the timestamps begin anew, too.
        for lengths in [[170, 300, 500], [120, 130, 900]] {
            let mut sequence = Sequence::default();
            let mut time_ms = 0;
            for length in lengths {
                for index in 0..length {
                    sequence.add(time_ms * MS, index as u16, (index * 160) as u32);
                    time_ms += 20;
                }
            }
            let all: i64 = lengths.iter().sum();
            assert_eq!((sequence.unique, sequence.lost(), sequence.runs), (all as u64, 0, 2));
        }
    }

    #[test]
    fn new_numbers_after_a_hold_are_no_loss() {
        for jump in [40_000_u16, 20_000, 3_000, 700, 65_000] {
            let mut sequence = Sequence::default();
            for index in 0..500_i64 {
                sequence.add(index * 20 * MS, index as u16, (index * 160) as u32);
            }
            for index in 0..500_i64 {
                let number = 500_u16.wrapping_add(jump).wrapping_add(index as u16);
                let time = 12_000 + index * 20;
                sequence.add(time * MS, number, 3_000_000_000_u32.wrapping_add(index as u32 * 160));
            }
            assert_eq!((sequence.lost(), sequence.runs), (0, 1), "{jump}");
            assert_eq!(sequence.unique, 1_000);
        }
    }

    #[test]
    fn a_begin_with_other_timestamps_is_no_loss_however_small_the_step() {
        for (step, gap_ms) in [(50, 200), (90, 40), (-30, 0), (-90, 1_000), (3_000, 0)] {
            let mut sequence = Sequence::default();
            for index in 0..500_i64 {
                sequence.add(index * 20 * MS, 1_000 + index as u16, (index * 160) as u32);
            }
            for index in 0..500_i64 {
                let number = (1_500 + step + index) as u16;
                let timestamp = 900_000_000 + index as u32 * 160;
                sequence.add((10_000 + gap_ms + index * 20) * MS, number, timestamp);
            }
            let missing: u32 = sequence.finish().iter().map(|it| it.count).sum();
            assert_eq!((missing, sequence.runs), (0, 1), "{step}");
            assert!((999..=1_000).contains(&sequence.unique), "{step}");
        }
        // A mixer that changes its source goes on counting: a single one that is missing is lost.
        let mut packets = regular(1_000);
        packets.retain(|(_, index)| *index != 500);
        let mut sequence = Sequence::default();
        for (time_ms, index) in packets {
            let timestamp = index * 160 + if index > 500 { 900_000_000 } else { 0 };
            sequence.add(time_ms * MS, index as u16, timestamp as u32);
        }
        sequence.finish();
        assert_eq!((sequence.lost(), sequence.runs), (1, 0));
    }

    #[test]
    fn a_pause_with_numbers_that_go_on_is_no_loss() {
        let mut packets = regular(500);
        packets.extend((500..900).map(|index| (index * 20 + 4_000, index)));
        assert_eq!(play(&packets).0.lost(), 0);
    }
}
