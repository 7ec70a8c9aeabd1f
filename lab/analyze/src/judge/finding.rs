//! What limited a call, and when.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use weir_record::calls::file;

use crate::found::{Found, Part, RuleName, Subject};
use crate::judge::rules::{self, LOSS, Moment, RULES, Rule, Span};
use crate::measure::samples::losses;
use crate::measure::samples::{Sample, SampledStream};
use crate::read::dump::StreamDirection;
use crate::read::time_of_day::clock;

/// What takes less than this is an instant: its two ends would be written alike.
const INSTANT_S: f64 = 0.05;

/// A stream that sends less than this, in bit/s, is switched off: keep-alives remain.
const SILENT_BPS: f64 = 1e3;

/// So many seconds' worth of packets that are lost matter, however short the time.
const HEAVY_S: f64 = 0.4;
/// Fewer lost packets have no share worth naming.
const LEAST_LOST: f64 = 3.5;
/// So many more silences, of this share of its length at least, make a silence a usual one.
const OTHER_SILENCES: u32 = 2;
const LIKE_IT: f64 = 1.0 / 3.0;
/// Standard deviations by which a part may lose less than the whole, by chance.
const CHANCE: f64 = 2.5;

/// Standard deviations by which a part must lose more than the rest, where all of it loses little:
/// one of many parts is always the worst.
const WORST: f64 = 6.5;

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

impl Finding {
    /// The same line with times of day. `zero_ms` is the first report, in ms since 1970.
    pub fn at_clock(&self, zero_ms: Option<f64>) -> String {
        let at = |seconds: f64| zero_ms.and_then(|zero_ms| clock(zero_ms + seconds * 1e3));
        let line = self.to_string();
        let (Some(from), Some(to)) = (at(self.0.from_s), at(self.0.to_s)) else { return line };
        let time = if from == to { from } else { format!("{from} to {to}") };
        line.replacen(" s, ", &format!(" s ({time}), "), 1)
    }
}

impl From<Found> for Finding {
    fn from(found: Found) -> Self {
        Self(file::Finding {
            stream: found.subject.to_string(),
            part: found.part().to_string(),
            rule: found.rule().name().into(),
            from_s: found.from_s,
            to_s: found.to_s,
            says: found.says(),
            samples: found.samples,
        })
    }
}

/// What the table of rules finds of a stream, by rule and then by time.
pub(crate) fn of_stream(stream: &SampledStream) -> Vec<Found> {
    // A single sample is a mean, which hides what happened in its time.
    let is_mean = stream.samples.len() < 2;
    let rules = RULES.iter().filter(|rule| !is_mean || rule.is_of_means());
    rules.flat_map(|rule| of_rule(stream, rule)).collect()
}

fn of_rule(stream: &SampledStream, rule: &Rule) -> Vec<Found> {
    let mut spans: Vec<Vec<usize>> = Vec::new();
    for (index, sample) in stream.samples.iter().enumerate() {
        if is_silent(stream, rule, sample) || !(rule.holds)(Moment { stream, index }) {
            continue;
        }
        let last = spans.last().and_then(|span| span.last());
        let is_near =
            last.is_some_and(|at| sample.start_s - stream.samples[*at].end_s < rule.gap_s());
        match spans.last_mut() {
            Some(span) if is_near => span.push(index),
            _ => spans.push(vec![index]),
        }
    }
    if rule.lasts_as_its_loss() {
        spans = joined(stream, spans);
    }
    if matches!(rule.rule, RuleName::NotSent | RuleName::NothingReceived) {
        spans.retain(|span| !is_between_words(stream, span));
    }
    spans.into_iter().filter_map(|span| of_span(stream, rule, &span)).collect()
}

/// The finding of the samples at which a rule holds; `None` if they are too few, or lose too
/// little.
fn of_span(stream: &SampledStream, rule: &Rule, indices: &[usize]) -> Option<Found> {
    let (mut first, mut last) = (*indices.first()?, *indices.last()?);
    if rule.least_loss > 0.0 {
        // The rule looks at the neighbours of a sample, too, which need not belong to the finding.
        let own = trimmed(&stream.samples, first..=last);
        let own = own.filter(|range| has_loss(&stream.samples, range));
        let range = own.or_else(|| most_lossy(&stream.samples, first..=last))?;
        (first, last) = (*range.start(), *range.end());
        if rule.lasts_as_its_loss() {
            (first, last) = widened(stream, first, last);
        }
    }
    let whole = &stream.samples[first..=last];
    let (from_s, to_s) = (whole[0].start_s, whole[whole.len() - 1].end_s);
    let mut held = Vec::new();
    for index in indices.iter().filter(|index| (first..=last).contains(index)) {
        held.push(stream.samples[*index].clone());
    }
    let is_short = to_s - from_s < rule.least_s;
    // A few packets are lost of a camera that comes back.
    let came_back = first.checked_sub(1).is_some_and(|before| stream.samples[before].packets == 0);
    if held.is_empty()
        || rule.lasts_as_its_loss() && is_only_the_worst(&stream.samples, first..=last)
        || is_short && (came_back || !(rule.lasts_as_its_loss() && is_heavy(whole)))
        || rule.rule == RuleName::Capacity && !rules::shows_full_path(stream, &held)
    {
        return None;
    }
    let is_to_end = last + 1 == stream.samples.len();
    let evidence = (rule.evidence)(stream, &Span { held: &held, whole, is_to_end });
    let mut found = Found::new(Subject::Stream(stream.id.clone()), (from_s, to_s), evidence);
    found.samples = held.iter().map(Sample::evidence).collect();
    Some(found)
}

