//! Media, TCP and UDP flows over `weir-net` models, in virtual time.
//!
//! A simulation is one thread with one queue of deadlines and one seed: equal inputs give equal
//! bytes. Parts of a forwarding server's scenario that share nothing are simulations of their own.
//! Feedback is sent as real RTCP bytes through `weir-wire`. The result of a run is a
//! [`trace::Trace`].
#![forbid(unsafe_code)]

/// Defines `with_*` methods, which return the value with one field changed. Callers build types
/// that are `non_exhaustive` with these.
macro_rules! with {
    ($($name:ident: $field:ident: $type:ty,)*) => {$(
        #[doc = concat!("The same with this \
            [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
        #[must_use]
        pub fn $name(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )*};
}

mod audio;
pub mod config;
mod coupling;
mod deadlines;
mod endpoint;
mod feedback;
mod flow;
mod media;
mod padded;
mod receiver_clock;
mod rtp_format;
mod sfu;
mod simulator;
mod source;
mod tcp;
pub mod trace;
mod udp;

pub use audio::replay::{SpeechPacket, play_speech};
pub use config::{
    Codec, Config, Content, Core, Degradation, Direction, EncoderDriver, EncoderVideo, Feedback,
    FlowConfig, FlowKind, Media, PublishedLayer, Publisher, Repair, Source, Speech, Structure,
    TrackKind, Udp, Uplink, Watching,
};
pub use media::{Freezes, VideoPacket, play_video};
pub use receiver_clock::ReceiverClock;
pub use simulator::{run, run_in_parts, run_unless};
pub use tcp::{Congestion, Cubic, ShortTransfers, Tcp};
pub use trace::Trace;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
