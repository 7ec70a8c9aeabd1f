//! Air time by reports alone: the delay springs up and is gone with the next measurement.
//!
//! ```text
//! round trips  ------.^.-----.^.-----^------      a radio cell: others have the air
//!              ------.--------------.-------      a queue: it grows, stays and drains
//! ```
//!
//! A queue before a narrow path lasts for seconds, so several measurements in a row are long. In a
//! radio cell packets wait until the air is free, and then all leave at once: the next round trip,
//! a second later, is short again. Two such spikes near each other, with nothing but short round
//! trips and without loss between, say that the cell lacked air meanwhile. Where two long ones in a
//! row came less than 30 s before, nothing is said. Nor is it where the sender sent less after each
//! such spike: so it does where a path is narrow from the first second on.

use crate::judge::rules::{LOSS, LOWERED, QUEUE_MS};
use crate::measure::samples::{Sample, SampledStream, median};
use crate::read::dump::StreamDirection;

/// Growth of a round-trip time over its minimum that is a spike. On an idle link ours vary by less
/// than 20 ms.
const SPIKE_MS: f64 = 40.0;
/// The measurements before and after a spike grew by less than this share of it.
const GONE: f64 = 0.6;
/// Longest time in s between two spikes of one lack of air.
const BETWEEN_S: f64 = 15.0;
/// After a queue, a controller meets the same capacity again for short times, which look like
/// spikes. For this long, in s, they are none.
const AFTER_QUEUE_S: f64 = 30.0;
/// A report that comes after this multiple of the usual time says that the device was busy, and a
/// busy device measures long round trips.
const LATE: f64 = 1.3;
/// A received stream below this share of its rate was lowered. GCC goes to 0.85 [GCC §5.5].
const ANSWERED: f64 = 0.93;

/// A measured round trip of a stream's connection.
#[derive(Clone, Copy)]
struct Measured {
    /// The sample in which it was measured.
    index: usize,
    /// Its growth over the smallest.
    growth_ms: f64,
}

/// Marks the samples from one spike to the next. Where a cell lacked air, no path is called narrow
/// for an estimate that is lowered about one rate.
pub(crate) fn mark(stream: &mut SampledStream) {
    for sample in &mut stream.samples {
        sample.is_between_spikes = false;
    }
    let measured = measured(stream);
    let mut last: Option<usize> = None;
    let mut lacks = Vec::new();
    let mut is_narrow = true;
    for place in 1..measured.len().saturating_sub(1) {
        if !is_spike(&measured[place - 1..=place + 1]) {
            continue;
        }
        if let Some(before) = last
            && is_one_lack(stream, &measured[before..=place])
            && !stood_a_queue(stream, &measured[..before])
        {
            let ends = [measured[before], measured[place]];
            is_narrow &= ends.iter().all(|it| is_answered(stream, *it));
            lacks.push(ends[0].index..=ends[1].index);
        }
        last = Some(place);
    }
    if is_narrow {
        return;
    }
    for sample in lacks.into_iter().flatten() {
        stream.samples[sample].is_between_spikes = true;
    }
    // Pauses of a cell lower an estimate as a narrow path does.
    for sample in &mut stream.samples {
        sample.is_at_one_rate = false;
    }
}

/// The measurements of a stream's connection, one for each sample that has a new one.
fn measured(stream: &SampledStream) -> Vec<Measured> {
    let mut found = Vec::new();
    let Some(base) = stream.base_rtt_ms else { return found };
    for (index, sample) in stream.samples.iter().enumerate() {
        if let (true, Some(rtt)) = (sample.is_rtt_new, sample.rtt_ms) {
            found.push(Measured { index, growth_ms: rtt - base });
        }
    }
    found
}

/// Whether the second of three measurements stands alone.
fn is_spike(three: &[Measured]) -> bool {
    let [before, it, after] = three else { return false };
    let least = (GONE * it.growth_ms).min(SPIKE_MS);
    it.growth_ms >= SPIKE_MS && before.growth_ms < least && after.growth_ms < least
}

