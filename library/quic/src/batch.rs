//! What became known of packets since the last report.
//!
//! A report for each ACK would be one for every second packet. Some rules of controllers count
//! reports, and the time between two is their step, so news is put together for a while.

use weir::feedback::{ArrivalTimes, Ecn};
use weir::{FeedbackReport, PacketReport, TimeDelta, Timestamp};

/// Reports are this far apart, as feedback of WebRTC is at several Mbit/s.
const INTERVAL: TimeDelta = TimeDelta::from_millis(25);

/// News for the next report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    report: FeedbackReport,
    /// Marks that have found no packet yet.
    marks: u64,
    /// When the news began; `None` while there is none.
    since: Option<Timestamp>,
    /// The last report.
    reported: Option<Timestamp>,
    /// The clock of the last report.
    times: Option<ArrivalTimes>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.report.packets.is_empty()
    }

    /// Whether the news and these times belong into two reports.
    pub(crate) fn is_on_another_clock(&self, times: ArrivalTimes) -> bool {
        let arrived = self.report.packets.iter().any(|packet| packet.arrival_time.is_some());
        arrived && self.report.arrival_times != times
    }

    /// A packet arrived, or is lost.
    pub(crate) fn add(&mut self, now: Timestamp, packet: PacketReport, times: ArrivalTimes) {
        self.since.get_or_insert(now);
        if packet.arrival_time.is_some() {
            self.report.arrival_times = times;
        }
        // Called lost and acknowledged since the last report: it was only late.
        let known = packet.recovered.then(|| self.position(packet.sequence_number)).flatten();
        match known {
            Some(index) => self.report.packets[index] = packet.with_recovered(false),
            None => self.report.packets.push(packet),
        }
    }

    fn position(&self, number: i64) -> Option<usize> {
        self.report.packets.iter().rposition(|packet| packet.sequence_number == number)
    }

    /// So many packets were marked Congestion Experienced.
    pub(crate) fn mark(&mut self, count: u64) {
        self.marks = self.marks.saturating_add(count);
    }

    /// When the report is due.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let since = self.since?;
        // After a silence the first news is reported at once.
        Some(self.reported.map_or(since, |reported| since.max(reported + INTERVAL)))
    }

    /// Completes the report.
    pub(crate) fn complete(&mut self, now: Timestamp) -> &FeedbackReport {
        self.report.packets.sort_unstable_by_key(|packet| packet.sequence_number);
        let arrived = self.report.packets.iter().any(|packet| packet.arrival_time.is_some());
        if arrived {
            // ACKs count marks and do not name packets: the newest are as good a guess as any.
            for packet in self.report.packets.iter_mut().rev() {
                if self.marks == 0 {
                    break;
                }
                if packet.arrival_time.is_some() && !packet.recovered {
                    packet.ecn = Ecn::Ce;
                    self.marks -= 1;
                }
            }
            // What is left is more than packets arrived.
            self.marks = 0;
            let times = self.report.arrival_times;
            self.report.new_clock = self.times.is_some_and(|before| before != times);
            self.times = Some(times);
        }
        self.since = None;
        self.reported = Some(now);
        &self.report
    }

    /// Begins the next report.
    pub(crate) fn clear(&mut self) {
        self.report.packets.clear();
        self.report.new_clock = false;
    }

    /// Forgets the news, because the packets took another path.
    pub(crate) fn discard(&mut self) {
        self.clear();
        (self.since, self.marks, self.times) = (None, 0, None);
    }
}
