//! Tests of the whole cell.

use std::net::Ipv4Addr;

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::*;
use crate::load::Arrivals;
use crate::packet::{FlowKey, Header, Outcome};
use crate::path::Direction;
use crate::queue::{Aqm, CoDelConfig, QueueLimit};
use crate::seed::Seed;

const PACKET: DataSize = DataSize::from_bytes(1_228);

fn terminal(name: &str, sinr_db: f64) -> Terminal {
    Terminal::new(name, Directions::both(Signal::constant(sinr_db)))
}

fn lte(terminals: Vec<Terminal>) -> CellularConfig {
    CellularConfig::new(Carrier::lte(25), terminals)
}

/// A cell with a flow of packets of equal intervals, which are numbered.
struct Run {
    cell: Cell<usize>,
    /// Delivery time of each packet, `None` while unknown, or the time of its loss.
    outcomes: Vec<Option<Result<Timestamp, Timestamp>>>,
    sent: Vec<Timestamp>,
}

impl Run {
    fn new(config: &CellularConfig) -> Self {
        Self { cell: Cell::new(config, Seed::new(1)), outcomes: Vec::new(), sent: Vec::new() }
    }

    /// Runs the cell to a time and notes what happens.
    fn until(&mut self, end: Timestamp) {
        while let Some(now) = self.cell.next_event().filter(|now| *now <= end) {
            while let Some(outcome) = self.cell.poll(now) {
                let (number, outcome) = match outcome {
                    Outcome::Delivered(it) => (it.payload, Ok(it.due)),
                    Outcome::Dropped(it) => (it.payload, Err(it.at)),
                };
                assert!(
                    self.outcomes[number].replace(outcome).is_none(),
                    "two outcomes of {number}"
                );
            }
        }
    }

    /// Sends packets of a rate during a time.
    fn send(
        &mut self,
        place: (usize, Direction),
        bearer: Option<usize>,
        rate: Bitrate,
        (from, to): (Timestamp, Timestamp),
    ) -> std::ops::Range<usize> {
        let first = self.sent.len();
        let mut now = from;
        while now < to {
            self.until(now);
            let number = self.sent.len();
            self.sent.push(now);
            self.outcomes.push(None);
            self.cell.enqueue(now, place, bearer, Header::new(PACKET), number);
            now += PACKET / rate;
        }
        first..self.sent.len()
    }

    fn delays_ms(&self, packets: std::ops::Range<usize>) -> Vec<f64> {
        let delay = |number: usize| match self.outcomes[number] {
            Some(Ok(due)) => Some((due - self.sent[number]).as_millis_f64()),
            _ => None,
        };
        packets.filter_map(delay).collect()
    }
}

fn secs(seconds: f64) -> Timestamp {
    Timestamp::ZERO + TimeDelta::from_secs_f64(seconds)
}

const fn mbps(mbps: u64) -> Bitrate {
    Bitrate::from_kbps(1_000 * mbps)
}

fn saturating(direction: Direction) -> Load {
    Load::new(direction, 0, Arrivals::Saturated, PACKET)
}

/// Mbit/s of IP packets that each terminal's bearers get down, over ten seconds.
fn shares(config: &CellularConfig) -> Vec<Vec<f64>> {
    let mut cell: Cell<usize> = Cell::new(config, Seed::new(1));
    cell.poll(secs(10.0));
    let of = |terminal: &super::terminal::Terminal<usize>| {
        let bearers = terminal.bearers.iter();
        bearers.map(|it| it.totals.down.delivered.as_bits() as f64 / 10e6).collect()
    };
    cell.terminals.iter().map(of).collect()
}

#[test]
fn a_saturated_terminal_gets_the_bits_of_its_blocks() {
    let mut alone = terminal("ue", 25.0);
    alone.loads = vec![saturating(Direction::Down)];
    let mut config = lte(vec![alone]);
    config.control_errors = false;
    // MCS 28 on 25 resource blocks: 18336 bits a TTI, less headers of RLC and PDCP.
    let rate = shares(&config)[0][0];
    assert!((rate / 18.336 - 0.995).abs() < 0.01, "{rate}");
}

