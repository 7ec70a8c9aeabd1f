//! Checks whether three witnesses of one call agree: the browsers' reports, the captures at the
//! hosts' interfaces, and the emulator's log.
//!
//! ```text
//! getStats -- packets, bytes, loss by stream -- capture -- packets, bytes, loss, delay -- emulator
//! ```
//!
//! Each witness counts independently. A limit is the allowed difference between two witnesses. It
//! exists because one of them cannot see everything. No limit is fitted to data:
//!
//! - A packet near an edge of the window may be inside for one witness and outside for the other.
//!   The limit is the number of packets that the capture saw there.
//! - getStats counts payload and RTP headers. IP and UDP headers and the SRTP tag are added with
//!   their known sizes. Counts of media exclude STUN, DTLS and RTCP.
//! - The emulator's losses are not per stream. The losses of non-media packets are estimated from
//!   the loss ratio and subtracted, with three standard deviations as tolerance. For a full queue,
//!   this estimate is an upper bound: a single small packet finds room where a burst of video does
//!   not. So half of it is subtracted, and the other half is added to the limit.
//! - The emulator's delay is that of its model: propagation, queuing and transmission. The
//!   capture's delay also contains the emulator's lateness at both ends, and covers only media.

use serde::Serialize;
use weir_record::calls::derive::{self, Count, Total};
use weir_record::calls::stats::Kind;

use super::counted::Compared;
use super::ends::{CallEnds, PeerStream, report_window};
use super::link_log::LinkLog;
use super::sources::{StreamDirection, StreamRole};
use crate::measure::capture::{Stream, Windowed};
use crate::message::Peer;

/// One quantity, measured by two witnesses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WitnessComparison {
    /// What was measured, and where: `audio a to b, at a`.
    pub subject: String,
    /// `packets`, `payload bytes`, `bytes`, `lost packets` or `mean delay, ms`.
    pub quantity: &'static str,
    /// The witness compared with the capture: `getStats` or `emulator`.
    pub witness: &'static str,
    /// Value of this witness.
    pub witnessed: f64,
    /// Value of the capture.
    pub captured: f64,
    /// Witnessed minus captured.
    pub error: f64,
    /// Maximum error that is not a contradiction.
    pub limit: f64,
    /// Whether the error is within the limit.
    pub agrees: bool,
}

impl Compared {
    /// Compares the two witnesses. `path` names sender and receiver.
    pub(super) fn rows(&self, path: &str) -> Vec<WitnessComparison> {
        let subject = format!("{} {path}, at {}", self.counted.name(), self.peer.name());
        stream(&subject, self.reported, self.captured, self.knows_payload)
    }
}

impl CallEnds<'_> {
    /// Compares the witnesses: one row per quantity that two of them measured.
    pub fn agreement(&self) -> Vec<WitnessComparison> {
        Peer::ALL.into_iter().flat_map(|from| self.agreement_of(from)).collect()
    }

    /// The rows for the packets that one peer sends to the other.
    fn agreement_of(&self, from: Peer) -> Vec<WitnessComparison> {
        let to = from.other();
        let path = format!("{} to {}", from.name(), to.name());
        let mut rows = Vec::new();
        if self.shows_media {
            for (peer, direction) in
                [(from, StreamDirection::Sent), (to, StreamDirection::Received)]
            {
                let compared = self.compared_at(peer, direction);
                rows.extend(compared.iter().flat_map(|compared| compared.rows(&path)));
            }
            rows.extend(Kind::ALL.into_iter().flat_map(|kind| self.totals(from, kind, &path)));
        }
        if let Some(log) = &self.logs[from.index()] {
            let subjects = [from, to].map(|peer| subject("all packets", &path, peer));
            rows.extend(self.link_agreement(from, log, subjects));
        }
        rows
    }

    /// The rows for one kind of media: size of the IP packets at both ends, and the losses.
    fn totals(&self, from: Peer, kind: Kind, path: &str) -> Vec<WitnessComparison> {
        let to = from.other();
        let (name, source) = match kind {
            Kind::Video => ("video and retransmissions", StreamRole::Video),
            Kind::Audio => ("audio", StreamRole::Audio),
        };
        let [sender, receiver] = [from, to].map(|peer| self.peers[peer.index()].reports.as_slice());
        let mut rows = Vec::new();
        if let Some(total) = derive::sent_total(sender, kind) {
            let streams = self.streams_within(from, &report_window(total.start, total.end));
            let sent = sum(&streams, kind, |stream| stream.sent);
            rows.extend(media(&subject(name, path, from), &total, sent));
        }
        if let Some(total) = derive::received_total(receiver, kind) {
            let streams = self.streams_within(from, &report_window(total.start, total.end));
            let received = sum(&streams, kind, |stream| stream.received);
            rows.extend(media(&subject(name, path, to), &total, received));
            let source = streams.iter().find(|stream| stream.role == source);
            rows.extend(source.map(|PeerStream { role, stream, .. }| {
                let video_or_audio = subject(role.name(), path, to);
                media_loss(&video_or_audio, total.lost, stream.lost, stream.sent)
            }));
        }
        rows
    }

    fn link_agreement(
        &self,
        from: Peer,
        log: &LinkLog,
        subjects: [String; 2],
    ) -> Vec<WitnessComparison> {
        let [near, far] = [from, from.other()].map(Peer::index);
        let sent = Windowed::with(&self.captures[near].sent, self.destinations[near]);
        let received = Windowed::with(&self.captures[far].received, self.destinations[far]);
        let mut rows = link(subjects.each_ref().map(String::as_str), log, sent, received);
        let streams: Vec<Stream> =
            self.streams(from).into_iter().map(|stream| stream.stream).collect();
        let path = format!("media {} to {}", from.name(), from.other().name());
        rows.extend(link_media(&path, log, &streams, sent));
        rows
    }
}

