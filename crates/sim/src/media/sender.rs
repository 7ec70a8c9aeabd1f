//! The video side of a sender: packets out of frames, and their repair.

use weir::controller::Target;
use weir::feedback::FeedbackReport;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_wire::vp8::Descriptor;
use weir_wire::{header, key_frame, nack};

use super::fec::FecEncoder;
use super::packets::{self, Packet, Ssrcs, Writer};
use super::protection::Protection;
use super::repair_rates::RepairRates;
use super::rtx_history::RtxHistory;
use super::{Kind, Repair};
use crate::endpoint::Departure;
use crate::flow::Body;

/// Key frames that are asked for come at most this often (libwebrtc).
const MIN_KEY_FRAME_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
/// Round-trip time before the first feedback (libwebrtc's default).
const INITIAL_RTT: TimeDelta = TimeDelta::from_millis(100);
/// Feedback reports over which the shortest response time stands for the round-trip time: what is
/// longer is mostly the wait for feedback.
const RTT_WINDOW: usize = 16;

/// Cuts frames into packets, protects them, and sends them again.
#[derive(Clone, Debug)]
pub(crate) struct VideoSender {
    writer: Writer,
    key_frames: KeyFrames,
    fec: Option<FecEncoder>,
    history: Option<RtxHistory<Packet>>,
    rates: RepairRates,
    /// Of a browser, which divides the target by a rule of its own.
    protection: Option<Protection>,
    response_times: Vec<TimeDelta>,
}

impl VideoSender {
    pub(crate) fn new(repair: Repair, ssrcs: Ssrcs, is_browser: bool) -> Self {
        Self {
            writer: Writer::new(ssrcs),
            key_frames: KeyFrames::new(repair.key_frame_interval),
            fec: repair.fec.then(FecEncoder::default),
            history: repair.nack.then(|| RtxHistory::new(0)),
            rates: RepairRates::default(),
            protection: is_browser.then(Protection::default),
            response_times: Vec::new(),
        }
    }

    /// What the encoder may produce of the controller's target.
    pub(crate) fn media_rate(&mut self, now: Timestamp, target: &Target) -> Bitrate {
        match &mut self.protection {
            Some(protection) => protection.media_rate(now, target),
            None => self.rates.media_rate(now, target.bitrate),
        }
    }

    /// Whether the frame that is made now is to be a key frame.
    pub(crate) fn begin_frame(&mut self, now: Timestamp) -> bool {
        self.key_frames.begin_frame(now)
    }

    /// A frame in packets of these sizes, with the parity that falls due.
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

    /// A packet leaves.
    pub(crate) fn send(
        &mut self,
        now: Timestamp,
        mut packet: Packet,
        departure: Departure,
    ) -> Body {
        departure.write(&mut packet.header);
        if let Some(protection) = self.protection.as_mut().filter(|_| !packet.is_padding()) {
            protection.on_packet_sent(now, packet.kind, packet.size);
        }
        let body = Body::RtpPayload(packet.emit());
        let rtt = self.rtt();
        if let (Kind::Media, Some(history)) = (packet.kind, &mut self.history) {
            history.on_packet_sent(now, rtt, packet);
        }
        body
    }

    /// A packet of padding.
    pub(crate) fn padding(&mut self, now: Timestamp, size: DataSize) -> Packet {
        self.writer.padding(now, size)
    }

    /// A feedback report arrived.
    pub(crate) fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if let Some(fec) = &mut self.fec {
            fec.on_feedback(report);
        }
        if let Some(protection) = &mut self.protection {
            protection.on_feedback(now, report);
        }
        if let Some(sample) = report.rtt(now) {
            if self.response_times.len() == RTT_WINDOW {
                self.response_times.remove(0);
            }
            self.response_times.push(sample);
        }
    }

    fn rtt(&self) -> TimeDelta {
        self.response_times.iter().copied().min().unwrap_or(INITIAL_RTT)
    }

    /// A packet of the receiver arrived: the packets to send again now; `None` if it asks for nothing.
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
        let rtt = self.rtt();
        // The newest number is the anchor: all others are older.
        let newest = self.writer.next_number - 1;
        let number = newest - i64::from((newest as u16).wrapping_sub(number));
        let packet = self.writer.rtx(self.history.as_mut()?.on_request(now, rtt, number)?);
        let is_granted = match &mut self.protection {
            Some(protection) => protection.grant_rtx(now, packet.size, target),
            None => self.rates.allows_rtx(now, packet.size, target),
        };
        if !is_granted {
            return None;
        }
        self.rates.on_packet(now, Kind::Rtx, packet.size);
        Some(packet)
    }
}

/// When key frames are made.
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
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_first_frame_is_a_key_frame_and_others_are_when_asked_for_but_not_too_often() {
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
