//! Link adaptation: what the scheduler knows of a terminal's signal, and which modulation and
//! coding scheme (MCS) it takes.

use std::ops::Range;

use super::block::{Grant, modulation_index, power_factor};
use super::carrier::{Carrier, SLOT_SYMBOLS, Tti};
use super::config::{Adaptation, Estimate};
use super::errors::{Modulation, information_for};
use super::radio::{Sinr, db_to_factor};
use crate::path::Direction;

/// Efficiency in bits per symbol of the channel quality indicators 1 to 15 (3GPP TS 36.213 Table
/// 7.2.3-1), rounded as in ns-3.
const CQI_EFFICIENCY: [f64; 15] =
    [0.15, 0.23, 0.38, 0.6, 0.88, 1.18, 1.48, 1.91, 2.41, 2.73, 3.32, 3.9, 4.52, 5.12, 5.55];
/// Fastest MCS of LTE.
const LTE_MCS_MAX: u8 = 28;
/// Gap to the capacity of the channel, as a factor, for bit errors of 5e-5: -ln(5 * 5e-5) / 1.5.
const EFFICIENCY_GAP: f64 = 5.529_366_5;
/// Steps per decibel in which the base station notes an uplink signal for
/// [`Estimate::Efficiency`].
const NOTED_STEPS: f64 = 8.0;
/// A signal at the edge of a step counts as below it, as the rounding of path losses makes it in
/// ns-3.
const NOTED_MARGIN_DB: f64 = 1e-9;

/// The scheme for each signal, for one direction of a cell.
#[derive(Debug)]
pub(super) struct Chooser {
    adaptation: Adaptation,
    direction: Direction,
    /// Least mutual information for each MCS, for a block of one group and for one of the whole
    /// carrier.
    group: Least,
    wide: Least,
    /// TTIs between two reports.
    period: Tti,
    /// TTIs until a report is used.
    delay: Tti,
}

/// What each MCS needs for a block of one size.
#[derive(Debug)]
struct Least {
    /// Mutual information.
    information: Vec<f64>,
    /// SINR, as a factor, if all resource blocks are equal: enough for this MCS and all slower
    /// ones.
    flat: Vec<f64>,
}

/// Step in which the correction of the outer loop takes effect, in decibels.
const CORRECTION_STEP_DB: f64 = 0.25;

/// What the scheduler knows of one terminal's signal in one direction.
#[derive(Debug)]
pub(super) struct Known {
    /// TTI of the report, and its signal: the mean and the gains of [`Sinr`].
    measured: Option<Tti>,
    mean: f64,
    gains: Vec<f64>,
    /// MCS of each group, one entry if all are equal; `None` where no scheme works.
    groups: Vec<Option<u8>>,
    /// MCS for the whole carrier; `None` until a scheduler asks for it.
    wide: Option<Option<u8>>,
    /// Correction of the outer loop in decibels, the steps that are in effect, and their factor.
    correction_db: f64,
    steps: i32,
    factor: f64,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            measured: None,
            mean: 0.0,
            gains: Vec::new(),
            groups: Vec::new(),
            wide: None,
            correction_db: 0.0,
            steps: 0,
            factor: 1.0,
        }
    }
}

impl Known {
    /// The signal of the report.
    fn sinr(&self) -> Sinr<'_> {
        Sinr { mean: self.mean, gains: &self.gains }
    }

    /// MCS of a group.
    pub(super) fn of(&self, group: u16) -> Option<u8> {
        self.groups.get(usize::from(group)).or(self.groups.first()).copied().flatten()
    }

    /// Whether all groups are equal.
    pub(super) fn is_flat(&self) -> bool {
        self.groups.len() <= 1
    }
}

