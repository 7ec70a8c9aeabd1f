//! A path that is still narrow although no packet waits: the controller meets its capacity again
//! and again, at the same rate.
//!
//! ```text
//! estimate   ----.                                .-----
//!                 |  .-. .-. .-.             .---'
//!                 '-'  '   '   '-.-----------'
//!              queue   full again   recovery
//! ```
//!
//! A controller that follows a queue keeps it short, so that round trips once a second may not
//! show it. But it lowers its estimate each time that it meets the capacity. Two such times in a
//! row, the later one at no higher rate, say that the path was as narrow in between. A controller
//! that only recovers would have risen.
//!
//! A path may be narrow from the first second on, so that nothing is lower than before and no
//! queue ever stands. Then the estimate rises and is lowered again and again about one rate.

use weir_record::calls::stats::Kind;

use crate::judge::delay_spikes;
use crate::judge::rules::{LOSS, LOWERED, Moment};
use crate::measure::samples::{self, Sample, SampledStream};
use crate::read::dump::{Connection, StreamDirection};

/// A rate above this multiple of an earlier one is another capacity: the inverse of what the
/// verdict calls a fall.
const MORE: f64 = 1.0 / 0.75;
/// Longest time in s between two tests of one capacity.
const BETWEEN_S: f64 = 15.0;

/// The streams of a connection, with the marks of [`mark`] and of [`delay_spikes::mark`].
pub(crate) fn streams(connection: &Connection) -> Vec<SampledStream> {
    let mut streams = samples::streams(connection);
    streams.iter_mut().for_each(mark);
    // Single packets tell pauses better than round trips do.
    if connection.packets.is_none() {
        streams.iter_mut().for_each(delay_spikes::mark);
    }
    streams
}

/// A moment at which the path was full.
#[derive(Clone, Copy)]
struct Test {
    index: usize,
    /// What the path carried.
    rate_bps: f64,
    /// Whether the estimate was lowered for it.
    is_answered: bool,
}

/// Marks the first queue, and the samples at which the path is full again.
pub(crate) fn mark(stream: &mut SampledStream) {
    let mut all = 0..stream.samples.len();
    stream.first_queue = all.find(|index| Moment { stream, index: *index }.queues());
    let tests = tests(stream);
    for pair in tests.windows(2) {
        let [before, test] = [pair[0], pair[1]];
        let samples = &stream.samples;
        let is_soon = samples[test.index].end_s - samples[before.index].end_s <= BETWEEN_S;
        if !is_soon || test.rate_bps > MORE * before.rate_bps {
            continue;
        }
        let is_at_one_rate = is_at_one_rate(samples, before, test);
        for sample in &mut stream.samples[before.index + 1..=test.index] {
            sample.is_repeated_overuse = true;
            sample.is_at_one_rate |= is_at_one_rate;
        }
    }
}

/// The moments at which a sent video tested the capacity.
fn tests(stream: &SampledStream) -> Vec<Test> {
    if (stream.direction, stream.kind) != (StreamDirection::Sent, Kind::Video) {
        return Vec::new();
    }
    (0..stream.samples.len()).filter_map(|index| tested(Moment { stream, index })).collect()
}

/// The test of a sample; `None` if nothing says that the path was full.
fn tested(moment: Moment<'_>) -> Option<Test> {
    let samples = &moment.stream.samples;
    let (index, sample) = (moment.index, &samples[moment.index]);
    let estimate = sample.estimate_bps.filter(|estimate| *estimate > 0.0);
    let next = samples.get(index + 1).and_then(|it| it.estimate_bps);
    let is_lowered = estimate.zip(next).is_some_and(|(now, next)| next < LOWERED * now);
    // Loss lowers an estimate, too, and says nothing about the capacity.
    let is_answered = is_lowered && moment.loss() < LOSS && moment.fills_estimate();
    if moment.queues() {
        let rate_bps = sample.rate_bps * (1.0 - sample.loss.unwrap_or(0.0)).max(0.0);
        return Some(Test { index, rate_bps, is_answered });
    }
    is_answered.then_some(Test { index, rate_bps: estimate?, is_answered })
}

