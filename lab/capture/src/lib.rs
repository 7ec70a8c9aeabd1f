#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod packet;
pub mod stun;

pub use packet::{Content, LONGEST_HEADERS, Packet, Rtp};
