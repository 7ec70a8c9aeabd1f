//! A simulated path for tests of a whole controller: ten packets, then their report.

use alloc::vec::Vec;

use crate::controller::Controller;
use crate::feedback::{Ecn, FeedbackReport, PacketReport, SentPacket};
use crate::units::{DataSize, TimeDelta, Timestamp};

pub(in super::super) const SIZE: DataSize = DataSize::from_bytes(1_000);

/// The one-way delay of a packet in ms, or `None` if it was lost.
type Delay = Option<i64>;

/// Sends ten packets, one every 10 ms, starting at `number` times 500 ms. Their report arrives
/// 400 ms after the first.
pub(in super::super) fn round(
    controller: &mut impl Controller,
    number: i64,
    new_clock: bool,
    delay: impl Fn(i64) -> Delay,
) {
    let delay = |index| (delay(index), Ecn::NotEct);
    round_with_ecn(controller, number, new_clock, delay);
}

/// Like [`round`], with the ECN bits of each packet.
pub(in super::super) fn round_with_ecn(
    controller: &mut impl Controller,
    number: i64,
    new_clock: bool,
    delay: impl Fn(i64) -> (Delay, Ecn),
) {
    let report = |index: i64| {
        let (delay_ms, ecn) = delay(index);
        let send_time = Timestamp::from_millis(500 * number + 10 * index);
        PacketReport {
            sequence_number: 10 * number + index,
            size: SIZE,
            send_time,
            arrival_time: delay_ms.map(|ms| send_time + TimeDelta::from_millis(ms)),
            ecn,
            recovered: false,
            probe: None,
        }
    };
    let packets: Vec<_> = (0..10).map(report).collect();
    for PacketReport { sequence_number, size, send_time, .. } in packets.iter().copied() {
        let queued = DataSize::ZERO;
        let sent = SentPacket { sequence_number, size, queued, probe: None, padding: false };
        controller.on_packet_sent(send_time, &sent);
    }
    let report = FeedbackReport { packets, new_clock, ..FeedbackReport::default() };
    controller.on_feedback(Timestamp::from_millis(500 * number + 400), &report);
}
