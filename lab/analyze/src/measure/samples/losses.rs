//! Lost packets of a stream: which of them are lost for ever, and of how many.
//!
//! Counters say how many packets are missing *now*. Three things stand between them and a share:
//!
//! ```text
//! late packets      +12 -12 +12 -12     they come after all: only what stays missing is lost
//! rare reports        0   0   0   0 +50 a receiver report counts for all seconds since the last
//! an outage           0   0   0 +500    nothing comes, and the first packet after it shows the gap
//! ```
//!
//! So a loss that becomes known late is shared by the time in which it may have happened. Each
//! sample of that time has the same share, and the sum over any longer time is lost over expected.

use crate::measure::samples::Sample;
use crate::read::dump::StreamDirection;

/// A packet that comes after this time in s is a new one, or a duplicate.
const LATE_S: f64 = 5.0;
/// A silence in which at least this share of the usual packets was lost was an outage. Otherwise
/// the sender paused.
const OUTAGE: f64 = 0.5;

/// What the counters of two reports say of the packets between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    /// Growth of the missing packets. It is negative if late ones came; `None` if it is unknown.
    pub missing: Option<i64>,
    /// Packets of which these are missing, where the far end says so; otherwise those of the
    /// sample.
    pub expected: Option<u64>,
    /// Whether the far end says how many of a sent stream arrived.
    pub has_arrived: bool,
    /// Whether the receiver reported. It always does so of a received stream.
    pub is_reported: bool,
}

/// Computes the loss of each sample from what the counters say.
pub(crate) fn share(direction: StreamDirection, samples: &mut [Sample]) {
    let lost = without_late(samples);
    let mut first = 0;
    for index in 0..samples.len() {
        samples[index].loss = None;
        samples[index].expected = 0.0;
        if !samples[index].counted.is_reported {
            continue;
        }
        if direction == StreamDirection::Received {
            first = outage(samples, &lost, index);
        }
        // What came before the first report is not known.
        if let Some(lost) = lost[index] {
            share_among(direction, &mut samples[first..=index], lost);
        }
        first = index + 1;
    }
}

/// Packets that are lost for ever, by sample: a late packet ends a loss before it.
fn without_late(samples: &[Sample]) -> Vec<Option<u64>> {
    let mut lost = vec![None; samples.len()];
    let (mut late, mut late_s) = (0_i64, f64::INFINITY);
    for (sample, lost) in samples.iter().zip(&mut lost).rev() {
        let Some(missing) = sample.counted.missing else { continue };
        if late_s - sample.end_s > LATE_S {
            late = 0;
        }
        if missing < 0 {
            late_s = sample.end_s;
        }
        let stays = missing.saturating_add(late);
        late = stays.min(0);
        *lost = Some(u64::try_from(stays).unwrap_or(0));
    }
    lost
}

/// The first sample of the outage that this sample ends; the sample itself if there was none.
fn outage(samples: &[Sample], lost: &[Option<u64>], index: usize) -> usize {
    let mut first = index;
    while first > 0 && samples[first - 1].packets == 0 && lost[first - 1] == Some(0) {
        first -= 1;
    }
    let silent_s = samples[index].start_s - samples[first].start_s;
    // The silence began within the sample before it, so that one has fewer.
    let before = &samples[first.saturating_sub(2)..first];
    let rates = before.iter().map(|it| it.packets as f64 / (it.end_s - it.start_s));
    let Some(usual) = rates.max_by(f64::total_cmp) else { return index };
    let is_outage = lost[index].is_some_and(|lost| lost as f64 >= OUTAGE * usual * silent_s);
    if silent_s > 0.0 && is_outage { first } else { index }
}

/// Gives the samples one share: what is lost of all packets that are expected in them.
fn share_among(direction: StreamDirection, samples: &mut [Sample], lost: u64) {
    let mut known = Some(0_u64);
    for sample in samples.iter() {
        let both = known.zip(sample.counted.expected);
        known = both.map(|(sum, expected)| sum.saturating_add(expected));
    }
    let packets: u64 = samples.iter().map(|it| it.packets).fold(0, u64::saturating_add);
    let expected = known.unwrap_or(packets).max(lost) as f64;
    let seconds: f64 = samples.iter().map(|it| it.end_s - it.start_s).sum();
    for sample in samples {
        // What should have come in an outage did not, and what was sent is known.
        let is_known = direction == StreamDirection::Sent && packets > 0;
        let part = match is_known {
            true => sample.packets as f64 / packets as f64,
            false => (sample.end_s - sample.start_s) / seconds.max(f64::MIN_POSITIVE),
        };
        sample.expected = expected * part;
        sample.loss = (expected > 0.0).then(|| lost as f64 / expected);
    }
}

