//! Whether sound and picture of one person are in step: what a viewer notices of lips.

use weir::units::{TimeDelta, Timestamp};
use weir_record::calls::delays::Delays;

use super::delay::SECOND;
use super::{DECIMALS, HeardSpeech, SpeechSecond};
use crate::measure::quality::{Frame, ReceivedFrames};

/// By how much the sound of a second was later at the ear than the pictures on screen in that
/// second, each since its capture. `None` if no second has both.
fn behind(seconds: &[SpeechSecond], frames: &[Frame]) -> Option<Delays> {
    let mut differences = Vec::new();
    for second in seconds {
        let Some(sound) = second.delay else { continue };
        if let Some(picture) = shown_between(frames, second.end - SECOND, second.end) {
            differences.push((sound - picture).as_millis_f64());
        }
    }
    Delays::of(differences, DECIMALS)
}

/// Mean delay of the frames that were shown first in this time.
fn shown_between(frames: &[Frame], start: Timestamp, end: Timestamp) -> Option<TimeDelta> {
    let (mut sum, mut count) = (TimeDelta::ZERO, 0);
    for frame in frames {
        if let Some(delay) = frame.shown_delay().filter(|_| frame.shown >= Some(start))
            && frame.shown < Some(end)
        {
            sum += delay;
            count += 1;
        }
    }
    if count > 0 { Some(sum / count) } else { None }
}

/// Fills in what follows from the pictures of the same person on the same screen.
pub(super) fn fill(heard: &mut [HeardSpeech], seen: &[ReceivedFrames]) {
    for one in heard {
        let speech = &mut one.speech;
        for pictures in seen {
            let ReceivedFrames { call, from, to, timeline, .. } = pictures;
            if (*call, from, to) == (speech.call, &speech.from, &speech.to) {
                speech.behind_picture_ms = behind(&one.seconds, &timeline.frames);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A frame every 100 ms, shown so much later.
    fn frames(delay: i64) -> Vec<Frame> {
        let mut frames = Vec::new();
        for index in 0..30 {
            let captured = ms(100 * index as i64);
            frames.push(Frame {
                index,
                number: index as u16,
                captured,
                received: None,
                shown: Some(captured + TimeDelta::from_millis(delay)),
                repeats: 0,
                width: 640,
                height: 360,
            });
        }
        frames
    }

    fn second(end: i64, delay: Option<i64>) -> SpeechSecond {
        SpeechSecond { end: Timestamp::from_secs(end), delay: delay.map(TimeDelta::from_millis) }
    }

    #[test]
    fn sound_is_behind_by_the_difference_of_delays_where_a_second_has_both() {
        let seconds =
            [second(1, Some(90)), second(2, None), second(3, Some(30)), second(9, Some(1))];
        let behind = behind(&seconds, &frames(40)).unwrap();
        assert_eq!((behind.min, behind.max), (-10.0, 50.0));
    }

    #[test]
    fn without_pictures_or_sound_nothing_is_said() {
        assert_eq!(behind(&[second(1, Some(90))], &[]), None);
        assert_eq!(behind(&[second(1, None)], &frames(40)), None);
    }
}
