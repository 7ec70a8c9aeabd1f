//! A stream second by second, for the table `seconds` of a fleet.

use std::collections::BTreeMap;

use crate::measure::samples::Sample;

/// Reports that are further apart say nothing of a single second.
const MAX_GAP_S: f64 = 60.0;

/// What the reports say of a second of a stream. A report that covers several seconds counts in
/// each; of several in one second the latest counts, but rates and losses are of all.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FleetSecond {
    /// Begin in s since the first report of the dump.
    pub second: u64,
    /// Mean rate of IP packets.
    pub rate_kbps: f64,
    /// Target of the encoder.
    pub target_kbps: Option<f64>,
    /// The browser's estimate of what the path carries.
    pub estimate_kbps: Option<f64>,
    /// Latest round-trip time of the connection.
    pub rtt_ms: Option<f64>,
    /// Share of lost packets.
    pub loss_ratio: Option<f64>,
    /// Frames encoded or decoded a second.
    pub frames_per_second: Option<f64>,
    /// Height of the frames.
    pub height_px: Option<u64>,
    /// Mean time of a frame in the jitter buffer.
    pub jitter_buffer_ms: Option<f64>,
    /// Seconds of the freezes that ended in it. They may have begun before.
    pub frozen_s: f64,
}

/// The sums of a second.
#[derive(Default)]
struct Sums {
    second: FleetSecond,
    bits: f64,
    covered_s: f64,
    lost: f64,
    packets: f64,
}

impl Sums {
    fn add(&mut self, sample: &Sample, covered_s: f64) {
        let own = &mut self.second;
        self.bits += sample.rate_bps * covered_s;
        self.covered_s += covered_s;
        if let Some(loss) = sample.loss {
            self.lost += loss * sample.expected;
            self.packets += sample.expected;
        }
        own.target_kbps = kbps(sample.target_bps).or(own.target_kbps);
        own.estimate_kbps = kbps(sample.estimate_bps).or(own.estimate_kbps);
        own.rtt_ms = sample.rtt_ms.or(own.rtt_ms);
        own.frames_per_second = sample.frame_rate.or(own.frames_per_second);
        own.height_px = sample.size.map(|(_, height)| height.into()).or(own.height_px);
        own.jitter_buffer_ms = sample.jitter_buffer_ms.or(own.jitter_buffer_ms);
    }

    fn finish(self, number: u64) -> FleetSecond {
        FleetSecond {
            second: number,
            rate_kbps: if self.covered_s > 0.0 { self.bits / self.covered_s / 1e3 } else { 0.0 },
            loss_ratio: (self.packets > 0.0).then(|| (self.lost / self.packets).min(1.0)),
            ..self.second
        }
    }
}

fn kbps(bps: Option<f64>) -> Option<f64> {
    Some(bps? / 1e3)
}

/// The seconds of a stream that its samples cover, in order.
pub(crate) fn seconds(samples: &[Sample]) -> Vec<FleetSecond> {
    let mut sums: BTreeMap<u64, Sums> = BTreeMap::new();
    for sample in samples {
        let (start_s, end_s) = (sample.start_s.max(0.0), sample.end_s);
        if !(end_s > start_s && end_s - start_s <= MAX_GAP_S) {
            continue;
        }
        let (first, last) = (start_s.floor() as u64, end_s.ceil() as u64);
        for number in first..last {
            let begin_s = number as f64;
            let covered_s = end_s.min(begin_s + 1.0) - start_s.max(begin_s);
            sums.entry(number).or_default().add(sample, covered_s);
        }
        let own = sums.entry(last.saturating_sub(1)).or_default();
        own.second.frozen_s += sample.frozen_s;
    }
    let mut rows = Vec::with_capacity(sums.len());
    for (number, own) in sums {
        rows.push(own.finish(number));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(start_s: f64, end_s: f64, rate_bps: f64) -> Sample {
        Sample { start_s, end_s, rate_bps, ..Sample::default() }
    }

    #[test]
    fn a_report_counts_in_each_second_that_it_covers() {
        let mut second = sample(0.5, 2.0, 3e6);
        (second.rtt_ms, second.frozen_s) = (Some(80.0), 0.4);
        let rows = seconds(&[sample(0.0, 0.5, 1e6), second]);
        let kept: Vec<(u64, f64, Option<f64>, f64)> =
            rows.iter().map(|it| (it.second, it.rate_kbps, it.rtt_ms, it.frozen_s)).collect();
        let rtt = Some(80.0);
        assert_eq!(kept, [(0, 2_000.0, rtt, 0.0), (1, 3_000.0, rtt, 0.4)]);
    }

    #[test]
    fn losses_are_weighted_by_their_packets() {
        let mut one = sample(0.0, 0.5, 1e6);
        (one.loss, one.expected) = (Some(0.1), 90.0);
        let mut other = sample(0.5, 1.0, 1e6);
        (other.loss, other.expected) = (Some(1.0), 10.0);
        assert_eq!(seconds(&[one, other])[0].loss_ratio, Some(0.19));
    }

    #[test]
    fn reports_that_are_far_apart_or_turn_back_have_no_rows() {
        let strange = [sample(0.0, 1e15, 1.0), sample(5.0, 4.0, 1.0), sample(0.0, f64::NAN, 1.0)];
        assert_eq!(seconds(&strange), []);
        assert_eq!(seconds(&[sample(1e12, 1e12 + 1.0, 1.0)]).len(), 1);
    }
}
