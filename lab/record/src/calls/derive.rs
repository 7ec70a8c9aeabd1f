//! Converts the cumulative counters of `getStats` to values per interval.
//!
//! Differences are divided by the difference of the timestamps, not by the nominal interval. A
//! stream has a value for an interval only if both reports contain the stream. If it starts between
//! them, it does not cover the whole interval.
//!
//! Rates count whole IP packets, like the emulator's:
//! `8 * (payload + RTP headers and padding + packets * (IPv4 + UDP + SRTP tag)) / time`.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::stats::{CandidatePair, InboundRtp, Kind, LimitationReason, OutboundRtp, StatsReport};

/// IPv4 and UDP headers of one packet.
const IP_UDP_HEADER_BYTES: u64 = 20 + 8;

/// A count of IP packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

impl Count {
    /// Counts a packet of this many bytes.
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
}

/// A report with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedReport {
    /// Scenario time; negative before the scenario starts.
    pub time: Timestamp,
    /// The browser's report.
    pub report: StatsReport,
}

/// The values of one peer between two reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Scenario time of the earlier report.
    pub start: Timestamp,
    /// Scenario time of the later report.
    pub end: Timestamp,
    /// The stream that the peer sends.
    pub sent: Option<Sent>,
    /// The stream that the peer receives.
    pub received: Option<Received>,
    /// Round-trip time by STUN, if a check was answered in the interval.
    pub stun_rtt: Option<TimeDelta>,
    /// The browser's bandwidth estimate at the end of the interval.
    pub estimated_bitrate: Option<Bitrate>,
    /// Everything received on the transport, including RTCP and DTLS, excluding STUN.
    pub transport_received: DataSize,
}

/// A sent stream in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sent {
    /// The encoder's target bitrate at the end of the interval.
    pub target_bitrate: Option<Bitrate>,
    /// IP packets of the stream, retransmissions included.
    pub send_rate: Bitrate,
    /// RTP payload without retransmissions.
    pub media_rate: Bitrate,
    /// Share of the payload that was retransmitted.
    pub retransmission_ratio: Option<f64>,
    /// Retransmitted RTP payload.
    pub retransmission_rate: Option<Bitrate>,
    /// Round-trip time of the last RTCP report, if one arrived in the interval.
    pub rtt: Option<TimeDelta>,
    /// Loss ratio of the last RTCP report, if one arrived in the interval.
    pub loss_ratio: Option<f64>,
    /// Mean time that a packet spent in the pacer.
    pub pacer_delay: Option<TimeDelta>,
    /// Largest time that was waiting in the pacer.
    pub pacer_queue: Option<TimeDelta>,
    /// Size of the last encoded frame.
    pub frame_size: Option<(u32, u32)>,
    /// Frames encoded in each second.
    pub frame_rate: Option<f64>,
    /// Mean quantizer of the encoded frames.
    pub qp: Option<f64>,
    /// Mean time to encode a frame.
    pub encode_time: Option<TimeDelta>,
    /// What limits the quality at the end of the interval.
    pub limitation: LimitationReason,
    /// With simulcast, each layer, the smallest picture first.
    pub layers: Vec<Sent>,
}

/// A received stream in one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// IP packets of the stream.
    pub receive_rate: Bitrate,
    /// RTP payload without retransmissions.
    pub media_rate: Bitrate,
    /// Retransmitted RTP payload.
    pub retransmission_rate: Option<Bitrate>,
    /// Payload of forward error correction.
    pub fec_rate: Option<Bitrate>,
    /// Packets received.
    pub packets: u64,
    /// Share of the expected packets that did not arrive. A late packet can make it negative.
    pub loss_ratio: Option<f64>,
    /// Freezes that ended in the interval.
    pub freezes: u64,
    /// Total duration of these freezes. They may begin before the interval.
    pub frozen: TimeDelta,
    /// Size of the last decoded frame.
    pub frame_size: Option<(u32, u32)>,
    /// Frames decoded in each second; complete frames if the receiver decodes none.
    pub frame_rate: Option<f64>,
    /// Harmonic frame rate: the time between frames divided by the sum of its squares. A long gap
    /// lowers it more than it lowers the frame rate.
    pub harmonic_frame_rate: Option<f64>,
    /// Mean quantizer of the decoded frames.
    pub qp: Option<f64>,
    /// Mean time to decode a frame.
    pub decode_time: Option<TimeDelta>,
    /// Interarrival jitter at the end of the interval.
    pub jitter: Option<TimeDelta>,
    /// Mean time that a frame spent in the jitter buffer.
    pub jitter_buffer_delay: Option<TimeDelta>,
}

