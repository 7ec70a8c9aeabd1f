//! The two ends of a call: the reports of each peer, and the captures at the hosts.

use std::net::Ipv4Addr;

use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::derive::Interval;
use weir_record::calls::stats::Kind;
use weir_scenario::call::Relay;

use super::link_log::{LinkLog, link_log, link_window};
use super::sources::{Sources, StreamRole};
use crate::measure::capture::{HostCapture, Side, Sighting, Stream, Window, between, loss_ratio};
use crate::measure::outcome::{CallOutcome, CallResult, PeerOutcome};
use crate::message::Peer;
use crate::plan::{Call, CallConfig};

/// How much older than its timestamp the counters of a `getStats` report can be: Chromium returns a
/// cached report for this long.
const REPORT_EDGE: TimeDelta = TimeDelta::from_millis(50);

/// A stream from one peer to the other.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerStream {
    /// The sending peer.
    pub from: Peer,
    /// Purpose of the stream.
    pub role: StreamRole,
    /// The stream in both captures.
    pub stream: Stream,
}

/// Captured rates of the video in the interval between two reports of a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapturedInterval {
    /// Start of the interval: time of the earlier report.
    pub start: Timestamp,
    /// End of the interval: time of the later report.
    pub end: Timestamp,
    /// Bytes of the IP packets that the peer sent, retransmissions included.
    pub sent_bytes: u64,
    /// Bytes of the IP packets that it received.
    pub received_bytes: u64,
    /// Loss ratio of the received video, by Equation 1 of aalto.
    pub loss_ratio: Option<f64>,
}

/// The two ends of a call, the captures of their hosts, and the emulator's log of the packets
/// between them.
#[derive(Clone, Copy, Debug)]
pub struct CallEnds<'a> {
    /// Peer a, peer b.
    pub peers: [&'a PeerOutcome; 2],
    /// The capture at the host of each peer.
    pub captures: [&'a HostCapture; 2],
    /// Destination of each peer's media: the other peer, or the relay of both.
    pub destinations: [Ipv4Addr; 2],
    /// The emulator's log of each peer's packets; `None` unless they cross exactly one hop between
    /// the two hosts.
    pub logs: [Option<LinkLog>; 2],
    /// Whether the captures show media headers. They do not if media is sent over TCP to a relay.
    pub shows_media: bool,
    /// The time over which emulator and captures are compared.
    pub window: Window,
}

impl<'a> CallEnds<'a> {
    /// The ends of a call. `None` if a capture of either end is missing, behind NATs, or if neither
    /// peer has reports.
    pub fn of(
        config: &CallConfig,
        call: &Call,
        result: &'a CallResult,
        outcome: &'a CallOutcome,
    ) -> Option<Self> {
        // Behind a NAT both ends know the same packet by other addresses.
        let is_simple = config.network.nats.is_empty() && config.handovers.is_empty();
        if !is_simple || config.ice.is_some() {
            return None;
        }
        let hosts = call.ends.map(|end| config.participants[end].host);
        let captures = [outcome.captures.get(hosts[0])?, outcome.captures.get(hosts[1])?];
        let [a, b] = &result.peers;
        // A forwarding server does not report.
        let reporting = result.peers.iter().filter(|peer| !peer.reports.is_empty()).count();
        if reporting == 0 {
            return None;
        }
        let relay = config.relay.and_then(|relay| outcome.captures.get(relay.host));
        let window = link_window(config, &outcome.emulation);
        let logs = [hosts, [hosts[1], hosts[0]]]
            .map(|hosts| link_log(&outcome.emulation, &config.network, hosts, &window));
        Some(Self {
            peers: [a, b],
            captures,
            destinations: [captures[1], captures[0]].map(|far| relay.unwrap_or(far).address),
            // Several calls run between a participant and a server.
            logs: if relay.is_none() && reporting == 2 { logs } else { [None; 2] },
            shows_media: config.relay.is_none_or(|relay| relay.transport == Relay::Udp),
            window,
        })
    }

    /// The media streams of a peer, by SSRC.
    pub fn streams(&self, from: Peer) -> Vec<PeerStream> {
        self.streams_within(from, &self.window)
    }

    pub(super) fn streams_within(&self, from: Peer, window: &Window) -> Vec<PeerStream> {
        let [near, far] = [from, from.other()].map(Peer::index);
        let sources = self.sources(from);
        // A relay or server also carries the streams of other calls.
        let is_alone = self.peers.iter().all(|peer| !peer.reports.is_empty());
        let mut streams = Vec::new();
        for (&(to, ssrc), sent) in &self.captures[near].sent.streams {
            if to != self.destinations[near] {
                continue;
            }
            let received = self.captures[far].received.streams.get(&(self.destinations[far], ssrc));
            let received = received.map_or(&[][..], Vec::as_slice);
            let (role, stream) = (sources.role(ssrc), Stream::of(ssrc, sent, received, window));
            if role != StreamRole::Other || (is_alone && stream.received.within.packets > 0) {
                streams.push(PeerStream { from, role, stream });
            }
        }
        streams
    }

    /// Captured rates at a peer's host for each interval between two of its reports.
    pub fn intervals(&self, peer: Peer) -> Vec<CapturedInterval> {
        let capture = self.captures[peer.index()];
        let sent = self.media(&capture.sent, peer);
        let received = self.media(&capture.received, peer.other());
        let video = received.iter().find(|(role, _)| *role == StreamRole::Video);
        let mut intervals = Vec::new();
        for Interval { start, end, .. } in self.peers[peer.index()].intervals() {
            let [mut sent_bytes, mut received_bytes] = [0, 0];
            for (streams, bytes) in [(&sent, &mut sent_bytes), (&received, &mut received_bytes)] {
                for packet in streams.iter().flat_map(|(_, packets)| between(packets, start, end)) {
                    *bytes += u64::from(packet.size);
                }
            }
            let loss_ratio = video.and_then(|(_, packets)| loss_ratio(packets, start, end));
            intervals.push(CapturedInterval { start, end, sent_bytes, received_bytes, loss_ratio });
        }
        intervals
    }

    /// The video streams of `from` in the sent or received packets of a host.
    fn media<'s>(&self, side: &'s Side, from: Peer) -> Vec<(StreamRole, &'s [Sighting])> {
        let sources = self.sources(from);
        let streams = side.streams.iter();
        let streams = streams.map(|((_, ssrc), it)| (sources.role(*ssrc), it.as_slice()));
        streams.filter(|(role, _)| role.kind() == Some(Kind::Video)).collect()
    }

    /// The SSRCs of the streams that a peer sends.
    pub(super) fn sources(&self, from: Peer) -> Sources {
        let [sender, receiver] = [from, from.other()].map(|peer| &self.peers[peer.index()].reports);
        Sources::of(sender, receiver)
    }
}

/// The window from one report to a later one.
pub(super) fn report_window(start: Timestamp, end: Timestamp) -> Window {
    Window { start, end, edge: REPORT_EDGE, travel: TimeDelta::ZERO }
}
