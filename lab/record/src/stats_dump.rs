//! A simulated run as an rtcstats dump of the browser at host A, labelled as simulated.
//!
//! It has what a browser there would know of the video, a report a second: sent streams with what
//! receivers report of them, received ones, and the candidate pair. Audio, TCP and UDP are not in
//! it, as they would be other programs' traffic. The simulator has no encoder that skips frames
//! outside of the source `encoder`; of that one, frames a second are left out.

use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value, json};
use weir::units::{TimeDelta, Timestamp};
use weir_controllers::LabController;
use weir_net::Seed;
use weir_scenario::{Scenario, Traffic};
use weir_sim::trace::{Row, Trace};
use weir_sim::{Direction, Source};

use crate::run::RunInfo;

/// Time of the first report in ms since 1970: the first moment of 2026. Runs have no date.
const ZERO_MS: f64 = 1_767_225_600_000.0;
/// Between two reports.
const INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// IPv4, UDP and RTP headers of a packet.
const IP_UDP_BYTES: u64 = 28;
const RTP_BYTES: u64 = 12;
/// SSRC of the first flow.
const FIRST_SSRC: usize = 1000;

/// Simulates a run, and returns its dump. `None` if `stop` was set.
pub fn stats_dump(
    scenario: &Scenario,
    controller: &LabController,
    seed: u64,
    stop: &AtomicBool,
) -> Option<String> {
    let info = RunInfo::simulated(scenario, controller, seed);
    let mut dump = StatsDump::new(scenario, &info);
    let config = scenario.sim_config(controller);
    let Ok(is_whole) = weir_sim::run_in_parts(&config, Seed::new(seed), stop, |part| {
        dump.take(part);
        Ok::<(), std::convert::Infallible>(())
    });
    if is_whole { Some(dump.finish()) } else { None }
}

/// The counters of one video.
struct Counted {
    flow: usize,
    is_sent: bool,
    /// Frames a second that the source gives; `None` if its encoder may skip some.
    fps: Option<f64>,
    sent: u64,
    received: u64,
    sent_packets: u64,
    lost_packets: u64,
    /// Frames that were shown; `None` of a receiver that plays none.
    frames: Option<u64>,
    freezes: u64,
    frozen_s: f64,
    target_bps: Option<u64>,
    /// Feedback response time of the latest feedback.
    rtt_s: Option<f64>,
    rtts: u64,
}

struct StatsDump {
    text: String,
    videos: Vec<Counted>,
    next: Timestamp,
}

impl StatsDump {
    fn new(scenario: &Scenario, info: &RunInfo) -> Self {
        let mut videos = Vec::new();
        for (flow, described) in scenario.flows.iter().enumerate() {
            let Traffic::Media(media) = &described.traffic else { continue };
            let fps = match &media.source {
                Source::Filler { fps, .. } | Source::Rfc8593 { fps, .. } => Some(*fps),
                Source::Encoder { .. } => None,
            };
            videos.push(Counted::new(flow, described.direction == Direction::Up, fps));
        }
        let about = json!({
            "simulated": true,
            "userAgent": format!("weir (simulated) {}", env!("CARGO_PKG_VERSION")),
            "scenario": info.scenario,
            "controller": info.subject.to_string(),
            "seed": info.seed,
        });
        let mut dump = Self { text: String::new(), videos, next: Timestamp::ZERO + INTERVAL };
        dump.text.push_str("RTCStatsDump\n{\"fileFormat\":3}\n");
        dump.line(&json!(["create", "sim-1", about, ZERO_MS]));
        dump.report(Timestamp::ZERO);
        dump
    }

    fn take(&mut self, part: &Trace) {
        for row in &part.rows {
            self.add(row);
        }
    }

    fn add(&mut self, row: &Row) {
        if row.time > self.next {
            self.report(self.next);
            self.next += INTERVAL;
        }
        for video in self.videos.iter_mut().filter(|video| video.flow == row.flow) {
            video.add(row);
        }
    }

    fn report(&mut self, time: Timestamp) {
        let now_ms = ZERO_MS + time.as_secs_f64() * 1e3;
        let mut objects = Map::new();
        let mut target_bps = None;
        let (mut rtt_s, mut rtts): (Option<f64>, u64) = (None, 0);
        let (mut sent, mut received) = (0, 0);
        for video in &self.videos {
            video.report(now_ms, &mut objects);
            (sent, received) = (sent + video.sent, received + video.received);
            rtts += video.rtts;
            // Checks of the connection from either end take the same round trip.
            rtt_s = rtt_s.or(video.rtt_s);
            if video.is_sent {
                target_bps = Some(target_bps.unwrap_or(0) + video.target_bps.unwrap_or(0));
            }
        }
        let pair = json!({
            "type": "candidate-pair", "id": "pair", "timestamp": now_ms, "state": "succeeded",
            "nominated": true, "localCandidateId": "local", "remoteCandidateId": "remote",
            "bytesSent": sent, "bytesReceived": received, "currentRoundTripTime": rtt_s,
            "responsesReceived": rtts, "availableOutgoingBitrate": target_bps,
        });
        objects.insert("pair".into(), pair);
        for end in ["local", "remote"] {
            let candidate = json!({
                "type": format!("{end}-candidate"), "timestamp": now_ms, "protocol": "udp",
                "candidateType": "host",
            });
            objects.insert(end.into(), candidate);
        }
        self.line(&json!(["getStats", "sim-1", objects, now_ms]));
    }

