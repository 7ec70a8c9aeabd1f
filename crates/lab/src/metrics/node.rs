//! Metrics of the nodes of a Wi-Fi cell.

use super::declared::declare;

declare! {
    /// Metrics of nodes as senders, over the nodes of one table together. `None` if nothing was
    /// sent, or if the value was not measured.
    pub struct NodeMetrics in "cell.NODE." {
        /// IP bytes that came to be sent, over the time.
        offered_mbps: f64 = "Mbit/s", Neither, [];
        /// IP bytes that arrived, over the time.
        delivered_mbps: f64 = "Mbit/s", Higher, [];
        /// Packets given up after their last attempt, over all whose fate was known.
        loss_ratio: Option<f64> = "ratio", Lower, [];
        /// Packets that a queue dropped, over all whose fate was known.
        drop_ratio: Option<f64> = "ratio", Lower, [];
        /// Transmissions of a packet.
        attempts_per_packet: Option<f64> = "", Lower, [];
        /// Transmissions that failed, over all.
        failure_ratio: Option<f64> = "ratio", Lower, [];
        /// Time on the air, answers included, over the time.
        airtime_share: f64 = "ratio", Neither, [];
        /// Mean length of the queues.
        queue_bytes: Option<f64> = "byte", Lower, [];
        /// Mean excess delivery rate, EDR of interdigital.
        excess_mbps: Option<f64> = "Mbit/s", Neither, [];
        /// Mean of the capacity that the node measures, MC of interdigital.
        capacity_mbps: Option<f64> = "Mbit/s", Neither, [];
        /// Mean congestion level, CL of interdigital: excess delivery rate over measured capacity.
        congestion_level: Option<f64> = "ratio", Neither, [];
    }
}
