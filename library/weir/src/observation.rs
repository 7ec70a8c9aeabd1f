//! What a sender learned in an interval: the observation of a controller that acts at fixed times,
//! such as a trained policy. The training environment of the Python package counts with this, too,
//! so that a policy sees the same in both.

use crate::feedback::{Ecn, FeedbackReport, SentPacket};
use crate::units::{DataSize, TimeDelta, Timestamp};

/// What was learned in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Observation {
    /// Rate of the bytes that left the sender, in bit/s.
    pub sent_bps: f64,
    /// Rate of the bytes that feedback says arrived, in bit/s.
    pub received_bps: f64,
    /// Mean one-way delay of the packets reported, over the lowest so far; `None` without a packet
    /// that arrived.
    pub queuing_delay: Option<TimeDelta>,
    /// The newest feedback response time; `None` before the first.
    pub rtt: Option<TimeDelta>,
    /// Packets that feedback calls lost over packets that it reports, 0 to 1.
    pub loss_ratio: f64,
    /// Packets marked Congestion Experienced over packets that arrived, 0 to 1.
    pub mark_ratio: f64,
    /// Number of feedback reports that arrived.
    pub reports: u32,
}

/// Observes intervals of one length.
#[derive(Clone, Debug)]
pub struct Observer {
    length: TimeDelta,
    counts: Counts,
    base_delay: Option<TimeDelta>,
    rtt: Option<TimeDelta>,
}

/// Counts since the last interval ended.
#[derive(Clone, Debug, Default)]
struct Counts {
    sent: DataSize,
    received: DataSize,
    arrived: u32,
    lost: u32,
    marked: u32,
    delay: TimeDelta,
    reports: u32,
}

impl Observer {
    /// Observes intervals of this length, which is above zero.
    pub fn new(length: TimeDelta) -> Self {
        Self { length, counts: Counts::default(), base_delay: None, rtt: None }
    }

    /// A packet left the sender.
    pub fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.counts.sent += packet.size;
    }

    /// A feedback report arrived.
    pub fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.counts.reports += 1;
        self.rtt = report.rtt(now).or(self.rtt);
        if report.new_clock {
            self.base_delay = None;
        }
        for packet in &report.packets {
            let Some(delay) = packet.one_way_delay() else {
                self.counts.lost += 1;
                continue;
            };
            self.counts.arrived += 1;
            self.counts.received += packet.size;
            self.counts.marked += u32::from(packet.ecn == Ecn::Ce);
            self.counts.delay += delay;
            self.base_delay = Some(self.base_delay.map_or(delay, |base| base.min(delay)));
        }
    }

    /// Ends the interval, and begins the next one.
    pub fn take(&mut self) -> Observation {
        let counts = core::mem::take(&mut self.counts);
        let seconds = self.length.as_secs_f64();
        let rate = |size: DataSize| size.as_bytes() as f64 * 8.0 / seconds;
        let ratio = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
        let delay = self.base_delay.filter(|_| counts.arrived > 0).map(|base| {
            TimeDelta::from_micros(counts.delay.as_micros() / i64::from(counts.arrived)) - base
        });
        Observation {
            sent_bps: rate(counts.sent),
            received_bps: rate(counts.received),
            queuing_delay: delay,
            rtt: self.rtt,
            loss_ratio: ratio(counts.lost, counts.lost + counts.arrived),
            mark_ratio: ratio(counts.marked, counts.arrived),
            reports: counts.reports,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::feedback::PacketReport;

    /// A packet of 1,250 bytes, sent at this time, which took this long or did not arrive.
    fn packet(number: i64, sent_ms: i64, took_ms: Option<i64>) -> PacketReport {
        let sent = Timestamp::ZERO + TimeDelta::from_millis(sent_ms);
        PacketReport {
            arrival_time: took_ms.map(|took| sent + TimeDelta::from_millis(took)),
            ..PacketReport::new(number, DataSize::from_bytes(1_250), sent)
        }
    }

    #[test]
    fn an_interval_counts_what_its_reports_say_and_the_next_begins_at_zero() {
        let mut observer = Observer::new(TimeDelta::from_millis(100));
        let marked = PacketReport { ecn: Ecn::Ce, ..packet(3, 20, Some(60)) };
        let packets = vec![packet(1, 0, Some(30)), packet(2, 10, None), marked];
        let now = Timestamp::ZERO + TimeDelta::from_millis(100);
        observer.on_feedback(now, &FeedbackReport::new(packets));
        let seen = observer.take();
        // Two packets of 10,000 bits in 100 ms; the mean delay is 45 ms, the lowest 30 ms.
        assert_eq!(seen.received_bps, 200_000.0);
        assert_eq!(seen.queuing_delay, Some(TimeDelta::from_millis(15)));
        assert_eq!((seen.loss_ratio, seen.mark_ratio, seen.reports), (1.0 / 3.0, 0.5, 1));
        let next = observer.take();
        assert_eq!(next, Observation { rtt: seen.rtt, ..Observation::default() });
        // On another clock, delays have another base.
        let later = FeedbackReport {
            new_clock: true,
            ..FeedbackReport::new(vec![packet(4, 90, Some(500))])
        };
        observer.on_feedback(now, &later);
        assert_eq!(observer.take().queuing_delay, Some(TimeDelta::ZERO));
    }
}
