//! `weir arena`: WebRTC stacks of others under the same scenarios, as one matrix.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use indicatif::{ProgressBar, ProgressStyle};
use weir_call::stack::{Stack, StackError};
use weir_lab::gate::{self, Outcome};
use weir_lab::metrics::mean;
use weir_lab::record::Record;
use weir_lab::run::{Engine, RunInfo};
use weir_lab::scenario::Scenario;
use weir_lab::subject::Subject;
use weir_lab::summary::Summary;

use crate::args::{Arena, ArenaPart, Args, Call, Command};
use crate::interrupt::Interrupt;
use crate::layout::{Form, Table};
use crate::table::number;
use crate::{call, output, select};

/// Chromium as the sender.
const CHROMIUM: &str = "chromium";

/// Columns of a cell with numbers.
const MEASURED: usize = 5;

/// A row of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Competitor {
    Chromium,
    Stack(String),
}

impl Competitor {
    fn name(&self) -> &str {
        match self {
            Self::Chromium => CHROMIUM,
            Self::Stack(name) => name,
        }
    }

    fn subject(&self) -> Subject {
        match self {
            Self::Chromium => Subject::browser(CHROMIUM),
            Self::Stack(name) => Subject::Stack { name: name.clone() },
        }
    }
}

/// Makes the runs that are not there yet, and prints the matrix.
pub fn arena(args: &Arena) -> anyhow::Result<ExitCode> {
    if let Some(ArenaPart::Doctor) = args.part {
        return doctor(&args.arena);
    }
    let out = args.out.as_deref().context("name a folder for the records with --out")?;
    let competitors = competitors(args)?;
    let wanted: Vec<String> = args.scenarios.split(',').map(|id| id.trim().into()).collect();
    let scenarios = select::scenarios(&wanted)?;
    let interrupt = Interrupt::listen()?;
    let mut cells = Vec::new();
    for seed in 1..=args.runs.get() as u64 {
        for scenario in &scenarios {
            for competitor in &competitors {
                cells.push((scenario, competitor, seed));
            }
        }
    }
    let bar = ProgressBar::new(cells.len() as u64);
    bar.set_style(ProgressStyle::with_template("arena {wide_bar} {pos}/{len}, {eta} left")?);
    let mut summaries = Vec::new();
    for (scenario, competitor, seed) in cells {
        let folder = out.join(info(scenario, competitor, seed).folder());
        if !folder.exists() {
            let call = one_call(args, out, scenario, competitor, seed)?;
            call::runs(&call, &interrupt)?;
        }
        let record = Record::read(&folder)?;
        summaries.push(record.summary());
        bar.inc(1);
    }
    bar.finish_and_clear();
    output::print(&matrix(&scenarios, &competitors, &summaries).written(Form::of(args.markdown)))?;
    output::line(
        "\nShare of the link that was used; 95th percentile of the queuing delay; lost packets; \
         what the receiver decoded; expectations that hold.\n",
    )?;
    output::line(&format!("weir report {} -o arena.html", out.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// What is installed, one line each.
fn doctor(folder: &Path) -> anyhow::Result<ExitCode> {
    let stacks = Stack::all(folder)?;
    anyhow::ensure!(
        !stacks.is_empty(),
        "no stacks in {}: name the folder `arena` of Weir's sources with --arena",
        folder.display()
    );
    let mut missing = 0;
    let mut rows = Vec::new();
    for stack in stacks {
        let manifest = &stack.manifest;
        let feedback: Vec<String> = manifest.feedback.iter().map(ToString::to_string).collect();
        let version = match stack.version() {
            Ok(version) => version,
            Err(error) => {
                missing += 1;
                error.to_string()
            }
        };
        let about = [&stack.name, &manifest.control, &feedback.join(" "), &version];
        rows.push(about.map(Clone::clone).to_vec());
    }
    let head = vec!["stack", "control", "feedback", "version"];
    let table = Table { head, rows, left: 4, ..Table::default() };
    output::print(&table.written(Form::of(false)))?;
    Ok(if missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The rows, in the order that was asked for.
fn competitors(args: &Arena) -> anyhow::Result<Vec<Competitor>> {
    let mut competitors = Vec::new();
    let Some(list) = &args.stacks else {
        for stack in Stack::all(&args.arena)? {
            match stack.version() {
                Ok(_) => competitors.push(Competitor::Stack(stack.name)),
                Err(error @ StackError::NotInstalled { .. }) => {
                    eprintln!("weir: left out: {error}");
                }
                Err(error) => return Err(error.into()),
            }
        }
        competitors.push(Competitor::Chromium);
        return Ok(competitors);
    };
    for name in list.split(',').map(str::trim) {
        let competitor = if name == CHROMIUM {
            Competitor::Chromium
        } else {
            // Before anything starts: a stack that is missing stops the whole command.
            Stack::read(&args.arena, name)?.version()?;
            Competitor::Stack(name.into())
        };
        if !competitors.contains(&competitor) {
            competitors.push(competitor);
        }
    }
    Ok(competitors)
}

fn info(scenario: &Scenario, competitor: &Competitor, seed: u64) -> RunInfo {
    let subject = competitor.subject();
    RunInfo { scenario: scenario.id.clone(), subject, engine: Engine::Call, seed }
}

/// The arguments of `weir call` for one run.
fn one_call(
    args: &Arena,
    out: &Path,
    scenario: &Scenario,
    competitor: &Competitor,
    seed: u64,
) -> anyhow::Result<Call> {
    let mut words: Vec<PathBuf> = ["weir", "call", &scenario.id].map(PathBuf::from).to_vec();
    words.extend(["--seed", &seed.to_string()].map(PathBuf::from));
    words.extend(["--attempts", &args.attempts.to_string()].map(PathBuf::from));
    words.extend(["--out".into(), out.to_path_buf()]);
    match competitor {
        Competitor::Chromium => words.extend(["--controller", CHROMIUM].map(PathBuf::from)),
        Competitor::Stack(name) => {
            words.extend(["--stack", name].map(PathBuf::from));
            words.extend(["--arena".into(), args.arena.clone()]);
        }
    }
    match Args::try_parse_from(words)?.command {
        Command::Call(call) => Ok(call),
        _ => anyhow::bail!("the words are those of a call"),
    }
}

/// One row for each competitor and one column for each scenario.
fn matrix(
    scenarios: &[Scenario],
    competitors: &[Competitor],
    summaries: &[Summary],
) -> Table<'static> {
    let mut rows = Vec::new();
    for competitor in competitors {
        for scenario in scenarios {
            let subject = competitor.subject();
            let mut own = summaries.to_vec();
            own.retain(|summary| {
                summary.scenario == scenario.id && summary.controller == subject.to_string()
            });
            let mut row = vec![competitor.name().to_owned(), scenario.id.clone()];
            row.extend(cell(&own));
            rows.push(row);
        }
    }
    let head = vec![
        "stack",
        "scenario",
        "utilization",
        "queue p95 ms",
        "loss %",
        "pictures/s",
        "frozen s",
        "expectations",
    ];
    Table { head, rows, left: 2, ..Table::default() }
}

/// Means over the runs of a cell that count.
fn cell(summaries: &[Summary]) -> Vec<String> {
    let mut sound = summaries.to_vec();
    sound.retain(|summary| summary.exclusion().is_none());
    if sound.is_empty() {
        let why = if summaries.is_empty() { "-" } else { "failed or disturbed" };
        let mut row = vec!["-".to_owned(); MEASURED];
        row.push(why.into());
        return row;
    }
    let judgements = gate::judge(&sound);
    let failed = judgements.iter().filter(|one| one.outcome == Outcome::Fails).count();
    let verdict = match (judgements.len(), failed) {
        (0, _) => "-".into(),
        (all, 0) => format!("{all} of {all} hold"),
        (all, failed) => format!("{} of {all} hold", all - failed),
    };
    vec![
        of_flow(&sound, "utilization", 1.0, 2),
        of_flow(&sound, "queuing_delay_ms.p95", 1.0, 0),
        of_flow(&sound, "loss_ratio.mean", 100.0, 1),
        of_calls(&sound, "calls.b.frame_rate", 1),
        of_calls(&sound, "calls.b.frozen_s", 1),
        verdict,
    ]
}

/// Mean of a metric of the first flow, which is the call's, times `factor`.
fn of_flow(summaries: &[Summary], path: &str, factor: f64, decimals: usize) -> String {
    let flows = summaries.iter().filter_map(|summary| summary.flows.first());
    let values = flows.filter_map(|flow| Some(flow.metrics.at(path)? * factor));
    number(mean(values.collect()), decimals)
}

/// Mean of a metric of the calls.
fn of_calls(summaries: &[Summary], path: &str, decimals: usize) -> String {
    let calls = summaries.iter().filter_map(|summary| summary.calls.as_ref());
    number(mean(calls.filter_map(|calls| calls.at(path)).collect()), decimals)
}
