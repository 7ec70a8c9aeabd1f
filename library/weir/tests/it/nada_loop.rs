//! NADA over a drop-tail bottleneck: the evidence for docs/reference/controllers/nada.md.

use std::collections::VecDeque;

use weir::controller::{EcnMode, Reason, Settings};
use weir::controllers::nada::{Nada, Parameters};
use weir::feedback::Ecn;
use weir::pacer::{Pacer, Release};
use weir::{
    Bitrate, Controller, DataSize, FeedbackReport, PacketReport, RateLimits, SentPacket, TimeDelta,
    Timestamp,
};

const PACKET: DataSize = DataSize::from_bytes(1200);
const FRAME_MS: i64 = 33;
const FEEDBACK_MS: i64 = 50;

/// A pseudo-random number in 0..1000 for each packet, the same in each run.
fn dice(number: i64) -> i64 {
    let mixed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as i64 % 1000
}

/// State of the path at a given millisecond.
#[derive(Clone, Copy)]
struct Path {
    capacity: Bitrate,
    one_way_ms: i64,
    /// Packets lost of every 1000.
    loss: i64,
    /// Packets that find a queue of 10 ms are marked.
    ecn: bool,
    /// Largest extra delay of a packet, uniformly distributed; causes reordering.
    jitter_ms: i64,
    feedback_lost: bool,
    /// Maximum bitrate of the source.
    source: Bitrate,
}

const MBPS: Path = Path {
    capacity: Bitrate::from_kbps(1000),
    one_way_ms: 25,
    loss: 0,
    ecn: false,
    jitter_ms: 0,
    feedback_lost: false,
    source: Bitrate::MAX,
};

/// One sender with its queue and its feedback, and the measurements of each second.
struct Flow {
    controller: Nada,
    limits: RateLimits,
    /// Target bitrate at the last check, and number of changes in this second.
    bitrate: Bitrate,
    changes: u64,
    pacer: Pacer<()>,
    next_number: i64,
    /// Packets sent and not reported yet, with their arrival or loss and CE mark.
    in_flight: VecDeque<PacketReport>,
    called_lost: Vec<PacketReport>,
    reports: VecDeque<(Timestamp, FeedbackReport)>,
    delivered: DataSize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Second {
    target_kbps: f64,
    delivered_kbps: f64,
    max_queue_ms: f64,
    lost: u64,
    /// Number of changes of the target bitrate.
    changes: u64,
}

impl Flow {
    fn new((limits, parameters): (RateLimits, Parameters)) -> Self {
        let settings = Settings::new(limits).with_ecn(EcnMode::Classic);
        let controller = Nada::with_parameters(settings, parameters);
        Self {
            limits,
            bitrate: limits.start(),
            changes: 0,
            pacer: Pacer::new(&controller.target()),
            controller,
            next_number: 0,
            in_flight: VecDeque::new(),
            called_lost: Vec::new(),
            reports: VecDeque::new(),
            delivered: DataSize::ZERO,
        }
    }

    /// Runs source and pacer at `now`; `queue_end` is when the shared bottleneck will be empty.
    fn send(
        &mut self,
        now: Timestamp,
        path: &Path,
        queue_end: &mut Timestamp,
        second: &mut Second,
    ) {
        if now.as_millis() % FRAME_MS == 0 {
            let rate = self.controller.target().bitrate.min(path.source);
            let frame = rate * TimeDelta::from_millis(FRAME_MS);
            let packets = frame.as_bytes().div_ceil(PACKET.as_bytes());
            for _ in 0..packets {
                self.pacer.enqueue(DataSize::from_bytes(frame.as_bytes() / packets), ());
            }
            self.controller.on_media_queued(now, frame, self.pacer.queued());
        }
        self.check(now);
        self.pacer.set_target(now, &self.controller.target());
        while let Some(Release { size, .. }) = self.pacer.dequeue(now) {
            let number = self.next_number;
            self.next_number += 1;
            let packet = SentPacket::new(number, size).with_queued(self.pacer.queued());
            self.controller.on_packet_sent(now, &packet);
            let queue = (*queue_end - now).max(TimeDelta::ZERO);
            let lost = queue > TimeDelta::from_millis(300) || dice(number) < path.loss;
            if lost {
                second.lost += 1;
            } else {
                *queue_end = (*queue_end).max(now) + size / path.capacity;
                self.delivered += size;
            }
            second.max_queue_ms = second.max_queue_ms.max(queue.as_millis_f64());
            let extra = path.one_way_ms + path.jitter_ms * dice(number + 7) / 1000;
            self.in_flight.push_back(
                PacketReport::new(number, size, now)
                    .with_arrival_time((!lost).then(|| *queue_end + TimeDelta::from_millis(extra)))
                    .with_ecn(if path.ecn && queue > TimeDelta::from_millis(10) {
                        Ecn::Ce
                    } else {
                        Ecn::Ect1
                    }),
            );
        }
    }

