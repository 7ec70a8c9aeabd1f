//! Which metrics a dotted path in a scenario names, besides those of a flow.

use std::collections::BTreeMap;

use weir_metrics::declared::{Shape, first_key};
use weir_metrics::{
    CALLS_PREFIX, CallMetrics, CallSuccess, Declared, Fairness, ForwardingMetrics, LinkSummary,
    Metrics, NodeMetrics, PARTICIPANT_PREFIX, ParticipantMetrics, QualityMetrics, SpeechMetrics,
    TerminalMetrics, TransferMetrics, VideoMetrics,
};

use super::Access;
use super::error::{nearest, quoted};

/// What a path in a scenario may name, by what has it.
const KINDS: [(&str, &[Declared]); 13] = [
    ("a flow", Metrics::DECLARED),
    ("its video (repair)", VideoMetrics::DECLARED),
    ("what is seen (quality)", QualityMetrics::DECLARED),
    ("speech (quality)", SpeechMetrics::DECLARED),
    ("TCP", TransferMetrics::DECLARED),
    ("a server's subscriber", ForwardingMetrics::DECLARED),
    ("all flows", LinkSummary::DECLARED),
    ("rivals", Fairness::DECLARED),
    ("a Wi-Fi cell", NodeMetrics::DECLARED),
    ("a cellular cell", TerminalMetrics::DECLARED),
    ("real calls", CallSuccess::DECLARED),
    ("their ends", CallMetrics::DECLARED),
    ("a participant of an application", ParticipantMetrics::DECLARED),
];

/// Metrics that say something of a single second: rates, shares and means. Their comeback can be
/// expected.
pub const EACH_SECOND: [&str; 21] = [
    "rate_mbps.mean",
    "utilization",
    "target_rate_mbps",
    "media_rate_mbps",
    "goodput_mbps.mean",
    "frame_rate",
    "loss_ratio.mean",
    "queuing_delay_ms.mean",
    "rtt_ms.mean",
    "frame_delay_ms.mean",
    "shown_delay_ms.mean",
    "mouth_to_ear_ms.mean",
    "concealed_ratio",
    "vmaf.mean",
    "participant.send_rate_mbps",
    "participant.receive_rate_mbps",
    "participant.sent_frame_rate",
    "participant.frame_rate",
    "participant.frame_height",
    "participant.loss_ratio",
    "participant.rtt_ms",
];

/// Whether a metric says something of a single second.
pub fn is_of_each_second(path: &str) -> bool {
    EACH_SECOND.contains(&path)
}

fn all() -> impl Iterator<Item = &'static Declared> {
    KINDS.iter().flat_map(|(_, declared)| declared.iter())
}

/// All that a participant can be asked, in words.
pub fn of_participants() -> String {
    let mut paths = Vec::new();
    for metric in ParticipantMetrics::DECLARED {
        paths.push(metric.path);
    }
    paths.join(", ")
}

/// What to write in the place of a path that names nothing here: where it has a meaning, the values
/// of a metric that has several, the nearest name, or all metrics by what has them.
pub fn unknown(path: &str) -> String {
    if names_participant(path) {
        let (who, path) = ("an expectation of participants", quoted(path));
        return format!("{path} is for {who}; write participant = \"p2\", or \"every\", too");
    }
    let begin = format!("there is no metric {}", quoted(path));
    let (shape, own) = shape_of(path);
    for (prefix, network) in [("cell.", "a Wi-Fi cell"), ("terminal.", "a cellular cell")] {
        if shape.starts_with(prefix) && all().any(|it| it.path == shape) {
            return format!("{begin}, because the network is not {network} with this name in it");
        }
    }
    let (whole, part) = shape.split_once('.').unwrap_or((&shape, ""));
    for of in all() {
        if !of.parts.is_empty() && (of.path == shape || of.path == whole) {
            let parts = of.parts.join(", ");
            return format!("{begin}; write \"{}.{}\", or one of {parts}", of.path, of.parts[0]);
        }
    }
    let mut candidates = Vec::new();
    for it in all() {
        candidates.extend(it.parts.iter().map(|part| format!("{}.{part}", it.path)));
        if it.parts.is_empty() {
            candidates.push(it.path.to_owned());
        } else if part.is_empty() && !nearest(whole, [it.path]).is_empty() {
            return format!("{begin}; write one such as \"{}.{}\"", it.path, it.parts[0]);
        }
    }
    if let Some(near) = nearest(&shape, candidates.iter().map(String::as_str)).first() {
        let near = near.replace("NODE", own).replace("NAME", own);
        let near = match path.strip_prefix("calls.") {
            Some(_) if !own.is_empty() => near.replace("calls.", &format!("calls.{own}.")),
            _ => near,
        };
        return format!("{begin}; write one such as \"{near}\"");
    }
    let mut kinds = Vec::new();
    for (name, declared) in KINDS {
        let paths: Vec<&str> = declared.iter().map(|it| it.path).collect();
        kinds.push(format!("{name}: {}", paths.join(", ")));
    }
    format!("{begin}; there are, of {}", kinds.join("; of "))
}

/// A path as it is declared, and the name in it: of a node, of a terminal, or of a side of calls.
fn shape_of(path: &str) -> (String, &str) {
    let (prefix, rest) = path.split_once('.').unwrap_or((path, ""));
    let (own, metric) = rest.split_once('.').unwrap_or((rest, ""));
    match prefix {
        "cell" => (format!("cell.NODE.{metric}"), own),
        "terminal" => (format!("terminal.NAME.{metric}"), own),
        "calls" if ["a", "b"].contains(&own) => (format!("calls.{metric}"), own),
        _ => (path.to_owned(), ""),
    }
}

