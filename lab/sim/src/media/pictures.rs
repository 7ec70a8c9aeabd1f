//! How the pictures look that were shown.
//!
//! The sender computes it, because the receiver has no pictures. In a call both ends' pictures are
//! compared afterwards.

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

/// VMAF of a picture, in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vmaf(pub(crate) u64);

/// Capture times are rounded to the video clock on the way.
const SAME_TIME: TimeDelta = TimeDelta::from_micros(100);

/// Pictures that were not shown yet, and those shown since they were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Pictures {
    coming: VecDeque<(Timestamp, Vmaf)>,
    sum: u64,
    count: u64,
}

impl Pictures {
    pub(super) fn push(&mut self, captured: Timestamp, vmaf: Vmaf) {
        self.coming.push_back((captured, vmaf));
    }

    /// The picture captured at this time is on the screen.
    pub(super) fn on_shown(&mut self, captured: Timestamp) {
        while self.coming.front().is_some_and(|(at, _)| *at + SAME_TIME < captured) {
            self.coming.pop_front();
        }
        if let Some((at, Vmaf(vmaf))) = self.coming.front()
            && *at <= captured + SAME_TIME
        {
            self.sum += vmaf;
            self.count += 1;
            self.coming.pop_front();
        }
    }

    /// Mean over the pictures shown since the last call, in hundredths.
    pub(super) fn take_mean(&mut self) -> Option<u64> {
        let mean = self.sum.checked_div(self.count);
        (self.sum, self.count) = (0, 0);
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_was_not_shown_does_not_count() {
        let at = Timestamp::from_millis;
        let mut pictures = Pictures::default();
        for (ms, vmaf) in [(0, 9_000), (33, 1_000), (66, 8_000), (100, 7_000)] {
            pictures.push(at(ms), Vmaf(vmaf));
        }
        pictures.on_shown(at(0));
        pictures.on_shown(at(66) + TimeDelta::from_micros(7));
        assert_eq!(pictures.take_mean(), Some(8_500));
        assert_eq!(pictures.take_mean(), None);
        pictures.on_shown(at(100));
        assert_eq!(pictures.take_mean(), Some(7_000));
    }
}
