//! Dumps of calls that are made up second by second, so that the truth of each is known.

use serde_json::{Map, Value, json};

/// The first report in ms since 1970: 2025-11-29 07:06:40 UTC.
pub const ZERO_MS: f64 = 1_764_400_000_000.0;

/// A second of a call. The default is a good one.
#[derive(Clone, Debug)]
pub struct Second {
    pub rtt_ms: f64,
    pub estimate_kbps: f64,
    pub network: &'static str,
    pub address: &'static str,
    /// Whether checks and reports come back.
    pub is_answered: bool,
    pub sends_video: bool,
    pub receives_video: bool,
    pub sent_video: Sent,
    pub sent_audio: Sent,
    pub received_video: Received,
    pub received_audio: Received,
}

/// What this end sends in a second.
#[derive(Clone, Debug)]
pub struct Sent {
    pub packets: u64,
    pub bytes: u64,
    /// What the far end misses of it, and whether it says so in this second.
    pub lost: i64,
    pub is_reported: bool,
    pub source_fps: f64,
    pub fps: u64,
    pub target_kbps: f64,
    pub limitation: &'static str,
    pub size: (u32, u32),
    pub content: Option<&'static str>,
    /// Of a microphone: 0 is digital silence.
    pub level: f64,
}

/// What this end receives in a second.
#[derive(Clone, Debug)]
pub struct Received {
    pub packets: u64,
    pub bytes: u64,
    pub lost: i64,
    pub frames: u64,
    pub decoded: u64,
    pub decode_ms: f64,
    pub buffer_ms: f64,
    pub key_frame_requests: u64,
    pub freezes: u64,
    pub frozen_s: f64,
    pub concealed: u64,
    pub content: Option<&'static str>,
    pub level: f64,
}

impl Default for Second {
    fn default() -> Self {
        let sent_video = Sent {
            packets: 193,
            bytes: 212_500,
            lost: 0,
            is_reported: true,
            source_fps: 30.0,
            fps: 30,
            target_kbps: 1_700.0,
            limitation: "none",
            size: (1_280, 720),
            content: None,
            level: 0.1,
        };
        let received_video = Received {
            packets: 170,
            bytes: 187_500,
            lost: 0,
            frames: 30,
            decoded: 30,
            decode_ms: 4.0,
            buffer_ms: 40.0,
            key_frame_requests: 0,
            freezes: 0,
            frozen_s: 0.0,
            concealed: 0,
            content: None,
            level: 0.1,
        };
        Self {
            rtt_ms: 40.0,
            estimate_kbps: 3_000.0,
            network: "wifi",
            address: "192.0.2.7",
            is_answered: true,
            sends_video: true,
            receives_video: true,
            sent_audio: Sent { packets: 50, bytes: 4_000, ..sent_video.clone() },
            received_audio: Received { packets: 50, bytes: 4_000, ..received_video.clone() },
            sent_video,
            received_video,
        }
    }
}

impl Second {
    /// A sent stream, whose reports come back if anything does.
    fn sent(&self, stream: &Sent) -> Sent {
        Sent { is_reported: stream.is_reported && self.is_answered, ..stream.clone() }
    }
}

/// A call of so many seconds, of which this changes each one.
pub fn call(seconds: u64, change: impl Fn(u64, &mut Second)) -> Vec<Second> {
    let mut all = Vec::new();
    for second in 0..seconds {
        let mut now = Second::default();
        change(second, &mut now);
        all.push(now);
    }
    all
}

/// Counters of a call so far.
#[derive(Default)]
struct Counters {
    objects: Map<String, Value>,
}

impl Counters {
    fn object(&mut self, id: &str, kind: &str, time_ms: f64) -> &mut Map<String, Value> {
        let object = self.objects.entry(id).or_insert_with(|| json!({}));
        let object = object.as_object_mut().expect("an object");
        object.insert("id".into(), id.into());
        object.insert("type".into(), kind.into());
        object.insert("timestamp".into(), time_ms.into());
        object
    }
}

fn count(object: &mut Map<String, Value>, member: &str, more: f64) {
    let before = object.get(member).and_then(Value::as_f64).unwrap_or(0.0);
    let sum = before + more;
    let is_whole = sum.fract() == 0.0 && !member.starts_with("total") && !member.ends_with("Delay");
    object.insert(member.into(), if is_whole { json!(sum as i64) } else { json!(sum) });
}

fn set(object: &mut Map<String, Value>, members: Value) {
    let Value::Object(members) = members else { return };
    object.extend(members);
}

