//! Findings about an estimate that stays far below what the path carries.
//!
//! Packets that wait behind each other measure the capacity even where the path is not full
//! (`packets`). Only dumps with single packets know it.

use weir_lab::calls::file;
use weir_lab::calls::stats::Kind;

use crate::browser;
use crate::call::Call;
use crate::dump::{Connection, Dump, StreamDirection};
use crate::finding::{Finding, GAP_S, rounded};
use crate::network::{self, TestedCapacity};
use crate::rules::{LOSS, Moment, Part};
use crate::samples::{Sample, SampledStream};

pub(crate) const UNDERESTIMATE: &str = "underestimate";

/// An estimate below this share of the capacity leaves the path unused.
const FAR_BELOW: f64 = 0.6;
/// How long it must stay there, in s. Start-ups and recoveries take about as long.
const LEAST_S: f64 = 5.0;
/// A stream that sends less than this share of its estimate does not need more.
const USES: f64 = 0.5;

/// All findings of a dump.
pub(crate) fn findings(call: &Call<'_>) -> Vec<Finding> {
    let whose = whose_estimate(call.dump);
    let mut found = Vec::new();
    for (connection, streams) in call.dump.connections.iter().zip(&call.connections) {
        of_connection(connection, streams, &whose, &mut found);
    }
    found
}

/// `Chrome 117's estimate`, or `the sender's estimate` if the dump does not name the program.
pub(crate) fn whose_estimate(dump: &Dump) -> String {
    let browser = dump.program.as_deref().and_then(browser::name);
    browser.map_or("the sender's estimate".into(), |name| format!("{name}'s estimate"))
}

fn of_connection(
    connection: &Connection,
    streams: &[SampledStream],
    whose: &str,
    found: &mut Vec<Finding>,
) {
    let Some(log) = &connection.packets else { return };
    let capacity = network::measured_up(log);
    for stream in streams {
        if (stream.way, stream.kind) != (StreamDirection::Sent, Kind::Video) {
            continue;
        }
        let mut span: Vec<(Sample, f64)> = Vec::new();
        for index in 0..stream.samples.len() {
            let moment = Moment { stream, index };
            let sample = &stream.samples[index];
            let Some(carried) = capacity_at(&capacity, sample) else { continue };
            if !is_far_below(moment, carried) {
                continue;
            }
            if span.last().is_some_and(|(last, _)| sample.start_s - last.end_s >= GAP_S) {
                found.extend(finding(&stream.name, whose, &std::mem::take(&mut span)));
            }
            span.push((sample.clone(), carried));
        }
        found.extend(finding(&stream.name, whose, &span));
    }
}

/// The capacity that was measured during most of a sample.
fn capacity_at(capacity: &[TestedCapacity], sample: &Sample) -> Option<f64> {
    let middle = (sample.start_s + sample.end_s) / 2.0;
    let during = capacity.iter().find(|it| (it.from_s..=it.to_s).contains(&middle));
    Some(during?.bps)
}

fn is_far_below(moment: Moment<'_>, carried: f64) -> bool {
    let sample = &moment.stream.samples[moment.index];
    let Some(estimate) = sample.estimate_bps else { return false };
    estimate < FAR_BELOW * carried
        && sample.rate_bps >= USES * estimate
        && !moment.queues()
        && moment.loss() < LOSS
}

fn finding(stream: &str, whose: &str, span: &[(Sample, f64)]) -> Option<Finding> {
    let (first, last) = (&span.first()?.0, &span.last()?.0);
    let seconds = last.end_s - first.start_s;
    if seconds < LEAST_S {
        return None;
    }
    let count = span.len() as f64;
    let carried = span.iter().map(|(_, bps)| bps).sum::<f64>() / count;
    let estimate = span.iter().filter_map(|(it, _)| it.estimate_bps).sum::<f64>() / count;
    let [estimate_mbps, carried_mbps] = [estimate, carried].map(|bps| bps / 1e6);
    let says = format!(
        "{whose} stayed at {:.2} of what the path carried: {estimate_mbps:.2} of \
         {carried_mbps:.2} Mbit/s for {seconds:.0} s, with neither queue nor loss",
        estimate / carried,
    );
    Some(Finding(file::Finding {
        stream: stream.into(),
        part: Part::Controller.to_string(),
        rule: UNDERESTIMATE.into(),
        from_s: rounded(first.start_s),
        to_s: rounded(last.end_s),
        says,
        samples: span.iter().map(|(it, _)| it.evidence()).collect(),
    }))
}
