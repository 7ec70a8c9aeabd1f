//! A subscriber: the core over its transport.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use weir::controller::Controller;
use weir::{Algorithm, Bitrate, RateLimits, Timestamp};
use weir_sfu::{
    Decision, OutgoingStream, Subscriber as Core, SubscriberConfig, TrackConfig, TrackId,
};
use weir_wire::rtp::{PayloadType, RtpHeader};

use crate::downlink::{Downlink, PADDING_SSRC, twcc_id};
use crate::feedback::Writer;
use crate::offer::{self, RTX, SLOTS, VP8};
use crate::publisher::Arrival;

const MIN: Bitrate = Bitrate::from_kbps(50);
const START: Bitrate = Bitrate::from_kbps(300);
const MAX: Bitrate = Bitrate::from_kbps(10_000);

/// A slot with a track.
pub struct Place {
    pub slot: usize,
    pub track: TrackId,
    /// The layer that is chosen; `None`: paused.
    pub level: Option<usize>,
    /// Width of the picture in the page.
    pub width: u16,
    /// Pictures decoded so far.
    pub pictures: u64,
}

/// One participant who watches.
pub struct Subscriber {
    pub name: String,
    pub downlink: Downlink,
    core: Core<Box<dyn Controller + Send>>,
    feedback: Writer,
    /// The publisher whose track each slot has.
    slots: [Option<TrackId>; SLOTS as usize],
    /// The size at which each slot is shown, as the page says.
    shown: [(u16, u16); SLOTS as usize],
    /// Width of the picture that the page decodes in each slot, and its pictures so far.
    seen: [(u16, u64); SLOTS as usize],
    /// Bytes sent since the last report.
    bytes: u64,
}

impl Subscriber {
    /// A subscriber with the offer to it.
    pub fn offer(
        now: Instant,
        at: Timestamp,
        local: SocketAddr,
        name: String,
        controller: Algorithm,
    ) -> anyhow::Result<(Self, String)> {
        let (downlink, sdp) = Downlink::offer(now, local)?;
        let limits = RateLimits::new(MIN, START, MAX)?;
        let config = SubscriberConfig::twcc(PADDING_SSRC, twcc_id());
        let core = Core::new(at, controller.build(limits), limits, config);
        let subscriber = Self {
            name,
            downlink,
            core,
            feedback: Writer::new(now),
            slots: [None; SLOTS as usize],
            shown: [(640, 360); SLOTS as usize],
            seen: [(0, 0); SLOTS as usize],
            bytes: 0,
        };
        Ok((subscriber, sdp))
    }

    /// When it wants to be woken up.
    pub fn deadline(&self) -> Option<Timestamp> {
        if self.downlink.peer.is_connected { Some(self.core.next_timeout()) } else { None }
    }

    /// A publisher's track gets the first free slot, unless it has one. Returns `false` if there is
    /// none.
    pub fn watch(&mut self, at: Timestamp, id: TrackId, track: &TrackConfig) -> bool {
        if self.slots.contains(&Some(id)) {
            return true;
        }
        let Some(slot) = self.slots.iter().position(Option::is_none) else { return false };
        self.slots[slot] = Some(id);
        let (ssrc, rtx) = offer::ssrcs(slot as u32);
        let stream = OutgoingStream::new(ssrc, payload_type(VP8))
            .with_is_vp8(true)
            .with_rtx(Some((rtx, payload_type(RTX))));
        let (width, height) = self.shown[slot];
        self.core.add_track(at, id, track.clone().with_shown(width, height), stream);
        true
    }

    pub fn unwatch(&mut self, at: Timestamp, id: TrackId) {
        for slot in &mut self.slots {
            if *slot == Some(id) {
                *slot = None;
                self.core.remove_track(at, id);
            }
        }
    }

    /// The page shows a slot at this size, and has decoded this. Returns the slot's track if the
    /// size is new.
    pub fn show(&mut self, slot: usize, size: (u16, u16), seen: (u16, u64)) -> Option<TrackId> {
        *self.seen.get_mut(slot)? = seen;
        let shown = self.shown.get_mut(slot)?;
        let is_new = *shown != size;
        *shown = size;
        self.slots[slot].filter(|_| is_new)
    }

    /// What is known of a track has changed: its size on the page, or its layers.
    pub fn update(&mut self, at: Timestamp, id: TrackId, track: &TrackConfig) {
        let Some(slot) = self.slots.iter().position(|slot| *slot == Some(id)) else { return };
        let (width, height) = self.shown[slot];
        self.core.set_track(at, id, track.clone().with_shown(width, height));
    }

    pub fn set_bitrates(&mut self, id: TrackId, bitrates: &[Bitrate]) {
        self.core.set_bitrates(id, bitrates);
    }

    /// A packet of a publisher. Its header is made anew, with room for the core's extension.
    pub fn forward(&mut self, at: Timestamp, id: TrackId, arrival: &Arrival) {
        if !self.downlink.peer.is_connected || !self.slots.contains(&Some(id)) {
            return;
        }
        let from = &arrival.packet.header;
        let header = RtpHeader::new(0, payload_type(VP8), from.sequence_number, from.timestamp)
            .with_marker(from.marker)
            .with_transport_sequence_number(Some((twcc_id(), 0)));
        let mut bytes = vec![0; header.size()];
        header.emit(&mut bytes);
        bytes.extend_from_slice(&arrival.packet.payload);
        if let Err(error) = self.core.forward(at, id, &bytes, arrival.frame) {
            eprintln!("a packet is not forwarded: {error}");
        }
    }

    /// Whether [`Subscriber::work`] would do anything now.
    pub fn has_work(&self, at: Timestamp) -> bool {
        self.downlink.has_received() || self.deadline().is_some_and(|deadline| deadline <= at)
    }

    /// Handles feedback and timeouts, and sends what may leave.
    pub fn work(&mut self, now: Instant, at: Timestamp, socket: &UdpSocket) {
        for message in self.downlink.take_received() {
            for bytes in self.feedback.write(message, self.downlink.offset) {
                self.core.on_rtcp(at, &bytes);
            }
        }
        if !self.downlink.peer.is_connected {
            return;
        }
        if self.core.next_timeout() <= at {
            self.core.on_timeout(at);
        }
        while let Some(packet) = self.core.next_packet(at) {
            self.bytes += packet.content.len() as u64;
            let number = packet.sent.transport_sequence_number();
            self.downlink.send(now, socket, &packet.content, number);
            self.core.recycle(packet.content);
        }
        // str0m asks publishers for what is missing by itself.
        while self.core.next_missing().is_some() {}
    }

    pub fn next_decision(&mut self) -> Option<Decision> {
        self.core.next_decision()
    }

    /// What the core may send.
    pub fn target(&self) -> Bitrate {
        self.core.target()
    }

    /// Bytes sent since the last call.
    pub fn take_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.bytes)
    }

    /// The slots that have a track.
    pub fn places(&self) -> Vec<Place> {
        let mut found = Vec::new();
        for (slot, &track) in self.slots.iter().enumerate() {
            let Some(track) = track else { continue };
            let (width, pictures) = self.seen[slot];
            found.push(Place { slot, track, level: self.core.level(track), width, pictures });
        }
        found
    }
}

fn payload_type(number: u8) -> PayloadType {
    PayloadType::new(number).expect("below 128")
}
