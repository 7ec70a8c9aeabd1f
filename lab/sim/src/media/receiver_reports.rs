//! Model of the receiver reports that a browser's sender gets about once a second: loss and
//! round-trip time. No such reports are sent. They are computed from the feedback, which contains
//! the same information earlier.

use std::collections::VecDeque;

use weir::feedback::{FeedbackReport, LossCounts, PacketReport};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;

/// Mean interval of receiver reports for video.
const REPORT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const MS: TimeDelta = TimeDelta::from_millis(1);
/// A receiver report gives the round-trip time of the newest sender report. On average there is one
/// sender report for this much data sent, and at least one a second [LIBWEBRTC §RTCPSender].
const SENDER_REPORT: DataSize = DataSize::from_bytes(45_000);
const MAX_SENDER_REPORT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// Unit of the loss ratio in a report: 1/256 [RFC3550 §6.4.1].
const LOSS_PARTS: u64 = 256;
const MAX_LOSS: u64 = LOSS_PARTS - 1;
/// Reports on fewer packets than this are combined with the next one
/// [LIBWEBRTC §SendSideBandwidthEstimation].
const MIN_PACKETS: u64 = 20;
/// Interval at which an end collects the latest measured round-trip time, and at which it adopts
/// the longest one that is not older than the timeout [LIBWEBRTC §ModuleRtpRtcpImpl2, §CallStats].
const RTT_UPDATE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
const RTT_TIMEOUT: TimeDelta = TimeDelta::from_millis(1_500);
/// Margin that the history of sent packets adds to the round-trip time [LIBWEBRTC §RTPSender].
const RTT_MARGIN: TimeDelta = TimeDelta::from_millis(5);
/// Processing time of the two ends in a round trip: uniform between these limits (measured).
const ENDS_TIME: (TimeDelta, TimeDelta) =
    (TimeDelta::from_micros(1_300), TimeDelta::from_micros(1_900));

/// Content of a receiver report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) rtt: TimeDelta,
    /// Lost packets in 256.
    pub(super) lost: u64,
}

/// Computes receiver reports from the feedback.
#[derive(Clone, Debug)]
pub(super) struct ReceiverReports {
    chance: Stream,
    next_report: Timestamp,
    last: Reported,
    /// When the last report was made.
    reported: Option<Timestamp>,
    sender_rtt: RttStats,
    receiver_rtt: RttStats,
    /// The receiver's own measurement. `referred` is when it last sent a reference time with a
    /// report; the next sender report answers it. `answered` is the resulting round-trip time,
    /// until it is collected.
    referred: Option<Timestamp>,
    answered: Option<TimeDelta>,
    delays: PathDelays,
    /// Time of the next sender report, and the round-trip time of the one before.
    sender_report: Timestamp,
    rtt: Option<TimeDelta>,
    /// Packet counts for the next receiver report.
    lost: u64,
    received: u64,
}

impl ReceiverReports {
    pub(super) fn new(mut chance: Stream) -> Self {
        let next_report = at_random_within(REPORT_INTERVAL, &mut chance);
        let (sender_rtt, receiver_rtt) = (RttStats::new(&mut chance), RttStats::new(&mut chance));
        Self {
            chance,
            next_report,
            last: Reported::default(),
            reported: None,
            sender_rtt,
            receiver_rtt,
            referred: None,
            answered: None,
            delays: PathDelays::default(),
            sender_report: Timestamp::ZERO,
            rtt: None,
            lost: 0,
            received: 0,
        }
    }

    /// Content of the last report.
    pub(super) fn last(&self) -> Reported {
        self.last
    }

    /// Round-trip time that the history of sent packets uses. `None` before the first report.
    pub(super) fn history_rtt(&self) -> Option<TimeDelta> {
        self.sender_rtt.longest.map(|rtt| rtt + RTT_MARGIN)
    }

    /// Round-trip time that the receiver measured [RFC3611 §4.5].
    pub(super) fn receiver_rtt(&self) -> Option<TimeDelta> {
        self.receiver_rtt.longest
    }

