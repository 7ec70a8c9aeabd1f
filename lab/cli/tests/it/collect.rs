//! `weir collect` as its clients and its operators meet it: over sockets of this machine.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::Message;

use crate::collector::{
    Collector, PATIENCE, WEIR, closed_for, names, report, send, token, waits_for,
};

#[test]
fn a_full_uplink_is_a_cause_in_metrics_and_webhook_and_the_dump_is_a_dump() {
    let lake = TempDir::new().unwrap();
    let hook = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", hook.local_addr().unwrap());
    let options = ["--webhook", &url, "--webhook-cause", "uplink_capacity", "--rejoin", "0.5"];
    let collector = Collector::start(lake.path(), &options);
    let path = format!("/c/room/7/anna?token={}", token(lake.path(), "room"));
    let mut socket = collector.connect(&path);
    for second in 0..40 {
        send(&mut socket, &report(second));
    }
    collector.reaches("weir_collect_calls_limited{cause=\"uplink_capacity\"}", 1.0);
    let seconds = collector.metric("weir_collect_bad_seconds_total{cause=\"uplink_capacity\"}");
    assert!((18.0..=21.0).contains(&seconds), "{seconds}");
    assert_eq!(collector.metric("weir_collect_reports_total"), 40.0);
    let (mut told, _) = hook.accept().unwrap();
    told.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
    let mut body = String::new();
    told.read_to_string(&mut body).unwrap();
    let body: Value = serde_json::from_str(body.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let said = ["event", "cause", "room", "call", "peer"].map(|name| body[name].as_str().unwrap());
    assert_eq!(said, ["begin", "uplink_capacity", "room", "7", "anna"]);
    socket.close(None).unwrap();
    let file = lake.path().join("dumps/room/7.anna.rtcstats");
    waits_for(&file, "RTCStatsDump");
    let output = Command::new(WEIR).arg("analyze").arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.to_lowercase().contains("uplink was full"), "{text}");
}

#[test]
fn a_killed_collector_has_lost_little_and_its_calls_join_again() {
    let lake = TempDir::new().unwrap();
    let mut collector = Collector::start(lake.path(), &[]);
    let path = format!("/c/room/7/anna?token={}", token(lake.path(), "room"));
    let mut socket = collector.connect(&path);
    for second in 0..30 {
        send(&mut socket, &report(second));
    }
    let running = lake.path().join("dumps/room/.7.anna.rtcstats");
    // Without another message: time alone brings it to the disk.
    waits_for(&running, "1700000029000");
    // What came within the last second may be lost, in the middle of a line.
    send(&mut socket, &report(30));
    collector.child.kill().unwrap();
    collector.child.wait().unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&running).unwrap();
    file.write_all(b"[\"getStats\",\"0\",{\"o").unwrap();

    let collector = Collector::start(lake.path(), &["--rejoin", "0.5"]);
    let mut socket = collector.connect(&path);
    send(&mut socket, &report(31));
    // The cause began before the kill, and one report alone shows none.
    collector.reaches("weir_collect_calls_limited{cause=\"uplink_capacity\"}", 1.0);
    socket.close(None).unwrap();
    let text = waits_for(&lake.path().join("dumps/room/7.anna.rtcstats"), "1700000031000");
    assert_eq!(text.matches("RTCStatsDump").count(), 1);
    let whole = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count();
    assert!(whole >= 32, "{whole} lines of 32");
}

#[test]
fn a_call_that_nobody_came_back_for_is_finished_after_the_next_start() {
    let lake = TempDir::new().unwrap();
    let room = lake.path().join("dumps/room");
    fs::create_dir_all(&room).unwrap();
    let hour = Duration::from_secs(3600);
    let now = std::time::SystemTime::now();
    // The clock may have been set, ahead or back.
    for (peer, modified) in [("anna", now - hour), ("bert", now + hour)] {
        let left = room.join(format!(".7.{peer}.rtcstats"));
        fs::write(&left, "RTCStatsDump\n{\"fileFormat\":3}\n").unwrap();
        fs::File::open(&left).unwrap().set_modified(modified).unwrap();
    }
    let _collector = Collector::start(lake.path(), &["--rejoin", "0.5"]);
    waits_for(&room.join("7.anna.rtcstats"), "RTCStatsDump");
    waits_for(&room.join("7.bert.rtcstats"), "RTCStatsDump");
    assert_eq!(names(room), ["7.anna.rtcstats", "7.bert.rtcstats"]);
}

