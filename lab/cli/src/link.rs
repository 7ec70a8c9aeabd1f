//! `weir link`: any command inside a scenario's network, in real time.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context;
use weir::units::{TimeDelta, Timestamp};
use weir_call::capture::{CapturePlan, Recorded, Recording};
use weir_call::{LinkRun, link_record};
use weir_emu::{Emulation, Emulator, FlowRecord, HostPlan, Plan, Running, Signals, self_test};
use weir_net::Seed;
use weir_record::run::{Engine, RunInfo};
use weir_record::shell::quoted;
use weir_record::subject::Subject;
use weir_scenario::{Scenario, catalogue};

use crate::args::Link;
use crate::captures::Captures;
use crate::console::{self, Console, Wish};
use crate::{output, run};

/// How often typed lines are read.
const TICK: Duration = Duration::from_millis(100);
/// How often the status is printed at a terminal, in seconds.
const STATUS_S: u32 = 5;
/// SIGTERM, which `quit` sends to the command.
const TERMINATE: i32 = 15;

/// Runs the command or the self-test, and returns its exit code.
pub fn link(args: &Link) -> anyhow::Result<ExitCode> {
    if args.self_test {
        return test();
    }
    // The command line requires a scenario if there is no self-test.
    let name = args.scenario.as_deref().unwrap_or_default();
    let mut found = catalogue::find(name)?;
    let scenario = found.remove(0);
    anyhow::ensure!(
        found.is_empty(),
        "'{name}' matches {} scenarios: name one of them, such as {}",
        found.len() + 1,
        scenario.id
    );
    let info = info(args, &scenario);
    if let Some(out) = &args.out {
        run::refuse_existing(out, std::iter::once(&info))?;
    }
    // Until the record is written, a signal ends the command and leaves no incomplete record.
    let signals = Signals::listen().context("cannot listen for signals")?;
    let plan = plan(&scenario)?;
    let emulator = Emulator::new(&plan, Seed::new(args.seed))?;
    let captures = Captures::new(args.capture, args.out.as_deref(), &info)?;
    let ended = match run_command(args, emulator, captures.plan(), &signals) {
        Ok(ended) => ended,
        Err(error) => {
            captures.discard();
            return Err(error);
        }
    };
    print_traffic(&ended.emulation);
    print_lateness(&ended.emulation);
    if let Some(out) = &args.out {
        let run = LinkRun {
            command: &args.command,
            peer: args.peer.as_deref(),
            exit_code: ended.exit_code,
            plan: &plan,
            emulation: &ended.emulation,
            captures: &ended.captures,
        };
        let record = link_record(&scenario, info, &run).write(out)?;
        captures.move_to(&record)?;
        eprintln!("weir: recorded in {}", record.display());
    }
    Ok(ExitCode::from(ended.exit_code))
}

/// The identity of the run.
fn info(args: &Link, scenario: &Scenario) -> RunInfo {
    let command = args.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let subject = Subject::Command { command, peer: args.peer.as_deref().map(quoted) };
    RunInfo { scenario: scenario.id.clone(), subject, engine: Engine::Link, seed: args.seed }
}

/// What passed between the two hosts, over the whole run.
fn print_traffic(emulation: &Emulation) {
    let mut parts = Vec::new();
    for (name, from, to) in [("up", 0, 1), ("down", 1, 0)] {
        parts.extend(emulation.flow(from, to).and_then(|flow| traffic(name, flow)));
    }
    if !parts.is_empty() {
        eprintln!("weir: {}", parts.join(" | "));
    }
}

/// Rate, loss and queue of one direction; `None` without a packet.
fn traffic(name: &str, flow: &FlowRecord) -> Option<String> {
    let total = &flow.total;
    let time = flow.samples.last()?.time - Timestamp::ZERO;
    if total.offered_packets == 0 || time == TimeDelta::ZERO {
        return None;
    }
    let rate = (total.delivered / time).as_mbps_f64();
    let gone = (total.lost_packets + total.dropped_packets) as f64 / total.offered_packets as f64;
    let waits = flow.samples.iter().filter_map(|sample| sample.traffic.mean_wait());
    let most = waits.max().unwrap_or(TimeDelta::ZERO).as_millis_f64();
    let mean = total.mean_wait().unwrap_or(TimeDelta::ZERO).as_millis_f64();
    Some(format!(
        "{name} {rate:.3} Mbit/s, {:.1} % lost, queue {mean:.0} ms (at most {most:.0} ms)",
        gone * 100.0
    ))
}

fn print_lateness(emulation: &Emulation) {
    if let Some(p99) = emulation.lateness.quantile(0.99) {
        let (packets, p99, max) =
            (emulation.lateness.count(), p99.as_micros(), emulation.lateness.max().as_micros());
        eprintln!("weir: {packets} packets; release lateness: p99 {p99} us, maximum {max} us");
    }
    for cause in emulation.disturbances() {
        eprintln!("weir: this machine disturbed the run: {cause}");
    }
}

