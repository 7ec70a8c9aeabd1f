//! Where the capacities come from.

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::Capacity;
use weir_net::path::Direction;

use super::{BIN, Variation, bin_of, constant_rates};
use crate::Scenario;

/// Rate that every flow of a cell offers: more than any cell carries.
const OFFERED: Bitrate = Bitrate::from_kbps(300_000);

/// A capacity, and how it varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Which one: a direction such as `up`, with the hop if there are several, or a flow of a cell.
    pub name: String,
    /// The statistics.
    pub variation: Variation,
}

/// The statistics of a recorded capacity over its length; `None` if that is shorter than a bin.
pub fn of_capacity(capacity: &Capacity) -> Option<Variation> {
    Variation::of(&bits(capacity, capacity.recorded_length()?).unwrap_or_default())
}

/// The statistics of each limited link of a scenario over its run. In a cell these are the links
/// behind it.
pub fn on_links(scenario: &Scenario) -> Vec<Measured> {
    let mut found = Vec::new();
    for (index, hop) in scenario.hops.iter().enumerate() {
        for &direction in Direction::BOTH {
            let bits = bits(&hop.link(direction).capacity, scenario.duration);
            let Some(variation) = bits.and_then(|bits| Variation::of(&bits)) else { continue };
            let name = match scenario.hops.len() {
                1 => direction.word().to_owned(),
                _ => format!("hop {} {}", index + 1, direction.word()),
            };
            found.push(Measured { name, variation });
        }
    }
    found
}

/// The statistics of what each media flow of a cell gets that always has data to send, beside the
/// other traffic of the scenario. The media flows then load the cell, too. Simulated.
pub fn in_cell(scenario: &Scenario, seed: u64) -> Vec<Measured> {
    let mut found = Vec::new();
    if scenario.access.is_none() {
        return found;
    }
    let flows = scenario.flows.iter();
    let offered: Vec<_> = flows.map(|flow| flow.traffic.media().map(|_| OFFERED)).collect();
    let rates = constant_rates(scenario, seed, &offered);
    for (flow, rates) in scenario.flows.iter().zip(rates) {
        if flow.traffic.media().is_none() {
            continue;
        }
        let [from, to] = [flow.start, flow.stop].map(bin_of);
        let to = to.min(rates.len());
        let bits: Vec<f64> =
            rates[from.min(to)..to].iter().map(|rate| rate * BIN.as_secs_f64()).collect();
        if let Some(variation) = Variation::of(&bits) {
            found.push(Measured { name: flow.name.clone(), variation });
        }
    }
    found
}

/// The bits of each whole bin of a length; `None` if the capacity is unlimited.
pub fn bits(capacity: &Capacity, length: TimeDelta) -> Option<Vec<f64>> {
    let bins = bin_of(Timestamp::ZERO + length);
    let times = (0..bins).map(|bin| Timestamp::ZERO + BIN * bin as i64);
    times.map(|from| capacity.bits(from, from + BIN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::trace::{Options, TraceEnd, Want, read};

    /// The statistics of the text of a trace file.
    fn of_recording(text: &str) -> Option<Variation> {
        let trace = read(text, &Options::new(Want::Up)).unwrap();
        of_capacity(&trace.capacity(TraceEnd::Repeat).unwrap())
    }

    #[test]
    fn a_recording_of_opportunities_is_counted_by_hand() {
        // One opportunity every 25 ms for a second, then an outage of a second, then one more.
        let mut lines: Vec<String> = (0..40).map(|index| (index * 25).to_string()).collect();
        lines.push("2000".into());
        let of = of_recording(&lines.join("\n")).unwrap();
        assert_eq!((of.length_s, of.outage_share, of.outage_longest_s), (2.0, 0.5, Some(1.0)));
        // 40 packets of 12 kbit in 2 s; half of the seconds are empty.
        assert!((of.mean_mbps - 0.24).abs() < 1e-12, "{of:?}");
        assert_eq!((of.cv_50ms, of.cv_1s), (Some(1.0), Some(1.0)));
        assert_eq!(of_recording("3\n"), None);
    }

    #[test]
    fn a_recording_of_rates_is_counted_by_hand() {
        // 1, 3 and again 3 Mbit/s for a second each.
        let of = of_recording("0 1\n1 3\n2 3\n").unwrap();
        assert!((of.mean_mbps - 7.0 / 3.0).abs() < 1e-9, "{of:?}");
        // Deviations of 4/3, 2/3 and 2/3: their mean square is 8/9.
        let expected = (8.0_f64 / 9.0).sqrt() / (7.0 / 3.0);
        for value in [of.cv_50ms, of.cv_200ms, of.cv_1s] {
            assert!((value.unwrap() - expected).abs() < 1e-9, "{of:?}");
        }
    }

    const HEAD: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"4s\"\n";

    #[test]
    fn only_limited_links_of_a_scenario_have_statistics() {
        let text = format!(
            "{HEAD}[network.up]\ncapacity = [[\"0s\", \"1Mbps\"], [\"2s\", \"3Mbps\"]]\n[[flow]]\n"
        );
        let found = on_links(&parse("x.toml", &text, None).unwrap());
        let [Measured { name, variation }] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((name.as_str(), variation.length_s, variation.mean_mbps), ("up", 4.0, 2.0));
        assert_eq!(variation.cv_1s, Some(0.5));
    }

    #[test]
    fn a_flow_in_a_cell_gets_what_the_cell_carries() {
        let text = format!(
            "{HEAD}[network]\nkind = \"cellular\"\nbandwidth = \"1.4MHz\"\n\
             [network.terminal.phone]\nsinr = 10\n[[flow]]\nterminal = \"phone\"\n"
        );
        let scenario = parse("x.toml", &text, None).unwrap();
        let found = in_cell(&scenario, 1);
        let [Measured { name, variation }] = found.as_slice() else { panic!("{found:?}") };
        // Six resource blocks carry some Mbit/s, and without fading they hardly vary.
        assert_eq!(name, "media-1");
        assert!((0.5..5.0).contains(&variation.mean_mbps), "{variation:?}");
        assert!(variation.cv_1s.unwrap() < 0.2, "{variation:?}");
        assert!(on_links(&scenario).is_empty());
    }
}
