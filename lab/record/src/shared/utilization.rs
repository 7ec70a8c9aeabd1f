//! A saturated link is used fully, whatever its capacity does.

use std::fmt::Write as _;
use std::fs;

use proptest::prelude::*;
use weir::units::Timestamp;
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

/// A scenario of 12 s whose link has this capacity, with a flow that sends more than it carries.
fn saturated(capacity: &str, trace: &str) -> Scenario {
    let sections = [(0, 12_000), (1_000, 2_050), (2_000, 5_350), (7_000, 12_000)];
    let mut text =
        String::from("title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"12s\"\n");
    let _ = writeln!(text, "[network.up]\ncapacity = {capacity}\nqueue = \"10MB\"");
    // Packets of full size, so that a trace of opportunities has no headers to spare.
    let flow = "[[flow]]\nkind = \"udp\"\nrate = \"60Mbps\"\npacket = \"1500B\"";
    let _ = writeln!(text, "{flow}");
    for (from, to) in sections {
        let _ =
            writeln!(text, "[[section]]\nname = \"{from}\"\nfrom = \"{from}ms\"\nto = \"{to}ms\"");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), trace).unwrap();
    parse("x.toml", &text, Some(folder.path())).unwrap()
}

/// Within 0.1 %, and a packet at each end.
fn assert_full(scenario: &Scenario) {
    let end = Timestamp::ZERO + scenario.duration;
    let mut spans = vec![(Timestamp::ZERO, end)];
    spans.extend(scenario.sections.iter().map(|section| (section.from, section.to)));
    for ((from, to), (link, flow)) in spans.into_iter().zip(measured(scenario)) {
        let bits = scenario.hops[0].up.bits(from, to).unwrap();
        for utilization in [link, flow] {
            let off = (utilization - 1.0).abs() * bits;
            assert!(off <= 0.001 * bits + 24_000.0, "{from:?} to {to:?}: {utilization}");
        }
    }
}

#[test]
fn steps_within_a_row_leave_a_saturated_link_at_one() {
    for (first, second) in [(1, 9), (9, 1)] {
        let mut steps = String::new();
        for step in 0..400 {
            let rate = if step % 2 == 0 { first } else { second };
            let _ = writeln!(steps, "{:.3} {rate}", f64::from(step) * 0.025);
        }
        assert_full(&saturated("{ trace = \"a.txt\" }", &steps));
    }
}

#[test]
fn opportunities_leave_a_saturated_link_at_one_in_parts_of_seconds() {
    // Half of each second has all opportunities.
    let lines: String =
        (1..=3_000).filter(|ms| (ms - 1) % 1_000 < 500).map(|ms| format!("{ms}\n{ms}\n")).collect();
    assert_full(&saturated("{ trace = \"a.txt\" }", &lines));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_saturated_link_has_utilization_one_whatever_its_steps(
        steps in prop::collection::vec((1_i64..700, 0_u32..40), 1..60),
        is_held in any::<bool>(),
    ) {
        let (mut at, mut text) = (0, String::from("0 20\n"));
        for (lasts, rate) in steps {
            at += lasts;
            let _ = writeln!(text, "{:.3} {rate}", at as f64 / 1e3);
        }
        let _ = writeln!(text, "{:.3} 15", (at + 50) as f64 / 1e3);
        let end = if is_held { ", trace_end = \"hold\"" } else { "" };
        assert_full(&saturated(&format!("{{ trace = \"a.txt\"{end} }}"), &text));
    }
}
