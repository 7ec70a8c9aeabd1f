//! The network that a call met, as far as the call tested it, and a scenario with that network.
//!
//! Reports of a browser say how much left or arrived, how long a round trip took, and what was
//! lost. Capacity is known only while packets waited in a queue: then what arrived is what the path
//! carries. At other times the path carried at least what arrived.

use weir_record::calls::stats::Kind;

use crate::found::RuleName;
use crate::judge::repeated_overuse;
use crate::judge::rules::{Moment, RULES};
use crate::measure::samples::{self, Sample, SampledStream};
use crate::read::dump::{Connection, Dump, StreamDirection};
use crate::read::format::Format;
use crate::read::packets::passage::CapacityMeasurement;
use crate::read::packets::passages::{self, Path};
use crate::read::packets::{PacketLog, play};

/// Where the call did not test the path, the scenario's capacity is this multiple of the largest
/// rate that was seen, so that the scenario does not limit what the real path did not limit.
const HEADROOM: f64 = 2.0;
/// Capacity where nothing was seen at all.
const UNSEEN_BPS: f64 = 10e6;
/// Length of a queue that was never seen to be full, in ms: that of RFC 8867's tests.
const QUEUE_MS: f64 = 300.0;
/// Loss below this share is not told from single packets.
const LEAST_LOSS: f64 = 0.001;
/// Packets that wait for less are no queue.
const LEAST_QUEUE_MS: f64 = 10.0;
/// What a simulated browser needs besides: its encoder, its retransmissions, and no repeated
/// probes.
const BROWSER: [&str; 4] = [
    "start_bitrate = \"300kbps\"",
    "source = { kind = \"encoder\", fps = 30, reaction = \"0s\" }",
    "repair = { nack = true }",
    "probe_when_limited = false",
];
/// The same of a pipeline: a capture with readable RTCP has one. Its own limits are not known.
const PIPELINE: [&str; 3] = [
    "start_bitrate = \"300kbps\"",
    "source = { kind = \"encoder\", fps = 30, driver = \"pipeline\" }",
    "repair = { nack = true }",
];
/// The receiver tells what is seen.
const WATCHED: &str = "quality = true";
/// Width and height of a picture where the dump tells none.
const USUAL_PICTURE: (u32, u32) = (640, 360);
/// Shortest scenario.
const LEAST_S: f64 = 1.0;

/// The network that a call met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkEstimate {
    /// Length of the call in s.
    pub duration_s: f64,
    /// From the browser that reports.
    pub up: DirectionEstimate,
    /// To the browser that reports.
    pub down: DirectionEstimate,
}

/// One direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionEstimate {
    /// The times in which capacity was tested.
    pub tested: Vec<TestedCapacity>,
    /// Mean rate that arrived, in bit/s of IP packets; 0 if nothing did.
    pub mean_bps: f64,
    /// Largest rate outside of these times, in bit/s; `None` if nothing was sent this way.
    pub largest_bps: Option<f64>,
    /// Propagation delay in ms: half of the smallest round-trip time. `None` if no round trip was
    /// measured.
    pub delay_ms: Option<f64>,
    /// Share of the packets that were lost without a queue.
    pub loss: f64,
    /// Largest time in ms that packets waited in the queue; `None` if none waited.
    pub queue_ms: Option<f64>,
    /// Whether packets were lost while they waited, so that the queue was full.
    pub overflowed: bool,
    /// Whether the capacity comes from single packets, which test it without filling the path.
    pub by_packets: bool,
}

/// A time in which packets waited, so that what arrived is the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestedCapacity {
    /// Begin in s.
    pub from_s: f64,
    /// End in s.
    pub to_s: f64,
    /// Capacity in bit/s of IP packets.
    pub bps: f64,
    /// Smallest and largest value of a single report.
    pub range_bps: (f64, f64),
    /// What others took of the path's capacity beside the call's `bps`, in bit/s. Only single
    /// packets show it; `None` if they show no others.
    pub rivals_bps: Option<f64>,
}

/// Estimates the network from the connection that carried most.
pub fn estimate(dump: &Dump) -> NetworkEstimate {
    let sampled: Vec<Vec<SampledStream>> =
        dump.connections.iter().map(repeated_overuse::streams).collect();
    of_streams(dump, &sampled)
}

