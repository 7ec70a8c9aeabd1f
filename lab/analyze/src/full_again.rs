//! A path that is still narrow although no packet waits: the controller meets its capacity again and
//! again, at the same rate.
//!
//! ```text
//! estimate   ____                                    ____
//!                \\  .-| .-| .-| .-|            .---'
//!                 '-'  '   '   '   '-.------- '
//!             queue   full again ...    recovery
//! ```
//!
//! A controller that follows a queue keeps it short, so that round trips once a second may not show
//! it. But it lowers its estimate each time that it meets the capacity. Two such times in a row, the
//! later one at no higher rate, say that the path was as narrow in between. A controller that only
//! recovers would have risen.

use weir_lab::calls::stats::Kind;

use crate::dump::Way;
use crate::rules::{LOSS, Moment};
use crate::samples::SampledStream;

/// An estimate that falls below this share of the one before was lowered. GCC's is then 0.85 of
/// what arrived [GCC §5.5].
const LOWERED: f64 = 0.95;
/// A rate above this multiple of an earlier one is another capacity: the inverse of what the verdict
/// calls a fall.
const MORE: f64 = 1.0 / 0.75;
/// Longest time in s between two tests of one capacity.
const BETWEEN_S: f64 = 15.0;

/// Finds the samples between two tests of the same capacity, the first of which or one before it
/// was a queue.
pub(crate) fn between_tests(stream: &SampledStream) -> Vec<usize> {
    let mut between = Vec::new();
    if (stream.way, stream.kind) != (Way::Sent, Kind::Video) {
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
