//! A simulated connection as a host of `weir_quic::testing`, so that it can stand beside a real
//! stack over the same network and with the same source.

use std::fmt;

use weir::feedback::Ecn;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_quic::testing::{self, Frame, Host};

use super::packet::HEADERS;
use super::{Quic, QuicEnds, QuicPacket};
use crate::config::{FlowConfig, FlowKind, Media};
use crate::flow::{Body, End, Ends, Outbox, Packet};

/// Both ends of a connection.
pub struct QuicPair {
    ends: QuicEnds,
    out: Outbox,
    pending: Vec<(testing::End, QuicDatagram)>,
}

/// What it hands to the network.
pub struct QuicDatagram(Box<QuicPacket>);

impl fmt::Debug for QuicPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QuicPair").field(&self.ends).finish()
    }
}

impl fmt::Debug for QuicDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl QuicPair {
    /// A connection of this flow, whose frames come from the host's caller.
    pub fn new(quic: &Quic<Media>) -> Self {
        let flow = FlowConfig::new("quic-1", TimeDelta::MAX, FlowKind::Quic(quic.clone()));
        let ends = QuicEnds::new(&flow, quic, Seed::new(1)).fed_from_outside();
        Self { ends, out: Outbox::default(), pending: Vec::new() }
    }

    /// Takes what an end sends.
    fn take(&mut self, from: testing::End) {
        for packet in self.out.packets.drain(..) {
            if let Body::Quic(quic) = packet.body {
                self.pending.push((from, QuicDatagram(quic)));
            }
        }
        self.out.changes.clear();
    }
}

const BOTH: [(testing::End, End); 2] =
    [(testing::End::Publisher, End::Sender), (testing::End::Subscriber, End::Receiver)];

impl Host for QuicPair {
    type Datagram = QuicDatagram;

    fn size(datagram: &QuicDatagram) -> usize {
        (datagram.0.size().as_bytes() - HEADERS) as usize
    }

    fn on_datagram(
        &mut self,
        now: Timestamp,
        at: testing::End,
        datagram: QuicDatagram,
        is_marked: bool,
    ) {
        let ecn = if is_marked { Ecn::Ce } else { Ecn::NotEct };
        let size = datagram.0.size();
        let packet = Packet { size, ecn, body: Body::Quic(datagram.0) };
        let (_, end) = BOTH[at as usize];
        self.ends.on_packet(now, end, &packet, &mut self.out);
        self.take(at);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        for (at, end) in BOTH {
            if self.ends.next_deadline(end).is_some_and(|due| due <= now) {
                self.ends.on_deadline(now, end, &mut self.out);
                self.take(at);
            }
        }
    }

    fn next_timeout(&mut self) -> Option<Timestamp> {
        End::BOTH.into_iter().filter_map(|end| self.ends.next_deadline(end)).min()
    }

    fn transmit(&mut self, _now: Timestamp, sent: &mut Vec<(testing::End, QuicDatagram)>) {
        sent.append(&mut self.pending);
    }

    fn is_connected(&self) -> bool {
        self.ends.estimate().is_some()
    }

    fn send(&mut self, now: Timestamp, frame: Frame) {
        self.ends.write(now, &frame, &mut self.out);
        self.take(testing::End::Publisher);
    }

    fn estimate(&self) -> Option<Bitrate> {
        self.ends.estimate()
    }

    fn take_whole(&mut self, whole: &mut Vec<Frame>) {
        self.ends.take_whole(whole);
    }
}