#[test]
fn equal_terminals_share_equally_and_a_far_one_gets_its_share_of_the_time() {
    let with_load = |name: &str, sinr_db| {
        let mut terminal = terminal(name, sinr_db);
        terminal.loads = vec![saturating(Direction::Down)];
        terminal
    };
    let equal = shares(&lte(vec![with_load("a", 20.0), with_load("b", 20.0)]));
    assert!((equal[0][0] / equal[1][0] - 1.0).abs() < 0.02, "{equal:?}");
    let far = shares(&lte(vec![with_load("a", 20.0), with_load("b", 3.0)]));
    let alone = shares(&lte(vec![with_load("b", 3.0)]))[0][0];
    assert!((far[1][0] / alone - 0.5).abs() < 0.05, "{far:?} {alone}");
}

#[test]
fn a_guaranteed_bearer_keeps_its_rate_beside_its_terminals_own_load() {
    let mut ue = terminal("ue", 20.0);
    ue.loads = vec![saturating(Direction::Down), saturating(Direction::Up)];
    let mut video = BearerConfig { name: "video".into(), ..BearerConfig::default() };
    video.qci = Qci::new(2).unwrap();
    let rate = Directions::both(mbps(3));
    video.guarantee = Some(Guarantee { rate, limit: rate });
    ue.bearers.push(video);
    let mut config = lte(vec![ue]);
    config.scheduler = Scheduler::QualityOfService;
    for direction in [Direction::Up, Direction::Down] {
        let mut run = Run::new(&config);
        let packets = run.send((0, direction), Some(1), mbps(2), (secs(0.5), secs(3.0)));
        run.until(secs(4.0));
        let delays = run.delays_ms(packets.clone());
        assert_eq!(delays.len(), packets.len(), "{direction:?}");
        let most = delays.iter().copied().fold(0.0, f64::max);
        assert!(most < 60.0, "{direction:?}: {most} ms");
    }
}

#[test]
fn a_full_queue_delays_by_its_bytes() {
    let mut ue = terminal("ue", 25.0);
    ue.bearers[0].queue.down.limit = QueueLimit::Bytes(DataSize::from_bytes(200_000));
    let mut run = Run::new(&lte(vec![ue]));
    let packets = run.send((0, Direction::Down), None, mbps(40), (secs(0.0), secs(2.0)));
    run.until(secs(4.0));
    let delays = run.delays_ms(packets);
    // 200 kB at 18.2 Mbit/s.
    let last = delays[delays.len() - 1];
    assert!((last - 88.0).abs() < 4.0, "{last}");
}

#[test]
fn a_handover_holds_packets_back_and_acknowledged_mode_loses_none() {
    for (mode, may_lose) in [(RlcMode::AM, false), (RlcMode::UM, true)] {
        let mut ue = terminal("ue", 20.0);
        ue.bearers[0].rlc = mode;
        let gap = TimeDelta::from_millis(50);
        ue.handovers = vec![Handover { at: secs(1.0), gap, change_db: -5.0 }];
        let mut run = Run::new(&lte(vec![ue]));
        let packets = run.send((0, Direction::Down), None, mbps(2), (secs(0.5), secs(2.0)));
        run.until(secs(3.0));
        let delays = run.delays_ms(packets.clone());
        let lost = packets.len() - delays.len();
        assert!(if may_lose { lost < 5 } else { lost == 0 }, "{mode:?}: {lost} lost");
        let most = delays.iter().copied().fold(0.0, f64::max);
        assert!((45.0..160.0).contains(&most), "{mode:?}: {most} ms");
    }
}

#[test]
fn an_idle_terminal_listens_only_now_and_then() {
    let mut ue = terminal("ue", 20.0);
    ue.drx = Some(Drx::default());
    let mut run = Run::new(&lte(vec![ue.clone()]));
    // A packet each second: the terminal sleeps in between, up to one cycle of 160 ms.
    let slow = PACKET / TimeDelta::from_millis(990);
    let packets = run.send((0, Direction::Down), None, slow, (secs(1.0), secs(20.0)));
    run.until(secs(21.0));
    let delays = run.delays_ms(packets);
    let most = delays.iter().copied().fold(0.0, f64::max);
    assert!(most > 80.0 && most < 170.0, "{most}");
    ue.drx = None;
    let mut run = Run::new(&lte(vec![ue]));
    let packets = run.send((0, Direction::Down), None, slow, (secs(1.0), secs(20.0)));
    run.until(secs(21.0));
    assert!(run.delays_ms(packets).iter().all(|delay| *delay < 15.0));
}

