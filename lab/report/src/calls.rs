//! Values that only real calls have: set-up, browsers, packet captures, and agreement of the
//! witnesses.
//!
//! All of it comes from `call.json`. A missing member is a value that was not measured.

use weir_metrics::mean;
use weir_record::calls::file::{
    Agreement, CallEntry, CallFile, Candidate, CandidatePair, Capture, Compared, Interval, Kind,
    Limitation, Peer,
};
use weir_record::calls::{Exclusion, streams};
use weir_record::run::Engine;

use super::call_format::{
    AppRow, Calls, DelayPlot, FindingRow, PacerPlot, PeerRow, RatePlot, SetupRow, StreamErrorRow,
    StreamRow,
};
use super::format::ParticipantsRow;
use super::{Column, Run, left_out_in_words, quality, rounded, rounded_if};

const DECIMALS: i32 = 3;
const BITS_PER_MEGABIT: f64 = 1e6;
const BITS_PER_KILOBIT: f64 = 1e3;
const BYTES_PER_MEGABYTE: f64 = 1e6;

/// Results of the calls of a scenario; `None` if there are none. Plots are of the first run. Tables
/// cover all runs, also those with failed calls, because each row names its run.
pub(super) fn of(columns: &[Column<'_>]) -> Option<Calls> {
    let columns: Vec<&Column<'_>> =
        columns.iter().filter(|column| column.engine == Engine::Call).collect();
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    for column in &columns {
        runs.extend(column.counted.iter().filter_map(|run| Some((run, run.record.call.as_ref()?))));
        for run in column.left_out {
            if run.record.exclusion() == Some(Exclusion::Disturbed) {
                left_out.push(left_out_in_words(run));
            }
        }
    }
    let (first, first_file) = runs.first()?;
    let (mut failed, mut setup, mut peer_rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut finding_rows, mut app_rows) = (Vec::new(), Vec::new());
    for (run, file) in &runs {
        failed.extend(failures(run, file));
        setup.extend(setups(run, file));
        peer_rows.extend(peers(run, file));
        finding_rows.extend(findings(run, file));
        app_rows.extend(app(run, file));
    }
    let (mut pacer_plots, mut seen, mut screens) = (Vec::new(), Vec::new(), Vec::new());
    for column in &columns {
        pacer_plots.extend(pacers(column));
        seen.extend(quality::rows(column));
        screens.extend(quality::plots(column));
    }
    let first_captures = first_file.captures();
    let entries: Vec<&CallEntry> = runs.iter().flat_map(|(_, file)| &file.calls).collect();
    let captures = runs.iter().flat_map(|(_, file)| file.captures());
    let rows: Vec<&Agreement> = captures.flat_map(|capture| &capture.agreement).collect();
    Some(Calls {
        seed: first.seed(),
        tried: entries.len(),
        succeeded: entries.iter().filter(|call| call.failure.is_none()).count(),
        left_out,
        disturbed: columns.iter().all(|column| column.is_disturbed()),
        failures: failed,
        setup,
        peers: peer_rows,
        streams: first_captures.iter().flat_map(captured).collect(),
        agreement: first_captures.iter().flat_map(|it| agreement(first_file, it)).collect(),
        compared: rows.len(),
        agreed: rows.iter().filter(|row| row.agrees).count(),
        rates: rates(first_file),
        errors: errors(first_file),
        delays: first_captures.iter().flat_map(|it| delays(first_file, it)).collect(),
        pacers: pacer_plots,
        quality: seen,
        screens,
        verdict: runs.iter().find_map(|(_, file)| verdict(file)),
        began_ms: runs.iter().find_map(|(_, file)| began_ms(file)),
        findings: finding_rows,
        app: app_rows,
    })
}

fn round(value: Option<f64>) -> Option<f64> {
    rounded_if(value, DECIMALS)
}

fn percent(ratio: Option<f64>) -> Option<f64> {
    Some(rounded(ratio? * 100.0, 1))
}

/// The participants of an application and their streams, over the whole run.
fn app(run: &Run, file: &CallFile) -> Vec<AppRow> {
    let mut rows = Vec::new();
    for one in run.summary.calls.iter().flat_map(|calls| &calls.results) {
        if one.section.is_some() {
            continue;
        }
        let metrics = &one.metrics;
        rows.push(AppRow {
            seed: run.seed(),
            name: one.name.clone(),
            sends: sends(file, &one.name),
            setup_ms: round(metrics.setup_ms),
            first_frame_ms: round(metrics.first_frame_ms),
            send_rate_mbps: round(metrics.send_rate_mbps),
            receive_rate_mbps: round(metrics.receive_rate_mbps),
            frame_rate: round(metrics.frame_rate),
            frame_height: round(metrics.frame_height),
            freezes: round(metrics.freeze_count),
            limited_by_bandwidth_percent: percent(metrics.limited_by_bandwidth_ratio),
            concealed_percent: percent(metrics.audio_concealed_ratio),
        });
    }
    rows
}

/// What the stream with this name is, if its participant sends it.
fn sends(file: &CallFile, stream: &str) -> Option<String> {
    let (participant, number) = stream.split_once('/')?;
    let number: usize = number.parse().ok()?;
    let mut own =
        file.peers.iter().filter(|peer| peer.participant.split('/').next() == Some(participant));
    let peer = own.nth(number.checked_sub(1)?)?;
    let encoder = peer.encoder.as_ref()?;
    let layer = peer.layer.as_ref().map(|layer| format!("layer {layer}"));
    let parts = [encoder.mime_type.clone(), layer, encoder.scalability_mode.clone()];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn verdict(file: &CallFile) -> Option<String> {
    match &file.kind {
        Kind::Dump(dump) if !dump.verdict.is_empty() => Some(dump.verdict.clone()),
        Kind::Dump(_) | Kind::Call(_) | Kind::Application(_) | Kind::Link(_) => None,
    }
}

fn began_ms(file: &CallFile) -> Option<f64> {
    match &file.kind {
        Kind::Dump(dump) => dump.began_ms,
        Kind::Call(_) | Kind::Application(_) | Kind::Link(_) => None,
    }
}

fn findings(run: &Run, file: &CallFile) -> Vec<FindingRow> {
    let mut rows = Vec::new();
    for finding in file.findings() {
        rows.push(FindingRow {
            seed: run.seed(),
            stream: finding.stream.clone(),
            part: finding.part.clone(),
            rule: finding.rule.clone(),
            says: finding.says.clone(),
            from_s: finding.from_s,
            to_s: finding.to_s,
            samples: finding.samples.len(),
        });
    }
    rows
}

/// Why calls of a run failed.
fn failures(run: &Run, file: &CallFile) -> Vec<String> {
    let failed = file.calls.iter().filter_map(|call| Some((call.call, call.failure.as_ref()?)));
    failed.map(|(call, cause)| format!("seed {}, call {call}: {cause}", run.seed())).collect()
}

/// One row for each browser, or pair of browsers, that ran the scenario.
pub(super) fn participants(id: &str, columns: &[Column<'_>]) -> Vec<ParticipantsRow> {
    let mut rows = Vec::new();
    for column in columns {
        let first = column.counted.first();
        let Some(calls) = first.and_then(|run| run.summary.calls.as_ref()) else { continue };
        rows.push(ParticipantsRow {
            scenario: id.into(),
            controller: column.controller.into(),
            participants: calls.participants,
            runs: column.counted.len(),
            success_ratio: mean_of_calls(column, "calls.success_ratio"),
            setup_ms: mean_of_calls(column, "calls.setup_ms"),
            first_frame_ms: mean_of_calls(column, "calls.first_frame_ms"),
            rtt_ms: mean_of_calls(column, "calls.rtt_ms"),
            one_way_delay_ms: mean_of_calls(column, "calls.one_way_delay_ms.mean"),
            send_rate_mbps: mean_of_calls(column, "calls.send_rate_mbps"),
            receive_rate_mbps: mean_of_calls(column, "calls.receive_rate_mbps"),
            cpu_percent: percent(mean_of_calls(column, "calls.cpu_cores")),
            memory_mb: mean_of_calls(column, "calls.memory_mb"),
        });
    }
    rows
}

fn mean_of_calls(column: &Column<'_>, path: &str) -> Option<f64> {
    let calls = column.counted.iter().filter_map(|run| run.summary.calls.as_ref());
    round(mean(calls.filter_map(|calls| calls.at(path)).collect()))
}

fn setups(run: &Run, file: &CallFile) -> Vec<SetupRow> {
    let mut rows = Vec::new();
    for peer in &file.peers {
        let Some(setup) = peer.setup_ms else { continue };
        let ready = setup.camera.unwrap_or(setup.joined);
        let found = setup.path_found();
        rows.push(SetupRow {
            seed: run.seed(),
            peer: file.name(peer),
            page_ms: rounded(setup.joined, DECIMALS),
            camera_ms: setup.camera.map(|camera| span(setup.joined, camera)),
            waiting_ms: span(ready, setup.start),
            signalling_ms: setup.described.map(|described| span(setup.start, described)),
            ice_ms: setup.described.zip(found).map(|(described, found)| span(described, found)),
            dtls_ms: found.map(|found| span(found, setup.connected)),
            total_ms: span(setup.start, setup.connected),
            first_frame_ms: peer.first_frame_ms.map(|frame| span(setup.connected, frame)),
            path: peer.candidate_pair.as_ref().map(path).unwrap_or_default(),
        });
    }
    rows
}

fn span(from: f64, to: f64) -> f64 {
    rounded(to - from, DECIMALS)
}

fn path(CandidatePair { local, remote }: &CandidatePair) -> String {
    format!("{} to {}, {}", candidate(local), candidate(remote), local.protocol)
}

fn candidate(of: &Candidate) -> String {
    let address = of.address.as_deref().unwrap_or("hidden");
    format!("{address} ({})", of.candidate_type)
}

fn peers(run: &Run, file: &CallFile) -> Vec<PeerRow> {
    let mut rows = Vec::new();
    for peer in &file.peers {
        let participant = file.participants.iter().find(|it| it.name == peer.participant);
        let memory = participant.and_then(|it| it.memory_bytes);
        let size = peer.intervals.iter().rev().find_map(Interval::frame_size);
        rows.push(PeerRow {
            seed: run.seed(),
            controller: run.record.info.subject.to_string(),
            peer: file.name(peer),
            cpu_percent: percent(participant.and_then(|it| it.cpu_cores)),
            memory_mb: memory.map(|bytes| rounded(bytes as f64 / BYTES_PER_MEGABYTE, 1)),
            encode_ms: mean_over(peer, Interval::encode_ms),
            decode_ms: mean_over(peer, Interval::decode_ms),
            frame_rate: mean_over(peer, Interval::frame_rate),
            frame_size: size.map(|(width, height)| format!("{width} x {height}")),
            freezes: sum_over(peer, Interval::freezes),
            frozen_s: sum_over(peer, Interval::frozen_s),
            limited: peer.limitation_s.map(limited),
        });
    }
    rows
}

fn mean_over(peer: &Peer, value: fn(&Interval) -> Option<f64>) -> Option<f64> {
    round(mean(peer.intervals.iter().filter_map(value).collect()))
}

fn sum_over(peer: &Peer, value: fn(&Interval) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = peer.intervals.iter().filter_map(value).collect();
    if !values.is_empty() { Some(rounded(values.iter().sum(), DECIMALS)) } else { None }
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
    let mut rows = Vec::new();
    let duration_s = span_s(capture);
    for stream in &capture.streams {
        let lost = 100.0 * stream.lost_packets as f64 / stream.sent_packets.max(1) as f64;
        let mbits = stream.received_bytes as f64 * 8.0 / BITS_PER_MEGABIT;
        let delays = stream.delay_ms.as_ref();
        rows.push(StreamRow {
            call: capture.call,
            from: stream.from.clone(),
            to: stream.to.clone(),
            role: stream.role.clone(),
            ssrc: hexadecimal(stream.ssrc),
            packets: stream.sent_packets,
            received_mbps: round(duration_s.map(|seconds| mbits / seconds)),
            lost_percent: rounded(lost, DECIMALS),
            reordered: stream.reordered_packets,
            duplicates: stream.duplicate_packets,
            mean_delay_ms: round(delays.map(|it| it.mean)),
            p50_delay_ms: round(delays.map(|it| it.p50)),
            p95_delay_ms: round(delays.map(|it| it.p95)),
            max_delay_ms: round(delays.map(|it| it.max)),
        });
    }
    rows
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
    let mut rows = Vec::new();
    for capture in file.captures() {
        for compared in &capture.compared {
            let error = streams::error(file, capture.call, compared);
            let ssrcs: Vec<String> = error.ssrcs.iter().copied().map(hexadecimal).collect();
            rows.push(StreamErrorRow {
                peer: end(file, capture.call, compared),
                what: format!("{} {}", error.direction.name(), error.stream),
                ssrcs: ssrcs.join(", "),
                reported_packets: error.reported_packets,
                captured_packets: error.captured_packets,
                error_percent: round(error.payload_error_percent),
                interval_error_percent: round(error.interval_error_percent),
                mid: error.mid,
            });
        }
    }
    rows
}

/// The same counts over time, for the first call. Streams without any packets have no plot.
fn rates(file: &CallFile) -> Vec<RatePlot> {
    let mut plots = Vec::new();
    let Some(capture) = file.captures().first() else { return plots };
    for compared in &capture.compared {
        if compared.reported_bps.iter().chain(&compared.captured_bps).all(|rate| *rate == 0) {
            continue;
        }
        let error = streams::error(file, capture.call, compared);
        plots.push(RatePlot {
            peer: end(file, capture.call, compared),
            what: format!("{} {}", compared.direction.name(), compared.stream),
            time_s: compared.time_s.iter().map(|time| rounded(*time, DECIMALS)).collect(),
            reported_kbps: kbps(&compared.reported_bps),
            captured_kbps: kbps(&compared.captured_bps),
            error_percent: round(error.payload_error_percent),
            interval_error_percent: round(error.interval_error_percent),
        });
    }
    plots
}

fn kbps(rates: &[u64]) -> Vec<f64> {
    rates.iter().map(|rate| rounded(*rate as f64 / BITS_PER_KILOBIT, DECIMALS)).collect()
}

/// The pacer of each pipeline in a controller's first run.
fn pacers(column: &Column<'_>) -> Vec<PacerPlot> {
    let mut plots = Vec::new();
    let file = column.counted.iter().find_map(|run| run.record.call.as_ref());
    let Some(file) = file else { return plots };
    for peer in &file.peers {
        let plot = PacerPlot {
            controller: column.controller.into(),
            peer: file.name(peer),
            time_s: peer.intervals.iter().map(|it| rounded(it.time_s, DECIMALS)).collect(),
            queue_ms: over_intervals(peer, Interval::pacer_queue_ms),
            encoder_mbps: over_intervals(peer, encoder_mbps),
        };
        // A browser does not tell what waits in its pacer.
        if plot.queue_ms.iter().any(Option::is_some) {
            plots.push(plot);
        }
    }
    plots
}

fn over_intervals(peer: &Peer, value: fn(&Interval) -> Option<f64>) -> Vec<Option<f64>> {
    peer.intervals.iter().map(|interval| round(value(interval))).collect()
}

/// Target bitrate of the encoder.
fn encoder_mbps(interval: &Interval) -> Option<f64> {
    Some(interval.target_bps()? / BITS_PER_MEGABIT)
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
    let mut rows = capture.agreement.clone();
    for row in &mut rows {
        row.subject.insert_str(0, &of_call(file, capture.call));
    }
    rows
}

/// Delay histogram of each video stream with packets.
fn delays(file: &CallFile, capture: &Capture) -> Vec<DelayPlot> {
    let call = of_call(file, capture.call);
    let mut plots = Vec::new();
    for stream in capture.streams.iter().filter(|stream| stream.role == "video") {
        if stream.delay_counts.iter().any(|count| *count > 0) {
            plots.push(DelayPlot {
                stream: format!("{call}{} from {} to {}", stream.role, stream.from, stream.to),
                counts: stream.delay_counts.clone(),
            });
        }
    }
    plots
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use weir_record::calls::file::CapturedInterval;

    fn file() -> CallFile {
        let value = json!({
            "disturbed": false,
            "participants": [{ "name": "a", "cpu_cores": 0.5, "memory_bytes": 300_000_000 }],
            "peers": [{
                "call": 1, "participant": "a",
                "setup_ms": {
                    "camera": 400.0, "joined": 300.0, "start": 450.0, "ice": 500.0,
                    "connected": 580.0,
                },
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
                        "time_s": [0.5, 1.0], "reported_bps": [1_000_000, 2_000_000],
                        "captured_bps": [900_000, 2_100_000] },
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
                serde_json::from_value(json!({ "disturbed": false, "captures": captures }))
                    .unwrap();
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