/// Host A is before all bottlenecks, host B behind them. In an access network, A is the terminal of
/// the first flow that belongs to a terminal, else the first terminal. All other terminals are
/// simulated.
fn plan(scenario: &Scenario) -> anyhow::Result<Plan> {
    let network = weir_call::network(scenario);
    let attachment = scenario.link_attachment();
    if let (Some(own), Some(access)) = (attachment, &network.access) {
        let (title, terminal) = (access.config.title(), access.config.terminal_word());
        let name = &access.config.names()[own.terminal];
        eprintln!(
            "weir: host A is {terminal} {name} of a simulated {title}; each other {terminal} is \
             simulated"
        );
    }
    let hosts = vec![HostPlan { attachment, ..HostPlan::at(0) }, HostPlan::at(network.hops.len())];
    let nats = weir_call::nats(scenario, &[("a", 0), ("b", 1)]).map_err(anyhow::Error::msg)?;
    Ok(Plan { hosts, nats, ..network })
}

/// Results of a command that has ended.
struct Ended {
    exit_code: u8,
    emulation: Emulation,
    captures: Vec<Recorded>,
}

/// Runs the command to its end. Typed lines either change the network or go to the command, not
/// both.
fn run_command(
    args: &Link,
    emulator: Emulator,
    capture: Option<CapturePlan>,
    signals: &Signals,
) -> anyhow::Result<Ended> {
    let peer = args.peer.as_ref();
    let peer: Option<Vec<OsString>> =
        peer.map(|text| text.split_whitespace().map(OsString::from).collect());
    anyhow::ensure!(
        peer.as_ref().is_none_or(|words| !words.is_empty()),
        "--peer is empty: write a command, such as --peer 'iperf3 -s -1'"
    );
    let command: Vec<OsString> = args.command.iter().map(OsString::from).collect();
    let recording = capture.map(|plan| Recording::start(emulator.hosts(), &plan)).transpose()?;
    let console = Console::of(args.interactive, args.live.as_deref())?;
    let input = if console.is_some() { Stdio::null() } else { Stdio::inherit() };
    let mut running = Running::start(emulator, &command, peer.as_deref(), input, Some(signals))?;
    let exit_code = match console {
        Some(console) => run_interactive(&mut running, console)?,
        None => run_with_status(&mut running, status_interval(args))?,
    };
    // Stop the captures before the hosts and their interfaces are removed.
    let captures = recording.map(Recording::stop).transpose()?.unwrap_or_default();
    Ok(Ended { exit_code, emulation: running.stop()?, captures })
}

/// How often the status is printed; `None` for never.
fn status_interval(args: &Link) -> Option<Duration> {
    let at_terminal = std::io::stderr().is_terminal().then_some(STATUS_S);
    let seconds = args.status.or(at_terminal).filter(|seconds| *seconds > 0)?;
    Some(Duration::from_secs(seconds.into()))
}

/// Prints a line of status from time to time until the command ends.
fn run_with_status(
    running: &mut Running<'_>,
    interval: Option<Duration>,
) -> Result<u8, weir_emu::Error> {
    let Some(interval) = interval else { return running.wait() };
    loop {
        if let Some(code) = running.poll(interval)? {
            return Ok(code);
        }
        eprintln!("weir: {}", console::shown(&running.handle().status()));
    }
}

/// Lets the user change the network until the command ends.
fn run_interactive(running: &mut Running<'_>, mut console: Console) -> Result<u8, weir_emu::Error> {
    loop {
        if let Some(code) = running.poll(TICK)? {
            return Ok(code);
        }
        if console.tick(&running.handle(), &[]) != Wish::Continue {
            running.end(TERMINATE);
            return running.wait();
        }
    }
}

fn test() -> anyhow::Result<ExitCode> {
    let result = self_test()?;
    output::print(&result.to_string())?;
    Ok(if result.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use weir::units::DataSize;
    use weir_emu::{FlowSample, TrafficTotals};

    use super::*;

    #[test]
    fn the_last_line_has_the_rate_the_loss_and_the_queue_of_a_direction() {
        let waited = |ms, packets| TrafficTotals {
            delivered_packets: packets,
            waited: TimeDelta::from_millis(ms),
            ..TrafficTotals::default()
        };
        let sample = |time_ms, traffic| FlowSample {
            time: Timestamp::from_millis(time_ms),
            queued: DataSize::ZERO,
            carried: None,
            traffic,
        };
        let total = TrafficTotals {
            offered_packets: 1_000,
            lost_packets: 10,
            dropped_packets: 15,
            delivered: DataSize::from_bytes(500_000),
            ..waited(9_750, 975)
        };
        let samples = vec![sample(1_000, waited(50, 10)), sample(2_000, waited(800, 10))];
        let flow = FlowRecord { from: 0, to: 1, samples, total };
        assert_eq!(
            traffic("up", &flow).unwrap(),
            "up 2.000 Mbit/s, 2.5 % lost, queue 10 ms (at most 80 ms)"
        );
        let nothing = FlowRecord { total: TrafficTotals::default(), ..flow };
        assert_eq!(traffic("up", &nothing), None);
    }
}
