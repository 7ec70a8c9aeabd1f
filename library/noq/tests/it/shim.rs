//! What noq-proto has its own way of.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
pub use noq_proto as proto;
use noq_proto::congestion::Controller;
use noq_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple, PathId,
    ServerConfig, Transmit, TransportConfig,
};
use weir::Bitrate;
pub use weir_noq::{RealTime, control};

/// Least share of the link, and of whole frames, with a full way back. With receive timestamps it
/// costs nothing.
pub const FULL_WAY_BACK: (f64, f64) = (if cfg!(noq_receive_timestamps) { 0.8 } else { 0.5 }, 0.95);
/// As many datagrams as noq asks for at once.
const BATCH: NonZeroUsize = NonZeroUsize::new(10).unwrap();

pub fn endpoint(config: EndpointConfig, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::new(Arc::new(config), server.map(Arc::new), true)
}

/// A transport that asks for receive timestamps where noq has them, see `arena/noq-receive-ts`.
pub fn transport() -> TransportConfig {
    #[cfg_attr(not(noq_receive_timestamps), expect(unused_mut))]
    let mut transport = TransportConfig::default();
    #[cfg(noq_receive_timestamps)]
    transport.max_receive_timestamps_per_ack(Some(32_u32.into()));
    transport
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

/// What an application reads.
pub fn estimate(connection: &Connection) -> Option<Bitrate> {
    let rtt = connection.rtt(PathId::ZERO)?;
    Some(host::estimate_of(state(connection)?, rtt))
}

/// The controller of the only path.
pub fn state(connection: &Connection) -> Option<&dyn Controller> {
    connection.congestion_state(PathId::ZERO)
}

/// noq with its sockets.
#[path = "host.rs"]
#[allow(dead_code, unused_imports, reason = "not all who include this file need all of it")]
pub mod host;
