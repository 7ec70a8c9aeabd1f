//! `weir link`: any command inside a scenario's network, in real time.

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use weir_emu::{Emulator, Ended, HostPlan, Plan, Running, self_test};
use weir_lab::scenario::{Scenario, catalogue};
use weir_net::Seed;
use weir_net::wifi::{AccessCategory, Association, NodeId};

use crate::args::Link;
use crate::console::Console;
use crate::output;

/// How often what was typed is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Runs the command, or the self-test, and passes its exit code on.
pub fn link(args: &Link) -> anyhow::Result<ExitCode> {
    if args.self_test {
        return test();
    }
    // The command line demands a scenario where there is no self-test.
    let name = args.scenario.as_deref().unwrap_or_default();
    let mut found = catalogue::find(name)?;
    let scenario = found.remove(0);
    anyhow::ensure!(
        found.is_empty(),
        "'{name}' stands for {} scenarios: name one of them, such as {}",
        found.len() + 1,
        scenario.id
    );
    let emulator = Emulator::new(&plan(&scenario), Seed::new(args.seed))?;
    let words = |text: &String| text.split_whitespace().map(OsString::from).collect();
    let peer: Option<Vec<OsString>> = args.peer.as_ref().map(words);
    anyhow::ensure!(
        peer.as_ref().is_none_or(|words| !words.is_empty()),
        "--peer is empty: write a command, such as --peer 'iperf3 -s -1'"
    );
    let command: Vec<OsString> = args.command.iter().map(OsString::from).collect();
    let ended = run(emulator, &command, peer.as_deref(), args.interactive)?;
    let emulation = &ended.emulation;
    if let Some(p99) = emulation.lateness.quantile(0.99) {
        let (packets, p99, max) =
            (emulation.lateness.count(), p99.as_micros(), emulation.lateness.max().as_micros());
        eprintln!("weir: {packets} packets, released {p99} us late at p99, {max} us at most");
    }
    for bent in emulation.bent() {
        eprintln!("weir: this machine bent the run: {bent}");
    }
    Ok(ExitCode::from(ended.exit_code))
}

/// Host A before all bottlenecks, host B behind them. In a Wi-Fi cell A is the station of the first flow
/// that is at one, else the first station; all others are simulated.
fn plan(scenario: &Scenario) -> Plan {
    let network = weir_call::network(scenario);
    let first =
        |_| Association { station: NodeId::station(0), category: AccessCategory::BestEffort };
    let of_flow = scenario.flows.iter().find_map(|flow| flow.station);
    let station = of_flow.or_else(|| scenario.cell.as_ref().map(first));
    if let (Some(own), Some(cell)) = (station, &network.cell) {
        let name = cell.config.names().nth(own.station.0).unwrap_or_default();
        eprintln!(
            "weir: host A is station {name} of a simulated Wi-Fi cell; its others are simulated"
        );
    }
    let hosts = vec![HostPlan { station, ..HostPlan::at(0) }, HostPlan::at(network.hops.len())];
    Plan { hosts, ..network }
}

/// Runs the command to its end. What is typed changes the network or goes to the command, not both.
fn run(
    emulator: Emulator,
    command: &[OsString],
    peer: Option<&[OsString]>,
    interactive: bool,
) -> Result<Ended, weir_emu::Error> {
    if !interactive {
        return Running::start(emulator, command, peer, Stdio::inherit())?.wait();
    }
    let mut running = Running::start(emulator, command, peer, Stdio::null())?;
    let console = Console::start();
    while !running.has_ended()? {
        if !console.tick(&running.handle()) {
            running.terminate();
            break;
        }
        std::thread::sleep(TICK);
    }
    running.wait()
}

fn test() -> anyhow::Result<ExitCode> {
    let result = self_test()?;
    output::print(&result.to_string())?;
    Ok(if result.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
