//! A browser's parity: its amount, and the packets it protects
//! [LIBWEBRTC §VCMNackFecMethod, §UlpfecGenerator].
//!
//! The share of parity depends on the maximum loss of the last ten seconds and on the size of the
//! frames. At short round-trip times there is no parity, because retransmissions are fast. Groups
//! consist of whole frames.

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

use super::fec::{Group, MAX_GROUP, Parity};
use super::receiver_reports::Reported;

// Parameters of the share [LIBWEBRTC §VCMNackFecMethod].
/// Below this round-trip time there is no parity.
const MIN_RTT: TimeDelta = TimeDelta::from_millis(20);
/// Below this round-trip time there is no parity for frames smaller than the next constant.
const LONG_RTT: TimeDelta = TimeDelta::from_millis(200);
const MIN_FRAME_KBITS: f64 = 8.0;
/// Window for the maximum loss.
const LOSS_WINDOW: TimeDelta = TimeDelta::from_secs(10);
/// Minimum and maximum share of parity in all packets, in units of 1/255.
const MIN_CODE_RATE: f64 = 51.0;
const MAX_CODE_RATE: f64 = 127.0;
/// Frames smaller than this many kbit have one packet. For them there is no minimum share.
const ONE_PACKET_KBITS: f64 = 6.0;
/// Factor on the frame size at 1280 x 720, to scale it to the picture size for which the table of
/// shares was computed.
const SCALE: f64 = 0.782;
/// The share reaches its maximum at a loss of
/// `LEAST_FULL + FULL / (kbits / RATE_STEP - RATE_OFFSET)` in 256. Below that it follows a power
/// law with this exponent. The formula replaces a table of 50 frame sizes and 129 losses; its mean
/// error is less than 4 in 255.
const LEAST_FULL: f64 = 11.0;
const FULL: f64 = 344.0;
const RATE_STEP: f64 = 5.0;
const RATE_OFFSET: f64 = 0.4;
const POWER: f64 = 0.63;

// Parameters of the groups [LIBWEBRTC §UlpfecGenerator].
/// Maximum number of frames in a group. Otherwise the number is that of two round-trip times.
const MAX_FRAMES: f64 = 6.0;
/// A group may end when its parity exceeds its share by less than this, in units of 1/256.
const MAX_EXCESS: i64 = 50;
/// Minimum number of packets in a group if the share is above the second value. The minimum rises
/// by one if frames have two or more packets.
const MIN_PACKETS: usize = 4;
const HIGH_SHARE: u32 = 80;

/// Amount of parity and size of groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Parity packets for 256 media packets.
    pub(super) parity: u32,
    /// Frames in a group.
    pub(super) max_frames: usize,
}

/// Computes the share of parity.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareRule {
    /// Losses in 256, by time; each is smaller than the one before.
    losses: VecDeque<(Timestamp, u64)>,
}

impl ShareRule {
    /// Returns the share after a report, at this frame rate and bitrate.
    pub(super) fn share(
        &mut self,
        now: Timestamp,
        reported: Reported,
        fps: f64,
        kbps: f64,
    ) -> Share {
        while self.losses.pop_front_if(|(time, _)| now - *time > LOSS_WINDOW).is_some() {}
        while self.losses.pop_back_if(|(_, lost)| *lost <= reported.lost).is_some() {}
        self.losses.push_back((now, reported.lost));
        let max_frames = (2.0 * fps * reported.rtt.as_secs_f64() + 0.5).clamp(1.0, MAX_FRAMES);
        Share {
            parity: parity_share(self.losses[0].1, reported.rtt, libm::floor(kbps / fps.max(1.0))),
            max_frames: max_frames as usize,
        }
    }
}

/// Parity packets per 256 media packets, at a loss of `lost` in 256 and with frames of `kbits`.
fn parity_share(lost: u64, rtt: TimeDelta, kbits: f64) -> u32 {
    if lost == 0 || rtt < MIN_RTT || rtt < LONG_RTT && kbits < MIN_FRAME_KBITS {
        return 0;
    }
    let code_rate = code_rate(lost, kbits);
    // Converts the share in all packets to a share relative to media packets.
    (255.0 * code_rate / (255.0 - code_rate) + 0.5) as u32
}

/// The share of parity in all packets, in units of 1/255.
fn code_rate(lost: u64, kbits: f64) -> f64 {
    let least = if kbits < ONE_PACKET_KBITS { 0.0 } else { MIN_CODE_RATE };
    let row = libm::floor(SCALE * kbits / RATE_STEP).max(1.0);
    let full = LEAST_FULL + FULL / (row - RATE_OFFSET);
    let code_rate = MAX_CODE_RATE * libm::pow(lost as f64 / full, POWER);
    libm::floor(code_rate.clamp(least, MAX_CODE_RATE))
}

