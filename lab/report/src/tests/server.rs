//! What a report has of a forwarding server.

use weir_controllers::LabAlgorithm;

use super::{json, simulated};

#[test]
fn a_forwarding_server_has_a_lane_a_picture_and_a_reason_each_switch() {
    let record = simulated("sfu/fall-and-return", LabAlgorithm::Sluice, 1);
    let duration_s = record.scenario.duration.as_secs_f64();
    let report = json(&[record]);
    let server = &report["scenarios"][0]["server"];
    assert_eq!((&server["is_cut"], &server["layers"]), (&false.into(), &3.into()));
    let lanes = server["lanes"].as_array().unwrap();
    assert!(!lanes.is_empty());
    for lane in lanes {
        let spans = lane["spans"].as_array().unwrap();
        // Without gaps from the start to the end.
        let mut end = 0.0;
        for span in spans {
            assert_eq!(span["from_s"].as_f64().unwrap(), end, "{lane}");
            end = span["to_s"].as_f64().unwrap();
            let is_sent = !span["layer"].is_null();
            assert!(!is_sent || !span["reason"].as_str().unwrap().is_empty(), "{span}");
        }
        assert_eq!(end, duration_s);
        // The best layer, a smaller one after the fall, and the best again.
        let layers: Vec<Option<u64>> = spans.iter().map(|span| span["layer"].as_u64()).collect();
        let best = layers.iter().position(|layer| *layer == Some(2)).unwrap();
        let fall = layers[best..].iter().position(|layer| *layer < Some(2)).unwrap() + best;
        assert!(layers[fall..].contains(&Some(2)), "{layers:?}");
    }
    let choices = server["choices"].as_array().unwrap();
    assert!(choices.iter().any(|choice| choice["decision"] == "switched"));
    for choice in choices {
        assert!(!choice["reason"].as_str().unwrap().is_empty(), "{choice}");
    }
    let without = json(&[simulated("demo/first-call", LabAlgorithm::Nada, 1)]);
    assert!(without["scenarios"][0]["server"].is_null());
}
