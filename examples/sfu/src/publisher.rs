//! A participant's way to the server: layers come in, and are measured.

use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use anyhow::Context;
use str0m::change::SdpOffer;
use str0m::media::{KeyframeRequestKind, Mid};
use str0m::rtp::RtpPacket;
use str0m::{Candidate, Event, Rtc};
use weir::{Bitrate, DataSize, Timestamp};
use weir_sfu::{Frame, Layer, LayerDemand, PayloadDescriptor, Structure, TrackConfig, Uplink};

use crate::peer::Peer;

/// Names of the layers in the page, from the smallest.
const RIDS: [&str; 3] = ["l", "m", "h"];
/// Bytes of IP, UDP, RTP with extensions, and the authentication tag of SRTP.
const HEADERS: u64 = 20 + 8 + 20 + 10;

/// A packet on its way to the subscribers.
pub struct Arrival {
    pub packet: RtpPacket,
    pub frame: Frame,
}

/// One participant who sends a camera.
pub struct Publisher {
    pub name: String,
    pub peer: Peer,
    pub uplink: Uplink,
    /// What the page is asked for.
    pub track: TrackConfig,
    /// The bitrates of the layers, as they were last measured.
    pub bitrates: Vec<Bitrate>,
    /// What the page was told of each layer.
    pub demands: [bool; RIDS.len()],
    mid: Option<Mid>,
}

impl Publisher {
    /// Answers a page's offer.
    pub fn answer(
        now: Instant,
        local: SocketAddr,
        name: String,
        offer: &str,
    ) -> anyhow::Result<(Self, String)> {
        let mut rtc = Rtc::builder()
            .set_ice_lite(true)
            .set_rtp_mode(true)
            .clear_codecs()
            .enable_vp8(true)
            .build(now);
        rtc.add_local_candidate(Candidate::host(local, "udp")?).context("candidate")?;
        let offer = SdpOffer::from_sdp_string(offer)?;
        let answer = rtc.sdp_api().accept_offer(offer)?;
        let publisher = Self {
            name,
            peer: Peer::new(now, rtc, local),
            uplink: Uplink::new(Structure::Simulcast),
            track: TrackConfig::camera(guess()),
            bitrates: Vec::new(),
            demands: [true; RIDS.len()],
            mid: None,
        };
        Ok((publisher, answer.to_sdp_string()))
    }

    /// Lets str0m work, and returns the packets that came.
    pub fn poll(&mut self, at: Timestamp, socket: &UdpSocket) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for event in self.peer.poll(socket) {
            match event {
                Event::MediaAdded(media) => self.mid = Some(media.mid),
                Event::RtpPacket(packet) => arrivals.extend(self.on_packet(at, packet)),
                _ => {}
            }
        }
        arrivals
    }

    fn on_packet(&mut self, at: Timestamp, packet: RtpPacket) -> Option<Arrival> {
        let mut direct = self.peer.rtc.direct_api();
        let rid = direct.stream_rx(&packet.header.ssrc)?.rid();
        let stream = match rid {
            Some(rid) => RIDS.iter().position(|&name| *rid == *name)? as u8,
            None => 0,
        };
        // A packet without payload is padding of the publisher's own probes.
        let descriptor = PayloadDescriptor::parse(&packet.payload).ok()?;
        let size = DataSize::from_bytes(packet.payload.len() as u64 + HEADERS);
        self.uplink.on_packet(at, stream, descriptor.temporal, size);
        Some(Arrival { frame: descriptor.frame(stream), packet })
    }

    /// Asks for a key frame of a stream, unless it was asked for a moment ago.
    pub fn ask_for_key_frame(&mut self, at: Timestamp, stream: u8) {
        if !self.uplink.on_key_frame_request(at, stream) {
            return;
        }
        let Some(mid) = self.mid else { return };
        let rid = RIDS.get(usize::from(stream)).map(|&name| name.into());
        let mut direct = self.peer.rtc.direct_api();
        if let Some(stream) = direct.stream_rx_by_mid(mid, rid) {
            stream.request_keyframe(KeyframeRequestKind::Pli);
        }
    }

    /// The track with the bitrates that were measured.
    pub fn measured(&self) -> TrackConfig {
        let mut track = self.track.clone();
        for (layer, &bitrate) in track.layers.iter_mut().zip(&self.bitrates) {
            layer.bitrate = bitrate;
        }
        track
    }

    /// Measures the layers again, and notes which of them somebody watches.
    pub fn measure(&mut self, at: Timestamp) {
        while let Some(LayerDemand { stream, is_watched, .. }) = self.uplink.next_demand(at) {
            if let Some(demand) = self.demands.get_mut(usize::from(stream)) {
                *demand = is_watched;
            }
        }
        self.bitrates = self.uplink.bitrates(at, &self.track);
    }
}

/// What the page asks of its browser: a first guess until the layers are measured.
fn guess() -> Vec<Layer> {
    let kbps = Bitrate::from_kbps;
    vec![
        Layer::new(0, 240, 135, kbps(150)),
        Layer::new(1, 640, 360, kbps(500)),
        Layer::new(2, 960, 540, kbps(1_500)),
    ]
}