    /// Feedback arrived while `target` was the bitrate. Returns the receiver report that came with
    /// it, if any.
    pub(super) fn on_feedback(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        report: &FeedbackReport,
    ) -> Option<Reported> {
        let LossCounts { lost, received, .. } = report.loss_counts();
        self.lost += lost;
        self.received += received;
        self.measure(now, target, report);
        let is_due = now >= self.next_report;
        if is_due {
            self.next_report = now + self.spread(REPORT_INTERVAL);
            self.make_report();
            (self.reported, self.referred) = (Some(now), Some(now));
        }
        let is_new = self.reported.is_some_and(|reported| now - reported < RTT_UPDATE_INTERVAL);
        self.sender_rtt.on_time(now, || self.rtt.filter(|_| is_new).map(|_| self.last.rtt));
        self.receiver_rtt.on_time(now, || self.answered.take());
        is_due.then_some(self.last)
    }

    /// Computes the round-trip times of the sender reports that left between these packets.
    fn measure(&mut self, now: Timestamp, target: Bitrate, report: &FeedbackReport) {
        let Some(rtt) = report.rtt(now) else { return };
        self.delays.least_rtt = rtt.min(self.delays.least_rtt);
        for packet in report.received() {
            if packet.send_time > self.sender_report {
                let (least, most) = ENDS_TIME;
                let ends = least + (most - least) * self.chance.uniform();
                let rtt = self.delays.rtt_of(self.sender_report) + ends;
                self.rtt = Some(rtt);
                if self.referred.take_if(|referred| *referred < self.sender_report).is_some() {
                    self.answered = Some(rtt);
                }
                let interval = (SENDER_REPORT / target).min(MAX_SENDER_REPORT_INTERVAL);
                self.sender_report = packet.send_time + self.spread(interval);
            }
            self.delays.on_packet(packet);
        }
    }

    /// A random time between 0.5 and 1.5 times the interval [RFC3550 §6.3.1].
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

/// A time with uniform distribution in the interval.
fn at_random_within(interval: TimeDelta, chance: &mut Stream) -> Timestamp {
    Timestamp::ZERO + interval * chance.uniform()
}

/// The statistics that provide the round-trip time to the other parts of an end
/// [LIBWEBRTC §ModuleRtpRtcpImpl2, §CallStats].
#[derive(Clone, Debug)]
struct RttStats {
    next_question: Timestamp,
    next_summary: Timestamp,
    measured: VecDeque<(Timestamp, TimeDelta)>,
    longest: Option<TimeDelta>,
}

impl RttStats {
    fn new(chance: &mut Stream) -> Self {
        Self {
            next_question: at_random_within(RTT_UPDATE_INTERVAL, chance),
            next_summary: at_random_within(RTT_UPDATE_INTERVAL, chance),
            measured: VecDeque::new(),
            longest: None,
        }
    }

    /// Advances to `now`. `lately` returns the value measured since the last collection.
    fn on_time(&mut self, now: Timestamp, lately: impl FnOnce() -> Option<TimeDelta>) {
        if now >= self.next_question {
            self.next_question += RTT_UPDATE_INTERVAL;
            self.measured.extend(lately().map(|rtt| (now, rtt)));
        }
        if now >= self.next_summary {
            self.next_summary += RTT_UPDATE_INTERVAL;
            while self.measured.pop_front_if(|(time, _)| now - *time > RTT_TIMEOUT).is_some() {}
            self.longest = self.measured.iter().map(|(_, rtt)| *rtt).max().or(self.longest);
        }
    }
}

/// Delays of the path, from feedback.
#[derive(Clone, Copy, Debug)]
struct PathDelays {
    least_rtt: TimeDelta,
    /// Minimum one-way delay. Its zero point is arbitrary, because arrival times are on the
    /// receiver's clock.
    least_delay: TimeDelta,
    /// Send time and one-way delay of the last packet.
    last: Option<(Timestamp, TimeDelta)>,
}

impl Default for PathDelays {
    fn default() -> Self {
        Self { least_rtt: TimeDelta::MAX, least_delay: TimeDelta::MAX, last: None }
    }
}

impl PathDelays {
    fn on_packet(&mut self, packet: &PacketReport) {
        let Some(arrival) = packet.arrival_time else { return };
        let delay = arrival - packet.send_time;
        self.least_delay = self.least_delay.min(delay);
        self.last = Some((packet.send_time, delay));
    }

