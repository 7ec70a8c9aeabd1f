//! Feedback by the library's numbers, from what str0m has parsed.

use std::time::{Duration, Instant};

use str0m::rtp::rtcp::Twcc;
use weir::Timestamp;
use weir::feedback::{FeedbackReport, TwccHeader};
use weir::media_sender::MediaSender;

use crate::numbers::Numbers;

/// Units of a report's reference time and of its arrivals [TWCC].
///
/// [TWCC]: https://datatracker.ietf.org/doc/html/draft-holmer-rmcat-transport-wide-cc-extensions-01
const REFERENCE_TICK: Duration = Duration::from_millis(64);
const ARRIVAL_TICK_US: i64 = 250;
/// Arrivals may be before the reference time, so str0m's zero is not at the start of all times.
const ZERO: Duration = Duration::from_secs(60);

/// Passes a report to the controller. Returns what was news.
pub(crate) fn on_report<'a, M>(
    now: Timestamp,
    origin: Instant,
    report: &Twcc,
    numbers: &Numbers,
    media: &'a mut MediaSender<M>,
) -> Option<&'a FeedbackReport> {
    let zero = origin + ZERO;
    let reference = zero + REFERENCE_TICK * report.reference_time;
    let mut packets = Vec::new();
    for (theirs, _, arrival) in report.clone().into_iter(zero, 0.into()) {
        let Some(ours) = numbers.get(*theirs as u16) else { continue };
        packets.push((ours, arrival.map(|at| ticks_after(reference, at))));
    }
    // A repeat of str0m's can leave between two packets that were numbered before it.
    packets.sort_unstable_by_key(|&(ours, _)| ours);
    let header =
        TwccHeader { reference_time: report.reference_time, feedback_count: report.feedback_count };
    let packets = packets.into_iter().map(|(ours, ticks)| (ours as u16, ticks));
    media.on_feedback(now, |history| history.on_twcc(header, packets))
}

/// An arrival as feedback writes it; negative before the reference time.
fn ticks_after(reference: Instant, at: Instant) -> i32 {
    let after = at.saturating_duration_since(reference).as_micros() as i64;
    let before = reference.saturating_duration_since(at).as_micros() as i64;
    ((after - before) / ARRIVAL_TICK_US) as i32
}

#[cfg(test)]
mod tests {
    use weir::units::{Bitrate, DataSize, TimeDelta};
    use weir::{Algorithm, RateLimits};
    use weir_wire::twcc::Builder;

    use super::*;

    /// Packets with their arrivals in ms, and how many reports were missing before.
    type Heard = (Vec<(i64, Option<i64>)>, u32);

    /// What the controller gets of these reports, each a list of numbers and arrivals in ms; `None`
    /// is a report that is lost.
    fn heard(reports: &[Option<&[(i64, i64)]>]) -> Vec<Heard> {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(30), kbps(300), kbps(2_500)).unwrap();
        let mut media = MediaSender::<(), _>::new(Algorithm::Gcc.build(limits));
        let mut numbers = Numbers::default();
        for theirs in 0..40 {
            let size = DataSize::from_bytes(1_000);
            let sent = media.on_packet_sent(Timestamp::from_millis(theirs), size, None);
            numbers.insert(theirs as u16, sent.sequence_number);
        }
        let (origin, mut builder) = (Instant::now(), Builder::new(1, 2));
        let mut heard = Vec::new();
        for report in reports {
            let arrivals = report.unwrap_or(&[(4, 4_000)]).iter();
            let arrivals: Vec<(i64, i64)> = arrivals.map(|&(n, ms)| (n, ms * 1_000)).collect();
            builder.build(&arrivals, 1_200, |bytes| {
                if report.is_none() {
                    return;
                }
                let parsed = Twcc::try_from(&bytes[4..]).unwrap();
                let now = Timestamp::from_millis(100);
                if let Some(news) = on_report(now, origin, &parsed, &numbers, &mut media) {
                    let since = |at: Timestamp| at - Timestamp::ZERO;
                    let ms = |at| since(at).as_micros() / TimeDelta::from_millis(1).as_micros();
                    let rows = news.packets.iter();
                    let rows = rows.map(|row| (row.sequence_number, row.arrival_time.map(ms)));
                    heard.push((rows.collect(), news.missing_feedback));
                }
            });
        }
        heard
    }

    #[test]
    fn packets_between_two_reports_of_which_one_is_lost_are_not_lost() {
        let reports: [Option<&[(i64, i64)]>; 3] =
            [Some(&[(0, 4_000), (2, 4_010)]), None, Some(&[(5, 4_020), (6, 4_030)])];
        let expected = vec![
            (vec![(0, Some(4_000)), (1, None), (2, Some(4_010))], 0),
            (vec![(5, Some(4_020)), (6, Some(4_030))], 1),
        ];
        assert_eq!(heard(&reports), expected);
    }
}
