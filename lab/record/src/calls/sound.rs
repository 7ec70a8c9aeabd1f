//! What was measured of the speech that a peer heard, by recordings at both ends.

use serde::{Deserialize, Serialize};

use super::delays::Delays;

/// Name of the file with what was said or heard; `what` is `spoken` or `heard`.
pub fn sound_file(call: usize, from: &str, to: &str, what: &str) -> String {
    format!("{what}-{call}-{from}-{to}.wav")
}

/// The speech of one peer at the ear of another. The delays of each second, concealment and the
/// receiver's target are in the rows of the audio flow, in the columns of simulated speech.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Speech {
    /// Number of the call.
    pub call: usize,
    /// The participant who speaks.
    pub from: String,
    /// The participant who hears it.
    pub to: String,
    /// Places at which sound is missing in the speaker's own recording, so the machine was too
    /// busy. Such a run is disturbed.
    pub gaps: usize,
    /// How much is missing there.
    pub gaps_ms: f64,
    /// From mouth to ear, of each second that has speech; `null` if there is none.
    pub mouth_to_ear_ms: Option<Delays>,
    /// By how much the sound was later at the ear than the picture of the same moment on screen, of
    /// each second that has both; negative if it was earlier. Absent if none has both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind_picture_ms: Option<Delays>,
    /// Seconds whose delay differs by at least 5 ms from that of the second before.
    pub jumps: usize,
    /// The largest of these differences.
    pub largest_jump_ms: f64,
    /// Mean time that sound waited in the receiver's buffer.
    pub buffer_ms: Option<f64>,
    /// The most that was made up between two reports of the browser, which come every 500 ms.
    pub most_concealed_ms: Option<f64>,
    /// Packets with redundant speech that came, and those that were not needed.
    pub fec_packets: Option<u64>,
    /// Of these, the ones that were not needed.
    pub fec_discarded: Option<u64>,
}
