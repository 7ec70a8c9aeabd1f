//! `weir arena`: WebRTC stacks of others under the same scenarios, as one matrix.

mod doctor;
mod fairness;
mod matrix;
mod page;
mod returned;
mod sfu;
mod verdict;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Parser as _;
use indicatif::{ProgressBar, ProgressStyle};
use weir_call::stack::{Origin, Stack, StackError};
use weir_lab::record::Record;
use weir_lab::run::{Engine, RunInfo};
use weir_lab::scenario::Scenario;
use weir_lab::scenario::call::BrowserKind;
use weir_lab::subject::{StackRole, Subject};
use weir_lab::summary::Summary;
use weir_lab::whole_file;

use crate::args::{Arena, ArenaPart, Args, Call, CallRole, Command, Role};
use crate::interrupt::Interrupt;
use crate::layout::Form;
use crate::link::quoted;
use crate::{COULD_NOT_RUN, call, junit, output, real, select};

use returned::Return;
use verdict::Verdict;

/// Chromium as the sender.
const CHROMIUM: &str = "chromium";
/// Firefox as the sender.
const FIREFOX: &str = "firefox";
/// The scenarios for senders.
const SCENARIOS: &str = "arena/*";

/// A row of the matrix.
#[derive(Clone, Debug, PartialEq)]
enum Competitor {
    /// Chromium at both ends.
    Chromium,
    /// Firefox, which sends to Chromium.
    Firefox,
    /// A stack at one end.
    Stack(Stack, CallRole),
    /// A forwarding server.
    Server(Stack, Subject),
}

impl Competitor {
    fn name(&self) -> &str {
        match self {
            Self::Chromium => CHROMIUM,
            Self::Firefox => FIREFOX,
            Self::Stack(stack, _) | Self::Server(stack, _) => &stack.name,
        }
    }

    fn subject(&self) -> Subject {
        match self {
            Self::Chromium => Subject::browser(CHROMIUM),
            Self::Firefox => Subject::browser(FIREFOX),
            Self::Stack(stack, role) => Subject::Stack {
                name: stack.name.clone(),
                driver: stack.named_command().map(quoted),
                role: (*role).into(),
            },
            Self::Server(_, subject) => subject.clone(),
        }
    }

    fn role(&self) -> &'static str {
        match self {
            Self::Chromium | Self::Firefox => "browser",
            Self::Stack(_, role) => StackRole::from(*role).name(),
            Self::Server(..) => "server",
        }
    }

    /// Our controller whose simulation should behave alike.
    fn twin(&self) -> Option<&str> {
        match self {
            // Chromium sends to a stack that receives.
            Self::Chromium | Self::Firefox | Self::Stack(_, CallRole::Receiver) => Some("gcc"),
            Self::Server(..) => None,
            Self::Stack(stack, CallRole::Sender) => match &stack.origin {
                Origin::Folder(manifest) => manifest.twin.as_deref(),
                Origin::Command(_) => None,
            },
        }
    }
}

/// The runs of a stack under a scenario.
struct Cell<'a> {
    scenario: &'a Scenario,
    competitor: &'a Competitor,
    runs: Vec<Run>,
    /// What made the runs, with versions.
    programs: Option<String>,
}

/// A run whose record is there.
struct Run {
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
        self.info(1 + run as u64).command()
    }
}