/// The reports of a call, one a second.
pub fn reports(call: &[Second]) -> Vec<Map<String, Value>> {
    let mut counters = Counters::default();
    let mut reports = Vec::new();
    for (second, now) in call.iter().enumerate() {
        let time_ms = ZERO_MS + second as f64 * 1e3;
        add_path(&mut counters, now, time_ms);
        add_sent(&mut counters, &now.sent(&now.sent_audio), "audio", time_ms, now.rtt_ms);
        add_received(&mut counters, &now.received_audio, "audio", time_ms);
        if now.sends_video {
            add_sent(&mut counters, &now.sent(&now.sent_video), "video", time_ms, now.rtt_ms);
        }
        if now.receives_video {
            add_received(&mut counters, &now.received_video, "video", time_ms);
        }
        reports.push(counters.objects.clone());
    }
    reports
}

fn add_path(counters: &mut Counters, now: &Second, time_ms: f64) {
    let transport = counters.object("T", "transport", time_ms);
    set(transport, json!({ "selectedCandidatePairId": "P", "dtlsState": "connected" }));
    let local = counters.object("L", "local-candidate", time_ms);
    set(
        local,
        json!({ "address": now.address, "port": 40_000, "protocol": "udp",
        "candidateType": "host", "networkType": now.network }),
    );
    let remote = counters.object("R", "remote-candidate", time_ms);
    set(
        remote,
        json!({ "address": "198.51.100.9", "port": 50_000, "protocol": "udp",
        "candidateType": "host" }),
    );
    let pair = counters.object("P", "candidate-pair", time_ms);
    set(
        pair,
        json!({ "state": "succeeded", "nominated": true, "localCandidateId": "L",
        "remoteCandidateId": "R", "currentRoundTripTime": now.rtt_ms / 1e3,
        "availableOutgoingBitrate": now.estimate_kbps * 1e3 }),
    );
    count(pair, "responsesReceived", f64::from(u8::from(now.is_answered)));
    for codec in ["VP8", "opus"] {
        let kind = if codec == "opus" { "audio" } else { "video" };
        let object = counters.object(&format!("codec-{kind}"), "codec", time_ms);
        set(object, json!({ "mimeType": format!("{kind}/{codec}") }));
    }
}

fn add_sent(counters: &mut Counters, sent: &Sent, kind: &str, time_ms: f64, rtt_ms: f64) {
    let ssrc = if kind == "audio" { 101 } else { 102 };
    let source = counters.object(&format!("source-{kind}"), "media-source", time_ms);
    set(source, json!({ "kind": kind }));
    if kind == "audio" {
        count(source, "totalAudioEnergy", sent.level * sent.level);
        count(source, "totalSamplesDuration", 1.0);
    } else {
        let (width, height) = sent.size;
        let fps = sent.source_fps;
        set(source, json!({ "width": width, "height": height, "framesPerSecond": fps }));
    }
    let stream = counters.object(&format!("out-{kind}"), "outbound-rtp", time_ms);
    set(
        stream,
        json!({ "kind": kind, "ssrc": ssrc, "active": true,
        "codecId": format!("codec-{kind}"), "mediaSourceId": format!("source-{kind}"),
        "remoteId": format!("far-{kind}"), "targetBitrate": sent.target_kbps * 1e3 }),
    );
    count(stream, "packetsSent", sent.packets as f64);
    count(stream, "bytesSent", sent.bytes as f64);
    if kind == "video" {
        set(
            stream,
            json!({ "frameWidth": sent.size.0, "frameHeight": sent.size.1,
            "qualityLimitationReason": sent.limitation, "encoderImplementation": "libvpx" }),
        );
        if let Some(content) = sent.content {
            set(stream, json!({ "contentType": content }));
        }
        count(stream, "framesEncoded", sent.fps as f64);
        count(stream, "totalEncodeTime", sent.fps as f64 * 6e-3);
    }
    let far = counters.object(&format!("far-{kind}"), "remote-inbound-rtp", time_ms);
    set(
        far,
        json!({ "kind": kind, "ssrc": ssrc, "localId": format!("out-{kind}"),
        "roundTripTime": rtt_ms / 1e3, "jitter": 0.004 }),
    );
    if sent.is_reported {
        count(far, "roundTripTimeMeasurements", 1.0);
    }
    count(far, "packetsLost", sent.lost as f64);
}

