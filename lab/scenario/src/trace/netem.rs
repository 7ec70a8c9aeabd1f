//! The JSON and TOML of the crate netem-trace, which the emulator rattan reads.
//!
//! A file is one model: `{"NAME": {...}}`. These are read: `StaticBwConfig`, `TraceBwConfig`,
//! `SawtoothBwConfig` without noise, `StaticDelayConfig`, `StaticLossConfig`, and lists of models:
//! `RepeatedBwPatternConfig`, `RepeatedDelayPatternConfig`, `RepeatedLossPatternConfig`. Values are
//! texts such as `"12Mbps"` and `"1s"` (with the crate's feature `human`), or objects such as
//! `{"gbps": 0, "bps": 12000000}` and `{"secs": 1, "nanos": 0}` (without it). Values that a file
//! leaves out are those of the crate.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::series::{MAX_LENGTH, Samples};
use super::unit::Unit;
use super::{MAX_JSON, MAX_SAMPLES, Options, Result, TraceError, Want, quoted};

pub(super) fn read(text: &str, options: &Options) -> Result<Samples> {
    if text.len() > MAX_JSON {
        let message = format!("is larger than {} MB, too large for JSON", MAX_JSON / 1_000_000);
        return Err(TraceError::of_file(&message));
    }
    let model: Model = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| TraceError::of_json(&error))?,
        false => of_toml(text)?,
    };
    let mut steps = Steps { kind: Kind::of(options.want)?, list: Vec::new(), length: 0 };
    steps.play(model, true)?;
    let unit = steps.kind.unit();
    let mut samples = Samples::strict();
    let mut at = 0;
    for (value, lasts) in steps.list {
        samples.push(0, at, unit.value(0, value)?)?;
        at += lasts;
    }
    samples.end_at(at);
    Ok(samples)
}

/// Whether a text is a model, by its first key.
pub(super) fn is_model(text: &str, line: &str) -> bool {
    let name = match line.strip_prefix('{') {
        Some(_) => text.split('"').nth(1).unwrap_or_default(),
        None => line.trim_start_matches('[').split([']', '.', '=', ' ']).next().unwrap_or_default(),
    };
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word && name.ends_with("Config")
}

fn of_toml(text: &str) -> Result<Model> {
    toml::from_str(text).map_err(|error| {
        let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or_default();
        TraceError::at(1 + before.matches('\n').count(), error.message())
    })
}

/// What a model is of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Rate,
    Delay,
    Loss,
}

impl Kind {
    fn of(want: Want) -> Result<Self> {
        match want {
            Want::Up | Want::Down => Ok(Self::Rate),
            Want::Delay => Ok(Self::Delay),
            Want::Loss => Ok(Self::Loss),
            Want::Decibels => Err(TraceError::of_file("netem-trace's JSON holds no decibels")),
            Want::Jitter => Err(TraceError::of_file("netem-trace's JSON holds no jitter")),
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Rate => Unit::Rate(1.0),
            Self::Delay => Unit::Time(1.0),
            Self::Loss => Unit::Share(1.0),
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Rate => "bandwidths",
            Self::Delay => "delays",
            Self::Loss => "losses",
        }
    }
}

#[derive(Deserialize)]
enum Model {
    #[serde(rename = "StaticBwConfig")]
    Static(Static),
    #[serde(rename = "TraceBwConfig")]
    Trace(Pattern),
    #[serde(rename = "SawtoothBwConfig")]
    Sawtooth(Sawtooth),
    #[serde(rename = "RepeatedBwPatternConfig")]
    Repeated(Repeated),
    #[serde(rename = "NormalizedBwConfig")]
    Normalized(Refused),
    #[serde(rename = "StaticDelayConfig")]
    Delay(StaticDelay),
    #[serde(rename = "RepeatedDelayPatternConfig")]
    RepeatedDelay(Repeated),
    #[serde(rename = "StaticLossConfig")]
    Loss(StaticLoss),
    #[serde(rename = "RepeatedLossPatternConfig")]
    RepeatedLoss(Repeated),
}

