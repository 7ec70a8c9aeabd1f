//! Packet captures at both ends of a call, and what they say beside the other witnesses.
//!
//! ```text
//! host's interface -> kernel -> Recorder -> pcapng file -> HostCapture -> Stream -> agreement
//! ```
//!
//! A recorder sees what any sniffer on the host would, and knows nothing of the browser or of the
//! emulator. Payload never reaches the disk.

pub mod agreement;
mod counted;
mod host;
mod json;
mod packet;
mod pcapng;
mod recorder;
mod stream;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_emu::{Emulation, Host, Plan};
use weir_lab::scenario::call::Relay;
use weir_net::Jitter;

use crate::derive::{self, Interval};
use crate::error::CallError;
use crate::message::Peer;
use crate::outcome::{CallOutcome, CallResult, PeerOutcome};
use crate::plan::{Call, CallConfig};
use crate::stats::Kind;
use agreement::{LinkLog, Row};

pub use counted::{Compared, ComparedInterval, Counted, Way};
pub use host::{Count, HostCapture, Side, Sighting, Window, Windowed};
pub use json::emit;
pub use packet::{Content, Packet, Rtp};
pub use pcapng::{Packet as CapturedPacket, Reader, Writer};
pub use recorder::{Recorded, Recorder};
pub use stream::{DELAY_BIN, DELAY_BINS, Stream, between, loss_ratio};

/// How old the counters of a `getStats` report can be beside its time stamp: Chromium hands out one
/// report for so long.
const REPORT_EDGE: TimeDelta = TimeDelta::from_millis(50);
/// Beside its lateness, the time from when a packet left a host until the emulator reads it.
const READ_EDGE: TimeDelta = TimeDelta::from_millis(2);

/// Where captures are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlan {
    /// An empty folder.
    pub folder: PathBuf,
    /// Says in each file which run it is of.
    pub comment: String,
}

/// One recorder a host.
#[derive(Debug)]
pub struct Recording {
    recorders: Vec<Recorder>,
}

impl Recording {
    /// Records all hosts, each into a file of its own: `host-1.pcapng` of the first.
    ///
    /// # Errors
    /// As [`Recorder::start`].
    pub fn start(hosts: &[Host], plan: &CapturePlan) -> Result<Self, CallError> {
        let recorder = |(index, host): (usize, &Host)| {
            let name = format!("host-{}", index + 1);
            let comment = format!("{}, {name} ({})", plan.comment, host.address());
            Recorder::start(host, &plan.folder.join(format!("{name}.pcapng")), &comment)
        };
        let recorders = hosts.iter().enumerate().map(recorder).collect::<Result<_, _>>()?;
        Ok(Self { recorders })
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// As [`Recorder::stop`].
    pub fn stop(self) -> Result<Vec<Recorded>, CallError> {
        self.recorders.into_iter().map(Recorder::stop).collect()
    }
}

/// Reads captures. `zero` is when the scenario began, since 1970.
///
/// # Errors
/// Where a file cannot be read.
pub fn read(
    recorded: &[Recorded],
    zero: Duration,
    window: &Window,
) -> Result<Vec<HostCapture>, CallError> {
    let open = |file: &Recorded| HostCapture::open(file, zero, window);
    let captures = recorded.iter().map(open).collect::<Result<_, _>>();
    captures.map_err(CallError::system("read a capture"))
}

/// The window over which emulator and captures are compared: that of the scenario.
pub fn link_window(config: &CallConfig, emulation: &Emulation) -> Window {
    let latest = TimeDelta::from_secs_f64(emulation.lateness.max().as_secs_f64());
    let network = &config.network;
    let start = Timestamp::ZERO;
    let hops = network.hops.iter().map(|hop| hop.up.delay.at(start).max(hop.down.delay.at(start)));
    let access = network.hosts.iter().map(|host| host.access_delay).max();
    let travel = hops.fold(access.unwrap_or(TimeDelta::ZERO) * 2, |sum, delay| sum + delay);
    Window { start, end: start + config.duration, edge: latest + READ_EDGE, travel }
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Video as the encoder made it.
    Video,
    /// Video that is sent again, and padding.
    Retransmission,
    /// Audio.
    Audio,
    /// What no browser of the call knows of.
    Other,
}

impl Role {
    /// As records have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Retransmission => "retransmission",
            Self::Audio => "audio",
            Self::Other => "other",
        }
    }

    /// What getStats counts it as.
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Video | Self::Retransmission => Some(Kind::Video),
            Self::Audio => Some(Kind::Audio),
            Self::Other => None,
        }
    }
}

/// A stream from one peer to the other.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerStream {
    /// Who sent it.
    pub from: Peer,
    /// What for.
    pub role: Role,
    /// What became of it.
    pub stream: Stream,
}

