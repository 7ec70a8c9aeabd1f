//! A `weir collect` of a test, and its clients.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

pub const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// A test waits so long for what must come.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A collector that ends with the test.
pub struct Collector {
    pub child: Child,
    pub address: String,
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collector {
    pub fn start(lake: &Path, options: &[&str]) -> Self {
        Self::run(Command::new(WEIR), lake, options)
    }

    /// As `start`, by a command that may run the program itself.
    pub fn run(mut command: Command, lake: &Path, options: &[&str]) -> Self {
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

    pub fn connect(&self, path: &str) -> WebSocket<TcpStream> {
        self.offered(path, "rtcstats#5.0").unwrap()
    }

    pub fn offered(
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
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> String {
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

    pub fn post(&self, path: &str, body: &[u8]) -> String {
        let answer = self.request("POST", path, body);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// The value of a metric with its labels.
    pub fn metric(&self, name: &str) -> f64 {
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
    pub fn reaches(&self, name: &str, value: f64) {
        let begun = Instant::now();
        while self.metric(name) < value {
            assert!(begun.elapsed() < PATIENCE, "{name} is {}", self.metric(name));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

pub fn token(lake: &Path, room: &str) -> String {
    let mut command = Command::new(WEIR);
    let output = command.arg("collect").arg("--out").arg(lake).args(["--token-for", room]).output();
    String::from_utf8(output.unwrap().stdout).unwrap().trim().into()
}

/// An event of a call that sends a video: a full path from 20 s on.
pub fn report(second: u64) -> Value {
    let time = 1_700_000_000_000.0 + second as f64 * 1e3;
    let rtt = if second < 20 { 0.04 } else { 0.4 };
    json!(["getStats", "0", {
        "o": { "type": "outbound-rtp", "kind": "video", "ssrc": 7, "timestamp": time,
               "remoteId": "r", "packetsSent": second * 100, "bytesSent": second * 100_000 },
        "r": { "type": "remote-inbound-rtp", "timestamp": time, "roundTripTime": rtt,
               "roundTripTimeMeasurements": second, "packetsLost": 0 },
    }, time])
}

pub fn send(socket: &mut WebSocket<TcpStream>, event: &Value) {
    socket.send(Message::text(event.to_string())).unwrap();
}

pub fn names(folder: PathBuf) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    names.sort();
    names
}

/// Waits until a file has a text, and returns it.
pub fn waits_for(path: &Path, text: &str) -> String {
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
pub fn closed_for(socket: &mut WebSocket<TcpStream>) -> String {
    loop {
        match socket.read() {
            Ok(Message::Close(Some(frame))) => return frame.reason.to_string(),
            Ok(_) => {}
            Err(error) => return format!("no reason: {error}"),
        }
    }
}
