//! Packets in flight, and which of them are lost [RFC9002 §6].

use std::collections::BTreeMap;

use weir::units::{TimeDelta, Timestamp};

use super::packet::{Ack, Content};
use super::rtt::Rtt;

/// `kPacketThreshold` [RFC9002 §6.1.1].
const PACKET_THRESHOLD: u64 = 3;
/// `kPersistentCongestionThreshold` [RFC9002 §7.6.1].
const PERSISTENT: i64 = 3;
/// Doublings of the probe timeout.
const MAX_DOUBLINGS: u32 = 10;
/// Lost packets are remembered for this many probe timeouts, in case they arrive after all.
const MEMORY: i64 = 3;

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) sent: Timestamp,
    pub(super) content: Content,
}

/// What the sender knows when an ACK frame ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckFacts {
    /// The application had nothing to send.
    pub(super) app_limited: bool,
    pub(super) rtt: Rtt,
    /// Bytes of QUIC packets that are still in flight.
    pub(super) in_flight: u64,
}

/// What an ACK says that is new.
#[derive(Debug, Default)]
pub(super) struct News {
    /// In flight until now, by number.
    pub(super) acked: Vec<Flight>,
    /// Packets that were called lost, and were not.
    pub(super) late: Vec<u64>,
}

/// Packets that are lost.
#[derive(Debug, Default)]
pub(super) struct Lost {
    pub(super) packets: Vec<Flight>,
    /// Whether nothing arrived for so long that the path is new [RFC9002 §7.6].
    pub(super) is_persistent: bool,
}

/// The state of a sender's loss detection.
#[derive(Debug)]
pub(super) struct Recovery {
    max_ack_delay: TimeDelta,
    flight: BTreeMap<u64, Flight>,
    /// Bytes of QUIC packets.
    in_flight: u64,
    /// Send times of lost packets.
    lost: BTreeMap<u64, Timestamp>,
    largest_acked: Option<u64>,
    first_sample: Option<Timestamp>,
    rtt: Rtt,
    /// `loss_time`: when the next packet is lost by time.
    loss_time: Option<Timestamp>,
    last_sent: Timestamp,
    /// `pto_count`
    timeouts: u32,
}

impl Recovery {
    pub(super) fn new(max_ack_delay: TimeDelta) -> Self {
        Self {
            max_ack_delay,
            flight: BTreeMap::new(),
            in_flight: 0,
            lost: BTreeMap::new(),
            largest_acked: None,
            first_sample: None,
            rtt: Rtt::new(),
            loss_time: None,
            last_sent: Timestamp::ZERO,
            timeouts: 0,
        }
    }

    pub(super) fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The handshake took this long.
    pub(super) fn on_handshake(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.rtt.on_sample(rtt, TimeDelta::ZERO);
        self.first_sample = Some(now);
    }

    /// An ack-eliciting packet leaves.
    pub(super) fn on_sent(&mut self, now: Timestamp, number: u64, content: Content) {
        self.in_flight += content.size();
        self.last_sent = now;
        self.flight.insert(number, Flight { number, sent: now, content });
    }

    /// An ACK arrived. Call [`Recovery::find_lost`] afterwards.
    pub(super) fn on_ack(&mut self, now: Timestamp, ack: &Ack) -> News {
        let mut news = News::default();
        for range in ack.ranges.iter().rev() {
            let known: Vec<u64> = self.flight.range(range.clone()).map(|(&pn, _)| pn).collect();
            for number in known {
                news.acked.extend(self.take(number));
            }
            let late: Vec<u64> = self.lost.range(range.clone()).map(|(&pn, _)| pn).collect();
            for number in late {
                self.lost.remove(&number);
                news.late.push(number);
            }
        }
        let largest = ack.ranges.first().map(|range| range.end - 1);
        let newest = news.acked.last();
        // A sample needs the newest packet to be newly acknowledged [RFC9002 §5.1].
        if let Some(newest) = newest.filter(|packet| Some(packet.number) == largest) {
            self.rtt.on_sample(now - newest.sent, ack.delay.min(self.max_ack_delay));
        }
        if !news.acked.is_empty() {
            self.largest_acked = self.largest_acked.max(largest);
            self.timeouts = 0;
        }
        news
    }

    fn take(&mut self, number: u64) -> Option<Flight> {
        let packet = self.flight.remove(&number)?;
        self.in_flight -= packet.content.size();
        Some(packet)
    }

    /// Packets before the newest acknowledged one that are lost now [RFC9002 §6.1].
    pub(super) fn find_lost(&mut self, now: Timestamp) -> Lost {
        let mut lost = Lost::default();
        self.loss_time = None;
        let Some(largest) = self.largest_acked else { return lost };
        let delay = self.rtt.loss_delay();
        while let Some((&number, packet)) = self.flight.range(..largest).next() {
            let sent = packet.sent;
            if number + PACKET_THRESHOLD > largest && sent + delay > now {
                self.loss_time = Some(sent + delay);
                break;
            }
            self.lost.insert(number, sent);
            lost.packets.extend(self.take(number));
        }
        lost.is_persistent = self.is_persistent(&lost.packets);
        let memory = now - self.rtt.probe_timeout(self.max_ack_delay) * MEMORY;
        self.lost.retain(|_, sent| *sent >= memory);
        lost
    }

