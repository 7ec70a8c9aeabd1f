//! What the captures of a call say, as the record has it.

use serde_json::{Value, json};
use weir::units::TimeDelta;

use super::counted::Compared;
use super::ends::{CapturedInterval, Ends, PeerStream};
use crate::capture::{Stream, Windowed};
use crate::message::Peer;

/// An object of `captures` in `call.json`: of the call with this number.
pub fn emit(call: usize, ends: &Ends<'_>) -> Value {
    let streams = Peer::ALL.into_iter().flat_map(|from| ends.streams(from));
    let intervals = Peer::ALL
        .into_iter()
        .map(|peer| ends.intervals(peer).iter().map(interval).collect::<Vec<_>>());
    json!({
        "call": call,
        "streams": streams.map(|stream| stream_json(&stream)).collect::<Vec<_>>(),
        "intervals": intervals.collect::<Vec<_>>(),
        "compared": ends.compared().iter().map(compared_json).collect::<Vec<_>>(),
        "agreement": ends.agreement(),
    })
}

fn stream_json(PeerStream { from, role, stream }: &PeerStream) -> Value {
    json!({
        "from": from.name(),
        "to": from.other().name(),
        "role": role.name(),
        "ssrc": stream.ssrc,
        "payload_types": stream.payload_types,
        "sent_packets": stream.sent.within.packets,
        "sent_bytes": stream.sent.within.bytes,
        "received_packets": stream.received.within.packets,
        "received_bytes": stream.received.within.bytes,
        "lost_packets": stream.lost,
        "reordered_packets": stream.reordered,
        "duplicate_packets": stream.duplicates,
        "delay_ms": delays(stream),
        "delay_counts": stream.delay_bins().as_slice(),
    })
}

fn compared_json(compared: &Compared) -> Value {
    let Compared { reported, captured: Windowed { within, .. }, intervals, .. } = compared;
    json!({
        "peer": compared.peer.name(),
        "way": compared.way.name(),
        "stream": compared.counted.name(),
        "mid": compared.mid,
        "ssrcs": compared.ssrcs,
        "reported_packets": reported.packets,
        "captured_packets": within.packets,
        "reported_payload_bytes": compared.knows_payload.then_some(reported.bytes),
        "captured_payload_bytes": compared.knows_payload.then_some(within.bytes),
        "time_s": intervals.iter().map(|it| it.end.as_secs_f64()).collect::<Vec<_>>(),
        "reported_bps": intervals.iter().map(|it| it.reported.as_bps()).collect::<Vec<_>>(),
        "captured_bps": intervals.iter().map(|it| it.captured.as_bps()).collect::<Vec<_>>(),
    })
}

/// `null` if nothing arrived.
fn delays(stream: &Stream) -> Value {
    let ms = |delay: TimeDelta| delay.as_nanos() as f64 / 1e6;
    let at = |share: f64| {
        let last = stream.delays.len().saturating_sub(1);
        stream.delays.get((share * last as f64).round() as usize).copied().map(ms)
    };
    let Some(mean) = stream.mean_delay() else { return Value::Null };
    json!({
        "mean": ms(mean),
        "min": at(0.0),
        "p50": at(0.5),
        "p95": at(0.95),
        "p99": at(0.99),
        "max": at(1.0),
    })
}

fn interval(captured: &CapturedInterval) -> Value {
    let seconds = (captured.end - captured.start).as_secs_f64();
    let bps = |bytes: u64| (bytes as f64 * 8.0 / seconds).round();
    json!({
        "time_s": captured.end.as_secs_f64(),
        "send_bps": bps(captured.sent_bytes),
        "receive_bps": bps(captured.received_bytes),
        "loss_ratio": captured.loss_ratio,
    })
}
