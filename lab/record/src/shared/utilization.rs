//! A saturated link is used fully, whatever its capacity does.

use std::fmt::Write as _;
use std::fs;

use proptest::prelude::*;
use weir_controllers::LabAlgorithm;
use weir_net::Seed;
use weir_scenario::{Scenario, parse};

use crate::run::{Engine, RunInfo};
use crate::subject::Subject;
use crate::summary::Summary;

/// The utilization of the link and of its flow, in the whole run and in each section.
fn measured(scenario: &Scenario) -> Vec<(f64, f64)> {
    let trace = weir_sim::run(&scenario.sim_config(LabAlgorithm::Gcc), Seed::new(1));
    let subject = Subject::controller("gcc");
    let info = RunInfo { scenario: "x".into(), subject, engine: Engine::Sim, seed: 1 };
    let summary = Summary::of(scenario, &info, &trace, None);
    let flow = &summary.flows[0];
    let mut found =
        vec![(summary.shared.link.utilization.unwrap(), flow.metrics.utilization.unwrap())];
    for (section, shared) in flow.sections.iter().zip(&summary.sections) {
        let link = shared.shared.link.utilization.unwrap();
        found.push((link, section.metrics.utilization.unwrap()));
    }
    found
}

/// Duration of a scenario in ms, which is enough for some steps and opportunities.
const DURATION_MS: i64 = 4_000;
/// Sections in ms, each longer than 1 s.
const SECTIONS: [(i64, i64); 4] = [(0, 1_050), (50, 1_100), (1_000, 3_350), (2_700, DURATION_MS)];
/// How far the utilization of a saturated link may be from what it should be.
const TOLERANCE: f64 = 0.001;

/// A link with a flow that sends more than it carries.
struct Saturated<'a> {
    /// The TOML of the capacity.
    capacity: &'a str,
    /// Content of the file `a.txt`.
    trace: &'a str,
    delay_ms: u32,
    sent_bps: u64,
    packet_bytes: u64,
}

impl Saturated<'_> {
    fn scenario(&self) -> Scenario {
        let Self { capacity, trace, delay_ms, sent_bps, packet_bytes } = self;
        let mut text = String::from("title = \"t\"\nsource = \"s\"\ndescription = \"d\"\n");
        let _ = writeln!(text, "duration = \"{DURATION_MS}ms\"");
        let _ = writeln!(text, "[network.up]\ncapacity = {capacity}\nqueue = \"10MB\"");
        let _ = writeln!(text, "delay = \"{delay_ms}ms\"");
        let _ = writeln!(text, "[[flow]]\nkind = \"udp\"\nrate = \"{sent_bps}bps\"");
        let _ = writeln!(text, "packet = \"{packet_bytes}B\"");
        for (from, to) in SECTIONS {
            let name = format!("name = \"{from}-{to}\"");
            let _ = writeln!(text, "[[section]]\n{name}\nfrom = \"{from}ms\"\nto = \"{to}ms\"");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), trace).unwrap();
        parse("x.toml", &text, Some(folder.path())).unwrap()
    }

    /// The utilization of the link and of the flow is this in the whole run and in each section.
    fn assert_used(&self, expected: f64) {
        let scenario = self.scenario();
        for (place, (link, flow)) in measured(&scenario).into_iter().enumerate() {
            for utilization in [link, flow] {
                let off = (utilization / expected - 1.0).abs();
                assert!(off <= TOLERANCE, "part {place}: {utilization}, not {expected}");
            }
        }
    }
}

/// A trace of rates in bit/s at times in ms.
fn steps(rates: &[(i64, u64)]) -> String {
    let mut text = String::new();
    for (at, bps) in rates {
        let _ = writeln!(text, "{:.3} {:.6}", *at as f64 / 1e3, *bps as f64 / 1e6);
    }
    text
}

#[test]
fn steps_within_a_row_leave_a_saturated_link_at_one() {
    for rates in [[1_000_000, 9_000_000], [9_000_000, 1_000_000], [10_000, 30_000]] {
        let rates: Vec<(i64, u64)> =
            (0..160).map(|step| (step * 25, rates[step as usize % 2])).collect();
        let trace = &steps(&rates);
        for packet_bytes in [40, 1_500] {
            let capacity = "{ trace = \"a.txt\" }";
            let link =
                Saturated { capacity, trace, delay_ms: 70, sent_bps: 12_000_000, packet_bytes };
            link.assert_used(1.0);
        }
    }
}

