//! The carrier: technology, resource blocks, layers and duplexing.

use weir_net::cellular::carrier::{LTE_PRBS_MAX, NR_PRBS_MAX, NUMEROLOGY_MAX, SLOT_SYMBOLS};
use weir_net::cellular::{Carrier, Directions, Duplex, SlotKind, Technology};

use super::Result;
use super::values::{directed, whole};
use crate::error::quoted;
use crate::reader::{Item, Table};

/// Keys that only NR has.
const NR: &[&str] = &["numerology", "symbols", "qam256", "tdd"];
const TDD: &[&str] = &["pattern", "down", "up"];
/// Default symbols of a special slot for the downlink and the uplink.
const SPECIAL: (u8, u8) = (10, 2);
/// Longest TDD pattern in slots: 10 ms at a spacing of 120 kHz.
const PATTERN_MAX: usize = 80;
/// Smallest carrier of LTE in resource blocks.
const LTE_PRBS_MIN: u32 = 6;
/// Smallest carrier of NR in resource blocks.
const NR_PRBS_MIN: u32 = 11;
const LAYERS_MAX: u32 = 8;

/// Resource blocks of LTE (3GPP TS 36.101 Table 5.6-1).
const LTE_BANDWIDTHS: &[(&str, u16)] =
    &[("1.4MHz", 6), ("3MHz", 15), ("5MHz", 25), ("10MHz", 50), ("15MHz", 75), ("20MHz", 100)];
/// Resource blocks of NR, by numerology (3GPP TS 38.101-1 and 38.101-2, Table 5.3.2-1).
const NR_BANDWIDTHS: [&[(&str, u16)]; 4] = [
    &[("20MHz", 106)],
    &[("20MHz", 51), ("100MHz", 273)],
    &[("20MHz", 24), ("100MHz", 135)],
    &[("100MHz", 66)],
];

pub(super) fn carrier(network: &Table) -> Result<Carrier> {
    let is_nr = network.choice("technology", false, &[("lte", false), ("nr", true)])?;
    let mut carrier = if is_nr {
        let numerology = network.or("numerology", 1, |item| {
            whole(item, 0..=u32::from(NUMEROLOGY_MAX)).map(|mu| mu as u8)
        })?;
        let mut carrier = Carrier::nr(numerology, 0);
        carrier.symbols = network.or("symbols", SLOT_SYMBOLS, symbols)?;
        carrier.qam256 = network.or("qam256", false, Item::boolean)?;
        carrier.duplex = network.or("tdd", Duplex::Frequency, tdd)?;
        carrier
    } else {
        for key in NR {
            network.refuse(key, "only NR has it; write technology = \"nr\"")?;
        }
        Carrier::lte(0)
    };
    carrier.prbs = prbs(network, carrier.technology)?;
    if let Some(item) = network.get("layers") {
        carrier.layers = directed(&item, Some(carrier.layers), |item| {
            whole(item, 1..=LAYERS_MAX).map(|layers| layers as u8)
        })?;
    }
    Ok(carrier)
}

fn symbols(item: &Item) -> Result<u8> {
    let number = item.number()?;
    let known = [2, 4, 7, SLOT_SYMBOLS].into_iter().find(|it| f64::from(*it) == number);
    known.ok_or_else(|| item.error("must be 2, 4 or 7 for mini-slots, or 14"))
}

/// Reads `bandwidth` or `prbs`.
fn prbs(network: &Table, technology: Technology) -> Result<Directions<u16>> {
    let (range, bandwidths) = match technology {
        Technology::Lte => (LTE_PRBS_MIN..=u32::from(LTE_PRBS_MAX), LTE_BANDWIDTHS),
        Technology::Nr { numerology } => (
            NR_PRBS_MIN..=u32::from(NR_PRBS_MAX),
            NR_BANDWIDTHS[usize::from(numerology.min(NUMEROLOGY_MAX))],
        ),
    };
    match (network.get("prbs"), network.get("bandwidth")) {
        (Some(item), None) => {
            directed(&item, None, |item| whole(item, range.clone()).map(|prbs| prbs as u16))
        }
        (None, Some(item)) => directed(&item, None, |item| item.choice(bandwidths)),
        (Some(_), Some(item)) => Err(item.error("prbs says it; leave one of the two out")),
        (None, None) => {
            let example = format!("\"{}\"", bandwidths[bandwidths.len() / 2].0);
            Err(network.require("bandwidth", &example).expect_err("it is not there"))
        }
    }
}

/// Reads `"DDDSU"`, or `{ pattern = "DDDSU", down = 10, up = 2 }` with the symbols of a special
/// slot.
fn tdd(item: &Item) -> Result<Duplex> {
    let (pattern, special) = if item.is_table() {
        let table = item.table(TDD)?;
        let mut special = SPECIAL;
        for (key, symbols) in [("down", &mut special.0), ("up", &mut special.1)] {
            *symbols = table.or(key, *symbols, |item| {
                whole(item, 0..=u32::from(SLOT_SYMBOLS)).map(|count| count as u8)
            })?;
        }
        if special.0 + special.1 > SLOT_SYMBOLS {
            return Err(table.error("a slot has 14 symbols; down and up must fit into it"));
        }
        (table.require("pattern", "\"DDDSU\"")?, special)
    } else {
        (item.clone(), SPECIAL)
    };
    let text = pattern.string("a pattern such as \"DDDSU\"")?;
    let kinds = text.chars().take(PATTERN_MAX + 1).map(|letter| match letter {
        'D' => Some(SlotKind::Down),
        'U' => Some(SlotKind::Up),
        'S' => Some(SlotKind::Special { down: special.0, up: special.1 }),
        _ => None,
    });
    let slots: Option<Vec<SlotKind>> = kinds.collect();
    let Some(slots) = slots.filter(|slots| slots.len() <= PATTERN_MAX) else {
        let error =
            format!("{} is not a pattern; write D, S and U for up to 80 slots", quoted(text));
        return Err(pattern.error(&error));
    };
    if slots.contains(&SlotKind::Down) && slots.contains(&SlotKind::Up) {
        return Ok(Duplex::Time(slots));
    }
    Err(pattern.error("a pattern needs a slot for each direction, as in \"DDDSU\""))
}
