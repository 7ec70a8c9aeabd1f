//! Division of the target bitrate between media and repair, as in a browser: the encoder gets the
//! target minus the share of repair.
//!
//! The share of repair is the fraction of the recently sent data that was retransmissions and
//! parity. It is computed again only when the target or a receiver report has changed
//! [LIBWEBRTC §FecControllerDefault].

use std::collections::VecDeque;

use weir::controller::Target;
use weir::feedback::FeedbackReport;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;

use super::Kind;
use super::receiver_reports::{ReceiverReports, Reported};
use super::ulpfec::{Share, ShareRule};
use crate::source::media_rate;

/// Maximum share of repair [LIBWEBRTC §FecControllerDefault].
const MAX_REPAIR_SHARE: f64 = 0.5;
/// Window for the sent rates [LIBWEBRTC §RtpSenderEgress], and window for the rate of granted
/// retransmissions, which may take the whole target [LIBWEBRTC §RtpTransportControllerSend].
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
const RTX_WINDOW: TimeDelta = TimeDelta::from_millis(500);
/// A rate requires a longer time than this [LIBWEBRTC §BitrateTracker].
const LEAST_TIME: TimeDelta = TimeDelta::from_millis(1);
/// Divides the target bitrate.
#[derive(Clone, Debug)]
pub(super) struct Protection {
    media: SentRate,
    rtx: SentRate,
    fec: SentRate,
    granted: SentRate,
    /// Times of the frames of the last second.
    frames: VecDeque<Timestamp>,
    reports: ReceiverReports,
    /// Inputs of the last division: the target, the target after push-back, and the receiver
    /// report.
    divided: Option<(Bitrate, Bitrate, Reported)>,
    media_share: f64,
    rule: ShareRule,
    /// Current share of parity.
    share: Share,
}

impl Protection {
    /// `chance` varies the times of the receiver reports.
    pub(super) fn new(chance: Stream) -> Self {
        Self {
            media: SentRate::over(WINDOW),
            rtx: SentRate::over(WINDOW),
            fec: SentRate::over(WINDOW),
            granted: SentRate::over(RTX_WINDOW),
            frames: VecDeque::new(),
            reports: ReceiverReports::new(chance),
            divided: None,
            media_share: 1.0,
            rule: ShareRule::default(),
            share: Share::default(),
        }
    }

    /// A packet other than padding left.
    pub(super) fn on_packet_sent(&mut self, now: Timestamp, kind: Kind, size: DataSize) {
        match kind {
            Kind::Media => self.media.add(now, size),
            Kind::Rtx => self.rtx.add(now, size),
            Kind::Fec => self.fec.add(now, size),
        }
    }

    /// A frame came from the encoder.
    pub(super) fn on_frame(&mut self, now: Timestamp) {
        self.frames.push_back(now);
    }

    /// A feedback report arrived. Returns the round-trip time of the receiver report that came with
    /// it, if any.
    pub(super) fn on_feedback(
        &mut self,
        now: Timestamp,
        report: &FeedbackReport,
    ) -> Option<TimeDelta> {
        let target = self.divided.map_or(Bitrate::ZERO, |(target, ..)| target);
        self.reports.on_feedback(now, target, report).map(|reported| reported.rtt)
    }

    /// Minimum time between retransmissions of the same packet. `None` before the first report.
    pub(super) fn rtt(&self) -> Option<TimeDelta> {
        self.reports.history_rtt()
    }

    /// Round-trip time that the receiver uses.
    pub(super) fn receiver_rtt(&self) -> Option<TimeDelta> {
        self.reports.receiver_rtt()
    }

    /// Current share of parity.
    pub(super) fn parity_share(&self) -> Share {
        self.share
    }