/// Captured rates of the video in the interval between two reports of a peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapturedInterval {
    /// Its beginning.
    pub start: Timestamp,
    /// End of the interval, as the peer's report has it.
    pub end: Timestamp,
    /// Bytes of the IP packets that the peer sent, retransmissions included.
    pub sent_bytes: u64,
    /// Bytes of the IP packets that it received.
    pub received_bytes: u64,
    /// Loss of the video that it received, by Equation 1 of aalto.
    pub loss_ratio: Option<f64>,
}

/// The two ends of a call, with the captures of their hosts, and what the emulator did with what each
/// of them sent to the other.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// Peer a, peer b.
    pub peers: [&'a PeerOutcome; 2],
    /// At the host of each.
    pub captures: [&'a HostCapture; 2],
    /// Where each sends: to the other, or to the relay of both.
    pub destinations: [Ipv4Addr; 2],
    /// Of what each sent; `None` where it does not go over one hop from one host to the other.
    pub logs: [Option<LinkLog>; 2],
    /// Whether media shows its headers: inside TCP to a relay it does not.
    pub shows_media: bool,
    /// Over which emulator and captures are compared.
    pub window: Window,
}

impl<'a> Ends<'a> {
    /// Of a call; `None` if the captures of an end are missing, or the reports of both.
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
            // Between a participant and a server go several calls.
            logs: if relay.is_none() && reporting == 2 { logs } else { [None; 2] },
            shows_media: config.relay.is_none_or(|relay| relay.transport == Relay::Udp),
            window,
        })
    }

    /// The media streams of a peer, by SSRC.
    pub fn streams(&self, from: Peer) -> Vec<PeerStream> {
        self.streams_within(from, &self.window)
    }

    fn streams_within(&self, from: Peer, window: &Window) -> Vec<PeerStream> {
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
        // To and from a relay or a server go the streams of other calls too.
        let is_alone = self.peers.iter().all(|peer| !peer.reports.is_empty());
        let is_of_call = |it: &PeerStream| {
            it.role != Role::Other || (is_alone && it.stream.received.within.packets > 0)
        };
        streams.filter(is_of_call).collect()
    }

    /// What the capture at a peer's host says of each interval between two of its reports.
    pub fn intervals(&self, peer: Peer) -> Vec<CapturedInterval> {
        let capture = self.captures[peer.index()];
        let sent = self.media(&capture.sent, peer);
        let received = self.media(&capture.received, peer.other());
        let video = received.iter().find(|(role, _)| *role == Role::Video);
        let bytes = |streams: &[(Role, &[Sighting])], from, to| -> u64 {
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

    /// The streams of the video of `from`, at one side of a host.
    fn media<'s>(&self, side: &'s Side, from: Peer) -> Vec<(Role, &'s [Sighting])> {
        let sources = self.sources(from);
        let streams = side.streams.iter();
        let streams = streams.map(|((_, ssrc), it)| (sources.role(*ssrc), it.as_slice()));
        streams.filter(|(role, _)| role.kind() == Some(Kind::Video)).collect()
    }

    /// Whether the witnesses agree, a row a quantity that two of them saw.
    pub fn agreement(&self) -> Vec<Row> {
        Peer::ALL.into_iter().flat_map(|from| self.agreement_of(from)).collect()
    }

    /// Of what one peer sends to the other.
    fn agreement_of(&self, from: Peer) -> Vec<Row> {
        let to = from.other();
        let path = format!("{} to {}", from.name(), to.name());
        let at = |what: &str, peer: Peer| format!("{what} {path}, at {}", peer.name());
        let mut rows = Vec::new();
        if self.shows_media {
            for (peer, way) in [(from, Way::Sent), (to, Way::Received)] {
                let compared = self.compared_at(peer, way);
                rows.extend(compared.iter().flat_map(|compared| compared.rows(&path)));
            }
            rows.extend(Kind::ALL.into_iter().flat_map(|kind| self.totals(from, kind, &path)));
        }
        if let Some(log) = &self.logs[from.index()] {
            rows.extend(self.link_agreement(
                from,
                log,
                [at("all packets", from), at("all packets", to)],
            ));
        }
        rows
    }

    /// Sizes of the IP packets of a kind at both ends, and the losses between them.
    fn totals(&self, from: Peer, kind: Kind, path: &str) -> Vec<Row> {
        let to = from.other();
        let (name, source) = match kind {
            Kind::Video => ("video and retransmissions", Role::Video),
            Kind::Audio => ("audio", Role::Audio),
        };
        let at = |what: &str, peer: Peer| format!("{what} {path}, at {}", peer.name());
        let reports = |peer: Peer| self.peers[peer.index()].reports.as_slice();
        let mut rows = Vec::new();
        if let Some(total) = derive::sent_total(reports(from), kind) {
            let streams = self.streams_within(from, &report_window(total.start, total.end));
            let sent = sum(&streams, kind, |stream| stream.sent);
            rows.extend(agreement::media(&at(name, from), &total, sent));
        }
        if let Some(total) = derive::received_total(reports(to), kind) {
            let streams = self.streams_within(from, &report_window(total.start, total.end));
            let received = sum(&streams, kind, |stream| stream.received);
            rows.extend(agreement::media(&at(name, to), &total, received));
            let source = streams.iter().find(|stream| stream.role == source);
            rows.extend(source.map(|PeerStream { role, stream, .. }| {
                let subject = at(role.name(), to);
                agreement::media_loss(&subject, total.lost, stream.lost, stream.sent)
            }));
        }
        rows
    }

    fn link_agreement(&self, from: Peer, log: &LinkLog, subjects: [String; 2]) -> Vec<Row> {
        let [near, far] = [from, from.other()].map(Peer::index);
        let sent = Windowed::with(&self.captures[near].sent, self.destinations[near]);
        let received = Windowed::with(&self.captures[far].received, self.destinations[far]);
        let mut rows =
            agreement::link(subjects.each_ref().map(String::as_str), log, sent, received);
        let streams: Vec<Stream> =
            self.streams(from).into_iter().map(|stream| stream.stream).collect();
        let path = format!("media {} to {}", from.name(), from.other().name());
        rows.extend(agreement::link_media(&path, log, &streams, sent));
        rows
    }
}

