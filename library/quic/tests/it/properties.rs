//! Any order of events, any ranges, any losses: what a controller hears is in order and true.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir::controller::{Controller, RateLimits, Target};
use weir::feedback::{ArrivalTimes, Ecn, SentPacket};
use weir::{Algorithm, Bitrate, DataSize, FeedbackReport, Metrics, TimeDelta, Timestamp};
use weir_quic::{AckEnd, Config, Congestion, PacketName, Sent, Space, WindowRule};

const SPACES: [Space; 3] = [Space::Initial, Space::Handshake, Space::Data];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Unknown,
    Lost,
    Received,
}

/// Checks what its controller hears.
struct Witness {
    controller: Box<dyn Controller + Send>,
    now: Timestamp,
    sent: BTreeMap<i64, (Timestamp, SentPacket, Fate)>,
    times: Option<ArrivalTimes>,
}

impl Witness {
    fn advance(&mut self, now: Timestamp) {
        assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = now;
    }

    fn check(&mut self, now: Timestamp, report: &FeedbackReport) {
        assert!(!report.packets.is_empty());
        let numbers: Vec<i64> = report.packets.iter().map(|p| p.sequence_number).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
        for packet in &report.packets {
            let (time, sent, fate) = self.sent.get_mut(&packet.sequence_number).expect("sent");
            assert_eq!((packet.size, packet.send_time), (sent.size, *time));
            let next = if packet.arrival_time.is_some() { Fate::Received } else { Fate::Lost };
            let expected = if packet.recovered { Fate::Lost } else { Fate::Unknown };
            assert_eq!(*fate, expected, "{packet:?}");
            assert!(!packet.recovered || next == Fate::Received);
            assert!(packet.ecn == Ecn::NotEct || next == Fate::Received);
            if let Some(arrival) = packet.arrival_time
                && report.arrival_times == ArrivalTimes::Acknowledged
            {
                assert!(packet.send_time <= arrival && arrival <= now, "{packet:?} at {now}");
            }
            *fate = next;
        }
        if report.received().next().is_some() {
            let before = self.times.replace(report.arrival_times);
            let is_new = before.is_some_and(|before| before != report.arrival_times);
            assert_eq!(report.new_clock, is_new);
        }
    }
}

impl Controller for Witness {
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.advance(now);
        let before = self.sent.insert(packet.sequence_number, (now, *packet, Fate::Unknown));
        assert!(before.is_none(), "a number was given twice");
        self.controller.on_packet_sent(now, packet);
    }
    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.advance(now);
        self.check(now, report);
        self.controller.on_feedback(now, report);
    }
    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.controller.on_receiver_limit(now, limit);
    }
    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.controller.set_limits(now, limits);
    }
    fn on_route_change(&mut self, now: Timestamp) {
        self.sent.clear();
        self.times = None;
        self.controller.on_route_change(now);
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.advance(now);
        self.controller.on_timeout(now);
    }
    fn next_timeout(&self) -> Option<Timestamp> {
        self.controller.next_timeout()
    }
    fn target(&self) -> Target {
        self.controller.target()
    }
    fn metrics(&self) -> Metrics {
        self.controller.metrics()
    }
}

#[derive(Clone, Debug)]
enum Call {
    Wait(i64),
    Send { space: usize, skip: u64, bytes: u64 },
    Burst(u64),
    Range { space: usize, from: u64, count: u64 },
    Acked(u64),
    AckedAt { back: u64 },
    ReceiveTime { number: u64, at: i64 },
    AckEnd { delay: Option<i64>, ce: Option<u64>, app_limited: Option<bool>, rtt: Option<i64> },
    Lost { space: usize, number: u64 },
    BytesLost(u64),
    TakenBack(i64),
    Marks(u64),
    Queued(u64, u64),
    Mtu(u64),
    Timeout,
    Padding,
    NewPath,
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..200, 1 => any::<u64>()]
}

fn any_delay() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0_i64..60_000_000, 1 => any::<i64>()]
}

fn any_call() -> impl Strategy<Value = Call> {
    let space = || 0_usize..3;
    prop_oneof![
        6 => (0_i64..60_000_000).prop_map(Call::Wait),
        1 => (0_i64..30_000_000_000).prop_map(Call::Wait),
        6 => (space(), 0_u64..3, 20_u64..1_500)
            .prop_map(|(space, skip, bytes)| Call::Send { space, skip, bytes }),
        2 => (1_u64..20).prop_map(Call::Burst),
        6 => (space(), any_number(), any_number())
            .prop_map(|(space, from, count)| Call::Range { space, from, count }),
        2 => any_number().prop_map(Call::Acked),
        2 => (0_u64..9).prop_map(|back| Call::AckedAt { back }),
        2 => (any_number(), any::<i64>())
            .prop_map(|(number, at)| Call::ReceiveTime { number, at: at / 4 }),
        6 => (
            prop::option::of(any_delay()),
            prop::option::of(any_number()),
            prop::option::of(any::<bool>()),
            prop::option::of(any_delay()),
        )
            .prop_map(|(delay, ce, app_limited, rtt)| Call::AckEnd { delay, ce, app_limited, rtt }),
        4 => (space(), any_number()).prop_map(|(space, number)| Call::Lost { space, number }),
        1 => any_number().prop_map(Call::BytesLost),
        1 => any_delay().prop_map(Call::TakenBack),
        1 => any_number().prop_map(Call::Marks),
        1 => (any_number(), any_number()).prop_map(|(one, all)| Call::Queued(one, all)),
        1 => any_number().prop_map(Call::Mtu),
        3 => Just(Call::Timeout),
        1 => Just(Call::Padding),
        1 => Just(Call::NewPath),
    ]
}

