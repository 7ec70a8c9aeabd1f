//! A process of ../encoder.py, and its part of a target.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use anyhow::Context;

use crate::protocol::Settings;
use crate::{Happening, program};

/// Debian's Python, which has the binding of GStreamer.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Payload of a packet of video: packets have at most 1,192 bytes with IP, as libwebrtc's.
pub const PAYLOAD_BYTES: u64 = 1_192 - HEADER_BYTES;
/// IPv4, UDP, RTP with extensions, the descriptor of VP8, and the authentication tag of SRTP.
const HEADER_BYTES: u64 = 20 + 8 + 24 + 3 + 10;

/// The encoder's part of a target, which includes headers. An encoder that had all of it would fill
/// the sender's queue.
pub fn rate(target_bps: u64, frame_rate: u64) -> u64 {
    let frame_bytes = target_bps / 8 / frame_rate;
    let packets = frame_bytes.div_ceil(PAYLOAD_BYTES);
    let headers_bps = 8 * packets * HEADER_BYTES * frame_rate;
    target_bps.saturating_sub(headers_bps).max(target_bps / 2)
}

pub struct Encoder {
    process: Child,
    input: ChildStdin,
    frame_rate: u64,
    /// What a controller of ours left for pictures when it was told last.
    media_bps: u64,
    wants_frame: bool,
}

impl Encoder {
    /// Starts it. Its frames are happenings.
    pub fn start(settings: &Settings, happenings: Sender<Happening>) -> anyhow::Result<Self> {
        let mut process = Command::new(PYTHON)
            .arg(program("encoder.py")?)
            .arg(serde_json::to_string(settings)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context(PYTHON)?;
        let input = process.stdin.take().context("the encoder's input")?;
        let output = process.stdout.take().context("the encoder's output")?;
        thread::spawn(move || read_frames(output, &happenings));
        let (frame_rate, media_bps) = (settings.frame_rate, settings.start_bitrate);
        Ok(Self { process, input, frame_rate, media_bps, wants_frame: true })
    }

    /// Passes on what a controller of ours leaves for pictures, headers included, and whether they
    /// should be made.
    pub fn follow(&mut self, media_bps: u64, wants_frame: bool) {
        if media_bps.abs_diff(self.media_bps) * 50 > self.media_bps {
            self.media_bps = media_bps;
            self.say(&format!("rate {}", rate(media_bps, self.frame_rate)));
        }
        if wants_frame != self.wants_frame {
            self.wants_frame = wants_frame;
            self.say(if wants_frame { "take" } else { "skip" });
        }
    }

    /// Writes a command: `start`, `key`, `skip`, `take`, or `rate` with bit/s.
    pub fn say(&mut self, command: &str) {
        // An encoder that ended says why on standard error.
        let _ = writeln!(self.input, "{command}");
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_frames(mut output: ChildStdout, happenings: &Sender<Happening>) {
    let mut length = [0; 4];
    while output.read_exact(&mut length).is_ok() {
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        if output.read_exact(&mut frame).is_err()
            || happenings.send(Happening::Frame(frame)).is_err()
        {
            return;
        }
    }
}
