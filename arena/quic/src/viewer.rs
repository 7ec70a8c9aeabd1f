//! Who watches: the newest group's frames, in order.

use std::time::{Duration, Instant};

use arena_driver::decoder::Decoder;
use arena_driver::inbound::Freezes;
use arena_driver::protocol::{ReceiverSettings, Reporter};
use serde_json::json;

/// What the connection has received.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    pub datagrams: u64,
    /// Payload of UDP.
    pub bytes: u64,
}

pub struct Viewer {
    interval: Duration,
    next_stats: Instant,
    group: u64,
    frames: u64,
    freezes: Freezes,
    /// Tells the lab which frames of the camera are there, if it asks.
    decoder: Option<Decoder>,
}

impl Viewer {
    pub fn new(settings: &ReceiverSettings) -> anyhow::Result<Self> {
        let interval = Duration::from_millis(settings.stats_interval);
        Ok(Self {
            interval,
            next_stats: Instant::now() + interval,
            group: 0,
            frames: 0,
            freezes: Freezes::default(),
            decoder: Decoder::start(settings)?,
        })
    }

    /// When the lab wants to be told again.
    pub fn next_stats(&self) -> Instant {
        self.next_stats
    }

    /// A frame is whole. It can be shown unless a newer group has been shown: a group's frames
    /// come in order, and its first one depends on no other.
    pub fn on_frame(&mut self, reporter: &Reporter, group: u64, frame: &[u8]) {
        if group < self.group {
            return;
        }
        self.group = group;
        self.frames += 1;
        if self.frames == 1 {
            reporter.playing();
        }
        self.freezes.add(Instant::now());
        if let Some(decoder) = &mut self.decoder {
            decoder.decode(frame);
        }
    }

    /// Tells the lab. A receiver of QUIC does not know what was lost on the way.
    pub fn tell(&mut self, reporter: &Reporter, counted: Counted) {
        let now = Instant::now();
        while self.next_stats <= now {
            self.next_stats += self.interval;
        }
        reporter.inbound(json!({
            "packetsReceived": counted.datagrams,
            "packetsLost": 0,
            "bytesReceived": counted.bytes,
            "headerBytesReceived": 0,
            "framesReceived": self.frames,
            "freezeCount": self.freezes.count,
            "totalFreezesDuration": self.freezes.total.as_secs_f64(),
        }));
    }
}
