//! Many participants in one process, to measure what the server costs: publishers that send
//! pictures from files, and subscribers that count what arrives and show nothing.

mod publisher;
mod video;
mod watcher;

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::peer::Peer;
use video::Video;
#[cfg(test)]
pub use video::file;
pub use watcher::Seen;

/// Names of the layers: those of the server's page, and of the files.
const RIDS: [&str; 3] = ["l", "m", "h"];
/// Linux counts processor time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Who joins, for how long.
pub struct Plan {
    pub server: SocketAddr,
    pub subscribers: u32,
    pub publishers: u32,
    /// Time before anything is counted.
    pub settling: Duration,
    /// Time that is counted.
    pub counted: Duration,
    /// The server's process, whose processor time is read.
    pub process: Option<u32>,
}

/// What the subscribers saw, and the server's processor time in s.
pub struct Outcome {
    pub seen: Vec<Seen>,
    pub processor_s: Option<f64>,
}

/// Joins as all of them, one thread each.
///
/// # Errors
/// If the server does not answer, or a picture file cannot be read.
pub fn run(plan: &Plan, folder: &Path) -> anyhow::Result<Outcome> {
    let video = Video::read(folder)?;
    let begin = Instant::now() + plan.settling;
    let end = begin + plan.counted;
    thread::scope(|scope| {
        for number in 1..=plan.publishers {
            let (video, server) = (&video, plan.server);
            scope.spawn(move || {
                if let Err(error) = publisher::publish(server, &format!("p{number}"), video, end) {
                    eprintln!("publisher {number}: {error:#}");
                }
            });
        }
        let mut watchers = Vec::new();
        for number in 1..=plan.subscribers {
            let name = format!("s{number}");
            watchers.push(scope.spawn(move || watcher::watch(plan.server, &name, begin..end)));
        }
        thread::sleep(begin.saturating_duration_since(Instant::now()));
        let before = plan.process.map(processor_time).transpose()?;
        thread::sleep(end.saturating_duration_since(Instant::now()));
        let after = plan.process.map(processor_time).transpose()?;
        let mut seen = Vec::new();
        for watcher in watchers {
            match watcher.join() {
                Ok(result) => seen.push(result?),
                Err(_) => bail!("a subscriber panicked"),
            }
        }
        let processor_s = after.zip(before).map(|(after, before)| after - before);
        Ok(Outcome { seen, processor_s })
    })
}

/// A line for each subscriber, and one for all.
pub fn report(plan: &Plan, outcome: &Outcome) -> Vec<Value> {
    let seconds = plan.counted.as_secs_f64();
    let mut lines = Vec::new();
    let (mut packets, mut lost, mut bytes) = (0, 0, 0);
    for (number, seen) in (1..).zip(&outcome.seen) {
        lines.push(json!({
            "subscriber": number,
            "kbps": (seen.bytes * 8) as f64 / seconds / 1_000.0,
            "packets": seen.packets,
            "lost": seen.lost(),
            "widths": seen.widths(),
        }));
        packets += seen.packets;
        lost += seen.lost();
        bytes += seen.bytes;
    }
    let of_all = |value: f64| value / f64::from(plan.subscribers.max(1));
    let percent = outcome.processor_s.map(|used| used / seconds * 100.0);
    lines.push(json!({
        "subscribers": plan.subscribers,
        "publishers": plan.publishers,
        "seconds": seconds,
        "mbps": (bytes * 8) as f64 / seconds / 1e6,
        "packets_per_s": packets as f64 / seconds,
        "lost": lost,
        "processor_percent": percent,
        "processor_percent_per_subscriber": percent.map(of_all),
        "processor_us_per_packet": outcome.processor_s.map(|used| used * 1e6 / packets as f64),
    }));
    lines
}

/// User and system time of a process so far, in s.
fn processor_time(process: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name of the program comes second, in parentheses, and may have spaces.
    let (_, rest) = text.rsplit_once(')').context(path)?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let mut ticks = 0.0;
    for place in [11, 12] {
        ticks += fields.get(place).context("too few fields")?.parse::<f64>()?;
    }
    Ok(ticks / TICKS_PER_SECOND)
}

/// Asks the server, as its page does.
fn post(server: SocketAddr, path: &str, body: &str) -> anyhow::Result<Value> {
    let mut stream = TcpStream::connect(server).context("the server")?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("{path}: {body}");
    }
    serde_json::from_str(body).context("the server's answer")
}

/// A socket on the interface through which the server is reached.
fn socket(server: SocketAddr) -> anyhow::Result<(UdpSocket, SocketAddr)> {
    let any: IpAddr = if server.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect(server)?;
    let socket = UdpSocket::bind((probe.local_addr()?.ip(), 0))?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

/// Waits until str0m or the caller has something to do, and hands over what arrives meanwhile.
fn wait(peer: &mut Peer, socket: &UdpSocket, until: Instant) -> anyhow::Result<()> {
    let deadline = peer.deadline.min(until);
    // Zero would mean forever.
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_micros(100));
    socket.set_read_timeout(Some(left))?;
    let mut buffer = [0; 2_000];
    // An error is the timeout, or an ICMP message about an earlier datagram.
    if let Ok((length, source)) = socket.recv_from(&mut buffer) {
        peer.on_datagram(Instant::now(), source, &buffer[..length]);
    }
    if peer.deadline <= Instant::now() {
        peer.on_timeout(Instant::now());
    }
    Ok(())
}