impl Least {
    /// For blocks of this many PRBs.
    fn of(carrier: &Carrier, adaptation: Adaptation, direction: Direction, prbs: u16) -> Self {
        let (mut flat, mut information) = (Vec::new(), Vec::new());
        let mut slower = 0.0_f64;
        for (mcs, scheme) in (0_u8..).zip(carrier.schemes(direction)) {
            let bytes = carrier.block_bytes(direction, prbs, mcs, SLOT_SYMBOLS);
            let needed = information_for(*scheme, bytes.max(1), adaptation.target);
            slower = slower.max(sinr_for(scheme.modulation, needed));
            information.push(needed);
            flat.push(slower);
        }
        Self { flat, information }
    }
}

impl Chooser {
    pub(super) fn new(
        carrier: &Carrier,
        adaptation: Adaptation,
        direction: Direction,
        delay: u32,
    ) -> Self {
        let (group, wide) = match direction {
            Direction::Down => (carrier.group_size(), carrier.prbs.down),
            Direction::Up => (carrier.prbs.up, carrier.prbs.up),
        };
        Self {
            adaptation,
            direction,
            group: Least::of(carrier, adaptation, direction, group),
            wide: Least::of(carrier, adaptation, direction, wide),
            period: carrier.ttis(adaptation.period),
            delay: Tti::from(delay),
        }
    }

    /// The TTI of the report that the scheduler uses now. `offset` spreads the reports of the
    /// terminals.
    pub(super) fn report_time(&self, now: Tti, offset: Tti) -> Tti {
        let latest = now.saturating_sub(self.delay);
        latest - latest.saturating_sub(offset % self.period) % self.period.max(1)
    }

    /// Takes a report, unless it is known.
    pub(super) fn learn(&self, carrier: &Carrier, at: Tti, sinr: Sinr<'_>, known: &mut Known) {
        let same_mean = known.mean.to_bits() == sinr.mean.to_bits();
        let is_known = known.measured.is_some() && sinr.is_flat() && same_mean;
        if known.measured == Some(at) || is_known {
            known.measured = Some(at);
            return;
        }
        known.measured = Some(at);
        known.mean = sinr.mean;
        known.gains.clear();
        known.gains.extend_from_slice(sinr.gains);
        self.choose(carrier, known);
    }

    /// MCS for the whole carrier; `None` if none works.
    pub(super) fn wide(&self, carrier: &Carrier, known: &mut Known) -> Option<u8> {
        if let Some(wide) = known.wide {
            return wide;
        }
        // Nothing was reported yet.
        known.measured?;
        let wide = match self.direction {
            Direction::Up => {
                self.for_grant(carrier, known, Grant::Row { first: 0, count: carrier.prbs.up })
            }
            Direction::Down => {
                let all = std::iter::once(0..carrier.prbs.down);
                self.fastest(carrier, &self.wide, known.sinr(), (all, known.factor))
            }
        };
        known.wide = Some(wide);
        wide
    }

    /// Chooses the schemes anew from the last report.
    fn choose(&self, carrier: &Carrier, known: &mut Known) {
        known.wide = None;
        if self.direction == Direction::Up {
            return;
        }
        let factor = known.factor;
        let sinr = Sinr { mean: known.mean, gains: &known.gains };
        let groups = if sinr.is_flat() { 1 } else { carrier.groups() };
        let fastest =
            |least, prbs| self.fastest(carrier, least, sinr, (std::iter::once(prbs), factor));
        known.groups.clear();
        known.groups.extend((0..groups).map(|group| fastest(&self.group, carrier.group(group))));
    }

