//! The types of objects in dumps of chrome://webrtc-internals that do not say them.

/// The type of an object by its id, where no series says it: Chrome 95 and older.
pub(super) fn kind_of_id(id: &str) -> &'static str {
    const KINDS: [(&str, &str); 16] = [
        ("RTCInboundR", "inbound-rtp"),
        ("RTCOutboundR", "outbound-rtp"),
        ("RTCRemoteInboundR", "remote-inbound-rtp"),
        ("RTCRemoteOutboundR", "remote-outbound-rtp"),
        ("RTCTransport", "transport"),
        ("RTCIceCandidatePair", "candidate-pair"),
        ("RTCIceCandidate", "local-candidate"),
        ("RTCAudioSource", "media-source"),
        ("RTCVideoSource", "media-source"),
        ("RTCCodec", "codec"),
        ("RTCDataChannel", "data-channel"),
        ("RTCMediaStreamTrack", "track"),
        // The statistics of before the standard.
        ("ssrc_", "ssrc"),
        ("bweforvideo", "VideoBwe"),
        ("Conn-", "googCandidatePair"),
        ("RTCPeerConnection", "peer-connection"),
    ];
    KINDS.iter().find(|(begin, _)| id.starts_with(begin)).map_or("", |(_, kind)| kind)
}

/// The type of an object by members that no other has.
pub(super) fn kind_of_members(has: impl Fn(&str) -> bool) -> &'static str {
    const KINDS: [(&[&str], &str); 8] = [
        (&["packetsSent", "ssrc"], "outbound-rtp"),
        (&["packetsReceived", "ssrc"], "inbound-rtp"),
        (&["roundTripTime", "ssrc"], "remote-inbound-rtp"),
        (&["selectedCandidatePairId"], "transport"),
        (&["localCandidateId", "remoteCandidateId"], "candidate-pair"),
        (&["candidateType"], "local-candidate"),
        (&["mimeType"], "codec"),
        (&["kind"], "media-source"),
    ];
    let found = KINDS.iter().find(|(needed, _)| needed.iter().all(|it| has(it)));
    found.map_or("", |(_, kind)| kind)
}
