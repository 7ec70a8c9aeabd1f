//! What is said of many delays.

use serde::{Deserialize, Serialize};
use weir_metrics::{mean, percentile};

/// One-way delay of a stream's packets in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delays {
    /// Mean.
    pub mean: f64,
    /// Minimum.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl Delays {
    /// Of these delays in ms, rounded to a part of a millisecond; `None` if there are none.
    pub fn of(mut delays: Vec<f64>, parts: f64) -> Option<Self> {
        delays.sort_by(f64::total_cmp);
        Some(Self {
            mean: rounded_to(parts, mean(delays.clone())?),
            min: rounded_to(parts, *delays.first()?),
            p50: rounded_to(parts, percentile(&delays, 0.5)?),
            p95: rounded_to(parts, percentile(&delays, 0.95)?),
            p99: rounded_to(parts, percentile(&delays, 0.99)?),
            max: rounded_to(parts, *delays.last()?),
        })
    }
}

fn rounded_to(parts: f64, value: f64) -> f64 {
    (value * parts).round() / parts
}
