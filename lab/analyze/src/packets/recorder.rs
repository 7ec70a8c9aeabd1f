//! Builds the log and the streams of a connection, packet by packet.

use std::collections::{BTreeMap, BTreeSet};

use weir::feedback::SeqUnwrapper;
use weir::units::{Bitrate, Timestamp};
use weir_controllers::AbsSendTimes;
use weir_rtcp::{Ignored, Message, messages};
use weir_wire::report::compact_ntp;

use super::control::Control;
use super::extensions::{Ids, WATCHED};
use super::reports::{Counter, LEAST_PACKETS};
use super::rtp::{Extensions, RtpPacket};
use super::{Cut, FAR, PacketLog, Received, STREAMS_MAX, Sent, within};
use crate::dump::{Connection, Stream, StreamDirection};

/// Largest number of SSRCs that are watched. More are ignored.
const SSRCS_MAX: usize = 4_096;
/// IPv4 and UDP headers.
const IP_UDP_HEADERS: u32 = 20 + 8;

/// Builds the log and the streams. Times must not decrease by more than a few packets' time.
#[derive(Default)]
pub(crate) struct Recorder {
    log: PacketLog,
    streams: BTreeMap<(StreamDirection, u32), Counter>,
    /// Reports of all of them.
    reports: usize,
    /// The first packets of each direction, until the ids of their extensions are known.
    early: BTreeMap<StreamDirection, Vec<(Timestamp, RtpPacket)>>,
    ids: BTreeMap<StreamDirection, Ids>,
    numbers: SeqUnwrapper,
    received_numbers: SeqUnwrapper,
    send_times: AbsSendTimes,
}

impl Recorder {
    /// SSRC of the retransmissions of a stream.
    pub fn repair(&mut self, repair: u32, media: u32) {
        if self.log.repairs.len() < SSRCS_MAX {
            self.log.repairs.insert(repair, media);
        }
    }

    /// A packet of RTP.
    pub fn rtp(&mut self, time: Timestamp, way: StreamDirection, packet: &RtpPacket) {
        if !within(time, FAR) {
            return self.log.cut(Cut::Length);
        }
        let media = self.log.repairs.get(&packet.ssrc);
        let ssrc = media.copied().unwrap_or(packet.ssrc);
        let is_repair = media.is_some();
        if self.reports >= super::REPORTS_MAX {
            self.log.cut(Cut::Reports);
        } else if self.streams.len() < SSRCS_MAX || self.streams.contains_key(&(way, ssrc)) {
            let counter = self.streams.entry((way, ssrc)).or_default();
            self.reports += counter.add(time.as_nanos(), packet, is_repair);
        }
        if !self.log.has_room(time) {
            return;
        }
        let knows = matches!(packet.extensions, Extensions::Known { .. });
        if knows || self.ids.contains_key(&way) {
            return self.keep(time, way, packet);
        }
        let early = self.early.entry(way).or_default();
        early.push((time, *packet));
        if early.len() == WATCHED {
            self.decide(way);
        }
    }

    /// Decides the ids of a direction's extensions, and keeps its first packets.
    fn decide(&mut self, way: StreamDirection) {
        let early = self.early.remove(&way).unwrap_or_default();
        let candidates = early.iter().filter_map(|(time, packet)| match packet.extensions {
            Extensions::Unknown(candidates) => Some((*time, candidates)),
            Extensions::Known { .. } => None,
        });
        self.ids.insert(way, Ids::of(candidates));
        for (time, packet) in &early {
            self.keep(*time, way, packet);
        }
    }

    fn keep(&mut self, time: Timestamp, way: StreamDirection, packet: &RtpPacket) {
        let (number, send_time) = match packet.extensions {
            Extensions::Known { number, send_time } => (number, send_time),
            Extensions::Unknown(candidates) => {
                let ids = self.ids.get(&way).copied().unwrap_or_default();
                (ids.number(&candidates), ids.time(&candidates))
            }
        };
        let &RtpPacket { ssrc, sequence_number, rtp_timestamp, is_padding, .. } = packet;
        let size = [packet.header_size, packet.payload_size, packet.padding_size];
        let size = size.into_iter().fold(IP_UDP_HEADERS, u32::saturating_add);
        match way {
            StreamDirection::Sent => {
                let number = number.map(|number| self.numbers.unwrap(number.into()));
                self.log.sent.push(Sent {
                    time,
                    ssrc,
                    sequence_number,
                    rtp_timestamp,
                    number,
                    size,
                    is_padding,
                });
            }
            StreamDirection::Received => {
                let send_time = send_time.map(|ticks| self.send_times.unwrap(ticks));
                let number = number.map(|number| self.received_numbers.unwrap(number.into()));
                let received = Received { time, send_time, ssrc, sequence_number, number, size };
                self.log.received.push(received);
            }
        }
    }

    /// RTCP that is encrypted or cut: it only counts.
    pub fn unreadable_rtcp(&mut self) {
        self.log.unreadable_rtcp += 1;
    }

    /// Whether there was RTCP, and none of it was readable.
    pub fn is_blind(&self) -> bool {
        self.log.unreadable_rtcp > 0
            && self.log.rtcp.is_empty()
            && self.log.sender_reports.is_empty()
    }

    /// A datagram of RTCP.
    pub fn rtcp(&mut self, time: Timestamp, way: StreamDirection, bytes: &[u8]) {
        if !is_readable(bytes) {
            return self.unreadable_rtcp();
        }
        if way == StreamDirection::Received {
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
        for way in [StreamDirection::Sent, StreamDirection::Received] {
            if self.early.contains_key(&way) {
                self.decide(way);
            }
        }
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
        if log.sent.iter().any(|packet| packet.number.is_some()) {
            log.sent.retain(|packet| packet.number.is_some());
            log.sent.sort_by_key(|packet| packet.number);
            let mut last = Timestamp::from_nanos(i64::MIN);
            for packet in &mut log.sent {
                packet.time = packet.time.max(last);
                last = packet.time;
            }
        }
        let streams = self.streams.into_iter();
        let mut streams: Vec<Stream> =
            streams.filter_map(|((way, ssrc), counter)| counter.stream(way, ssrc)).collect();
        super::reports::add_feedback(&mut streams, &log);
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
        && !messages(bytes).any(|message| matches!(message, Err(Ignored::Malformed(_))))
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
