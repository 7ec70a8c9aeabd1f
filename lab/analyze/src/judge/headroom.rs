//! Findings about an estimate that stays far below what the path carries.
//!
//! Packets that wait behind each other measure the capacity even where the path is not full
//! (`packets`). Only dumps with single packets know it.

use weir_record::calls::stats::Kind;

use crate::found::{Evidence, Found, Subject, Underestimate};
use crate::judge::browser;
use crate::judge::call::Call;
use crate::judge::network::{self, TestedCapacity};
use crate::judge::rules::GAP_S;
use crate::judge::rules::{LOSS, Moment};
use crate::measure::samples::{Sample, SampledStream};
use crate::read::dump::{Connection, Dump, StreamDirection};

/// An estimate below this share of the capacity leaves the path unused.
const FAR_BELOW: f64 = 0.6;
/// How long it must stay there, in s. Start-ups and recoveries take about as long.
const LEAST_S: f64 = 5.0;
/// A stream that sends less than this share of its estimate does not need more.
const USES: f64 = 0.5;

/// All findings of a dump.
pub(crate) fn findings(call: &Call<'_>) -> Vec<Found> {
    let program = program(call.dump);
    let mut found = Vec::new();
    for (connection, streams) in call.dump.connections.iter().zip(&call.connections) {
        of_connection(connection, streams, program.as_deref(), &mut found);
    }
    found
}

/// The program, such as `Chrome 117`; `None` if the dump does not name it.
pub(crate) fn program(dump: &Dump) -> Option<String> {
    dump.program.as_deref().and_then(browser::name)
}

fn of_connection(
    connection: &Connection,
    streams: &[SampledStream],
    program: Option<&str>,
    found: &mut Vec<Found>,
) {
    let Some(log) = &connection.packets else { return };
    let capacity = network::measured_up(log);
    for stream in streams {
        if (stream.direction, stream.kind) != (StreamDirection::Sent, Kind::Video) {
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
                found.extend(finding(stream, program, &std::mem::take(&mut span)));
            }
            span.push((sample.clone(), carried));
        }
        found.extend(finding(stream, program, &span));
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

fn finding(stream: &SampledStream, program: Option<&str>, span: &[(Sample, f64)]) -> Option<Found> {
    let (first, last) = (&span.first()?.0, &span.last()?.0);
    let seconds = last.end_s - first.start_s;
    if seconds < LEAST_S {
        return None;
    }
    let count = span.len() as f64;
    let low = Underestimate {
        program: program.map(String::from),
        estimate_bps: span.iter().filter_map(|(it, _)| it.estimate_bps).sum::<f64>() / count,
        carried_bps: span.iter().map(|(_, bps)| bps).sum::<f64>() / count,
        seconds,
    };
    let subject = Subject::Stream(stream.id.clone());
    let times = (first.start_s, last.end_s);
    let mut found = Found::new(subject, times, Evidence::Underestimate(low));
    found.samples = span.iter().map(|(it, _)| it.evidence()).collect();
    Some(found)
}
