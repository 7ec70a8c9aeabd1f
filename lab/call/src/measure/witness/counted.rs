//! Compares the counts of getStats for each stream with the capture at the same host.
//!
//! ```text
//!   sender    outbound-rtp   video + retransmissions + padding       one count
//!   receiver  inbound-rtp    video | retransmissions and padding     two counts
//! ```
//!
//! Retransmissions have their own SSRC, which is also used for padding. A sender reports how much
//! it has retransmitted, but counts the padding with the video. Therefore both streams together are
//! compared with one count there. A receiver counts each SSRC separately.
//!
//! Packets and RTP payload are compared. For headers, getStats has only the sum over a video and
//! its retransmissions; that sum is compared in a separate row.

use weir::units::{Bitrate, DataSize, Timestamp};
use weir_record::calls::derive::{Count, TimedReport};
use weir_record::calls::stats::{Kind, StatsReport};

use super::ends::{CallEnds, report_window};
use super::sources::{Counted, StreamDirection};
use crate::measure::capture::{Sighting, Windowed, between};
use crate::message::{Peer, printable};

/// One count of a browser, and the same count from the capture at its host.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The peer whose browser counted.
    pub peer: Peer,
    /// Whether the peer sends it.
    pub direction: StreamDirection,
    /// The kind of count.
    pub counted: Counted,
    /// SSRCs of the streams in the count, which the capture distinguishes.
    pub ssrcs: Vec<u32>,
    /// The media section of the session description.
    pub mid: Option<String>,
    /// Packets and payload by getStats, from the first report that contains the stream to the last.
    pub reported: Count,
    /// Packets and payload by the capture in the same time.
    pub captured: Windowed,
    /// Whether payload can be compared. Some browsers do not report what SRTP adds to it.
    pub knows_payload: bool,
    /// Intervals between successive reports; empty if payload cannot be compared.
    pub intervals: Vec<ComparedInterval>,
}

/// Payload rates between two reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedInterval {
    /// Time of the later report.
    pub end: Timestamp,
    /// Rate by getStats.
    pub reported: Bitrate,
    /// Rate by the capture.
    pub captured: Bitrate,
}

/// A count in one report; its bytes are payload. `None` if the report does not contain it.
fn reading(report: &StatsReport, direction: StreamDirection, counted: Counted) -> Option<Count> {
    let kind = counted.kind();
    if direction == StreamDirection::Sent {
        let sent = report.sent(kind)?;
        return Some(Count { packets: sent.packets_sent, bytes: sent.bytes_sent });
    }
    let received = report.received(kind)?;
    let again = Count {
        packets: received.retransmitted_packets_received.unwrap_or(0),
        bytes: received.retransmitted_bytes_received.unwrap_or(0),
    };
    let all = Count { packets: received.packets_received, bytes: received.bytes_received };
    Some(match counted {
        Counted::Retransmissions => again,
        Counted::Video => since(again, all),
        Counted::VideoAndRetransmissions | Counted::Audio => all,
    })
}

fn mid(report: &StatsReport, direction: StreamDirection, kind: Kind) -> Option<&str> {
    match direction {
        StreamDirection::Sent => report.sent(kind)?.mid.as_deref(),
        StreamDirection::Received => report.received(kind)?.mid.as_deref(),
    }
}

/// Growth of a count; zero if a hostile page decreases it.
fn since(before: Count, after: Count) -> Count {
    Count {
        packets: after.packets.saturating_sub(before.packets),
        bytes: after.bytes.saturating_sub(before.bytes),
    }
}

/// Payload of a packet without the SRTP tag.
fn payload(packet: &Sighting, tag: u64) -> u32 {
    let tag = u32::try_from(tag).unwrap_or(u32::MAX);
    packet.payload.map_or(0, |bytes| bytes.saturating_sub(tag))
}

