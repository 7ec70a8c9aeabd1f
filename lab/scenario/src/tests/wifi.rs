//! Wi-Fi cells.

use weir_net::path::AccessConfig;
use weir_net::wifi::{
    AccessCategory, Aggregation, Arrivals, Association, Band, CellConfig, DataRate, Edca, Errors,
    GuardInterval, Mcs, NodeId, NodeQueue, RateControl, RetryPolicy, StationLoad, WaitLimit,
};

use super::*;

/// A scenario with this text in its `[network]` and with these flows.
fn text(network: &str, flows: &str) -> String {
    format!(
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
         [network]\nkind = \"wifi\"\n{network}\n{flows}"
    )
}

const LAPTOP: &str = "station.laptop.rate = 7";
const FLOW: &str = "[[flow]]\nstation = \"laptop\"\n";

fn cell(network: &str) -> CellConfig {
    config(&parse("x.toml", &text(network, FLOW), None).unwrap())
}

fn config(scenario: &Scenario) -> CellConfig {
    let AccessConfig::Wifi(config) = &scenario.access.as_ref().unwrap().config else {
        panic!("it is a cell")
    };
    config.clone()
}

fn complaint(network: &str, flows: &str) -> String {
    error(&text(network, flows))
}

const fn mcs(index: u8) -> DataRate {
    DataRate::long_guard(Mcs::new(index).unwrap())
}

#[test]
fn what_a_cell_leaves_out_has_the_documented_default() {
    let scenario = parse("x.toml", &text(LAPTOP, FLOW), None).unwrap();
    assert_eq!(scenario.hops, []);
    let flow = &scenario.flows[0];
    let own = Association { station: NodeId(1), category: AccessCategory::BestEffort };
    assert_eq!(flow.attachment, Some(own.into()));
    assert_eq!(scenario.link_attachment(), Some(own.into()));
    assert_eq!(flow.hops, 0..0);
    let cell = config(&scenario);
    assert_eq!(cell.names().collect::<Vec<_>>(), ["ap", "laptop"]);
    assert_eq!(cell.band, Band::GHZ_2_4);
    let laptop = &cell.stations[0];
    assert_eq!(laptop.up.rate, RateControl::Fixed(mcs(7)));
    assert_eq!((laptop.up.errors, laptop.up.loads.len()), (Errors::NONE, 0));
    assert_eq!(laptop.up, laptop.down);
    let node = &laptop.node;
    assert_eq!((node.edca, node.aggregation), (Edca::STATION, Aggregation::NONE));
    assert_eq!(node.queue, NodeQueue::Fifo { limit: WaitLimit::Packets(1_000) });
    assert_eq!(node.retry, RetryPolicy::Limit(7));
}

#[test]
fn a_direction_says_what_its_station_leaves_open_or_has_otherwise() {
    let cell = cell(
        "station.laptop = { rate = 15, errors = \"1%\", \
         up = { rate = { mcs = 4, guard = \"short\" } } }",
    );
    let laptop = &cell.stations[0];
    let short = DataRate { guard: GuardInterval::Short, ..mcs(4) };
    assert_eq!(laptop.up.rate, RateControl::Fixed(short));
    assert_eq!(laptop.down.rate, RateControl::Fixed(mcs(15)));
    assert_eq!((laptop.up.errors, laptop.down.errors), (Errors::Ratio(0.01), Errors::Ratio(0.01)));
}

#[test]
fn a_table_with_a_count_is_so_many_stations_and_its_flows_take_turns() {
    let flows = "[[flow]]\ncount = 3\nstation = \"sta\"\n[[flow]]\nstation = \"sta-2\"\n";
    let scenario = parse("x", &text("station.sta = { count = 2, rate = 7 }", flows), None).unwrap();
    let access = scenario.access.as_ref().unwrap();
    assert_eq!(access.names(), ["ap", "sta-1", "sta-2"]);
    assert_eq!(access.nodes("sta"), Some(1..3));
    let nodes: Vec<usize> =
        scenario.flows.iter().map(|flow| flow.attachment.unwrap().terminal).collect();
    assert_eq!(nodes, [1, 2, 1, 2]);
}

#[test]
fn loads_and_neighbours_and_who_is_hidden_are_read() {
    let cell = cell(
        "hidden = [[\"laptop\", \"other\"]]\n\
         station.laptop = { rate = 7, load = [{ kind = \"constant\", rate = \"2Mbps\", \
         packet = \"1186B\", category = \"video\", start = \"10s\", stop = \"20s\" }] }\n\
         neighbour.other = { rate = 7, load = [{ kind = \"bursts\", period = \"33ms\", \
         packets = 32, packet = \"1186B\" }] }",
    );
    let packet = DataSize::from_bytes(1_186);
    let rate = Arrivals::Constant(Bitrate::from_kbps(2_000));
    let constant = StationLoad::new(rate, packet)
        .with_category(AccessCategory::Video)
        .with_start(Timestamp::from_secs(10))
        .with_stop(Timestamp::from_secs(20));
    assert_eq!(cell.stations[0].up.loads, [constant]);
    assert_eq!(cell.stations[0].down.loads, []);
    let bursts = Arrivals::Bursts { period: TimeDelta::from_millis(33), packets: 32 };
    let load = &cell.neighbours[0].link.loads[0];
    assert_eq!((load.arrivals, load.stop), (bursts, Timestamp::from_secs(60)));
    let deaf = f64::NEG_INFINITY;
    let pair = [(NodeId(1), NodeId(2), deaf), (NodeId(2), NodeId(1), deaf)];
    assert_eq!(cell.powers.between, pair);
}