    fn line(&mut self, value: &Value) {
        self.text.push_str(&value.to_string());
        self.text.push('\n');
    }

    fn finish(mut self) -> String {
        self.report(self.next);
        self.text
    }
}

impl Counted {
    fn new(flow: usize, is_sent: bool, fps: Option<f64>) -> Self {
        Self {
            flow,
            is_sent,
            fps,
            sent: 0,
            received: 0,
            sent_packets: 0,
            lost_packets: 0,
            frames: None,
            freezes: 0,
            frozen_s: 0.0,
            target_bps: None,
            rtt_s: None,
            rtts: 0,
        }
    }

    fn add(&mut self, row: &Row) {
        self.sent += row.sent.as_bytes();
        self.received += row.received.as_bytes();
        self.sent_packets += row.sent_packets;
        self.lost_packets += row.lost_packets;
        if let Some(video) = &row.video {
            *self.frames.get_or_insert(0) += video.frames;
            self.freezes += video.freezes;
            self.frozen_s += video.frozen.as_secs_f64();
        }
        self.target_bps = row.target.map(|it| it.as_bps()).or(self.target_bps);
        if let Some(rtt) = row.rtt {
            self.rtt_s = Some(rtt.as_secs_f64());
            self.rtts += 1;
        }
    }

    fn report(&self, now_ms: f64, objects: &mut Map<String, Value>) {
        let ssrc = FIRST_SSRC + self.flow;
        if !self.is_sent {
            let packets = self.sent_packets.saturating_sub(self.lost_packets);
            let inbound = json!({
                "type": "inbound-rtp", "kind": "video", "ssrc": ssrc, "timestamp": now_ms,
                "packetsReceived": packets, "packetsLost": self.lost_packets,
                "bytesReceived": payload(self.received, packets),
                "headerBytesReceived": packets * RTP_BYTES, "framesDecoded": self.frames,
                "freezeCount": self.freezes, "totalFreezesDuration": self.frozen_s,
            });
            objects.insert(format!("in-{ssrc}"), inbound);
            return;
        }
        let frames = self.fps.map(|fps| (fps * (now_ms - ZERO_MS) / 1e3) as u64);
        let outbound = json!({
            "type": "outbound-rtp", "kind": "video", "ssrc": ssrc, "timestamp": now_ms,
            "packetsSent": self.sent_packets, "bytesSent": payload(self.sent, self.sent_packets),
            "headerBytesSent": self.sent_packets * RTP_BYTES, "targetBitrate": self.target_bps,
            "framesPerSecond": self.fps, "framesEncoded": frames,
            "mediaSourceId": format!("source-{ssrc}"),
            "remoteId": format!("remote-{ssrc}"), "active": true,
        });
        objects.insert(format!("out-{ssrc}"), outbound);
        let source = json!({
            "type": "media-source", "kind": "video", "timestamp": now_ms,
            "framesPerSecond": self.fps,
        });
        objects.insert(format!("source-{ssrc}"), source);
        let remote = json!({
            "type": "remote-inbound-rtp", "kind": "video", "ssrc": ssrc, "timestamp": now_ms,
            "packetsLost": self.lost_packets, "roundTripTime": self.rtt_s,
            "roundTripTimeMeasurements": self.rtts,
        });
        objects.insert(format!("remote-{ssrc}"), remote);
    }
}

fn payload(ip_bytes: u64, packets: u64) -> u64 {
    ip_bytes.saturating_sub(packets * (IP_UDP_BYTES + RTP_BYTES))
}

#[cfg(test)]
mod tests {
    use weir_controllers::LabAlgorithm;

    use super::*;
    use weir_scenario::catalogue;

    #[test]
    fn a_dump_has_a_report_a_second_and_says_that_it_is_simulated() {
        let scenario = &catalogue::find("demo/first-call").unwrap()[0];
        let gcc = LabController::from(LabAlgorithm::Gcc);
        let dump = stats_dump(scenario, &gcc, 1, &AtomicBool::new(false)).unwrap();
        let lines: Vec<&str> = dump.lines().collect();
        assert_eq!(lines[0], "RTCStatsDump");
        assert!(lines[2].contains("\"simulated\":true"));
        let reports = lines.iter().filter(|line| line.starts_with("[\"getStats\"")).count();
        assert_eq!(reports as f64, scenario.duration.as_secs_f64() + 1.0);
    }

    #[test]
    fn a_receiver_that_plays_nothing_counts_no_frames() {
        let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"2s\"\n\
                    [network.down]\ncapacity = \"2Mbps\"\n\
                    [media]\nsource = { kind = \"filler\", fps = 15 }\n\
                    [[flow]]\ndirection = \"down\"\n";
        let scenario = weir_scenario::parse("t", text, None).unwrap();
        let gcc = LabController::from(LabAlgorithm::Gcc);
        let dump = stats_dump(&scenario, &gcc, 1, &AtomicBool::new(false)).unwrap();
        assert!(dump.contains("\"framesDecoded\":null") && !dump.contains("framesDecoded\":0"));
    }
}
