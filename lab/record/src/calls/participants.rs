//! Metrics of each participant of an application under test, and of each of its streams.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use weir::units::Timestamp;
use weir_metrics::declared::Shape;
use weir_metrics::{PARTICIPANT_PREFIX, ParticipantMetrics, mean};
use weir_scenario::Recovery;

use super::file::{CallEntry, CallFile, Interval, Kind, PageConnection, Peer};
use super::longest;
use crate::recovery::Comeback;

const BITS_PER_MEGABIT: f64 = 1e6;
/// Time between two reports of a browser, in seconds.
const REPORT_INTERVAL_S: f64 = 0.5;

/// A participant or one of its streams, over the whole time or one section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ParticipantResult {
    /// `p1` for a participant; `p1/1`, `p1/2` and so on for its streams.
    pub name: String,
    /// Name of the section; `None` for the whole time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The values.
    #[serde(flatten)]
    pub metrics: ParticipantMetrics,
    /// How long measures took to come back in this section, of the expectations that ask for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<Recovered>,
}

/// How long a measure took until it was back to a share of what it was in an earlier section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovered {
    /// Path of the metric.
    pub metric: String,
    /// The earlier section.
    pub of: String,
    /// The share.
    pub share: f64,
    /// Seconds from the start of the section; `null` if it did not come back.
    pub seconds: Option<f64>,
}

impl ParticipantResult {
    /// The value at a dotted path such as `participant.frame_rate`; `None` if it was not measured.
    pub fn at(&self, path: &str) -> Option<f64> {
        self.metrics.at(path.strip_prefix(PARTICIPANT_PREFIX)?)
    }

    /// How long what an expectation wants took to come back; `None` if it did not.
    pub fn recovered(&self, recovery: &Recovery) -> Option<f64> {
        let Recovery { metric, of, share, .. } = recovery;
        let found = self.recovered.iter();
        let mut found = found.filter(|it| it.metric == *metric && it.of == *of);
        found.find(|it| it.share == *share)?.seconds
    }

    /// Whether it is a participant and no stream.
    pub fn is_participant(&self) -> bool {
        !self.name.contains('/')
    }

    /// All participants and streams of an application; none of a call between two browsers.
    pub(super) fn all(
        file: &CallFile,
        sections: &[(String, Range<Timestamp>)],
        recoveries: &[&Recovery],
    ) -> Vec<Self> {
        // A call between browsers has two participants.
        if file.calls.is_empty() || file.calls.iter().any(|it| it.participants.len() != 1) {
            return Vec::new();
        }
        let mut spans = vec![(None, 0.0..f64::INFINITY)];
        for (name, span) in sections {
            spans.push((Some(name.clone()), span.start.as_secs_f64()..span.end.as_secs_f64()));
        }
        let mut all = Vec::new();
        for call in &file.calls {
            let streams: Vec<&Peer> = file.peers.iter().filter(|it| it.call == call.call).collect();
            let own = call.participants[0].as_str();
            let mut named = vec![(own.to_owned(), streams.clone())];
            for (number, stream) in (1..).zip(&streams) {
                named.push((format!("{own}/{number}"), vec![*stream]));
            }
            for (name, streams) in named {
                let stream = Measured { file, call, streams: &streams };
                for (section, span) in &spans {
                    all.push(Self {
                        name: name.clone(),
                        section: section.clone(),
                        metrics: measured(call, &streams, span),
                        recovered: stream.recovered(section.as_deref(), &spans, recoveries),
                    });
                }
            }
            for one in all.iter_mut().filter(|it| it.name == own) {
                let span = spans.iter().find(|(section, _)| *section == one.section);
                one.metrics.audio_concealed_ratio =
                    span.and_then(|(_, span)| concealed(file, call.call, span));
                if one.section.is_none() {
                    set_up(&mut one.metrics, file, call.call);
                }
            }
        }
        all
    }
}

/// Streams whose values are measured together.
struct Measured<'a> {
    file: &'a CallFile,
    call: &'a CallEntry,
    streams: &'a [&'a Peer],
}