/// Whether the estimate rose after the first test, and was lowered again at the same rate.
fn is_at_one_rate(samples: &[Sample], before: Test, test: Test) -> bool {
    let lowered = samples[before.index + 1].estimate_bps;
    let rose = lowered.zip(samples[test.index].estimate_bps).is_some_and(|(low, now)| now > low);
    before.is_answered && test.is_answered && rose && before.rate_bps <= MORE * test.rate_bps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::found::StreamId;
    use crate::judge::finding;
    use crate::measure::samples::losses::Counted;
    use crate::read::dump::Stream;

    /// Rules that hold in a call whose estimate follows these steps in kbit/s, a second each. The
    /// path is full at each 0, where the estimate is the one before. Two seconds around a queue are
    /// full, too.
    fn rules(steps: &[u32]) -> Vec<(String, f64, f64)> {
        let mut samples = Vec::new();
        let mut before = 2000.0;
        for (second, kbps) in steps.iter().enumerate() {
            let queues = *kbps == 0;
            let bps = if queues { before } else { f64::from(*kbps) } * 1e3;
            before = bps / 1e3;
            samples.push(Sample {
                start_s: second as f64,
                end_s: second as f64 + 1.0,
                rate_bps: if queues { 450e3 } else { bps },
                target_bps: Some(bps),
                estimate_bps: Some(bps),
                rtt_ms: Some(if queues { 400.0 } else { 50.0 }),
                packets: 100,
                counted: Counted { missing: Some(0), is_reported: true, ..Counted::default() },
                ..Sample::default()
            });
        }
        let stream = Stream {
            direction: StreamDirection::Sent,
            kind: Kind::Video,
            ssrc: 1,
            rid: None,
            reports: Vec::new(),
        };
        let id = StreamId::of(&Connection::default(), &stream);
        let mut stream = SampledStream::new(id, &stream, samples, Some(50.0));
        mark(&mut stream);
        let mut found = Vec::new();
        for finding in finding::of_stream(&stream) {
            found.push((finding.rule().name().into(), finding.from_s, finding.to_s));
        }
        found
    }

    #[test]
    fn a_capacity_that_is_met_again_and_again_was_there_in_between() {
        let fall = [2000, 2000, 0, 0, 400, 430, 460, 390, 420, 450, 380, 410, 440, 470, 400, 430];
        let found = rules(&fall);
        assert_eq!(found[0], ("capacity".into(), 0.0, 14.0));
        // After the last time, it may be wide again.
        assert_eq!(found[1..], [("recovery".into(), 14.0, 16.0)]);
    }

    #[test]
    fn a_controller_that_rises_after_a_queue_recovers() {
        let mut rise = vec![2000, 2000, 0, 0];
        rise.extend((0..16).map(|second| 400 + second * 80));
        // Its first limit is far above what the queue let through.
        rise.extend([1500, 1450]);
        let found = rules(&rise);
        assert_eq!(found[0], ("capacity".into(), 0.0, 6.0));
        assert_eq!(found[1].0, "recovery");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_path_that_is_narrow_from_the_first_second_is_full_without_any_queue() {
        let narrow = [300, 500, 800, 680, 720, 760, 810, 690, 730, 770, 800, 680, 710, 740];
        assert_eq!(rules(&narrow), [("capacity".into(), 3.0, 11.0)]);
    }

    #[test]
    fn an_estimate_lowered_at_another_rate_or_twice_in_a_row_says_nothing() {
        assert!(rules(&[1900, 2000, 1405, 1440, 1480, 1405, 1405, 1410, 1415]).is_empty());
        assert!(rules(&[1900, 2000, 1800, 1600, 1620, 1640, 1660, 1680, 1700]).is_empty());
    }

    #[test]
    fn two_limits_of_one_rate_that_are_far_apart_are_two() {
        let mut calls = vec![2000, 2000, 0, 0];
        calls.extend([400; 17]);
        calls.extend([350, 360, 370]);
        let found = rules(&calls);
        assert_eq!(found[0], ("capacity".into(), 0.0, 6.0));
        assert_eq!(found[1], ("recovery".into(), 6.0, 24.0));
    }
}