fn add_received(counters: &mut Counters, received: &Received, kind: &str, time_ms: f64) {
    let ssrc = if kind == "audio" { 201 } else { 202 };
    let stream = counters.object(&format!("in-{kind}"), "inbound-rtp", time_ms);
    set(
        stream,
        json!({ "kind": kind, "ssrc": ssrc, "codecId": format!("codec-{kind}"),
        "jitter": 0.004 }),
    );
    count(stream, "packetsReceived", received.packets as f64);
    count(stream, "bytesReceived", received.bytes as f64);
    count(stream, "packetsLost", received.lost as f64);
    if kind == "audio" {
        count(stream, "totalSamplesReceived", 48e3);
        count(stream, "concealedSamples", received.concealed as f64);
        count(stream, "silentConcealedSamples", 0.0);
        count(stream, "concealmentEvents", if received.concealed > 0 { 1.0 } else { 0.0 });
        count(stream, "jitterBufferDelay", 48e3 * received.buffer_ms / 1e3);
        count(stream, "jitterBufferEmittedCount", 48e3);
        count(stream, "totalAudioEnergy", received.level * received.level);
        count(stream, "totalSamplesDuration", 1.0);
        return;
    }
    set(
        stream,
        json!({ "frameWidth": 1_280, "frameHeight": 720,
        "decoderImplementation": "libvpx" }),
    );
    if let Some(content) = received.content {
        set(stream, json!({ "contentType": content }));
    }
    let decoded = received.decoded as f64;
    count(stream, "framesReceived", received.frames as f64);
    count(stream, "framesDecoded", decoded);
    count(stream, "totalDecodeTime", decoded * received.decode_ms / 1e3);
    count(stream, "jitterBufferDelay", decoded * received.buffer_ms / 1e3);
    count(stream, "jitterBufferEmittedCount", decoded);
    count(stream, "freezeCount", received.freezes as f64);
    count(stream, "totalFreezesDuration", received.frozen_s);
    count(stream, "pliCount", received.key_frame_requests as f64);
}

/// An event of a dump, with its time in s since the first report.
pub type Event = (f64, &'static str, Value);

/// The events of a connection that is established a second before the first report.
pub fn established() -> Vec<Event> {
    vec![
        (-1.5, "oniceconnectionstatechange", json!("checking")),
        (-1.0, "oniceconnectionstatechange", json!("connected")),
        (-0.9, "onconnectionstatechange", json!("connected")),
    ]
}

/// An rtcstats dump of a call.
pub fn rtcstats(events: &[Event], call: &[Second]) -> String {
    let mut lines = vec!["RTCStatsDump".to_owned(), "{\"fileFormat\":3}".into()];
    for (at_s, name, value) in events {
        lines.push(json!([name, "7-1", value, ZERO_MS + at_s * 1e3]).to_string());
    }
    for (second, report) in reports(call).into_iter().enumerate() {
        lines.push(json!(["getStats", "7-1", report, ZERO_MS + second as f64 * 1e3]).to_string());
    }
    lines.join("\n") + "\n"
}

/// A webrtc-internals dump of a call. `has_types` is false of Chrome before version 96.
pub fn internals(events: &[Event], call: &[Second], keeps: usize, has_types: bool) -> Value {
    let reports = reports(call);
    let first = reports.len().saturating_sub(keeps);
    let time = |at: usize| weir_analyze::iso_8601(ZERO_MS + at as f64 * 1e3).expect("a time");
    let mut stats = Map::new();
    let last = reports.last().cloned().unwrap_or_default();
    for (id, object) in &last {
        for member in object.as_object().expect("an object").keys() {
            let is_typed = member != "type" && member != "timestamp";
            if member == "id" || !has_types && !is_typed {
                continue;
            }
            let mut values = Vec::new();
            for report in &reports[first..] {
                let value = report[id].get(member).cloned().unwrap_or_default();
                let is_text = !has_types && member == "ssrc";
                values.push(if is_text { value.to_string().into() } else { value });
            }
            let mut series = json!({ "startTime": time(first), "endTime": time(reports.len() - 1),
                "values": Value::from(values).to_string() });
            if has_types {
                series["statsType"] = object["type"].clone();
            }
            let id = if has_types { id.clone() } else { old_id(id, &object["type"]) };
            stats.insert(format!("{id}-{member}"), series);
        }
    }
    let mut log = Vec::new();
    for (at_s, name, value) in events {
        let at = ZERO_MS + at_s * 1e3;
        log.push(json!({ "timestamp": at, "type": name, "value": value.to_string() }));
    }
    json!({ "getUserMedia": [], "UserAgent": "Mozilla/5.0 Chrome/143.0.0.0 Safari/537.36",
        "PeerConnections": { "7-1": { "url": "https://call.example/", "rtcConfiguration": "{}",
            "constraints": "", "stats": stats, "updateLog": log } } })
}

/// The ids of Chrome 86. References to others are lost with them.
fn old_id(id: &str, kind: &Value) -> String {
    let begin = match kind.as_str().unwrap_or_default() {
        "inbound-rtp" => "RTCInboundRTPStream",
        "outbound-rtp" => "RTCOutboundRTPStream",
        "remote-inbound-rtp" => "RTCRemoteInboundRtpStream",
        "transport" => "RTCTransport",
        "candidate-pair" => "RTCIceCandidatePair",
        "codec" => "RTCCodec",
        "media-source" => "RTCVideoSource",
        _ => "RTCIceCandidate",
    };
    format!("{begin}_{}", id.replace('-', "_"))
}
