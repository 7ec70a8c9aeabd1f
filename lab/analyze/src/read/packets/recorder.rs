//! Builds the log and the streams of a connection, packet by packet.

use std::collections::{BTreeMap, BTreeSet};

use weir::feedback::SeqUnwrapper;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_controllers::AbsSendTimes;
use weir_rtcp::{Message, RtcpEvent, messages};
use weir_wire::report::compact_ntp;

use super::control::Control;
use super::facts::Described;
use super::receiver_reports::Numbers;
use super::reports::{Counter, Interval, LEAST_PACKETS};
use super::rtp::RtpPacket;
use super::sequence::Arrival;
use super::{Cut, FAR, PACKETS_MAX, PacketLog, Received, STREAMS_MAX, Sent, within};
use crate::read::dump::{Connection, Stream, StreamDirection};

/// Largest number of SSRCs that are watched. More are ignored.
const SSRCS_MAX: usize = 4_096;
/// IPv4 and UDP headers.
const IP_UDP_HEADERS: u32 = 20 + 8;

/// Builds the log and the streams. Times must not decrease by more than a few packets' time.
#[derive(Default)]
pub(crate) struct Recorder {
    log: PacketLog,
    streams: BTreeMap<(StreamDirection, u32), Counter>,
    interval: Interval,
    /// Reports of all of them.
    reports: usize,
    numbers: SeqUnwrapper,
    received_numbers: SeqUnwrapper,
    send_times: AbsSendTimes,
    /// Whether packets that were sent may be missing: a capture may be made elsewhere on the way.
    misses_sent: bool,
    is_without_feedback: bool,
    /// Round trips of connectivity checks, by the times of their answers.
    checks: Vec<(Timestamp, TimeDelta)>,
    /// SSRCs whose sender said that they end.
    ended: BTreeSet<u32>,
}

impl Recorder {
    /// Of a capture, with a report of each stream each interval.
    pub fn of_capture(interval: Interval) -> Self {
        Self { misses_sent: true, interval, ..Self::default() }
    }

    /// Takes the memory for so many sent packets at once.
    pub fn reserve_sent(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(PACKETS_MAX);
        if !self.is_without_feedback {
            self.log.sent.reserve_exact(count);
        }
    }

    /// Says that no feedback on what was sent will come, so that its packets need not be kept.
    pub fn without_feedback(&mut self) {
        self.is_without_feedback = true;
    }

    /// Says what is known of a stream before its first packet.
    pub fn describe(&mut self, direction: StreamDirection, ssrc: u32, known: Described) {
        if self.streams.len() < SSRCS_MAX {
            self.counter(direction, ssrc).describe(known);
        }
    }

    fn counter(&mut self, direction: StreamDirection, ssrc: u32) -> &mut Counter {
        let interval = self.interval;
        self.streams.entry((direction, ssrc)).or_insert_with(|| Counter::each(interval))
    }

    /// SSRC of the retransmissions of a stream.
    pub fn repair(&mut self, repair: u32, media: u32) {
        if self.log.repairs.len() < SSRCS_MAX {
            self.log.repairs.insert(repair, media);
        }
    }

    /// A packet of RTP.
    pub fn rtp(&mut self, time: Timestamp, direction: StreamDirection, packet: &RtpPacket) {
        if !within(time, FAR) {
            return self.log.cut(Cut::Length);
        }
        let media = self.log.repairs.get(&packet.ssrc);
        let ssrc = media.copied().unwrap_or(packet.ssrc);
        let is_repair = media.is_some();
        let mut arrival = Arrival::Ahead;
        if self.reports >= super::REPORTS_MAX {
            self.log.cut(Cut::Reports);
        } else if self.streams.len() < SSRCS_MAX || self.streams.contains_key(&(direction, ssrc)) {
            let (reports, found) =
                self.counter(direction, ssrc).add(time.as_nanos(), packet, is_repair);
            self.reports += reports;
            arrival = found;
        }
        // A copy says nothing of the path that its original does not.
        if arrival == Arrival::Copy && self.misses_sent
            || !self.tells_of_the_path(direction, packet)
        {
            return;
        }
        if !self.log.has_room(time) {
            return;
        }
        self.keep(time, direction, packet);
    }

