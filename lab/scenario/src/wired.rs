//! Hops: the wired part of every network. A network of kind `bottleneck` has only hops.

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::loss::GilbertElliott;
use weir_net::path::Attachment;
use weir_net::{
    Capacity, Changes, Delay, Hop, Jitter, JitterShape, LinkConfig, LossModel, NetemJitter,
    PolicerConfig, QueueLimit, Schedule,
};

use super::aqm::aqm;
use super::error::ScenarioError;
use super::kind::{Access, Kind};
use super::reader::{Item, Table, steps};
use super::trace::{self, Want};
use super::trace_files::TraceFiles;

type Result<T> = std::result::Result<T, ScenarioError>;

/// A network that consists of hops only.
pub(super) const KIND: Kind = Kind {
    name: "bottleneck",
    keys: &[],
    refusal: "",
    place_keys: &[],
    class_keys: &[],
    flow_refusal: "",
    has_hop: true,
    access: no_access,
    attachments: no_attachments,
};

fn no_access(_: &Table, _: TimeDelta, _: &TraceFiles<'_>) -> Result<Option<Access>> {
    Ok(None)
}

fn no_attachments(_: &Table, _: &Access) -> Result<Vec<Attachment>> {
    Ok(Vec::new())
}

/// The keys of `[network]` that describe hops. Every kind of network may have them.
pub(super) const KEYS: &[&str] = &["up", "down", "hop"];
const HOP: &[&str] = &["up", "down"];
const LINK: &[&str] = &[
    "capacity",
    "burst",
    "queue",
    "aqm",
    "policer",
    "delay",
    "jitter",
    "reorder",
    "loss",
    "duplicate",
];
const POLICER: &[&str] = &["rate", "burst"];
const JITTER: &[&str] = &["kind", "amount", "sd", "distribution", "correlation", "reorder"];
const LOSS: &[&str] = &["to_bad", "to_good", "loss_good", "loss_bad", "probability", "correlation"];

/// A policer with a smaller bucket would drop every full packet.
const LARGEST_PACKET: DataSize = DataSize::from_bytes(1_500);
/// Default queue limit [RFC8867 §5.1].
const QUEUE: QueueLimit = QueueLimit::Time(TimeDelta::from_millis(300));

/// The hops in order from A's side to B's: those of `[[network.hop]]`, or the one in `[network]`.
pub(super) fn hops(
    network: &Table,
    duration: TimeDelta,
    files: &TraceFiles<'_>,
) -> Result<Vec<Hop>> {
    let hops = network.tables("hop", HOP)?;
    if hops.is_empty() {
        return Ok(vec![hop(network, duration, files)?]);
    }
    for key in HOP {
        network
            .refuse(key, "each hop has its own; write [network.hop.up] below [[network.hop]]")?;
    }
    hops.iter().map(|table| hop(table, duration, files)).collect()
}

fn hop(table: &Table, duration: TimeDelta, files: &TraceFiles<'_>) -> Result<Hop> {
    let [up, down] =
        [("up", Want::Up), ("down", Want::Down)].map(|(key, direction)| match table.get(key) {
            Some(item) => link(&item.table(LINK)?, direction, duration, files),
            None => Ok(LinkConfig::unlimited(TimeDelta::ZERO)),
        });
    Ok(Hop::new(up?, down?))
}

