//! The two ends of a call: the reports of each peer, and the captures at the hosts.

use std::net::Ipv4Addr;

use weir::units::{TimeDelta, Timestamp};
use weir_lab::calls::derive::Interval;
use weir_lab::calls::stats::Kind;
use weir_lab::scenario::call::Relay;

use super::link_log::{LinkLog, link_log, link_window};
use super::sources::{Sources, StreamRole};
use crate::capture::{HostCapture, Side, Sighting, Stream, Window, between, loss_ratio};
use crate::message::Peer;
use crate::outcome::{CallOutcome, CallResult, PeerOutcome};
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
    /// The ends of a call. `None` if a capture of either end is missing, or if neither peer has
    /// reports.
    pub fn of(
        config: &CallConfig,
        call: &Call,
        result: &'a CallResult,
        outcome: &'a CallOutcome,
    ) -> Option<Self> {
        let hosts = call.ends.map(|end| config.participants[end].host);
        let captures = [outcome.captures.get(hosts[0])?, outcome.captures.get(hosts[1])?];
        let [a, b] = &result.peers;
        // A forwarding server does not report.
        let reporting = result.peers.iter().filter(|peer| !peer.reports.is_empty()).count();
        if reporting == 0 {
            return None;
        }
        let relay = config.relay.and_then(|relay| outcome.captures.get(relay.host));
        let destination = |far: &HostCapture| relay.unwrap_or(far).address;
        let window = link_window(config, &outcome.emulation);
        let log = |hosts| link_log(&outcome.emulation, &config.network, hosts, &window);
        let logs = [log(hosts), log([hosts[1], hosts[0]])];
        Some(Self {
            peers: [a, b],
            captures,
            destinations: [destination(captures[1]), destination(captures[0])],
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
        let at_far_end = |ssrc: u32| {
            let received = self.captures[far].received.streams.get(&(self.destinations[far], ssrc));
            received.map_or(&[][..], Vec::as_slice)
        };
        let sources = self.sources(from);
        let here = self.captures[near].sent.streams.iter();
        let here = here.filter(|((to, _), _)| *to == self.destinations[near]);
        let streams = here.map(|(&(_, ssrc), sent)| {
            let stream = Stream::of(ssrc, sent, at_far_end(ssrc), window);
            PeerStream { from, role: sources.role(ssrc), stream }
        });
        // A relay or server also carries the streams of other calls.
        let is_alone = self.peers.iter().all(|peer| !peer.reports.is_empty());
        let is_of_call = |it: &PeerStream| {
            it.role != StreamRole::Other || (is_alone && it.stream.received.within.packets > 0)
        };
        streams.filter(is_of_call).collect()
    }

    /// Captured rates at a peer's host for each interval between two of its reports.
    pub fn intervals(&self, peer: Peer) -> Vec<CapturedInterval> {
        let capture = self.captures[peer.index()];
        let sent = self.media(&capture.sent, peer);
        let received = self.media(&capture.received, peer.other());
        let video = received.iter().find(|(role, _)| *role == StreamRole::Video);
        let bytes = |streams: &[(StreamRole, &[Sighting])], from, to| -> u64 {
            let packets = streams.iter().flat_map(|(_, packets)| between(packets, from, to));
            packets.map(|packet| u64::from(packet.size)).sum()
        };
        let intervals = self.peers[peer.index()].intervals();
        let captured = intervals.iter().map(|&Interval { start, end, .. }| CapturedInterval {
            start,
            end,
            sent_bytes: bytes(&sent, start, end),
            received_bytes: bytes(&received, start, end),
            loss_ratio: video.and_then(|(_, packets)| loss_ratio(packets, start, end)),
        });
        captured.collect()
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