/// Forms groups of the media packets that leave, and computes their parity.
#[derive(Clone, Debug, Default)]
pub(super) struct UlpfecEncoder {
    /// Share for the next group, and for the current one.
    pending: Share,
    share: Share,
    packets: Vec<Parity>,
    first: i64,
    frames: usize,
}

impl UlpfecEncoder {
    pub(super) fn set_share(&mut self, share: Share) {
        self.pending = share;
    }

    /// A media packet left. Returns the parity of the group that it completes, if any.
    pub(super) fn on_packet_sent(
        &mut self,
        now: Timestamp,
        number: i64,
        packet: Parity,
    ) -> Vec<Group> {
        if self.packets.is_empty() {
            self.share = self.pending;
            self.first = number;
        }
        if self.share.parity == 0 {
            return Vec::new();
        }
        if self.packets.len() < MAX_GROUP {
            self.packets.push(packet);
        }
        self.frames += usize::from(packet.marker());
        if !packet.marker() || !self.is_complete() {
            return Vec::new();
        }
        self.frames = 0;
        let packets = std::mem::take(&mut self.packets);
        let step = parity_packets(packets.len(), self.share);
        // Consecutive packets are protected by different parity packets, so that a burst of losses
        // can be restored.
        (0..step).map(|place| self.group(now, &packets, place, step)).collect()
    }

    fn group(&self, now: Timestamp, packets: &[Parity], place: usize, step: usize) -> Group {
        let mut group = Group::new(now, self.first + place as i64, step);
        for packet in packets.iter().skip(place).step_by(step) {
            group.add(packet);
        }
        group
    }

    fn is_complete(&self) -> bool {
        let count = self.packets.len();
        let more = usize::from(count >= 2 * self.frames);
        let least = if self.pending.parity > HIGH_SHARE { MIN_PACKETS } else { 1 };
        let parity = parity_packets(count, self.share) as i64 * 256 / count as i64;
        self.frames >= self.share.max_frames
            || parity - i64::from(self.share.parity) < MAX_EXCESS && count >= least + more
    }
}

/// Number of parity packets of a group: the share, rounded, at least one.
fn parity_packets(packets: usize, share: Share) -> usize {
    ((packets * share.parity as usize + 128) / 256).max(1)
}

#[cfg(test)]
mod tests {
    use weir_wire::rtp::RtpHeader;

    use super::*;
    use crate::media::fec::FecDecoder;
    use crate::rtp_format::PAYLOAD_TYPE;

    const LOSS: Reported = Reported { rtt: TimeDelta::from_millis(100), lost: 40 };

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    // [LIBWEBRTC §VCMFecMethod]: entries of its table, and the minimum share.
    #[test]
    fn the_share_is_about_what_the_table_of_loss_and_frame_size_says() {
        let table = [
            (40, 8.0, 51.0),
            (70, 13.0, 65.0),
            (96, 26.0, 116.0),
            (40, 40.0, 79.0),
            (51, 40.0, 106.0),
            (66, 40.0, 127.0),
            (7, 66.0, 55.0),
            (30, 66.0, 103.0),
            (12, 110.0, 73.0),
            (40, 330.0, 127.0),
        ];
        for (lost, kbits, expect) in table {
            let rate = code_rate(lost, kbits);
            assert!((rate - expect).abs() <= 13.0, "{rate} at {lost} and {kbits}: {expect}");
        }
        assert!(code_rate(5, 5.0) < 10.0, "a frame of one packet has no least share");
    }

    // [LIBWEBRTC §VCMNackFecMethod]
    #[test]
    fn there_is_no_parity_without_loss_at_short_round_trips_or_small_frames() {
        let share = |lost, rtt_ms, kbits| parity_share(lost, TimeDelta::from_millis(rtt_ms), kbits);
        assert_eq!(share(0, 100, 30.0), 0);
        assert_eq!(share(255, 19, 30.0), 0);
        assert_eq!(share(255, 20, 30.0), 253, "as many as there are media packets");
        assert_eq!(share(255, 199, 7.0), 0);
        assert_eq!(share(1, 199, 8.0), 64);
        assert_eq!(share(1, 200, 7.0), 64);
    }

    // [LIBWEBRTC §VCMLossProtectionLogic]
    #[test]
    fn the_largest_loss_of_ten_seconds_counts() {
        let mut rule = ShareRule::default();
        let mut share = |ms, lost| rule.share(at(ms), Reported { lost, ..LOSS }, 30.0, 1_000.0);
        let after_loss = share(0, 40);
        assert!(after_loss.parity > 64);
        assert!(share(500, 90).parity > after_loss.parity);
        assert!(share(10_500, 0).parity > after_loss.parity);
        assert_eq!(share(10_501, 0).parity, 0);
    }