/// Sums the streams whose headers `getStats` counts together: a video and its retransmissions.
fn sum(streams: &[PeerStream], kind: Kind, of: impl Fn(&Stream) -> Windowed) -> Windowed {
    let counted = streams.iter().filter(|stream| stream.role.kind() == Some(kind));
    counted.fold(Windowed::default(), |sum, stream| sum.plus(of(&stream.stream)))
}

/// Packets and payload of one count at one end. `captured` covers the time of its reports.
pub fn stream(
    subject: &str,
    reported: Count,
    captured: Windowed,
    knows_payload: bool,
) -> Vec<WitnessComparison> {
    let mut rows = counts(subject, "getStats", ["packets", "payload bytes"], reported, captured);
    rows.truncate(if knows_payload { 2 } else { 1 });
    rows
}

/// Bytes of IP packets of all streams whose headers are counted together.
pub fn media(subject: &str, reported: &Total, captured: Windowed) -> Option<WitnessComparison> {
    let (bytes, limit) = (captured.within.bytes as f64, captured.at_edges.bytes as f64);
    let row = row(subject, "bytes", "getStats", reported.count.bytes as f64, bytes, limit);
    reported.knows_bytes.then_some(row)
}

/// The receiver's losses. Packets at the edges may or may not count as lost.
pub fn media_loss(
    subject: &str,
    reported: i64,
    captured_lost: u64,
    captured: Windowed,
) -> WitnessComparison {
    let limit = captured.at_edges.packets as f64;
    row(subject, "lost packets", "getStats", reported as f64, captured_lost as f64, limit)
}

/// All traffic from one host to another, measured at both hosts.
pub fn link(
    subject: [&str; 2],
    log: &LinkLog,
    sent: Windowed,
    received: Windowed,
) -> Vec<WitnessComparison> {
    const QUANTITIES: [&str; 2] = ["packets", "bytes"];
    let mut rows = counts(subject[0], "emulator", QUANTITIES, log.offered, sent);
    rows.extend(counts(subject[1], "emulator", QUANTITIES, log.delivered, received));
    rows
}

/// Losses and delay of the media from one host to another. `all` is all traffic that left the
/// sender.
pub fn link_media(
    subject: &str,
    log: &LinkLog,
    streams: &[Stream],
    all: Windowed,
) -> Vec<WitnessComparison> {
    let lost: u64 = streams.iter().map(|stream| stream.lost).sum();
    let media: u64 = streams.iter().map(|stream| stream.sent.within.packets).sum();
    let others = all.within.packets.saturating_sub(media) as f64;
    let [by_chance, by_queue] = [log.lost, log.dropped]
        .map(|lost| others * lost as f64 / (log.offered.packets.max(1)) as f64);
    let slack = 3.0 * (by_chance + by_queue).sqrt() + by_queue / 2.0 + all.at_edges.packets as f64;
    let witnessed = (log.lost + log.dropped) as f64 - by_chance - by_queue / 2.0;
    let mut rows = vec![row(subject, "lost packets", "emulator", witnessed, lost as f64, slack)];
    let delays = streams.iter().flat_map(|stream| &stream.delays);
    let (sum, count) =
        delays.fold((0.0, 0_u64), |(sum, count), delay| (sum + delay.as_millis_f64(), count + 1));
    if let (Some(modelled), true) = (log.delay, count > 0) {
        let share_of_others = others / (all.within.packets.max(1)) as f64;
        let limit =
            2.0 * log.lateness.as_millis_f64() + share_of_others * log.longest_wait.as_millis_f64();
        let captured = sum / count as f64;
        rows.push(row(
            subject,
            "mean delay, ms",
            "emulator",
            modelled.as_millis_f64(),
            captured,
            limit,
        ));
    }
    rows
}

