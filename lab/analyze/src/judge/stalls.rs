//! Times in which nothing arrives at all, and times without reports.
//!
//! One silent stream may be paused. A path that stands still silences all streams at once, or what
//! was sent meanwhile comes at once when it moves again.

use crate::found::{Evidence, Found, Subject};
use crate::judge::rules::LOSS;
use crate::measure::samples::{Sample, SampledStream, median};
use crate::read::dump::StreamDirection;

/// A shorter silence in s is one that reports cannot tell from the packets' own distance.
const LEAST_S: f64 = 1.5;
/// A longer one in s is a pause, or the end.
const MOST_S: f64 = 30.0;
/// Answers in this share of a silence, if it is so long in s, are those of a path that works.
const ANSWERED_S: f64 = 5.0;
const ANSWERED: f64 = 0.15;
/// Share of the packets of a silence that come when it ends, if they were on their way.
const CAME_LATE: f64 = 0.5;
/// Time without a report in s, and in multiples of the usual time, that is a hole.
const HOLE_S: f64 = 5.0;
const HOLE: f64 = 3.0;
/// Below this share of the usual packets, a hole is one of the device and not of the reports.
const ASLEEP: f64 = 0.1;

/// A silence of a stream: its first sample and the first one after it.
#[derive(Clone, Copy)]
struct Silence {
    first: usize,
    after: usize,
}

/// All findings of a connection.
pub(crate) fn findings(streams: &[SampledStream]) -> Vec<Found> {
    let mut found = holes(streams);
    let received: Vec<&SampledStream> =
        streams.iter().filter(|it| it.direction == StreamDirection::Received).collect();
    for (place, stream) in received.iter().enumerate() {
        for silence in silences(&stream.samples) {
            let came_late = came_late(&stream.samples, silence);
            let [from_s, to_s] = times(&stream.samples, silence);
            let others: Vec<&&SampledStream> = received
                .iter()
                .enumerate()
                .filter(|(other, it)| *other != place && is_active(it, from_s, to_s))
                .map(|(_, it)| it)
                .collect();
            let all_silent = others.iter().all(|it| is_silent(it, from_s, to_s));
            // The first of several streams speaks for all.
            let is_told = found.iter().any(|it: &Found| it.from_s < to_s && from_s < it.to_s);
            let is_pause = !came_late
                && (is_answered(&stream.samples, silence) || sends_nothing(streams, from_s, to_s));
            if is_told || is_pause || !all_silent || !came_late && others.is_empty() {
                continue;
            }
            let subject = Subject::Connection(stream.id.connection.clone());
            let evidence = Evidence::Stall { streams: others.len() + 1, came_late };
            found.push(Found::new(subject, (from_s, to_s), evidence));
        }
    }
    found
}

/// The silences of a stream within which nothing was lost, and after which it goes on.
fn silences(samples: &[Sample]) -> Vec<Silence> {
    let mut found = Vec::new();
    let mut first: Option<usize> = None;
    for (index, sample) in samples.iter().enumerate() {
        if sample.packets == 0 {
            first = first.or(Some(index).filter(|index| *index > 0));
            continue;
        }
        let Some(first) = first.take() else { continue };
        let silence = Silence { first, after: index };
        let [from_s, to_s] = times(samples, silence);
        let is_lossy = samples[first..=index].iter().any(|it| it.loss.is_some_and(|it| it >= LOSS));
        let has_begun = samples[first].packets_so_far > 0;
        if (LEAST_S..MOST_S).contains(&(to_s - from_s)) && !is_lossy && has_begun {
            found.push(silence);
        }
    }
    found
}

fn times(samples: &[Sample], silence: Silence) -> [f64; 2] {
    [samples[silence.first].start_s, samples[silence.after].start_s]
}

/// Whether checks or reports were answered meanwhile, as consent is each five seconds
/// [RFC7675 §5.1]: then the path did not stand still, and the far end paused, as in a hold.
fn is_answered(samples: &[Sample], silence: Silence) -> bool {
    let [from_s, to_s] = times(samples, silence);
    // The first one may still have what came before.
    let within = &samples[silence.first + 1..silence.after.max(silence.first + 1)];
    let answered = within.iter().filter(|it| it.is_rtt_new).map(|it| it.end_s - it.start_s);
    to_s - from_s >= ANSWERED_S && answered.sum::<f64>() >= ANSWERED * (to_s - from_s)
}

/// Whether this end, which sent before and after, sent nothing meanwhile either: no path keeps it
/// from that, and a hold does.
fn sends_nothing(streams: &[SampledStream], from_s: f64, to_s: f64) -> bool {
    let mut has_sent = false;
    for stream in streams {
        if stream.direction == StreamDirection::Sent && is_active(stream, from_s, to_s) {
            has_sent = true;
            if !is_silent(stream, from_s, to_s) {
                return false;
            }
        }
    }
    has_sent
}

/// Whether the packets of the silence came when it ended.
fn came_late(samples: &[Sample], silence: Silence) -> bool {
    let [from_s, to_s] = times(samples, silence);
    let before = &samples[..silence.first];
    let usual = median(before, |it| Some(it.packets as f64 / (it.end_s - it.start_s)));
    let Some(usual) = usual else { return false };
    let after = &samples[silence.after..(silence.after + 2).min(samples.len())];
    let came: f64 = after.iter().map(|it| it.packets as f64).sum();
    let expected: f64 = after.iter().map(|it| usual * (it.end_s - it.start_s)).sum();
    usual > 0.0 && came - expected >= CAME_LATE * usual * (to_s - from_s)
}

/// Whether a stream had packets shortly before and after a time.
fn is_active(stream: &SampledStream, from_s: f64, to_s: f64) -> bool {
    let before = stream.samples.iter().rev().find(|it| it.end_s <= from_s + 0.5);
    let after = stream.samples.iter().find(|it| it.start_s >= to_s - 0.5);
    before.zip(after).is_some_and(|(before, after)| before.packets > 0 && after.packets > 0)
}

fn is_silent(stream: &SampledStream, from_s: f64, to_s: f64) -> bool {
    let mut within = stream.samples.iter().filter(|it| it.start_s >= from_s && it.end_s <= to_s);
    within.all(|it| it.packets == 0)
}

/// Times without reports, by the stream with most of them.
fn holes(streams: &[SampledStream]) -> Vec<Found> {
    let mut found = Vec::new();
    let longest = streams.iter().max_by_key(|stream| stream.samples.len());
    let Some(stream) = longest else { return found };
    let samples = &stream.samples;
    let usual_s = median(samples, |it| Some(it.end_s - it.start_s)).unwrap_or_default();
    let usual = median(samples, |it| Some(it.packets as f64 / (it.end_s - it.start_s)));
    for sample in samples {
        let seconds = sample.end_s - sample.start_s;
        if seconds < HOLE_S || seconds < HOLE * usual_s {
            continue;
        }
        let was_asleep =
            usual.is_some_and(|usual| (sample.packets as f64) < ASLEEP * usual * seconds);
        let subject = Subject::Connection(stream.id.connection.clone());
        let evidence = Evidence::Hole { seconds, was_asleep };
        found.push(Found::new(subject, (sample.start_s, sample.end_s), evidence));
    }
    found
}