    /// Rate that the encoder may produce.
    pub(super) fn media_rate(&mut self, now: Timestamp, target: &Target) -> Bitrate {
        let reported = self.reports.last();
        let known = (target.bitrate, target.source_bitrate, reported);
        if self.divided.replace(known) != Some(known) {
            let (fps, payload) = (self.frame_rate(now), media_rate(target.bitrate));
            self.share = self.rule.share(now, reported, fps, payload.as_kbps_f64());
            let repair = self.rtx.rate(now) + self.fec.rate(now);
            let all = repair + self.media.rate(now);
            let share = if all > Bitrate::ZERO { repair / all } else { 0.0 };
            self.media_share = 1.0 - share.min(MAX_REPAIR_SHARE);
        }
        target.bitrate * self.media_share
    }

    fn frame_rate(&mut self, now: Timestamp) -> f64 {
        while self.frames.pop_front_if(|time| *time + WINDOW < now).is_some() {}
        let time = self.frames.front().map_or(WINDOW, |oldest| now - *oldest);
        (self.frames.len() as f64 / time.as_secs_f64()).round()
    }

    /// Whether a retransmission of this size may be sent. If so, it counts as sent.
    pub(super) fn grant_rtx(&mut self, now: Timestamp, size: DataSize, target: Bitrate) -> bool {
        let before = self.granted.rate(now);
        // While there is no rate of granted retransmissions, any target allows another.
        let is_granted = before == Bitrate::ZERO || before + size / RTX_WINDOW <= target;
        if is_granted {
            self.granted.add(now, size);
        }
        is_granted
    }
}

/// Rate of the data sent in a window. If the window was empty before, the rate is over the time
/// since its first packet [LIBWEBRTC §BitrateTracker].
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

#[cfg(test)]
mod tests {
    use weir::feedback::PacketReport;
    use weir_net::Seed;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn protection() -> Protection {
        Protection::new(Seed::new(1).stream("reports"))
    }

    fn bytes(bytes: u64) -> DataSize {
        DataSize::from_bytes(bytes)
    }

    fn target(kbps: u64) -> Target {
        let rate = Bitrate::from_kbps(kbps);
        Target::new(rate, rate)
    }

    /// Sends a packet of 1000 B every 10 ms until a time. Of each ten, `rtx` are retransmissions
    /// and `fec` are parity.
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

    /// Feedback on 64 packets that left `response_ms` earlier, of which `lost` did not arrive.
    fn feedback(now_ms: i64, response_ms: i64, lost: i64) -> FeedbackReport {
        let packets = (0..64).map(|number| {
            PacketReport::new(number, bytes(1_000), at(now_ms - response_ms))
                .with_arrival_time((number >= lost).then(|| at(now_ms)))
        });
        FeedbackReport::new(packets.collect())
    }

    fn kbps(protection: &mut Protection, now_ms: i64, target_kbps: u64) -> f64 {
        protection.media_rate(at(now_ms), &target(target_kbps)).as_kbps_f64()
    }

    // [LIBWEBRTC §FecControllerDefault]
    #[test]
    fn the_media_has_what_the_last_seconds_repair_leaves_of_the_target() {
        let mut protection = protection();
        assert_eq!(kbps(&mut protection, 0, 800), 800.0);
        send(&mut protection, 2_000, 2, 1);
        assert_eq!(kbps(&mut protection, 1_990, 1_000), 700.0);
        send(&mut protection, 4_000, 8, 0);
        assert_eq!(kbps(&mut protection, 3_990, 900), 450.0, "half at least");
    }

    // [LIBWEBRTC §BitrateTracker]
    #[test]
    fn what_has_just_begun_counts_by_the_time_since_it_began() {
        let mut protection = protection();
        send(&mut protection, 1_000, 0, 0);
        for ms in [1_000, 1_049] {
            protection.on_packet_sent(at(ms), Kind::Rtx, bytes(500));
        }
        // 1000 B in 50 ms amount to 160 kbit/s. The last second contains 95 media packets.
        let media = 95.0 * 8.0;
        let expected = 1_000.0 * media / (media + 160.0);
        assert!((kbps(&mut protection, 1_049, 1_000) - expected).abs() < 0.01);
    }