    /// The fastest scheme that works, and all slower ones too, with all signals scaled by a factor.
    fn fastest(
        &self,
        carrier: &Carrier,
        least: &Least,
        sinr: Sinr<'_>,
        (prbs, factor): (impl Iterator<Item = Range<u16>> + Clone, f64),
    ) -> Option<u8> {
        // What works at the worst resource block works at all of them, and what does not work at
        // the best one does not work at all. Only the schemes in between need a closer look.
        let (worst, best) = sinr.bounds(prbs.clone());
        let (worst, best) = (worst * factor, best * factor);
        let all = least.flat.partition_point(|least| *least <= worst);
        let some = least.flat[all..].iter().take_while(|least| **least <= best).count();
        let between = all..all + some;
        let mut known = [None; Modulation::COUNT];
        let schemes = &carrier.schemes(self.direction)[between.clone()];
        let mut feasible = all;
        for (scheme, least) in schemes.iter().zip(&least.information[between]) {
            let entry = &mut known[modulation_index(scheme.modulation)];
            let information = *entry
                .get_or_insert_with(|| sinr.information(scheme.modulation, prbs.clone(), factor));
            if information < *least {
                break;
            }
            feasible += 1;
        }
        let mcs = feasible.checked_sub(1)? as u8;
        self.by_index(mcs)
    }

    /// The scheme that stands for the report: ns-3 uses every second one.
    fn by_index(&self, mcs: u8) -> Option<u8> {
        if !self.adaptation.by_report_index || mcs >= LTE_MCS_MAX {
            return Some(mcs);
        }
        mcs.div_ceil(2).checked_sub(1).map(|index| 2 * index)
    }

    /// The scheme for a grant; `None` if none works.
    pub(super) fn for_grant(&self, carrier: &Carrier, known: &Known, grant: Grant) -> Option<u8> {
        if self.direction == Direction::Down {
            return grant.groups().map(|group| known.of(group)).min().flatten();
        }
        let prbs = grant.ranges(carrier);
        match self.adaptation.estimate {
            Estimate::Efficiency => {
                let worst_db = 10.0 * libm::log10(known.sinr().bounds(prbs).0);
                let noted_db =
                    libm::trunc((worst_db - NOTED_MARGIN_DB) * NOTED_STEPS) / NOTED_STEPS;
                self.by_efficiency(carrier, db_to_factor(noted_db) * known.factor)
            }
            Estimate::BlockErrors => {
                let factor =
                    known.factor * power_factor(carrier, self.direction, grant.prbs(carrier));
                self.fastest(carrier, &self.wide, known.sinr(), (prbs, factor))
            }
        }
    }

    /// The fastest scheme below the efficiency that the signal allows.
    fn by_efficiency(&self, carrier: &Carrier, sinr: f64) -> Option<u8> {
        let possible = libm::log2(1.0 + sinr / EFFICIENCY_GAP);
        if self.adaptation.by_report_index {
            let index = CQI_EFFICIENCY.iter().take_while(|known| **known < possible).count();
            return index.checked_sub(1).map(|index| 2 * index as u8);
        }
        let schemes = carrier.schemes(self.direction).iter();
        let below = schemes.take_while(|scheme| scheme.efficiency() < possible).count();
        below.checked_sub(1).map(|mcs| mcs as u8)
    }

    /// Moves the correction after the first transmission of a block.
    pub(super) fn correct(&self, carrier: &Carrier, known: &mut Known, is_decoded: bool) {
        let Some(outer) = self.adaptation.outer_loop else { return };
        let target = self.adaptation.target;
        let step =
            if is_decoded { outer.step_db * target / (1.0 - target) } else { -outer.step_db };
        known.correction_db = (known.correction_db + step).clamp(-outer.limit_db, outer.limit_db);
        let steps = libm::round(known.correction_db / CORRECTION_STEP_DB) as i32;
        if steps != known.steps {
            known.steps = steps;
            known.factor = db_to_factor(f64::from(steps) * CORRECTION_STEP_DB);
            if known.measured.is_some() {
                self.choose(carrier, known);
            }
        }
    }
}

/// The least SINR, as a factor, that gives a modulation this mutual information.
fn sinr_for(modulation: Modulation, information: f64) -> f64 {
    // From -30 dB to 50 dB, to 1e-9 dB.
    let (mut low, mut high) = (-30.0, 50.0);
    for _ in 0..37 {
        let middle = 0.5 * (low + high);
        if modulation.mutual_information(db_to_factor(middle)) >= information {
            high = middle;
        } else {
            low = middle;
        }
    }
    db_to_factor(high)
}