impl Measured<'_> {
    /// What came back in a section, of what is asked for.
    fn recovered(
        &self,
        section: Option<&str>,
        spans: &[(Option<String>, Range<f64>)],
        recoveries: &[&Recovery],
    ) -> Vec<Recovered> {
        let mut found = Vec::new();
        for recovery in recoveries.iter().filter(|it| Some(it.section.as_str()) == section) {
            if !recovery.metric.starts_with(PARTICIPANT_PREFIX) {
                continue;
            }
            let names = [recovery.of.as_str(), recovery.section.as_str()];
            let [Some(earlier), Some(later)] = names.map(|name| span_of(spans, name)) else {
                continue;
            };
            found.push(Recovered {
                metric: recovery.metric.clone(),
                of: recovery.of.clone(),
                share: recovery.share,
                seconds: self.comeback(recovery, earlier, later),
            });
        }
        found
    }

    /// Seconds until it is back. Seconds are measured up to the last report of any stream of the
    /// run, for a stream that ended has no reports of its own.
    fn comeback(&self, recovery: &Recovery, of: &Range<f64>, within: &Range<f64>) -> Option<f64> {
        let mut comeback = Comeback::new(recovery, self.value(&recovery.metric, of));
        let reports = self.file.peers.iter().flat_map(|peer| &peer.intervals);
        let last = reports.map(|report| report.time_s).fold(f64::NEG_INFINITY, f64::max);
        let mut end = within.start + 1.0;
        while end <= within.end.min(last) {
            let value = self.value(&recovery.metric, &(end - 1.0..end));
            comeback.push(value, end - within.start);
            end += REPORT_INTERVAL_S;
        }
        comeback.seconds()
    }

    fn value(&self, path: &str, span: &Range<f64>) -> Option<f64> {
        let metrics = measured(self.call, self.streams, span);
        metrics.at(path.strip_prefix(PARTICIPANT_PREFIX)?)
    }
}

/// The time of the section of this name.
fn span_of<'a>(spans: &'a [(Option<String>, Range<f64>)], name: &str) -> Option<&'a Range<f64>> {
    spans.iter().find(|span| span.0.as_deref() == Some(name)).map(|span| &span.1)
}

/// Adds how long the connections of a participant took.
fn set_up(metrics: &mut ParticipantMetrics, file: &CallFile, call: usize) {
    let Kind::Application(run) = &file.kind else { return };
    let own = run.connections.iter().filter(|it| it.call == call);
    metrics.setup_ms = mean(own.clone().filter_map(PageConnection::setup_ms).collect());
    metrics.first_frame_ms = mean(own.filter_map(PageConnection::first_frame_ms).collect());
}

/// The share of made-up samples in the audio that a participant received.
fn concealed(file: &CallFile, call: usize, span: &Range<f64>) -> Option<f64> {
    let mut ratios = Vec::new();
    let Kind::Application(run) = &file.kind else { return None };
    for audio in run.audio.iter().filter(|it| it.call == call) {
        let inside = audio.intervals.iter().filter(|it| is_inside(it.time_s, span));
        ratios.extend(mean(inside.filter_map(|it| it.concealed_ratio).collect()));
    }
    mean(ratios)
}

fn is_inside(time_s: f64, span: &Range<f64>) -> bool {
    span.start < time_s && time_s <= span.end
}

/// The reports of a stream within a span.
fn reports_within<'a>(
    stream: &'a Peer,
    span: &'a Range<f64>,
) -> impl Iterator<Item = &'a Interval> {
    stream.intervals.iter().filter(|it| is_inside(it.time_s, span))
}

/// The sum over streams that need not be there at the same time, such as those of a connection and
/// of the one that took its place: the sum over all reports, for each moment from the first report
/// to the last.
fn together(
    streams: &[&Peer],
    span: &Range<f64>,
    value: fn(&Interval) -> Option<f64>,
) -> Option<f64> {
    let mut sum = 0.0;
    let (mut longest, mut steps, mut reported_s) = (0_u32, 0_u32, 0.0);
    let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
    for stream in streams {
        let mut count = 0;
        let (mut begins, mut ends) = (f64::INFINITY, f64::NEG_INFINITY);
        for report in reports_within(stream, span) {
            let Some(value) = value(report) else { continue };
            sum += value;
            count += 1;
            begins = begins.min(report.time_s);
            ends = ends.max(report.time_s);
        }
        if count > 0 {
            longest = longest.max(count);
            steps += count - 1;
            reported_s += ends - begins;
            first = first.min(begins);
            last = last.max(ends);
        }
    }
    if longest == 0 {
        return None;
    }
    let step = reported_s / f64::from(steps);
    // Streams of two connections report at other moments, by less than a step. One report alone has
    // no step.
    let moments = if step > 0.0 { ((last - first) / step).floor() + 1.0 } else { 0.0 };
    Some(sum / moments.max(f64::from(longest)))
}

