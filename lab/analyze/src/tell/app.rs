//! The record of an application under test: what the emulator saw of the first participant, and
//! what the pages of all participants reported.

use std::path::PathBuf;

use weir::units::Timestamp;
use weir_record::Record;
use weir_record::calls::derive::Interval;
use weir_record::calls::file::{self, ApplicationRun, CallFile, Kind, PageConnection};
use weir_record::run::RunInfo;
use weir_scenario::{Direction, Scenario, Traffic};
use weir_sim::trace::{Row, Trace};

use super::page_events;
use crate::error::AnalyzeError;
use crate::judge::network;
use crate::measure::samples;
use crate::read::dump::{Dump, Stream, StreamDirection};
use crate::tell::answer::findings;
use crate::tell::record::{changes, merged};

/// A participant of an application under test.
#[derive(Clone, Debug)]
pub struct AppDump {
    /// Its name.
    pub name: String,
    /// What its page reported, as an rtcstats dump.
    pub file: PathBuf,
}

/// Builds the record of a run. The rows are those of the scenario's first flow in each direction,
/// for the first participant: `rows` makes them of what its page reported of the video that it sent
/// and of the one that it received. Every video stream of every participant is among the peers.
/// Times count from `zero_ms` since 1970; `facts` are what is known of the run without the dumps.
///
/// # Errors
/// If a dump of the run cannot be read.
pub fn app_record(
    scenario: &Scenario,
    info: RunInfo,
    mut facts: CallFile,
    (dumps, zero_ms): (&[AppDump], f64),
    rows: impl Fn(&[Interval], &[Interval]) -> Vec<Row>,
) -> Result<Record, AnalyzeError> {
    let mut trace = Trace::new(scenario.flows.iter().map(|flow| flow.name.clone()).collect());
    let browser = facts.participants.first().map(|one| one.program.clone()).unwrap_or_default();
    let known = match std::mem::take(&mut facts.kind) {
        Kind::Application(known) => known,
        Kind::Call(_) | Kind::Link(_) | Kind::Dump(_) => ApplicationRun::default(),
    };
    let mut run = ApplicationRun { browser, ..known };
    for (index, participant) in dumps.iter().enumerate() {
        let page = page_events::read(&participant.file, zero_ms, index + 1, &participant.name)?;
        let silence = silence(&page.connections);
        run.connections.extend(page.connections);
        run.page_events.extend(page.events);
        let dump = match crate::read_since(&participant.file, zero_ms) {
            Ok(dump) if !dump.connections.is_empty() => dump,
            Ok(_) | Err(AnalyzeError::Empty { .. }) => {
                let failure = &mut facts.calls[index].failure;
                if failure.is_none() {
                    *failure = Some(silence.into());
                    facts.warnings.push(format!("{} failed: {silence}", participant.name));
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        let dump = running(dump, Timestamp::ZERO + scenario.duration);
        facts.peers.extend(peers(&dump, index + 1, &participant.name));
        run.audio.extend(page_events::audio(&dump, index + 1, &participant.name));
        run.findings.extend(findings(&dump).into_iter().map(|finding| {
            let mut finding = finding.0;
            finding.stream = format!("{} {}", participant.name, finding.stream);
            finding
        }));
        if index == 0 {
            let [sent, received] = [StreamDirection::Sent, StreamDirection::Received]
                .map(|direction| first_video(&dump, direction));
            let [own, others] =
                [sent, received].map(|it| it.map(samples::intervals).unwrap_or_default());
            trace.rows = rows(&own, &others);
            let up = first_up(scenario);
            trace.events =
                sent.zip(up).map(|(it, flow)| changes(flow, it, None)).unwrap_or_default();
        }
    }
    run.page_events.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
    facts.kind = Kind::Application(run);
    trace.rows.sort_by_key(|row| (row.time, row.flow));
    Ok(Record { info, scenario: scenario.clone(), trace, call: Some(facts) })
}

/// Why a participant has no report of video or audio.
fn silence(connections: &[PageConnection]) -> &'static str {
    if connections.is_empty() {
        "its pages made no connection"
    } else if connections.iter().all(|it| it.connected_s.is_none()) {
        "none of its connections was established"
    } else {
        "its connections had neither video nor audio"
    }
}

/// The dump without the reports before time zero, when not all participants had joined, and after
/// the end, when not all were still there.
fn running(dump: Dump, end: Timestamp) -> Dump {
    let mut running = dump;
    for connection in &mut running.connections {
        for stream in &mut connection.streams {
            stream.reports.retain(|it| (Timestamp::ZERO..=end).contains(&it.timed.time));
        }
        connection.streams.retain(|stream| stream.reports.len() > 1);
    }
    running
}

fn first_video(dump: &Dump, direction: StreamDirection) -> Option<&Stream> {
    let plans = network::flows(dump);
    let (_, connection, index) = plans.iter().find(|(plan, ..)| plan.direction == direction)?;
    Some(&dump.connections[*connection].streams[*index])
}

/// The scenario's first media flow up.
fn first_up(scenario: &Scenario) -> Option<usize> {
    scenario.flows.iter().position(|flow| {
        matches!(flow.traffic, Traffic::Media(_)) && flow.direction == Direction::Up
    })
}

/// One entry for each pair of a sent and a received video.
fn peers(dump: &Dump, call: usize, participant: &str) -> Vec<file::Peer> {
    let mut peers = merged(dump);
    for (plan, connection, index) in network::flows(dump) {
        let stream = &dump.connections[connection].streams[index];
        let last = stream.reports.iter().rev().find_map(|it| it.timed.report.outbound.as_deref());
        if let (Some(peer), Some(sent)) =
            (peers.iter_mut().find(|peer| peer.call == plan.call), last)
        {
            peer.layer.clone_from(&stream.rid);
            peer.encoder = Some(sent.encoder());
            peer.limitation_s = sent.limitation();
        }
    }
    for (index, peer) in peers.iter_mut().enumerate() {
        peer.call = call;
        peer.participant = match index {
            0 => participant.into(),
            _ => format!("{participant}/{}", index + 1),
        };
    }
    peers
}
