//! Cellular cells.

use std::net::Ipv4Addr;

use weir_net::QueueLimit;
use weir_net::cellular::{
    BearerChange, CellularConfig, Duplex, FILTERED, PacketFilter, PortRange, Scheduler,
    SignalChange, SlotKind, Subnet, Technology, UplinkAccess,
};
use weir_net::load::Arrivals;
use weir_net::path::{AccessConfig, Attachment, Direction};

use super::*;

/// A scenario with this text in its `[network]` and with these flows.
fn text(network: &str, flows: &str) -> String {
    format!(
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
         [network]\nkind = \"cellular\"\n{network}\n{flows}"
    )
}

const PHONE: &str = "bandwidth = \"10MHz\"\nterminal.phone.sinr = 20";
const FLOW: &str = "[[flow]]\nterminal = \"phone\"\n";

fn cell(network: &str) -> CellularConfig {
    config(&parse("x.toml", &text(network, FLOW), None).unwrap())
}

fn config(scenario: &Scenario) -> CellularConfig {
    match &scenario.access.as_ref().unwrap().config {
        AccessConfig::Cellular(config) => config.clone(),
        other => panic!("a {}", other.title()),
    }
}

/// The error of a cell with these keys at its terminal.
fn complaint(phone: &str) -> String {
    error(&text(&format!("bandwidth = \"10MHz\"\n[network.terminal.phone]\n{phone}"), FLOW))
}

#[test]
fn what_a_cell_leaves_out_is_that_of_a_usual_network() {
    let scenario = parse("x.toml", &text(PHONE, FLOW), None).unwrap();
    assert_eq!(scenario.hops, []);
    let own = Attachment { terminal: 1, class: FILTERED };
    assert_eq!(scenario.flows[0].attachment, Some(own));
    let cell = config(&scenario);
    let usual = CellularConfig::new(cell.carrier.clone(), cell.terminals.clone());
    assert_eq!(cell, usual);
    assert_eq!((cell.carrier.technology, cell.carrier.prbs.up), (Technology::Lte, 50));
    assert_eq!(cell.terminals[0].bearers.len(), 1);
    assert_eq!(cell.terminals[0].signal.up.mean, SignalChange::Constant(20.0));
    let ns3 = self::cell(&format!("profile = \"ns3\"\n{PHONE}"));
    assert_eq!(ns3.uplink_access, UplinkAccess::Ideal);
    assert!(!ns3.stops_at_queue_end && ns3.carrier.whole_groups);
}

#[test]
fn nr_has_its_numerology_its_pattern_and_its_bandwidths() {
    let cell = cell(
        "technology = \"nr\"\nnumerology = 1\nbandwidth = \"100MHz\"\nqam256 = true\nsymbols = 7\n\
         tdd = { pattern = \"DDSU\", down = 8, up = 4 }\nlayers = { down = 4 }\n\
         terminal.phone.sinr = 9",
    );
    let special = SlotKind::Special { down: 8, up: 4 };
    let pattern = vec![SlotKind::Down, SlotKind::Down, special, SlotKind::Up];
    assert_eq!(cell.carrier.duplex, Duplex::Time(pattern));
    assert_eq!((cell.carrier.prbs.down, cell.carrier.symbols, cell.carrier.qam256), (273, 7, true));
    assert_eq!((cell.carrier.layers.up, cell.carrier.layers.down), (1, 4));
}

#[test]
fn the_base_station_is_read_key_by_key() {
    let cell = cell(&format!(
        "scheduler = \"qos\"\nharq = {{ processes = 16, round = {{ up = 4 }}, \
         combining = false }}\n\
         adaptation = {{ down = {{ period = \"20ms\", target = \"1%\", outer_loop = false }} }}\n\
         uplink = {{ access = \"configured\", period = \"20ms\", size = \"300B\" }}\n\
         timing = {{ decode = 2 }}\nadmission = \"50%\"\n{PHONE}"
    ));
    assert_eq!(cell.scheduler, Scheduler::QualityOfService);
    assert_eq!((cell.harq.processes, cell.harq.round.up, cell.harq.round.down), (16, 4, 8));
    assert!(!cell.harq.combining);
    assert_eq!(cell.adaptation.down.outer_loop, None);
    assert_eq!(cell.adaptation.down.period, TimeDelta::from_millis(20));
    assert!(cell.adaptation.up.outer_loop.is_some());
    let size = DataSize::from_bytes(300);
    let period = TimeDelta::from_millis(20);
    assert_eq!(cell.uplink_access, UplinkAccess::Configured { period, size });
    assert_eq!((cell.timing.decode.up, cell.timing.decode.down), (2, 2));
    assert_eq!(cell.admission.share, 0.5);
}