#[test]
fn snapshots_and_events_come_by_post() {
    let lake = TempDir::new().unwrap();
    let collector = Collector::start(lake.path(), &[]);
    let path = format!("/c/room/7/anna?token={}", token(lake.path(), "room"));
    let snapshot = report(0)[2].to_string();
    assert_eq!(collector.post(&path, snapshot.as_bytes()), "204");
    let list = json!([{ "id": "o", "type": "outbound-rtp" }]).to_string();
    assert_eq!(collector.post(&path, list.as_bytes()), "204");
    let two = format!("{}\n{}", report(1), report(2));
    assert_eq!(collector.post(&path, two.as_bytes()), "204");
    for odd in ["", "7", "{", "[1,2"] {
        assert_eq!(collector.post(&path, odd.as_bytes()), "400", "{odd}");
    }
    assert_eq!(collector.metric("weir_collect_reports_total"), 3.0);
    assert_eq!(collector.metric("weir_collect_events_total"), 4.0);
    assert_eq!(collector.metric("weir_collect_calls"), 1.0);
    assert_eq!(collector.metric("weir_collect_connected"), 0.0);
}

#[test]
fn jitsi_s_client_is_told_what_came_and_begins_after_that() {
    let lake = TempDir::new().unwrap();
    let collector = Collector::start(lake.path(), &[]);
    let token = token(lake.path(), "meetings");
    let path =
        format!("/jitsi/meetings/{token}/example.org/room?statsSessionId=a-1&isReconnect=false");
    let mut socket = collector.offered(&path, "3.1_STANDARD").unwrap();
    let told: Value = serde_json::from_str(socket.read().unwrap().to_text().unwrap()).unwrap();
    assert_eq!(told, json!({ "type": "sn", "body": { "value": 0, "state": "initial" } }));
    let mut event = report(1);
    event.as_array_mut().unwrap().push(json!(1));
    let entry =
        json!({ "statsSessionId": "a-1", "type": "stats-entry", "data": event.to_string() });
    send(&mut socket, &entry);
    send(&mut socket, &json!({ "statsSessionId": "a-1", "type": "keepalive" }));
    collector.reaches("weir_collect_reports_total", 1.0);
    drop(socket);
    let mut again = collector.offered(&path, "3.1_STANDARD").unwrap();
    let told: Value = serde_json::from_str(again.read().unwrap().to_text().unwrap()).unwrap();
    assert_eq!(told["body"]["value"], 1);
    let file = lake.path().join("dumps/meetings/.example-org-room.a-1.rtcstats");
    waits_for(&file, "\"getStats\"");
}

#[test]
fn a_forged_token_reaches_nothing() {
    let lake = TempDir::new().unwrap();
    let collector = Collector::start(lake.path(), &[]);
    let other = token(lake.path(), "other");
    for path in [
        format!("/c/room/7/anna?token={other}"),
        format!("/c/room/7/anna?token={}", "0".repeat(64)),
        "/c/room/7/anna".into(),
        format!("/c/other/../room?token={other}"),
        format!("/jitsi/room/{other}/m?statsSessionId=a"),
        "/".into(),
    ] {
        assert_eq!(collector.post(&path, b"{}"), "404", "{path}");
        assert!(collector.offered(&path, "rtcstats#5.0").is_err(), "{path}");
    }
    assert_eq!(collector.metric("weir_collect_refused_total{reason=\"token\"}"), 12.0);
    assert_eq!(collector.metric("weir_collect_calls"), 0.0);
    assert!(names(lake.path().join("dumps")).is_empty());
}

