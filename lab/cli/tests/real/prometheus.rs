//! The dashboard of `weir collect` before a real Prometheus, which scrapes a running collector by
//! the configuration of examples/grafana. Needs the program `prometheus`.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn collector(lake: &Path) -> (Running, String) {
    let mut command = Command::new(WEIR);
    command.args(["collect", "--out"]).arg(lake).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    (Running(child), address)
}

/// The events of a dump whose sender was limited by its uplink.
fn events() -> Vec<u8> {
    let file = project().join("lab/analyze/tests/dumps/drop.rtcstats.gz");
    let unpacked = Command::new("gunzip").arg("-c").arg(file).output().unwrap();
    let text = String::from_utf8(unpacked.stdout).unwrap();
    // The first two lines say which format the file has.
    let lines: Vec<&str> = text.lines().skip(2).collect();
    lines.join("\n").into_bytes()
}

/// Sends a request, and returns the body of the answer. `None` if nobody listens.
fn asked(address: &str, head: &str, body: &[u8]) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let fields = format!("host: {address}\r\nconnection: close\r\ncontent-length: {}", body.len());
    let head = format!("{head} HTTP/1.1\r\n{fields}\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// What Prometheus answers to a query: the values of its series.
fn series(prometheus: &str, query: &str) -> Option<Vec<Value>> {
    let mut encoded = String::new();
    for byte in query.bytes() {
        encoded += &format!("%{byte:02X}");
    }
    let text = asked(prometheus, &format!("GET /api/v1/query?query={encoded}"), b"")?;
    // The body may be in chunks, whose lengths stand between braces.
    let json = &text[text.find('{')?..=text.rfind('}')?];
    let answer: Value = serde_json::from_str(json).ok()?;
    assert_eq!(answer["status"], "success", "{query}: {answer}");
    Some(answer["data"]["result"].as_array()?.clone())
}

fn start_prometheus(folder: &Path, collector: &str) -> Option<(Running, String)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let example = fs::read_to_string(project().join("examples/grafana/collect.yml")).unwrap();
    let config = example.replace("127.0.0.1:8090", collector).replace("15s", "1s");
    assert!(config.contains(collector) && config.contains("1s"), "{config}");
    fs::write(folder.join("prometheus.yml"), config).unwrap();
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", folder.join("prometheus.yml").display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address={port}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Some((Running(command.spawn().ok()?), port.to_string()))
}

/// Waits until a query has a series.
fn wait_for(prometheus: &str, query: &str) {
    let begun = Instant::now();
    while series(prometheus, query).is_none_or(|found| found.is_empty()) {
        assert!(begun.elapsed() < PATIENCE, "{query}: nothing came to Prometheus");
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_real_prometheus_answers_every_query_of_the_dashboard() {
    let folder = TempDir::new().unwrap();
    let lake = folder.path().join("lake");
    let (_collector, address) = collector(&lake);
    let Some((_prometheus, prometheus)) = start_prometheus(folder.path(), &address) else {
        println!("skipped: there is no prometheus: apt-get install prometheus");
        return;
    };
    let mut command = Command::new(WEIR);
    command.args(["collect", "--token-for", "room", "--out"]).arg(&lake);
    let token = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let seat = format!("POST /c/room/1/anna?token={}", token.trim());
    asked(&address, &seat, &events()).unwrap();
    // A rate needs two scrapes.
    wait_for(&prometheus, "rate(weir_collect_reports_total[1m])");
    wait_for(&prometheus, "weir_collect_calls_limited{cause=\"uplink_capacity\"} > 0");
    let text = fs::read_to_string(project().join("examples/grafana/collect.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut queries = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let found = series(&prometheus, query).unwrap();
            // Nothing was refused, so this panel is empty.
            let may_be_empty = query.ends_with("> 0") && query.contains("refused");
            assert!(may_be_empty || !found.is_empty(), "{query} has no series");
            queries += 1;
        }
    }
    assert!(queries > 10, "{queries}");
}
