//! The running call or link in Prometheus's text format.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4. Names end in base
//! units.

use std::fmt::Write as _;

use serde_json::Value;

use super::job::{Job, JobState};

/// A metric of a direction of a hop: name, meaning, key in the status, factor to the base unit.
const WAY: &[(&str, &str, &str, f64)] = &[
    ("weir_link_capacity_bits_per_second", "Capacity of the hop.", "capacity_mbps", 1e6),
    ("weir_link_rate_bits_per_second", "Rate that arrived over the last second.", "rate_mbps", 1e6),
    ("weir_link_loss_ratio", "Share of packets lost over the last second.", "loss_ratio", 1.0),
    ("weir_link_delay_seconds", "Propagation delay plus queuing delay.", "delay_ms", 1e-3),
    ("weir_link_queuing_delay_seconds", "Queuing delay.", "queuing_delay_ms", 1e-3),
];

/// A metric of a peer of a call: name, meaning, place in the interval, factor to the base unit.
const PEER: &[(&str, &str, &str, f64)] = &[
    (
        "weir_peer_estimated_bits_per_second",
        "Bandwidth that the browser estimates.",
        "/estimated_bps",
        1.0,
    ),
    ("weir_peer_target_bits_per_second", "Target bitrate of the encoder.", "/target_bps", 1.0),
    ("weir_peer_send_bits_per_second", "Rate of the sent video.", "/send_bps", 1.0),
    ("weir_peer_receive_bits_per_second", "Rate of the received video.", "/receive_bps", 1.0),
    ("weir_peer_round_trip_seconds", "Round-trip time of the last RTCP report.", "/rtt_ms", 1e-3),
    ("weir_peer_sent_frames_per_second", "Frames encoded in each second.", "/sent_frame_rate", 1.0),
    ("weir_peer_received_frames_per_second", "Frames decoded in each second.", "/frame_rate", 1.0),
];

/// The metrics of a job, or only `weir_run_active 0` if none runs.
pub fn text(job: Option<&Job>) -> String {
    let mut out = String::new();
    let running = job.filter(|job| job.state == JobState::Running);
    let labels = running.map_or(String::new(), |job| {
        let (kind, scenario) = (job.kind.name(), escaped(&job.scenario));
        format!("{{kind=\"{kind}\",scenario=\"{scenario}\"}}")
    });
    head(&mut out, "weir_run_active", "Whether a run goes on.");
    line(&mut out, "weir_run_active", &labels, f64::from(u8::from(running.is_some())));
    let Some(job) = running else { return out };
    if let Some(status) = job.statuses.last() {
        head(&mut out, "weir_run_time_seconds", "Time since the start of the run.");
        line(&mut out, "weir_run_time_seconds", "", status["time_s"].as_f64().unwrap_or(0.0));
        links(&mut out, status);
    }
    for (name, meaning, place, factor) in PEER {
        let values = job.newest_stats.iter().filter_map(|((call, peer), interval)| {
            let value = interval.pointer(place)?.as_f64()?;
            Some((format!("{{call=\"{call}\",peer=\"{}\"}}", escaped(peer)), value * factor))
        });
        family(&mut out, name, meaning, values.collect());
    }
    out
}

fn links(out: &mut String, status: &Value) {
    let hops = status["hops"].as_array().map_or(&[][..], Vec::as_slice);
    for (name, meaning, key, factor) in WAY {
        let mut values = Vec::new();
        for (hop, directions) in hops.iter().enumerate() {
            for direction in ["up", "down"] {
                // An unlimited capacity is no number.
                if let Some(value) = directions[direction][key].as_f64() {
                    let labels = format!("{{hop=\"{hop}\",direction=\"{direction}\"}}");
                    values.push((labels, value * factor));
                }
            }
        }
        family(out, name, meaning, values);
    }
}