struct Script {
    congestion: Congestion,
    now: Timestamp,
    next: [u64; 3],
    sent: Vec<Timestamp>,
    max: Bitrate,
}

impl Script {
    fn new(algorithm: Algorithm, window: WindowRule) -> Self {
        let kbps = Bitrate::from_kbps;
        let limits = RateLimits::new(kbps(100), kbps(500), kbps(10_000)).unwrap();
        let now = Timestamp::from_secs(10);
        let controller = Box::new(Witness {
            controller: algorithm.build(limits),
            now,
            sent: BTreeMap::new(),
            times: None,
        });
        let config = Config::default().with_window(window);
        let congestion = Congestion::new(controller, config);
        Self { congestion, now, next: [0; 3], sent: Vec::new(), max: limits.max() }
    }

    fn send(&mut self, space: usize, skip: u64, bytes: u64) {
        let number = self.next[space] + skip;
        self.next[space] = number + 1;
        let sent = Sent::new(SPACES[space], number, DataSize::from_bytes(bytes));
        self.congestion.on_packet_sent(self.now, sent);
        self.sent.push(self.now);
    }

    fn apply(&mut self, call: &Call) {
        let (now, congestion) = (self.now, &mut self.congestion);
        let name = |number: u64| PacketName::Numbered(Space::Data, number);
        match *call {
            Call::Wait(nanos) => self.now += TimeDelta::from_nanos(nanos),
            Call::Send { space, skip, bytes } => self.send(space, skip, bytes),
            Call::Burst(packets) => (0..packets).for_each(|_| self.send(2, 0, 1_200)),
            Call::Range { space, from, count } => {
                congestion.on_ack_range(SPACES[space], from..=from.saturating_add(count));
            }
            Call::Acked(number) => {
                congestion.on_packet_acked(PacketName::Number(number, None));
            }
            Call::AckedAt { back } => {
                let index = self.sent.len().checked_sub(back as usize + 1);
                if let Some(time) = index.map(|index| self.sent[index]) {
                    congestion.on_packet_acked(PacketName::SentAt(time));
                }
            }
            Call::ReceiveTime { number, at } => {
                congestion.on_receive_time(name(number), Timestamp::from_nanos(at));
            }
            Call::AckEnd { delay, ce, app_limited, rtt } => {
                let mut ack = AckEnd::default();
                ack.delay = delay.map(TimeDelta::from_nanos);
                ack.ce_count = ce.map(|count| (Space::Data, count));
                ack.app_limited = app_limited;
                ack.smoothed_rtt = rtt.map(TimeDelta::from_nanos);
                congestion.on_ack_end(now, ack);
            }
            Call::Lost { space, number } => {
                let name = PacketName::Numbered(SPACES[space], number);
                congestion.on_packet_lost(now, name);
            }
            Call::BytesLost(bytes) => {
                congestion.on_bytes_lost(now, now, DataSize::from_bytes(bytes));
            }
            Call::TakenBack(nanos) => {
                congestion.on_losses_taken_back(now - TimeDelta::from_nanos(nanos));
            }
            Call::Marks(count) => congestion.on_marks(count),
            Call::Queued(added, queued) => {
                let size = DataSize::from_bytes;
                congestion.on_media_queued(now, size(added), size(queued));
            }
            Call::Mtu(bytes) => congestion.on_mtu(DataSize::from_bytes(bytes)),
            Call::Timeout => {
                congestion.on_timeout(now);
                assert!(congestion.next_timeout().is_none_or(|next| next > now));
            }
            Call::Padding => {
                congestion.take_padding(now);
            }
            Call::NewPath => congestion.on_new_path(now),
        }
        self.check();
    }

    fn check(&self) {
        let congestion = &self.congestion;
        assert!(congestion.pacing_rate() > Bitrate::ZERO);
        assert!(congestion.window() > DataSize::ZERO);
        let media = congestion.media_bitrate();
        assert!(media <= self.max, "{media}");
    }

    fn outputs(&self) -> (Bitrate, Bitrate, DataSize, Option<Timestamp>) {
        let congestion = &self.congestion;
        let (pacing, window) = (congestion.pacing_rate(), congestion.window());
        (congestion.media_bitrate(), pacing, window, congestion.next_timeout())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_controller_hears_each_packet_once_and_in_order(
        calls in prop::collection::vec(any_call(), 0..300),
    ) {
        for algorithm in Algorithm::all() {
            for window in [WindowRule::Brake, WindowRule::Pacer { gain: 1.25 }] {
                let mut script = Script::new(algorithm, window);
                calls.iter().for_each(|call| script.apply(call));
            }
        }
    }

    #[test]
    fn the_same_calls_give_the_same_results(
        calls in prop::collection::vec(any_call(), 0..300),
    ) {
        let mut one = Script::new(Algorithm::Sluice, WindowRule::Brake);
        let mut other = Script::new(Algorithm::Sluice, WindowRule::Brake);
        for call in &calls {
            one.apply(call);
            other.apply(call);
            prop_assert_eq!(one.outputs(), other.outputs());
        }
    }
}