/// A delay; 10 ms and 1 s where the file leaves them out, as in the crate.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StaticDelay {
    delay: Span,
    duration: Span,
}

impl Default for StaticDelay {
    fn default() -> Self {
        Self { delay: Span(SECOND / 100), duration: Span(SECOND) }
    }
}

/// The probability that a packet is lost; then the one after a loss, and so on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StaticLoss {
    loss: Vec<f64>,
    #[serde(default = "one_second")]
    duration: Span,
}

fn one_second() -> Span {
    Span(SECOND)
}

impl Model {
    fn kind(&self) -> Kind {
        match self {
            Self::Delay(_) | Self::RepeatedDelay(_) => Kind::Delay,
            Self::Loss(_) | Self::RepeatedLoss(_) => Kind::Loss,
            _ => Kind::Rate,
        }
    }
}

/// A model whose rates are drawn at random by a generator that is the crate's.
struct Refused;

impl<'de> Deserialize<'de> for Refused {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(reader)?;
        let message = "NormalizedBwConfig draws its rates at random; write what it drew as steps";
        Err(D::Error::custom(message))
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Static {
    bw: Rate,
    duration: Span,
}

impl Default for Static {
    fn default() -> Self {
        Self { bw: Rate(12e6), duration: Span(SECOND) }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sawtooth {
    bottom: Rate,
    top: Rate,
    interval: Span,
    duty_ratio: f64,
    duration: Span,
    step: Span,
    std_dev: Rate,
    // Of the noise only.
    #[serde(rename = "seed")]
    _seed: IgnoredAny,
    #[serde(rename = "upper_noise_bound")]
    _upper_noise_bound: IgnoredAny,
    #[serde(rename = "lower_noise_bound")]
    _lower_noise_bound: IgnoredAny,
}

impl Default for Sawtooth {
    fn default() -> Self {
        Self {
            bottom: Rate(0.0),
            top: Rate(12e6),
            interval: Span(SECOND),
            duty_ratio: 0.5,
            duration: Span(SECOND),
            step: Span(SECOND / 1_000),
            std_dev: Rate(0.0),
            _seed: IgnoredAny,
            _upper_noise_bound: IgnoredAny,
            _lower_noise_bound: IgnoredAny,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Repeated {
    pattern: Vec<Model>,
    /// How often; 0 is for ever.
    count: u64,
}

/// Durations, each with the rates that last so long one after another.
struct Pattern(Vec<(Span, Vec<Rate>)>);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Object {
            pattern: Vec<(Span, Vec<Rate>)>,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Pattern;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pattern, or a list of [milliseconds, [Mbit/s, ...]]")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pattern, A::Error> {
                let object = Object::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Pattern(object.pattern))
            }
            // The form of its feature `trace-ext`.
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Pattern, A::Error> {
                let list = SeqAccessDeserializer::new(list);
                let list: Vec<(f64, Vec<f64>)> = Vec::deserialize(list)?;
                let mut pattern = Vec::new();
                for (ms, mbps) in list {
                    let Some(nanos) = nanos(ms * 1e6) else {
                        return Err(A::Error::custom("a duration is out of range"));
                    };
                    let rates = mbps.into_iter().map(|mbps| Rate(mbps * 1e6));
                    pattern.push((Span(nanos), rates.collect()));
                }
                Ok(Pattern(pattern))
            }
        }
        reader.deserialize_any(Either)
    }
}

/// A rate in bit/s.
#[derive(Clone, Copy)]
struct Rate(f64);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateObject {
    gbps: u64,
    bps: u64,
}

const RATES: [(&str, f64); 5] = [("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9), ("t", 1e12)];
const PER_SECOND: [&str; 3] = ["bps", "bit/s", "b/s"];

/// The bits per second of a unit.
fn bps_of(unit: &str) -> Option<f64> {
    let prefix = PER_SECOND.iter().find_map(|per_second| unit.strip_suffix(per_second))?;
    let prefix = prefix.to_ascii_lowercase();
    let (_, bps) = RATES.iter().find(|known| known.0 == prefix)?;
    Some(*bps)
}

impl Quantity for Rate {
    type Object = RateObject;
    const WORDS: &str = "a rate such as \"12Mbps\" or {\"gbps\": 0, \"bps\": 12000000}";

    fn of_text(text: &str) -> Option<Self> {
        // The crate cuts off what is below 1 bit/s.
        Some(Self(sum(text, bps_of)?.floor()))
    }

    fn of_object(object: RateObject) -> Option<Self> {
        Some(Self(object.gbps as f64 * 1e9 + object.bps as f64))
    }
}

/// A duration in nanoseconds.
#[derive(Clone, Copy)]
struct Span(i64);

const SECOND: i64 = 1_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpanObject {
    secs: u64,
    nanos: u64,
}

impl Quantity for Span {
    type Object = SpanObject;
    const WORDS: &str = "a duration such as \"1s\" or {\"secs\": 1, \"nanos\": 0}";

    fn of_text(text: &str) -> Option<Self> {
        let time = sum(text, |unit| match unit {
            "ns" | "nsec" => Some(1.0),
            "us" | "µs" | "usec" => Some(1e3),
            "ms" | "msec" => Some(1e6),
            "s" | "sec" | "second" | "seconds" => Some(1e9),
            "m" | "min" | "minute" | "minutes" => Some(60e9),
            "h" | "hr" | "hour" | "hours" => Some(3600e9),
            "d" | "day" | "days" => Some(86_400e9),
            _ => None,
        });
        time.and_then(nanos).map(Self)
    }

    fn of_object(object: SpanObject) -> Option<Self> {
        nanos(object.secs as f64 * 1e9 + object.nanos as f64).map(Self)
    }
}

fn nanos(nanos: f64) -> Option<i64> {
    (0.0..=MAX_LENGTH as f64).contains(&nanos).then_some(nanos.round() as i64)
}

/// Adds up numbers with units, such as `1s 500ms`.
fn sum(text: &str, unit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let (mut rest, mut total) = (text.trim(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let after = rest[end..].trim_start();
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace());
        let (name, after) = after.split_at(end.unwrap_or(after.len()));
        total += number * unit(name)?;
        rest = after.trim_start();
    }
    Some(total)
}

/// A value that is a text or an object.
trait Quantity: Sized {
    type Object: for<'de> Deserialize<'de>;
    const WORDS: &str;

    fn of_text(text: &str) -> Option<Self>;
    fn of_object(object: Self::Object) -> Option<Self>;
}

struct Either<Q>(PhantomData<Q>);

impl<'de, Q: Quantity> Visitor<'de> for Either<Q> {
    type Value = Q;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Q::WORDS)
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Q, E> {
        Q::of_text(text)
            .ok_or_else(|| E::custom(format!("expected {}, not {}", Q::WORDS, quoted(text))))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Q, A::Error> {
        let object = Q::Object::deserialize(MapAccessDeserializer::new(map))?;
        Q::of_object(object).ok_or_else(|| A::Error::custom(format!("expected {}", Q::WORDS)))
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Either(PhantomData))
    }
}
impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Either(PhantomData))
    }
}

