//! The video part of a sender: splits frames into packets and repairs losses.

use weir::controller::Target;
use weir::feedback::FeedbackReport;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;
use weir_wire::vp8::Descriptor;
use weir_wire::{header, key_frame, nack};

use super::fec::FecEncoder;
use super::packets::{self, Packet, Ssrcs, Writer};
use super::protection::Protection;
use super::repair_rates::RepairRates;
use super::rtx_history::RtxHistory;
use super::ulpfec::UlpfecEncoder;
use super::{Kind, Repair};
use crate::flow::Body;
use crate::rtp_format::Departure;

/// Minimum time from a key frame to the next requested one (libwebrtc).
const MIN_KEY_FRAME_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
/// Round-trip time before the first feedback (libwebrtc's default).
const INITIAL_RTT: TimeDelta = TimeDelta::from_millis(100);
/// Number of feedback reports whose minimum response time is used as the round-trip time. Longer
/// response times are mostly due to the wait for feedback.
const RTT_WINDOW: usize = 16;

/// Splits frames into packets, adds parity, and retransmits.
#[derive(Clone, Debug)]
pub(crate) struct VideoSender {
    writer: Writer,
    key_frames: KeyFrames,
    fec: Option<FecEncoder>,
    history: Option<RtxHistory<Packet>>,
    rates: RepairRates,
    /// Only for a browser, which has its own rules for dividing the target and for parity.
    protection: Option<Protection>,
    ulpfec: Option<UlpfecEncoder>,
    response_times: Vec<TimeDelta>,
}

impl VideoSender {
    /// `browser` is the random stream for the times of receiver reports; `None` if the sender is
    /// not a browser.
    pub(crate) fn new(repair: Repair, ssrcs: Ssrcs, browser: Option<Stream>) -> Self {
        let is_browser = browser.is_some();
        Self {
            writer: Writer::new(ssrcs),
            key_frames: KeyFrames::new(repair.key_frame_interval),
            fec: (repair.fec && !is_browser).then(FecEncoder::default),
            history: if repair.nack { Some(RtxHistory::new(0)) } else { None },
            rates: RepairRates::default(),
            protection: browser.map(Protection::new),
            ulpfec: (repair.fec && is_browser).then(UlpfecEncoder::default),
            response_times: Vec::new(),
        }
    }

    /// Rate that the encoder may produce, given the controller's target.
    pub(crate) fn media_rate(&mut self, now: Timestamp, target: &Target) -> Bitrate {
        match &mut self.protection {
            Some(protection) => protection.media_rate(now, target),
            None => self.rates.media_rate(now, target.bitrate),
        }
    }

    /// Whether the frame that is produced now must be a key frame.
    pub(crate) fn begin_frame(&mut self, now: Timestamp) -> bool {
        self.key_frames.begin_frame(now)
    }

    /// Splits a frame into packets of these sizes, and adds the parity that is due.
    pub(crate) fn packetize(
        &mut self,
        now: Timestamp,
        is_key_frame: bool,
        sizes: impl ExactSizeIterator<Item = DataSize>,
        mut enqueue: impl FnMut(Packet),
    ) {
        let start =
            if is_key_frame { Descriptor::KeyFrameStart } else { Descriptor::InterFrameStart };
        let count = sizes.len();
        if let Some(protection) = &mut self.protection {
            protection.on_frame(now);
        }
        for (index, size) in sizes.enumerate() {
            let last = index + 1 == count;
            let start = if index == 0 { start } else { Descriptor::Continuation };
            let number = self.writer.next_number;
            let packet = self.writer.media(now, start, last, size);
            self.rates.on_packet(now, Kind::Media, size);
            if let Some(fec) = &mut self.fec {
                fec.on_packet(now, number, packet.parity());
            }
            enqueue(packet);
            if let Some(parity) = self.due_parity(now, last) {
                enqueue(parity);
            }
        }
    }