/// Makes the runs that are not there yet, and prints the matrix. With `--junit` or `--driver` it is
/// a gate, whose exit code says whether all expectations hold.
pub fn arena(args: &Arena) -> anyhow::Result<ExitCode> {
    if let Some(ArenaPart::Doctor) = args.part {
        return doctor::doctor(&args.arena);
    }
    let out = args.out.as_deref().context("name a folder for the records with --out")?;
    let competitors = competitors(args)?;
    let wanted = wanted(args)?;
    let scenarios = select::scenarios(&wanted)?;
    let mut cells = Vec::new();
    for competitor in &competitors {
        for scenario in &scenarios {
            cells.push(Cell { scenario, competitor, runs: Vec::new(), programs: None });
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
    let out = quoted(&out.display().to_string());
    for line in twins(&wanted, &competitors, &out) {
        output::line(&line)?;
    }
    output::line(&format!("weir report {out} -o report.html"))?;
    Ok(code)
}

/// Says what is red and why, and writes the page and the JUnit file.
fn told(
    args: &Arena,
    out: &Path,
    cells: &[Cell<'_>],
    verdicts: &[Verdict],
) -> anyhow::Result<ExitCode> {
    let (mut red, mut unjudged, mut suites) = (0, 0, Vec::new());
    for (cell, verdict) in cells.iter().zip(verdicts) {
        red += usize::from(verdict.is_red());
        unjudged += usize::from(matches!(verdict, Verdict::Disturbed));
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
    let all = cells.len();
    output::line(&format!("{red} of {all} cells red, {unjudged} not judged\n"))?;
    if let Some(path) = &args.junit {
        let time = cells.iter().flat_map(|cell| &cell.runs).map(|run| run.took).sum();
        let text = junit::text("weir arena", suites, time)?;
        whole_file::write(path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(match (is_gate(args), red, unjudged) {
        (false, ..) | (true, 0, 0) => ExitCode::SUCCESS,
        (true, 0, _) => ExitCode::from(COULD_NOT_RUN),
        (true, ..) => ExitCode::FAILURE,
    })
}

fn is_gate(args: &Arena) -> bool {
    args.junit.is_some() || args.driver.is_some()
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
        if !is_server && !out.join(info.folder()).exists() {
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
    let scenarios: Vec<String> = scenarios.iter().map(|id| quoted(id)).collect();
    let scenarios = scenarios.join(" ");
    let mut lines = Vec::new();
    for (twin, stacks) in twins {
        let stacks = stacks.join(", ");
        let run = format!("weir run {scenarios} --controller {twin} --out {out}");
        lines.push(format!("{run}   # twin of {stacks}"));
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
            let cell = &mut cells[index];
            let info = cell.info(seed);
            let folder = out.join(info.folder());
            let begun = Instant::now();
            let is_new = Record::finished(out, &info, cell.scenario)?.is_none();
            if is_new {
                let call = one_call(args, out, cell.competitor, &info)?;
                real::runs(&call, &interrupt)?;
            }
            let record = Record::read(&folder)?;
            if !is_new {
                refuse_other_quality(args, &record, cell.competitor)
                    .with_context(|| folder.display().to_string())?;
            }
            let programs = programs(&record);
            let first = cell.programs.get_or_insert_with(|| programs.clone());
            anyhow::ensure!(
                *first == programs,
                "{} is a run of {programs}, and the first run is one of {first}: choose another \
                 --out, or remove it",
                folder.display()
            );
            let took = if is_new { begun.elapsed() } else { Duration::ZERO };
            let rows = &record.trace.rows;
            let returned = Return::of(rows);
            let fair_part = fairness::part(&record.scenario.flows, rows);
            cell.runs.push(Run { folder, summary: record.summary(), returned, fair_part, took });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// The programs at the ends of the calls, with versions.
fn programs(record: &Record) -> String {
    let participants = record.call.iter().flat_map(|file| &file.participants);
    let mut programs: Vec<&str> = participants.map(|one| one.program.as_str()).collect();
    programs.dedup();
    programs.join(", ")
}

/// An error if a run says what its receiver saw and others of this matrix do not, or the other way
/// round. One that does not count is neither, and Firefox has no camera with tags.
fn refuse_other_quality(
    args: &Arena,
    record: &Record,
    competitor: &Competitor,
) -> anyhow::Result<()> {
    let is_either = record.summary().exclusion().is_some() || *competitor == Competitor::Firefox;
    let is_seen = record.call.as_ref().is_some_and(|call| !call.quality().is_empty());
    anyhow::ensure!(
        is_either || is_seen || !args.quality,
        "it was made without --quality: choose another --out, or leave the option out"
    );
    anyhow::ensure!(
        is_either || !is_seen || args.quality,
        "it was made with --quality: choose another --out, or add the option"
    );
    Ok(())
}

/// The rows, in the order that was asked for.
fn competitors(args: &Arena) -> anyhow::Result<Vec<Competitor>> {
    let mut competitors = Vec::new();
    let Some(list) = &args.stacks else {
        for stack in Stack::all(&args.arena)? {
            if !plays(&stack, args.role) {
                continue;
            }
            match stack.version() {
                Ok(_) => competitors.push(competitor(stack, args)?),
                Err(error @ StackError::NotInstalled { .. }) => {
                    eprintln!("weir: left out: {error}");
                }
                Err(error) => return Err(error.into()),
            }
        }
        if args.role != Role::Sfu {
            competitors.push(Competitor::Chromium);
        }
        if args.role == Role::Sender {
            match weir_call::installed(BrowserKind::Firefox) {
                Ok(()) => competitors.push(Competitor::Firefox),
                Err(error) => eprintln!("weir: left out: {error}"),
            }
        }
        return Ok(competitors);
    };
    let names: Vec<&str> = list.split(',').map(str::trim).collect();
    anyhow::ensure!(
        args.driver.is_none() || names.len() == 1,
        "--driver is the command of one stack: name it with --stacks NAME"
    );
    for name in names {
        let found = named(args, name)?;
        if !competitors.contains(&found) {
            competitors.push(found);
        }
    }
    Ok(competitors)
}

/// The row of this name. One that is not installed is an error before anything starts.
fn named(args: &Arena, name: &str) -> anyhow::Result<Competitor> {
    let stack = match (&args.driver, args.role.in_call(), name) {
        (None, Some(CallRole::Sender), FIREFOX) => {
            weir_call::installed(BrowserKind::Firefox)?;
            return Ok(Competitor::Firefox);
        }
        (None, Some(_), CHROMIUM) => return Ok(Competitor::Chromium),
        (None, Some(role), name) => Stack::with_role(&args.arena, name, role.into())?,
        (None, None, name) => sfu::server(&args.arena, name)?,
        (Some(command), Some(_), name) => Stack::of_command(name, command)?,
        (Some(_), None, _) => {
            anyhow::bail!("--driver is for one end of a call: leave out --role sfu")
        }
    };
    stack.version()?;
    competitor(stack, args)
}

/// Whether a stack has this role.
fn plays(stack: &Stack, role: Role) -> bool {
    match (role.in_call(), stack.application()) {
        (None, application) => application.is_some(),
        (Some(role), None) => stack.roles().contains(&role.into()),
        (Some(_), Some(_)) => false,
    }
}

fn competitor(stack: Stack, args: &Arena) -> anyhow::Result<Competitor> {
    match args.role.in_call() {
        Some(role) => Ok(Competitor::Stack(stack, role)),
        None => {
            let subject = sfu::subject(&stack, args.quality)?;
            Ok(Competitor::Server(stack, subject))
        }
    }
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
