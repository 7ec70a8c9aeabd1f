//! Reports of each stream, like a browser's, from its packets and from the feedback on them.

use std::collections::{BTreeMap, BTreeSet};

use weir::feedback::ArrivalTimes;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_record::calls::derive::TimedReport;
use weir_record::calls::stats::{
    Candidate, CandidatePair, InboundRtp, Kind, OutboundRtp, RemoteInboundRtp, StatsReport,
};
use weir_rtcp::FeedbackKind;

use super::PacketLog;
use super::facts::{Described, Measured, StreamFacts};
use super::play::{Event, most_precise, play};
use super::receiver_reports::Numbers;
use super::rtp::RtpPacket;
use super::sequence::{Arrival, Hole, Sequence};
use crate::read::dump::{Stream, StreamDirection, StreamReport};

/// Time between two reports, in ns.
const INTERVAL: i64 = 500_000_000;
/// Fewer packets are noise that looks like RTP.
pub(super) const LEAST_PACKETS: u64 = 20;
/// Audio has small packets only, where nothing else tells.
const AUDIO_BYTES: u64 = 400;

/// The time between two reports of a stream: longer than usual in a capture of so many streams and
/// hours that its reports would be too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval(i64);

impl Default for Interval {
    fn default() -> Self {
        Self(INTERVAL)
    }
}

impl Interval {
    /// Most reports of the streams of a capture; one takes about a kilobyte.
    const REPORTS: i64 = 50_000;

    /// For streams that last so long together, in ns.
    pub fn for_all(together: i64) -> Self {
        let mut interval = Self::default();
        while together / interval.0 > Self::REPORTS {
            interval.0 *= 2;
        }
        interval
    }

    /// In seconds, if it is longer than usual.
    pub fn unusual_s(self) -> Option<f64> {
        (self.0 > INTERVAL).then(|| self.0 as f64 / 1e9)
    }
}

/// A stream so far.
#[derive(Default)]
pub(crate) struct Counter {
    interval: Interval,
    reports: Vec<Counted>,
    now: Counts,
    sequence: Sequence,
    measured: Measured,
    largest: u64,
    /// End of the running interval in ns.
    next: i64,
    /// What is known besides its packets.
    known: Option<Described>,
}

/// What a stream had counted by a time, in ns.
#[derive(Clone, Copy, Default)]
struct Counted {
    time: i64,
    counts: Counts,
    /// Packets that this interval lost.
    lost: i64,
    /// The highest sequence number so far, and numbers that were used, lost ones included.
    highest: u16,
    expected: u64,
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
}

impl Counter {
    /// One with a report each interval.
    pub fn each(interval: Interval) -> Self {
        Self { interval, ..Self::default() }
    }

    /// Says what is known of the stream besides.
    pub fn describe(&mut self, known: Described) {
        self.known = Some(known);
    }

