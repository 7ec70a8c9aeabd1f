//! Puts the changes of a pipeline's controller into a record, as those of a simulated run.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use weir::units::{Bitrate, Timestamp};
use weir_sim::trace::{RateChange, Row};

use crate::message::TargetChange;

/// Sets the target of each row to the target at its end. `changes` are sorted by time.
pub(crate) fn fill(rows: &mut [Row], changes: &[(Timestamp, TargetChange)]) {
    let Some((_, first)) = changes.first() else { return };
    for row in rows {
        let after = changes.partition_point(|(time, _)| *time <= row.time);
        let target = match after {
            0 => first.from_bps,
            _ => changes[after - 1].1.target_bps,
        };
        row.target = Some(Bitrate::from_bps(target));
    }
}

/// The changes during a flow, with reasons and signals.
pub(crate) fn rate_changes(
    changes: &[(Timestamp, TargetChange)],
    flow: usize,
    during: RangeInclusive<Timestamp>,
) -> impl Iterator<Item = RateChange> {
    let changes = changes.iter().filter(move |(time, _)| during.contains(time));
    changes.map(move |(time, change)| {
        let [from, to] = [change.from_bps, change.target_bps].map(Bitrate::from_bps);
        let signals = change.signals.iter();
        let signals = signals.map(|(name, value)| (Cow::Owned(name.clone()), *value)).collect();
        RateChange::new(*time, flow, from, to)
            .with_reason(change.reason.clone().into())
            .with_state(change.state.clone().into())
            .with_signals(signals)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(ms: i64, from: u64, to: u64) -> (Timestamp, TargetChange) {
        let (from_bps, target_bps) = (1000 * from, 1000 * to);
        let (reason, state) = ("overuse".into(), "decrease".into());
        let signals = [("rtt_ms".to_owned(), 40.0)].into();
        let change = TargetChange { time_ns: 0, from_bps, target_bps, reason, state, signals };
        (Timestamp::from_millis(ms), change)
    }

    #[test]
    fn a_row_has_the_target_at_its_end() {
        let changes = [change(-100, 200, 300), change(60, 300, 400), change(150, 400, 500)];
        let row = |ms| Row::new(Timestamp::from_millis(ms), 0);
        let targets = |changes: &[_]| {
            let mut rows = [row(50), row(100), row(150)];
            fill(&mut rows, changes);
            rows.map(|row| row.target)
        };
        let kbps = |kbps| Some(Bitrate::from_kbps(kbps));
        assert_eq!(targets(&changes), [kbps(300), kbps(400), kbps(500)]);
        assert_eq!(targets(&changes[1..]), [kbps(300), kbps(400), kbps(500)]);
        assert_eq!(targets(&[]), [None; 3]);
    }

    #[test]
    fn changes_during_the_flow_keep_reason_and_signals() {
        let changes = [change(-1, 200, 300), change(60, 300, 400), change(2001, 400, 500)];
        let during = Timestamp::ZERO..=Timestamp::from_secs(2);
        let kept: Vec<RateChange> = rate_changes(&changes, 3, during).collect();
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].flow, kept[0].to), (3, Bitrate::from_kbps(400)));
        assert_eq!((&*kept[0].reason, &*kept[0].state), ("overuse", "decrease"));
        assert_eq!(kept[0].signals, [("rtt_ms".into(), 40.0)]);
    }
}
