//! Eleven calls of Chromium through the emulator, each on a known network, by the event logs of
//! their offering ends (`networks/README.md`). What the call tested of its network must come back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weir::Timestamp;
use weir_analyze::{NetworkEstimate, OpenLoop, estimate, findings, open_loop, read, scenario_text};
use weir_controllers::LabAlgorithm;

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/networks").join(format!("{name}.log.gz"))
}

fn network(name: &str) -> NetworkEstimate {
    estimate(&read(&place(name)).unwrap())
}

/// Times of constant capacity in s, each with the capacity in kbit/s. A second or two around a
/// change belong to neither: measurements are of whole seconds.
type Known = &'static [(f64, f64, f64)];

/// Networks with a capacity that is known. The log begins about 0.5 s before or after the scenario.
const KNOWN: [(&str, Known); 7] = [
    ("constant", &[(0.0, 22.0, 1_000.0)]),
    ("drop", &[(0.0, 7.0, 2_000.0), (9.0, 14.0, 600.0)]),
    ("rise", &[(0.0, 9.0, 500.0), (11.0, 22.0, 1_500.0)]),
    ("loss", &[(0.0, 22.0, 1_500.0)]),
    ("delay", &[(0.0, 22.0, 1_200.0)]),
    ("jitter", &[(0.0, 22.0, 1_200.0)]),
    ("aqm", &[(0.0, 22.0, 1_000.0)]),
];

/// A fall and a return, of which a pipeline has no capture.
const RETURN: (&str, Known) =
    ("return", &[(0.0, 7.0, 2_000.0), (9.0, 14.0, 600.0), (17.0, 46.0, 2_000.0)]);

#[test]
fn the_capacity_is_within_10_percent_wherever_a_call_tested_it() {
    for (name, known) in KNOWN.into_iter().chain([RETURN]) {
        let network = network(name);
        for (direction, estimate) in [("up", &network.up), ("down", &network.down)] {
            for (from, to, kbps) in known {
                let mut tested = 0;
                for time in (0..).map(|half| from + f64::from(half) / 2.0).take_while(|it| it < to)
                {
                    let of_time =
                        estimate.tested.iter().find(|it| it.from_s <= time && time < it.to_s);
                    let Some(it) = of_time else { continue };
                    tested += 1;
                    let error = it.bps / kbps / 1e3 - 1.0;
                    assert!(
                        error.abs() < 0.1,
                        "{name} {direction} at {time} s: {error:.3}, {it:?}"
                    );
                }
                assert!(
                    tested > 2,
                    "{name} {direction} from {from} s was not tested: {estimate:?}"
                );
            }
        }
    }
}

#[test]
fn the_capture_of_a_pipeline_tells_the_capacity_as_well() {
    for controller in ["gcc", "sluice"] {
        for (name, known) in KNOWN {
            let file = format!("tests/pipelines/{controller}/networks__{name}.pcapng.xz");
            let dump = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
            let up = estimate(&dump).up;
            for (from, to, kbps) in known {
                // The sender begins 1 to 2 s after the network.
                let time = f64::midpoint(*from, *to) - 1.5;
                let tested = up.tested.iter().find(|it| it.from_s <= time && time < it.to_s);
                let error = tested.map(|it| it.bps / kbps / 1e3 - 1.0);
                assert!(
                    error.is_some_and(|it| it.abs() < 0.1),
                    "{controller}, {name} at {time} s: {error:?}, {up:?}"
                );
            }
        }
    }
}

#[test]
fn the_estimate_has_the_delay_loss_and_queue_of_the_simulation() {
    for (name, delay_ms) in [("constant", 25.0), ("loss", 25.0), ("delay", 150.0)] {
        for direction in [network(name).up, network(name).down] {
            let delay = direction.delay_ms.unwrap();
            // The smallest packet takes up to 10 ms at this capacity, and the feedback as long.
            assert!((delay_ms..delay_ms + 12.0).contains(&delay), "{name}: {delay}");
        }
    }
    let loss = network("loss");
    for direction in [&loss.up, &loss.down] {
        assert!((0.02..0.04).contains(&direction.loss), "{direction:?}");
    }
    let drop = network("drop").up;
    let queue = drop.queue_ms.unwrap();
    assert!(drop.overflowed && (250.0..330.0).contains(&queue), "{queue}");
    assert!(drop.loss < 0.01, "{}", drop.loss);
    assert!(!network("constant").up.overflowed);
}

