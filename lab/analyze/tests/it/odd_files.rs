//! Files with odd lines, files that end early, and files that ask for more than a machine has. The
//! corpus is every dump below `dumps/`.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use proptest::prelude::*;
use weir_analyze::{AnalyzeError, Dump, estimate, findings, open_loop, read, record};

/// Places at which each dump of the corpus is cut, if it is small or large, and mutations of each.
const CUTS: usize = 200;
const CUTS_OF_LARGE: usize = 10;
/// A larger file, in bytes, is large.
const LARGE: usize = 200_000;
const MUTATIONS: u64 = 20;
/// What no dump of the corpus or its mutations may exceed.
const REPORTS_MAX: usize = 60_000;

fn corpus() -> Vec<PathBuf> {
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps");
    let mut found = Vec::new();
    for folder in [dumps.clone(), dumps.join("jitsi")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "gz") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() >= 24, "{found:?}");
    found
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn read_bytes(bytes: &[u8]) -> Result<Dump, AnalyzeError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    read(file.path())
}

/// Everything that `weir analyze` does with a dump, or its one line.
fn digest(bytes: &[u8]) {
    match read_bytes(bytes) {
        Ok(dump) => {
            let streams = dump.connections.iter().flat_map(|it| &it.streams);
            let reports: usize = streams.map(|stream| stream.reports.len()).sum();
            assert!(reports <= REPORTS_MAX, "{reports}");
            findings(&dump);
            estimate(&dump);
            let _ = record("odd", &dump);
        }
        Err(error) => {
            let line = error.to_string();
            assert!(!line.is_empty() && !line.contains('\n'), "{line}");
        }
    }
}

#[test]
fn every_dump_of_the_corpus_is_read() {
    for path in corpus() {
        if let Err(error) = read(&path) {
            assert!(error.to_string().contains("no video or audio"), "{error}");
        }
    }
}

#[test]
fn one_odd_line_is_skipped_with_its_number() {
    let lines =
        [report("c", 1, 9, 1.7e12), "[\"odd\",null,{}]".into(), report("c", 1, 20, 1.701e12)];
    let dump = read_bytes(lines.join("\n").as_bytes()).unwrap();
    assert_eq!(dump.warnings, ["skipped lines: 1: line 2: an event without a time"]);
    assert_eq!(dump.connections[0].streams[0].reports.len(), 2);
}

#[test]
fn a_dump_that_ends_anywhere_is_read_without_panic() {
    for (turn, path) in corpus().into_iter().enumerate() {
        let bytes = unpacked(&path);
        let cuts = if bytes.len() > LARGE { CUTS_OF_LARGE } else { CUTS };
        for cut in 0..cuts {
            let end = bytes.len() * cut / cuts + turn;
            let _ = read_bytes(&bytes[..end.min(bytes.len())]).map_err(|error| {
                assert!(!error.to_string().contains('\n'), "{error}");
            });
        }
        let packed = fs::read(&path).unwrap();
        let half = read_bytes(&packed[..packed.len() * 3 / 4]);
        assert!(half.is_err() || !half.unwrap().warnings.is_empty(), "{}", path.display());
    }
}

/// A sequence that looks like chance, equal each time.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

#[test]
fn mutations_of_every_dump_stay_within_the_bounds() {
    for path in corpus() {
        let bytes = unpacked(&path);
        let bytes = &bytes[..bytes.len().min(100_000)];
        for seed in 1..=MUTATIONS {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut changed = bytes.to_vec();
            for _ in 0..8 {
                let at = next(&mut state) % changed.len();
                changed[at] = next(&mut state) as u8;
            }
            digest(&changed);
        }
    }
}