/// Lost packets of several samples over all that were expected in them.
pub(crate) fn of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Option<f64> {
    let (mut expected, mut lost) = (0.0, 0.0);
    for sample in samples {
        if let Some(loss) = sample.loss {
            expected += sample.expected;
            lost += loss * sample.expected;
        }
    }
    (expected > 0.0).then(|| (lost / expected).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of a second each, by their packets and the growth of the missing ones.
    fn shared(direction: StreamDirection, counted: &[(u64, Option<i64>)]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (second, (packets, missing)) in counted.iter().enumerate() {
            let arrived = *packets;
            let expected = (direction == StreamDirection::Received)
                .then(|| arrived.saturating_add_signed(missing.unwrap_or(0)));
            samples.push(Sample {
                start_s: second as f64,
                end_s: second as f64 + 1.0,
                packets: arrived,
                counted: Counted {
                    missing: *missing,
                    expected,
                    has_arrived: false,
                    is_reported: missing.is_some(),
                },
                ..Sample::default()
            });
        }
        share(direction, &mut samples);
        samples
    }

    fn losses(samples: &[Sample]) -> Vec<Option<f64>> {
        samples.iter().map(|it| it.loss.map(|loss| (loss * 1e3).round() / 1e3)).collect()
    }

    const RECEIVED: StreamDirection = StreamDirection::Received;

    #[test]
    fn packets_that_come_late_are_not_lost() {
        let late =
            shared(RECEIVED, &[(88, Some(12)), (112, Some(-12)), (90, Some(10)), (104, Some(-4))]);
        assert_eq!(of(&late).map(|it| (it * 1e3).round()), Some(15.0));
        assert_eq!(late[0].loss, Some(0.0));
    }

    #[test]
    fn a_packet_that_comes_after_ten_seconds_is_a_duplicate() {
        let mut counted = vec![(90, Some(10))];
        counted.extend([(100, Some(0)); 9]);
        counted.push((101, Some(-1)));
        assert_eq!(losses(&shared(RECEIVED, &counted))[0], Some(0.1));
    }

    #[test]
    fn a_second_in_which_all_is_lost_weighs_as_much_as_others() {
        let all = shared(RECEIVED, &[(100, Some(0)), (0, Some(100)), (100, Some(0))]);
        assert_eq!(losses(&all), [Some(0.0), Some(1.0), Some(0.0)]);
        assert!((of(&all).unwrap() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn an_outage_that_is_counted_after_it_is_one_time() {
        let outage = [(170, Some(0)), (0, Some(0)), (0, Some(0)), (0, Some(0)), (170, Some(511))];
        let samples = shared(RECEIVED, &outage);
        assert_eq!(losses(&samples)[1..], [Some(0.75); 4]);
        for part in [&samples[1..], &samples[1..4], &samples[3..]] {
            assert_eq!(of(part).map(|it| (it * 1e3).round()), Some(750.0));
        }
        // A camera that was off for 3 s, and then a few packets are lost.
        let pause = [(170, Some(0)), (0, Some(0)), (0, Some(0)), (0, Some(0)), (160, Some(10))];
        assert_eq!(losses(&shared(RECEIVED, &pause))[3..], [None, Some(0.059)]);
        // The pause began within a second, which has few packets.
        let cut = [(170, Some(0)), (5, Some(0)), (0, Some(0)), (0, Some(0)), (7, Some(36))];
        assert_eq!(losses(&shared(RECEIVED, &cut))[3..], [None, Some(0.837)]);
    }

    #[test]
    fn a_receiver_report_counts_for_the_time_since_the_last_one() {
        let silent = (50, None);
        let reports = [(50, Some(5)), silent, silent, silent, silent, (50, Some(25)), silent];
        let samples = shared(StreamDirection::Sent, &reports);
        assert_eq!(losses(&samples)[..6], [Some(0.1); 6]);
        assert_eq!(samples[6].loss, None);
        assert!((of(&samples).unwrap() - 0.1).abs() < 1e-9);
    }
}
