//! What a report has of a cellular cell.

use weir_controllers::LabAlgorithm;

use super::records::cellular;
use super::{json, simulated};

#[test]
fn a_cellular_cell_has_a_curve_each_bearer_and_a_picture_of_blocks() {
    let record = cellular();
    let report = json(&[record]);
    let cell = &report["scenarios"][0]["cellular"];
    let curves = cell["curves"].as_array().unwrap();
    // Five terminals, two bearers, two directions.
    assert_eq!(curves.len(), 20);
    let first = &curves[0];
    assert_eq!((&first["terminal"], &first["bearer"]), (&"caller-1".into(), &"default".into()));
    assert_eq!(first["direction"], "up");
    assert_eq!(cell["time_s"].as_array().unwrap().len(), 40);
    assert_eq!(first["sinr_db"][39], 20.0);
    assert_eq!(cell["changes"][0]["event"], "added");
    assert_eq!(cell["changes"][0]["time_s"], 0.5);
    assert_eq!(cell["is_cut"], false);
    let grid = &cell["grid"];
    assert_eq!((&grid["prbs_up"], &grid["tti_ms"]), (&50.into(), &1.0.into()));
    let blocks = grid["blocks"].as_array().unwrap();
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(block["tti"].as_u64().unwrap() < 40, "{block}");
        assert!(block["prbs"][0][1].as_u64().unwrap() < 50, "{block}");
    }
    let without = json(&[simulated("demo/first-call", LabAlgorithm::Nada, 1)]);
    assert!(without["scenarios"][0]["cellular"].is_null());
}