fn link(
    table: &Table,
    direction: Want,
    duration: TimeDelta,
    files: &TraceFiles<'_>,
) -> Result<LinkConfig> {
    let recorded = Recorded { duration, files };
    let delay = table.or("delay", TimeDelta::ZERO.into(), |item| delay(item, recorded))?;
    let unlimited = LinkConfig::unlimited(delay.clone());
    let (capacity, queue) = match (table.get("capacity"), table.get("queue")) {
        (Some(rate), _) => {
            (capacity(&rate, direction, recorded)?, table.or("queue", QUEUE, Item::queue)?)
        }
        (None, limit) => {
            if let Some(key) = limit.or(table.get("aqm")).or(table.get("burst")) {
                let message = "nothing waits without a capacity; write capacity = \"2Mbps\"";
                return Err(key.error(message));
            }
            (unlimited.capacity, unlimited.queue)
        }
    };
    let (jitter, jitters) =
        table.or("jitter", (Jitter::None, Vec::new()), |item| jitters(item, recorded))?;
    let (loss, losses) =
        table.or("loss", (LossModel::None, Vec::new()), |item| losses(item, recorded))?;
    let managed = table.or("aqm", weir_net::Aqm::DropTail, aqm)?;
    let policer = table.optional("policer", policer)?;
    let burst = table.get("burst").map(|item| burst(&item, &capacity)).transpose()?;
    Ok(LinkConfig::unlimited(delay)
        .with_capacity(capacity)
        .with_burst(burst)
        .with_queue(queue)
        .with_aqm(managed)
        .with_policer(policer)
        .with_jitter(jitter)
        .with_reorder(table.or("reorder", 0.0, Item::probability)?)
        .with_loss(loss)
        .with_duplicate(table.or("duplicate", 0.0, Item::probability)?)
        .with_changes(Changes::new(jitters, losses)))
}

/// What a recording is read for: a run of this duration, from these files.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'f> {
    pub(super) duration: TimeDelta,
    pub(super) files: &'f TraceFiles<'f>,
}

/// The size of a token bucket.
fn burst(item: &Item, capacity: &Capacity) -> Result<DataSize> {
    let size = item.size()?;
    if matches!(capacity, Capacity::Trace(_)) {
        return Err(item.error("opportunities to send have no bucket; leave burst out"));
    }
    if size < LARGEST_PACKET {
        return Err(item.error("a burst is at least one packet; write 1500B or more"));
    }
    Ok(size)
}

fn capacity(item: &Item, direction: Want, of: Recorded<'_>) -> Result<Capacity> {
    if item.is_table() {
        return trace::from_table(&item.table(trace::KEYS)?, direction, of.files, |trace, end| {
            trace.capacity(end.unwrap_or_default())
        });
    }
    let schedule = match item.elements() {
        None => Schedule::constant(item.capacity()?),
        Some(elements) => {
            Schedule::new(steps(&elements, of.duration, "\"1500kbps\"", Item::capacity)?)
        }
    };
    schedule.map(Capacity::Schedule).map_err(|error| item.error(&error.to_string()))
}

fn delay(item: &Item, of: Recorded<'_>) -> Result<Delay> {
    if item.is_table() {
        let table = item.table(trace::DELAY_KEYS)?;
        let steps = trace::from_table(&table, Want::Delay, of.files, |trace, end| {
            trace.times_over(of.duration, end.unwrap_or_default())
        })?;
        let delay = Delay::new(steps).map_err(|error| item.error(&error.to_string()))?;
        let may_reorder = table.or("reorder", false, Item::boolean)?;
        return Ok(if may_reorder { delay } else { delay.in_order() });
    }
    let Some(elements) = item.elements() else { return item.time().map(Delay::from) };
    Delay::new(steps(&elements, of.duration, "\"25ms\"", Item::time)?)
        .map_err(|error| item.error(&error.to_string()))
}

/// A jitter and its later changes: a value, steps, or a recording of its size.
fn jitters(item: &Item, of: Recorded<'_>) -> Result<(Jitter, Vec<(Timestamp, Jitter)>)> {
    let is_trace = item.is_table() && item.named()?.iter().any(|(name, _)| *name == "trace");
    if !is_trace {
        let example = "{ kind = \"netem\", amount = \"10ms\" }";
        return changing(item, of.duration, example, jitter);
    }
    let table = item.table(trace::JITTER_KEYS)?;
    let like = Shape::of(&table)?;
    let sizes = trace::from_table(&table, Want::Jitter, of.files, |trace, end| {
        trace.times_over(of.duration, end.unwrap_or_default())
    })?;
    let steps = sizes.into_iter().map(|(at, size)| (at, like.jitter(size)));
    Ok(first_and_later(steps.collect()))
}