    fn due_parity(&mut self, now: Timestamp, at_frame_end: bool) -> Option<Packet> {
        let fec = self.fec.as_mut()?;
        let group = fec.due(now, at_frame_end)?;
        if !self.rates.allows_fec(now, packets::fec_size(group)) {
            return None;
        }
        let packet = self.writer.fec(now, group);
        fec.on_parity();
        self.rates.on_packet(now, Kind::Fec, packet.size);
        Some(packet)
    }

    /// A packet leaves. A browser's parity follows the last packet that it protects.
    pub(crate) fn send(
        &mut self,
        now: Timestamp,
        mut packet: Packet,
        departure: Departure,
        enqueue: impl FnMut(Packet),
    ) -> Body {
        departure.write(&mut packet.header);
        if let Some(protection) = self.protection.as_mut().filter(|_| !packet.is_padding()) {
            protection.on_packet_sent(now, packet.kind, packet.size);
        }
        let body = Body::RtpPayload(packet.emit());
        if let Some(number) = packet.repeated() {
            let number = self.unwrap(number);
            if let Some(history) = &mut self.history {
                history.on_sent_again(now, number);
            }
        }
        if packet.kind == Kind::Media {
            self.frame_parity(now, &packet).into_iter().for_each(enqueue);
            let rtt = self.rtt();
            if let Some(history) = &mut self.history {
                history.on_packet_sent(now, rtt, packet);
            }
        }
        body
    }

    fn frame_parity(&mut self, now: Timestamp, packet: &Packet) -> Vec<Packet> {
        let number = self.unwrap(packet.header.sequence_number);
        let (Some(ulpfec), Some(protection)) = (&mut self.ulpfec, &self.protection) else {
            return Vec::new();
        };
        ulpfec.set_share(protection.parity_share());
        let groups = ulpfec.on_packet_sent(now, number, packet.parity());
        groups.iter().map(|group| self.writer.fec(now, group)).collect()
    }

    /// Unwraps the sequence number of a media packet, which cannot be newer than the newest one.
    fn unwrap(&self, number: u16) -> i64 {
        let newest = self.writer.next_number - 1;
        newest - i64::from((newest as u16).wrapping_sub(number))
    }

    /// Creates a padding packet.
    pub(crate) fn padding(&mut self, now: Timestamp, size: DataSize) -> Packet {
        self.writer.padding(now, size)
    }

    /// A feedback report arrived. For a browser, returns the round-trip time of the receiver report
    /// that came with it, if any.
    pub(crate) fn on_feedback(
        &mut self,
        now: Timestamp,
        report: &FeedbackReport,
    ) -> Option<TimeDelta> {
        if let Some(fec) = &mut self.fec {
            fec.on_feedback(report);
        }
        if let Some(sample) = report.rtt(now) {
            if self.response_times.len() == RTT_WINDOW {
                self.response_times.remove(0);
            }
            self.response_times.push(sample);
        }
        self.protection.as_mut()?.on_feedback(now, report)
    }

    /// The round-trip time that a browser's receiver uses.
    pub(crate) fn receiver_rtt(&self) -> Option<TimeDelta> {
        self.protection.as_ref()?.receiver_rtt()
    }

    fn rtt(&self) -> TimeDelta {
        let rtt = match &self.protection {
            Some(protection) => protection.rtt(),
            None => self.response_times.iter().copied().min(),
        };
        rtt.unwrap_or(INITIAL_RTT)
    }

    /// An RTCP packet from the receiver arrived. Returns the packets to retransmit now; `None` if
    /// it is not a request.
    pub(crate) fn on_request(
        &mut self,
        now: Timestamp,
        target: Bitrate,
        packet: header::Packet<'_>,
    ) -> Option<Vec<Packet>> {
        if key_frame::PictureLoss::new(packet).is_ok() {
            self.key_frames.request();
            return Some(Vec::new());
        }
        let numbers = nack::View::new(packet).ok()?.sequence_numbers();
        Some(numbers.filter_map(|number| self.retransmit(now, target, number)).collect())
    }

