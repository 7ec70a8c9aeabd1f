//! The command line.

mod analyze;
pub mod application;
mod arena;
mod collect;
mod fleet;
mod link;
pub mod research;
mod serve;
mod trace;

use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use analyze::Analyze;
pub use application::Application;
pub use arena::{Arena, CallRole};
#[cfg(calls)]
pub use arena::{ArenaPart, Role};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
pub use collect::Collect;
pub use fleet::{Fleet, FleetAnalyze, FleetCommand, FleetReport};
pub use link::Link;
pub use research::Research;
pub use serve::Serve;
pub use trace::{Direction, TraceArgs, TraceTo, TraceUse};

#[cfg(not(ims))]
use crate::unavailable::weir_testbed;

const EXAMPLES: &str = "\
Examples:
  weir list
  weir run lund/rmcat-ns3 --controller all --seeds 5 --out runs
  weir call demo/first-call --out runs
  weir report runs -o report.html
  weir analyze webrtc_internals_dump.gz
  weir serve
  weir link demo/first-call -- ping -c 5 10.45.0.2";

/// Attempts at a run that this machine disturbs.
pub const ATTEMPTS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// The version as in records, and the commit that the program was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("WEIR_REVISION"), ")");

/// Congestion control of real-time media: how does a call behave on this network under this
/// controller, and why?
#[derive(Parser)]
#[command(name = "weir", version = VERSION, after_help = EXAMPLES)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Show where the scenarios come from, or the scenarios.
    List(List),
    /// Simulate scenarios in virtual time.
    Run(Run),
    /// Make real calls between headless browsers, through the scenario's emulated network.
    Call(Call),
    /// Run a command inside a scenario's emulated network.
    Link(Link),
    /// Compare WebRTC stacks of others in real calls over the same networks.
    Arena(Arena),
    /// Open a local page: simulate, call and link with sliders, and compare records.
    Serve(Serve),
    /// Say what limited a call that was made elsewhere, from a dump of its browser.
    Analyze(Analyze),
    /// Analyze the dumps of many calls, and say what limits them.
    Fleet(Fleet),
    /// Say what limits calls while they run, from the reports that their clients send.
    Collect(Collect),
    /// Write one self-contained HTML report over recorded runs.
    Report(Report),
    /// Show how two sets of runs differ.
    Compare(Compare),
    /// Check the expectations of scenarios. Exit code: 0 none failed, 1 at least one failed, 2
    /// could not run, 3 not judged.
    Check(Check),
    /// Make the runs that a file describes, on the cores of this machine or on Dask workers.
    Sweep(Sweep),
    /// Say what a trace of a network is and how its capacity varies, and convert it.
    Trace(TraceArgs),
    /// Run an IMS with Kamailio, HSS and PCRF in network namespaces, and calls through it.
    Ims(weir_testbed::Args),
    /// Work on the models and controllers: draw scenarios, score, measure speed, validate.
    #[command(subcommand)]
    Research(Research),
    /// Print the completions of a shell.
    Completions(Completions),
    /// Write the manual pages.
    #[command(hide = true)]
    Man(Man),
}

impl Command {
    /// Whether the command creates emulated hosts.
    #[cfg(calls)]
    pub fn needs_network_rights(&self) -> bool {
        match self {
            Self::Call(_) | Self::Link(_) | Self::Arena(_) => true,
            Self::Research(research) => matches!(research, Research::Validate(_)),
            Self::Check(check) => check.engine == CheckEngine::Call,
            _ => false,
        }
    }
}

/// Which runs to make.
#[derive(ClapArgs, Clone)]
pub struct Selection {
    /// Scenario id, pattern ('lund/*') or TOML file.
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// Controllers, separated by commas; `library` means those that products embed, `all` also
    /// the historical ones, `peers` the newest of others (default: library; with `weir call`, the
    /// browsers' own congestion control).
    #[arg(long, value_name = "LIST")]
    pub controller: Option<String>,
    /// Run with each of the seeds 1 to N.
    #[arg(long, value_name = "N", conflicts_with = "seed", allow_negative_numbers = true)]
    pub seeds: Option<u64>,
    /// Run with this one seed (default: 1).
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Number of runs at the same time. It does not change the results (default: one per core).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// A constant of `sluice`, for experiments: sluice.NAME=VALUE, times in ms.
    #[arg(long = "set", value_name = "CONSTANT", hide = true)]
    pub constants: Vec<String>,
}

