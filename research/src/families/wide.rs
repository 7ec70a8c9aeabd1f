//! Scenarios from the whole ranges of rate, round trip, feedback and clocks.

use super::{Draw, Family, head, two_digits};

/// Length of a run, s: of a fast link, whose packets take time to simulate, and of all others.
const DURATION: u64 = 90;
const FAST_DURATION: u64 = 20;
/// Capacity from which a link is fast, kbit/s.
const FAST: u64 = 50_000;
/// The smallest packet of a frame with its headers, bit.
const PACKET: u64 = 480;

pub(super) fn wide(seed: u64, draw: &mut Draw) -> String {
    let kbps = two_digits(draw.log_uniform(10.0, 1e6));
    let one_way_us = draw.rounded(250.0, 750_000.0);
    let feedback_ms = draw.rounded(5.0, 2_000.0);
    let queue_ms = draw.rounded(20.0, 1_000.0);
    let duration = if kbps < FAST { DURATION } else { FAST_DURATION };
    let path = path(draw, one_way_us, duration);
    let loss = if draw.chance(0.25) { "loss = \"50%\"\n" } else { "" };
    let feedback = draw.one(&["twcc", "twcc", "ccfb", "rr"]);
    let fps = draw.one(&[15, 30, 60, 120]);
    let clock = clock(draw, duration);
    let least = (kbps / 20).max(5);
    // Frames of one packet each may not be more than the smallest rate.
    let fps = fps.min(least * 1_000 / PACKET);
    let (start, most) = ((kbps / 4).max(5), kbps * 3 / 2);
    // The buffer of a slow link holds some packets at least.
    let queue = (kbps * queue_ms / 8).max(6_000);
    head(Family::Wide, seed, duration, feedback_ms)
        + &format!(
            "\n[network.up]\ncapacity = \"{kbps}kbps\"\nqueue = \"{queue}B\"\ndelay = {path}\n\
             \n[network.down]\ndelay = \"{one_way_us}us\"\n{loss}\
             \n[[flow]]\nmin_bitrate = \"{least}kbps\"\nstart_bitrate = \"{start}kbps\"\n\
             max_bitrate = \"{most}kbps\"\nsource = {{ kind = \"filler\", fps = {fps} }}\n\
             feedback = \"{feedback}\"\nreceiver_clock = {clock}\n"
        )
}

/// The delay of the path: constant, or it grows by up to a millisecond a second and shrinks again.
fn path(draw: &mut Draw, one_way_us: u64, duration: u64) -> String {
    if draw.chance(0.75) {
        return format!("\"{one_way_us}us\"");
    }
    let step_us = draw.rounded(50.0, 1_000.0);
    let turn = draw.whole(duration / 3, 2 * duration / 3);
    let mut text = format!("[[\"0s\", \"{one_way_us}us\"]");
    for second in 5..duration {
        let grown = (second - 4).min((2 * turn).saturating_sub(second));
        text += &format!(", [\"{second}s\", \"{}us\"]", one_way_us + grown * step_us);
    }
    text + "]"
}

/// The receiver's clock: it drifts, and may step or restart in the middle.
fn clock(draw: &mut Draw, duration: u64) -> String {
    let drift = draw.rounded(10.0, 1_000.0);
    let sign = draw.one(&["", "-"]);
    let (middle, by) = (duration / 2, draw.rounded(20.0, 3_000_000.0));
    match draw.whole(0, 4) {
        0 => "{}".into(),
        1 => format!("{{ skew_ppm = {sign}{drift} }}"),
        2 => format!(
            "{{ ahead = \"1h\", skew_ppm = {sign}{drift}, jumps = [[\"{middle}s\", \"{by}ms\"]] }}"
        ),
        3 => format!("{{ ahead = \"1h\", jumps = [[\"{middle}s\", \"-{by}ms\"]] }}"),
        _ => format!("{{ ahead = \"1h\", restarts = [\"{middle}s\"] }}"),
    }
}
