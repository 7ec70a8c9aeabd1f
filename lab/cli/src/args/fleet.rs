//! Arguments of `weir fleet`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

/// `weir fleet`
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  weir fleet analyze dumps --out lake    the tables of all dumps in a folder
  weir fleet report lake -o fleet.html   a page of them")]
pub struct Fleet {
    /// What to do with many dumps.
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// What to do with many dumps.
#[derive(Subcommand)]
pub enum FleetCommand {
    /// Analyze dumps of many calls into a folder of Parquet files.
    Analyze(FleetAnalyze),
    /// Write one HTML file that says what limited these calls.
    Report(FleetReport),
}

/// `weir fleet analyze`
#[derive(ClapArgs)]
#[command(after_help = "\
FILES are dumps that `weir analyze` reads, folders of them, patterns, and archives (.tar, .tar.gz, \
.tgz, .zip). Each dump is analyzed once: the same command goes on after Ctrl-C, and takes what is \
new. A dump that cannot be read is a row with its error. Names, addresses and SSRCs do not reach \
the tables.

This needs Python 3.11 with the packages duckdb, numpy and pyarrow. `make install` brings the rest \
along.

Examples:
  weir fleet analyze dumps --out lake
  weir fleet analyze 'dumps/2026-11-*/*.gz' archive.tar.gz --out lake
  weir fleet analyze dumps --out lake --scheduler tcp://10.0.0.1:8786")]
pub struct FleetAnalyze {
    /// Dumps, folders, patterns and archives.
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Folder of the tables.
    #[arg(long, value_name = "LAKE")]
    pub out: PathBuf,
    /// Number of threads (default: one per core).
    #[arg(long, value_name = "N", conflicts_with = "scheduler")]
    pub workers: Option<NonZeroUsize>,
    /// Address of a Dask scheduler whose workers analyze (default: threads of this machine). They
    /// get the dumps through it.
    #[arg(long, value_name = "ADDRESS")]
    pub scheduler: Option<String>,
    /// Also writes a row for each second of each stream, of the dumps that are new to the lake.
    #[arg(long)]
    pub seconds: bool,
}

/// `weir fleet report`
#[derive(ClapArgs)]
#[command(after_help = "\
The metadata file has a column `file` (a dump's path, or the last part of it) or `call_id`, and \
any others.

Examples:
  weir fleet report lake -o fleet.html
  weir fleet report lake --calls calls -o fleet.html
  weir fleet report lake --metadata calls.csv --by country -o fleet.html
  weir fleet report lake --metadata calls.csv --by release --before 1.4 --after 1.5 --user user
  weir fleet report lake --what-if 40 --controllers gcc,scream-v2,sluice")]
pub struct FleetReport {
    /// Folder of the tables, as `weir fleet analyze` wrote it.
    #[arg(value_name = "LAKE")]
    pub lake: PathBuf,
    /// File for the report.
    #[arg(short, long, value_name = "FILE", default_value = "fleet.html")]
    pub output: PathBuf,
    /// What is known of the calls, with a heading.
    #[arg(long, value_name = "CSV")]
    pub metadata: Option<PathBuf>,
    /// Column by which the calls are split: of the metadata, or `browser`.
    #[arg(long, value_name = "COLUMN")]
    pub by: Option<String>,
    /// Value of that column whose calls are compared with those of --after.
    #[arg(long, value_name = "VALUE", requires_all = ["by", "after"])]
    pub before: Option<String>,
    /// Value of that column whose calls are compared with those of --before.
    #[arg(long, value_name = "VALUE", requires = "before")]
    pub after: Option<String>,
    /// Column of the metadata that names the user. Calls of one user are alike, and p values
    /// respect it. Without it, every call counts as a user of its own.
    #[arg(long, value_name = "COLUMN", requires = "metadata")]
    pub user: Option<String>,
    /// Column of the metadata with the time of each call, such as 2026-11-26 18:30: the report has
    /// a plot of limited time over it.
    #[arg(long, value_name = "COLUMN", requires = "metadata")]
    pub over: Option<String>,
    /// Simulate the networks of this many calls, drawn from those that the network or the
    /// controller limited, under other controllers. The dumps must still be there.
    #[arg(long, value_name = "CALLS")]
    pub what_if: Option<NonZeroUsize>,
    /// Controllers of --what-if, that of the calls first.
    #[arg(long, value_name = "LIST", requires = "what_if")]
    pub controllers: Option<String>,
    /// Write the reports of the worst and the typical calls into this folder, as `weir analyze -o`
    /// does, and link to them. The dumps must still be there. They have what the dumps have:
    /// addresses, too.
    #[arg(long, value_name = "FOLDER")]
    pub calls: Option<PathBuf>,
}
