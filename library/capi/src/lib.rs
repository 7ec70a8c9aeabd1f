#![doc = include_str!("../README.md")]
//!
//! # The border
//!
//! Each exported function goes through `border`, which checks the pointers, keeps panics inside
//! and returns a [`weir_status`]. Numbers are checked where they become typed values. The header
//! `include/weir.h` is generated from this crate by cbindgen; its names are those of C.
#![allow(
    non_camel_case_types,
    clippy::missing_safety_doc,
    reason = "the names are those of the header, which also has the rules that make a call safe"
)]

mod border;
mod controller;
mod growing;
mod metrics;
mod random;
mod receiver;
mod request;
mod rtp;
mod sender;
mod settings;
mod status;
mod target;
mod version;

pub use border::weir_bytes;
pub use controller::*;
pub use metrics::{weir_metrics, weir_reason, weir_signal};
pub use receiver::*;
pub use request::{weir_packet_kind, weir_request, weir_request_kind};
pub use rtp::weir_is_rtcp;
pub use sender::*;
pub use settings::{weir_algorithm_name, weir_ecn_mode, weir_settings, weir_settings_init};
pub use status::{weir_status, weir_status_text};
pub use target::{weir_burst, weir_target};
pub use version::weir_version;

/// A time that does not exist: a packet that has not arrived, a delay not measured yet.
pub const WEIR_NO_TIME: i64 = i64::MIN;
/// A deadline that never comes.
pub const WEIR_NEVER: i64 = i64::MAX;
/// A number that does not exist: no limit, no congestion window, a bitrate not measured yet.
pub const WEIR_NO_VALUE: u64 = u64::MAX;
/// The packet belongs to no probe, or no probe is requested. Probes are numbered from 1.
pub const WEIR_NO_PROBE: u64 = 0;
/// Maximum number of bytes in a packet or datagram.
pub const WEIR_MAX_PACKET: usize = 65_535;
/// Maximum number of packets in one call.
pub const WEIR_MAX_PACKETS: usize = 65_536;
/// Bytes of a name in `weir_metrics`, including the NUL at its end.
pub const WEIR_NAME_SIZE: usize = 32;
/// Number of elements of `signals` in `weir_metrics`.
pub const WEIR_MAX_SIGNALS: usize = 16;