/// Whether two measurements in a row, shortly before the end of these, are those of a queue.
fn stood_a_queue(stream: &SampledStream, measured: &[Measured]) -> bool {
    let Some(last) = measured.last() else { return false };
    let oldest_s = stream.samples[last.index].end_s - AFTER_QUEUE_S;
    measured.windows(2).any(|two| {
        stream.samples[two[0].index].end_s >= oldest_s
            && two.iter().all(|it| it.growth_ms >= QUEUE_MS)
    })
}

/// Whether the sender answered a spike by sending less. It does so where it meets a capacity that
/// is always there, and its queue is as short as a spike. Of a received stream, its rate tells.
fn is_answered(stream: &SampledStream, spike: Measured) -> bool {
    let samples = &stream.samples;
    let (index, last) = (spike.index, samples.len() - 1);
    if stream.direction == StreamDirection::Received {
        let before = samples[index].rate_bps.max(samples[index.saturating_sub(1)].rate_bps);
        let after = &samples[(index + 1).min(last)..=(index + 2).min(last)];
        return after.iter().any(|it| it.rate_bps < ANSWERED * before);
    }
    let around = &samples[index.saturating_sub(1)..=(index + 1).min(last)];
    let estimates: Vec<f64> = around.iter().filter_map(|it| it.estimate_bps).collect();
    estimates.windows(2).any(|two| two[1] < LOWERED * two[0])
}

/// Whether nothing between two spikes says that a queue stood there, or that packets were lost.
fn is_one_lack(stream: &SampledStream, measured: &[Measured]) -> bool {
    let [first, between @ .., last] = measured else { return false };
    let samples: &[Sample] = &stream.samples[first.index..=last.index];
    let length_s = samples[samples.len() - 1].end_s - samples[0].end_s;
    let is_short = between.iter().all(|it| it.growth_ms < SPIKE_MS);
    let usual_s = median(&stream.samples, |it| Some(it.end_s - it.start_s)).unwrap_or_default();
    let is_late = samples.iter().any(|it| it.end_s - it.start_s > LATE * usual_s);
    !is_late
        && is_short
        && length_s <= BETWEEN_S
        && crate::measure::samples::losses::of(samples).unwrap_or(0.0) < LOSS
}

#[cfg(test)]
mod tests {
    use weir_record::calls::stats::Kind;

    use super::*;
    use crate::found::StreamId;
    use crate::measure::samples::losses::Counted;
    use crate::read::dump::{Connection, Stream};

    /// The seconds of a call with these round trips that lie between two spikes. One of zero was
    /// not measured.
    fn marked(rtts_ms: &[f64], loss: f64) -> Vec<usize> {
        marked_with(rtts_ms, loss, None)
    }

    /// The same, where the report after this second comes half a second late.
    fn marked_with(rtts_ms: &[f64], loss: f64, late: Option<usize>) -> Vec<usize> {
        marks(samples(rtts_ms, loss, late), StreamDirection::Sent)
    }

    fn samples(rtts_ms: &[f64], loss: f64, late: Option<usize>) -> Vec<Sample> {
        let mut samples = Vec::new();
        let mut known = None;
        let mut now_s = 0.0;
        for (second, rtt_ms) in rtts_ms.iter().enumerate() {
            known = if *rtt_ms > 0.0 { Some(*rtt_ms) } else { known };
            let start_s = now_s;
            now_s += if late == Some(second) { 1.5 } else { 1.0 };
            samples.push(Sample {
                start_s,
                end_s: now_s,
                rtt_ms: known,
                is_rtt_new: *rtt_ms > 0.0,
                packets: 100,
                counted: Counted {
                    missing: Some((loss * 100.0) as i64),
                    is_reported: true,
                    ..Counted::default()
                },
                ..Sample::default()
            });
        }
        samples
    }