/// The same, of a dump whose streams are sampled.
pub(crate) fn of_streams(dump: &Dump, sampled: &[Vec<SampledStream>]) -> NetworkEstimate {
    let both = dump.connections.iter().zip(sampled);
    let largest = both.max_by(|(_, a), (_, b)| carried(a).total_cmp(&carried(b)));
    let Some((connection, streams)) = largest else {
        return NetworkEstimate { duration_s: without_streams_s(dump), ..Default::default() };
    };
    let last = sampled.iter().flatten().filter_map(|stream| Some(stream.samples.last()?.end_s));
    let last = last.fold(0.0, f64::max);
    let (mut up, mut down) = (
        of_direction(streams, StreamDirection::Sent),
        of_direction(streams, StreamDirection::Received),
    );
    if let Some(log) = &connection.packets {
        by_packets(log, &mut up, &mut down);
    }
    // A round trip waits in both queues. Nothing says how long in each.
    let both = up
        .tested
        .iter()
        .any(|a| down.tested.iter().any(|b| a.from_s < b.to_s && b.from_s < a.to_s));
    if both {
        for estimate in [&mut up, &mut down].into_iter().filter(|it| !it.by_packets) {
            estimate.queue_ms = estimate.queue_ms.map(|ms| ms / 2.0);
        }
    }
    NetworkEstimate { duration_s: last.max(LEAST_S), up, down }
}

/// Length of a call without streams in s: until its last report or event.
fn without_streams_s(dump: &Dump) -> f64 {
    let mut last_s = dump.end_s;
    for event in &dump.events {
        last_s = last_s.max(event.time_s);
    }
    last_s
}

/// Bits that the streams of a connection carried in both directions.
fn carried(streams: &[SampledStream]) -> f64 {
    let samples = streams.iter().flat_map(|stream| &stream.samples);
    samples.map(|it| it.rate_bps * (it.end_s - it.start_s)).sum()
}

/// What trains of single packets measured of the way up.
pub(crate) fn measured_up(log: &PacketLog) -> Vec<TestedCapacity> {
    let Some(path) = passages::path(&passages::up(log), StreamDirection::Sent) else {
        return Vec::new();
    };
    path.capacity.iter().map(tested_by_packets).collect()
}

fn tested_by_packets(measured: &CapacityMeasurement) -> TestedCapacity {
    TestedCapacity {
        from_s: measured.from.as_secs_f64().max(0.0),
        to_s: measured.to.as_secs_f64(),
        bps: measured.bps,
        range_bps: measured.range_bps,
        rivals_bps: measured.rivals_bps,
    }
}

/// Replaces what single packets know better than reports of half seconds.
fn by_packets(log: &PacketLog, up: &mut DirectionEstimate, down: &mut DirectionEstimate) {
    if let Some(base) = play::base_round_trip(log) {
        up.delay_ms = Some(base.as_millis_f64() / 2.0);
        down.delay_ms = up.delay_ms;
    }
    let directions = [
        (StreamDirection::Sent, passages::up(log), up),
        (StreamDirection::Received, passages::down(log), down),
    ];
    for (direction, passages, estimate) in directions {
        let Some(path) = passages::path(&passages, direction) else { continue };
        let Path { capacity, loss, queue, overflowed, largest_bps, mean_bps } = path;
        estimate.tested = capacity.iter().map(tested_by_packets).collect();
        estimate.by_packets = true;
        estimate.mean_bps = mean_bps;
        estimate.largest_bps = max(estimate.largest_bps, Some(largest_bps));
        estimate.queue_ms = Some(queue.as_millis_f64()).filter(|ms| *ms >= LEAST_QUEUE_MS);
        // Lost packets of the far end are known from gaps only, without their time.
        if direction == StreamDirection::Sent {
            estimate.overflowed = overflowed;
            estimate.loss = if loss >= LEAST_LOSS { loss } else { 0.0 };
        }
    }
}