#[test]
fn places_and_what_lies_between_them_are_read() {
    let cell = cell(
        "propagation = { exponent = 3.5, shadowing = 4 }\n\
         station.laptop = { rate = 7, place = [3, 4] }\n\
         station.far = { rate = 7, place = [-30, 0], count = 2 }",
    );
    let placement = cell.powers.placement.unwrap();
    assert_eq!(placement.places, [(0.0, 0.0), (3.0, 4.0), (-30.0, 0.0), (-30.0, 0.0)]);
    assert_eq!(placement.sent_dbm, 20.0);
    assert_eq!((placement.propagation.exponent, placement.propagation.shadowing_db), (3.5, 4.0));
}

#[test]
fn a_variant_changes_a_station_and_keeps_the_order_of_all() {
    let text = text(
        "station.b = { rate = 7 }\nstation.a = { rate = 7, retry = { extension = 0 } }",
        "[[flow]]\nstation = \"a\"\n[variant.more]\nnetwork.station.a.retry.extension = 3\n",
    );
    let base = config(&parse("x", &text, None).unwrap());
    let varied = config(&parse_variant("x", &text, "more", None).unwrap());
    assert_eq!(base.names().collect::<Vec<_>>(), ["ap", "b", "a"]);
    assert_eq!(varied.names().collect::<Vec<_>>(), ["ap", "b", "a"]);
    let extension = |cell: &CellConfig| match cell.stations[1].node.retry {
        RetryPolicy::CongestionAware(policy) => policy.extension,
        RetryPolicy::Limit(_) => panic!("it extends"),
    };
    assert_eq!((extension(&base), extension(&varied)), (0, 3));
}

#[test]
fn a_mistake_in_a_cell_is_one_line_that_says_what_to_write() {
    for (network, flows, wanted) in [
        ("", FLOW, "x.toml:5: network.station is missing"),
        ("station.laptop = {}", FLOW, "network.station.laptop.rate is missing; write rate = 7"),
        ("station.laptop.rate = 16", FLOW, "must be an MCS from 0 to 15"),
        (
            LAPTOP,
            "[[flow]]\nstation = \"labtop\"\n",
            "there is no station 'labtop'; write one such as \"laptop\"",
        ),
        (LAPTOP, "[[flow]]\n", "it crosses no network; write the station at which it ends"),
        ("station.laptop = { rate = 7, queue = \"300ms\" }", FLOW, "write packets or bytes"),
        (
            "station.laptop = { rate = 7, place = [1, 2] }\nstation.b.rate = 7",
            FLOW,
            "some nodes have a place and others none",
        ),
        (
            "station.laptop = { rate = 7, place = [1, 2], power = -60 }",
            FLOW,
            "leave out one of the two",
        ),
        ("propagation.power = 20\nstation.laptop.rate = 7", FLOW, "no node has a place"),
        ("station.ap.rate = 7", "[[flow]]\nstation = \"ap\"\n", "two nodes are called 'ap'"),
        ("hidden = [[\"laptop\", \"x\"]]\nstation.laptop.rate = 7", FLOW, "there is no node 'x'"),
        (
            "station.laptop = { rate = 7, edca = { video = { cw_min = 31 } } }",
            FLOW,
            "cw_min must not be above cw_max",
        ),
    ] {
        let complaint = complaint(network, flows);
        assert!(complaint.contains(wanted), "{complaint}");
        assert_eq!(complaint.lines().count(), 1);
    }
    let wired = error(&small("station = \"laptop\""));
    assert!(
        wired.contains(
            "only a flow in a Wi-Fi cell has this key; write kind = \"wifi\" in [network]"
        ),
        "{wired}"
    );
}

#[test]
fn a_cell_has_at_most_a_thousand_stations() {
    let stations = |groups: usize| {
        let group = |index| format!("station.s{index} = {{ rate = 7, count = 100 }}\n");
        (0..groups).map(group).collect::<String>()
    };
    let flow = "[[flow]]\nstation = \"s0\"\n";
    assert!(parse("x.toml", &text(&stations(10), flow), None).is_ok());
    let error = complaint(&stations(11), flow);
    assert!(error.contains("a cell has at most 1000 stations"), "{error}");
}
