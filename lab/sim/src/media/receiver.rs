//! The video part of a receiver: combines packets into frames, requests repair, and plays frames.

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_wire::key_frame::PictureLoss;
use weir_wire::nack::Nack;
use weir_wire::rtp::View;

use super::assembler::Assembler;
use super::fec::{FecDecoder, PARITY_TIME, Parity};
use super::gaps::{Arrival, Gaps};
use super::jitter_buffer::JitterBuffer;
use super::packets::{Arrived, Reader, Ssrcs};
use super::pictures::{Pictures, Vmaf};
use super::playout::{Playout, Rendered};
use super::{Kind, MediaPacket, Receipt, Repair};
use crate::trace::{Seen, Video};

/// Minimum time between requests for a key frame (libwebrtc).
const KEY_FRAME_TIMEOUT: TimeDelta = TimeDelta::from_millis(200);

/// A browser asks for a key frame when it had nothing to decode for so long, whatever may still be
/// repaired, if the stream goes on: if its last packet is not older than the second time
/// [LIBWEBRTC §VideoReceiveStream2].
const LONGEST_WAIT: TimeDelta = TimeDelta::from_secs(3);
const INACTIVE: TimeDelta = TimeDelta::from_secs(5);

/// What decides when frames are shown.
#[derive(Clone, Debug)]
enum Screen {
    /// A percentile of their delays.
    Steady(Playout),
    /// The rules of a browser.
    Browser(Box<JitterBuffer>),
}

/// Combines packets into frames, requests missing packets, and shows the frames.
#[derive(Clone, Debug)]
pub(crate) struct VideoReceiver {
    ssrcs: Ssrcs,
    reader: Reader,
    gaps: Gaps,
    fec: Option<FecDecoder>,
    assembler: Assembler,
    screen: Screen,
    pictures: Pictures,
    next_key_frame_request: Timestamp,
    last_arrival: Timestamp,
    /// When a frame could be decoded last.
    last_frame: Option<Timestamp>,
    /// Results since they were last taken, and the sum of the frames' delays.
    noted: Video,
    delays: TimeDelta,
}

impl VideoReceiver {
    pub(crate) fn new(repair: Repair, ssrcs: Ssrcs) -> Self {
        let patience = if repair.fec { PARITY_TIME } else { TimeDelta::ZERO };
        Self {
            ssrcs,
            reader: Reader::new(ssrcs),
            gaps: Gaps::new(repair.nack, patience),
            fec: repair.fec.then(FecDecoder::default),
            assembler: Assembler::default(),
            screen: Screen::Steady(Playout::default()),
            pictures: Pictures::default(),
            next_key_frame_request: Timestamp::ZERO,
            last_arrival: Timestamp::ZERO,
            last_frame: None,
            noted: Video::default(),
            delays: TimeDelta::ZERO,
        }
    }

    /// Shows the frames as a browser does, of a stream that starts at `start`, and notes what is
    /// seen.
    pub(crate) fn play_as_browser(&mut self, start: Timestamp) {
        self.screen = Screen::Browser(Box::new(JitterBuffer::new(start)));
    }

