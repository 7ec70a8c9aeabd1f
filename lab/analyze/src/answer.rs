//! The answer: a verdict, the findings with the largest effect on the call first, and details.

use weir_lab::calls::stats::Kind;

use crate::call::Call;
use crate::connectivity::{self, FAILED, INTERRUPTED, NEVER, PATH, PATH_CHANGE, RESTART, SERVER};
use crate::dump::Dump;
use crate::finding::{self, Finding};
use crate::good_time::{self, GoodTime};
use crate::headroom::{self, UNDERESTIMATE};
use crate::merge;
use crate::quality::{self, CONCEALMENT, FREEZE};
use crate::rules::FAR_LOSS;
use crate::samples;
use crate::verdict;

/// What `weir analyze` says about a dump.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The sentences that a reader needs first.
    pub verdict: String,
    /// What was found, the largest effect on the call first.
    pub findings: Vec<Finding>,
    /// What is known besides: paths and audio, a line each.
    pub details: Vec<String>,
    /// Good time of the received videos.
    pub good_time: GoodTime,
}

/// Answers what happened to the call.
pub fn answer(dump: &Dump) -> Answer {
    of_call(&Call::of(dump))
}

/// The same, of a call whose samples are there.
pub(crate) fn of_call(call: &Call<'_>) -> Answer {
    let dump = call.dump;
    let mut found = connectivity::findings(dump);
    found.extend(quality::findings(dump));
    found.extend(call.streams().flat_map(finding::of_stream));
    found.extend(headroom::findings(call));
    let mut found = merge::merged(&call.connections, merge::random_loss(call), found);
    verdict::name_capacity(call.network(), &mut found);
    found.sort_by(|a, b| effect(b).total_cmp(&effect(a)));
    let good_time = good_time::of_streams(call.streams());
    Answer {
        verdict: verdict::verdict(call, &found, &good_time),
        details: details(dump),
        findings: found,
        good_time,
    }
}

/// All findings, those with the largest effect on the call first.
pub fn findings(dump: &Dump) -> Vec<Finding> {
    answer(dump).findings
}

/// How much a finding matters to those in the call: seconds, weighted by what was left of the call
/// in them.
fn effect(finding: &Finding) -> f64 {
    let finding = &finding.0;
    let seconds = (finding.to_s - finding.from_s).max(0.0);
    match finding.rule.as_str() {
        // No call.
        FAILED | NEVER => 1e6,
        // Neither video nor audio arrived.
        INTERRUPTED => 1e5 + seconds,
        FREEZE => 1.0 + 5.0 * seconds,
        CONCEALMENT => 1.0 + 5.0 * seconds,
        "capacity" | "air time" | "processor" | "picture size" => 4.0 * seconds,
        "loss" | FAR_LOSS | "delay" => 3.0 * seconds,
        UNDERESTIMATE | "loss rule" | "recovery" | "start-up" | "source" | "small picture" => {
            2.0 * seconds
        }
        // They explain, and do no harm by themselves.
        RESTART => 3.0,
        PATH_CHANGE => 2.0,
        SERVER => 1.0,
        PATH => 0.5,
        _ => 0.0,
    }
}

fn details(dump: &Dump) -> Vec<String> {
    let mut lines = Vec::new();
    for connection in &dump.connections {
        if let Some(path) = connectivity::path_in_words(connection) {
            lines.push(format!("{}: {path}", connection.name));
        }
        for stream in connection.streams.iter().filter(|it| it.kind == Kind::Audio) {
            let Some(heard) = quality::heard(stream) else { continue };
            lines.push(format!("{}: {}", samples::name(connection, stream), heard.words()));
        }
    }
    lines
}
