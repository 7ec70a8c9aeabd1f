//! Writes random arrivals with `twcc::Builder` and reads them back with `twcc::View`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_wire::twcc::{Builder, ReferenceTime, TICK_US, View};

/// Losses and time between two arrivals.
#[derive(Clone, Debug)]
struct Step {
    /// Packets lost between the two arrivals.
    lost: i64,
    /// Difference of the arrival times; negative if reordered.
    gap_us: i64,
}

/// Mostly small steps; sometimes one of those that end a chunk or a packet.
fn step() -> impl Strategy<Value = Step> {
    let lost = prop_oneof![20 => Just(0), 5 => 1..20_i64, 1 => 8_000..40_000_i64];
    let gap_us = prop_oneof![
        20 => 0..5_000_i64,
        5 => -20_000..70_000_i64,
        1 => -10_000_000..10_000_000_i64,
    ];
    (lost, gap_us).prop_map(|(lost, gap_us)| Step { lost, gap_us })
}

fn arrivals() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let first = (0..200_000_i64, -100_000_000..2_000_000_000_000_i64);
    (first, prop::collection::vec(step(), 1..400)).prop_map(|(first, steps)| {
        let mut last = first;
        let mut arrivals = vec![first];
        for Step { lost, gap_us } in steps {
            last = (last.0 + lost + 1, last.1 + gap_us);
            arrivals.push(last);
        }
        arrivals
    })
}

/// The number nearest to `near` that equals `wrapped` modulo 2^16.
fn unwrap(wrapped: u16, near: i64) -> i64 {
    near + i64::from(wrapped.wrapping_sub(near as u16).cast_signed())
}

proptest! {
    /// Every arrival is reported once, at the tick nearest to it. Every other number is reported
    /// lost.
    #[test]
    fn feedback_says_what_arrived(arrivals in arrivals(), max_size in 32..1500_usize) {
        let mut unreported: BTreeMap<i64, i64> = arrivals.iter().copied().collect();
        let (mut number, arrival_us) = arrivals[0];
        let mut reference_units = arrival_us.div_euclid(ReferenceTime::UNIT_US);
        let mut reference = ReferenceTime::from_units(reference_units);
        let mut packet_count = 0_u8;
        let mut outcome = Ok(());
        Builder::new(7, 8).build(&arrivals, max_size, |bytes| {
            outcome = std::mem::replace(&mut outcome, Ok(())).and_then(|()| {
                prop_assert!(bytes.len() <= max_size && bytes.len() % 4 == 0);
                let view = View::parse(bytes).expect("what is built can be read");
                prop_assert_eq!((view.sender_ssrc(), view.media_ssrc()), (7, 8));
                prop_assert_eq!(view.feedback_packet_count(), packet_count);
                packet_count = packet_count.wrapping_add(1);
                reference_units += i64::from(view.reference_time().units_since(reference));
                reference = view.reference_time();
                let statuses = view.arrivals();
                prop_assert_eq!(statuses.len(), usize::from(view.packet_status_count()));
                prop_assert!(statuses.clone().last().unwrap().1.is_some());
                for (wrapped, ticks) in statuses {
                    // From one packet to the next, the builder may skip more than half the number
                    // space.
                    let first_left = *unreported.keys().next().unwrap();
                    number = if first_left - number > 0x7fff { first_left } else { number };
                    number = unwrap(wrapped, number);
                    let arrival_us = ticks.map(|ticks| {
                        reference_units * ReferenceTime::UNIT_US + i64::from(ticks) * TICK_US
                    });
                    let sent_us = unreported.remove(&number);
                    prop_assert_eq!(arrival_us.is_some(), sent_us.is_some(), "{}", number);
                    if let (Some(read), Some(sent)) = (arrival_us, sent_us) {
                        prop_assert!((read - sent).abs() <= TICK_US / 2, "{} {}", read, sent);
                    }
                }
                Ok(())
            });
        });
        outcome?;
        prop_assert!(unreported.is_empty());
    }

    /// The reports of successive calls leave no gap and do not overlap.
    #[test]
    fn calls_continue_each_other(
        received in prop::collection::vec(any::<bool>(), 1..300),
        chunk in 1..50_usize,
        first in 0..70_000_i64,
    ) {
        let arrivals: Vec<_> = (first..)
            .zip(&received)
            .filter_map(|(number, &is_received)| is_received.then_some((number, number * 1_000)))
            .collect();
        let mut builder = Builder::new(1, 2);
        let mut read = Vec::new();
        for arrivals in arrivals.chunks(chunk) {
            builder.build(arrivals, 200, |bytes| {
                let view = View::parse(bytes).expect("what is built can be read");
                read.extend(view.arrivals().map(|(number, arrival)| (number, arrival.is_some())));
            });
        }
        let reported = arrivals.first().zip(arrivals.last());
        let expected: Vec<_> = reported.map_or(Vec::new(), |(&(from, _), &(to, _))| {
            (from..=to)
                .map(|number| (number as u16, received[(number - first) as usize]))
                .collect()
        });
        prop_assert_eq!(read, expected);
    }

    /// Any bytes after a valid header are read without a panic.
    #[test]
    fn hostile_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 16..400)) {
        let words = body.len() / 4;
        let mut bytes = vec![0x8f, 205, 0, words as u8];
        bytes.extend_from_slice(&body[..words * 4]);
        if let Ok(view) = View::parse(&bytes) {
            prop_assert_eq!(view.arrivals().count(), usize::from(view.packet_status_count()));
        }
    }
}
