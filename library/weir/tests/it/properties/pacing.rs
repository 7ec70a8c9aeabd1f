//! A pacer whose driver wakes up late: it keeps the rate, in bursts of a stated size.

use proptest::prelude::*;
use weir::Timestamp;
use weir::controller::{Burst, Target};
use weir::pacer::{MAX_CATCH_UP, Pacer};
use weir::units::{Bitrate, DataSize, TimeDelta};

use super::config;

const PACKET: DataSize = DataSize::from_bytes(1_200);
const END: Timestamp = Timestamp::from_secs(10);

/// What a driver sent until [`END`].
#[derive(Debug, Default)]
struct Sent {
    all: DataSize,
    largest_burst: DataSize,
}

/// Sends from a queue that never ends. Each wake-up is late by the next of these delays, which
/// repeat.
fn drive(target: &Target, late: &[TimeDelta]) -> Sent {
    let mut pacer = Pacer::new(target);
    let mut sent = Sent::default();
    let mut now = Timestamp::ZERO;
    for &late in late.iter().cycle() {
        while pacer.queued() < target.pacing_rate * TimeDelta::from_millis(500) + PACKET {
            pacer.enqueue(PACKET, ());
        }
        now = now.max(pacer.next_send_time().expect("packets wait")) + late;
        if now >= END {
            break;
        }
        let before = sent.all;
        while let Some(release) = pacer.dequeue(now) {
            sent.all += release.size;
        }
        sent.largest_burst = sent.largest_burst.max(sent.all.saturating_sub(before));
    }
    sent
}

/// Sends from a queue that never ends, at the ticks of a timer.
fn drive_at_ticks(target: &Target, tick: TimeDelta) -> Sent {
    let mut pacer = Pacer::new(target);
    let mut sent = Sent::default();
    let mut now = Timestamp::ZERO;
    while now < END {
        while pacer.queued() < target.pacing_rate * TimeDelta::from_millis(500) + PACKET {
            pacer.enqueue(PACKET, ());
        }
        let before = sent.all;
        while let Some(release) = pacer.dequeue(now) {
            sent.all += release.size;
        }
        sent.largest_burst = sent.largest_burst.max(sent.all.saturating_sub(before));
        now += tick;
    }
    sent
}

/// The most that may leave at once: the burst of the controller, [`MAX_CATCH_UP`], and the packet
/// with which each of them ends.
fn largest_burst(target: &Target) -> DataSize {
    let (Burst::Ahead(time) | Burst::Whole(time)) = target.burst;
    target.pacing_rate * (time + MAX_CATCH_UP) + PACKET + PACKET
}

fn target_with(rate: Bitrate, burst: Burst) -> Target {
    let mut target = Target::new(rate, rate);
    target.burst = burst;
    target
}

fn any_target() -> impl Strategy<Value = Target> {
    (100_u64..20_000, 0_i64..40, any::<bool>()).prop_map(|(kbps, ms, whole)| {
        let (rate, time) = (Bitrate::from_kbps(kbps), TimeDelta::from_millis(ms));
        let burst = if whole { Burst::Whole(time) } else { Burst::Ahead(time) };
        target_with(rate, burst)
    })
}

fn late_by_up_to(most_ms: i64) -> impl Strategy<Value = Vec<TimeDelta>> {
    prop::collection::vec((0..most_ms * 1_000).prop_map(TimeDelta::from_micros), 1..50)
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn wake_ups_late_by_up_to_20_ms_keep_95_percent_of_the_rate(
        target in any_target(),
        late in late_by_up_to(20),
    ) {
        let exact = drive(&target, &[TimeDelta::ZERO]).all;
        let sent = drive(&target, &late);
        let share = sent.all.as_bytes() as f64 / exact.as_bytes() as f64;
        prop_assert!((0.95..1.01).contains(&share), "{} of \
            {}", sent.all.as_bytes(), exact.as_bytes());
        prop_assert!(sent.largest_burst <= largest_burst(&target), "{:?}", sent);
    }

    /// However late it is.
    #[test]
    fn no_burst_is_larger_than_stated(target in any_target(), late in late_by_up_to(2_000)) {
        let sent = drive(&target, &late);
        prop_assert!(sent.largest_burst <= largest_burst(&target), "{:?}", sent);
    }
}

#[test]
fn a_timer_of_5_ms_keeps_95_percent_of_the_rate() {
    for kbps in [300, 1_000, 3_000, 20_000] {
        for burst in [
            Burst::Ahead(TimeDelta::ZERO),
            Burst::Ahead(TimeDelta::from_millis(5)),
            Burst::Whole(TimeDelta::from_millis(40)),
        ] {
            let rate = Bitrate::from_kbps(kbps);
            let target = target_with(rate, burst);
            let exact = drive(&target, &[TimeDelta::ZERO]).all.as_bytes();
            let sent = drive_at_ticks(&target, TimeDelta::from_millis(5));
            let share = sent.all.as_bytes() as f64 / exact as f64;
            assert!((0.95..1.01).contains(&share), "{kbps} kbit/s, {burst:?}: {share}");
            assert!(sent.largest_burst <= largest_burst(&target), "{kbps}, {burst:?}: {sent:?}");
        }
    }
}
