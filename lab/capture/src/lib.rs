#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod file;
mod ip;
mod link;
mod packet;
pub mod stream;
pub mod stun;
mod tunnel;

pub use link::{ETHERNET, Inner, NoIp, inner, subframes};
pub use packet::{Content, LONGEST_HEADERS, Packet, Rtp, rtp_of};