fn of_direction(streams: &[SampledStream], direction: StreamDirection) -> DirectionEstimate {
    let base = streams.iter().find_map(|stream| stream.base_rtt_ms);
    let mut estimate =
        DirectionEstimate { delay_ms: base.map(|ms| ms / 2.0), ..DirectionEstimate::default() };
    let own: Vec<&SampledStream> =
        streams.iter().filter(|stream| stream.direction == direction).collect();
    let main = own.iter().max_by(|a, b| sum_of_rates(a).total_cmp(&sum_of_rates(b)));
    let Some(main) = main else { return estimate };
    let mut rules = RULES.iter().filter(|rule| rule.rule == RuleName::Capacity);
    let rule = rules.next().expect("the table has this rule");
    let mut span: Vec<Tested> = Vec::new();
    let (mut lost, mut free) = (0.0, 0.0);
    let (mut bits, mut seconds) = (0.0, 0.0);
    for (index, sample) in main.samples.iter().enumerate() {
        let rate = delivered(&own, sample, direction);
        let length = sample.end_s - sample.start_s;
        (bits, seconds) = (bits + rate * length, seconds + length);
        let moment = Moment { stream: main, index };
        if (rule.holds)(moment) {
            span.push((sample.clone(), rate, moment.queues()));
            let waited = sample.rtt_ms.zip(base).map(|(rtt, base)| rtt - base);
            estimate.queue_ms = max(estimate.queue_ms, waited);
            estimate.overflowed |= sample.loss.is_some_and(|loss| loss > 0.0);
            continue;
        }
        estimate.tested.extend(tested(&std::mem::take(&mut span), direction, rule.least_s));
        estimate.largest_bps = max(estimate.largest_bps, Some(rate));
        if let Some(loss) = sample.loss {
            lost += loss * sample.expected;
            free += sample.expected;
        }
    }
    estimate.tested.extend(tested(&span, direction, rule.least_s));
    if seconds > 0.0 {
        estimate.mean_bps = bits / seconds;
    }
    if free > 0.0 && lost / free >= LEAST_LOSS {
        estimate.loss = lost / free;
    }
    estimate
}

fn sum_of_rates(stream: &SampledStream) -> f64 {
    stream.samples.iter().map(|it| it.rate_bps).sum()
}

/// What arrived of all streams of a direction during a sample.
fn delivered(streams: &[&SampledStream], sample: &Sample, direction: StreamDirection) -> f64 {
    let middle = (sample.start_s + sample.end_s) / 2.0;
    let mut sum = 0.0;
    for stream in streams {
        let index = stream.samples.partition_point(|it| it.end_s < middle);
        if let Some(found) = stream.samples.get(index).filter(|it| it.start_s <= middle) {
            let lost =
                if direction == StreamDirection::Sent { found.loss.unwrap_or(0.0) } else { 0.0 };
            sum += found.rate_bps * (1.0 - lost).max(0.0);
        }
    }
    sum
}

/// A sample of the largest stream, what arrived of all streams, and whether packets waited for
/// long.
type Tested = (Sample, f64, bool);

/// The capacity in a time in which packets waited. Where some waited for long, only these count,
/// and of them not the first, because the queue began to grow within it. Controllers that keep the
/// queue short stay below the capacity most of the time, so their largest rates count.
fn tested(span: &[Tested], direction: StreamDirection, least_s: f64) -> Option<TestedCapacity> {
    const SHARE_OF_LONG: f64 = 0.75;
    const SHARE_OF_SHORT: f64 = 0.9;
    let (first, last) = (&span.first()?.0, &span.last()?.0);
    if last.end_s - first.start_s < least_s {
        return None;
    }
    let long: Vec<&Tested> = span.iter().filter(|(.., long)| *long).collect();
    let is_long = long.len() > 1;
    let settled: Vec<&Tested> = if is_long { long[1..].to_vec() } else { span.iter().collect() };
    let mut rates: Vec<f64> = settled.iter().map(|(_, rate, _)| *rate).collect();
    rates.sort_by(f64::total_cmp);
    let share = if is_long { SHARE_OF_LONG } else { SHARE_OF_SHORT };
    let at_share = rates[((rates.len() - 1) as f64 * share).round() as usize];
    let bps = match direction {
        StreamDirection::Sent if is_long => arrived(&settled),
        StreamDirection::Sent | StreamDirection::Received => at_share,
    };
    Some(TestedCapacity {
        from_s: first.start_s,
        to_s: last.end_s,
        bps,
        range_bps: (rates[0], rates[rates.len() - 1]),
        rivals_bps: None,
    })
}

/// Mean rate that arrived of what was sent. Losses are reported late, so only their sum counts.
fn arrived(settled: &[&Tested]) -> f64 {
    let length: f64 = settled.iter().map(|(it, ..)| it.end_s - it.start_s).sum();
    let sent: f64 = settled.iter().map(|(it, ..)| it.rate_bps * (it.end_s - it.start_s)).sum();
    let packets: f64 = settled.iter().map(|(it, ..)| it.packets as f64).sum();
    let lost: f64 = settled.iter().map(|(it, ..)| missed(it)).sum();
    sent / length * (1.0 - lost / packets.max(1.0)).clamp(0.0, 1.0)
}

