//! Metrics of all flows together: how full the path is, and how the flows share it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::declared::{declare, shape};

declare! {
    /// How full the bottlenecks are.
    pub struct LinkSummary in "link." {
        /// Bits that the bottleneck carried of all flows in the direction of the first flow, over
        /// those that it could carry while any of them was active. With several bottlenecks, the
        /// value of the fullest one.
        utilization: Option<f64> = "ratio", Higher, [Capacity];
        /// The same for each bottleneck, by its number, if there are several. A flow that crosses
        /// several counts in each with the bits of the one that is the narrowest at the time: where
        /// they take turns, the values are too low.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        hops: BTreeMap<String, f64> = "ratio", Higher, [Capacity];
    }
}

declare! {
    /// How media flows share a path while all of them are active. Throughputs are divided by the
    /// priority of the flow.
    pub struct Fairness in "fairness." {
        /// Jain's index of the mean throughputs of the media flows in that direction, divided by
        /// their priorities, while all of them are active: 1 if all are equal, 1/n if one of n
        /// flows has all.
        jain: f64 = "", Higher, [Rivals];
        /// Lowest over highest of these throughputs in windows of 1 s. The values are the mean
        /// over the windows, the minimum, and the share of the windows within which no two flows
        /// differ by more than a factor of three.
        ratio_1s: Option<Ratio> = "ratio", Higher, [Rivals];
        /// The same in windows of 5 s.
        ratio_5s: Option<Ratio> = "ratio", Higher, [Rivals];
        /// The same in windows of 20 s.
        ratio_20s: Option<Ratio> = "ratio", Higher, [Rivals];
    }
}

/// Lowest over highest throughput, over windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Mean.
    pub mean: f64,
    /// In the least fair window.
    pub min: f64,
    /// Share of the windows in which no two flows differ by more than a factor of three.
    pub within: f64,
}

shape!(Ratio: mean, min, within);
