//! A cellular cell: a base station and its terminals, each with bearers, over LTE or NR.
//!
//! ```text
//!            packets -> bearer queue -> RLC -> block -> air -> HARQ -> RLC -> poll
//!                       (filters,       cut            errors  again   in order
//!                        discipline)    to size                if lost
//!
//!  downlink  decide | prepare |  block  | decode |        ... retransmission one HARQ round later
//!  uplink    request or report ... decide | fill | block | decode
//! ```
//!
//! Time is divided into transmission time intervals (TTIs); one step of [`Cell`] handles one TTI of
//! both directions. TTIs in which nothing happens are skipped. The parts are files: `carrier`
//! (TTI, resource blocks, block sizes), `fading` and `radio` (signal quality over time), `errors`
//! (which blocks can be decoded), `adaptation` (reports and choice of the modulation and coding
//! scheme), `bearer` (queues and quality of service), `rlc` (packets to blocks and back),
//! `scheduler` (who gets which resource blocks), `cell` (the step from TTI to TTI).

mod access;
mod adaptation;
mod admission;
mod air;
mod bearer;
mod block;
pub mod carrier;
mod cell;
pub mod config;
mod directions;
mod downlink;
pub mod errors;
mod event;
pub mod fading;
mod log;
mod radio;
mod rlc;
mod scheduler;
pub mod service;
mod source;
mod terminal;
mod uplink;

pub use access::FILTERED;
pub(crate) use access::build;
pub use carrier::{Carrier, Duplex, SlotKind, Technology};
pub use cell::Cell;
pub use config::{
    Adaptation, Admission, CellularConfig, Drx, Estimate, Handover, Harq, Load, MovingTerminal,
    OuterLoop, Scheduler, SchedulingRequest, Sharing, Signal, SignalChange, Terminal, Timing,
    UplinkAccess,
};
pub use directions::Directions;
pub use event::{BearerEvent, BearerEventKind};
pub use log::{BearerRow, BlockRecord, CellularNotes};
pub use service::{
    BearerChange, BearerConfig, BearerQueue, BearerRef, Guarantee, PacketFilter, PortRange,
    Priority, Qci, RlcMode, Subnet,
};

#[cfg(test)]
mod tests;
