//! What the drivers in Rust share: the lines of the lab, the encoder, and the socket.

pub mod decoder;
pub mod encoder;
pub mod inbound;
pub mod protocol;

use std::env;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};

use anyhow::{Context, bail};

use protocol::{End, OneCall, ReceiverSettings, Reporter, Settings};

/// What a call waits for.
pub enum Happening {
    /// The lab wrote a line.
    Line(String),
    /// The lab closed its end.
    End,
    /// The encoder has a frame. It is empty for a picture that was left out.
    Frame(Vec<u8>),
    /// A datagram arrived from this address.
    Datagram(SocketAddr, Vec<u8>),
}

/// Where a call gets its happenings, and where its threads put them.
pub struct Happenings {
    pub sender: Sender<Happening>,
    pub receiver: Receiver<Happening>,
}

/// A sender, or a receiver, of one call.
pub type Serve<S> = fn(Reporter, S, Happenings) -> anyhow::Result<()>;

/// Serves the one call of the first line by `send` or `receive`, whose error the lab learns.
/// `version` is the answer to `--version`.
pub fn run(version: &str, send: Serve<Settings>, receive: Serve<ReceiverSettings>) -> ExitCode {
    if env::args().any(|word| word == "--version") {
        println!("{version}");
        return ExitCode::SUCCESS;
    }
    let OneCall { call: number, settings } = match protocol::read_first_line() {
        Ok(one) => one,
        Err(error) => {
            eprintln!("driver: the first line: {error:#}");
            return ExitCode::from(2);
        }
    };
    let (sender, receiver) = mpsc::channel();
    let happenings = Happenings { sender, receiver };
    let reporter = Reporter::new(number);
    let served = match settings {
        End::Sender(settings) => send(reporter, settings, happenings),
        End::Receiver(settings) => receive(reporter, settings, happenings),
    };
    if let Err(error) = served {
        protocol::fail(number, &format!("{error:#}"));
    }
    ExitCode::SUCCESS
}

/// The version that a driver's `Cargo.toml` pins with `=`.
pub fn pinned(manifest: &str) -> &str {
    let pinned = manifest.split("\"=").nth(1);
    pinned.and_then(|rest| rest.split('"').next()).unwrap_or("unknown")
}

/// The path of a program of the arena. The driver is in target/release of its folder.
pub(crate) fn program(name: &str) -> anyhow::Result<PathBuf> {
    let driver = env::current_exe()?;
    let arena = driver.ancestors().nth(4).context("the driver is not in its folder")?;
    Ok(arena.join(name))
}

/// The address of this host in the emulated network. It has only one.
pub fn host_address() -> anyhow::Result<IpAddr> {
    for interface in if_addrs::get_if_addrs()? {
        if !interface.is_loopback() && interface.ip().is_ipv4() {
            return Ok(interface.ip());
        }
    }
    bail!("this host has no address")
}

/// Passes the datagrams of a socket on.
pub fn receive_datagrams(socket: &UdpSocket, happenings: &Sender<Happening>) {
    let mut buffer = [0; 2_000];
    loop {
        // An error is that of an earlier datagram, by ICMP.
        let Ok((length, source)) = socket.recv_from(&mut buffer) else { continue };
        if happenings.send(Happening::Datagram(source, buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}
