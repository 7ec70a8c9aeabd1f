//! One harness for every controller: applies hostile feedback and checks invariants.
//!
//! A run is a list of [`Op`]s, so a failure shrinks to a short script and replays exactly.

mod extremes;
mod limits_and_routes;
mod links;
mod pacing;

use proptest::prelude::*;
use weir::controller::{EcnMode, RateLimits, Settings};
use weir::testing::{Driver, Feedback, Format, Op, check_controller};
use weir::units::{Bitrate, TimeDelta};
use weir::{Algorithm, ControllerFactory, Timestamp};

/// Runs this many cases, the same ones each time (`.cargo/config.toml`). `PROPTEST_CASES=20000`
/// runs more, `PROPTEST_RNG_SEED=7` runs others.
fn config(cases: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let is_wider = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if is_wider { asked.cases } else { cases },
        failure_persistence: None,
        ..asked
    }
}

fn limits(min: u64, start: u64, max: u64) -> RateLimits {
    let kbps = Bitrate::from_kbps;
    RateLimits::new(kbps(min), kbps(start), kbps(max)).expect("the test's limits are in order")
}

fn any_limits() -> impl Strategy<Value = RateLimits> {
    (1_u64..2_000, 0_u64..2_000, 0_u64..5_000)
        .prop_map(|(min, above, more)| limits(min, min + above, min + above + more))
}

fn any_feedback() -> impl Strategy<Value = Feedback> {
    (0_usize..200, 0.0_f64..1.0, 0_i64..400, any::<u64>(), any::<bool>(), any::<bool>()).prop_map(
        |(packets, loss, jitter_ms, salt, all_lost, repeat)| Feedback {
            packets,
            loss: if all_lost && salt.is_multiple_of(4) { 1.0 } else { loss * loss },
            jitter: TimeDelta::from_millis(jitter_ms),
            salt,
            repeat,
        },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1_i64..300).prop_map(|ms| Op::Advance(TimeDelta::from_millis(ms))),
        1 => (1_i64..20_000).prop_map(|s| Op::Advance(TimeDelta::from_secs(s))),
        4 => (1_usize..60, 40_u64..1_500).prop_map(|(packets, bytes)| Op::Send { packets, bytes }),
        6 => any_feedback().prop_map(Op::Feedback),
        1 => (-100_000_i64..100_000).prop_map(|s| Op::ReceiverClock(TimeDelta::from_secs(s))),
        1 => (0_u64..2_000_000).prop_map(|bytes| Op::Queue { bytes }),
        1 => any_format().prop_map(Op::Format),
        1 => (-1_000_i64..100_000).prop_map(|ms| Op::RoundTrip(TimeDelta::from_millis(ms))),
        1 => any_limits().prop_map(Op::Limits),
        1 => prop::option::of(0_u64..9_000)
            .prop_map(|kbps| Op::Desired(kbps.map(Bitrate::from_kbps))),
        1 => Just(Op::NewRoute),
    ]
}

fn any_format() -> impl Strategy<Value = Format> {
    prop_oneof![
        Just(Format::Measured),
        (-100_000_i64..100_000).prop_map(|ms| Format::Ccfb(TimeDelta::from_millis(ms))),
        Just(Format::RoundTrip),
    ]
}

fn any_ecn() -> impl Strategy<Value = EcnMode> {
    proptest::sample::select(vec![EcnMode::Off, EcnMode::Classic, EcnMode::L4s])
}

