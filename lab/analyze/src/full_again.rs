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

use weir_lab::calls::stats::Kind;

use crate::delay_spikes;
use crate::dump::{Connection, StreamDirection};
use crate::rules::{LOSS, Moment};
use crate::samples::{self, SampledStream};

/// An estimate that falls below this share of the one before was lowered. GCC's is then 0.85 of
/// what arrived [GCC §5.5].
const LOWERED: f64 = 0.95;
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

/// Marks the first queue, and the samples at which the path is full again.
pub(crate) fn mark(stream: &mut SampledStream) {
    let mut all = 0..stream.samples.len();
    stream.first_queue = all.find(|index| Moment { stream, index: *index }.queues());
    for index in between_tests(stream) {
        stream.samples[index].is_full_again = true;
    }
}

/// The samples between two tests of the same capacity.
fn between_tests(stream: &SampledStream) -> Vec<usize> {
    let mut between = Vec::new();
    if (stream.way, stream.kind) != (StreamDirection::Sent, Kind::Video) {
        return between;
    }
    let mut last: Option<(usize, f64)> = None;
    for index in 0..stream.samples.len() {
        let Some(rate) = tested(Moment { stream, index }) else { continue };
        if let Some((before, carried)) = last {
            let samples = &stream.samples;
            let is_soon = samples[index].end_s - samples[before].end_s <= BETWEEN_S;
            if is_soon && rate <= MORE * carried {
                between.extend(before + 1..=index);
            }
        }
        last = Some((index, rate));
    }
    between
}

/// The rate at which the path was full during a sample; `None` if nothing says that it was.
fn tested(moment: Moment<'_>) -> Option<f64> {
    let samples = &moment.stream.samples;
    let sample = &samples[moment.index];
    if moment.queues() {
        return Some(sample.rate_bps * (1.0 - sample.loss.unwrap_or(0.0)).max(0.0));
    }
    let estimate = sample.estimate_bps.filter(|estimate| *estimate > 0.0)?;
    let next = samples.get(moment.index + 1)?.estimate_bps?;
    // Loss lowers an estimate, too, and says nothing about the capacity.
    let is_lowered = next < LOWERED * estimate && moment.loss() < LOSS;
    (is_lowered && moment.fills_estimate()).then_some(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Stream;
    use crate::finding;
    use crate::samples::Sample;

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
                loss: Some(0.0),
                packets: 100,
                ..Sample::default()
            });
        }
        let stream = Stream {
            way: StreamDirection::Sent,
            kind: Kind::Video,
            ssrc: 1,
            rid: None,
            reports: Vec::new(),
        };
        let mut stream = SampledStream::new("a video sent 1".into(), &stream, samples, Some(50.0));
        mark(&mut stream);
        let mut found = Vec::new();
        for finding in finding::of_stream(&stream) {
            found.push((finding.0.rule, finding.0.from_s, finding.0.to_s));
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
    fn two_limits_of_one_rate_that_are_far_apart_are_two() {
        let mut calls = vec![2000, 2000, 0, 0];
        calls.extend([400; 17]);
        calls.extend([350, 360, 370]);
        let found = rules(&calls);
        assert_eq!(found[0], ("capacity".into(), 0.0, 6.0));
        assert_eq!(found[1], ("recovery".into(), 6.0, 24.0));
    }
}
