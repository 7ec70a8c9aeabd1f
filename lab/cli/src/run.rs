//! `weir run`: simulate scenarios, several at a time.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use weir::units::Timestamp;
use weir_net::Seed;
use weir_net::path::AccessConfig;
use weir_record::run::RunInfo;
use weir_record::shell::CommandLine;
use weir_record::summary::Summary;
use weir_record::whole_file;
use weir_record::{Record, airtime, blocks};
use weir_scenario::Scenario;

use crate::args::{Output, Run, Selection};
use crate::interrupt::{Interrupt, Interrupted};
use crate::layout::Form;
use crate::output;
use crate::select::{self, Job};
use crate::table;

/// Makes the runs and prints the results.
pub fn run(args: &Run) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    if let Some(file) = &args.airtime {
        write_airtime(&args.selection, file, &interrupt)?;
    }
    if let Some(folder) = &args.dump {
        write_dumps(&args.selection, folder, &interrupt)?;
        return Ok(ExitCode::SUCCESS);
    }
    anyhow::ensure!(
        args.selection.constants.is_empty() || args.output.out.is_none(),
        "--set makes no records, because a record does not name the constants: leave out --out"
    );
    let records = args.output.out.as_deref().map(|out| Records { out, resume: args.resume });
    let runs = match args.as_called {
        true => simulate_calls(&args.selection, &interrupt)?,
        false => simulate(&args.selection, records, &interrupt)?,
    };
    let summaries: Vec<Summary> = runs.into_iter().map(|run| run.summary).collect();
    print(&summaries, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Simulates the one selected run, and writes all frames or blocks on the air to a file.
fn write_airtime(selection: &Selection, file: &Path, interrupt: &Interrupt) -> anyhow::Result<()> {
    let scenarios = select::scenarios(&selection.scenarios)?;
    let controllers = select::controllers(selection)?;
    let jobs = select::jobs(&scenarios, &controllers, select::seeds(selection)?)?;
    let [job] = jobs.as_slice() else {
        let runs = jobs.len();
        anyhow::bail!(
            "--airtime takes one run, not {runs}: name one scenario, --controller and --seed"
        );
    };
    let mut config = job.scenario.sim_config(&job.controller);
    let access = config.access.as_mut();
    let access = access.with_context(|| format!("{} has no cell", job.scenario.id))?;
    let is_cellular = matches!(access.config, AccessConfig::Cellular(_));
    access.noted = Timestamp::ZERO..Timestamp::MAX;
    let seed = Seed::new(job.info.seed);
    let written = whole_file::write_with(file, |mut out| {
        if is_cellular {
            blocks::write_header(&mut out)?;
        } else {
            airtime::write_header(&mut out)?;
        }
        let is_whole = weir_sim::run_in_parts(&config, seed, &interrupt.flag(), |part| {
            if is_cellular {
                blocks::write(&mut out, &part.nodes, &part.access.cellular.blocks)
            } else {
                airtime::write(&mut out, &part.nodes, &part.access.wifi.frames)
            }
        })?;
        anyhow::ensure!(is_whole, Interrupted);
        Ok(())
    });
    written.map_err(|error| Interrupted::or_why(error, format!("cannot write {}", file.display())))
}

/// Writes an rtcstats dump of each selected run below the folder.
fn write_dumps(selection: &Selection, out: &Path, interrupt: &Interrupt) -> anyhow::Result<()> {
    let scenarios = select::scenarios(&selection.scenarios)?;
    let controllers = select::controllers(selection)?;
    let jobs = select::jobs(&scenarios, &controllers, select::seeds(selection)?)?;
    let threads = selection.jobs.map_or(0, |threads| threads.min(jobs.len()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| jobs.par_iter().try_for_each(|job| write_dump(job, out, interrupt)))?;
    output::line(&output::escaped(&format!("{} dumps in {}", jobs.len(), out.display())))
}

fn write_dump(job: &Job<'_>, out: &Path, interrupt: &Interrupt) -> anyhow::Result<()> {
    let Job { scenario, controller, info } = job;
    let dump = weir_record::stats_dump(scenario, controller, info.seed, &interrupt.flag());
    let dump = dump.ok_or(Interrupted)?;
    let file = out.join(info.folder()).with_extension("rtcstats");
    let folder = file.parent().expect("the file is below the folder");
    std::fs::create_dir_all(folder)
        .and_then(|()| whole_file::write(&file, dump.as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// Where the records of simulated runs go.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    /// The folder that contains them.
    pub out: &'a Path,
    /// Use records that exist already, instead of repeating their runs.
    pub resume: bool,
}

/// Result of one run.
pub struct Simulated {
    /// Its results.
    pub summary: Summary,
    /// Wall-clock time that it took, including its record.
    pub took: Duration,
}

/// Makes the selected runs, and their records if a folder is given. The results are in the
/// selection's order, whatever the number of jobs.
pub fn simulate(
    selection: &Selection,
    records: Option<Records<'_>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Simulated>> {
    simulate_scenarios(selection, &select::scenarios(&selection.scenarios)?, records, interrupt)
}

/// The same with these scenarios.
pub fn simulate_scenarios(
    selection: &Selection,
    scenarios: &[Scenario],
    records: Option<Records<'_>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Simulated>> {
    select::note_participants(scenarios);
    select::note_nats(scenarios);
    let controllers = select::controllers(selection)?;
    let jobs = select::jobs(scenarios, &controllers, select::seeds(selection)?)?;
    simulate_jobs(selection, &jobs, records, interrupt)
}

/// Makes the runs that calls of the selected scenarios would be, without records.
fn simulate_calls(selection: &Selection, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    let called = select::called(selection)?;
    let seeds = select::seeds(selection)?;
    select::refuse_too_many(called.len(), &seeds)?;
    let mut jobs = Vec::new();
    for (scenario, controller) in &called {
        let one = std::slice::from_ref(scenario);
        jobs.extend(select::jobs(one, std::slice::from_ref(controller), seeds.clone())?);
    }
    simulate_jobs(selection, &jobs, None, interrupt)
}

fn simulate_jobs(
    selection: &Selection,
    jobs: &[Job<'_>],
    records: Option<Records<'_>>,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Simulated>> {
    let mut finished = match records {
        Some(records) => finished(records, jobs)?,
        None => Vec::new(),
    };
    finished.resize(jobs.len(), None);
    let kept = finished.iter().flatten().count();
    if kept > 0 {
        eprintln!("weir: {kept} of {} runs already have a record", jobs.len());
    }
    let pool = select::threads(selection.jobs, jobs.len())?;
    let bar = progress(jobs.len() - kept);
    let out = records.map(|records| records.out);
    let runs = jobs.par_iter().zip(finished).map(|(job, finished)| {
        if let Some(summary) = finished {
            return Ok(Simulated { summary, took: Duration::ZERO });
        }
        interrupt.check()?;
        let start = Instant::now();
        let summary = make(job, out, interrupt)?;
        bar.inc(1);
        Ok(Simulated { summary, took: start.elapsed() })
    });
    let runs = pool.install(|| runs.collect());
    bar.finish_and_clear();
    runs
}

/// Reads, before anything runs, the summary of each job whose record exists already. Without
/// `--resume` an existing record is an error. Also removes what killed runs left unfinished.
fn finished(records: Records<'_>, jobs: &[Job<'_>]) -> anyhow::Result<Vec<Option<Summary>>> {
    weir_record::clean(records.out);
    let mut finished = Vec::new();
    for job in jobs {
        let folder = records.out.join(job.info.folder());
        anyhow::ensure!(
            records.resume || !folder.exists(),
            "{} exists already: add --resume to make only the missing runs, choose another --out, \
             or remove it",
            folder.display()
        );
        finished.push(Record::finished(records.out, &job.info, job.scenario)?);
    }
    Ok(finished)
}

/// Simulates one run, unless the program is asked to stop.
fn make(job: &Job<'_>, out: Option<&Path>, interrupt: &Interrupt) -> anyhow::Result<Summary> {
    let Job { scenario, controller, info } = job;
    let summary = weir_record::simulate(scenario, controller, info.seed, out, &interrupt.flag())?;
    Ok(summary.ok_or(Interrupted)?)
}

/// Checks, before anything runs, that none of the records exists. Also removes what killed runs
/// left unfinished.
#[cfg_attr(not(calls), allow(dead_code))]
pub fn refuse_existing<'a>(
    out: &Path,
    runs: impl Iterator<Item = &'a RunInfo>,
) -> anyhow::Result<()> {
    weir_record::clean(out);
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
    // The bar is drawn on stderr, and only if that is a terminal.
    ProgressBar::new(length as u64).with_style(style)
}

/// Prints results as JSON or as a table.
pub fn print(summaries: &[Summary], output: &Output) -> anyhow::Result<()> {
    if output.json {
        output::json(&serde_json::to_string_pretty(summaries)?)?;
    } else {
        output::print(&table::results(summaries).written(Form::of(output.markdown)))?;
        if let Some(out) = output.out.as_ref().filter(|_| !output.markdown) {
            let out = out.display().to_string();
            let report = CommandLine::new("weir report").name(&out);
            let out = output::escaped(&out);
            output::line(&format!("\nrecords in {out}; make a report with `{report}`"))?;
        }
    }
    Ok(())
}
