//! Arguments of `weir link`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// `weir link`
#[derive(ClapArgs)]
#[command(after_help = "\
COMMAND runs on host A (10.45.0.1). The far end is host B (10.45.0.2). Up is the direction from A \
to B. If the scenario has an access network, such as a Wi-Fi cell, A is the terminal of the first \
flow that crosses it. The other terminals are simulated.

The exit code is that of COMMAND. If a signal ended COMMAND, the exit code is 128 plus the number \
of the signal. SIGINT, SIGTERM and SIGHUP are sent to all processes of COMMAND. Processes that \
still run three seconds later are killed.

Examples:
  weir link demo/first-call -- ping -c 5 10.45.0.2
  weir link demo/first-call --peer 'iperf3 -s -1' -- iperf3 -C cubic -c 10.45.0.2
  weir link demo/first-call --interactive -- ping 10.45.0.2
  weir link demo/first-call --out runs --capture -- ping -c 5 10.45.0.2 && weir report runs
  weir link --self-test")]
pub struct Link {
    /// Scenario id or TOML file.
    #[arg(value_name = "SCENARIO", required_unless_present = "self_test")]
    pub scenario: Option<String>,
    /// Run this command on host B at the same time. It is split at spaces.
    #[arg(long, value_name = "COMMAND")]
    pub peer: Option<String>,
    /// Change capacity, delay, jitter and loss by typing while COMMAND runs. A line shows the
    /// current state.
    #[arg(long, conflicts_with = "self_test")]
    pub interactive: bool,
    /// Print rate, loss and queue of each direction so often while COMMAND runs, and 0 never. At a
    /// terminal the default is 5 s. The last line is always printed.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["self_test", "interactive"])]
    pub status: Option<u32>,
    /// Take the lines of --interactive from a program that listens on this Unix socket, and send it
    /// the status of the run as JSON lines. `weir serve` uses it.
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["self_test", "interactive"])]
    pub live: Option<PathBuf>,
    /// Write a record of the run below this folder. It counts the packets of each direction and
    /// their losses.
    #[arg(long, value_name = "DIR", conflicts_with = "self_test")]
    pub out: Option<PathBuf>,
    /// Keep the packet captures of both hosts in the record, as pcapng files without payload.
    #[arg(long, requires = "out")]
    pub capture: bool,
    /// Seed of the network's losses and jitter.
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub seed: u64,
    /// Measure emulated networks with ping and iperf3, and print how far they are from their
    /// settings.
    #[arg(long, conflicts_with_all = ["scenario", "command", "peer"])]
    pub self_test: bool,
    /// The command to run on host A.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "self_test")]
    pub command: Vec<String>,
}
