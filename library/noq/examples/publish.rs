//! Publishes frames over noq as one stream for each group, and follows the controller's rate.
//! Publisher and subscriber are in one program: run it, and read what the encoder was told.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use noq::rustls::RootCertStore;
use noq::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use noq::{ClientConfig, Connection, Endpoint, PathId, SendStream, ServerConfig, TransportConfig};
use weir::{Algorithm, Bitrate, RateLimits};
use weir_noq::RealTime;

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

const FRAME_TIME: Duration = Duration::from_millis(33);
/// A group is one second: 30 frames.
const GROUP: usize = 30;
const SECONDS: usize = 5;

/// A subscriber that reads all streams.
async fn subscribe(endpoint: Endpoint) {
    let Some(incoming) = endpoint.accept().await else { return };
    let Ok(connection) = incoming.await else { return };
    while let Ok(mut stream) = connection.accept_uni().await {
        tokio::spawn(async move { stream.read_to_end(100_000_000).await });
    }
}

async fn publish(connection: &Connection) -> Anything<()> {
    let state = connection.congestion_state(PathId::ZERO).ok_or("no path")?;
    let control = weir_noq::control(state).ok_or("another controller")?;
    let mut stream: Option<SendStream> = None;
    for number in 0..SECONDS * GROUP {
        // An encoder would be told this rate.
        let rate = control.media_bitrate();
        if number % GROUP == 0 {
            println!("group {}: {rate}, {}", number / GROUP, control.metrics().reason.as_str());
            if let Some(mut old) = stream.take() {
                old.finish()?;
            }
            let next = connection.open_uni().await?;
            next.set_priority(i32::try_from(number)?)?;
            stream = Some(next);
        }
        let frame = vec![0; (rate.as_bps_f64() / 8.0 * FRAME_TIME.as_secs_f64()) as usize];
        if let Some(stream) = &mut stream {
            stream.write_all(&frame).await?;
        }
        tokio::time::sleep(FRAME_TIME).await;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Anything<()> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let here = (Ipv4Addr::LOCALHOST, 0).into();
    let server = ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
    let subscriber = Endpoint::server(server, here)?;
    let address = subscriber.local_addr()?;
    tokio::spawn(subscribe(subscriber));

    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(10_000))?;
    let mut transport = TransportConfig::default();
    let factory = RealTime::new(Algorithm::Sluice, limits);
    transport.congestion_controller_factory(Arc::new(factory));
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(Arc::new(transport));
    let publisher = Endpoint::client(here)?;
    publisher.set_default_client_config(client);
    let connection = publisher.connect(address, "localhost")?.await?;
    publish(&connection).await
}
