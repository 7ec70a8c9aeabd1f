//! How long the pictures that are queued have waited.
//!
//! While a window is closed or a target has fallen far, what is queued gets old. If it left when
//! the path is back, the receiver would get a burst of pictures that it cannot use, before those of
//! now. So old pictures are thrown away, and a key frame begins new ones.

use alloc::collections::VecDeque;

use weir::units::{DataSize, TimeDelta, Timestamp};

/// Pictures that waited longer are not worth sending. A large key frame of a screen takes almost as
/// long on a thin link.
const MAX_WAIT: TimeDelta = TimeDelta::from_secs(2);
/// A key frame that takes longer than that is not thrown away for another one at once.
const CUT_INTERVAL: TimeDelta = TimeDelta::from_secs(10);
/// How exactly times are known.
const MARK_INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// The bytes of pictures that were queued, by time.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// All that was queued since the last cut.
    queued: DataSize,
    /// The same at the end of each tenth of a second, under its start. The oldest first.
    marks: VecDeque<(Timestamp, DataSize)>,
    last_cut: Option<Timestamp>,
}

impl Waiting {
    /// Pictures of this size were queued.
    pub fn on_queued(&mut self, now: Timestamp, size: DataSize) {
        self.queued += size;
        if let Some((at, queued)) = self.marks.back_mut()
            && now - *at < MARK_INTERVAL
        {
            *queued = self.queued;
        } else {
            self.marks.push_back((now, self.queued));
        }
    }

    /// Whether pictures have waited too long, if this much is still in the queue. Call it several
    /// times a second.
    pub fn is_too_long(&mut self, now: Timestamp, in_queue: DataSize) -> bool {
        let left = self.queued.saturating_sub(in_queue);
        while let Some(&(_, queued)) = self.marks.front()
            && queued <= left
        {
            self.marks.pop_front();
        }
        let Some(&(oldest, _)) = self.marks.front() else { return false };
        // If most of it has not left since the last time, the path is too slow, whatever comes.
        let is_soon = matches!(self.last_cut, Some(at) if now - at < CUT_INTERVAL);
        now - oldest >= MAX_WAIT && !(is_soon && left * 2.0 >= self.queued)
    }

    /// What waited was thrown away.
    pub fn on_cut(&mut self, now: Timestamp) {
        self.queued = DataSize::ZERO;
        self.marks.clear();
        self.last_cut = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn bytes(bytes: i64) -> DataSize {
        DataSize::from_bytes(bytes as u64)
    }

    /// When what leaves a queue at this share of what comes is cut, in ms, up to a time.
    fn cuts(leaves: f64, until: i64) -> Vec<i64> {
        let (mut waiting, mut in_queue, mut cuts) = (Waiting::default(), 0.0, Vec::new());
        for step in 0..until / 100 {
            waiting.on_queued(at(step * 100), bytes(10_000));
            in_queue = f64::max(in_queue + 10_000.0 * (1.0 - leaves), 0.0);
            if waiting.is_too_long(at(step * 100), bytes(in_queue as i64)) {
                waiting.on_cut(at(step * 100));
                in_queue = 0.0;
                cuts.push(step * 100);
            }
        }
        cuts
    }

    #[test]
    fn what_stands_still_or_nearly_so_is_cut_every_few_seconds() {
        for (leaves, every) in [(0.0, 2_100), (0.1, 2_400), (0.3, 3_000)] {
            let found = cuts(leaves, 60_000);
            assert!(found.len() >= 15, "{leaves}: {found:?}");
            assert!(found.windows(2).all(|pair| pair[1] - pair[0] <= every), "{found:?}");
        }
    }

    // A host that stood still finds what it had queued just before.
    #[test]
    fn what_was_queued_before_the_host_stood_still_is_as_old_as_it_is() {
        for stands in [1_900, 2_000, 120_000] {
            let mut waiting = Waiting::default();
            assert!(!waiting.is_too_long(at(0), DataSize::ZERO));
            waiting.on_queued(at(60), bytes(1_000));
            let is_old = waiting.is_too_long(at(60 + stands), bytes(1_000));
            assert_eq!(is_old, stands >= 2_000, "{stands} ms");
        }
    }

    #[test]
    fn what_leaves_as_fast_as_it_comes_is_never_cut() {
        assert_eq!(cuts(1.0, 60_000), []);
    }

    // A queue of 2 s stands after 2 s / (1 - share).
    #[test]
    fn what_leaves_too_slowly_is_cut_when_it_is_old_and_not_again_at_once() {
        for (leaves, first) in [(0.6, 5_000), (0.8, 10_000), (0.9, 20_000)] {
            let found = cuts(leaves, 60_000);
            assert!((found[0] - first).abs() <= 300, "{leaves}: {found:?}");
            assert!(found.windows(2).all(|pair| pair[1] - pair[0] >= 10_000), "{found:?}");
        }
    }
}
