//! Media senders and receivers over `weir-net` models, in virtual time.
//!
//! One thread, one queue of deadlines, one seed: equal inputs give equal bytes. Feedback travels as
//! real RTCP bytes through `weir-wire`. What happened is a [`trace::Trace`].

pub mod config;
mod deadlines;
mod endpoint;
mod feedback;
mod flow;
mod media;
mod simulator;
mod source;
pub mod trace;

pub use config::{Config, Direction, Feedback, Flow, Hop, Media, Repair, Source, Traffic};
pub use simulator::run;
pub use trace::Trace;