/// Packets of a sample that did not arrive. Where the far end counts what does, retransmissions are
/// among the sent packets and not among those that it knew of: they are lost as often as others.
fn missed(sample: &Sample) -> f64 {
    let of = if sample.counted.has_arrived { sample.packets as f64 } else { sample.expected };
    sample.loss.unwrap_or(0.0) * of
}

fn max(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().max_by(f64::total_cmp)
}

/// A flow of the scenario.
pub(crate) struct FlowPlan {
    pub direction: StreamDirection,
    pub call: usize,
    pub max_bps: f64,
}

/// The video streams of a dump as flows: the k-th sent and the k-th received video of a connection
/// are a call. At most as many as a scenario can have.
pub(crate) fn flows(dump: &Dump) -> Vec<(FlowPlan, usize, usize)> {
    const CALLS_MAX: usize = 100;
    let mut plans = Vec::new();
    let mut call = 0;
    for (at, connection) in dump.connections.iter().enumerate() {
        let sampled = samples::streams(connection);
        let (sent, received) = (
            videos(connection, StreamDirection::Sent),
            videos(connection, StreamDirection::Received),
        );
        for pair in 0..sent.len().max(received.len()) {
            if call == CALLS_MAX {
                return plans;
            }
            call += 1;
            for (direction, indices) in
                [(StreamDirection::Sent, &sent), (StreamDirection::Received, &received)]
            {
                let Some(index) = indices.get(pair) else { continue };
                let stream = &sampled[*index];
                let rates = stream.samples.iter().map(|it| it.rate_bps);
                let max_bps = stream.peak_target_bps.max(rates.fold(0.0, f64::max));
                plans.push((FlowPlan { direction, call, max_bps }, at, *index));
            }
        }
    }
    plans
}

/// Indices of the videos of a direction.
fn videos(connection: &Connection, direction: StreamDirection) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..connection.streams.len()).collect();
    indices.retain(|index| {
        let stream = &connection.streams[*index];
        stream.direction == direction && stream.kind == Kind::Video
    });
    indices
}

/// A text in quotes, without control characters.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    serde_json::to_string(&plain).expect("a text serializes")
}

/// A scenario with the network that the call met, as text. `name` is the dump's name.
pub fn scenario_text(name: &str, dump: &Dump, network: &NetworkEstimate) -> String {
    let sender: &[&str] = if dump.format == Format::Capture { &[] } else { &BROWSER };
    text_of(name, dump, network, sender)
}

/// The scenario, with these lines in each flow.
fn text_of(name: &str, dump: &Dump, network: &NetworkEstimate, sender: &[&str]) -> String {
    let mut lines = Vec::new();
    lines.push(format!("title = {}", quoted(&format!("The network that {name} met"))));
    lines.push(format!("source = {}", quoted(&format!("weir analyze {name}, a {}", dump.format))));
    let about = "Estimated from a call that was made elsewhere. Comments in the file that \
        --scenario writes say what was tested and how far it may be off. Up is from the browser \
        that reported.";
    lines.push(format!("description = {}", quoted(about)));
    lines.push(format!("duration = \"{}ms\"", milliseconds(network.duration_s)));
    if dump.format != Format::Capture {
        lines.push("feedback_interval = \"62.5ms\"".into());
    }
    for (table, estimate) in [("up", &network.up), ("down", &network.down)] {
        lines.push(String::new());
        direction_text(table, estimate, network.duration_s, &mut lines);
    }
    for (plan, ..) in flows(dump) {
        lines.push(String::new());
        lines.push("[[flow]]".into());
        lines.push(format!(
            "direction = \"{}\"",
            if plan.direction == StreamDirection::Sent { "up" } else { "down" }
        ));
        lines.push(format!("call = {}", plan.call));
        lines.push(format!("max_bitrate = \"{}kbps\"", kilobits(plan.max_bps.max(300e3))));
        lines.extend(sender.iter().copied().map(String::from));
    }
    lines.join("\n") + "\n"
}