/// The streams whose headers `getStats` counts together: a video, and what of it is sent again.
fn sum(streams: &[PeerStream], kind: Kind, of: impl Fn(&Stream) -> Windowed) -> Windowed {
    let counted = streams.iter().filter(|stream| stream.role.kind() == Some(kind));
    counted.fold(Windowed::default(), |sum, stream| sum.plus(of(&stream.stream)))
}

/// From one report to a later one.
fn report_window(start: Timestamp, end: Timestamp) -> Window {
    Window { start, end, edge: REPORT_EDGE, travel: TimeDelta::ZERO }
}

/// What the emulator's log says of the packets from one host to another; `None` if there were none, or
/// if they do not cross exactly one hop.
fn link_log(
    emulation: &Emulation,
    network: &Plan,
    [from, to]: [usize; 2],
    window: &Window,
) -> Option<LinkLog> {
    let flow = emulation.flow(from, to)?;
    let [start, end] = [&network.hosts[from], &network.hosts[to]];
    let hop = start.node.min(end.node);
    let is_on_air = start.station.is_some() || end.station.is_some();
    if start.node.abs_diff(end.node) != 1 || is_on_air {
        return None;
    }
    let (log, link) = match start.node < end.node {
        true => (&emulation.hops[hop].up, &network.hops[hop].up),
        false => (&emulation.hops[hop].down, &network.hops[hop].down),
    };
    let access_s = (start.access_delay + end.access_delay).as_secs_f64();
    let p99 = emulation.lateness.quantile(0.99).unwrap_or_default();
    let lateness = TimeDelta::from_secs_f64(p99.as_secs_f64());
    let mut sum = LinkLog { lateness, ..LinkLog::default() };
    let (mut delay_s, mut has_outage) = (0.0, false);
    for sample in flow.samples.iter().filter(|sample| window.contains(sample.time)) {
        let traffic = &sample.traffic;
        sum.offered.packets += traffic.offered_packets;
        sum.offered.bytes += traffic.offered.as_bytes();
        sum.delivered.packets += traffic.delivered_packets;
        sum.delivered.bytes += traffic.delivered.as_bytes();
        sum.lost += traffic.lost_packets;
        sum.dropped += traffic.dropped_packets;
        sum.longest_wait = sum.longest_wait.max(traffic.mean_wait().unwrap_or(TimeDelta::ZERO));
        let at = log.samples.partition_point(|other| other.time < sample.time);
        let capacity = log.samples.get(at).and_then(|sample| sample.capacity);
        has_outage |= capacity == Some(Bitrate::ZERO);
        let transmission_s = capacity
            .map_or(0.0, |capacity| traffic.delivered.as_bits() as f64 / capacity.as_bps_f64());
        let propagation_s = link.delay.at(sample.time).as_secs_f64() + access_s;
        delay_s += traffic.waited.as_secs_f64() + transmission_s;
        delay_s += propagation_s * traffic.delivered_packets as f64;
    }
    // Changes by hand are not in the configuration. In an outage a packet's transmission takes longer
    // than any capacity tells.
    let is_fixed =
        !has_outage && link.jitters().all(|it| it == Jitter::None) && emulation.changes.is_empty();
    let is_fixed = is_fixed && sum.delivered.packets > 0;
    sum.delay = is_fixed.then(|| TimeDelta::from_secs_f64(delay_s / sum.delivered.packets as f64));
    Some(sum)
}
