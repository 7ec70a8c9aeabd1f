//! Times, sizes, rates and numbers from the whole range of their types, as a broken host or a false
//! peer passes them. The tests run with overflow checks, so an overflow is a panic here.

use proptest::prelude::*;
use weir::controller::{Controller, EcnMode, RateLimits, Settings};
use weir::feedback::{
    ArrivalTimes, Ecn, FeedbackReport, PacketReport, ProbeId, SentPacket, TwccHeader,
};
use weir::testing::{Driver, Feedback, Op};
use weir::units::{Bitrate, DataSize, TimeDelta};
use weir::{Algorithm, MediaSender, Timestamp};

use super::{config, every_algorithm};

/// Most packets taken from a sender between two calls.
const TAKEN: usize = 64;

/// One call of a host, with values of any size.
#[derive(Clone, Debug)]
enum Call {
    Queued(u64, u64),
    Sent { number: i64, size: u64, queued: u64, probe: Option<u32> },
    Feedback(FeedbackReport),
    RoundTrip(i64),
    ReceiverLimit(Option<u64>),
    Limits(RateLimits),
    Desired(Option<u64>),
    NewRoute,
    Shared(u64),
    Timeout,
}

/// A time or a duration in ns, or a sequence number: usual ones, the ends of the range, and any.
fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0_i64..40_000).prop_map(|ms| 10_000_000_000 + ms * 1_000_000),
        1 => -4_i64..300,
        2 => (0_i64..60_000_000_000).prop_map(|back| i64::MAX - back),
        1 => (0_i64..60_000_000_000).prop_map(|on| i64::MIN + on),
        1 => prop::sample::select(vec![i64::MIN, i64::MAX, i64::MAX / 2, -1_000_000_000]),
        1 => any::<i64>(),
    ]
}

/// A size in bytes or a rate in bit/s.
fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 40_u64..1_500,
        2 => 0_u64..5_000_000,
        1 => prop::sample::select(vec![0, 1, 1 << 32, 1 << 53, 1 << 61, 1 << 63, u64::MAX]),
        1 => any::<u64>(),
    ]
}

fn any_wide_limits() -> impl Strategy<Value = RateLimits> {
    (any_u64(), any_u64(), any_u64()).prop_map(|(one, two, three)| {
        let mut bps = [one.max(1), two.max(1), three.max(1)];
        bps.sort_unstable();
        let [min, start, max] = bps.map(Bitrate::from_bps);
        RateLimits::new(min, start, max).expect("they are sorted")
    })
}

fn any_packet() -> impl Strategy<Value = PacketReport> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    let marks = (ecn, any::<bool>(), prop::option::weighted(0.2, 0_u32..4));
    (any_i64(), any_u64(), any_i64(), prop::option::of(any_i64()), marks).prop_map(
        |(number, size, sent, arrival, (ecn, recovered, probe))| {
            let send_time = Timestamp::from_nanos(sent);
            PacketReport::new(number, DataSize::from_bytes(size), send_time)
                .with_arrival_time(arrival.map(Timestamp::from_nanos))
                .with_ecn(ecn)
                .with_recovered(recovered)
                .with_probe(probe.map(ProbeId))
        },
    )
}

fn any_report() -> impl Strategy<Value = FeedbackReport> {
    let packets = prop::collection::vec(any_packet(), 0..12);
    let times = prop::sample::select(vec![
        ArrivalTimes::Measured,
        ArrivalTimes::RoundTrip,
        ArrivalTimes::Acknowledged,
    ]);
    (packets, any::<u32>(), any::<bool>(), times).prop_map(
        |(mut packets, missing, new_clock, times)| {
            packets.sort_by_key(|packet| packet.sequence_number);
            packets.dedup_by_key(|packet| packet.sequence_number);
            let mut report = FeedbackReport::new(packets).with_missing_feedback(missing);
            report.new_clock = new_clock;
            report.arrival_times = times;
            report
        },
    )
}

fn any_call() -> impl Strategy<Value = Call> {
    let probe = prop::option::weighted(0.2, 0_u32..4);
    prop_oneof![
        1 => (any_u64(), any_u64()).prop_map(|(added, queued)| Call::Queued(added, queued)),
        5 => (any_i64(), any_u64(), any_u64(), probe).prop_map(|(number, size, queued, probe)| {
            Call::Sent { number, size, queued, probe }
        }),
        5 => any_report().prop_map(Call::Feedback),
        1 => any_i64().prop_map(Call::RoundTrip),
        1 => prop::option::of(any_u64()).prop_map(Call::ReceiverLimit),
        1 => any_wide_limits().prop_map(Call::Limits),
        1 => prop::option::of(any_u64()).prop_map(Call::Desired),
        1 => Just(Call::NewRoute),
        1 => any_u64().prop_map(Call::Shared),
        3 => Just(Call::Timeout),
    ]
}

