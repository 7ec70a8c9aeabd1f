//! TCP as competing traffic: a TCP implementation of both ends, without clock or sockets.
//!
//! ```text
//!  sender ----- data ----> network ----> receiver
//!    | window: congestion control, proportional reduction       | reassembly, SACK, delayed ACK
//!    | loss: RACK, tail probe, timeout                          | right-sized window
//!    +------------------ <- network <- acknowledgements --------+
//! ```
//!
//! Constants follow the RFCs. Where Linux departs from them, the implementation follows Linux,
//! because that is what competes with real calls.

pub(crate) mod congestion;
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

use weir::controller::EcnMode;
use weir::units::{DataSize, TimeDelta, Timestamp};

pub use congestion::{Congestion, Cubic};
pub(crate) use ends::TcpEnds;
pub(crate) use segment::TcpPacket;

/// Default maximum of the receive window: the window that results in Linux from 6 MiB, the default
/// limit of `tcp_rmem`.
const RECEIVE_WINDOW: DataSize = DataSize::from_bytes(3 << 20);
/// Default size of the send buffer: the default limit of Linux's `tcp_wmem`.
const SEND_BUFFER: DataSize = DataSize::from_bytes(4 << 20);
/// Default limit on a connection's data in the queue of its host's interface: TCP small queues
/// (TSQ) as introduced in Linux 3.6. Later versions derive the limit from the pacing rate, at most
/// 4 MiB.
const SMALL_QUEUE: DataSize = DataSize::from_bytes(128 << 10);

/// Data over TCP.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tcp {
    /// Its congestion control.
    pub congestion: Congestion,
    /// Short transfers with idle times between them; each is a separate connection. With `None`
    /// there is one connection that always has something to send. A pause of the flow ends a
    /// connection; a new one follows after the pause.
    pub short: Option<ShortTransfers>,
    /// How it uses ECN: not, with marks that are echoed [RFC3168 §6.1], or with ECT(1) and marks
    /// that are counted [RFC9331 §4.2].
    ///
    /// [RFC3168 §6.1]: https://www.rfc-editor.org/rfc/rfc3168#section-6.1
    /// [RFC9331 §4.2]: https://www.rfc-editor.org/rfc/rfc9331#section-4.2
    pub ecn: EcnMode,
    /// Maximum receive window.
    pub receive_window: DataSize,
    /// Size of the send buffer, which keeps data for retransmission.
    pub send_buffer: DataSize,
    /// Limit on the data in the queue of the host's interface, if that queue is modelled.
    pub small_queue: DataSize,
    /// Times in which the processor of its hosts is stalled, sorted and disjoint. Timers that are
    /// due in such a time fire when it ends. Packets are processed when the links deliver them.
    pub timer_stalls: Vec<Range<Timestamp>>,
}

impl Tcp {
    /// One connection that always has something to send, with the default settings of Linux.
    /// Prague has L4S, and the others have no ECN.
    pub fn new(congestion: Congestion) -> Self {
        Self {
            congestion,
            short: None,
            ecn: match congestion {
                Congestion::Prague => EcnMode::L4s,
                _ => EcnMode::Off,
            },
            receive_window: RECEIVE_WINDOW,
            send_buffer: SEND_BUFFER,
            small_queue: SMALL_QUEUE,
            timer_stalls: Vec::new(),
        }
    }

    weir::with! {
        with_short: short: Option<ShortTransfers>,
        with_ecn: ecn: EcnMode,
        with_receive_window: receive_window: DataSize,
        with_send_buffer: send_buffer: DataSize,
        with_small_queue: small_queue: DataSize,
        with_timer_stalls: timer_stalls: Vec<Range<Timestamp>>,
    }
}

/// Short transfers, as for web pages [RFC8868 §4.4].
///
/// [RFC8868 §4.4]: https://www.rfc-editor.org/rfc/rfc8868#section-4.4
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShortTransfers {
    /// Minimum size of a transfer. Sizes have a uniform distribution.
    pub min_size: DataSize,
    /// Maximum size of a transfer.
    pub max_size: DataSize,
    /// Mean idle time between two transfers. Idle times have an exponential distribution.
    pub mean_idle: TimeDelta,
    /// Whether the flow starts with an idle time.
    pub starts_idle: bool,
}

impl ShortTransfers {
    /// Transfers of these sizes with this mean idle time between them. The first one starts at
    /// once.
    pub const fn new(min_size: DataSize, max_size: DataSize, mean_idle: TimeDelta) -> Self {
        Self { min_size, max_size, mean_idle, starts_idle: false }
    }

    weir::with! {
        with_starts_idle: starts_idle: bool,
    }
}

#[cfg(test)]
mod tests;