    /// Sends the receiver's report every 50 ms, and delivers it to the sender.
    fn receive(&mut self, now: Timestamp, path: &Path) {
        if now.as_millis() % FEEDBACK_MS == 0 {
            let arrived = |packet: &PacketReport| packet.arrival_time.is_some_and(|at| at <= now);
            let mut packets: Vec<PacketReport> = Vec::new();
            self.called_lost.retain(|packet| {
                if arrived(packet) {
                    packets.push(packet.with_recovered(true));
                }
                !arrived(packet)
            });
            let seen = self.in_flight.iter().rposition(arrived).map_or(0, |last| last + 1);
            for packet in self.in_flight.drain(..seen) {
                if arrived(&packet) {
                    packets.push(packet);
                } else {
                    packets.push(packet.with_arrival_time(None));
                    self.called_lost.extend(packet.arrival_time.map(|_| packet));
                }
            }
            if !packets.is_empty() && !path.feedback_lost {
                let back = now + TimeDelta::from_millis(path.one_way_ms);
                self.reports.push_back((back, FeedbackReport::new(packets)));
            }
        }
        while self.reports.front().is_some_and(|(at, _)| *at <= now) {
            let (_, report) = self.reports.pop_front().expect("seen above");
            self.controller.on_feedback(now, &report);
            self.check(now);
        }
        if self.controller.next_timeout().is_some_and(|at| at <= now) {
            self.controller.on_timeout(now);
            assert!(self.controller.next_timeout().is_none_or(|at| at > now));
            self.check(now);
        }
    }

