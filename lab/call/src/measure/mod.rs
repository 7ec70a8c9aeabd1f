//! What a call was like: packets at both ends, pictures, sound, its record.

pub mod capture;
pub(crate) mod outcome;
pub mod quality;
pub(crate) mod record;
pub mod sound;
pub(crate) mod targets;
pub(crate) mod transfer;
pub(crate) mod warning;
pub mod witness;
