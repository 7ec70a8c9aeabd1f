//! What a forwarding server sent to each subscriber over one run, and what it decided with which
//! reason.

use std::collections::BTreeMap;
use std::ops::Range;

use weir::units::Timestamp;
use weir_record::{Reader, RecordError};
use weir_scenario::{ServerPlan, Traffic};
use weir_sim::TrackKind;
use weir_sim::trace::{DecisionKind, LayerDecision};

use super::server_format::{ForwardedLane, ForwardedSpan, Forwarding, LayerChoice};
use super::{Column, rounded};

/// Most lanes, which are subscribers times tracks.
const LANES_MAX: usize = 60;
/// Most spans of a lane. A picture has no room for more.
const SPANS_MAX: usize = 400;
/// Most decisions in the table.
const CHOICES_MAX: usize = 600;

/// Collects what is drawn of a run.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// Place of a lane, by subscriber and publisher.
    places: BTreeMap<(String, u64), usize>,
    choices: Vec<LayerChoice>,
    is_cut: bool,
}

struct Lane {
    flow: String,
    publisher: String,
    /// While both are in the meeting.
    there: Range<Timestamp>,
    spans: Vec<ForwardedSpan>,
    /// Since when which layer is sent, and why.
    open: Option<(Timestamp, Option<u64>, String)>,
    /// Why the layer that was chosen last was chosen.
    reason: String,
}

impl Lanes {
    /// Reads a record; `None` if it is of no forwarding server.
    pub(super) fn read(record: &Reader) -> Result<Option<Self>, RecordError> {
        let Some(server) = &record.scenario.server else { return Ok(None) };
        let mut lanes =
            Self { lanes: Vec::new(), places: BTreeMap::new(), choices: Vec::new(), is_cut: false };
        lanes.open(record, server);
        record.decisions(|decision| lanes.push(&decision))?;
        for lane in &mut lanes.lanes {
            lane.switch(lane.there.end, None, "");
        }
        Ok(Some(lanes))
    }

    /// Makes a lane for each picture that a subscriber watches.
    fn open(&mut self, record: &Reader, server: &ServerPlan) {
        let end = Timestamp::ZERO + record.scenario.duration;
        for flow in &record.scenario.flows {
            let Traffic::Media(media) = &flow.traffic else { continue };
            for &watched in &media.watches {
                let publisher = &server.publishers[watched];
                if publisher.kind == TrackKind::Audio {
                    continue;
                }
                if self.lanes.len() == LANES_MAX {
                    self.is_cut = true;
                    return;
                }
                let start = publisher.time.start.max(flow.start);
                let stop = publisher.time.end.min(flow.stop).min(end);
                self.places.insert((flow.name.clone(), watched as u64 + 1), self.lanes.len());
                self.lanes.push(Lane {
                    flow: flow.name.clone(),
                    publisher: publisher.name.clone(),
                    there: start..stop.max(start),
                    spans: Vec::new(),
                    open: Some((start, None, String::new())),
                    reason: String::new(),
                });
            }
        }
    }

    fn push(&mut self, decision: &LayerDecision) {
        let key = (decision.flow.clone(), decision.track.unwrap_or(0));
        let Some(lane) = self.places.get(&key).map(|&place| &mut self.lanes[place]) else { return };
        match decision.kind {
            DecisionKind::Chosen => {
                lane.reason = decision.reason.to_string();
                if decision.to.is_none() {
                    lane.switch(decision.time, None, &decision.reason);
                }
            }
            DecisionKind::Switched => {
                let reason = lane.reason.clone();
                lane.switch(decision.time, decision.to, &reason);
            }
            DecisionKind::Cut => lane.switch(decision.time, None, &decision.reason),
            _ => return,
        }
        if self.choices.len() == CHOICES_MAX {
            self.is_cut = true;
            return;
        }
        self.choices.push(LayerChoice {
            time_s: rounded(decision.time.as_secs_f64(), 3),
            flow: decision.flow.clone(),
            publisher: lane.publisher.clone(),
            decision: decision.kind.as_str().into(),
            from: decision.from,
            to: decision.to,
            reason: decision.reason.to_string(),
            budget_kbps: rounded(decision.budget.as_bps() as f64 / 1e3, 0),
            needed_kbps: rounded(decision.needed.as_bps() as f64 / 1e3, 0),
        });
    }
}

impl Lane {
    /// From now on this layer is sent.
    fn switch(&mut self, now: Timestamp, layer: Option<u64>, reason: &str) {
        let next = (now, layer, reason.to_owned());
        let Some((from, sent, why)) = self.open.replace(next) else { return };
        let (start, end) = (from.max(self.there.start), now.min(self.there.end));
        if end > start && self.spans.len() < SPANS_MAX {
            self.spans.push(ForwardedSpan {
                from_s: rounded(start.as_secs_f64(), 3),
                to_s: rounded(end.as_secs_f64(), 3),
                layer: sent,
                reason: why,
            });
        }
    }
}

/// The picture of the first run with a server.
pub(super) fn of(columns: &[Column<'_>]) -> Option<Forwarding> {
    let mut runs = columns.iter().flat_map(|column| column.runs);
    let (run, lanes) = runs.find_map(|run| Some((run, run.lanes.as_ref()?)))?;
    let mut shown = Vec::new();
    for lane in &lanes.lanes {
        shown.push(ForwardedLane {
            flow: lane.flow.clone(),
            publisher: lane.publisher.clone(),
            spans: lane.spans.clone(),
        });
    }
    let scenario = &run.record.scenario;
    let publishers = scenario.server.iter().flat_map(|server| &server.publishers);
    Some(Forwarding {
        command: run.record.info.command(),
        controller: run.record.info.subject.to_string(),
        duration_s: scenario.duration.as_secs_f64(),
        layers: publishers.map(|publisher| publisher.layers.len()).max().unwrap_or(0),
        lanes: shown,
        choices: lanes.choices.clone(),
        is_cut: lanes.is_cut,
    })
}