    /// Round-trip time of a small packet that leaves after the last one. It waits until the queue
    /// of that time is empty.
    fn rtt_of(&self, leaves: Timestamp) -> TimeDelta {
        let queued = self.last.map_or(TimeDelta::ZERO, |(left, delay)| {
            (delay - self.least_delay - (leaves - left)).max(TimeDelta::ZERO)
        });
        // Cut to whole ms, because feedback takes slightly longer than the path alone.
        MS * self.least_rtt.as_millis() + queued
    }
}

#[cfg(test)]
mod tests {
    use weir_net::Seed;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn millis(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    /// Receiver reports over a path with a one-way delay of 25 ms.
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

        /// Sends feedback `times` times, each on ten packets 10 ms apart, of which `lost` are lost,
        /// through a queue of `queue_ms`.
        fn run(&mut self, times: i64, lost: i64, queue_ms: i64) -> Reported {
            for _ in 0..times {
                self.now_ms += 100;
                let sent = self.now_ms - 50 - queue_ms;
                let packets = (0..10).map(|index| {
                    PacketReport::new(
                        index,
                        DataSize::from_bytes(1_000),
                        at(sent - 10 * (9 - index)),
                    )
                    .with_arrival_time(
                        (index >= lost).then(|| at(sent - 10 * (9 - index) + 25 + queue_ms)),
                    )
                });
                let report = FeedbackReport::new(packets.collect());
                self.reports.on_feedback(at(self.now_ms), self.target, &report);
            }
            self.reports.last()
        }
    }

    // [RFC3550 §6.4.1], [RFC3550 §6.3.1]
    #[test]
    fn a_report_comes_each_half_to_one_and_a_half_seconds_with_its_losses() {
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
        // Number in a minute. 45 kB take 360 ms at 1 Mbit/s.
        let (fast, slow) = (sent(1_000), sent(100));
        assert!((140..=180).contains(&fast), "{fast}");
        assert!((52..=68).contains(&slow), "{slow}");
    }

    #[test]
    fn the_round_trip_time_is_of_path_ends_and_queues_in_whole_ms() {
        let mut bench = Bench::new();
        let mut seen = Vec::new();
        for _ in 0..40 {
            seen.push(bench.run(10, 0, 0).rtt);
        }
        let counted = |ms| seen.iter().filter(|rtt| **rtt == millis(ms)).count();
        assert_eq!(counted(51) + counted(52), seen.len());
        assert!(counted(51) > 5 && counted(52) > 5);
        let queued = bench.run(40, 0, 300).rtt;
        // A sender report leaves at most 10 ms after a packet.
        assert!((millis(341)..=millis(352)).contains(&queued), "{queued:?}");
    }

    // [LIBWEBRTC §ModuleRtpRtcpImpl2], [LIBWEBRTC §CallStats]
    #[test]
    fn each_second_it_is_asked_for_and_in_one_and_a_half_the_longest_is_taken() {
        let mut stats = RttStats::new(&mut Seed::new(1).stream("stats"));
        (stats.next_question, stats.next_summary) = (at(300), at(700));
        let times = [299, 300, 699, 700, 1_300, 1_700, 2_300, 2_700, 3_300, 3_700];
        let known = times.map(|now_ms| {
            let truth = if now_ms < 2_000 { Some(millis(2_000 - now_ms)) } else { None };
            stats.on_time(at(now_ms), || truth);
            stats.longest.map(TimeDelta::as_millis)
        });
        // The value collected at 300 ms counts until 1800 ms, the one at 1300 ms until 2800 ms.
        // After that the last result remains.
        let long = Some(1_700);
        let next = Some(700);
        assert_eq!(known, [None, None, None, long, long, long, long, next, next, next]);
    }

    // [LIBWEBRTC §RTPSender]
    #[test]
    fn the_history_takes_5_ms_more() {
        let mut reports = Bench::new().reports;
        reports.sender_rtt.longest = Some(millis(667));
        assert_eq!(reports.history_rtt(), Some(millis(672)));
    }

    // [RFC3611 §4.4], [RFC3611 §4.5]
    #[test]
    fn the_receiver_measures_once_with_each_of_its_reports() {
        let mut bench = Bench::new();
        bench.run(10, 0, 0);
        bench.reports.next_report = at(100_000);
        bench.reports.receiver_rtt.next_question = at(100_000);
        (bench.reports.referred, bench.reports.answered) = (None, None);
        bench.run(30, 0, 0);
        assert_eq!(bench.reports.answered, None, "no reference time was sent");
        bench.reports.referred = Some(at(bench.now_ms));
        bench.run(30, 0, 0);
        assert!(bench.reports.answered.take().is_some());
        bench.run(30, 0, 0);
        assert_eq!(bench.reports.answered, None, "it is answered once");
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
        assert!(history.is_some_and(|steps| (2..=40).contains(&steps)), "{history:?}");
        assert!(receiver.is_some_and(|steps| (2..=40).contains(&steps)), "{receiver:?}");
    }
}
