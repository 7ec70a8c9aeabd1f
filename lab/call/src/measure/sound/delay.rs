//! Delay from mouth to ear: where each second of what was heard lies in what was said.

use weir::units::{TimeDelta, Timestamp};

use super::fft;
use super::recording::Track;
use super::resample::RATE;

/// What is compared at once.
pub(super) const SECOND: TimeDelta = TimeDelta::from_secs(1);
/// Longest delay that is looked for. The recorded speech repeats only after ten seconds.
const LONGEST: TimeDelta = TimeDelta::from_secs(4);
/// Root of the mean square below which a second is silent, 54 dB below the loudest tone.
const SILENCE: f64 = 0.002;
/// Least normalized correlation of two recordings of the same speech. Other speech has up to 0.2.
const LIKE: f64 = 0.4;

/// The delay of one second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeechSecond {
    /// When it ended at the ear.
    pub end: Timestamp,
    /// From the mouth to the ear; `None` if it is silent or nothing like what was said.
    pub delay: Option<TimeDelta>,
}

/// The delay of each second of `heard` within `span`.
pub(super) fn each_second(
    spoken: &Track,
    heard: &Track,
    span: std::ops::Range<Timestamp>,
) -> Vec<SpeechSecond> {
    let mut seconds = Vec::new();
    let mut start = span.start;
    while start + SECOND <= span.end {
        seconds.push(SpeechSecond { end: start + SECOND, delay: delay(spoken, heard, start) });
        start += SECOND;
    }
    seconds
}

fn delay(spoken: &Track, heard: &Track, start: Timestamp) -> Option<TimeDelta> {
    let (at, pattern) = heard.part(start..start + SECOND);
    let energy: f64 = pattern.iter().map(|it| f64::from(*it).powi(2)).sum();
    let is_whole = pattern.len() as f64 >= SECOND.as_secs_f64() * RATE - 2.0;
    if !is_whole || (energy / pattern.len() as f64).sqrt() < SILENCE {
        return None;
    }
    let (said_at, said) = spoken.part(start - LONGEST..start + SECOND);
    let sums = fft::correlation(said, pattern);
    let mut best: Option<(f64, usize)> = None;
    let mut said_energy: f64 =
        said.iter().take(pattern.len()).map(|it| f64::from(*it).powi(2)).sum();
    for (place, sum) in sums.iter().enumerate() {
        let like = sum / (energy * said_energy.max(energy * 1e-6)).sqrt();
        if like > best.map_or(LIKE, |(most, _)| most) {
            best = Some((like, place));
        }
        let next = said.get(place + pattern.len()).copied().unwrap_or(0.0);
        said_energy += f64::from(next).powi(2) - f64::from(said[place]).powi(2);
    }
    let (_, place) = best?;
    Some(at - (said_at + TimeDelta::from_secs_f64(place as f64 / RATE)))
}

impl Track {
    /// The samples within a time, and when the first of them was.
    fn part(&self, span: std::ops::Range<Timestamp>) -> (Timestamp, &[f32]) {
        let first = ((span.start - self.start).as_secs_f64() * RATE).ceil().max(0.0) as usize;
        let end = ((span.end - self.start).as_secs_f64() * RATE).ceil().max(0.0) as usize;
        let end = end.min(self.samples.len());
        let first = first.min(end);
        let at = self.start + TimeDelta::from_secs_f64(first as f64 / RATE);
        (at, &self.samples[first..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Something that resembles itself at no other place.
    fn speech(seconds: usize) -> Vec<f32> {
        let mut state = 1_u32;
        let mut samples = Vec::new();
        for _ in 0..seconds * RATE as usize {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            samples.push((state >> 8) as f32 / (1 << 24) as f32 - 0.5);
        }
        samples
    }

    fn track(start_ms: i64, samples: Vec<f32>) -> Track {
        Track { start: Timestamp::from_millis(start_ms), samples, gaps: Vec::new() }
    }

    fn delays(spoken: &Track, heard: &Track, seconds: i64) -> Vec<Option<f64>> {
        let span = Timestamp::ZERO..Timestamp::from_secs(seconds);
        let found = each_second(spoken, heard, span);
        found.iter().map(|it| it.delay.map(TimeDelta::as_millis_f64)).collect()
    }

    #[test]
    fn a_delay_that_jumps_is_found_in_each_second() {
        let said = speech(8);
        let mut heard = said.clone();
        // From the fourth second on, half a second of silence comes first.
        heard.splice(4 * 16_000..4 * 16_000, vec![0.0; 8_000]);
        let [spoken, heard] = [track(-3_000, said), track(-2_900, heard)];
        let found = delays(&spoken, &heard, 4);
        assert_eq!(found[0], Some(100.0));
        assert_eq!(&found[2..], [Some(600.0); 2]);
    }

    #[test]
    fn silence_and_other_speech_have_no_delay() {
        let said = speech(4);
        let other = speech(9).split_off(5 * 16_000);
        let spoken = track(0, said);
        assert_eq!(delays(&spoken, &track(0, vec![0.0; 64_000]), 3), [None; 3]);
        assert_eq!(delays(&spoken, &track(0, other), 3), [None; 3]);
        assert_eq!(delays(&spoken, &Track::default(), 1), [None]);
        assert_eq!(delays(&Track::default(), &spoken, 1), [None]);
    }

    #[test]
    fn noise_and_another_loudness_do_not_hide_the_delay() {
        let said = speech(4);
        let noise = speech(11).split_off(7 * 16_000);
        let heard = said.iter().zip(noise).map(|(said, noise)| 0.3 * said + 0.1 * noise).collect();
        let [spoken, heard] = [track(0, said), track(250, heard)];
        assert_eq!(delays(&spoken, &heard, 4)[1..], [Some(250.0); 3]);
    }
}