/// A loss and its later changes: a value, steps, or a recording of its ratio.
fn losses(item: &Item, of: Recorded<'_>) -> Result<(LossModel, Vec<(Timestamp, LossModel)>)> {
    let is_trace = item.is_table() && item.named()?.iter().any(|(name, _)| *name == "trace");
    if !is_trace {
        return changing(item, of.duration, "\"5%\"", loss);
    }
    let shares =
        trace::from_table(&item.table(trace::KEYS)?, Want::Loss, of.files, |trace, end| {
            trace.shares_over(of.duration, end.unwrap_or_default())
        })?;
    let steps = shares.into_iter().map(|(at, share)| (at, LossModel::Random(share)));
    Ok(first_and_later(steps.collect()))
}

/// The first value of a recording, which is at zero, and the others.
fn first_and_later<T>(mut steps: Vec<(Timestamp, T)>) -> (T, Vec<(Timestamp, T)>) {
    let later = steps.split_off(1);
    let first = steps.pop().expect("a recording has a first value");
    (first.1, later)
}

/// Reads one value or steps of it: returns the first value and the later steps.
fn changing<'a, T>(
    item: &Item<'a>,
    duration: TimeDelta,
    example: &str,
    value: impl Fn(&Item<'a>) -> Result<T>,
) -> Result<(T, Vec<(Timestamp, T)>)> {
    let Some(elements) = item.elements() else { return Ok((value(item)?, Vec::new())) };
    let mut later = steps(&elements, duration, example, value)?.into_iter();
    let Some((Timestamp::ZERO, first)) = later.next() else {
        return Err(item.error("the first step must be at 0s"));
    };
    let later: Vec<(Timestamp, T)> = later.collect();
    let times = std::iter::once(Timestamp::ZERO).chain(later.iter().map(|step| step.0));
    if let Some((_, early)) = times.clone().zip(times.skip(1)).find(|(before, at)| before >= at) {
        let at = early.as_secs_f64();
        return Err(item.error(&format!("the step at {at} s must come later")));
    }
    Ok((first, later))
}

fn policer(item: &Item) -> Result<PolicerConfig> {
    let table = item.table(POLICER)?;
    let rate = table.require("rate", "\"2Mbps\"")?.rate()?;
    let burst = table.require("burst", "\"30KB\"")?;
    let size = burst.size()?;
    if size < LARGEST_PACKET {
        return Err(burst.error("a burst is at least one packet; write 1500B or more"));
    }
    Ok(PolicerConfig::new(rate, size))
}

#[derive(Clone, Copy)]
enum JitterKind {
    Netem,
    Rfc8868,
}

/// Everything of a jitter but its size.
#[derive(Clone, Copy)]
struct Shape {
    kind: JitterKind,
    distribution: JitterShape,
    correlation: f64,
    reorder: bool,
}

impl Shape {
    fn of(table: &Table) -> Result<Self> {
        let kind = table
            .require("kind", "\"netem\"")?
            .choice(&[("netem", JitterKind::Netem), ("rfc8868", JitterKind::Rfc8868)])?;
        let reorder = table.optional("reorder", Item::boolean)?;
        if matches!(kind, JitterKind::Rfc8868) {
            for key in ["distribution", "correlation"] {
                table.refuse(key, "the jitter of RFC 8868 has none; write kind = \"netem\"")?;
            }
        }
        let shapes = [
            ("uniform", JitterShape::Uniform),
            ("normal", JitterShape::Normal),
            ("pareto", JitterShape::Pareto),
        ];
        let distribution = table.choice("distribution", JitterShape::Uniform, &shapes)?;
        let correlation = table.or("correlation", 0.0, correlation)?;
        let reorder = reorder.unwrap_or(matches!(kind, JitterKind::Netem));
        Ok(Self { kind, distribution, correlation, reorder })
    }

