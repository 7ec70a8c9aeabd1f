//! Metrics of the terminals of a cellular cell.

use super::declared::declare;

declare! {
    /// Metrics of the terminals of one table together, over all their bearers and loads. `None` if
    /// nothing was sent.
    pub struct TerminalMetrics in "terminal.NAME." {
        /// Rate of the IP bytes that came to be sent up.
        offered_up_mbps: f64 = "Mbit/s", Neither, [];
        /// Rate of the IP bytes that came to be sent down.
        offered_down_mbps: f64 = "Mbit/s", Neither, [];
        /// Rate of the IP bytes that the base station received.
        delivered_up_mbps: f64 = "Mbit/s", Higher, [];
        /// Rate of the IP bytes that the terminal received.
        delivered_down_mbps: f64 = "Mbit/s", Higher, [];
        /// Packets that the queues dropped, in both directions.
        dropped_packets: u64 = "packets", Lower, [];
        /// Packets lost on the air, in both directions.
        lost_packets: u64 = "packets", Lower, [];
        /// Share of the uplink's resource blocks, retransmissions included.
        prb_share_up: f64 = "ratio", Neither, [];
        /// Share of the downlink's resource blocks, retransmissions included.
        prb_share_down: f64 = "ratio", Neither, [];
        /// First transmissions of uplink blocks that could not be decoded, over all of them.
        block_error_up: Option<f64> = "ratio", Neither, [];
        /// First transmissions of downlink blocks that could not be decoded, over all of them.
        block_error_down: Option<f64> = "ratio", Neither, [];
        /// Mean modulation and coding scheme of uplink blocks.
        mcs_up: Option<f64> = "", Neither, [];
        /// Mean modulation and coding scheme of downlink blocks.
        mcs_down: Option<f64> = "", Neither, [];
        /// Mean SINR of the uplink, without fading.
        sinr_up_db: Option<f64> = "dB", Neither, [];
        /// Mean SINR of the downlink, without fading.
        sinr_down_db: Option<f64> = "dB", Neither, [];
        /// Mean length of a terminal's uplink queues together.
        queue_up_bytes: Option<f64> = "byte", Lower, [];
        /// Mean length of a terminal's downlink queues together.
        queue_down_bytes: Option<f64> = "byte", Lower, [];
    }
}
