//! The commands of `weir research`, for work on the models and the controllers themselves.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::Selection;

/// What to do.
#[derive(Subcommand)]
pub enum Research {
    /// Write scenarios drawn from seeds.
    Generate(Generate),
    /// Compare what controllers reach with what is possible, and with each other.
    Score(Score),
    /// Measure what each rule and each constant of `sluice` is worth.
    Ablate(Ablate),
    /// Measure how fast the simulator and the controllers are on this machine.
    Bench(Bench),
    /// Compare a model with the real thing or with reference figures. Exit code: 0 all values are
    /// within the limits, 1 at least one is not, 2 could not run.
    Validate(Validate),
}

/// `weir research generate`
#[derive(ClapArgs)]
#[command(after_help = "\
A scenario follows from its seed alone, on every machine. The seeds 1 to 200 are the set `train`, \
201 to 300 `validate`, 301 to 400 `sealed`, 401 to 500 `sealed-2`, 501 to 600 `sealed-3`, and \
601 to 700 `sealed-4`. Other seeds are free for any use. Seeds up to 600 have no scenario of the \
family `radio`; with `--family radio` every seed gives one. \
The files of the families are in folders of their own: \
DIR/steps/13.toml.

Examples:
  weir research generate --families
  weir research generate 13
  weir research generate --set validate --out validate && \
weir research score validate/*/*.toml --controller gcc,nada
  weir research generate 1000-1999 --family walk --out walks && weir run walks/walk/*.toml
  weir research generate 1-200 --family radio --out train")]
pub struct Generate {
    /// Seeds: numbers, or ranges such as 1000-1999.
    #[arg(value_name = "SEED", required_unless_present_any = ["set", "families"])]
    pub seeds: Vec<String>,
    /// Sets of seeds, separated by commas: train, validate, sealed, sealed-2, sealed-3, sealed-4.
    #[arg(long, value_name = "LIST")]
    pub set: Option<String>,
    /// Only the scenarios of this family. `radio` gives one for every seed.
    #[arg(long, value_name = "NAME")]
    pub family: Option<String>,
    /// Write the scenarios below this folder (default: print one scenario).
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show the families.
    #[arg(long, conflicts_with_all = ["seeds", "set", "family", "out"])]
    pub families: bool,
    /// Write sealed scenarios, too. The reason goes to the log of openings.
    #[arg(long, value_name = "REASON")]
    pub open_seal: Option<String>,
    /// The log of openings.
    #[arg(long, value_name = "FILE", default_value = "docs/results/sealed-openings.tsv")]
    pub seal_log: PathBuf,
}

/// `weir research score`
#[derive(ClapArgs)]
#[command(after_help = "\
The regret of a run is what it loses against an oracle, which knows the schedule of the network \
as late as feedback could report it: share of the rate that was not reached, delay above 60 ms, \
loss, unfairness, and slow response to a rise. 0 is as good as the oracle. The first controller \
is compared with each other one. A scenario is won if the 95 % interval of the improvement, \
paired over the seeds, is above 0.01. A family (the folder of the scenario) is won by Wilcoxon's \
signed-rank test over its runs, after Holm's correction.

Examples:
  weir research generate --set validate --out validate
  weir research score validate/*/*.toml --controller sluice,gcc --seeds 5
  weir research score 'rfc8867/*' --controller all --own sluice --seeds 20 --markdown")]
