//! Real runs for `weir call` and `weir check`: calls of browsers and pipelines, or an application.

use std::path::PathBuf;
use std::process::ExitCode;

use weir_record::summary::{self, Summary};

use crate::args::{Call, CallRole, Check, Output};
use crate::interrupt::Interrupt;
use crate::run::{self, Simulated};
use crate::{app, call, select};

/// Makes the runs of `weir call`, writes records and prints results.
pub fn call(args: &Call) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let runs = interrupt.or(runs(args, &interrupt))?;
    let summaries: Vec<Summary> = runs.into_iter().map(|run| run.summary).collect();
    run::print(&summaries, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the runs of `weir check`.
pub fn checked(args: &Check, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    let args = Call {
        selection: args.selection.clone(),
        iterations: None,
        serve: None,
        ims: None,
        stack: None,
        role: CallRole::Sender,
        driver: None,
        arena: PathBuf::new(),
        application: args.application.clone(),
        capture: false,
        interactive: false,
        quality: args.quality || judges_the_screen(args)?,
        picture_at: Vec::new(),
        live: None,
        quick: false,
        attempts: args.attempts,
        output: Output { out: args.out.clone(), json: false, markdown: false },
    };
    runs(&args, interrupt)
}

/// Whether a scenario expects something of what people see. The calls then measure their screens.
/// What this build cannot measure is an error now, and not after the calls.
fn judges_the_screen(args: &Check) -> anyhow::Result<bool> {
    let mut judges = false;
    for scenario in select::scenarios(&args.selection.scenarios)? {
        for expectation in &scenario.expectations {
            anyhow::ensure!(
                cfg!(feature = "vmaf") || !summary::needs_vmaf(&expectation.metric),
                "{} expects {}, which needs VMAF, and this program has none: build it with \
                 `cargo build --release -p weir-cli --features vmaf`",
                scenario.id,
                expectation.metric
            );
            judges |= summary::is_of_the_screen(&expectation.metric);
        }
    }
    Ok(judges)
}

/// Makes the runs of calls, or of an application.
pub fn runs(args: &Call, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    match args.application.app {
        Some(_) => app::runs(args, interrupt),
        None => call::runs(args, interrupt),
    }
}
