//! Tests of the whole controller, by the rules of `docs/reference/controllers/sluice.md`.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::*;
use crate::feedback::{FeedbackReport, PacketReport};

const PACKET: DataSize = DataSize::from_bytes(1_200);
const STEP: TimeDelta = TimeDelta::from_millis(5);
const ONE_WAY: TimeDelta = TimeDelta::from_millis(25);
const QUEUE_LIMIT: TimeDelta = TimeDelta::from_millis(300);

fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}
fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}
fn sluice(min: u64, start: u64, max: u64) -> Sluice {
    Sluice::new(RateLimits::new(kbps(min), kbps(start), kbps(max)).unwrap())
}

/// A sender that always sends the target, a FIFO link of 50 ms round trip, and feedback each 50 ms.
struct Loop {
    sluice: Sluice,
    now: Timestamp,
    capacity: Bitrate,
    /// Load of others in the same queue.
    load: Bitrate,
    /// Additional delay of the path.
    detour: TimeDelta,
    /// Every n-th packet is lost.
    every_lost: Option<i64>,
    /// Largest rate of the source.
    source: Bitrate,
    number: i64,
    credit: DataSize,
    free_at: Timestamp,
    on_the_way: VecDeque<PacketReport>,
    /// Target after each report, with the reason.
    targets: Vec<(Bitrate, Reason)>,
    longest_queue: TimeDelta,
}

impl Loop {
    fn new(sluice: Sluice, capacity: Bitrate) -> Self {
        let now = Timestamp::from_secs(10);
        Self {
            sluice,
            now,
            capacity,
            load: Bitrate::ZERO,
            detour: TimeDelta::ZERO,
            every_lost: None,
            source: Bitrate::MAX,
            number: 0,
            credit: DataSize::ZERO,
            free_at: now,
            on_the_way: VecDeque::new(),
            targets: Vec::new(),
            longest_queue: TimeDelta::ZERO,
        }
    }

    /// Runs this long. Returns the mean target of the second half.
    fn run(&mut self, time: TimeDelta) -> Bitrate {
        self.targets.clear();
        self.longest_queue = TimeDelta::ZERO;
        for step in 0..time.as_nanos() / STEP.as_nanos() {
            self.now += STEP;
            self.free_at = self.free_at.max(self.now) + (self.load * STEP) / self.capacity;
            let rate = self.sluice.target().bitrate.min(self.source);
            self.credit += rate * STEP;
            while self.credit >= PACKET {
                self.credit = self.credit.saturating_sub(PACKET);
                self.send();
            }
            if self.sluice.next_timeout().is_some_and(|due| due <= self.now) {
                self.sluice.on_timeout(self.now);
            }
            if step % 10 == 0 {
                self.report();
            }
        }
        let late = &self.targets[self.targets.len() / 2..];
        let sum: f64 = late.iter().map(|(target, _)| target.as_bps_f64()).sum();
        Bitrate::from_bps_f64(sum / late.len() as f64)
    }

    fn send(&mut self) {
        let packet = SentPacket::new(self.number, PACKET);
        self.sluice.on_packet_sent(self.now, &packet);
        let queue = self.free_at - self.now;
        self.longest_queue = self.longest_queue.max(queue);
        let is_lost = self.every_lost.is_some_and(|every| self.number % every == 0);
        let arrives = queue <= QUEUE_LIMIT && !is_lost;
        if queue <= QUEUE_LIMIT {
            self.free_at = self.free_at.max(self.now) + PACKET / self.capacity;
        }
        let arrival = self.free_at + ONE_WAY + self.detour;
        let report = PacketReport::new(self.number, PACKET, self.now);
        self.on_the_way.push_back(report.with_arrival_time(arrives.then_some(arrival)));
        self.number += 1;
    }

    fn report(&mut self) {
        let horizon = self.now - ONE_WAY;
        let newest = |packet: &PacketReport| packet.arrival_time.is_some_and(|at| at <= horizon);
        if let Some(last) = self.on_the_way.iter().rposition(newest) {
            let report = FeedbackReport::new(self.on_the_way.drain(..=last).collect());
            self.sluice.on_feedback(self.now, &report);
            let target = self.sluice.target().bitrate;
            self.targets.push((target, self.sluice.metrics().reason));
        }
    }

    fn has_reason(&self, reason: Reason) -> bool {
        self.targets.iter().any(|(_, why)| *why == reason)
    }
}

// S-5
#[test]
fn the_reference_is_5_ms_and_two_packets_of_a_fast_flow_without_noise() {
    let sluice = sluice(150, 9_600, 20_000);
    assert_eq!(sluice.reference(), ms(5 + 2));
    let settings = Settings::new(RateLimits::new(kbps(150), kbps(9_600), kbps(20_000)).unwrap());
    assert_eq!(Sluice::new(settings.with_priority(2.0)).reference(), ms(5 + 4));
}

// S-5: two packets at 150 kbit/s would be 128 ms.
#[test]
fn the_packets_of_a_slow_flow_count_30_ms_at_most() {
    assert_eq!(sluice(50, 150, 1_000).reference(), ms(5 + 30));
}

