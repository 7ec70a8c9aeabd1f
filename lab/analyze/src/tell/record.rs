//! A dump as a record, in the same form as that of any other run.
//!
//! A browser reports what happened at its own end. What happened at the far end is computed: of a
//! sent stream from the lost packets that the receiver reported, of a received one from the gaps in
//! its sequence numbers. The record says so.

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_record::Record;
use weir_record::calls::derive::{self, Interval};
use weir_record::calls::file::{self, CallFile, DumpRun, Kind};
use weir_record::calls::interval_entry;
use weir_record::calls::stats::StatsReport;
use weir_record::run::{Engine, RunInfo};
use weir_record::subject::{Played, Subject};
use weir_record::summary::{Measurer, Summary};
use weir_scenario::ScenarioError;
use weir_sim::trace::{ROW_INTERVAL, RateChange, Row, Trace};

use crate::judge::network::{self, estimate, scenario_text};
use crate::measure::connectivity;
use crate::measure::open_loop::{OpenLoop, open_loop};
use crate::measure::samples;
use crate::read::dump::{Dump, Stream, StreamDirection};
use crate::read::packets::PacketLog;
use crate::read::time_of_day::date_and_clock;
use crate::tell::answer::answer;

/// Characters of a dump's name in the names of the open loop's records.
const NAME_MAX: usize = 50;

/// Builds the record of a dump. `name` is the dump's name.
///
/// # Errors
/// If the estimated network is no scenario, such as for a call of many days.
pub fn record(name: &str, dump: &Dump) -> Result<Record, ScenarioError> {
    build(name, dump, None)
}

/// Builds a record for each controller under the recorded feedback: the rates of the call, beside
/// the target that the controller would have had. Empty without feedback.
///
/// # Errors
/// As [`record`].
pub fn open_loop_records(name: &str, dump: &Dump) -> Result<Vec<Record>, ScenarioError> {
    let mut records = Vec::new();
    for (at, connection) in dump.connections.iter().enumerate() {
        for played in connection.packets.iter().flat_map(open_loop) {
            records.push(build(name, dump, Some((at, &played)))?);
        }
    }
    Ok(records)
}

/// `played` is a controller under the feedback of the connection with this index.
fn build(
    name: &str,
    dump: &Dump,
    played: Option<(usize, &OpenLoop)>,
) -> Result<Record, ScenarioError> {
    let text = scenario_text(name, dump, &estimate(dump));
    let id = format!("analyzed/{name}");
    let scenario = weir_scenario::parse(&id, &text, None)?;
    let mut trace = Trace::new(scenario.flows.iter().map(|flow| flow.name.clone()).collect());
    let end = Timestamp::ZERO + scenario.duration;
    let plans = network::flows(dump);
    for (flow, (_, connection, index)) in plans.iter().enumerate() {
        let stream = &dump.connections[*connection].streams[*index];
        let mut rows = rows(flow, stream, end);
        match played {
            Some((at, played))
                if at == *connection && stream.direction == StreamDirection::Sent =>
            {
                for row in &mut rows {
                    *row = row.with_target(played.at(row.time));
                }
                trace.events.extend(played_changes(flow, played));
            }
            _ => {
                let log = dump.connections[*connection].packets.as_ref();
                trace.events.extend(changes(flow, stream, log));
            }
        }
        trace.rows.extend(rows);
    }
    trace.rows.sort_by_key(|row| (row.time, row.flow));
    trace.events.sort_by_key(|event| (event.time, event.flow));
    let mut subject = Subject::Analyzed { dump: name.into(), open_loop: None };
    let mut call = call_file(dump);
    if let Some((at, played)) = played {
        // The folder's name ends after 100 characters, and the controller's must be within.
        let short: String = name.chars().take(NAME_MAX).collect();
        let controller = played.algorithm.to_string();
        let open_loop = Some(Played { controller, connection: at + 1 });
        subject = Subject::Analyzed { dump: short, open_loop };
        call.engines = format!(
            "open loop: the feedback of this {} was played into {}. The rates are those of the \
             call; the target is this controller's, and nothing that it would have sent was \
             carried",
            dump.format, played.algorithm
        );
        if let Kind::Dump(dump) = &mut call.kind {
            dump.findings.clear();
            dump.verdict.clear();
        }
    }
    let info = RunInfo { scenario: id, subject, engine: Engine::Call, seed: 1 };
    Ok(Record { info, scenario, trace, call: Some(call) })
}

/// The changes of an open loop's target.
fn played_changes(flow: usize, played: &OpenLoop) -> Vec<RateChange> {
    let changes = played.targets.windows(2).map(|pair| {
        RateChange::new(pair[1].0, flow, pair[0].1, pair[1].1)
            .with_reason("open loop".into())
            .with_state(played.algorithm.name().into())
    });
    changes.collect()
}

