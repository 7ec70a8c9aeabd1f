//! Properties of a cellular cell under any configuration and any traffic.

use proptest::prelude::*;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::cellular::fading::{Fading, Profile};
use weir_net::cellular::{
    BearerChange, BearerConfig, BearerRef, Carrier, Cell, CellularConfig, Directions, Drx, Duplex,
    Guarantee, Handover, Qci, RlcMode, Scheduler, SchedulingRequest, Sharing, Signal, SignalChange,
    SlotKind, Terminal, UplinkAccess,
};
use weir_net::path::Direction;
use weir_net::{Aqm, CoDelConfig, DualPi2Config, Header, Outcome, QueueLimit, Seed};

/// A packet of the traffic: gap before it in microseconds, its terminal, direction, bearer, size.
type Sent = (u64, usize, bool, usize, u64);

fn carrier() -> impl Strategy<Value = Carrier> {
    let lte = (1_u16..=110).prop_map(Carrier::lte);
    let pattern = vec![SlotKind::Down, SlotKind::Special { down: 10, up: 2 }, SlotKind::Up];
    let symbols = prop::sample::select(vec![14_u8, 7, 4, 2]);
    let nr = (0_u8..=3, 1_u16..=275, any::<bool>(), symbols, any::<bool>()).prop_map(
        move |(numerology, prbs, is_tdd, symbols, qam256)| {
            let mut carrier = Carrier::nr(numerology, prbs);
            carrier.symbols = symbols;
            carrier.qam256 = qam256;
            if is_tdd {
                carrier.duplex = Duplex::Time(pattern.clone());
            }
            carrier
        },
    );
    prop_oneof![lte, nr]
}

fn terminal() -> impl Strategy<Value = Terminal> {
    let fading = prop::option::of((0_usize..3, 0.0..200.0_f64).prop_map(|(profile, speed)| {
        Fading::new([Profile::Epa, Profile::Eva, Profile::Etu][profile], speed)
    }));
    let aqm = prop::sample::select(vec![
        Aqm::DropTail,
        Aqm::CoDel(CoDelConfig::default()),
        Aqm::FqCoDel(CoDelConfig::default()),
        Aqm::DualPi2(DualPi2Config::default()),
    ]);
    let parts = (-12.0..35.0_f64, fading, any::<bool>(), aqm, 1_u64..100_000);
    (parts, any::<bool>(), 0_u64..8_000, any::<bool>(), any::<bool>()).prop_map(
        |((sinr_db, fading, is_um, aqm, limit), has_drx, kbps, has_handover, has_ambr)| {
            let signal = Signal::new(SignalChange::Constant(sinr_db), fading);
            let mut terminal = Terminal::new("", Directions::both(signal));
            let mut video = BearerConfig::default();
            video.name = "video".into();
            video.qci = Qci::new(2).expect("the table has it");
            let rate = Directions::both(Bitrate::from_kbps(kbps));
            video.guarantee = (kbps > 0).then_some(Guarantee { rate, limit: rate });
            terminal.bearers.push(video);
            for bearer in &mut terminal.bearers {
                bearer.rlc = if is_um { RlcMode::UM } else { RlcMode::AM };
                for queue in [&mut bearer.queue.up, &mut bearer.queue.down] {
                    queue.aqm = aqm;
                    queue.limit = QueueLimit::Bytes(DataSize::from_bytes(limit));
                }
            }
            terminal.drx = has_drx.then(Drx::default);
            let gap = TimeDelta::from_millis(40);
            if has_handover {
                let at = Timestamp::from_millis(30);
                terminal.handovers = vec![Handover { at, gap, change_db: 1.0 }];
            }
            terminal.ambr = Directions::both(has_ambr.then(|| Bitrate::from_kbps(300)));
            terminal
        },
    )
}