fn report(connection: &str, ssrc: usize, packets: usize, time: f64) -> String {
    let kind = r#""type":"outbound-rtp","kind":"video""#;
    let sent = format!(r#""packetsSent":{packets},"bytesSent":{packets}000"#);
    let report = format!(r#"{{{kind},"ssrc":{ssrc},{sent},"timestamp":{time}}}"#);
    format!(r#"["getstats","{connection}",{{"O":{report}}},{time}]"#)
}

#[test]
fn too_many_streams_end_at_a_limit_that_the_warning_names() {
    let mut text = String::new();
    for ssrc in 0..3_000 {
        for at in 0..2 {
            let time = 1.7e12 + f64::from(at) * 1e3;
            text += &report(&format!("c{ssrc}"), ssrc, 9 * (at as usize + 1), time);
            text.push('\n');
        }
    }
    let dump = read_bytes(text.as_bytes()).unwrap();
    assert_eq!(dump.connections.len(), 1_000);
    assert!(dump.warnings[0].contains("more than 1000 streams"), "{:?}", dump.warnings);
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let mut text = report("c", 1, 9, 1.7e12) + "\n";
    text += &format!("[\"x\",\"{}\",1.7e12]\n", "y".repeat(3 << 20));
    text += &report("c", 1, 20, 1.7e12 + 1e3);
    let dump = read_bytes(text.as_bytes()).unwrap();
    assert_eq!(dump.connections[0].streams[0].reports.len(), 2);
    assert!(dump.warnings[0].contains("line 2: it is longer"), "{:?}", dump.warnings);
}

/// A capture in raw IP: RTP with this SSRC and number, at this second.
fn packet(seconds: u32, sequence: u16, to: &mut Vec<u8>) {
    let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    ip.extend([0x75, 0x30, 0x75, 0x31, 0, 0, 0, 0]);
    ip.extend([0x80, 96]);
    ip.extend(sequence.to_be_bytes());
    ip.extend((u32::from(sequence) * 90_000).to_be_bytes());
    ip.extend(9_u32.to_be_bytes());
    ip.resize(20 + 8 + 12 + 500, 7);
    let length = ip.len() as u32;
    ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    ip[24..26].copy_from_slice(&((length - 20) as u16).to_be_bytes());
    to.extend([seconds, 0, length, length].map(u32::to_le_bytes).concat());
    to.extend(ip);
}

#[test]
fn packets_far_in_time_are_left_out_with_a_warning() {
    let mut file = [0xA1B2_C3D4_u32, 2 | 4 << 16, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    (0..60).for_each(|number| packet(1_000 + u32::from(number), number, &mut file));
    packet(4_000_000_000, 60, &mut file);
    let dump = read_bytes(&file).unwrap();
    let [warning] = &dump.warnings[..] else { panic!("{:?}", dump.warnings) };
    assert!(warning.contains("more than 7200 s apart"), "{warning}");
    let log = dump.connections[0].packets.as_ref().unwrap();
    assert!(log.is_cut && open_loop(log).is_empty());
}

/// A member of a protobuf message: a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    [variable(field << 3), variable(value)].concat()
}

/// A member of a protobuf message: bytes.
fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [variable(field << 3 | 2), variable(value.len() as u64), value.to_vec()].concat()
}

fn variable(mut value: u64) -> Vec<u8> {
    let mut written = Vec::new();
    while value >= 0x80 {
        written.push(value as u8 | 0x80);
        value >>= 7;
    }
    written.push(value as u8);
    written
}

/// An event of an RTC event log: a sent packet with this transport-wide number, and `deltas` more
/// that are equal.
fn sent(time_ms: u64, transport: u64, deltas: u64) -> Vec<u8> {
    let members = [
        number(1, time_ms),
        number(4, transport),
        variable(5 << 3 | 5),
        vec![0; 4],
        variable(6 << 3 | 5),
        vec![1, 0, 0, 0],
        number(8, 1_000),
        number(9, 20),
        number(11, deltas),
        number(15, transport),
    ];
    bytes(3, &members.concat())
}

/// Feedback on `count` packets that all arrived, 1 ms apart [TWCC §3.1].
fn feedback(time_ms: u64, first: u16, count: u8, number_of_feedback: u8) -> Vec<u8> {
    let mut packet = vec![0x8F, 205, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    packet.extend(first.to_be_bytes());
    packet.extend([0, count, 0, 0, 1, number_of_feedback, 0x20, count]);
    packet.extend(vec![4; count.into()]);
    packet.resize(packet.len().next_multiple_of(4), 0);
    packet[3] = (packet.len() / 4 - 1) as u8;
    bytes(4, &[number(1, time_ms), bytes(2, &packet)].concat())
}

fn event_log(events: &[Vec<u8>]) -> Vec<u8> {
    [bytes(16, &[number(1, 1), number(2, 2)].concat()), events.concat()].concat()
}

#[test]
fn a_time_far_away_in_an_event_log_costs_no_extra_work() {
    let mut events: Vec<Vec<u8>> = (0..60).map(|at| sent(1_000 + at * 20, at, 0)).collect();
    events.push(feedback(2_200, 0, 48, 0));
    for far in [1 << 41, 1 << 62] {
        events.push(sent(far, 60, 0));
        events.push(feedback(far + 20, 48, 4, 1));
    }
    let dump = read_bytes(&event_log(&events)).unwrap();
    assert!(dump.warnings[0].contains("more than 7200 s apart"), "{:?}", dump.warnings);
    let played = open_loop(dump.connections[0].packets.as_ref().unwrap());
    assert!(!played.is_empty());
    for it in played {
        assert!(it.end.as_secs_f64() < 10.0 && it.targets.len() < 1_000, "{it:?}");
    }
}

#[test]
fn a_small_event_log_cannot_claim_many_events() {
    let mut events: Vec<Vec<u8>> = (0..60).map(|at| sent(1_000 + at * 20, at, 0)).collect();
    events.push(sent(2_000, 60, 3_999_999));
    let dump = read_bytes(&event_log(&events)).unwrap();
    assert!(dump.warnings[0].contains("a batch of 3999999 events"), "{:?}", dump.warnings);
}

#[test]
fn packets_of_a_tunnel_are_not_taken_for_streams() {
    let mut file = [0xA1B2_C3D4_u32, 2 | 4 << 16, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    for number in 0..3_000_u16 {
        let start = file.len();
        packet(1_000, number, &mut file);
        // One stream, and an SSRC of its own for each other packet.
        let ssrc = if number < 60 { 9 } else { 1_000 + u32::from(number) };
        file[start + 16 + 20 + 8 + 8..][..4].copy_from_slice(&ssrc.to_be_bytes());
    }
    let dump = read_bytes(&file).unwrap();
    assert_eq!(dump.connections[0].streams.len(), 1);
    assert_eq!(dump.warnings, Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_file_causes_no_panic(at in 0.0..1.0_f64, byte: u8, cut: bool, file in 0..4_usize) {
        const FILES: [&str; 4] =
            ["drop.internals.gz", "drop.rtcstats.gz", "full.pcapng.gz", "../networks/rise.log.gz"];
        let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps");
        let mut bytes = unpacked(&dumps.join(FILES[file]));
        let at = (at * bytes.len() as f64) as usize;
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        match read(file.path()) {
            Ok(dump) => {
                findings(&dump);
                dump.connections.iter().filter_map(|it| it.packets.as_ref()).for_each(|log| {
                    open_loop(log);
                });
                let _ = record("damaged", &dump);
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}
