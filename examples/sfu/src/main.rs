//! A forwarding server: str0m has ICE, DTLS and SRTP, `weir-sfu` decides.
//!
//! `weir-sfu-example ADDRESS:PORT [CONTROLLER [SECONDS]]` serves a page at this address, and the
//! media of all who open it at the same number as UDP port. What it decides goes to standard output
//! as lines of JSON. Without seconds it runs until it is stopped.
//!
//! `weir-sfu-example load ADDRESS:PORT FOLDER [SUBSCRIBERS [PUBLISHERS [SECONDS [PROCESS]]]]` joins
//! such a server as many participants, and says what arrived and what it cost.

mod downlink;
mod feedback;
mod load;
mod offer;
mod peer;
mod publisher;
mod room;
mod subscriber;
mod web;

use std::env;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use weir::Algorithm;

use crate::room::Room;
use crate::web::Request;

/// Until layers are measured and the best one has been probed for, a load counts nothing.
const SETTLING: Duration = Duration::from_secs(10);

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
    if args.next_if_eq("load").is_some() {
        return put_under_load(&args.collect::<Vec<_>>());
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

/// Joins a server as many participants. Returns how the program ends.
fn put_under_load(words: &[String]) -> ExitCode {
    let Some((plan, folder)) = plan(words) else {
        eprintln!(
            "usage: weir-sfu-example load ADDRESS:PORT FOLDER [SUBSCRIBERS [PUBLISHERS [SECONDS \
             [PROCESS]]]]"
        );
        return ExitCode::from(2);
    };
    match load::run(&plan, Path::new(folder)) {
        Ok(outcome) => {
            for line in load::report(&plan, &outcome) {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("weir-sfu-example: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Thirty subscribers of one publisher for 30 s, unless the words say something else.
fn plan(words: &[String]) -> Option<(load::Plan, &str)> {
    let (server, folder) = (words.first()?.parse().ok()?, words.get(1)?);
    let mut numbers = [30, 1, 30, 0];
    for (number, word) in numbers.iter_mut().zip(words.get(2..)?) {
        *number = word.parse().ok()?;
    }
    let [subscribers, publishers, seconds, process] = numbers;
    let counted = Duration::from_secs(u64::from(seconds));
    let process = (process > 0).then_some(process);
    let settling = SETTLING;
    let plan = load::Plan { server, subscribers, publishers, settling, counted, process };
    Some((plan, folder.as_str()))
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A frame that says it is VP8's of this width, of as many bytes as its layer needs.
    fn frame(width: u16, bytes: usize) -> Vec<u8> {
        let [low, high] = width.to_le_bytes();
        let mut frame = vec![0x10, 0, 0, 0x9d, 0x01, 0x2a, low, high, 0x1c, 0x02];
        frame.resize(bytes, 0x55);
        frame
    }

    #[test]
    fn each_subscriber_gets_a_picture_without_losses() {
        let folder = env::temp_dir().join(format!("weir-sfu-load-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, width, bytes) in [("l", 240, 600), ("m", 640, 2_000), ("h", 960, 6_000)] {
            let frames = [frame(width, bytes), frame(width, bytes)];
            fs::write(folder.join(name).with_extension("ivf"), load::file(&frames)).unwrap();
        }
        // Free a moment ago.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        thread::spawn(move || serve(free, Algorithm::Sluice, None));
        while std::net::TcpStream::connect(free).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        let plan = load::Plan {
            server: free,
            subscribers: 2,
            publishers: 1,
            // Long enough beside other work.
            settling: Duration::from_secs(6),
            counted: Duration::from_secs(1),
            process: None,
        };
        let outcome = load::run(&plan, &folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(outcome.seen.len(), 2);
        for seen in &outcome.seen {
            assert!(seen.packets > 0 && seen.widths().iter().all(|&width| width >= 240));
            assert_eq!(seen.lost(), 0);
        }
    }
}