fn config() -> impl Strategy<Value = CellularConfig> {
    let scheduler = prop::sample::select(vec![
        Scheduler::ProportionalFair,
        Scheduler::RoundRobin,
        Scheduler::MaximumRate,
        Scheduler::QualityOfService,
    ]);
    let access = prop::sample::select(vec![
        UplinkAccess::Ideal,
        UplinkAccess::Requested(SchedulingRequest::default()),
        UplinkAccess::Configured {
            period: TimeDelta::from_millis(5),
            size: DataSize::from_bytes(100),
        },
    ]);
    let terminals = prop::collection::vec(terminal(), 1..4);
    (carrier(), terminals, scheduler, access, any::<[bool; 4]>()).prop_map(
        |(carrier, mut terminals, scheduler, access, [stops, equal, combining, drops])| {
            for (index, terminal) in terminals.iter_mut().enumerate() {
                terminal.name = format!("terminal-{index}");
            }
            let mut config = CellularConfig::new(carrier, terminals);
            config.scheduler = scheduler;
            config.uplink_access = access;
            config.stops_at_queue_end = stops || access != UplinkAccess::Ideal;
            config.sharing = if equal { Sharing::Equal } else { Sharing::Priority };
            config.harq.combining = combining;
            if drops {
                let bearer = BearerRef { terminal: 0, bearer: "video".into() };
                let change = BearerChange::Remove(bearer);
                config.changes = vec![(Timestamp::from_millis(60), change)];
            }
            config
        },
    )
}

fn traffic() -> impl Strategy<Value = Vec<Sent>> {
    let packet = (0_u64..4_000, 0_usize..3, any::<bool>(), 0_usize..2, 28_u64..1_500);
    prop::collection::vec(packet, 1..120)
}

proptest! {
    /// Each packet has one outcome at most, not before it was sent; packets of a bearer arrive in
    /// order; nothing panics; and the cell comes to rest when nobody can be reached.
    #[test]
    fn packets_have_one_fate_and_arrive_in_order(
        config in config(), traffic in traffic(), seed in any::<u64>()
    ) {
        let mut cell: Cell<usize> = Cell::new(&config, Seed::new(seed));
        let mut sent: Vec<(Timestamp, (usize, bool, usize))> = Vec::new();
        let mut is_seen = vec![false; traffic.len()];
        let mut last = std::collections::BTreeMap::new();
        let is_fair = config.terminals.iter().any(|terminal| {
            !matches!(terminal.bearers[0].queue.up.aqm, Aqm::DropTail)
        });
        let mut check = |cell: &mut Cell<usize>,
                         now: Timestamp,
                         sent: &[(Timestamp, (usize, bool, usize))]| {
            while let Some(outcome) = cell.poll(now) {
                let (number, at, arrives) = match outcome {
                    Outcome::Delivered(it) => (it.payload, it.due, true),
                    Outcome::Dropped(it) => (it.payload, it.at, false),
                };
                assert!(!std::mem::replace(&mut is_seen[number], true), "two outcomes of {number}");
                assert!(at >= sent[number].0 && at <= now, "{number} at {at:?}, now {now:?}");
                if arrives && !is_fair && config.changes.is_empty() {
                    let before = last.insert(sent[number].1, number);
                    assert!(before.is_none_or(|before| before < number), "{number} after \
                        {before:?}");
                }
            }
        };
        let mut now = Timestamp::ZERO;
        for (number, &(gap, terminal, is_up, bearer, size)) in traffic.iter().enumerate() {
            now += TimeDelta::from_micros(gap as i64);
            while let Some(next) = cell.next_event().filter(|next| *next <= now) {
                check(&mut cell, next, &sent);
            }
            let terminal = terminal % config.terminals.len();
            let direction = if is_up { Direction::Up } else { Direction::Down };
            sent.push((now, (terminal, is_up, bearer)));
            let header = Header::new(DataSize::from_bytes(size));
            cell.enqueue(now, (terminal, direction), Some(bearer), header, number);
        }
        let end = now + TimeDelta::from_secs(3);
        while let Some(next) = cell.next_event().filter(|next| *next <= end) {
            check(&mut cell, next, &sent);
        }
    }
}
