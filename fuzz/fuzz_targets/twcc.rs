//! Feedback that parses keeps its content when it is written and parsed again.
//!
//! The input is the packet after the common header. The target writes that header itself, because
//! the fuzzer would rarely guess a valid length. The `rtcp` target reads raw bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::twcc::{Builder, ReferenceTime, TICK_US, View};

fuzz_target!(|input: &[u8]| {
    let Some((&flags, body)) = input.split_first() else { return };
    let words = (body.len() / 4) as u16;
    let mut bytes = vec![0x8f | flags & 0x20, 205];
    bytes.extend(words.to_be_bytes());
    bytes.extend_from_slice(&body[..usize::from(words) * 4]);
    if let Ok(view) = View::parse(&bytes) {
        check(view);
    }
});

fn check(view: View<'_>) {
    assert_eq!(view.arrivals().count(), usize::from(view.packet_status_count()));
    assert!(!view.to_string().is_empty());

    let base = i64::from(view.base_sequence_number());
    let reference_us = i64::from(view.reference_time().units()) * ReferenceTime::UNIT_US;
    let arrivals: Vec<(i64, i64)> = (base..)
        .zip(view.arrivals())
        .filter_map(|(number, (_, ticks))| {
            Some((number, reference_us + i64::from(ticks?) * TICK_US))
        })
        .collect();

    let mut left = arrivals.as_slice();
    let mut builder = Builder::new(view.sender_ssrc(), view.media_ssrc());
    builder.build(&arrivals, 1200, |bytes| {
        let again = View::parse(bytes).expect("what is built can be read");
        assert_eq!(again.sender_ssrc(), view.sender_ssrc());
        assert_eq!(again.media_ssrc(), view.media_ssrc());
        // The deltas may have moved the time beyond the range of 24 bits.
        let units = left[0].1.div_euclid(ReferenceTime::UNIT_US);
        assert_eq!(again.reference_time(), ReferenceTime::from_units(units));
        for (wrapped, ticks) in again.arrivals() {
            let Some(ticks) = ticks else { continue };
            let ((number, arrival_us), rest) = left.split_first().expect("no arrival is invented");
            assert_eq!(wrapped, *number as u16);
            assert_eq!(units * ReferenceTime::UNIT_US + i64::from(ticks) * TICK_US, *arrival_us);
            left = rest;
        }
    });
    assert!(left.is_empty(), "no arrival is forgotten");
}