    // [LIBWEBRTC §VCMNackFecMethod]
    #[test]
    fn a_group_has_the_frames_of_two_round_trip_times_and_six_at_most() {
        let frames = |rtt_ms| {
            let reported = Reported { rtt: TimeDelta::from_millis(rtt_ms), ..LOSS };
            ShareRule::default().share(at(0), reported, 30.0, 1_000.0).max_frames
        };
        assert_eq!([0, 20, 50, 90, 400].map(frames), [1, 1, 3, 5, 6]);
    }

    fn packet(number: i64, is_last: bool) -> Parity {
        let header = RtpHeader::new(1, PAYLOAD_TYPE, number as u16, 3_000 * number as u32)
            .with_marker(is_last);
        Parity::of(&header, [number as u8, 1], 900 + number as u16)
    }

    /// Number of media packets and of parity packets in each group of six consecutive frames.
    fn groups(parity: u32, max_frames: usize, packets_per_frame: i64) -> Vec<(i64, usize)> {
        let mut encoder = UlpfecEncoder::default();
        encoder.set_share(Share { parity, max_frames });
        let (mut made, mut first) = (Vec::new(), 0);
        for number in 0..6 * packets_per_frame {
            let is_last = (number + 1) % packets_per_frame == 0;
            let group = encoder.on_packet_sent(at(0), number, packet(number, is_last));
            if !group.is_empty() {
                made.push((number + 1 - first, group.len()));
                first = number + 1;
            }
        }
        made
    }

    // [LIBWEBRTC §UlpfecGenerator]
    #[test]
    fn a_group_ends_with_the_frame_whose_parity_is_not_far_above_the_share() {
        assert_eq!(groups(0, 6, 1), []);
        assert_eq!(groups(64, 6, 1), [(3, 1), (3, 1)]);
        assert_eq!(groups(64, 6, 4), [(4, 1); 6]);
        assert_eq!(groups(64, 2, 1), [(2, 1); 3], "it has no more frames");
        assert_eq!(groups(253, 6, 1), [(4, 4)], "a large share is of four packets at least");
        assert_eq!(groups(253, 6, 2), [(6, 6), (6, 6)], "and of five, where frames have two");
        assert_eq!(groups(128, 6, 3), [(6, 3); 3]);
    }

    // [RFC8627 §4.2.2.1]
    #[test]
    fn of_a_frame_that_no_mask_holds_the_first_46_packets_are_protected() {
        let mut encoder = UlpfecEncoder::default();
        encoder.set_share(Share { parity: 5, max_frames: 1 });
        let groups: Vec<Group> = (0..60)
            .flat_map(|number| encoder.on_packet_sent(at(0), number, packet(number, number == 59)))
            .collect();
        let sizes: Vec<_> = groups.iter().map(|group| (group.first, group.packets)).collect();
        assert_eq!(sizes, [(0, 46)]);
    }

    #[test]
    fn a_new_share_is_for_the_next_group() {
        let mut encoder = UlpfecEncoder::default();
        encoder.set_share(Share { parity: 64, max_frames: 6 });
        assert_eq!(encoder.on_packet_sent(at(0), 0, packet(0, true)), []);
        encoder.set_share(Share { parity: 0, max_frames: 1 });
        assert_eq!(encoder.on_packet_sent(at(0), 1, packet(1, true)), []);
        assert_eq!(encoder.on_packet_sent(at(0), 2, packet(2, true)).len(), 1);
        assert_eq!(encoder.on_packet_sent(at(0), 3, packet(3, true)), []);
    }

    #[test]
    fn as_many_neighbours_as_there_are_parity_packets_are_restored() {
        let mut encoder = UlpfecEncoder::default();
        encoder.set_share(Share { parity: 128, max_frames: 1 });
        let sent = |number| packet(number, number == 15);
        let groups: Vec<Group> = (10..16)
            .flat_map(|number| encoder.on_packet_sent(at(0), number, sent(number)))
            .collect();
        assert_eq!(groups.len(), 3);
        let mut decoder = FecDecoder::default();
        for number in [10, 11, 15] {
            decoder.on_packet(number, sent(number));
        }
        let mut restored = Vec::new();
        for group in groups {
            let numbers = (0..group.packets).map(|index| group.first + (index * group.step) as i64);
            decoder.on_parity(numbers.collect(), group.parity);
            restored.extend(decoder.recover());
        }
        restored.sort_unstable_by_key(|(number, _)| *number);
        assert_eq!(restored, [12, 13, 14].map(|number| (number, sent(number))));
    }
}
