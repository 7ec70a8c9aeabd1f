//! `weir trace`.

use clap::{Args as ClapArgs, ValueEnum};

/// `weir trace`
#[derive(ClapArgs)]
#[command(after_help = "\
One trace file is described: its format, what is read of it, its mean, percentiles and outages, \
and the line of a scenario that uses it. Keys of that line follow as KEY=VALUE, such as \
column=rate_mbps or where.run_num=3; docs/reference/traces.md has them. Several files or \
scenarios (.toml) make a table of how much their capacities vary. Of a cell, each media flow \
always has data to send, and what arrives is the capacity that it gets beside the other traffic: \
that is simulated. A cv is the coefficient of variation (standard deviation over mean) of the \
rates over 50 ms, 200 ms and 1 s. An outage is 150 ms or more without any capacity.

Examples:
  weir trace drive.csv column=DL_bitrate unit=kbps time=Timestamp
  weir trace iperf3.json --to mahimahi > link.mahi
  weir trace ping.csv --as delay
  weir trace mahimahi/traces/*.up
  weir trace mobile/lte-walking --seed 2")]
pub struct TraceArgs {
    /// Trace files with KEY=VALUE, or scenario ids, patterns ('mobile/*') and TOML files.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// What the file is read for.
    #[arg(long, value_enum, value_name = "USE", default_value_t = TraceUse::Capacity)]
    pub r#as: TraceUse,
    /// Write the trace in this format instead of a description.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["json", "markdown"])]
    pub to: Option<TraceTo>,
    /// The direction for which a table with both is read.
    #[arg(long, value_enum, value_name = "DIRECTION", default_value_t = Direction::Up)]
    pub direction: Direction,
    /// Seed of the cells.
    #[arg(long, value_name = "K", default_value_t = 1)]
    pub seed: u64,
    /// Number of cells at the same time. It does not change the results (default: one per core).
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Print a JSON list of how capacities vary.
    #[arg(long)]
    pub json: bool,
    /// Print a table of how capacities vary as Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// What a trace is read for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceUse {
    /// The capacity of a link.
    Capacity,
    /// The delay of a link.
    Delay,
    /// The loss of a link.
    Loss,
    /// The jitter of a link.
    Jitter,
    /// The SINR of a terminal.
    Sinr,
}

/// A format that is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceTo {
    /// Opportunities of mahimahi.
    Mahimahi,
    /// A table of seconds and values.
    Csv,
}

/// A direction of a link, as seen from the terminal.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// From the terminal.
    Up,
    /// To the terminal.
    Down,
}
