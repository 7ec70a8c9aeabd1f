//! Reports of the call page: members of the W3C statistics objects, as the browser provides them.
//!
//! Counters are cumulative over the life of the object; [`super::derive`] converts them to values
//! per interval [WEBRTC-STATS §8]. A member is absent if the browser does not provide it (yet).
//!
//! [WEBRTC-STATS §8]: https://w3c.github.io/webrtc-stats/

use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

use super::file;

/// One `getStats` report, reduced to one video and one audio stream in each direction.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatsReport {
    /// The video that this peer sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outbound: Option<Box<OutboundRtp>>,
    /// With simulcast, the layers that this peer sends, the smallest picture first. `outbound` has
    /// the sums of what they send, the size of the largest that is on, and the frames of the
    /// smallest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<OutboundRtp>,
    /// The video that this peer receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inbound: Option<Box<InboundRtp>>,
    /// The audio that this peer sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_outbound: Option<Box<OutboundRtp>>,
    /// The audio that this peer receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio_inbound: Option<Box<InboundRtp>>,
    /// The sent video, as the remote peer reports it in RTCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_inbound: Option<RemoteInboundRtp>,
    /// The selected candidate pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<Box<CandidatePair>>,
    /// The transport that carries all streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// The camera's output to the encoder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_source: Option<MediaSource>,
}

/// `kind` of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Video.
    Video,
    /// Audio.
    Audio,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Video, Self::Audio];
}

/// Statistics of a sent stream, `outbound-rtp`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutboundRtp {
    /// When the members were read, in ms of the browser's clock.
    pub timestamp: f64,
    /// SSRC of the stream.
    pub ssrc: Option<u32>,
    /// SSRC of the retransmissions.
    pub rtx_ssrc: Option<u32>,
    /// The media section of the session description.
    pub mid: Option<String>,
    /// RTP packets, retransmissions included.
    pub packets_sent: u64,
    /// RTP payload, without headers and padding, retransmissions included.
    pub bytes_sent: u64,
    /// RTP headers, extensions and padding.
    pub header_bytes_sent: u64,
    /// Retransmitted packets.
    pub retransmitted_packets_sent: Option<u64>,
    /// Retransmitted payload.
    pub retransmitted_bytes_sent: Option<u64>,
    /// Current target bitrate of the encoder, in bit/s.
    pub target_bitrate: Option<f64>,
    /// Width of the last encoded frame.
    pub frame_width: Option<u32>,
    /// Height of the last encoded frame.
    pub frame_height: Option<u32>,
    /// Frames encoded in the last second.
    pub frames_per_second: Option<f64>,
    /// Frames encoded.
    pub frames_encoded: Option<u64>,
    /// Of these, key frames.
    pub key_frames_encoded: Option<u64>,
    /// Frames of at least 2.5 times the mean size.
    pub huge_frames_sent: Option<u64>,
    /// Sum of the quantizer over the encoded frames.
    pub qp_sum: Option<u64>,
    /// Seconds spent encoding.
    pub total_encode_time: Option<f64>,
    /// Seconds that packets spent in the pacer.
    pub total_packet_send_delay: Option<f64>,
    /// Largest time in ms that was waiting in the pacer since the previous report. Only pipelines
    /// report it; it is not a member of the W3C's object.
    pub pacer_queue: Option<f64>,
    /// What limits picture size or frame rate.
    pub quality_limitation_reason: Option<LimitationReason>,
    /// Seconds with each limitation reason.
    pub quality_limitation_durations: Option<LimitationDurations>,
    /// Number of picture size changes because of a limitation.
    pub quality_limitation_resolution_changes: Option<u64>,
    /// Negative acknowledgements received.
    pub nack_count: Option<u64>,
    /// Picture loss indications received.
    pub pli_count: Option<u64>,
    /// The encoder's library, such as `libvpx`.
    pub encoder_implementation: Option<String>,
    /// `mimeType` of the codec in use, such as `video/VP8`.
    pub mime_type: Option<String>,
    /// The layers of scalable video coding, such as `L3T3`.
    pub scalability_mode: Option<String>,
    /// `screenshare` of a shared screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Whether hardware encodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_efficient_encoder: Option<bool>,
}