    fn retransmit(&mut self, now: Timestamp, target: Bitrate, number: u16) -> Option<Packet> {
        let (rtt, number) = (self.rtt(), self.unwrap(number));
        let history = self.history.as_mut()?;
        let packet = self.writer.rtx(history.on_request(now, rtt, number)?);
        let is_granted = match &mut self.protection {
            Some(protection) => protection.grant_rtx(now, packet.size, target),
            None => self.rates.allows_rtx(now, packet.size, target),
        };
        if !is_granted {
            return None;
        }
        history.on_queued_again(number);
        self.rates.on_packet(now, Kind::Rtx, packet.size);
        Some(packet)
    }
}

/// Decides which frames are key frames.
#[derive(Clone, Debug)]
struct KeyFrames {
    interval: Option<TimeDelta>,
    last: Option<Timestamp>,
    requested: bool,
}

impl KeyFrames {
    fn new(interval: Option<TimeDelta>) -> Self {
        Self { interval, last: None, requested: false }
    }

    fn request(&mut self) {
        self.requested = true;
    }

    fn begin_frame(&mut self, now: Timestamp) -> bool {
        let due = self.last.is_none_or(|last| {
            self.requested && now - last >= MIN_KEY_FRAME_INTERVAL
                || self.interval.is_some_and(|interval| now - last >= interval)
        });
        if due {
            self.last = Some(now);
            self.requested = false;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use weir::feedback::PacketReport;
    use weir_net::Seed;
    use weir_wire::nack::Nack;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A browser's sender and its send queue.
    struct Browser(VideoSender, VecDeque<Packet>);

    impl Browser {
        fn new() -> Self {
            let repair = Repair { nack: true, fec: true, key_frame_interval: None };
            let chance = Seed::new(1).stream("reports");
            Self(VideoSender::new(repair, Ssrcs::of(1), Some(chance)), VecDeque::new())
        }

        /// Produces a frame of this many packets.
        fn make_frame(&mut self, now: Timestamp, packets: usize) {
            let sizes = vec![DataSize::from_bytes(1_000); packets];
            self.0.packetize(now, false, sizes.into_iter(), |packet| self.1.push_back(packet));
        }

        /// Sends all waiting packets and returns their kinds.
        fn send(&mut self, now: Timestamp) -> Vec<Kind> {
            let mut kinds = Vec::new();
            while let Some(packet) = self.1.pop_front() {
                kinds.push(packet.kind);
                self.0.send(now, packet, Departure::Number(0), |parity| self.1.push_back(parity));
            }
            kinds
        }

        /// Feedback on 64 packets that left `response_ms` earlier, with eight lost.
        fn report(&mut self, now: Timestamp, response_ms: i64) {
            let packets = (0..64).map(|number| {
                PacketReport::new(
                    number,
                    DataSize::from_bytes(1_000),
                    now - TimeDelta::from_millis(response_ms),
                )
                .with_arrival_time((number >= 8).then_some(now))
            });
            let report = FeedbackReport::new(packets.collect());
            self.0.on_feedback(now, &report);
            let rate = Bitrate::from_kbps(1_000);
            self.0.media_rate(now, &Target::new(rate, rate));
        }

        /// Number of retransmissions after a request of the first packet.
        fn ask(&mut self, now: Timestamp) -> usize {
            let nack = Nack::new(1, 1, &[0]).unwrap();
            let mut bytes = vec![0; nack.size()];
            nack.emit(&mut bytes);
            let request = header::Packet::parse(&bytes).unwrap();
            let packets = self.0.on_request(now, Bitrate::from_kbps(1_000), request).unwrap();
            let count = packets.len();
            self.1.extend(packets);
            count
        }
    }

    // [LIBWEBRTC §UlpfecGenerator]
    #[test]
    fn a_browsers_parity_follows_the_frame_that_completes_its_group() {
        let mut browser = Browser::new();
        for frame in 0..30 {
            browser.make_frame(at(1_000 + 33 * frame), 2);
            assert_eq!(browser.send(at(1_000 + 33 * frame)), [Kind::Media; 2]);
        }
        browser.report(at(1_980), 100);
        browser.make_frame(at(1_990), 2);
        assert_eq!(browser.send(at(1_990)), [Kind::Media; 2]);
        browser.make_frame(at(2_023), 2);
        assert_eq!(browser.send(at(2_023)), [Kind::Media, Kind::Media, Kind::Fec]);
    }

    // [LIBWEBRTC §RtpPacketHistory]
    #[test]
    fn what_waits_to_be_sent_again_is_not_queued_twice_and_times_from_leaving() {
        let mut browser = Browser::new();
        browser.make_frame(at(0), 1);
        browser.send(at(0));
        assert_eq!(browser.ask(at(100)), 1);
        assert_eq!(browser.ask(at(300)), 0);
        assert_eq!(browser.send(at(400)), [Kind::Rtx]);
        assert_eq!(browser.ask(at(400) + INITIAL_RTT - TimeDelta::from_millis(1)), 0);
        assert_eq!(browser.ask(at(400) + INITIAL_RTT), 1);
    }

    // [LIBWEBRTC §ModuleRtpRtcpImpl2], [LIBWEBRTC §CallStats]
    #[test]
    fn a_browser_and_its_receiver_go_by_the_round_trip_time_of_the_reports() {
        let mut browser = Browser::new();
        assert_eq!((browser.0.rtt(), browser.0.receiver_rtt()), (INITIAL_RTT, None));
        for tick in 10..100 {
            browser.report(at(100 * tick), 300);
        }
        // Round-trip time of the path plus the time of the ends. The history adds its margin of 5
        // ms.
        let is_measured = |rtt: TimeDelta| (300..=303).contains(&rtt.as_millis());
        let margin = TimeDelta::from_millis(5);
        assert!(is_measured(browser.0.rtt() - margin), "{}", browser.0.rtt());
        assert!(browser.0.receiver_rtt().is_some_and(is_measured));
    }

    // [LIBWEBRTC §RtpSenderEgress]
    #[test]
    fn padding_is_no_repair_that_the_media_give_way_to() {
        let mut browser = Browser::new();
        for frame in 0..100 {
            let now = at(20 * frame);
            browser.make_frame(now, 3);
            let again = browser.0.writer.rtx(&browser.1[0]);
            let padding = browser.0.padding(now, DataSize::from_bytes(1_000));
            browser.1.extend([again, padding]);
            browser.send(now);
        }
        let rate = Bitrate::from_kbps(1_000);
        // 1002 B of 4002 B were retransmissions.
        let media_rate = browser.0.media_rate(at(1_990), &Target::new(rate, rate));
        assert!((media_rate.as_kbps_f64() - 749.6).abs() < 0.1, "{media_rate}");
    }

    #[test]
    fn the_shortest_of_16_response_times_stands_for_the_round_trip_time() {
        let repair = Repair { nack: true, ..Repair::default() };
        let mut sender = Browser(VideoSender::new(repair, Ssrcs::of(1), None), VecDeque::new());
        sender.report(at(1_000), 50);
        let mut rtt = || {
            sender.report(at(2_000), 80);
            sender.0.rtt().as_millis()
        };
        assert!((0..15).all(|_| rtt() == 50));
        assert_eq!(rtt(), 80);
    }

    #[test]
    fn the_first_frame_is_a_key_frame_and_those_asked_for_but_not_too_often() {
        let mut frames = KeyFrames::new(None);
        assert!(frames.begin_frame(at(0)));
        assert!(!frames.begin_frame(at(10_000)));
        frames.request();
        assert!(frames.begin_frame(at(10_033)));
        frames.request();
        assert!(!frames.begin_frame(at(10_066)));
        assert!(!frames.begin_frame(at(10_332)));
        assert!(frames.begin_frame(at(10_333)));
        assert!(!frames.begin_frame(at(20_000)), "the request was answered");
    }

    #[test]
    fn key_frames_come_by_themselves_where_an_interval_is_set() {
        let mut frames = KeyFrames::new(Some(TimeDelta::from_secs(2)));
        let keys = (0..7).filter(|&second| frames.begin_frame(Timestamp::from_secs(second)));
        assert_eq!(keys.collect::<Vec<i64>>(), [0, 2, 4, 6]);
    }
}
