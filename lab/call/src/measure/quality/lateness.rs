//! How late a page sees the frames of its own camera. Nothing but the machine lies between them, so
//! a page that is late says that delays of the call are delays of the machine, too.

use std::ops::Range;

use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::delays::Delays;

/// Records have tenths of a microsecond.
const DECIMALS: f64 = 1e4;
/// The lateness of 5 % of the frames above which a run is disturbed, in ms.
const LIMIT_MS: f64 = 10.0;

/// The lateness of the frames that were captured within `span`; `None` if there were none.
pub(super) fn of(late: &[(Timestamp, TimeDelta)], span: &Range<Timestamp>) -> Option<Delays> {
    let mut within = Vec::new();
    for (captured, late) in late {
        if span.contains(captured) {
            within.push(late.as_millis_f64());
        }
    }
    Delays::of(within, DECIMALS)
}

/// Why the run is disturbed; `None` if this participant saw its camera in time.
pub(crate) fn late_camera(name: &str, late: &Delays) -> Option<String> {
    (late.p95 > LIMIT_MS).then(|| {
        format!(
            "{name} saw 5 % of its camera's frames more than {:.1} ms late (limit {LIMIT_MS} ms)",
            late.p95
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a hundred frames, so many are seen 40 ms late, the others at once.
    fn camera(late: i64) -> Vec<(Timestamp, TimeDelta)> {
        let mut frames = Vec::new();
        for number in 0..100 {
            let ms = if number < late { 40 } else { 0 };
            frames.push((Timestamp::from_millis(33 * number), TimeDelta::from_millis(ms)));
        }
        frames
    }

    #[test]
    fn a_camera_seen_late_disturbs_the_run_and_a_few_late_frames_do_not() {
        let span = Timestamp::ZERO..Timestamp::from_secs(4);
        let few = of(&camera(4), &span).unwrap();
        assert_eq!((few.max, late_camera("a", &few)), (40.0, None));
        let many = of(&camera(10), &span).unwrap();
        let cause = late_camera("a", &many).unwrap();
        assert!(cause.contains("40.0 ms late (limit 10 ms)"), "{cause}");
    }

    #[test]
    fn frames_before_and_after_the_call_do_not_count() {
        let span = Timestamp::from_millis(33 * 10)..Timestamp::from_secs(4);
        assert_eq!(of(&camera(10), &span).unwrap().max, 0.0);
        assert_eq!(of(&camera(10), &(Timestamp::from_secs(9)..Timestamp::from_secs(10))), None);
    }
}