    fn jitter(self, size: TimeDelta) -> Jitter {
        let Self { kind, distribution, correlation, reorder } = self;
        match (kind, distribution) {
            (JitterKind::Rfc8868, _) => Jitter::HalfNormal { sd: size, reorder },
            (JitterKind::Netem, JitterShape::Uniform) if correlation == 0.0 => {
                Jitter::Uniform { amount: size, reorder }
            }
            (JitterKind::Netem, _) => {
                Jitter::Netem(NetemJitter { amount: size, distribution, correlation, reorder })
            }
        }
    }
}

/// A correlation between successive packets. One of 1 would never change.
fn correlation(item: &Item) -> Result<f64> {
    match item.probability()? {
        correlation if correlation < 1.0 => Ok(correlation),
        _ => Err(item.error("must be below 100%")),
    }
}

fn jitter(item: &Item) -> Result<Jitter> {
    let table = item.table(JITTER)?;
    let shape = Shape::of(&table)?;
    let size = match shape.kind {
        JitterKind::Netem => {
            table.refuse("sd", "netem's jitter has an amount instead")?;
            table.require("amount", "\"80ms\"")?.time()?
        }
        JitterKind::Rfc8868 => {
            table.refuse("amount", "the jitter of RFC 8868 has an sd instead")?;
            table.require("sd", "\"5ms\"")?.time()?
        }
    };
    Ok(shape.jitter(size))
}

fn loss(item: &Item) -> Result<LossModel> {
    if !item.is_table() {
        return item.probability().map(LossModel::Random);
    }
    let table = item.table(LOSS)?;
    if let Some(ratio) = table.get("probability") {
        for key in ["to_bad", "to_good", "loss_good", "loss_bad"] {
            table
                .refuse(key, "write either probability and correlation, or the four of a model")?;
        }
        let correlation = correlation(&table.require("correlation", "\"25%\"")?)?;
        let model = GilbertElliott::correlated(ratio.probability()?, correlation);
        return Ok(LossModel::GilbertElliott(model));
    }
    table.refuse("correlation", "it needs a probability, such as probability = \"5%\"")?;
    let probability = |key| table.require(key, "0.01")?.probability();
    let model = GilbertElliott {
        to_bad: probability("to_bad")?,
        to_good: probability("to_good")?,
        loss_good: probability("loss_good")?,
        loss_bad: probability("loss_bad")?,
    };
    if model.to_bad + model.to_good == 0.0 {
        return Err(table.error("to_bad and to_good must not both be 0"));
    }
    Ok(LossModel::GilbertElliott(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use weir::units::Bitrate;

    /// The policer of a link with these keys.
    fn policer_of(keys: &str) -> std::result::Result<Option<PolicerConfig>, String> {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
             [network.up]\n{keys}\n[[flow]]\n"
        );
        match parse("x.toml", &text, None) {
            Ok(mut scenario) => Ok(scenario.hops.remove(0).up.policer),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_policer_has_a_rate_and_a_packets_burst_or_more_and_no_capacity() {
        let config = PolicerConfig::new(Bitrate::from_kbps(2_000), DataSize::from_bytes(30_000));
        let keys = "policer = { rate = \"2Mbps\", burst = \"30KB\" }";
        assert_eq!(policer_of(keys), Ok(Some(config)));
        assert_eq!(policer_of("capacity = \"2Mbps\""), Ok(None));
        let short = policer_of("policer = { rate = \"2Mbps\", burst = \"1000B\" }").unwrap_err();
        assert!(short.ends_with("a burst is at least one packet; write 1500B or more"), "{short}");
        assert!(policer_of("policer = { rate = \"2Mbps\" }").unwrap_err().contains("burst"));
    }
}