/// Counts of a stream from the first report that contains it to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Scenario time of the first of these reports.
    pub start: Timestamp,
    /// Scenario time of the last of these reports.
    pub end: Timestamp,
    /// IP packets, retransmissions included.
    pub count: Count,
    /// Whether the bytes are exact. Some browsers do not report what SRTP adds to a packet.
    pub knows_bytes: bool,
    /// Packets missing at the receiver.
    pub lost: i64,
}

/// A change of the browser's bandwidth estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimateChange {
    /// When it was first seen, at most one report interval after the change.
    pub time: Timestamp,
    /// Estimate before.
    pub from: Bitrate,
    /// Estimate after.
    pub to: Bitrate,
}

/// Values of the intervals between successive reports.
///
/// A report whose time is not later than the previous one's gives no interval.
pub fn intervals(reports: &[TimedReport]) -> Vec<Interval> {
    reports.windows(2).filter_map(|pair| between(&pair[0], &pair[1])).collect()
}

/// The changes of a sender's bandwidth estimate, in order. The estimate is the target of the
/// browser's congestion control; the encoder gets less.
pub fn estimate_changes(intervals: &[Interval]) -> Vec<EstimateChange> {
    let estimates =
        intervals.iter().filter_map(|interval| Some((interval.end, interval.estimated_bitrate?)));
    let mut changes = Vec::new();
    let mut previous = None;
    for (time, to) in estimates {
        if let Some(from) = previous.filter(|from| *from != to) {
            changes.push(EstimateChange { time, from, to });
        }
        previous = Some(to);
    }
    changes
}

/// Values between two reports; `None` if the second one is not later.
pub fn between(earlier: &TimedReport, later: &TimedReport) -> Option<Interval> {
    if later.time <= earlier.time {
        return None;
    }
    let (before, after) = (&earlier.report, &later.report);
    let packet_bytes = packet_bytes(after);
    let mut interval = Interval { start: earlier.time, end: later.time, ..Interval::default() };
    if let (Some(before), Some(after)) = (&before.outbound, &after.outbound) {
        interval.sent = sent(before, after, packet_bytes);
    }
    if let Some(sent) = &mut interval.sent {
        let pairs = before.layers.iter().zip(&after.layers);
        sent.layers =
            pairs.filter_map(|(before, after)| self::sent(before, after, packet_bytes)).collect();
    }
    if let (Some(sent), Some(before), Some(after)) =
        (&mut interval.sent, &before.remote_inbound, &after.remote_inbound)
        && after.round_trip_time_measurements > before.round_trip_time_measurements
    {
        sent.rtt = after.round_trip_time.map(seconds);
        sent.loss_ratio = after.fraction_lost;
    }
    if let (Some(before), Some(after)) = (&before.inbound, &after.inbound) {
        interval.received = received(before, after, packet_bytes);
    }
    if let (Some(before), Some(after)) = (&before.pair, &after.pair) {
        transport(&mut interval, before, after);
    }
    Some(interval)
}

