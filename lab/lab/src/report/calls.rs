//! Values that only real calls have: set-up, browsers, packet captures, and agreement of the
//! witnesses.
//!
//! All of it comes from `call.json`. A missing member is a value that was not measured.

use super::call_format::{
    AppRow, Calls, DelayPlot, FindingRow, PacerPlot, PeerRow, RatePlot, SetupRow, StreamErrorRow,
    StreamRow,
};
use super::format::ParticipantsRow;
use super::{Column, Run, left_out_in_words, rounded};
use crate::calls::file::{
    Agreement, CallFile, Candidate, CandidatePair, Capture, Compared, Delays, Finding, Interval,
    Limitation, Peer, SentInterval, Stream,
};
use crate::calls::streams;
use crate::calls::{Each, Exclusion};
use crate::metrics::mean;
use crate::run::Engine;

const DECIMALS: i32 = 3;
const BITS_PER_MEGABIT: f64 = 1e6;
const BITS_PER_KILOBIT: f64 = 1e3;
const BYTES_PER_MEGABYTE: f64 = 1e6;

/// Results of the calls of a scenario; `None` if there are none. Plots are of the first run. Tables
/// cover all runs, also those with failed calls, because each row names its run.
pub(super) fn of(columns: &[Column<'_>]) -> Option<Calls> {
    let runs: Vec<(&Run, &CallFile)> = columns
        .iter()
        .filter(|column| column.engine == Engine::Call)
        .flat_map(|column| column.counted)
        .filter_map(|run| Some((run, run.record.call.as_ref()?)))
        .collect();
    let (first, first_file) = runs.first()?;
    let of_calls = || columns.iter().filter(|column| column.engine == Engine::Call);
    let is_disturbed = |run: &&Run| run.record.exclusion() == Some(Exclusion::Disturbed);
    let left_out = || of_calls().flat_map(|column| column.left_out).filter(is_disturbed);
    let entries = || runs.iter().flat_map(|(_, file)| &file.calls);
    let captures = || runs.iter().flat_map(|(_, file)| file.captures());
    let rows = || captures().flat_map(|capture| &capture.agreement);
    Some(Calls {
        seed: first.seed(),
        tried: entries().count(),
        succeeded: entries().filter(|call| call.failure.is_none()).count(),
        left_out: left_out().map(left_out_in_words).collect(),
        disturbed: of_calls().all(Column::is_disturbed),
        failures: runs.iter().flat_map(|(run, file)| failures(run, file)).collect(),
        setup: runs.iter().flat_map(|(run, file)| setup(run, file)).collect(),
        peers: runs.iter().flat_map(|(run, file)| peers(run, file)).collect(),
        streams: first_file.captures().iter().flat_map(captured).collect(),
        agreement: first_file.captures().iter().flat_map(|it| agreement(first_file, it)).collect(),
        compared: rows().count(),
        agreed: rows().filter(|row| row.agrees).count(),
        rates: rates(first_file),
        errors: errors(first_file),
        delays: first_file.captures().iter().flat_map(|it| delays(first_file, it)).collect(),
        pacers: columns.iter().flat_map(pacers).collect(),
        verdict: runs.iter().find_map(|(_, file)| file.verdict.clone()),
        findings: runs.iter().flat_map(|(run, file)| findings(run, file)).collect(),
        app: runs.iter().flat_map(|(run, file)| app(run, file)).collect(),
    })
}

/// The participants of an application and their streams, over the whole run.
fn app(run: &Run, file: &CallFile) -> Vec<AppRow> {
    let each = run.summary.calls.iter().flat_map(|calls| &calls.each);
    let row = |one: &Each| {
        let value = |value: Option<f64>| value.map(|value| rounded(value, DECIMALS));
        let percent = |value: Option<f64>| value.map(|value| rounded(value * 100.0, 1));
        let of = &one.metrics;
        AppRow {
            seed: run.seed(),
            name: one.name.clone(),
            sends: sends(file, &one.name),
            setup_ms: value(of.setup_ms),
            first_frame_ms: value(of.first_frame_ms),
            send_rate_mbps: value(of.send_rate_mbps),
            receive_rate_mbps: value(of.receive_rate_mbps),
            frame_rate: value(of.frame_rate),
            frame_height: value(of.frame_height),
            freezes: value(of.freeze_count),
            limited_by_bandwidth_percent: percent(of.limited_by_bandwidth_ratio),
            concealed_percent: percent(of.audio_concealed_ratio),
        }
    };
    each.filter(|one| one.section.is_none()).map(row).collect()
}

/// What the stream with this name is, if its participant sends it.
fn sends(file: &CallFile, stream: &str) -> Option<String> {
    let (participant, number) = stream.split_once('/')?;
    let number: usize = number.parse().ok()?;
    let of_participant = |peer: &&Peer| peer.participant.split('/').next() == Some(participant);
    let peer = file.peers.iter().filter(of_participant).nth(number.checked_sub(1)?)?;
    let encoder = peer.encoder.as_ref()?;
    let layer = peer.layer.as_ref().map(|layer| format!("layer {layer}"));
    let parts = [encoder.mime_type.clone(), layer, encoder.scalability_mode.clone()];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn findings(run: &Run, file: &CallFile) -> Vec<FindingRow> {
    let row = |finding: &Finding| FindingRow {
        seed: run.seed(),
        stream: finding.stream.clone(),
        part: finding.part.clone(),
        rule: finding.rule.clone(),
        says: finding.says.clone(),
        from_s: finding.from_s,
        to_s: finding.to_s,
        samples: finding.samples.len(),
    };
    file.findings.iter().map(row).collect()
}

/// Why calls of a run failed.
fn failures(run: &Run, file: &CallFile) -> Vec<String> {
    let failed = file.calls.iter().filter_map(|call| Some((call.call, call.failure.as_ref()?)));
    failed.map(|(call, cause)| format!("seed {}, call {call}: {cause}", run.seed())).collect()
}

/// One row for each browser, or pair of browsers, that ran the scenario.
pub(super) fn participants(id: &str, columns: &[Column<'_>]) -> Vec<ParticipantsRow> {
    let row = |column: &Column<'_>| {
        let calls = |run: &Run| run.summary.calls.clone();
        let of = |path: &str| {
            let values = column.counted.iter().filter_map(|run| calls(run)?.at(path)).collect();
            mean(values).map(|mean| rounded(mean, DECIMALS))
        };
        Some(ParticipantsRow {
            scenario: id.into(),
            controller: column.controller.into(),
            participants: calls(column.counted.first()?)?.participants,
            runs: column.counted.len(),
            success_ratio: of("calls.success_ratio"),
            setup_ms: of("calls.setup_ms"),
            first_frame_ms: of("calls.first_frame_ms"),
            rtt_ms: of("calls.rtt_ms"),
            one_way_delay_ms: of("calls.one_way_delay_ms.mean"),
            send_rate_mbps: of("calls.send_rate_mbps"),
            receive_rate_mbps: of("calls.receive_rate_mbps"),
            cpu_percent: of("calls.cpu_cores").map(|cores| rounded(cores * 100.0, 1)),
            memory_mb: of("calls.memory_mb"),
        })
    };
    columns.iter().filter_map(row).collect()
}

fn setup(run: &Run, file: &CallFile) -> Vec<SetupRow> {
    let row = |peer: &Peer| {
        let setup = peer.setup_ms?;
        let ready = setup.camera.unwrap_or(setup.joined);
        let found = setup.path_found();
        let ms = |from: f64, to: f64| rounded(to - from, DECIMALS);
        Some(SetupRow {
            seed: run.seed(),
            peer: file.name(peer),
            page_ms: rounded(setup.joined, DECIMALS),
            camera_ms: setup.camera.map(|camera| ms(setup.joined, camera)),
            waiting_ms: ms(ready, setup.start),
            signalling_ms: setup.described.map(|described| ms(setup.start, described)),
            ice_ms: setup.described.zip(found).map(|(described, found)| ms(described, found)),
            dtls_ms: found.map(|found| ms(found, setup.connected)),
            total_ms: ms(setup.start, setup.connected),
            first_frame_ms: peer.first_frame_ms.map(|frame| ms(setup.connected, frame)),
            path: peer.candidate_pair.as_ref().map(path).unwrap_or_default(),
        })
    };
    file.peers.iter().filter_map(row).collect()
}

fn path(CandidatePair { local, remote }: &CandidatePair) -> String {
    let end = |candidate: &Candidate| {
        let address = candidate.address.as_deref().unwrap_or("hidden");
        format!("{address} ({})", candidate.candidate_type)
    };
    format!("{} to {}, {}", end(local), end(remote), local.protocol)
}

fn peers(run: &Run, file: &CallFile) -> Vec<PeerRow> {
    let row = |peer: &Peer| {
        let participant = file.participants.iter().find(|it| it.name == peer.participant);
        let over = |value: fn(&Interval) -> Option<f64>| {
            let mean = mean(peer.intervals.iter().filter_map(value).collect());
            mean.map(|mean| rounded(mean, DECIMALS))
        };
        let sum = |value: fn(&Interval) -> Option<f64>| -> Option<f64> {
            let values: Vec<f64> = peer.intervals.iter().filter_map(value).collect();
            (!values.is_empty()).then(|| rounded(values.iter().sum(), DECIMALS))
        };
        let size = peer.intervals.iter().rev().find_map(|it| it.of_received(|it| it.frame_size));
        PeerRow {
            seed: run.seed(),
            controller: run.record.info.controller.clone(),
            peer: file.name(peer),
            cpu_percent: participant.and_then(|it| it.cpu_cores).map(|it| rounded(it * 100.0, 1)),
            memory_mb: participant
                .and_then(|it| it.memory_bytes)
                .map(|bytes| rounded(bytes as f64 / BYTES_PER_MEGABYTE, 1)),
            encode_ms: over(|it| it.of_sent(|it| it.encode_ms)),
            decode_ms: over(|it| it.of_received(|it| it.decode_ms)),
            frame_rate: over(|it| it.of_received(|it| it.frame_rate)),
            frame_size: size.map(|(width, height)| format!("{width} x {height}")),
            freezes: sum(|it| it.of_received(|it| it.freezes.map(|count| count as f64))),
            frozen_s: sum(|it| it.of_received(|it| it.frozen_s)),
            limited: peer.limitation_s.map(limited),
        }
    };
    file.peers.iter().map(row).collect()
}

/// The causes that limited the quality, with their shares of the time.
fn limited(it: Limitation) -> String {
    let total = it.none + it.cpu + it.bandwidth + it.other;
    let parts =
        [("none", it.none), ("cpu", it.cpu), ("bandwidth", it.bandwidth), ("other", it.other)];
    let parts = parts.into_iter().filter(|(_, seconds)| *seconds > 0.0 && total > 0.0);
    let words = parts.map(|(name, seconds)| format!("{name} {:.0} %", 100.0 * seconds / total));
    words.collect::<Vec<_>>().join(", ")
}

fn captured(capture: &Capture) -> Vec<StreamRow> {
    let span_s = span_s(capture);
    let row = |stream: &Stream| {
        let lost = 100.0 * stream.lost_packets as f64 / stream.sent_packets.max(1) as f64;
        let delay = |value: fn(&Delays) -> f64| {
            stream.delay_ms.as_ref().map(|delays| rounded(value(delays), DECIMALS))
        };
        StreamRow {
            call: capture.call,
            from: stream.from.clone(),
            to: stream.to.clone(),
            role: stream.role.clone(),
            ssrc: hexadecimal(stream.ssrc),
            packets: stream.sent_packets,
            received_mbps: span_s.map(|seconds| {
                rounded(stream.received_bytes as f64 * 8.0 / BITS_PER_MEGABIT / seconds, DECIMALS)
            }),
            lost_percent: rounded(lost, DECIMALS),
            reordered: stream.reordered_packets,
            duplicates: stream.duplicate_packets,
            mean_delay_ms: delay(|delays| delays.mean),
            p50_delay_ms: delay(|delays| delays.p50),
            p95_delay_ms: delay(|delays| delays.p95),
            max_delay_ms: delay(|delays| delays.max),
        }
    };
    capture.streams.iter().map(row).collect()
}

/// Duration of the call in seconds, from the end times of its intervals.
fn span_s(capture: &Capture) -> Option<f64> {
    // A forwarding server has no intervals.
    let intervals = capture.intervals.iter().max_by_key(|intervals| intervals.len())?;
    let [first, .., last] = intervals.as_slice() else { return None };
    let gaps = intervals.len() as f64 - 1.0;
    Some((last.time_s - first.time_s) * (gaps + 1.0) / gaps).filter(|seconds| *seconds > 0.0)
}

/// Counts by getStats and by the captures, one row for each stream.
fn errors(file: &CallFile) -> Vec<StreamErrorRow> {
    let captures = file.captures().iter();
    let compared = captures.flat_map(|it| it.compared.iter().map(move |one| (it.call, one)));
    let row = |(call, compared): (usize, &Compared)| {
        let error = streams::error(file, call, compared);
        let percent = |value: Option<f64>| value.map(|value| rounded(value, DECIMALS));
        let ssrcs = error.ssrcs.iter().map(|ssrc| hexadecimal(*ssrc));
        StreamErrorRow {
            peer: end(file, call, compared),
            what: format!("{} {}", error.way, error.stream),
            ssrcs: ssrcs.collect::<Vec<_>>().join(", "),
            reported_packets: error.reported_packets,
            captured_packets: error.captured_packets,
            error_percent: percent(error.payload_error_percent),
            interval_error_percent: percent(error.interval_error_percent),
            mid: error.mid,
        }
    };
    compared.map(row).collect()
}

/// The same counts over time, for the first call. Streams without any packets have no plot.
fn rates(file: &CallFile) -> Vec<RatePlot> {
    let Some(capture) = file.captures().first() else { return Vec::new() };
    let plot = |compared: &Compared| {
        let error = streams::error(file, capture.call, compared);
        let percent = |value: Option<f64>| value.map(|value| rounded(value, DECIMALS));
        let kbps = |rates: &[u64]| -> Vec<f64> {
            rates.iter().map(|rate| rounded(*rate as f64 / BITS_PER_KILOBIT, DECIMALS)).collect()
        };
        RatePlot {
            peer: end(file, capture.call, compared),
            what: format!("{} {}", compared.way, compared.stream),
            time_s: compared.time_s.iter().map(|time| rounded(*time, DECIMALS)).collect(),
            reported_kbps: kbps(&compared.reported_bps),
            captured_kbps: kbps(&compared.captured_bps),
            error_percent: percent(error.payload_error_percent),
            interval_error_percent: percent(error.interval_error_percent),
        }
    };
    let is_seen = |compared: &&Compared| {
        let mut rates = compared.reported_bps.iter().chain(&compared.captured_bps);
        rates.any(|rate| *rate > 0)
    };
    capture.compared.iter().filter(is_seen).map(plot).collect()
}

/// The pacer of each pipeline in a controller's first run.
fn pacers(column: &Column<'_>) -> Vec<PacerPlot> {
    let file = column.counted.iter().find_map(|run| run.record.call.as_ref());
    let Some(file) = file.filter(|_| column.engine == Engine::Call) else { return Vec::new() };
    let plot = |peer: &Peer| {
        let over = |value: fn(&SentInterval) -> Option<f64>| -> Vec<Option<f64>> {
            let value = |it: &Interval| Some(rounded(value(it.sent.as_ref()?)?, DECIMALS));
            peer.intervals.iter().map(value).collect()
        };
        let plot = PacerPlot {
            controller: column.controller.into(),
            peer: file.name(peer),
            time_s: peer.intervals.iter().map(|it| rounded(it.time_s, DECIMALS)).collect(),
            queue_ms: over(|sent| sent.pacer_queue_ms),
            encoder_mbps: over(|sent| Some(sent.target_bps? as f64 / BITS_PER_MEGABIT)),
        };
        // A browser does not tell what waits in its pacer.
        plot.queue_ms.iter().any(Option::is_some).then_some(plot)
    };
    file.peers.iter().filter_map(plot).collect()
}

/// Name of the peer that counted.
fn end(file: &CallFile, call: usize, compared: &Compared) -> String {
    file.end(call, &compared.peer).map(|peer| file.name(peer)).unwrap_or_default()
}

fn hexadecimal(ssrc: u32) -> String {
    format!("{ssrc:#010x}")
}

/// Prefix that names the call; empty if there is only one.
fn of_call(file: &CallFile, call: usize) -> String {
    match file.captures().len() {
        0 | 1 => String::new(),
        _ => format!("call {call}, "),
    }
}

fn agreement(file: &CallFile, capture: &Capture) -> Vec<Agreement> {
    let call = of_call(file, capture.call);
    let named =
        |row: &Agreement| Agreement { subject: format!("{call}{}", row.subject), ..row.clone() };
    capture.agreement.iter().map(named).collect()
}

/// Delay histogram of each video stream with packets.
fn delays(file: &CallFile, capture: &Capture) -> Vec<DelayPlot> {
    let call = of_call(file, capture.call);
    let streams = capture.streams.iter().filter(|stream| stream.role == "video");
    let plot = |stream: &Stream| DelayPlot {
        stream: format!("{call}{} from {} to {}", stream.role, stream.from, stream.to),
        counts: stream.delay_counts.clone(),
    };
    let seen = streams.filter(|stream| stream.delay_counts.iter().any(|count| *count > 0));
    seen.map(plot).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::calls::file::CapturedInterval;

    fn file() -> CallFile {
        let value = json!({
            "bent": false,
            "participants": [{ "name": "a", "cpu_cores": 0.5, "memory_bytes": 300_000_000 }],
            "peers": [{
                "call": 1, "participant": "a",
                "setup_ms":
                    { "camera": 400.0, "joined": 300.0, "start": 450.0, "ice": 500.0, "connected": 580.0 },
                "first_frame_ms": 700.0,
                "limitation_s": { "none": 3.0, "cpu": 0.0, "bandwidth": 1.0, "other": 0.0 },
                "intervals": [
                    { "time_s": 0.5, "send_bps": 1_000_000, "unknown": 1 },
                    { "time_s": 1.0, "send_bps": 2_000_000, "receive_bps": null },
                ],
            }],
            "captures": [{
                "call": 1,
                "compared": [
                    { "peer": "a", "way": "sent", "stream": "video and retransmissions", "mid": "1",
                        "ssrcs": [7, 8], "reported_packets": 300, "captured_packets": 301,
                        "reported_payload_bytes": 187_500, "captured_payload_bytes": 187_500,
                        "time_s": [0.5, 1.0], "reported_bps": [1_000_000, 2_000_000], "captured_bps": [900_000, 2_100_000] },
                    { "peer": "a", "way": "sent", "stream": "audio", "mid": "0", "ssrcs": [9],
                        "time_s": [0.5], "reported_bps": [0], "captured_bps": [0] },
                ],
            }],
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn each_stream_has_a_row_of_its_error_and_a_plot_where_anybody_saw_it() {
        let file = file();
        let rows = errors(&file);
        assert_eq!(
            (rows[0].peer.as_str(), rows[0].what.as_str()),
            ("a", "sent video and retransmissions")
        );
        assert_eq!(
            (rows[0].ssrcs.as_str(), rows[0].mid.as_deref()),
            ("0x00000007, 0x00000008", Some("1"))
        );
        assert_eq!((rows[0].reported_packets, rows[0].captured_packets), (300, 301));
        assert_eq!((rows[1].what.as_str(), rows[1].error_percent), ("sent audio", None));
        let plots = rates(&file);
        assert_eq!(plots.len(), 1);
        assert_eq!(plots[0].captured_kbps, [900.0, 2_100.0]);
        assert_eq!(
            (plots[0].error_percent, plots[0].interval_error_percent),
            (Some(0.0), Some(6.667))
        );
    }

    #[test]
    fn what_a_capture_saw_is_told_by_its_call_where_there_are_several() {
        let capture = json!({ "call": 2, "agreement": [{ "subject": "media", "quantity": "bytes",
            "witness": "getStats", "witnessed": 1.0, "captured": 1.0, "error": 0.0, "limit": 0.0,
            "agrees": true }],
            "streams": [{ "role": "video", "from": "a", "to": "b", "delay_counts": [1] }] });
        let headings = |captures: Value| -> [String; 2] {
            let file: CallFile =
                serde_json::from_value(json!({ "bent": false, "captures": captures })).unwrap();
            let subject = agreement(&file, &file.captures()[0])[0].subject.clone();
            [subject, delays(&file, &file.captures()[0])[0].stream.clone()]
        };
        assert_eq!(headings(json!([capture])), ["media", "video from a to b"]);
        let of_two = ["call 2, media", "call 2, video from a to b"];
        assert_eq!(headings(json!([capture, { "call": 1 }])), of_two);
    }

    #[test]
    fn a_call_is_as_long_as_its_intervals_are_together() {
        let intervals = |times: &[f64]| Capture {
            intervals: vec![
                times
                    .iter()
                    .map(|&time_s| CapturedInterval { time_s, ..CapturedInterval::default() })
                    .collect(),
            ],
            ..Capture::default()
        };
        assert_eq!(span_s(&intervals(&[0.5, 1.0, 1.5, 2.0])), Some(2.0));
        assert_eq!(span_s(&intervals(&[0.5])), None);
        assert_eq!(span_s(&Capture::default()), None);
    }

    #[test]
    fn limits_are_told_with_their_share_of_the_time() {
        assert_eq!(file().peers[0].limitation_s.map(limited).unwrap(), "none 75 %, bandwidth 25 %");
        assert_eq!(limited(Limitation::default()), "");
    }
}
