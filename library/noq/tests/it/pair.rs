//! Two ends of a connection without sockets, in virtual time: a publisher whose frames leave as
//! one stream for each group, and a subscriber. What differs between stacks is in `shim`.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use weir::{Bitrate, Timestamp};
use weir_quic::testing::{End, Frame, Groups, Host};

use crate::shim::{self, proto};
use proto::rustls::RootCertStore;
use proto::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, Incoming, ServerConfig, StreamId, TransportConfig, VarInt,
};

const PUBLISHER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1);
const SUBSCRIBER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 2);

pub struct Datagram {
    bytes: Vec<u8>,
    ecn: Option<proto::EcnCodepoint>,
}

struct Peer {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
}

impl Peer {
    /// Passes events between the endpoint and its connection.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }
}

/// A group's stream, and what did not fit it yet.
struct Outgoing {
    stream: StreamId,
    pending: u64,
    is_finished: bool,
}

pub struct Pair {
    origin: Instant,
    publisher: Peer,
    subscriber: Peer,
    is_connected: bool,
    streams: BTreeMap<u64, Outgoing>,
    /// The groups by the number of their streams.
    opened: Vec<u64>,
    reading: Vec<StreamId>,
    groups: Groups,
    whole: Vec<Frame>,
    /// Responses of the endpoints.
    responses: VecDeque<(End, Datagram)>,
}

impl Pair {
    /// A pair whose publisher has this transport.
    pub fn new(transport: TransportConfig, seed: u8) -> Self {
        let (server, client) = configs(transport);
        let mut endpoints = [Some(server), None].map(|server| {
            let mut config = EndpointConfig::default();
            config.rng_seed(Some([seed; 32]));
            shim::endpoint(config, server)
        });
        let origin = Instant::now();
        let connect = endpoints[1].connect(origin, client, SUBSCRIBER, "localhost");
        let connection = Some(connect.expect("the configuration is complete"));
        let [subscriber, publisher] = endpoints;
        Self {
            origin,
            publisher: Peer { endpoint: publisher, connection },
            subscriber: Peer { endpoint: subscriber, connection: None },
            is_connected: false,
            streams: BTreeMap::new(),
            opened: Vec::new(),
            reading: Vec::new(),
            groups: Groups::default(),
            whole: Vec::new(),
            responses: VecDeque::new(),
        }
    }

    /// The publisher's connection.
    pub fn connection(&self) -> Option<&Connection> {
        self.publisher.connection.as_ref().map(|(_, connection)| connection)
    }

    fn instant(&self, now: Timestamp) -> Instant {
        now.to_instant(self.origin).expect("a run is short")
    }

    fn peer(&mut self, end: End) -> &mut Peer {
        match end {
            End::Publisher => &mut self.publisher,
            End::Subscriber => &mut self.subscriber,
        }
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        let mut buffer = Vec::new();
        let accepted = self.subscriber.endpoint.accept(incoming, now, &mut buffer, None);
        self.subscriber.connection = accepted.ok();
    }

    /// Events of both connections.
    fn settle(&mut self) {
        self.publisher.settle();
        self.subscriber.settle();
        if let Some((_, connection)) = &mut self.publisher.connection {
            while let Some(event) = connection.poll() {
                self.is_connected |= matches!(event, Event::Connected);
            }
        }
        self.read();
    }

    fn read(&mut self) {
        let Some((_, connection)) = &mut self.subscriber.connection else { return };
        while connection.poll().is_some() {}
        while let Some(stream) = connection.streams().accept(Dir::Uni) {
            self.reading.push(stream);
        }
        for index in (0..self.reading.len()).rev() {
            let stream = self.reading[index];
            let mut bytes = 0;
            let is_over = read_stream(connection, stream, &mut bytes);
            let group = self.opened[stream.index() as usize];
            self.groups.on_read(group, bytes, &mut self.whole);
            if is_over {
                self.reading.swap_remove(index);
            }
        }
    }

    /// Writes what the streams have room for, newer groups first.
    fn write(&mut self) {
        let Some((_, connection)) = &mut self.publisher.connection else { return };
        let zeros = [0; 16_384];
        for outgoing in self.streams.values_mut().rev() {
            let mut stream = connection.send_stream(outgoing.stream);
            while outgoing.pending > 0 {
                let wanted = outgoing.pending.min(zeros.len() as u64) as usize;
                let Ok(written) = stream.write(&zeros[..wanted]) else { break };
                outgoing.pending -= written as u64;
            }
            if outgoing.is_finished && outgoing.pending == 0 {
                // It may be finished already.
                let _ = stream.finish();
            }
        }
    }