fn sent(before: &OutboundRtp, after: &OutboundRtp, packet_bytes: u64) -> Option<Sent> {
    let time = elapsed(before.timestamp, after.timestamp)?;
    let payload = since(before.bytes_sent, after.bytes_sent);
    let headers = since(before.header_bytes_sent, after.header_bytes_sent);
    let packets = since(before.packets_sent, after.packets_sent);
    let again = since_option(before.retransmitted_bytes_sent, after.retransmitted_bytes_sent);
    let frames = since_option(before.frames_encoded, after.frames_encoded);
    let qp_sum = since_option(before.qp_sum, after.qp_sum);
    let pacer_s = growth(before.total_packet_send_delay, after.total_packet_send_delay);
    let encode_s = growth(before.total_encode_time, after.total_encode_time);
    Some(Sent {
        target_bitrate: after.target_bitrate.map(Bitrate::from_bps_f64),
        send_rate: wire_size(payload, headers, packets, packet_bytes) / time,
        media_rate: DataSize::from_bytes(payload.saturating_sub(again.unwrap_or(0))) / time,
        retransmission_ratio: again.and_then(|again| ratio(again as f64, payload)),
        retransmission_rate: again.map(|again| DataSize::from_bytes(again) / time),
        rtt: None,
        loss_ratio: None,
        pacer_delay: pacer_s.and_then(|delay| ratio(delay, packets)).map(seconds),
        pacer_queue: after.pacer_queue.map(|ms| seconds(ms / 1e3)),
        frame_size: after.frame_width.zip(after.frame_height),
        frame_rate: frames.map(|frames| frames as f64 / time.as_secs_f64()),
        qp: qp_sum.zip(frames).and_then(|(sum, frames)| ratio(sum as f64, frames)),
        encode_time: encode_s
            .zip(frames)
            .and_then(|(time, frames)| ratio(time, frames))
            .map(seconds),
        limitation: after.quality_limitation_reason.unwrap_or_default(),
        layers: Vec::new(),
    })
}

fn received(before: &InboundRtp, after: &InboundRtp, packet_bytes: u64) -> Option<Received> {
    let time = elapsed(before.timestamp, after.timestamp)?;
    let payload = since(before.bytes_received, after.bytes_received);
    let headers = since(before.header_bytes_received, after.header_bytes_received);
    let packets = since(before.packets_received, after.packets_received);
    let lost = after.packets_lost.saturating_sub(before.packets_lost);
    let expected = u64::try_from(i128::from(packets) + i128::from(lost)).unwrap_or(0);
    let frames = since_option(before.frames_decoded, after.frames_decoded)
        .or_else(|| since_option(before.frames_received, after.frames_received));
    let frozen_s = growth(before.total_freezes_duration, after.total_freezes_duration);
    let emitted =
        since_option(before.jitter_buffer_emitted_count, after.jitter_buffer_emitted_count);
    let buffered_s = growth(before.jitter_buffer_delay, after.jitter_buffer_delay);
    let again =
        since_option(before.retransmitted_bytes_received, after.retransmitted_bytes_received);
    let fec = since_option(before.fec_bytes_received, after.fec_bytes_received);
    let qp_sum = since_option(before.qp_sum, after.qp_sum);
    let decode_s = growth(before.total_decode_time, after.total_decode_time);
    let gaps_s = growth(before.total_inter_frame_delay, after.total_inter_frame_delay);
    let squares =
        growth(before.total_squared_inter_frame_delay, after.total_squared_inter_frame_delay);
    Some(Received {
        receive_rate: wire_size(payload, headers, packets, packet_bytes) / time,
        media_rate: DataSize::from_bytes(payload.saturating_sub(again.unwrap_or(0))) / time,
        retransmission_rate: again.map(|again| DataSize::from_bytes(again) / time),
        fec_rate: fec.map(|fec| DataSize::from_bytes(fec) / time),
        packets,
        loss_ratio: ratio(lost as f64, expected),
        freezes: since_option(before.freeze_count, after.freeze_count).unwrap_or(0),
        frozen: seconds(frozen_s.unwrap_or(0.0)),
        frame_size: after.frame_width.zip(after.frame_height),
        frame_rate: frames.map(|frames| frames as f64 / time.as_secs_f64()),
        harmonic_frame_rate: gaps_s
            .zip(squares)
            .filter(|(_, squares)| *squares > 0.0)
            .map(|(gaps, squares)| gaps / squares),
        qp: qp_sum.zip(frames).and_then(|(sum, frames)| ratio(sum as f64, frames)),
        decode_time: decode_s
            .zip(frames)
            .and_then(|(time, frames)| ratio(time, frames))
            .map(seconds),
        jitter: after.jitter.map(seconds),
        jitter_buffer_delay: buffered_s
            .zip(emitted)
            .and_then(|(delay, frames)| ratio(delay, frames))
            .map(seconds),
    })
}

