//! `weir call --app`: any web application in a scenario's network.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use weir_analyze::{AppDump, app_record};
use weir_call::{
    AppOutcome, AppPlan, WATCHED_MAX, app_facts, app_rows, is_inside, quality, run_app, warnings,
};
use weir_net::Seed;
use weir_record::Record;
use weir_record::calls::derive::Interval;
use weir_record::run::{Engine, RunInfo};
use weir_record::shell::quoted;
use weir_record::subject::Subject;
use weir_scenario::Scenario;
use weir_scenario::call::BrowserKind;

use crate::args::Call;
use crate::args::application::AppBrowser;
use crate::captures::Captures;
use crate::interrupt::Interrupt;
use crate::run::Simulated;
use crate::{call, output, run, select};

/// Number of participants without `--participants`.
const PARTICIPANTS: usize = 2;
/// Each participant needs a good part of a processor.
const PARTICIPANTS_MAX: usize = 32;

/// Runs the application in each scenario and writes records.
pub fn runs(args: &Call, interrupt: &Interrupt) -> anyhow::Result<Vec<Simulated>> {
    let scenarios = select::scenarios(&args.selection.scenarios)?;
    let (plan, subject) = (plan(args)?, subject(args)?);
    let mut jobs = Vec::new();
    for scenario in &scenarios {
        for seed in call::seeds(args, scenario)? {
            let (scenario_id, subject) = (scenario.id.clone(), subject.clone());
            let info = RunInfo { scenario: scenario_id, subject, engine: Engine::Call, seed };
            jobs.push((scenario, info));
        }
    }
    if let Some(out) = &args.output.out {
        run::refuse_existing(out, jobs.iter().map(|(_, info)| info))?;
    }
    let mut runs = Vec::new();
    for (scenario, info) in jobs {
        let begun = Instant::now();
        let captures = Captures::new(args.capture, args.output.out.as_deref(), &info)?;
        let dumps = tempfile::tempdir().context("make a folder for the dumps")?;
        let plan = AppPlan { dumps: dumps.path().into(), capture: captures.plan(), ..plan.clone() };
        let outcome = attempt(args, scenario, &plan, info.seed, interrupt)?;
        call::print_quality(&scenario.id, &outcome.frames);
        let record = recorded(scenario, info, &outcome)?;
        for warning in warnings(&record) {
            eprintln!("weir: {}", output::escaped(warning));
        }
        if let Some(out) = &args.output.out {
            let place = record.write(out)?;
            keep(&outcome, &place)?;
            if args.quality {
                quality::write(&place, &outcome.frames)
                    .with_context(|| place.display().to_string())?;
            }
            captures.move_to(&place)?;
        }
        runs.push(Simulated { summary: record.summary(), took: begun.elapsed() });
    }
    Ok(runs)
}

/// What the runs of the command are made with.
pub fn subject(args: &Call) -> anyhow::Result<Subject> {
    Ok(Subject::Application { options: options(&plan(args)?) })
}

/// The record of a run: what the emulator saw, and what the pages reported.
fn recorded(scenario: &Scenario, info: RunInfo, outcome: &AppOutcome) -> anyhow::Result<Record> {
    let dumps = outcome.participants.iter();
    let dumps = dumps.map(|one| AppDump { name: one.name.clone(), file: one.dump.clone() });
    let dumps: Vec<AppDump> = dumps.collect();
    let zero_ms = outcome.zero.as_secs_f64() * 1e3;
    let rows =
        |sent: &[Interval], received: &[Interval]| app_rows(scenario, outcome, sent, received);
    Ok(app_record(scenario, info, app_facts(outcome), (&dumps, zero_ms), rows)?)
}

/// Runs once, and again if this machine disturbed the run.
fn attempt(
    args: &Call,
    scenario: &Scenario,
    plan: &AppPlan,
    seed: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<AppOutcome> {
    let mut attempt = 1;
    loop {
        let outcome = run_app(scenario, plan, Seed::new(seed), &interrupt.flag(), &mut |_| {});
        interrupt.check()?;
        let outcome = outcome?;
        let causes = outcome.disturbances();
        if causes.is_empty() || attempt == args.attempts.get() {
            return Ok(outcome);
        }
        eprintln!(
            "weir: {}: this machine disturbed the run ({}); repeating it",
            scenario.id, causes[0]
        );
        attempt += 1;
    }
}

fn plan(all: &Call) -> anyhow::Result<AppPlan> {
    let args = &all.application;
    let url = args.app.clone().unwrap_or_default();
    match &args.serve_app {
        Some(_) => anyhow::ensure!(
            is_inside(&url),
            "--app {url}: emulated hosts know no names; write http://{{server}}:PORT/ for the \
             server that --serve-app starts"
        ),
        None => anyhow::ensure!(
            !url.contains("{server}") && url.contains("://"),
            "--app {url}: without --serve-app the URL must name a server that runs elsewhere, \
             such as https://meet.example.org/room"
        ),
    }
    let join = args
        .join
        .as_ref()
        .map(|file| fs::canonicalize(file).with_context(|| file.display().to_string()));
    let participants = args.participants.unwrap_or(PARTICIPANTS);
    anyhow::ensure!(
        (1..=PARTICIPANTS_MAX).contains(&participants),
        "--participants must be between 1 and {PARTICIPANTS_MAX}"
    );
    anyhow::ensure!(
        !all.quality || participants <= WATCHED_MAX,
        "--quality tells at most {WATCHED_MAX} participants apart"
    );
    Ok(AppPlan {
        url,
        join: join.transpose()?,
        participants,
        browsers: browsers(&args.browsers),
        join_timeout: Duration::from_secs(args.join_within.get().into()),
        serve: args.serve_app.clone(),
        quality: all.quality,
        pictures_at: all.picture_at.clone(),
        dumps: Default::default(),
        capture: None,
    })
}

/// Chromium unless the command says another.
fn browsers(named: &[AppBrowser]) -> Vec<BrowserKind> {
    if named.is_empty() {
        return vec![BrowserKind::Chromium];
    }
    let kinds = named.iter().map(|browser| match browser {
        AppBrowser::Chromium => BrowserKind::Chromium,
        AppBrowser::Firefox => BrowserKind::Firefox,
    });
    kinds.collect()
}

/// The options that name the application, so that the record's command repeats
/// the run.
fn options(plan: &AppPlan) -> String {
    let mut words = vec!["--app".into(), quoted(&plan.url)];
    if let Some(join) = &plan.join {
        words.extend(["--join".into(), quoted(&join.display().to_string())]);
    }
    words.extend(["--participants".into(), plan.participants.to_string()]);
    if plan.browsers != [BrowserKind::Chromium] {
        let names: Vec<&str> = plan.browsers.iter().map(|kind| kind.name()).collect();
        words.extend(["--browsers".into(), names.join(",")]);
    }
    if let Some(serve) = &plan.serve {
        words.extend(["--serve-app".into(), quoted(serve)]);
    }
    if plan.quality {
        words.push("--quality".into());
    }
    words.join(" ")
}

/// Copies the dumps into the record.
fn keep(outcome: &AppOutcome, record: &Path) -> anyhow::Result<()> {
    for participant in &outcome.participants {
        let to = record.join(format!("{}.rtcstats", participant.name));
        fs::copy(&participant.dump, &to).with_context(|| to.display().to_string())?;
    }
    Ok(())
}