    // [LIBWEBRTC §BitrateTracker]
    #[test]
    fn one_packet_is_no_rate_before_the_window_is_full() {
        let mut rate = SentRate::over(WINDOW);
        rate.add(at(0), bytes(1_000));
        assert_eq!(rate.rate(at(998)), Bitrate::ZERO);
        assert_eq!(rate.rate(at(999)), Bitrate::from_kbps(8));
        assert_eq!(rate.rate(at(1_000)), Bitrate::ZERO, "it has left the window");
        let mut rate = SentRate::over(WINDOW);
        rate.add(at(0), bytes(1_000));
        rate.add(at(0), bytes(1_000));
        assert_eq!(rate.rate(at(0)), Bitrate::ZERO, "in no time");
        assert_eq!(rate.rate(at(9)), Bitrate::from_kbps(1_600));
    }

    #[test]
    fn the_frame_rate_is_that_of_the_last_second() {
        let mut protection = protection();
        for frame in 0..60 {
            protection.on_frame(at(33 * frame));
        }
        assert_eq!(protection.frame_rate(at(1_980)), 30.0);
        for frame in 1..=20 {
            protection.on_frame(at(2_000 + 50 * frame));
        }
        for frame in 1..=10 {
            protection.on_frame(at(3_000 + 100 * frame));
        }
        // 3000, 3100, .. 4000 ms.
        assert_eq!(protection.frame_rate(at(4_000)), 11.0);
    }

    // [LIBWEBRTC §FecControllerDefault]
    #[test]
    fn the_division_stands_until_target_or_receiver_report_is_new() {
        let mut protection = protection();
        send(&mut protection, 2_000, 3, 0);
        assert_eq!(kbps(&mut protection, 1_990, 1_000), 700.0);
        assert_eq!(kbps(&mut protection, 9_000, 1_000), 700.0, "nothing is sent again any more");
        protection.on_feedback(at(9_000), &feedback(9_000, 60, 0));
        assert_eq!(kbps(&mut protection, 9_001, 1_000), 1_000.0);
    }

    // [LIBWEBRTC §FecControllerDefault]
    #[test]
    fn parity_follows_the_loss_of_the_reports_and_the_size_of_the_frames() {
        let mut protection = protection();
        for frame in 0..60 {
            protection.on_frame(at(33 * frame));
        }
        protection.on_feedback(at(1_990), &feedback(1_990, 60, 0));
        kbps(&mut protection, 2_000, 1_000);
        assert_eq!(protection.parity_share().parity, 0);
        for ms in [3_500, 3_600] {
            protection.on_feedback(at(ms), &feedback(ms, 60, 6));
        }
        for frame in 61..110 {
            protection.on_frame(at(33 * frame));
        }
        kbps(&mut protection, 3_630, 970);
        // Loss of 24 in 256 with frames of 31 kbit: the minimum share.
        assert_eq!(protection.parity_share(), Share { parity: 64, max_frames: 4 });
    }

    // [LIBWEBRTC §RtpTransportControllerSend]
    #[test]
    fn retransmissions_may_take_the_whole_target_and_no_more() {
        let mut protection = protection();
        let limit = Bitrate::from_kbps(800);
        // Requests for twice the target: 200 kB in a second, with a target of 100 kB.
        let asked = (0..200).map(|index| at(5 * index));
        let granted = asked.filter(|&now| protection.grant_rtx(now, bytes(1_000), limit)).count();
        assert!((95..=100).contains(&granted), "{granted}");
        let grants = |size| {
            let mut protection = self::protection();
            assert!(protection.grant_rtx(at(0), bytes(1_000), limit));
            assert!(protection.grant_rtx(at(1), bytes(1_000), limit), "no rate yet");
            protection.granted.add(at(250), bytes(45_000));
            // 45,000 B in 500 ms amount to 720 kbit/s.
            protection.grant_rtx(at(600), bytes(size), limit)
        };
        assert!(grants(5_000));
        assert!(!grants(5_001));
    }
}
