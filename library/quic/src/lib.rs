//! Real-time congestion control for QUIC stacks.
//!
//! [`Congestion`] stands between a QUIC stack (the host) and any [`weir::Controller`]. The host
//! tells of packets that left, of ACK frames [RFC9000 §19.3], and of losses that it declared
//! [RFC9002 §6.1]. It reads a pacing rate and a window. The application reads the bitrate for its
//! encoder. Nothing here reads a clock, opens a socket or knows a packet's content.
//!
//! ```text
//! host:   packet sent ------------> History -+
//!         ACK ranges, delay, ECN --> arrivals +-> Batch -> FeedbackReport -> Controller
//!         losses, taken back ------> History -+                                  |
//!         pacing rate, window <-- Pace <-- Target <------------------------------+
//! ```
//!
//! | what a host has | how it names packets ([`PacketName`]) |
//! |---|---|
//! | number space and number | [`PacketName::Numbered`], or whole ranges |
//! | number, but no space | [`PacketName::Number`], with the send time if it has that |
//! | send time only | [`PacketName::SentAt`], and [`Congestion::on_bytes_lost`] |
//!
//! ```
//! use weir::{Algorithm, Bitrate, DataSize, RateLimits, TimeDelta, Timestamp};
//! use weir_quic::{AckEnd, Config, Congestion, Sent, Space};
//!
//! let kbps = Bitrate::from_kbps;
//! let limits = RateLimits::new(kbps(100), kbps(500), kbps(10_000)).expect("min <= start <= max");
//! let mut congestion = Congestion::new(Algorithm::Sluice.build(limits), Config::default());
//! let ms = TimeDelta::from_millis;
//! for number in 0..500 {
//!     let now = Timestamp::ZERO + ms(10) * number as i64;
//!     congestion.on_packet_sent(now, Sent::new(Space::Data, number, DataSize::from_bytes(1_200)));
//!     if number >= 5 {
//!         // Its ACK comes 50 ms later.
//!         congestion.on_ack_range(Space::Data, number - 5..=number - 5);
//!         congestion.on_ack_end(now, AckEnd::default());
//!     }
//! }
//! assert!(congestion.media_bitrate() > kbps(500));
//! ```
//!
//! [RFC9000 §19.3]: https://www.rfc-editor.org/rfc/rfc9000#section-19.3
//! [RFC9002 §6.1]: https://www.rfc-editor.org/rfc/rfc9002#section-6.1
#![no_std]
// Labels in the documentation say which feature adds an item.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;

mod arrival;
mod batch;
mod congestion;
#[cfg(feature = "std")]
mod control;
mod foreign;
mod history;
mod pace;
mod probe;
mod repeats;
#[cfg(feature = "testing")]
pub mod testing;

pub use congestion::{AckEnd, Config, Congestion};
#[cfg(feature = "std")]
pub use control::{Control, Shared};
pub use history::{PacketName, Sent, Space};
pub use pace::WindowRule;
