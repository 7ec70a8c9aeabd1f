//! What clients and disks do to `weir collect` at worst, with bounded loads on the loopback device.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::Message;

use crate::collector::{
    Collector, PATIENCE, WEIR, closed_for, names, report, send, token, waits_for,
};

/// Clients that come at once.
const CLIENTS: usize = 2000;
/// A client that waits longer was forgotten.
const SILENCE: Duration = Duration::from_secs(10);

/// Lets this process have a descriptor for each client.
fn raise_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

fn connected(collector: &Collector) -> TcpStream {
    let stream = TcpStream::connect(&collector.address).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    stream
}

/// The status of the answer, or nothing.
fn status(stream: &mut TcpStream) -> String {
    let mut answer = [0; 12];
    match stream.read_exact(&mut answer) {
        Ok(()) => String::from_utf8_lossy(&answer[9..]).into_owned(),
        Err(_) => String::new(),
    }
}

/// All connect before the first one asks. Returns those that are let in.
fn come_at_once(collector: &Collector, token: &str) -> Vec<TcpStream> {
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connected(collector)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        // The server may have closed it.
        let _ = write!(
            client,
            "GET /c/room/{number}/anna?token={token} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n\
             connection: upgrade\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
    }
    clients.retain_mut(|client| status(client) == "101");
    clients
}

#[test]
fn clients_that_come_back_at_once_are_all_let_in() {
    raise_descriptors();
    let lake = TempDir::new().unwrap();
    let token = token(lake.path(), "room");
    let mut collector = Collector::start(lake.path(), &[]);
    let port = collector.address.rsplit(':').next().unwrap().to_owned();
    let clients = come_at_once(&collector, &token);
    assert_eq!(clients.len(), CLIENTS);
    collector.reaches("weir_collect_connected", CLIENTS as f64);
    collector.child.kill().unwrap();
    collector.child.wait().unwrap();
    // Strangers who were here first do not keep them out.
    let collector = Collector::start(lake.path(), &["--port", &port]);
    let _silent: Vec<TcpStream> = (0..CLIENTS).map(|_| connected(&collector)).collect();
    let clients = come_at_once(&collector, &token);
    assert_eq!(clients.len(), CLIENTS);
    collector.reaches("weir_collect_connected", CLIENTS as f64);
    assert!(collector.request("GET", "/health", b"").ends_with("well\n"));
}

