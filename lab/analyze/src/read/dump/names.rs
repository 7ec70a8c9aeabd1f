//! The numbers that rtcstats writes instead of the names of statistics and events: a number stands
//! for one name for ever, in every version of its format 3.

/// Members that the analysis uses, by their number.
const MEMBERS: [(u16, &str); 74] = [
    (6, "mimeType"),
    (10, "ssrc"),
    (11, "kind"),
    (12, "codecId"),
    (14, "packetsReceived"),
    (15, "packetsLost"),
    (16, "jitter"),
    (18, "mid"),
    (19, "remoteId"),
    (20, "framesDecoded"),
    (21, "keyFramesDecoded"),
    (22, "framesDropped"),
    (23, "frameWidth"),
    (24, "frameHeight"),
    (25, "framesPerSecond"),
    (26, "qpSum"),
    (27, "totalDecodeTime"),
    (28, "totalInterFrameDelay"),
    (29, "totalSquaredInterFrameDelay"),
    (30, "pauseCount"),
    (31, "totalPausesDuration"),
    (32, "freezeCount"),
    (33, "totalFreezesDuration"),
    (35, "headerBytesReceived"),
    (36, "packetsDiscarded"),
    (39, "fecBytesReceived"),
    (41, "bytesReceived"),
    (42, "nackCount"),
    (44, "pliCount"),
    (47, "jitterBufferDelay"),
    (49, "jitterBufferEmittedCount"),
    (60, "framesReceived"),
    (68, "retransmittedPacketsReceived"),
    (69, "retransmittedBytesReceived"),
    (70, "rtxSsrc"),
    (74, "localId"),
    (75, "roundTripTime"),
    (77, "fractionLost"),
    (78, "roundTripTimeMeasurements"),
    (79, "packetsSent"),
    (80, "bytesSent"),
    (81, "mediaSourceId"),
    (82, "rid"),
    (84, "headerBytesSent"),
    (85, "retransmittedPacketsSent"),
    (86, "retransmittedBytesSent"),
    (87, "targetBitrate"),
    (90, "hugeFramesSent"),
    (91, "framesEncoded"),
    (92, "keyFramesEncoded"),
    (93, "totalEncodeTime"),
    (94, "totalPacketSendDelay"),
    (95, "qualityLimitationReason"),
    (96, "qualityLimitationDurations"),
    (97, "qualityLimitationResolutionChanges"),
    (98, "encoderImplementation"),
    (100, "active"),
    (106, "width"),
    (107, "height"),
    (116, "protocol"),
    (118, "state"),
    (125, "selectedCandidatePairId"),
    (129, "dtlsCipher"),
    (131, "srtpCipher"),
    (132, "selectedCandidatePairChanges"),
    (134, "address"),
    (135, "port"),
    (136, "candidateType"),
    (148, "localCandidateId"),
    (149, "remoteCandidateId"),
    (150, "nominated"),
    (152, "currentRoundTripTime"),
    (153, "availableOutgoingBitrate"),
    (157, "responsesReceived"),
];

/// Events that the analysis uses, by their number.
const EVENTS: [(u64, &str); 8] = [
    (1, "getStats"),
    (2, "createOffer"),
    (21, "onicecandidateerror"),
    (24, "oniceconnectionstatechange"),
    (25, "onconnectionstatechange"),
    (36, "close"),
    (37, "restartIce"),
    (39, "create"),
];

/// Types of objects; the first has the number 1.
const TYPES: [&str; 14] = [
    "inbound-rtp",
    "outbound-rtp",
    "remote-inbound-rtp",
    "remote-outbound-rtp",
    "transport",
    "candidate-pair",
    "local-candidate",
    "remote-candidate",
    "data-channel",
    "peer-connection",
    "certificate",
    "media-source",
    "media-playout",
    "codec",
];

/// The name of a member. Known numbers are replaced by their name; anything else stays.
pub(super) fn member(written: &str) -> &str {
    if !written.starts_with(|first: char| first.is_ascii_digit()) {
        return written;
    }
    let number = written.parse::<u16>().ok();
    let known = MEMBERS.iter().find(|(it, _)| Some(*it) == number);
    known.map_or(written, |(_, name)| name)
}

/// The type of an object by its number.
pub(super) fn kind(number: u64) -> Option<&'static str> {
    TYPES.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
}

/// The name of an event by its number.
pub(super) fn event(number: u64) -> Option<&'static str> {
    EVENTS.iter().find(|(it, _)| *it == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::super::object::Name;
    use super::*;

    #[test]
    fn a_known_number_stands_for_a_name() {
        assert_eq!(member("80"), "bytesSent");
        assert_eq!(member("bytesSent"), "bytesSent");
        assert_eq!(member("9999"), "9999");
        assert_eq!((kind(0), kind(2), kind(15)), (None, Some("outbound-rtp"), None));
    }

    #[test]
    fn each_number_has_one_name_that_the_analysis_uses() {
        for (at, (number, name)) in MEMBERS.iter().enumerate() {
            assert!(Name::of(name).is_some(), "{name}");
            let twice = |it: &(u16, &str)| it.0 == *number || it.1 == *name;
            assert!(!MEMBERS[..at].iter().any(twice), "{name}");
        }
    }
}
