//! What noq-proto has its own way of.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
pub use noq_proto as proto;
use noq_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, FourTuple, PathId,
    ServerConfig, Transmit,
};
use weir::Bitrate;

/// As many datagrams as noq asks for at once.
const BATCH: NonZeroUsize = NonZeroUsize::new(10).unwrap();

pub fn endpoint(config: EndpointConfig, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::new(Arc::new(config), server.map(Arc::new), true)
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

/// What an application reads: noq's estimate, else the window in a round trip.
pub fn estimate(connection: &Connection) -> Option<Bitrate> {
    let controller = connection.congestion_state(PathId::ZERO)?;
    let metrics = controller.metrics();
    if let Some(bps) = metrics.bandwidth_estimate {
        return Some(Bitrate::from_bps(bps));
    }
    let rtt = connection.rtt(PathId::ZERO)?.as_secs_f64();
    Some(Bitrate::from_bps_f64(controller.window() as f64 * 8.0 / rtt))
}

/// noq with its sockets.
#[allow(dead_code, reason = "examples that include this file have no sockets")]
pub mod host {
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::time::Duration;

    use noq::rustls::RootCertStore;
    use noq::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use noq::{ClientConfig, PathId, ServerConfig, TransportConfig};
    pub use noq::{Connection, Endpoint};
    use weir_noq::{Control, RealTime};

    pub fn server(certificate: CertificateDer<'static>, key: Vec<u8>) -> Endpoint {
        let key = PrivateKeyDer::Pkcs8(key.into());
        let config = ServerConfig::with_single_cert(vec![certificate], key).unwrap();
        Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap()
    }

    pub fn client(certificate: CertificateDer<'static>, factory: RealTime) -> Endpoint {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(factory));
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
        config.transport_config(Arc::new(transport));
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        endpoint.set_default_client_config(config);
        endpoint
    }

    pub fn control(connection: &Connection) -> Control {
        let state = connection.congestion_state(PathId::ZERO).unwrap();
        weir_noq::control(state).unwrap()
    }

    pub fn rtt(connection: &Connection) -> Duration {
        connection.rtt(PathId::ZERO).unwrap()
    }
}
