//! Real runs for `weir call` and `weir check`: calls of browsers and pipelines, or an application.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_lab::summary::Summary;

use crate::args::{ATTEMPTS, Call, Check, Output};
use crate::interrupt::Interrupt;
use crate::run::{self, Simulated};
use crate::{app, call};

/// Makes the runs of `weir call`, writes records and prints results.
pub fn call(args: &Call) -> anyhow::Result<ExitCode> {
    let runs = runs(args, &Interrupt::listen()?)?;
    let summaries: Vec<Summary> = runs.into_iter().map(|run| run.summary).collect();
    run::print(&summaries, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the runs of `weir check`, with as many attempts at a disturbed one as `weir call` makes.
pub fn checked(args: &Check, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    let args = Call {
        selection: args.selection.clone(),
        iterations: None,
        serve: None,
        ims: None,
        stack: None,
        driver: None,
        arena: PathBuf::new(),
        application: args.application.clone(),
        capture: false,
        interactive: false,
        quality: false,
        live: None,
        quick: false,
        attempts: ATTEMPTS,
        output: Output { out: args.out.clone(), json: false, markdown: false },
    };
    runs(&args, interrupt)
}

/// Makes the runs of calls, or of an application.
pub fn runs(args: &Call, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    match args.application.app {
        Some(_) => app::runs(args, interrupt),
        None => call::runs(args, interrupt),
    }
}
