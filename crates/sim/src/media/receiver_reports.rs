//! What receiver reports tell a browser's sender: loss and round-trip time, about once a second. They are
//! made of the feedback, which tells the same earlier.

use weir::feedback::{FeedbackReport, LossCounts, PacketReport};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;

/// Video has a receiver report once a second on average.
const REPORT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const MS: TimeDelta = TimeDelta::from_millis(1);
/// A report measures the round-trip time by the newest sender report, which comes once for so much that is
/// sent on average, and once a second at least [LIBWEBRTC §RTCPSender].
const SENDER_REPORT: DataSize = DataSize::from_bytes(45_000);
const MAX_SENDER_REPORT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// A report tells of losses in so many parts of the packets [RFC3550 §6.4.1] ..
const LOSS_PARTS: u64 = 256;
const MAX_LOSS: u64 = LOSS_PARTS - 1;
/// .. and reports of fewer packets than this are taken together [LIBWEBRTC §SendSideBandwidthEstimation].
const MIN_PACKETS: u64 = 20;
/// Others learn the round-trip time this often [LIBWEBRTC §ModuleRtpRtcpImpl2, §CallStats].
const RTT_UPDATE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// What the two ends take of a round trip: at random between these, as measured (docs/video.md).
const ENDS_TIME: (TimeDelta, TimeDelta) =
    (TimeDelta::from_micros(1_300), TimeDelta::from_micros(1_900));

/// What a report tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) rtt: TimeDelta,
    /// Of 256 packets.
    pub(super) lost: u64,
}

/// Makes receiver reports of the feedback.
#[derive(Clone, Debug)]
pub(super) struct ReceiverReports {
    chance: Stream,
    next_report: Timestamp,
    last: Reported,
    /// The round-trip time of the last report as the history of sent packets learns it.
    history_rtt: Relay,
    /// That of the newest sender report as the receiver learns it, by two steps.
    receiver_rtt: [Relay; 2],
    path: Path,
    /// When the next sender report leaves, and the round-trip time of the one before.
    sender_report: Timestamp,
    rtt: Option<TimeDelta>,
    /// Of the receiver report to come.
    lost: u64,
    received: u64,
}

impl ReceiverReports {
    pub(super) fn new(mut chance: Stream) -> Self {
        let next_report = at_random_within(REPORT_INTERVAL, &mut chance);
        let mut relay =
            || Relay { known: None, next: at_random_within(RTT_UPDATE_INTERVAL, &mut chance) };
        let (history_rtt, receiver_rtt) = (relay(), [relay(), relay()]);
        Self {
            chance,
            next_report,
            last: Reported::default(),
            history_rtt,
            receiver_rtt,
            path: Path::default(),
            sender_report: Timestamp::ZERO,
            rtt: None,
            lost: 0,
            received: 0,
        }
    }

    /// What the last report told.
    pub(super) fn last(&self) -> Reported {
        self.last
    }

    /// The round-trip time as the history of sent packets knows it; `None` before the first report.
    pub(super) fn history_rtt(&self) -> Option<TimeDelta> {
        self.history_rtt.known
    }

    /// The round-trip time as the receiver knows it: it measures the same as the sender does
    /// [RFC3611 §4.5].
    pub(super) fn receiver_rtt(&self) -> Option<TimeDelta> {
        self.receiver_rtt[1].known
    }

    /// Feedback arrived while so much was sent.
    pub(super) fn on_feedback(&mut self, now: Timestamp, target: Bitrate, report: &FeedbackReport) {
        let LossCounts { lost, received, .. } = report.loss_counts();
        self.lost += lost;
        self.received += received;
        self.measure(now, target, report);
        if now >= self.next_report {
            self.next_report = now + self.spread(REPORT_INTERVAL);
            self.make_report();
        }
        self.history_rtt.on_time(now, self.rtt.map(|_| self.last.rtt));
        let [first, second] = &mut self.receiver_rtt;
        second.on_time(now, first.known);
        first.on_time(now, self.rtt);
    }