pub struct Score {
    #[command(flatten)]
    pub selection: Selection,
    /// The controller that is compared with each other one (default: the first).
    #[arg(long, value_name = "NAME")]
    pub own: Option<String>,
    /// Print one table only.
    #[arg(long, value_enum, value_name = "TABLE")]
    pub table: Option<ScoreTable>,
    /// Print the constants of `sluice` with their values, times in ms.
    #[arg(long, hide = true, exclusive = true)]
    pub list_constants: bool,
    /// Number of scenarios in the table of the worst.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub worst: usize,
    /// Print a JSON object with the scores of all runs, instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Print the tables as Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// `weir research ablate`
#[derive(ClapArgs)]
#[command(after_help = "\
Each rule is switched off, and each constant is halved and doubled, one at a time. Every change \
runs the same scenarios with the same seeds as the controller of the page, and what is lost is \
the mean difference of the regrets, with the 95 % interval over the pairs of runs. A scenario is \
lost if the interval over its own pairs is above 0.01. `loses` means that a scenario or a family \
is lost, `not asked` that no run changed: these scenarios say nothing about the rule. A constant \
that is a factor near 1 is halved and doubled in its distance to 1.

Examples:
  weir research ablate 'rfc8867/*' --only rules
  weir research ablate 'goals/*' 'l4s/*' --only S-8,g_l4s,a_marked --seeds 10
  weir research ablate 'mobile/*' --change S-31=0,S-32=0 --change g_return=0.9
  weir research generate 1-12 --family wide --out sets && \
weir research ablate 'sets/wide/*.toml' --only constants --json
  weir research ablate 'rfc8867/*' 'handover/*' --seeds 20 --jobs 2 --markdown")]
pub struct Ablate {
    /// Scenario id, pattern ('goals/*') or TOML file.
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// Only these: names of rules and constants, separated by commas, or `rules`, or `constants`.
    #[arg(long, value_name = "LIST")]
    pub only: Option<String>,
    /// These settings together as one change, in place of the usual ones: `S-9=0,q_min=2`. Can be
    /// given several times.
    #[arg(long, value_name = "SETTINGS", conflicts_with = "only")]
    pub change: Vec<String>,
    /// Run with each of the seeds 1 to N.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub seeds: u64,
    /// Number of runs at the same time. It does not change the results (default: one per core).
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// A constant that every controller here has: sluice.NAME=VALUE, times in ms.
    #[arg(long = "set", value_name = "CONSTANT", hide = true)]
    pub constants: Vec<String>,
    /// Print a JSON array with an element for each change, instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Print the table as Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// A table of `weir research score`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScoreTable {
    /// Regret of each controller.
    Regret,
    /// Scenarios won, tied and lost in each family.
    Families,
    /// Verdict against each rival.
    Contest,
    /// The worst scenarios.
    Worst,
}

/// `weir research bench`
#[derive(ClapArgs)]
pub struct Bench {
    /// Number of measurements of each figure; the median is printed.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub repeat: usize,
}

/// `weir research validate`
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  weir research validate tcp --quick
  weir research validate tcp --control bbr --runs 3
  weir research validate wifi
  weir research validate emulator > emulator-accuracy.md
  weir call 'audio/*' --quality --capture --out calls && weir research validate playout calls")]
pub struct Validate {
    /// The model.
    #[arg(value_enum, value_name = "MODEL")]
    pub model: Model,
    /// Make fewer or shorter runs. tcp then takes a minute and a half instead of 45 minutes.
    #[arg(long)]
    pub quick: bool,
    /// Only for tcp: number of runs of each network [default: 3, with --quick 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: Option<u64>,
    /// Only for tcp: congestion controls, separated by commas [default: cubic,reno,bbr].
    #[arg(long, value_name = "LIST")]
    pub control: Option<String>,
    /// Only for emulator: measure only which packet rates it can carry.
    #[arg(long)]
    pub rates_only: bool,
    /// Only for playout, which needs one: folders with records of calls with captures.
    #[arg(value_name = "DIR")]
    pub records: Vec<PathBuf>,
}

/// What can be validated.
#[derive(Clone, Copy, ValueEnum)]
pub enum Model {
    /// The simulator's TCP, compared with the kernel's TCP over the emulator. Needs root.
    Tcp,
    /// The Wi-Fi cell, compared with ns-3, with closed-form models and with a paper's formulas.
    Wifi,
    /// The cellular cell, compared with runs of the LTE module of ns-3.
    Cellular,
    /// The emulator, compared with its own model in virtual time and with the kernel's token
    /// bucket. Prints a page of Markdown.
    Emulator,
    /// The jitter buffer and NetEq, which get the packets of real calls, compared with getStats.
    Playout,
}
