//! Good time of a subscriber's cameras: what each half second was like for the person who watched.

use weir::units::TimeDelta;
use weir_sfu::{Layer, TrackConfig};

use crate::config::Content;
use crate::source::picture_vmaf;
use crate::trace::{HalfSecond, ROW_INTERVAL};

/// Rows of a half second.
const ROWS: u64 = TimeDelta::from_millis(500).as_nanos() as u64 / ROW_INTERVAL.as_nanos() as u64;

/// Pictures that were shown in an interval, and the sum of their delays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    pub frames: u64,
    pub delays: TimeDelta,
}

/// The half second of one camera that is not over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GoodTime {
    rows: u64,
    /// Pictures were shown since the camera was last hidden.
    has_begun: bool,
    shown: Shown,
    /// VMAF of the picture shown last.
    vmaf: Option<f64>,
}

impl GoodTime {
    /// The camera is hidden, or away: nobody watches.
    pub fn stop(&mut self) {
        *self = Self { rows: self.rows + 1, ..Self::default() };
    }

    /// The next row, with the layer that is sent. Returns a half second that is over.
    pub fn push(
        &mut self,
        shown: Shown,
        content: Content,
        config: &TrackConfig,
        layer: Option<usize>,
    ) -> Option<HalfSecond> {
        self.rows += 1;
        self.has_begun |= shown.frames > 0;
        self.shown.frames += shown.frames;
        self.shown.delays += shown.delays;
        if shown.frames > 0 {
            self.vmaf = layer.and_then(|layer| vmaf(content, config, layer)).or(self.vmaf);
        }
        if !self.rows.is_multiple_of(ROWS) {
            return None;
        }
        let Shown { frames, delays } = std::mem::take(&mut self.shown);
        let delay = if frames > 0 { Some(delays.as_millis_f64() / frames as f64) } else { None };
        self.vmaf.filter(|_| self.has_begun).map(|vmaf| HalfSecond::judge(frames, delay, vmaf))
    }
}

/// VMAF of a layer at the size at which the track is shown, or of the largest layer if that is
/// smaller. A meeting shows a head where the content has no model.
fn vmaf(content: Content, config: &TrackConfig, layer: usize) -> Option<f64> {
    let layer = whole_stream(&config.layers, layer)?;
    let pixels = pixels_of(layer);
    let largest = config.layers.iter().map(pixels_of).fold(0.0, f64::max);
    let shown = f64::from(config.shown_width) * f64::from(config.shown_height);
    let bits = layer.bitrate.as_bps_f64() / layer.frame_rate.max(1.0) / pixels.max(1.0);
    let content = if content == Content::Film { content } else { Content::Head };
    picture_vmaf(content, shown.min(largest), bits, pixels, layer.frame_rate)
}

fn pixels_of(layer: &Layer) -> f64 {
    f64::from(layer.width) * f64::from(layer.height)
}

/// A picture is as good when frames between are left out, so the layer with all frames of its
/// stream counts. `None` if nothing is sent of it.
fn whole_stream(layers: &[Layer], layer: usize) -> Option<&Layer> {
    let stream = layers.get(layer)?.stream;
    let mut best: Option<&Layer> = None;
    for other in layers {
        let is_better = best.is_none_or(|best| other.frame_rate > best.frame_rate);
        if other.stream == stream && other.bitrate.as_bps() > 0 && is_better {
            best = Some(other);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::units::Bitrate;

    fn track() -> TrackConfig {
        let layers = vec![
            Layer::new(0, 320, 180, Bitrate::from_kbps(150)),
            Layer::new(1, 640, 360, Bitrate::from_kbps(500)),
        ];
        TrackConfig::camera(layers).with_shown(640, 360)
    }

    /// The half seconds of rows with so many pictures of 100 ms, in this layer.
    fn halves(good: &mut GoodTime, rows: u64, frames: u64, layer: usize) -> Vec<HalfSecond> {
        let shown = Shown { frames, delays: TimeDelta::from_millis(100) * frames as i64 };
        let (track, mut halves) = (track(), Vec::new());
        for _ in 0..rows {
            halves.extend(good.push(shown, Content::Noise, &track, Some(layer)));
        }
        halves
    }

    #[test]
    fn a_half_second_has_ten_rows_and_begins_to_count_with_a_picture() {
        let mut good = GoodTime::default();
        assert_eq!(halves(&mut good, 20, 0, 1), []);
        assert_eq!(halves(&mut good, 20, 1, 1), [HalfSecond::Good; 2]);
        assert_eq!(halves(&mut good, 10, 0, 1), [HalfSecond::NoPicture]);
        good.stop();
        assert_eq!(halves(&mut good, 9, 0, 1), []);
    }

    #[test]
    fn a_small_layer_is_a_bad_picture_where_it_is_enlarged() {
        assert_eq!(halves(&mut GoodTime::default(), 10, 1, 0), [HalfSecond::BadPicture]);
        let small = track().with_shown(320, 180);
        assert!(vmaf(Content::Noise, &small, 0) > Some(80.0));
    }
}