/// Measures the calls of a dump as [`record`] would, without keeping a row.
///
/// # Errors
/// As [`record`].
pub fn measured(name: &str, dump: &Dump) -> Result<Summary, ScenarioError> {
    let text = scenario_text(name, dump, &estimate(dump));
    let id = format!("analyzed/{name}");
    let scenario = weir_scenario::parse(&id, &text, None)?;
    let subject = Subject::Analyzed { dump: name.into(), open_loop: None };
    let info = RunInfo { scenario: id, subject, engine: Engine::Call, seed: 1 };
    let mut names = Vec::new();
    names.extend(scenario.flows.iter().map(|flow| flow.name.clone()));
    let mut flows = Vec::new();
    for (flow, (_, connection, index)) in network::flows(dump).iter().enumerate() {
        flows.push(FlowRows::of(flow, &dump.connections[*connection].streams[*index]));
    }
    let mut measurer = Measurer::new(&scenario, &info, &names);
    let mut time = Timestamp::ZERO + ROW_INTERVAL;
    while time <= Timestamp::ZERO + scenario.duration {
        for flow in &mut flows {
            measurer.add_row(&flow.until(time));
        }
        time += ROW_INTERVAL;
    }
    Ok(measurer.finish(None))
}

/// One row for each 50 ms.
fn rows(flow: usize, stream: &Stream, end: Timestamp) -> Vec<Row> {
    let mut source = FlowRows::of(flow, stream);
    let mut rows = Vec::new();
    let mut time = Timestamp::ZERO + ROW_INTERVAL;
    while time <= end {
        rows.push(source.until(time));
        time += ROW_INTERVAL;
    }
    rows
}

/// The rows of a stream, one after the other. The bytes and packets of an interval are spread
/// evenly over it.
struct FlowRows {
    flow: usize,
    intervals: Vec<Interval>,
    counts: Vec<Counts>,
    at: usize,
}

impl FlowRows {
    fn of(flow: usize, stream: &Stream) -> Self {
        let (intervals, counts) = (samples::intervals(stream), Counts::of(stream));
        Self { flow, intervals, counts, at: 0 }
    }

    /// The row that ends at a time, later than the one before.
    fn until(&mut self, time: Timestamp) -> Row {
        while self.at < self.intervals.len() && self.intervals[self.at].end < time {
            self.at += 1;
        }
        let row = Row::new(time, self.flow);
        match (self.intervals.get(self.at), self.counts.get(self.at)) {
            (Some(interval), Some(counts)) if interval.start < time => {
                filled(row, interval, counts, time)
            }
            _ => row,
        }
    }
}

fn filled(row: Row, interval: &Interval, counts: &Counts, time: Timestamp) -> Row {
    let rtt = interval.sent.as_ref().and_then(|sent| sent.rtt).or(interval.stun_rtt);
    row.with_target(interval.sent.as_ref().and(interval.estimated_bitrate))
        .with_rtt(rtt.map(|rtt| TimeDelta::from_micros(rtt.as_micros())))
        .with_sent(DataSize::from_bytes(share(counts.sent_bytes, interval, time)))
        .with_received(DataSize::from_bytes(share(counts.received_bytes, interval, time)))
        .with_sent_packets(share(counts.sent_packets, interval, time))
        .with_lost_packets(share(counts.lost_packets, interval, time))
}

/// The part of an interval's total that belongs to the row which ends at this time.
fn share(total: u64, interval: &Interval, end: Timestamp) -> u64 {
    let [before, until] = [end - ROW_INTERVAL, end].map(|at| {
        let passed = (at - interval.start).max(TimeDelta::ZERO).as_secs_f64();
        let length = (interval.end - interval.start).as_secs_f64();
        (total as f64 * (passed / length).min(1.0)) as u64
    });
    until - before
}

/// What an interval carried.
struct Counts {
    sent_bytes: u64,
    received_bytes: u64,
    sent_packets: u64,
    lost_packets: u64,
}

impl Counts {
    /// One for each interval of the stream.
    fn of(stream: &Stream) -> Vec<Self> {
        let mut all = Vec::new();
        for pair in stream.reports.windows(2) {
            let [before, after] = [&pair[0].timed, &pair[1].timed];
            if let Some(interval) = derive::between(before, after) {
                let reports = [&before.report, &after.report];
                all.push(Self::between(stream.direction, reports[0], reports[1], &interval));
            }
        }
        all
    }

