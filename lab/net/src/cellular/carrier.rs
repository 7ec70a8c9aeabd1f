//! The carrier: TTIs, resource blocks, duplexing, and how many bits a block carries.

use std::sync::LazyLock;

use weir::units::{TimeDelta, Timestamp};

use super::directions::Directions;
use super::errors::{Modulation, Scheme};
use crate::path::Direction;

/// Number of a TTI, from 0 at time zero.
pub(super) type Tti = u64;

/// Symbols of a slot with a normal cyclic prefix.
pub const SLOT_SYMBOLS: u8 = 14;
/// Length of a slot at a subcarrier spacing of 15 kHz, and of a subframe of LTE.
const SUBFRAME: TimeDelta = TimeDelta::from_millis(1);
/// Most resource blocks of an LTE carrier in the table of block sizes.
pub const LTE_PRBS_MAX: u16 = 110;
/// Most resource blocks of an NR carrier (3GPP TS 38.101).
pub const NR_PRBS_MAX: u16 = 275;
/// Highest numerology with data, 120 kHz.
pub const NUMEROLOGY_MAX: u8 = 3;

/// Radio technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technology {
    /// LTE (4G).
    Lte,
    /// NR (5G).
    Nr {
        /// `mu`: the subcarrier spacing is 15 kHz times two to this power, 0 to 3.
        numerology: u8,
    },
}

/// Direction of a slot in time division duplex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// All symbols carry downlink.
    Down,
    /// All symbols carry uplink.
    Up,
    /// The first symbols carry downlink, the last ones uplink, with a gap between them.
    Special {
        /// Symbols for the downlink.
        down: u8,
        /// Symbols for the uplink.
        up: u8,
    },
}

/// How the two directions share the spectrum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duplex {
    /// Each direction has a carrier of its own.
    Frequency,
    /// Slots take turns in this pattern, which repeats.
    Time(Vec<SlotKind>),
}

/// A carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Carrier {
    /// Radio technology.
    pub technology: Technology,
    /// Resource blocks (PRBs) in each direction.
    pub prbs: Directions<u16>,
    /// Layers of spatial multiplexing. Each one carries a full block at the same signal quality.
    pub layers: Directions<u8>,
    /// How the directions share the spectrum.
    pub duplex: Duplex,
    /// Symbols of a TTI: 14, or 2, 4 or 7 for mini-slots.
    pub symbols: u8,
    /// Whether the schemes of 256-QAM are used (NR only).
    pub qam256: bool,
    /// Whether the downlink leaves resource blocks unused that do not fill a group, as ns-3 does.
    pub whole_groups: bool,
}

impl Carrier {
    /// An LTE carrier pair with this many resource blocks in each direction and one layer.
    pub const fn lte(prbs: u16) -> Self {
        Self {
            technology: Technology::Lte,
            prbs: Directions { up: prbs, down: prbs },
            layers: Directions { up: 1, down: 1 },
            duplex: Duplex::Frequency,
            symbols: SLOT_SYMBOLS,
            qam256: false,
            whole_groups: false,
        }
    }

    /// An NR carrier with this numerology and this many resource blocks in each direction.
    pub fn nr(numerology: u8, prbs: u16) -> Self {
        Self { technology: Technology::Nr { numerology }, ..Self::lte(prbs) }
    }

    /// Length of a slot.
    fn slot(&self) -> TimeDelta {
        match self.technology {
            Technology::Lte => SUBFRAME,
            Technology::Nr { numerology } => SUBFRAME / (1_i64 << numerology),
        }
    }

    /// Number of TTIs in a slot.
    fn ttis_per_slot(&self) -> u64 {
        u64::from((SLOT_SYMBOLS / self.symbols.clamp(1, SLOT_SYMBOLS)).max(1))
    }

    /// Length of a TTI, rounded down to nanoseconds.
    pub fn tti(&self) -> TimeDelta {
        self.slot() / self.ttis_per_slot() as i64
    }

    /// Number of whole TTIs in a time, at least one.
    pub(super) fn ttis(&self, time: TimeDelta) -> u64 {
        let per_slot = self.ttis_per_slot() as i64;
        // A division of 128 bits takes a hundred times as long.
        if let Some(slots) = per_slot.checked_mul(time.as_nanos()) {
            return (slots / self.slot().as_nanos()).max(1) as u64;
        }
        let slots = i128::from(per_slot) * i128::from(time.as_nanos());
        ((slots / i128::from(self.slot().as_nanos())).max(1)) as u64
    }