    /// Whether something can follow from a packet beside its stream's numbers.
    fn tells_of_the_path(&self, direction: StreamDirection, packet: &RtpPacket) -> bool {
        match direction {
            StreamDirection::Sent => !self.is_without_feedback,
            StreamDirection::Received => packet.send_time.is_some() || packet.number.is_some(),
        }
    }

    fn keep(&mut self, time: Timestamp, direction: StreamDirection, packet: &RtpPacket) {
        let RtpPacket { number, send_time, .. } = *packet;
        let &RtpPacket { ssrc, sequence_number, rtp_timestamp, is_padding, .. } = packet;
        let size = [packet.header_size, packet.payload_size, packet.padding_size];
        let size = size.into_iter().fold(IP_UDP_HEADERS, u32::saturating_add);
        match direction {
            StreamDirection::Sent => {
                let number = number.map(|number| self.numbers.unwrap(number.into()));
                self.log.sent.push(Sent {
                    time,
                    ssrc,
                    sequence_number,
                    rtp_timestamp,
                    number: number.into(),
                    size,
                    is_padding,
                });
            }
            StreamDirection::Received => {
                let send_time = send_time.map(|ticks| self.send_times.unwrap(ticks));
                let number = number.map(|number| self.received_numbers.unwrap(number.into()));
                let send_time = send_time.map(Timestamp::as_nanos).into();
                self.log.received.push(Received { time, send_time, number: number.into(), size });
            }
        }
    }

    /// RTCP that is encrypted or cut: it only counts.
    pub fn unreadable_rtcp(&mut self, count: u64) {
        self.log.unreadable_rtcp += count;
    }

    /// A datagram of RTCP.
    pub fn rtcp(&mut self, time: Timestamp, direction: StreamDirection, bytes: &[u8]) {
        if !is_readable(bytes) {
            return self.unreadable_rtcp(1);
        }
        if self.ended.len() < SSRCS_MAX {
            self.ended.extend(byes(bytes));
        }
        if direction == StreamDirection::Received {
            return self.log.add_rtcp(time, bytes);
        }
        for message in messages(bytes) {
            if let Ok(Message::Report(view)) = message
                && let Some(info) = view.sender_info()
                && self.log.has_room(time)
            {
                self.log.sender_reports.insert(compact_ntp(info.ntp_time), time);
            }
        }
    }

    /// A connectivity check was answered after this time.
    pub fn check(&mut self, time: Timestamp, rtt: TimeDelta) {
        self.checks.push((time, rtt));
    }

    /// The sender's estimate of what the path carries.
    pub fn estimate(&mut self, time: Timestamp, estimate: Bitrate) {
        if self.log.has_room(time) {
            self.log.estimates.push((time, estimate));
        }
    }

    /// What the sender's congestion control logged.
    pub fn control(&mut self, time: Timestamp, control: Control) {
        if self.log.has_room(time) {
            self.log.control.push((time, control));
        }
    }

    /// The connection with all streams, and with the log.
    pub fn finish(mut self, name: &str) -> Connection {
        let mut log = self.log;
        let mut counts: Vec<u64> = self.streams.values().map(Counter::packets).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let least = counts.get(STREAMS_MAX).map_or(0, |count| count + 1);
        if least > LEAST_PACKETS {
            log.cut(Cut::Streams);
        }
        self.streams.retain(|_, counter| counter.packets() >= least);
        drop_noise(&mut log, &self.streams);
        // Transport-wide feedback knows the packets with a number only.
        if log.sent.iter().any(|packet| packet.number.get().is_some()) {
            log.sent.retain(|packet| packet.number.get().is_some());
            log.sent.sort_by_key(|packet| packet.number);
            let mut last = Timestamp::from_nanos(i64::MIN);
            for packet in &mut log.sent {
                packet.time = packet.time.max(last);
                last = packet.time;
            }
        }
        let mut streams: Vec<Stream> = Vec::new();
        let mut numbers: BTreeMap<u32, Numbers> = BTreeMap::new();
        for ((direction, ssrc), counter) in self.streams {
            if direction == StreamDirection::Sent {
                numbers.insert(ssrc, counter.numbers());
            }
            let is_forwarded = counter.is_forwarded();
            let Some((mut stream, mut facts)) = counter.stream(direction, ssrc) else { continue };
            facts.is_ended = self.ended.contains(&ssrc);
            // Of what is sent on, packets may be missing that did not reach this end.
            if !self.misses_sent || is_forwarded && facts.lost > 0 {
                stream.reports.iter_mut().for_each(|it| it.timed.report.remote_inbound = None);
            }
            streams.push(stream);
            log.streams.push(facts);
        }
        super::reports::add_feedback(&mut streams, &log, &numbers);
        super::reports::add_checks(&mut streams, &self.checks);
        Connection { name: name.into(), streams, packets: Some(log) }
    }
}

