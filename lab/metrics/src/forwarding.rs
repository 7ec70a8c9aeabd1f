//! Metrics of a subscriber of a forwarding server: what the choice of layers cost and brought.

use weir::units::DataSize;
use weir_sim::trace::{Forwarded, ROW_INTERVAL};

use super::declared::declare;

declare! {
    /// Metrics of what a forwarding server did for a subscriber. `None` for other flows.
    #[derive(Default)]
    pub struct ForwardingMetrics in "" {
        /// Choices of another layer per minute. The first choice of a track does not count, nor
        /// those because it was hidden or shown again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layer_switches_per_min: Option<f64> = "1/min", Lower, [Server], title: "Layer switches";
        /// Key frames that the server asked for on behalf of the subscriber, per minute. Requests
        /// of several subscribers for one picture become one at the publisher; here each counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_frames_asked_per_min: Option<f64> = "1/min", Lower, [Server];
        /// Padding over all IP bytes that left the server for the subscriber.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        padding_share: Option<f64> = "ratio", Lower, [Server];
        /// Share of the time in which a track was sent below the best layer that fitted, as the
        /// mean over the tracks. Tracks that are shown alike may change places. What fits is known
        /// in a simulation: the layers that are worth most and take at most 90 % of the
        /// subscriber's share of the bottleneck. Its share is what UDP leaves of the capacity,
        /// divided by the subscribers, media flows and long TCP flows that are active there. In a
        /// Wi-Fi or cellular cell it is what arrives in the same second of a second run with the
        /// same seed. In that run each subscriber is sent as much as its limits allow, without
        /// congestion control.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        below_best_ratio: Option<f64> = "ratio", Lower, [Server],
            title: "Time below the best layer";
        /// Layers sent over the best layers that fitted, each counted from 1 for the lowest.
        /// Larger than 1 if more was sent than fitted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layer_ratio: Option<f64> = "ratio", Neither, [Server];
        /// Freezes that end within 2 s after another layer began, and gaps in which nothing was
        /// sent because the send queue was too long to wait for a key frame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switch_freeze_count: Option<u64> = "", Lower, [Server];
        /// Total duration of these freezes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        switch_freeze_s: Option<f64> = "s", Lower, [Server];
    }
}

/// Values of the rows so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ForwardingMeter {
    rows: i64,
    sum: Forwarded,
    /// Sum of the layers in rows where the best ones are known.
    layers: u64,
    best_layers: u64,
}

impl ForwardingMeter {
    pub(super) fn push(&mut self, row: &Forwarded) {
        self.rows += 1;
        self.sum.padding += row.padding;
        self.sum.switches += row.switches;
        self.sum.key_frames += row.key_frames;
        self.sum.fitting += row.fitting;
        self.sum.below += row.below;
        self.sum.switch_freezes += row.switch_freezes;
        self.sum.switch_frozen += row.switch_frozen;
        if let Some(best) = row.best_layers {
            self.layers += row.layers;
            self.best_layers += best;
        }
    }

    /// `sent` is what left the server.
    pub(super) fn finish(&self, sent: DataSize) -> ForwardingMetrics {
        if self.rows == 0 {
            return ForwardingMetrics::default();
        }
        let minutes = (ROW_INTERVAL * self.rows).as_secs_f64() / 60.0;
        let sum = &self.sum;
        ForwardingMetrics {
            layer_switches_per_min: Some(sum.switches as f64 / minutes),
            key_frames_asked_per_min: Some(sum.key_frames as f64 / minutes),
            padding_share: ratio(sum.padding.as_bytes(), sent.as_bytes()),
            below_best_ratio: ratio(sum.below, sum.fitting),
            layer_ratio: ratio(self.layers, self.best_layers),
            switch_freeze_count: Some(sum.switch_freezes),
            switch_freeze_s: Some(sum.switch_frozen.as_secs_f64()),
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    if whole > 0 { Some(part as f64 / whole as f64) } else { None }
}

#[cfg(test)]
mod tests {
    use weir::units::TimeDelta;
    use weir_sim::trace::Row;

    use super::*;
    use crate::Metrics;

    fn forwarded() -> Forwarded {
        let mut row = Forwarded::default();
        row.padding = DataSize::from_bytes(30);
        (row.switches, row.key_frames) = (1, 2);
        (row.layers, row.best_layers) = (2, Some(3));
        (row.fitting, row.below) = (2, 1);
        (row.switch_freezes, row.switch_frozen) = (1, TimeDelta::from_millis(200));
        row
    }

    #[test]
    fn a_hand_made_subscriber_has_the_metrics_worked_out_by_hand() {
        let row =
            Row::default().with_sent(DataSize::from_bytes(1_000)).with_forwarded(Some(forwarded()));
        // 20 rows are a second: a switch in each is 1200 a minute.
        let metrics = Metrics::of(&[row; 20], &[]).forwarding;
        assert_eq!(metrics.layer_switches_per_min, Some(1_200.0));
        assert_eq!(metrics.key_frames_asked_per_min, Some(2_400.0));
        assert_eq!(metrics.padding_share, Some(0.03));
        assert_eq!(metrics.below_best_ratio, Some(0.5));
        assert_eq!(metrics.layer_ratio, Some(2.0 / 3.0));
        assert_eq!((metrics.switch_freeze_count, metrics.switch_freeze_s), (Some(20), Some(4.0)));
    }

    #[test]
    fn a_flow_that_is_no_subscriber_has_no_such_metrics_in_its_summary() {
        let metrics = Metrics::of(&[Row::default()], &[]);
        assert_eq!(metrics.forwarding, ForwardingMetrics::default());
        let text = serde_json::to_string(&metrics).unwrap();
        assert!(!text.contains("layer") && !text.contains("switch"), "{text}");
    }

    #[test]
    fn without_a_known_capacity_there_is_nothing_to_be_below() {
        let mut unknown = forwarded();
        (unknown.best_layers, unknown.fitting, unknown.below) = (None, 0, 0);
        let row = Row::default().with_forwarded(Some(unknown));
        let metrics = Metrics::of(&[row; 20], &[]).forwarding;
        assert_eq!((metrics.below_best_ratio, metrics.layer_ratio), (None, None));
    }
}
