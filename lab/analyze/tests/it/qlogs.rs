//! qlogs of QUIC stacks.

use weir_analyze::{Format, StreamDirection, answer, read_bytes};

/// The head of a log.
const HEAD: &str = "\u{1E}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\
                    \"title\":\"moq-pub\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n";

/// A connection of 30 s: 50 packets of 1200 bytes a second, under a window.
struct Made {
    /// Round-trip time in ms, packets in 100 that are lost, and the window in bytes, by the second.
    rtt_ms: fn(u64) -> f64,
    lost: fn(u64) -> u64,
    window: fn(u64) -> u64,
    names: [&'static str; 3],
}

const OLD: [&str; 3] =
    ["transport:packet_sent", "recovery:metrics_updated", "recovery:packet_lost"];
const NEW: [&str; 3] = ["quic:packet_sent", "quic:recovery_metrics_updated", "quic:packet_lost"];

const QUIET: Made = Made { rtt_ms: |_| 50.0, lost: |_| 0, window: |_| 20_000, names: NEW };

fn log(made: &Made) -> Vec<u8> {
    let mut text = HEAD.to_owned();
    let mut event = |time: u64, name: &str, data: String| {
        text += &format!("\u{1E}{{\"time\":{time}.5,\"name\":\"{name}\",\"data\":{data}}}\n");
    };
    let [sent, metrics, lost] = made.names;
    for number in 0..1_500 {
        let (time, second) = (number * 20, number / 50);
        event(time, sent, "{\"raw\":{\"length\":1200}}".into());
        if number % 100 < (made.lost)(second) {
            event(time, lost, "{}".into());
        }
        let (rtt, window) = ((made.rtt_ms)(second), (made.window)(second));
        let data = format!(
            "{{\"latest_rtt\":{rtt},\"smoothed_rtt\":{rtt},\"congestion_window\":{window}}}"
        );
        event(time + 1, metrics, data);
    }
    text.into_bytes()
}

fn verdict(made: &Made) -> String {
    answer(&read_bytes("pub.sqlog".as_ref(), log(made)).unwrap()).verdict
}

#[test]
fn the_packets_of_a_log_are_a_stream() {
    for names in [OLD, NEW] {
        let dump = read_bytes("pub.sqlog".as_ref(), log(&Made { names, ..QUIET })).unwrap();
        assert_eq!((dump.format, dump.program.as_deref()), (Format::Qlog, Some("moq-pub")));
        let stream = &dump.connections[0].streams[0];
        assert_eq!((stream.direction, stream.reports.len()), (StreamDirection::Sent, 31));
        let last = &stream.reports[30].timed.report;
        assert_eq!(last.outbound.as_ref().unwrap().bytes_sent, 1_800_000);
        // 20,000 bytes in 50 ms.
        let estimate = last.pair.as_ref().unwrap().available_outgoing_bitrate;
        assert_eq!(estimate, Some(3_200_000.0));
    }
}

#[test]
fn a_queue_and_losses_are_found_where_they_are() {
    let queue = |second| if (10..20).contains(&second) { 400.0 } else { 50.0 };
    let found = verdict(&Made { rtt_ms: queue, window: |_| 30_000, ..QUIET });
    assert!(found.contains("10 to 20 s"), "{found}");
    let found = verdict(&Made { lost: |_| 10, ..QUIET });
    assert!(
        found.contains("lost 10") && found.contains("% of the packets from 0 to 30 s"),
        "{found}"
    );
}

#[test]
fn a_broken_log_says_what_is_wrong() {
    let refused =
        |bytes: &[u8]| read_bytes("pub.sqlog".as_ref(), bytes.to_vec()).unwrap_err().to_string();
    assert!(refused(HEAD.as_bytes()).contains("this qlog has no packets"));
    let one = "{\"qlog_version\":\"0.3\",\"traces\":[]}";
    assert!(refused(one.as_bytes()).contains("qlog in one piece of JSON"));
    let mut cut = log(&QUIET);
    cut.truncate(cut.len() / 2);
    cut.splice(500..510, *b"##########");
    let dump = read_bytes("pub.sqlog".as_ref(), cut).unwrap();
    assert!(dump.warnings.iter().any(|it| it.contains("record")), "{:?}", dump.warnings);
}
