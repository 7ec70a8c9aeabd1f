//! Numbers of the whole range through the C functions: no call fails inside, and each returns.

use std::ffi::CString;
use std::ptr::null_mut;

use proptest::prelude::*;
use weir::Algorithm;
use weir_capi::*;

use super::{any_algorithm, config, usual};
use crate::common::{ok, raw_settings, sized};

fn controller(algorithm: Algorithm) -> *mut weir_controller {
    let name = CString::new(algorithm.name()).expect("names have no NUL");
    let mut handle = null_mut();
    // SAFETY: all pointers are valid.
    ok(unsafe { weir_controller_new(name.as_ptr(), &raw_settings(&usual()), &mut handle) });
    handle
}

/// A time, a duration or a sequence number.
fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (0_i64..40_000).prop_map(|ms| ms * 1_000_000),
        1 => 0_i64..300,
        2 => (0_i64..60_000_000_000).prop_map(|back| i64::MAX - back),
        1 => prop::sample::select(vec![i64::MIN, WEIR_NEVER, WEIR_NO_TIME, i64::MAX / 2, -1]),
        1 => any::<i64>(),
    ]
}

/// A size or a rate.
fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 40_u64..5_000_000,
        1 => prop::sample::select(vec![0, 1, 1 << 53, 1 << 63, WEIR_NO_VALUE]),
        1 => any::<u64>(),
    ]
}

/// One call with its numbers.
type Call = (u8, i64, [i64; 3], [u64; 3]);

fn any_calls() -> impl Strategy<Value = Vec<Call>> {
    let times = (any_i64(), any_i64(), any_i64()).prop_map(|(one, two, three)| [one, two, three]);
    let sizes = (any_u64(), any_u64(), any_u64()).prop_map(|(one, two, three)| [one, two, three]);
    prop::collection::vec((0_u8..11, any_i64(), times, sizes), 0..60)
}

fn call(handle: *mut weir_controller, (kind, now, times, sizes): &Call) -> weir_status {
    let (now, [one, two, three], [size, other, third]) = (*now, *times, *sizes);
    let sent =
        weir_sent_packet { sequence_number: one, size_bytes: size, queued_bytes: other, ..sized() };
    let report = weir_packet_report {
        sequence_number: one,
        size_bytes: size,
        send_time_ns: two,
        arrival_time_ns: three,
        ..sized()
    };
    let feedback = weir_feedback { packets: &report, packet_count: 1, ..sized() };
    // SAFETY: the handle and the structs live.
    unsafe {
        match kind {
            0 => weir_controller_on_media_queued(handle, now, size, other),
            1..=2 => weir_controller_on_packet_sent(handle, now, &sent),
            3..=4 => weir_controller_on_feedback(handle, now, &feedback),
            5 => weir_controller_on_round_trip_time(handle, now, one),
            6 => weir_controller_on_receiver_limit(handle, now, size),
            7 => weir_controller_set_limits(handle, now, size, other, third),
            8 => weir_controller_set_desired_bitrate(handle, now, size),
            9 => weir_controller_on_shared_rate(handle, now, size),
            _ => weir_controller_on_timeout(handle, now),
        }
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn a_controller_takes_numbers_of_the_whole_range(
        algorithm in any_algorithm(),
        calls in any_calls(),
    ) {
        let handle = controller(algorithm);
        let (mut target, mut metrics): (weir_target, weir_metrics) = (sized(), sized());
        for number in &calls {
            prop_assert_ne!(call(handle, number), weir_status::Internal);
            // SAFETY: the handle and the structs live.
            unsafe {
                prop_assert_eq!(weir_controller_target(handle, &mut target), weir_status::Ok);
                prop_assert_eq!(weir_controller_metrics(handle, &mut metrics), weir_status::Ok);
            }
        }
        // SAFETY: it came from its `new` function and is freed once.
        unsafe { weir_controller_free(handle) };
    }
}

/// A host without a timer of its own may come back at the time that it was given.
#[test]
fn a_host_may_come_back_at_weir_never() {
    for algorithm in Algorithm::all() {
        let handle = controller(algorithm);
        for now in [0, WEIR_NEVER, WEIR_NEVER] {
            for kind in [1, 3, 10] {
                ok(call(handle, &(kind, now, [i64::from(kind), now, now], [1_200; 3])));
            }
        }
        let mut due = 0;
        // SAFETY: the handle and the variable live.
        unsafe {
            ok(weir_controller_next_timeout(handle, &mut due));
            weir_controller_free(handle);
        }
        assert_eq!(due, WEIR_NEVER, "{algorithm}: nothing comes after the last time");
    }
}
