//! `weir`: simulates scenarios, makes real calls over them, and compares the results.

#[cfg(feature = "analyze")]
mod analyze;
#[cfg(all(calls, feature = "analyze"))]
mod app;
#[cfg(calls)]
mod arena;
mod args;
mod bench;
#[cfg(calls)]
mod call;
#[cfg(calls)]
mod captures;
mod check;
#[cfg(all(calls, feature = "analyze"))]
mod collect;
mod compare;
mod completions;
#[cfg(calls)]
mod console;
mod fleet;
mod generate;
#[cfg(ims)]
mod ims;
mod interrupt;
mod junit;
mod layout;
#[cfg(calls)]
mod link;
mod list;
mod man;
mod next;
mod output;
#[cfg(feature = "analyze")]
mod pipe;
#[cfg(calls)]
mod real;
mod report;
mod run;
mod score;
mod select;
#[cfg(calls)]
mod serve;
mod sim_real;
mod sources;
#[cfg(feature = "analyze")]
mod streams;
mod sweep;
mod table;
mod trace;
#[cfg(not(all(ims, feature = "analyze")))]
mod unavailable;
mod validate;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
#[cfg(not(feature = "analyze"))]
use unavailable::analyze;
#[cfg(all(calls, not(feature = "analyze")))]
use unavailable::app;
#[cfg(not(all(calls, feature = "analyze")))]
use unavailable::collect;
#[cfg(all(calls, not(ims)))]
use unavailable::ims;
#[cfg(not(ims))]
use unavailable::weir_testbed;
#[cfg(not(calls))]
use unavailable::{arena, link, real, serve};

/// Exit code for bad input, or for something that the machine lacks.
const COULD_NOT_RUN: u8 = 2;
/// Exit code after Ctrl-C, as in shells: 128 plus the number of the signal.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => return report_usage_error(&error),
    };
    #[cfg(calls)]
    if args.command.needs_network_rights() {
        // Must happen before the first thread starts.
        weir_emu::gain_rights();
    }
    let command = args.command;
    let result = match &command {
        args::Command::List(args) => list::list(args),
        args::Command::Run(args) => run::run(args),
        args::Command::Call(args) => real::call(args),
        args::Command::Link(args) => link::link(args),
        args::Command::Arena(args) => arena::arena(args),
        args::Command::Serve(args) => serve::serve(args),
        args::Command::Analyze(args) => analyze::analyze(args),
        args::Command::Collect(args) => collect::collect(args),
        args::Command::Report(args) => report::report(args),
        args::Command::Compare(args) => compare::compare(args),
        args::Command::Check(args) => check::check(args),
        args::Command::Sweep(args) => sweep::sweep(args),
        args::Command::Fleet(args) => fleet::fleet(args),
        args::Command::Trace(args) => trace::run(args),
        args::Command::Ims(args) => weir_testbed::run(args),
        args::Command::Research(args) => research(args),
        args::Command::Completions(args) => completions::completions(args),
        args::Command::Man(args) => man::man(args),
    };
    if matches!(&result, Ok(code) if *code == ExitCode::SUCCESS) {
        next::tell(&command);
    }
    result.unwrap_or_else(|error| {
        eprintln!("weir: {}", output::escaped(&format!("{error:#}")));
        let interrupted = error.is::<interrupt::Interrupted>();
        ExitCode::from(if interrupted { INTERRUPTED } else { COULD_NOT_RUN })
    })
}

/// Runs a command of `weir research`.
fn research(args: &args::Research) -> anyhow::Result<ExitCode> {
    match args {
        args::Research::Generate(args) => generate::run(args),
        args::Research::Score(args) => score::run(args),
        args::Research::Ablate(args) => score::ablate::run(args),
        args::Research::Bench(args) => bench::bench(args),
        args::Research::Validate(args) => validate::validate(args),
    }
}

/// Prints the help that was asked for, or the error in the command line, in one line like every
/// other error.
fn report_usage_error(error: &clap::Error) -> ExitCode {
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_help || !error.use_stderr() {
        error.exit();
    }
    let mut line = one_line(&error.to_string());
    if let Some(name) = of_research(error) {
        line = format!("unrecognized subcommand '{name}'; it is `weir research {name}`");
    }
    eprintln!("weir: {}", output::escaped(&line));
    ExitCode::from(COULD_NOT_RUN)
}

/// The word of the command line that is no command, if `weir research` has a command of this name.
fn of_research(error: &clap::Error) -> Option<&str> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let command = args::Args::command();
    let research = command.find_subcommand("research")?;
    research.find_subcommand(name).map(|_| name.as_str())
}

/// Clap's paragraphs in one line. The last one, which points to `--help`, is replaced by a short
/// hint.
fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let mut kept = Vec::new();
    for paragraph in text.split("\n\n") {
        // A command may have several forms.
        let paragraph = paragraph.replace("\n       weir ", " or weir ");
        let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() && !line.starts_with("For more") {
            kept.push(line);
        }
    }
    format!("{}; see --help", kept.join("; "))
}
