//! What is red in the matrix, why, and what a gate makes of it.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestSuite};
use weir_lab::calls::Exclusion;
use weir_lab::cause::cause;
use weir_lab::gate::{self, Judgement};
use weir_lab::record::Record;
use weir_lab::summary::Summary;

use super::{Cell, Run};
use crate::junit::{self, Case};

/// A cell, judged.
pub enum Verdict {
    /// The runs count.
    Judged(Vec<Judged>),
    /// A call failed, with the reason.
    Failed(String),
    /// No run counts, because this machine disturbed all of them.
    Disturbed,
}

/// An expectation of a cell, judged.
pub struct Judged {
    judgement: Judgement,
    /// Whether it makes the cell red.
    is_missed: bool,
    /// Why it is missed; else empty.
    cause: String,
}

impl Verdict {
    /// Judges the runs of a cell; `strict` counts an expectation in doubt as missed. Records of red
    /// ones are read for their cause.
    pub fn of(cell: &Cell<'_>, strict: bool) -> anyhow::Result<Self> {
        let mut sound = Vec::new();
        for run in &cell.runs {
            match run.summary.exclusion() {
                Some(Exclusion::Disturbed) => {}
                Some(Exclusion::Failed) => return Ok(Self::Failed(failure(run)?)),
                None => sound.push(run),
            }
        }
        if sound.is_empty() {
            return Ok(Self::Disturbed);
        }
        let summaries: Vec<Summary> = sound.iter().map(|run| run.summary.clone()).collect();
        let mut judged = Vec::new();
        for (index, judgement) in gate::judge(&summaries).into_iter().enumerate() {
            let is_missed = !judgement.outcome.passes(strict);
            let misses = sound
                .iter()
                .find(|run| run.summary.expect.get(index).is_some_and(|expected| !expected.pass));
            let cause = match misses {
                Some(run) if is_missed => why(run, &judgement)?,
                _ => String::new(),
            };
            judged.push(Judged { judgement, is_missed, cause });
        }
        Ok(Self::Judged(judged))
    }

    /// Whether an expectation is missed, or the call failed.
    pub fn is_red(&self) -> bool {
        match self {
            Self::Judged(judged) => judged.iter().any(|one| one.is_missed),
            Self::Failed(_) => true,
            Self::Disturbed => false,
        }
    }

    /// What is red, in words: what is expected, the cause, and the command that repeats the run.
    pub fn lines(&self, cell: &Cell<'_>) -> Vec<String> {
        let head = format!("{} {}", cell.competitor.name(), cell.scenario.id);
        let mut lines = Vec::new();
        match self {
            Self::Disturbed => {
                lines.push(format!("{head}: not judged: this machine disturbed each run"));
            }
            Self::Failed(why) => {
                lines.push(format!("{head}: the call failed"));
                lines.push(format!("  {why}"));
            }
            Self::Judged(judged) => {
                for Judged { judgement, cause, .. } in judged.iter().filter(|one| one.is_missed) {
                    let expected = &judgement.row.text;
                    let words = junit::in_words(judgement);
                    lines.push(format!("{head}: {expected}: {words}"));
                    lines.push(format!("  {cause}"));
                }
            }
        }
        if !lines.is_empty() {
            lines.push(format!("  replay: {}", cell.replay()));
        }
        lines
    }

    /// The cell in a JUnit file.
    pub fn suite(&self, cell: &Cell<'_>, strict: bool) -> Option<TestSuite> {
        let (scenario, name) = (&cell.scenario.id, cell.competitor.name());
        let kind = match self {
            Self::Judged(judged) => {
                let mut cases = Vec::new();
                for Judged { judgement, cause, .. } in judged {
                    let replay = format!("replay: {}", cell.replay());
                    cases.push(Case { judgement, cause: cause.clone(), replay });
                }
                let time = cell.runs.iter().map(|run| run.took).sum::<Duration>();
                return (!cases.is_empty()).then(|| junit::suite(&cases, time, strict));
            }
            Self::Failed(_) => NonSuccessKind::Failure,
            Self::Disturbed => NonSuccessKind::Error,
        };
        let why = self.lines(cell).join("\n");
        Some(junit::without_values(scenario, name, kind, &why))
    }
}

/// Why the run misses the expectation.
fn why(run: &Run, judgement: &Judgement) -> anyhow::Result<String> {
    let record = Record::read(&run.folder)?;
    let expectations = &record.scenario.expectations;
    let expectation = expectations.iter().find(|one| one.text == judgement.row.text);
    let flow = judgement.flows.first().map(String::as_str);
    let Some(expectation) = expectation else { return Ok(String::new()) };
    if expectation.flow.is_of_real_run() {
        let who = flow.unwrap_or("every participant");
        return Ok(format!("{who}: no rule knows the cause; the report has its curves"));
    }
    let found = cause(&record, expectation, flow);
    Ok(found.map_or("nothing was measured in that time".into(), |found| found.to_string()))
}

/// Why a call of the run failed.
fn failure(run: &Run) -> anyhow::Result<String> {
    let record = Record::read(&run.folder)?;
    let calls = record.call.map(|file| file.calls).unwrap_or_default();
    let why = calls.into_iter().find_map(|call| call.failure);
    Ok(why.unwrap_or_else(|| "without a reason".into()))
}
