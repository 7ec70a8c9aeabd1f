//! The dependency descriptor, a header extension that says what a packet's frame depends on, so
//! that a server can leave frames out without reading the payload [AV1-RTP §A].
//!
//! ```text
//!  0                   1                   2
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |S|E| template  |         frame number          |   S, E: first and last packet of the frame
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |T|A|D|F|C| the structure if T; active decode targets if A; and this frame's own
//! +-+-+-+-+-+ indications if D, references if F, chains if C
//! ```
//!
//! A frame's layers, references and indications are those of its template. The [`Structure`] with
//! the templates comes with key frames only: keep it. Reading it allocates, reading others does
//! not.
//!
//! [AV1-RTP §A]: https://aomediacodec.github.io/av1-rtp-spec/

mod bits;
mod structure;
mod svc;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::Error;
use bits::{Reader, Writer};
pub use structure::{Chains, Indication, Indications, References, Structure, Template};
use structure::{TEMPLATE_ID_BITS, TEMPLATE_IDS};
pub use svc::Prediction;

/// Bytes of a descriptor of which the template says all.
const SHORT: usize = 3;
const FRAME_NUMBER_BITS: usize = 16;
/// Bits of a custom difference are a multiple of this.
const DIFFERENCE_UNIT: usize = 4;
const DIFFERENCE_SIZE_BITS: usize = 2;
const CUSTOM_CHAIN_BITS: usize = 8;
const TEMPLATE_MASK: u8 = TEMPLATE_IDS - 1;
const STRUCTURE_FLAG: u8 = 1 << 7;

/// The URI of the extension in signalling.
pub const URI: &str =
    "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension";

/// What the extension of one packet says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Descriptor {
    /// The packet is the first of its frame. A picture of several spatial layers has as many
    /// frames.
    pub starts_frame: bool,
    /// The packet is the last of its frame.
    pub ends_frame: bool,
    /// The template of the frame.
    pub template_id: u8,
    /// Number of the frame in decoding order, modulo 2^16.
    pub frame_number: u16,
    /// The templates from here on, at the start of a key frame.
    pub structure: Option<Box<Structure>>,
    /// The decode targets that are sent: bit 0, the lowest, is the first one. Without it, what was
    /// said last holds, and after a structure all are sent.
    pub active_targets: Option<u32>,
    /// Indications of this frame in place of the template's.
    pub indications: Option<Indications>,
    /// References of this frame in place of the template's.
    pub references: Option<References>,
    /// Chains of this frame in place of the template's.
    pub chains: Option<Chains>,
}

impl Descriptor {
    /// A descriptor of which the template says all.
    pub fn new(template_id: u8, frame_number: u16) -> Self {
        Self { template_id: template_id & TEMPLATE_MASK, frame_number, ..Self::default() }
    }

    /// Reads the data of the extension. `known` is the structure that came last; its counts say
    /// how long the fields are.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the data ends too soon; [`Error::UnknownTemplate`] without a
    /// structure where one is needed, or with too many templates or layers;
    /// [`Error::TooManyReferences`].
    pub fn parse(data: &[u8], known: Option<&Structure>) -> Result<Self, Error> {
        let mut reader = Reader::new(data);
        let mut found = Self {
            starts_frame: reader.flag()?,
            ends_frame: reader.flag()?,
            template_id: reader.bits(TEMPLATE_ID_BITS)? as u8,
            frame_number: reader.bits(FRAME_NUMBER_BITS)? as u16,
            ..Self::default()
        };
        if data.len() == SHORT {
            return Ok(found);
        }
        let has_structure = reader.flag()?;
        let [has_active, has_indications, has_references, has_chains] =
            [reader.flag()?, reader.flag()?, reader.flag()?, reader.flag()?];
        if has_structure {
            found.structure = Some(Box::new(Structure::read(&mut reader)?));
        }
        let structure = found.structure.as_deref().or(known).ok_or(Error::UnknownTemplate)?;
        let (targets, chains) = (structure.targets, structure.chains);
        if has_active {
            found.active_targets = Some(reader.bits(targets)?);
        }
        if has_indications {
            found.indications = Some(Indications::read(&mut reader, targets)?);
        }
        if has_references {
            found.references = Some(read_references(&mut reader)?);
        }
        if has_chains {
            found.chains = Some(Chains::read(&mut reader, chains, CUSTOM_CHAIN_BITS)?);
        }
        Ok(found)
    }

