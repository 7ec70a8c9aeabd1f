//! The controller's values as a `GstStructure`, for the signal and for `stats`.

use weir::controller::Metrics;
use weir::media_sender::TargetChange;
use weir::units::Timestamp;

use crate::sender::PacedSender;

/// The structure of the signal `target-changed`.
pub(super) fn target_change(now: Timestamp, change: &TargetChange) -> gst::Structure {
    let mut structure = gst::Structure::builder("weir-target")
        .field("time", nanoseconds(now))
        .field("from", change.from.as_bps())
        .field("target", change.to.as_bps())
        .build();
    add_metrics(&mut structure, &change.metrics);
    structure
}

/// The structure of the property `stats`.
pub(super) fn stats(now: Timestamp, sender: &PacedSender) -> gst::Structure {
    let (target, counts) = (sender.target(), sender.counts());
    let mut structure = gst::Structure::builder("weir-stats")
        .field("time", nanoseconds(now))
        .field("target", target.bitrate.as_bps())
        .field("source-target", target.source_bitrate.as_bps())
        .field("pacing-rate", target.pacing_rate.as_bps())
        .field("queued-bytes", sender.queued().as_bytes())
        .field("feedback", sender.feedback().map_or("none", |kind| kind.name()))
        .field("packets-sent", counts.packets_sent)
        .field("bytes-sent", counts.bytes_sent)
        .field("padding-packets-sent", counts.padding_packets_sent)
        .field("probes", counts.probes)
        .field("unpaced-packets", counts.unpaced_packets)
        .field("feedback-packets", counts.feedback_packets)
        .field("packets-lost", counts.packets_lost)
        .field("packets-discarded", counts.packets_discarded)
        .field("retransmissions-discarded", counts.retransmissions_discarded)
        .field("repairs-given-up", counts.repairs_given_up)
        .field("key-frame-requests-ignored", counts.key_frame_requests_ignored)
        .build();
    if let Some(window) = target.window {
        structure.set("congestion-window-bytes", window.congestion_window.as_bytes());
        structure.set("window-available-bytes", window.available.as_bytes());
    }
    add_metrics(&mut structure, &sender.metrics());
    structure
}

/// Adds the metrics under the names of Weir's records. Those without a value are left out.
fn add_metrics(structure: &mut gst::Structure, metrics: &Metrics) {
    structure.set("reason", metrics.reason.as_str());
    structure.set("state", metrics.state);
    structure.set("loss_ratio", metrics.loss_ratio);
    if let Some(rtt) = metrics.rtt {
        structure.set("rtt_ms", rtt.as_millis_f64());
    }
    if let Some(delay) = metrics.queuing_delay {
        structure.set("queuing_delay_ms", delay.as_millis_f64());
    }
    if let Some(bitrate) = metrics.acknowledged_bitrate {
        structure.set("acknowledged_bps", bitrate.as_bps_f64());
    }
    for &(name, value) in metrics.signals.iter() {
        structure.set(name, value);
    }
}

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(0)
}
