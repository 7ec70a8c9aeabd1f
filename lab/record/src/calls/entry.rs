//! Intervals of a browser's reports in the form of `call.json`.

use weir::units::{Bitrate, TimeDelta};

use super::derive::{Interval, Received, Sent};
use super::file;

/// An interval in the form of `call.json`.
pub fn interval_entry(interval: &Interval) -> file::Interval {
    file::Interval {
        time_s: interval.end.as_secs_f64(),
        estimated_bps: interval.estimated_bitrate.map(Bitrate::as_bps),
        sent: interval.sent.as_ref().map(sent_entry),
        received: interval.received.as_ref().map(received_entry),
    }
}

fn sent_entry(sent: &Sent) -> file::SentInterval {
    file::SentInterval {
        target_bps: sent.target_bitrate.map(Bitrate::as_bps),
        send_bps: Some(sent.send_rate.as_bps()),
        sent_media_bps: Some(sent.media_rate.as_bps()),
        sent_again_bps: sent.retransmission_rate.map(Bitrate::as_bps),
        rtt_ms: sent.rtt.map(TimeDelta::as_millis_f64),
        pacer_ms: sent.pacer_delay.map(TimeDelta::as_millis_f64),
        pacer_queue_ms: sent.pacer_queue.map(TimeDelta::as_millis_f64),
        encode_ms: sent.encode_time.map(TimeDelta::as_millis_f64),
        sent_frame_size: sent.frame_size,
        sent_frame_rate: sent.frame_rate,
        sent_qp: sent.qp,
        limitation: Some(sent.limitation.name().into()),
        layers: sent.layers.iter().map(layer_entry).collect(),
    }
}

fn layer_entry(layer: &Sent) -> file::SentLayer {
    file::SentLayer {
        target_bps: layer.target_bitrate.map(Bitrate::as_bps),
        media_bps: layer.media_rate.as_bps(),
        frame_size: layer.frame_size,
        frame_rate: layer.frame_rate,
        qp: layer.qp,
    }
}

fn received_entry(received: &Received) -> file::ReceivedInterval {
    file::ReceivedInterval {
        receive_bps: Some(received.receive_rate.as_bps()),
        media_bps: Some(received.media_rate.as_bps()),
        again_bps: received.retransmission_rate.map(Bitrate::as_bps),
        fec_bps: received.fec_rate.map(Bitrate::as_bps),
        loss_ratio: received.loss_ratio,
        jitter_ms: received.jitter.map(TimeDelta::as_millis_f64),
        jitter_buffer_ms: received.jitter_buffer_delay.map(TimeDelta::as_millis_f64),
        decode_ms: received.decode_time.map(TimeDelta::as_millis_f64),
        freezes: Some(received.freezes),
        frozen_s: Some(received.frozen.as_secs_f64()),
        frame_size: received.frame_size,
        frame_rate: received.frame_rate,
        harmonic_frame_rate: received.harmonic_frame_rate,
        qp: received.qp,
    }
}
