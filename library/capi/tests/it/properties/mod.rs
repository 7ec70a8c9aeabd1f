//! The harness of all controllers, run through the C functions; and bytes and numbers of any kind.

mod extremes;
mod foreign;

use std::ffi::CString;
use std::ptr::null_mut;

use crate::common::{raw_settings, sized};
use foreign::Foreign;
use proptest::prelude::*;
use weir::controller::{EcnMode, Settings};
use weir::testing::{Driver, Feedback, Op, check_controller, drawn_links};
use weir::units::{Bitrate, TimeDelta};
use weir::{Algorithm, RateLimits};
use weir_capi::*;

fn usual() -> Settings {
    let kbps = Bitrate::from_kbps;
    Settings::new(RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order"))
}

fn config(cases: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    let is_wider = std::env::var_os("PROPTEST_CASES").is_some();
    let cases = if is_wider { asked.cases } else { cases };
    ProptestConfig { cases, failure_persistence: None, ..asked }
}

/// The check that the library offers for any controller.
#[test]
fn every_controller_passes_the_public_check_through_the_border() {
    for algorithm in Algorithm::all() {
        let result = check_controller(&Foreign::factory(algorithm), 8, 1);
        assert!(result.is_ok(), "{algorithm}: {}", result.unwrap_err());
    }
}

#[test]
fn links_of_any_rate_are_used_through_the_border_as_in_rust() {
    for algorithm in Algorithm::all() {
        for link in drawn_links(3, 2) {
            let settings = Settings::new(link.limits());
            let mut here = Driver::new(algorithm, settings);
            let mut there = Driver::new(Foreign::factory(algorithm), settings);
            let length = TimeDelta::from_secs(20);
            let used = here.try_run_link(&link, length).expect("the contract");
            assert_eq!(there.try_run_link(&link, length), Ok(used), "{algorithm} {link:?}");
        }
    }
}

fn any_op() -> impl Strategy<Value = Op> {
    let feedback = (0_usize..100, 0.0_f64..0.3, 0_i64..100, any::<u64>(), any::<bool>()).prop_map(
        |(packets, loss, jitter_ms, salt, repeat)| {
            let jitter = TimeDelta::from_millis(jitter_ms);
            Op::Feedback(Feedback { packets, loss, jitter, salt, repeat })
        },
    );
    prop_oneof![
        4 => (1_i64..300).prop_map(|ms| Op::Advance(TimeDelta::from_millis(ms))),
        4 => (1_usize..60, 40_u64..1_500).prop_map(|(packets, bytes)| Op::Send { packets, bytes }),
        6 => feedback,
        1 => (0_u64..2_000_000).prop_map(|bytes| Op::Queue { bytes }),
        1 => (0_i64..1_000).prop_map(|ms| Op::RoundTrip(TimeDelta::from_millis(ms))),
    ]
}

fn any_algorithm() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(Algorithm::all().collect::<Vec<_>>())
}

fn any_ecn() -> impl Strategy<Value = EcnMode> {
    proptest::sample::select(vec![EcnMode::Off, EcnMode::Classic, EcnMode::L4s])
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn a_controller_behind_the_border_does_what_it_does_in_rust(
        algorithm in any_algorithm(),
        ecn in any_ecn(),
        ops in prop::collection::vec(any_op(), 0..150),
    ) {
        let settings = usual().with_ecn(ecn).with_priority(2.0);
        let mut here = Driver::new(algorithm, settings);
        let mut there = Driver::new(Foreign::factory(algorithm), settings);
        for op in &ops {
            here.apply(op);
            there.apply(op);
            prop_assert_eq!(here.controller.target(), there.controller.target());
            prop_assert_eq!(here.controller.metrics(), there.controller.metrics());
            prop_assert_eq!(here.controller.next_timeout(), there.controller.next_timeout());
        }
    }

    /// No bytes and no times make a function panic: that would be `Internal`.
    #[test]
    fn anything_may_arrive_at_any_time(
        algorithm in any_algorithm(),
        format in 0_u32..3,
        calls in prop::collection::vec(
            (any::<i64>(), 0_u8..8, prop::collection::vec(any::<u8>(), 0..200), any::<i64>()),
            0..60,
        ),
    ) {
        let (sender, receiver) = ends(algorithm, format);
        let mut packet: weir_packet = sized();
        for (now, kind, bytes, number) in &calls {
            let (now, data, length) = (*now, bytes.as_ptr(), bytes.len());
            let one = weir_bytes { data, length };
            // SAFETY: the handles, the bytes and the struct live.
            let status = unsafe {
                match kind {
                    0 => weir_sender_on_rtcp(sender, now, data, length),
                    1 => weir_sender_enqueue(sender, now, &one, 1),
                    2 => weir_sender_on_timeout(sender, now),
                    3 => weir_sender_next_packet(sender, now, &mut packet),
                    4 => weir_sender_on_round_trip_time(sender, now, *number),
                    5 => weir_receiver_on_rtp(receiver, now, data, length, *number as u8),
                    6 => weir_receiver_on_rtcp(receiver, now, data, length),
                    _ => weir_receiver_on_timeout(receiver, now),
                }
            };
            prop_assert_ne!(status, weir_status::Internal);
        }
        // SAFETY: both came from their `new` functions and are freed once.
        unsafe {
            weir_sender_free(sender);
            weir_receiver_free(receiver);
        }
    }
}

fn ends(algorithm: Algorithm, format: u32) -> (*mut weir_sender, *mut weir_receiver) {
    let name = CString::new(algorithm.name()).expect("names have no NUL");
    let mut config: weir_sender_config = sized();
    let mut receiver_config: weir_receiver_config = sized();
    let (mut sender, mut receiver) = (null_mut(), null_mut());
    // SAFETY: all pointers are valid.
    unsafe {
        weir_sender_config_init(&mut config, size_of::<weir_sender_config>());
        weir_receiver_config_init(&mut receiver_config, size_of::<weir_receiver_config>());
        receiver_config.feedback = format;
        let settings = raw_settings(&usual());
        let status = weir_sender_new(0, name.as_ptr(), &settings, &config, &mut sender);
        assert_eq!(status, weir_status::Ok);
        let status = weir_receiver_new(0, &receiver_config, &mut receiver);
        assert_eq!(status, weir_status::Ok);
    }
    (sender, receiver)
}
