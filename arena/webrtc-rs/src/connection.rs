//! The connection and its track, as a sender of webrtc-rs makes them.

use std::time::Instant;

use anyhow::Context;
use arena_driver::encoder::PAYLOAD_BYTES;
use arena_driver::protocol::Settings;
use rtc::interceptor::{Registry, Slot};
use rtc::media_stream::MediaStreamTrack;
use rtc::peer_connection::configuration::interceptor_registry::{
    CongestionFeedback, configure_congestion_control, register_default_interceptors,
};
use rtc::peer_connection::configuration::media_engine::{MIME_TYPE_VP8, MediaEngine};
use rtc::peer_connection::{RTCPeerConnection, RTCPeerConnectionBuilder};
use rtc::rtp::packetizer::{Packetizer, new_packetizer};
use rtc::rtp_transceiver::rtp_sender::{
    RTCRtpCodec, RTCRtpCodecParameters, RTCRtpCodingParameters, RTCRtpEncodingParameters,
    RTCRtpRtxParameters, RtpCodecKind,
};
use rtc::rtp_transceiver::{RTCRtpSenderId, RTCRtpTransceiverDirection, RTCRtpTransceiverInit};

use weir::{Algorithm, Bitrate, RateLimits};

use crate::watched::{Target, Watched};

pub const CLOCK_RATE: u32 = 90_000;
const SSRC: u32 = 0x5e1f;
/// Retransmissions are a stream of their own. Otherwise SRTP takes one of a packet that was only
/// late for a replay, and the browser reports it as lost.
const RTX_SSRC: u32 = SSRC + 1;
/// As browsers number VP8 and its retransmissions.
const PAYLOAD_TYPE: u8 = 96;
const RTX_PAYLOAD_TYPE: u8 = 97;
/// Header of RTP and the descriptor of VP8, which the packetizer counts.
const RTP_BYTES: usize = 12 + 3;

pub struct Connection {
    pub peer: RTCPeerConnection,
    pub sender: RTCRtpSenderId,
    pub packetizer: Box<dyn Packetizer>,
    pub target: Target,
}

impl Connection {
    /// Under the GCC of webrtc-rs, or under a controller of ours.
    pub fn open(settings: &Settings, controller: Option<Algorithm>) -> anyhow::Result<Self> {
        let now = Instant::now();
        let mut media = MediaEngine::default();
        let vp8 = register_vp8(&mut media)?;
        let (registry, target) = match controller {
            None => theirs(settings, &mut media)?,
            Some(algorithm) => ours(settings, now, algorithm)?,
        };
        let registry = register_default_interceptors(registry, &mut media)?;
        let mut peer = RTCPeerConnectionBuilder::new()
            .with_media_engine(media)
            .with_interceptor_registry(registry)
            .build(now)?;
        let init = RTCRtpTransceiverInit {
            direction: RTCRtpTransceiverDirection::Sendonly,
            ..Default::default()
        };
        let id = peer.add_transceiver_from_track(track(vp8.clone()), Some(init))?;
        let sender = peer.rtp_transceiver(id).and_then(|own| own.sender()).context("no sender")?;
        let sequence = Box::new(rtc::rtp::sequence::new_random_sequencer());
        let mtu = PAYLOAD_BYTES as usize + RTP_BYTES;
        let packetizer =
            new_packetizer(now, mtu, PAYLOAD_TYPE, SSRC, vp8.payloader()?, sequence, CLOCK_RATE);
        Ok(Self { peer, sender, packetizer: Box::new(packetizer), target })
    }
}

/// Offers VP8 and its retransmissions.
pub fn register_vp8(media: &mut MediaEngine) -> anyhow::Result<RTCRtpCodec> {
    let vp8 = codec(MIME_TYPE_VP8, "");
    register(media, vp8.clone(), PAYLOAD_TYPE)?;
    register(media, codec("video/rtx", &format!("apt={PAYLOAD_TYPE}")), RTX_PAYLOAD_TYPE)?;
    Ok(vp8)
}

fn theirs(settings: &Settings, media: &mut MediaEngine) -> anyhow::Result<(Registry, Target)> {
    let (estimator, target) = Watched::new(settings);
    let feedback = CongestionFeedback::Twcc;
    Ok((configure_congestion_control(Registry::new(), estimator, feedback, media)?, target))
}

fn ours(
    settings: &Settings,
    now: Instant,
    algorithm: Algorithm,
) -> anyhow::Result<(Registry, Target)> {
    let [min, start, max] =
        [settings.min_bitrate, settings.start_bitrate, settings.max_bitrate].map(Bitrate::from_bps);
    let controller = algorithm.build(RateLimits::new(min, start, max)?);
    let (congestion, control) = weir_webrtc_rs::Congestion::new(now, controller);
    Ok((Registry::new().with(Slot::Pacer, congestion), Target::Ours(control)))
}

fn codec(mime_type: &str, sdp_fmtp_line: &str) -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: mime_type.to_owned(),
        clock_rate: CLOCK_RATE,
        sdp_fmtp_line: sdp_fmtp_line.to_owned(),
        ..Default::default()
    }
}

fn register(media: &mut MediaEngine, codec: RTCRtpCodec, number: u8) -> anyhow::Result<()> {
    let codec = RTCRtpCodecParameters { rtp_codec: codec, payload_type: number };
    Ok(media.register_codec(codec, RtpCodecKind::Video)?)
}

fn track(codec: RTCRtpCodec) -> MediaStreamTrack {
    let encoding = RTCRtpEncodingParameters {
        rtp_coding_parameters: RTCRtpCodingParameters {
            ssrc: Some(SSRC),
            rtx: Some(RTCRtpRtxParameters { ssrc: RTX_SSRC }),
            ..Default::default()
        },
        codec,
        ..Default::default()
    };
    let [stream, track, label] = ["arena", "video", "video"].map(str::to_owned);
    MediaStreamTrack::new(stream, track, label, RtpCodecKind::Video, vec![encoding])
}
