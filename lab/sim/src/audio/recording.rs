//! What the packets have of the speech in calls of the lab: which of it is a pause that a speaker
//! with DTX does not send, and which has no copy.
//!
//! That speech is ten seconds of a recording in a loop, which begins with the run. The places are
//! those of libopus 1.3.1 with the settings of a browser (voip, 32 kbit/s, complexity 9), by
//! `scripts/results/speech-packets.py places`. Chromium leaves out copies at the same places.

use weir::units::{TimeDelta, Timestamp};

/// The loop, in ms.
const LOOP: i64 = 10_090;
/// Length of packets, and from and to of the only pause in it, whose packets are nothing but a
/// header. Longer packets all have something.
const PAUSES: [(i64, (i64, i64)); 2] = [(10, (7_240, 7_360)), (20, (7_200, 7_360))];
/// Speech without a copy, from and to: Opus copies only what it takes for a voice.
const UNCOPIED: [(i64, i64); 18] = [
    (30, 50),
    (190, 230),
    (530, 550),
    (2_250, 2_270),
    (2_730, 2_770),
    (2_910, 2_950),
    (3_930, 3_990),
    (4_170, 4_210),
    (4_330, 4_410),
    (4_730, 4_830),
    (4_950, 5_010),
    (5_230, 5_250),
    (5_770, 5_790),
    (6_770, 7_370),
    (7_990, 8_010),
    (8_150, 8_250),
    (8_810, 8_830),
    (9_890, 10_090),
];

/// Whether the speech from `start` on has a copy in a later packet, unless all of it is taken for
/// no voice. Nothing has none.
pub(crate) fn has_copy(start: Timestamp, length: TimeDelta) -> bool {
    length > TimeDelta::ZERO && !UNCOPIED.iter().any(|&part| is_within(part, start, length))
}

fn is_within((from, to): (i64, i64), start: Timestamp, length: TimeDelta) -> bool {
    let millis = TimeDelta::from_millis;
    let nanos = (start - Timestamp::ZERO).as_nanos().rem_euclid(millis(LOOP).as_nanos());
    let within = TimeDelta::from_nanos(nanos);
    millis(from) <= within && within + length <= millis(to)
}

/// Whether a packet with the speech from `start` on has nothing but silence.
pub(crate) fn is_silent(start: Timestamp, length: TimeDelta) -> bool {
    PAUSES
        .iter()
        .any(|&(ms, pause)| length == TimeDelta::from_millis(ms) && is_within(pause, start, length))
}

/// Whether such a packet is left out. The first of a pause is sent, so that the receiver knows
/// [LIBWEBRTC §AudioEncoderOpus].
pub(crate) fn is_left_out(start: Timestamp, length: TimeDelta) -> bool {
    is_silent(start, length) && is_silent(start - length, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of such a length of the first minute that are left out.
    fn left_out(ms: i64) -> Vec<i64> {
        let length = TimeDelta::from_millis(ms);
        let starts = (0..60_000 / ms).map(|number| number * ms);
        starts.filter(|ms| is_left_out(Timestamp::from_millis(*ms), length)).collect()
    }

    // In the first loop as many as `scripts/results/speech-packets.py places` counts, less the
    // first.
    #[test]
    fn all_of_a_pause_but_its_first_packet_is_left_out() {
        let short = left_out(20);
        assert_eq!(short[..7], [7_220, 7_240, 7_260, 7_280, 7_300, 7_320, 7_340]);
        assert_eq!(short[7], 17_320);
        assert_eq!(left_out(10)[..2], [7_250, 7_260]);
        assert_eq!((left_out(40), left_out(60)), (vec![], vec![]));
    }
}