impl OutboundRtp {
    /// The encoder, for the record.
    pub fn encoder(&self) -> file::Encoder {
        file::Encoder {
            mime_type: self.mime_type.clone(),
            encoder_implementation: self.encoder_implementation.clone(),
            scalability_mode: self.scalability_mode.clone(),
        }
    }

    /// How long each cause limited the video, for the record; `None` where the browser does not
    /// say.
    pub fn limitation(&self) -> Option<file::Limitation> {
        let LimitationDurations { none, cpu, bandwidth, other } =
            self.quality_limitation_durations?;
        Some(file::Limitation { none, cpu, bandwidth, other })
    }
}

/// `qualityLimitationReason`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitationReason {
    /// Nothing limits the quality.
    #[default]
    None,
    /// The machine is too slow.
    Cpu,
    /// The bitrate estimate is too low.
    Bandwidth,
    /// Something else.
    Other,
}

impl LimitationReason {
    /// Its name in getStats.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cpu => "cpu",
            Self::Bandwidth => "bandwidth",
            Self::Other => "other",
        }
    }
}

/// `qualityLimitationDurations`: seconds for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LimitationDurations {
    /// Nothing limited the quality.
    pub none: f64,
    /// The machine was too slow.
    pub cpu: f64,
    /// The bitrate estimate was too low.
    pub bandwidth: f64,
    /// Something else.
    pub other: f64,
}

/// Statistics of a received stream, `inbound-rtp`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InboundRtp {
    /// When the members were read, in ms of the browser's clock.
    pub timestamp: f64,
    /// SSRC of the stream.
    pub ssrc: Option<u32>,
    /// SSRC of the retransmissions.
    pub rtx_ssrc: Option<u32>,
    /// The media section of the session description.
    pub mid: Option<String>,
    /// RTP packets, retransmissions included.
    pub packets_received: u64,
    /// Expected minus received packets. Duplicates can make it negative.
    pub packets_lost: i64,
    /// RTP payload, without headers and padding, retransmissions included.
    pub bytes_received: u64,
    /// RTP headers, extensions and padding.
    pub header_bytes_received: u64,
    /// Interarrival jitter in seconds [RFC3550 §6.4.1].
    ///
    /// [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
    pub jitter: Option<f64>,
    /// Payload of forward error correction.
    pub fec_bytes_received: Option<u64>,
    /// Retransmitted payload.
    pub retransmitted_bytes_received: Option<u64>,
    /// Retransmitted packets.
    pub retransmitted_packets_received: Option<u64>,
    /// Packets that arrived too late to be used.
    pub packets_discarded: Option<u64>,
    /// Width of the last decoded frame.
    pub frame_width: Option<u32>,
    /// Height of the last decoded frame.
    pub frame_height: Option<u32>,
    /// Frames decoded in the last second.
    pub frames_per_second: Option<f64>,
    /// Complete frames received.
    pub frames_received: Option<u64>,
    /// Frames decoded.
    pub frames_decoded: Option<u64>,
    /// Of these, key frames.
    pub key_frames_decoded: Option<u64>,
    /// Sum of the quantizer over the decoded frames.
    pub qp_sum: Option<u64>,
    /// Seconds spent decoding.
    pub total_decode_time: Option<f64>,
    /// Sum of the seconds between decoded frames.
    pub total_inter_frame_delay: Option<f64>,
    /// Sum of the squares of the seconds between decoded frames.
    pub total_squared_inter_frame_delay: Option<f64>,
    /// Frames dropped before they were shown.
    pub frames_dropped: Option<u64>,
    /// Freezes.
    pub freeze_count: Option<u64>,
    /// Total duration of all freezes in seconds.
    pub total_freezes_duration: Option<f64>,
    /// Gaps between frames that are too long to count as freezes.
    pub pause_count: Option<u64>,
    /// Total duration of all pauses in seconds.
    pub total_pauses_duration: Option<f64>,
    /// Seconds that frames spent in the jitter buffer.
    pub jitter_buffer_delay: Option<f64>,
    /// Frames that left the jitter buffer.
    pub jitter_buffer_emitted_count: Option<u64>,
    /// Audio samples, those that were made up among them.
    pub total_samples_received: Option<u64>,
    /// Audio samples that were made up, because theirs were lost or late.
    pub concealed_samples: Option<u64>,
    /// Of these, silence.
    pub silent_concealed_samples: Option<u64>,
    /// Gaps that were filled with such samples.
    pub concealment_events: Option<u64>,
    /// Sum of the seconds that the audio buffer aimed at, over the samples that left it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_buffer_target_delay: Option<f64>,
    /// The same without what the video or the application asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_buffer_minimum_delay: Option<f64>,
    /// Audio samples that playing slower added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inserted_samples_for_deceleration: Option<u64>,
    /// Audio samples that playing faster took out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_samples_for_acceleration: Option<u64>,
    /// Packets with redundant audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec_packets_received: Option<u64>,
    /// Of these, the ones that were not needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec_packets_discarded: Option<u64>,
    /// Negative acknowledgements sent.
    pub nack_count: Option<u64>,
    /// Picture loss indications sent.
    pub pli_count: Option<u64>,
    /// `mimeType` of the codec in use, such as `video/VP8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// `screenshare` of a shared screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The decoder's library, such as `libvpx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_implementation: Option<String>,
    /// Whether hardware decodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_efficient_decoder: Option<bool>,
    /// Sum of the squared level of the sound over its seconds; 1 is the loudest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_audio_energy: Option<f64>,
    /// Seconds of sound that were played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_samples_duration: Option<f64>,
}

