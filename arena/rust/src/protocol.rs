//! The lines of JSON between the lab and a driver.

use std::io;
use std::sync::LazyLock;
use std::sync::mpsc::Sender;
use std::time::Instant;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Happening;

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

#[derive(Deserialize)]
pub struct OneCall {
    pub call: u64,
    pub settings: End,
}

/// The end of a call that the driver is.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum End {
    Receiver(ReceiverSettings),
    Sender(Settings),
}

/// How to receive.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverSettings {
    #[serde(rename = "role")]
    _role: Receiving,
    pub width: u32,
    pub height: u32,
    /// How often the lab wants statistics, in ms.
    pub stats_interval: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Receiving {
    Receiver,
}

/// What to send. Bitrates are in bit/s.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    pub min_bitrate: u64,
    pub start_bitrate: u64,
    pub max_bitrate: u64,
    pub camera: Option<String>,
    pub width: u32,
    pub height: u32,
    pub frame_rate: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Message {
    Config,
    Start,
    Offer {
        sdp: String,
    },
    Answer {
        sdp: String,
    },
    Candidate {
        candidate: CandidateInit,
    },
    Stop,
    Refused,
    #[serde(other)]
    Other,
}

/// `RTCIceCandidateInit`
#[derive(Deserialize)]
pub struct CandidateInit {
    pub candidate: String,
}

/// Reads the first line, which has one call.
pub fn read_first_line() -> anyhow::Result<OneCall> {
    #[derive(Deserialize)]
    struct FirstLine {
        calls: Vec<OneCall>,
    }
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let FirstLine { calls } = serde_json::from_str(&line)?;
    let calls = <[OneCall; 1]>::try_from(calls);
    let [one] = calls.ok().context("it has not one call")?;
    Ok(one)
}

/// The message of a line.
pub fn message(line: &str) -> anyhow::Result<Message> {
    #[derive(Deserialize)]
    struct Line {
        message: Message,
    }
    Ok(serde_json::from_str::<Line>(line)?.message)
}

/// Passes the lab's lines on.
pub fn read_lines(happenings: &Sender<Happening>) {
    for line in io::stdin().lines().map_while(Result::ok) {
        if happenings.send(Happening::Line(line)).is_err() {
            return;
        }
    }
    let _ = happenings.send(Happening::End);
}

/// Writes to the lab.
pub struct Reporter {
    call: u64,
    /// Times of the set-up, in ms since the driver began.
    setup: Map<String, Value>,
}

impl Reporter {
    pub fn new(call: u64) -> Self {
        LazyLock::force(&STARTED);
        Self { call, setup: Map::new() }
    }

    /// Notes a step of the set-up.
    pub fn mark(&mut self, step: &str) {
        self.setup.insert(step.to_owned(), json!(since_start()));
    }

    pub fn ready(&self) {
        self.tell(json!({"type": "ready"}));
    }

    pub fn offer(&self, sdp: &str) {
        self.tell(json!({"type": "offer", "sdp": sdp}));
    }

    pub fn answer(&self, sdp: &str) {
        self.tell(json!({"type": "answer", "sdp": sdp}));
    }

    /// The first picture is there.
    pub fn playing(&self) {
        self.tell(json!({"type": "playing", "firstFrame": since_start()}));
    }

    /// What a receiver counted, without the time.
    pub fn inbound(&self, mut counted: Value) {
        counted["timestamp"] = json!(since_start());
        self.tell(json!({"type": "stats", "report": {"inbound": counted}}));
    }

    pub fn connected(&self) {
        self.tell(json!({"type": "connected", "setup": self.setup}));
    }

    pub fn left(&self) {
        println!("{}", json!({"call": self.call, "left": {}}));
    }

    pub fn target(&self, from_bps: u64, target_bps: u64) {
        let now = clock_gettime(ClockId::Monotonic);
        let target = json!({
            "timeNs": now.tv_sec * 1_000_000_000 + now.tv_nsec,
            "fromBps": from_bps,
            "targetBps": target_bps,
            "reason": "told by the stack",
            "state": "unknown",
            "signals": {},
        });
        println!("{}", json!({"call": self.call, "target": target}));
    }

    fn tell(&self, message: Value) {
        println!("{}", json!({"call": self.call, "message": message}));
    }
}

/// Time since the driver began, in ms.
fn since_start() -> f64 {
    STARTED.elapsed().as_secs_f64() * 1e3
}

/// Tells the lab why the call cannot go on.
pub fn fail(call: u64, cause: &str) {
    println!("{}", json!({"call": call, "message": {"type": "failed", "cause": cause}}));
}