    fn begin_group(&mut self, group: u64) {
        let Some((_, connection)) = &mut self.publisher.connection else { return };
        let Some(stream) = connection.streams().open(Dir::Uni) else { return };
        let priority = i32::try_from(group).unwrap_or(i32::MAX);
        let _ = connection.send_stream(stream).set_priority(priority);
        self.opened.push(group);
        self.streams.values_mut().for_each(|outgoing| outgoing.is_finished = true);
        self.streams.insert(group, Outgoing { stream, pending: 0, is_finished: false });
        // A group that ended a second ago is of no use.
        let old = group.checked_sub(2).and_then(|old| self.streams.remove(&old));
        if let Some(old) = old {
            let _ = connection.send_stream(old.stream).reset(VarInt::from_u32(0));
        }
    }
}

/// Reads all there is. Returns whether the stream is over.
fn read_stream(connection: &mut Connection, stream: StreamId, bytes: &mut u64) -> bool {
    let mut received = connection.recv_stream(stream);
    let Ok(mut chunks) = received.read(true) else { return true };
    let is_over = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => *bytes += chunk.bytes.len() as u64,
            Ok(None) | Err(proto::ReadError::Reset(_)) => break true,
            Err(proto::ReadError::Blocked) => break false,
        }
    };
    let _ = chunks.finalize();
    is_over
}

/// Keys of one size, so that equal seeds give datagrams of equal sizes.
fn configs(transport: TransportConfig) -> (ServerConfig, ClientConfig) {
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("ring has Ed25519");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let certificate: CertificateDer<'static> =
        params.self_signed(&key).expect("a complete certificate").der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut server = ServerConfig::with_single_cert(vec![certificate], key).expect("a key pair");
    server.transport_config(Arc::new(shim::transport()));
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
    client.transport_config(Arc::new(transport));
    (server, client)
}

impl Host for Pair {
    type Datagram = Datagram;

    fn size(datagram: &Datagram) -> usize {
        datagram.bytes.len()
    }

    fn on_datagram(&mut self, now: Timestamp, at: End, datagram: Datagram, is_marked: bool) {
        let now = self.instant(now);
        let remote = if at == End::Publisher { SUBSCRIBER } else { PUBLISHER };
        let marked = Some(proto::EcnCodepoint::Ce).filter(|_| is_marked);
        let ecn = datagram.ecn.and(marked.or(datagram.ecn));
        let mut buffer = Vec::new();
        let peer = self.peer(at);
        let bytes = bytes::BytesMut::from(datagram.bytes.as_slice());
        let event = shim::handle(&mut peer.endpoint, now, remote, ecn, bytes, &mut buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut peer.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(transmit)) => {
                buffer.truncate(transmit.size);
                let datagram = Datagram { bytes: buffer, ecn: transmit.ecn };
                self.responses.push_back((at, datagram));
            }
            None => {}
        }
        self.settle();
    }

    fn on_timeout(&mut self, now: Timestamp) {
        let now = self.instant(now);
        for peer in [&mut self.publisher, &mut self.subscriber] {
            let Some((_, connection)) = &mut peer.connection else { continue };
            if connection.poll_timeout().is_some_and(|due| due <= now) {
                connection.handle_timeout(now);
            }
        }
        self.settle();
    }

    fn next_timeout(&mut self) -> Option<Timestamp> {
        let peers = [&mut self.publisher, &mut self.subscriber].into_iter();
        let connections = peers.filter_map(|peer| peer.connection.as_mut());
        let timeouts = connections.filter_map(|(_, connection)| shim::timeout(connection));
        timeouts.min().map(|due| Timestamp::from_instant(self.origin, due))
    }

    fn transmit(&mut self, now: Timestamp, sent: &mut Vec<(End, Datagram)>) {
        self.write();
        sent.extend(self.responses.drain(..));
        let now = self.instant(now);
        for end in [End::Publisher, End::Subscriber] {
            let peer = self.peer(end);
            let Some((_, connection)) = &mut peer.connection else { continue };
            let mut buffer = Vec::new();
            while let Some(transmit) = shim::poll_transmit(connection, now, &mut buffer) {
                let segment = transmit.segment_size.unwrap_or(transmit.size);
                for bytes in buffer[..transmit.size].chunks(segment) {
                    sent.push((end, Datagram { bytes: bytes.to_vec(), ecn: transmit.ecn }));
                }
                buffer.clear();
            }
            peer.settle();
        }
    }

    fn is_connected(&self) -> bool {
        self.is_connected
    }

    fn send(&mut self, _now: Timestamp, frame: Frame) {
        if !self.streams.contains_key(&frame.group) {
            self.begin_group(frame.group);
        }
        if let Some(outgoing) = self.streams.get_mut(&frame.group) {
            outgoing.pending += frame.size.as_bytes();
            self.groups.on_sent(frame);
        }
    }

    fn estimate(&self) -> Option<Bitrate> {
        self.connection().and_then(shim::estimate)
    }

    fn take_whole(&mut self, whole: &mut Vec<Frame>) {
        whole.append(&mut self.whole);
    }
}