#[test]
fn a_request_for_the_uplink_costs_its_period_and_two_rounds_of_grants() {
    let mut run = Run::new(&lte(vec![terminal("ue", 20.0)]));
    let slow = PACKET / TimeDelta::from_millis(53);
    let packets = run.send((0, Direction::Up), None, slow, (secs(1.0), secs(10.0)));
    run.until(secs(11.0));
    let delays = run.delays_ms(packets);
    let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
    let most = delays.iter().copied().fold(0.0, f64::max);
    // 13 ms from the request to the block, twice, and up to 10 ms to the occasion.
    assert!((20.0..30.0).contains(&least) && (28.0..45.0).contains(&most), "{least} {most}");
}

#[test]
fn a_terminal_that_misses_its_grants_asks_again() {
    // At -3 dB a terminal misses one grant in forty.
    let signal = Directions { up: Signal::constant(10.0), down: Signal::constant(-3.0) };
    let mut run = Run::new(&lte(vec![Terminal::new("ue", signal)]));
    let packets = run.send((0, Direction::Up), None, mbps(1), (secs(0.5), secs(30.0)));
    run.until(secs(40.0));
    assert_eq!(run.delays_ms(packets.clone()).len(), packets.len());
}

#[test]
fn bearers_are_admitted_while_they_fit_and_the_less_important_one_goes() {
    let mut config = lte(vec![terminal("ue", 20.0)]);
    config.scheduler = Scheduler::QualityOfService;
    let mut cell: Cell<usize> = Cell::new(&config, Seed::new(1));
    let bearer = |name: &str, rate: u64, level, may_preempt| {
        let mut bearer = BearerConfig { name: name.into(), ..BearerConfig::default() };
        let rates = Directions { up: mbps(1), down: mbps(rate) };
        bearer.guarantee = Some(Guarantee { rate: rates, limit: rates });
        bearer.priority = Priority { level, may_preempt, preemptable: true };
        BearerChange::Add { terminal: 0, bearer }
    };
    let change = |cell: &mut Cell<usize>, change: BearerChange| {
        cell.change(secs(1.0), &change);
        let events = std::mem::take(&mut cell.events);
        events.iter().map(|it| format!("{} {}", it.bearer, it.kind)).collect::<Vec<_>>()
    };
    assert_eq!(change(&mut cell, bearer("a", 9, 8, false)), ["a added"]);
    assert_eq!(change(&mut cell, bearer("a", 1, 8, false)), ["a unknown"]);
    assert_eq!(change(&mut cell, bearer("b", 9, 8, true)), ["b refused"]);
    assert_eq!(change(&mut cell, bearer("c", 9, 3, true)), ["a pre-empted", "c added"]);
    let reference = |name: &str| BearerRef { terminal: 0, bearer: name.into() };
    assert_eq!(change(&mut cell, BearerChange::Remove(reference("c"))), ["c removed"]);
    assert_eq!(change(&mut cell, BearerChange::Remove(reference("default"))), ["default unknown"]);
}

#[test]
fn the_oldest_packet_counts_whether_or_not_a_part_of_it_is_sent() {
    let codel = CoDelConfig::default();
    for aqm in [Aqm::DropTail, Aqm::CoDel(codel), Aqm::FqCoDel(codel)] {
        let queue = BearerQueue { aqm, ..BearerConfig::default().queue.up };
        let stream = Seed::new(1).stream("queue");
        let mut channel: rlc::Channel<usize> = rlc::Channel::new(RlcMode::AM, &queue, stream);
        let mut outcomes = rlc::Fates::new();
        assert_eq!(channel.head_delay(secs(1.0)), TimeDelta::ZERO);
        channel.enqueue(secs(1.0), Header::new(PACKET), Some(0), &mut outcomes);
        channel.enqueue(secs(1.01), Header::new(PACKET), Some(1), &mut outcomes);
        assert_eq!(channel.head_delay(secs(1.03)), TimeDelta::from_millis(30), "{aqm:?}");
        // Four bytes of RLC leave 96 of the 1230 that the first packet has with PDCP.
        let (span, taken) = channel.fill(secs(1.03), 100, &mut outcomes);
        assert_eq!((span.to - span.from, taken), (96, 100));
        assert_eq!(channel.head_delay(secs(1.03)), TimeDelta::from_millis(30), "{aqm:?}");
        let (span, taken) = channel.fill(secs(1.03), 1_138, &mut outcomes);
        assert_eq!((span.to, taken), (1_230, 1_138));
        assert_eq!(channel.head_delay(secs(1.04)), TimeDelta::from_millis(30), "{aqm:?}");
    }
}

