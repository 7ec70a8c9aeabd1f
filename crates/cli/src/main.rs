//! `weir`: simulate a scenario, call it for real, and lay the results side by side.

mod accuracy;
mod args;
mod bench;
mod call;
mod captures;
mod check;
mod compare;
mod console;
mod interrupt;
mod link;
mod list;
mod output;
mod report;
mod run;
mod select;
mod sim_real;
mod table;
mod validate;

use std::process::ExitCode;

use clap::Parser;

/// Bad input, or something that the machine lacks: nothing was run, or nothing could be.
const COULD_NOT_RUN: u8 = 2;
/// Ctrl-C, as shells say it: 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let args = args::Args::parse();
    if args.command.needs_network_rights() {
        // Before the first thread.
        weir_emu::gain_rights();
    }
    let result = match args.command {
        args::Command::List(args) => list::list(&args),
        args::Command::Run(args) => run::run(&args),
        args::Command::Call(args) => call::call(&args),
        args::Command::Link(args) => link::link(&args),
        args::Command::Report(args) => report::report(&args),
        args::Command::Compare(args) => compare::compare(&args),
        args::Command::Check(args) => check::check(&args),
        args::Command::Bench(args) => bench::bench(&args),
        args::Command::Validate(args) => validate::validate(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("weir: {error:#}");
        let interrupted = error.is::<interrupt::Interrupted>();
        ExitCode::from(if interrupted { INTERRUPTED } else { COULD_NOT_RUN })
    })
}
