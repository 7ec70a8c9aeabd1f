//! What a controller hears of the host's words.

use std::sync::mpsc::{Receiver, Sender, channel};

use weir::controller::{Controller, RateLimits, Reason, Target};
use weir::feedback::{Ecn, SentPacket};
use weir::{Algorithm, Bitrate, DataSize, FeedbackReport, Metrics, Timestamp};
use weir_quic::{AckEnd, Config, Congestion, PacketName, Sent, Space};

/// Passes its reports on.
struct Recorder(Sender<FeedbackReport>);

impl Controller for Recorder {
    fn on_packet_sent(&mut self, _now: Timestamp, _packet: &SentPacket) {}
    fn on_feedback(&mut self, _now: Timestamp, report: &FeedbackReport) {
        self.0.send(report.clone()).unwrap();
    }
    fn on_receiver_limit(&mut self, _now: Timestamp, _limit: Option<Bitrate>) {}
    fn set_limits(&mut self, _now: Timestamp, _limits: RateLimits) {}
    fn on_timeout(&mut self, _now: Timestamp) {}
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }
    fn target(&self) -> Target {
        Target::new(Bitrate::from_kbps(1_000), Bitrate::from_kbps(1_000))
    }
    fn metrics(&self) -> Metrics {
        Metrics::new(Reason::Start, "recording")
    }
}

