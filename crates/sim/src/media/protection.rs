//! How a browser divides the target: the encoder gets what the share of repair leaves of it.
//!
//! That share is what retransmissions and parity took of all that was sent lately. It is taken anew when
//! the controller or a receiver report has something new to say, and stands until then
//! [LIBWEBRTC §FecControllerDefault].

use std::collections::VecDeque;

use weir::controller::Target;
use weir::feedback::{FeedbackReport, LossCounts};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::Kind;

/// Largest share of repair [LIBWEBRTC §FecControllerDefault].
const MAX_REPAIR_SHARE: f64 = 0.5;
/// What is sent is counted over this time [LIBWEBRTC §RtpSenderEgress], and over this one what
/// retransmissions were granted, which may take the whole target [LIBWEBRTC §RtpTransportControllerSend].
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
const RTX_WINDOW: TimeDelta = TimeDelta::from_millis(500);
/// A rate is that of a time that is longer than this [LIBWEBRTC §BitrateTracker].
const LEAST_TIME: TimeDelta = TimeDelta::from_millis(1);
/// Video has a receiver report once a second.
const REPORT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// A report tells the round-trip time in whole ms. Ours is that of feedback, which waits at the receiver for
/// up to a frame; what is less than this apart is the same.
const RTT_STEP: TimeDelta = TimeDelta::from_millis(10);
/// A report tells of losses in so many parts of the packets [RFC3550 §6.4.1].
const LOSS_PARTS: u64 = 256;

/// The division of a target.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    media: SentRate,
    rtx: SentRate,
    fec: SentRate,
    granted: SentRate,
    reports: Reports,
    /// What was known when the target was divided last, and the media's share.
    divided: Option<(Bitrate, Bitrate, Reported)>,
    media_share: f64,
}

impl Default for Protection {
    fn default() -> Self {
        Self {
            media: SentRate::over(WINDOW),
            rtx: SentRate::over(WINDOW),
            fec: SentRate::over(WINDOW),
            granted: SentRate::over(RTX_WINDOW),
            reports: Reports::default(),
            divided: None,
            media_share: 1.0,
        }
    }
}

impl Protection {
    /// A packet that is no padding left.
    pub(super) fn on_packet_sent(&mut self, now: Timestamp, kind: Kind, size: DataSize) {
        match kind {
            Kind::Media => self.media.add(now, size),
            Kind::Rtx => self.rtx.add(now, size),
            Kind::Fec => self.fec.add(now, size),
        }
    }

    /// A feedback report arrived.
    pub(super) fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.reports.on_feedback(now, report);
    }

    /// What the encoder may produce.
    pub(super) fn media_rate(&mut self, now: Timestamp, target: &Target) -> Bitrate {
        let known = (target.bitrate, target.source_bitrate, self.reports.last);
        if self.divided.replace(known) != Some(known) {
            let repair = self.rtx.rate(now) + self.fec.rate(now);
            let all = repair + self.media.rate(now);
            let share = if all > Bitrate::ZERO { repair / all } else { 0.0 };
            self.media_share = 1.0 - share.min(MAX_REPAIR_SHARE);
        }
        target.bitrate * self.media_share
    }

    /// Whether a retransmission of this size may be sent; if so, it is taken to be.
    pub(super) fn grant_rtx(&mut self, now: Timestamp, size: DataSize, target: Bitrate) -> bool {
        let before = self.granted.rate(now);
        // The first ones are granted whatever the target is.
        let is_granted = before == Bitrate::ZERO || before + size / RTX_WINDOW <= target;
        if is_granted {
            self.granted.add(now, size);
        }
        is_granted
    }
}

/// The rate of what was sent in a window, or since the first of it if nothing came before
/// [LIBWEBRTC §BitrateTracker].
#[derive(Clone, Debug)]
struct SentRate {
    window: TimeDelta,
    sent: VecDeque<(Timestamp, DataSize)>,
    sum: DataSize,
    since: Timestamp,
}

impl SentRate {
    fn over(window: TimeDelta) -> Self {
        Self { window, sent: VecDeque::new(), sum: DataSize::ZERO, since: Timestamp::ZERO }
    }

    fn add(&mut self, now: Timestamp, size: DataSize) {
        self.forget(now);
        if self.sent.is_empty() {
            self.since = now;
        }
        self.sent.push_back((now, size));
        self.sum += size;
    }

    fn rate(&mut self, now: Timestamp) -> Bitrate {
        self.forget(now);
        let time = now - self.since + LEAST_TIME;
        let is_full = time >= self.window;
        match self.sent.len() {
            0 => Bitrate::ZERO,
            1 if !is_full => Bitrate::ZERO,
            _ if time <= LEAST_TIME => Bitrate::ZERO,
            _ => self.sum / time.min(self.window),
        }
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some((_, size)) = self.sent.pop_front_if(|(time, _)| *time + self.window <= now) {
            self.sum = self.sum.saturating_sub(size);
        }
    }
}

/// What a receiver report tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reported {
    rtt: TimeDelta,
    /// Of [`LOSS_PARTS`].
    lost: u64,
}

/// Makes receiver reports of the feedback.
#[derive(Clone, Debug, Default)]
struct Reports {
    last: Reported,
    /// Of the report to come: when it began, and what it has seen.
    since: Timestamp,
    rtt: Option<TimeDelta>,
    lost: u64,
    received: u64,
}

