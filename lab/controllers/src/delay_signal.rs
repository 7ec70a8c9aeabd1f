//! What both historical controllers share: the detector's signal, and the states of the rate
//! control that it drives. `gcc` of the library has a file of its own, which may change with
//! libwebrtc; these do not change any more [GCC §5.5] [BARI §remote rate controller, Figure 2].

/// State of the bottleneck queue, as the delay gradient shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BandwidthUsage {
    /// The queue grows.
    Overuse,
    /// The queue neither grows nor shrinks.
    Normal,
    /// The queue drains.
    Underuse,
}

/// The states of the rate control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateState {
    /// Queues are draining: the estimate stays constant.
    Hold,
    /// No congestion: the estimate grows.
    Increase,
    /// Congestion: the estimate is reduced.
    Decrease,
}

impl RateState {
    /// The state transition table, unchanged since 2013 [GCC §5.5]
    /// [BARI §remote rate controller, Figure 2].
    pub(crate) fn next(self, usage: BandwidthUsage) -> Self {
        match (self, usage) {
            (_, BandwidthUsage::Overuse) => Self::Decrease,
            (Self::Hold | Self::Increase, BandwidthUsage::Normal) => Self::Increase,
            (Self::Decrease, BandwidthUsage::Normal) | (_, BandwidthUsage::Underuse) => Self::Hold,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Increase => "increase",
            Self::Decrease => "decrease",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::BandwidthUsage::{Normal, Overuse, Underuse};
    use super::RateState::{Decrease, Hold, Increase};

    // [GCC §5.5] [BARI §remote rate controller, Figure 2]: the complete table.
    #[test]
    fn the_states_follow_the_table() {
        let table = [
            (Overuse, [(Hold, Decrease), (Increase, Decrease), (Decrease, Decrease)]),
            (Normal, [(Hold, Increase), (Increase, Increase), (Decrease, Hold)]),
            (Underuse, [(Hold, Hold), (Increase, Hold), (Decrease, Hold)]),
        ];
        for (usage, row) in table {
            for (state, next) in row {
                assert_eq!(state.next(usage), next, "{usage:?} in {state:?}");
            }
        }
    }
}
