//! `topology = "sfu"`: a simulated forwarding server, and the `[[publisher]]` tables of those who
//! send to it. The media flows of such a scenario are its subscribers.

use std::ops::Range;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::Schedule;
use weir_sim::{Content, Core, PublishedLayer, Publisher, Repair, Structure, TrackKind, Uplink};

use super::call::CONTENTS;
use super::error::ScenarioError;
use super::reader::{Item, Table, steps};
use super::{Direction, Feedback, Flow, Traffic};

type Result<T> = std::result::Result<T, ScenarioError>;

const PUBLISHER: &[&str] = &[
    "kind",
    "count",
    "layers",
    "rate",
    "fps",
    "temporal_layers",
    "structure",
    "content",
    "shown",
    "priority",
    "may_pause",
    "start",
    "stop",
    "delay",
    "loss",
    "key_frame_delay",
];
const LAYER: &[&str] = &["size", "rate"];

const MAX_COUNT: f64 = 100.0;
/// Publishers of one server, for each has an encoder for each layer.
const MAX_PUBLISHERS: usize = 200;
/// `weir-sfu` counts the streams of a track from 0 to 3.
const MAX_LAYERS: usize = 4;
/// Spatial layers of the usual modes of SVC.
const MAX_SVC_LAYERS: usize = 3;
const MAX_SIDE: f64 = 4096.0;
const MAX_TEMPORAL_LAYERS: f64 = 3.0;
const FPS: Range<f64> = 1.0..120.0;
const MAX_PRIORITY: f64 = 100.0;
const AUDIO_RATE: Bitrate = Bitrate::from_kbps(40);
/// Layers of a camera as browsers send them, in kbit/s, and of a screen.
const CAMERA: [(u16, u16, u64); 3] = [(320, 180, 150), (640, 360, 500), (1280, 720, 1_500)];
const SCREEN: [(u16, u16, u64); 2] = [(640, 360, 200), (1280, 720, 1_000)];
/// Keys of a flow that say what a sender makes, which a subscriber's does not.
const OF_SENDERS: [&str; 6] =
    ["source", "source_limit", "receiver_clock", "route_changes", "sender", "key_frame_interval"];

/// A simulated forwarding server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPlan {
    /// What decides in it.
    pub core: Core,
    /// Those who send to it.
    pub publishers: Vec<Publisher>,
}

/// Reads the keys `topology`, `server` and `publisher`. `None` without a server.
pub(super) fn plan(top: &Table, duration: TimeDelta) -> Result<Option<ServerPlan>> {
    let tables = top.tables("publisher", PUBLISHER)?;
    let Some(topology) = top.get("topology") else {
        for key in ["publisher", "server"] {
            top.refuse(key, "only a forwarding server has it; write topology = \"sfu\"")?;
        }
        return Ok(None);
    };
    topology.choice(&[("sfu", ())])?;
    let core = top.choice(
        "server",
        Core::Weir,
        &[
            ("weir", Core::Weir),
            ("greedy", Core::Greedy),
            ("livekit", Core::LiveKit),
            ("mediasoup", Core::Mediasoup),
        ],
    )?;
    let mut publishers = Vec::new();
    for table in &tables {
        let count = table.whole("count", 1, MAX_COUNT)?;
        for _ in 0..count {
            let number = publishers.len() + 1;
            publishers.push(publisher(table, number, duration)?);
        }
    }
    if publishers.is_empty() {
        return Err(topology.error("nobody sends to the server; write [[publisher]]"));
    }
    if publishers.len() > MAX_PUBLISHERS {
        let count = publishers.len();
        let message = format!("{count} publishers are too many; write at most {MAX_PUBLISHERS}");
        return Err(topology.error(&message));
    }
    Ok(Some(ServerPlan { core, publishers }))
}

