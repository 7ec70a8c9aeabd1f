//! The Wi-Fi cell beside ns-3, as the program compares them.

use std::process::Command;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

#[test]
fn the_wifi_cell_is_within_its_references() {
    let output =
        Command::new(WEIR).args(["research", "validate", "wifi", "--quick"]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && table.contains("ns-3"), "{table}");
}