fn counts(
    subject: &str,
    witness: &'static str,
    quantities: [&'static str; 2],
    other: Count,
    captured: Windowed,
) -> Vec<WitnessComparison> {
    let Windowed { within, at_edges } = captured;
    let values = [
        (other.packets, within.packets, at_edges.packets),
        (other.bytes, within.bytes, at_edges.bytes),
    ];
    let mut rows = Vec::new();
    for (quantity, (other, within, limit)) in quantities.into_iter().zip(values) {
        rows.push(row(subject, quantity, witness, other as f64, within as f64, limit as f64));
    }
    rows
}

/// What a row is about, such as `audio a to b, at b`.
fn subject(what: &str, path: &str, peer: Peer) -> String {
    format!("{what} {path}, at {}", peer.name())
}

fn row(
    subject: &str,
    quantity: &'static str,
    witness: &'static str,
    witnessed: f64,
    captured: f64,
    limit: f64,
) -> WitnessComparison {
    let error = witnessed - captured;
    let agrees = error.abs() <= limit;
    WitnessComparison {
        subject: subject.into(),
        quantity,
        witness,
        witnessed,
        captured,
        error,
        limit,
        agrees,
    }
}

#[cfg(test)]
mod tests {
    use weir::units::{TimeDelta, Timestamp};

    use super::*;

    fn count(packets: u64) -> Count {
        Count { packets, bytes: packets * 1_000 }
    }

    fn windowed(within: u64, at_edges: u64) -> Windowed {
        Windowed { within: count(within), at_edges: count(at_edges) }
    }

    fn stream(sent: u64, lost: u64, delay_ms: i64) -> Stream {
        Stream {
            ssrc: 7,
            payload_types: vec![96],
            sent: windowed(sent, 2),
            received: windowed(sent - lost, 2),
            lost,
            reordered: 0,
            duplicates: 0,
            delays: vec![TimeDelta::from_millis(delay_ms); 10],
        }
    }

    const LOG: LinkLog = LinkLog {
        offered: Count { packets: 1_000, bytes: 1_000_000 },
        delivered: Count { packets: 900, bytes: 900_000 },
        lost: 100,
        dropped: 0,
        delay: Some(TimeDelta::from_millis(30)),
        longest_wait: TimeDelta::from_millis(20),
        lateness: TimeDelta::from_micros(200),
    };

    fn total(count: Count, knows_bytes: bool) -> Total {
        Total { start: Timestamp::ZERO, end: Timestamp::ZERO, count, knows_bytes, lost: 0 }
    }

    fn agree(rows: &[WitnessComparison]) -> Vec<bool> {
        rows.iter().map(|row| row.agrees).collect()
    }

    #[test]
    fn counts_agree_up_to_what_lies_at_the_edges() {
        let stream = |reported, knows| agree(&super::stream("", reported, windowed(100, 4), knows));
        assert_eq!(stream(count(104), true), [true, true]);
        assert_eq!(stream(count(105), true), [false, false]);
        let bytes = Count { packets: 100, bytes: 95_999 };
        assert_eq!(stream(bytes, true), [true, false]);
        assert_eq!(stream(bytes, false), [true]);
        let media = |reported, knows| media("", &total(reported, knows), windowed(100, 4));
        assert!(media(count(104), true).unwrap().agrees);
        assert!(!media(bytes, true).unwrap().agrees);
        assert_eq!(media(bytes, false), None);
        assert!(media_loss("", -2, 0, windowed(100, 4)).agrees);
        assert!(!media_loss("", 9, 4, windowed(100, 4)).agrees);
    }

    #[test]
    fn both_ends_of_a_link_are_held_against_the_emulator() {
        let rows = link(["at a", "at b"], &LOG, windowed(1_000, 0), windowed(890, 5));
        assert_eq!(agree(&rows), [true, true, false, false]);
        assert_eq!((rows[2].subject.as_str(), rows[2].error), ("at b", 10.0));
    }

    #[test]
    fn losses_of_other_packets_are_taken_off_the_emulators() {
        // 100 of 1000 packets were not media: they account for 10 of the losses, plus or minus 9.5.
        let lost = |lost| link_media("", &LOG, &[stream(900, lost, 30)], windowed(1_000, 0));
        assert!(lost(90)[0].agrees && lost(81)[0].agrees);
        assert!(!lost(80)[0].agrees);
        assert_eq!(lost(90)[0].error, 0.0);
    }

    #[test]
    fn a_full_queue_may_have_spared_other_packets() {
        // 200 of 1000 packets were dropped. A tenth of all packets was not media, so at most 20 of
        // these.
        let log = LinkLog { lost: 0, dropped: 200, ..LOG };
        let row =
            |lost| link_media("", &log, &[stream(900, lost, 30)], windowed(1_000, 0)).remove(0);
        assert!(row(200).agrees && row(180).agrees);
        assert!(!row(214).agrees && !row(166).agrees);
        assert_eq!(row(190).error, 0.0);
    }

    #[test]
    fn delay_agrees_up_to_the_lateness_and_what_others_waited() {
        // 2 x 0.2 ms, and a tenth of 20 ms.
        let delay = |ms| link_media("", &LOG, &[stream(900, 90, ms)], windowed(1_000, 0));
        assert!(delay(32)[1].agrees);
        assert!(!delay(33)[1].agrees);
        let random = LinkLog { delay: None, ..LOG };
        assert_eq!(link_media("", &random, &[stream(900, 90, 30)], windowed(1_000, 0)).len(), 1);
    }
}
