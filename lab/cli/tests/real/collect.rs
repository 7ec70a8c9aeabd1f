//! The small client of `weir collect` in a real browser: two connections of one page call each
//! other. Needs Chromium.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const PATIENCE: Duration = Duration::from_secs(60);
const CHROMIUM: [&str; 5] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-dev-shm-usage",
];

/// A page with a call between two connections of its own: a moving picture from one to the other.
const PAGE: &str = r#"<!doctype html><title>call</title>
<canvas id="c" width="320" height="240"></canvas>
<video id="v" autoplay muted></video><script type="module">
import { collect } from "http://COLLECTOR/client.js";
const canvas = document.getElementById("c");
const pen = canvas.getContext("2d");
let x = 0;
setInterval(() => {
  pen.fillStyle = `hsl(${x % 360},90%,50%)`;
  pen.fillRect((x += 7) % 320, (x * 3) % 240, 40, 40);
}, 33);
const [a, b] = [new RTCPeerConnection(), new RTCPeerConnection()];
collect("ws://COLLECTOR/c/room/1/a?token=TOKEN", a);
collect("ws://COLLECTOR/c/room/1/b?token=TOKEN", b);
a.onicecandidate = (event) => b.addIceCandidate(event.candidate);
b.onicecandidate = (event) => a.addIceCandidate(event.candidate);
b.ontrack = (event) => { document.getElementById("v").srcObject = event.streams[0]; };
const stream = canvas.captureStream(30);
stream.getTracks().forEach((track) => a.addTrack(track, stream));
await a.setLocalDescription();
await b.setRemoteDescription(a.localDescription);
await b.setLocalDescription();
await a.setRemoteDescription(b.localDescription);
</script>"#;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves one page to whoever asks.
fn serve(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}{page}").as_bytes());
        }
    });
    address
}

fn metrics(collector: &str) -> String {
    let mut stream = TcpStream::connect(collector).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

fn start(lake: &Path) -> (Running, String) {
    let mut command = Command::new(WEIR);
    command.args(["collect", "--rejoin", "1", "--out"]).arg(lake).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    (Running(child), address)
}

#[test]
fn a_browser_reports_its_call_without_addresses_and_weir_reads_the_dumps() {
    let browser = std::env::var("WEIR_BROWSER").unwrap_or_else(|_| "chromium".into());
    if Command::new(&browser).arg("--version").output().is_err() {
        println!("skipped: there is no {browser}");
        return;
    }
    let folder = TempDir::new().unwrap();
    let lake = folder.path().join("lake");
    let (_collector, address) = start(&lake);
    let mut command = Command::new(WEIR);
    command.args(["collect", "--token-for", "room", "--out"]).arg(&lake);
    let token = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let page = PAGE.replace("COLLECTOR", &address).replace("TOKEN", token.trim());
    let page = serve(page);
    let mut command = Command::new(&browser);
    command.args(CHROMIUM).arg(format!("--user-data-dir={}/profile", folder.path().display()));
    command.arg(format!("http://{page}/")).env("HOME", folder.path());
    let chromium = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let begun = Instant::now();
    while value(&metrics(&address), "weir_collect_reports_total") < 16.0 {
        assert!(begun.elapsed() < PATIENCE, "{}", metrics(&address));
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(value(&metrics(&address), "weir_collect_connected"), 2.0);
    drop(chromium);
    for (peer, direction) in [("a", "outbound-rtp"), ("b", "inbound-rtp")] {
        let dump = lake.join(format!("dumps/room/1.{peer}.rtcstats"));
        let begun = Instant::now();
        while !dump.exists() || fs::metadata(&dump).unwrap().len() == 0 {
            assert!(begun.elapsed() < PATIENCE, "no {}", dump.display());
            std::thread::sleep(Duration::from_millis(200));
        }
        let text = fs::read_to_string(&dump).unwrap();
        assert!(text.contains(direction) && text.contains("\"userAgent\""), "{peer}");
        for named in ["\"address\"", "\"ip\"", "127.0.0.1", "192.168.", "certificate\"", ".local"] {
            assert!(!text.contains(named), "{peer} has {named}");
        }
        let output = Command::new(WEIR).arg("analyze").arg(&dump).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
