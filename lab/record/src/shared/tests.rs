use std::sync::Arc;

use weir::units::Bitrate;
use weir_metrics::FlowMeter;
use weir_scenario::parse;
use weir_sim::trace::Trace;

use super::*;

/// A scenario of 40 s with these flows over 2 Mbit/s.
fn scenario(flows: &str) -> Scenario {
    let head = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"40s\"\n\
                [network.up]\ncapacity = \"2Mbps\"\n";
    parse("x", &format!("{head}{flows}"), None).unwrap()
}

/// What each flow receives, in kbit/s, as long as it is active.
fn trace(scenario: &Scenario, rate: impl Fn(usize, i64) -> u64) -> Trace {
    let mut trace = Trace::new(scenario.flows.iter().map(|flow| flow.name.clone()).collect());
    for row in 1..=40 * 20 {
        let time = Timestamp::ZERO + ROW_INTERVAL * row;
        for (index, flow) in scenario.flows.iter().enumerate() {
            if time > flow.start && time <= flow.stop {
                let rate = Bitrate::from_kbps(rate(index, (row - 1) / 20));
                let row = Row::new(time, index).with_capacity(Some(Bitrate::from_kbps(2_000)));
                trace.rows.push(row.with_received(rate * ROW_INTERVAL));
            }
        }
    }
    trace
}

/// What each flow of a trace received.
fn received(trace: &Trace) -> Vec<Received> {
    let of = |flow: usize| {
        let mut meter = FlowMeter::new(&[], Vec::new(), &Arc::default());
        for row in trace.rows.iter().filter(|row| row.flow == flow) {
            meter.push(row);
        }
        meter.finish().received
    };
    (0..trace.flows.len()).map(of).collect()
}

fn of(scenario: &Scenario, received: &[Received], part: &Range<Timestamp>) -> Shared {
    Shared::of(scenario, received, part, BTreeMap::new(), BTreeMap::new())
}

fn whole() -> Range<Timestamp> {
    Timestamp::ZERO..Timestamp::from_secs(40)
}

// [RFC8868 §3]
#[test]
fn flows_are_compared_while_all_of_them_are_active() {
    let scenario = scenario("[[flow]]\n[[flow]]\nstart = \"20s\"\n");
    let trace = trace(&scenario, |flow, second| match flow {
        0 if second < 20 => 2_000,
        0 => 1_000,
        _ if second < 30 => 240,
        _ => 1_000,
    });
    let fairness = of(&scenario, &received(&trace), &whole()).fairness.unwrap();
    // Means of 1000 and 620 kbit/s.
    assert_eq!(fairness.jain, 1_620.0 * 1_620.0 / (2.0 * (1_000_000.0 + 384_400.0)));
    let ratio = |mean, min, within| Some(Ratio { mean, min, within });
    assert_eq!(fairness.ratio_1s, ratio(0.62, 0.24, 0.5));
    assert_eq!(fairness.ratio_5s, ratio(0.62, 0.24, 0.5));
    assert_eq!(fairness.ratio_20s, ratio(0.62, 0.62, 1.0));
}

#[test]
fn who_has_not_come_yet_does_not_count() {
    let scenario = scenario("[[flow]]\n[[flow]]\n[[flow]]\nstart = \"20s\"\n");
    let trace = trace(&scenario, |flow, _| [900, 300, 600][flow]);
    let received = received(&trace);
    let part = Timestamp::ZERO..Timestamp::from_secs(20);
    let fairness = of(&scenario, &received, &part).fairness.unwrap();
    assert_eq!(fairness.jain, 1_200.0 * 1_200.0 / (2.0 * (810_000.0 + 90_000.0)));
    let fairness = of(&scenario, &received, &whole()).fairness.unwrap();
    assert_eq!(fairness.jain, 1_800.0 * 1_800.0 / (3.0 * (810_000.0 + 90_000.0 + 360_000.0)));
}

#[test]
fn a_pause_is_no_unfairness_and_a_priority_no_advantage() {
    let scenario = scenario(
        "[[flow]]\npriority = 2\n[[flow]]\npauses = [[\"10s\", \"20s\"]]\n\
         [[flow]]\nkind = \"tcp\"\n",
    );
    let trace = trace(&scenario, |flow, second| match flow {
        0 => 1_000,
        1 if (10..20).contains(&second) => 0,
        1 => 500,
        _ => 10,
    });
    let fairness = of(&scenario, &received(&trace), &whole()).fairness.unwrap();
    assert_eq!(fairness.jain, 1.0);
    assert_eq!(fairness.ratio_5s, Some(Ratio { mean: 1.0, min: 1.0, within: 1.0 }));
    assert_eq!(fairness.ratio_20s, fairness.ratio_5s);
}

#[test]
fn one_media_flow_shares_with_nobody() {
    let scenario = scenario("[[flow]]\n[[flow]]\nkind = \"tcp\"\n");
    let shared = of(&scenario, &received(&trace(&scenario, |_, _| 800)), &whole());
    assert_eq!(shared.fairness, None);
    assert_eq!(shared.link.utilization, Some(0.8));
}

#[test]
fn each_bottleneck_of_several_has_its_own_utilization() {
    let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"40s\"\n\
                [[network.hop]]\nup = { capacity = \"2Mbps\" }\n\
                [[network.hop]]\nup = { capacity = [[\"0s\", \"8Mbps\"], [\"20s\", \"4Mbps\"]] }\n\
                [[flow]]\nhops = [1]\n[[flow]]\n";
    let scenario = parse("x", text, None).unwrap();
    let trace = trace(&scenario, |flow, _| [1_000, 600][flow]);
    let shared = of(&scenario, &received(&trace), &whole());
    assert_eq!(shared.link.hops, BTreeMap::from([("1".into(), 0.8), ("2".into(), 0.1)]));
    assert_eq!(shared.link.utilization, Some(0.8));
    let late =
        of(&scenario, &received(&trace), &(Timestamp::from_secs(20)..Timestamp::from_secs(40)));
    assert_eq!(late.at("link.hops.2"), Some(0.15));
}

// [RFC8867 §5.1]
#[test]
fn a_load_that_does_not_yield_is_taken_off_a_media_flow_s_capacity() {
    let scenario = scenario(
        "[[flow]]\n[[flow]]\nkind = \"udp\"\nrate = [[\"0s\", \"1500kbps\"], \
         [\"20s\", \"400kbps\"]]\nstart = \"10s\"\n",
    );
    let trace = trace(&scenario, |_, _| 100);
    let capacity = |flow: usize, row: usize| {
        let row = trace.rows.iter().filter(|row| row.flow == flow).nth(row).unwrap();
        without_load(&scenario, row).capacity.map(|rate| rate.as_bps())
    };
    assert_eq!(capacity(0, 199), Some(2_000_000));
    assert_eq!(capacity(0, 200), Some(500_000));
    assert_eq!(capacity(0, 400), Some(1_600_000));
    assert_eq!(capacity(1, 0), Some(2_000_000));
}

#[test]
fn a_trace_without_rows_has_no_values() {
    let scenario = scenario("[[flow]]\n[[flow]]\n");
    let empty = Trace::new(vec!["media-1".into(), "media-2".into()]);
    let shared = of(&scenario, &received(&empty), &whole());
    assert_eq!((shared.link.utilization, shared.fairness), (Some(0.0), None));
}