fn every_algorithm() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(Algorithm::all().collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn hostile_feedback_breaks_no_invariant(
        algorithm in every_algorithm(),
        limits in any_limits(),
        ecn in any_ecn(),
        ops in prop::collection::vec(any_op(), 0..300),
    ) {
        let mut driver = Driver::new(algorithm, Settings::new(limits).with_ecn(ecn));
        for op in &ops {
            driver.apply(op);
        }
    }

    #[test]
    fn equal_calls_give_equal_results(
        algorithm in every_algorithm(),
        ops in prop::collection::vec(any_op(), 0..150),
    ) {
        let limits = limits(150, 300, 2_500);
        let (mut one, mut other) = (Driver::new(algorithm, limits), Driver::new(algorithm, limits));
        for op in &ops {
            one.apply(op);
            other.apply(op);
            prop_assert_eq!(one.controller.target(), other.controller.target());
            prop_assert_eq!(one.controller.metrics(), other.controller.metrics());
            prop_assert_eq!(one.controller.next_timeout(), other.controller.next_timeout());
        }
    }

    #[test]
    fn min_equal_to_max_is_a_constant_target(
        algorithm in every_algorithm(),
        kbps in 1_u64..5_000,
        ops in prop::collection::vec(any_op(), 0..100),
    ) {
        let mut driver = Driver::new(algorithm, limits(kbps, kbps, kbps));
        for op in ops.iter().filter(|op| !matches!(op, Op::Limits(_))) {
            driver.apply(op);
            prop_assert_eq!(driver.controller.target().bitrate, Bitrate::from_kbps(kbps));
        }
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// After any operations, two minutes on a clean link of 1 Mbit/s bring the rate back to at
    /// least half. A round-trip time includes the wait for feedback, which looks like a queue and
    /// costs a delay-based controller more.
    #[test]
    fn a_healed_path_is_used_again(
        algorithm in every_algorithm(),
        ops in prop::collection::vec(any_op(), 0..120),
    ) {
        let mut driver = Driver::new(algorithm, limits(150, 300, 2_500));
        for op in &ops {
            driver.apply(op);
        }
        driver.apply(&Op::Limits(limits(150, 300, 2_500)));
        let capacity = Bitrate::from_kbps(1_000);
        let late = driver.run_clean_link(capacity, TimeDelta::from_secs(120), None);
        let least = if driver.format() == Format::RoundTrip { 0.35 } else { 0.5 };
        prop_assert!(late / capacity > least, "{} after the path healed: {}", algorithm, late);
    }

    /// A receiver that switches to another format does not change the path: the rate stays in use.
    #[test]
    fn a_switch_of_the_feedback_format_keeps_the_rate(
        algorithm in every_algorithm(),
        formats in prop::collection::vec(any_format(), 1..6),
    ) {
        let mut driver = Driver::new(algorithm, limits(150, 300, 2_500));
        let capacity = Bitrate::from_kbps(1_000);
        driver.run_clean_link(capacity, TimeDelta::from_secs(60), None);
        for format in &formats {
            driver.apply(&Op::Format(*format));
            let rate = driver.run_clean_link(capacity, TimeDelta::from_secs(20), None);
            prop_assert!(
                (0.35..2.0).contains(&(rate / capacity)),
                "{} at {} with {:?} of {:?}", algorithm, rate, format, formats
            );
        }
    }
}

#[test]
fn the_target_starts_at_the_start_bitrate() {
    for algorithm in Algorithm::all() {
        let controller = algorithm.build(limits(150, 300, 2_500));
        assert_eq!(controller.target().bitrate, Bitrate::from_kbps(300), "{algorithm}");
    }
}

#[test]
fn a_clean_link_is_filled_without_standing_above_it() {
    let capacity = Bitrate::from_kbps(1_000);
    for algorithm in Algorithm::all() {
        let mut driver = Driver::new(algorithm, limits(150, 300, 2_500));
        let late = driver.run_clean_link(capacity, TimeDelta::from_secs(60), None);
        assert!((0.6..1.1).contains(&(late / capacity)), "{algorithm}: {late}");
    }
}

/// Complaint 1 of the field: the estimate grows without bound while the source is
/// application-limited.
#[test]
fn a_limited_source_does_not_let_the_target_grow_without_bound() {
    let sent = Bitrate::from_kbps(300);
    for algorithm in Algorithm::all() {
        let mut driver = Driver::new(algorithm, limits(150, 300, 100_000));
        let capacity = Bitrate::from_kbps(10_000);
        let late = driver.run_clean_link(capacity, TimeDelta::from_secs(300), Some(sent));
        assert!(late / sent < 5.0, "{algorithm}: {late} while {sent} are sent");
    }
}

/// Complaint 5: the estimate freezes while feedback is missing [RFC8836 §2, requirement 10].
#[test]
fn silence_lowers_the_target() {
    for algorithm in Algorithm::all() {
        let mut driver = Driver::new(algorithm, limits(150, 300, 2_500));
        driver.run_clean_link(Bitrate::from_kbps(1_000), TimeDelta::from_secs(30), None);
        let before = driver.controller.target().bitrate;
        for _ in 0..100 {
            driver.apply(&Op::Send { packets: 4, bytes: 1_200 });
            driver.apply(&Op::Advance(TimeDelta::from_millis(50)));
        }
        let after = driver.controller.target().bitrate;
        assert!(after < before * 0.8, "{algorithm}: {before} before, {after} after 5 s of silence");
    }
}

/// REMB caps the target, whatever the controller measures, and has no effect after it is lifted.
#[test]
fn the_receivers_limit_caps_the_target_and_lifting_it_lets_go() {
    let (capacity, limit) = (Bitrate::from_kbps(1_000), Bitrate::from_kbps(400));
    for algorithm in Algorithm::all() {
        let mut driver = Driver::new(algorithm, limits(150, 300, 2_500));
        driver.run_clean_link(capacity, TimeDelta::from_secs(60), None);
        driver.controller.on_receiver_limit(driver.now, Some(limit));
        assert!(driver.controller.target().bitrate <= limit, "{algorithm}: at once");
        driver.run_clean_link(capacity, TimeDelta::from_secs(20), None);
        assert!(driver.controller.target().bitrate <= limit, "{algorithm}: for good");
        driver.controller.on_receiver_limit(driver.now, None);
        let late = driver.run_clean_link(capacity, TimeDelta::from_secs(60), None);
        assert!((0.6..1.1).contains(&(late / capacity)), "{algorithm}: {late} without a limit");
    }
}

/// A closed window must open again without feedback; otherwise one lost batch ends the call.
#[test]
fn a_sender_without_feedback_still_sends_something() {
    for algorithm in Algorithm::all() {
        let mut driver = Driver::new(algorithm, limits(150, 300, 2_500));
        let mut sent = 0;
        for _ in 0..200 {
            let open = driver.controller.target().window.is_none_or(|w| w.available.as_bytes() > 0);
            if open {
                driver.apply(&Op::Send { packets: 1, bytes: 1_200 });
                sent += 1;
            }
            driver.apply(&Op::Advance(TimeDelta::from_millis(50)));
        }
        assert!(sent >= 5, "{algorithm}: {sent} packets in 10 s");
        let last_second = driver.now - TimeDelta::from_secs(5);
        assert!(driver.last_sent() > last_second, "{algorithm} stopped for good");
    }
}

#[test]
fn a_fresh_controller_waits_for_nothing_or_for_the_future() {
    for algorithm in Algorithm::all() {
        let mut controller = algorithm.build(limits(150, 300, 2_500));
        controller.on_timeout(Timestamp::from_secs(1));
        assert!(controller.next_timeout().is_none_or(|next| next > Timestamp::from_secs(1)));
    }
}

/// The check that the library offers for controllers of its users, run on its own controllers.
#[test]
fn every_controller_passes_the_public_check() {
    for algorithm in Algorithm::all() {
        let factory = ControllerFactory::from(algorithm);
        let result = check_controller(&factory, 16, 1);
        assert!(result.is_ok(), "{algorithm}: {}", result.unwrap_err());
    }
}
