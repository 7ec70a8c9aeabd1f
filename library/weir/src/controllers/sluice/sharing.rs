//! The flow's part of the bottleneck's capacity, from the way its packets queue.
//!
//! If a packet reaches a queue before the packet ahead of it has left, the link sends this packet
//! and what others sent in the gap between the two:
//!
//! ```text
//! arrival gap = size / capacity + send gap * others / capacity
//! ```
//!
//! A least-squares fit gives both factors, without a known capacity or equal clocks. The second
//! factor is the part that others have (S-26). The pairs are chosen by the delay of the packet
//! ahead and the gap alone: a choice by the later delay would bias the fit.

use core::ops::{Add, Mul};

use super::Parameters;
use super::in_order::InOrder;
use crate::feedback::ArrivalTimes;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Packets over which the fit is taken.
const WINDOW: f64 = 500.0;
/// Packets over which the fit is taken that stays (S-28).
const LONG_WINDOW: f64 = 2.0 * WINDOW;
/// Pairs of packets before the fit counts.
const ENOUGH: f64 = 100.0;

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) sent: Timestamp,
    pub(super) arrived: Timestamp,
    /// How long it surely waited in the queue.
    pub(super) waited: TimeDelta,
}

/// What a packet and the one ahead of it say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// The link was surely busy for this time between their arrivals.
    Busy(TimeDelta),
    /// They do not arrive in the order in which they were sent.
    Overtaken,
    /// Nothing.
    Idle,
}

/// The link was surely busy between some packets that arrived in order: for this time together,
/// in which it sent these packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    pub(super) time: TimeDelta,
    pub(super) size: DataSize,
    pub(super) packets: u32,
}

/// The value of a sum in both fits. The processor computes the two together.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Both {
    soon: f64,
    long: f64,
}

impl Both {
    const fn same(value: f64) -> Self {
        Self { soon: value, long: value }
    }

    const fn with_long_of(self, other: Self) -> Self {
        Self { soon: self.soon, long: other.long }
    }
}

impl Add for Both {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self { soon: self.soon + other.soon, long: self.long + other.long }
    }
}

impl Mul for Both {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self { soon: self.soon * other.soon, long: self.long * other.long }
    }
}

/// Sums of the least-squares fits. Sizes are in kB. Gaps are in ms, times the level in Mbit/s: so
/// the factors stay the same when the capacity changes.
#[derive(Clone, Copy, Debug, Default)]
struct Fits {
    count: Both,
    size_size: Both,
    size_gap: Both,
    gap_gap: Both,
    arrival_size: Both,
    arrival_gap: Both,
}

impl Fits {
    /// Applies to each sum.
    fn map(self, of: impl Fn(Both) -> Both) -> Self {
        Self {
            count: of(self.count),
            size_size: of(self.size_size),
            size_gap: of(self.size_gap),
            gap_gap: of(self.gap_gap),
            arrival_size: of(self.arrival_size),
            arrival_gap: of(self.arrival_gap),
        }
    }

    #[inline]
    fn add(&mut self, size: f64, gap: Both, arrival: Both) {
        let size = Both::same(size);
        self.count = self.count + Both::same(1.0);
        self.size_size = self.size_size + size * size;
        self.size_gap = self.size_gap + size * gap;
        self.gap_gap = self.gap_gap + gap * gap;
        self.arrival_size = self.arrival_size + arrival * size;
        self.arrival_gap = self.arrival_gap + arrival * gap;
    }

    /// The flow's part of the capacity by one of the fits, if enough is known.
    fn own(&self, of: fn(Both) -> f64) -> Option<f64> {
        let [size_size, size_gap, gap_gap] = [self.size_size, self.size_gap, self.gap_gap].map(of);
        let det = size_size * gap_gap - size_gap * size_gap;
        if of(self.count) < ENOUGH || det <= 0.0 {
            return None;
        }
        let [arrival_size, arrival_gap] = [self.arrival_size, self.arrival_gap].map(of);
        let others = (arrival_gap * size_size - arrival_size * size_gap) / det;
        Some((1.0 - others).clamp(0.0, 1.0))
    }

