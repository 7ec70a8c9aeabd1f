//! What the rules of all rivals have in common: what is chosen, and what it takes.

use weir::units::{Bitrate, TimeDelta};
use weir_sfu::{Kind, TrackConfig};

/// What is to be sent.
pub(super) struct Choice {
    pub levels: Vec<Option<usize>>,
    /// What the controller should probe for.
    pub desired: Option<Bitrate>,
    /// When to choose again.
    pub again: TimeDelta,
}

/// What a level of a track takes.
pub(super) fn cost(track: &TrackConfig, level: Option<usize>) -> Bitrate {
    let layer = level.and_then(|level| track.layers.get(level));
    layer.map_or(Bitrate::ZERO, |layer| layer.bitrate)
}

/// What all levels take, and audio.
pub(super) fn total(tracks: &[(&TrackConfig, Option<usize>)], levels: &[Option<usize>]) -> Bitrate {
    let mut sum = Bitrate::ZERO;
    for ((track, _), &level) in tracks.iter().zip(levels) {
        sum = sum + cost(track, if track.kind == Kind::Audio { Some(0) } else { level });
    }
    sum
}

/// The layer that fills the size at which a track is shown, with all its frames, or the largest
/// that is sent.
pub(super) fn best(tracks: &[(&TrackConfig, Option<usize>)]) -> Vec<Option<usize>> {
    let mut levels = Vec::with_capacity(tracks.len());
    for (track, _) in tracks {
        let mut level = None;
        for (index, layer) in track.layers.iter().enumerate() {
            let fills = level.is_some_and(|level: usize| {
                let found = track.layers[level];
                found.stream < layer.stream && found.height >= track.shown_height
            });
            if layer.bitrate > Bitrate::ZERO && !fills {
                level = Some(index);
            }
        }
        let is_shown = track.shown_height > 0 && track.kind != Kind::Audio;
        levels.push(level.filter(|_| is_shown));
    }
    levels
}

/// The next layer that is sent, up to `cap`.
pub(super) fn step(track: &TrackConfig, level: Option<usize>, cap: Option<usize>) -> Option<usize> {
    let first = level.map_or(0, |level| level + 1);
    (first..=cap?).find(|&layer| track.layers[layer].bitrate > Bitrate::ZERO)
}

/// What the tests of the rules choose from.
#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use weir_sfu::Layer;

    pub fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    /// A camera of three layers that is shown as large as it is.
    pub fn camera() -> TrackConfig {
        let layers = vec![
            Layer::new(0, 320, 180, kbps(150)),
            Layer::new(1, 640, 360, kbps(500)),
            Layer::new(2, 1280, 720, kbps(1_500)),
        ];
        TrackConfig::camera(layers).with_shown(1280, 720)
    }
}
