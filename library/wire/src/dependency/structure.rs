//! The frame dependency structure: what templates of frames there are, and what they depend on.

use alloc::vec::Vec;

use super::bits::{Reader, Writer};
use crate::Error;

/// Template ids are counted modulo this number [AV1-RTP §A.4.1].
pub(super) const TEMPLATE_IDS: u8 = 64;
/// Bits of a template id.
pub(super) const TEMPLATE_ID_BITS: usize = 6;
/// Most decode targets, and so most chains: 5 bits say how many there are, less one.
const MAX_TARGETS: usize = 32;
const TARGET_COUNT_BITS: usize = 5;
const INDICATION_BITS: usize = 2;
const LAYER_BITS: usize = 2;
const DIFFERENCE_BITS: usize = 4;
const SIDE_BITS: usize = 16;
const MAX_SPATIAL: u8 = 3;
const MAX_TEMPORAL: u8 = 7;

/// The next template's layer beside this one's [AV1-RTP §A.4.2, table A.3].
mod next_layer {
    pub(super) const SAME: u32 = 0;
    pub(super) const NEXT_TEMPORAL: u32 = 1;
    pub(super) const NEXT_SPATIAL: u32 = 2;
    pub(super) const NONE: u32 = 3;
}

/// What a frame is to a decode target, which is a picture size and a frame rate that can be
/// decoded [AV1-RTP §A.4.2, table A.2].
///
/// [AV1-RTP §A.4.2, table A.2]: https://aomediacodec.github.io/av1-rtp-spec/
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indication {
    /// The target does not have it.
    NotPresent,
    /// The target has it, and no other frame of the target needs it.
    Discardable,
    /// The target has it. If it can be decoded, so can all frames of the target after it.
    Switch,
    /// The target needs it.
    Required,
}

/// The indications of a frame for all decode targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Indications(u64);

impl Indications {
    /// The indication for a target; not present beyond the 32 targets that there can be.
    pub const fn get(self, target: usize) -> Indication {
        if target >= MAX_TARGETS {
            return Indication::NotPresent;
        }
        match self.0 >> (target * INDICATION_BITS) & 3 {
            0 => Indication::NotPresent,
            1 => Indication::Discardable,
            2 => Indication::Switch,
            _ => Indication::Required,
        }
    }

    /// The same with this indication for a target, which must be below 32.
    #[must_use]
    pub const fn with(self, target: usize, indication: Indication) -> Self {
        let place = target * INDICATION_BITS;
        Self(self.0 & !(3 << place) | (indication as u64) << place)
    }

    pub(super) fn read(reader: &mut Reader<'_>, targets: usize) -> Result<Self, Error> {
        let mut found = Self::default();
        for target in 0..targets {
            found.0 |= u64::from(reader.bits(INDICATION_BITS)?) << (target * INDICATION_BITS);
        }
        Ok(found)
    }

    pub(super) fn write(self, writer: &mut Writer, targets: usize) {
        for target in 0..targets {
            writer.bits(self.get(target) as u32, INDICATION_BITS);
        }
    }
}

/// The frames on which a frame depends, as differences of frame numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct References {
    differences: [u16; Self::MAX],
    count: u8,
}

impl References {
    /// Most frames on which one can depend here. AV1 and VP9 have fewer references.
    pub const MAX: usize = 8;

    /// `None` if there are more than [`References::MAX`], or if a difference is not 1..=4096.
    pub fn new(differences: &[u16]) -> Option<Self> {
        let mut found = Self::default();
        for &difference in differences {
            if difference == 0 || difference > 1 << 12 {
                return None;
            }
            found.push(difference).ok()?;
        }
        Some(found)
    }

    /// Frame number of the frame less that of each frame on which it depends.
    pub fn differences(&self) -> &[u16] {
        &self.differences[..usize::from(self.count)]
    }

    pub(super) fn push(&mut self, difference: u16) -> Result<(), Error> {
        let place = self.differences.get_mut(usize::from(self.count));
        *place.ok_or(Error::TooManyReferences)? = difference;
        self.count += 1;
        Ok(())
    }
}

/// For each chain, the frame number less that of the chain's frame before; 0: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chains([u8; MAX_TARGETS]);

impl Chains {
    /// The difference of a chain.
    pub fn get(&self, chain: usize) -> u8 {
        self.0.get(chain).copied().unwrap_or(0)
    }

    /// Sets the difference of a chain; nothing beyond 32 chains.
    pub fn set(&mut self, chain: usize, difference: u8) {
        if let Some(place) = self.0.get_mut(chain) {
            *place = difference;
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>, chains: usize, bits: usize) -> Result<Self, Error> {
        let mut found = Self::default();
        for place in found.0.iter_mut().take(chains) {
            *place = reader.bits(bits)? as u8;
        }
        Ok(found)
    }

    pub(super) fn write(&self, writer: &mut Writer, chains: usize, bits: usize) {
        for &difference in self.0.iter().take(chains) {
            writer.bits(difference.into(), bits);
        }
    }
}

/// What frames of one kind have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Spatial layer, 0..=3.
    pub spatial: u8,
    /// Temporal layer, 0..=7.
    pub temporal: u8,
    /// What such a frame is to each decode target.
    pub indications: Indications,
    /// The frames on which it depends.
    pub references: References,
    /// Where the frame before is in each chain.
    pub chains: Chains,
}