/// Times in ms of two opportunities in each millisecond of the first half of each second.
fn half_of_each_second() -> String {
    let mut lines = String::new();
    for ms in (1..=3_000).filter(|ms| (ms - 1) % 1_000 < 500) {
        let _ = writeln!(lines, "{ms}\n{ms}");
    }
    lines
}

#[test]
fn opportunities_leave_a_saturated_link_at_one_in_parts_of_seconds() {
    let trace = &half_of_each_second();
    let capacity = "{ trace = \"a.txt\" }";
    let packet_bytes = 1_500;
    Saturated { capacity, trace, delay_ms: 70, sent_bps: 60_000_000, packet_bytes }
        .assert_used(1.0);
}

/// Packets are not so small that there are more of them in a second, unless the rate is so high
/// that full ones are: a test cannot afford more.
const PACKETS_A_SECOND: u64 = 5_000;

/// Shortest time between two opportunities, whose times are whole milliseconds.
const SHORTEST_GAP_MS: f64 = 0.5;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// From 10 kbit/s to 1 Gbit/s.
    #[test]
    fn a_saturated_link_has_utilization_one_whatever_its_steps(
        magnitude in 4.0..9.0_f64,
        lengths in prop::collection::vec((1_i64..700, 0.0..1.0_f64), 1..60),
        packet_bytes in 40_u64..=1_500,
        delay_ms in 0_u32..300,
        is_held in any::<bool>(),
    ) {
        let top = 10_f64.powf(magnitude);
        let packet_bytes = packet_bytes.max((top / 8.0) as u64 / PACKETS_A_SECOND).min(1_500);
        let (mut at, mut rates) = (0, vec![(0, top as u64)]);
        for (lasts, share) in lengths {
            at += lasts;
            // A fifth of the steps are outages.
            rates.push((at, (top * (share - 0.2).max(0.0)) as u64));
        }
        rates.push((at + 50, (top * 0.5) as u64));
        let end = if is_held { ", trace_end = \"hold\"" } else { "" };
        let capacity = &format!("{{ trace = \"a.txt\"{end} }}");
        let trace = &steps(&rates);
        let sent_bps = (1.2 * top) as u64;
        Saturated { capacity, trace, delay_ms, sent_bps, packet_bytes }.assert_used(1.0);
    }

    /// From 12 kbit/s to 24 Mbit/s. mahimahi's opportunity has 4 bytes more than a full packet, and
    /// carries a header of 4 bytes with each packet.
    #[test]
    fn a_saturated_link_uses_all_of_its_opportunities(
        gaps in prop::collection::vec(0.0..1.0_f64, 2..800),
        magnitude in 0.0..3.0_f64,
        packet_bytes in 40_u64..=1_500,
        delay_ms in 0_u32..300,
        is_mahimahi in any::<bool>(),
    ) {
        let longest = 10_f64.powf(magnitude);
        // The first packet comes at 0, and mahimahi lets it take none before 1 ms.
        let (mut ms, mut trace) = (1.0 - SHORTEST_GAP_MS, String::new());
        for gap in gaps {
            ms += SHORTEST_GAP_MS + gap * longest;
            let _ = writeln!(trace, "{}", ms as u64);
        }
        let _ = writeln!(trace, "{}", ms as u64 + 1);
        let kind = if is_mahimahi { "" } else { ", opportunity = \"1500B\"" };
        let capacity = &format!("{{ trace = \"a.txt\"{kind} }}");
        let size = packet_bytes as f64;
        let expected = if is_mahimahi { size / (size + 4.0) * 1_504.0 / 1_500.0 } else { 1.0 };
        let sent_bps = (1.2 * 1_500.0 * 8.0 * 1_000.0 / SHORTEST_GAP_MS) as u64;
        Saturated { capacity, trace: &trace, delay_ms, sent_bps, packet_bytes }
            .assert_used(expected);
    }
}