    /// When a TTI begins.
    pub(super) fn start(&self, tti: Tti) -> Timestamp {
        let (slot, per_slot) = (self.slot().as_nanos().cast_unsigned(), self.ttis_per_slot());
        if let Some(nanos) = tti.checked_mul(slot)
            && let Ok(nanos) = i64::try_from(if per_slot == 1 { nanos } else { nanos / per_slot })
        {
            return Timestamp::from_nanos(nanos);
        }
        let nanos = u128::from(tti) * u128::from(slot) / u128::from(per_slot);
        Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// Length of this many symbols.
    pub(super) fn symbols_time(&self, symbols: u8) -> TimeDelta {
        self.slot() * i64::from(symbols) / i64::from(SLOT_SYMBOLS)
    }

    /// The first TTI that begins after this time.
    pub(super) fn after(&self, now: Timestamp) -> Tti {
        let since = (now - Timestamp::ZERO).as_nanos().max(0).cast_unsigned();
        let (slot, per_slot) = (self.slot().as_nanos().cast_unsigned(), self.ttis_per_slot());
        let mut tti = match since.checked_mul(per_slot) {
            Some(slots) => slots / slot,
            None => (u128::from(since) * u128::from(per_slot) / u128::from(slot)) as Tti,
        };
        while self.start(tti) <= now {
            tti += 1;
        }
        tti
    }

    /// Symbols that a TTI has for a direction.
    pub(super) fn symbols_in(&self, tti: Tti, direction: Direction) -> u8 {
        let Duplex::Time(pattern) = &self.duplex else { return self.symbols };
        let slot = (tti / self.ttis_per_slot()) % pattern.len().max(1) as u64;
        let first = (tti % self.ttis_per_slot()) as u8 * self.symbols;
        let range = match (pattern.get(slot as usize), direction) {
            (Some(SlotKind::Down), Direction::Down) | (Some(SlotKind::Up), Direction::Up) => {
                0..SLOT_SYMBOLS
            }
            (Some(SlotKind::Special { down, .. }), Direction::Down) => 0..*down,
            (Some(SlotKind::Special { up, .. }), Direction::Up) => {
                SLOT_SYMBOLS.saturating_sub(*up)..SLOT_SYMBOLS
            }
            _ => 0..0,
        };
        let end = (first + self.symbols).min(range.end);
        end.saturating_sub(first.max(range.start))
    }

    /// Resource blocks in a group, the unit of a downlink grant (3GPP TS 36.213 §7.1.6.1, 38.214
    /// §5.1.2.2.1).
    pub(super) fn group_size(&self) -> u16 {
        let prbs = self.prbs.down;
        match self.technology {
            Technology::Lte => match prbs {
                0..=10 => 1,
                11..=26 => 2,
                27..=63 => 3,
                _ => 4,
            },
            Technology::Nr { .. } => match prbs {
                0..=36 => 2,
                37..=72 => 4,
                73..=144 => 8,
                _ => 16,
            },
        }
    }

    /// Number of groups of the downlink.
    pub(super) fn groups(&self) -> u16 {
        let size = self.group_size();
        if self.whole_groups { self.prbs.down / size } else { self.prbs.down.div_ceil(size) }
    }

    /// Resource blocks of the group with this number: all groups are equal but the last one.
    pub(super) fn group(&self, number: u16) -> std::ops::Range<u16> {
        let size = self.group_size();
        number * size..((number + 1) * size).min(self.prbs.down)
    }

    /// The schemes of a direction, from the most robust one to the fastest.
    pub(super) fn schemes(&self, _way: Direction) -> &'static [Scheme] {
        match self.technology {
            Technology::Lte => &LTE_SCHEMES,
            Technology::Nr { .. } if self.qam256 => &NR_SCHEMES_256QAM,
            Technology::Nr { .. } => &NR_SCHEMES,
        }
    }