    /// Whether this end sends on what it receives.
    pub fn is_forwarded(&self) -> bool {
        matches!(&self.known, Some(Described { is_forwarded: true, .. }))
    }

    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.now.packets
    }

    /// Adds a packet, and returns how many reports that made, and what it is. `is_repair` if it is
    /// a retransmission under another SSRC.
    pub fn add(&mut self, now: i64, rtp: &RtpPacket, is_repair: bool) -> (usize, Arrival) {
        let before = self.reports.len();
        // Intervals of all streams end at the same times.
        let interval = self.interval.0;
        let end = (now.div_euclid(interval) + 1) * interval;
        if self.reports.is_empty() {
            self.reports.push(Counted { time: end - interval, ..Counted::default() });
            self.next = end;
        }
        // A capture may be out of order by a little. Silence gives one report at its end.
        if end > self.next {
            self.close(self.next);
            if end - interval > self.next {
                self.close(end - interval);
            }
            self.next = end;
        }
        let payload = u64::from(rtp.payload_size);
        if is_repair {
            self.now.packets += 1;
            self.now.headers += u64::from(rtp.header_size) + u64::from(rtp.padding_size);
            self.now.repairs += 1;
            self.now.again.0 += u64::from(payload > 0);
            self.now.again.1 += payload;
            self.now.payload += payload;
            return (self.reports.len() - before, Arrival::Ahead);
        }
        let arrival = self.sequence.add(now, rtp.sequence_number, rtp.rtp_timestamp);
        let clock_hz = self.known.as_ref().and_then(|known| known.clock_hz);
        let lost = self.sequence.lost();
        self.measured.add(now, rtp, (arrival, lost), clock_hz);
        if arrival != Arrival::Copy {
            self.now.packets += 1;
            self.now.headers += u64::from(rtp.header_size) + u64::from(rtp.padding_size);
            if !rtp.is_padding {
                self.now.payload += payload;
                self.largest = self.largest.max(payload);
            }
        }
        let settled = self.sequence.take_settled();
        self.place(&settled);
        (self.reports.len() - before, arrival)
    }

    fn close(&mut self, time: i64) {
        self.reports.push(Counted {
            time,
            counts: self.now,
            lost: 0,
            highest: self.sequence.highest(),
            expected: self.sequence.expected(),
        });
    }

    /// Says in which intervals the packets of these holes were lost: evenly over the time without
    /// them.
    fn place(&mut self, holes: &[Hole]) {
        for hole in holes {
            self.measured.hole(hole);
            let mut at = self.reports.partition_point(|it| it.time <= hole.from).max(1);
            let mut placed = 0;
            while placed < hole.count {
                let Some(report) = self.reports.get_mut(at) else { break };
                let upto = if report.time < hole.to { hole.due(report.time) } else { hole.count };
                report.lost += i64::from(upto.max(placed) - placed);
                placed = placed.max(upto);
                at += 1;
            }
        }
    }

    /// The stream with what was measured of it, unless it is too short to be one.
    pub fn stream(
        mut self,
        direction: StreamDirection,
        ssrc: u32,
    ) -> Option<(Stream, StreamFacts)> {
        // Of a capture, it was told from noise before.
        if self.now.packets < LEAST_PACKETS && self.known.is_none() {
            return None;
        }
        self.close(self.next);
        let holes = self.sequence.finish();
        self.place(&holes);
        let by_size = if self.largest <= AUDIO_BYTES { Kind::Audio } else { Kind::Video };
        let known = self.known.take();
        let kind = known.as_ref().and_then(|known| known.kind).unwrap_or(by_size);
        let mut lost = 0;
        let mut reports = Vec::with_capacity(self.reports.len());
        for counted in &self.reports {
            lost += counted.lost;
            let time = Timestamp::from_nanos(counted.time);
            let report = counted.counts.report(direction, (ssrc, lost), counted.time);
            reports.push(StreamReport { timed: TimedReport { time, report }, active: None });
        }
        let facts = self.measured.facts(direction, (ssrc, kind), &self.sequence, known);
        let facts = StreamFacts { bytes: self.now.payload + self.now.headers, ..facts };
        Some((Stream { direction, kind, ssrc, rid: None, reports }, facts))
    }

    /// The highest sequence number, and how many were used, by the end of each interval.
    pub fn numbers(&self) -> Numbers {
        let mut found: Vec<(i64, u16, u64)> = Vec::with_capacity(self.reports.len() + 1);
        found.extend(self.reports.iter().map(|it| (it.time, it.highest, it.expected)));
        found.push((self.next, self.sequence.highest(), self.sequence.expected()));
        Numbers(found)
    }
}

