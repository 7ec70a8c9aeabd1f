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
        let count = table.whole("count", 1, MAX_COUNT)?;
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
    let mut together = TimeDelta::ZERO;
    for flow in flows {
        together += flow.stop - flow.start;
    }
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
    let direction = table.choice(
        "direction",
        Direction::Up,
        &[("up", Direction::Up), ("down", Direction::Down)],
    )?;
    let start = table.moment("start", duration)?.unwrap_or(Timestamp::ZERO);
    let stop = table.moment("stop", duration)?.unwrap_or(Timestamp::ZERO + duration);
    if stop <= start {
        return Err(table.error("stop must come after start"));
    }
    // Its name is set once the directions of all flows are known, and its terminal for each flow: a
    // table that describes several flows uses the terminals of a group in turn.
    let flow = FlowConfig::new("", duration, ())
        .with_direction(direction)
        .with_hops(table.or("hops", 0..hops, |item| crossed(item, hops))?)
        .with_access_delay(table.or("delay", TimeDelta::ZERO, Item::time)?)
        .with_start(start)
        .with_stop(stop)
        .with_pauses(table.or("pauses", Vec::new(), |item| pauses(item, start, stop))?)
        .with_call(call::number(table)?)
        .with_quality(quality(table)?);
    Ok(flow.carrying(traffic(table, duration)?))
}