fn publisher(table: &Table, number: usize, duration: TimeDelta) -> Result<Publisher> {
    let kind = table.choice(
        "kind",
        TrackKind::Camera,
        &[
            ("camera", TrackKind::Camera),
            ("screen", TrackKind::Screen),
            ("audio", TrackKind::Audio),
        ],
    )?;
    let layers = match kind {
        TrackKind::Audio => audio(table, duration)?,
        _ => layers(table, kind, duration)?,
    };
    let (fps, content) = match kind {
        TrackKind::Screen => (15.0, Content::Screen),
        _ => (30.0, Content::Noise),
    };
    let fps = table.or("fps", fps, frame_rate)?;
    let content = table.choice("content", content, &CONTENTS)?;
    let whole = vec![(Timestamp::ZERO, (1280, 720))];
    let shown = table.or("shown", whole, |item| shown(item, duration))?;
    let start = table.moment("start", duration)?.unwrap_or(Timestamp::ZERO);
    let stop = table.moment("stop", duration)?.unwrap_or(Timestamp::MAX);
    if stop <= start {
        return Err(table.error("stop must come after start"));
    }
    let temporal_layers = table.whole("temporal_layers", 1, MAX_TEMPORAL_LAYERS)?;
    let structure = table.get("structure").map_or(Ok(Structure::Simulcast), |item| {
        let structure =
            item.choice(&[("simulcast", Structure::Simulcast), ("svc", Structure::Svc)])?;
        if structure == Structure::Svc && layers.len() > MAX_SVC_LAYERS {
            return Err(item.error(&format!("SVC has at most {MAX_SVC_LAYERS} layers")));
        }
        if structure == Structure::Svc && layers.iter().any(may_stop) {
            return Err(item.error("a layer of SVC cannot stop; write rates above zero"));
        }
        Ok(structure)
    })?;
    let name = format!("publisher-{number}");
    Ok(Publisher::new(name, kind, layers)
        .with_fps(fps)
        .with_temporal_layers(temporal_layers as u8)
        .with_structure(structure)
        .with_content(content)
        .with_shown(shown)
        .with_priority(table.or("priority", 1.0, priority)?)
        .with_may_pause(table.or("may_pause", true, Item::boolean)?)
        .with_time(start..stop)
        .with_uplink(uplink(table)?))
}

fn uplink(table: &Table) -> Result<Uplink> {
    let default = Uplink::default();
    Ok(Uplink {
        delay: table.or("delay", default.delay, Item::time)?,
        loss: table.or("loss", 0.0, Item::probability)?,
        key_frame_delay: table.or("key_frame_delay", default.key_frame_delay, Item::time)?,
    })
}

fn audio(table: &Table, duration: TimeDelta) -> Result<Vec<PublishedLayer>> {
    for key in ["layers", "fps", "temporal_layers", "structure", "content", "shown", "may_pause"] {
        table.refuse(key, "audio has none of it; its bitrate is rate")?;
    }
    let rate = table.get("rate").map(|item| schedule(&item, duration, Item::rate)).transpose()?;
    let rate = rate.unwrap_or(Schedule::constant(AUDIO_RATE).expect("the rate is not zero"));
    Ok(vec![PublishedLayer { width: 0, height: 0, rate }])
}

fn layers(table: &Table, kind: TrackKind, duration: TimeDelta) -> Result<Vec<PublishedLayer>> {
    table.refuse("rate", "the bitrates of pictures are in layers")?;
    let Some(item) = table.get("layers") else {
        let usual: &[(u16, u16, u64)] = if kind == TrackKind::Screen { &SCREEN } else { &CAMERA };
        let mut layers = Vec::new();
        for &(width, height, kbps) in usual {
            let rate = Schedule::constant(Bitrate::from_kbps(kbps)).expect("the rate is not zero");
            layers.push(PublishedLayer { width, height, rate });
        }
        return Ok(layers);
    };
    let elements = item.elements().filter(|elements| !elements.is_empty());
    let example = "expected a list such as [{ size = [640, 360], rate = \"500kbps\" }]";
    let elements = elements.ok_or_else(|| item.error(example))?;
    if elements.len() > MAX_LAYERS {
        return Err(item.error(&format!("at most {MAX_LAYERS} layers, the smallest first")));
    }
    let mut layers: Vec<PublishedLayer> = Vec::new();
    for element in elements {
        let layer = element.table(LAYER)?;
        let (width, height) = size(&layer.require("size", "[640, 360]")?, 1.0)?;
        let rate = schedule(&layer.require("rate", "\"500kbps\"")?, duration, Item::capacity)?;
        let pixels = u32::from(width) * u32::from(height);
        let is_larger = layers
            .last()
            .is_none_or(|last| pixels > u32::from(last.width) * u32::from(last.height));
        if !is_larger {
            return Err(element.error("each picture must be larger than the one before"));
        }
        layers.push(PublishedLayer { width, height, rate });
    }
    Ok(layers)
}

/// Reads a bitrate, or steps whose bitrates `rate` reads.
fn schedule<'a>(
    item: &Item<'a>,
    duration: TimeDelta,
    rate: fn(&Item<'a>) -> Result<Bitrate>,
) -> Result<Schedule> {
    let schedule = match item.elements() {
        None => Schedule::constant(item.rate()?),
        Some(elements) => Schedule::new(steps(&elements, duration, "\"500kbps\"", rate)?),
    };
    schedule.map_err(|error| item.error(&error.to_string()))
}