/// Statistics of a sent stream from the remote peer, `remote-inbound-rtp`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoteInboundRtp {
    /// When the last RTCP report arrived, in ms of the browser's clock.
    pub timestamp: f64,
    /// Round-trip time of the last report in seconds.
    pub round_trip_time: Option<f64>,
    /// Number of reports that gave a round-trip time.
    pub round_trip_time_measurements: Option<u64>,
    /// Interarrival jitter at the remote peer in seconds.
    pub jitter: Option<f64>,
    /// Loss ratio since the previous report.
    pub fraction_lost: Option<f64>,
    /// Expected minus received packets at the remote peer.
    pub packets_lost: Option<i64>,
    /// Packets that arrived at the remote peer, retransmissions excluded. Only Firefox computes it.
    pub packets_received: Option<u64>,
}

/// The selected `candidate-pair`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CandidatePair {
    /// When the members were read, in ms of the browser's clock.
    pub timestamp: f64,
    /// UDP datagrams sent, without those of ICE itself. 0 from Firefox, which does not count them.
    #[serde(default)]
    pub packets_sent: u64,
    /// UDP payload sent.
    pub bytes_sent: u64,
    /// UDP datagrams received, without those of ICE itself; 0 from Firefox.
    #[serde(default)]
    pub packets_received: u64,
    /// UDP payload received.
    pub bytes_received: u64,
    /// Round-trip time of the last STUN check in seconds.
    pub current_round_trip_time: Option<f64>,
    /// STUN checks answered.
    pub responses_received: Option<u64>,
    /// The sender's bandwidth estimate in bit/s.
    pub available_outgoing_bitrate: Option<f64>,
    /// The local end of the pair.
    pub local: Candidate,
    /// The remote end of the pair.
    pub remote: Candidate,
}