    /// Sets the round-trip time.
    pub(crate) fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.gaps.on_round_trip_time(rtt);
        if let Screen::Browser(buffer) = &mut self.screen {
            buffer.on_round_trip_time(now, rtt);
        }
    }

    /// How the picture looks that was captured at this time.
    pub(crate) fn on_judged(&mut self, captured: Timestamp, vmaf: Vmaf) {
        if matches!(self.screen, Screen::Browser(_)) {
            self.pictures.push(captured, vmaf);
        }
    }

    /// A packet of the flow arrived.
    pub(crate) fn on_packet(&mut self, now: Timestamp, view: &View<'_>, size: DataSize) {
        self.last_arrival = now;
        match self.reader.read(view, size) {
            Arrived::Media(Kind::Rtx, number, packet) => {
                self.noted.rtx += size;
                self.on_media(now, number, packet, Arrival::Retransmitted);
            }
            Arrived::Media(_, number, packet) => {
                self.noted.media += size;
                self.on_media(now, number, packet, Arrival::Original);
            }
            Arrived::Parity(numbers, parity) => {
                self.noted.fec += size;
                if let Some(fec) = &mut self.fec {
                    fec.on_parity(numbers, parity);
                }
            }
            Arrived::Nothing => {}
        }
        while let Some((number, packet)) = self.fec.as_mut().and_then(FecDecoder::recover) {
            self.on_media(now, number, packet, Arrival::Recovered);
        }
        while let Some(frame) = self.assembler.next_frame() {
            self.last_frame = Some(now);
            self.noted.unrepaired_packets += frame.skipped_packets;
            let is_next = frame.skipped_packets == 0;
            match &mut self.screen {
                Screen::Steady(playout) => playout.on_frame(now, frame.captured, is_next),
                Screen::Browser(buffer) => buffer.on_frame(now, frame),
            }
        }
        self.gaps.forget_before(self.assembler.first());
    }

    fn on_media(&mut self, now: Timestamp, number: i64, packet: Parity, arrival: Arrival) {
        self.gaps.on_packet(now, number, arrival);
        if let Some(fec) = &mut self.fec {
            fec.on_packet(number, packet);
        }
        let receipt = Receipt {
            at: now,
            size: DataSize::from_bytes(packet.length.into()),
            // PLAYOUT-D5: an original that comes after a request does not count.
            repeated: arrival == Arrival::Retransmitted,
        };
        let media = MediaPacket { receipt, ..self.reader.media(number, &packet) };
        self.noted.media_packets += u64::from(self.assembler.insert(media));
    }

    /// When [`VideoReceiver::on_deadline`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let needed = self.needs_key_frame().then_some(self.next_key_frame_request);
        let key_frame = needed.or_else(|| self.end_of_wait());
        let screen = match &self.screen {
            Screen::Steady(playout) => playout.next_deadline(),
            Screen::Browser(buffer) => buffer.next_deadline(),
        };
        let deadlines = [self.gaps.next_deadline(), screen, key_frame];
        deadlines.into_iter().flatten().min()
    }

    fn needs_key_frame(&self) -> bool {
        self.assembler.needs_key_frame(self.gaps.given_up())
    }

    /// When a browser asks for a key frame next, since it does not wait any longer for the frame
    /// that comes next.
    fn end_of_wait(&self) -> Option<Timestamp> {
        let end = (self.last_frame? + LONGEST_WAIT).max(self.next_key_frame_request);
        let goes_on = end - self.last_arrival <= INACTIVE;
        (matches!(self.screen, Screen::Browser(_)) && goes_on).then_some(end)
    }

    fn wants_key_frame(&self, now: Timestamp) -> bool {
        let needed = self.needs_key_frame() && self.next_key_frame_request <= now;
        needed || self.end_of_wait().is_some_and(|end| end <= now)
    }

    /// Shows the frame that is due and sends the requests that are due.
    pub(crate) fn on_deadline(&mut self, now: Timestamp, mut send: impl FnMut(&[u8])) {
        let rendered = match &mut self.screen {
            Screen::Steady(playout) => playout.render(now),
            Screen::Browser(buffer) => buffer.render(now),
        };
        if let Some(Rendered { delay, freeze, captured }) = rendered {
            self.noted.frames += 1;
            self.delays += delay;
            self.note_freeze(freeze);
            self.pictures.on_shown(captured);
        }
        let Ssrcs { media, .. } = self.ssrcs;
        let missing: Vec<u16> =
            self.gaps.requests(now).into_iter().map(|number| number as u16).collect();
        if let Some(nack) = Nack::new(media, media, &missing) {
            let mut bytes = vec![0; nack.size()];
            nack.emit(&mut bytes);
            send(&bytes);
        }
        if self.wants_key_frame(now) {
            let again = self.gaps.response_timeout().max(KEY_FRAME_TIMEOUT);
            self.next_key_frame_request = now + again;
            let mut bytes = [0; PictureLoss::SIZE];
            PictureLoss { sender_ssrc: media, media_ssrc: media }.emit(&mut bytes);
            send(&bytes);
        }
    }

    fn note_freeze(&mut self, freeze: Option<TimeDelta>) {
        self.noted.freezes += u64::from(freeze.is_some());
        self.noted.frozen += freeze.unwrap_or(TimeDelta::ZERO);
    }

    /// The run ends, and counts a freeze that has not ended. The receiver cannot tell it from a
    /// pause, so the sending end says when it had its last frame.
    pub(crate) fn finish(&mut self, last_frame: Timestamp) {
        let freeze = match &mut self.screen {
            Screen::Steady(playout) => playout.finish(last_frame),
            Screen::Browser(buffer) => buffer.finish(last_frame),
        };
        self.note_freeze(freeze);
        self.noted.unrepaired_packets += self.assembler.finish(self.gaps.given_up());
    }

    /// Returns the results since the last call.
    pub(crate) fn take_noted(&mut self) -> Video {
        let delays = std::mem::take(&mut self.delays);
        let mut noted = std::mem::take(&mut self.noted);
        noted.frame_delay = (noted.frames > 0).then(|| delays / noted.frames as i64);
        noted
    }

    /// Returns what was seen since the last call; `None` unless frames are shown as in a browser.
    pub(crate) fn take_seen(&mut self) -> Option<Seen> {
        let Screen::Browser(buffer) = &mut self.screen else { return None };
        Some(Seen { vmaf: self.pictures.take_mean(), jitter_buffer: buffer.take_buffered() })
    }
}