    /// Whether all packets of a long time are lost [RFC9002 §7.6.2].
    fn is_persistent(&self, lost: &[Flight]) -> bool {
        let least = self.rtt.probe_timeout(self.max_ack_delay) * PERSISTENT;
        let mut first: Option<&Flight> = None;
        let mut last_number = 0;
        for packet in lost.iter().filter(|packet| Some(packet.sent) > self.first_sample) {
            let begin = first.filter(|_| packet.number == last_number + 1).unwrap_or(packet);
            (first, last_number) = (Some(begin), packet.number);
            if packet.sent - begin.sent > least {
                return true;
            }
        }
        false
    }

    /// When [`Recovery::find_lost`] is due, or a probe.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.loss_time.or_else(|| self.probe_time())
    }

    fn probe_time(&self) -> Option<Timestamp> {
        if self.flight.is_empty() {
            return None;
        }
        let timeout = self.rtt.probe_timeout(self.max_ack_delay);
        Some(self.last_sent + timeout * (1_i64 << self.timeouts.min(MAX_DOUBLINGS)))
    }

    /// Whether a probe is due [RFC9002 §6.2.4]. The next one is due after twice the time.
    pub(super) fn take_probe(&mut self, now: Timestamp) -> bool {
        let is_due = self.loss_time.is_none() && self.probe_time().is_some_and(|due| due <= now);
        self.timeouts += u32::from(is_due);
        is_due
    }

    /// The oldest packet in flight, whose data a probe may repeat.
    pub(super) fn oldest(&self) -> Option<&Flight> {
        self.flight.first_key_value().map(|(_, packet)| packet)
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "one range is a list of ranges, too")]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Ten packets, 10 ms apart, after a handshake of 100 ms.
    fn ten() -> Recovery {
        let mut recovery = Recovery::new(MS(25));
        recovery.on_handshake(at(0), MS(100));
        for number in 0..10 {
            recovery.on_sent(at(number as i64 * 10), number, Content::Padding(1_000));
        }
        recovery
    }

    fn ack(ranges: &[std::ops::Range<u64>]) -> Ack {
        Ack { ranges: ranges.to_vec(), delay: MS(0), ce_count: None, times: Vec::new() }
    }

    fn lost(recovery: &mut Recovery, ms: i64) -> Vec<u64> {
        recovery.find_lost(at(ms)).packets.iter().map(|packet| packet.number).collect()
    }

    // [RFC9002 §6.1.1]
    #[test]
    fn a_packet_three_before_an_acknowledged_one_is_lost() {
        let mut recovery = ten();
        assert_eq!(recovery.on_ack(at(120), &ack(&[2..3])).acked.len(), 1);
        assert_eq!(lost(&mut recovery, 112), [0; 0]);
        recovery.on_ack(at(130), &ack(&[3..4, 2..3]));
        assert_eq!(lost(&mut recovery, 112), [0]);
    }

    // [RFC9002 §6.1.2]
    #[test]
    fn a_packet_is_lost_nine_eighths_of_a_round_trip_after_it_left() {
        let mut recovery = ten();
        recovery.on_ack(at(110), &ack(&[1..2]));
        assert_eq!(lost(&mut recovery, 110), [0; 0]);
        let due = recovery.next_deadline().unwrap();
        assert_eq!(due, at(0) + MS(100) * 9 / 8);
        assert_eq!(recovery.find_lost(due).packets.len(), 1);
    }

    #[test]
    fn a_lost_packet_that_arrives_is_told_once() {
        let mut recovery = ten();
        recovery.on_ack(at(140), &ack(&[4..5]));
        assert_eq!(lost(&mut recovery, 105), [0, 1]);
        let late = recovery.on_ack(at(150), &ack(&[4..5, 1..2])).late;
        assert_eq!(late, [1]);
        assert!(recovery.on_ack(at(151), &ack(&[4..5, 1..2])).late.is_empty());
    }

    // [RFC9002 §6.2.1]
    #[test]
    fn a_probe_is_due_after_silence_and_then_after_twice_the_time() {
        let mut recovery = ten();
        // 100 + 4 * 50 + 25 ms after the last packet.
        assert_eq!(recovery.next_deadline(), Some(at(90 + 325)));
        assert!(!recovery.take_probe(at(414)) && recovery.take_probe(at(415)));
        assert_eq!(recovery.next_deadline(), Some(at(90 + 650)));
        recovery.on_ack(at(420), &ack(&[0..10]));
        assert_eq!((recovery.next_deadline(), recovery.in_flight()), (None, 0));
    }

    // [RFC9002 §7.6.2]
    #[test]
    fn losses_over_three_probe_timeouts_are_persistent_congestion() {
        for (gap, is_persistent) in [(400, false), (500, true)] {
            let mut recovery = ten();
            recovery.on_ack(at(100), &ack(&[0..10]));
            let first = 200;
            recovery.on_sent(at(first), 10, Content::Ping);
            recovery.on_sent(at(first + gap), 11, Content::Ping);
            recovery.on_sent(at(first + 2 * gap), 12, Content::Ping);
            recovery.on_sent(at(first + 2 * gap + 10), 13, Content::Ping);
            recovery.on_sent(at(first + 2 * gap + 10), 15, Content::Ping);
            recovery.on_ack(at(first + 2 * gap + 110), &ack(&[15..16]));
            let lost = recovery.find_lost(at(first + 2 * gap + 110));
            assert_eq!((lost.packets.len(), lost.is_persistent), (3, is_persistent), "{gap}");
        }
    }
}