/// Begins a request whose body does not come.
fn slow_post(collector: &Collector, path: &str) -> TcpStream {
    let mut stream = connected(collector);
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n[").unwrap();
    stream
}

#[test]
fn one_seat_cannot_hold_the_places_of_others() {
    let lake = TempDir::new().unwrap();
    let token = token(lake.path(), "room");
    let collector = Collector::start(lake.path(), &["--max-calls", "4"]);
    let path = |peer: &str| format!("/c/room/7/{peer}?token={token}");
    let mut sockets = vec![collector.connect(&path("anna"))];
    collector.reaches("weir_collect_connected", 1.0);
    for _ in 1..300 {
        sockets.push(collector.connect(&path("anna")));
    }
    assert!(collector.request("GET", "/health", b"").ends_with("well\n"));
    assert_eq!(closed_for(&mut sockets[0]), "replaced");
    let _slow: Vec<TcpStream> = (0..300).map(|_| slow_post(&collector, &path("bert"))).collect();
    assert!(collector.request("GET", "/health", b"").ends_with("well\n"));
    assert_eq!(collector.post(&path("carl"), report(0).to_string().as_bytes()), "204");
    // The newest connection of a seat counts: it may be that of a client that came back.
    send(&mut sockets[299], &report(0));
    collector.reaches("weir_collect_reports_total", 2.0);
}

#[test]
fn health_is_answered_while_all_places_are_held() {
    let lake = TempDir::new().unwrap();
    let token = token(lake.path(), "room");
    let collector = Collector::start(lake.path(), &["--max-calls", "4"]);
    let path = |peer: usize| format!("/c/room/7/{peer}?token={token}");
    let _slow: Vec<TcpStream> = (0..300).map(|it| slow_post(&collector, &path(it))).collect();
    assert_eq!(collector.metric("weir_collect_calls"), 0.0);
    let mut refused = slow_post(&collector, &path(300));
    assert_eq!(status(&mut refused), "503");
    // Public requests do not wait for each other, either.
    let _silent: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = connected(&collector);
            stream
                .write_all(b"POST /health HTTP/1.1\r\ncontent-length: 9\r\nhost: x\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    assert!(collector.request("GET", "/health", b"").ends_with("well\n"));
    assert_eq!(collector.metric("weir_collect_calls"), 0.0);
}

/// An event of a million bytes.
fn large() -> String {
    json!(["ontrack", null, "x".repeat(1_000_000), 1_700_000_000_000_u64]).to_string()
}

#[test]
fn all_connections_of_a_seat_share_its_64_kb_a_second() {
    let lake = TempDir::new().unwrap();
    let path = format!("/c/room/7/anna?token={}", token(lake.path(), "room"));
    let collector = Collector::start(lake.path(), &[]);
    let begun = Instant::now();
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(collector.post(&path, large().as_bytes()));
    }
    assert_eq!((answers[0].as_str(), answers[19].as_str()), ("204", "429"));
    assert!(collector.request("POST", &path, b"[]").contains("retry-after: "));
    for _ in 0..8 {
        let mut socket = collector.connect(&path);
        socket.get_mut().set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        // It waits in the socket.
        let _ = socket.send(Message::text(large()));
    }
    let bytes = collector.metric("weir_collect_bytes_total");
    let allowed = 5.1e6 + 64e3 * begun.elapsed().as_secs_f64();
    assert!(bytes > 4e6 && bytes < allowed, "{bytes} B, {allowed} B are allowed");
}

#[test]
fn a_client_that_only_pings_keeps_its_dump() {
    let lake = TempDir::new().unwrap();
    let path = format!("/c/room/7/anna?token={}", token(lake.path(), "room"));
    let collector = Collector::start(lake.path(), &["--rejoin", "0.1"]);
    let mut socket = collector.connect(&path);
    send(&mut socket, &report(0));
    let room = lake.path().join("dumps/room");
    waits_for(&room.join(".7.anna.rtcstats"), "1700000000000");
    // Nothing was written for an hour, as the clock says. Another dump shows when it was looked at.
    let left = room.join(".7.left.rtcstats");
    fs::write(&left, "RTCStatsDump\n{\"fileFormat\":3}\n").unwrap();
    for name in [".7.anna.rtcstats", ".7.left.rtcstats"] {
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        fs::File::open(room.join(name)).unwrap().set_modified(hour_ago).unwrap();
    }
    let begun = Instant::now();
    while left.exists() {
        assert!(begun.elapsed() < 3 * PATIENCE, "nobody looked");
        socket.send(Message::Ping(Vec::new().into())).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(names(room.clone()), [".7.anna.rtcstats", "7.left.rtcstats"]);
    send(&mut socket, &report(1));
    waits_for(&room.join(".7.anna.rtcstats"), "1700000001000");
    socket.close(None).unwrap();
    let text = waits_for(&room.join("7.anna.rtcstats"), "1700000001000");
    assert!(text.contains("1700000000000"), "{text}");
}

/// Bounds the size of the files that a process writes: a disk that takes a part of a write.
fn bound_files(collector: &Collector, bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = Rlimit { current: bytes, maximum };
    prlimit(Pid::from_raw(collector.child.id() as i32), Resource::Fsize, limit).unwrap();
}

/// The times of a dump's reports. Each line must be whole.
fn seconds_of(dump: &Path) -> Vec<u64> {
    let text = fs::read_to_string(dump).unwrap();
    let mut seconds = Vec::new();
    for line in text.lines().skip(2) {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("cut: {line}"));
        seconds.push((event[3].as_f64().unwrap() / 1e3) as u64 - 1_700_000_000);
    }
    seconds
}

#[test]
fn a_full_disk_is_told_and_no_event_is_lost_cut_or_doubled() {
    let lake = TempDir::new().unwrap();
    let token = token(lake.path(), "room");
    // Without the signal, a write beyond the bound fails as on a full disk.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", WEIR]);
    let collector = Collector::run(command, lake.path(), &[]);
    let path = |peer: &str| format!("/c/room/7/{peer}?token={token}");
    let room = lake.path().join("dumps/room");
    let [posted, streamed] = ["anna", "bert"].map(|it| room.join(format!(".7.{it}.rtcstats")));
    let mut socket = collector.connect(&path("bert"));
    send(&mut socket, &report(0));
    waits_for(&streamed, "1700000000000");
    assert_eq!(collector.post(&path("anna"), report(0).to_string().as_bytes()), "204");
    let size = fs::metadata(&posted).unwrap().len();
    bound_files(&collector, Some(size + 50));
    for _ in 0..3 {
        assert_eq!(collector.post(&path("anna"), report(1).to_string().as_bytes()), "507");
    }
    assert_eq!(fs::metadata(&posted).unwrap().len(), size);
    send(&mut socket, &report(1));
    collector.reaches("weir_collect_write_errors_total", 4.0);
    assert_eq!(collector.metric("weir_collect_refused_total{reason=\"disk\"}"), 3.0);
    send(&mut socket, &report(2));
    collector.reaches("weir_collect_write_errors_total", 5.0);
    bound_files(&collector, None);
    assert_eq!(collector.post(&path("anna"), report(1).to_string().as_bytes()), "204");
    send(&mut socket, &report(3));
    waits_for(&streamed, "1700000003000");
    assert_eq!((seconds_of(&posted), seconds_of(&streamed)), (vec![0, 1], vec![0, 1, 2, 3]));
}

#[test]
fn an_answer_of_the_webhook_leads_nowhere_else() {
    let lake = TempDir::new().unwrap();
    let [hook, inside] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("http://{}/hook", hook.local_addr().unwrap());
    let collector = Collector::start(lake.path(), &["--webhook", &url]);
    let path = format!("/c/room/7/anna?token={}", token(lake.path(), "room"));
    let mut socket = collector.connect(&path);
    let place = inside.local_addr().unwrap();
    // While the reports are sent: the collector waits five seconds for an answer.
    let answering = thread::spawn(move || {
        let (mut told, _) = hook.accept().unwrap();
        let _ = told.read(&mut [0; 4_096]).unwrap();
        // In two parts: the collector hears both.
        told.write_all(b"HTTP/1.1 307 Temporary Redirect\r\n").unwrap();
        thread::sleep(Duration::from_millis(20));
        write!(told, "location: http://{place}/\r\n\r\n").unwrap();
    });
    for second in 0..40 {
        send(&mut socket, &report(second));
    }
    answering.join().unwrap();
    collector.reaches("weir_collect_untold_total", 1.0);
    inside.set_nonblocking(true).unwrap();
    assert!(inside.accept().is_err(), "it went where the answer pointed");
}