/// 3GPP TS 36.322 §5.1.3.
#[test]
fn acknowledged_mode_loses_nothing_and_keeps_order_beside_a_terminal() {
    for (mode, is_lossless) in [(RlcMode::AM, true), (RlcMode::UM, false)] {
        for direction in [Direction::Up, Direction::Down] {
            let terminals = ["ue", "other"].map(|name| {
                let mut ue = terminal(name, 10.0);
                let fading = Some(fading::Fading::new(fading::Profile::Epa, 3.0));
                ue.signal.up.fading = fading;
                ue.signal.down.fading = fading;
                ue.bearers[0].rlc = mode;
                ue
            });
            let mut config = lte(terminals.to_vec());
            config.terminals[1].loads = vec![saturating(direction)];
            // Every block that is not decoded at once is left to RLC.
            config.harq.transmissions = 1;
            let mut run = Run::new(&config);
            let packets = run.send((0, direction), None, mbps(1), (secs(0.5), secs(5.0)));
            run.until(secs(30.0));
            for ue in &run.cell.terminals {
                assert!(ue.totals.of(direction).abandoned > 10, "{} {direction:?}", ue.name);
            }
            let outcomes: Vec<_> = packets.map(|number| run.outcomes[number]).collect();
            // Without acknowledgements, a receiver learns of a loss only from a later packet.
            let known = outcomes.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            assert!(
                known == outcomes.len() || !is_lossless,
                "{mode:?} {direction:?}: only {known} known"
            );
            let outcomes: Vec<_> =
                outcomes[..known].iter().map(|outcome| outcome.expect("an outcome")).collect();
            let (due, lost): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
            assert_eq!(lost.is_empty(), is_lossless, "{mode:?} {direction:?}: {} lost", lost.len());
            assert!(due.is_sorted_by_key(|outcome| outcome.unwrap()), "{mode:?} {direction:?}");
            let other = run.cell.terminals[1].bearers[0].totals.of(direction);
            assert!(other.delivered > DataSize::from_bytes(100_000), "{mode:?} {direction:?}");
        }
    }
}

#[test]
fn filters_sort_packets_into_bearers_and_a_removed_bearer_falls_back() {
    let mut ue = terminal("ue", 20.0);
    let mut own = BearerConfig { name: "own".into(), ..BearerConfig::default() };
    own.filters = vec![PacketFilter::Flow { up: FlowKey(7), down: FlowKey(8) }];
    ue.bearers.push(own);
    let mut cell: Cell<usize> = Cell::new(&lte(vec![ue]), Seed::new(1));
    let bearer = |cell: &Cell<usize>, direction, flow, class| {
        cell.terminals[0].bearer_of(class, direction, FlowKey(flow), &[])
    };
    assert_eq!(bearer(&cell, Direction::Up, 7, None), 1);
    assert_eq!(bearer(&cell, Direction::Up, 8, None), 0);
    assert_eq!(bearer(&cell, Direction::Down, 8, None), 1);
    assert_eq!(bearer(&cell, Direction::Down, 1, Some(1)), 1);
    let own = BearerRef { terminal: 0, bearer: "own".into() };
    cell.change(secs(1.0), &BearerChange::Remove(own));
    assert_eq!(bearer(&cell, Direction::Down, 8, None), 0);
    assert_eq!(bearer(&cell, Direction::Down, 1, Some(1)), 0);
}

