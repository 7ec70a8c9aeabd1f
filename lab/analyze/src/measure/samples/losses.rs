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
//! So a loss that becomes known late is shared by the time in which it may have happened, and the
//! sum over that time is lost over expected. In an outage of what is received, the packets that
//! came in each sample are known: a sample without packets lost all of them, and those in which it
//! began and ended lost what they lack of the usual rate. Of a sent stream, each sample of the time
//! has the same share.

use crate::measure::samples::Sample;
use crate::read::dump::StreamDirection;

/// A packet that comes after this time in s is a new one, or a duplicate.
const LATE_S: f64 = 5.0;
/// A silence in which at least this share of the usual packets was lost was an outage. Otherwise
/// the sender paused.
const OUTAGE: f64 = 0.5;
/// Samples on each side of an outage that tell the usual rate.
const USUAL_SAMPLES: usize = 5;
/// Multiple of how far the rates around an outage are from their median that is no chance, and the
/// fewest packets: the frames of a video differ, and reports do not come at the same moment.
const BEYOND_SPREAD: f64 = 2.0;
const LEAST_PACKETS: f64 = 3.0;
/// Standard deviations by which the packets of a report may differ from those sent since the last
/// one, by chance.
const BEYOND_CHANCE: f64 = 4.0;

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
    /// Missing packets since the stream began, in the first report of all.
    pub since_begin: Option<i64>,
}

impl Counted {
    /// Whether the missing packets are not among those that were counted as sent: those of a
    /// capture are not in it, and none of them was on its way.
    fn is_beside(&self, sent: u64) -> bool {
        let missing = u64::try_from(self.missing.unwrap_or(0)).unwrap_or(0);
        self.has_arrived && self.expected == Some(sent.saturating_add(missing))
    }
}

impl Sample {
    /// Whether a capture lacks packets that were sent all the same.
    pub fn lacks_sent(&self) -> bool {
        self.counted.missing > Some(0) && self.counted.is_beside(self.packets)
    }
}

/// Computes the loss of each sample from what the counters say.
pub(crate) fn share(direction: StreamDirection, samples: &mut [Sample]) {
    let lost = without_late(samples);
    let mut first = 0;
    let mut has_report = false;
    for index in 0..samples.len() {
        samples[index].loss = None;
        samples[index].expected = 0.0;
        if !samples[index].counted.is_reported {
            continue;
        }
        // What came before the first report of a dump is not known.
        let of_begin = if has_report { None } else { lost_since_begin(&samples[..=index]) };
        has_report = true;
        if let Some(lost_now) = lost[index].or(of_begin) {
            match direction {
                StreamDirection::Received => share_received(samples, &lost, index, lost_now),
                StreamDirection::Sent => {
                    let begin = reported_since(samples, first, index, lost_now);
                    let told = first - begin;
                    let more = share_evenly(&mut samples[begin..=index], told, lost_now);
                    take_from_before(&mut samples[..begin], more);
                }
            }
        }
        first = index + 1;
    }
}

