//! Scenarios with a Wi-Fi cell or a cellular cell.

use super::{Draw, Family, feedback_interval, head, media};

/// Length of a run, s. Cells take more time to simulate than wires.
const DURATION: u64 = 30;

/// One to three calls in one direction, beside stations with traffic of their own.
pub(super) fn wifi(seed: u64, draw: &mut Draw) -> String {
    let feedback_ms = feedback_interval(draw);
    let direction = draw.one(&["up", "down"]);
    let delay_ms = draw.rounded(5.0, 80.0);
    let queue = draw.one(&[100, 1_000]);
    let aggregation = draw.one(&[1, 10, 32]);
    let rate = match draw.chance(0.5) {
        true => format!("{}", draw.whole(0, 7)),
        false => "{ control = \"minstrel\", streams = 1 }".into(),
    };
    let power = draw.whole(55, 80);
    let calls = draw.whole(1, 3);
    let load = draw.whole(0, 3);
    let load_kbps = draw.rounded(500.0, 5_000.0);
    let neighbours = match load {
        0 => String::new(),
        count => format!(
            "\n[network.station.other]\ncount = {count}\nrate = 7\n\
             load = [{{ kind = \"poisson\", rate = \"{load_kbps}kbps\", packet = \"1500B\" }}]\n"
        ),
    };
    // A cell of MCS 0 carries about 5 Mbit/s; the calls ask for no more than they can share.
    let kbps = draw.log_uniform(800.0, 4_000.0);
    head(Family::Wifi, seed, DURATION, feedback_ms)
        + &format!(
            "\n[network]\nkind = \"wifi\"\n\n[network.access_point]\nqueue = \"{queue}packets\"\n\
             aggregation = {aggregation}\n\n[network.station.phone]\ncount = {calls}\n\
             rate = {rate}\npower = -{power}\n\
             errors = {{ noise_figure = 7, k_factor = 0, coherence = \"50ms\" }}\n\
             aggregation = {aggregation}\n"
        )
        + &neighbours
        + &format!(
            "\n[network.up]\ndelay = \"{delay_ms}ms\"\n\n[network.down]\ndelay = \"{delay_ms}ms\"\n"
        )
        + &media(draw, kbps)
        + &format!(
            "\n[[flow]]\nstation = \"phone\"\ncount = {calls}\ndirection = \"{direction}\"\n"
        )
}

/// One or two calls in one direction, beside terminals with traffic of their own.
pub(super) fn cellular(seed: u64, draw: &mut Draw) -> String {
    let feedback_ms = feedback_interval(draw);
    let direction = draw.one(&["up", "down"]);
    let delay_ms = draw.rounded(5.0, 60.0);
    let bandwidth = draw.one(&["1.4MHz", "3MHz", "5MHz"]);
    let sinr = draw.whole(2, 22);
    let speed = draw.one(&[3, 30, 60]);
    let carrier = draw.one(&["EPA", "EVA"]);
    let calls = draw.whole(1, 2);
    let load = draw.whole(0, 2);
    let load_kbps = draw.rounded(100.0, 1_000.0);
    let others = match load {
        0 => String::new(),
        count => format!(
            "\n[network.terminal.other]\ncount = {count}\nsinr = 12\n\
             load = [{{ kind = \"poisson\", direction = \"{direction}\", \
             rate = \"{load_kbps}kbps\", packet = \"1500B\" }}]\n"
        ),
    };
    let kbps = draw.log_uniform(800.0, 4_000.0);
    head(Family::Cellular, seed, DURATION, feedback_ms)
        + &format!(
            "\n[network]\nkind = \"cellular\"\nbandwidth = \"{bandwidth}\"\n\n\
             [network.terminal.phone]\ncount = {calls}\nsinr = {sinr}\n\
             fading = {{ profile = \"{carrier}\", speed = {speed} }}\n"
        )
        + &others
        + &format!(
            "\n[network.up]\ndelay = \"{delay_ms}ms\"\n\n[network.down]\ndelay = \"{delay_ms}ms\"\n"
        )
        + &media(draw, kbps)
        + &format!(
            "\n[[flow]]\nterminal = \"phone\"\ncount = {calls}\ndirection = \"{direction}\"\n"
        )
}
