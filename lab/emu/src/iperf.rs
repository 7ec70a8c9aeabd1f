//! Load on the network: iperf3 on two hosts, and the reports of both ends.
//!
//! The receiving end is started before the load. Each end prints one JSON document when the load is
//! over. The sender's document contains retransmissions and round-trip times, the receiver's
//! contains the received data.

use std::io::Read;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::error::Error;
use crate::namespaces::Host;
use crate::process::Child;

const PROGRAM: &str = "iperf3";
/// Maximum time from the end of a load to the reports. The ends exchange results over the network
/// and may have to wait for its queues.
const REPORT_PATIENCE: Duration = Duration::from_secs(20);
/// Maximum size of a report. An interval has about 1 kB.
const REPORT_BYTES_MAX: u64 = 100_000_000;
/// Size of an IPv4 and a UDP header.
const UDP_HEADERS: DataSize = DataSize::from_bytes(28);
/// Interval of the reports: the minimum of iperf3.
const INTERVAL_S: &str = "0.1";

/// A load that iperf3 generates.
#[derive(Clone, Debug, PartialEq)]
pub enum IperfLoad {
    /// TCP with a congestion control of the kernel, without a rate limit.
    Tcp {
        /// Name of the congestion control, such as `cubic`.
        congestion_control: String,
    },
    /// Packets at a constant rate.
    Udp {
        /// Rate of the IP packets.
        rate: Bitrate,
        /// Size of the IP packets. It must exceed that of the headers.
        packet: DataSize,
    },
}

/// Reports of both ends of a load, by interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Intervals at the sender, since the start of sending.
    pub sent: Vec<LoadInterval>,
    /// Intervals at the receiver, since the start of receiving.
    pub received: Vec<LoadInterval>,
}

/// Results of one end over a tenth of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadInterval {
    /// Since the load began there.
    pub start: Timestamp,
    /// Since the load began there.
    pub end: Timestamp,
    /// Payload sent or received by the program.
    pub payload: DataSize,
    /// Packets retransmitted by TCP; only at a TCP sender.
    pub retransmitted_packets: Option<u64>,
    /// TCP's smoothed round-trip time at the end of the interval; only at a TCP sender.
    pub rtt: Option<TimeDelta>,
    /// Packets that had not arrived when later ones had; only at a UDP receiver.
    pub lost_packets: Option<u64>,
}

/// The receiving end, waiting for a load.
#[derive(Debug)]
pub struct LoadReceiver {
    end: End,
    address: Ipv4Addr,
    port: u16,
}

/// A running load. Dropping it ends it.
#[derive(Debug)]
pub struct RunningLoad {
    sender: End,
    receiver: End,
    deadline: Instant,
}

/// One iperf3 process. A thread reads its output, which is larger than a pipe's buffer.
#[derive(Debug)]
struct End {
    _child: Child,
    output: Receiver<String>,
}

impl LoadReceiver {
    /// Starts iperf3 on a host and waits until it listens on a port.
    pub fn start(host: &Host, port: u16) -> Result<Self, Error> {
        let mut end = End::start(host, &["--server", "--one-off", "--port", &port.to_string()])?;
        end._child.wait_until_it_listens(host, Some(port))?;
        Ok(Self { end, address: host.address(), port })
    }

    /// Starts to send from a host, for this many seconds.
    pub fn load(self, from: &Host, load: &IperfLoad, seconds: u32) -> Result<RunningLoad, Error> {
        let (target, port) = (self.address.to_string(), self.port.to_string());
        let time = seconds.to_string();
        let mut arguments = vec!["--client", &target, "--port", &port, "--time", &time];
        let (bps, length);
        match load {
            IperfLoad::Tcp { congestion_control } => {
                arguments.extend(["--congestion", congestion_control]);
            }
            IperfLoad::Udp { rate, packet } => {
                let payload = packet.saturating_sub(UDP_HEADERS);
                let share = payload.as_bytes() as f64 / packet.as_bytes() as f64;
                bps = (*rate * share).as_bps().to_string();
                length = payload.as_bytes().to_string();
                arguments.extend(["--udp", "--bitrate", &bps, "--length", &length]);
            }
        }
        let sender = End::start(from, &arguments)?;
        let deadline = Instant::now() + Duration::from_secs(seconds.into()) + REPORT_PATIENCE;
        Ok(RunningLoad { sender, receiver: self.end, deadline })
    }
}