/// Counts of a peer's sent stream of this kind, from the first report that contains it to the last.
/// `None` with fewer than two such reports.
pub fn sent_total(reports: &[TimedReport], kind: Kind) -> Option<Total> {
    total(reports, |report| {
        let outbound = report.sent(kind)?;
        Some((outbound.packets_sent, outbound.bytes_sent, outbound.header_bytes_sent, 0))
    })
}

/// The same for the received stream.
pub fn received_total(reports: &[TimedReport], kind: Kind) -> Option<Total> {
    total(reports, |report| {
        let inbound = report.received(kind)?;
        let (payload, headers) = (inbound.bytes_received, inbound.header_bytes_received);
        Some((inbound.packets_received, payload, headers, inbound.packets_lost))
    })
}

/// `counters` returns packets, payload, headers and lost packets of a report, if present.
fn total(
    reports: &[TimedReport],
    counters: impl Fn(&StatsReport) -> Option<(u64, u64, u64, i64)>,
) -> Option<Total> {
    let mut known = reports.iter().filter_map(|timed| Some((timed, counters(&timed.report)?)));
    let (first, before) = known.next()?;
    let (last, after) = known.last()?;
    let packets = since(before.0, after.0);
    let (payload, headers) = (since(before.1, after.1), since(before.2, after.2));
    let size = wire_size(payload, headers, packets, packet_bytes(&last.report));
    Some(Total {
        start: first.time,
        end: last.time,
        count: Count { packets, bytes: size.as_bytes() },
        knows_bytes: last.report.knows_srtp_tag(),
        lost: after.3.saturating_sub(before.3),
    })
}

/// Bytes that SRTP, UDP and IP add to each RTP packet.
fn packet_bytes(report: &StatsReport) -> u64 {
    IP_UDP_HEADER_BYTES + report.srtp_tag_bytes()
}

fn transport(interval: &mut Interval, before: &CandidatePair, after: &CandidatePair) {
    if after.responses_received > before.responses_received {
        interval.stun_rtt = after.current_round_trip_time.map(seconds);
    }
    interval.estimated_bitrate = after.available_outgoing_bitrate.map(Bitrate::from_bps_f64);
    let payload = since(before.bytes_received, after.bytes_received);
    let packets = since(before.packets_received, after.packets_received);
    interval.transport_received = wire_size(payload, 0, packets, IP_UDP_HEADER_BYTES);
}

fn wire_size(payload: u64, headers: u64, packets: u64, packet_bytes: u64) -> DataSize {
    let overhead = packets.saturating_mul(packet_bytes);
    DataSize::from_bytes(payload.saturating_add(headers).saturating_add(overhead))
}

/// Growth of a counter; zero if a hostile page decreases it.
fn since(before: u64, after: u64) -> u64 {
    after.saturating_sub(before)
}

/// Growth of a counter that may be absent. If it was absent before, it started at zero.
fn since_option(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after.map(|after| since(before.unwrap_or(0), after))
}

/// Growth of a sum of seconds.
fn growth(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    after.map(|after| (after - before.unwrap_or(0.0)).max(0.0))
}

fn ratio(part: f64, whole: u64) -> Option<f64> {
    if whole > 0 { Some(part / whole as f64) } else { None }
}

fn seconds(seconds: f64) -> TimeDelta {
    TimeDelta::from_secs_f64(seconds)
}

