//! What limits the calls, as metrics: in Prometheus's text format, and as OTLP in JSON.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4, and
//! <https://opentelemetry.io/docs/specs/otlp/>, version 1. Causes are labels. No name of a room,
//! call or person is: their number has no bound.

use std::fmt::Write as _;

use serde_json::{Value, json};
use weir_analyze::Cause;

use super::calls::Calls;
use super::counters::{Refused, WATCHED};

/// How values of a metric follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It goes up and down.
    Gauge,
    /// It grows from the start of the program.
    Counter,
}

/// A metric with its values.
#[derive(Clone, Debug)]
pub struct Metric {
    pub name: &'static str,
    pub meaning: &'static str,
    pub unit: &'static str,
    pub kind: Kind,
    /// The name of the label, if it has one.
    pub label: Option<&'static str>,
    /// Value of the label, and of the metric.
    pub values: Vec<(&'static str, f64)>,
}

/// All metrics. `refused_tokens` are counted by the listener.
pub fn metrics(calls: &Calls, refused_tokens: u64) -> Vec<Metric> {
    let (ends, connected) = calls.counts();
    let counters = &calls.counters;
    let mut all = vec![
        one("weir_collect_calls", "Ends of calls that are analyzed.", Kind::Gauge, ends as f64),
        one("weir_collect_connected", "Of these, connected ones.", Kind::Gauge, connected as f64),
    ];
    let limited = calls.limited();
    let mut values = Vec::new();
    let mut seconds = Vec::new();
    for (place, cause) in Cause::ALL.into_iter().enumerate() {
        // Nothing is unexplained while a call runs: what is seen and heard is not looked at. Pauses
        // of a cell show in logs of packets only.
        if !matches!(cause, Cause::Unexplained | Cause::AirTime) {
            values.push((cause.name(), limited[place] as f64));
            seconds.push((cause.name(), counters.bad_s[place]));
        }
    }
    all.push(Metric {
        name: "weir_collect_calls_limited",
        meaning: "Ends of calls that a cause limits now.",
        unit: "1",
        kind: Kind::Gauge,
        label: Some("cause"),
        values,
    });
    all.push(Metric {
        name: "weir_collect_bad_seconds_total",
        meaning: "Seconds of calls in which a cause held.",
        unit: "s",
        kind: Kind::Counter,
        label: Some("cause"),
        values: seconds,
    });
    all.push(Metric {
        name: "weir_collect_video_seconds_total",
        meaning: "Seconds of received videos: good, without a new picture, or later than 250 ms.",
        unit: "s",
        kind: Kind::Counter,
        label: Some("seen"),
        values: WATCHED.into_iter().zip(counters.watched_s).collect(),
    });
    for (name, meaning, value) in [
        ("weir_collect_reports_total", "Reports of streams.", counters.reports),
        ("weir_collect_events_total", "Events, reports among them.", counters.events),
        ("weir_collect_bytes_total", "Bytes of events.", counters.bytes),
        ("weir_collect_joined_total", "Ends of calls that began.", counters.joined),
        ("weir_collect_ended_total", "Ends of calls that ended.", counters.ended),
        ("weir_collect_write_errors_total", "Writes that failed.", counters.lost_writes),
        ("weir_collect_untold_total", "Messages that a receiver did not take.", counters.untold),
    ] {
        all.push(one(name, meaning, Kind::Counter, value as f64));
    }
    let mut refused = Vec::new();
    for why in Refused::ALL {
        let own = if why == Refused::Token { refused_tokens } else { 0 };
        let count = own + counters.refused.get(&why).copied().unwrap_or(0);
        refused.push((why.name(), count as f64));
    }
    all.push(Metric {
        name: "weir_collect_refused_total",
        meaning: "Requests and messages that were refused.",
        unit: "1",
        kind: Kind::Counter,
        label: Some("reason"),
        values: refused,
    });
    all
}

fn one(name: &'static str, meaning: &'static str, kind: Kind, value: f64) -> Metric {
    let unit = if name.contains("bytes") { "By" } else { "1" };
    Metric { name, meaning, unit, kind, label: None, values: vec![("", value)] }
}

/// In Prometheus's text format.
pub fn text(metrics: &[Metric]) -> String {
    let mut out = String::new();
    for metric in metrics {
        let name = metric.name;
        let kind = if metric.kind == Kind::Gauge { "gauge" } else { "counter" };
        let head = format!("# HELP {name} {}\n# TYPE {name} {kind}\n", metric.meaning);
        out.push_str(&head);
        for (label, value) in &metric.values {
            let labels = metric.label.map_or(String::new(), |it| format!("{{{it}=\"{label}\"}}"));
            writeln!(out, "{name}{labels} {value}").expect("a String takes all text");
        }
    }
    out
}

/// As the body of an OTLP request. Times are in ns since 1970.
pub fn otlp(metrics: &[Metric], started_ns: u128, now_ns: u128) -> Value {
    let mut all = Vec::new();
    for metric in metrics {
        let mut points = Vec::new();
        for (label, value) in &metric.values {
            let mut point = json!({
                "timeUnixNano": now_ns.to_string(), "asDouble": value, "attributes": [],
            });
            if let Some(name) = metric.label {
                point["attributes"] = json!([{ "key": name, "value": { "stringValue": label } }]);
            }
            if metric.kind == Kind::Counter {
                point["startTimeUnixNano"] = started_ns.to_string().into();
            }
            points.push(point);
        }
        let mut it = json!({
            "name": metric.name, "description": metric.meaning, "unit": metric.unit,
        });
        match metric.kind {
            Kind::Gauge => it["gauge"] = json!({ "dataPoints": points }),
            // 2: each value counts from the start.
            Kind::Counter => {
                it["sum"] = json!({
                    "dataPoints": points, "isMonotonic": true, "aggregationTemporality": 2,
                });
            }
        }
        all.push(it);
    }
    let service = json!({ "key": "service.name", "value": { "stringValue": "weir-collect" } });
    let scope = json!({ "name": "weir", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceMetrics": [{
        "resource": { "attributes": [service] },
        "scopeMetrics": [{ "scope": scope, "metrics": all }],
    }] })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::calls::Limits;
    use super::*;

    fn none() -> Vec<Metric> {
        let rejoin = Duration::from_secs(1);
        let limits = Limits { calls: 1, call_bytes: 1, window_s: 1.0, rejoin, told_after_s: 1.0 };
        metrics(&Calls::new(limits), 3)
    }

    #[test]
    fn causes_and_reasons_are_labels_from_the_start() {
        let text = text(&none());
        for line in [
            "# TYPE weir_collect_bad_seconds_total counter",
            "weir_collect_bad_seconds_total{cause=\"uplink_capacity\"} 0",
            "weir_collect_video_seconds_total{seen=\"good\"} 0",
            "weir_collect_calls_limited{cause=\"controller\"} 0",
            "weir_collect_refused_total{reason=\"token\"} 3",
            "weir_collect_calls 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(!text.contains("unexplained"));
    }

    #[test]
    fn counters_and_gauges_are_what_otlp_calls_so() {
        let all = otlp(&none(), 5, 9);
        let all = all["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        for metric in all {
            let is_total = metric["name"].as_str().unwrap().ends_with("_total");
            let kind = if is_total { "sum" } else { "gauge" };
            let point = &metric[kind]["dataPoints"][0];
            assert_eq!(point["timeUnixNano"], "9", "{metric}");
            assert_eq!(point.get("startTimeUnixNano").is_some(), is_total, "{metric}");
        }
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_there_are() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/grafana/collect.json");
        let dashboard: Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let mut asked = String::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                asked += target["expr"].as_str().unwrap();
                asked += " ";
            }
        }
        let mut words: Vec<&str> =
            asked.split(|c: char| !c.is_ascii_lowercase() && c != '_').collect();
        words.retain(|word| word.starts_with("weir_"));
        let all = none();
        for word in &words {
            assert!(all.iter().any(|metric| metric.name == *word), "{word}");
        }
        for metric in &all {
            assert!(words.contains(&metric.name), "no panel shows {}", metric.name);
        }
    }
}
