//! A Wi-Fi cell of 802.11n: an access point, its stations, and neighbours on the same channel.
//!
//! ```text
//!  packets -> queue -> window -> contention -> frame -> medium -> receiver -> poll
//!             (per category       AIFS and      data     who hears  in order
//!              and receiver)      backoff       answer   whom
//!
//!  an exchange:   | AIFS | backoff |   data    | SIFS | ACK or BlockAck | AIFS | backoff | ...
//! ```
//!
//! The simulation has no clock ticks: [`Cell`] goes from event to event. Each box of the figure is
//! a file: `send_queue`, `contention`, `exchange`, `medium`. Beside them stand `phy` (durations),
//! `error_rate` and `propagation` (which frames can be decoded), `rate` and `retry` (at which rate
//! and how often data is sent), and `theory` (closed-form models).

mod access;
pub(crate) use access::build;
mod cell;
pub mod config;
mod contention;
pub mod error_rate;
mod exchange;
mod link;
mod load;
mod log;
mod medium;
mod node;
pub mod phy;
pub mod propagation;
pub mod rate;
mod record;
pub mod retry;
mod send_queue;
pub mod theory;

pub use crate::load::Arrivals;
pub use cell::Cell;
pub use config::{
    AccessCategory, Aggregation, Association, Bursts, CellConfig, Edca, EdcaParameters, Errors,
    Link, Neighbour, NodeConfig, NodeId, NodeQueue, Noise, Placement, Powers, Station, StationLoad,
    WaitLimit,
};
pub use log::{CellLog, CellNotes, NODE_INTERVAL, NodeRow};
pub use phy::{Band, DataRate, GuardInterval, Mcs};
pub use propagation::{Fading, Propagation};
pub use rate::{RateControl, RateSet};
pub use record::{AirtimeRecord, FrameKind, NodeCounters};
pub use retry::{Congestion, CongestionAware, RetryPolicy};

#[cfg(test)]
mod tests;
