//! What quinn-proto has its own way of.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
pub use quinn_proto as proto;
use quinn_proto::{
    Connection, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, ServerConfig, Transmit,
};
use weir::Bitrate;

/// As many datagrams as quinn asks for at once.
const BATCH: usize = 10;

pub fn endpoint(config: EndpointConfig, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::new(Arc::new(config), server.map(Arc::new), true, None)
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

/// What an application reads: the rate in the metrics, else the window in a round trip.
pub fn estimate(connection: &Connection) -> Option<Bitrate> {
    let controller = connection.congestion_state();
    if let Some(bps) = controller.metrics().pacing_rate.filter(|&bps| bps > 0) {
        return Some(Bitrate::from_bps(bps));
    }
    let rtt = connection.rtt().as_secs_f64();
    Some(Bitrate::from_bps_f64(controller.window() as f64 * 8.0 / rtt))
}

/// quinn with its sockets.
#[allow(dead_code, reason = "examples that include this file have no sockets")]
pub mod host {
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::time::Duration;

    use quinn::rustls::RootCertStore;
    use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use quinn::{ClientConfig, ServerConfig, TransportConfig};
    pub use quinn::{Connection, Endpoint};
    use weir_quinn::{Control, RealTime};

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
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        endpoint.set_default_client_config(config);
        endpoint
    }

    pub fn control(connection: &Connection) -> Control {
        weir_quinn::control(connection.congestion_state()).unwrap()
    }

    pub fn rtt(connection: &Connection) -> Duration {
        connection.rtt()
    }
}
