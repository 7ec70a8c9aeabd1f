//! noq with its sockets, as one end of a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use noq::congestion::{Controller, ControllerFactory};
use noq::rustls::RootCertStore;
use noq::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use noq::{ClientConfig, PathId, ServerConfig, TransportConfig};
pub use noq::{Connection, Endpoint, RecvStream, SendStream, VarInt};
use weir::Bitrate;
use weir_noq::Control;

pub type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// An end that is connected to.
pub fn server(certificate: CertificateDer<'static>, key: Vec<u8>, at: SocketAddr) -> Endpoint {
    let key = PrivateKeyDer::Pkcs8(key.into());
    let config = ServerConfig::with_single_cert(vec![certificate], key).expect("a key pair");
    Endpoint::server(config, at).expect("an address of this host")
}

/// An end that connects to the server with this certificate, under controllers of this factory.
pub fn client(certificate: CertificateDer<'static>, factory: Factory, at: SocketAddr) -> Endpoint {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a certificate");
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(factory);
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(at).expect("an address of this host");
    endpoint.set_default_client_config(config);
    endpoint
}

/// What an application reads as the rate for its media.
pub fn estimate(connection: &Connection) -> Bitrate {
    estimate_of(&*state(connection), rtt(connection))
}

/// Noq's estimate, else the window in a round trip.
pub fn estimate_of(controller: &dyn Controller, rtt: Duration) -> Bitrate {
    match rate_of(controller) {
        Some(rate) => rate,
        None => Bitrate::from_bps_f64(controller.window() as f64 * 8.0 / rtt.as_secs_f64()),
    }
}

/// The rate for media that the controller tells.
pub fn rate_of(controller: &dyn Controller) -> Option<Bitrate> {
    controller.metrics().bandwidth_estimate.map(Bitrate::from_bps)
}

/// Datagrams that arrived, and their bytes.
pub fn received(connection: &Connection) -> (u64, u64) {
    let received = connection.stats().udp_rx;
    (received.datagrams, received.bytes)
}

pub fn control(connection: &Connection) -> Option<Control> {
    weir_noq::control(state(connection))
}

/// The controller of the only path.
fn state(connection: &Connection) -> Box<dyn Controller> {
    connection.congestion_state(PathId::ZERO).expect("a connection has this path")
}

pub fn rtt(connection: &Connection) -> Duration {
    connection.rtt(PathId::ZERO).expect("a connection has this path")
}
