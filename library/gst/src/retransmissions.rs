//! Discards retransmissions that come too early to be of use.
//!
//! `rtprtxsend` answers each request of the receiver at once, and a receiver repeats a request
//! after about one round trip. While packets wait in the pacer for longer than that, the
//! repetitions would fill the pacer with copies of the same packets.
//!
//! After a large loss, the retransmissions that wait can take seconds to leave. The pictures that
//! they repair are late by then, and no new one leaves meanwhile. A key frame needs fewer bytes,
//! and the packets before it need not be sent again.

use std::collections::{HashMap, VecDeque};

use weir::feedback::{RtpNumber, SeqUnwrapper};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// If the waiting retransmissions would take longer than this to leave, a key frame is sooner. In
/// `lund/sudden-reduction`, 75 to 180 lost packets took 1.6 to 4.2 s to be sent again.
pub(crate) const MAX_REPAIR_TIME: TimeDelta = TimeDelta::from_millis(500);
/// Window for the rate of retransmissions, as in the simulated sender.
const RATE_WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Before the first measured round-trip time.
const INITIAL_ROUND_TRIP_TIME: TimeDelta = TimeDelta::from_millis(100);
/// Entries of packets that left longer ago than any round trip are removed.
const MAX_AGE: TimeDelta = TimeDelta::from_secs(10);
/// Old entries are looked for when there are more than this.
const MAX_ENTRIES: usize = 1_024;

#[derive(Clone, Copy, Debug)]
enum Repeat {
    Waiting,
    Sent(Timestamp),
}

/// The retransmissions of late, by the SSRC of the retransmission stream and the number of the
/// original packet.
#[derive(Debug)]
pub(crate) struct Retransmissions {
    states: HashMap<(u32, u16), Repeat>,
    round_trip_time: TimeDelta,
    /// Bytes of those that wait, with the layers below.
    waiting: DataSize,
    /// Those that left in the last window.
    recent: VecDeque<(Timestamp, DataSize)>,
    /// By the SSRC of the retransmission stream: packets up to this number are before the key frame
    /// of this time.
    given_up: HashMap<u32, (u16, Timestamp)>,
}

impl Default for Retransmissions {
    fn default() -> Self {
        Self {
            states: HashMap::new(),
            round_trip_time: INITIAL_ROUND_TRIP_TIME,
            waiting: DataSize::ZERO,
            recent: VecDeque::new(),
            given_up: HashMap::new(),
        }
    }
}

impl Retransmissions {
    pub(crate) fn set_round_trip_time(&mut self, rtt: TimeDelta) {
        self.round_trip_time = rtt;
    }

    /// Whether to send this packet again. If so, it counts as waiting.
    ///
    /// One that waits need not be sent twice. One that left less than a round trip ago may have
    /// arrived after the receiver asked [LIBWEBRTC §RtpPacketHistory].
    pub(crate) fn accept(&mut self, now: Timestamp, packet: RtpNumber) -> bool {
        if let Some(&(last, at)) = self.given_up.get(&packet.ssrc)
            && now - at < MAX_AGE // Later, half of the numbers would be before it.
            && is_up_to(packet.sequence_number, last)
        {
            return false;
        }
        let is_accepted = match self.states.get(&key(packet)) {
            Some(Repeat::Waiting) => false,
            Some(Repeat::Sent(at)) => now - *at >= self.round_trip_time,
            None => true,
        };
        if is_accepted {
            self.remove_old(now);
            self.states.insert(key(packet), Repeat::Waiting);
        }
        is_accepted
    }

    /// Accepted packets of this size wait.
    pub(crate) fn on_queued(&mut self, size: DataSize) {
        self.waiting += size;
    }

    /// The packet of this size left.
    pub(crate) fn on_sent(&mut self, now: Timestamp, packet: RtpNumber, size: DataSize) {
        self.waiting = self.waiting.saturating_sub(size);
        self.states.insert(key(packet), Repeat::Sent(now));
        self.recent.push_back((now, size));
        while self.recent.pop_front_if(|(at, _)| now - *at >= RATE_WINDOW).is_some() {}
    }

    /// What left in the last second.
    pub(crate) fn rate(&self, now: Timestamp) -> Bitrate {
        let recent = self.recent.iter().rev().take_while(|(at, _)| now - *at < RATE_WINDOW);
        recent.fold(DataSize::ZERO, |sum, (_, size)| sum + *size) / RATE_WINDOW
    }

    /// Bytes of those that wait, with the layers below.
    pub(crate) fn waiting(&self) -> DataSize {
        self.waiting
    }