/// A path over which ten packets were sent, 10 ms apart, and the reports to come.
fn with_ten_packets() -> (Congestion, Receiver<FeedbackReport>) {
    let (reports, heard) = channel();
    let mut congestion = Congestion::new(Box::new(Recorder(reports)), Config::default());
    for number in 0..10 {
        let sent = Sent::new(Space::Data, number, DataSize::from_bytes(1_200));
        congestion.on_packet_sent(at(10 * number as i64), sent);
    }
    (congestion, heard)
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

#[test]
fn a_loss_that_the_host_takes_back_is_reported_as_recovered() {
    let (mut congestion, heard) = with_ten_packets();
    congestion.on_packet_lost(at(100), PacketName::Numbered(Space::Data, 3));
    congestion.on_ack_range(Space::Data, 4..=9);
    congestion.on_ack_end(at(100), AckEnd::default());
    assert_eq!(heard.recv().unwrap().loss_counts().lost, 1);
    congestion.on_losses_taken_back(at(0));
    congestion.on_ack_range(Space::Data, 0..=2);
    congestion.on_ack_end(at(130), AckEnd::default());
    let counts = heard.recv().unwrap().loss_counts();
    assert_eq!((counts.received, counts.lost, counts.recovered), (3, 0, 1));
}

// [RFC9000 §19.3.2]
#[test]
fn as_many_packets_are_marked_as_the_count_grows() {
    let (mut congestion, heard) = with_ten_packets();
    let marks = |report: FeedbackReport| report.packets.iter().filter(|p| p.ecn == Ecn::Ce).count();
    congestion.on_ack_range(Space::Data, 0..=4);
    congestion.on_ack_end(at(100), AckEnd::default().with_ce_count(Space::Data, 2));
    assert_eq!(marks(heard.recv().unwrap()), 2);
    // A count that does not grow, and one of another space.
    congestion.on_ack_range(Space::Data, 5..=6);
    congestion.on_ack_end(at(130), AckEnd::default().with_ce_count(Space::Data, 2));
    assert_eq!(marks(heard.recv().unwrap()), 0);
    congestion.on_ack_range(Space::Data, 7..=9);
    congestion.on_ack_end(at(160), AckEnd::default().with_ce_count(Space::Handshake, 1));
    assert_eq!(marks(heard.recv().unwrap()), 1);
}

#[test]
fn news_of_25_ms_is_one_report() {
    let (mut congestion, heard) = with_ten_packets();
    for number in 0..10 {
        congestion.on_ack_range(Space::Data, number..=number);
        congestion.on_ack_end(at(100 + 10 * number as i64), AckEnd::default());
    }
    let sizes: Vec<usize> = heard.try_iter().map(|report| report.packets.len()).collect();
    assert_eq!(sizes, [1, 3, 3, 3]);
    assert_eq!(congestion.next_timeout(), None);
}

#[test]
fn news_that_no_other_follows_is_due_by_the_timer() {
    let (mut congestion, heard) = with_ten_packets();
    congestion.on_ack_range(Space::Data, 0..=0);
    congestion.on_ack_end(at(100), AckEnd::default());
    congestion.on_packet_lost(at(101), PacketName::Numbered(Space::Data, 1));
    assert_eq!(congestion.next_timeout(), Some(at(125)));
    congestion.on_timeout(at(125));
    let counts: Vec<u64> = heard.try_iter().map(|report| report.loss_counts().lost).collect();
    assert_eq!(counts, [0, 1]);
}

#[test]
fn a_host_that_names_no_lost_packet_loses_the_newest_before_the_time() {
    let (mut congestion, heard) = with_ten_packets();
    congestion.on_packet_acked(PacketName::SentAt(at(60)));
    congestion.on_bytes_lost(at(100), at(70), DataSize::from_bytes(3 * 1_200));
    congestion.on_ack_end(at(100), AckEnd::default());
    let report = heard.recv().unwrap();
    let lost = report.packets.iter().filter(|packet| packet.arrival_time.is_none());
    assert_eq!(lost.map(|packet| packet.sequence_number).collect::<Vec<_>>(), [4, 5, 7]);
}

#[test]
fn packets_of_the_old_path_are_not_reported_on_the_new_one() {
    let (mut congestion, heard) = with_ten_packets();
    congestion.on_ack_range(Space::Data, 0..=3);
    congestion.on_new_path(at(95));
    congestion.on_ack_range(Space::Data, 4..=9);
    congestion.on_ack_end(at(100), AckEnd::default());
    assert_eq!(heard.try_iter().count(), 0);
}

#[test]
fn packets_that_left_at_once_are_acknowledged_one_by_one() {
    let (reports, heard) = channel();
    let mut congestion = Congestion::new(Box::new(Recorder(reports)), Config::default());
    for _ in 0..3 {
        congestion.on_packet_sent(at(0), Sent::unnumbered(DataSize::from_bytes(1_200)));
    }
    for bytes in [1_200, 400] {
        let size = DataSize::from_bytes(bytes);
        assert!(congestion.on_sized_packet_acked(PacketName::SentAt(at(0)), size));
    }
    congestion.on_ack_end(at(50), AckEnd::default());
    let sizes: Vec<u64> =
        heard.recv().unwrap().packets.iter().map(|packet| packet.size.as_bytes()).collect();
    assert_eq!(sizes, [1_228, 428]);
}

/// Sends a packet each 10 ms over a path that acknowledges each after 50 ms until `from`, and again
/// from `to` on. Returns when the target fell in between, in ms after the last ACK.
fn falls_of_a_silence(congestion: &mut Congestion, from: i64, to: i64, end: i64) -> Vec<i64> {
    let (mut falls, mut target) = (Vec::new(), congestion.target().bitrate);
    for ms in 0..end {
        let now = at(ms);
        if ms % 10 == 0 {
            let number = (ms / 10) as u64;
            congestion
                .on_packet_sent(now, Sent::new(Space::Data, number, DataSize::from_bytes(1_200)));
            let acked = number.checked_sub(5).filter(|_| ms <= from || to <= ms);
            if let Some(acked) = acked {
                congestion.on_ack_range(Space::Data, 0..=acked);
                congestion.on_ack_end(now, AckEnd::default());
            }
        }
        if congestion.next_timeout().is_some_and(|due| due <= now) {
            congestion.on_timeout(now);
        }
        let before = std::mem::replace(&mut target, congestion.target().bitrate);
        if target < before && (from..to).contains(&ms) {
            falls.push(ms - from);
        }
    }
    falls
}

#[test]
fn a_silence_is_answered_again_once_it_is_three_times_as_long() {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).unwrap();
    let mut congestion = Congestion::new(Algorithm::Sluice.build(limits), Config::default());
    let falls = falls_of_a_silence(&mut congestion, 5_000, 15_000, 15_000);
    assert_eq!(falls.len(), 3, "{falls:?}");
    for pair in falls.windows(2) {
        let growth = pair[1] as f64 / pair[0] as f64;
        assert!((3.0..3.2).contains(&growth), "{falls:?}");
    }
}