    /// The sums of the first fit here, and those of the second one as they were.
    fn with_long_of(self, before: &Self) -> Self {
        Self {
            count: self.count.with_long_of(before.count),
            size_size: self.size_size.with_long_of(before.size_size),
            size_gap: self.size_gap.with_long_of(before.size_gap),
            gap_gap: self.gap_gap.with_long_of(before.gap_gap),
            arrival_size: self.arrival_size.with_long_of(before.arrival_size),
            arrival_gap: self.arrival_gap.with_long_of(before.arrival_gap),
        }
    }
}

/// The fit over the last packets, and one that stays when the capacity falls (S-28).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sharing {
    last: Option<Passed>,
    /// The level, and the newest rate of the link, in Mbit/s.
    mbps: Both,
    /// The fit over the last packets, and the one that stays.
    fits: Fits,
    /// Whether arrivals were seen. A guess between two ACKs or two receiver reports goes by the
    /// times of sending, so the fit would find the send gaps in the arrival gaps.
    is_seen: bool,
}

impl Sharing {
    /// A report of this many packets begins: older packets lose weight. The link sent at the newest
    /// rate just now.
    pub(super) fn begin_report(
        &mut self,
        (packets, arrivals): (usize, ArrivalTimes),
        level: Bitrate,
        newest: Bitrate,
    ) {
        self.is_seen = arrivals == ArrivalTimes::Measured;
        self.mbps = Both { soon: level.as_mbps_f64(), long: newest.as_mbps_f64() };
        let packets = packets as f64;
        let soon = WINDOW / (WINDOW + packets);
        let long = LONG_WINDOW / (LONG_WINDOW + packets);
        self.fits = self.fits.map(|sum| sum * Both { soon, long });
    }

    /// What the last packets said is void.
    pub(super) fn forget(&mut self) {
        *self = Self { fits: Fits::default().with_long_of(&self.fits), ..Self::default() };
    }

    /// A packet of this size arrived.
    pub(super) fn on_packet(&mut self, packet: Passed, size: DataSize, p: &Parameters) -> Pair {
        let Some(ahead) = self.last.replace(packet) else { return Pair::Idle };
        let (gap, between) = (packet.sent - ahead.sent, packet.arrived - ahead.arrived);
        if gap < TimeDelta::ZERO || between < TimeDelta::ZERO {
            return Pair::Overtaken;
        }
        if ahead.waited <= gap {
            return Pair::Idle;
        }
        let before = self.fits;
        self.fits.add(kilobytes(size), self.scaled(gap), self.scaled(between));
        if between > p.outage() {
            self.fits = self.fits.with_long_of(&before);
        }
        if !self.is_seen {
            self.fits = before.with_long_of(&self.fits);
        }
        Pair::Busy(between)
    }

    /// A time in ms, times the rates.
    #[inline]
    fn scaled(&self, time: TimeDelta) -> Both {
        Both::same(time.as_millis_f64()) * self.mbps
    }

    /// Packets arrived, the last of which is this one, and none of them followed another while
    /// that surely waited.
    pub(super) fn skip_to(&mut self, last: Passed) {
        self.last = Some(last);
    }

    /// The packets of a stretch arrived after its first one, which was the last one here, without
    /// an outage between them. The clock is this far ahead. Of a delay without that, what is above
    /// `least` is the time that a packet surely waited. Returns for how long the link was busy.
    pub(super) fn on_stretch(
        &mut self,
        stretch: &InOrder,
        ahead: TimeDelta,
        least: TimeDelta,
    ) -> Busy {
        let mut busy = Busy::default();
        let ([mut sent, last_sent], [mut shown, last_shown]) = (stretch.sent, stretch.shown);
        // Most packets of a stretch have one size.
        let (mut usual, mut usual_kb) = (DataSize::ZERO, 0.0);
        let mut fits = self.fits;
        for (packet, next_shown) in stretch.arrivals().skip(1) {
            // The packet ahead surely waited until then.
            let left = shown - (ahead + least);
            let (gap, between) = (packet.send_time - sent, next_shown - shown);
            (sent, shown) = (packet.send_time, next_shown);
            if left <= sent {
                continue;
            }
            if packet.size != usual {
                (usual, usual_kb) = (packet.size, kilobytes(packet.size));
            }
            fits.add(usual_kb, self.scaled(gap), self.scaled(between));
            busy.time += between;
            busy.size += packet.size;
            busy.packets += 1;
        }
        self.fits = if self.is_seen { fits } else { self.fits.with_long_of(&fits) };
        let arrived = last_shown - ahead;
        let waited = arrived - last_sent - least;
        self.last = Some(Passed { sent: last_sent, arrived, waited });
        busy
    }

