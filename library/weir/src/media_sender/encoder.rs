//! What the encoder may make: what the target leaves beside packets that are sent again, and beside
//! those that wait.

use crate::controller::Target;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A picture that is taken while more than this waits would be late: see
/// [`MediaSender::wants_frame`](super::MediaSender::wants_frame).
pub const MAX_QUEUE_FOR_FRAMES: TimeDelta = TimeDelta::from_millis(250);

/// A queue of this length is usual: the last frame is still leaving.
const USUAL_QUEUE: TimeDelta = TimeDelta::from_millis(50);
/// What waits beyond that leaves within this time, because the encoder makes that much less.
const DRAIN_TIME: TimeDelta = TimeDelta::from_millis(500);
/// The window of the rate, in parts.
const PARTS: usize = 10;
const PART: TimeDelta = TimeDelta::from_millis(100);
/// Minimum share of new media in the target. After a cut of the target, the repair of the last
/// second, and what waits, still belong to the old, higher rate.
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

    /// The rate of repair in the last second.
    pub(super) fn rate(&self, now: Timestamp) -> Bitrate {
        let (newest, window) = (part_of(now), PART * PARTS as i64);
        let mut repair = DataSize::ZERO;
        // The sender's time may be before all times, until its first event.
        for back in (newest - self.newest).max(0)..PARTS as i64 {
            repair += self.parts[index(newest - back)];
        }
        repair / window
    }
}

/// What is left of the target for new media, beside repair [LIBWEBRTC §FecControllerDefault] and
/// what waits.
pub(super) fn media_bitrate(target: &Target, queued: DataSize, repair: Bitrate) -> Bitrate {
    let whole = target.source_bitrate;
    let excess = queued.saturating_sub(target.pacing_rate * USUAL_QUEUE);
    let left = whole.saturating_sub(repair).saturating_sub(excess / DRAIN_TIME);
    left.max(whole * MIN_MEDIA_SHARE)
}

/// How long this many bytes take to leave at the pacing rate.
pub(super) fn queue_time(target: &Target, queued: DataSize) -> TimeDelta {
    if target.pacing_rate == Bitrate::ZERO {
        return TimeDelta::ZERO;
    }
    queued / target.pacing_rate
}

fn part_of(now: Timestamp) -> i64 {
    now.as_nanos().div_euclid(PART.as_nanos())
}

fn index(part: i64) -> usize {
    part.rem_euclid(PARTS as i64) as usize
}