    /// Bytes of a block of this many resource blocks, over all layers. `symbols` is the number of
    /// symbols that the TTI has for the direction.
    pub(super) fn block_bytes(&self, direction: Direction, prbs: u16, mcs: u8, symbols: u8) -> u32 {
        if prbs == 0 || symbols == 0 {
            return 0;
        }
        let layers = u32::from(*self.layers.of(direction));
        let bits = match self.technology {
            Technology::Lte => {
                let full = lte_block_bits(direction, prbs, mcs);
                full * u32::from(symbols) / u32::from(SLOT_SYMBOLS) * layers
            }
            Technology::Nr { .. } => {
                let scheme = self.schemes(direction)[usize::from(mcs)];
                nr_block_bits(prbs, scheme, symbols, layers)
            }
        };
        bits / 8
    }
}

/// Schemes of the LTE downlink: modulation and code rate of each MCS. The rates are those of the
/// error curves that ns-3 uses for it.
static LTE_SCHEMES: [Scheme; 29] = {
    const Q: Modulation = Modulation::Qpsk;
    const S: Modulation = Modulation::Qam16;
    const X: Modulation = Modulation::Qam64;
    let all: [(Modulation, f64); 29] = [
        (Q, 0.08),
        (Q, 0.1),
        (Q, 0.11),
        (Q, 0.15),
        (Q, 0.19),
        (Q, 0.24),
        (Q, 0.3),
        (Q, 0.37),
        (Q, 0.44),
        (Q, 0.51),
        (S, 0.3),
        (S, 0.33),
        (S, 0.37),
        (S, 0.42),
        (S, 0.48),
        (S, 0.54),
        (S, 0.6),
        (X, 0.43),
        (X, 0.45),
        (X, 0.5),
        (X, 0.55),
        (X, 0.6),
        (X, 0.65),
        (X, 0.7),
        (X, 0.75),
        (X, 0.8),
        (X, 0.85),
        (X, 0.89),
        (X, 0.92),
    ];
    let mut schemes = [Scheme { modulation: Q, rate: 0.0 }; 29];
    let mut mcs = 0;
    while mcs < 29 {
        schemes[mcs] = Scheme { modulation: all[mcs].0, rate: all[mcs].1 };
        mcs += 1;
    }
    schemes
};

/// Builds the schemes of an NR table from bits per symbol and 1024 times the code rate.
const fn nr_schemes<const N: usize>(rows: [(u8, f64); N]) -> [Scheme; N] {
    let mut schemes = [Scheme { modulation: Modulation::Qpsk, rate: 0.0 }; N];
    let mut mcs = 0;
    while mcs < N {
        let modulation = match rows[mcs].0 {
            2 => Modulation::Qpsk,
            4 => Modulation::Qam16,
            6 => Modulation::Qam64,
            _ => Modulation::Qam256,
        };
        schemes[mcs] = Scheme { modulation, rate: rows[mcs].1 / 1024.0 };
        mcs += 1;
    }
    schemes
}

/// Schemes of NR up to 64-QAM (3GPP TS 38.214 Table 5.1.3.1-1).
#[rustfmt::skip]
static NR_SCHEMES: [Scheme; 29] = nr_schemes([
    (2, 120.0), (2, 157.0), (2, 193.0), (2, 251.0), (2, 308.0), (2, 379.0), (2, 449.0),
    (2, 526.0), (2, 602.0), (2, 679.0), (4, 340.0), (4, 378.0), (4, 434.0), (4, 490.0),
    (4, 553.0), (4, 616.0), (4, 658.0), (6, 438.0), (6, 466.0), (6, 517.0), (6, 567.0),
    (6, 616.0), (6, 666.0), (6, 719.0), (6, 772.0), (6, 822.0), (6, 873.0), (6, 910.0),
    (6, 948.0),
]);

/// Schemes of NR up to 256-QAM (3GPP TS 38.214 Table 5.1.3.1-2).
#[rustfmt::skip]
static NR_SCHEMES_256QAM: [Scheme; 28] = nr_schemes([
    (2, 120.0), (2, 193.0), (2, 308.0), (2, 449.0), (2, 602.0), (4, 378.0), (4, 434.0),
    (4, 490.0), (4, 553.0), (4, 616.0), (4, 658.0), (6, 466.0), (6, 517.0), (6, 567.0),
    (6, 616.0), (6, 666.0), (6, 719.0), (6, 772.0), (6, 822.0), (6, 873.0), (8, 682.5),
    (8, 711.0), (8, 754.0), (8, 797.0), (8, 841.0), (8, 885.0), (8, 916.5), (8, 948.0),
]);

