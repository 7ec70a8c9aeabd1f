use weir_emu::Sample;
use weir_record::calls::derive::Sent;

use super::*;

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

#[test]
fn an_estimate_is_in_the_rows_after_its_report_and_a_rate_in_those_before() {
    let sample = |index: i64| Sample {
        time: ms(50 * (index + 1)),
        capacity: None,
        mean_capacity: None,
        queued: DataSize::ZERO,
        queuing_delay: TimeDelta::ZERO,
        traffic: TrafficTotals::default(),
    };
    let link = DirectionRecord { samples: (0..6).map(sample).collect(), ..Default::default() };
    let interval = |from, to, kbps, rtt| Interval {
        start: ms(from),
        end: ms(to),
        sent: Some(Sent { rtt: Some(TimeDelta::from_millis(rtt)), ..Sent::default() }),
        estimated_bitrate: Some(Bitrate::from_kbps(kbps)),
        ..Interval::default()
    };
    let (start, stop) = (ms(0), ms(300));
    let path = Path { flow: 0, start, stop, legs: vec![None], links: vec![&link] };
    let rows = path.rows(&[interval(-10, 100, 300, 20), interval(100, 205, 900, 30)]);
    let rtts: Vec<_> = rows.iter().map(|row| row.rtt.map(TimeDelta::as_millis)).collect();
    assert_eq!(rtts, [Some(20), Some(20), Some(30), Some(30), None, None]);
    let targets: Vec<_> = rows.iter().map(|row| row.target).collect();
    let first = Some(Bitrate::from_kbps(300));
    assert_eq!(targets, [None, None, first, first, None, None]);
}