    /// What the sender reports that left between these packets met.
    fn measure(&mut self, now: Timestamp, target: Bitrate, report: &FeedbackReport) {
        let Some(rtt) = report.rtt(now) else { return };
        self.path.least_rtt = rtt.min(self.path.least_rtt);
        for packet in report.received() {
            if packet.send_time > self.sender_report {
                let (least, most) = ENDS_TIME;
                let ends = least + (most - least) * self.chance.uniform();
                self.rtt = Some(self.path.rtt_of(self.sender_report) + ends);
                let interval = (SENDER_REPORT / target).min(MAX_SENDER_REPORT_INTERVAL);
                self.sender_report = packet.send_time + self.spread(interval);
            }
            self.path.on_packet(packet);
        }
    }

    /// Between half and one and a half times the interval [RFC3550 §6.3.1].
    fn spread(&mut self, interval: TimeDelta) -> TimeDelta {
        interval * (0.5 + self.chance.uniform())
    }

    fn make_report(&mut self) {
        // In whole ms.
        self.last.rtt = self.rtt.map_or(TimeDelta::ZERO, |rtt| MS * (rtt + MS / 2).as_millis());
        let expected = self.lost + self.received;
        if expected >= MIN_PACKETS {
            self.last.lost = (self.lost * LOSS_PARTS / expected).min(MAX_LOSS);
            (self.lost, self.received) = (0, 0);
        }
    }
}

/// Any time within the interval is as likely.
fn at_random_within(interval: TimeDelta, chance: &mut Stream) -> Timestamp {
    Timestamp::ZERO + interval * chance.uniform()
}

/// Somebody who asks once in a while.
#[derive(Clone, Copy, Debug)]
struct Relay {
    known: Option<TimeDelta>,
    next: Timestamp,
}

impl Relay {
    fn on_time(&mut self, now: Timestamp, truth: Option<TimeDelta>) {
        if now >= self.next {
            self.next += RTT_UPDATE_INTERVAL;
            self.known = truth;
        }
    }
}

/// Delays of the path, from feedback.
#[derive(Clone, Copy, Debug)]
struct Path {
    least_rtt: TimeDelta,
    /// From sending to arrival by the receiver's clock.
    least_delay: TimeDelta,
    /// When the last packet left, and its delay.
    last: Option<(Timestamp, TimeDelta)>,
}

impl Default for Path {
    fn default() -> Self {
        Self { least_rtt: TimeDelta::MAX, least_delay: TimeDelta::MAX, last: None }
    }
}

impl Path {
    fn on_packet(&mut self, packet: &PacketReport) {
        let Some(arrival) = packet.arrival_time else { return };
        let delay = arrival - packet.send_time;
        self.least_delay = self.least_delay.min(delay);
        self.last = Some((packet.send_time, delay));
    }

    /// The round-trip time of a small packet that leaves after the last one: it waits for what is still
    /// queued then.
    fn rtt_of(&self, leaves: Timestamp) -> TimeDelta {
        let queued = self.last.map_or(TimeDelta::ZERO, |(left, delay)| {
            (delay - self.least_delay - (leaves - left)).max(TimeDelta::ZERO)
        });
        // Feedback takes a little longer than the path alone.
        MS * self.least_rtt.as_millis() + queued
    }
}

#[cfg(test)]
mod tests {
    use weir::feedback::Ecn;
    use weir_net::Seed;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn millis(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Reports of a path with 25 ms each way.
    struct Bench {
        reports: ReceiverReports,
        target: Bitrate,
        now_ms: i64,
    }

    impl Bench {
        fn new() -> Self {
            let reports = ReceiverReports::new(Seed::new(1).stream("reports"));
            Self { reports, target: Bitrate::from_kbps(1_000), now_ms: 0 }
        }

        /// So many times feedback of ten packets, each 10 ms, of which some were lost, through a queue.
        fn run(&mut self, times: i64, lost: i64, queue_ms: i64) -> Reported {
            for _ in 0..times {
                self.now_ms += 100;
                let sent = self.now_ms - 50 - queue_ms;
                let packets = (0..10).map(|index| PacketReport {
                    sequence_number: index,
                    size: DataSize::from_bytes(1_000),
                    send_time: at(sent - 10 * (9 - index)),
                    arrival_time: (index >= lost)
                        .then(|| at(sent - 10 * (9 - index) + 25 + queue_ms)),
                    ecn: Ecn::NotEct,
                    recovered: false,
                    probe: None,
                });
                let report =
                    FeedbackReport { packets: packets.collect(), ..FeedbackReport::default() };
                self.reports.on_feedback(at(self.now_ms), self.target, &report);
            }
            self.reports.last()
        }
    }

    // [RFC3550 §6.4.1], [RFC3550 §6.3.1]
    #[test]
    fn a_report_comes_each_half_to_one_and_a_half_seconds_and_tells_what_was_lost_since_the_last() {
        let mut bench = Bench::new();
        bench.run(20, 0, 0);
        let mut changes = Vec::new();
        for _ in 0..200 {
            let before = bench.reports.next_report;
            bench.run(1, 5, 0);
            if bench.reports.next_report != before {
                changes.push(bench.now_ms);
            }
        }
        assert_eq!(bench.reports.last().lost, 128);
        let gaps: Vec<i64> = changes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (500..=1_600).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().max() > gaps.iter().min());
        assert_eq!(bench.run(32, 0, 0).lost, 0);
    }