/// Number of TBS indices of LTE without 256-QAM.
const TBS_INDICES: usize = 27;

/// The block sizes of LTE, in bits: by resource blocks less one, then by TBS index.
static LTE_BLOCKS: LazyLock<Vec<[u32; TBS_INDICES]>> = LazyLock::new(|| {
    let rows = include_str!("lte_block_sizes.csv").lines().filter(|line| !line.starts_with('#'));
    let number = |text: &str| text.parse().expect("the table has whole numbers");
    rows.map(|row| {
        let mut bits = [0; TBS_INDICES];
        for (size, text) in bits.iter_mut().zip(row.split(',').skip(1)) {
            *size = number(text);
        }
        bits
    })
    .collect()
});

/// Bits of an LTE block in a full TTI and one layer (3GPP TS 36.213 Tables 7.1.7.1-1, 8.6.1-1).
fn lte_block_bits(direction: Direction, prbs: u16, mcs: u8) -> u32 {
    let index = match (direction, mcs) {
        (Direction::Down, 0..=9) | (Direction::Up, 0..=10) => mcs,
        (Direction::Down, 10..=16) | (Direction::Up, 11..=20) => mcs - 1,
        (_, _) => mcs - 2,
    };
    let row = usize::from(prbs.clamp(1, LTE_PRBS_MAX)) - 1;
    LTE_BLOCKS[row][usize::from(index).min(TBS_INDICES - 1)]
}

/// Subcarriers of a resource block.
const SUBCARRIERS: u32 = 12;
/// Resource elements of a resource block and slot that demodulation reference signals take.
const REFERENCE_ELEMENTS: u32 = 12;
/// Most resource elements of a resource block that count (3GPP TS 38.214 §5.1.3.2).
const ELEMENTS_MAX: u32 = 156;
/// Information bits up to which block sizes come from a table.
const SMALL_BLOCK: f64 = 3_824.0;

/// Block sizes up to 3824 bits (3GPP TS 38.214 Table 5.1.3.2-1).
#[rustfmt::skip]
const NR_SMALL_BLOCKS: [u32; 93] = [
    24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176,
    184, 192, 208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 408, 432, 456, 480,
    504, 528, 552, 576, 608, 640, 672, 704, 736, 768, 808, 848, 888, 928, 984, 1032, 1064, 1128,
    1160, 1192, 1224, 1256, 1288, 1320, 1352, 1416, 1480, 1544, 1608, 1672, 1736, 1800, 1864,
    1928, 2024, 2088, 2152, 2216, 2280, 2408, 2472, 2536, 2600, 2664, 2728, 2792, 2856, 2976,
    3104, 3240, 3368, 3496, 3624, 3752, 3824,
];

