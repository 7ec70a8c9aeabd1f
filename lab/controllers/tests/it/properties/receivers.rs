//! The receivers' halves of controllers: feeds hostile packets and checks invariants.

use proptest::prelude::*;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::{AbsSendTimes, LabAlgorithm, ReceivedPacket, ReceiverEstimator};

/// A packet as read from the wire, and the time since the previous one.
#[derive(Clone, Debug)]
struct Arrival {
    gap: TimeDelta,
    /// Absolute send time as on the wire: 24 bits.
    send_time: u32,
    rtp_timestamp: u32,
    bytes: u64,
}

fn any_arrival() -> impl Strategy<Value = Arrival> {
    let gap_ms = prop_oneof![20 => 0_i64..40, 2 => 0_i64..3_000, 1 => 0_i64..10_000_000];
    (gap_ms, any::<u32>(), any::<u32>(), 0_u64..1_500).prop_map(
        |(ms, send_time, rtp_timestamp, bytes)| Arrival {
            gap: TimeDelta::from_millis(ms),
            send_time: send_time & 0xff_ffff,
            rtp_timestamp,
            bytes,
        },
    )
}

fn every_receiver() -> impl Iterator<Item = Box<dyn ReceiverEstimator + Send>> {
    LabAlgorithm::all().filter_map(LabAlgorithm::build_receiver)
}

/// Feeds the arrivals, and the timeouts that are due between them. Returns the limits sent.
fn run(receiver: &mut dyn ReceiverEstimator, arrivals: &[Arrival]) -> Vec<(Timestamp, Bitrate)> {
    let (mut now, mut send_times) = (Timestamp::ZERO, AbsSendTimes::default());
    let mut limits = Vec::new();
    for arrival in arrivals {
        now += arrival.gap;
        while let Some(due) = receiver.next_timeout().filter(|&due| due <= now) {
            receiver.on_timeout(due);
            assert!(receiver.next_timeout().is_none_or(|next| next > due), "{due}");
            limits.extend(receiver.take_limit().map(|limit| (due, limit)));
        }
        let packet = ReceivedPacket::new(
            send_times.unwrap(arrival.send_time),
            arrival.rtp_timestamp,
            DataSize::from_bytes(arrival.bytes),
        );
        receiver.on_packet(now, &packet);
        limits.extend(receiver.take_limit().map(|limit| (now, limit)));
        assert_eq!(receiver.take_limit(), None, "a limit is handed out once");
    }
    limits
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_limit_is_a_bitrate_and_equal_packets_give_equal_limits(
        arrivals in prop::collection::vec(any_arrival(), 0..400),
    ) {
        for (mut one, mut other) in every_receiver().zip(every_receiver()) {
            let limits = run(&mut *one, &arrivals);
            for (now, limit) in &limits {
                prop_assert!(*limit > Bitrate::ZERO, "{limit} at {now}");
            }
            prop_assert_eq!(limits, run(&mut *other, &arrivals));
        }
    }
}

#[test]
fn there_is_an_algorithm_with_a_receivers_half() {
    assert!(every_receiver().next().is_some());
}