impl Reports {
    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        let LossCounts { lost, received, .. } = report.loss_counts();
        self.lost += lost;
        self.received += received;
        self.rtt = report.rtt(now).into_iter().chain(self.rtt).min();
        if now - self.since < REPORT_INTERVAL {
            return;
        }
        let Some(rtt) = self.rtt else { return };
        let is_same = (rtt - self.last.rtt).abs() < RTT_STEP;
        let expected = (self.lost + self.received).max(1);
        self.last = Reported {
            rtt: if is_same { self.last.rtt } else { rtt },
            lost: self.lost * LOSS_PARTS / expected,
        };
        *self = Self { last: self.last, since: now, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use weir::feedback::{Ecn, PacketReport};

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    fn target(kbps: u64) -> Target {
        let rate = Bitrate::from_kbps(kbps);
        Target::new(rate, rate)
    }

    /// Sends a packet of 1000 B each 10 ms until a time: of each ten so many again, and so many of parity.
    fn send(protection: &mut Protection, until_ms: i64, rtx: i64, fec: i64) {
        for index in 0..until_ms / 10 {
            let kind = match index % 10 {
                place if place < rtx => Kind::Rtx,
                place if place < rtx + fec => Kind::Fec,
                _ => Kind::Media,
            };
            protection.on_packet_sent(at(10 * index), kind, bytes(1_000));
        }
    }

    /// Feedback of 64 packets that left a while before, so many of which did not arrive.
    fn feedback(now_ms: i64, response_ms: i64, lost: i64) -> FeedbackReport {
        let packets = (0..64).map(|number| PacketReport {
            sequence_number: number,
            size: bytes(1_000),
            send_time: at(now_ms - response_ms),
            arrival_time: (number >= lost).then(|| at(now_ms)),
            ecn: Ecn::NotEct,
            recovered: false,
            probe: None,
        });
        FeedbackReport { packets: packets.collect(), ..FeedbackReport::default() }
    }

    fn kbps(protection: &mut Protection, now_ms: i64, target_kbps: u64) -> f64 {
        protection.media_rate(at(now_ms), &target(target_kbps)).as_kbps_f64()
    }

    // [LIBWEBRTC §FecControllerDefault]
    #[test]
    fn the_media_has_what_the_share_of_repair_in_the_last_second_leaves_of_the_target() {
        let mut protection = Protection::default();
        assert_eq!(kbps(&mut protection, 0, 800), 800.0);
        send(&mut protection, 2_000, 2, 1);
        assert_eq!(kbps(&mut protection, 1_990, 1_000), 700.0);
        send(&mut protection, 4_000, 8, 0);
        assert_eq!(kbps(&mut protection, 3_990, 900), 450.0, "half at least");
    }

    // [LIBWEBRTC §BitrateTracker]
    #[test]
    fn what_has_just_begun_counts_by_the_time_since_it_began() {
        let mut protection = Protection::default();
        send(&mut protection, 1_000, 0, 0);
        for ms in [1_000, 1_049] {
            protection.on_packet_sent(at(ms), Kind::Rtx, bytes(500));
        }
        // 1000 B in 50 ms are 160 kbit/s; of media the last second still holds 95 packets.
        let media = 95.0 * 8.0;
        let expected = 1_000.0 * media / (media + 160.0);
        assert!((kbps(&mut protection, 1_049, 1_000) - expected).abs() < 0.01);
    }

    // [LIBWEBRTC §FecControllerDefault]
    #[test]
    fn the_division_stands_until_the_target_or_a_receiver_report_has_something_new() {
        let mut protection = Protection::default();
        send(&mut protection, 2_000, 3, 0);
        assert_eq!(kbps(&mut protection, 1_990, 1_000), 700.0);
        assert_eq!(kbps(&mut protection, 9_000, 1_000), 700.0, "nothing is sent again any more");
        protection.on_feedback(at(9_000), &feedback(9_000, 60, 0));
        assert_eq!(kbps(&mut protection, 9_001, 1_000), 1_000.0);
        let told = |protection: &mut Protection, now_ms, response_ms, lost| {
            protection.on_feedback(at(now_ms), &feedback(now_ms, response_ms, lost));
            protection.reports.last
        };
        let first = protection.reports.last;
        assert_eq!(told(&mut protection, 9_900, 500, 9), first, "a report comes once a second");
        assert_eq!(told(&mut protection, 10_000, 65, 0), Reported { lost: 18, ..first });
        assert_eq!(told(&mut protection, 11_000, 65, 0), first, "5 ms are the wait for feedback");
        assert_eq!(told(&mut protection, 12_000, 70, 0).rtt, TimeDelta::from_millis(70));
    }

    // [LIBWEBRTC §RtpTransportControllerSend]
    #[test]
    fn retransmissions_may_take_the_whole_target_and_no_more() {
        let mut protection = Protection::default();
        let limit = Bitrate::from_kbps(800);
        // Twice as much is asked for: 200 kB in a second, of which 100 are the target.
        let asked = (0..200).map(|index| at(5 * index));
        let granted = asked.filter(|&now| protection.grant_rtx(now, bytes(1_000), limit)).count();
        assert!((95..=100).contains(&granted), "{granted}");
    }
}
