//! A forwarding server: str0m has ICE, DTLS and SRTP, `weir-sfu` decides.
//!
//! `weir-sfu-example ADDRESS:PORT [CONTROLLER [SECONDS]]` serves a page at this address, and the
//! media of all who open it at the same number as UDP port. What it decides goes to standard output
//! as lines of JSON. Without seconds it runs until it is stopped.

mod downlink;
mod feedback;
mod offer;
mod peer;
mod publisher;
mod room;
mod subscriber;
mod web;

use std::env;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use weir::Algorithm;

use crate::room::Room;
use crate::web::Request;

/// What the server waits for.
enum Happening {
    /// A datagram arrived from this address.
    Datagram(SocketAddr, Vec<u8>),
    /// A page asks for something.
    Request(Request),
}

fn main() -> ExitCode {
    let mut args = env::args().skip(1).peekable();
    if args.next_if_eq("--version").is_some() {
        println!("weir-sfu-example {}, str0m 0.25.0", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let address = args.next().and_then(|word| word.parse::<SocketAddr>().ok());
    let controller = args.next().unwrap_or_else(|| "sluice".to_owned());
    let seconds = args.next().map(|word| word.parse::<u64>()).transpose();
    let (Some(address), Ok(controller), Ok(seconds)) = (address, controller.parse(), seconds)
    else {
        eprintln!("usage: weir-sfu-example ADDRESS:PORT [CONTROLLER [SECONDS]]");
        return ExitCode::from(2);
    };
    if let Err(error) = serve(address, controller, seconds.map(Duration::from_secs)) {
        eprintln!("weir-sfu-example: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn serve(
    address: SocketAddr,
    controller: Algorithm,
    duration: Option<Duration>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let listener = TcpListener::bind(address).with_context(|| format!("TCP {address}"))?;
    let socket = UdpSocket::bind(address).with_context(|| format!("UDP {address}"))?;
    let (sender, happenings) = channel();
    let (datagrams, requests) = (socket.try_clone()?, sender.clone());
    thread::spawn(move || receive_datagrams(&datagrams, &sender));
    thread::spawn(move || web::serve(&listener, &requests));
    let mut room = Room::new(start, address, socket, controller);
    while duration.is_none_or(|duration| start.elapsed() < duration) {
        let wait = room.deadline().saturating_duration_since(Instant::now());
        match happenings.recv_timeout(wait) {
            Ok(Happening::Datagram(source, bytes)) => {
                room.on_datagram(Instant::now(), source, &bytes)
            }
            Ok(Happening::Request(request)) => room.on_request(Instant::now(), request),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        room.on_timeout(Instant::now());
    }
    Ok(())
}

fn receive_datagrams(socket: &UdpSocket, happenings: &Sender<Happening>) {
    let mut buffer = [0; 2_000];
    loop {
        // An error is that of an earlier datagram, by ICMP.
        let Ok((length, source)) = socket.recv_from(&mut buffer) else { continue };
        let datagram = Happening::Datagram(source, buffer[..length].to_vec());
        if happenings.send(datagram).is_err() {
            return;
        }
    }
}
