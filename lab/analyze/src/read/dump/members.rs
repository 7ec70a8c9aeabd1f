//! The members of statistics objects that the analysis uses.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use weir_record::calls::stats::{
    InboundRtp, MediaSource, OutboundRtp, RemoteInboundRtp, Transport,
};

/// Members that are read besides those of the report's structs.
const MORE: &[&str] = &[
    "type",
    "kind",
    "mediaType",
    "codecId",
    "mimeType",
    "selectedCandidatePairId",
    "nominated",
    "state",
    "localCandidateId",
    "remoteCandidateId",
    "address",
    "ip",
    "port",
    "protocol",
    "candidateType",
    "relayProtocol",
    "active",
    "mediaSourceId",
    "localId",
    "remoteId",
    "rid",
    "timestamp",
    "bytesSent",
    "bytesReceived",
    "packetsSent",
    "packetsReceived",
    "currentRoundTripTime",
    "responsesReceived",
    "availableOutgoingBitrate",
    "networkType",
    "url",
    "label",
    "messagesSent",
    "messagesReceived",
    "trackId",
    "audioLevel",
    "isRemote",
    "selected",
    "ipAddress",
    "portNumber",
    "transport",
];

/// Members of the structs that are not written where they are unknown.
const UNWRITTEN: &[&str] = &[
    "contentType",
    "powerEfficientEncoder",
    "jitterBufferTargetDelay",
    "jitterBufferMinimumDelay",
    "decoderImplementation",
    "powerEfficientDecoder",
    "totalAudioEnergy",
    "totalSamplesDuration",
];

/// Members of the statistics that Chrome had before the standard.
const LEGACY: &[&str] = &[
    "googActiveConnection",
    "googAvailableSendBandwidth",
    "googBandwidthLimitedResolution",
    "googCpuLimitedResolution",
    "googFirsReceived",
    "googFrameHeightReceived",
    "googFrameHeightSent",
    "googFrameRateDecoded",
    "googFrameRateSent",
    "googFrameWidthReceived",
    "googFrameWidthSent",
    "googJitterReceived",
    "googLocalAddress",
    "googLocalCandidateType",
    "googNacksReceived",
    "googNacksSent",
    "googPlisReceived",
    "googPlisSent",
    "googRemoteAddress",
    "googRemoteCandidateType",
    "googRtt",
    "googTargetEncBitrate",
    "googTransportType",
];

/// The names of all members that are read, sorted.
pub(super) fn used() -> BTreeSet<&'static str> {
    let mut used: BTreeSet<&str> = MORE.iter().chain(LEGACY).copied().collect();
    for struct_ in [
        OutboundRtp::written(),
        InboundRtp::written(),
        RemoteInboundRtp::written(),
        MediaSource::written(),
        Transport::written(),
    ] {
        used.extend(struct_.keys().map(String::as_str));
    }
    used
}

/// A struct of a report, with all of its members at their defaults.
pub(super) trait Members: Default + Serialize + DeserializeOwned {
    fn written() -> &'static Map<String, Value>;
}

fn written<T: Default + Serialize + DeserializeOwned>() -> Map<String, Value> {
    let Ok(Value::Object(mut map)) = serde_json::to_value(T::default()) else { return Map::new() };
    for member in UNWRITTEN {
        map.insert((*member).into(), Value::Null);
        // The structs refuse members that they do not have.
        if T::deserialize(&map).is_err() {
            map.remove(*member);
        }
    }
    map
}

macro_rules! members {
    ($($name:ty),*) => {
        $(impl Members for $name {
            fn written() -> &'static Map<String, Value> {
                static WRITTEN: LazyLock<Map<String, Value>> = LazyLock::new(written::<$name>);
                &WRITTEN
            }
        })*
    };
}

members!(OutboundRtp, InboundRtp, RemoteInboundRtp, MediaSource, Transport);
