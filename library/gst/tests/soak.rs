//! An hour of video in virtual time: the element's memory does not grow.
//!
//! This program has one test, because the clock that it replaces belongs to the whole process.

mod common;

use common::{Peer, frame, harness, push_list};
use gst::prelude::*;
use gst_check::TestClock;
use weir::Timestamp;

const FRAME: gst::ClockTime = gst::ClockTime::from_mseconds(40);
const HOUR: gst::ClockTime = gst::ClockTime::from_seconds(3_600);
/// Queues, histories and the allocator have their full size after this.
const WARM_UP: gst::ClockTime = gst::ClockTime::from_seconds(600);
const PAGE_KIB: u64 = 4;
/// More than this in 50 minutes would be a leak: 5000 minutes, three days, would cost 100 times it.
const MAX_GROWTH_KIB: u64 = 1_024;

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * PAGE_KIB
}

fn timestamp(time: gst::ClockTime) -> Timestamp {
    Timestamp::from_nanos(time.nseconds() as i64)
}

#[test]
fn an_hour_of_video_leaves_the_memory_as_it_was() {
    common::init();
    let clock = TestClock::new();
    gst::SystemClock::set_default(Some(&clock));
    let mut harness = harness(&[("algorithm", "gcc"), ("max-bitrate", "500000")]);
    let element = harness.element().unwrap();
    let mut peer = Peer::new(&element, timestamp(clock.time()));
    let (mut number, mut received, mut warm) = (0_u16, 0_u64, None);
    let mut encoded = 0;
    while clock.time() < HOUR {
        let target: u64 = element.property("target-bitrate");
        encoded += target / 25 / 8;
        let packets = (encoded / common::PACKET as u64) as u16;
        encoded %= common::PACKET as u64;
        let rtp_time = (clock.time().mseconds() * 90) as u32;
        if packets > 0 {
            push_list(&harness, frame(number, packets, rtp_time)).unwrap();
        }
        number = number.wrapping_add(packets);
        let next_frame = clock.time() + FRAME;
        // Run the element's task up to the next frame.
        loop {
            let pending = clock.wait_for_next_pending_id();
            let due = pending.time();
            while let Some(packet) = harness.try_pull() {
                received += 1;
                peer.receive(timestamp(clock.time()), &packet);
            }
            peer.on_timeout(timestamp(clock.time()));
            if due >= next_frame {
                break;
            }
            if due > clock.time() {
                clock.set_time(due);
            }
            clock.process_next_clock_id();
        }
        clock.set_time(next_frame);
        if clock.time() >= WARM_UP {
            warm.get_or_insert_with(resident_kib);
        }
    }
    let (warm, end) = (warm.unwrap(), resident_kib());
    println!("{received} packets; {warm} KiB after ten minutes, {end} KiB after an hour");
    assert!(received > 180_000, "{received} packets");
    assert!(end < warm + MAX_GROWTH_KIB, "{warm} KiB after ten minutes, {end} KiB after an hour");
    gst::SystemClock::set_default(None::<&gst::Clock>);
}
