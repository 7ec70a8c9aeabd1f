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

use super::Parameters;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Packets over which the fit is taken.
const WINDOW: f64 = 500.0;
/// Pairs of packets before the fit counts.
const ENOUGH: f64 = 100.0;

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) sent: Timestamp,
    pub(super) arrived: Timestamp,
    /// How long it surely waited in the queue.
    pub(super) waited: TimeDelta,
    /// Whether it was seen when it arrived. A guess between two ACKs goes by the times of sending,
    /// and what is fitted to it has the send gaps in the arrival gaps.
    pub(super) is_seen: bool,
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

/// Sums of the least-squares fit. Sizes are in kB. Gaps are in ms, times the level in Mbit/s: so
/// the factors stay the same when the capacity changes.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    count: f64,
    size_size: f64,
    size_gap: f64,
    gap_gap: f64,
    arrival_size: f64,
    arrival_gap: f64,
}

impl Fit {
    /// So many packets come: older ones lose weight.
    fn fade(&mut self, packets: usize, window: f64) {
        let keep = window / (window + packets as f64);
        self.count *= keep;
        self.size_size *= keep;
        self.size_gap *= keep;
        self.gap_gap *= keep;
        self.arrival_size *= keep;
        self.arrival_gap *= keep;
    }

    fn add(&mut self, size: f64, gap: f64, arrival: f64) {
        self.count += 1.0;
        self.size_size += size * size;
        self.size_gap += size * gap;
        self.gap_gap += gap * gap;
        self.arrival_size += arrival * size;
        self.arrival_gap += arrival * gap;
    }

    /// The flow's part of the capacity, if enough is known.
    fn own(&self) -> Option<f64> {
        let det = self.size_size * self.gap_gap - self.size_gap * self.size_gap;
        if self.count < ENOUGH || det <= 0.0 {
            return None;
        }
        let others = (self.arrival_gap * self.size_size - self.arrival_size * self.size_gap) / det;
        Some((1.0 - others).clamp(0.0, 1.0))
    }
}

/// The fit over the last packets, and one that stays when the capacity falls (S-28).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sharing {
    last: Option<Passed>,
    level_mbps: f64,
    newest_mbps: f64,
    soon: Fit,
    long: Fit,
}

impl Sharing {
    /// A report of this many packets begins: older packets lose weight. The link sent at the newest
    /// rate just now.
    pub(super) fn begin_report(
        &mut self,
        packets: usize,
        level: Bitrate,
        newest: Bitrate,
        p: &Parameters,
    ) {
        self.level_mbps = level.as_mbps_f64();
        self.newest_mbps = newest.as_mbps_f64();
        self.soon.fade(packets, WINDOW);
        self.long.fade(packets, p.long_window);
    }

    /// What the last packets said is void.
    pub(super) fn forget(&mut self) {
        *self = Self { long: self.long, ..Self::default() };
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
        let size = size.as_bytes() as f64 / 1_000.0;
        let (gap, arrival) = (gap.as_millis_f64(), between.as_millis_f64());
        if packet.is_seen {
            self.soon.add(size, gap * self.level_mbps, arrival * self.level_mbps);
        }
        if between <= p.t_outage {
            self.long.add(size, gap * self.newest_mbps, arrival * self.newest_mbps);
        }
        Pair::Busy(between)
    }

    /// The flow's part of the capacity, 0 to 1: 1 while too little is known.
    pub(super) fn own(&self) -> f64 {
        self.soon.own().unwrap_or(1.0)
    }

    /// Whether it is known that the flow has nearly all of the capacity, so that a queue is its
    /// own.
    pub(super) fn is_alone(&self, p: &Parameters) -> bool {
        self.soon.own().is_some_and(|own| own > p.share_alone)
    }

    /// The flow's part of the capacity over a longer time, falls of the capacity included (S-28).
    pub(super) fn own_long(&self, p: &Parameters) -> Option<f64> {
        let most = self.soon.own().map_or(1.0, |own| own + p.soon_margin);
        self.long.own().map(|own| own.min(most))
    }

    /// How clearly the flow has more than its part beside others: 0 up to the fair part and from
    /// the part of a flow that is alone on, 1 between.
    pub(super) fn surplus(&self, p: &Parameters) -> f64 {
        let own = self.own();
        let above = (own - p.share_fair) / p.share_fair_ramp;
        above.min((p.share_alone - own) / p.share_alone_ramp).clamp(0.0, 1.0)
    }
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
            sharing.begin_report(1, level, level, &Parameters::DEFAULT);
            let at = |ms: f64| Timestamp::ZERO + TimeDelta::from_millis_f64(ms);
            let packet = Passed { sent: at(sent), arrived: at(arrived), waited, is_seen: true };
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
