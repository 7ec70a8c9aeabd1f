//! Sends over UDP in real time.

use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use weir::Timestamp;
use weir_over_udp::DATAGRAM;

use crate::camera::Camera;
use crate::progress::Progress;

/// Runs the camera until `end`.
///
/// # Errors
/// If the address cannot be used or the encoder fails.
pub fn run(address: &str, mut camera: Camera, end: Timestamp) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    let start = Instant::now();
    let clock = || Timestamp::from_nanos(start.elapsed().as_nanos() as i64);
    let mut progress = Progress::default();
    let mut buffer = [0; DATAGRAM];
    while clock() < end {
        // A receiver that is not there yet refuses datagrams. They are lost like any others.
        camera.on_timeout(clock(), |datagram| {
            let _ = socket.send(&datagram);
        })?;
        progress.on_time(clock(), &camera);

        // Waits for RTCP until something is due. Zero would wait forever.
        let due = camera.next_timeout().min(progress.next_line());
        let wait = Duration::from_nanos((due - clock()).as_nanos().max(1_000) as u64);
        socket.set_read_timeout(Some(wait))?;
        match socket.recv(&mut buffer) {
            Ok(length) => camera.on_rtcp(clock(), &buffer[..length]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused => {}
                _ => return Err(error.into()),
            },
        }
    }
    progress.finish(end, &camera);
    Ok(())
}