/// A time without its ends in which little is lost.
fn trimmed(samples: &[Sample], range: RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let is_lossy = |index: &usize| samples[*index].loss.is_some_and(|loss| loss >= LOSS);
    let first = range.clone().find(is_lossy)?;
    let last = range.rev().find(is_lossy)?;
    Some(first..=last)
}

fn has_loss(samples: &[Sample], range: &RangeInclusive<usize>) -> bool {
    let samples = &samples[range.clone()];
    let lost = samples.iter().map(|it| it.loss.unwrap_or(0.0) * it.expected).sum::<f64>();
    lost >= LEAST_LOST && losses::of(samples).is_some_and(|loss| loss >= LOSS)
}

/// The part of a time in which most is lost beyond the share that matters, where all of it together
/// loses less: a burst is not thinned by the quiet seconds around it.
fn most_lossy(samples: &[Sample], range: RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let mut best: Option<(f64, RangeInclusive<usize>)> = None;
    let (mut excess, mut first) = (0.0, *range.start());
    for index in range {
        let sample = &samples[index];
        excess += (sample.loss.unwrap_or(LOSS) - LOSS) * sample.expected;
        if excess < 0.0 {
            (excess, first) = (0.0, index + 1);
        } else if best.as_ref().is_none_or(|(most, _)| excess > *most) {
            best = Some((excess, first..=index));
        }
    }
    best.map(|(_, range)| range).filter(|range| has_loss(samples, range))
}

/// Whether a stream loses little in all, and a part of it only what chance makes of that.
fn is_only_the_worst(samples: &[Sample], part: RangeInclusive<usize>) -> bool {
    let (mut own, mut others) = ((0.0, 0.0), (0.0, 0.0));
    for (index, sample) in samples.iter().enumerate() {
        let (expected, lost) = if part.contains(&index) { &mut own } else { &mut others };
        *expected += sample.expected;
        *lost += sample.loss.unwrap_or(0.0) * sample.expected;
    }
    let is_little = own.1 + others.1 < LOSS * (own.0 + others.0);
    let usual: f64 = own.0 * others.1 / others.0.max(f64::MIN_POSITIVE);
    is_little && usual > 0.0 && own.1 < usual + WORST * usual.sqrt()
}

/// Whether a silence is one of several like it: a sender of voice that sends nothing between words,
/// or while a button is not pressed.
fn is_between_words(stream: &SampledStream, span: &[usize]) -> bool {
    let Some((first, last)) = span.first().zip(span.last()) else { return false };
    let samples = &stream.samples;
    let own_s = samples[*last].end_s - samples[*first].start_s;
    let (mut others, mut silent_s) = (0, 0.0);
    for (index, sample) in samples.iter().enumerate() {
        let is_own = (*first..=*last).contains(&index);
        if sample.packets == 0 && !is_own && sample.packets_so_far > 0 {
            silent_s += sample.end_s - sample.start_s;
            continue;
        }
        others += u32::from(silent_s >= LIKE_IT * own_s);
        silent_s = 0.0;
    }
    others += u32::from(silent_s >= LIKE_IT * own_s);
    stream.id.is_audio && others >= OTHER_SILENCES
}

/// Whether a time, however short, lost so much that people notice.
fn is_heavy(samples: &[Sample]) -> bool {
    let lost_s = samples.iter().map(|it| it.loss.unwrap_or(0.0) * (it.end_s - it.start_s));
    lost_s.sum::<f64>() >= HEAVY_S
}

/// Spans of loss between which as much is lost are one: losses by chance come in no regular steps.
fn joined(stream: &SampledStream, spans: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for span in spans {
        let before = found.last().and_then(|it| Some((*it.first()?, *it.last()?)));
        let own = span.first().copied().zip(span.last().copied());
        let joins = before.zip(own).is_some_and(|((from, upto), (first, last))| {
            loses_as(stream, upto + 1..first, from..=last)
        });
        match found.last_mut().filter(|_| joins) {
            Some(before) => before.extend(span),
            None => found.push(span),
        }
    }
    found
}

/// A time of loss with what comes before and behind it, as far as losses are known, where as much
/// is lost.
fn widened(stream: &SampledStream, first: usize, last: usize) -> (usize, usize) {
    let samples = &stream.samples;
    let begin = samples.iter().position(|it| it.loss.is_some()).unwrap_or(first).min(first);
    let end = samples.iter().rposition(|it| it.loss.is_some()).unwrap_or(last).max(last);
    let from = if loses_as(stream, begin..first, first..=last) { begin } else { first };
    let upto = if loses_as(stream, last + 1..end + 1, first..=last) { end } else { last };
    (from, upto)
}

/// Whether what is lost in a part is no less than chance leaves of the loss of the whole, and no
/// queue stands in it.
fn loses_as(stream: &SampledStream, part: Range<usize>, whole: RangeInclusive<usize>) -> bool {
    let queues = part.clone().any(|index| Moment { stream, index }.queues());
    let Some(share) = losses::of(&stream.samples[whole]) else { return false };
    let (mut expected, mut lost, mut silent) = (0.0, 0.0, 0);
    let count = part.len();
    for sample in &stream.samples[part] {
        expected += sample.expected;
        silent += usize::from(sample.expected == 0.0);
        lost += sample.loss.unwrap_or(0.0) * sample.expected;
    }
    let usual: f64 = share * expected;
    // A silence loses nothing, and says nothing.
    2 * silent <= count && !queues && lost >= usual - CHANCE * usual.sqrt() - 0.5
}

/// A layer that sends nothing says nothing about the path or its estimate.
fn is_silent(stream: &SampledStream, rule: &Rule, sample: &Sample) -> bool {
    let is_path = matches!(rule.part(), Part::Network | Part::Controller);
    let sends_nothing = sample.rate_bps < SILENT_BPS && !sample.lacks_sent();
    is_path && stream.direction == StreamDirection::Sent && sends_nothing
}
