//! Reads the `[[flow]]` tables.

use std::ops::Range;
use std::sync::LazyLock;

use weir::controller::{EcnMode, RateLimits, Settings};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Schedule;
use weir_sim::FlowConfig;

use super::error::ScenarioError;
use super::network::{self, Network};
use super::reader::{Item, Table, steps};
use super::{
    Congestion, Cubic, Direction, EncoderDriver, EncoderVideo, Feedback, Flow, Media,
    ReceiverClock, Repair, ServerPlan, ShortTransfers, Source, Tcp, Traffic, Udp, call, quic,
    server,
};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Keys that every flow may have.
static COMMON: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let own = ["kind", "count", "direction"].into_iter().chain(network::place_keys());
    own.chain(["hops", "delay", "start", "stop", "pauses"]).collect()
});
/// The given keys and those that select the class of a flow's packets in a network.
fn with_class_keys(own: &[&'static str]) -> Vec<&'static str> {
    own.iter().copied().chain(network::class_keys()).collect()
}
static MEDIA: LazyLock<Vec<&str>> = LazyLock::new(|| with_class_keys(MEDIA_ALONE));
static AUDIO: LazyLock<Vec<&str>> = LazyLock::new(|| with_class_keys(&["quality", "call"]));
static TCP: LazyLock<Vec<&str>> =
    LazyLock::new(|| with_class_keys(&["congestion", "ecn", "short", "small_queue"]));
static QUIC: LazyLock<Vec<&str>> = LazyLock::new(|| with_class_keys(quic::KEYS));
static UDP: LazyLock<Vec<&str>> = LazyLock::new(|| with_class_keys(&["rate", "packet"]));
const MEDIA_ALONE: &[&str] = &[
    "controller",
    "min_bitrate",
    "start_bitrate",
    "max_bitrate",
    "source",
    "source_limit",
    "receiver_clock",
    "feedback",
    "route_changes",
    "ecn",
    "priority",
    "sender",
    "tolerate_random_loss",
    "compete_with_tcp",
    "probe_when_limited",
    "burst",
    "watches",
    "repair",
    "key_frame_interval",
    "quality",
    "call",
];
/// The keys of all kinds of flows, each once.
static FLOW: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    let all = [&COMMON, &MEDIA, &AUDIO, &TCP, &QUIC, &UDP];
    for key in all.into_iter().flat_map(|keys| keys.iter().copied()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
});
const SOURCE: &[&str] = &["kind", "fps", "cap", "reaction", "driver"];
const RECEIVER_CLOCK: &[&str] = &["skew_ppm", "ahead", "jumps", "restarts"];
/// Largest skew of a receiver's clock, in either direction.
const SKEW_PPM_MAX: f64 = 1_000.0;
const REPAIR: &[&str] = &["nack", "fec"];
const SHORT: &[&str] = &["size", "idle", "starts"];

const MIN_BITRATE: Bitrate = Bitrate::from_kbps(150);
const START_BITRATE: Bitrate = Bitrate::from_kbps(300);
const MAX_BITRATE: Bitrate = Bitrate::from_kbps(2500);
const FPS: f64 = 30.0;
/// The example value of `tau_v` [RFC8593 §5.1].
const REACTION: TimeDelta = TimeDelta::from_millis(200);
const FPS_MIN: f64 = 1.0;
const FPS_MAX: f64 = 240.0;
const MAX_PRIORITY: f64 = 100.0;
/// Maximum number of flows that one table can describe.
const MAX_COUNT: f64 = 100.0;
/// Limit on the sum of all flow durations, because memory keeps a row per flow and 50 ms.
const FLOW_TIME_MAX: TimeDelta = TimeDelta::from_secs(100 * 3600);
/// Default packet size of background traffic: the maximum size on Ethernet, as in RFC 8868.
const UDP_PACKET: DataSize = DataSize::from_bytes(1500);
/// Range of UDP packet sizes: at least the headers, at most the limit of IPv4.
const UDP_PACKETS: Range<u64> = 28..65_536;

/// Reads all flows of the file and names them.
pub(super) fn flows(
    top: &Table,
    duration: TimeDelta,
    network: &Network,
    server: Option<&ServerPlan>,
) -> Result<Vec<Flow>> {
    let mut flows = Vec::new();
    for table in top.tables("flow", &FLOW)? {
        let table = with_defaults(table, top)?;
        let mut flow = flow(&table, duration, network.hops.len())?;
        if let Traffic::Media(media) = &mut flow.traffic {
            server::check_flow(&table, server.is_some())?;
            if let Some(server) = server {
                media.watches = server::watched(&table, server.publishers.len())?;
            }
        }
        let count = table.get("count").map_or(Ok(1), |item| item.whole(MAX_COUNT))?;
        let mut attachments = network.attachments(&table)?.into_iter().cycle();
        if attachments.clone().next().is_none() && flow.hops.is_empty() {
            let terminal = network.access.as_ref().map_or("host", |it| it.config.terminal_word());
            return Err(table
                .error(&format!("it crosses no network; write the {terminal} at which it ends")));
        }
        for _ in 0..count {
            flows.push(flow.clone().with_attachment(attachments.next()));
        }
    }
    if flows.is_empty() {
        return Err(top.error("there is no traffic; write [[flow]]"));
    }
    refuse_too_long(&flows, top)?;
    name(&mut flows);
    if server.is_some() {
        server::subscribe(&mut flows, top)?;
    }
    call::assign(&mut flows, top)?;
    Ok(flows)
}

fn refuse_too_long(flows: &[Flow], top: &Table) -> Result<()> {
    let lasting = flows.iter().map(|flow| flow.stop - flow.start);
    let together = lasting.fold(TimeDelta::ZERO, |sum, time| sum + time);
    if together <= FLOW_TIME_MAX {
        return Ok(());
    }
    let [hours, most] = [together, FLOW_TIME_MAX].map(|time| time.as_secs_f64() / 3600.0);
    Err(top.error(&format!(
        "the flows last {hours:.1} h in total; \
            write fewer or shorter ones, of at most {most:.0} h"
    )))
}

/// Fills in missing keys from the table with the defaults for this kind of flow.
fn with_defaults<'a>(table: Table<'a>, top: &Table<'a>) -> Result<Table<'a>> {
    let (item, keys) = match kind_of(&table)? {
        Kind::Media => (top.get("media"), &MEDIA),
        Kind::Tcp => (top.get("tcp"), &TCP),
        Kind::Quic => (top.get("quic"), &QUIC),
        Kind::Audio | Kind::Udp => return Ok(table),
    };
    Ok(match item {
        Some(item) => table.with_defaults(item.table(keys)?),
        None => table,
    })
}

/// Names flows `media-1`, `media-2`. With both directions in use, each direction counts separately,
/// as in `media-1-up`.
fn name(flows: &mut [Flow]) {
    let both_directions = flows.iter().any(|flow| flow.direction != flows[0].direction);
    for index in 0..flows.len() {
        let (before, rest) = flows.split_at_mut(index);
        let flow = &mut rest[0];
        let word = flow.traffic.kind();
        let number = 1 + before
            .iter()
            .filter(|other| other.direction == flow.direction && other.traffic.kind() == word)
            .count();
        flow.name = match flow.direction {
            _ if !both_directions => format!("{word}-{number}"),
            Direction::Up => format!("{word}-{number}-up"),
            Direction::Down => format!("{word}-{number}-down"),
        };
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Media,
    Audio,
    Tcp,
    Quic,
    Udp,
}

fn flow(table: &Table, duration: TimeDelta, hops: usize) -> Result<Flow> {
    let direction = table.get("direction").map_or(Ok(Direction::Up), |item| {
        item.choice(&[("up", Direction::Up), ("down", Direction::Down)])
    })?;
    let start = moment(table, "start", duration)?.unwrap_or(Timestamp::ZERO);
    let stop = moment(table, "stop", duration)?.unwrap_or(Timestamp::ZERO + duration);
    if stop <= start {
        return Err(table.error("stop must come after start"));
    }
    // Its name is set once the directions of all flows are known, and its terminal for each flow: a
    // table that describes several flows uses the terminals of a group in turn.
    let flow = FlowConfig::new("", duration, ())
        .with_direction(direction)
        .with_hops(table.get("hops").map_or(Ok(0..hops), |item| crossed(&item, hops))?)
        .with_access_delay(table.get("delay").map_or(Ok(TimeDelta::ZERO), |item| item.time())?)
        .with_start(start)
        .with_stop(stop)
        .with_pauses(table.get("pauses").map_or(Ok(Vec::new()), |item| pauses(&item, start, stop))?)
        .with_call(call::number(table)?)
        .with_quality(quality(table)?);
    Ok(flow.carrying(traffic(table, duration)?))
}

fn kind_of(table: &Table) -> Result<Kind> {
    table.get("kind").map_or(Ok(Kind::Media), |item| {
        item.choice(&[
            ("media", Kind::Media),
            ("audio", Kind::Audio),
            ("tcp", Kind::Tcp),
            ("quic", Kind::Quic),
            ("udp", Kind::Udp),
        ])
    })
}

fn traffic(table: &Table, duration: TimeDelta) -> Result<Traffic> {
    let kind = kind_of(table)?;
    let own: &LazyLock<Vec<&str>> = match kind {
        Kind::Media => &MEDIA,
        Kind::Audio => &AUDIO,
        Kind::Tcp => &TCP,
        Kind::Quic => &QUIC,
        Kind::Udp => &UDP,
    };
    let foreign = FLOW.iter().filter(|key| !COMMON.contains(key) && !own.contains(key));
    for key in foreign {
        if let Some(item) = table.get(key) {
            return Err(item.error("this kind of flow has no such key"));
        }
    }
    match kind {
        Kind::Media => media(table, duration).map(Traffic::Media),
        Kind::Audio => Ok(Traffic::Audio),
        Kind::Tcp => tcp(table).map(Traffic::Tcp),
        Kind::Quic => quic::read(table, limits(table)?).map(Traffic::Quic),
        Kind::Udp => udp(table, duration).map(Traffic::Udp),
    }
}

fn moment(table: &Table, key: &'static str, duration: TimeDelta) -> Result<Option<Timestamp>> {
    table.get(key).map(|item| item.moment(duration)).transpose()
}

/// Reads numbers of consecutive hops, such as `[1, 2]`.
fn crossed(item: &Item, hops: usize) -> Result<Range<usize>> {
    let elements = item.elements().filter(|elements| !elements.is_empty());
    let Some(elements) = elements else { return Err(item.error("expected a list such as [1]")) };
    let numbers =
        elements.iter().map(|item| item.whole(hops as f64)).collect::<Result<Vec<usize>>>()?;
    let range = numbers[0] - 1..numbers[numbers.len() - 1];
    if !range.clone().map(|index| index + 1).eq(numbers) {
        return Err(item.error("hops must follow each other, as in [1, 2]"));
    }
    Ok(range)
}

/// Reads pauses such as `[["40s", "60s"]]`. They must be in order and within the flow's time.
fn pauses(item: &Item, start: Timestamp, stop: Timestamp) -> Result<Vec<Range<Timestamp>>> {
    const EXPECTED: &str = "expected pauses such as [[\"40s\", \"60s\"]]";
    let mut pauses: Vec<Range<Timestamp>> = Vec::new();
    for pause in item.elements().ok_or_else(|| item.error(EXPECTED))? {
        let pair = pause.elements();
        let Some([from, to]) = pair.as_deref() else { return Err(item.error(EXPECTED)) };
        let (from, to) = (Timestamp::ZERO + from.time()?, Timestamp::ZERO + to.time()?);
        let after = pauses.last().map_or(start, |last| last.end);
        if from < after || to <= from || to > stop {
            return Err(item.error("pauses must be in order and within the flow's time"));
        }
        pauses.push(from..to);
    }
    Ok(pauses)
}

fn switch(table: &Table, key: &'static str) -> Result<bool> {
    table.get(key).map_or(Ok(false), |item| item.boolean())
}

fn media(table: &Table, duration: TimeDelta) -> Result<Media> {
    let ecn = table.get("ecn").map_or(Ok(EcnMode::Off), |item| {
        item.choice(&[("off", EcnMode::Off), ("classic", EcnMode::Classic), ("l4s", EcnMode::L4s)])
    })?;
    let controller =
        table.get("controller").map_or(Ok(None), |item| item.algorithm_or_variable())?;
    let settings = Settings::new(limits(table)?)
        .with_ecn(ecn)
        .with_priority(table.get("priority").map_or(Ok(1.0), |item| priority(&item))?)
        .with_tolerate_random_loss(switch(table, "tolerate_random_loss")?)
        .with_compete_with_tcp(switch(table, "compete_with_tcp")?)
        .with_probe_when_limited(
            table.get("probe_when_limited").map_or(Ok(true), |item| item.boolean())?,
        )
        .with_burst(table.get("burst").map(|item| item.time()).transpose()?);
    let clock = table.get("receiver_clock");
    let routes = table.get("route_changes");
    Ok(Media::new(controller, settings, source(table)?)
        .with_source_limit(
            table.get("source_limit").map(|item| source_limit(&item, duration)).transpose()?,
        )
        .with_receiver_clock(
            clock.map(|item| receiver_clock(&item, duration)).transpose()?.unwrap_or_default(),
        )
        .with_feedback(feedback(table, duration)?)
        .with_route_changes(
            routes.map(|item| times(&item, duration)).transpose()?.unwrap_or_default(),
        )
        .with_sender(table.get("sender").map(|item| item.prose()).transpose()?)
        .with_repair(repair(table, duration)?))
}

fn quality(flow: &Table) -> Result<bool> {
    let Some(item) = flow.get("quality") else { return Ok(false) };
    let quality = item.boolean()?;
    let is_media = matches!(kind_of(flow)?, Kind::Media);
    if quality && is_media && flow.get("repair").is_none() {
        return Err(
            item.error("only a flow with repair shows frames; write repair = { nack = true }")
        );
    }
    Ok(quality)
}

fn repair(flow: &Table, duration: TimeDelta) -> Result<Option<Repair>> {
    let interval = flow.get("key_frame_interval");
    let Some(item) = flow.get("repair") else {
        let Some(interval) = interval else { return Ok(None) };
        return Err(interval.error("only a flow with repair shows frames; write repair = {}"));
    };
    let table = item.table(REPAIR)?;
    let nack = table.get("nack").map_or(Ok(false), |item| item.boolean())?;
    let fec = table.get("fec").map_or(Ok(false), |item| item.boolean())?;
    let key_frame_interval =
        interval.map(|item| key_frame_interval(&item, duration)).transpose()?;
    let repair = Repair::NONE.with_nack(nack).with_fec(fec);
    Ok(Some(repair.with_key_frame_interval(key_frame_interval)))
}

fn key_frame_interval(item: &Item, duration: TimeDelta) -> Result<TimeDelta> {
    let interval = item.time()?;
    if interval > TimeDelta::ZERO && interval <= duration {
        return Ok(interval);
    }
    Err(item.error("must be above zero, and at most the duration"))
}

fn priority(item: &Item) -> Result<f64> {
    let priority = item.number()?;
    if priority > 0.0 && priority <= MAX_PRIORITY {
        return Ok(priority);
    }
    Err(item.error(&format!("must be above zero, and at most {MAX_PRIORITY}")))
}

fn limits(table: &Table) -> Result<RateLimits> {
    let min = table.get("min_bitrate").map_or(Ok(MIN_BITRATE), |item| item.rate())?;
    let max = table.get("max_bitrate").map_or(Ok(MAX_BITRATE), |item| item.rate())?;
    if min > max {
        let message = format!("min_bitrate ({min}) must not be above max_bitrate ({max})");
        return Err(table.error(&message));
    }
    let start = START_BITRATE.clamp(min, max);
    let start = table.get("start_bitrate").map_or(Ok(start), |item| item.rate())?;
    RateLimits::new(min, start, max).map_err(|_| {
        table.error(&format!(
            "start_bitrate ({start}) must lie between min_bitrate ({min}) and max_bitrate ({max})"
        ))
    })
}

#[derive(Clone, Copy)]
enum SourceKind {
    Filler,
    Rfc8593,
    Encoder,
}

fn source(flow: &Table) -> Result<Source> {
    let Some(item) = flow.get("source") else { return Ok(Source::Filler { fps: FPS, cap: None }) };
    let table = item.table(SOURCE)?;
    let kind = table.require("kind", "\"filler\"")?.choice(&[
        ("filler", SourceKind::Filler),
        ("rfc8593", SourceKind::Rfc8593),
        ("encoder", SourceKind::Encoder),
    ])?;
    let fps = table.get("fps").map_or(Ok(FPS), |item| {
        let fps = item.number()?;
        if (FPS_MIN..=FPS_MAX).contains(&fps) {
            return Ok(fps);
        }
        Err(item.error(&format!("must be between {FPS_MIN} and {FPS_MAX} frames a second")))
    })?;
    let cap = table.get("cap");
    let reaction = table.get("reaction");
    let driver = encoder_driver(&table, kind)?;
    let waits = reaction.as_ref().map(|item| item.time()).transpose()?;
    match (kind, &cap, &reaction) {
        (SourceKind::Rfc8593, None, _) => {
            Ok(Source::Rfc8593 { fps, reaction: waits.unwrap_or(REACTION) })
        }
        (SourceKind::Rfc8593, Some(cap), _) => {
            Err(cap.error("this source has no cap; write max_bitrate in the flow instead"))
        }
        (_, _, Some(reaction)) if waits > Some(TimeDelta::ZERO) => {
            Err(reaction.error("this source follows its target at once; write \"0s\" or rfc8593"))
        }
        (SourceKind::Filler, ..) => {
            Ok(Source::Filler { fps, cap: cap.map(|item| item.rate()).transpose()? })
        }
        (SourceKind::Encoder, ..) => {
            let cap = cap.map(|item| item.rate()).transpose()?;
            // The video follows once the table of the call is read.
            Ok(Source::Encoder { fps, cap, video: EncoderVideo { driver, ..Default::default() } })
        }
    }
}

/// What drives the encoder of a source; only the kind `encoder` has one.
fn encoder_driver(source: &Table, kind: SourceKind) -> Result<EncoderDriver> {
    let Some(item) = source.get("driver") else { return Ok(EncoderDriver::default()) };
    if !matches!(kind, SourceKind::Encoder) {
        return Err(item.error("only the source encoder has a driver"));
    }
    item.choice(&[("browser", EncoderDriver::Browser), ("pipeline", EncoderDriver::Pipeline)])
}

fn source_limit(item: &Item, duration: TimeDelta) -> Result<Schedule> {
    let schedule = match item.elements() {
        None => Schedule::constant(item.rate()?),
        Some(elements) => Schedule::new(steps(&elements, duration, "\"500kbps\"", Item::rate)?),
    };
    schedule.map_err(|error| item.error(&error.to_string()))
}

fn receiver_clock(item: &Item, duration: TimeDelta) -> Result<ReceiverClock> {
    let table = item.table(RECEIVER_CLOCK)?;
    let skew_ppm = table.get("skew_ppm").map_or(Ok(0.0), |item| {
        let skew = item.number()?;
        if skew.abs() <= SKEW_PPM_MAX {
            return Ok(skew);
        }
        Err(item.error(&format!("must be between -{SKEW_PPM_MAX} and {SKEW_PPM_MAX} ppm")))
    })?;
    let ahead = table.get("ahead").map_or(Ok(TimeDelta::ZERO), |item| item.time())?;
    let jumps = table.get("jumps").map_or(Ok(Vec::new()), |item| {
        let Some(elements) = item.elements() else {
            return Err(
                item.error("expected jumps such as [[\"60s\", \"1s\"], [\"90s\", \"-3s\"]]")
            );
        };
        let jumps = steps(&elements, duration, "\"1s\"", Item::signed_time)?;
        let increase = jumps.is_sorted_by(|a, b| a.0 < b.0);
        increase.then_some(jumps).ok_or_else(|| item.error("each jump must be later"))
    })?;
    let restarts = table.get("restarts");
    let restarts = restarts.map_or(Ok(Vec::new()), |item| times(&item, duration))?;
    let clock = ReceiverClock::new(skew_ppm, jumps).ahead_by(ahead).with_restarts(&restarts);
    if clock.shows_negative_times() {
        return Err(table.error("the clock must not show times before 0; write ahead = \"1h\""));
    }
    Ok(clock)
}

/// Reads times such as `["30s", "60s"]`. They must be in order and within the run.
fn times(item: &Item, duration: TimeDelta) -> Result<Vec<Timestamp>> {
    let mut times = Vec::new();
    let elements = item.elements().ok_or_else(|| item.error("expected times such as [\"30s\"]"))?;
    for element in elements {
        let time = element.time()?;
        let is_later = times.last().is_none_or(|last| *last < Timestamp::ZERO + time);
        if !is_later || time >= duration {
            return Err(item.error("each time must be later than the one before, within the run"));
        }
        times.push(Timestamp::ZERO + time);
    }
    Ok(times)
}

fn feedback(table: &Table, duration: TimeDelta) -> Result<Vec<(Timestamp, Feedback)>> {
    const KINDS: &[(&str, Feedback)] =
        &[("twcc", Feedback::Twcc), ("ccfb", Feedback::Ccfb), ("rr", Feedback::ReceiverReports)];
    let Some(item) = table.get("feedback") else {
        return Ok(vec![(Timestamp::ZERO, Feedback::Twcc)]);
    };
    let Some(elements) = item.elements() else {
        return Ok(vec![(Timestamp::ZERO, item.choice(KINDS)?)]);
    };
    let steps = steps(&elements, duration, "\"ccfb\"", |item| item.choice(KINDS))?;
    let starts = steps.first().is_some_and(|step| step.0 == Timestamp::ZERO);
    if starts && steps.is_sorted_by(|a, b| a.0 < b.0) {
        return Ok(steps);
    }
    Err(item.error("the first step must be at 0s, and each later than the one before"))
}

fn tcp(table: &Table) -> Result<Tcp> {
    let congestion =
        table.get("congestion").map_or(Ok(Congestion::Cubic(Cubic::Rfc9438)), |item| {
            item.choice(&[
                ("cubic", Congestion::Cubic(Cubic::Rfc9438)),
                ("cubic-linux", Congestion::Cubic(Cubic::Linux)),
                ("reno", Congestion::Reno),
                ("bbr", Congestion::Bbr),
                ("prague", Congestion::Prague),
            ])
        })?;
    let short = table.get("short").map(|item| short(&item)).transpose()?;
    let default = Tcp::new(congestion);
    let ecn = tcp_ecn(table, &default)?;
    let small_queue =
        table.get("small_queue").map_or(Ok(default.small_queue), |item| item.size())?;
    Ok(default.with_ecn(ecn).with_short(short).with_small_queue(small_queue))
}

/// What the packets of a TCP flow carry. ECT(1) is for a congestion control whose answer to marks
/// is in proportion to their share [RFC9331 §4.3], which Prague is and the others are not.
fn tcp_ecn(table: &Table, default: &Tcp) -> Result<EcnMode> {
    let Some(item) = table.get("ecn") else { return Ok(default.ecn) };
    if default.congestion == Congestion::Prague {
        return item.choice(&[("l4s", EcnMode::L4s)]);
    }
    item.choice(&[("off", EcnMode::Off), ("classic", EcnMode::Classic)])
}

fn short(item: &Item) -> Result<ShortTransfers> {
    let table = item.table(SHORT)?;
    let size = table.require("size", "[\"30KB\", \"50KB\"]")?;
    let pair = size.elements();
    let Some([min, max]) = pair.as_deref() else {
        return Err(size.error("expected the smallest and the largest, as in [\"30KB\", \"50KB\"]"));
    };
    let (min_size, max_size) = (min.size()?, max.size()?);
    if min_size > max_size {
        return Err(size.error("the first size must not be above the second"));
    }
    let mean_idle = table.require("idle", "\"10s\"")?.time()?;
    let starts_idle = table
        .get("starts")
        .map_or(Ok(false), |item| item.choice(&[("active", false), ("idle", true)]))?;
    Ok(ShortTransfers::new(min_size, max_size, mean_idle).with_starts_idle(starts_idle))
}

fn udp(table: &Table, duration: TimeDelta) -> Result<Udp> {
    let item = table.require("rate", "\"1Mbps\"")?;
    let rate = match item.elements() {
        None => Schedule::constant(item.rate()?),
        Some(elements) => Schedule::new(steps(&elements, duration, "\"1500kbps\"", Item::rate)?),
    };
    let packet = table.get("packet").map_or(Ok(UDP_PACKET), |item| {
        let size = item.size()?;
        if UDP_PACKETS.contains(&size.as_bytes()) {
            return Ok(size);
        }
        let (least, most) = (UDP_PACKETS.start, UDP_PACKETS.end - 1);
        Err(item.error(&format!("must be between {least}B, its headers, and {most}B")))
    })?;
    Ok(Udp::new(rate.map_err(|error| item.error(&error.to_string()))?, packet))
}