fn kind_of(table: &Table) -> Result<Kind> {
    table.choice(
        "kind",
        Kind::Media,
        &[
            ("media", Kind::Media),
            ("audio", Kind::Audio),
            ("tcp", Kind::Tcp),
            ("quic", Kind::Quic),
            ("udp", Kind::Udp),
        ],
    )
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
    for key in FLOW.iter() {
        if !COMMON.contains(key) && !own.contains(key) {
            table.refuse(key, "this kind of flow has no such key")?;
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

/// Reads numbers of consecutive hops, such as `[1, 2]`.
fn crossed(item: &Item, hops: usize) -> Result<Range<usize>> {
    let elements = item.elements().unwrap_or_default();
    let [first, rest @ ..] = &elements[..] else {
        return Err(item.error("expected a list such as [1]"));
    };
    let first = first.whole(hops as f64)?;
    let mut last = first;
    for element in rest {
        last += 1;
        if element.whole(hops as f64)? != last {
            return Err(item.error("hops must follow each other, as in [1, 2]"));
        }
    }
    Ok(first - 1..last)
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
    table.or(key, false, Item::boolean)
}

fn media(table: &Table, duration: TimeDelta) -> Result<Media> {
    let ecn = table.choice(
        "ecn",
        EcnMode::Off,
        &[("off", EcnMode::Off), ("classic", EcnMode::Classic), ("l4s", EcnMode::L4s)],
    )?;
    let controller = table.or("controller", None, Item::algorithm_or_variable)?;
    let settings = Settings::new(limits(table)?)
        .with_ecn(ecn)
        .with_priority(table.or("priority", 1.0, priority)?)
        .with_tolerate_random_loss(switch(table, "tolerate_random_loss")?)
        .with_compete_with_tcp(switch(table, "compete_with_tcp")?)
        .with_probe_when_limited(table.or("probe_when_limited", true, Item::boolean)?)
        .with_burst(table.optional("burst", Item::time)?);
    Ok(Media::new(controller, settings, source(table)?)
        .with_source_limit(table.optional("source_limit", |item| source_limit(item, duration))?)
        .with_receiver_clock(table.or("receiver_clock", ReceiverClock::default(), |item| {
            receiver_clock(item, duration)
        })?)
        .with_feedback(feedback(table, duration)?)
        .with_route_changes(table.or("route_changes", Vec::new(), |item| times(item, duration))?)
        .with_sender(table.optional("sender", Item::prose)?)
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
    let nack = table.or("nack", false, Item::boolean)?;
    let fec = table.or("fec", false, Item::boolean)?;
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
    let min = table.or("min_bitrate", MIN_BITRATE, Item::rate)?;
    let max = table.or("max_bitrate", MAX_BITRATE, Item::rate)?;
    if min > max {
        let message = format!("min_bitrate ({min}) must not be above max_bitrate ({max})");
        return Err(table.error(&message));
    }
    let start = START_BITRATE.clamp(min, max);
    let start = table.or("start_bitrate", start, Item::rate)?;
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

fn frame_rate(item: &Item) -> Result<f64> {
    let fps = item.number()?;
    if (FPS_MIN..=FPS_MAX).contains(&fps) {
        return Ok(fps);
    }
    Err(item.error(&format!("must be between {FPS_MIN} and {FPS_MAX} frames a second")))
}

fn source(flow: &Table) -> Result<Source> {
    let Some(item) = flow.get("source") else { return Ok(Source::Filler { fps: FPS, cap: None }) };
    let table = item.table(SOURCE)?;
    let kind = table.require("kind", "\"filler\"")?.choice(&[
        ("filler", SourceKind::Filler),
        ("rfc8593", SourceKind::Rfc8593),
        ("encoder", SourceKind::Encoder),
    ])?;
    let fps = table.or("fps", FPS, frame_rate)?;
    let driver = encoder_driver(&table, kind)?;
    let reaction = table.optional("reaction", Item::time)?;
    if matches!(kind, SourceKind::Rfc8593) {
        table.refuse("cap", "this source has no cap; write max_bitrate in the flow instead")?;
        return Ok(Source::Rfc8593 { fps, reaction: reaction.unwrap_or(REACTION) });
    }
    if reaction > Some(TimeDelta::ZERO) {
        const WHY: &str = "this source follows its target at once; write \"0s\" or rfc8593";
        table.refuse("reaction", WHY)?;
    }
    let cap = table.optional("cap", Item::rate)?;
    if matches!(kind, SourceKind::Filler) {
        return Ok(Source::Filler { fps, cap });
    }
    // The video follows once the table of the call is read.
    Ok(Source::Encoder { fps, cap, video: EncoderVideo { driver, ..Default::default() } })
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
    let skew_ppm = table.or("skew_ppm", 0.0, skew_ppm)?;
    let ahead = table.or("ahead", TimeDelta::ZERO, Item::time)?;
    let jumps = table.or("jumps", Vec::new(), |item| jumps(item, duration))?;
    let restarts = table.or("restarts", Vec::new(), |item| times(item, duration))?;
    let clock = ReceiverClock::new(skew_ppm, jumps).ahead_by(ahead).with_restarts(&restarts);
    if clock.shows_negative_times() {
        return Err(table.error("the clock must not show times before 0; write ahead = \"1h\""));
    }
    Ok(clock)
}

fn skew_ppm(item: &Item) -> Result<f64> {
    let skew = item.number()?;
    if skew.abs() <= SKEW_PPM_MAX {
        return Ok(skew);
    }
    Err(item.error(&format!("must be between -{SKEW_PPM_MAX} and {SKEW_PPM_MAX} ppm")))
}

fn jumps(item: &Item, duration: TimeDelta) -> Result<Vec<(Timestamp, TimeDelta)>> {
    let Some(elements) = item.elements() else {
        return Err(item.error("expected jumps such as [[\"60s\", \"1s\"], [\"90s\", \"-3s\"]]"));
    };
    let jumps = steps(&elements, duration, "\"1s\"", Item::signed_time)?;
    if !jumps.is_sorted_by(|a, b| a.0 < b.0) {
        return Err(item.error("each jump must be later"));
    }
    Ok(jumps)
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
    let congestion = table.choice(
        "congestion",
        Congestion::Cubic(Cubic::Rfc9438),
        &[
            ("cubic", Congestion::Cubic(Cubic::Rfc9438)),
            ("cubic-linux", Congestion::Cubic(Cubic::Linux)),
            ("reno", Congestion::Reno),
            ("bbr", Congestion::Bbr),
            ("prague", Congestion::Prague),
        ],
    )?;
    let short = table.optional("short", short)?;
    let default = Tcp::new(congestion);
    let ecn = tcp_ecn(table, &default)?;
    let small_queue = table.or("small_queue", default.small_queue, Item::size)?;
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
    let starts_idle = table.choice("starts", false, &[("active", false), ("idle", true)])?;
    Ok(ShortTransfers::new(min_size, max_size, mean_idle).with_starts_idle(starts_idle))
}

fn udp_packet(item: &Item) -> Result<DataSize> {
    let size = item.size()?;
    if UDP_PACKETS.contains(&size.as_bytes()) {
        return Ok(size);
    }
    let (least, most) = (UDP_PACKETS.start, UDP_PACKETS.end - 1);
    Err(item.error(&format!("must be between {least}B, its headers, and {most}B")))
}

fn udp(table: &Table, duration: TimeDelta) -> Result<Udp> {
    let item = table.require("rate", "\"1Mbps\"")?;
    let rate = match item.elements() {
        None => Schedule::constant(item.rate()?),
        Some(elements) => Schedule::new(steps(&elements, duration, "\"1500kbps\"", Item::rate)?),
    };
    let packet = table.or("packet", UDP_PACKET, udp_packet)?;
    Ok(Udp::new(rate.map_err(|error| item.error(&error.to_string()))?, packet))
}