/// The same with a camera and a receiver that tells what is seen: nobody knows what the call's
/// camera showed, so it is a film, in the largest size of the call's pictures. For what other
/// controllers would have given people.
pub fn watched_scenario_text(name: &str, dump: &Dump, network: &NetworkEstimate) -> String {
    let (width, height) = largest_picture(dump).unwrap_or(USUAL_PICTURE);
    let mut sender = match dump.format {
        Format::Capture => PIPELINE.to_vec(),
        _ => BROWSER.to_vec(),
    };
    sender.push(WATCHED);
    text_of(name, dump, network, &sender)
        + &format!("\n[call.video]\nwidth = {width}\nheight = {height}\ncontent = \"film\"\n")
}

/// Width and height of the largest picture.
fn largest_picture(dump: &Dump) -> Option<(u32, u32)> {
    let mut largest: Option<(u32, u32)> = None;
    for connection in &dump.connections {
        for stream in samples::streams(connection) {
            for sample in &stream.samples {
                largest = largest.max(sample.size);
            }
        }
    }
    largest.filter(|(width, height)| *width > 0 && *height > 0)
}

fn direction_text(
    table: &str,
    estimate: &DirectionEstimate,
    duration_s: f64,
    lines: &mut Vec<String>,
) {
    lines.push(format!("[network.{table}]"));
    let seen = estimate.largest_bps.filter(|bps| *bps > 0.0);
    let tested = estimate.tested.iter().map(|it| it.bps).fold(0.0, f64::max);
    let free = seen.map_or(UNSEEN_BPS, |bps| HEADROOM * bps.max(tested));
    lines.push(match seen {
        Some(_) if estimate.by_packets && !estimate.tested.is_empty() => {
            "# By trains of packets that waited behind each other. Between two measurements the \
             earlier one stands."
                .into()
        }
        Some(bps) => format!(
            "# Not tested above {} kbit/s, except where a comment says so: {HEADROOM} times as \
             much stands for it.",
            kilobits(bps)
        ),
        None => "# Never tested.".into(),
    });
    let mut steps = vec![(0.0, free)];
    for (at, span) in estimate.tested.iter().enumerate() {
        lines.push(format!(
            "# {:.1} to {:.1} s: {} kbit/s, single reports {} to {}.",
            span.from_s,
            span.to_s,
            kilobits(span.bps),
            kilobits(span.range_bps.0),
            kilobits(span.range_bps.1)
        ));
        if let Some(bps) = span.rivals_bps {
            lines.push(format!(
                "# Others took {} kbit/s of {} kbit/s meanwhile: what they left stands here.",
                kilobits(bps),
                kilobits(bps + span.bps)
            ));
        }
        // Milliseconds are the unit of the scenario.
        let is_first = at == 0 && estimate.by_packets;
        if is_first || milliseconds(span.from_s) <= milliseconds(steps[steps.len() - 1].0) {
            steps.pop();
        }
        steps.push((if is_first { 0.0 } else { span.from_s }, span.bps));
        if span.to_s < duration_s && !estimate.by_packets {
            steps.push((span.to_s, free));
        }
    }
    let steps: Vec<String> = steps
        .iter()
        .map(|(at, bps)| format!("[\"{}ms\", \"{}kbps\"]", milliseconds(*at), kilobits(*bps)))
        .collect();
    lines.push(format!("capacity = [{}]", steps.join(", ")));
    match (estimate.queue_ms, estimate.overflowed) {
        (Some(ms), true) => {
            lines.push("# Packets were lost while they waited, so the queue was full.".into());
            lines.push(format!("queue = \"{ms:.0}ms\""));
        }
        (Some(ms), false) => {
            lines.push(format!("# At least {ms:.0} ms: it was never full."));
            lines.push(format!("queue = \"{:.0}ms\"", ms.max(QUEUE_MS)));
        }
        (None, _) => lines.push(format!("# Never seen.\nqueue = \"{QUEUE_MS:.0}ms\"")),
    }
    match estimate.delay_ms {
        Some(ms) => {
            lines.push(
                "# Half of the smallest round-trip time. How the two directions share it is \
                unknown."
                    .into(),
            );
            lines.push(format!("delay = \"{ms:.1}ms\""));
        }
        None => lines.push("# No round trip was measured.\ndelay = \"0ms\"".into()),
    }
    if estimate.loss > 0.0 {
        lines.push("# Lost without a queue.".into());
        lines.push(format!("loss = \"{:.2}%\"", estimate.loss * 100.0));
    }
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1e3).round().max(0.0) as u64
}

fn kilobits(bps: f64) -> u64 {
    (bps / 1e3).round().max(1.0) as u64
}
