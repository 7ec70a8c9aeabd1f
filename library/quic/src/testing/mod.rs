//! A network, a media source and a run in virtual time, for the tests of hosts.
//!
//! A [`Host`] is a QUIC stack with its two ends in one object. [`run`] moves its datagrams through
//! a [`Network`] and its frames from a [`Source`], and measures what came of it. Nothing waits:
//! equal seeds give equal results if the host is deterministic.

mod network;
mod source;
mod tally;

use alloc::vec::Vec;

pub use network::{LinkConfig, Network, NetworkConfig, Rival};
pub use source::{EncoderRate, Frame, Source, SourceConfig};
pub use tally::{Groups, Outcome};

use network::Delivery;
use tally::Tally;
use weir::{Bitrate, DataSize, TimeDelta, Timestamp};

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It sends media.
    Publisher,
    /// It receives media.
    Subscriber,
}

impl End {
    /// The opposite end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Publisher => Self::Subscriber,
            Self::Subscriber => Self::Publisher,
        }
    }
}

/// Both ends of a connection of a QUIC stack.
pub trait Host {
    /// What it hands to the network.
    type Datagram;

    /// The bytes of UDP's payload in a datagram.
    fn size(datagram: &Self::Datagram) -> usize;

    /// A datagram arrived at this end, marked Congestion Experienced or not.
    fn on_datagram(&mut self, now: Timestamp, at: End, datagram: Self::Datagram, is_marked: bool);

    /// The time of [`Host::next_timeout`] has passed.
    fn on_timeout(&mut self, now: Timestamp);

    /// When a timer of one of the ends is due.
    fn next_timeout(&mut self) -> Option<Timestamp>;

    /// The next datagrams that an end sends now.
    fn transmit(&mut self, now: Timestamp, sent: &mut Vec<(End, Self::Datagram)>);

    /// Whether the publisher may send media.
    fn is_connected(&self) -> bool;

    /// The publisher has a frame.
    fn send(&mut self, now: Timestamp, frame: Frame);

    /// What the application reads as the rate for its media; `None` before there is an estimate.
    fn estimate(&self) -> Option<Bitrate>;

    /// Frames that the subscriber has got whole since the last call.
    fn take_whole(&mut self, whole: &mut Vec<Frame>);
}

/// Lets the host send media from the source over the network for this long. Measures from `from`
/// on.
pub fn run<H: Host>(
    host: &mut H,
    network: NetworkConfig,
    source: SourceConfig,
    length: TimeDelta,
    from: TimeDelta,
) -> Outcome {
    let (start, end) = (Timestamp::ZERO, Timestamp::ZERO + length);
    let mut network: Network<H::Datagram> = Network::new(network);
    let mut source = Source::new(source);
    let mut tally = Tally::new(start + from, end);
    let (mut sent, mut whole, mut now) = (Vec::new(), Vec::new(), start);
    while now <= end {
        if host.next_timeout().is_some_and(|due| due <= now) {
            host.on_timeout(now);
        }
        while let Some(delivery) = network.deliver(now) {
            let Delivery { at, datagram, is_marked } = delivery;
            host.on_datagram(now, at, datagram, is_marked);
        }
        if host.is_connected() {
            while let Some(frame) = source.next_frame(now, host.estimate()) {
                tally.on_frame(&frame);
                host.send(now, frame);
            }
        }
        host.transmit(now, &mut sent);
        for (from, datagram) in sent.drain(..) {
            let size = DataSize::from_bytes(H::size(&datagram) as u64) + network.headers();
            let passage = network.send(now, from, size, datagram);
            if from == End::Publisher {
                tally.on_packet(now, size, passage);
            }
        }
        host.take_whole(&mut whole);
        for frame in whole.drain(..) {
            tally.on_whole(now, &frame);
        }
        let frame = if host.is_connected() { Some(source.next_time()) } else { None };
        let times = [host.next_timeout(), network.next_time(), frame];
        // A timer that stays due would stop the time.
        let least = now + TimeDelta::from_micros(1);
        now = times.into_iter().flatten().min().unwrap_or(end + length).max(least);
    }
    tally.outcome(network.capacity_bytes(start + from, end))
}
