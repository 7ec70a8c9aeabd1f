//! Pairs of media packets that left close together, and whether the path still spreads them.
//!
//! A probe that queued tells the rate of a full path, at which packets arrive one by one. When two
//! that left faster arrive as fast again, the path may carry more than it did. On a fast path more
//! packets than two are needed: feedback tells times in steps of 0.25 ms, and hosts in larger ones.
//! That proves nothing, because a radio link delivers in groups, but it costs nothing and says when
//! a probe is worth its bytes.

use weir::feedback::PacketReport;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A pair leaves and arrives faster than the full path's rate by this factor.
const ABOVE: f64 = 1.2;
/// Packets of a pair leave within this time.
const MAX_GAP: TimeDelta = TimeDelta::from_millis(20);
/// What follows the first packet takes at least this time. A receiver that tells times in steps of
/// a millisecond makes a fifth of less.
const MIN_TIME: TimeDelta = TimeDelta::from_millis(6);
/// Pairs that are looked at together.
const WINDOW: u32 = 8;
/// So many of them arrived fast if the path has opened.
const OPEN: u32 = 7;
/// At most so many did when it was full. A link that delivers in groups has more.
const FULL: u32 = 2;

/// The last pairs since a probe queued.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pairs {
    /// The rate of the full path.
    full: Option<Bitrate>,
    /// When the first packet left and arrived, and the size of those after it.
    first: Option<(Timestamp, Timestamp, DataSize)>,
    /// One bit a pair, the newest lowest: 1 arrived fast.
    fast: u32,
    seen: u32,
    /// The path was seen to spread pairs.
    was_full: bool,
}

impl Pairs {
    /// A probe queued, and all of it arrived, at this rate.
    pub fn on_full(&mut self, rate: Bitrate) {
        *self = Self { full: Some(rate), ..Self::default() };
    }

    /// The next packet of the reports. Returns whether the path has opened, once.
    pub fn on_packet(&mut self, packet: &PacketReport) -> bool {
        let Some(full) = self.full else { return false };
        let Some(arrival) = packet.arrival_time.filter(|_| packet.probe.is_none()) else {
            self.first = None;
            return false;
        };
        let this = (packet.send_time, arrival, DataSize::ZERO);
        let Some((sent, arrived, before)) = self.first.replace(this) else { return false };
        let size = before + packet.size;
        let (gap, spread) = (packet.send_time - sent, arrival - arrived);
        // How long they take at a rate that is clearly above.
        let most = size / (full * ABOVE);
        if gap < TimeDelta::ZERO || gap > most.min(MAX_GAP) {
            return false;
        }
        if most < MIN_TIME {
            self.first = Some((sent, arrived, size));
            return false;
        }
        self.fast = self.fast << 1 | u32::from(spread <= most);
        self.seen = (self.seen + 1).min(WINDOW);
        if self.seen < WINDOW {
            return false;
        }
        let fast = (self.fast & ((1 << WINDOW) - 1)).count_ones();
        self.was_full |= fast <= FULL;
        let has_opened = self.was_full && fast >= OPEN;
        self.was_full &= !has_opened;
        has_opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::feedback::ProbeId;

    /// Pairs after a probe that arrived at 400 kbit/s.
    fn full() -> Pairs {
        let mut pairs = Pairs::default();
        pairs.on_full(Bitrate::from_kbps(400));
        pairs
    }

    /// Pairs of 1000 bytes: the second leaves 5 ms later, and arrives this much later. Returns
    /// whether one of them told that the path has opened.
    fn pairs(pairs: &mut Pairs, count: i64, spread_ms: i64, probe: Option<ProbeId>) -> bool {
        let size = DataSize::from_bytes(1_000);
        let mut has_opened = false;
        for number in 0..count {
            for (sent, arrived) in [(0, 20), (5, 20 + spread_ms)] {
                let at = |ms: i64| Timestamp::from_millis(100 * number + ms);
                let packet = PacketReport::new(number, size, at(sent))
                    .with_arrival_time(Some(at(arrived)))
                    .with_probe(probe);
                has_opened |= pairs.on_packet(&packet);
            }
        }
        has_opened
    }

    #[test]
    fn a_path_that_spreads_pairs_no_more_has_opened() {
        let mut seen = full();
        assert!(!pairs(&mut seen, 8, 20, None));
        assert!(!pairs(&mut seen, 6, 5, None));
        assert!(pairs(&mut seen, 1, 5, None));
        // It is told once.
        assert!(!pairs(&mut seen, 20, 5, None));
    }

    // At 100 Mbit/s a packet takes 0.1 ms.
    #[test]
    fn on_a_fast_path_coarse_times_do_not_open_it() {
        let mut pairs = Pairs::default();
        pairs.on_full(Bitrate::from_kbps(100_000));
        let size = DataSize::from_bytes(1_200);
        for number in 0..10_000 {
            // Bursts of 20 packets, which arrive at the full rate, in steps of 1 ms.
            let burst = Timestamp::from_millis(10 * (number / 20));
            let arrival = TimeDelta::from_micros(96 * (number % 20)).as_micros() / 1_000;
            let arrival = burst + TimeDelta::from_millis(20 + arrival);
            let packet = PacketReport::new(number, size, burst).with_arrival_time(Some(arrival));
            assert!(!pairs.on_packet(&packet), "at {number}");
        }
    }

    // Found in simulation: at 3.4 Mbit/s a packet takes 2.7 ms, which a step of 1 ms made 2 or 3. A
    // probe that queued was repeated twice a second.
    #[test]
    fn at_any_rate_a_receiver_that_counts_milliseconds_does_not_open_it() {
        for kbps in [300, 700, 1_500, 3_374, 5_000, 12_000, 40_000] {
            for shift_us in [0, 300, 700] {
                let mut pairs = Pairs::default();
                let full = Bitrate::from_kbps(kbps);
                pairs.on_full(full);
                let (mut free, mut sent) = (Timestamp::ZERO, Timestamp::ZERO);
                for number in 0..20_000 {
                    // Bursts of five packets take three quarters of the path.
                    let size = DataSize::from_bytes(if number % 5 == 4 { 500 } else { 1_150 });
                    if number % 5 == 0 {
                        sent += DataSize::from_bytes(5_100) / full * 1.33;
                    }
                    free = free.max(sent) + size / full;
                    let us = free.as_micros() + shift_us;
                    let arrival = Timestamp::from_millis(20 + us / 1_000);
                    let packet =
                        PacketReport::new(number, size, sent).with_arrival_time(Some(arrival));
                    assert!(!pairs.on_packet(&packet), "{kbps} kbit/s at {number}");
                }
            }
        }
    }

    // A Wi-Fi cell delivers what waited together at once, and is as full as it was.
    #[test]
    fn a_link_that_delivers_in_groups_says_nothing() {
        let mut seen = full();
        for _ in 0..8 {
            assert!(!pairs(&mut seen, 2, 0, None));
            assert!(!pairs(&mut seen, 1, 20, None));
        }
        assert!(!pairs(&mut seen, 8, 0, None));
    }

    #[test]
    fn probes_are_no_media() {
        let mut seen = full();
        assert!(!pairs(&mut seen, 8, 20, None));
        assert!(!pairs(&mut seen, 20, 5, Some(ProbeId(1))));
    }

    #[test]
    fn a_path_that_is_full_again_must_be_seen_to_spread_pairs() {
        let mut seen = full();
        assert!(!pairs(&mut seen, 8, 20, None));
        seen.on_full(Bitrate::from_kbps(400));
        assert!(!pairs(&mut seen, 8, 5, None));
    }
}