#[test]
fn a_filter_by_ports_looks_at_the_port_of_the_terminal() {
    let filter = udp_filter(PortRange { first: 5_000, last: 5_010 }, Subnet::ANY, PortRange::ANY);
    let selects = |direction, protocol, source, destination| {
        filter.selects(direction, FlowKey::of_packet(3, protocol, source, destination), &[])
    };
    assert!(selects(Direction::Up, 17, 5_000, 9) && selects(Direction::Down, 17, 9, 5_010));
    assert!(!selects(Direction::Up, 17, 9, 5_000) && !selects(Direction::Down, 17, 5_011, 9));
    assert!(!selects(Direction::Up, 6, 5_000, 9));
    // A simulated flow is a number.
    assert!(!filter.selects(Direction::Up, FlowKey(5_000), &[]));
}

#[test]
fn a_filter_by_the_other_end_looks_at_address_and_port_both_ways() {
    let phone = Ipv4Addr::new(10, 0, 0, 1);
    let (server, other) = (Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(192, 0, 2, 8));
    let addresses = [(phone, server), (server, phone), (phone, other), (other, phone)];
    let of = |prefix| {
        let remote = Subnet { address: server, prefix };
        udp_filter(PortRange::ANY, remote, PortRange { first: 443, last: 443 })
    };
    let selects = |filter: PacketFilter, direction, pair, source, destination| {
        filter.selects(direction, FlowKey::of_packet(pair, 17, source, destination), &addresses)
    };
    for (prefix, is_other_inside) in [(32, false), (29, false), (28, true), (0, true)] {
        let filter = of(prefix);
        assert!(
            selects(filter, Direction::Up, 0, 9, 443)
                && selects(filter, Direction::Down, 1, 443, 9)
        );
        assert!(
            !selects(filter, Direction::Up, 0, 443, 9)
                && !selects(filter, Direction::Down, 1, 9, 443)
        );
        assert_eq!(selects(filter, Direction::Up, 2, 9, 443), is_other_inside, "/{prefix}");
        assert_eq!(selects(filter, Direction::Down, 3, 443, 9), is_other_inside, "/{prefix}");
    }
    // Nothing is known of this pair.
    assert!(!selects(of(32), Direction::Up, 4, 9, 443));
}

/// A filter for UDP.
fn udp_filter(ports: PortRange, remote: Subnet, remote_ports: PortRange) -> PacketFilter {
    PacketFilter::Packets { protocol: 17, ports, remote, remote_ports }
}

#[test]
fn nr_with_time_division_carries_both_directions() {
    use SlotKind::{Down, Special, Up};
    let mut carrier = Carrier::nr(1, 51);
    let special = Special { down: 10, up: 2 };
    carrier.duplex = Duplex::Time(vec![Down, Down, Down, special, Up]);
    let config = CellularConfig::new(carrier, vec![terminal("ue", 20.0)]);
    for direction in [Direction::Up, Direction::Down] {
        let mut run = Run::new(&config);
        let packets = run.send((0, direction), None, mbps(4), (secs(0.5), secs(2.0)));
        run.until(secs(3.0));
        let delays = run.delays_ms(packets.clone());
        assert_eq!(delays.len(), packets.len(), "{direction:?}");
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!(mean < 25.0, "{direction:?}: {mean} ms");
    }
}

#[test]
fn what_happens_does_not_depend_on_when_the_driver_asks() {
    let mut ue = terminal("ue", 12.0);
    ue.signal.down.fading = Some(fading::Fading::new(fading::Profile::Epa, 3.0));
    ue.loads = vec![Load::new(Direction::Up, 0, Arrivals::Poisson(mbps(1)), PACKET)];
    let config = lte(vec![ue]);
    let outcomes = |extra: bool| {
        let mut run = Run::new(&config);
        for step in 0..200 {
            let from = secs(0.5 + 0.01 * f64::from(step));
            run.send((0, Direction::Down), None, mbps(3), (from, from + TimeDelta::from_millis(9)));
            if extra {
                run.until(from + TimeDelta::from_micros(9_700));
                run.cell.next_event();
            }
        }
        run.until(secs(5.0));
        run.outcomes
    };
    assert_eq!(outcomes(false), outcomes(true));
}