fn measured(call: &CallEntry, streams: &[&Peer], span: &Range<f64>) -> ParticipantMetrics {
    let reports = streams.iter().flat_map(|stream| reports_within(stream, span));
    let standing = streams.iter().map(|stream| standing_s(stream, span));
    ParticipantMetrics {
        success_ratio: Some(f64::from(u8::from(call.failure.is_none()))),
        send_rate_mbps: together(streams, span, send_mbps),
        receive_rate_mbps: together(streams, span, receive_mbps),
        sent_frame_rate: average(streams, span, Interval::sent_frame_rate),
        frame_rate: average(streams, span, Interval::frame_rate),
        frame_height: average(streams, span, Interval::frame_height),
        freeze_count: total(streams, span, Interval::freezes),
        longest_freeze_s: longest(reports.map(Interval::frozen_s).chain(standing)),
        freeze_duration_s: total(streams, span, Interval::frozen_s),
        loss_ratio: average(streams, span, Interval::loss_ratio),
        rtt_ms: average(streams, span, Interval::rtt_ms),
        limited_by_bandwidth_ratio: average(streams, span, limited_by_bandwidth),
        limited_by_cpu_ratio: average(streams, span, limited_by_cpu),
        // What belongs to the participant and to no stream is added by the caller.
        ..ParticipantMetrics::default()
    }
}

/// How long within a span the picture of a stream stands that shows no other one up to its last
/// report. A browser counts a freeze when it ends, so never this one. One report without a picture
/// may be that of a call that ends.
pub(super) fn standing_s(stream: &Peer, span: &Range<f64>) -> Option<f64> {
    let (mut shown, mut last) = (None, None);
    for report in &stream.intervals {
        if let Some(rate) = report.frame_rate() {
            last = Some(report.time_s);
            shown = if rate > 0.0 { last } else { shown };
        }
    }
    let (shown, last) = (shown?, last?);
    let within = last.min(span.end) - shown.max(span.start);
    (last - shown > 1.5 * REPORT_INTERVAL_S && within > 0.0).then_some(within)
}

/// The mean over the streams of their means.
fn average(
    streams: &[&Peer],
    span: &Range<f64>,
    value: fn(&Interval) -> Option<f64>,
) -> Option<f64> {
    let means =
        streams.iter().map(|stream| mean(reports_within(stream, span).filter_map(value).collect()));
    mean(means.flatten().collect())
}

fn total(streams: &[&Peer], span: &Range<f64>, value: fn(&Interval) -> Option<f64>) -> Option<f64> {
    let all = streams.iter().flat_map(|stream| reports_within(stream, span));
    all.filter_map(value).reduce(|a, b| a + b)
}

fn send_mbps(interval: &Interval) -> Option<f64> {
    Some(interval.send_bps()? / BITS_PER_MEGABIT)
}

fn receive_mbps(interval: &Interval) -> Option<f64> {
    Some(interval.receive_bps()? / BITS_PER_MEGABIT)
}

fn limited_by_bandwidth(interval: &Interval) -> Option<f64> {
    limited_by(interval, "bandwidth")
}

fn limited_by_cpu(interval: &Interval) -> Option<f64> {
    limited_by(interval, "cpu")
}

