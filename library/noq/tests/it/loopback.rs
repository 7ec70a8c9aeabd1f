//! A stack over sockets, through a relay that is a bottleneck.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use tokio::net::UdpSocket;
use weir::{Algorithm, Bitrate, RateLimits};
use weir_quic::Control;

use crate::shim::RealTime;
use crate::shim::host::{self, Connection, Endpoint};

/// The bottleneck: a packet of so many bytes takes so long.
const BYTES_PER_MS: f64 = 250.0;
const DELAY: Duration = Duration::from_millis(15);
const LENGTH: Duration = Duration::from_millis(3_500);

/// Carries datagrams between a publisher, which it learns of, and a subscriber. Those to the
/// subscriber wait for the bottleneck.
async fn relay(socket: Arc<UdpSocket>, subscriber: SocketAddr) {
    let (mut publisher, mut free_at) = (None, Instant::now());
    let mut buffer = [0; 2_048];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let now = Instant::now();
        let (to, leaves) = if from == subscriber {
            (publisher, now)
        } else {
            publisher = Some(from);
            let time = Duration::from_secs_f64(length as f64 / BYTES_PER_MS / 1e3);
            free_at = free_at.max(now) + time;
            (Some(subscriber), free_at)
        };
        let Some(to) = to else { continue };
        let (socket, bytes) = (Arc::clone(&socket), buffer[..length].to_vec());
        tokio::spawn(async move {
            tokio::time::sleep_until((leaves + DELAY).into()).await;
            let _ = socket.send_to(&bytes, to).await;
        });
    }
}

async fn count(endpoint: Endpoint, bytes: Arc<AtomicUsize>) {
    let Some(incoming) = endpoint.accept().await else { return };
    let Ok(connection) = incoming.await else { return };
    let Ok(mut stream) = connection.accept_uni().await else { return };
    let mut buffer = [0; 65_536];
    while let Ok(Some(length)) = stream.read(&mut buffer).await {
        bytes.fetch_add(length, Ordering::Relaxed);
    }
}

/// Writes as much as the connection takes.
async fn flood(connection: &Connection) {
    let mut stream = connection.open_uni().await.unwrap();
    let end = Instant::now() + LENGTH;
    while Instant::now() < end {
        let written = tokio::time::timeout(Duration::from_millis(100), stream.write(&[0; 8_192]));
        let _ = written.await;
    }
}

async fn run() -> (usize, Duration, Control) {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let here = (Ipv4Addr::LOCALHOST, 0).into();
    let subscriber = host::server(certificate.clone(), key.serialize_der(), here);
    let address = subscriber.local_addr().unwrap();
    let bytes = Arc::new(AtomicUsize::new(0));
    let counted = tokio::spawn(count(subscriber, Arc::clone(&bytes)));
    let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
    let relayed = socket.local_addr().unwrap();
    let relay = tokio::spawn(relay(socket, address));

    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(10_000)).unwrap();
    let factory = Arc::new(RealTime::new(Algorithm::Sluice, limits));
    let publisher = host::client(certificate, factory, here);
    let connection = publisher.connect(relayed, "localhost").unwrap().await.unwrap();
    let control = host::control(&connection).unwrap();
    flood(&connection).await;
    let rtt = host::rtt(&connection);
    counted.abort();
    relay.abort();
    (bytes.load(Ordering::Relaxed), rtt, control)
}

#[test]
fn a_connection_finds_the_bottleneck_and_keeps_its_queue_short() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (bytes, rtt, control) = runtime.block_on(run());
    // 2 Mbit/s for 3.5 s are 875,000 bytes; other work of this machine takes some.
    assert!(bytes > 300_000, "{bytes}");
    assert!(rtt < Duration::from_millis(300), "{rtt:?}");
    let target = control.target().bitrate;
    assert!(target > Bitrate::from_kbps(700) && target < Bitrate::from_kbps(6_000), "{target}");
}
