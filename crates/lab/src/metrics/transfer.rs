//! Metrics of a TCP flow: what its application got of what the network carried.

use serde::{Deserialize, Serialize};
use weir::units::DataSize;
use weir_sim::trace::{Row, Transfer};

use super::{MeanStd, rate_over};

/// `None` where the flow is not TCP, or nobody knows what it transferred.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransferMetrics {
    /// Payload that the receiving application got: mean over the time, standard deviation of whole
    /// seconds.
    #[serde(default)]
    pub goodput_mbps: Option<MeanStd>,
    /// Packets that the sender sent again.
    #[serde(default)]
    pub retransmitted_packets: Option<u64>,
}

impl TransferMetrics {
    /// Metrics over rows of one flow.
    pub(super) fn of(rows: &[Row]) -> Self {
        let transfers: Vec<Transfer> = rows.iter().filter_map(|row| row.transfer).collect();
        if transfers.is_empty() {
            return Self::default();
        }
        let goodputs: Vec<DataSize> = transfers.iter().map(|transfer| transfer.goodput).collect();
        let again = transfers.iter().map(|transfer| transfer.retransmitted_packets);
        Self { goodput_mbps: rate_over(&goodputs), retransmitted_packets: Some(again.sum()) }
    }

    /// Values for all, to look up paths in.
    pub(super) fn full() -> Self {
        Self { goodput_mbps: Some(MeanStd { mean: 0.0, std: 0.0 }), retransmitted_packets: Some(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(goodput: u64, retransmitted_packets: u64) -> Row {
        let goodput = DataSize::from_bytes(goodput);
        Row { transfer: Some(Transfer { goodput, retransmitted_packets }), ..Row::default() }
    }

    #[test]
    fn a_hand_made_transfer_has_the_metrics_worked_out_by_hand() {
        // A second at 1 Mbit/s, a second at 3.
        let rows = [vec![row(6_250, 0); 20], vec![row(18_750, 2); 20]].concat();
        let metrics = TransferMetrics::of(&rows);
        assert_eq!(metrics.goodput_mbps, Some(MeanStd { mean: 2.0, std: 1.0 }));
        assert_eq!(metrics.retransmitted_packets, Some(40));
    }

    #[test]
    fn a_flow_that_is_not_tcp_has_no_such_metrics() {
        assert_eq!(TransferMetrics::of(&[Row::default()]), TransferMetrics::default());
    }
}