/// All values of a metric, or nothing.
fn family(out: &mut String, name: &str, meaning: &str, values: Vec<(String, f64)>) {
    if values.is_empty() {
        return;
    }
    head(out, name, meaning);
    for (labels, value) in values {
        line(out, name, &labels, value);
    }
}

fn head(out: &mut String, name: &str, meaning: &str) {
    writeln!(out, "# HELP {name} {meaning}\n# TYPE {name} gauge").expect("a String takes all text");
}

fn line(out: &mut String, name: &str, labels: &str, value: f64) {
    writeln!(out, "{name}{labels} {value}").expect("a String takes all text");
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::job::Kind;
    use super::*;

    fn call() -> Job {
        let mut job = Job::new(1, Kind::Call, "demo/\"x\"", "");
        let direction = json!({ "capacity_mbps": 2.5, "rate_mbps": 1.25, "loss_ratio": 0.0,
                          "delay_ms": 40.0, "queuing_delay_ms": 15.0 });
        let free = json!({ "capacity_mbps": null, "rate_mbps": 0.1, "loss_ratio": 0.5,
                           "delay_ms": 25.0, "queuing_delay_ms": 0.0 });
        let status = json!({ "time_s": 12.5, "hops": [{ "up": direction, "down": free }] });
        job.take(&json!({ "status": status }).to_string());
        let stats = json!({ "call": 0, "peer": "a", "time_s": 12.0, "estimated_bps": 2_000_000,
            "target_bps": 1_500_000, "send_bps": 1, "rtt_ms": 80.0, "sent_frame_rate": 30.0,
            "receive_bps": 3, "frame_rate": 29.0 });
        job.take(&json!({ "stats": stats }).to_string());
        job
    }

    #[test]
    fn a_running_call_has_a_line_for_each_value_in_base_units() {
        let text = text(Some(&call()));
        for line in [
            "weir_run_active{kind=\"call\",scenario=\"demo/\\\"x\\\"\"} 1",
            "weir_run_time_seconds 12.5",
            "# TYPE weir_link_rate_bits_per_second gauge",
            "weir_link_rate_bits_per_second{hop=\"0\",direction=\"up\"} 1250000",
            "weir_link_delay_seconds{hop=\"0\",direction=\"up\"} 0.04",
            "weir_link_loss_ratio{hop=\"0\",direction=\"down\"} 0.5",
            "weir_peer_target_bits_per_second{call=\"0\",peer=\"a\"} 1500000",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(!text.contains("capacity_bits_per_second{hop=\"0\",direction=\"down\"}"));
    }

    #[test]
    fn the_round_trip_time_stays_until_the_next_report() {
        let mut job = call();
        let stats = json!({ "call": 0, "peer": "a", "time_s": 12.5, "rtt_ms": null });
        job.take(&json!({ "stats": stats }).to_string());
        let text = text(Some(&job));
        assert!(
            text.contains("weir_peer_round_trip_seconds{call=\"0\",peer=\"a\"} 0.08"),
            "{text}"
        );
    }

    #[test]
    fn metrics_without_a_run_say_only_that_none_is_active() {
        let mut job = call();
        job.end(None);
        assert_eq!(text(Some(&job)), text(None));
        assert!(text(None).ends_with("weir_run_active 0\n"));
    }

    #[test]
    fn the_dashboard_asks_for_metrics_that_there_are() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/grafana/weir.json");
        let dashboard = std::fs::read_to_string(file).unwrap();
        let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
        let mut asked = Vec::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                asked.push(target["expr"].as_str().unwrap().to_owned());
            }
        }
        let text = text(Some(&call()));
        for expression in &asked {
            let name = expression.split(['{', ' ']).next().unwrap();
            assert!(text.contains(&format!("# TYPE {name} gauge")), "{expression}");
        }
        for (name, ..) in WAY.iter().chain(PEER) {
            assert!(asked.iter().any(|it| it.starts_with(name)), "no panel shows {name}");
        }
    }
}
