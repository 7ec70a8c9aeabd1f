//! What limited an analyzed call, as `call.json` has it.

use serde::{Deserialize, Serialize};

/// What limited a stream of an analyzed call for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The stream, such as `6-1 video sent 1391274783`, or the connection, such as `6-1`.
    pub stream: String,
    /// What limited it: `connection`, `network`, `controller`, `encoder`, `processor` or
    /// `application`. `video` and `audio` are effects: what was seen and heard.
    pub part: String,
    /// The rule that found it.
    pub rule: String,
    /// Begin, in s since the first report.
    pub from_s: f64,
    /// End, in s since the first report.
    pub to_s: f64,
    /// The sentence for people.
    pub says: String,
    /// The samples that it rests on.
    pub samples: Vec<FindingSample>,
}

/// A sample that a finding rests on: the time between two reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FindingSample {
    /// Its end, in s since the first report.
    pub time_s: f64,
    /// IP packets of the stream, in kbit/s.
    pub rate_kbps: f64,
    /// Target of the encoder.
    pub target_kbps: Option<f64>,
    /// The browser's estimate of what the path carries.
    pub estimate_kbps: Option<f64>,
    /// Round-trip time.
    pub rtt_ms: Option<f64>,
    /// Lost packets.
    pub loss_ratio: Option<f64>,
    /// Frames encoded or decoded a second.
    pub frame_rate: Option<f64>,
}
