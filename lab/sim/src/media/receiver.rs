//! The video part of a receiver: combines packets into frames, requests repair, and plays frames.

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_wire::key_frame::PictureLoss;
use weir_wire::nack::Nack;
use weir_wire::rtp::View;

use super::assembler::Assembler;
use super::fec::{FecDecoder, PARITY_TIME, Parity};
use super::gaps::{Arrival, Gaps};
use super::packets::{Arrived, Reader, Ssrcs};
use super::playout::Playout;
use super::{Kind, Repair};
use crate::trace::Video;

/// Minimum time between requests for a key frame (libwebrtc).
const KEY_FRAME_TIMEOUT: TimeDelta = TimeDelta::from_millis(200);

/// Combines packets into frames, requests missing packets, and shows the frames.
#[derive(Clone, Debug)]
pub(crate) struct VideoReceiver {
    ssrcs: Ssrcs,
    reader: Reader,
    gaps: Gaps,
    fec: Option<FecDecoder>,
    assembler: Assembler,
    playout: Playout,
    next_key_frame_request: Timestamp,
    last_arrival: Timestamp,
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
            playout: Playout::default(),
            next_key_frame_request: Timestamp::ZERO,
            last_arrival: Timestamp::ZERO,
            noted: Video::default(),
            delays: TimeDelta::ZERO,
        }
    }

    /// Sets the round-trip time.
    pub(crate) fn on_round_trip_time(&mut self, rtt: TimeDelta) {
        self.gaps.on_round_trip_time(rtt);
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
            self.noted.unrepaired_packets += frame.skipped_packets;
            self.playout.on_frame(now, frame.captured, frame.skipped_packets == 0);
        }
        self.gaps.forget_before(self.assembler.first());
    }

    fn on_media(&mut self, now: Timestamp, number: i64, packet: Parity, arrival: Arrival) {
        self.gaps.on_packet(now, number, arrival);
        if let Some(fec) = &mut self.fec {
            fec.on_packet(number, packet);
        }
        let media = self.reader.media(number, &packet);
        self.noted.media_packets += u64::from(self.assembler.insert(media));
    }

    /// When [`VideoReceiver::on_deadline`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        let key_frame = self.needs_key_frame().then_some(self.next_key_frame_request);
        let deadlines = [self.gaps.next_deadline(), self.playout.next_deadline(), key_frame];
        deadlines.into_iter().flatten().min()
    }

    fn needs_key_frame(&self) -> bool {
        self.assembler.needs_key_frame(self.gaps.given_up())
    }

    /// Shows the frame that is due and sends the requests that are due.
    pub(crate) fn on_deadline(&mut self, now: Timestamp, mut send: impl FnMut(&[u8])) {
        if let Some(rendered) = self.playout.render(now) {
            self.noted.frames += 1;
            self.delays += rendered.delay;
            self.note_freeze(rendered.freeze);
        }
        let Ssrcs { media, .. } = self.ssrcs;
        let missing: Vec<u16> =
            self.gaps.requests(now).into_iter().map(|number| number as u16).collect();
        if let Some(nack) = Nack::new(media, media, &missing) {
            let mut bytes = vec![0; nack.size()];
            nack.emit(&mut bytes);
            send(&bytes);
        }
        if self.needs_key_frame() && self.next_key_frame_request <= now {
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

    /// Returns the results since the last call. If `last` is true, also counts a freeze that has
    /// not ended: it lasts until the last packet, because without packets a freeze cannot be
    /// distinguished from a pause.
    pub(crate) fn take_noted(&mut self, last: bool) -> Video {
        if last {
            let freeze = self.playout.finish(self.last_arrival);
            self.note_freeze(freeze);
            self.noted.unrepaired_packets += self.assembler.finish(self.gaps.given_up());
        }
        let delays = std::mem::take(&mut self.delays);
        let mut noted = std::mem::take(&mut self.noted);
        noted.frame_delay = (noted.frames > 0).then(|| delays / noted.frames as i64);
        noted
    }
}
