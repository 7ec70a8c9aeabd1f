//! What the target leaves for new media, beside packets that are sent again.

use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// The window of the rate, in parts.
const PARTS: usize = 10;
const PART: TimeDelta = TimeDelta::from_millis(100);
/// Minimum share of the media in the target. After a cut of the target, the repair of the last
/// second still belongs to the old, higher rate.
const MIN_MEDIA_SHARE: f64 = 0.5;

/// The bytes of repair in the last second.
#[derive(Clone, Debug, Default)]
pub(super) struct RepairRate {
    parts: [DataSize; PARTS],
    /// The part of time that is the newest one here.
    newest: i64,
}

impl RepairRate {
    pub(super) fn on_packet(&mut self, now: Timestamp, size: DataSize) {
        let part = part_of(now);
        let passed = (part - self.newest).clamp(0, PARTS as i64);
        for back in 0..passed {
            self.parts[index(part - back)] = DataSize::ZERO;
        }
        self.newest = part;
        self.parts[index(part)] += size;
    }

    /// What is left of the target [LIBWEBRTC §FecControllerDefault].
    pub(super) fn media_bitrate(&self, now: Timestamp, target: Bitrate) -> Bitrate {
        let (newest, window) = (part_of(now), PART * PARTS as i64);
        let mut repair = DataSize::ZERO;
        // The sender's time may be before all times, until its first event.
        for back in (newest - self.newest).max(0)..PARTS as i64 {
            repair += self.parts[index(newest - back)];
        }
        target.saturating_sub(repair / window).max(target * MIN_MEDIA_SHARE)
    }
}

fn part_of(now: Timestamp) -> i64 {
    now.as_nanos().div_euclid(PART.as_nanos())
}

fn index(part: i64) -> usize {
    part.rem_euclid(PARTS as i64) as usize
}
