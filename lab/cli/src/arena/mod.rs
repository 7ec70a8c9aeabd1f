//! `weir arena`: WebRTC stacks of others under the same scenarios, as one matrix.

mod competitor;
mod doctor;
mod downlink;
mod fairness;
mod matrix;
mod page;
mod returned;
mod sfu;
mod verdict;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser as _;
use indicatif::{ProgressBar, ProgressStyle};
use weir_net::path::Direction;
use weir_record::Record;
use weir_record::calls::Exclusion;
use weir_record::run::{Engine, RunInfo};
use weir_record::shell::CommandLine;
use weir_record::subject::StackRole;
use weir_record::summary::Summary;
use weir_record::whole_file;
use weir_scenario::{Flow, Scenario};

use crate::args::{Arena, ArenaPart, Args, Call, Command, Role};
use crate::interrupt::Interrupt;
use crate::layout::Form;
use crate::{COULD_NOT_RUN, call, junit, output, real, select};

use competitor::{CHROMIUM, Competitor, FIREFOX};
use returned::Return;
use verdict::Verdict;

/// The folder of the stacks, unless another is named.
const ARENA: &str = "arena";
/// The scenarios for senders.
const SCENARIOS: &str = "arena/*";

/// The runs of a stack under a scenario.
struct Cell<'a> {
    scenario: &'a Scenario,
    competitor: &'a Competitor,
    runs: Vec<Run>,
    /// What made the runs, with versions.
    programs: Option<String>,
    /// What the command that repeats a run has beside the run.
    options: &'a str,
}

/// A run whose record is there.
struct Run {
    seed: u64,
    folder: PathBuf,
    summary: Summary,
    /// How it came back after the last rise of the link.
    returned: Return,
    /// What it got beside the flows that share its link, as a multiple of an equal part.
    fair_part: Option<f64>,
    /// Zero if the record was there before.
    took: Duration,
}

impl Cell<'_> {
    fn info(&self, seed: u64) -> RunInfo {
        let (scenario, subject) = (self.scenario.id.clone(), self.competitor.subject());
        RunInfo { scenario, subject, engine: Engine::Call, seed }
    }

    fn summaries(&self) -> Vec<Summary> {
        self.runs.iter().map(|run| run.summary.clone()).collect()
    }

    /// The command that repeats the run with this index.
    fn replay(&self, run: usize) -> String {
        let seed = self.runs.get(run).map_or(1, |run| run.seed);
        self.info(seed).command() + self.options
    }
}

/// Makes the runs that are not there yet, and prints the matrix. With `--junit` or `--driver` it is
/// a gate, whose exit code says whether all expectations hold.
pub fn arena(args: &Arena) -> anyhow::Result<ExitCode> {
    if let Some(ArenaPart::Doctor) = args.part {
        return doctor::doctor(&args.arena);
    }
    let out = args.out.as_deref().context("name a folder for the records with --out")?;
    let competitors = competitor::competitors(args)?;
    let wanted = wanted(args)?;
    let scenarios = select::scenarios(&wanted)?;
    let options = options(args);
    let mut cells = Vec::new();
    for competitor in &competitors {
        for scenario in &scenarios {
            cells.push(Cell {
                scenario,
                competitor,
                runs: Vec::new(),
                programs: None,
                options: &options,
            });
        }
    }
    anyhow::ensure!(!cells.is_empty(), "no stack of this role is installed: `make arena-deps`");
    refuse_what_cannot_be(args, out, &cells)?;
    make_runs(args, out, &mut cells)?;
    let mut verdicts = Vec::new();
    for cell in &cells {
        verdicts.push(Verdict::of(cell, args.strict)?);
    }
    let (table, legend) = match args.role {
        Role::Sender | Role::Receiver => (matrix::matrix(&cells, &verdicts), matrix::LEGEND),
        Role::Sfu => (sfu::matrix(&cells, &verdicts), sfu::LEGEND),
    };
    output::print(&table.written(Form::of(args.markdown)))?;
    output::line(&format!("\n{legend}\n"))?;
    let code = told(args, out, &cells, &verdicts)?;
    let out = out.display().to_string();
    for line in twins(&wanted, &competitors, &out) {
        output::line(&output::escaped(&line))?;
    }
    let report = CommandLine::new("weir report").name(&out).path("-o", "report.html");
    output::line(&report.to_string())?;
    Ok(code)
}

