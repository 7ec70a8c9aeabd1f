//! The structures of the usual scalability modes: up to three spatial and three temporal layers.
//!
//! ```text
//! three temporal layers:   0   2   1   2   0       frames of each picture, with two spatial
//!         spatial layer 1: 1   3   5   7   9       layers: the larger one comes after the smaller
//!         spatial layer 0: 0   2   4   6   8
//! ```

use super::structure::{Chains, Indication, Indications, References, Structure, Template};

/// Pictures from one of the lowest temporal layer to the next, by the number of layers.
const PERIODS: [u8; 3] = [1, 2, 4];

/// Which spatial layers predict from the one below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Those of every picture, as in the mode L3T3.
    Always,
    /// Those of key frames only, as in the mode L3T3_KEY: a larger picture then needs no smaller
    /// one until the next key frame.
    AtKeyFrames,
}

/// The kind of a picture among temporal layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    is_key: bool,
    temporal: u8,
    /// Pictures back to the one on which it depends.
    depends: u8,
    /// Pictures back to the last one of the lowest temporal layer.
    base: u8,
}

/// The kinds of pictures with this number of temporal layers, in the order of templates.
fn kinds(temporal_layers: u8) -> &'static [Kind] {
    const KEY: Kind = Kind { is_key: true, temporal: 0, depends: 0, base: 0 };
    const fn kind(temporal: u8, depends: u8, base: u8) -> Kind {
        Kind { is_key: false, temporal, depends, base }
    }
    const ONE: [Kind; 2] = [KEY, kind(0, 1, 1)];
    const TWO: [Kind; 3] = [KEY, kind(0, 2, 2), kind(1, 1, 1)];
    const THREE: [Kind; 5] = [KEY, kind(0, 4, 4), kind(1, 2, 2), kind(2, 1, 1), kind(2, 1, 3)];
    match temporal_layers {
        1 => &ONE,
        2 => &TWO,
        _ => &THREE,
    }
}

impl Structure {
    /// The structure of the mode with these layers, such as L3T3. Decode targets begin with the
    /// largest picture in its highest frame rate. `None` unless there are 1 to 3 of each.
    pub fn svc(spatial_layers: u8, temporal_layers: u8, prediction: Prediction) -> Option<Self> {
        let is_known = (1..=3).contains(&spatial_layers) && (1..=3).contains(&temporal_layers);
        if !is_known {
            return None;
        }
        let targets = usize::from(spatial_layers * temporal_layers);
        let mut found = Self { targets, chains: usize::from(spatial_layers), ..Self::default() };
        for target in 0..spatial_layers * temporal_layers {
            found.protected_by.push(spatial_layers - 1 - target / temporal_layers);
        }
        for spatial in 0..spatial_layers {
            for &kind in kinds(temporal_layers) {
                let layers = (spatial_layers, temporal_layers);
                found.templates.push(template(layers, spatial, kind, prediction));
            }
        }
        Some(found)
    }

    /// The id of the template of a frame of such a mode: its spatial layer, and its picture's
    /// number since the key frame. `None` if the structure is not of [`Structure::svc`].
    pub fn svc_template(&self, spatial: u8, picture: u32) -> Option<u8> {
        let spatial_layers = u8::try_from(self.chains).ok().filter(|&layers| layers > 0)?;
        let temporal_layers = u8::try_from(self.targets).ok()? / spatial_layers;
        let period = PERIODS.get(usize::from(temporal_layers.checked_sub(1)?))?;
        let kind = match (picture, temporal_layers, picture % u32::from(*period)) {
            (0, _, _) => 0,
            (_, _, 0) => 1,
            (_, 3, 1) => 3,
            (_, 3, 3) => 4,
            _ => 2,
        };
        let place = spatial * kinds(temporal_layers).len() as u8 + kind;
        Some((self.first_id + place) % super::structure::TEMPLATE_IDS)
    }
}

/// The template of a frame of this spatial layer and kind [AV1-RTP §A.6.3].
fn template(
    (spatial_layers, temporal_layers): (u8, u8),
    spatial: u8,
    kind: Kind,
    prediction: Prediction,
) -> Template {
    let needs_below = kind.is_key || prediction == Prediction::Always;
    let mut references = References::default();
    // Three spatial layers and four pictures back are a dozen frames; two references fit.
    if !kind.is_key {
        let _ = references.push(u16::from(kind.depends * spatial_layers));
    }
    if spatial > 0 && needs_below {
        let _ = references.push(1);
    }
    let mut indications = Indications::default();
    for target in 0..spatial_layers * temporal_layers {
        let shows = spatial_layers - 1 - target / temporal_layers;
        let rate = temporal_layers - 1 - target % temporal_layers;
        let is_absent =
            spatial > shows || kind.temporal > rate || (spatial < shows && !needs_below);
        let indication = if is_absent {
            Indication::NotPresent
        } else if kind.is_key {
            Indication::Switch
        } else if spatial < shows {
            Indication::Required
        } else if kind.temporal > 0 && kind.temporal == rate {
            Indication::Discardable
        } else {
            Indication::Switch
        };
        indications = indications.with(usize::from(target), indication);
    }
    let mut chains = Chains::default();
    for chain in 0..spatial_layers {
        let back = chain_back(spatial_layers, spatial, chain, kind, prediction);
        chains.set(usize::from(chain), back);
    }
    Template { spatial, temporal: kind.temporal, indications, references, chains }
}

/// Frames back to the one before in a chain, which has the frames of the lowest temporal layer
/// that its picture size needs.
fn chain_back(
    spatial_layers: u8,
    spatial: u8,
    chain: u8,
    kind: Kind,
    prediction: Prediction,
) -> u8 {
    if kind.temporal > 0 || spatial == 0 {
        // The last frame that the chain had, some pictures ago.
        return if kind.is_key { 0 } else { kind.base * spatial_layers + spatial - chain };
    }
    if kind.is_key || prediction == Prediction::Always {
        return spatial - chain.min(spatial - 1);
    }
    if chain < spatial { spatial - chain } else { kind.base * spatial_layers + spatial - chain }
}
