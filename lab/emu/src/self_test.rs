//! Self-test of the emulator: compares its parameters with measurements by unmodified programs.

use std::fmt;
use std::io;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{Capacity, LinkConfig, QueueLimit, Schedule, Seed};

use crate::answer::{self, Limits};
use crate::emulator::Emulator;
use crate::error::Error;
use crate::iperf::{IperfLoad, LoadReceiver};
use crate::namespaces::Host;
use crate::plan::Plan;
use crate::record::LATENESS_LIMIT;

/// Capacity and one-way delay of the tested links, in both directions: the link of the scenario
/// `demo/first-call`, and a fast link, on which a late emulator cannot sustain the capacity.
const LINKS: [(Bitrate, TimeDelta); 2] = [
    (Bitrate::from_kbps(2_000), TimeDelta::from_millis(25)),
    (Bitrate::from_kbps(20_000), TimeDelta::from_millis(10)),
];
/// Queue limit that is large enough for cubic to keep the link busy. After a reduction of the
/// window to 0.7, a full queue must not run empty. This requires a queue of 0.43 times the
/// round-trip time without queue.
const QUEUE: TimeDelta = TimeDelta::from_millis(150);
/// Duration of iperf3 in seconds. The first second is slow start and does not count.
const TCP_SECONDS: u32 = 6;
/// Size of an echo request of 56 bytes with its ICMP and IPv4 headers.
const PING_SIZE: DataSize = DataSize::from_bytes(84);
/// Any port that is free on a host.
const IPERF3_PORT: u16 = 5_201;
/// Share of payload in a full TCP packet with timestamps: 1500 bytes minus 52 bytes of headers.
const TCP_SHARE: f64 = 1448.0 / 1500.0;

/// One comparison of a parameter with a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuantityCheck {
    /// Program, quantity and link.
    pub what: String,
    /// Value that follows from the link's parameters.
    pub asked: f64,
    /// Value that the program measured.
    pub measured: f64,
    /// Tolerance below `asked`.
    pub less: f64,
    /// Tolerance above `asked`.
    pub more: f64,
    /// Unit of all values.
    pub unit: &'static str,
}

impl QuantityCheck {
    /// Relative error of the measured value.
    pub fn error(&self) -> f64 {
        self.measured / self.asked - 1.0
    }

    fn is_within(&self) -> bool {
        (self.asked - self.less..=self.asked + self.more).contains(&self.measured)
    }
}

/// Result of the self-test. `Display` prints a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelfTest {
    /// The comparisons.
    pub rows: Vec<QuantityCheck>,
    /// Statistics of the runs, and skipped programs with the reason.
    pub notes: Vec<String>,
}

impl SelfTest {
    /// Whether there is at least one measurement and all are within their tolerances.
    pub fn passed(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(QuantityCheck::is_within)
    }
}

