//! Temporal layers of a publisher's streams, as libwebrtc's encoders of VP8 make them.
//!
//! ```text
//! two layers:    0 1 0 1 0 1 0 1        three layers:  0 2 1 2 0 2 1 2
//! ```
//!
//! A frame needs the one before it in its own layer or below. What that costs in compression is not
//! in the model: all frames of a stream together take the rate that it is asked for.

/// Share of a stream's rate up to each temporal layer (libwebrtc's allocation).
const TWO: [f64; 2] = [0.6, 1.0];
const THREE: [f64; 3] = [0.4, 0.6, 1.0];

/// What a frame is among the temporal layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub layer: u8,
    /// It needs only layer 0, so that a receiver of layer 0 can go on from here.
    pub is_switching_point: bool,
}

/// The place of a frame by its number since the key frame.
pub(super) fn place(layers: u8, frame: u32) -> Place {
    let (layer, is_switching_point) = match (layers, frame % 4) {
        (2, step) => ((step % 2) as u8, step % 2 == 1),
        (3, 1) => (2, true),
        (3, 2) => (1, true),
        (3, 3) => (2, false),
        _ => (0, false),
    };
    Place { layer, is_switching_point }
}

/// Share of a stream's rate up to this layer.
pub(super) fn share(layers: u8, layer: u8) -> f64 {
    match layers {
        2 => TWO[usize::from(layer.min(1))],
        3 => THREE[usize::from(layer.min(2))],
        _ => 1.0,
    }
}

/// Share of a stream's frames up to this layer.
pub(super) fn frames(layers: u8, layer: u8) -> f64 {
    let halvings = layers.saturating_sub(1).saturating_sub(layer);
    1.0 / f64::from(1_u32 << halvings)
}

/// Size of a frame of this layer beside the mean of all.
pub(super) fn weight(layers: u8, layer: u8) -> f64 {
    let below = layer.checked_sub(1);
    let own_share = share(layers, layer) - below.map_or(0.0, |below| share(layers, below));
    let own_frames = frames(layers, layer) - below.map_or(0.0, |below| frames(layers, below));
    own_share / own_frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_layers_have_the_mean_size_together() {
        for layers in 1..=3 {
            let mut sum = 0.0;
            for frame in 0..4 {
                sum += weight(layers, place(layers, frame).layer);
            }
            assert!((sum - 4.0).abs() < 1e-9, "{layers}: {sum}");
        }
    }

    #[test]
    fn layer_0_of_three_has_a_quarter_of_the_frames() {
        let layers = [0, 1, 2, 3].map(|frame| place(3, frame).layer);
        assert_eq!(layers, [0, 2, 1, 2]);
        assert_eq!([0, 1, 2].map(|layer| frames(3, layer)), [0.25, 0.5, 1.0]);
        assert!((weight(3, 0) - 1.6).abs() < 1e-9);
    }
}
