//! Differences between getStats and the packet captures, for each stream of a call.

use serde::{Deserialize, Serialize};

use super::compared::StreamDirection;
use super::file::{CallFile, Compared};

/// Counts of a stream by a browser and by the capture at its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamError {
    /// Number of the call.
    pub call: usize,
    /// Participant whose browser counted.
    pub peer: String,
    /// Whether the participant sends the stream or receives it.
    #[serde(rename = "way")]
    pub direction: StreamDirection,
    /// What is counted: `video`, `retransmissions`, `video and retransmissions` or `audio`.
    pub stream: String,
    /// The media section of the session description.
    pub mid: Option<String>,
    /// SSRCs of the counted streams.
    pub ssrcs: Vec<u32>,
    /// Packets by getStats.
    pub reported_packets: u64,
    /// Packets by the capture.
    pub captured_packets: u64,
    /// Payload by getStats minus payload by the capture, relative to the latter. `None` if getStats
    /// does not report it, or if there was no payload.
    pub payload_error_percent: Option<f64>,
    /// Absolute difference of the two rates, summed over the intervals between reports, relative to
    /// the sum of the captured rates. `None` if the capture saw no payload.
    pub interval_error_percent: Option<f64>,
}

/// Differences in all captured calls of a run.
pub(super) fn errors(file: &CallFile) -> Vec<StreamError> {
    let captures = file.captures().iter();
    let compared = captures.flat_map(|it| it.compared.iter().map(move |one| (it.call, one)));
    compared.map(|(call, compared)| error(file, call, compared)).collect()
}

fn percent(apart: f64, of: f64) -> Option<f64> {
    if of > 0.0 { Some(100.0 * apart / of) } else { None }
}

/// How far getStats and the capture are apart for a stream of a call.
pub fn error(file: &CallFile, call: usize, compared: &Compared) -> StreamError {
    let Compared { reported_bps, captured_bps, .. } = compared;
    let apart =
        reported_bps.iter().zip(captured_bps).map(|(reported, seen)| reported.abs_diff(*seen));
    let payload = compared.reported_payload_bytes.zip(compared.captured_payload_bytes);
    StreamError {
        call,
        peer: file
            .end(call, &compared.peer)
            .map(|peer| peer.participant.clone())
            .unwrap_or_default(),
        direction: compared.direction,
        stream: compared.stream.clone(),
        mid: compared.mid.clone(),
        ssrcs: compared.ssrcs.clone(),
        reported_packets: compared.reported_packets,
        captured_packets: compared.captured_packets,
        payload_error_percent: payload
            .and_then(|(reported, seen)| percent(reported as f64 - seen as f64, seen as f64)),
        interval_error_percent: percent(
            apart.sum::<u64>() as f64,
            captured_bps.iter().sum::<u64>() as f64,
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(compared: serde_json::Value) -> StreamError {
        let value = json!({
            "disturbed": false,
            "peers": [{ "call": 2, "participant": "a1" }, { "call": 2, "participant": "b1" }],
            "captures": [{ "call": 2, "compared": [compared] }],
        });
        errors(&serde_json::from_value(value).unwrap()).remove(0)
    }

    #[test]
    fn an_error_is_over_the_whole_call_and_over_each_interval() {
        let error = of(json!({
            "peer": "b", "way": "received", "stream": "video", "mid": "1", "ssrcs": [7],
            "reported_packets": 30, "captured_packets": 31,
            "reported_payload_bytes": 30_300, "captured_payload_bytes": 30_000,
            "time_s": [0.5, 1.0], "reported_bps": [105, 195], "captured_bps": [120, 180],
        }));
        assert_eq!(
            (error.call, error.peer.as_str(), error.direction),
            (2, "b1", StreamDirection::Received)
        );
        assert_eq!((error.reported_packets, error.captured_packets), (30, 31));
        assert_eq!(error.payload_error_percent, Some(1.0));
        assert_eq!(error.interval_error_percent, Some(10.0));
    }

    #[test]
    fn a_stream_without_payload_has_no_error_of_it() {
        let error = of(json!({ "peer": "a", "reported_payload_bytes": 0,
            "captured_payload_bytes": 0, "reported_bps": [0], "captured_bps": [0] }));
        assert_eq!((error.payload_error_percent, error.interval_error_percent), (None, None));
        assert_eq!(of(json!({ "peer": "a" })).payload_error_percent, None);
    }
}
