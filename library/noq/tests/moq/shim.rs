//! What moq-noq-proto has its own way of.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
pub use moq_noq_proto as proto;
use moq_noq_proto::congestion::Controller;
use moq_noq_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple, PathId,
    ServerConfig, Transmit, TransportConfig,
};
use weir::Bitrate;
pub use weir_noq::RealTime;
pub use weir_noq::moq::control;

/// Least share of the link, and of whole frames, with a full way back.
pub const FULL_WAY_BACK: (f64, f64) = (0.5, 0.95);
/// As many datagrams as noq asks for at once.
const BATCH: NonZeroUsize = NonZeroUsize::new(10).unwrap();

pub fn endpoint(config: EndpointConfig, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::new(Arc::new(config), server.map(Arc::new), true)
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
    endpoint.handle(now, FourTuple::new(remote, None), ecn, bytes, buffer)
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

/// What an application reads: the pacing rate, as the metrics have no estimate.
pub fn estimate(connection: &Connection) -> Option<Bitrate> {
    let rtt = connection.rtt(PathId::ZERO)?;
    Some(host::estimate_of(state(connection)?, rtt))
}

/// The controller of the only path.
pub fn state(connection: &Connection) -> Option<&dyn Controller> {
    connection.congestion_state(PathId::ZERO)
}

/// moq-noq with its sockets.
#[path = "host.rs"]
#[allow(dead_code, unused_imports, reason = "not all who include this file need all of it")]
pub mod host;