/// 1 if this limited the quality, else 0.
fn limited_by(interval: &Interval, cause: &str) -> Option<f64> {
    let limitation = interval.sent.as_ref()?.limitation.as_ref()?;
    Some(f64::from(u8::from(limitation == cause)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_participant_has_the_sums_and_means_of_its_streams_also_in_a_section() {
        let file: CallFile = serde_json::from_value(json!({
            "disturbed": false,
            "calls": [
                { "call": 1, "participants": ["p1"], "failure": null },
                { "call": 2, "participants": ["p2"], "failure": "its page crashed" },
            ],
            "peers": [
                { "call": 1, "participant": "p1", "intervals": [
                    { "time_s": 1.0, "send_bps": 1_000_000, "limitation": "none" },
                    { "time_s": 2.0, "send_bps": 3_000_000, "limitation": "cpu" },
                ] },
                { "call": 1, "participant": "p1/2", "intervals": [
                    { "time_s": 1.0, "receive_bps": 500_000, "freezes": 1, "frozen_s": 0.25,
                      "frame_rate": 10.0 },
                    { "time_s": 2.0, "receive_bps": 500_000, "freezes": 2, "frozen_s": 0.5,
                      "frame_rate": 30.0 },
                ] },
                { "call": 1, "participant": "p1/3", "intervals": [
                    { "time_s": 2.0, "receive_bps": 250_000, "freezes": 0, "frozen_s": 0.0,
                      "frame_rate": 30.0 },
                ] },
            ],
            "connections": [
                { "call": 1, "participant": "p1", "connection": "x-1", "created_s": -9.0,
                  "described_s": -1.0, "connected_s": -0.75, "first_frame_s": -0.5 },
                { "call": 1, "participant": "p1", "connection": "x-2", "created_s": -9.0,
                  "described_s": -1.0, "connected_s": -0.25 },
                { "call": 1, "participant": "p1", "connection": "x-3", "created_s": -9.0 },
            ],
            "audio": [{ "call": 1, "participant": "p1", "ssrc": 7, "intervals": [
                { "time_s": 1.0, "concealed_ratio": 0.25 },
                { "time_s": 2.0, "concealed_ratio": 0.75 },
            ] }],
        }))
        .unwrap();
        let late = Timestamp::from_millis(1_000)..Timestamp::from_millis(2_000);
        let all = ParticipantResult::all(&file, &[("late".into(), late)], &[]);
        let names: Vec<&str> =
            all.iter().filter(|it| it.section.is_none()).map(|it| &*it.name).collect();
        assert_eq!(names, ["p1", "p1/1", "p1/2", "p1/3", "p2"]);
        let of = |name: &str, section: Option<&str>, metric: &str| {
            let one = all.iter().find(|it| it.name == name && it.section.as_deref() == section);
            one.unwrap().at(&format!("participant.{metric}"))
        };
        assert_eq!(of("p1", None, "success_ratio"), Some(1.0));
        assert_eq!(of("p2", None, "success_ratio"), Some(0.0));
        assert_eq!(of("p2", None, "frame_rate"), None);
        assert_eq!(of("p1", None, "send_rate_mbps"), Some(2.0));
        // 0.5 Mbit/s of one, and of the other 0.25 Mbit/s in the second half.
        assert_eq!(of("p1", None, "receive_rate_mbps"), Some(0.625));
        assert_eq!(of("p1", None, "frame_rate"), Some(25.0));
        assert_eq!(
            (of("p1", None, "freeze_count"), of("p1", None, "freeze_duration_s")),
            (Some(3.0), Some(0.75))
        );
        assert_eq!(of("p1", None, "longest_freeze_s"), Some(0.5));
        assert_eq!(of("p1", None, "limited_by_cpu_ratio"), Some(0.5));
        assert_eq!(of("p1", Some("late"), "send_rate_mbps"), Some(3.0));
        assert_eq!(of("p1/2", Some("late"), "freeze_count"), Some(2.0));
        assert_eq!(of("p1/1", None, "receive_rate_mbps"), None);
        assert_eq!(of("p1", None, "setup_ms"), Some(500.0));
        assert_eq!(of("p1", None, "first_frame_ms"), Some(500.0));
        let of_audio = |name, section| of(name, section, "audio_concealed_ratio");
        assert_eq!((of_audio("p1", None), of_audio("p1", Some("late"))), (Some(0.5), Some(0.75)));
        assert_eq!((of_audio("p1/1", None), of("p1/1", None, "setup_ms")), (None, None));
    }

    #[test]
    fn a_stream_in_the_place_of_another_does_not_add_to_its_rate() {
        let sent = |from: u32, count: u32, later: f64| -> Peer {
            let times = (from..from + count).map(|step| f64::from(step) * 0.5 + later);
            let intervals = times.map(
                |time_s| json!({ "time_s": time_s, "send_bps": 1_000_000, "limitation": "none" }),
            );
            let intervals: Vec<_> = intervals.collect();
            let peer = json!({ "call": 1, "participant": "p1", "intervals": intervals });
            serde_json::from_value(peer).unwrap()
        };
        let rate = |peers: &[Peer]| {
            let peers: Vec<&Peer> = peers.iter().collect();
            let call = CallEntry { call: 1, ..CallEntry::default() };
            measured(&call, &peers, &(0.0..f64::INFINITY)).send_rate_mbps
        };
        assert_eq!(rate(&[sent(1, 10, 0.0), sent(11, 10, 0.0)]), Some(1.0));
        assert_eq!(rate(&[sent(1, 10, 0.0), sent(31, 10, 0.0)]), Some(0.5));
        // At the same time, though not at the same moments.
        assert_eq!(rate(&[sent(1, 10, 0.0), sent(1, 10, 0.375)]), Some(2.0));
        assert_eq!(rate(&[sent(1, 1, 0.0), sent(1, 1, 0.375)]), Some(2.0));
        assert_eq!(rate(&[sent(1, 0, 0.0)]), None);
    }

    #[test]
    fn a_participant_comes_back_or_not_also_one_whose_stream_is_gone() {
        let received = |participant: &str, rates: &[u32]| {
            let mut intervals = Vec::new();
            for (index, rate) in (1..).zip(rates) {
                intervals.push(json!({ "time_s": f64::from(index) * 0.5, "frame_rate": rate }));
            }
            json!({ "call": 1, "participant": participant, "intervals": intervals })
        };
        let comeback = |rates: &[u32]| {
            let file: CallFile = serde_json::from_value(json!({
                "disturbed": false,
                "calls": [{ "call": 1, "participants": ["p1"], "failure": null }],
                "peers": [received("p1", rates), received("p1/2", &[30; 12])],
            }))
            .unwrap();
            let span = |from, to| Timestamp::from_secs(from)..Timestamp::from_secs(to);
            let sections = [("before".to_owned(), span(0, 2)), ("after".to_owned(), span(2, 6))];
            let recovery = Recovery {
                metric: "participant.frame_rate".into(),
                section: "after".into(),
                of: "before".into(),
                share: 0.9,
            };
            let all = ParticipantResult::all(&file, &sections, &[&recovery]);
            let wanted = |it: &&ParticipantResult| it.name == "p1/1" && it.section.is_some();
            all.iter().filter(wanted).nth(1).unwrap().recovered(&recovery)
        };
        assert_eq!(comeback(&[30, 30, 30, 30, 0, 0, 0, 0, 30, 30, 30, 30]), Some(3.0));
        assert_eq!(comeback(&[30; 12]), Some(0.0));
        assert_eq!(comeback(&[30, 30, 30, 30, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(comeback(&[30, 30, 30, 30, 30]), None);
    }

    #[test]
    fn a_picture_that_stands_to_the_end_is_a_freeze_that_no_browser_counts() {
        let stream = |rates: &[u32]| -> Peer {
            let mut intervals = Vec::new();
            for (index, rate) in (1..).zip(rates) {
                intervals.push(json!({ "time_s": f64::from(index) * 0.5, "frame_rate": rate }));
            }
            let peer = json!({ "call": 1, "participant": "p1/1", "intervals": intervals });
            serde_json::from_value(peer).unwrap()
        };
        let all = 0.0..f64::INFINITY;
        assert_eq!(standing_s(&stream(&[0, 30, 30, 0, 0, 0, 0]), &all), Some(2.0));
        assert_eq!(standing_s(&stream(&[0, 30, 30, 0, 0, 0, 0]), &(2.0..3.0)), Some(1.0));
        assert_eq!(standing_s(&stream(&[0, 30, 30, 0, 0, 0, 0]), &(0.0..1.0)), None);
        assert_eq!(standing_s(&stream(&[30, 0, 0, 0, 30]), &all), None);
        assert_eq!(standing_s(&stream(&[30, 30, 0]), &all), None);
        assert_eq!(standing_s(&stream(&[0, 0, 0]), &all), None);
        assert_eq!(standing_s(&stream(&[]), &all), None);
    }

    #[test]
    fn a_call_between_two_has_sides_and_no_list() {
        let file: CallFile = serde_json::from_value(json!({
            "disturbed": false,
            "calls": [{ "call": 1, "participants": ["a", "b"], "failure": null }],
            "peers": [{ "call": 1, "participant": "a" }],
        }))
        .unwrap();
        assert_eq!(ParticipantResult::all(&file, &[], &[]), []);
    }
}