    fn between(
        direction: StreamDirection,
        before: &StatsReport,
        after: &StatsReport,
        interval: &Interval,
    ) -> Self {
        let rate = match direction {
            StreamDirection::Sent => interval.sent.as_ref().map(|sent| sent.send_rate),
            StreamDirection::Received => {
                interval.received.as_ref().map(|received| received.receive_rate)
            }
        };
        let length = (interval.end - interval.start).as_secs_f64();
        let bytes = (rate.unwrap_or_default().as_bps() as f64 * length / 8.0) as u64;
        let (packets_before, lost_before) = totals(direction, before);
        let (packets_after, lost_after) = totals(direction, after);
        let packets = packets_after.saturating_sub(packets_before);
        let lost = match (lost_before, lost_after) {
            (Some(before), Some(after)) => u64::try_from(after.saturating_sub(before)).unwrap_or(0),
            _ => 0,
        };
        let (lost_packets, others) = match direction {
            StreamDirection::Sent => (lost.min(packets), packets.saturating_sub(lost)),
            StreamDirection::Received => (lost, packets.saturating_add(lost)),
        };
        // A packet that was lost is as large as the others.
        let other_bytes = (bytes as f64 * others as f64 / packets.max(1) as f64) as u64;
        let (sent_bytes, received_bytes, sent_packets) = match direction {
            StreamDirection::Sent => (bytes, other_bytes, packets),
            StreamDirection::Received => (other_bytes, bytes, others),
        };
        Self { sent_bytes, received_bytes, sent_packets, lost_packets }
    }
}

/// Packets of a stream that this end sent or received so far, and how many were lost.
fn totals(direction: StreamDirection, report: &StatsReport) -> (u64, Option<i64>) {
    match direction {
        StreamDirection::Sent => (
            report.outbound.as_deref().map_or(0, |it| it.packets_sent),
            report.remote_inbound.as_ref().and_then(|it| it.packets_lost),
        ),
        StreamDirection::Received => report
            .inbound
            .as_ref()
            .map_or((0, Some(0)), |it| (it.packets_received, Some(it.packets_lost))),
    }
}

/// The changes of a sender's estimate.
pub(crate) fn changes(flow: usize, stream: &Stream, log: Option<&PacketLog>) -> Vec<RateChange> {
    if stream.direction == StreamDirection::Received {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for it in derive::estimate_changes(&samples::intervals(stream)) {
        if it.time < Timestamp::ZERO {
            continue;
        }
        let why = log.and_then(|log| log.why(it.time));
        let (reason, state) = why.unwrap_or_else(|| ("not reported by getStats".into(), "browser"));
        let change = RateChange::new(it.time, flow, it.from, it.to);
        changes.push(change.with_reason(reason.into()).with_state(state.into()));
    }
    changes
}

/// One entry for each pair of a sent and a received video.
pub(crate) fn merged(dump: &Dump) -> Vec<file::Peer> {
    let mut peers: Vec<file::Peer> = Vec::new();
    for (plan, connection, index) in &network::flows(dump) {
        let stream = &dump.connections[*connection].streams[*index];
        let entries = samples::intervals(stream).iter().map(interval_entry).collect::<Vec<_>>();
        match peers.iter_mut().find(|peer| peer.call == plan.call) {
            // The received video of a call whose sent one is there already.
            Some(peer) => merge(&mut peer.intervals, entries),
            None => peers.push(file::Peer {
                call: plan.call,
                participant: format!("a{}", plan.call),
                intervals: entries,
                ..file::Peer::default()
            }),
        }
    }
    peers
}

fn call_file(dump: &Dump) -> CallFile {
    let peers = merged(dump);
    let answer = answer(dump);
    let program = dump.program.clone().unwrap_or_else(|| "a browser".into());
    let began = dump.zero_ms.and_then(date_and_clock);
    CallFile {
        kind: Kind::Dump(DumpRun {
            browser: program.clone(),
            verdict: answer.verdict,
            findings: answer.findings.into_iter().map(|finding| finding.0).collect(),
            began_ms: dump.zero_ms,
        }),
        engines: format!(
            "real: everything; read from a {}{}. What the far end received, or sent, is computed \
             from the losses that were reported",
            dump.format,
            began.map(|at| format!(", whose first report is of {at}")).unwrap_or_default()
        ),
        participants: peers
            .iter()
            .map(|peer| file::Participant {
                name: peer.participant.clone(),
                program: program.clone(),
                ..file::Participant::default()
            })
            .collect(),
        calls: peers
            .iter()
            .map(|peer| file::CallEntry {
                call: peer.call,
                participants: vec![peer.participant.clone(), "far end".into()],
                failure: failure(dump, peer.call),
            })
            .collect(),
        peers,
        warnings: dump.warnings.clone(),
        ..CallFile::default()
    }
}

/// Why the connection of a call failed; `None` if it did not.
fn failure(dump: &Dump, call: usize) -> Option<String> {
    let plans = network::flows(dump);
    let (_, connection, _) = plans.iter().find(|(plan, ..)| plan.call == call)?;
    let name = &dump.connections[*connection].name;
    Some(format!("{name} {}", connectivity::failure(dump, name)?))
}

/// Adds the received parts to the intervals that end at the same time.
fn merge(intervals: &mut Vec<file::Interval>, received: Vec<file::Interval>) {
    for entry in received {
        match intervals.iter_mut().find(|it| (it.time_s - entry.time_s).abs() < 1e-6) {
            Some(interval) => interval.received = entry.received,
            None => intervals.push(entry),
        }
    }
    intervals.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
}
