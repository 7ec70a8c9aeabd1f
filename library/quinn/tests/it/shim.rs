//! What quinn-proto has its own way of.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
pub use quinn_proto as proto;
use quinn_proto::congestion::Controller;
use quinn_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, ServerConfig, Transmit,
    TransportConfig,
};
use weir::Bitrate;
pub use weir_quinn::{RealTime, control};

/// Least share of the link, and of whole frames, with a full way back. The window follows the
/// smoothed round-trip time, which is behind one that grows.
pub const FULL_WAY_BACK: (f64, f64) = (0.5, 0.8);
/// As many datagrams as quinn asks for at once.
const BATCH: usize = 10;

pub fn endpoint(config: EndpointConfig, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::new(Arc::new(config), server.map(Arc::new), true, None)
}

pub fn transport() -> TransportConfig {
    TransportConfig::default()
}

pub fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    remote: SocketAddr,
    ecn: Option<EcnCodepoint>,
    bytes: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, remote, None, ecn, bytes, buffer)
}

pub fn poll_transmit(
    connection: &mut Connection,
    now: Instant,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, BATCH, buffer)
}

pub fn timeout(connection: &mut Connection) -> Option<Instant> {
    connection.poll_timeout()
}

/// What an application reads.
pub fn estimate(connection: &Connection) -> Option<Bitrate> {
    Some(host::estimate_of(state(connection)?, connection.rtt()))
}

pub fn state(connection: &Connection) -> Option<&dyn Controller> {
    Some(connection.congestion_state())
}

/// quinn with its sockets.
#[path = "host.rs"]
#[allow(dead_code, unused_imports, reason = "not all who include this file need all of it")]
pub mod host;
