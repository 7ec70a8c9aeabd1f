//! What a subscriber asks for: packets again, and key frames.

use weir::controller::Controller;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_rtcp::RtcpEvent;

use super::{MAX_REPAIR_SHARE, Subscriber};
use crate::cache::{Resend, write_rtx};
use crate::decision::{Change, Reason};
use crate::track::TrackId;

/// Missing packets that wait for the host.
const MAX_MISSING: usize = 256;
/// A subscriber's requests for key frames count this often at most.
const KEY_FRAME_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// Time over which the rate of repair is measured.
const REPAIR_WINDOW: TimeDelta = TimeDelta::from_secs(1);

/// What retransmissions may take at once is what they may take in this time.
const REPAIR_BURST: TimeDelta = TimeDelta::from_millis(200);
/// A packet is not sent again so soon, however short the round trip is.
const LEAST_SOON: TimeDelta = TimeDelta::from_millis(40);

/// The rate of retransmissions: of the last whole second, or of the open one if it is larger.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RepairRate {
    start: Option<Timestamp>,
    open: DataSize,
    last: DataSize,
    /// Bytes that may be sent again now, and since when.
    allowance: f64,
    refilled: Option<Timestamp>,
}

impl RepairRate {
    fn add(&mut self, now: Timestamp, size: DataSize) {
        self.advance(now);
        self.open += size;
        self.allowance -= size.as_bytes() as f64;
    }

    /// Whether one more packet may be sent again, if all together may take this rate.
    fn may_add(&mut self, now: Timestamp, most: Bitrate) -> bool {
        let since = self.refilled.replace(now).map_or(REPAIR_BURST, |last| now - last);
        let more = most * since.min(REPAIR_BURST).max(TimeDelta::ZERO);
        let burst = (most * REPAIR_BURST).as_bytes() as f64;
        self.allowance = (self.allowance + more.as_bytes() as f64).min(burst);
        self.allowance > 0.0
    }

    fn advance(&mut self, now: Timestamp) {
        let start = *self.start.get_or_insert(now);
        if now - start >= REPAIR_WINDOW {
            let is_next = now - start < REPAIR_WINDOW * 2;
            self.last = if is_next { self.open } else { DataSize::ZERO };
            self.open = DataSize::ZERO;
            self.start = Some(now);
        }
    }

    pub(super) fn rate(&mut self, now: Timestamp) -> Bitrate {
        self.advance(now);
        self.last.max(self.open) / REPAIR_WINDOW
    }
}

impl<C: Controller> Subscriber<C> {
    /// Handles a request. Returns `false` if it is none for a track of this subscriber.
    pub(super) fn on_request(&mut self, now: Timestamp, event: &RtcpEvent<'_>) -> bool {
        match event {
            RtcpEvent::Retransmit(nack) => {
                let Some(id) = self.track_of(nack.media_ssrc()) else { return false };
                let soon = self.repeat_time();
                for number in nack.sequence_numbers() {
                    self.repeat(now, id, number, soon);
                }
                true
            }
            RtcpEvent::KeyFrame(request) => {
                let mut is_known = false;
                for ssrc in request.media_ssrcs() {
                    is_known |= self.ask_for(now, ssrc);
                }
                is_known
            }
            _ => false,
        }
    }

    fn ask_for(&mut self, now: Timestamp, ssrc: u32) -> bool {
        let Some(id) = self.track_of(ssrc) else { return false };
        let Some(track) = self.tracks.get_mut(&id) else { return false };
        if let Some(stream) = track.watched()
            && track.may_ask(now, KEY_FRAME_INTERVAL)
        {
            let change = Change::RequestKeyFrame { stream };
            self.note(now, id, change, Reason::SubscriberAsked);
        }
        true
    }

    fn track_of(&self, ssrc: u32) -> Option<TrackId> {
        for (&id, track) in &self.tracks {
            if track.stream.ssrc == ssrc {
                return Some(id);
            }
        }
        None
    }

    /// How long a packet that is sent again now takes until the receiver can have it.
    fn repeat_time(&self) -> TimeDelta {
        let waits = self.sender.media().queued() / self.sender.target().pacing_rate;
        let rtt = self.controller().metrics().rtt.unwrap_or(TimeDelta::ZERO);
        waits + rtt.max(LEAST_SOON)
    }

    /// Sends a packet again, or asks the host for it. What would take too much from the pictures
    /// must be asked for again.
    fn repeat(&mut self, now: Timestamp, id: TrackId, number: u16, soon: TimeDelta) {
        let Some(track) = self.tracks.get_mut(&id) else { return };
        if !self.repair.may_add(now, self.target * MAX_REPAIR_SHARE) {
            return;
        }
        let original = match track.cache.request(now, number, soon) {
            Resend::TooSoon => return,
            Resend::Packet(original) => original,
            Resend::Unknown => {
                if let Some((stream, number)) = track.missing(number)
                    && self.missing.len() < MAX_MISSING
                {
                    self.missing.push_back((id, stream, number));
                }
                return;
            }
        };
        let mut buffer = self.sender.buffer();
        match track.stream.rtx {
            None => buffer.extend_from_slice(original),
            Some((ssrc, payload_type)) => {
                if !write_rtx(original, ssrc, payload_type, track.rtx_number, &mut buffer) {
                    return;
                }
                track.rtx_number = track.rtx_number.wrapping_add(1);
            }
        }
        let size = DataSize::from_bytes(buffer.len() as u64);
        self.repair.add(now, size);
        track.note_repeat(size);
        // It has the extensions of the original, so there is room for everything.
        let _ = self.sender.enqueue_urgent(now, [buffer]);
    }
}