impl RunningLoad {
    /// Waits until both ends have reported.
    pub fn finish(self) -> Result<LoadReport, Error> {
        let sent = self.sender.report(self.deadline)?;
        Ok(LoadReport { sent, received: self.receiver.report(self.deadline)? })
    }
}

impl End {
    fn start(host: &Host, arguments: &[&str]) -> Result<Self, Error> {
        let mut command = host.command(PROGRAM);
        command.args(["--json", "--interval", INTERVAL_S]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = Child::spawn(&mut command)?;
        let stdout = child.inner().stdout.take().expect("stdout is piped");
        let (sender, output) = channel();
        let thread = thread::Builder::new().name("weir-iperf3".into()).spawn(move || {
            let mut text = String::new();
            // An incomplete output is detected when it is parsed. The channel is closed if the load
            // was dropped.
            let _ = stdout.take(REPORT_BYTES_MAX).read_to_string(&mut text);
            let _ = sender.send(text);
        });
        thread.map_err(Error::system("start a thread"))?;
        Ok(Self { _child: child, output })
    }

    fn report(self, deadline: Instant) -> Result<Vec<LoadInterval>, Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        let text = self.output.recv_timeout(left).map_err(|_| {
            failed(format!("no report {} s after its end", REPORT_PATIENCE.as_secs()))
        });
        intervals(&text?)
    }
}

fn failed(reason: String) -> Error {
    Error::Program { program: PROGRAM.into(), reason }
}

/// The parts of iperf3's document that are used.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Interval {
    streams: Vec<Stream>,
}

#[derive(Deserialize)]
struct Stream {
    start: f64,
    end: f64,
    bytes: u64,
    retransmits: Option<u64>,
    rtt: Option<i64>,
    lost_packets: Option<i64>,
}

fn intervals(text: &str) -> Result<Vec<LoadInterval>, Error> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| failed(format!("no JSON report: {error}")))?;
    if let Some(error) = document.error {
        return Err(failed(error));
    }
    // There is one connection, so an interval has one stream.
    let streams = document.intervals.into_iter().filter_map(|mut all| all.streams.pop());
    let intervals = streams.map(|stream| LoadInterval {
        start: Timestamp::from_secs_f64(stream.start),
        end: Timestamp::from_secs_f64(stream.end),
        payload: DataSize::from_bytes(stream.bytes),
        retransmitted_packets: stream.retransmits,
        rtt: stream.rtt.map(TimeDelta::from_micros),
        // Negative if a packet that was counted as lost has arrived later.
        lost_packets: stream.lost_packets.map(|lost| lost.max(0).cast_unsigned()),
    });
    Ok(intervals.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_interval_by_interval() {
        let text = r#"{"start": {"version": "iperf 3.12"}, "intervals": [
            {"streams": [{"socket": 5, "start": 0, "end": 0.100079, "bytes": 131072,
                          "retransmits": 2, "snd_cwnd": 664576, "rtt": 50012, "sender": true}],
             "sum": {"bytes": 131072}},
            {"streams": [{"start": 0.100079, "end": 0.2, "bytes": 0, "lost_packets": -1}]}],
            "end": {}}"#;
        let ms = |ms| Timestamp::ZERO + TimeDelta::from_millis_f64(ms);
        let first = LoadInterval {
            start: ms(0.0),
            end: ms(100.079),
            payload: DataSize::from_bytes(131_072),
            retransmitted_packets: Some(2),
            rtt: Some(TimeDelta::from_micros(50_012)),
            lost_packets: None,
        };
        let second = LoadInterval {
            start: ms(100.079),
            end: ms(200.0),
            lost_packets: Some(0),
            ..LoadInterval::default()
        };
        assert_eq!(intervals(text).unwrap(), [first, second]);
    }

    #[test]
    fn iperf3s_own_words_say_why_it_failed() {
        let text = r#"{"start": {}, "intervals": [], "end": {}, "error": "unable to connect"}"#;
        assert_eq!(intervals(text).unwrap_err().to_string(), "iperf3 failed: unable to connect");
        assert!(intervals("").unwrap_err().to_string().starts_with("iperf3 failed: no JSON"));
    }
}
