//! What reports of getStats alone tell of calls that were made through the emulator under a known
//! cause; `dumps/README.md` lists them.

use std::path::Path;

use weir_analyze::{Dump, StreamDirection, answer, estimate, findings, read};

fn dump(name: &str) -> Dump {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps").join(name)).unwrap()
}

// Others have the air most of the time, so this station is limited to its share besides.
#[test]
fn a_busy_cell_shows_in_round_trips_that_spring_up() {
    let found = findings(&dump("contention.rtcstats.gz"));
    let air: Vec<_> = found.iter().filter(|it| it.0.rule == "air time").collect();
    assert!(air.iter().any(|it| it.0.to_s - it.0.from_s > 10.0), "{found:?}");
    assert!(found.iter().all(|it| it.0.rule != "capacity"), "{found:?}");
}

#[test]
fn a_processor_that_is_too_slow_is_no_cell_without_air() {
    let found = findings(&dump("cpu.rtcstats.gz"));
    assert!(found.iter().all(|it| it.0.rule != "air time"), "{found:?}");
}

#[test]
fn the_capacity_below_a_stubborn_sender_counts_what_the_receiver_missed() {
    let tested = estimate(&dump("firefox.rtcstats.gz")).up.tested;
    let [tested] = &tested[..] else { panic!("one time: {tested:?}") };
    // 120 kbit/s. How much arrived of its retransmissions, nobody reports.
    assert!((100e3..140e3).contains(&tested.bps), "{tested:?}");
}

// Three others in a room of LiveKit send three videos each; the way down falls to 700 kbit/s.
#[test]
fn a_fall_of_the_way_to_nine_received_videos_is_told_once() {
    let dump = dump("../rooms/nine.rtcstats.xz");
    let mut received = 0;
    for stream in dump.connections.iter().flat_map(|it| &it.streams) {
        let is_long = stream.reports.len() > 20;
        received += usize::from(stream.direction == StreamDirection::Received && is_long);
    }
    assert_eq!(received, 9);
    let answer = answer(&dump);
    assert!(answer.verdict.starts_with("Downlink fell to 0.7 Mbit/s from 3"), "{}", answer.verdict);
    // The queue lengthens the round trips of what this end sends, too, and drops what it receives.
    for other in ["Uplink", "lost"] {
        assert!(!answer.verdict.contains(other), "{}", answer.verdict);
    }
}

#[test]
fn what_was_sent_again_is_not_among_what_the_far_end_expects() {
    // Between the first and the last report: packetsSent without retransmittedPacketsSent, and
    // packetsLost.
    for (name, expected, lost) in [("drop", 2_080, 215), ("hard", 3_457, 2_869)] {
        let rows = answer(&dump(&format!("{name}.rtcstats.gz"))).streams;
        let row = rows.iter().find(|it| it.direction == StreamDirection::Sent).unwrap();
        assert_eq!((row.expected, row.lost), (expected, Some(lost)), "{name}");
    }
}
