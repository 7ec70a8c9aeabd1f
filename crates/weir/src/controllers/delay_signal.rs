//! What the controllers that watch the delay gradient have in common: the detector's signal and the
//! states of the rate control that it drives [GCC §5.5] [BARI §remote rate controller, Figure 2].

/// What the delay gradient says of the bottleneck.
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
    /// Built-up queues drain: the estimate stays.
    Hold,
    /// No congestion: the estimate grows.
    Increase,
    /// Congestion: the estimate is cut.
    Decrease,
}

impl RateState {
    /// The table of transitions, the same since 2013 [GCC §5.5] [BARI §remote rate controller, Figure 2].
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

    // [GCC §5.5] [BARI §remote rate controller, Figure 2], the whole table.
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