impl CallEnds<'_> {
    /// Each count of each browser that at least two of its reports contain.
    pub fn compared(&self) -> Vec<Compared> {
        let mut compared = Vec::new();
        for peer in Peer::ALL {
            for direction in [StreamDirection::Sent, StreamDirection::Received] {
                compared.extend(self.compared_at(peer, direction));
            }
        }
        compared
    }

    /// The counts of one peer in one direction.
    pub(super) fn compared_at(&self, peer: Peer, direction: StreamDirection) -> Vec<Compared> {
        let from = if direction == StreamDirection::Sent { peer } else { peer.other() };
        let reports = &self.peers[peer.index()].reports;
        let Some(last) = reports.last() else { return Vec::new() };
        let sources = self.sources(from);
        let counts = sources.counts(&last.report, direction).into_iter();
        let compared = counts.filter_map(|counted| {
            let mid =
                reports.iter().find_map(|timed| mid(&timed.report, direction, counted.kind()));
            let named = Compared {
                peer,
                direction,
                counted,
                ssrcs: sources.with(counted),
                mid: mid.map(printable),
                reported: Count::default(),
                captured: Windowed::default(),
                knows_payload: last.report.knows_srtp_tag(),
                intervals: Vec::new(),
            };
            self.fill(named)
        });
        compared.collect()
    }

    /// Fills in the counts. `None` if fewer than two reports contain the streams.
    fn fill(&self, mut compared: Compared) -> Option<Compared> {
        let Compared { peer, direction, counted, .. } = compared;
        let reports = &self.peers[peer.index()].reports;
        let readings: Vec<(&TimedReport, Count)> = reports
            .iter()
            .filter_map(|timed| Some((timed, reading(&timed.report, direction, counted)?)))
            .collect();
        let [(first, before), .., (last, after)] = readings.as_slice() else { return None };
        let tag = last.report.srtp_tag_bytes();
        let window = report_window(first.time, last.time);
        compared.reported = since(*before, *after);
        let streams: Vec<&[Sighting]> =
            compared.ssrcs.iter().map(|ssrc| self.sightings(peer, direction, *ssrc)).collect();
        compared.captured = streams.iter().fold(Windowed::default(), |sum, packets| {
            sum.plus(Windowed::by(packets, &window, |packet| payload(packet, tag)))
        });
        if compared.knows_payload {
            let pairs = readings.windows(2).map(|pair| (&pair[0], &pair[1]));
            let intervals = pairs.filter_map(|((start, before), (end, after))| {
                interval(&streams, tag, [start.time, end.time], since(*before, *after))
            });
            // Only intervals within the scenario's time, as for the peer's own intervals.
            compared.intervals = intervals.filter(|it| it.end > Timestamp::ZERO).collect();
        }
        Some(compared)
    }

    /// Packets of a stream in the capture at a peer's host.
    fn sightings(&self, peer: Peer, direction: StreamDirection, ssrc: u32) -> &[Sighting] {
        let capture = self.captures[peer.index()];
        let side =
            if direction == StreamDirection::Sent { &capture.sent } else { &capture.received };
        let seen = side.streams.get(&(self.destinations[peer.index()], ssrc));
        seen.map_or(&[], Vec::as_slice)
    }
}

