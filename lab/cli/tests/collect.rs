//! `weir collect` as its clients and its operators meet it: over sockets of this machine.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// A test waits so long for what must come.
const PATIENCE: Duration = Duration::from_secs(30);

struct Collector {
    child: Child,
    address: String,
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collector {
    fn start(lake: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(WEIR);
        command.arg("collect").arg("--out").arg(lake).args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let address = address.split('/').next().unwrap().to_owned();
        // What it says later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Self { child, address }
    }

    fn connect(&self, path: &str) -> WebSocket<TcpStream> {
        self.offered(path, "rtcstats#5.0").unwrap()
    }

    fn offered(
        &self,
        path: &str,
        protocol: &str,
    ) -> Result<WebSocket<TcpStream>, Box<dyn std::error::Error>> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request()?;
        request.headers_mut().insert("sec-websocket-protocol", protocol.parse()?);
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (socket, answer) = tungstenite::client(request, stream)?;
        assert_eq!(answer.headers()["sec-websocket-protocol"], protocol);
        Ok(socket)
    }

    /// The whole answer to a request.
    fn request(&self, method: &str, path: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses may close before it has read all.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn post(&self, path: &str, body: &[u8]) -> String {
        let answer = self.request("POST", path, body);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// The value of a metric with its labels.
    fn metric(&self, name: &str) -> f64 {
        let text = self.request("GET", "/metrics", b"");
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("{name} in {text}"))
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Waits until a metric has at least this value.
    fn reaches(&self, name: &str, value: f64) {
        let begun = Instant::now();
        while self.metric(name) < value {
            assert!(begun.elapsed() < PATIENCE, "{name} is {}", self.metric(name));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn token(lake: &Path, room: &str) -> String {
    let mut command = Command::new(WEIR);
    let output = command.arg("collect").arg("--out").arg(lake).args(["--token-for", room]).output();
    String::from_utf8(output.unwrap().stdout).unwrap().trim().into()
}

/// An event of a call that sends a video: a full path from 20 s on.
fn report(second: u64) -> Value {
    let time = 1_700_000_000_000.0 + second as f64 * 1e3;
    let rtt = if second < 20 { 0.04 } else { 0.4 };
    json!(["getStats", "0", {
        "o": { "type": "outbound-rtp", "kind": "video", "ssrc": 7, "timestamp": time,
               "remoteId": "r", "packetsSent": second * 100, "bytesSent": second * 100_000 },
        "r": { "type": "remote-inbound-rtp", "timestamp": time, "roundTripTime": rtt,
               "roundTripTimeMeasurements": second, "packetsLost": 0 },
    }, time])
}

fn send(socket: &mut WebSocket<TcpStream>, event: &Value) {
    socket.send(Message::text(event.to_string())).unwrap();
}

fn names(folder: PathBuf) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    names.sort();
    names
}

/// Waits until a file has a text, and returns it.
fn waits_for(path: &Path, text: &str) -> String {
    let begun = Instant::now();
    loop {
        let found = fs::read_to_string(path).unwrap_or_default();
        if found.contains(text) {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{text} in {}: {found}", path.display());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Reads messages until the server closes; returns its reason.
fn closed_for(socket: &mut WebSocket<TcpStream>) -> String {
    loop {
        match socket.read() {
            Ok(Message::Close(Some(frame))) => return frame.reason.to_string(),
            Ok(_) => {}
            Err(error) => return format!("no reason: {error}"),
        }
    }
}

#[test]
fn a_full_uplink_is_a_cause_in_the_metrics_and_the_webhook_and_the_dump_is_a_dump() {
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
fn a_call_that_nobody_came_back_for_is_finished_by_the_next_start() {
    let lake = TempDir::new().unwrap();
    let room = lake.path().join("dumps/room");
    fs::create_dir_all(&room).unwrap();
    let left = room.join(".7.anna.rtcstats");
    fs::write(&left, "RTCStatsDump\n{\"fileFormat\":3}\n").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(&left).unwrap().set_modified(old).unwrap();
    let _collector = Collector::start(lake.path(), &[]);
    waits_for(&room.join("7.anna.rtcstats"), "RTCStatsDump");
    assert_eq!(names(room), ["7.anna.rtcstats"]);
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
        let expected = if odd.is_empty() { "204" } else { "400" };
        assert_eq!(collector.post(&path, odd.as_bytes()), expected, "{odd}");
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
    collector.reaches("weir_collect_reports_total", 1.0);
    send(&mut older, &report(0));
    assert_eq!(closed_for(&mut older), "replaced");
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
        (&["--otlp", "https://x"], "write http://"),
        (&["--webhook", "http://x", "--webhook-cause", "rain"], "rain: no cause"),
        (&["--window", "0"], "seconds between"),
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
fn the_small_client_stays_small_and_is_served() {
    let lake = TempDir::new().unwrap();
    let collector = Collector::start(lake.path(), &[]);
    let answer = collector.request("GET", "/client.js", b"");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("access-control-allow-origin: *"), "{head}");
    assert!(body.len() <= 4096 && body.contains("export function collect"), "{} bytes", body.len());
    assert!(collector.request("GET", "/health", b"").ends_with("well\n"));
}
