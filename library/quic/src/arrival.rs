//! When the packets of an ACK arrived, as far as its time tells.
//!
//! An ACK comes for every second packet or more [RFC9000 §13.2.2], so its time is that of its
//! newest packet. Those before it have the spacing of sending, or share the time since the arrival
//! before them: on a path that is idle the first is right, on one that is busy the second.
//!
//! [RFC9000 §13.2.2]: https://www.rfc-editor.org/rfc/rfc9000#section-13.2.2

use crate::foreign::Foreign;
use weir::feedback::ArrivalTimes;
use weir::{Bitrate, DataSize, TimeDelta, Timestamp};

/// If no receive time has come for this long, the receiver has none any more.
const RECEIVE_TIMES_PAST: TimeDelta = TimeDelta::from_secs(2);

/// An ACK of fewer packets than this part of the usual number came because its time was up: the
/// receiver held it back.
const FEWER: f64 = 0.75;
/// What is usual falls by this factor with each ACK, so that one that covers many is forgotten.
const USUAL_KEEPS: f64 = 0.95;

/// A packet of an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) own: i64,
    pub(crate) sent: Timestamp,
    pub(crate) size: DataSize,
    /// The receiver's own time of arrival.
    pub(crate) received: Option<Timestamp>,
    /// The result, on the clock of [`Arrivals::times`].
    pub(crate) arrival: Timestamp,
}

/// The receiver's clock, once it has sent times.
#[derive(Clone, Copy, Debug)]
struct ReceiverClock {
    /// What it is ahead of the times of ACKs.
    ahead: TimeDelta,
    /// When it was last read.
    seen: Timestamp,
}

/// Estimates arrival times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// The shortest time from sending to the ACK.
    shortest: Option<TimeDelta>,
    /// The newest arrival, by the time of its ACK.
    last: Option<Timestamp>,
    clock: Option<ReceiverClock>,
    foreign: Foreign,
    /// Packets of an ACK, usually.
    usual: f64,
}

impl Arrivals {
    /// Sets the arrival times of the packets of an ACK, which are in the order of sending. The
    /// receiver sent the ACK at `acked`, by the sender's clock and counted from where the way back
    /// began; `rate` is what the controller takes for the capacity. Without the ACK delay, `acked`
    /// is too late for some packets.
    pub(crate) fn on_ack(
        &mut self,
        acked: Timestamp,
        packets: &mut [Acked],
        rate: Bitrate,
        knows_delay: bool,
    ) {
        let Some(newest) = packets.last() else { return };
        let count = packets.len() as f64;
        let is_held = !knows_delay && count < self.usual * FEWER;
        self.usual = count.max(self.usual * USUAL_KEEPS);
        let delay = acked - newest.sent;
        let shortest = self.shortest.map_or(delay, |shortest| shortest.min(delay));
        self.shortest = Some(shortest);
        self.spread(acked, shortest, packets, rate);
        self.last = Some(self.last.map_or(acked, |last| last.max(acked)));
        self.read_clock(acked, packets);
        if self.clock.is_none() {
            self.leave_out_foreign(shortest, packets, rate, is_held);
        }
    }

    /// Takes what is another's out of the delays. Only the newest packet of an ACK has an exact
    /// delay, and without the ACK delay only if the receiver did not wait for more packets.
    fn leave_out_foreign(
        &mut self,
        shortest: TimeDelta,
        packets: &mut [Acked],
        rate: Bitrate,
        is_held: bool,
    ) {
        let newest = packets.len() - 1;
        for packet in packets[..newest].iter() {
            self.foreign.skip(packet.size);
        }
        let Acked { sent, size, arrival, .. } = packets[newest];
        if is_held {
            self.foreign.skip(size);
        } else {
            self.foreign.on_packet(sent, size, arrival - sent - shortest, rate);
        }
        for packet in packets {
            let delay = packet.arrival - packet.sent - shortest;
            packet.arrival -= self.foreign.part().min(delay);
        }
    }

    fn spread(&self, acked: Timestamp, shortest: TimeDelta, packets: &mut [Acked], rate: Bitrate) {
        let all: DataSize = packets.iter().map(|packet| packet.size).sum();
        // An ACK that was overtaken says nothing about what lies between.
        let idle_since = self.last.filter(|&last| last < acked);
        let (mut after, mut left) = (None::<Acked>, all);
        for packet in packets.iter_mut().rev() {
            packet.arrival = match after {
                None => acked,
                Some(next) => {
                    let gap = (next.sent - packet.sent).max(next.size / rate);
                    let share = left.as_bytes() as f64 / all.as_bytes().max(1) as f64;
                    let busy = idle_since.map(|since| since + (acked - since) * share);
                    let spaced = (next.arrival - gap).max(packet.sent + shortest);
                    busy.map_or(spaced, |busy| spaced.max(busy)).min(next.arrival)
                }
            };
            left = left.saturating_sub(packet.size);
            after = Some(*packet);
        }
    }

