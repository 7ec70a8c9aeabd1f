//! Diameter: converts between bytes and messages.
//!
//! A [`Message`] is a header and a list of [`Avp`]s. The [dictionary](avp) gives the type of each
//! AVP by its code and vendor; the data of an unknown AVP stays bytes. All fields are big-endian.
//!
//! The transport is a stream: [`frame`] finds the end of the first message in it.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod avp;
pub mod base;
mod error;
mod message;
mod value;

pub use avp::{Definition, Kind};
pub use error::Error;
pub use message::{HEADER_SIZE, MOST_BYTES, Message, frame};
pub use value::{Avp, MOST_NESTED, Value};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
