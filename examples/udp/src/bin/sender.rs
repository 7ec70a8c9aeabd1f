//! Sends made-up video over UDP at the rate that a congestion controller allows.
//!
//! It prints a line a second: the target bitrate, and what it sent.

use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Instant;

use weir::{Algorithm, Bitrate, RateLimits, TimeDelta, Timestamp};
use weir_over_udp::{
    DATAGRAM, EXTENSIONS, FRAME_INTERVAL, SENDER, frame, random, wait_for_datagram,
};
use weir_rtcp::{Sender, SenderConfig};

const SECOND: TimeDelta = TimeDelta::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, controller, seconds] = &words[..] else {
        return Err("write: sender ADDRESS:PORT CONTROLLER SECONDS".into());
    };
    let algorithm: Algorithm = controller.parse()?;
    let end = Timestamp::from_secs(seconds.parse()?);
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;

    let start = Instant::now();
    let clock = || Timestamp::from_nanos(start.elapsed().as_nanos() as i64);
    let kbps = Bitrate::from_kbps;
    let controller = algorithm.build(RateLimits::new(kbps(150), kbps(300), kbps(5_000))?);
    let config = SenderConfig::new(SENDER, EXTENSIONS);
    let mut sender = Sender::new(clock(), controller, config, random());
    let mut number = 0;
    let mut next_frame = clock();
    let mut next_line = clock() + SECOND;
    let mut sent_bytes = 0;
    let mut buffer = [0; DATAGRAM];

    while clock() < end {
        let now = clock();
        if next_frame <= now {
            next_frame += FRAME_INTERVAL;
            sender.enqueue(now, frame(now, sender.target().source_bitrate, &mut number))?;
        }
        // A receiver that is not there yet refuses datagrams. They are lost like any others.
        sender.on_timeout(now);
        while let Some(rtcp) = sender.next_rtcp() {
            let _ = socket.send(rtcp);
        }
        while let Some(packet) = sender.next_packet(now) {
            sent_bytes += socket.send(&packet.content).unwrap_or(0);
        }
        if next_line <= now {
            next_line += SECOND;
            let target = sender.target().bitrate.as_kbps_f64();
            let (time, sent) = (now.as_secs_f64(), std::mem::take(&mut sent_bytes) * 8 / 1000);
            println!("time_s {time:.0} target_kbps {target:.0} sent_kbps {sent}");
        }

        // Waits for RTCP until something is due.
        let due = sender.next_timeout().map_or(next_frame, |due| due.min(next_frame));
        wait_for_datagram(&socket, due - clock())?;
        match socket.recv(&mut buffer) {
            Ok(length) => {
                sender.on_rtcp(clock(), &buffer[..length]);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::ConnectionRefused => {}
                _ => return Err(error.into()),
            },
        }
    }
    Ok(())
}
