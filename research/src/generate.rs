//! Generates scenarios from seeds.

use std::ops::RangeInclusive;

use super::Family;
use super::draw::Draw;

/// Seeds of one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// Constants are tuned on these.
    Train,
    /// Changes are accepted on these.
    Validate,
    /// Claims were made on these about the first version of `sluice`. They are opened once, when
    /// nothing is tuned any more.
    Sealed,
    /// The same for the second version: who has read the first set may have learned from it.
    Sealed2,
    /// The same for the third version.
    Sealed3,
    /// The same for the fourth version. Its seeds are the first ones with the family `radio`.
    Sealed4,
}

impl Set {
    /// All sets.
    pub const ALL: [Self; 6] =
        [Self::Train, Self::Validate, Self::Sealed, Self::Sealed2, Self::Sealed3, Self::Sealed4];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validate => "validate",
            Self::Sealed => "sealed",
            Self::Sealed2 => "sealed-2",
            Self::Sealed3 => "sealed-3",
            Self::Sealed4 => "sealed-4",
        }
    }

    /// The seeds of the set.
    pub const fn seeds(self) -> RangeInclusive<u64> {
        match self {
            Self::Train => 1..=200,
            Self::Validate => 201..=300,
            Self::Sealed => 301..=400,
            Self::Sealed2 => 401..=500,
            Self::Sealed3 => 501..=600,
            Self::Sealed4 => 601..=700,
        }
    }

    /// Whether the seeds are opened once, with an entry in the log.
    pub const fn is_sealed(self) -> bool {
        !matches!(self, Self::Train | Self::Validate)
    }

    /// The set that a seed belongs to. `None` for seeds of no set, which are free for any use.
    pub fn of(seed: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.seeds().contains(&seed))
    }
}

/// A scenario made from a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Kind of the scenario.
    pub family: Family,
    /// Its seed.
    pub seed: u64,
    /// The scenario file.
    pub text: String,
}

impl Generated {
    /// Path of its file below the output folder: the family's folder and the seed.
    pub fn path(&self) -> String {
        format!("{}/{}.toml", self.family.name(), self.seed)
    }
}

/// The scenario of a seed. Its family follows from the seed alone, so each set has about as many
/// scenarios of one family as of another.
pub fn generate(seed: u64) -> Generated {
    generate_as(Family::of(seed), seed)
}

/// The scenario that a seed gives in a family, whatever its own family is.
pub fn generate_as(family: Family, seed: u64) -> Generated {
    let text = family.scenario(seed, &mut Draw::new(seed));
    Generated { family, seed, text }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    use weir::units::{TimeDelta, Timestamp};
    use weir_controllers::LabAlgorithm;

    use super::*;
    use weir_record::simulate;
    use weir_scenario::parse;

    #[test]
    fn a_seed_gives_the_same_bytes_again() {
        for seed in 1..=12 {
            assert_eq!(generate(seed), generate(seed));
        }
        // FNV-1a over the texts of all open seeds. It differs if one byte of one scenario does.
        let bytes = (1..=300).flat_map(|seed| generate(seed).text.into_bytes());
        let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        assert_eq!(hash, HASH, "change docs/reference/generated-scenarios.md with the families");
    }

    /// Hash of the scenarios of the seeds 1 to 300.
    const HASH: u64 = 8_695_915_017_223_092_648;

    #[test]
    fn every_family_has_its_share_of_every_set() {
        for set in [Set::Train, Set::Validate] {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for seed in set.seeds() {
                *counts.entry(generate(seed).family.name()).or_default() += 1;
            }
            // The families `radio` and `wide` came after these sets.
            let families = Family::ALL.len() - Family::ASKED_FOR.len();
            let least = set.seeds().count() / families;
            assert_eq!(counts.len(), families);
            assert!(counts.values().all(|count| (least..=least + 1).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn seeds_after_the_third_sealed_set_draw_from_the_family_radio_too() {
        assert_eq!(*Set::Sealed4.seeds().start(), super::super::families::FIRST_WITH_RADIO);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let drawn = Family::ALL.len() - 1;
        for seed in 701..=700 + 10 * drawn as u64 {
            *counts.entry(generate(seed).family.name()).or_default() += 1;
        }
        assert!(counts.len() == drawn && counts.values().all(|&of| of == 10));
    }

    #[test]
    fn any_seed_gives_a_radio_link_that_the_reader_takes_and_that_goes_away() {
        let mut away = 0;
        for seed in 1..=40 {
            let made = generate_as(Family::Radio, seed);
            assert_eq!(made.path(), format!("radio/{seed}.toml"));
            let scenario = parse("x.toml", &made.text, None).unwrap();
            assert!(scenario.source.ends_with(&format!("--family radio {seed}")));
            away += usize::from(made.text.contains("\"0kbps\""));
        }
        // The rarest outages, half a per cent of the time, are missing in some minutes.
        assert!((25..=40).contains(&away), "{away}");
    }

    #[test]
    fn any_seed_gives_a_wide_scenario_that_the_reader_takes() {
        for seed in 1..=200 {
            let Generated { text, .. } = generate_as(Family::Wide, seed);
            let scenario = parse("x.toml", &text, None);
            scenario.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        }
    }

    #[test]
    fn every_open_seed_gives_a_scenario_that_the_reader_takes() {
        for seed in (1..=300).chain([0, 401, 5_000, u64::MAX]) {
            let Generated { text, .. } = generate(seed);
            let scenario = parse("x.toml", &text, None);
            let scenario = scenario.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            let own = scenario.flows.iter().filter_map(|flow| flow.traffic.media());
            assert!(own.filter(|media| media.controller.is_none()).count() >= 1, "seed {seed}");
        }
    }

    #[test]
    fn a_scenario_of_each_family_runs() {
        for (index, family) in Family::ALL.into_iter().enumerate() {
            let seed = index as u64;
            let mut scenario = parse("x.toml", &generate_as(family, seed).text, None).unwrap();
            // The first seconds are enough to see that packets arrive.
            scenario.duration = TimeDelta::from_secs(3);
            let end = Timestamp::ZERO + scenario.duration;
            scenario.flows.retain(|flow| flow.start < end);
            for flow in &mut scenario.flows {
                flow.stop = flow.stop.min(end);
            }
            let stop = AtomicBool::new(false);
            let factory = LabAlgorithm::Gcc.into();
            let summary = simulate(&scenario, &factory, 1, None, &stop).unwrap().unwrap();
            let rates = summary.flows.iter().filter_map(|flow| flow.metrics.rate_mbps);
            assert!(rates.map(|rate| rate.mean).sum::<f64>() > 0.0, "seed {seed}");
        }
    }

    #[test]
    fn a_seed_belongs_to_one_set_or_none() {
        assert_eq!(Set::of(200), Some(Set::Train));
        assert_eq!(Set::of(201), Some(Set::Validate));
        assert_eq!(Set::of(301), Some(Set::Sealed));
        assert_eq!(Set::of(400), Some(Set::Sealed));
        assert_eq!(Set::of(401), Some(Set::Sealed2));
        assert_eq!(Set::of(500), Some(Set::Sealed2));
        assert_eq!(Set::of(600), Some(Set::Sealed3));
        assert_eq!(Set::of(601), Some(Set::Sealed4));
        assert_eq!((Set::of(0), Set::of(701)), (None, None));
        let sealed = Set::ALL.into_iter().filter(|set| set.is_sealed()).count();
        assert_eq!(sealed, 4);
    }
}