    /// Takes the receiver's times where they are. A packet without one is as late as the newest
    /// that has one.
    fn read_clock(&mut self, acked: Timestamp, packets: &mut [Acked]) {
        let timed = packets.iter().rev().find_map(|packet| Some((packet, packet.received?)));
        if let Some((packet, received)) = timed {
            self.clock = Some(ReceiverClock { ahead: received - packet.arrival, seen: acked });
        }
        if self.clock.is_some_and(|clock| clock.seen + RECEIVE_TIMES_PAST < acked) {
            self.clock = None;
        }
        let Some(clock) = self.clock else { return };
        for packet in packets {
            packet.arrival = packet.received.unwrap_or(packet.arrival + clock.ahead);
        }
    }

    /// The origin of the times of the last ACK.
    pub(crate) fn times(&self) -> ArrivalTimes {
        match self.clock {
            Some(_) => ArrivalTimes::Measured,
            None => ArrivalTimes::Acknowledged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn packet(own: i64, sent_ms: i64) -> Acked {
        let (size, arrival) = (DataSize::from_bytes(1_250), Timestamp::ZERO);
        Acked { own, sent: at(sent_ms), size, received: None, arrival }
    }

    /// Arrivals of these packets in ms, at a rate of one packet in 1 ms.
    fn arrivals<const N: usize>(
        estimator: &mut Arrivals,
        acked_ms: i64,
        mut packets: [Acked; N],
    ) -> [i64; N] {
        estimator.on_ack(at(acked_ms), &mut packets, Bitrate::from_kbps(10_000), true);
        packets.map(|packet| packet.arrival.as_millis())
    }

    #[test]
    fn packets_of_an_idle_path_arrive_as_they_were_sent() {
        let mut estimator = Arrivals::default();
        assert_eq!(arrivals(&mut estimator, 50, [packet(0, 0)]), [50]);
        assert_eq!(arrivals(&mut estimator, 85, [packet(1, 33), packet(2, 35)]), [83, 85]);
        // Two at once are a packet's time apart.
        assert_eq!(arrivals(&mut estimator, 151, [packet(3, 100), packet(4, 100)]), [150, 151]);
    }

    #[test]
    fn packets_of_a_busy_path_share_the_time_since_the_arrival_before() {
        let mut estimator = Arrivals::default();
        arrivals(&mut estimator, 50, [packet(0, 0)]);
        // The link takes 20 ms for each.
        assert_eq!(arrivals(&mut estimator, 90, [packet(1, 1), packet(2, 2)]), [89, 90]);
        assert_eq!(arrivals(&mut estimator, 130, [packet(3, 3), packet(4, 43)]), [110, 130]);
    }

    #[test]
    fn no_packet_takes_less_than_the_shortest_time_seen() {
        let mut estimator = Arrivals::default();
        arrivals(&mut estimator, 50, [packet(0, 0)]);
        assert_eq!(arrivals(&mut estimator, 160, [packet(1, 60), packet(2, 61)]), [159, 160]);
        assert_eq!(arrivals(&mut estimator, 400, [packet(3, 349), packet(4, 350)]), [399, 400]);
    }

    #[test]
    fn receive_times_replace_those_of_acks_until_they_stop_coming() {
        let mut estimator = Arrivals::default();
        arrivals(&mut estimator, 50, [packet(0, 0)]);
        assert_eq!(estimator.times(), ArrivalTimes::Acknowledged);
        let timed = Acked { received: Some(at(7_025)), ..packet(2, 65) };
        // The packet beside it has no time: it is on the same clock.
        assert_eq!(arrivals(&mut estimator, 115, [packet(1, 60), timed]), [7_020, 7_025]);
        assert_eq!(estimator.times(), ArrivalTimes::Measured);
        assert_eq!(arrivals(&mut estimator, 130, [packet(3, 80)]), [7_040]);
        assert_eq!(arrivals(&mut estimator, 3_050, [packet(4, 3_000)]), [3_050]);
        assert_eq!(estimator.times(), ArrivalTimes::Acknowledged);
    }
}
