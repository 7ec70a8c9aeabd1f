//! What is red in the matrix, why, and what a gate makes of it.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCaseStatus, TestSuite};
use weir_record::Record;
use weir_record::calls::Exclusion;
use weir_record::cause::cause;
use weir_record::gate::{self, Certainty, Judgement, Outcome};
use weir_record::summary::Summary;

use super::{Cell, Run, downlink};
use crate::junit::{self, Case, Who};

/// A cell, judged.
pub enum Verdict {
    /// The runs count.
    Judged(Vec<Judged>),
    /// The call of the run with this index failed.
    Failed {
        /// The run.
        run: usize,
        /// Why.
        why: String,
    },
    /// No run counts, because this machine disturbed all of them.
    Disturbed,
    /// There is no run.
    NotMade,
}

/// An expectation of a cell, judged.
pub struct Judged {
    judgement: Judgement,
    /// Whether it makes the cell red.
    is_missed: bool,
    /// Index of the first run that misses it, or of the first one.
    run: usize,
    /// Why it is missed; else empty.
    cause: String,
}

impl Verdict {
    /// Judges the runs of a cell; `strict` counts an expectation in doubt as missed. Records of red
    /// ones are read for their cause.
    pub fn of(cell: &Cell<'_>, strict: bool) -> anyhow::Result<Self> {
        let mut sound = Vec::new();
        for (index, run) in cell.runs.iter().enumerate() {
            match run.summary.exclusion() {
                Some(Exclusion::Disturbed) => {}
                Some(Exclusion::Failed) => {
                    return Ok(Self::Failed { run: index, why: failure(run)? });
                }
                None => sound.push((index, run)),
            }
        }
        if sound.is_empty() {
            let is_made = !cell.runs.is_empty();
            return Ok(if is_made { Self::Disturbed } else { Self::NotMade });
        }
        let summaries: Vec<Summary> = sound.iter().map(|(_, run)| run.summary.clone()).collect();
        let mut judged = Vec::new();
        let judgements = gate::judge(&summaries, Certainty::OfFew);
        for (index, judgement) in judgements.into_iter().enumerate() {
            let is_missed = !judgement.outcome.passes(strict);
            let misses = sound.iter().find(|(_, run)| {
                run.summary.expect.get(index).is_some_and(|expected| !expected.pass)
            });
            let cause = match misses {
                Some((_, run)) if is_missed => why(run, &judgement)?,
                _ => String::new(),
            };
            let run = misses.unwrap_or(&sound[0]).0;
            judged.push(Judged { judgement, is_missed, run, cause });
        }
        Ok(Self::Judged(judged))
    }

    /// Whether an expectation is missed, or the call failed.
    pub fn is_red(&self) -> bool {
        match self {
            Self::Judged(judged) => judged.iter().any(|one| one.is_missed),
            Self::Failed { .. } => true,
            Self::Disturbed | Self::NotMade => false,
        }
    }

    /// Index of the run that decides: the first one that misses what makes the cell red.
    pub fn run(&self) -> usize {
        match self {
            Self::Judged(judged) => judged.iter().find(|it| it.is_missed).map_or(0, |it| it.run),
            Self::Failed { run, .. } => *run,
            Self::Disturbed | Self::NotMade => 0,
        }
    }

    /// The colour of the cell, and how many of its expectations hold.
    pub fn in_words(&self) -> String {
        match self {
            Self::Judged(judged) => {
                let missed = judged.iter().filter(|one| one.is_missed).count();
                let doubted = judged.iter().filter(|one| !one.is_missed && one.is_in_doubt());
                held(judged.len(), missed, doubted.count())
            }
            Self::Failed { .. } => "red, the call failed".into(),
            Self::Disturbed => "not judged: disturbed".into(),
            Self::NotMade => "-".into(),
        }
    }

    /// What is red, in words: what is expected, the cause, and the command that repeats the run.
    pub fn lines(&self, cell: &Cell<'_>) -> Vec<String> {
        let head = format!("{} {}", cell.competitor.name(), cell.scenario.id);
        let mut lines = Vec::new();
        match self {
            Self::NotMade => {}
            Self::Disturbed => {
                lines.push(format!("{head}: not judged: this machine disturbed each run"));
            }
            Self::Failed { why, .. } => {
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
            lines.push(format!("  replay: {}", cell.replay(self.run())));
        }
        lines
    }

    /// The cell in a JUnit file.
    pub fn suite(&self, cell: &Cell<'_>, strict: bool) -> Option<TestSuite> {
        let competitor = cell.competitor;
        let who = Who::of_row(&cell.scenario.id, competitor.name(), competitor.role());
        let kind = match self {
            Self::Judged(judged) => {
                let mut cases = Vec::new();
                for Judged { judgement, run, cause, .. } in judged {
                    let replay = format!("replay: {}", cell.replay(*run));
                    cases.push(Case { judgement, cause: cause.clone(), replay });
                }
                let time = cell.runs.iter().map(|run| run.took).sum::<Duration>();
                return (!cases.is_empty()).then(|| junit::suite(&who, &cases, time, strict));
            }
            Self::Failed { .. } => NonSuccessKind::Failure,
            Self::Disturbed => NonSuccessKind::Error,
            Self::NotMade => return None,
        };
        let why = self.lines(cell).join("\n");
        Some(junit::without_values(&who, TestCaseStatus::non_success(kind), &why))
    }
}

impl Judged {
    fn is_in_doubt(&self) -> bool {
        self.judgement.outcome == Outcome::InDoubt
    }
}

/// The same for simulated runs. A known miss is a miss.
pub fn of_simulated(runs: &[Summary]) -> String {
    let judgements = gate::judge(runs, Certainty::OfFew);
    let missed = judgements.iter().filter(|one| !one.row.pass).count();
    held(judgements.len(), missed, 0)
}

fn held(all: usize, missed: usize, doubted: usize) -> String {
    let colour = match (all, missed, doubted) {
        (0, ..) => return "-".into(),
        (_, 0, 0) => "green",
        (_, 0, _) => "amber",
        _ => "red",
    };
    let held = all - missed - doubted;
    match doubted {
        0 => format!("{colour}, {held} of {all} hold"),
        _ => format!("{colour}, {held} of {all} hold, {doubted} in doubt"),
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
        return Ok(match (flow, &record.call) {
            (Some(who), Some(call)) => downlink::cause(&call.peers, who),
            _ => "no rule knows the cause; the report has the curves".into(),
        });
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