#[test]
fn a_slow_or_silent_client_is_closed() {
    let lake = TempDir::new().unwrap();
    let collector = Collector::start(lake.path(), &["--idle", "1"]);
    let path = format!("/c/room/7/anna?token={}", token(lake.path(), "room"));
    // Nothing after the handshake, and half a message.
    let mut silent = collector.connect(&path);
    assert!(closed_for(&mut silent).contains("no reason"));
    let mut slow = collector.connect(&path);
    slow.get_mut().write_all(&[0x81, 0xFE, 0x03, 0xE8, 0, 0, 0, 0, b'[']).unwrap();
    assert!(closed_for(&mut slow).contains("no reason"));
    // Not even a whole request.
    let mut half = TcpStream::connect(&collector.address).unwrap();
    half.set_read_timeout(Some(PATIENCE)).unwrap();
    half.write_all(b"GET /metrics HTTP/1.1\r\nx: ").unwrap();
    assert_eq!(half.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(collector.metric("weir_collect_connected"), 0.0);
}

#[test]
fn a_huge_client_is_closed_and_too_many_are_refused() {
    let lake = TempDir::new().unwrap();
    let collector = Collector::start(lake.path(), &["--max-calls", "2", "--max-call-mb", "1"]);
    let token = token(lake.path(), "room");
    let path = |peer: &str| format!("/c/room/7/{peer}?token={token}");
    let mut huge = collector.connect(&path("a"));
    let large = "x".repeat(2 << 20);
    let _ = huge.send(Message::text(format!("[\"{large}\",null,0,1700000000000]")));
    assert!(closed_for(&mut huge).contains("no reason"));
    assert_eq!(collector.post(&path("a"), &vec![b' '; 2 << 20]), "413");
    // Many messages, each small enough.
    let mut much = collector.connect(&path("a"));
    let text = "x".repeat(100_000);
    for _ in 0..12 {
        let event = json!(["ontrack", null, text, 1_700_000_000_000_u64]);
        if much.send(Message::text(event.to_string())).is_err() {
            break;
        }
    }
    assert_eq!(closed_for(&mut much), "bytes");
    assert_eq!(collector.metric("weir_collect_refused_total{reason=\"bytes\"}"), 1.0);
    let _second = collector.connect(&path("b"));
    collector.reaches("weir_collect_calls", 2.0);
    let mut third = collector.connect(&path("c"));
    assert_eq!(closed_for(&mut third), "calls");
    // The newer connection of one end counts.
    let mut older = collector.connect(&path("b"));
    let mut newer = collector.connect(&path("b"));
    send(&mut newer, &report(0));
    assert_eq!(closed_for(&mut older), "replaced");
    collector.reaches("weir_collect_reports_total", 1.0);
}

#[test]
fn metrics_are_pushed_as_otlp() {
    let lake = TempDir::new().unwrap();
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", receiver.local_addr().unwrap());
    let _collector = Collector::start(lake.path(), &["--otlp", &url]);
    let (mut pushed, _) = receiver.accept().unwrap();
    pushed.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let mut text = String::new();
    pushed.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{text}");
    let body: Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let metrics = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let all = metrics.as_array().unwrap();
    let seconds = all.iter().find(|it| it["name"] == "weir_collect_bad_seconds_total").unwrap();
    let point = &seconds["sum"]["dataPoints"][1];
    assert_eq!(seconds["sum"]["aggregationTemporality"], 2);
    assert_eq!(point["attributes"][0]["value"]["stringValue"], "uplink_capacity");
    assert_eq!(point["asDouble"], 0.0);
}

#[test]
fn one_folder_has_one_collector_and_bad_options_are_one_line() {
    let lake = TempDir::new().unwrap();
    let _collector = Collector::start(lake.path(), &[]);
    let out = lake.path().to_str().unwrap();
    for (options, complaint) in [
        (&["--out", out][..], "another `weir collect`"),
        (&["--out", out, "--token-for", "a/b"], "the name of a room"),
        (&["--out", "/dev/null"], "/dev/null"),
        (&["--out", "own", "--otlp", "https://x"], "write http://"),
        (&["--out", "own", "--webhook", "http://x", "--webhook-cause", "rain"], "rain: no cause"),
        (&["--out", "own", "--window", "0"], "seconds between"),
        (&["--port", "8090"], "--out"),
    ] {
        let other = TempDir::new().unwrap();
        let mut command = Command::new(WEIR);
        let output = command.arg("collect").args(options).current_dir(&other).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {text}");
        assert!(text.contains(complaint) && text.lines().count() == 1, "{options:?}: {text}");
    }
}

#[test]
fn without_options_it_says_what_it_will_do_and_makes_nothing() {
    let folder = TempDir::new().unwrap();
    let output = Command::new(WEIR).arg("collect").current_dir(&folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("It listens until Ctrl-C"), "{text}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn the_small_client_stays_small_and_is_served() {
    let lake = TempDir::new().unwrap();
    let collector = Collector::start(lake.path(), &[]);
    let answer = collector.request("GET", "/client.js", b"");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("access-control-allow-origin: *"), "{head}");
    assert!(body.len() <= 4096 && body.contains("export function collect"), "{} bytes", body.len());
    assert!(collector.request("GET", "/health", b"").ends_with("well\n"));
}