/// What a stream's frames depend on. It comes with each key frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Structure {
    /// The id of the first template; the others follow modulo 64.
    pub first_id: u8,
    /// Number of decode targets, 1..=32.
    pub targets: usize,
    /// The templates, in the order of their layers.
    pub templates: Vec<Template>,
    /// Number of chains, at most as many as targets.
    pub chains: usize,
    /// The chain of each target; the number of chains if it has none.
    pub protected_by: Vec<u8>,
    /// Width and height of each spatial layer, or nothing.
    pub sizes: Vec<(u16, u16)>,
}

impl Structure {
    /// The template of this id.
    pub fn template(&self, id: u8) -> Option<&Template> {
        let place = id.wrapping_sub(self.first_id) % TEMPLATE_IDS;
        self.templates.get(usize::from(place))
    }

    /// Spatial and temporal layer of a decode target: the highest of its frames.
    pub fn layers(&self, target: usize) -> (u8, u8) {
        let (mut spatial, mut temporal) = (0, 0);
        for template in &self.templates {
            if template.indications.get(target) != Indication::NotPresent {
                spatial = spatial.max(template.spatial);
                temporal = temporal.max(template.temporal);
            }
        }
        (spatial, temporal)
    }

    /// The best decode target of at most these layers: the spatial one counts first.
    pub fn best_target(&self, spatial: u8, temporal: u8) -> Option<usize> {
        let mut best = None;
        for target in 0..self.targets {
            let layers = self.layers(target);
            let is_within = layers.0 <= spatial && layers.1 <= temporal;
            if is_within && best.is_none_or(|(best, _)| layers > best) {
                best = Some((layers, target));
            }
        }
        best.map(|(_, target)| target)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let first_id = reader.bits(TEMPLATE_ID_BITS)? as u8;
        let targets = reader.bits(TARGET_COUNT_BITS)? as usize + 1;
        let mut found = Self { first_id, targets, ..Self::default() };
        found.read_layers(reader)?;
        for template in &mut found.templates {
            template.indications = Indications::read(reader, targets)?;
        }
        for template in &mut found.templates {
            while reader.flag()? {
                template.references.push(reader.bits(DIFFERENCE_BITS)? as u16 + 1)?;
            }
        }
        found.chains = reader.below(targets as u32 + 1)? as usize;
        if found.chains > 0 {
            for _ in 0..targets {
                found.protected_by.push(reader.below(found.chains as u32 + 1)? as u8);
            }
            for template in &mut found.templates {
                template.chains = Chains::read(reader, found.chains, DIFFERENCE_BITS)?;
            }
        }
        if reader.flag()? {
            for _ in 0..=found.highest_spatial() {
                found.sizes.push((read_side(reader)?, read_side(reader)?));
            }
        }
        Ok(found)
    }

    fn read_layers(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        let (mut spatial, mut temporal) = (0, 0);
        loop {
            if self.templates.len() == usize::from(TEMPLATE_IDS) {
                return Err(Error::UnknownTemplate);
            }
            self.templates.push(Template { spatial, temporal, ..Template::default() });
            match reader.bits(LAYER_BITS)? {
                next_layer::SAME => {}
                next_layer::NEXT_TEMPORAL => temporal += 1,
                next_layer::NEXT_SPATIAL => (spatial, temporal) = (spatial + 1, 0),
                _ => return Ok(()),
            }
            if spatial > MAX_SPATIAL || temporal > MAX_TEMPORAL {
                return Err(Error::UnknownTemplate);
            }
        }
    }

    fn highest_spatial(&self) -> u8 {
        self.templates.last().map_or(0, |template| template.spatial)
    }

    pub(super) fn write(&self, writer: &mut Writer) {
        writer.bits(self.first_id.into(), TEMPLATE_ID_BITS);
        writer.bits(self.targets.saturating_sub(1) as u32, TARGET_COUNT_BITS);
        for pair in self.templates.windows(2) {
            let next = if pair[1].spatial > pair[0].spatial {
                next_layer::NEXT_SPATIAL
            } else if pair[1].temporal > pair[0].temporal {
                next_layer::NEXT_TEMPORAL
            } else {
                next_layer::SAME
            };
            writer.bits(next, LAYER_BITS);
        }
        writer.bits(next_layer::NONE, LAYER_BITS);
        for template in &self.templates {
            template.indications.write(writer, self.targets);
        }
        for template in &self.templates {
            for &difference in template.references.differences() {
                writer.flag(true);
                writer.bits(u32::from(difference) - 1, DIFFERENCE_BITS);
            }
            writer.flag(false);
        }
        writer.below(self.chains as u32, self.targets as u32 + 1);
        if self.chains > 0 {
            for &chain in &self.protected_by {
                writer.below(chain.into(), self.chains as u32 + 1);
            }
            for template in &self.templates {
                template.chains.write(writer, self.chains, DIFFERENCE_BITS);
            }
        }
        writer.flag(!self.sizes.is_empty());
        for &(width, height) in &self.sizes {
            writer.bits(width.wrapping_sub(1).into(), SIDE_BITS);
            writer.bits(height.wrapping_sub(1).into(), SIDE_BITS);
        }
    }
}

/// A side of a picture. It is written less one, so that all 16 bits are of use.
fn read_side(reader: &mut Reader<'_>) -> Result<u16, Error> {
    Ok((reader.bits(SIDE_BITS)? as u16).wrapping_add(1))
}
