//! The network of a scenario file.

use super::*;

#[test]
fn loss_and_jitter_may_have_steps() {
    let text = SMALL.replace(
        "capacity",
        "loss = [[\"0s\", \"0%\"], [\"20s\", \"5%\"]]\n\
         jitter = [[\"0s\", { kind = \"netem\", amount = \"0ms\" }], \
         [\"10s\", { kind = \"rfc8868\", sd = \"5ms\" }]]\ncapacity",
    );
    let scenario = parse("test", &text, None).unwrap();
    let up = &scenario.hops[0].up;
    assert_eq!(up.loss, LossModel::Random(0.0));
    assert_eq!(up.changes.loss, [(Timestamp::from_secs(20), LossModel::Random(0.05))]);
    let jitter = Jitter::HalfNormal { sd: TimeDelta::from_millis(5), reorder: false };
    assert_eq!(up.changes.jitter, [(Timestamp::from_secs(10), jitter)]);
    let words = &scenario.network_in_words()[0];
    for part in [
        "jitter ±0 ms as netem (may reorder), then jitter with sd 5 ms as RFC 8868 (in order) \
         from 10 s",
        "0 % lost, then 5 % lost from 20 s",
    ] {
        assert!(words.contains(part), "{words}");
    }
}
