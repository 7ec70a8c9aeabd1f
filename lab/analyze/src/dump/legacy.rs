//! The statistics of Chrome's old `getStats` with a callback, which Chrome had until 2022: other
//! types and names, and all values as text. They become the objects of the standard's report, as
//! far as they say the same.
//!
//! ```text
//! "ssrc_1838074254_send": {"type": "ssrc", "mediaType": "video", "ssrc": "1838074254",
//!                          "bytesSent": "1361947", "googRtt": "51", "googFrameRateSent": "30"}
//! ```

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// Members that are read; `is_wanted` of [`super::objects`] lets them pass.
pub(super) const MEMBERS: &[&str] = &[
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

/// The same in the standard's objects; `None` if the report is not an old one. A page reads reports
/// of its own browser only, which are never old, and must stay small.
pub(super) fn standard(objects: &Object, time_ms: f64) -> Option<Object> {
    if cfg!(target_family = "wasm") {
        return None;
    }
    let mut report = Object::new();
    let estimate = all(objects).find(|(_, object)| text(object, "type") == Some("VideoBwe"));
    let estimate = estimate.map(|(_, object)| object);
    for (id, object) in all(objects) {
        match text(object, "type") {
            Some("ssrc") if id.ends_with("_send") => sent(&mut report, id, object, estimate),
            Some("ssrc") => received(&mut report, id, object),
            Some("googCandidatePair") if text(object, "googActiveConnection") == Some("true") => {
                pair(&mut report, id, object, estimate);
            }
            _ => {}
        }
    }
    if report.is_empty() {
        return None;
    }
    for object in report.values_mut().filter_map(Value::as_object_mut) {
        object.insert("timestamp".into(), time_ms.into());
    }
    Some(report)
}

fn all(objects: &Object) -> impl Iterator<Item = (&String, &Object)> {
    objects.iter().filter_map(|(id, object)| Some((id, object.as_object()?)))
}

fn sent(report: &mut Object, id: &str, object: &Object, estimate: Option<&Object>) {
    let Some(mut stream) = stream("outbound-rtp", object) else { return };
    let names = [
        ("packetsSent", "packetsSent"),
        ("bytesSent", "bytesSent"),
        ("framesEncoded", "framesEncoded"),
        ("hugeFramesSent", "hugeFramesSent"),
        ("qpSum", "qpSum"),
        ("googFrameWidthSent", "frameWidth"),
        ("googFrameHeightSent", "frameHeight"),
        ("googFrameRateSent", "framesPerSecond"),
        ("googNacksReceived", "nackCount"),
        ("googPlisReceived", "pliCount"),
    ];
    copy(&mut stream, object, &names);
    if text(object, "mediaType") == Some("video") {
        let reason = if text(object, "googCpuLimitedResolution") == Some("true") {
            "cpu"
        } else if text(object, "googBandwidthLimitedResolution") == Some("true") {
            "bandwidth"
        } else {
            "none"
        };
        stream.insert("qualityLimitationReason".into(), reason.into());
        if let Some(estimate) = estimate {
            copy(&mut stream, estimate, &[("googTargetEncBitrate", "targetBitrate")]);
        }
    }
    let mut remote = Object::new();
    remote.insert("type".into(), "remote-inbound-rtp".into());
    remote.insert("ssrc".into(), stream["ssrc"].clone());
    copy(&mut remote, object, &[("packetsLost", "packetsLost")]);
    if let Some(rtt) = seconds(object, "googRtt") {
        remote.insert("roundTripTime".into(), rtt.into());
    }
    report.insert(format!("{id}_remote"), remote.into());
    report.insert(id.into(), stream.into());
}

fn received(report: &mut Object, id: &str, object: &Object) {
    let Some(mut stream) = stream("inbound-rtp", object) else { return };
    let names = [
        ("packetsReceived", "packetsReceived"),
        ("packetsLost", "packetsLost"),
        ("bytesReceived", "bytesReceived"),
        ("framesDecoded", "framesDecoded"),
        ("googFrameWidthReceived", "frameWidth"),
        ("googFrameHeightReceived", "frameHeight"),
        ("googFrameRateDecoded", "framesPerSecond"),
        ("googNacksSent", "nackCount"),
        ("googPlisSent", "pliCount"),
    ];
    copy(&mut stream, object, &names);
    if let Some(jitter) = seconds(object, "googJitterReceived") {
        stream.insert("jitter".into(), jitter.into());
    }
    report.insert(id.into(), stream.into());
}

/// The pair in use, with its two candidates.
fn pair(report: &mut Object, id: &str, object: &Object, estimate: Option<&Object>) {
    let mut pair = Object::new();
    pair.insert("type".into(), "candidate-pair".into());
    pair.insert("state".into(), "succeeded".into());
    pair.insert("nominated".into(), true.into());
    let names = [
        ("packetsSent", "packetsSent"),
        ("bytesSent", "bytesSent"),
        ("bytesReceived", "bytesReceived"),
        ("responsesReceived", "responsesReceived"),
    ];
    copy(&mut pair, object, &names);
    if let Some(rtt) = seconds(object, "googRtt") {
        pair.insert("currentRoundTripTime".into(), rtt.into());
    }
    if let Some(estimate) = estimate {
        copy(&mut pair, estimate, &[("googAvailableSendBandwidth", "availableOutgoingBitrate")]);
    }
    let ends = [
        ("local", "googLocalAddress", "googLocalCandidateType"),
        ("remote", "googRemoteAddress", "googRemoteCandidateType"),
    ];
    for (end, address, kind) in ends {
        let candidate = candidate(object, address, kind);
        let name = format!("{id}_{end}");
        pair.insert(format!("{end}CandidateId"), name.clone().into());
        report.insert(name, candidate);
    }
    report.insert(id.into(), pair.into());
}

fn candidate(pair: &Object, address: &str, kind: &str) -> Value {
    let (address, port) =
        text(pair, address).and_then(|it| it.rsplit_once(':')).unwrap_or_default();
    let kind = match text(pair, kind) {
        Some("local") => "host",
        Some("stun") => "srflx",
        other => other.unwrap_or_default(),
    };
    json!({
        "address": address.trim_matches(['[', ']']),
        "port": port.parse::<u16>().ok(),
        "protocol": text(pair, "googTransportType").unwrap_or_default(),
        "candidateType": kind,
    })
}

/// An object of this type with what all streams have; `None` without an SSRC.
fn stream(kind: &str, object: &Object) -> Option<Object> {
    let ssrc: u32 = text(object, "ssrc")?.parse().ok()?;
    let mut stream = Object::new();
    stream.insert("type".into(), kind.into());
    stream.insert("kind".into(), text(object, "mediaType")?.into());
    stream.insert("ssrc".into(), ssrc.into());
    Some(stream)
}

/// Copies numbers under their names in the standard.
fn copy(to: &mut Object, from: &Object, names: &[(&str, &str)]) {
    for (old, new) in names {
        let Some(value) = text(from, old) else { continue };
        let value = match value.parse::<i64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => value.parse::<f64>().map_or(Value::Null, Value::from),
        };
        to.insert((*new).into(), value);
    }
}

/// A time that is written in ms; `None` while it is unknown, which is written as 0.
fn seconds(object: &Object, name: &str) -> Option<f64> {
    let ms: f64 = text(object, name)?.parse().ok()?;
    (ms > 0.0 && ms.is_finite()).then_some(ms / 1_000.0)
}

fn text<'a>(object: &'a Object, member: &str) -> Option<&'a str> {
    object.get(member)?.as_str()
}