#[test]
fn terminals_have_signals_queues_and_loads() {
    let cell = cell(
        "bandwidth = \"5MHz\"\npath_loss = { sinr_at_1km = { up = -5, down = 13 }, \
         shadowing = 8 }\n\
         [network.terminal.phone]\nsinr = { up = [[\"0s\", 10], [\"20s\", 5]], down = 15 }\n\
         fading = { profile = \"EVA\", speed = 60, carrier = \"1.8GHz\" }\n\
         queue = { up = \"2MB\", down = { limit = \"50packets\", aqm = \"codel\" } }\n\
         ambr = { down = \"5Mbps\" }\ndrx = true\n\
         [[network.terminal.phone.handover]]\nat = \"30s\"\ngap = \"50ms\"\nchange = -3\n\
         [[network.terminal.phone.load]]\nkind = \"poisson\"\ndirection = \"down\"\n\
         rate = \"1Mbps\"\npacket = \"1200B\"\n\
         [network.terminal.car]\ncount = 2\nplace = { distance = 100, speed = 36, \
         range = [50, 500] }",
    );
    let phone = &cell.terminals[0];
    let SignalChange::Trace { values, period: None } = &phone.signal.up.mean else {
        panic!("steps")
    };
    assert_eq!(values[1], (Timestamp::from_secs(20), 5.0));
    assert_eq!(phone.signal.down.mean, SignalChange::Constant(15.0));
    assert_eq!(phone.signal.down.fading.unwrap().carrier_hz, 1.8e9);
    let queue = &phone.bearers[0].queue;
    assert_eq!(queue.up.limit, QueueLimit::Bytes(DataSize::from_bytes(2_000_000)));
    assert_eq!(queue.down.limit, QueueLimit::Packets(50));
    assert!(matches!(queue.down.aqm, weir_net::Aqm::CoDel(_)));
    assert_eq!((phone.ambr.up, phone.ambr.down), (None, Some(Bitrate::from_kbps(5_000))));
    assert_eq!((phone.handovers[0].change_db, phone.drx.is_some()), (-3.0, true));
    let load = &phone.loads[0];
    assert_eq!(
        (load.direction, load.arrivals),
        (Direction::Down, Arrivals::Poisson(Bitrate::from_kbps(1_000)))
    );
    let names: Vec<&str> = cell.terminals.iter().map(|terminal| terminal.name.as_str()).collect();
    assert_eq!(names, ["phone", "car-1", "car-2"]);
    let SignalChange::Moving(car) = &cell.terminals[2].signal.up.mean else { panic!("it moves") };
    assert_eq!((car.speed_mps, car.sinr_at_1_km_db, car.shadowing_db), (10.0, -5.0, 8.0));
}

const BEARERS: &str = "bandwidth = \"5MHz\"\n[network.terminal.phone]\nsinr = 20\ncount = 2\n\
    [network.terminal.phone.bearer.late]\nqci = 1\ngbr = \"64kbps\"\nfrom = \"20s\"\n\
    until = \"40s\"\nchanges = [[\"30s\", { gbr = \"128kbps\" }]]\n\
    [network.terminal.phone.bearer.video]\nqci = 2\ngbr = \"1Mbps\"\nmbr = { down = \"3Mbps\" }\n\
    arp = { level = 2, may_preempt = true }\nrlc = \"um\"\n";

#[test]
fn bearers_come_change_and_go_at_their_times() {
    let cell = cell(BEARERS);
    let bearers = &cell.terminals[1].bearers;
    assert_eq!(bearers.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["default", "video"]);
    let guarantee = bearers[1].guarantee.unwrap();
    assert_eq!(guarantee.limit.up, Bitrate::from_kbps(1_000));
    assert_eq!(guarantee.limit.down, Bitrate::from_kbps(3_000));
    assert_eq!((bearers[1].priority.level, bearers[1].priority.may_preempt), (2, true));
    let changes: Vec<(i64, usize, &str)> = cell
        .changes
        .iter()
        .map(|(at, change)| {
            let kind = match change {
                BearerChange::Add { .. } => "add",
                BearerChange::Guarantee { .. } => "guarantee",
                BearerChange::Remove(_) => "remove",
            };
            ((*at - Timestamp::ZERO).as_millis() / 1_000, change.terminal(), kind)
        })
        .collect();
    let wanted = [(20, "add"), (30, "guarantee"), (40, "remove")]
        .into_iter()
        .flat_map(|(at, kind)| [(at, 0, kind), (at, 1, kind)]);
    assert_eq!(changes, wanted.collect::<Vec<_>>());
}