/// One end of a candidate pair, `local-candidate` or `remote-candidate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Candidate {
    /// Absent if the browser hides it. It uses an empty string for a remote end that a connectivity
    /// check revealed before the signalling did, or a name of multicast DNS.
    #[serde(default, deserialize_with = "address")]
    pub address: Option<IpAddr>,
    /// UDP or TCP port.
    pub port: u16,
    /// `udp` or `tcp`.
    pub protocol: String,
    /// `host`, `srflx`, `prflx` or `relay`.
    pub candidate_type: String,
    /// Of a relay that this end uses: `udp`, `tcp` or `tls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay_protocol: Option<String>,
    /// Of a local end: `wifi`, `cellular`, `ethernet`, `vpn` or another word of the browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_type: Option<String>,
    /// The STUN or TURN server that gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpAddr>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Statistics of a camera or a microphone, `media-source`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MediaSource {
    /// Picture width.
    pub width: Option<u32>,
    /// Picture height.
    pub height: Option<u32>,
    /// Frames in the last second.
    pub frames_per_second: Option<f64>,
    /// Of a microphone: sum of the squared level of the sound over its seconds; 1 is the loudest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_audio_energy: Option<f64>,
    /// Of a microphone: seconds of sound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_samples_duration: Option<f64>,
}

/// Statistics of the transport, `transport`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Transport {
    /// Protection profile of SRTP by its IANA name.
    pub srtp_cipher: Option<String>,
    /// Cipher suite of DTLS.
    pub dtls_cipher: Option<String>,
    /// Number of times a pair was selected; 1 if it never changed.
    pub selected_candidate_pair_changes: Option<u64>,
}

impl Transport {
    /// Bytes that SRTP adds to each packet: the authentication tag [RFC5764 §4.1.2],
    /// [RFC7714 §14.2]. Zero while the profile is unknown.
    fn srtp_tag_bytes(&self) -> u64 {
        match self.srtp_cipher.as_deref() {
            Some("AEAD_AES_128_GCM" | "AEAD_AES_256_GCM" | "SRTP_AEAD_AES_128_GCM") => 16,
            Some("AES_CM_128_HMAC_SHA1_80" | "SRTP_AES128_CM_HMAC_SHA1_80") => 10,
            Some("AES_CM_128_HMAC_SHA1_32" | "SRTP_AES128_CM_HMAC_SHA1_32") => 4,
            _ => 0,
        }
    }
}

impl StatsReport {
    /// The sent stream of this kind.
    pub fn sent(&self, kind: Kind) -> Option<&OutboundRtp> {
        match kind {
            Kind::Video => self.outbound.as_deref(),
            Kind::Audio => self.audio_outbound.as_deref(),
        }
    }

    /// The received stream of this kind.
    pub fn received(&self, kind: Kind) -> Option<&InboundRtp> {
        match kind {
            Kind::Video => self.inbound.as_deref(),
            Kind::Audio => self.audio_inbound.as_deref(),
        }
    }

    /// Bytes that SRTP adds to each packet; zero while the profile is unknown.
    pub fn srtp_tag_bytes(&self) -> u64 {
        self.transport.as_ref().map_or(0, Transport::srtp_tag_bytes)
    }

    /// Whether the browser reports the SRTP profile.
    pub fn knows_srtp_tag(&self) -> bool {
        self.transport.as_ref().is_some_and(|transport| transport.srtp_cipher.is_some())
    }

    /// When the report was made, in ms of the browser's clock. It is the timestamp of a local
    /// object: a remote object has the time of its last RTCP packet.
    pub fn timestamp_ms(&self) -> Option<f64> {
        let outbound = self.outbound.as_deref().map(|object| object.timestamp);
        let inbound = self.inbound.as_deref().map(|object| object.timestamp);
        let pair = self.pair.as_deref().map(|object| object.timestamp);
        pair.or(inbound).or(outbound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_the_browser_hides_is_absent() {
        for (text, address) in [
            (r#""address":"10.45.0.1","#, Some(IpAddr::from([10, 45, 0, 1]))),
            (r#""address":"","#, None),
            (r#""address":"0f3c.local","#, None),
            (r#""address":null,"#, None),
            ("", None),
        ] {
            let text = format!(r#"{{{text}"port":1,"protocol":"udp","candidateType":"prflx"}}"#);
            assert_eq!(serde_json::from_str::<Candidate>(&text).unwrap().address, address);
        }
    }
}