/// Bits of an NR block over all layers (3GPP TS 38.214 §5.1.3.2).
fn nr_block_bits(prbs: u16, scheme: Scheme, symbols: u8, layers: u32) -> u32 {
    let symbols = u32::from(symbols);
    let elements = (SUBCARRIERS * symbols)
        .saturating_sub(REFERENCE_ELEMENTS * symbols.div_ceil(u32::from(SLOT_SYMBOLS)))
        .min(ELEMENTS_MAX);
    let bits_per_symbol = f64::from(scheme.modulation.bits());
    let info = f64::from(elements * u32::from(prbs)) * scheme.rate * bits_per_symbol;
    let info = info * f64::from(layers);
    if info <= SMALL_BLOCK {
        let step = libm::exp2((libm::floor(libm::log2(info.max(1.0))) - 6.0).max(3.0));
        let rounded = (step * libm::floor(info / step)).max(24.0);
        let fitting = NR_SMALL_BLOCKS.into_iter().find(|&size| f64::from(size) >= rounded);
        return fitting.unwrap_or(SMALL_BLOCK as u32);
    }
    let step = libm::exp2(libm::floor(libm::log2(info - 24.0)) - 5.0);
    let rounded = (step * libm::round((info - 24.0) / step)).max(3_840.0);
    let code_block = if scheme.rate <= 0.25 {
        3_816.0
    } else if rounded > 8_424.0 {
        8_424.0
    } else {
        rounded + 24.0
    };
    let blocks = libm::ceil((rounded + 24.0) / code_block);
    (8.0 * blocks * libm::ceil((rounded + 24.0) / (8.0 * blocks)) - 24.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lte_blocks_are_those_of_the_table() {
        let carrier = Carrier::lte(25);
        // wireless.md: 25 resource blocks carry 18336 bits at MCS 28, 4008 at MCS 10.
        assert_eq!(carrier.block_bytes(Direction::Down, 25, 28, 14), 18_336 / 8);
        assert_eq!(carrier.block_bytes(Direction::Down, 25, 10, 14), 4_008 / 8);
        assert_eq!(carrier.block_bytes(Direction::Up, 25, 22, 14), 11_448 / 8);
        assert_eq!(LTE_BLOCKS.len(), usize::from(LTE_PRBS_MAX));
    }

    #[test]
    fn a_block_grows_with_resource_blocks_and_with_the_scheme() {
        for carrier in [Carrier::lte(100), Carrier::nr(1, 273)] {
            let schemes = carrier.schemes(Direction::Down).len() as u8;
            let bytes = |prbs, mcs| carrier.block_bytes(Direction::Down, prbs, mcs, 14);
            for mcs in 1..schemes {
                assert!(bytes(50, mcs) >= bytes(50, mcs - 1), "{carrier:?} {mcs}");
                assert!(bytes(50, mcs) >= bytes(49, mcs), "{carrier:?} {mcs}");
            }
        }
    }

    #[test]
    fn nr_carries_what_its_peak_rate_says() {
        // 273 resource blocks at 30 kHz, 64-QAM, one layer: 12 symbols of data a slot of 0.5 ms
        // carry some 450 Mbit/s without control and reference signals.
        let carrier = Carrier::nr(1, 273);
        let bits = carrier.block_bytes(Direction::Down, 273, 28, 14) * 8;
        let elements = 156 * 273;
        let expected = f64::from(elements) * 6.0 * 948.0 / 1024.0;
        assert!((f64::from(bits) / expected - 1.0).abs() < 0.02, "{bits} {expected}");
    }

    #[test]
    fn ttis_follow_the_numerology_and_mini_slots() {
        assert_eq!(Carrier::lte(25).tti(), TimeDelta::from_millis(1));
        assert_eq!(Carrier::nr(1, 51).tti(), TimeDelta::from_micros(500));
        let mini = Carrier { symbols: 7, ..Carrier::nr(1, 51) };
        assert_eq!(mini.tti(), TimeDelta::from_micros(250));
        assert_eq!(mini.start(5), Timestamp::ZERO + TimeDelta::from_micros(1_250));
        assert_eq!(mini.after(Timestamp::from_nanos(1_250_000)), 6);
        assert_eq!(mini.after(Timestamp::from_nanos(1_249_999)), 5);
        assert_eq!(mini.ttis(TimeDelta::from_millis(10)), 40);
    }

    #[test]
    fn a_pattern_gives_each_slot_its_symbols() {
        use SlotKind::{Down, Special, Up};
        let pattern = vec![Down, Down, Down, Special { down: 10, up: 2 }, Up];
        let carrier = Carrier { duplex: Duplex::Time(pattern), ..Carrier::nr(1, 51) };
        let symbols =
            |direction| (0..5).map(|tti| carrier.symbols_in(tti, direction)).collect::<Vec<_>>();
        assert_eq!(symbols(Direction::Down), [14, 14, 14, 10, 0]);
        assert_eq!(symbols(Direction::Up), [0, 0, 0, 2, 14]);
        assert_eq!(carrier.symbols_in(8, Direction::Down), 10);
    }

    #[test]
    fn groups_cover_the_carrier_unless_only_whole_ones_count() {
        let carrier = Carrier::lte(25);
        assert_eq!((carrier.group_size(), carrier.groups()), (2, 13));
        assert_eq!(carrier.group(12), 24..25);
        let whole = Carrier { whole_groups: true, ..carrier };
        assert_eq!(whole.groups(), 12);
    }
}
