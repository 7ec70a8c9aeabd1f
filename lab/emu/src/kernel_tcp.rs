//! The kernel's TCP over the emulated link, as a reference for models of TCP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::emulator::Emulator;
use crate::error::Error;
use crate::record::Emulation;
use crate::sys;

const PORT: u16 = 5_001;
/// Bytes per read or write.
const CHUNK: usize = 1 << 16;
/// Maximum time after which a receiver checks for the end of the run.
const PATIENCE: Duration = Duration::from_millis(100);
const SYSCTL: &str = "/proc/sys/net/ipv4/";
/// The kernel's settings that affect a flow.
const SETTINGS: [&str; 12] = [
    "tcp_rmem",
    "tcp_wmem",
    "tcp_adv_win_scale",
    "tcp_limit_output_bytes",
    "tcp_min_tso_segs",
    "tcp_sack",
    "tcp_timestamps",
    "tcp_recovery",
    "tcp_early_retrans",
    "tcp_frto",
    "tcp_ecn",
    "tcp_no_metrics_save",
];

/// Result of flows of the kernel's TCP from host A to host B, all from the start of the run.
#[derive(Debug)]
pub struct KernelTcp {
    /// Bytes that each flow's application had read at the end.
    pub received_bytes: Vec<u64>,
    /// The kernel's settings on the hosts, by name.
    pub settings: Vec<(&'static str, String)>,
    /// The record of the emulated run.
    pub emulation: Emulation,
}

/// Names of the congestion controls that this kernel supports.
pub fn kernel_congestion_controls() -> Result<Vec<String>, Error> {
    let names = read_setting("tcp_available_congestion_control");
    let names = names.map_err(Error::system("read the kernel's congestion controls"))?;
    Ok(names.split(' ').map(String::from).collect())
}

/// Runs endless flows with a congestion control of the kernel, such as `cubic`, for this long.
pub fn kernel_tcp(
    mut emulator: Emulator,
    congestion_control: &str,
    flows: usize,
    duration: Duration,
) -> Result<KernelTcp, Error> {
    // Metrics of earlier connections must not affect later ones.
    let settings = emulator.host(0).enter(|| {
        write_setting("tcp_no_metrics_save", "1")?;
        SETTINGS.iter().map(|&name| Ok((name, read_setting(name)?))).collect::<io::Result<_>>()
    })?;
    let settings = settings.map_err(Error::system("set up the kernel's TCP"))?;
    let listener = emulator.host(1).bind_tcp((emulator.host(1).address(), PORT))?;
    let target = SocketAddrV4::new(emulator.host(1).address(), PORT);
    let start = emulator.start();
    let end = start + duration;
    let mut connections = Vec::new();
    for _ in 0..flows {
        let connected = emulator.host(0).enter(|| sys::connect(target, congestion_control))?;
        let sender = connected.map_err(Error::system("connect the emulated hosts"))?;
        let accepted = listener.accept();
        let (receiver, _) = accepted.map_err(Error::system("accept a connection"))?;
        let connection = TcpConnection::start(sender, receiver, end);
        connections.push(connection.map_err(Error::system("start a flow"))?);
    }
    let received = connections.into_iter().map(TcpConnection::end).collect::<io::Result<_>>();
    let received_bytes = received.map_err(Error::system("receive data"))?;
    Ok(KernelTcp { received_bytes, settings, emulation: emulator.stop()? })
}

/// A connection and the threads of its two applications.
struct TcpConnection {
    socket: TcpStream,
    sender: JoinHandle<()>,
    receiver: JoinHandle<io::Result<u64>>,
}

impl TcpConnection {
    fn start(sender: TcpStream, receiver: TcpStream, end: Instant) -> io::Result<Self> {
        let socket = sender.try_clone()?;
        receiver.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            socket,
            sender: thread::spawn(move || send(sender)),
            receiver: thread::spawn(move || receive(receiver, end)),
        })
    }

    fn end(self) -> io::Result<u64> {
        let received =
            self.receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Wakes the sender. This fails only if the connection is closed, and then the sender is
        // awake already.
        let _ = self.socket.shutdown(Shutdown::Both);
        self.sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        received
    }
}

/// Sends until the connection is shut down.
fn send(mut socket: TcpStream) {
    let chunk = [0; CHUNK];
    while socket.write_all(&chunk).is_ok() {}
}

fn receive(mut socket: TcpStream, end: Instant) -> io::Result<u64> {
    let mut chunk = [0; CHUNK];
    let mut received = 0;
    while Instant::now() < end {
        match socket.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => received += length as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(received)
}

fn read_setting(name: &str) -> io::Result<String> {
    let text = std::fs::read_to_string(format!("{SYSCTL}{name}"))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn write_setting(name: &str, value: &str) -> io::Result<()> {
    std::fs::write(format!("{SYSCTL}{name}"), value)
}
