//! What limits a call, found in the page that makes it: the rules of `weir analyze` over the
//! reports of `getStats`, as WebAssembly.
//!
//! `watch.js` beside this crate is the other side: it passes each report as an event of rtcstats,
//! and gets the findings as JSON.

mod border;

use serde_json::{Map, Value, json};
use weir_analyze::{LiveCall, LiveFinding};

/// A call that is watched.
pub struct Watch(LiveCall);

impl Watch {
    /// A call of which the reports of the last `window_s` seconds count.
    pub fn new(window_s: f64) -> Self {
        Self(LiveCall::new(window_s))
    }

    /// Takes an event as rtcstats writes it, and answers with what limits the call: a JSON object
    /// with the array `findings`, or with `error` if the event cannot be read.
    pub fn take(&mut self, event: &[u8]) -> String {
        let answer = match self.0.take(event) {
            Ok(_) => {
                let mut findings = Vec::new();
                for finding in self.0.findings() {
                    findings.push(as_json(&finding));
                }
                json!({ "duration_s": self.0.duration_s(), "findings": findings })
            }
            Err(what) => json!({ "error": what }),
        };
        answer.to_string()
    }
}

fn as_json(finding: &LiveFinding) -> Value {
    let mut object = Map::new();
    object.insert("cause".into(), finding.cause.name().into());
    object.insert("rule".into(), finding.rule.as_str().into());
    object.insert("part".into(), finding.part.as_str().into());
    object.insert("says".into(), finding.says.as_str().into());
    object.insert("from_s".into(), finding.from_s.into());
    object.insert("to_s".into(), finding.to_s.into());
    object.insert("holds".into(), finding.holds.into());
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of a call that sends one video, whose round trips take 40 ms, and 540 ms from the
    /// tenth second on, while the rate stands at 400 kbit/s.
    fn report(second: u64) -> String {
        let time = 1_700_000_000_000 + second * 1000;
        let rtt_s = if second < 10 { 0.04 } else { 0.54 };
        json!(["getStats", "0", {
            "video": {
                "type": "outbound-rtp", "kind": "video", "ssrc": 7, "timestamp": time,
                "packetsSent": second * 50, "bytesSent": second * 50_000, "remoteId": "remote",
            },
            "remote": {
                "type": "remote-inbound-rtp", "timestamp": time, "packetsLost": 0,
                "roundTripTime": rtt_s, "roundTripTimeMeasurements": second,
            },
        }, time])
        .to_string()
    }

    fn causes(answer: &str) -> Vec<String> {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let mut causes = Vec::new();
        for finding in answer["findings"].as_array().unwrap() {
            if finding["holds"] == true {
                causes.push(finding["cause"].as_str().unwrap().to_owned());
            }
        }
        causes
    }

    #[test]
    fn a_queue_on_the_way_up_is_said_within_three_reports() {
        let mut watch = Watch::new(60.0);
        for second in 0..10 {
            assert!(causes(&watch.take(report(second).as_bytes())).is_empty(), "{second}");
        }
        let mut said = Vec::new();
        for second in 10..14 {
            said = causes(&watch.take(report(second).as_bytes()));
        }
        assert_eq!(said, ["uplink_capacity"]);
    }

    #[test]
    fn what_is_no_event_is_an_error_and_the_call_goes_on() {
        let mut watch = Watch::new(60.0);
        watch.take(report(0).as_bytes());
        let answer: Value = serde_json::from_str(&watch.take(b"[\"getStats\"")).unwrap();
        assert!(answer["error"].is_string(), "{answer}");
        let answer: Value = serde_json::from_str(&watch.take(report(1).as_bytes())).unwrap();
        assert_eq!(answer["duration_s"], 1.0);
    }
}
