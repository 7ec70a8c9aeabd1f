//! The families of generated scenarios, and how each draws its values.

use std::fmt::Write as _;

use super::draw::{Draw, two_digits};

mod radio;
mod wide;
mod wired;
mod wireless;

/// A kind of generated scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// A constant capacity.
    Constant,
    /// A capacity that steps up and down.
    Steps,
    /// A capacity that takes a random step each second.
    Walk,
    /// A capacity that varies every 20 to 100 ms, as in an LTE cell.
    Lte,
    /// Loss that is not caused by congestion.
    Loss,
    /// A queue that drops or marks early.
    Aqm,
    /// TCP on the same link.
    Tcp,
    /// Two to five flows under the same controller.
    Equals,
    /// A flow under another controller on the same link.
    Rivals,
    /// Sources that pause, that limit the rate, or that share the link with constant traffic.
    Sources,
    /// A Wi-Fi cell.
    Wifi,
    /// A cellular cell.
    Cellular,
    /// A capacity that walks, fades and goes away, as recorded radio links do.
    Radio,
    /// Any rate, round trip, interval of reports and clock. No seed draws it by itself.
    Wide,
}

/// The first seed whose family may be [`Family::Radio`]: it came when the sets up to this seed were
/// in use, and their scenarios stay as they are.
pub(super) const FIRST_WITH_RADIO: u64 = 601;

impl Family {
    /// All families, in the order of tables.
    pub const ALL: [Self; 14] = [
        Self::Constant,
        Self::Steps,
        Self::Walk,
        Self::Lte,
        Self::Loss,
        Self::Aqm,
        Self::Tcp,
        Self::Equals,
        Self::Rivals,
        Self::Sources,
        Self::Wifi,
        Self::Cellular,
        Self::Radio,
        Self::Wide,
    ];

    /// Families that a seed has only by `--family`: they came when the sets were in use.
    pub const ASKED_FOR: [Self; 2] = [Self::Radio, Self::Wide];

    /// The families that seeds like this one draw from.
    fn drawn(seed: u64) -> &'static [Self] {
        let drawn = Self::ALL.len() - 1;
        if seed < FIRST_WITH_RADIO { &Self::ALL[..drawn - 1] } else { &Self::ALL[..drawn] }
    }

    /// The family of a seed: the seed modulo the number of families.
    pub(super) fn of(seed: u64) -> Self {
        let drawn = Self::drawn(seed);
        drawn[(seed % drawn.len() as u64) as usize]
    }

    /// Name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Steps => "steps",
            Self::Walk => "walk",
            Self::Lte => "lte",
            Self::Loss => "loss",
            Self::Aqm => "aqm",
            Self::Tcp => "tcp",
            Self::Equals => "equals",
            Self::Rivals => "rivals",
            Self::Sources => "sources",
            Self::Wifi => "wifi",
            Self::Cellular => "cellular",
            Self::Radio => "radio",
            Self::Wide => "wide",
        }
    }

    /// What its scenarios have in common, in one line.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Constant => "A constant capacity",
            Self::Steps => "A capacity that steps up and down",
            Self::Walk => "A capacity that takes a random step each second",
            Self::Lte => "A capacity that varies as in an LTE cell",
            Self::Loss => "Random or bursty loss",
            Self::Aqm => "A queue under active queue management",
            Self::Tcp => "A flow beside TCP",
            Self::Equals => "Equal flows that share a link",
            Self::Rivals => "A flow beside another controller",
            Self::Sources => "A source that pauses or limits the rate",
            Self::Wifi => "A Wi-Fi cell",
            Self::Cellular => "A cellular cell",
            Self::Radio => "A capacity that varies as recorded radio links do",
            Self::Wide => "Any rate, round trip, feedback and clock",
        }
    }

    /// The scenario file of a seed.
    pub(super) fn scenario(self, seed: u64, draw: &mut Draw) -> String {
        match self {
            Self::Constant => wired::constant(seed, draw),
            Self::Steps => wired::steps(seed, draw),
            Self::Walk => wired::walk(seed, draw),
            Self::Lte => wired::lte(seed, draw),
            Self::Loss => wired::loss(seed, draw),
            Self::Aqm => wired::aqm(seed, draw),
            Self::Tcp => wired::tcp(seed, draw),
            Self::Equals => wired::equals(seed, draw),
            Self::Rivals => wired::rivals(seed, draw),
            Self::Sources => wired::sources(seed, draw),
            Self::Wifi => wireless::wifi(seed, draw),
            Self::Cellular => wireless::cellular(seed, draw),
            Self::Radio => radio::radio(seed, draw),
            Self::Wide => wide::wide(seed, draw),
        }
    }
}

/// The first keys of a scenario file.
fn head(family: Family, seed: u64, duration_s: u64, feedback_ms: u64) -> String {
    let choice = match Family::ASKED_FOR.contains(&family) {
        true => format!("--family {} ", family.name()),
        false => String::new(),
    };
    format!(
        "title = \"{}, seed {seed}\"\n\
         source = \"weir generate {choice}{seed}\"\n\
         description = \"Family {}. docs/reference/generated-scenarios.md says how values \
         are drawn.\"\n\
         duration = \"{duration_s}s\"\n\
         feedback_interval = \"{feedback_ms}ms\"\n",
        family.title(),
        family.name()
    )
}

/// The receiver's interval between feedback packets, ms.
fn feedback_interval(draw: &mut Draw) -> u64 {
    draw.one(&[20, 50, 50, 100])
}

/// The table `[media]`: limits, source and feedback of every media flow. `kbps` is the largest rate
/// that is worth asking for.
fn media(draw: &mut Draw, kbps: f64) -> String {
    // Two of three flows can use whatever the link carries. The others are limited below it.
    let share =
        if draw.chance(2.0 / 3.0) { draw.uniform(1.2, 2.0) } else { draw.uniform(0.5, 0.9) };
    let most = two_digits((kbps * share).max(200.0));
    let least = if kbps < 600.0 { 50 } else { 150 };
    let start = draw.one(&[150, 300, 300, 1_000]).clamp(least, most);
    let source = source(draw, kbps);
    let feedback = draw.one(&["twcc", "twcc", "ccfb"]);
    format!(
        "\n[media]\nmin_bitrate = \"{least}kbps\"\nstart_bitrate = \"{start}kbps\"\n\
         max_bitrate = \"{most}kbps\"\nsource = {source}\nfeedback = \"{feedback}\"\n"
    )
}

/// A media source that can produce this rate. The encoder's model was measured up to 2.5 Mbit/s.
fn source(draw: &mut Draw, kbps: f64) -> String {
    let kind = match kbps {
        ..2_500.0 => draw.one(&["filler", "rfc8593", "encoder"]),
        _ => draw.one(&["filler", "rfc8593"]),
    };
    let fps = draw.one(&[15, 30, 30, 60]);
    match kind {
        "rfc8593" => {
            let reaction = draw.one(&[0, 100, 200]);
            format!("{{ kind = \"rfc8593\", fps = {fps}, reaction = \"{reaction}ms\" }}")
        }
        kind => format!("{{ kind = \"{kind}\", fps = {fps} }}"),
    }
}

/// Steps of a capacity as a list: times in ms, rates in kbit/s.
fn list(steps: &[(u64, u64)]) -> String {
    let mut text = String::from("[");
    for (index, (ms, kbps)) in steps.iter().enumerate() {
        let gap = if index == 0 { "" } else { ", " };
        write!(text, "{gap}[\"{ms}ms\", \"{kbps}kbps\"]").expect("a string takes any text");
    }
    text + "]"
}