// S-9
#[test]
fn the_start_grows_by_160_percent_a_second_in_the_exponent() {
    let mut path = Loop::new(sluice(150, 300, 20_000), kbps(50_000));
    path.run(ms(1_000));
    let (target, reason) = *path.targets.last().unwrap();
    assert_eq!(reason, Reason::RampUp);
    assert!((1.1..1.7).contains(&libm::log(target / kbps(300))), "{target}");
}

// S-10, S-13
#[test]
fn a_link_is_filled_with_a_short_queue() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(1_000));
    path.run(ms(5_000));
    let late = path.run(ms(30_000));
    assert!((0.95..1.02).contains(&(late / kbps(1_000))), "{late}");
    assert!(path.longest_queue < ms(80), "{}", path.longest_queue);
}

// S-11: 1.5 s, or 6 round trips.
#[test]
fn a_rise_of_the_capacity_is_followed() {
    let mut path = Loop::new(sluice(150, 300, 3_000), kbps(800));
    path.run(ms(20_000));
    path.capacity = kbps(2_000);
    path.run(ms(3_000));
    let reports = path.targets.iter().position(|(target, _)| *target > kbps(1_800));
    assert!(reports.is_some_and(|reports| reports < 55), "{reports:?} reports of 50 ms");
}

// S-13
#[test]
fn a_fall_of_the_capacity_is_drained_within_a_second() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(2_000));
    path.run(ms(20_000));
    path.capacity = kbps(800);
    path.run(ms(1_000));
    assert!(path.has_reason(Reason::QueuingDelay));
    path.run(ms(5_000));
    assert!(path.longest_queue < ms(200), "{} a second later", path.longest_queue);
    let late = path.run(ms(10_000));
    assert!((0.9..1.05).contains(&(late / kbps(800))), "{late}");
}

// S-6
#[test]
fn random_losses_of_a_tenth_do_not_count() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(1_000));
    path.every_lost = Some(10);
    path.run(ms(10_000));
    let late = path.run(ms(30_000));
    assert!(late > kbps(900), "{late}");
}

// S-19
#[test]
fn a_longer_path_is_no_queue() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(1_000));
    path.run(ms(20_000));
    path.detour = ms(150);
    path.run(ms(6_000));
    let late = path.run(ms(10_000));
    assert!(late > kbps(850), "{late}");
    assert!(path.longest_queue < ms(150), "{}", path.longest_queue);
}

// S-15, S-16: a load that takes what others leave keeps the queue full.
#[test]
fn beside_a_full_queue_the_controller_competes() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(2_000));
    path.run(ms(10_000));
    let mut competed = false;
    for _ in 0..200 {
        let queue = path.free_at - path.now;
        let left = path.capacity.saturating_sub(path.sluice.target().bitrate);
        path.load = if queue < ms(150) { left + kbps(400) } else { left };
        path.run(ms(100));
        competed |= path.has_reason(Reason::Competing);
    }
    assert!(competed);
}

// S-15: 400 bytes take 3 ms at 1 Mbit/s and 64 ms at 50 kbit/s.
#[test]
fn a_queue_of_a_few_hundred_bytes_is_no_rivals() {
    let crowded = |start: u64, above: TimeDelta| {
        let mut sluice = sluice(20, start, 2_500);
        let (queue, rate) = (sluice.reference() + above, sluice.rate);
        for step in 0..100 {
            sluice.watch(&Seen {
                now: Timestamp::from_millis(10_000 + 50 * step),
                step_s: 0.05,
                queue,
                reference: sluice.reference(),
                delivered: rate,
                delivered_soon: rate,
                sent: rate,
                congestion: None,
            });
        }
        sluice.crowding.time() > ms(4_900)
    };
    assert!(crowded(1_000, ms(26)) && !crowded(1_000, ms(24)));
    assert!(crowded(50, ms(65)) && !crowded(50, ms(63)));
}

// S-20
#[test]
fn without_a_sight_of_the_empty_path_for_10_s_the_base_is_tested() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(1_000));
    path.run(ms(60_000));
    let empty = path.now - path.sluice.empty_at;
    assert!(empty < ms(10_200), "{empty} ago");
}

// S-21
#[test]
fn a_limited_source_holds_the_target_at_half_more_than_it_sends() {
    let mut path = Loop::new(sluice(150, 300, 10_000), kbps(10_000));
    path.source = kbps(600);
    let late = path.run(ms(60_000));
    assert!((1.3..1.7).contains(&(late / kbps(600))), "{late}");
    path.source = Bitrate::MAX;
    path.run(ms(5_000));
    assert!(path.sluice.target().bitrate > kbps(8_000), "{}", path.sluice.target().bitrate);
}

// S-21
#[test]
fn after_the_start_no_step_is_larger_than_the_fastest_growth() {
    let mut path = Loop::new(sluice(150, 300, 3_000), kbps(800));
    path.run(ms(10_000));
    path.capacity = kbps(3_000);
    path.run(ms(10_000));
    let largest = path.targets.windows(2).map(|pair| pair[1].0 / pair[0].0).fold(0.0, f64::max);
    assert!(largest < 1.1, "a step of {largest}");
}