/// Where results go.
#[derive(ClapArgs)]
pub struct Output {
    /// Write a record of each run below this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON array, with one element per run, instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Print the table as Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// `weir list`
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  weir list
  weir list lund
  weir list 'rfc8867/*'
  weir list jitter --source lund
  weir list --all")]
pub struct List {
    /// Show these scenarios: those of a source ('lund'), of a pattern of ids ('rfc8867/*'), with a
    /// part of an id or title, or of a TOML file (default: show the sources).
    #[arg(value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// Show only the scenarios of one source, which is the first word of their ids.
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Show every scenario.
    #[arg(long, conflicts_with_all = ["pattern", "source"])]
    pub all: bool,
    /// Print one JSON array of scenarios; without a pattern or a source, of all.
    #[arg(long)]
    pub json: bool,
}

/// `weir run`
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  weir run lund/rmcat-ns3
  weir run 'lund/*' --controller nada,scream --seeds 5 --out runs
  weir run 'lund/*' --controller nada,scream --seeds 20 --out runs --resume
  weir run my-scenario.toml --seed 7331 --json
  weir run my-scenario.toml --controller chromium,sluice --as-called
  weir run delft/wifi-4/s1 --controller gcc --airtime frames.csv")]
pub struct Run {
    #[command(flatten)]
    pub selection: Selection,
    #[command(flatten)]
    pub output: Output,
    /// Continue an earlier command. Runs that already have a record below DIR are not repeated;
    /// their records are read.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Write each frame on the air of the Wi-Fi cell, or each block of the cellular cell, to this
    /// file. Only for a single run.
    #[arg(long, value_name = "FILE")]
    pub airtime: Option<PathBuf>,
    /// Write of each run only an rtcstats dump below this folder, as the browser at host A would,
    /// labelled as simulated, for `weir analyze` and `weir fleet`.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "json", "markdown", "airtime"])]
    pub dump: Option<PathBuf>,
    /// Simulate what `weir call` would play: the encoder of a pipeline under each controller, or
    /// Chromium's for `chromium`, in place of the scenario's source. It makes no records.
    #[arg(long, requires = "controller", conflicts_with_all = ["out", "airtime", "dump"])]
    pub as_called: bool,
}

/// `weir call`
#[derive(ClapArgs)]
#[command(after_help = "\
Without --controller, browsers are at both ends and use their own congestion control. With it, \
the sender of each video is a pipeline of GStreamer under that controller, and the receiver is a \
browser. This needs the plugin of `make install-gst`. Two more names stand for Chromium at both \
ends: `chromium` for its own congestion control, and `chromium-scream-v2` for its own SCReAM v2, \
which it has as an experiment. With `firefox` Firefox sends, under its own control.

--jobs is accepted, but has no effect. Runs are made one at a time, because several runs at once \
would disturb each other.

If this machine disturbs a run, the run is repeated, by default up to two times. If the last \
attempt is disturbed as well, it is kept, and its record says so. A failed call is a result: its \
record says why it failed.

Examples:
  weir call demo/first-call
  weir call demo/first-call --iterations 3 --out runs --json
  weir call lund/rmcat-ns3 --controller nada,scream,gcc --out runs
  weir call lund/sudden-reduction --controller chromium,gcc,chromium-scream-v2,scream-v2 --out runs
  weir call 'delft/wired-2/*' --quick --out runs
  weir call arena/steps --stack pion,wrtc --out runs
  weir call demo/first-call --serve=192.168.1.5
  weir call demo/first-call --serve=all
  weir call demo/first-call --app http://{server}:9000/ --join join.mjs \
--serve-app 'node server.mjs'")]
pub struct Call {
    #[command(flatten)]
    pub selection: Selection,
    /// Run each scenario N times, with the seeds 1 to N (default: the number that the scenario
    /// gives; 1 with --serve).
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "seed"])]
    pub iterations: Option<u64>,
    /// Make the calls between people. The command prints an address for each person, to be opened
    /// in a browser on any machine that reaches this one at ADDRESS (default: 127.0.0.1). `all`
    /// means all addresses of this machine.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true,
        default_missing_value = "127.0.0.1", value_parser = served_address, conflicts_with = "app")]
    pub serve: Option<Ipv4Addr>,
    /// Signal through the IMS that `weir ims up` has started: caller and callee are users of it,
    /// such as alice,bob; two more for each further call. The record has the messages too.
    #[arg(long, value_name = "CALLER,CALLEE,...", conflicts_with_all = ["serve", "app"])]
    pub ims: Option<String>,
    #[command(flatten)]
    pub application: Application,
    /// Measure what is seen and heard: the delay of each frame from the camera to the other peer's
    /// screen, stalls on screen, and of calls with audio the delay from mouth to ear and
    /// concealment. The camera's frames get a row of marks. Needs a browser or a pipeline at each
    /// end, or a stack that sends. With --app and --stack it measures what is seen.
    #[arg(long, conflicts_with = "serve")]
    pub quality: bool,
    /// Keep in the record, as PNG files, the last picture that was received at each of these
    /// seconds.
    #[arg(
        long,
        value_name = "SECONDS",
        value_delimiter = ',',
        requires = "quality",
        requires = "out"
    )]
    pub picture_at: Vec<u32>,
    /// Stacks of the arena, separated by commas: folders with a driver. They send, with their own
    /// congestion control in charge, unless --role says that they receive.
    #[arg(long, value_name = "LIST",
        conflicts_with_all = ["serve", "app", "controller", "ims"])]
    pub stack: Option<String>,
    /// What the stacks do.
    #[arg(long, value_enum, value_name = "ROLE", requires = "stack",
        default_value_t = CallRole::Sender)]
    pub role: CallRole,
    /// The driver of the one stack in --stack: a command in shell syntax, started in the present
    /// folder.
    #[arg(long, value_name = "COMMAND", requires = "stack")]
    pub driver: Option<String>,
    /// The folder of the stacks.
    #[arg(long, value_name = "DIR", default_value = "arena", requires = "stack")]
    pub arena: PathBuf,
    /// Keep the packet captures of all hosts in the records, as pcapng files without payload.
    #[arg(long, requires = "out")]
    pub capture: bool,
    /// Change capacity, delay, jitter and loss by typing while the calls run. `end` ends them now
    /// and keeps the record, `quit` ends them without a record.
    #[arg(long, conflicts_with = "app")]
    pub interactive: bool,
    /// Take the lines of --interactive from a program that listens on this Unix socket, and send it
    /// the status of the run and each report of getStats as JSON lines. `weir serve` uses it.
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["interactive", "app"])]
    pub live: Option<PathBuf>,
    /// Run each scenario once.
    #[arg(long, conflicts_with_all = ["iterations", "seeds", "seed"])]
    pub quick: bool,
    /// Make at most N attempts at a run that this machine disturbs. The last attempt is kept and
    /// marked as disturbed.
    #[arg(long, value_name = "N", default_value_t = ATTEMPTS)]
    pub attempts: NonZeroUsize,
    #[command(flatten)]
    pub output: Output,
}

