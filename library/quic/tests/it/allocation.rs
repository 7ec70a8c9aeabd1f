//! Nothing is allocated after the start.

use weir::{Algorithm, Bitrate, DataSize, RateLimits, TimeDelta, Timestamp};
use weir_quic::{AckEnd, Config, Congestion, PacketName, Sent, Space};

use crate::heap;

/// A packet each ms, an ACK for every second one after 50 ms, and every hundredth is lost.
fn step(congestion: &mut Congestion, number: u64) {
    let now = Timestamp::ZERO + TimeDelta::from_millis(number as i64);
    let size = DataSize::from_bytes(1_200);
    congestion.on_packet_sent(now, Sent::new(Space::Data, number, size));
    let Some(newest) = number.checked_sub(50).filter(|newest| newest % 2 == 1) else { return };
    for acked in [newest - 1, newest].into_iter().filter(|acked| acked % 100 != 37) {
        congestion.on_ack_range(Space::Data, acked..=acked);
    }
    congestion.on_ack_end(now, AckEnd::default().with_app_limited(false));
    if newest % 100 == 41 {
        congestion.on_packet_lost(now, PacketName::Numbered(Space::Data, newest - 4));
    }
}

#[test]
fn nothing_is_allocated_after_the_start() {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).unwrap();
    for algorithm in Algorithm::all() {
        let mut congestion = Congestion::new(algorithm.build(limits), Config::default());
        // Longer than the history, and than the windows of the controllers.
        (0..60_000).for_each(|number| step(&mut congestion, number));
        let before = heap::allocations();
        (60_000..120_000).for_each(|number| step(&mut congestion, number));
        let count = heap::allocations() - before;
        assert_eq!(count, 0, "{algorithm}");
    }
}
