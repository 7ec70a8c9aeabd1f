//! Outages of a network, from the scenario file to the rows of a run.

use std::fs;

use weir_net::Seed;
use weir_sim::trace::Trace;

use super::*;

/// 2 Mbit/s with an outage from 20 s to 24 s, as steps, as a trace of 60 s, and as rates recorded
/// for 90 s.
const STEPS: &str = "[[\"0s\", \"2Mbps\"], [\"20s\", \"0bps\"], [\"24s\", \"2Mbps\"]]";
const TRACE: &str = "{ trace = \"tunnel.mahi\" }";
const RATES: &str = "{ trace = \"tunnel.txt\" }";
/// Queue limits in bytes: 75 kB for the steps; 70 kB for the trace, whose mean rate is 1.87 Mbit/s;
/// 71.7 kB for the rates, whose mean is 1.91 Mbit/s.
const LIMITS: [(&str, f64); 3] = [(STEPS, 75e3), (TRACE, 70e3), (RATES, 71_667.0)];

/// A run of 40 s with one flow.
fn run(capacity: &str, more: &str, flow: &str, algorithm: LabAlgorithm) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let lines = (1..=10_000).map(|line| line * 6).filter(|at| !(20_000..24_000).contains(at));
    let lines: Vec<String> = lines.map(|at| at.to_string()).collect();
    fs::write(folder.path().join("tunnel.mahi"), lines.join("\n")).unwrap();
    fs::write(folder.path().join("tunnel.txt"), "0 2\n20 0\n24 2\n30 2\n60 2\n").unwrap();
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"40s\"\n[network.up]\n\
         capacity = {capacity}\ndelay = \"25ms\"\n{more}\n[network.down]\ndelay = \"25ms\"\n\
         [[flow]]\n{flow}\n"
    );
    let scenario = parse("tunnel", &text, Some(folder.path())).unwrap();
    weir_sim::run(&scenario.sim_config(algorithm), Seed::new(1))
}

fn ms(time: Timestamp) -> i64 {
    (time - Timestamp::ZERO).as_millis()
}

/// Ends of the rows in which something was received, in ms.
fn arrivals(trace: &Trace) -> impl Iterator<Item = i64> {
    let rows = trace.rows.iter().filter(|row| row.received > DataSize::ZERO);
    rows.map(|row| ms(row.time))
}

const UDP: &str = "kind = \"udp\"\nrate = \"200kbps\"";

#[test]
fn what_a_tunnel_holds_up_arrives_at_its_end_in_order_jitter_or_not() {
    let jitter = "jitter = { kind = \"netem\", amount = \"10ms\", reorder = false }";
    for (capacity, more) in [STEPS, TRACE, RATES].map(|c| [(c, ""), (c, jitter)]).concat() {
        let trace = run(capacity, more, UDP, LabAlgorithm::Gcc);
        let gap: Vec<i64> = arrivals(&trace).filter(|at| (20_101..=24_100).contains(at)).collect();
        assert_eq!(gap, [24_050, 24_100], "{capacity} {more}");
        // One packet every 60 ms until the end.
        let after: Vec<i64> = arrivals(&trace).filter(|&at| at > 24_100).chain([40_000]).collect();
        assert!(
            after.windows(2).all(|pair| pair[1] - pair[0] <= 100),
            "{capacity} {more}: {after:?}"
        );
    }
}

#[test]
fn udp_loses_in_a_tunnel_what_exceeds_the_queue_and_no_more() {
    for (capacity, limit) in LIMITS {
        let trace = run(capacity, "queue = \"300ms\"", UDP, LabAlgorithm::Gcc);
        let lost: u64 = trace.rows.iter().map(|row| row.lost_packets).sum();
        let [sent, packets] = [
            trace.rows.iter().map(|row| row.sent.as_bytes()).sum::<u64>() as f64,
            trace.rows.iter().map(|row| row.sent_packets).sum::<u64>() as f64,
        ];
        let packet = sent / packets;
        // 100 kB arrive in 4 s. The tolerance is two packets: the one in transmission, and
        // rounding.
        let expected = (100e3 - limit) / packet;
        assert!((lost as f64 - expected).abs() <= 2.0, "{capacity}: {lost} {expected}");
    }
}

#[test]
fn tcp_loses_nothing_in_a_tunnel_whose_queue_has_room() {
    for capacity in [STEPS, TRACE, RATES] {
        let trace = run(capacity, "queue = \"2s\"", "kind = \"tcp\"", LabAlgorithm::Gcc);
        let tunnel = trace.rows.iter().filter(|row| (20_001..=24_100).contains(&ms(row.time)));
        assert_eq!(tunnel.map(|row| row.lost_packets).sum::<u64>(), 0, "{capacity}");
        let gap: Vec<i64> = arrivals(&trace).filter(|at| (20_101..=24_100).contains(at)).collect();
        assert_eq!(gap, [24_050, 24_100], "{capacity}");
    }
}

#[test]
fn media_comes_back_from_a_tunnel_under_every_controller() {
    for capacity in [STEPS, TRACE, RATES] {
        for algorithm in LabAlgorithm::all() {
            let trace = run(capacity, "", "", algorithm);
            let late = trace.rows.iter().filter(|row| ms(row.time) > 35_000);
            let received: u64 = late.map(|row| row.received.as_bytes()).sum();
            // At least 100 kbit/s over 5 s.
            assert!(received > 62_500, "{capacity} {algorithm}: {received}");
        }
    }
}
