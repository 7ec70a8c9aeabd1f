//! Converts the captures of a call to the format of `call.json`.

use weir::units::TimeDelta;
use weir_record::calls::delays::Delays;
use weir_record::calls::file;

use super::agreement;
use super::counted::Compared;
use super::ends::{CallEnds, CapturedInterval, PeerStream};
use crate::measure::capture::{Stream, Windowed};
use crate::message::Peer;

/// Returns the captures of the call with this number.
pub fn emit(call: usize, ends: &CallEnds<'_>) -> file::Capture {
    let streams = Peer::ALL.into_iter().flat_map(|from| ends.streams(from));
    let intervals = Peer::ALL.map(|peer| ends.intervals(peer).iter().map(interval).collect());
    file::Capture {
        call,
        streams: streams.map(|stream| stream_entry(&stream)).collect(),
        intervals: intervals.into(),
        compared: ends.compared().iter().map(compared_entry).collect(),
        agreement: ends.agreement().into_iter().map(agreement_entry).collect(),
    }
}

fn stream_entry(PeerStream { from, role, stream }: &PeerStream) -> file::Stream {
    file::Stream {
        from: from.name().into(),
        to: from.other().name().into(),
        role: role.name().into(),
        ssrc: stream.ssrc,
        payload_types: stream.payload_types.clone(),
        sent_packets: stream.sent.within.packets,
        sent_bytes: stream.sent.within.bytes,
        received_packets: stream.received.within.packets,
        received_bytes: stream.received.within.bytes,
        lost_packets: stream.lost,
        reordered_packets: stream.reordered,
        duplicate_packets: stream.duplicates,
        delay_ms: delays(stream),
        delay_counts: stream.delay_bins().into(),
    }
}

fn compared_entry(compared: &Compared) -> file::Compared {
    let Compared { reported, captured: Windowed { within, .. }, intervals, .. } = compared;
    file::Compared {
        peer: compared.peer.name().into(),
        direction: compared.direction,
        stream: compared.counted.name().into(),
        mid: compared.mid.clone(),
        ssrcs: compared.ssrcs.clone(),
        reported_packets: reported.packets,
        captured_packets: within.packets,
        reported_payload_bytes: compared.knows_payload.then_some(reported.bytes),
        captured_payload_bytes: compared.knows_payload.then_some(within.bytes),
        time_s: intervals.iter().map(|it| it.end.as_secs_f64()).collect(),
        reported_bps: intervals.iter().map(|it| it.reported.as_bps()).collect(),
        captured_bps: intervals.iter().map(|it| it.captured.as_bps()).collect(),
    }
}

fn agreement_entry(row: agreement::WitnessComparison) -> file::Agreement {
    file::Agreement {
        subject: row.subject,
        quantity: row.quantity.into(),
        witness: row.witness.into(),
        witnessed: row.witnessed,
        captured: row.captured,
        error: row.error,
        limit: row.limit,
        agrees: row.agrees,
    }
}

/// One-way delays of the stream's packets; `None` if nothing arrived.
fn delays(stream: &Stream) -> Option<Delays> {
    let mean = milliseconds(stream.mean_delay()?);
    let last = stream.delays.len() - 1;
    let [min, p50, p95, p99, max] = [0.0, 0.5, 0.95, 0.99, 1.0]
        .map(|share| milliseconds(stream.delays[(share * last as f64).round() as usize]));
    Some(Delays { mean, min, p50, p95, p99, max })
}

fn milliseconds(delay: TimeDelta) -> f64 {
    delay.as_nanos() as f64 / 1e6
}

fn interval(captured: &CapturedInterval) -> file::CapturedInterval {
    let seconds = (captured.end - captured.start).as_secs_f64();
    let [send_bps, receive_bps] = [captured.sent_bytes, captured.received_bytes]
        .map(|bytes| Some((bytes as f64 * 8.0 / seconds).round()));
    file::CapturedInterval {
        time_s: captured.end.as_secs_f64(),
        send_bps,
        receive_bps,
        loss_ratio: captured.loss_ratio,
    }
}