/// Whether a layer is not sent for a time.
fn may_stop(layer: &PublishedLayer) -> bool {
    layer.rate.steps().iter().any(|&(_, rate)| rate == Bitrate::ZERO)
}

/// Reads a size such as `[640, 360]`, whose sides are `least` or more.
fn size(item: &Item, least: f64) -> Result<(u16, u16)> {
    let pair = item.elements();
    let Some([width, height]) = pair.as_deref() else {
        return Err(item.error("expected width and height, as in [640, 360]"));
    };
    let mut sides = [0; 2];
    for (side, item) in sides.iter_mut().zip([width, height]) {
        let number = item.number()?;
        if number.fract() != 0.0 || !(least..=MAX_SIDE).contains(&number) {
            let message = format!("must be a whole number from {least} to {MAX_SIDE}");
            return Err(item.error(&message));
        }
        *side = number as u16;
    }
    Ok((sides[0], sides[1]))
}

/// Reads the size at which a track is shown: `[1280, 720]`, or steps.
fn shown(item: &Item, duration: TimeDelta) -> Result<Vec<(Timestamp, (u16, u16))>> {
    let elements = item.elements().unwrap_or_default();
    let is_steps = elements.first().is_some_and(|first| first.elements().is_some());
    if !is_steps {
        return Ok(vec![(Timestamp::ZERO, size(item, 0.0)?)]);
    }
    let steps = steps(&elements, duration, "[640, 360]", |item| size(item, 0.0))?;
    let starts = steps.first().is_some_and(|step| step.0 == Timestamp::ZERO);
    if starts && steps.is_sorted_by(|a, b| a.0 < b.0) {
        return Ok(steps);
    }
    Err(item.error("the first step must be at 0s, and each later than the one before"))
}

fn frame_rate(item: &Item) -> Result<f64> {
    let fps = item.number()?;
    if FPS.contains(&fps) || fps == FPS.end {
        return Ok(fps);
    }
    Err(item.error(&format!("must be between {} and {} frames a second", FPS.start, FPS.end)))
}

fn priority(item: &Item) -> Result<f64> {
    let priority = item.number()?;
    if priority > 0.0 && priority <= MAX_PRIORITY {
        return Ok(priority);
    }
    Err(item.error(&format!("must be above zero, and at most {MAX_PRIORITY}")))
}

/// Refuses the keys of a media flow that do not apply to a subscriber, or `watches` where there is
/// no server.
pub(super) fn check_flow(table: &Table, has_server: bool) -> Result<()> {
    if !has_server {
        return table.refuse("watches", "only a subscriber watches; write topology = \"sfu\"");
    }
    for key in OF_SENDERS {
        table.refuse(key, "a subscriber gets what [[publisher]] sends; leave it out")?;
    }
    Ok(())
}

/// The publishers that a subscriber watches, by index: the numbers of `watches`, or all.
pub(super) fn watched(table: &Table, publishers: usize) -> Result<Vec<usize>> {
    let Some(item) = table.get("watches") else { return Ok((0..publishers).collect()) };
    let elements = item.elements().filter(|elements| !elements.is_empty());
    let elements =
        elements.ok_or_else(|| item.error("expected numbers of publishers such as [1, 3]"))?;
    let mut watched = Vec::new();
    for element in elements {
        let index = element.whole(publishers as f64)? - 1;
        if watched.last().is_some_and(|last| *last >= index) {
            return Err(item.error("the numbers of publishers must rise"));
        }
        watched.push(index);
    }
    Ok(watched)
}

/// Makes media flows subscribers: they go down from the server, and repair losses by NACK.
pub(super) fn subscribe(flows: &mut [Flow], top: &Table) -> Result<()> {
    let mut is_any = false;
    for flow in flows {
        let Traffic::Media(media) = &mut flow.traffic else { continue };
        is_any = true;
        let name = &flow.name;
        if flow.direction == Direction::Up {
            let message = format!("{name} comes from the server; write direction = \"down\"");
            return Err(top.error(&message));
        }
        if media.feedback.iter().any(|(_, format)| *format == Feedback::ReceiverReports) {
            let message = format!("{name}: a server needs feedback \"twcc\" or \"ccfb\"");
            return Err(top.error(&message));
        }
        let repair = *media.repair.get_or_insert(Repair::NONE.with_nack(true));
        if repair.fec {
            return Err(top.error(&format!("{name}: the server sends no parity; leave out fec")));
        }
    }
    if !is_any {
        return Err(top.error("nobody watches; write a [[flow]] with direction = \"down\""));
    }
    Ok(())
}