    /// None waits any more, and none is accepted up to these numbers, by the SSRC of the
    /// retransmission stream: a key frame comes after them.
    pub(crate) fn give_up(&mut self, now: Timestamp, last: impl IntoIterator<Item = (u32, u16)>) {
        self.states.clear();
        self.waiting = DataSize::ZERO;
        self.given_up.extend(last.into_iter().map(|(ssrc, last)| (ssrc, (last, now))));
    }

    /// The packet does not wait after all.
    pub(crate) fn forget(&mut self, packet: RtpNumber) {
        self.states.remove(&key(packet));
    }

    fn remove_old(&mut self, now: Timestamp) {
        if self.states.len() > MAX_ENTRIES {
            self.states.retain(|_, state| match state {
                Repeat::Waiting => true,
                Repeat::Sent(at) => now - *at < MAX_AGE,
            });
        }
    }
}

/// Whether a number is not after the other.
fn is_up_to(number: u16, last: u16) -> bool {
    let mut unwrapper = SeqUnwrapper::default();
    let last = unwrapper.unwrap(last.into());
    unwrapper.peek(number.into()) <= last
}

fn key(packet: RtpNumber) -> (u32, u16) {
    (packet.ssrc, packet.sequence_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: RtpNumber = RtpNumber { ssrc: 9, sequence_number: 7 };
    const SIZE: DataSize = DataSize::from_bytes(1_200);

    fn ms(time: i64) -> Timestamp {
        Timestamp::ZERO + TimeDelta::from_millis(time)
    }

    #[test]
    fn a_packet_that_waits_is_not_queued_again() {
        let mut retransmissions = Retransmissions::default();
        assert!(retransmissions.accept(ms(0), PACKET));
        assert!(!retransmissions.accept(ms(5_000), PACKET));
        let other = RtpNumber { sequence_number: 8, ..PACKET };
        assert!(retransmissions.accept(ms(5_000), other));
    }

    // [LIBWEBRTC §RtpPacketHistory]
    #[test]
    fn a_packet_that_left_is_sent_again_after_a_round_trip() {
        let mut retransmissions = Retransmissions::default();
        retransmissions.set_round_trip_time(TimeDelta::from_millis(60));
        assert!(retransmissions.accept(ms(0), PACKET));
        retransmissions.on_sent(ms(10), PACKET, SIZE);
        assert!(!retransmissions.accept(ms(69), PACKET));
        assert!(retransmissions.accept(ms(70), PACKET));
    }

    #[test]
    fn a_discarded_packet_may_come_again_at_once() {
        let mut retransmissions = Retransmissions::default();
        assert!(retransmissions.accept(ms(0), PACKET));
        retransmissions.forget(PACKET);
        assert!(retransmissions.accept(ms(0), PACKET));
    }

    #[test]
    fn packets_before_a_key_frame_are_not_sent_again() {
        let number = |sequence_number| RtpNumber { sequence_number, ..PACKET };
        let mut retransmissions = Retransmissions::default();
        assert!(retransmissions.accept(ms(0), number(65_530)));
        retransmissions.on_queued(SIZE);
        assert_eq!(retransmissions.waiting(), SIZE);
        retransmissions.give_up(ms(0), [(PACKET.ssrc, 3)]);
        assert_eq!(retransmissions.waiting(), DataSize::ZERO);
        assert!(!retransmissions.accept(ms(5_000), number(65_530)));
        assert!(!retransmissions.accept(ms(5_000), number(3)));
        assert!(retransmissions.accept(ms(5_000), number(4)));
        assert!(retransmissions.accept(ms(5_000), RtpNumber { ssrc: 10, sequence_number: 3 }));
        assert!(retransmissions.accept(ms(10_000), number(32_772)));
    }

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let mut retransmissions = Retransmissions::default();
        assert_eq!(retransmissions.rate(ms(0)), Bitrate::ZERO);
        for time in [0, 400] {
            retransmissions.on_sent(ms(time), PACKET, SIZE);
        }
        assert_eq!(retransmissions.rate(ms(999)).as_bps(), 2 * 9_600);
        assert_eq!(retransmissions.rate(ms(1_000)).as_bps(), 9_600);
        assert_eq!(retransmissions.rate(ms(1_400)), Bitrate::ZERO);
    }

    #[test]
    fn the_memory_for_packets_that_left_is_bounded() {
        let mut retransmissions = Retransmissions::default();
        for index in 0..30_000 {
            let packet = RtpNumber { sequence_number: index, ..PACKET };
            assert!(retransmissions.accept(ms(20 * i64::from(index)), packet));
            retransmissions.on_sent(ms(20 * i64::from(index)), packet, SIZE);
        }
        assert!(retransmissions.states.len() <= MAX_ENTRIES + 1);
    }
}