    fn marks(samples: Vec<Sample>, direction: StreamDirection) -> Vec<usize> {
        let stream =
            Stream { direction, kind: Kind::Video, ssrc: 1, rid: None, reports: Vec::new() };
        let id = StreamId::of(&Connection::default(), &stream);
        let mut stream = SampledStream::new(id, &stream, samples, Some(30.0));
        mark(&mut stream);
        let all = stream.samples.iter().enumerate();
        all.filter(|(_, sample)| sample.is_between_spikes).map(|(index, _)| index).collect()
    }

    #[test]
    fn two_spikes_with_short_round_trips_between_lack_air() {
        assert_eq!(marked(&[30.0, 120.0, 33.0, 30.0, 90.0, 31.0, 30.0], 0.0), [1, 2, 3, 4]);
        // A measurement that still counts is none of its own.
        assert_eq!(marked(&[30.0, 120.0, 0.0, 33.0, 90.0, 31.0], 0.0), [1, 2, 3, 4]);
    }

    #[test]
    fn one_spike_a_queue_and_losses_do_not() {
        assert!(marked(&[30.0, 30.0, 120.0, 33.0, 30.0, 31.0], 0.0).is_empty());
        assert!(marked(&[30.0, 120.0, 110.0, 140.0, 90.0, 31.0], 0.0).is_empty());
        // A queue between two spikes.
        let queue = [30.0, 120.0, 33.0, 90.0, 100.0, 95.0, 31.0, 120.0, 30.0];
        assert!(marked(&queue, 0.0).is_empty());
        assert!(marked(&[30.0, 120.0, 33.0, 30.0, 90.0, 31.0, 30.0], 0.05).is_empty());
    }

    #[test]
    fn a_device_that_reports_late_was_busy() {
        let spikes = [30.0, 120.0, 33.0, 30.0, 90.0, 31.0, 30.0];
        assert!(marked_with(&spikes, 0.0, Some(3)).is_empty());
        assert_eq!(marked_with(&spikes, 0.0, Some(6)), [1, 2, 3, 4]);
    }

    #[test]
    fn a_sender_that_sends_less_after_both_met_a_path_that_is_narrow() {
        let spikes = [30.0, 120.0, 33.0, 30.0, 90.0, 31.0, 30.0];
        let answered = [800.0, 850.0, 690.0, 750.0, 850.0, 700.0, 720.0];
        let once = [800.0, 850.0, 690.0, 750.0, 800.0, 810.0, 820.0];
        for (direction, kbps, expected) in [
            (StreamDirection::Received, answered, vec![]),
            (StreamDirection::Received, once, vec![1, 2, 3, 4]),
            (StreamDirection::Sent, answered, vec![]),
            (StreamDirection::Sent, once, vec![1, 2, 3, 4]),
        ] {
            let mut all = samples(&spikes, 0.0, None);
            for (sample, kbps) in all.iter_mut().zip(kbps) {
                sample.rate_bps = kbps * 1e3;
                sample.estimate_bps = (direction == StreamDirection::Sent).then_some(kbps * 1e3);
            }
            assert_eq!(marks(all, direction), expected, "{direction:?} {kbps:?}");
        }
    }

    #[test]
    fn soon_after_a_queue_a_controller_meets_the_capacity_again() {
        let spikes = [30.0, 120.0, 33.0, 30.0, 90.0, 31.0];
        let mut rtts = vec![30.0, 200.0, 250.0, 40.0];
        rtts.extend(spikes);
        assert!(marked(&rtts, 0.0).is_empty());
        let mut rtts = vec![30.0, 200.0, 250.0];
        rtts.extend([30.0; 32]);
        rtts.extend(spikes);
        assert_eq!(marked(&rtts, 0.0), [36, 37, 38, 39]);
    }

    #[test]
    fn spikes_far_apart_are_two() {
        let mut rtts = vec![30.0, 120.0];
        rtts.extend([30.0; 16]);
        rtts.extend([120.0, 30.0]);
        assert!(marked(&rtts, 0.0).is_empty());
    }
}
