//! `weir call`: real browsers through the emulator, one call at a time.

use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use weir_call::{CallConfig, Progress, run_call};
use weir_lab::record::Record;
use weir_lab::run::{Engine, RunInfo};
use weir_lab::scenario::Scenario;
use weir_lab::summary::Summary;

use crate::args::Call;
use crate::interrupt::Interrupt;
use crate::{run, select};

/// The browser's congestion control goes by the browser's name.
const BROWSER: &str = "chromium";

/// Calls, records and prints.
pub fn call(args: &Call) -> anyhow::Result<ExitCode> {
    let scenarios = select::scenarios(&args.selection.scenarios)?;
    select::algorithms(&args.selection.controller)?;
    let seeds = select::seeds(&args.selection)?;
    let mut jobs = Vec::new();
    for scenario in &scenarios {
        // Before anything starts: a scenario that browsers cannot play stops the whole command.
        CallConfig::of(scenario, 0)?;
        for &seed in &seeds {
            let info = RunInfo {
                scenario: scenario.id.clone(),
                controller: BROWSER.into(),
                engine: Engine::Call,
                seed,
            };
            jobs.push((scenario, info));
        }
    }
    if let Some(out) = &args.output.out {
        run::refuse_existing(out, jobs.iter().map(|(_, info)| info))?;
    }
    let interrupt = Interrupt::listen()?;
    let mut summaries: Vec<Summary> = Vec::new();
    for (scenario, info) in jobs {
        let record = make(scenario, info, &interrupt)?;
        if let Some(out) = &args.output.out {
            record.write(out)?;
        }
        summaries.push(record.summary());
    }
    run::print(&summaries, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

fn make(scenario: &Scenario, info: RunInfo, interrupt: &Interrupt) -> anyhow::Result<Record> {
    let config = CallConfig::of(scenario, info.seed)?;
    let length = scenario.duration.as_secs_f64();
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} s")
        .expect("the template is valid");
    let bar = ProgressBar::new(length as u64).with_style(style);
    let mut progress = |progress: Progress| match progress {
        Progress::SettingUp => bar.set_message(format!("{}: browsers start", scenario.id)),
        Progress::Running(time) => {
            bar.set_message(format!("{}: call runs", scenario.id));
            bar.set_position(time.as_secs_f64() as u64);
        }
        Progress::Ending => bar.set_message(format!("{}: call ends", scenario.id)),
    };
    let outcome = run_call(&config, &interrupt.flag(), &mut progress);
    bar.finish_and_clear();
    interrupt.check()?;
    let record = weir_call::record(scenario, info, &outcome?);
    for warning in weir_call::warnings(&record) {
        eprintln!("weir: {warning}");
    }
    Ok(record)
}
