//! Metrics of the nodes of a Wi-Fi cell.

use super::declared::declare;

declare! {
    /// Metrics of nodes as senders, over the nodes of one table together. `None` if nothing was
    /// sent, or if the value was not measured.
    pub struct NodeMetrics in "cell.NODE." {
        /// Rate of the IP bytes that the node had to send.
        offered_mbps: f64 = "Mbit/s", Neither, [];
        /// Rate of the IP bytes that arrived.
        delivered_mbps: f64 = "Mbit/s", Higher, [];
        /// Packets given up after their last attempt, over all whose outcome was known.
        loss_ratio: Option<f64> = "ratio", Lower, [];
        /// Packets that a queue dropped, over all whose outcome was known.
        drop_ratio: Option<f64> = "ratio", Lower, [];
        /// Mean number of transmissions of a packet.
        attempts_per_packet: Option<f64> = "", Lower, [];
        /// Failed transmissions over all transmissions.
        failure_ratio: Option<f64> = "ratio", Lower, [];
        /// Share of the time that the node's frames are on the air, acknowledgements included.
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