    /// Checks the invariants after every call: bounds, and a reason that fits the change.
    fn check(&mut self, now: Timestamp) {
        let (target, metrics) = (self.controller.target(), self.controller.metrics());
        let range = self.limits.min()..=self.limits.max();
        assert!(range.contains(&target.bitrate) && range.contains(&target.pacing_rate), "{now}");
        assert!(metrics.signals.iter().all(|(_, value)| value.is_finite()), "{now}");
        let fits = match metrics.reason {
            Reason::SendQueue => true,
            Reason::RampUp | Reason::Increase | Reason::ApplicationLimited => {
                target.bitrate >= self.bitrate
            }
            Reason::QueuingDelay | Reason::Loss | Reason::Ecn | Reason::FeedbackLost => {
                target.bitrate <= self.bitrate
            }
            _ => target.bitrate == self.bitrate,
        };
        assert!(
            fits,
            "{now}: {} to {} by {}",
            self.bitrate,
            target.bitrate,
            metrics.reason.as_str()
        );
        self.changes += u64::from(target.bitrate != self.bitrate);
        self.bitrate = target.bitrate;
    }
}

/// Runs flows over one bottleneck. Returns the measurements of each flow for each second.
fn run<const N: usize>(
    controllers: [(RateLimits, Parameters); N],
    seconds: i64,
    path: impl Fn(i64) -> Path,
) -> [Vec<Second>; N] {
    let mut flows = controllers.map(Flow::new);
    let mut seen = [const { Vec::new() }; N];
    let mut queue_end = Timestamp::ZERO;
    for second in 0..seconds {
        for (flow, seen) in flows.iter_mut().zip(&mut seen) {
            (flow.delivered, flow.changes) = (DataSize::ZERO, 0);
            seen.push(Second::default());
        }
        for ms in 1000 * second..1000 * (second + 1) {
            let now = Timestamp::from_millis(ms);
            let path = path(ms);
            for (flow, seen) in flows.iter_mut().zip(&mut seen) {
                flow.send(now, &path, &mut queue_end, seen.last_mut().expect("pushed above"));
                flow.receive(now, &path);
            }
        }
        for (flow, seen) in flows.iter().zip(&mut seen) {
            let last = seen.last_mut().expect("pushed above");
            last.target_kbps = flow.controller.target().bitrate.as_kbps_f64();
            last.changes = flow.changes;
            last.delivered_kbps = (flow.delivered / TimeDelta::from_secs(1)).as_kbps_f64();
        }
    }
    seen
}

fn limits(min: u64, start: u64, max: u64) -> RateLimits {
    let [min, start, max] = [min, start, max].map(Bitrate::from_kbps);
    RateLimits::new(min, start, max).expect("in order")
}
/// One flow with limits of 150 kbit/s to 2.5 Mbit/s, starting at 300 kbit/s.
fn alone(seconds: i64, path: impl Fn(i64) -> Path) -> Vec<Second> {
    let [seen] = run([(limits(150, 300, 2500), Parameters::DEFAULT)], seconds, path);
    seen
}
fn capacity(kbps: u64) -> Path {
    Path { capacity: Bitrate::from_kbps(kbps), ..MBPS }
}
fn mean(seen: &[Second], value: impl Fn(&Second) -> f64) -> f64 {
    seen.iter().map(value).sum::<f64>() / seen.len() as f64
}
fn mean_target(seen: &[Second]) -> f64 {
    mean(seen, |second| second.target_kbps)
}
/// Seconds until the target first ends a second above `kbps`; infinite if it never does.
fn seconds_until(seen: &[Second], kbps: f64) -> f64 {
    let second = seen.iter().position(|second| second.target_kbps > kbps);
    second.map_or(f64::INFINITY, |second| second as f64 + 1.0)
}
fn losses(seen: &[Second]) -> f64 {
    seen.iter().map(|second| second.lost as f64).sum()
}
#[track_caller]
fn assert_within(value: f64, range: std::ops::Range<f64>) {
    assert!(range.contains(&value), "{value} is outside {range:?}");
}

// [NADA §4.3]: on a clean path of 1 Mbit/s.
#[test]
fn it_reaches_1_mbps_within_four_seconds_and_keeps_it_with_a_short_queue() {
    let seen = alone(60, |_| MBPS);
    assert_within(seconds_until(&seen, 950.0), 0.0..4.0);
    assert_within(mean(&seen[5..], |s| s.delivered_kbps), 980.0..1001.0);
    // The ramp-up may add QBOUND, 50 ms; the burst of a frame comes on top. The packets are larger
    // than those of the start, which is no queue (NADA-D16).
    assert!(seen[5..].iter().all(|second| second.max_queue_ms < 95.0 && second.lost == 0));
}

// The contract: the capacity drops and returns. The losses: NADA-D6.
#[test]
fn it_follows_a_drop_to_300_kbps_and_recovers() {
    let seen = alone(90, |ms| capacity(if (30_000..60_000).contains(&ms) { 300 } else { 1000 }));
    assert!(seen[31].target_kbps < 300.0, "below the capacity two seconds after the drop");
    assert_within(mean(&seen[30..60], |s| s.delivered_kbps), 240.0..301.0);
    assert_within(losses(&seen[30..60]), 0.0..150.0);
    assert_within(seconds_until(&seen[60..], 900.0), 0.0..5.0);
}

// [NADA §4.3]: flows that see the same signal converge to rates proportional to PRIO * RMAX.
#[test]
fn two_flows_share_by_their_priorities() {
    let flow = (limits(150, 300, 2500), Parameters::DEFAULT);
    for (prio, range) in [(1.0, 0.8..1.25), (2.0, 1.6..2.4)] {
        let mut parameters = Parameters::DEFAULT;
        parameters.prio = prio;
        let other = (flow.0, parameters);
        let [a, b] = run([flow, other], 120, |_| capacity(2000));
        assert_within(mean_target(&b[60..]) / mean_target(&a[60..]), range);
    }
}

// NADA-D4
#[test]
fn small_random_loss_leaves_the_rate_and_5_percent_takes_most_of_it() {
    let with_loss =
        |loss| alone(60, |ms| Path { loss: if ms < 40_000 { loss } else { 0 }, ..MBPS });
    assert_within(mean_target(&with_loss(10)[10..40]), 950.0..1050.0);
    assert_within(mean_target(&with_loss(20)[10..40]), 900.0..1050.0);
    // x_curr = 250 ms gives RMAX / 25 = 100 kbit/s, below the minimum.
    let heavy = with_loss(50);
    assert_within(mean_target(&heavy[10..40]), 150.0..300.0);
    assert_within(seconds_until(&heavy[40..], 900.0), 0.0..5.0);
}

// [NADA §4.2]: the queue that ends the ramp-up is measured on the filtered delay, without jitter.
#[test]
fn jitter_of_30_ms_does_not_keep_it_from_the_ramp_up() {
    let seen = alone(60, |_| Path { jitter_ms: 30, ..MBPS });
    assert_within(seconds_until(&seen, 900.0), 0.0..6.0);
}

// NADA-D5
#[test]
fn jitter_that_reorders_does_not_drive_it_to_the_minimum() {
    let target = |jitter_ms| mean_target(&alone(60, |_| Path { jitter_ms, ..MBPS })[10..]);
    assert_within(target(80), 700.0..850.0);
    assert_within(target(20), 950.0..1050.0);
}

// NADA-D3, NADA-D6: the capacity changes in steps of 20 s each.
#[test]
fn on_a_staircase_it_fills_each_step_and_loses_few_packets() {
    let steps = [2000, 1500, 1000, 500, 1000, 1500, 2000, 1500, 1000, 500];
    let seen = alone(200, |ms| capacity(steps[(ms / 20_000) as usize]));
    for (seen, kbps) in seen.chunks(20).zip(steps) {
        let lost = losses(seen);
        assert!(lost < 60.0, "{lost} at {kbps} kbit/s");
    }
    let share = mean(&seen, |second| second.delivered_kbps) / 1250.0;
    assert_within(share, 0.95..1.0);
}

// NADA-D8
#[test]
fn a_source_that_sends_less_than_it_may_does_not_inflate_the_target() {
    let source = |ms| if ms < 30_000 { Bitrate::from_kbps(200) } else { Bitrate::MAX };
    for jitter_ms in [0, 30] {
        let seen = alone(60, |ms| Path { source: source(ms), jitter_ms, ..MBPS });
        assert_within(seen[29].target_kbps, 300.0..350.0);
        assert_within(seconds_until(&seen[30..], 900.0), 0.0..15.0);
    }
    // Reordering keeps it out of the ramp-up, whose growth is limited anyway.
    let seen = alone(30, |ms| Path { source: source(ms), jitter_ms: 80, ..MBPS });
    assert_within(seen[29].target_kbps, 300.0..350.0);
}

// NADA-D9, [RFC8836 §2] requirement 10
#[test]
fn lost_feedback_lowers_it_to_the_minimum_and_its_return_restores_it() {
    let lost = |ms: i64| (20_000..30_000).contains(&ms);
    let seen = alone(60, |ms| Path { feedback_lost: lost(ms), ..MBPS });
    assert_eq!(seen[22].target_kbps, 150.0);
    assert_within(seconds_until(&seen[30..], 900.0), 0.0..5.0);
}

// The contract: the source pauses for a long time.
#[test]
fn it_keeps_its_rate_over_a_pause_of_20_seconds() {
    let paused = |ms: i64| (20_000..40_000).contains(&ms);
    let source = |ms| if paused(ms) { Bitrate::ZERO } else { Bitrate::MAX };
    let seen = alone(60, |ms| Path { source: source(ms), ..MBPS });
    assert_eq!(seen[39].target_kbps, seen[20].target_kbps);
    assert_within(mean(&seen[41..], |s| s.delivered_kbps), 950.0..1001.0);
}

// [NADA §4.2]
#[test]
fn marks_keep_the_queue_shorter_than_delay_alone() {
    let queue = |ecn| mean(&alone(60, |_| Path { ecn, ..MBPS })[10..], |s| s.max_queue_ms);
    assert_within(queue(true) / queue(false), 0.0..0.5);
}

// NADA-D2, NADA-D10
#[test]
fn the_target_moves_once_a_delta_although_reports_come_twice_as_often() {
    let seen = alone(60, |_| MBPS);
    assert!(seen.iter().all(|second| second.changes <= 10));
    assert_within(mean(&seen[5..], |second| second.changes as f64), 9.0..10.1);
}

#[test]
fn the_limits_bind_and_equal_limits_hold_the_rate() {
    let all = |limits, kbps| run([(limits, Parameters::DEFAULT)], 20, |_| capacity(kbps));
    let [seen] = all(limits(150, 300, 800), 5000);
    // The shaping buffer takes at most 5 %.
    assert!(seen[10..].iter().all(|second| (760.0..=800.0).contains(&second.target_kbps)));
    let [seen] = all(limits(600, 600, 600), 300);
    assert!(seen.iter().all(|second| second.target_kbps == 600.0));
}

#[test]
fn equal_input_gives_equal_output() {
    let jittery = || alone(30, |_| Path { jitter_ms: 40, loss: 10, ..MBPS });
    assert_eq!(jittery(), jittery());
}
