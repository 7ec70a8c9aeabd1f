//! What a speaker with DTX does not send: the pauses of the speech in calls of the lab.
//!
//! That speech is ten seconds of a recording in a loop. libopus 1.3.1 with the settings of a
//! browser (voip, 32 kbit/s, complexity 9) finds one pause in it, of 160 ms: it codes eight packets
//! of 20 ms, or two of 60 ms, as nothing but a header (`scripts/speech-pauses.py`).

use weir::units::{TimeDelta, Timestamp};

/// The loop of the recording. It begins with the run.
const LOOP: TimeDelta = TimeDelta::from_millis(10_090);
/// The pause in each loop.
const FROM: TimeDelta = TimeDelta::from_millis(7_200);
const TO: TimeDelta = TimeDelta::from_millis(7_360);

/// Whether a packet with the speech from `start` on has nothing but silence.
pub(crate) fn is_silent(start: Timestamp, length: TimeDelta) -> bool {
    let nanos = (start - Timestamp::ZERO).as_nanos().rem_euclid(LOOP.as_nanos());
    let within = TimeDelta::from_nanos(nanos);
    FROM <= within && within + length <= TO
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

    // In the first loop as many as `scripts/speech-pauses.py` counts, less the first.
    #[test]
    fn all_of_a_pause_but_its_first_packet_is_left_out() {
        let short = left_out(20);
        assert_eq!(short[..7], [7_220, 7_240, 7_260, 7_280, 7_300, 7_320, 7_340]);
        assert_eq!(short[7], 17_320);
        // Of the second pause, from 17.29 s to 17.45 s, only one packet of 60 ms is whole.
        assert_eq!(left_out(60)[..2], [7_260, 27_480]);
    }
}