/// Parses one address of this machine, or `all`.
fn served_address(text: &str) -> Result<Ipv4Addr, String> {
    if text == "all" {
        return Ok(Ipv4Addr::UNSPECIFIED);
    }
    let address: Ipv4Addr = text.parse().map_err(|_| {
        "this is not an IPv4 address: name one that `ip address` shows, or write --serve=all"
            .to_owned()
    })?;
    let what = match address {
        _ if address.is_unspecified() => "this stands for all addresses of the machine",
        _ if address.is_multicast() => "this is a multicast address",
        _ if address.is_broadcast() => "this is a broadcast address",
        _ => return Ok(address),
    };
    Err(format!("{what}: name one that `ip address` shows, or write --serve=all"))
}

/// `weir report`
#[derive(ClapArgs)]
#[command(after_help = "\
The report of a sweep needs Python 3.11 with the package duckdb, as `weir sweep` does.

Examples:
  weir run 'lund/*' --seeds 5 --out runs && weir report runs -o report.html
  weir sweep delays.toml --out sweep && weir report sweep -o sweep.html")]
pub struct Report {
    /// Folders with records, as `--out` wrote them, or the folder of one sweep.
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// File for the report.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,
}

/// `weir compare`
#[derive(ClapArgs)]
#[command(after_help = "\
Runs are compared if both folders have them for the same scenario, controller and engine. For \
each metric, the table has the mean over the seeds of each folder with its 95 % confidence \
interval, the change in per cent, and a verdict:

  better, worse, other   the difference is significant. p is the probability of such a difference
                         by chance, at most 0.05. Of 20 metrics without a real change, about one
                         is also called significant. `always`: nothing in the scenario is random,
                         and every seed gives the same values
  ~                      the difference may be chance
  =                      no value differs
  ?                      there are too few seeds for a test. 4 in each folder are enough

If scenario files have changed, the changes are printed before the table. If one folder has real \
calls of a scenario and the other has simulated runs, a second table has the error of each \
section.

With --by controller, two controllers are compared whose records lie in the same folder, or in \
several. A verdict says how the second is, beside the first.

Examples:
  weir compare runs-before runs-after
  weir compare --by controller gcc,sluice runs
  weir compare --match name runs-of-old-file runs-of-new-file
  weir compare calls runs")]
#[command(override_usage = "\
weir compare [OPTIONS] BEFORE AFTER
       weir compare [OPTIONS] --by controller A,B DIR...")]
