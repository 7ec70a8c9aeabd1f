//! Any bytes can be read as a compound up to its first error. Reports keep their content when
//! written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::header::Packets;
use weir_wire::report::{Report, View};
use weir_wire::{remb, twcc};

fuzz_target!(|bytes: &[u8]| {
    let mut walked = 0;
    for packet in Packets::new(bytes) {
        let Ok(packet) = packet else { return };
        walked += packet.as_bytes().len();
        assert!(packet.content().len() <= packet.as_bytes().len());
        assert!(!packet.to_string().is_empty());
        if let Ok(view) = twcc::View::new(packet) {
            assert_eq!(view.arrivals().count(), usize::from(view.packet_status_count()));
        }
        if let Ok(view) = View::new(packet) {
            check_report(view);
        }
        if let Ok(view) = remb::View::new(packet) {
            check_remb(view);
        }
    }
    assert_eq!(walked, bytes.len());
});

fn check_report(view: View<'_>) {
    let blocks: Vec<_> = view.blocks().collect();
    for block in &blocks {
        let arrival = block.last_sender_report.wrapping_add(block.delay_since_last_sender_report);
        assert!(matches!(block.round_trip_time(arrival), None | Some(0)));
    }
    let report = Report::new(view.sender_ssrc(), view.sender_info(), &blocks)
        .expect("a read count has five bits");
    let mut bytes = vec![0; report.size()];
    assert_eq!(report.emit(&mut bytes), bytes.len());
    let again = View::parse(&bytes).expect("what is written can be read");
    assert_eq!(again.to_string(), view.to_string());
    assert!(again.blocks().eq(blocks.iter().copied()));
}

fn check_remb(view: remb::View<'_>) {
    let ssrcs: Vec<_> = view.ssrcs().collect();
    let remb = remb::Remb::new(view.sender_ssrc(), view.bitrate_bps(), &ssrcs)
        .expect("a read count has eight bits");
    let mut bytes = vec![0; remb.size()];
    assert_eq!(remb.emit(&mut bytes), bytes.len());
    let again = remb::View::parse(&bytes).expect("what is written can be read");
    assert_eq!(again.to_string(), view.to_string());
}