fn any_calls() -> impl Strategy<Value = Vec<(i64, Call)>> {
    prop::collection::vec((any_i64(), any_call()), 0..60)
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let ecn = prop::sample::select(vec![EcnMode::Off, EcnMode::Classic, EcnMode::L4s]);
    (any_wide_limits(), ecn, any::<bool>()).prop_map(|(limits, ecn, switch)| {
        Settings::new(limits)
            .with_ecn(ecn)
            .with_tolerate_random_loss(switch)
            .with_compete_with_tcp(switch)
    })
}

fn apply<C: Controller + ?Sized>(controller: &mut C, now: Timestamp, call: &Call) {
    let (rate, size) = (Bitrate::from_bps, DataSize::from_bytes);
    match call {
        Call::Queued(added, queued) => controller.on_media_queued(now, size(*added), size(*queued)),
        Call::Sent { number, size: bytes, queued, probe } => {
            let packet = SentPacket::new(*number, size(*bytes))
                .with_queued(size(*queued))
                .with_probe(probe.map(ProbeId));
            controller.on_packet_sent(now, &packet);
        }
        Call::Feedback(report) => controller.on_feedback(now, report),
        Call::RoundTrip(ns) => controller.on_round_trip_time(now, TimeDelta::from_nanos(*ns)),
        Call::ReceiverLimit(limit) => controller.on_receiver_limit(now, limit.map(rate)),
        Call::Limits(limits) => controller.set_limits(now, *limits),
        Call::Desired(desired) => controller.set_desired_bitrate(now, desired.map(rate)),
        Call::NewRoute => controller.on_route_change(now),
        Call::Shared(share) => controller.on_shared_rate(now, rate(*share)),
        Call::Timeout => controller.on_timeout(now),
    }
}

/// The rules that hold whatever a host passes.
fn check<C: Controller + ?Sized>(controller: &C, limits: RateLimits) -> Result<(), TestCaseError> {
    let target = controller.target();
    prop_assert_eq!(limits.clamp(target.bitrate), target.bitrate);
    prop_assert!(target.pacing_rate > Bitrate::ZERO);
    prop_assert!(target.padding_rate <= limits.max());
    let metrics = controller.metrics();
    prop_assert!((0.0..=1.0).contains(&metrics.loss_ratio), "loss ratio {}", metrics.loss_ratio);
    for (name, value) in metrics.signals.iter() {
        prop_assert!(value.is_finite(), "the signal {} is {}", name, value);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(1_024))]

    #[test]
    fn times_and_sizes_of_the_whole_range_break_no_invariant(
        algorithm in every_algorithm(),
        settings in any_settings(),
        calls in any_calls(),
    ) {
        let mut controller = algorithm.build(settings);
        let (mut limits, mut now) = (settings.limits, Timestamp::from_nanos(i64::MIN));
        for (ns, call) in &calls {
            now = now.max(Timestamp::from_nanos(*ns));
            apply(&mut *controller, now, call);
            if let Call::Limits(new) = call {
                limits = *new;
            }
            check(&*controller, limits)?;
            if matches!(call, Call::Timeout) {
                // No time is after the last one, which means never.
                let next = controller.next_timeout();
                prop_assert!(next.is_none_or(|next| next > now || next == Timestamp::MAX));
            }
        }
    }

    /// The contract forbids it, but a host whose clock is set must not bring its call down.
    #[test]
    fn a_clock_that_is_set_breaks_no_invariant(
        algorithm in every_algorithm(),
        settings in any_settings(),
        calls in any_calls(),
    ) {
        let mut controller = algorithm.build(settings);
        let mut limits = settings.limits;
        for (ns, call) in &calls {
            apply(&mut *controller, Timestamp::from_nanos(*ns), call);
            if let Call::Limits(new) = call {
                limits = *new;
            }
            check(&*controller, limits)?;
        }
    }

    #[test]
    fn a_media_sender_takes_times_and_sizes_of_the_whole_range(
        algorithm in every_algorithm(),
        settings in any_settings(),
        calls in any_calls(),
        uncounted in any_u64(),
    ) {
        let mut sender = MediaSender::new(algorithm.build(settings));
        sender.set_uncounted(DataSize::from_bytes(uncounted));
        for (ns, call) in &calls {
            let now = Timestamp::from_nanos(*ns);
            drive(&mut sender, now, call);
            let ready = (0..TAKEN).map_while(|_| sender.next_packet(now)).count();
            prop_assert!(ready <= TAKEN);
            let _ = (sender.media_bitrate(), sender.queue_time(), sender.wants_frame());
            let _ = (sender.next_timeout(), sender.take_change());
        }
    }
}

