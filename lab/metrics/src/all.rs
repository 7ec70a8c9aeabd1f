//! All declared metrics, and the look-up of one by its dotted path.

use super::{
    Better, CallMetrics, CallSuccess, Declared, Fairness, ForwardingMetrics, LinkSummary, Metrics,
    NodeMetrics, ParticipantMetrics, QualityMetrics, SpeechMetrics, TerminalMetrics,
    TransferMetrics, VideoMetrics,
};

/// Tables of metrics of a flow.
pub const FLOW: [&[Declared]; 6] = [
    Metrics::DECLARED,
    VideoMetrics::DECLARED,
    QualityMetrics::DECLARED,
    SpeechMetrics::DECLARED,
    TransferMetrics::DECLARED,
    ForwardingMetrics::DECLARED,
];
/// Tables of metrics of all flows together.
pub const SHARED: [&[Declared]; 2] = [LinkSummary::DECLARED, Fairness::DECLARED];
/// Table of metrics of the nodes of a Wi-Fi cell.
pub const NODE: [&[Declared]; 1] = [NodeMetrics::DECLARED];
/// Table of metrics of the terminals of a cellular cell.
pub const TERMINAL: [&[Declared]; 1] = [TerminalMetrics::DECLARED];
/// Tables of metrics of all calls together.
pub const CALL: [&[Declared]; 2] = [CallSuccess::DECLARED, CallMetrics::DECLARED];
/// Table of metrics of a participant.
pub const PARTICIPANT: [&[Declared]; 1] = [ParticipantMetrics::DECLARED];

impl Declared {
    /// All metrics of a summary.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        FLOW.into_iter()
            .chain(SHARED)
            .chain(NODE)
            .chain(TERMINAL)
            .chain(CALL)
            .chain(PARTICIPANT)
            .flatten()
    }

    /// The declaration of the metric at a dotted path; `None` if there is none.
    pub fn of(path: &str) -> Option<&'static Self> {
        let general = general(path);
        Self::all().find(|declared| {
            let below = general.strip_prefix(declared.path);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

impl Better {
    /// Whether higher or lower values at a dotted path are better; `None` if no such metric is
    /// declared. A lower standard deviation is always better.
    pub fn of(path: &str) -> Option<Self> {
        let declared = Declared::of(path)?;
        Some(if path.ends_with(".std") { Self::Lower } else { declared.better })
    }
}

/// The path as declared: with `NODE` for the name of a node, `NAME` for that of a terminal, and
/// without the side of a call.
fn general(path: &str) -> String {
    let mut keys: Vec<&str> = path.split('.').collect();
    match keys.as_slice() {
        ["cell", _, ..] => keys[1] = "NODE",
        ["terminal", _, ..] => keys[1] = "NAME",
        ["calls", "a" | "b", _, ..] => drop(keys.remove(1)),
        _ => {}
    }
    keys.join(".")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::declared::Shape;
    use super::*;

    fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
        let Value::Object(members) = value else { return found.push(path.into()) };
        for (key, value) in members {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            leaves(value, &path, found);
        }
    }

    #[test]
    fn the_declared_parts_of_a_metric_are_those_that_a_summary_has() {
        let mut paths = Vec::new();
        leaves(&serde_json::to_value(Metrics::full()).unwrap(), "", &mut paths);
        assert!(paths.len() > 40, "{paths:?}");
        let declared = FLOW.into_iter().flatten().flat_map(|declared| match declared.parts {
            [] => vec![declared.path.to_string()],
            parts => parts.iter().map(|part| format!("{}.{part}", declared.path)).collect(),
        });
        assert_eq!(declared.collect::<Vec<_>>(), paths);
    }

    #[test]
    fn every_metric_has_a_path_of_its_own_and_a_meaning() {
        let mut paths: Vec<&str> = Declared::all().map(|declared| declared.path).collect();
        let count = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), count);
        for declared in Declared::all() {
            assert!(declared.meaning.trim().ends_with('.'), "{}", declared.path);
        }
    }

    #[test]
    fn a_path_below_a_declared_one_is_declared_with_it() {
        let path = |path: &str| Declared::of(path).map(|of| of.path);
        assert_eq!(path("rtt_ms.p95"), Some("rtt_ms"));
        assert_eq!(path("rtt_msx"), None);
        assert_eq!(path("fairness.ratio_20s.min"), Some("fairness.ratio_20s"));
        assert_eq!(path("link.hops.2"), Some("link.hops"));
        assert_eq!(path("cell.ap.loss_ratio"), Some("cell.NODE.loss_ratio"));
        assert_eq!(path("terminal.pc3.mcs_up"), Some("terminal.NAME.mcs_up"));
        assert_eq!(path("calls.b.one_way_delay_ms.p95"), Some("calls.one_way_delay_ms"));
    }

    #[test]
    fn a_standard_deviation_is_better_low_whatever_it_is_of() {
        assert_eq!(Better::of("rate_mbps.mean"), Some(Better::Higher));
        assert_eq!(Better::of("rate_mbps.std"), Some(Better::Lower));
        assert_eq!(Better::of("nothing.std"), None);
    }
}