pub struct Compare {
    /// Folder with the records before a change, and folder with those after it; with `--by
    /// controller`, the two controllers and the folders of their records.
    #[arg(required = true, num_args = 2.., value_name = "INPUT")]
    pub inputs: Vec<PathBuf>,
    /// What differs between the two sides.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = CompareBy::Folder)]
    pub by: CompareBy,
    /// How runs of your own scenario files are matched between the two folders.
    #[arg(long, value_enum, value_name = "BY", default_value_t = Match::Id)]
    pub r#match: Match,
    /// Print one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// What differs between the two sides of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareBy {
    /// The folder of the records: before a change and after it.
    Folder,
    /// The controller.
    Controller,
}

/// How two scenario files outside the catalogue are matched.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Match {
    /// By the file's path, as it was given on the command line.
    Id,
    /// By the file's name, without its folder.
    Name,
}

/// `weir check`
#[derive(ClapArgs)]
#[command(after_help = "\
Exit code:
  0  no expectation failed. Expectations in doubt and known misses are listed, but do not count \
as failed
  1  an expectation failed, or a known miss holds now. With --strict, also if an expectation is \
in doubt
  2  could not run
  3  nothing failed, but this machine disturbed each call of a scenario, so it was not judged \
(only with --engine call)

With one seed, each expectation holds or fails. With several seeds (--seeds), it is judged by the \
mean over the seeds. It is in doubt if the mean is on the wrong side of the limit, but so close \
to the limit that chance may be the reason (two-sided test at 0.1 %).

Examples:
  weir check 'rfc8867/*' --controller all --junit check.xml
  weir check 'rfc8867/*' --controller all --markdown
  weir check my-scenario.toml --controller gcc --seeds 10 --strict
  weir check mine.toml --engine call --app https://x.example.org/ --join j.mjs")]
pub struct Check {
    #[command(flatten)]
    pub selection: Selection,
    /// How the runs are made: simulated, or as real calls like those of `weir call`.
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = CheckEngine::Sim)]
    pub engine: CheckEngine,
    #[command(flatten)]
    pub application: Application,
    /// Measure what is seen and heard (only with --engine call), also if no expectation needs it.
    #[arg(long)]
    pub quality: bool,
    /// Make at most N attempts at a call that this machine disturbs (only with --engine call).
    #[arg(long, value_name = "N", default_value_t = ATTEMPTS)]
    pub attempts: NonZeroUsize,
    /// Write a record of each call below this folder (only with --engine call).
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print all expectations, including those that hold.
    #[arg(long)]
    pub list: bool,
    /// Print the table of scenarios and controllers, and the table of requirements, as Markdown.
    /// With --list, also the table of expectations.
    #[arg(long)]
    pub markdown: bool,
    /// Count an expectation in doubt as failed.
    #[arg(long)]
    pub strict: bool,
    /// Write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// How `weir check` makes runs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckEngine {
    /// In virtual time.
    Sim,
    /// Real calls through the emulated network. Needs root or user namespaces.
    Call,
}

/// `weir sweep`
#[derive(ClapArgs)]
#[command(after_help = "\
It needs Python 3.11 with the packages duckdb and pyarrow: `python3`, or what WEIR_PYTHON names. \
`make install` brings the rest along. The results are Parquet files below DIR. Runs that are \
there are not repeated.

FILE is such as:
  scenarios = [\"rfc8867/5.1\", \"rfc8867/5.2\"]
  controllers = \"gcc,nada\"
  seeds = 20
  [grid]
  \"network.up.delay\" = [\"10ms\", \"50ms\"]

Examples:
  weir sweep delays.toml --out sweep
  weir sweep delays.toml --out sweep --scheduler tcp://10.0.0.1:8786
  weir report sweep -o sweep.html
  weir sweep --replay 6f1c3a90 --out sweep")]
pub struct Sweep {
    /// What is swept.
    #[arg(value_name = "FILE", required_unless_present = "replay")]
    pub file: Option<PathBuf>,
    /// Make one run of the sweep in DIR again, and write its record to DIR/replays. KEY is the
    /// run's key, or its beginning, as the report shows it.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["file", "scheduler", "workers"])]
    pub replay: Option<String>,
    /// Folder of the results.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Address of a Dask scheduler (default: processes of this machine).
    #[arg(long, value_name = "ADDRESS")]
    pub scheduler: Option<String>,
    /// Number of processes without a scheduler (default: one per core).
    #[arg(long, value_name = "N", conflicts_with = "scheduler")]
    pub workers: Option<NonZeroUsize>,
}

/// `weir completions`
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions fish > ~/.config/fish/completions/weir.fish")]
pub struct Completions {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// `weir man`
#[derive(ClapArgs)]
#[command(after_help = "\
Example:
  weir man pages && man pages/weir-run.1")]
pub struct Man {
    /// Folder for weir.1 and one page for each command.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