/// Drops the packets of streams that are none, if they are so many that they are noise, such as a
/// tunnel's. Each SSRC of the log costs the history of sent packets time.
fn drop_noise(log: &mut PacketLog, streams: &BTreeMap<(StreamDirection, u32), Counter>) {
    let ssrcs: BTreeSet<u32> = log.sent.iter().map(|packet| packet.ssrc).collect();
    if ssrcs.len() <= STREAMS_MAX {
        return;
    }
    let mut kept = BTreeSet::new();
    for ((_, ssrc), counter) in streams {
        if counter.packets() >= LEAST_PACKETS {
            kept.insert(*ssrc);
        }
    }
    let PacketLog { sent, repairs, .. } = log;
    sent.retain(|it| kept.contains(repairs.get(&it.ssrc).unwrap_or(&it.ssrc)));
    log.cut(Cut::Streams);
}

/// The sources that a datagram says goodbye of [RFC3550 §6.6].
fn byes(bytes: &[u8]) -> Vec<u32> {
    const BYE: u8 = 203;
    let mut found = Vec::new();
    let mut at = bytes;
    while let [first, kind, a, b, ..] = *at {
        let length = (usize::from(u16::from_be_bytes([a, b])) + 1) * 4;
        let packet = &at[..length.min(at.len())];
        if kind == BYE {
            let sources = packet[4..].chunks_exact(4).take(usize::from(first & 0x1F));
            found.extend(sources.map(|it| u32::from_be_bytes([it[0], it[1], it[2], it[3]])));
        }
        at = at.get(length..).unwrap_or_default();
    }
    found
}

/// Whether a datagram is a compound packet in the clear. SRTCP leaves the first header readable,
/// but what follows does not fill the datagram with whole packets [RFC3711 §3.4].
///
/// [RFC3711 §3.4]: https://www.rfc-editor.org/rfc/rfc3711#section-3.4
pub(crate) fn is_readable(bytes: &[u8]) -> bool {
    const KINDS: std::ops::RangeInclusive<u8> = 192..=223;
    let mut is_readable = !bytes.is_empty();
    let mut at = bytes;
    while let [_, kind, a, b, ..] = *at {
        let length = (usize::from(u16::from_be_bytes([a, b])) + 1) * 4;
        is_readable &= KINDS.contains(&kind) && length <= at.len();
        at = at.get(length..).unwrap_or_default();
    }
    is_readable
        && at.is_empty()
        && !messages(bytes).any(|message| matches!(message, Err(RtcpEvent::Malformed(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC3711 §3.4]
    #[test]
    fn encrypted_rtcp_is_told_from_plain_rtcp() {
        // An empty receiver report, and an empty one behind it.
        let plain = [0x80, 201, 0, 1, 0, 0, 0, 9];
        assert!(is_readable(&plain) && is_readable(&[plain, plain].concat()));
        // The E flag with the index, and a tag of 10 bytes.
        let mut srtcp = plain.to_vec();
        srtcp.extend([0x80, 0, 0, 5, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB, 0xAB]);
        assert!(!is_readable(&srtcp));
        for end in 0..plain.len() {
            assert!(!is_readable(&plain[..end]));
        }
    }
}