#[test]
fn what_limited_each_call_is_found() {
    let mut wrong = Vec::new();
    for (name, expected) in [
        ("constant", &["capacity"][..]),
        ("drop", &["capacity", "recovery"]),
        // The path is full, and its loss is the same with and without a queue.
        ("loss", &["capacity", "loss"]),
        ("delay", &["capacity", "delay"]),
        ("jitter", &["capacity"]),
        // The estimate grows by 8 % a second after the rise.
        ("rise", &["capacity", "underestimate"]),
        // A path that is full explains the loss, and the low estimate, of the same seconds.
        ("aqm", &["capacity"]),
        ("tcp", &["capacity"]),
        ("wifi", &["capacity"]),
        ("cellular", &["capacity"]),
    ] {
        let found = findings(&read(&place(name)).unwrap());
        let sent = found.iter().filter(|it| it.0.stream.contains("video sent"));
        let rules: BTreeSet<&str> = sent.map(|it| it.0.rule.as_str()).collect();
        if rules != expected.iter().copied().collect() {
            wrong.push(format!("{name}: {rules:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn only_a_radio_cell_pauses_while_packets_wait() {
    // The uplink of the Wi-Fi cell has four pauses in 20 s, which are too few; no wire has one.
    for name in
        ["constant", "drop", "rise", "loss", "delay", "jitter", "wifi", "aqm", "tcp", "cellular"]
    {
        let found = findings(&read(&place(name)).unwrap());
        let pauses: Vec<_> = found.iter().filter(|it| it.0.rule == "air time").collect();
        assert_eq!(!pauses.is_empty(), name == "cellular", "{name}: {pauses:?}");
        for pause in pauses {
            assert!(pause.0.stream.contains("video received"), "{pause:?}");
            assert!(pause.0.says.contains("packets waited and none arrived"), "{pause:?}");
        }
    }
}

#[test]
fn every_network_is_a_scenario() {
    for name in
        ["constant", "drop", "rise", "loss", "delay", "jitter", "wifi", "cellular", "aqm", "tcp"]
    {
        let dump = read(&place(name)).unwrap();
        let text = scenario_text(name, &dump, &estimate(&dump));
        let parsed = weir_scenario::parse(name, &text, None);
        let parsed = parsed.unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(parsed.flows.len(), 2, "{name}");
    }
}

fn played(name: &str) -> Vec<OpenLoop> {
    open_loop(read(&place(name)).unwrap().connections[0].packets.as_ref().unwrap())
}

#[test]
fn the_open_loop_has_every_controller_and_repeats_itself() {
    let drop = played("drop");
    assert!(drop.iter().map(|it| it.algorithm).eq(LabAlgorithm::all()));
    assert_eq!(drop, played("drop"));
}

#[test]
fn the_open_loop_of_gcc_follows_the_target_of_chromium() {
    // The same algorithm with the same feedback: beside Chromium's own estimates in the log.
    let dump = read(&place("drop")).unwrap();
    let log = dump.connections[0].packets.as_ref().unwrap();
    let gcc = &open_loop(log)[0];
    assert_eq!(gcc.algorithm, LabAlgorithm::Gcc);
    let mean = |from: i64, to: i64, of: &dyn Fn(Timestamp) -> f64| {
        let times = (from * 10..to * 10).map(|tenth| Timestamp::from_millis(tenth * 100));
        times.map(of).sum::<f64>() / ((to - from) * 10) as f64
    };
    for (from, to) in [(3, 7), (9, 14)] {
        let ours = mean(from, to, &|time| gcc.at(time).unwrap().as_kbps_f64());
        let theirs = mean(from, to, &|time| log.estimate_at(time).unwrap().as_kbps_f64());
        assert!((ours / theirs - 1.0).abs() < 0.25, "{from} to {to} s: {ours} and {theirs}");
    }
}

#[test]
fn a_log_cut_anywhere_gives_one_line_or_what_it_has() {
    let mut whole = Vec::new();
    let file = std::fs::File::open(place("rise")).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut whole).unwrap();
    let mut sound = 0;
    for end in (2..whole.len()).step_by(997) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &whole[..end]).unwrap();
        match read(file.path()) {
            // The end of a batch is the end of a sound log.
            Ok(dump) => {
                sound += usize::from(dump.warnings.is_empty());
                estimate(&dump);
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
    assert!(sound < 5, "{sound}");
    let mut newer = whole;
    // Key, length, key and five bytes of the time, key of the version.
    let at = newer.windows(2).position(|pair| pair == [0x10, 2]).unwrap();
    newer[at + 1] = 3;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), newer).unwrap();
    let error = read(file.path()).unwrap_err().to_string();
    assert!(error.contains("version 3, and only 2"), "{error}");
}

#[test]
fn a_rival_on_the_path_is_told_from_a_lower_capacity() {
    // TCP shares 2 Mbit/s from 8 s on.
    let tcp = network("tcp").up;
    let mut shared = 0;
    for span in tcp.tested.iter().filter(|it| it.from_s > 8.0) {
        let rivals = span.rivals_bps.unwrap_or_else(|| panic!("{span:?}"));
        assert!((rivals + span.bps - 2e6).abs() < 0.1e6, "{span:?}");
        shared += 1;
    }
    assert!(shared > 2, "{tcp:?}");
    for name in ["aqm", "cellular", "constant", "delay", "drop", "jitter", "loss", "rise"] {
        let network = network(name);
        for span in network.up.tested.iter().chain(&network.down.tested) {
            assert_eq!(span.rivals_bps, None, "{name}: {span:?}");
        }
    }
}
