//! Reports of each stream, like a browser's, from its packets and from the feedback on them.

use std::collections::{BTreeMap, BTreeSet};

use weir::feedback::SeqUnwrapper;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_lab::calls::derive::TimedReport;
use weir_lab::calls::stats::{
    Candidate, CandidatePair, InboundRtp, Kind, OutboundRtp, RemoteInboundRtp, StatsReport,
};

use super::PacketLog;
use super::play::{Event, play};
use super::rtp::RtpPacket;
use crate::dump::{Stream, StreamDirection, StreamReport};

/// Time between two reports, in ns.
const INTERVAL: i64 = 500_000_000;
/// Fewer packets are noise that looks like RTP.
pub(super) const LEAST_PACKETS: u64 = 20;
/// Audio has small packets only.
const AUDIO_BYTES: u64 = 400;

/// A stream so far.
#[derive(Default)]
pub(crate) struct Counter {
    reports: Vec<(i64, Counts)>,
    now: Counts,
    sequence: SeqUnwrapper,
    range: Option<(i64, i64)>,
    largest: u64,
    /// End of the running interval in ns.
    next: i64,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    packets: u64,
    payload: u64,
    headers: u64,
    /// Retransmitted packets and payload; only where their SSRC is known.
    again: (u64, u64),
    /// Packets under the SSRC of retransmissions, which also has padding.
    repairs: u64,
    lost: i64,
}

impl Counter {
    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.now.packets
    }

    /// Adds a packet, and returns how many reports that made. `is_repair` if it is a retransmission
    /// under another SSRC.
    pub fn add(&mut self, now: i64, rtp: &RtpPacket, is_repair: bool) -> usize {
        let before = self.reports.len();
        // Intervals of all streams end at the same times.
        let end = (now.div_euclid(INTERVAL) + 1) * INTERVAL;
        if self.reports.is_empty() {
            self.reports.push((end - INTERVAL, Counts::default()));
            self.next = end;
        }
        // A capture may be out of order by a little. Silence gives one report at its end.
        if end > self.next {
            self.close();
            if end - INTERVAL > self.next {
                self.reports.push((end - INTERVAL, self.now));
            }
            self.next = end;
        }
        self.now.packets += 1;
        self.now.headers += u64::from(rtp.header_size) + u64::from(rtp.padding_size);
        let payload = u64::from(rtp.payload_size);
        if is_repair {
            self.now.repairs += 1;
            self.now.again.0 += u64::from(payload > 0);
            self.now.again.1 += payload;
            self.now.payload += payload;
            return self.reports.len() - before;
        }
        let sequence = self.sequence.unwrap(u32::from(rtp.sequence_number));
        let (first, last) = self.range.unwrap_or((sequence, sequence));
        self.range = Some((first.min(sequence), last.max(sequence)));
        if !rtp.is_padding {
            self.now.payload += payload;
            self.largest = self.largest.max(payload);
        }
        self.reports.len() - before
    }

    fn close(&mut self) {
        if let Some((first, last)) = self.range {
            let arrived = self.now.packets - self.now.repairs;
            self.now.lost = (last - first + 1) - arrived as i64;
        }
        self.reports.push((self.next, self.now));
    }

    /// The stream, unless it is too short to be one.
    pub fn stream(mut self, way: StreamDirection, ssrc: u32) -> Option<Stream> {
        if self.now.packets < LEAST_PACKETS {
            return None;
        }
        self.close();
        let kind = if self.largest <= AUDIO_BYTES { Kind::Audio } else { Kind::Video };
        let reports = self.reports.iter().map(|(time, counts)| StreamReport {
            timed: TimedReport {
                time: Timestamp::from_nanos(*time),
                report: counts.report(way, ssrc, *time),
            },
            active: None,
        });
        Some(Stream { way, kind, ssrc, rid: None, reports: reports.collect() })
    }
}

impl Counts {
    fn report(self, way: StreamDirection, ssrc: u32, time: i64) -> StatsReport {
        let timestamp = time as f64 / 1e6;
        let ssrc = Some(ssrc);
        let mut report = StatsReport::default();
        match way {
            StreamDirection::Sent => {
                report.outbound = Some(OutboundRtp {
                    timestamp,
                    ssrc,
                    packets_sent: self.packets,
                    bytes_sent: self.payload,
                    header_bytes_sent: self.headers,
                    retransmitted_packets_sent: Some(self.again.0),
                    retransmitted_bytes_sent: Some(self.again.1),
                    ..OutboundRtp::default()
                });
            }
            StreamDirection::Received => {
                report.inbound = Some(InboundRtp {
                    timestamp,
                    ssrc,
                    packets_received: self.packets,
                    packets_lost: self.lost,
                    bytes_received: self.payload,
                    header_bytes_received: self.headers,
                    retransmitted_bytes_received: Some(self.again.1),
                    ..InboundRtp::default()
                });
            }
        }
        report
    }
}

/// Lost packets so far, with the index of what was heard then; by stream.
type Lost = BTreeMap<u32, Vec<(usize, i64)>>;

/// What feedback said by a time.
struct Heard {
    time: Timestamp,
    /// Round-trip time of the last report.
    rtt: Option<TimeDelta>,
}