// S-23
#[test]
fn a_first_report_without_losses_brings_the_rate_before_it_back_and_one_with_losses_does_not() {
    for (lost, target) in [(0, 1_000), (30, 500)] {
        let mut sluice = sluice(150, 1_000, 2_500);
        let at = |step: i64| Timestamp::from_millis(10_000 + 20 * step);
        let mut packets = Vec::new();
        for step in 0..90 {
            if sluice.next_timeout().is_some_and(|due| due <= at(step)) {
                sluice.on_timeout(at(step));
            }
            sluice.on_packet_sent(at(step), &SentPacket::new(step, PACKET));
            let arrival = (step >= lost).then_some(at(step) + ms(20));
            packets.push(PacketReport::new(step, PACKET, at(step)).with_arrival_time(arrival));
        }
        assert_eq!(sluice.target().bitrate, kbps(500));
        sluice.on_feedback(at(90), &FeedbackReport::new(packets));
        let rate = sluice.target().bitrate;
        assert!(rate >= kbps(target) && rate < kbps(target) * 1.5, "{lost}: {rate}");
    }
}

// S-23
#[test]
fn feedback_that_stops_halves_the_target_again_and_again() {
    let mut sluice = sluice(150, 1_000, 2_500);
    for step in 0..100 {
        let now = Timestamp::from_millis(10_000 + 50 * step);
        if sluice.next_timeout().is_some_and(|due| due <= now) {
            sluice.on_timeout(now);
        }
        sluice.on_packet_sent(now, &SentPacket::new(step, PACKET));
    }
    assert_eq!(sluice.metrics().reason, Reason::FeedbackLost);
    assert!(sluice.target().bitrate <= kbps(250), "{}", sluice.target().bitrate);
}

// S-24
#[test]
fn the_pacer_is_ahead_of_the_target_but_not_in_a_drain() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(1_000));
    let factor = |path: &Loop| path.sluice.target().pacing_rate / path.sluice.target().bitrate;
    assert!((factor(&path) - 1.4).abs() < 0.01);
    path.run(ms(10_000));
    path.capacity = kbps(400);
    path.run(ms(500));
    assert_eq!(path.sluice.state, State::Drain);
    assert!((factor(&path) - 1.05).abs() < 0.01);
}

// S-24
#[test]
fn below_a_scale_of_0_4_the_pacer_comes_closer_to_that_of_a_drain() {
    let mut sluice = sluice(150, 1_000, 2_500);
    let mut factor = |scale| {
        sluice.scale = scale;
        sluice.retarget(Reason::Increase);
        sluice.target().pacing_rate / sluice.target().bitrate
    };
    assert!((factor(0.4) - 1.4).abs() < 0.001);
    assert!((factor(0.2) - 1.225).abs() < 0.001);
}

// `--set` takes any value of a constant.
#[test]
fn constants_that_contradict_each_other_do_not_panic() {
    let mut parameters = Parameters::DEFAULT;
    parameters.recovered = 1.5; // The level stays below half of the largest target.
    parameters.share_alone = 1.0; // A known part of all would end the competition.
    let limits = RateLimits::new(kbps(900), kbps(950), kbps(1_000)).unwrap();
    let mut path = Loop::new(Sluice::with_parameters(limits, parameters), kbps(800));
    path.run(ms(20_000));
    assert!(path.has_reason(Reason::Competing));
    assert!(path.sluice.target().bitrate >= kbps(900));
}

// S-25
#[test]
fn limits_of_the_receiver_and_shares_of_coupled_flows_hold_at_once() {
    let mut sluice = sluice(150, 1_000, 2_500);
    let now = Timestamp::from_secs(1);
    sluice.on_receiver_limit(now, Some(kbps(400)));
    assert_eq!(sluice.target().bitrate, kbps(400));
    assert_eq!(sluice.metrics().reason, Reason::ReceiverLimit);
    sluice.on_receiver_limit(now, None);
    assert_eq!(sluice.target().bitrate, kbps(1_000));
    sluice.on_shared_rate(now, kbps(700));
    assert_eq!((sluice.target().bitrate, sluice.metrics().reason), (kbps(700), Reason::Coupled));
}

// S-26, S-27: the load takes 0.7 of 2 Mbit/s, and the flow the rest.
#[test]
fn a_flow_with_most_of_a_shared_link_wants_a_shorter_queue() {
    let mut path = Loop::new(sluice(150, 300, 2_500), kbps(2_000));
    path.load = kbps(700);
    path.run(ms(20_000));
    let (mut gentle, mut says_so, mut parts) = (false, false, Vec::new());
    for _ in 0..200 {
        path.run(ms(50));
        parts.push(path.sluice.sharing.own());
        gentle |= path.sluice.surplus() > 0.2;
        says_so |= path.has_reason(Reason::GivingWay);
    }
    let known: Vec<f64> = parts.into_iter().filter(|part| *part < 1.0).collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    assert!((0.55..0.75).contains(&mean), "{mean} of 0.65, {} times", known.len());
    assert!(gentle && says_so);
}