    /// The flow's part of the capacity, 0 to 1: 1 while too little is known.
    pub(super) fn own(&self) -> f64 {
        self.soon().unwrap_or(1.0)
    }

    /// The flow's part over the last packets, if enough is known.
    fn soon(&self) -> Option<f64> {
        self.fits.own(|sum| sum.soon)
    }

    /// Whether it is known that the flow has nearly all of the capacity, so that a queue is its
    /// own.
    pub(super) fn is_alone(&self, p: &Parameters) -> bool {
        self.soon().is_some_and(|own| own > p.share_alone)
    }

    /// The flow's part of the capacity over a longer time, falls of the capacity included (S-28).
    pub(super) fn own_long(&self) -> Option<f64> {
        self.fits.own(|sum| sum.long)
    }

    /// How clearly the flow has more than its part beside others: 0 up to the fair part and from
    /// the part of a flow that is alone on, 1 between.
    pub(super) fn surplus(&self, p: &Parameters) -> f64 {
        let own = self.own();
        let above = (own - p.share_fair) / p.share_fair_ramp;
        above.min((p.share_alone - own) / p.share_alone_ramp()).clamp(0.0, 1.0)
    }
}

fn kilobytes(size: DataSize) -> f64 {
    size.as_bytes() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fit after 400 packets of 1000 bytes at 1 Mbit/s, gaps of 4 to 12 ms, on a busy link of
    /// 8 ms a packet of which others take this part. `waited` is what each packet waited.
    fn fit(others: f64, waited: TimeDelta) -> Sharing {
        let mut sharing = Sharing::default();
        let (mut sent, mut arrived) = (0.0, 50.0);
        for number in 0..400 {
            let gap = f64::from(4 + number * 5 % 9);
            sent += gap;
            arrived += 8.0 + others * gap;
            let level = Bitrate::from_kbps(1_000);
            let one = (1, ArrivalTimes::Measured);
            sharing.begin_report(one, level, level);
            let at = |ms: f64| Timestamp::ZERO + TimeDelta::from_millis_f64(ms);
            let packet = Passed { sent: at(sent), arrived: at(arrived), waited };
            sharing.on_packet(packet, DataSize::from_bytes(1_000), &Parameters::DEFAULT);
        }
        sharing
    }

    // S-26
    #[test]
    fn the_gaps_of_a_busy_link_tell_what_others_take() {
        for others in [0.0, 0.3, 0.6, 0.9] {
            let own = fit(others, TimeDelta::from_millis(40)).own();
            assert!((own - (1.0 - others)).abs() < 1e-3, "{own} beside {others}");
        }
    }

    // S-26
    #[test]
    fn packets_that_did_not_wait_tell_nothing() {
        assert_eq!(fit(0.6, TimeDelta::from_millis(3)).own(), 1.0);
    }

    // S-26
    #[test]
    fn a_surplus_lies_between_a_fair_part_and_the_whole() {
        let surplus =
            |others| fit(others, TimeDelta::from_millis(40)).surplus(&Parameters::DEFAULT);
        assert_eq!(surplus(0.5), 0.0);
        assert_eq!(surplus(0.2), 1.0);
        assert!((surplus(0.35) - 0.5).abs() < 0.01);
        assert_eq!(surplus(0.05), 0.0);
    }
}