/// Adds to the reports of sent streams what the far end reported, and the sender's estimate.
pub(super) fn add_feedback(streams: &mut [Stream], log: &PacketLog) {
    let known: BTreeSet<u32> = streams.iter().map(|stream| stream.ssrc).collect();
    let (heard, lost) = heard(log, &known);
    // With one video, all of the estimate is for it. How several share it is not reported.
    let videos =
        streams.iter().filter(|it| it.way == StreamDirection::Sent && it.kind == Kind::Video);
    let has_one_video = videos.count() == 1;
    for stream in streams.iter_mut().filter(|stream| stream.way == StreamDirection::Sent) {
        let lost = lost.get(&stream.ssrc).map(Vec::as_slice).unwrap_or_default();
        for StreamReport { timed, .. } in &mut stream.reports {
            let timestamp = timed.time.as_millis_f64();
            let known = heard.partition_point(|it| it.time <= timed.time);
            if let Some(last) = known.checked_sub(1).map(|at| &heard[at]) {
                timed.report.remote_inbound = Some(RemoteInboundRtp {
                    timestamp,
                    round_trip_time: last.rtt.map(TimeDelta::as_secs_f64),
                    round_trip_time_measurements: Some(known as u64),
                    packets_lost: Some(lost_by(lost, known)),
                    ..RemoteInboundRtp::default()
                });
            }
            if let Some(estimate) = log.estimate_at(timed.time) {
                if let Some(outbound) = timed.report.outbound.as_mut()
                    && has_one_video
                    && stream.kind == Kind::Video
                {
                    outbound.target_bitrate = Some(estimate.as_bps() as f64);
                }
                timed.report.pair = Some(pair(timestamp, estimate));
            }
        }
    }
}

/// Lost packets of a stream after this many intervals of feedback.
fn lost_by(lost: &[(usize, i64)], known: usize) -> i64 {
    let at = lost.partition_point(|(index, _)| *index < known);
    at.checked_sub(1).map_or(0, |at| lost[at].1)
}

/// A pair of which only the estimate is known.
fn pair(timestamp: f64, estimate: Bitrate) -> CandidatePair {
    let unknown = Candidate {
        address: None,
        port: 0,
        protocol: String::new(),
        candidate_type: String::new(),
        relay_protocol: None,
    };
    CandidatePair {
        timestamp,
        packets_sent: 0,
        bytes_sent: 0,
        packets_received: 0,
        bytes_received: 0,
        current_round_trip_time: None,
        responses_received: None,
        available_outgoing_bitrate: Some(estimate.as_bps() as f64),
        local: unknown.clone(),
        remote: unknown,
    }
}

/// What the feedback said, at the end of each interval in which some came. The round-trip time is
/// the mean of the interval: it varies with the time for which the receiver held the feedback back.
fn heard(log: &PacketLog, known: &BTreeSet<u32>) -> (Vec<Heard>, Lost) {
    let mut all: Vec<Heard> = Vec::new();
    let mut lost = Lost::new();
    let mut rtts: Vec<TimeDelta> = Vec::new();
    let mut end: Option<i64> = None;
    play(log, &mut |time, event| {
        let until = (time.as_nanos().div_euclid(INTERVAL) + 1) * INTERVAL;
        let (Event::Report { .. } | Event::RoundTrip(_)) = event else { return };
        if let Some(before) = end.replace(until).filter(|before| *before < until) {
            close(&mut all, before, &mut rtts);
        }
        match event {
            Event::RoundTrip(rtt) => rtts.push(rtt),
            Event::Report { report, indices } => {
                rtts.extend(report.rtt(time));
                for packet in &report.packets {
                    let Some(index) = indices.get(packet.sequence_number) else { continue };
                    let ssrc = log.sent[index].ssrc;
                    let media = log.repairs.get(&ssrc).copied().unwrap_or(ssrc);
                    let change = match (packet.arrival_time, packet.recovered) {
                        (None, _) => 1,
                        (Some(_), true) => -1,
                        (Some(_), false) => 0,
                    };
                    if change == 0 || !known.contains(&media) {
                        continue;
                    }
                    let lost = lost.entry(media).or_default();
                    match lost.last_mut() {
                        Some((index, total)) if *index == all.len() => *total += change,
                        last => {
                            let total = last.map_or(0, |(_, total)| *total) + change;
                            lost.push((all.len(), total));
                        }
                    }
                }
            }
            Event::Sent(_) => {}
        }
    });
    if let Some(end) = end {
        close(&mut all, end, &mut rtts);
    }
    (all, lost)
}

/// Ends an interval with these round-trip times. Without any, the last one remains.
fn close(all: &mut Vec<Heard>, end: i64, rtts: &mut Vec<TimeDelta>) {
    let rtt = match rtts.len() as i64 {
        0 => all.last().and_then(|last| last.rtt),
        count => {
            let total: i64 = rtts.iter().map(|rtt| rtt.as_nanos()).sum();
            Some(TimeDelta::from_nanos(total / count))
        }
    };
    rtts.clear();
    all.push(Heard { time: Timestamp::from_nanos(end), rtt });
}