    /// The data of the extension. `known` is as in [`parse`](Self::parse); the descriptor's own
    /// structure comes first.
    pub fn emit(&self, known: &Structure) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.flag(self.starts_frame);
        writer.flag(self.ends_frame);
        writer.bits(self.template_id.into(), TEMPLATE_ID_BITS);
        writer.bits(self.frame_number.into(), FRAME_NUMBER_BITS);
        let is_present = [
            self.structure.is_some(),
            self.active_targets.is_some(),
            self.indications.is_some(),
            self.references.is_some(),
            self.chains.is_some(),
        ];
        if is_present == [false; 5] {
            return writer.finish();
        }
        for is_present in is_present {
            writer.flag(is_present);
        }
        let structure = self.structure.as_deref().unwrap_or(known);
        if self.structure.is_some() {
            structure.write(&mut writer);
        }
        if let Some(active) = self.active_targets {
            writer.bits(active, structure.targets);
        }
        if let Some(indications) = self.indications {
            indications.write(&mut writer, structure.targets);
        }
        if let Some(references) = &self.references {
            write_references(&mut writer, references);
        }
        if let Some(chains) = &self.chains {
            chains.write(&mut writer, structure.chains, CUSTOM_CHAIN_BITS);
        }
        writer.finish()
    }

    /// The template with what this frame has in its place. `structure` is the newest, which may be
    /// the descriptor's own.
    ///
    /// # Errors
    /// [`Error::UnknownTemplate`] if the structure does not have the template.
    pub fn frame(&self, structure: &Structure) -> Result<Template, Error> {
        let mut frame = *structure.template(self.template_id).ok_or(Error::UnknownTemplate)?;
        frame.indications = self.indications.unwrap_or(frame.indications);
        frame.references = self.references.unwrap_or(frame.references);
        frame.chains = self.chains.unwrap_or(frame.chains);
        Ok(frame)
    }
}

fn read_references(reader: &mut Reader<'_>) -> Result<References, Error> {
    let mut found = References::default();
    loop {
        let size = reader.bits(DIFFERENCE_SIZE_BITS)? as usize;
        if size == 0 {
            return Ok(found);
        }
        found.push(reader.bits(size * DIFFERENCE_UNIT)? as u16 + 1)?;
    }
}

fn write_references(writer: &mut Writer, references: &References) {
    for &difference in references.differences() {
        let value = u32::from(difference) - 1;
        let size = (value.max(1).ilog2() as usize + 1).div_ceil(DIFFERENCE_UNIT);
        writer.bits(size as u32, DIFFERENCE_SIZE_BITS);
        writer.bits(value, size * DIFFERENCE_UNIT);
    }
    writer.bits(0, DIFFERENCE_SIZE_BITS);
}

/// Whether the data of the extension has a structure, with which a key frame starts.
pub fn has_structure(data: &[u8]) -> bool {
    data.get(SHORT).is_some_and(|flags| flags & STRUCTURE_FLAG != 0)
}

/// Adds to the frame number and to the template ids of a descriptor, in place. A server that
/// continues one stream with another one makes the numbers continuous so. Data that is too short
/// is left as it is.
pub fn shift(data: &mut [u8], frames: u16, templates: u8) {
    let Some(fixed) = data.first_chunk_mut::<SHORT>() else { return };
    let [first, number @ ..] = fixed;
    *first = *first & !TEMPLATE_MASK | first.wrapping_add(templates) & TEMPLATE_MASK;
    *number = u16::from_be_bytes(*number).wrapping_add(frames).to_be_bytes();
    // The first id of a structure is the six bits behind the five flags.
    let Some(extended) = data.get_mut(SHORT..SHORT + 2) else { return };
    if extended[0] & STRUCTURE_FLAG == 0 {
        return;
    }
    let id = extended[0] << 3 & TEMPLATE_MASK | extended[1] >> 5;
    let id = id.wrapping_add(templates) & TEMPLATE_MASK;
    extended[0] = extended[0] & !7 | id >> 3;
    extended[1] = extended[1] & 0x1f | id << 5;
}
