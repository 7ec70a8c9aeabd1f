//! The command `weir ims` without the rest of `weir`: quick to build, and what the tests start.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "weir-ims")]
struct Program {
    #[command(flatten)]
    args: weir_testbed::Args,
}

fn main() -> ExitCode {
    weir_testbed::run(&Program::parse().args).unwrap_or_else(|error| {
        eprintln!("weir-ims: {error:#}");
        ExitCode::from(2)
    })
}