/// Values with their durations in nanoseconds.
struct Steps {
    kind: Kind,
    list: Vec<(f64, i64)>,
    length: i64,
}

impl Steps {
    fn push(&mut self, value: f64, lasts: Span) -> Result<()> {
        // A duration of zero is the end of a model, and no step.
        if lasts.0 == 0 {
            return Ok(());
        }
        if self.list.len() == MAX_SAMPLES {
            return Err(TraceError::of_file(&format!("more than {MAX_SAMPLES} steps")));
        }
        self.length += lasts.0;
        if self.length > MAX_LENGTH {
            return Err(TraceError::of_file("the trace is longer than 1000 hours"));
        }
        self.list.push((value, lasts.0));
        Ok(())
    }

    /// Adds the steps of a model. Only the last one may go on for ever.
    fn play(&mut self, model: Model, is_last: bool) -> Result<()> {
        let kind = model.kind();
        if kind != self.kind {
            let (found, wanted) = (kind.words(), self.kind.words());
            return Err(TraceError::of_file(&format!("{wanted} are wanted, and it has {found}")));
        }
        match model {
            Model::Static(of) => self.push(of.bw.0, of.duration),
            Model::Trace(Pattern(pattern)) => {
                for (lasts, rates) in pattern {
                    for rate in rates {
                        self.push(rate.0, lasts)?;
                    }
                }
                Ok(())
            }
            Model::Sawtooth(of) => self.sawtooth(&of),
            Model::Repeated(of) | Model::RepeatedDelay(of) | Model::RepeatedLoss(of) => {
                self.repeated(of, is_last)
            }
            Model::Normalized(Refused) => Ok(()),
            Model::Delay(of) => self.push(of.delay.0 as f64 / 1e9, of.duration),
            Model::Loss(of) => match of.loss.as_slice() {
                [] => self.push(0.0, of.duration),
                [loss] => self.push(*loss, of.duration),
                _ => Err(TraceError::of_file(
                    "StaticLossConfig with several losses depends on the packet before; write \
                     to_bad and to_good instead",
                )),
            },
        }
    }

