//! The structure of a stream with spatial and temporal layers, and what each of its packets says of
//! its place in it.

use weir::units::{Bitrate, Timestamp};
use weir_sfu::Layer;
use weir_wire::dependency::{Prediction, Structure};
use weir_wire::rtp::{ExtensionId, View};

use super::temporal::{frames, share};
use crate::config::Publisher;

/// The header extension of dependency descriptors.
pub(super) const DEPENDENCY_ID: ExtensionId = ExtensionId::new(2).unwrap();
/// Most spatial layers of a structure.
const MAX_LAYERS: usize = 3;
/// A frame of which its encoder makes nothing has a packet of this payload.
pub(super) const LEAST_PAYLOAD: u64 = 10;
/// Bytes of each packet for its descriptor of three bytes: the extension grows by a word.
pub(super) const DEPENDENCY_SIZE: u64 = 4;

/// Where the encoder is in its structure.
#[derive(Clone, Debug)]
pub(super) struct Svc {
    pub structure: Structure,
    pub temporal_layers: u8,
    /// Pictures since the key frame, and the number of the next frame.
    pub picture: u32,
    pub next_frame: u16,
}

/// What a packet's dependency descriptor says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub spatial: u8,
    pub temporal: u8,
    pub template: u8,
    pub frame_number: u16,
    pub starts_frame: bool,
    pub ends_frame: bool,
    pub has_structure: bool,
}

impl Svc {
    /// `None` for another number of layers than there are modes for.
    pub(super) fn new(publisher: &Publisher, next_frame: u16) -> Option<Self> {
        let layers = publisher.layers.len().min(MAX_LAYERS) as u8;
        let temporal_layers = publisher.temporal_layers;
        let mut structure = Structure::svc(layers, temporal_layers, Prediction::Always)?;
        for layer in &publisher.layers {
            structure.sizes.push((layer.width, layer.height));
        }
        Some(Self { structure, temporal_layers, picture: 0, next_frame })
    }
}

/// The operating points of such a stream, from the cheapest to the dearest of each size.
pub(super) fn points(publisher: &Publisher) -> Vec<Layer> {
    let mut points = Vec::new();
    let mut rate = Bitrate::ZERO;
    let all = publisher.temporal_layers;
    for (spatial, layer) in publisher.layers.iter().enumerate() {
        rate = rate + layer.rate.rate(Timestamp::ZERO);
        let point = Layer::new(spatial as u8, layer.width, layer.height, rate);
        for temporal in 0..all.saturating_sub(1) {
            let part = point.with_temporal(temporal).with_bitrate(rate * share(all, temporal));
            points.push(part.with_frame_rate(publisher.fps * frames(all, temporal)));
        }
        points.push(point.with_frame_rate(publisher.fps));
    }
    points
}

/// Size of the headers of a packet of the server's, which has an extension block and no CSRC.
pub(super) fn header_size(bytes: &[u8]) -> usize {
    View::parse_header(bytes).map_or(bytes.len(), |view| view.header_size())
}
