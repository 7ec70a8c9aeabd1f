//! Arguments of `weir arena`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use weir_record::subject::StackRole;

use super::ATTEMPTS;

/// `weir arena`
#[derive(ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
A stack is a WebRTC library with a driver, a folder below `arena` of Weir's sources. It sends the \
video of a call, under the control that it has, to Chromium, or receives Chromium's. The rates, \
delays and losses are those of the packets in the emulated network. `chromium` stands for Chromium \
at both ends, `firefox` for Firefox as the sender.

A run whose record is there is not made again, unless this machine disturbed it. So a matrix that \
was interrupted goes on.

With --junit or --driver the command is a gate: exit code 1 if an expectation of a scenario is \
missed or a call fails, 2 if this machine disturbed each run of a cell. What is red is printed \
with its cause. With several runs (--runs), an expectation that their mean misses is in doubt if \
the limit is within the 95 % confidence interval, and fails with --strict only. A new build of a \
stack needs a new folder for --out.

Examples:
  weir arena doctor
  weir arena --out arena-runs --page arena.html
  weir arena --stacks pion,wrtc,chromium --scenarios arena/steps,arena/outage --out arena-runs
  weir arena --runs 3 --no-calls --out arena-runs --page arena.html
  weir arena --role receiver --stacks pion,aiortc --out arena-receivers
  weir arena --stacks mine --driver './driver --fast' --junit arena.xml --out arena-runs
  weir arena --stacks mine --driver ./driver --runs 3 --strict --out arena-runs
  weir report arena-runs -o report.html"
)]
pub struct Arena {
    #[command(subcommand)]
    pub part: Option<ArenaPart>,
    /// What the stacks do in the calls.
    #[arg(long, value_enum, value_name = "ROLE", default_value_t = Role::Sender)]
    pub role: Role,
    /// Stacks, separated by commas (default: all that are installed, and chromium and firefox
    /// as senders, chromium as a receiver).
    #[arg(long, value_name = "LIST")]
    pub stacks: Option<String>,
    /// The driver of the one stack in --stacks: a program and its arguments with the shell's
    /// quotes, started in the present folder, in the place of a folder with a `stack.toml`.
    #[arg(long, value_name = "COMMAND", requires = "stacks")]
    pub driver: Option<String>,
    /// Scenarios, separated by commas: ids, patterns or TOML files (default: arena/*; with --role
    /// sfu the files of the folder `sfu` beside the stacks).
    #[arg(long, value_name = "LIST")]
    pub scenarios: Option<String>,
    /// Runs of each cell.
    #[arg(long, value_name = "N", default_value = "1")]
    pub runs: NonZeroUsize,
    /// Write a record of each run below this folder.
    #[arg(long, value_name = "DIR", required = true)]
    pub out: Option<PathBuf>,
    /// Make no calls: show the runs that are there.
    #[arg(long)]
    pub no_calls: bool,
    /// Measure what the receiver sees: the delay of each frame from the camera to the screen,
    /// stalls, and the picture beside the one that was sent. The camera's frames get a row of
    /// marks. Where a stack does not tell when its frames went in, the delay is not known.
    #[arg(long)]
    pub quality: bool,
    /// Make at most N attempts at a run that this machine disturbs. The last attempt is kept and
    /// marked as disturbed.
    #[arg(long, value_name = "N", default_value_t = ATTEMPTS)]
    pub attempts: NonZeroUsize,
    /// The folder of the stacks.
    #[arg(long, value_name = "DIR", default_value = "arena", global = true)]
    pub arena: PathBuf,
    /// Write the results as JUnit XML, with the cause of each failure.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the matrix as one page that needs no network: rows stacks, columns scenarios, and for
    /// each red cell its curve and its cause. The twins of the stacks have rows if their runs are
    /// below --out, too.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Count an expectation in doubt as missed.
    #[arg(long)]
    pub strict: bool,
    /// Print the table as Markdown.
    #[arg(long)]
    pub markdown: bool,
}

/// What the stacks do in the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// They send the video to Chromium.
    Sender,
    /// They receive the video of Chromium.
    Receiver,
    /// They forward the videos of browsers.
    Sfu,
}

#[cfg(calls)]
impl Role {
    /// Their role at one end of a call; `None` for those that forward.
    pub fn in_call(self) -> Option<CallRole> {
        match self {
            Self::Sender => Some(CallRole::Sender),
            Self::Receiver => Some(CallRole::Receiver),
            Self::Sfu => None,
        }
    }
}

/// What the stacks of `weir call --stack` do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CallRole {
    /// They send the video to a browser.
    Sender,
    /// They receive the video of a browser.
    Receiver,
}

impl From<CallRole> for StackRole {
    fn from(role: CallRole) -> Self {
        match role {
            CallRole::Sender => Self::Sender,
            CallRole::Receiver => Self::Receiver,
        }
    }
}

/// Parts of `weir arena`.
#[derive(Subcommand)]
pub enum ArenaPart {
    /// Say which stacks are installed, and how to install the others.
    Doctor,
}
