//! Simulates twenty scenarios and prints a hash of each record, then the time that this took.
//! `scripts/test/test-wasm.sh` compares the hashes of this machine, of aarch64, of Node and of
//! Chromium. With `--ask` it prints the requests that give the hashes in place of them.

use std::time::Instant;

use weir_controllers::LabAlgorithm;

/// One of each kind: links, steps, loss, jitter, queues, TCP beside it, Wi-Fi, LTE, L4S, repair.
const SCENARIOS: [&str; 20] = [
    "demo/first-call",
    "demo/l4s",
    "demo/lte-5",
    "demo/wifi-5",
    "bari/step",
    "bari/staircase",
    "lund/rmcat-ns3",
    "lund/sudden-reduction",
    "lund/sweden-china",
    "lund/no-jitter",
    "aalto/delay50",
    "aalto/loss10",
    "rfc8867/5.1",
    "rfc8867/5.2",
    "rfc8867/5.4",
    "rfc8867/5.7",
    "rfc8867/6.1",
    "goals/loss",
    "goals/walk-1",
    "repair/random-loss",
];

fn main() {
    let asks = std::env::args().nth(1).as_deref() == Some("--ask");
    let begin = Instant::now();
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        let all = LabAlgorithm::all().count();
        let name = LabAlgorithm::all().nth(index % all).expect("below their number").name();
        let runs = format!(
            r#"{{"fingerprint":{{"scenario":"{scenario}","controllers":"{name}","seeds":[1]}}}}"#
        );
        println!("{}", if asks { runs } else { weir_wasm::answer(&runs) });
    }
    if !asks {
        eprintln!("{:.2} s", begin.elapsed().as_secs_f64());
    }
}
