//! The encoder of one stream with spatial and temporal layers, as VP9's and AV1's in the modes
//! L1T1 to L3T3: a picture is a frame of each spatial layer, and a dependency descriptor says what
//! each of them needs.
//!
//! The frames are those of the measured encoder of one layer each. What a real encoder saves as a
//! larger picture predicts from the smaller one is in the rates that the scenario gives.

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_sfu::Frame;
use weir_wire::dependency::Descriptor as Dependency;
use weir_wire::rtp::{Element, RtpHeader};
use weir_wire::vp8::Descriptor;

use super::publisher::{PublisherState, Sent};
use super::structure::{DEPENDENCY_ID, DEPENDENCY_SIZE, LEAST_PAYLOAD, Place};
use super::temporal::{place, weight};
use crate::rtp_format::{EXTENSION_ID, IP_UDP, MAX_PACKET, OVERHEAD, PAYLOAD_TYPE, SRTP_TAG};

impl PublisherState {
    /// Encodes the picture that is due now, in all its layers. Returns its packets, and when the
    /// next one is due.
    pub(super) fn encode_layers(&mut self, now: Timestamp) -> (Vec<Sent>, TimeDelta) {
        let is_key = self.takes_key_frame(now);
        let mut sizes = Vec::new();
        let mut interval = TimeDelta::ZERO;
        for (spatial, encoder) in self.encoders.iter_mut().enumerate() {
            if is_key {
                encoder.source.begin_key_frame();
            }
            let rate = self.config.layers[spatial].rate.rate(now);
            let (size, next) = encoder.source.frame(now, rate, 1.0);
            sizes.push(size);
            if spatial == 0 {
                interval = next;
            }
        }
        let base = &mut self.encoders[0];
        if sizes[0].is_none() || !base.is_on {
            // The encoder dropped the picture, so the key frame is still to come.
            base.key_frame_at = is_key.then_some(now).or(base.key_frame_at);
            return (Vec::new(), interval);
        }
        (self.cut_layers(now, is_key, &sizes), interval)
    }

    /// Whether the picture is a key frame.
    fn takes_key_frame(&mut self, now: Timestamp) -> bool {
        let base = &mut self.encoders[0];
        let is_due = base.key_frame_at.is_some_and(|due| due <= now);
        if is_due {
            base.key_frame_at = None;
        }
        is_due || base.history.is_empty()
    }

    /// Cuts the frames of a picture into packets of one stream.
    fn cut_layers(
        &mut self,
        now: Timestamp,
        is_key: bool,
        sizes: &[Option<DataSize>],
    ) -> Vec<Sent> {
        let Some(svc) = &mut self.svc else { return Vec::new() };
        svc.picture = if is_key { 0 } else { svc.picture + 1 };
        let temporal = place(svc.temporal_layers, svc.picture).layer;
        let scale = if is_key { 1.0 } else { weight(svc.temporal_layers, temporal) };
        let mut found = Vec::new();
        for (spatial, size) in sizes.iter().enumerate() {
            let number = svc.next_frame.wrapping_add(spatial as u16);
            // A layer that nobody watches is not made; its frames keep their numbers.
            if !self.encoders[spatial].is_on {
                continue;
            }
            let place = Place {
                spatial: spatial as u8,
                temporal,
                template: svc.structure.svc_template(spatial as u8, svc.picture).unwrap_or(0),
                frame_number: number,
                starts_frame: false,
                ends_frame: false,
                has_structure: false,
            };
            let bytes = size.map_or(0, |size| (size * scale).as_bytes() + DEPENDENCY_SIZE);
            found.push((place, bytes.max(OVERHEAD + DEPENDENCY_SIZE + LEAST_PAYLOAD)));
        }
        svc.next_frame = svc.next_frame.wrapping_add(sizes.len() as u16);
        let mut packets = Vec::new();
        for (order, &(place, bytes)) in found.iter().enumerate() {
            let is_last_frame = order + 1 == found.len();
            let count = bytes.div_ceil(MAX_PACKET);
            for index in 0..count {
                let (is_first, is_last) = (index == 0, index + 1 == count);
                let start = match (is_first && place.spatial == 0, is_key) {
                    (true, true) => Descriptor::KeyFrameStart,
                    (true, false) => Descriptor::InterFrameStart,
                    _ => Descriptor::Continuation,
                };
                let own = Place {
                    starts_frame: is_first,
                    ends_frame: is_last,
                    has_structure: start == Descriptor::KeyFrameStart,
                    ..place
                };
                let more = u64::from(index < bytes % count);
                let size = DataSize::from_bytes(bytes / count + more);
                let is_end = is_last && is_last_frame;
                let sent = self.send(0, now, is_end, start, size, Some(own));
                self.encoders[0].note(sent);
                packets.push(sent);
            }
        }
        packets
    }

    /// The bytes of a packet with a dependency descriptor, and what the server reads from them.
    pub(super) fn read_layer(&mut self, sent: Sent, place: Place) -> Frame {
        let Some(svc) = &self.svc else { return Frame::new(0) };
        let mut dependency = Dependency::new(place.template, place.frame_number);
        (dependency.starts_frame, dependency.ends_frame) = (place.starts_frame, place.ends_frame);
        dependency.structure = place.has_structure.then(|| Box::new(svc.structure.clone()));
        let data = dependency.emit(&svc.structure);
        let header = RtpHeader::new(self.ssrc, PAYLOAD_TYPE, sent.number, sent.timestamp)
            .with_marker(sent.is_last)
            .with_transport_sequence_number(Some((EXTENSION_ID, 0)));
        let elements = [Element::new(DEPENDENCY_ID, &data).expect("a structure of three layers")];
        let start = header.size_with(&elements);
        let size = sent.size.as_bytes().saturating_sub(IP_UDP + SRTP_TAG) as usize;
        self.bytes.clear();
        self.bytes.resize(size.max(start + Descriptor::SIZE), 0);
        header.emit_with(&elements, &mut self.bytes);
        self.bytes[start..start + Descriptor::SIZE].copy_from_slice(&sent.start.emit());
        // Before the first structure has come, the server knows only of which track a packet is.
        self.reader.read(&self.bytes).unwrap_or(Frame::new(place.spatial))
    }
}