/// Passes the call to a sender: what is sent is queued, and feedback is joined with its history.
fn drive(sender: &mut MediaSender<()>, now: Timestamp, call: &Call) {
    let (rate, size) = (Bitrate::from_bps, DataSize::from_bytes);
    match call {
        Call::Queued(one, other) => sender.enqueue(now, [(size(*one), ()), (size(*other), ())]),
        Call::Sent { size: bytes, probe: Some(_), .. } => {
            sender.enqueue_urgent(now, [(size(*bytes), ())]);
        }
        Call::Sent { number, size: bytes, .. } => {
            if number % 2 == 0 {
                sender.enqueue_parity(size(*bytes), ());
            }
            sender.on_packet_sent(now, size(*bytes), None);
        }
        Call::Feedback(report) => {
            let header = TwccHeader {
                reference_time: report
                    .packets
                    .first()
                    .map_or(0, |packet| packet.sequence_number as u32),
                feedback_count: report.missing_feedback as u8,
            };
            let arrivals = report.packets.iter().map(|packet| {
                let ticks = packet.arrival_time.map(|time| time.as_nanos() as i32);
                (packet.sequence_number as u16, ticks)
            });
            sender.on_feedback(now, |sent| sent.on_twcc(header, arrivals));
        }
        Call::RoundTrip(ns) => sender.on_round_trip_time(now, TimeDelta::from_nanos(*ns)),
        Call::ReceiverLimit(limit) => sender.on_receiver_limit(now, limit.map(rate)),
        Call::Limits(limits) => sender.set_limits(now, *limits),
        Call::Desired(desired) => sender.set_desired_bitrate(now, desired.map(rate)),
        Call::NewRoute => sender.on_route_change(now),
        Call::Shared(share) => sender.on_shared_rate(now, rate(*share)),
        Call::Timeout => sender.on_timeout(now),
    }
}

/// `next_timeout` of a C host gives the last time for "never", and a host may come back with it.
#[test]
fn every_controller_returns_from_a_timeout_at_the_end_of_time() {
    for algorithm in Algorithm::all() {
        let mut controller = algorithm.build(super::limits(150, 300, 2_500));
        let size = DataSize::from_bytes(1_200);
        for now in [Timestamp::ZERO, Timestamp::MAX, Timestamp::MAX] {
            controller.on_packet_sent(now, &SentPacket::new(1, size));
            let report = PacketReport::new(1, size, now).with_arrival_time(Some(now));
            controller.on_feedback(now, &FeedbackReport::new(vec![report]));
            controller.on_timeout(now);
        }
        assert!(controller.next_timeout().is_none_or(|next| next == Timestamp::MAX), "{algorithm}");
    }
}

/// A host that asked for the whole range and thinks better of it is not left with its window.
#[test]
fn a_window_follows_limits_that_fell() {
    let whole = RateLimits::new(Bitrate::from_bps(1), Bitrate::MAX, Bitrate::MAX).expect("sorted");
    let usual = super::limits(150, 300, 2_500);
    for algorithm in Algorithm::all() {
        let mut driver = Driver::new(algorithm, whole);
        for op in [Op::NewRoute, Op::Send { packets: 8, bytes: 1_200 }, reported(8)] {
            driver.apply(&op);
        }
        driver.apply(&Op::Limits(usual));
        let window = driver.controller.target().window;
        // The longest round-trip time that counts is 10 s, and the window has a head room.
        let most = usual.max() * TimeDelta::from_secs(15);
        assert!(window.is_none_or(|window| window.congestion_window <= most), "{algorithm}");
    }
}

/// A report on this many packets, all received.
fn reported(packets: usize) -> Op {
    let jitter = TimeDelta::ZERO;
    Op::Feedback(Feedback { packets, loss: 0.0, jitter, salt: 0, repeat: false })
}

/// What grows with the time between two reports must not shrink with a negative one.
#[test]
fn a_report_after_a_clock_was_set_back_leaves_the_rate() {
    for algorithm in Algorithm::all() {
        let mut driver = Driver::new(algorithm, super::limits(150, 300, 2_500));
        let mut targets = Vec::new();
        for at in [10_000_000, 10_000_001, 1] {
            driver.now = Timestamp::from_secs(at);
            driver.apply(&Op::Send { packets: 8, bytes: 1_200 });
            driver.apply(&reported(8));
            targets.push(driver.controller.target());
        }
        assert!(targets[2].bitrate >= targets[1].bitrate * 0.8, "{algorithm}: {targets:?}");
        assert!(targets[2].pacing_rate >= targets[2].bitrate * 0.8, "{algorithm}: {targets:?}");
    }
}