/// Says what is red and why, and writes the page and the JUnit file.
fn told(
    args: &Arena,
    out: &Path,
    cells: &[Cell<'_>],
    verdicts: &[Verdict],
) -> anyhow::Result<ExitCode> {
    let (mut red, mut disturbed, mut missing, mut suites) = (0, 0, 0, Vec::new());
    for (cell, verdict) in cells.iter().zip(verdicts) {
        red += usize::from(verdict.is_red());
        disturbed += usize::from(matches!(verdict, Verdict::Disturbed));
        missing += usize::from(matches!(verdict, Verdict::NotMade));
        suites.extend(verdict.suite(cell, args.strict));
        for line in verdict.lines(cell) {
            output::line(&line)?;
        }
    }
    if let Some(path) = &args.page {
        let page = page::page(cells, verdicts, out)?;
        whole_file::write(path, page.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let made = cells.len() - missing;
    output::line(&format!("{red} of {made} cells red, {}\n", unjudged(disturbed, missing)))?;
    if let Some(path) = &args.junit {
        let time = cells.iter().flat_map(|cell| &cell.runs).map(|run| run.took).sum();
        let text = junit::text("weir arena", suites, time)?;
        whole_file::write(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    // What was not made is no pass.
    Ok(match (is_gate(args), red, disturbed + missing) {
        (false, ..) | (true, 0, 0) => ExitCode::SUCCESS,
        (true, 0, _) => ExitCode::from(COULD_NOT_RUN),
        (true, ..) => ExitCode::FAILURE,
    })
}

/// How many cells say nothing, in words.
fn unjudged(disturbed: usize, missing: usize) -> String {
    match missing {
        0 => format!("{disturbed} not judged"),
        _ => format!("{disturbed} not judged, {missing} without a run"),
    }
}

/// The options of a command that repeats a run, behind a space each.
fn options(args: &Arena) -> String {
    let mut options = CommandLine::new("");
    if args.quality {
        options = options.flag("--quality");
    }
    let names_stacks = args.driver.is_none() && args.role != Role::Sfu;
    if names_stacks && args.arena != Path::new(ARENA) {
        options = options.path("--arena", &args.arena.display().to_string());
    }
    options.to_string()
}

fn is_gate(args: &Arena) -> bool {
    args.junit.is_some() || args.driver.is_some()
}

fn is_video_up(flow: &Flow) -> bool {
    flow.traffic.media().is_some() && flow.direction == Direction::Up
}

/// An error, before anything starts, if a run that is missing cannot be made, or if a gate has
/// nothing to judge by.
fn refuse_what_cannot_be(args: &Arena, out: &Path, cells: &[Cell<'_>]) -> anyhow::Result<()> {
    for cell in cells {
        let id = &cell.scenario.id;
        anyhow::ensure!(
            !is_gate(args) || !cell.scenario.expectations.is_empty(),
            "{id} expects nothing, so a gate would always pass: add [[expect]] to it"
        );
        let info = cell.info(args.runs.get() as u64);
        let is_server = matches!(cell.competitor, Competitor::Server(..));
        let first = cell.scenario.flows.first();
        anyhow::ensure!(
            is_server || first.is_some_and(is_video_up),
            "{id}: the arena compares the first flow of a scenario, and that is no video from A to \
             B: put one first"
        );
        if !is_server && !args.no_calls && !out.join(info.folder()).exists() {
            let call = one_call(args, out, cell.competitor, &info)?;
            call::refuse_unplayable(&call)
                .with_context(|| format!("{} in {id}", cell.competitor.name()))?;
        }
    }
    Ok(())
}

/// The scenarios that were asked for.
fn wanted(args: &Arena) -> anyhow::Result<Vec<String>> {
    match (&args.scenarios, args.role) {
        (Some(list), _) => Ok(list.split(',').map(|id| id.trim().into()).collect()),
        (None, Role::Sender | Role::Receiver) => Ok(vec![SCENARIOS.into()]),
        (None, Role::Sfu) => sfu::scenarios(&args.arena),
    }
}

/// The commands that simulate the twins of the stacks.
fn twins(scenarios: &[String], competitors: &[Competitor], out: &str) -> Vec<String> {
    let mut twins: Vec<(&str, Vec<&str>)> = Vec::new();
    for competitor in competitors {
        let Some(twin) = competitor.twin() else { continue };
        match twins.iter_mut().find(|(name, _)| *name == twin) {
            Some((_, stacks)) => stacks.push(competitor.name()),
            None => twins.push((twin, vec![competitor.name()])),
        }
    }
    let mut lines = Vec::new();
    for (twin, stacks) in twins {
        let mut run = CommandLine::new("weir run");
        for scenario in scenarios {
            run = run.name(scenario);
        }
        let run = run.option("--controller", twin).path("--out", out);
        lines.push(format!("{run}   # twin of {}", stacks.join(", ")));
    }
    lines
}

/// Makes the runs of all cells that are not there yet: first each once, then each again.
fn make_runs(args: &Arena, out: &Path, cells: &mut [Cell<'_>]) -> anyhow::Result<()> {
    let interrupt = Interrupt::listen()?;
    let bar = ProgressBar::new((cells.len() * args.runs.get()) as u64);
    bar.set_style(ProgressStyle::with_template("arena {wide_bar} {pos}/{len}, {eta} left")?);
    // A matrix that is interrupted early has all stacks of its first scenarios.
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|&index| &cells[index].scenario.id);
    for seed in 1..=args.runs.get() as u64 {
        for &index in &order {
            add_run(args, out, &mut cells[index], seed, &interrupt)?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// Adds the run with this seed to a cell; makes it if it is not there.
fn add_run(
    args: &Arena,
    out: &Path,
    cell: &mut Cell<'_>,
    seed: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let info = cell.info(seed);
    let folder = out.join(info.folder());
    let begun = Instant::now();
    let finished = Record::finished(out, &info, cell.scenario)?;
    let is_new = finished.as_ref().is_none_or(is_disturbed) && !args.no_calls;
    if finished.is_none() && args.no_calls {
        return Ok(());
    }
    if is_new {
        if finished.is_some() {
            fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        let call = one_call(args, out, cell.competitor, &info)?;
        interrupt.or(real::runs(&call, interrupt))?;
    }
    let took = if is_new { begun.elapsed() } else { Duration::ZERO };
    let record = Record::read(&folder)?;
    let summary = record.summary();
    // A run that does not count may lack what the others have.
    if summary.exclusion().is_none() {
        if !is_new && *cell.competitor != Competitor::Firefox {
            refuse_other_quality(args, &record).with_context(|| folder.display().to_string())?;
        }
        let programs = programs(&record);
        let first = cell.programs.get_or_insert_with(|| programs.clone());
        anyhow::ensure!(
            *first == programs,
            "{} is a run of {programs}, and the first run is one of {first}: choose another \
             --out, or remove it",
            folder.display()
        );
    }
    let rows = &record.trace.rows;
    let returned = Return::of(rows);
    let fair_part = fairness::part(&record.scenario.flows, rows);
    cell.runs.push(Run { seed, folder, summary, returned, fair_part, took });
    Ok(())
}

/// Whether this machine disturbed a run.
fn is_disturbed(summary: &Summary) -> bool {
    summary.exclusion() == Some(Exclusion::Disturbed)
}

/// The programs at the ends of the calls, with versions.
fn programs(record: &Record) -> String {
    let participants = record.call.iter().flat_map(|file| &file.participants);
    let mut programs: Vec<&str> = participants.map(|one| one.program.as_str()).collect();
    programs.dedup();
    programs.join(", ")
}

/// An error if a run says what its receiver saw and others of this matrix do not, or the other way
/// round.
fn refuse_other_quality(args: &Arena, record: &Record) -> anyhow::Result<()> {
    let is_seen = record.call.as_ref().is_some_and(|call| !call.quality().is_empty());
    anyhow::ensure!(
        is_seen || !args.quality,
        "it was made without --quality: choose another --out, or leave the option out"
    );
    anyhow::ensure!(
        !is_seen || args.quality,
        "it was made with --quality: choose another --out, or add the option"
    );
    Ok(())
}

/// The arguments of `weir call` for one run.
fn one_call(
    args: &Arena,
    out: &Path,
    competitor: &Competitor,
    info: &RunInfo,
) -> anyhow::Result<Call> {
    let mut words: Vec<OsString> = ["weir", "call", &info.scenario].map(OsString::from).to_vec();
    words.extend(["--seed", &info.seed.to_string()].map(OsString::from));
    words.extend(["--attempts", &args.attempts.to_string()].map(OsString::from));
    words.extend(["--out".into(), out.into()]);
    if args.quality {
        words.push("--quality".into());
    }
    match (competitor, &args.driver) {
        (Competitor::Firefox, _) => words.extend(["--controller", FIREFOX].map(OsString::from)),
        (Competitor::Chromium, _) => words.extend(["--controller", CHROMIUM].map(OsString::from)),
        (Competitor::Server(stack, _), _) => words.extend(sfu::words(stack)),
        (Competitor::Stack(stack, role), driver) => {
            words.extend(["--stack", &stack.name].map(OsString::from));
            words.extend(["--role", StackRole::from(*role).name()].map(OsString::from));
            match driver {
                Some(command) => words.extend(["--driver", command].map(OsString::from)),
                None => words.extend(["--arena".into(), args.arena.clone().into()]),
            }
        }
    }
    parsed(words)
}

/// The options of `weir call` that these words are.
fn parsed(words: Vec<OsString>) -> anyhow::Result<Call> {
    match Args::try_parse_from(words)?.command {
        Command::Call(call) => Ok(call),
        _ => anyhow::bail!("the words are those of a call"),
    }
}