impl Counts {
    fn report(
        self,
        direction: StreamDirection,
        (ssrc, lost): (u32, i64),
        time: i64,
    ) -> StatsReport {
        let timestamp = time as f64 / 1e6;
        let ssrc = Some(ssrc);
        let mut report = StatsReport::default();
        match direction {
            StreamDirection::Sent => {
                report.outbound = Some(Box::new(OutboundRtp {
                    timestamp,
                    ssrc,
                    packets_sent: self.packets,
                    bytes_sent: self.payload,
                    header_bytes_sent: self.headers,
                    retransmitted_packets_sent: Some(self.again.0),
                    retransmitted_bytes_sent: Some(self.again.1),
                    ..OutboundRtp::default()
                }));
                // What is missing where the capture was made. The far end's reports replace it.
                report.remote_inbound = Some(RemoteInboundRtp {
                    timestamp,
                    packets_lost: Some(lost),
                    packets_received: Some(self.packets - self.repairs),
                    ..RemoteInboundRtp::default()
                });
            }
            StreamDirection::Received => {
                report.inbound = Some(Box::new(InboundRtp {
                    timestamp,
                    ssrc,
                    packets_received: self.packets,
                    packets_lost: lost,
                    bytes_received: self.payload,
                    header_bytes_received: self.headers,
                    retransmitted_bytes_received: Some(self.again.1),
                    ..InboundRtp::default()
                }));
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
pub(super) fn add_feedback(
    streams: &mut [Stream],
    log: &PacketLog,
    numbers: &BTreeMap<u32, Numbers>,
) {
    let known: BTreeSet<u32> = streams.iter().map(|stream| stream.ssrc).collect();
    let (heard, lost) = heard(log, &known);
    let is_by_packet = most_precise(log).is_some_and(|it| it != FeedbackKind::ReceiverReports);
    // With one video, all of the estimate is for it. How several share it is not reported.
    let videos =
        streams.iter().filter(|it| it.direction == StreamDirection::Sent && it.kind == Kind::Video);
    let has_one_video = videos.count() == 1;
    for stream in streams.iter_mut().filter(|stream| stream.direction == StreamDirection::Sent) {
        let lost = lost.get(&stream.ssrc).map(Vec::as_slice).unwrap_or_default();
        let numbers = numbers.get(&stream.ssrc).filter(|_| !is_by_packet);
        let by_reports = numbers.and_then(|it| Some((it, it.losses(log, stream.ssrc)?)));
        let mut so_far = 0;
        for StreamReport { timed, .. } in &mut stream.reports {
            let timestamp = timed.time.as_millis_f64();
            let known = heard.partition_point(|it| it.time <= timed.time);
            if let Some(last) = known.checked_sub(1).map(|at| &heard[at]) {
                let remote = timed.report.remote_inbound.get_or_insert_default();
                remote.timestamp = timestamp;
                remote.round_trip_time = last.rtt.map(TimeDelta::as_secs_f64);
                remote.round_trip_time_measurements = last.rtt.map(|_| known as u64);
                if is_by_packet {
                    remote.packets_lost = Some(lost_by(lost, known));
                    remote.packets_received = None;
                }
            }
            if let Some((numbers, losses)) = &by_reports {
                // The last report came when other numbers had been used since.
                let used = losses.told_of(numbers.used_by(timed.time.as_nanos()));
                let lost = used.and_then(|used| losses.among(used));
                so_far = lost.map_or(so_far, |lost| so_far.max(lost.round() as i64));
                let remote = timed.report.remote_inbound.get_or_insert_default();
                remote.timestamp = timestamp;
                remote.packets_lost = lost.map(|_| so_far);
                // Numbers that the capture misses were used, too.
                let used = used.filter(|_| lost.is_some());
                remote.packets_received = used.map(|it| it.saturating_sub(so_far.unsigned_abs()));
            }
            if let Some(estimate) = log.estimate_at(timed.time) {
                if let Some(outbound) = timed.report.outbound.as_mut()
                    && has_one_video
                    && stream.kind == Kind::Video
                {
                    outbound.target_bitrate = Some(estimate.as_bps() as f64);
                }
                timed.report.pair = Some(Box::new(pair(timestamp, Some(estimate))));
            }
        }
    }
}

/// Adds the round trips of connectivity checks, by the times of their answers.
pub(super) fn add_checks(streams: &mut [Stream], checks: &[(Timestamp, TimeDelta)]) {
    // Reports on media say more.
    let is_known = streams.iter().flat_map(|it| &it.reports).any(|it| {
        it.timed.report.remote_inbound.as_ref().is_some_and(|it| it.round_trip_time.is_some())
    });
    if checks.is_empty() || is_known {
        return;
    }
    for StreamReport { timed, .. } in streams.iter_mut().flat_map(|it| &mut it.reports) {
        let count = checks.partition_point(|(time, _)| *time <= timed.time);
        let last = count.checked_sub(1).map(|at| checks[at].1.as_secs_f64());
        let timestamp = timed.time.as_millis_f64();
        let pair = timed.report.pair.get_or_insert_with(|| Box::new(pair(timestamp, None)));
        pair.current_round_trip_time = last;
        pair.responses_received = Some(count as u64);
    }
}

/// Lost packets of a stream after this many intervals of feedback.
fn lost_by(lost: &[(usize, i64)], known: usize) -> i64 {
    let at = lost.partition_point(|(index, _)| *index < known);
    at.checked_sub(1).map_or(0, |at| lost[at].1)
}

/// A pair of which at most the estimate is known.
fn pair(timestamp: f64, estimate: Option<Bitrate>) -> CandidatePair {
    let unknown = Candidate::default();
    CandidatePair {
        timestamp,
        packets_sent: 0,
        bytes_sent: 0,
        packets_received: 0,
        bytes_received: 0,
        current_round_trip_time: None,
        responses_received: None,
        available_outgoing_bitrate: estimate.map(|it| it.as_bps() as f64),
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
                // Of receiver reports, only those of a sender report measure it.
                if report.arrival_times == ArrivalTimes::Measured {
                    rtts.extend(report.rtt(time));
                }
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
