//! Media, TCP, QUIC and UDP flows over `weir-net` models, in virtual time.
//!
//! A simulation is one thread with one queue of deadlines and one seed: equal inputs give equal
//! bytes. Parts of a forwarding server's scenario that share nothing are simulations of their own.
//! Feedback is sent as real RTCP bytes through `weir-wire`. The result of a run is a
//! [`trace::Trace`].
//!
//! # Modules
//!
//! - `simulator`: owns the router and the deadlines; its `shards` simulates parts of a server's
//!   scenario that share nothing on several cores, and `carried` measures what a cell could have
//!   carried to a subscriber.
//! - `coupling`: the groups of coupled flows.
//! - `endpoint`: the ends of a media flow.
//! - `source/`: makes the frames of a media flow. One source is a measured browser encoder,
//!   `source/pipeline` that of a pipeline; `source/simulcast` has three of them,
//!   `source/picture_model` says how its pictures look.
//! - `media/`: frames, repair and playout; `media/jitter_buffer` plays as a browser does.
//! - `audio`: how a browser plays speech, without sound.
//! - `rtp_format`: sizes and headers of packets.
//! - `feedback`: the feedback of a receiver, written by `weir-rtcp` in the formats that the
//!   scenario plans.
//! - `tcp/`: TCP flows.
//! - `quic/`: media and data over QUIC.
//! - `udp`: packets at a given rate.
//! - `sfu`: a forwarding server: publishers, the server, and subscribers, which are flows.
//!   `forwarder` is the trait behind which `weir-sfu` and `rivals/` decide.
//!
//! # Time
//!
//! One thread goes to the earliest deadline. Every part (a link, a pacer, a timer) has at most one
//! deadline at a time, so the event queue is a tournament tree over the parts. The router returns
//! the next event of each of its parts. After a packet has left or entered a part, the simulator
//! asks the router again for that part. To set a deadline, the tree is updated from a leaf to the
//! root. Reading the next deadline costs nothing. A heap of events would contain stale entries and
//! have to skip them. The tree has none. Deadlines at the same time are handled in the order in
//! which they were set. Each source of chance has its own named stream of the one seed.
//!
//! Feedback crosses the network as real bytes and is parsed again, so every simulated number
//! includes the wire format. There is one exception: the round-trip time from a browser's receiver
//! reports (`media/receiver_reports`) is passed on without bytes.
#![forbid(unsafe_code)]

mod audio;
pub mod config;
mod coupling;
mod deadlines;
mod endpoint;
mod feedback;
mod flow;
mod media;
mod padded;
mod quic;
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
pub use quic::{
    Quic, QuicAck, QuicCongestion, QuicDatagram, QuicDelivery, QuicPair, QuicSource, QuicStack,
};
pub use receiver_clock::ReceiverClock;
pub use simulator::{run, run_in_parts, run_unless};
pub use source::has_picture_model;
pub use tcp::{Congestion, Cubic, ShortTransfers, Tcp};
pub use trace::Trace;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
