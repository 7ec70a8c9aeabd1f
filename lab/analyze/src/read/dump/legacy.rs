//! The statistics of Chrome's old `getStats` with a callback, which Chrome had until 2022: other
//! types and names, and all values as text. They become the objects of the standard's report, as
//! far as they say the same.
//!
//! ```text
//! "ssrc_1838074254_send": {"type": "ssrc", "mediaType": "video", "ssrc": "1838074254",
//!                          "bytesSent": "1361947", "googRtt": "51", "googFrameRateSent": "30"}
//! ```

use serde_json::Value;

use super::object::{Object, Objects};

/// The same in the standard's objects; `None` if the report is not an old one. A page reads reports
/// of its own browser only, which are never old, and must stay small.
pub(super) fn standard(objects: &Objects, time_ms: f64) -> Option<Objects> {
    if cfg!(target_family = "wasm") {
        return None;
    }
    let mut report = Objects::new();
    let estimate = objects.values().find(|object| object.kind() == Some("VideoBwe"));
    for (id, object) in objects {
        match object.kind() {
            Some("ssrc") if id.ends_with("_send") => sent(&mut report, id, object, estimate),
            Some("ssrc") => received(&mut report, id, object),
            Some("googCandidatePair") if object.text("googActiveConnection") == Some("true") => {
                pair(&mut report, id, object, estimate);
            }
            _ => {}
        }
    }
    if report.is_empty() {
        return None;
    }
    for object in report.values_mut() {
        object.insert("timestamp", time_ms);
    }
    Some(report)
}

fn sent(report: &mut Objects, id: &str, object: &Object, estimate: Option<&Object>) {
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
    if object.text("mediaType") == Some("video") {
        let reason = if object.text("googCpuLimitedResolution") == Some("true") {
            "cpu"
        } else if object.text("googBandwidthLimitedResolution") == Some("true") {
            "bandwidth"
        } else {
            "none"
        };
        stream.insert("qualityLimitationReason", reason);
        if let Some(estimate) = estimate {
            copy(&mut stream, estimate, &[("googTargetEncBitrate", "targetBitrate")]);
        }
    }
    let mut remote = Object::default();
    remote.insert("type", "remote-inbound-rtp");
    remote.insert("ssrc", stream.integer("ssrc"));
    copy(&mut remote, object, &[("packetsLost", "packetsLost")]);
    if let Some(rtt) = seconds(object, "googRtt") {
        remote.insert("roundTripTime", rtt);
    }
    report.insert(format!("{id}_remote"), remote);
    report.insert(id.into(), stream);
}

fn received(report: &mut Objects, id: &str, object: &Object) {
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
        stream.insert("jitter", jitter);
    }
    report.insert(id.into(), stream);
}

/// The pair in use, with its two candidates.
fn pair(report: &mut Objects, id: &str, object: &Object, estimate: Option<&Object>) {
    let mut pair = Object::default();
    pair.insert("type", "candidate-pair");
    pair.insert("state", "succeeded");
    pair.insert("nominated", true);
    let names = [
        ("packetsSent", "packetsSent"),
        ("bytesSent", "bytesSent"),
        ("bytesReceived", "bytesReceived"),
        ("responsesReceived", "responsesReceived"),
    ];
    copy(&mut pair, object, &names);
    if let Some(rtt) = seconds(object, "googRtt") {
        pair.insert("currentRoundTripTime", rtt);
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
        pair.insert(&format!("{end}CandidateId"), name.as_str());
        report.insert(name, candidate);
    }
    report.insert(id.into(), pair);
}

fn candidate(pair: &Object, address: &str, kind: &str) -> Object {
    let (address, port) = pair.text(address).and_then(|it| it.rsplit_once(':')).unwrap_or_default();
    let kind = match pair.text(kind) {
        Some("local") => "host",
        Some("stun") => "srflx",
        other => other.unwrap_or_default(),
    };
    let mut candidate = Object::default();
    candidate.insert("address", address.trim_matches(['[', ']']));
    candidate.insert("port", port.parse::<u16>().ok());
    candidate.insert("protocol", pair.text("googTransportType").unwrap_or_default());
    candidate.insert("candidateType", kind);
    candidate
}

/// An object of this type with what all streams have; `None` without an SSRC.
fn stream(kind: &str, object: &Object) -> Option<Object> {
    let ssrc: u32 = object.text("ssrc")?.parse().ok()?;
    let mut stream = Object::default();
    stream.insert("type", kind);
    stream.insert("kind", object.text("mediaType")?);
    stream.insert("ssrc", ssrc);
    Some(stream)
}

/// Copies numbers under their names in the standard.
fn copy(to: &mut Object, from: &Object, names: &[(&str, &str)]) {
    for (old, new) in names {
        let Some(value) = from.text(old) else { continue };
        let value = match value.parse::<i64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => value.parse::<f64>().map_or(Value::Null, Value::from),
        };
        to.insert(new, value);
    }
}

/// A time that is written in ms; `None` while it is unknown, which is written as 0.
fn seconds(object: &Object, name: &str) -> Option<f64> {
    let ms: f64 = object.text(name)?.parse().ok()?;
    (ms > 0.0 && ms.is_finite()).then_some(ms / 1_000.0)
}