fn elapsed(before_ms: f64, after_ms: f64) -> Option<TimeDelta> {
    let elapsed = TimeDelta::from_millis_f64(after_ms - before_ms);
    (elapsed > TimeDelta::ZERO).then_some(elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three reports of a sender, with member names as in Chromium. The stream starts in the first
    /// interval; the intervals last 500 ms and 520 ms.
    const SENDER: [&str; 3] = [
        r#"{"outbound":{"timestamp":1000,"packetsSent":10,"bytesSent":9000,"headerBytesSent":200,
            "targetBitrate":300000}}"#,
        r#"{"outbound":{"timestamp":1500,"packetsSent":110,"bytesSent":109000,
            "headerBytesSent":2200,"retransmittedBytesSent":0,"targetBitrate":800000,
            "qualityLimitationReason":"bandwidth","framesEncoded":15,"qpSum":300,
            "totalPacketSendDelay":1.0},
            "remoteInbound":{"timestamp":1400,"roundTripTime":0.05,
            "roundTripTimeMeasurements":3,"fractionLost":0},
            "transport":{"srtpCipher":"AES_CM_128_HMAC_SHA1_80"}}"#,
        r#"{"outbound":{"timestamp":2020,"packetsSent":210,"bytesSent":209000,
            "headerBytesSent":4200,"retransmittedBytesSent":10000,"targetBitrate":900000,
            "qualityLimitationReason":"none","frameWidth":1280,"frameHeight":720,
            "framesEncoded":28,"qpSum":560,"totalPacketSendDelay":2.5,"totalEncodeTime":0.13,
            "qualityLimitationDurations":{"none":1,"cpu":0,"bandwidth":1.02,"other":0}},
            "remoteInbound":{"timestamp":1900,"roundTripTime":0.0625,
            "roundTripTimeMeasurements":4,"fractionLost":0.25},
            "transport":{"srtpCipher":"AES_CM_128_HMAC_SHA1_80"}}"#,
    ];

    const RECEIVER: [&str; 3] = [
        r#"{"inbound":{"timestamp":0,"packetsReceived":0,"packetsLost":0,"bytesReceived":0,
            "headerBytesReceived":0}}"#,
        r#"{"inbound":{"timestamp":500,"packetsReceived":100,"packetsLost":0,
            "bytesReceived":100000,"headerBytesReceived":2000,"framesDecoded":15,
            "freezeCount":0,"totalFreezesDuration":0,"jitterBufferDelay":0.5,
            "jitterBufferEmittedCount":15}}"#,
        r#"{"inbound":{"timestamp":1000,"packetsReceived":190,"packetsLost":10,
            "bytesReceived":190000,"headerBytesReceived":3800,"framesDecoded":25,
            "fecBytesReceived":5000,"retransmittedBytesReceived":10000,"totalDecodeTime":0.05,
            "qpSum":400,"totalInterFrameDelay":0.5,"totalSquaredInterFrameDelay":0.05,
            "jitter":0.004,"freezeCount":1,"totalFreezesDuration":0.25,"jitterBufferDelay":1.5,
            "jitterBufferEmittedCount":25,"frameWidth":640,"frameHeight":360},
            "transport":{"srtpCipher":"AEAD_AES_128_GCM"}}"#,
    ];

    fn reports<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<TimedReport> {
        let report = |text| serde_json::from_str::<StatsReport>(text).unwrap();
        let timed = |report: StatsReport| TimedReport {
            time: Timestamp::from_millis_f64(report.timestamp_ms().unwrap()),
            report,
        };
        texts.into_iter().map(report).map(timed).collect()
    }

    #[test]
    fn a_stream_has_no_value_of_the_interval_in_which_it_is_born() {
        let unborn = r#"{"inbound":{"timestamp":500,"packetsReceived":0,"packetsLost":0,
            "bytesReceived":0,"headerBytesReceived":0}}"#;
        let intervals = intervals(&reports([unborn, SENDER[0], SENDER[1]]));
        let sent: Vec<bool> = intervals.iter().map(|interval| interval.sent.is_some()).collect();
        assert_eq!(sent, [false, true]);
        assert!(super::intervals(&reports([unborn])).is_empty());
        assert!(super::intervals(&[]).is_empty());
    }

    #[test]
    fn rates_are_divided_by_the_time_between_the_timestamps() {
        let intervals = intervals(&reports(SENDER));
        assert_eq!(intervals[1].start, Timestamp::from_millis(1500));
        assert_eq!(intervals[1].end, Timestamp::from_millis(2020));
        let sent = intervals[1].sent.as_ref().unwrap();
        // 100000 payload + 2000 headers + 100 * (28 + 10) in 520 ms.
        assert_eq!(sent.send_rate, Bitrate::from_bps(8 * 105_800 * 1000 / 520));
        assert_eq!(sent.media_rate, Bitrate::from_bps(8 * 90_000 * 1000 / 520));
        assert_eq!(sent.retransmission_ratio, Some(0.1));
        assert_eq!(sent.target_bitrate, Some(Bitrate::from_kbps(900)));
        assert_eq!(sent.frame_rate, Some(13.0 / 0.52));
        assert_eq!(sent.qp, Some(20.0));
        assert_eq!(sent.pacer_delay, Some(TimeDelta::from_millis(15)));
        assert_eq!(sent.encode_time, Some(TimeDelta::from_millis(10)));
        assert_eq!(sent.retransmission_rate, Some(Bitrate::from_bps(8 * 10_000 * 1000 / 520)));
        assert_eq!(sent.frame_size, Some((1280, 720)));
        assert_eq!(sent.rtt, Some(TimeDelta::from_micros(62_500)));
        assert_eq!(sent.loss_ratio, Some(0.25));
    }

    #[test]
    fn each_layer_of_simulcast_has_its_own_values() {
        let layered = |ms: u64, small: u64, large: u64| {
            let layer = |ssrc, bytes, width, fps: u64| {
                format!(
                    r#"{{"timestamp":{ms},"ssrc":{ssrc},"packetsSent":1,"bytesSent":{bytes},
                    "headerBytesSent":1,"framesEncoded":{fps},"frameWidth":{width},
                    "frameHeight":180}}"#
                )
            };
            let frames = ms / 500 * 15;
            let sum = layer(1, small + large, 1280, frames);
            let layers =
                [layer(2, small, 320, frames), layer(3, large, 1280, frames / 3)].join(",");
            format!(r#"{{"outbound":{sum},"layers":[{layers}]}}"#)
        };
        let texts = [layered(0, 0, 0), layered(500, 10_000, 0), layered(1_000, 20_000, 50_000)];
        let intervals = intervals(&reports(texts.iter().map(String::as_str)));
        let rates = |index: usize| -> Vec<u64> {
            let layers = &intervals[index].sent.as_ref().unwrap().layers;
            layers.iter().map(|layer| layer.media_rate.as_bps() / 1_000).collect()
        };
        assert_eq!((rates(0), rates(1)), (vec![160, 0], vec![160, 800]));
        let sent = intervals[1].sent.as_ref().unwrap();
        assert_eq!(sent.layers[1].frame_size, Some((1280, 180)));
        assert_eq!(
            (sent.layers[0].frame_rate, sent.layers[1].frame_rate),
            (Some(30.0), Some(10.0))
        );
    }

    #[test]
    fn a_round_trip_time_counts_only_where_it_was_measured() {
        let stale = SENDER[2]
            .replace(r#""roundTripTimeMeasurements":4"#, r#""roundTripTimeMeasurements":3"#);
        let intervals = intervals(&reports([SENDER[0], SENDER[1], &stale]));
        assert_eq!(intervals[1].sent.as_ref().unwrap().rtt, None);
        assert_eq!(intervals[1].sent.as_ref().unwrap().loss_ratio, None);
    }

    #[test]
    fn a_received_stream_gives_rate_loss_freezes_and_buffer_delay() {
        let intervals = intervals(&reports(RECEIVER));
        let received = intervals[1].received.as_ref().unwrap();
        // 90000 payload + 1800 headers + 90 * (28 + 16) in 500 ms.
        assert_eq!(received.receive_rate, Bitrate::from_bps(8 * 95_760 * 2));
        assert_eq!(received.media_rate, Bitrate::from_bps(8 * 80_000 * 2));
        assert_eq!(received.retransmission_rate, Some(Bitrate::from_bps(8 * 10_000 * 2)));
        assert_eq!(received.fec_rate, Some(Bitrate::from_bps(8 * 5_000 * 2)));
        assert_eq!(received.harmonic_frame_rate, Some(10.0));
        assert_eq!(received.decode_time, Some(TimeDelta::from_millis(5)));
        assert_eq!(received.qp, Some(40.0));
        assert_eq!(received.jitter, Some(TimeDelta::from_millis(4)));
        assert_eq!(received.loss_ratio, Some(0.1));
        assert_eq!(received.freezes, 1);
        assert_eq!(received.frozen, TimeDelta::from_millis(250));
        assert_eq!(received.frame_rate, Some(20.0));
        assert_eq!(received.frame_size, Some((640, 360)));
        assert_eq!(received.jitter_buffer_delay, Some(TimeDelta::from_millis(100)));
    }

    #[test]
    fn transport_bytes_count_the_ip_and_udp_headers_once() {
        let pair = |time: u32, packets: u32, responses: u32| {
            let candidate =
                r#"{"address":"10.0.0.1","port":9,"protocol":"udp","candidateType":"host"}"#;
            format!(
                r#"{{"pair":{{"timestamp":{time},"packetsSent":0,"bytesSent":0,
                "packetsReceived":{packets},"bytesReceived":{},"responsesReceived":{responses},
                "currentRoundTripTime":0.051,"availableOutgoingBitrate":1e6,
                "local":{candidate},"remote":{candidate}}}}}"#,
                packets * 1000,
            )
        };
        let texts = [pair(0, 0, 0), pair(500, 10, 1), pair(1000, 30, 1), pair(1500, 30, 2)];
        let intervals = intervals(&reports(texts.iter().map(String::as_str)));
        assert_eq!(intervals[1].transport_received, DataSize::from_bytes(20 * 1028));
        assert_eq!(intervals[1].stun_rtt, None);
        assert_eq!(intervals[2].stun_rtt, Some(TimeDelta::from_millis(51)));
        assert_eq!(intervals[1].estimated_bitrate, Some(Bitrate::from_kbps(1000)));
    }

    #[test]
    fn an_estimate_that_stays_is_no_change() {
        let estimate = |ms, kbps| Interval {
            end: Timestamp::from_millis(ms),
            estimated_bitrate: Some(Bitrate::from_kbps(kbps)),
            ..Interval::default()
        };
        let series = [estimate(500, 300), estimate(1000, 300), estimate(1500, 200)];
        let change = EstimateChange {
            time: Timestamp::from_millis(1500),
            from: Bitrate::from_kbps(300),
            to: Bitrate::from_kbps(200),
        };
        assert_eq!(estimate_changes(&series), [change]);
    }

    #[test]
    fn counters_and_clocks_that_run_backwards_do_no_harm() {
        assert!(intervals(&reports([RECEIVER[2], RECEIVER[1]])).is_empty());
        let smaller = RECEIVER[1].replace(r#""timestamp":500"#, r#""timestamp":1500"#);
        let intervals = intervals(&reports([RECEIVER[2], &smaller]));
        let received = intervals[0].received.as_ref().unwrap();
        assert_eq!(received.receive_rate, Bitrate::ZERO);
        assert_eq!(received.frozen, TimeDelta::ZERO);
    }

    #[test]
    fn absurd_values_give_absurd_intervals_and_no_panic() {
        let huge = r#"{"inbound":{"timestamp":1e300,"packetsReceived":18446744073709551615,
            "packetsLost":-9223372036854775808,"bytesReceived":18446744073709551615,
            "headerBytesReceived":18446744073709551615,"jitter":-1e308,
            "freezeCount":18446744073709551615,"totalFreezesDuration":1e308,
            "jitterBufferDelay":1e308,"jitterBufferEmittedCount":1,"framesDecoded":1,
            "totalInterFrameDelay":1e308,"totalSquaredInterFrameDelay":1e-308}}"#;
        let reports = reports([RECEIVER[0], huge, RECEIVER[1]]);
        assert_eq!(intervals(&reports).len(), 1);
        let total = received_total(&reports[..2], Kind::Video).unwrap();
        assert_eq!((total.count.bytes, total.lost), (u64::MAX, i64::MIN));
    }

    #[test]
    fn a_total_is_from_the_first_report_to_the_last() {
        let total = sent_total(&reports(SENDER), Kind::Video).unwrap();
        assert_eq!(
            (total.start, total.end),
            (Timestamp::from_millis(1000), Timestamp::from_millis(2020))
        );
        // 200000 payload + 4000 headers + 200 * (28 + 10).
        assert_eq!(total.count, Count { packets: 200, bytes: 211_600 });
        let received = received_total(&reports(RECEIVER), Kind::Video).unwrap();
        assert_eq!((received.count.packets, received.lost), (190, 10));
        assert_eq!(sent_total(&reports(RECEIVER), Kind::Video), None);
        assert_eq!(sent_total(&reports(SENDER), Kind::Audio), None);
    }
}