/// Whether a dotted path is a metric of all flows together, and not one of a flow's.
pub fn is_shared(path: &str) -> bool {
    ["link.", "fairness.", "cell.", "terminal."].iter().any(|shared| path.starts_with(shared))
}

/// Whether a dotted path such as `fairness.ratio_20s.min` names a value of all flows together, on a
/// path with this many bottlenecks behind this access network.
pub fn names_shared(path: &str, hops: usize, access: Option<&Access>) -> bool {
    let (part, rest) = first_key(path);
    let (name, metric) = first_key(rest);
    match part {
        "link" => link(hops).at(rest).is_some(),
        "fairness" => Fairness::full().at(rest).is_some(),
        "cell" => {
            let mut groups = access.into_iter().flat_map(Access::wifi_groups);
            groups.any(|(group, _)| group == name) && NodeMetrics::full().at(metric).is_some()
        }
        "terminal" => {
            let cell = access.filter(|access| access.cellular().is_some());
            let mut groups = cell.into_iter().flat_map(|access| &access.groups);
            groups.any(|group| group.name == name) && TerminalMetrics::full().at(metric).is_some()
        }
        _ => false,
    }
}

/// Filled metrics of a path with this many bottlenecks, which have a value each if there are
/// several.
fn link(hops: usize) -> LinkSummary {
    let several = (1..=hops).filter(|_| hops > 1);
    let hops: BTreeMap<String, f64> = several.map(|hop| (hop.to_string(), 0.0)).collect();
    LinkSummary { hops, ..LinkSummary::full() }
}

/// Whether a dotted path such as `calls.a.setup_ms` names a value of all calls together.
pub fn names_calls(path: &str) -> bool {
    let Some(path) = path.strip_prefix(CALLS_PREFIX) else { return false };
    match first_key(path) {
        ("a" | "b", rest) => CallMetrics::full().at(rest).is_some(),
        _ => CallSuccess::full().at(path).is_some() || CallMetrics::full().at(path).is_some(),
    }
}

/// Whether a dotted path such as `participant.frame_rate` names a value of a participant.
pub fn names_participant(path: &str) -> bool {
    let path = path.strip_prefix(PARTICIPANT_PREFIX);
    path.is_some_and(|path| ParticipantMetrics::full().at(path).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_all_flows_names_a_value_or_does_not() {
        for path in ["link.utilization", "fairness.jain", "fairness.ratio_20s.within"] {
            assert!(names_shared(path, 1, None), "{path}");
        }
        assert!(names_shared("link.hops.2", 2, None));
        for path in ["link.hops.2", "link", "fairness.ratio_2s.min", "utilization"] {
            assert!(!names_shared(path, 1, None), "{path}");
        }
    }

    #[test]
    fn a_path_that_names_nothing_is_answered_with_what_there_is() {
        assert!(
            unknown("rtt_ms")
                .ends_with("write \"rtt_ms.mean\", or one of mean, p25, p50, p90, p95, max")
        );
        assert!(unknown("utilisation").ends_with("write one such as \"utilization\""));
        let near = [
            ("rttms.p95", "rtt_ms.p95"),
            ("rttms", "rtt_ms.mean"),
            ("longest_freez_s", "longest_freeze_s"),
            ("calls.longest_freeze", "calls.longest_freeze_s"),
            ("calls.b.setupms", "calls.b.setup_ms"),
            ("calls.succes_ratio", "calls.success_ratio"),
            ("participant.framerate", "participant.frame_rate"),
            ("cell.ap.airtimeshare", "cell.ap.airtime_share"),
            ("link.utilisation", "link.utilization"),
        ];
        for (path, name) in near {
            let answer = unknown(path);
            assert!(answer.ends_with(&format!("write one such as \"{name}\"")), "{answer}");
        }
        let parts = unknown("rate_mbps.p95");
        assert!(parts.ends_with("write \"rate_mbps.mean\", or one of mean, std"), "{parts}");
        let other = unknown("participant.frame_rate");
        assert!(other.ends_with("write participant = \"p2\", or \"every\", too"), "{other}");
        let no_cell = unknown("cell.ap.airtime_share");
        assert!(no_cell.contains("the network is not a Wi-Fi cell"), "{no_cell}");
        let all = unknown("how_good_was_it");
        for kind in
            ["of a flow: utilization, ", "of real calls: ", "freeze_count", "link.utilization"]
        {
            assert!(all.contains(kind), "{all}");
        }
    }

    #[test]
    fn a_path_of_calls_names_a_value_or_does_not() {
        for path in ["calls.success_ratio", "calls.setup_ms", "calls.b.one_way_delay_ms.p95"] {
            assert!(names_calls(path), "{path}");
        }
        for path in
            ["calls", "calls.c.setup_ms", "calls.one_way_delay_ms", "setup_ms", "calls.disturbed"]
        {
            assert!(!names_calls(path), "{path}");
        }
    }

    #[test]
    fn each_metric_of_a_second_is_declared() {
        for path in EACH_SECOND {
            assert!(Metrics::has_path(path) || names_participant(path), "{path}");
        }
    }

    #[test]
    fn a_path_of_a_participant_names_a_value_or_does_not() {
        assert!(names_participant("participant.frame_rate"));
        assert!(!names_participant("participant.nothing") && !names_participant("frame_rate"));
    }
}
