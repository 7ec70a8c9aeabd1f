//! What limited a call, and when.

use std::fmt;

use weir_lab::calls::file;

use crate::dump::StreamDirection;
use crate::rules::{self, Moment, Part, RULES, Rule};
use crate::samples::{Sample, SampledStream};

/// Longest time between two samples at which a rule holds, in s, within one finding.
pub(crate) const GAP_S: f64 = 2.5;

/// What takes less than this is an instant: its two ends would be written alike.
const INSTANT_S: f64 = 0.05;

/// A stream that sends less than this, in bit/s, is switched off: keep-alives remain.
const SILENT_BPS: f64 = 1e3;

/// What limited a stream for a while, with the samples that it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding(pub file::Finding);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file::Finding { stream, part, from_s, to_s, says, .. } = &self.0;
        if to_s - from_s < INSTANT_S {
            return write!(f, "at {to_s:.1} s, {stream}: {part}: {says}");
        }
        write!(f, "{from_s:.1} to {to_s:.1} s, {stream}: {part}: {says}")
    }
}

/// What the table of rules finds of a stream, by rule and then by time.
pub(crate) fn of_stream(stream: &SampledStream) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| of_rule(stream, rule)).collect()
}

fn of_rule(stream: &SampledStream, rule: &Rule) -> Vec<Finding> {
    let holds = (0..stream.samples.len()).filter(|index| {
        !is_silent(stream, rule, &stream.samples[*index])
            && (rule.holds)(Moment { stream, index: *index })
    });
    let mut spans: Vec<Vec<Sample>> = Vec::new();
    for sample in holds.map(|index| stream.samples[index].clone()) {
        match spans.last_mut() {
            Some(span) if sample.start_s - span[span.len() - 1].end_s < GAP_S => span.push(sample),
            _ => spans.push(vec![sample]),
        }
    }
    let mut found = Vec::new();
    for span in spans {
        let (from_s, to_s) = (span[0].start_s, span[span.len() - 1].end_s);
        // The rule looks at the neighbours of a sample, too, which need not belong to the finding.
        let is_lossy = rules::loss(&span).unwrap_or(0.0) >= rule.least_loss;
        if to_s - from_s < rule.least_s
            || !is_lossy
            || rule.name == "capacity" && !rules::shows_full_path(stream, &span)
        {
            continue;
        }
        found.push(Finding(file::Finding {
            stream: stream.name.clone(),
            part: rule.part.to_string(),
            rule: rule.name.into(),
            from_s: rounded(from_s),
            to_s: rounded(to_s),
            says: (rule.says)(stream, &span),
            samples: span.iter().map(Sample::evidence).collect(),
        }));
    }
    found
}

/// A layer that sends nothing says nothing about the path or its estimate.
fn is_silent(stream: &SampledStream, rule: &Rule, sample: &Sample) -> bool {
    let is_path = matches!(rule.part, Part::Network | Part::Controller);
    is_path && stream.way == StreamDirection::Sent && sample.rate_bps < SILENT_BPS
}

/// Seconds to the millisecond.
pub(crate) fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