/// What the first report of all says of the packets in these samples: some may have been sent
/// before the dump began, and lost as many of them.
fn lost_since_begin(samples: &[Sample]) -> Option<u64> {
    let last = samples.last()?;
    let lost = last.counted.since_begin?.max(0) as f64;
    let mut own = 0_u64;
    for sample in samples {
        own = own.saturating_add(sample.packets);
    }
    Some((lost * own as f64 / last.packets_so_far.max(own).max(1) as f64).round() as u64)
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

/// Shares what became known in a sample of a received stream: its own loss, or that of an outage
/// that it ends.
fn share_received(samples: &mut [Sample], lost: &[Option<u64>], index: usize, lost_now: u64) {
    let arrived = arrived_once(&samples[index]);
    let begin = if lost_now > 0 { outage(samples, lost, index) } else { None };
    let usual = begin.and_then(|begin| Usual::of(samples, begin, index));
    let Some((begin, usual)) = begin.zip(usual) else {
        return set_loss(&mut samples[index], arrived, lost_now as f64);
    };
    // What each sample lacks of the usual rate is its part of the outage.
    set_loss(&mut samples[index], arrived, 0.0);
    let mut lacks = Vec::new();
    for sample in &samples[begin..=index] {
        let known = arrived_once(sample) + own_loss(sample);
        lacks.push((usual.rate * length_s(sample) - known).max(0.0));
    }
    let all: f64 = lacks.iter().sum();
    if all <= 0.0 {
        return set_loss(&mut samples[index], arrived, lost_now as f64);
    }
    for (sample, lacks) in samples[begin..=index].iter_mut().zip(lacks) {
        let lost = own_loss(sample) + lost_now as f64 * lacks / all;
        set_loss(sample, arrived_once(sample), lost);
    }
}

/// Packets of a sample that are known to be lost so far.
fn own_loss(sample: &Sample) -> f64 {
    sample.loss.unwrap_or(0.0) * sample.expected
}

/// Packets of a received stream that came for the first time.
fn arrived_once(sample: &Sample) -> f64 {
    let expected = sample.counted.expected.unwrap_or(sample.packets);
    expected.saturating_add_signed(sample.counted.missing.unwrap_or(0).saturating_neg()) as f64
}

fn set_loss(sample: &mut Sample, arrived: f64, lost: f64) {
    sample.expected = arrived + lost;
    sample.loss = (sample.expected > 0.0).then(|| lost / sample.expected);
}

/// The sample in which an outage began that this sample ends; `None` if there was none. It may have
/// begun within the sample before the silent ones, or lasted for less than a sample.
fn outage(samples: &[Sample], lost: &[Option<u64>], index: usize) -> Option<usize> {
    let mut first = index;
    while first > 0 && samples[first - 1].packets == 0 && lost[first - 1] == Some(0) {
        first -= 1;
    }
    let begin = first.checked_sub(1)?;
    let usual = Usual::of(samples, begin, index)?;
    let lost_now = lost[index]? as f64;
    let silent_s = samples[index].start_s - samples[first].start_s;
    if silent_s > 0.0 {
        return (lost_now >= OUTAGE * usual.rate * silent_s).then_some(begin);
    }
    // More is lost than fits in this sample, and the one before lacks some.
    let [before, own] = [begin, index].map(|at| length_s(&samples[at]));
    let too_many = lost_now + arrived_once(&samples[index]) - usual.rate * own;
    let lacks = usual.rate * before - arrived_once(&samples[begin]) - own_loss(&samples[begin]);
    let chance = (BEYOND_SPREAD * usual.spread * own.max(before)).max(LEAST_PACKETS);
    (too_many.min(lacks) >= chance).then_some(begin)
}

/// Packets a second around a time, of the samples that have any.
#[derive(Clone, Copy)]
struct Usual {
    /// Their median.
    rate: f64,
    /// How far they are from it at most.
    spread: f64,
}

impl Usual {
    fn of(samples: &[Sample], begin: usize, end: usize) -> Option<Self> {
        let before = samples[..begin].iter().rev().filter(|it| it.packets > 0);
        let after = samples[end + 1..].iter().filter(|it| it.packets > 0);
        let mut rates = Vec::new();
        for sample in before.take(USUAL_SAMPLES).chain(after.take(USUAL_SAMPLES)) {
            let missing = sample.counted.missing.unwrap_or(0).max(0) as f64;
            rates.push((arrived_once(sample) + missing) / length_s(sample));
        }
        if rates.is_empty() {
            // A short call: the sample in which it began may have few.
            rates.push(arrived_once(&samples[begin]) / length_s(&samples[begin]));
        }
        rates.sort_by(f64::total_cmp);
        let rate = rates[rates.len() / 2];
        let spread = (rate - rates[0]).max(rates[rates.len() - 1] - rate);
        (rate > 0.0).then_some(Self { rate, spread })
    }
}

fn length_s(sample: &Sample) -> f64 {
    (sample.end_s - sample.start_s).max(f64::MIN_POSITIVE)
}

/// The first sample of which a receiver's report speaks: the one after the last report, or an
/// earlier one if this report knows of more packets than were sent since. In an outage, the reports
/// say nothing new.
fn reported_since(samples: &[Sample], first: usize, index: usize, lost: u64) -> usize {
    let since = &samples[first..=index];
    if samples[index].lacks_sent() {
        return first;
    }
    let own: f64 = since.iter().map(sent_once).sum();
    let known = known_expected(since);
    // Without a count, the packets of this report may all be behind the lost ones.
    let all = match known {
        Some(known) => known as f64,
        None if lost as f64 > own => lost as f64 + sent_once(&samples[index]),
        None => own,
    };
    let (mut begin, mut covered) = (first, own);
    // What was on its way at the last report belongs to this one. With a queue, that is much.
    let mut rate: f64 = 0.0;
    for sample in &samples[first.saturating_sub(1)..=index] {
        rate = rate.max(sent_once(sample) / length_s(sample));
    }
    let on_its_way = rate * samples[index].rtt_ms.unwrap_or(0.0) / 1e3;
    let slack = on_its_way + BEYOND_CHANCE * own.sqrt();
    while begin > 0 && covered + slack < all && samples[begin - 1].loss.unwrap_or(0.0) == 0.0 {
        begin -= 1;
        covered += sent_once(&samples[begin]);
    }
    if lost as f64 >= OUTAGE * covered { begin } else { first }
}

/// Packets of a sent stream that were sent for the first time.
fn sent_once(sample: &Sample) -> f64 {
    match sample.counted.has_arrived {
        true => sample.packets as f64,
        false => sample.counted.expected.unwrap_or(sample.packets) as f64,
    }
}

/// Packets of which the far end knows, where it says so.
fn known_expected(samples: &[Sample]) -> Option<u64> {
    let mut known = 0_u64;
    for sample in samples {
        let counted = &sample.counted;
        known = known.saturating_add(counted.expected.filter(|_| counted.has_arrived)?);
    }
    Some(known)
}

/// Gives the samples of a sent stream one share: what is lost of all packets of which the report
/// speaks. Of the first `told` samples, earlier reports have told how many were expected. Returns
/// how many more are lost than were sent in them.
fn share_evenly(samples: &mut [Sample], told: usize, lost: u64) -> f64 {
    let (before, since) = samples.split_at(told);
    let expected = match known_expected(since) {
        Some(known) => known as f64,
        None => since.iter().map(sent_once).sum(),
    };
    let sent = before.iter().map(|it| it.expected).sum::<f64>() + expected;
    let expected = sent.max(lost as f64);
    let packets: u64 = samples.iter().map(|it| it.packets).fold(0, u64::saturating_add);
    let seconds: f64 = samples.iter().map(|it| it.end_s - it.start_s).sum();
    for sample in samples {
        let part = match packets {
            0 => (sample.end_s - sample.start_s) / seconds.max(f64::MIN_POSITIVE),
            _ => sample.packets as f64 / packets as f64,
        };
        sample.expected = expected * part;
        sample.loss = (expected > 0.0).then(|| lost as f64 / expected);
    }
    expected - sent
}

/// Takes lost packets that were sent before from those that seemed to have arrived: they were on
/// their way at the last report.
fn take_from_before(before: &mut [Sample], mut count: f64) {
    for sample in before.iter_mut().rev() {
        if count <= 0.0 {
            return;
        }
        let lost = own_loss(sample);
        let taken = count.min(sample.expected - lost).max(0.0);
        set_loss(sample, sample.expected - lost - taken, lost);
        count -= taken;
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
                    since_begin: None,
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

    /// Packets that came in each second, and the growth of the missing ones, of 170 a second of
    /// which none came from `from_s` to `to_s`.
    fn with_outage(from_s: f64, to_s: f64) -> Vec<(u64, Option<i64>)> {
        let mut counted = Vec::new();
        let (mut missing, mut told) = (0_i64, 0_i64);
        for second in 0..30 {
            let mut came = 0;
            for packet in 0..170 {
                let at_s = f64::from(second) + f64::from(packet) / 170.0;
                if (from_s..to_s).contains(&at_s) {
                    missing += 1;
                } else {
                    came += 1;
                    told = missing;
                }
            }
            let before: i64 = counted.iter().filter_map(|(_, missing)| *missing).sum();
            counted.push((came, Some(told - before)));
        }
        counted
    }

    #[test]
    fn a_silent_sample_of_an_outage_lost_all_and_its_ends_what_they_lack() {
        for tenths in 5..100 {
            for offset in 0..10 {
                let from_s = 10.0 + f64::from(offset) / 10.0;
                let to_s = from_s + f64::from(tenths) / 10.0;
                let samples = shared(RECEIVED, &with_outage(from_s, to_s));
                for sample in &samples {
                    let inside = (to_s.min(sample.end_s) - from_s.max(sample.start_s)).max(0.0);
                    let loss = sample.loss.unwrap();
                    let at = format!("{from_s} to {to_s} s: {loss} in {} s", sample.start_s);
                    assert!((loss - inside).abs() < 0.03, "{at}, not {inside}");
                }
            }
        }
    }

    #[test]
    fn an_outage_of_no_whole_sample_begins_where_single_packets_were_lost_too() {
        let good = (170, Some(0));
        // It began within the second sample, which had lost one packet.
        let samples = shared(RECEIVED, &[good, (50, Some(1)), (70, Some(219)), good, good]);
        assert_eq!(losses(&samples)[1..3], [Some(0.706), Some(0.588)]);
    }

    #[test]
    fn a_camera_that_was_off_is_no_outage() {
        // It was off for 3 s, and then a few packets are lost.
        let pause = [(170, Some(0)), (0, Some(0)), (0, Some(0)), (0, Some(0)), (160, Some(10))];
        assert_eq!(losses(&shared(RECEIVED, &pause))[3..], [None, Some(0.059)]);
        // The pause began within a second, which has few packets.
        let cut = [(170, Some(0)), (5, Some(0)), (0, Some(0)), (0, Some(0)), (7, Some(36))];
        assert_eq!(losses(&shared(RECEIVED, &cut))[3..], [None, Some(0.837)]);
    }

    #[test]
    fn no_more_are_lost_than_were_sent() {
        let sent = StreamDirection::Sent;
        // A queue: most of what is sent is sent again, and what was lost left before.
        let (good, queued) = ((300, Some(0)), (20, None));
        let counted = [good, good, good, queued, (0, Some(179)), (103, Some(0)), (3, Some(36))];
        let samples = shared(sent, &counted);
        let expected: f64 = samples.iter().map(|it| it.expected).sum();
        let lost: f64 = samples.iter().map(own_loss).sum();
        assert_eq!((expected.round(), lost.round()), (1_026.0, 215.0));
        assert!(samples.iter().all(|it| it.loss.is_none_or(|loss| loss <= 1.0)));
    }

    #[test]
    fn two_outages_with_a_second_between_count_each_packet_once() {
        let (good, none) = ((170, Some(0)), (0, Some(0)));
        let counted = [good, good, none, none, (85, Some(425)), none, none, (170, Some(425)), good];
        let samples = shared(RECEIVED, &counted);
        let lost: f64 = samples.iter().map(own_loss).sum();
        assert!((lost - 850.0).abs() < 1e-6, "{lost}");
        assert_eq!(losses(&samples)[2..7], [1.0, 1.0, 0.5, 1.0, 1.0].map(Some));
    }

    #[test]
    fn an_outage_of_a_sent_stream_begins_before_the_report_that_tells_it() {
        let good = (170, Some(0));
        let outage = [good, good, good, good, good, (170, Some(510)), good];
        // How many of the last second's packets came is not known.
        let samples = shared(StreamDirection::Sent, &outage);
        assert_eq!(losses(&samples)[1], Some(0.0));
        assert_eq!(losses(&samples)[2..6], [Some(0.75); 4]);
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
