//! TCP as competing traffic: a stack of its own, both ends, without clock or socket.
//!
//! ```text
//!  sender ----- data ----> network ----> receiver
//!    | window: congestion control, proportional reduction       | reassembly, SACK, delayed ACK
//!    | loss: RACK, tail probe, timeout                          | right-sized window
//!    +------------------ <- network <- acknowledgements --------+
//! ```
//!
//! Numbers follow the RFCs; where Linux departs from them, the stack follows Linux, since that is
//! what competes with real calls.

mod congestion;
mod delivery_rate;
mod ends;
mod pacer;
mod rack;
mod receive_window;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod timers;

use std::ops::Range;

use weir::units::{DataSize, TimeDelta, Timestamp};

pub use congestion::{Congestion, Cubic};
pub(crate) use ends::TcpEnds;
pub(crate) use segment::TcpPacket;

/// What a receiver offers to take at most: what Linux makes of 6 MiB, the default limit of
/// `tcp_rmem`.
const RECEIVE_WINDOW: DataSize = DataSize::from_bytes(3 << 20);
/// What a sender keeps for retransmission at most: the default limit of Linux's `tcp_wmem`.
const SEND_BUFFER: DataSize = DataSize::from_bytes(4 << 20);
/// What of a connection may wait in its host's own interface: Linux's small queues (TSQ) as they were
/// from 3.6 on. Later ones size it by the pacing rate, at most 4 MiB.
const SMALL_QUEUE: DataSize = DataSize::from_bytes(128 << 10);

/// Data over TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Tcp {
    /// What controls it.
    pub congestion: Congestion,
    /// Transfers with time between them, each a connection of its own; without them, one connection
    /// that always has something to send. A pause of the flow ends a connection, and a new one
    /// follows.
    pub short: Option<ShortTransfers>,
    /// Whether it answers to marks [RFC3168 §6.1].
    ///
    /// [RFC3168 §6.1]: https://www.rfc-editor.org/rfc/rfc3168#section-6.1
    pub ecn: bool,
    /// What the receiver offers to take at most.
    pub receive_window: DataSize,
    /// What the sender keeps for retransmission at most.
    pub send_buffer: DataSize,
    /// Data beyond which nothing more goes to the host's interface, where that has a queue of its own.
    pub small_queue: DataSize,
    /// Times in which no timer of its hosts goes off, in order and apart, since their processor stands
    /// still: what was due then is done when one ends. What arrives in them is up to the links.
    pub timer_stalls: Vec<Range<Timestamp>>,
}

impl Tcp {
    /// One connection that always has something to send, on hosts as Linux sets them up.
    pub fn new(congestion: Congestion) -> Self {
        Self {
            congestion,
            short: None,
            ecn: false,
            receive_window: RECEIVE_WINDOW,
            send_buffer: SEND_BUFFER,
            small_queue: SMALL_QUEUE,
            timer_stalls: Vec::new(),
        }
    }
}

/// Short transfers, as of web pages [RFC8868 §4.4].
///
/// [RFC8868 §4.4]: https://www.rfc-editor.org/rfc/rfc8868#section-4.4
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortTransfers {
    /// The smallest transfer; sizes are uniform.
    pub min_size: DataSize,
    /// The largest.
    pub max_size: DataSize,
    /// Mean of the exponential times between two.
    pub mean_idle: TimeDelta,
    /// Whether such a time comes first.
    pub starts_idle: bool,
}

#[cfg(test)]
mod tests;
