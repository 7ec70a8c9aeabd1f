//! What a report has of real calls with captures.

use serde_json::{Value, json};
use weir_record::Record;

use super::{assert_shape, call, call_file, json as report_of};

/// A call's record with a capture, as `weir call` writes it.
pub(super) fn captured_call(seed: u64) -> Record {
    let record = call(seed);
    let interval = json!({ "time_s": 0.5, "send_bps": 1_000_000, "receive_bps": 2_000_000,
        "media_bps": 1_500_000, "target_bps": 900_000, "pacer_queue_ms": 12.5, "encode_ms": 9.0,
        "frame_size": [640, 480], "freezes": 1, "frozen_s": 0.4 });
    let peer = |name: &str| {
        json!({
            "call": 1, "participant": name, "first_frame_ms": 700.0,
            "setup_ms":
                { "camera": 400.0, "joined": 300.0, "start": 450.0, "described": 490.0,
                    "ice": 500.0, "connected": 580.0 },
            "candidate_pair": {
                "local": { "address": "10.45.0.1", "protocol": "udp", "candidateType": "host" },
                "remote": { "address": null, "protocol": "udp", "candidateType": "relay" },
            },
            "intervals": [interval],
        })
    };
    let extra = json!({
        "participants": [{ "name": "a", "cpu_cores": 0.5, "memory_bytes": 300_000_000 }],
        "calls": [{ "call": 1, "failure": null }, { "call": 2, "failure": "peer b has not \
            joined" }],
        "peers": [peer("a"), peer("b")],
        "quality": [{ "call": 1, "from": "a", "to": "b", "screen": { "seen": 200, "read": 199,
            "matched": 199 }, "shown_delay_ms": { "p50": 112.84, "p95": 146.0, "p99": 149.0 },
            "stalls": 2, "stalled_s": 1.25, "stalled_ratio": 0.125,
            "picture": { "pictures": 1, "worst_s": 0.25, "vmaf": { "mean": 81.26, "p5": 70.0,
                "min": 60.0 }, "scores": [{ "time_s": 0.25, "vmaf": 81.26, "psnr_db": 33.0 }] },
            "intervals": [
                { "time_s": 0.5, "shown": 15, "shown_delay_ms": 113.2 },
            ] }],
        "captures": [{
            "call": 1,
            "streams": [{ "from": "a", "to": "b", "role": "video", "ssrc": 7, "sent_packets": 200,
                "lost_packets": 3,
                "delay_ms": { "mean": 30.0, "p50": 29.0, "p95": 41.0, "max": 55.0 },
                "delay_counts": [0, 0, 197] }],
            "intervals": [[interval], [interval]],
            "compared": [{ "peer": "a", "way": "sent", "stream": "video", "ssrcs": [7],
                "time_s": [0.5], "reported_bps": [1_000_000], "captured_bps": [1_000_000] }],
            "agreement": [{ "subject": "video a to b, at a", "quantity": "packets",
                "witness": "getStats", "witnessed": 200.0, "captured": 201.0, "error": -1.0,
                "limit": 4.0, "agrees": true }],
        }],
    });
    let mut call = serde_json::to_value(record.call.unwrap()).unwrap();
    call.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    Record { call: Some(call_file(call)), ..record }
}

#[test]
fn real_calls_show_their_set_up_their_browsers_and_what_the_witnesses_saw() {
    let report = report_of(&[captured_call(1), captured_call(2)]);
    let calls = &report["scenarios"][0]["calls"];
    assert_shape(calls, "Calls");
    // The page shows the name of the browser with a peer's freezes.
    assert_eq!(calls["peers"][0]["controller"], "chromium");
    for (rows, interface) in [
        ("setup", "SetupRow"),
        ("peers", "PeerRow"),
        ("streams", "StreamRow"),
        ("agreement", "Agreement"),
        ("rates", "RatePlot"),
        ("errors", "StreamErrorRow"),
        ("delays", "DelayPlot"),
        ("pacers", "PacerPlot"),
        ("quality", "QualityRow"),
        ("screens", "ScreenPlot"),
    ] {
        assert_shape(&calls[rows][0], interface);
    }
    let pacer = &calls["pacers"][0];
    assert_eq!((&pacer["controller"], &pacer["peer"]), (&json!("chromium"), &json!("a")));
    assert_eq!((&pacer["queue_ms"], &pacer["encoder_mbps"]), (&json!([12.5]), &json!([0.9])));
    let seen = &calls["quality"][0];
    assert_eq!((&seen["stream"], &seen["shown_p50_ms"]), (&json!("call 1, a to b"), &json!(112.8)));
    assert_eq!(
        (&seen["stalled_percent"], &seen["tags_read_percent"]),
        (&json!(12.5), &json!(99.5))
    );
    let screen = &calls["screens"][0];
    assert_eq!((&screen["shown_ms"], &screen["received_ms"]), (&json!([113.2]), &json!([null])));
    assert_eq!((&seen["vmaf"], &seen["psnr_db"]), (&json!(81.3), &Value::Null));
    assert_eq!((&screen["vmaf"], &screen["picture_s"]), (&json!([81.3]), &json!([0.25])));
    // The record has no images.
    assert_eq!(screen["worst"], Value::Null);
    assert_eq!((&calls["tried"], &calls["succeeded"]), (&json!(4), &json!(2)));
    assert_eq!((&calls["compared"], &calls["agreed"]), (&json!(2), &json!(2)));
    let setup = &calls["setup"][0];
    assert_eq!(setup["path"], "10.45.0.1 (host) to hidden (relay), udp");
    let steps = ["page_ms", "camera_ms", "waiting_ms", "signalling_ms", "ice_ms", "dtls_ms"];
    assert_eq!(
        steps.map(|step| setup[step].as_f64().unwrap()),
        [300.0, 100.0, 50.0, 40.0, 10.0, 80.0]
    );
    assert_eq!((&setup["total_ms"], &setup["first_frame_ms"]), (&json!(130.0), &json!(120.0)));
    assert_eq!(
        (&calls["peers"][0]["peer"], &calls["peers"][0]["cpu_percent"]),
        (&json!("a"), &json!(50.0))
    );
    assert_eq!(calls["peers"][1]["cpu_percent"], Value::Null);
    assert_eq!(calls["streams"][0]["lost_percent"], 1.5);
    let participant = &report["participants"][0];
    assert_shape(participant, "ParticipantsRow");
    assert_eq!((&participant["runs"], &participant["success_ratio"]), (&json!(2), &json!(0.5)));
}
