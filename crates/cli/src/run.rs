//! `weir run`: simulate scenarios, several at a time.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use weir::units::Timestamp;
use weir_lab::record::{self, Writer, airtime};
use weir_lab::run::RunInfo;
use weir_lab::summary::{Measurer, Summary};
use weir_lab::whole_file;
use weir_net::Seed;
use weir_sim::Trace;

use crate::args::{Output, Run, Selection};
use crate::interrupt::{Interrupt, Interrupted};
use crate::output;
use crate::select::{self, Job};
use crate::table;

/// Runs and prints.
pub fn run(args: &Run) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    if let Some(file) = &args.airtime {
        write_airtime(&args.selection, file, &interrupt)?;
    }
    let summaries = simulate(&args.selection, args.output.out.as_deref(), &interrupt)?;
    print(&summaries, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates the one selected run with all frames on the air written down.
fn write_airtime(selection: &Selection, file: &Path, interrupt: &Interrupt) -> anyhow::Result<()> {
    let scenarios = select::scenarios(&selection.scenarios)?;
    let algorithms = select::algorithms(&selection.controller)?;
    let jobs = select::jobs(&scenarios, &algorithms, select::seeds(selection)?)?;
    let [job] = jobs.as_slice() else {
        let runs = jobs.len();
        anyhow::bail!(
            "--airtime takes one run, not {runs}: name one scenario, --controller and --seed"
        );
    };
    anyhow::ensure!(job.scenario.cell.is_some(), "{} has no Wi-Fi cell", job.scenario.id);
    let mut config = job.scenario.sim_config(job.algorithm);
    config.airtime = Timestamp::ZERO..Timestamp::MAX;
    let seed = Seed::new(job.info.seed);
    let emit = |out: &mut dyn Write| -> anyhow::Result<()> {
        let mut out = out;
        airtime::write_header(&mut out)?;
        let take = |part: &mut Trace| airtime::write(&mut out, &part.nodes, &part.frames);
        let is_whole = weir_sim::run_in_parts(&config, seed, &interrupt.flag(), take)?;
        anyhow::ensure!(is_whole, Interrupted);
        Ok(())
    };
    whole_file::write_with(file, emit).map_err(|error| match error.is::<Interrupted>() {
        true => error,
        false => error.context(format!("cannot write {}", file.display())),
    })
}

/// Makes the selected runs, and their records where a folder for them is given. The results come in
/// the selection's order, whatever the number of jobs.
pub fn simulate(
    selection: &Selection,
    out: Option<&Path>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Summary>> {
    let scenarios = select::scenarios(&selection.scenarios)?;
    let algorithms = select::algorithms(&selection.controller)?;
    let jobs = select::jobs(&scenarios, &algorithms, select::seeds(selection)?)?;
    if let Some(out) = out {
        refuse_existing(out, jobs.iter().map(|job| &job.info))?;
    }
    anyhow::ensure!(selection.jobs != Some(0), "--jobs 0 runs nothing: write a number from 1 on");
    // More threads than runs would have nothing to do; 0 is one a core.
    let threads = selection.jobs.map_or(0, |threads| threads.min(jobs.len()));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .context("cannot start the worker threads")?;
    let bar = progress(jobs.len());
    let one = |job: &Job<'_>| {
        interrupt.check()?;
        let summary = make(job, out, interrupt)?;
        bar.inc(1);
        Ok(summary)
    };
    let summaries = pool.install(|| jobs.par_iter().map(one).collect());
    bar.finish_and_clear();
    summaries
}

/// Simulates one run, unless the program is asked to stop. What it leaves is measured and written as it
/// comes, so that a run of any length takes little memory.
fn make(job: &Job<'_>, out: Option<&Path>, interrupt: &Interrupt) -> anyhow::Result<Summary> {
    let Job { scenario, info, algorithm } = job;
    let config = scenario.sim_config(*algorithm);
    let names: Vec<String> = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    let mut measurer = Measurer::new(scenario, info, &names);
    let mut writer = out.map(|out| Writer::create(out, info, scenario)).transpose()?;
    let take = |part: &mut Trace| {
        measurer.add(part);
        writer.as_mut().map_or(Ok(()), |writer| writer.add(part))
    };
    let seed = Seed::new(info.seed);
    let is_whole = weir_sim::run_in_parts(&config, seed, &interrupt.flag(), take)?;
    anyhow::ensure!(is_whole, Interrupted);
    let summary = measurer.finish(None);
    if let Some(writer) = writer {
        writer.finish(&summary, None)?;
    }
    Ok(summary)
}

/// Before anything runs: none of the records may be there already. What killed runs left half-made is
/// removed.
pub fn refuse_existing<'a>(
    out: &Path,
    runs: impl Iterator<Item = &'a RunInfo>,
) -> anyhow::Result<()> {
    record::clean(out);
    for info in runs {
        let folder = out.join(info.folder());
        anyhow::ensure!(
            !folder.exists(),
            "{} exists already: choose another --out, or remove it",
            folder.display()
        );
    }
    Ok(())
}

fn progress(length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left")
        .expect("the template is valid");
    // Drawn on stderr, and only where that is a terminal.
    ProgressBar::new(length as u64).with_style(style)
}

/// Prints results as JSON or as a table.
pub fn print(summaries: &[Summary], output: &Output) -> anyhow::Result<()> {
    if output.json {
        output::json(&serde_json::to_string_pretty(summaries)?)?;
    } else {
        output::print(&table::results(summaries))?;
        if let Some(out) = &output.out {
            let out = output::escaped(&out.display().to_string());
            output::line(&format!("\nrecords in {out}; `weir report {out}` draws them"))?;
        }
    }
    Ok(())
}
