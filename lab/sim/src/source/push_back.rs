//! The part of a controller's push-back that a source carries out by discarding pictures.

use weir::units::Bitrate;

// Parameters of the push-back [LIBWEBRTC §VideoStreamEncoder].
/// A push-back up to this value is ignored. At most one picture in this many is discarded.
const LEAST_PUSH_BACK: f64 = 0.01;
const LEAST_GROUP: u32 = 2;

/// The part of a controller's push-back that the source carries out [LIBWEBRTC
/// §VideoStreamEncoder].
#[derive(Clone, Debug, Default)]
pub(super) struct PushBack {
    /// Number of pictures that came during push-back.
    pictures: u32,
}

impl PushBack {
    /// Returns the rate after push-back, and whether this picture is discarded. One picture is
    /// discarded in each group; the size of the group is the inverse of the rate reduction.
    pub(super) fn divide(&mut self, rate: Bitrate, share: f64) -> (Bitrate, bool) {
        if 1.0 - share <= LEAST_PUSH_BACK {
            return (rate, false);
        }
        let group = ((1.0 / (1.0 - share)) as u32).max(LEAST_GROUP);
        let is_thrown_away = self.pictures.is_multiple_of(group);
        self.pictures += 1;
        (rate * (1.0 - 1.0 / f64::from(group)), is_thrown_away)
    }
}
