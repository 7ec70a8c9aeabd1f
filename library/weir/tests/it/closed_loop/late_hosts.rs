//! Hosts whose timers are coarse, as those of browsers, iOS and Python are.

use weir::Algorithm;

use super::path::Loop;

/// Delivered bitrates in kbit/s over a minute, for a host that wakes up every so many ms.
fn delivered(algorithm: Algorithm, host_ms: u64) -> u64 {
    let mut path = Loop::new(algorithm, 2_000, 25);
    path.host_steps = host_ms;
    path.run(20);
    path.run(60)
}

#[test]
fn a_host_that_wakes_up_every_5_ms_delivers_95_percent_of_an_exact_one() {
    for algorithm in Algorithm::all() {
        let (exact, coarse) = (delivered(algorithm, 1), delivered(algorithm, 5));
        println!("{algorithm}: {exact} and {coarse} kbit/s");
        assert!(coarse * 100 >= exact * 95, "{algorithm}: {coarse} of {exact} kbit/s");
    }
}
