//! What is known of each metric before anything runs: which value is the better one, and what there
//! must be for it to have a value.

/// Which of two values of a metric is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The higher one.
    Higher,
    /// The lower one.
    Lower,
    /// Neither: it says what was done, not how well.
    Neither,
}

/// What there must be for a metric to have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The flow is a media flow, so it has a controller and feedback.
    Media,
    /// The flow is a media flow with `repair`, so its receiver shows the video.
    Repair,
    /// The flow is a TCP flow.
    Tcp,
    /// A bottleneck on the flow's way has a limited capacity.
    Capacity,
    /// That capacity changes.
    Change,
    /// Two media flows or more go the way of the first flow.
    Rivals,
}

/// A metric, or all that stand below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// `rtt_ms` stands for `rtt_ms.mean` and all others below it.
    pub path: &'static str,
    /// Which value is the better one.
    pub better: Better,
    /// What there must be.
    pub needs: &'static [Need],
}

const fn declare(path: &'static str, better: Better, needs: &'static [Need]) -> Declared {
    Declared { path, better, needs }
}

use Better::{Higher, Lower, Neither};

/// Every metric of a flow, and of all flows together.
pub const DECLARED: &[Declared] = &[
    declare("utilization", Higher, &[Need::Capacity]),
    declare("target_utilization", Neither, &[Need::Media, Need::Capacity]),
    declare("rate_mbps.mean", Higher, &[]),
    declare("rate_mbps.std", Lower, &[]),
    declare("queuing_delay_ms", Lower, &[]),
    declare("rtt_ms", Lower, &[Need::Media]),
    declare("rtt_above_min_ms", Lower, &[Need::Media]),
    declare("loss_ratio", Lower, &[]),
    declare("feedback_ratio", Lower, &[Need::Media]),
    declare("responsiveness_s", Lower, &[Need::Media, Need::Capacity, Need::Change]),
    declare("responsiveness_up_s", Lower, &[Need::Media, Need::Capacity, Need::Change]),
    declare("responsiveness_down_s", Lower, &[Need::Media, Need::Capacity, Need::Change]),
    declare("convergence_s", Lower, &[]),
    declare("oscillations_per_min", Lower, &[]),
    declare("target_rate_mbps", Neither, &[Need::Media]),
    declare("late_rate_mbps", Neither, &[Need::Media]),
    declare("media_utilization", Higher, &[Need::Repair, Need::Capacity]),
    declare("media_rate_mbps", Higher, &[Need::Repair]),
    declare("rtx_share", Neither, &[Need::Repair]),
    declare("fec_share", Neither, &[Need::Repair]),
    declare("residual_loss_ratio", Lower, &[Need::Repair]),
    declare("frame_rate", Higher, &[Need::Repair]),
    declare("frame_delay_ms", Lower, &[Need::Repair]),
    declare("freeze_count", Lower, &[Need::Repair]),
    declare("freeze_duration_s", Lower, &[Need::Repair]),
    declare("goodput_mbps.mean", Higher, &[Need::Tcp]),
    declare("goodput_mbps.std", Lower, &[Need::Tcp]),
    declare("retransmitted_packets", Lower, &[Need::Tcp]),
    declare("link", Higher, &[Need::Capacity]),
    declare("fairness", Higher, &[Need::Rivals]),
    declare("cell", Neither, &[]),
];

impl Declared {
    /// What is known of the metric at a dotted path; `None` if no such metric is declared.
    pub fn of(path: &str) -> Option<&'static Self> {
        DECLARED.iter().find(|declared| {
            let below = path.strip_prefix(declared.path);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
    use super::*;
    use serde_json::Value;

    fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
        let Value::Object(members) = value else { return found.push(path.into()) };
        for (key, value) in members {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            leaves(value, &path, found);
        }
    }

    #[test]
    fn every_metric_of_a_flow_is_declared_and_every_declared_one_exists() {
        let full = serde_json::to_value(Metrics::full()).unwrap();
        let mut paths = Vec::new();
        leaves(&full, "", &mut paths);
        assert!(paths.len() > 40, "{paths:?}");
        for path in &paths {
            assert!(Declared::of(path).is_some(), "{path} is not declared");
        }
        let shared = ["link", "fairness", "cell"];
        for declared in DECLARED.iter().filter(|declared| !shared.contains(&declared.path)) {
            let named = |path: &String| Declared::of(path).is_some_and(|of| of == declared);
            assert!(paths.iter().any(named), "{} is no metric", declared.path);
        }
        assert!(Declared::of("rtt_msx").is_none());
    }

    #[test]
    fn a_path_below_a_declared_one_is_declared_with_it() {
        assert_eq!(Declared::of("rtt_ms.p95").map(|of| of.better), Some(Lower));
        assert_eq!(Declared::of("rate_mbps.mean").map(|of| of.better), Some(Higher));
        assert_eq!(Declared::of("fairness.ratio_20s.min").map(|of| of.path), Some("fairness"));
    }
}
