//! Receives what `sender` sends, and tells it by RTCP what arrived and when.
//!
//! It prints a line a second: what it received.

use std::error::Error;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use weir::feedback::Ecn;
use weir::{TimeDelta, Timestamp};
use weir_over_udp::{DATAGRAM, EXTENSIONS, RECEIVER, random, wait_for_datagram};
use weir_rtcp::{Feedback, Receiver, ReceiverConfig, is_rtcp};

const SECOND: TimeDelta = TimeDelta::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address] = &words[..] else {
        return Err("write: receiver ADDRESS:PORT".into());
    };
    let socket = UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;

    let start = Instant::now();
    let clock = || Timestamp::from_nanos(start.elapsed().as_nanos() as i64);
    let config = ReceiverConfig::new(RECEIVER, EXTENSIONS, Feedback::Twcc);
    let mut receiver = Receiver::new(clock(), config, random());
    let mut sender: Option<SocketAddr> = None;
    let mut next_line = clock() + SECOND;
    let mut received_bytes = 0;
    let mut buffer = [0; DATAGRAM];

    loop {
        let now = clock();
        // Feedback that the network loses is as good as feedback that could not be sent.
        receiver.on_timeout(now);
        while let Some(rtcp) = receiver.next_rtcp() {
            let _ = sender.map(|to| socket.send_to(rtcp, to));
        }
        if next_line <= now {
            next_line += SECOND;
            let received = std::mem::take(&mut received_bytes) * 8 / 1000;
            println!("time_s {:.0} received_kbps {received}", now.as_secs_f64());
        }

        // Waits for packets until something is due.
        let due = receiver.next_timeout().min(next_line);
        wait_for_datagram(&socket, due - clock())?;
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) if is_rtcp(&buffer[..length]) => {
                sender = Some(from);
                receiver.on_rtcp(clock(), &buffer[..length]);
            }
            Ok((length, from)) => {
                sender = Some(from);
                received_bytes += length;
                let rtp = &buffer[..length];
                // Anybody may send anything to a port: what is not RTP is passed over.
                let _ = receiver.on_rtp(clock(), rtp, Ecn::NotEct);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => {}
                _ => return Err(error.into()),
            },
        }
    }
}
