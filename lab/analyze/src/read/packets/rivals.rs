//! What others took of a bottleneck.
//!
//! A path that carries less of a call either has become slower, or carries packets of others
//! between those of the call. A slower path is slower for each packet. Others come between some
//! packets and not between others, so a few are still carried as fast as before.

use weir::units::{TimeDelta, Timestamp};

use super::passage::{CapacityMeasurement, Passage, WAITED};

/// A capacity below this share of the largest one has fallen.
const FELL: f64 = 0.7;
/// So far a packet's own rate may be from the largest capacity. A millisecond, the step of an event
/// log's times, is a fifth of what a large packet takes at 2 Mbit/s.
const AS_BEFORE: f64 = 0.15;
/// At least this share of the packets is carried as fast as before. Beside TCP a third to a half
/// were, after a fall of the capacity one in a hundred. In radio cells, where each packet has its
/// own rate, up to a quarter were.
const UNDIVIDED: f64 = 0.3;
/// So many packets in such a time are needed to tell.
const LEAST_PACKETS: usize = 20;
const LEAST_TIME: TimeDelta = TimeDelta::from_secs(2);

/// Says of each measurement what others took, where packets between which nobody came show it.
/// Measurements one after another that are all too low are judged together: a single one may hold
/// the moment of a fall.
pub(crate) fn find(
    passages: &[Passage],
    base: TimeDelta,
    offset: TimeDelta,
    measured: &mut [CapacityMeasurement],
) {
    let largest = measured.iter().map(|it| it.bps).fold(0.0, f64::max);
    for low in measured.chunk_by_mut(|a, b| has_fallen(a, largest) == has_fallen(b, largest)) {
        if !has_fallen(&low[0], largest) || !are_shared(passages, base, offset, low, largest) {
            continue;
        }
        for measurement in low {
            measurement.rivals_bps = Some(largest - measurement.bps);
        }
    }
}

fn has_fallen(measurement: &CapacityMeasurement, largest_bps: f64) -> bool {
    measurement.bps < FELL * largest_bps
}

/// Whether enough packets of these measurements were carried at this rate.
fn are_shared(
    passages: &[Passage],
    base: TimeDelta,
    offset: TimeDelta,
    low: &[CapacityMeasurement],
    bps: f64,
) -> bool {
    let time = low[0].from..low[low.len() - 1].to;
    let (mut all, mut undivided) = (0_usize, 0_usize);
    let mut last: Option<Timestamp> = None;
    for passage in passages {
        let Some(arrival) = passage.arrival else { continue };
        if let Some(before) = last
            && time.contains(&(passage.sent + offset))
            && passage.sent + base + WAITED <= before
            && before < arrival
        {
            let own = f64::from(passage.size) * 8.0 / (arrival - before).as_secs_f64();
            all += 1;
            undivided += usize::from((own / bps - 1.0).abs() <= AS_BEFORE);
        }
        last = Some(last.map_or(arrival, |before| before.max(arrival)));
    }
    let is_enough = all >= LEAST_PACKETS && time.end - time.start >= LEAST_TIME;
    is_enough && undivided as f64 >= UNDIVIDED * all as f64
}