#[test]
fn a_flow_names_its_bearer_or_leaves_it_to_the_filters() {
    let flows = "[[flow]]\nterminal = \"phone\"\ncount = 3\nbearer = \"video\"\n\
        [[flow]]\nterminal = \"phone-2\"\nbearer = \"late\"\n\
        [[flow]]\nterminal = \"phone\"\nbearer = \"default\"\n[[flow]]\nterminal = \"phone\"\n";
    let scenario = parse("x", &text(BEARERS, flows), None).unwrap();
    let places: Vec<(usize, usize)> = scenario
        .flows
        .iter()
        .map(|flow| flow.attachment.map(|it| (it.terminal, it.class)).unwrap())
        .collect();
    assert_eq!(places, [(1, 1), (2, 1), (1, 1), (2, 2), (1, 0), (1, FILTERED)]);
}

#[test]
fn a_bearer_has_packet_filters_by_protocol_ports_and_the_other_end() {
    let of =
        |filter: &str| format!("{BEARERS}[[network.terminal.phone.bearer.video.filter]]\n{filter}");
    let filters = |filter: &str| cell(&of(filter)).terminals[0].bearers[1].filters.clone();
    let ports = PortRange { first: 5_000, last: 5_010 };
    let (remote, remote_ports) = (Subnet::ANY, PortRange::ANY);
    assert_eq!(
        filters("protocol = \"udp\"\nports = [5000, 5010]\n"),
        [PacketFilter::Packets { protocol: 17, ports, remote, remote_ports }]
    );
    let remote = Subnet { address: Ipv4Addr::new(192, 0, 2, 0), prefix: 24 };
    let remote_ports = PortRange { first: 443, last: 443 };
    assert_eq!(
        filters("protocol = \"tcp\"\nremote = \"192.0.2.0/24\"\nremote_ports = [443, 443]\n"),
        [PacketFilter::Packets { protocol: 6, ports: PortRange::ANY, remote, remote_ports }]
    );
    let [PacketFilter::Packets { remote, .. }] =
        filters("protocol = \"tcp\"\nremote = \"10.45.0.2\"\n")[..]
    else {
        panic!("one filter of packets")
    };
    assert_eq!(remote, Subnet { address: Ipv4Addr::new(10, 45, 0, 2), prefix: 32 });
    let address = "an IPv4 address or subnet, such as";
    for (filter, wanted) in [
        ("ports = [1, 2]\n", "protocol"),
        ("protocol = \"icmp\"\nports = [1, 2]\n", "udp"),
        ("protocol = \"udp\"\nports = [2, 1]\n", "the first and the last port"),
        ("protocol = \"udp\"\nports = [1, 65536]\n", "a whole number from 0 to 65535"),
        ("protocol = \"udp\"\nports = 5000\n", "the first and the last port"),
        ("protocol = \"udp\"\nremote_ports = [1]\n", "the first and the last port"),
        ("protocol = \"udp\"\nremote = \"example.org\"\n", address),
        ("protocol = \"udp\"\nremote = \"::1\"\n", address),
        ("protocol = \"udp\"\nremote = \"10.0.0.1/33\"\n", address),
        ("protocol = \"udp\"\nremote = \"10.0.0.1/+8\"\n", address),
        ("protocol = \"udp\"\nremote = \"10.0.0.1/\"\n", address),
        ("protocol = \"udp\"\nremote = 10\n", address),
    ] {
        let error = parse("x", &text(&of(filter), FLOW), None).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_trace_of_the_signal_is_read_from_a_file() {
    let place = tempfile::tempdir().unwrap();
    let network =
        "bandwidth = \"5MHz\"\nterminal.phone.sinr = { trace = \"walk.txt\", period = \"3s\" }";
    let read = |lines: &str| {
        std::fs::write(place.path().join("walk.txt"), lines).unwrap();
        parse("x", &text(network, FLOW), Some(place.path())).map_err(|error| error.to_string())
    };
    let scenario = read("# seconds decibels\n0 17.5\n1.5,-3\n").unwrap();
    let values = vec![(Timestamp::ZERO, 17.5), (Timestamp::from_millis(1_500), -3.0)];
    let period = Some(TimeDelta::from_secs(3));
    let mean = &config(&scenario).terminals[0].signal.up.mean;
    assert_eq!(*mean, SignalChange::Trace { values, period });
    assert!(scenario.traces.contains_key("walk.txt"));
    for (lines, wanted) in [
        ("", "the trace is empty"),
        ("0 17\n0 16\n", "line 2: the time is that of the line before"),
        ("0 NaN\n", "line 1: no known table"),
        ("0 70\n", "70 dB after 0 s; expected -30 to 60 dB"),
        ("-1 5\n", "line 1: expected a time in seconds, not '-1'"),
        ("0 5 6\n", "line 1: 3 columns without a header"),
        ("zero five\n", "line 1: no known table"),
    ] {
        let error = read(lines).unwrap_err();
        assert!(error.contains(wanted), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn a_mistake_in_the_base_station_is_one_line_that_says_what_to_write() {
    for (network, wanted) in [
        ("", "network.bandwidth is missing; write bandwidth = \"10MHz\""),
        ("bandwidth = \"10MHz\"", "network.terminal is missing"),
        ("bandwidth = \"10MHz\"\n[network.terminal]", "a cell needs a terminal"),
        ("bandwidth = \"7MHz\"", "expected \"1.4MHz\" or"),
        ("bandwidth = \"10MHz\"\nprbs = 50", "prbs says it; leave one of the two out"),
        ("prbs = 5", "must be a whole number from 6 to 110"),
        ("prbs = 111", "must be a whole number from 6 to 110"),
        ("prbs = 50.5", "must be a whole number"),
        ("prbs = nan", "expected a number"),
        ("prbs = { up = 50 }", "down is missing; write both directions"),
        ("technology = \"nr\"\nprbs = 276", "must be a whole number from 11 to 275"),
        ("technology = \"nr\"\nnumerology = 4\nprbs = 51", "a whole number from 0 to 3"),
        ("technology = \"nr\"\nsymbols = 3\nprbs = 51", "must be 2, 4 or 7"),
        ("technology = \"nr\"\ntdd = \"DDD\"\nprbs = 51", "needs a slot for each direction"),
        ("technology = \"nr\"\ntdd = \"DXU\"\nprbs = 51", "'DXU' is not a pattern"),
        (
            "technology = \"nr\"\nprbs = 51\ntdd = { pattern = \"DSU\", down = 10, up = 5 }",
            "a slot has 14 symbols",
        ),
        ("technology = \"nr\"\nprofile = \"ns3\"\nprbs = 51", "has no NR"),
        ("tdd = \"DDDSU\"", "only NR has it; write technology = \"nr\""),
        ("scheduler = \"fair\"", "expected \"proportional-fair\" or \"round-robin\""),
        ("harq.processes = 0", "must be a whole number from 1 to 32"),
        ("harq.round = 1e9", "must be a whole number from 1 to 1000"),
        ("adaptation.period = \"0ms\"", "must be between 0.01ms and 10000ms"),
        ("adaptation.target = 0", "must be between 0.1% and 90%"),
        ("adaptation.outer_loop = { step = -1 }", "must be between 0 and 10"),
        ("uplink = \"configured\"", "write { access = \"configured\""),
        ("uplink = { access = \"request\", size = \"80B\" }", "has no such key"),
        ("uplink = { access = \"request\", grant = \"1B\" }", "must be between 7B and 100000B"),
        ("timing = { up_fill = 6, up_prepare = 5 }", "up_fill must not be above up_prepare"),
        ("admission = 2", "a probability lies between 0 and 1"),
        ("layers = 9", "must be a whole number from 1 to 8"),
        ("shedule = 1", "unknown key 'shedule'"),
    ] {
        let has_carrier =
            ["bandwidth", "prbs", "technology"].iter().any(|key| network.contains(key));
        let carrier =
            if has_carrier || network.is_empty() { "" } else { "bandwidth = \"10MHz\"\n" };
        let terminal = if has_carrier && wanted.contains("terminal") {
            ""
        } else {
            "\nterminal.phone.sinr = 20"
        };
        let error = error(&text(&format!("{carrier}{network}{terminal}"), FLOW));
        assert!(error.contains(wanted), "{network}: {error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn a_mistake_in_a_terminal_is_one_line_that_says_what_to_write() {
    for (phone, wanted) in [
        ("", "network.terminal.phone.sinr is missing; write sinr = 20"),
        ("sinr = 61", "must be between -30 and 60"),
        ("sinr = nan", "expected a number"),
        ("sinr = { up = 20 }", "down is missing; write both directions"),
        ("sinr = [[\"5s\", 20]]", "the first step must be at 0s"),
        ("sinr = [[\"0s\", 20], [\"0s\", 10]]", "each step after the last"),
        ("sinr = { trace = \"walk.txt\" }", "a trace file needs a scenario file beside it"),
        ("sinr = 20\nplace = { distance = 5 }", "leave one of the two out"),
        ("place = { distance = 5 }", "network.path_loss is missing"),
        ("place = { distance = 5, speed = 3 }", "place.range is missing; write range = [50, 500]"),
        ("place = { distance = 0 }", "must be between 1 and 100000"),
        ("place = { distance = 5, range = [10, 20] }", "the distance must lie within the range"),
        ("sinr = 20\ncount = 101", "must be a whole number from 1 to 100"),
        ("sinr = 20\nfading = { profile = \"EPA\", speed = 501 }", "must be between 0 and 500"),
        (
            "sinr = 20\nfading = { profile = \"EPA\", speed = 3, carrier = \"2kHz\" }",
            "'2kHz' is not a frequency; write a number and a unit, such as \"1.8GHz\"",
        ),
        ("sinr = 20\nqueue = \"300ms\"", "write packets or bytes"),
        ("sinr = 20\nqueue = \"101MB\"", "must be at most 100MB"),
        ("sinr = 20\nqueue = { up = \"1MB\", limit = \"1MB\" }", "unknown key 'limit'"),
        ("sinr = 20\nqueue = { aqm = \"codle\" }", "aqm: expected \"drop-tail\" or \"codel\""),
        ("sinr = 20\nqci = 2", "the default bearer has no guarantee; write a QCI from 5 to 9"),
        ("sinr = 20\nqci = 10", "must be a QCI from 1 to 9"),
        ("sinr = 20\nrlc = { mode = \"um\", status_prohibit = \"5ms\" }", "only acknowledged mode"),
        ("sinr = 20\nrlc = { mode = \"am\", poll_retransmit = \"0ms\" }", "between 1ms and 2400ms"),
        ("sinr = 20\ndrx = { on = \"200ms\" }", "on must not be above cycle"),
        (
            "sinr = 20\nhandover = [{ at = \"5s\", gap = \"1s\" }, \
             { at = \"5500ms\", gap = \"1s\" }]",
            "handovers must be in order and must not overlap",
        ),
        ("sinr = 20\nhandover = [{ at = \"61s\", gap = \"1s\" }]", "lies outside the run"),
        ("sinr = 20\nbearer.default = { qci = 9 }", "stand at the terminal itself"),
        ("sinr = 20\nbearer.\"a,b\" = { qci = 9 }", "a name has up to 32 letters"),
        ("sinr = 20\nbearer.v = { gbr = \"1Mbps\" }", "bearer.v.qci is missing; write qci = 2"),
        ("sinr = 20\nbearer.v = { qci = 2 }", "gbr is missing; write gbr = \"1500kbps\""),
        ("sinr = 20\nbearer.v = { qci = 7, gbr = \"1Mbps\" }", "only a bearer of QCI 1 to 4"),
        ("sinr = 20\nbearer.v = { qci = 2, gbr = \"2Mbps\", mbr = \"1Mbps\" }", "below gbr"),
        ("sinr = 20\nbearer.v = { qci = 9, arp = { level = 16 } }", "a whole number from 1 to 15"),
        (
            "sinr = 20\nbearer.v = { qci = 9, from = \"9s\", until = \"9s\" }",
            "must come after from",
        ),
        (
            "sinr = 20\nbearer.v = { qci = 2, gbr = \"1Mbps\", from = \"9s\", \
             changes = [[\"5s\", { gbr = \"2Mbps\" }]] }",
            "changes must be in order and within the bearer's time",
        ),
        ("sinr = 20\nload = [{ kind = \"constant\", packet = \"99B\" }]", "rate is missing"),
        (
            "sinr = 20\nload = [{ kind = \"constant\", rate = \"11Gbps\", packet = \"99B\" }]",
            "must be at most 10Gbps",
        ),
        ("sinr = 20\nload = [{ kind = \"saturated\", packet = \"27B\" }]", "between 28B and 9000B"),
        (
            "sinr = 20\nload = [{ kind = \"bursts\", period = \"1us\", packets = 1, \
             packet = \"99B\" }]",
            "must be between 1ms and 3600000ms",
        ),
        (
            "sinr = 20\nload = [{ kind = \"saturated\", packet = \"99B\", bearer = \"v\" }]\n\
             bearer.v = { qci = 9, from = \"9s\" }",
            "there is no bearer 'v' from the start",
        ),
    ] {
        let complaint = complaint(phone);
        assert!(complaint.contains(wanted), "{phone}: {complaint}");
        assert_eq!(complaint.lines().count(), 1);
    }
}

#[test]
fn a_mistake_in_a_flow_or_a_name_says_what_to_write() {
    for (network, flows, wanted) in [
        (PHONE, "[[flow]]\n", "it crosses no network; write the terminal at which it ends"),
        (
            PHONE,
            "[[flow]]\nterminal = \"fone\"\n",
            "no terminal 'fone'; write one such as \"phone\"",
        ),
        (PHONE, "[[flow]]\nterminal = \"base-station\"\n", "there is no terminal 'base-station'"),
        (
            PHONE,
            "[[flow]]\nterminal = \"phone\"\nbearer = \"video\"\n",
            "phone has no bearer 'video'; it has default",
        ),
        (PHONE, "[[flow]]\nstation = \"phone\"\n", "only a flow in a Wi-Fi cell has this key"),
        ("bandwidth = \"5MHz\"\nterminal.\"a b\".sinr = 1", FLOW, "a name has up to 32 letters"),
        (
            "bandwidth = \"5MHz\"\nterminal.base-station.sinr = 1",
            FLOW,
            "two nodes are called 'base-station'",
        ),
    ] {
        let error = error(&text(network, flows));
        assert!(error.contains(wanted), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
    let wired = error(&small("terminal = \"phone\""));
    assert!(wired.contains("only a flow in a cellular cell has this key; write kind"), "{wired}");
}

#[test]
fn a_cell_has_at_most_a_thousand_terminals_and_a_terminal_fifteen_bearers() {
    let terminals = |groups: usize| {
        let group = |index| format!("terminal.t{index} = {{ sinr = 9, count = 100 }}\n");
        format!("bandwidth = \"5MHz\"\n{}", (0..groups).map(group).collect::<String>())
    };
    let flow = "[[flow]]\nterminal = \"t0\"\n";
    assert!(parse("x.toml", &text(&terminals(10), flow), None).is_ok());
    let error = error(&text(&terminals(11), flow));
    assert!(error.contains("a cell has at most 1000 terminals"), "{error}");
    let bearers = |count: usize| {
        let bearer = |index| format!("bearer.b{index}.qci = 9\n");
        format!("sinr = 9\n{}", (0..count).map(bearer).collect::<String>())
    };
    let network = format!("bandwidth = \"5MHz\"\n[network.terminal.phone]\n{}", bearers(14));
    assert_eq!(cell(&network).terminals[0].bearers.len(), 15);
    assert!(complaint(&bearers(15)).contains("a terminal has at most 15 bearers"));
}

#[test]
fn the_network_in_words_names_the_cell_and_each_table() {
    let words = parse("x", &text(BEARERS, FLOW), None).unwrap().network_in_words();
    assert_eq!(
        words[0],
        "LTE base station: 25 resource blocks, TTI 1 ms, proportional fair, scheduling requests \
         each 10 ms"
    );
    assert!(
        words[1].starts_with(
            "2 terminals phone, each: SINR 20 dB; bearer default: QCI 9, RLC \
        AM, up queue 2,500,000 B, down queue 4,000,000 B; bearer video: QCI 2, GBR 1 \
        Mbit/s"
        ),
        "{}",
        words[1]
    );
    assert!(words[1].contains("from 20 s bearer late"), "{}", words[1]);
}