/// `None` if the second report is not later than the first.
fn interval(
    streams: &[&[Sighting]],
    tag: u64,
    [start, end]: [Timestamp; 2],
    reported: Count,
) -> Option<ComparedInterval> {
    let time = end - start;
    if end <= start {
        return None;
    }
    let packets = streams.iter().flat_map(|packets| between(packets, start, end));
    let captured: u64 = packets.map(|packet| u64::from(payload(packet, tag))).sum();
    let [reported, captured] =
        [reported.bytes, captured].map(|bytes| DataSize::from_bytes(bytes) / time);
    Some(ComparedInterval { end, reported, captured })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::measure::capture::{HostCapture, Side};
    use crate::measure::outcome::PeerOutcome;

    const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 45, 0, 1), Ipv4Addr::new(10, 45, 0, 2)];
    const VIDEO: u32 = 0x10;
    const AGAIN: u32 = 0x11;
    const AUDIO: u32 = 0x20;

    /// Reports of peer a at 0 and 1 s, in Chromium's format. Those of peer b follow.
    const SENDER: [&str; 2] = [
        r#"{"outbound":{"timestamp":0,"ssrc":16,"rtxSsrc":17,"mid":"1","packetsSent":0,
            "bytesSent":0,"headerBytesSent":0},"audioOutbound":{"timestamp":0,"ssrc":32,"mid":"0",
            "packetsSent":0,"bytesSent":0,"headerBytesSent":0},
            "transport":{"srtpCipher":"AEAD_AES_128_GCM"}}"#,
        r#"{"outbound":{"timestamp":1000,"ssrc":16,"rtxSsrc":17,"mid":"1","packetsSent":5,
            "bytesSent":3202,"headerBytesSent":340,"retransmittedPacketsSent":1,
            "retransmittedBytesSent":1002},"audioOutbound":{"timestamp":1000,"ssrc":32,"mid":"0",
            "packetsSent":2,"bytesSent":160,"headerBytesSent":40},
            "transport":{"srtpCipher":"AEAD_AES_128_GCM"}}"#,
    ];
    const RECEIVER: [&str; 2] = [
        r#"{"inbound":{"timestamp":0,"packetsReceived":0,"packetsLost":0,"bytesReceived":0,
            "headerBytesReceived":0},"transport":{"srtpCipher":"AEAD_AES_128_GCM"}}"#,
        r#"{"inbound":{"timestamp":1000,"ssrc":16,"rtxSsrc":17,"mid":"1","packetsReceived":4,
            "packetsLost":1,"bytesReceived":2202,
            "headerBytesReceived":320,"retransmittedPacketsReceived":2,
            "retransmittedBytesReceived":1002},
            "audioInbound":{"timestamp":1000,"packetsReceived":2,"packetsLost":0,
            "bytesReceived":160,"headerBytesReceived":40},
            "transport":{"srtpCipher":"AEAD_AES_128_GCM"}}"#,
    ];

    fn peer(texts: [&str; 2]) -> PeerOutcome {
        let timed = |text: &str, second| TimedReport {
            time: Timestamp::from_secs(second),
            report: serde_json::from_str(text).unwrap(),
        };
        let reports = vec![timed(texts[0], 0), timed(texts[1], 1)];
        PeerOutcome {
            setup: None,
            first_frame_ms: None,
            pair: None,
            reports,
            targets: vec![],
            frames: vec![],
            pictures: Default::default(),
            sounds: Default::default(),
            signalling: vec![],
        }
    }

    /// Packets every 100 ms, starting at 100 ms. Each has this much payload and a tag of 16 bytes,
    /// or is padding.
    fn packets(payloads: &[Option<u32>]) -> Vec<Sighting> {
        let packet = |(index, payload): (usize, &Option<u32>)| Sighting {
            time: Timestamp::from_millis(100 * (index as i64 + 1)),
            sequence: index as i64,
            size: payload.map_or(255, |bytes| bytes + 16) + 48,
            payload_type: 96,
            payload: payload.map(|bytes| bytes + 16),
        };
        payloads.iter().enumerate().map(packet).collect()
    }

    fn side(other: Ipv4Addr, streams: [(u32, Vec<Sighting>); 3]) -> Side {
        let streams = streams.into_iter().map(|(ssrc, packets)| ((other, ssrc), packets));
        Side { streams: streams.collect(), ..Side::default() }
    }

    /// One of three video packets was lost and retransmitted. A padding packet used the same SSRC
    /// as the retransmission.
    fn compared(sender: [&str; 2], receiver: [&str; 2]) -> Vec<Compared> {
        compared_of([peer(sender), peer(receiver)])
    }

    fn compared_of(peers: [PeerOutcome; 2]) -> Vec<Compared> {
        let again = packets(&[Some(1_002), None]);
        let audio = packets(&[Some(80), Some(80)]);
        let sent = packets(&[Some(1_000), Some(1_000), Some(200)]);
        let received = vec![sent[0], sent[2]];
        let streams = |video| [(VIDEO, video), (AGAIN, again.clone()), (AUDIO, audio.clone())];
        let capture = |host: usize| HostCapture {
            address: HOSTS[host],
            sent: Side::default(),
            received: Side::default(),
        };
        let a = HostCapture { sent: side(HOSTS[1], streams(sent)), ..capture(0) };
        let b = HostCapture { received: side(HOSTS[0], streams(received)), ..capture(1) };
        let ends = CallEnds {
            peers: [&peers[0], &peers[1]],
            captures: [&a, &b],
            destinations: [HOSTS[1], HOSTS[0]],
            logs: [None; 2],
            shows_media: true,
            window: report_window(Timestamp::ZERO, Timestamp::from_secs(1)),
        };
        ends.compared()
    }

    #[test]
    fn a_sender_counts_video_and_retransmissions_as_one_a_receiver_as_two() {
        let compared = compared(SENDER, RECEIVER);
        let told: Vec<_> =
            compared.iter().map(|it| (it.direction, it.counted, &it.ssrcs[..])).collect();
        use Counted::{Audio, Retransmissions, Video, VideoAndRetransmissions};
        assert_eq!(
            told,
            [
                (StreamDirection::Sent, VideoAndRetransmissions, &[VIDEO, AGAIN][..]),
                (StreamDirection::Sent, Audio, &[AUDIO]),
                (StreamDirection::Received, Video, &[VIDEO]),
                (StreamDirection::Received, Retransmissions, &[AGAIN]),
            ]
        );
        assert_eq!(compared[3].mid.as_deref(), Some("1"));
    }

    #[test]
    fn each_count_is_that_of_the_capture_without_padding_and_tags() {
        for it in compared(SENDER, RECEIVER) {
            assert_eq!(it.captured.within, it.reported, "{it:?}");
            assert!(it.rows("a to b").iter().all(|row| row.agrees && row.limit == 0.0));
            let [interval] = it.intervals[..] else { panic!("{it:?}") };
            assert_eq!(interval.reported, interval.captured);
            assert_eq!(interval.captured, Bitrate::from_bps(8 * it.reported.bytes));
        }
    }

    #[test]
    fn a_packet_that_getstats_does_not_have_is_an_error_of_its_stream_alone() {
        let short = RECEIVER[1].replace(r#""packetsReceived":4"#, r#""packetsReceived":3"#);
        let compared = compared(SENDER, [RECEIVER[0], &short]);
        let errors = |it: &Compared| it.rows("a to b").iter().map(|row| row.error).sum::<f64>();
        assert_eq!(compared.iter().map(errors).collect::<Vec<_>>(), [0.0, 0.0, -1.0, 0.0]);
        assert_eq!(compared[2].rows("a to b")[0].subject, "video a to b, at b");
    }

    #[test]
    fn the_streams_of_a_forwarding_server_are_those_that_their_receiver_knows() {
        let compared = compared_of([peer(SENDER), peer(RECEIVER)].map(|peer| PeerOutcome {
            reports: peer.reports.into_iter().filter(|it| it.report.outbound.is_none()).collect(),
            ..peer
        }));
        let told: Vec<_> =
            compared.iter().map(|it| (it.direction, it.counted, &it.ssrcs[..])).collect();
        use Counted::{Retransmissions, Video};
        assert_eq!(
            told,
            [
                (StreamDirection::Received, Video, &[VIDEO][..]),
                (StreamDirection::Received, Retransmissions, &[AGAIN])
            ]
        );
        assert!(compared.iter().all(|it| it.captured.within == it.reported));
    }

    #[test]
    fn a_count_that_a_browser_does_not_report_is_not_compared() {
        let hidden = |text: &str| text.replace(r#""srtpCipher":"AEAD_AES_128_GCM""#, "");
        let of_receiver = RECEIVER.map(hidden);
        let together = of_receiver
            .each_ref()
            .map(|text| text.replace(r#","retransmittedPacketsReceived":2"#, ""));
        let compared = compared(SENDER, together.each_ref().map(String::as_str));
        assert_eq!(compared[2].counted, Counted::VideoAndRetransmissions);
        assert_eq!(compared[2].captured.within.packets, compared[2].reported.packets);
        assert!(!compared[2].knows_payload && compared[2].intervals.is_empty());
        assert_eq!(compared[2].rows("").len(), 1);
    }
}
