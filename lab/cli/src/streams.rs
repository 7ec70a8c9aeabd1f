//! The table of streams of `weir analyze`, and its JSON.

use serde_json::{Value, json};
use weir_analyze::{ConnectionRow, StreamDirection, StreamFacts, StreamRow};
use weir_metrics::speech_rating;
use weir_record::calls::stats::Kind;

use crate::table::{aligned, number};

const HEAD: [&str; 19] = [
    "stream",
    "codec",
    "by",
    "from",
    "to",
    "kbit/s",
    "size",
    "fps",
    "packets",
    "lost",
    "loss %",
    "jitter ms",
    "gap s",
    "RTT ms",
    "NACK",
    "PLI",
    "key frames",
    "buffer ms",
    "MOS",
];
/// Columns that are left out if no stream has a value in them. The others are always there.
const OPTIONAL: [&str; 11] =
    ["by", "from", "to", "size", "fps", "gap s", "NACK", "PLI", "key frames", "buffer ms", "MOS"];
/// Columns of text.
const TEXTS: usize = 5;

/// The streams, a line each.
pub fn table(rows: &[StreamRow]) -> String {
    let lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut kept = Vec::new();
    for (column, name) in HEAD.iter().enumerate() {
        if !OPTIONAL.contains(name) || lines.iter().any(|line| line[column] != "-") {
            kept.push(column);
        }
    }
    let head: Vec<&str> = kept.iter().map(|column| HEAD[*column]).collect();
    let mut all: Vec<Vec<String>> = Vec::new();
    for line in &lines {
        all.push(kept.iter().map(|column| line[*column].clone()).collect());
    }
    let left = kept.iter().filter(|column| **column < TEXTS).count();
    aligned(&head, &all, left)
}

fn cells(row: &StreamRow) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let whole = |value: Option<u64>| value.map_or("-".into(), |value| value.to_string());
    vec![
        name(row),
        text(&row.codec),
        by(row),
        text(&row.from),
        text(&row.to),
        format!("{:.0}", row.rate_kbps),
        row.size.map_or("-".into(), |(width, height)| format!("{width}x{height}")),
        number(row.frames_per_second, 0),
        row.expected.to_string(),
        whole(row.lost),
        number(row.loss_ratio.map(|loss| loss * 100.0), 1),
        number(row.jitter_ms, 1),
        number(row.longest_gap_s, 1),
        number(row.rtt_ms, 0),
        whole(row.nacks),
        whole(row.picture_losses),
        whole(row.key_frames),
        number(row.jitter_buffer_ms, 0),
        number(mos(row), 1),
    ]
}

/// Mean opinion score that a model expects of received speech in Opus, 1 to 4.5 [G107 Annex B]: by
/// half a round trip with the jitter buffer, and by the share of it that was made up, or was lost.
/// Of other codecs, the model's parameters are not here.
fn mos(row: &StreamRow) -> Option<f64> {
    let codec = row.codec.as_deref().unwrap_or_default();
    let is_opus = codec.eq_ignore_ascii_case("opus");
    if !is_opus || row.direction != StreamDirection::Received || row.expected == 0 {
        return None;
    }
    let delay_ms = row.rtt_ms? / 2.0 + row.jitter_buffer_ms?;
    let rating = speech_rating(delay_ms, row.concealed_ratio.or(row.loss_ratio)?);
    let cubic = rating * (rating - 60.0) * (100.0 - rating) * 7e-6;
    Some((1.0 + 0.035 * rating + cubic).max(1.0))
}

fn name(row: &StreamRow) -> String {
    let layer = row.rid.as_ref().map(|rid| format!(" layer {rid}")).unwrap_or_default();
    format!("{} {} {} {}{layer}", row.connection, kind(row), direction(row), row.ssrc)
}

/// The library, and whether it is hardware.
fn by(row: &StreamRow) -> String {
    let library = row.implementation.as_deref().unwrap_or("");
    match (library, row.is_hardware) {
        ("", None) => "-".into(),
        ("", Some(true)) => "hardware".into(),
        ("", Some(false)) => "software".into(),
        (library, Some(true)) => format!("{library} (hardware)"),
        (library, _) => library.into(),
    }
}

fn kind(row: &StreamRow) -> &'static str {
    match row.kind {
        Kind::Video => "video",
        Kind::Audio => "audio",
    }
}

fn direction(row: &StreamRow) -> &'static str {
    match row.direction {
        StreamDirection::Sent => "sent",
        StreamDirection::Received => "received",
    }
}

/// A stream in JSON. A value that is not known is null.
pub fn stream_json(row: &StreamRow) -> Value {
    json!({
        "connection": row.connection,
        "direction": direction(row),
        "kind": kind(row),
        "ssrc": row.ssrc,
        "layer": row.rid,
        "from": row.from,
        "to": row.to,
        "codec": row.codec,
        "implementation": row.implementation,
        "hardware": row.is_hardware,
        "from_s": row.from_s,
        "duration_s": row.duration_s,
        "rate_kbps": row.rate_kbps,
        "width": row.size.map(|(width, _)| width),
        "height": row.size.map(|(_, height)| height),
        "frames_per_second": row.frames_per_second,
        "packets_expected": row.expected,
        "packets_lost": row.lost,
        "loss_ratio": row.loss_ratio,
        "jitter_ms": row.jitter_ms,
        "longest_gap_s": row.longest_gap_s,
        "rtt_ms": row.rtt_ms,
        "nacks": row.nacks,
        "picture_losses": row.picture_losses,
        "key_frames": row.key_frames,
        "jitter_buffer_ms": row.jitter_buffer_ms,
        "concealed_ratio": row.concealed_ratio,
        "mos": mos(row),
        "packets": row.packets.as_ref().map(packets_json),
    })
}

/// What the packets of a stream say.
fn packets_json(it: &StreamFacts) -> Value {
    let (from_s, to_s) = it.span_s;
    let seconds = to_s - from_s;
    let kbps = (seconds > 0.0).then(|| (it.bytes as f64 * 8.0 / seconds / 1e3).round());
    json!({
        "call_id": it.call_id,
        "payload_types": it.payload_types,
        "clock_hz": it.clock_hz,
        "from_s": from_s,
        "to_s": to_s,
        "packets": it.packets,
        "expected": it.expected,
        "lost": it.lost,
        "reordered": it.reordered,
        "duplicates": it.duplicates,
        "captured_again": it.captured_again,
        "restarts": it.restarts,
        "kbps": kbps,
        "jitter_ms": it.jitter_ms.map(|(mean, _)| mean),
        "largest_jitter_ms": it.jitter_ms.map(|(_, largest)| largest),
        "longest_gap_ms": it.longest_gap.0,
        "longest_gap_at_s": it.longest_gap.1,
        "loss_bursts": it.bursts.0,
        "longest_burst": it.bursts.1,
    })
}

/// How a connection began, in JSON.
pub fn connection_json(row: &ConnectionRow) -> Value {
    json!({
        "connection": row.connection,
        "path": row.path,
        "network": row.network,
        "relay": row.relay,
        "ice_s": row.ice_s,
        "dtls_s": row.dtls_s,
        "first_frame_s": row.first_frame_s,
    })
}
