//! Reads what only flows over QUIC have.

use weir::controller::{EcnMode, RateLimits, Settings};
use weir::units::Bitrate;
use weir_sim::{QuicAck, QuicCongestion, QuicDelivery, QuicSource, QuicStack};

use super::error::ScenarioError;
use super::reader::{Item, Table};
use super::{Media, Quic, Source};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Its keys beside those of every flow.
pub(super) const KEYS: &[&str] = &[
    "controller",
    "congestion",
    "stack",
    "min_bitrate",
    "start_bitrate",
    "max_bitrate",
    "source",
    "delivery",
    "ack",
    "ecn",
];
const SOURCE: &[&str] = &["kind", "start", "max", "headroom", "rate"];
const ACK: &[&str] = &["packets", "delay", "receive_times"];

/// Frames a second of the source, which has no other rate.
const FPS: f64 = 30.0;
/// moq's part of the estimate.
const HEADROOM: f64 = 0.9;
const MAX_HEADROOM: f64 = 2.0;
/// The most packets for one ACK.
const MAX_PACKETS: f64 = 1_000.0;

#[derive(Clone, Copy)]
enum SourceKind {
    Adaptive,
    Fixed,
    Bulk,
}

pub(super) fn read(table: &Table, limits: RateLimits) -> Result<Quic> {
    let congestion = table.choice(
        "congestion",
        QuicCongestion::Media,
        &[
            ("media", QuicCongestion::Media),
            ("cubic", QuicCongestion::Cubic),
            ("new-reno", QuicCongestion::NewReno),
            ("bbr3", QuicCongestion::Bbr3),
        ],
    )?;
    let stack = table.choice(
        "stack",
        QuicStack::Noq,
        &[("noq", QuicStack::Noq), ("quinn", QuicStack::Quinn)],
    )?;
    let source = match table.get("source") {
        Some(item) => source(&item, limits.start(), limits.max())?,
        None => adaptive(limits.start(), limits.max(), HEADROOM),
    };
    if let Some(item) = table.get("pauses").filter(|_| source == QuicSource::Bulk) {
        return Err(item.error("a source that always has data cannot pause"));
    }
    let delivery = table.get("delivery").map_or(Ok(QuicDelivery::Streams), |item| {
        if source == QuicSource::Bulk {
            return Err(item.error("a source without frames is one stream"));
        }
        let datagrams = ("datagrams", QuicDelivery::Datagrams);
        item.choice(&[("streams", QuicDelivery::Streams), datagrams])
    })?;
    let ack = table.or("ack", QuicAck::new(), ack)?;
    let cap = Some(match source {
        QuicSource::Fixed(rate) => rate,
        QuicSource::Adaptive { max, .. } => max,
        _ => limits.max(),
    });
    let controller = table.or("controller", None, Item::algorithm_or_variable)?;
    let settings = Settings::new(limits).with_ecn(ecn(table, congestion)?);
    let media = Media::new(controller, settings, Source::Filler { fps: FPS, cap });
    Ok(Quic::new(media, source)
        .with_congestion(congestion)
        .with_stack(stack)
        .with_delivery(delivery)
        .with_ack(ack))
}

/// Only a controller for media answers to marks here.
fn ecn(table: &Table, congestion: QuicCongestion) -> Result<EcnMode> {
    let Some(item) = table.get("ecn") else { return Ok(EcnMode::Off) };
    if congestion != QuicCongestion::Media {
        return item.choice(&[("off", EcnMode::Off)]);
    }
    item.choice(&[("off", EcnMode::Off), ("classic", EcnMode::Classic), ("l4s", EcnMode::L4s)])
}

fn adaptive(start: Bitrate, max: Bitrate, headroom: f64) -> QuicSource {
    QuicSource::Adaptive { start, max, headroom }
}

fn source(item: &Item, start: Bitrate, max: Bitrate) -> Result<QuicSource> {
    let table = item.table(SOURCE)?;
    let kind = table.require("kind", "\"adaptive\"")?.choice(&[
        ("adaptive", SourceKind::Adaptive),
        ("fixed", SourceKind::Fixed),
        ("bulk", SourceKind::Bulk),
    ])?;
    let own: &[&'static str] = match kind {
        SourceKind::Adaptive => &["start", "max", "headroom"],
        SourceKind::Fixed => &["rate"],
        SourceKind::Bulk => &[],
    };
    for key in &SOURCE[1..] {
        if let Some(item) = table.get(key).filter(|_| !own.contains(key)) {
            return Err(item.error("this kind of source has no such key"));
        }
    }
    match kind {
        SourceKind::Bulk => Ok(QuicSource::Bulk),
        SourceKind::Fixed => Ok(QuicSource::Fixed(table.require("rate", "\"10Mbps\"")?.rate()?)),
        SourceKind::Adaptive => {
            let start = table.or("start", start, Item::rate)?;
            let max = table.or("max", max, Item::rate)?;
            if start > max {
                return Err(table.error(&format!("start ({start}) must not be above max ({max})")));
            }
            let headroom = table.or("headroom", HEADROOM, headroom)?;
            Ok(adaptive(start, max, headroom))
        }
    }
}

fn headroom(item: &Item) -> Result<f64> {
    let headroom = item.number()?;
    if headroom > 0.0 && headroom <= MAX_HEADROOM {
        return Ok(headroom);
    }
    Err(item.error(&format!("must be above zero, and at most {MAX_HEADROOM}")))
}

fn ack(item: &Item) -> Result<QuicAck> {
    let table = item.table(ACK)?;
    let usual = QuicAck::new();
    let packets = table.get("packets").map(|item| item.whole(MAX_PACKETS)).transpose()?;
    let delay = table.or("delay", usual.delay, Item::time)?;
    let times = table.or("receive_times", false, Item::boolean)?;
    Ok(usual
        .with_packets(packets.map_or(usual.packets, |packets| packets as u64))
        .with_delay(delay)
        .with_receive_times(times))
}