    // [LIBWEBRTC §SendSideBandwidthEstimation]
    #[test]
    fn reports_of_fewer_than_20_packets_are_taken_together() {
        let mut reports = Bench::new().reports;
        (reports.lost, reports.received) = (9, 10);
        reports.make_report();
        assert_eq!((reports.last.lost, reports.lost), (0, 9));
        reports.received += 1;
        reports.make_report();
        assert_eq!((reports.last.lost, reports.lost), (9 * 256 / 20, 0));
        (reports.lost, reports.received) = (20, 0);
        reports.make_report();
        assert_eq!(reports.last.lost, 255, "a byte holds no more");
    }

    // [LIBWEBRTC §RTCPSender]
    #[test]
    fn a_sender_report_comes_with_45_kb_or_a_second_on_average() {
        let sent = |target_kbps| {
            let mut bench = Bench::new();
            bench.target = Bitrate::from_kbps(target_kbps);
            let mut times = Vec::new();
            for _ in 0..600 {
                bench.run(1, 0, 0);
                times.push(bench.reports.sender_report);
            }
            times.dedup();
            times.len()
        };
        // In a minute; 45 kB take 360 ms at 1 Mbit/s.
        let (fast, slow) = (sent(1_000), sent(100));
        assert!((140..=180).contains(&fast), "{fast}");
        assert!((52..=68).contains(&slow), "{slow}");
    }

    #[test]
    fn the_round_trip_time_is_the_paths_and_the_ends_and_the_queues_in_whole_ms() {
        let mut bench = Bench::new();
        let mut seen = Vec::new();
        for _ in 0..40 {
            seen.push(bench.run(10, 0, 0).rtt);
        }
        let counted = |ms| seen.iter().filter(|rtt| **rtt == millis(ms)).count();
        assert_eq!(counted(51) + counted(52), seen.len());
        assert!(counted(51) > 5 && counted(52) > 5);
        let queued = bench.run(40, 0, 300).rtt;
        assert!((millis(345)..=millis(352)).contains(&queued), "{queued:?}");
    }

    // [LIBWEBRTC §CallStats]
    #[test]
    fn who_asks_once_a_second_knows_what_was_true_then() {
        let mut relay = Relay { known: None, next: at(300) };
        let known = [(299, 50), (300, 51), (1_299, 52), (1_300, 53)].map(|(now_ms, truth_ms)| {
            relay.on_time(at(now_ms), Some(millis(truth_ms)));
            relay.known
        });
        assert_eq!(known, [None, Some(millis(51)), Some(millis(51)), Some(millis(53))]);
    }

    // [LIBWEBRTC §ModuleRtpRtcpImpl2], [LIBWEBRTC §CallStats]
    #[test]
    fn the_history_and_after_it_the_receiver_learn_of_it_within_seconds() {
        let mut bench = Bench::new();
        assert_eq!((bench.reports.history_rtt(), bench.reports.receiver_rtt()), (None, None));
        bench.run(60, 0, 0);
        let knows = |rtt: Option<TimeDelta>| rtt.is_some_and(|rtt| rtt > millis(300));
        let (mut history, mut receiver) = (None, None);
        for step in 1..=50 {
            bench.run(1, 0, 300);
            history = history.or(knows(bench.reports.history_rtt()).then_some(step));
            receiver = receiver.or(knows(bench.reports.receiver_rtt()).then_some(step));
        }
        assert!(history.is_some_and(|steps| (2..=30).contains(&steps)), "{history:?}");
        assert!(receiver.is_some_and(|steps| (2..=30).contains(&steps)), "{receiver:?}");
    }
}