impl fmt::Display for SelfTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<44} {:>14} {:>14} {:>8}", "what", "asked", "measured", "error")?;
        for row in &self.rows {
            let [asked, measured] =
                [row.asked, row.measured].map(|value| format!("{value:.3} {}", row.unit));
            let error = row.error() * 100.0;
            writeln!(f, "{:<44} {asked:>14} {measured:>14} {error:>+6.2} %", row.what)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

/// Runs ping and iperf3 over two links, which takes half a minute. A program that is not installed
/// is skipped, with a note.
pub fn self_test() -> Result<SelfTest, Error> {
    let mut result = SelfTest::default();
    for (capacity, delay) in LINKS {
        test_link(capacity, delay, &mut result)?;
    }
    Ok(result)
}

fn test_link(capacity: Bitrate, delay: TimeDelta, result: &mut SelfTest) -> Result<(), Error> {
    let link = format!("{:.0} Mbit/s {} ms", capacity.as_mbps_f64(), delay.as_millis());
    let schedule = Schedule::constant(capacity).expect("the capacities above are not zero");
    let config = LinkConfig::unlimited(delay)
        .with_capacity(Capacity::Schedule(schedule))
        .with_queue(QueueLimit::Time(QUEUE));
    let mut emulator = Emulator::new(&Plan::two_hosts(&config, &config), Seed::new(1))?;
    emulator.start();
    let one_way = delay + PING_SIZE / capacity;
    let pinged = ping(emulator.host(0), emulator.host(1));
    let mut goodputs = Vec::new();
    let asked = capacity.as_mbps_f64() * TCP_SHARE;
    // The link is always busy. But at the start and at the end of the measurement, received data
    // may wait for a lost packet before it is delivered. This can be up to a window: the data of a
    // round-trip time with a full queue.
    let window_share = (delay * 2 + QUEUE) / TimeDelta::from_secs(i64::from(TCP_SECONDS) - 1);
    for (direction, from, to) in [("up", 0, 1), ("down", 1, 0)] {
        match iperf3(emulator.host(from), emulator.host(to)) {
            Ok(measured) => goodputs.push(QuantityCheck {
                what: format!("iperf3, cubic goodput {direction}, {link}"),
                asked,
                measured,
                less: asked * window_share,
                more: asked * window_share,
                unit: "Mbit/s",
            }),
            Err(error) => {
                result.notes.push(skipped(error, "iperf3")?);
                break;
            }
        }
    }
    let run = emulator.stop()?;
    match pinged {
        Ok(measured) => result.rows.push(QuantityCheck {
            what: format!("ping, mean round-trip time, {link}"),
            asked: (one_way * 2).as_millis_f64(),
            measured,
            // Packets are never early, but ping rounds to a microsecond. A ping consists of two
            // packets, each of which may be late. Lateness of a busy machine is not an error of the
            // model; a note below reports it.
            less: 0.001,
            more: 2.0
                * run.lateness.quantile(0.99).unwrap_or_default().max(LATENESS_LIMIT).as_secs_f64()
                * 1e3,
            unit: "ms",
        }),
        Err(error) => result.notes.push(skipped(error, "iputils-ping")?),
    }
    result.rows.extend(goodputs);
    let [p50, p99] =
        [0.5, 0.99].map(|share| run.lateness.quantile(share).unwrap_or_default().as_micros());
    result.notes.push(format!(
        "{link}: {} packets, released late by p50 {p50} us, p99 {p99} us, max {} us; \
         real-time {}; processors {:.0} % busy",
        run.lateness.count(),
        run.lateness.max().as_micros(),
        if run.real_time { "yes" } else { "no (not permitted)" },
        run.cpu.map_or(f64::NAN, |cpu| cpu.busy) * 100.0
    ));
    result.notes.extend(
        run.disturbances()
            .iter()
            .map(|cause| format!("{link}: this machine disturbed the run: {cause}")),
    );
    Ok(())
}

/// Converts the error for a missing program to a note. Other errors are returned.
fn skipped(error: Error, package: &str) -> Result<String, Error> {
    match error {
        Error::Spawn { program, error } if error.kind() == io::ErrorKind::NotFound => {
            Ok(format!("skipped: {program} is not installed; install the package {package}"))
        }
        other => Err(other),
    }
}

/// Runs ping. Returns the mean round-trip time in milliseconds.
fn ping(from: &Host, to: &Host) -> Result<f64, Error> {
    let target = to.address().to_string();
    let output = run(from, "ping", &["-n", "-q", "-c", "20", "-i", "0.1", "-w", "10", &target])?;
    mean_rtt_ms(&output).ok_or_else(|| unexpected("ping", &output))
}

/// Runs iperf3. Returns the goodput at the receiver in Mbit/s, without the first second, which is
/// slow start.
fn iperf3(from: &Host, to: &Host) -> Result<f64, Error> {
    let load = IperfLoad::Tcp { congestion_control: "cubic".into() };
    let report = LoadReceiver::start(to, IPERF3_PORT)?.load(from, &load, TCP_SECONDS)?.finish()?;
    let steady: Vec<_> = report
        .received
        .iter()
        .filter(|interval| interval.start >= Timestamp::from_secs(1))
        .filter(|interval| interval.end <= Timestamp::from_secs(TCP_SECONDS.into()))
        .collect();
    let (Some(first), Some(last)) = (steady.first(), steady.last()) else {
        return Err(unexpected("iperf3", "it reported less than a second"));
    };
    let bytes = steady.iter().map(|interval| interval.payload.as_bytes()).sum();
    Ok((DataSize::from_bytes(bytes) / (last.end - first.start)).as_mbps_f64())
}

/// Runs a program to its end. Returns its output.
fn run(host: &Host, program: &str, arguments: &[&str]) -> Result<String, Error> {
    let mut command = host.command(program);
    command.args(arguments).env("LC_ALL", "C");
    let done =
        answer::output(&mut command, Limits::SHORT).map_err(Error::spawn(program.as_ref()))?;
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() { Ok(output) } else { Err(unexpected(program, &output)) }
}

fn unexpected(program: &str, output: &str) -> Error {
    let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
    Error::Program { program: program.into(), reason: last.trim().into() }
}

/// Parses the second value of `rtt min/avg/max/mdev = 50.7/50.8/51.0/0.1 ms`.
fn mean_rtt_ms(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.starts_with("rtt "))?;
    line.split(" = ").nth(1)?.split('/').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_read_from_ping() {
        let output = "20 packets transmitted, 20 received, 0% packet loss, time 1902ms\n\
                      rtt min/avg/max/mdev = 50.701/50.771/51.610/0.190 ms\n";
        assert_eq!(mean_rtt_ms(output), Some(50.771));
        assert_eq!(mean_rtt_ms("20 packets transmitted, 0 received"), None);
    }

    #[test]
    fn a_row_that_is_too_far_off_fails_the_test() {
        let row = |measured| QuantityCheck {
            asked: 2.0,
            measured,
            less: 0.1,
            more: 0.05,
            ..QuantityCheck::default()
        };
        let result = |rows| SelfTest { rows, notes: Vec::new() };
        assert!(result(vec![row(2.04), row(1.91)]).passed());
        assert!(!result(vec![row(2.04), row(1.89)]).passed());
        assert!(!result(vec![row(2.06), row(1.91)]).passed());
        assert!(!result(vec![row(f64::NAN)]).passed());
        assert!(!result(vec![]).passed());
    }
}
