//! Metrics of a TCP flow: goodput of its application, and retransmissions.

use std::ops::Range;

use weir_sim::trace::Transfer;

use super::MeanStd;
use super::column::Column;
use super::declared::declare;
use super::rate::rate_over;

declare! {
    /// Metrics of a transfer. `None` if the flow is not TCP, or if its transfer was not measured.
    #[derive(Default)]
    pub struct TransferMetrics in "" {
        /// Rate of the payload that the receiving application got: mean over the time, standard
        /// deviation over whole seconds.
        goodput_mbps: Option<MeanStd> = "Mbit/s", Higher, [Tcp];
        /// Number of packets that the sender retransmitted.
        retransmitted_packets: Option<u64> = "packets", Lower, [Tcp];
    }
}

/// Transfer values of the rows so far.
#[derive(Clone, Debug, Default)]
pub(super) struct TransferMeter {
    /// Rows of this part, as indices among the flow's rows with a transfer.
    rows: Range<usize>,
    retransmitted_packets: u64,
}

impl TransferMeter {
    /// `index` counts the flow's rows with a transfer.
    pub(super) fn push(&mut self, index: usize, transfer: &Transfer) {
        if self.rows.is_empty() {
            self.rows.start = index;
        }
        self.rows.end = index + 1;
        self.retransmitted_packets += transfer.retransmitted_packets;
    }

    /// `goodput` has the bytes of the flow's rows with a transfer.
    pub(super) fn finish(&self, goodput: &Column) -> TransferMetrics {
        if self.rows.is_empty() {
            return TransferMetrics::default();
        }
        TransferMetrics {
            goodput_mbps: rate_over(goodput, self.rows.clone()),
            retransmitted_packets: Some(self.retransmitted_packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir::units::DataSize;
    use weir_sim::trace::Row;

    use super::*;
    use crate::Metrics;

    fn row(goodput: u64, retransmitted_packets: u64) -> Row {
        let transfer = Transfer::new(DataSize::from_bytes(goodput), retransmitted_packets);
        Row::default().with_transfer(Some(transfer))
    }

    #[test]
    fn a_hand_made_transfer_has_the_metrics_worked_out_by_hand() {
        // A second at 1 Mbit/s, then a second at 3.
        let rows = [vec![row(6_250, 0); 20], vec![row(18_750, 2); 20]].concat();
        let metrics = Metrics::of(&rows, &[]).transfer;
        assert_eq!(metrics.goodput_mbps, Some(MeanStd { mean: 2.0, std: 1.0 }));
        assert_eq!(metrics.retransmitted_packets, Some(40));
    }

    #[test]
    fn a_flow_that_is_not_tcp_has_no_such_metrics() {
        assert_eq!(Metrics::of(&[Row::default()], &[]).transfer, TransferMetrics::default());
    }
}
