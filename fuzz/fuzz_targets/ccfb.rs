//! Congestion control feedback that parses keeps its content when it is written and parsed again.
//!
//! The input is the packet after the common header, as in the `twcc` target.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::ccfb::{Builder, Ecn, Stream, View};

fuzz_target!(|input: &[u8]| {
    let Some((&flags, body)) = input.split_first() else { return };
    let words = (body.len() / 4) as u16;
    let mut bytes = vec![0x8b | flags & 0x20, 205];
    bytes.extend(words.to_be_bytes());
    bytes.extend_from_slice(&body[..usize::from(words) * 4]);
    if let Ok(view) = View::parse(&bytes) {
        check(view);
    }
});

/// One report: SSRC, sequence number, and the ECN bits and offset if the packet was received.
type Row = (u32, u16, Option<(Ecn, Option<u16>)>);

fn rows(view: View<'_>) -> Vec<Row> {
    let rows = view.blocks().flat_map(|block| {
        assert_eq!(block.reports().len(), block.reports().count());
        block.reports().map(move |(number, report)| {
            (block.ssrc(), number, report.map(|report| (report.ecn, report.offset.units())))
        })
    });
    rows.collect()
}

fn check(view: View<'_>) {
    assert!(!view.to_string().is_empty());
    let expected = rows(view);
    // An offset without a duration is rewritten from an arrival too old for one: 9 s ago.
    let arrival_us = |units: Option<u16>| -i64::from(units.unwrap_or(9 << 10)) * 1_000_000 / 1_024;
    let streams = view.blocks().map(|block| Stream {
        ssrc: block.ssrc(),
        begin_sequence_number: block.begin_sequence_number(),
        packets: block
            .reports()
            .map(|(_, report)| report.map(|r| (arrival_us(r.offset.units()), r.ecn))),
    });
    let mut again = Vec::new();
    Builder::new(view.sender_ssrc()).build(0, streams, 1200, |bytes| {
        let view_again = View::parse(bytes).expect("what is built can be read");
        assert_eq!((view_again.sender_ssrc(), view_again.timestamp()), (view.sender_ssrc(), 0));
        again.extend(rows(view_again));
    });
    assert_eq!(again, expected);
}