    fn repeated(&mut self, of: Repeated, is_last: bool) -> Result<()> {
        if of.count == 0 && !(is_last && self.list.is_empty()) {
            return Err(TraceError::of_file(
                "a pattern within another one has the count 0, for ever",
            ));
        }
        let first = self.list.len();
        let models = of.pattern.len();
        for (index, model) in of.pattern.into_iter().enumerate() {
            // The whole repeats, so a single model may do so too.
            self.play(model, is_last && models == 1 && of.count == 0 && index == 0)?;
        }
        let one = self.list.len() - first;
        for _ in 1..of.count {
            if one == 0 {
                break;
            }
            for index in first..first + one {
                let (rate, lasts) = self.list[index];
                self.push(rate, Span(lasts))?;
            }
        }
        Ok(())
    }

    /// A rate that rises from the bottom to the top for a part of each interval, and falls for the
    /// rest.
    fn sawtooth(&mut self, of: &Sawtooth) -> Result<()> {
        let Sawtooth { bottom: Rate(bottom), top: Rate(top), duty_ratio, .. } = *of;
        if of.std_dev.0 > 0.0 {
            let message = "SawtoothBwConfig with std_dev draws noise at random; leave it out";
            return Err(TraceError::of_file(message));
        }
        let is_sound = bottom <= top
            && (0.0..=1.0).contains(&duty_ratio)
            && of.step.0 > 0
            && of.interval.0 > 0;
        if !is_sound {
            let message = "SawtoothBwConfig needs bottom up to top, a duty_ratio from 0 to 1, \
                           and step and interval above 0";
            return Err(TraceError::of_file(message));
        }
        let interval = of.interval.0 as f64;
        let change = interval * duty_ratio;
        let (mut left, mut current) = (of.duration.0, 0_i64);
        while left > 0 {
            let at = current as f64;
            let share = if at < change {
                at / change
            } else if interval > change {
                1.0 - (at - change) / (interval - change)
            } else {
                1.0
            };
            let lasts = of.step.0.min(left);
            self.push((bottom + (top - bottom) * share).floor().max(0.0), Span(lasts))?;
            left -= lasts;
            current = (current + lasts) % of.interval.0;
        }
        Ok(())
    }
}
