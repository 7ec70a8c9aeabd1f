//! Metrics of what is heard of an audio flow: delay from mouth to ear, concealment, and the rating
//! of the E-model [G107].

use weir::units::TimeDelta;
use weir_sim::trace::Heard;

use super::Distribution;
use super::declared::declare;
use super::tally::Tally;

// Parameters of the E-model.
/// Rating with the default values of all other impairments [G107 §7.7].
const RATING: f64 = 93.2;
/// A delay up to this one does no harm [G107 §7.4].
const HARMLESS_DELAY_MS: f64 = 100.0;
/// Scale and exponents of the harm of longer ones [G107 §7.4].
const DELAY_SCALE: f64 = 25.0;
const DELAY_EXPONENT: f64 = 6.0;
const DELAY_DIVISOR: f64 = 3.0;
/// `Ie`, `Bpl`: impairment by Opus at 31 kbit/s, superwideband, and its robustness against random
/// losses, as published for it (docs/reference/quality.md).
const OPUS_IMPAIRMENT: f64 = 16.83;
const OPUS_ROBUSTNESS: f64 = 10.44;
/// Impairment by losses without limit [G107 §7.5].
const MOST_IMPAIRMENT: f64 = 95.0;
const PERCENT: f64 = 100.0;

declare! {
    /// Metrics of what is heard. `None`, and left out of a summary, unless the flow has `quality`.
    #[derive(Default)]
    #[serde(default)]
    pub struct SpeechMetrics in "" {
        /// Time from the microphone to the ear, as the mean over each 50 ms of what was not made
        /// up, without devices and the codec's look-ahead. Percentiles are over these values.
        #[serde(skip_serializing_if = "Option::is_none")]
        mouth_to_ear_ms: Option<Distribution> = "ms", Lower, [Speech], title: "Mouth to ear";
        /// Share of the played time that was made up, because packets were lost or late.
        #[serde(skip_serializing_if = "Option::is_none")]
        concealed_ratio: Option<f64> = "ratio", Lower, [Speech], title: "Concealed";
        /// Stretches that were made up.
        #[serde(skip_serializing_if = "Option::is_none")]
        concealments: Option<u64> = "", Lower, [Speech];
        /// Time added by playing slower, over the played time.
        #[serde(skip_serializing_if = "Option::is_none")]
        slowed_ratio: Option<f64> = "ratio", Lower, [Speech];
        /// Time taken out by playing faster, over the played time.
        #[serde(skip_serializing_if = "Option::is_none")]
        hurried_ratio: Option<f64> = "ratio", Lower, [Speech];
        /// Mean of the delay that the receiver's buffer aims at.
        #[serde(skip_serializing_if = "Option::is_none")]
        speech_target_ms: Option<f64> = "ms", Neither, [Speech];
        /// Rating R of the E-model (G.107) for the mean delay and the concealed share, as losses of
        /// Opus, which alone costs 16.8 of the 93.2. It compares calls with each other.
        #[serde(skip_serializing_if = "Option::is_none")]
        speech_rating: Option<f64> = "0 to 93.2", Higher, [Speech], title: "Speech rating R";
    }
}

/// Rating R for a delay in ms from mouth to ear and a share of lost speech.
pub fn speech_rating(delay_ms: f64, loss_ratio: f64) -> f64 {
    let loss = PERCENT * loss_ratio;
    let impairment =
        OPUS_IMPAIRMENT + (MOST_IMPAIRMENT - OPUS_IMPAIRMENT) * loss / (loss + OPUS_ROBUSTNESS);
    (RATING - delay_impairment(delay_ms) - impairment).max(0.0)
}

/// `Idd`: impairment by a delay without echo [G107 §7.4].
fn delay_impairment(delay_ms: f64) -> f64 {
    if delay_ms <= HARMLESS_DELAY_MS {
        return 0.0;
    }
    let x = libm::log2(delay_ms / HARMLESS_DELAY_MS);
    DELAY_SCALE * (grown(x) - 3.0 * grown(x / DELAY_DIVISOR) + 2.0)
}

fn grown(x: f64) -> f64 {
    libm::pow(1.0 + libm::pow(x, DELAY_EXPONENT), 1.0 / DELAY_EXPONENT)
}

/// What was heard in the rows so far.
#[derive(Clone, Debug, Default)]
pub(super) struct SpeechMeter {
    sum: Heard,
    delay: Tally,
    targets: TimeDelta,
    target_rows: i64,
}

impl SpeechMeter {
    pub(super) fn push(&mut self, heard: &Heard) {
        let sum = &mut self.sum;
        sum.played += heard.played;
        sum.concealed += heard.concealed;
        sum.concealments += heard.concealments;
        sum.stretched += heard.stretched;
        sum.shortened += heard.shortened;
        if let Some(delay) = heard.delay {
            self.delay.push(delay);
        }
        if let Some(target) = heard.target {
            self.targets += target;
            self.target_rows += 1;
        }
    }

    pub(super) fn finish(&mut self) -> SpeechMetrics {
        let Heard { played, concealed, stretched, shortened, .. } = self.sum;
        if played <= TimeDelta::ZERO {
            return SpeechMetrics::default();
        }
        let concealed = concealed / played;
        let delay = self.delay.above(TimeDelta::ZERO);
        SpeechMetrics {
            mouth_to_ear_ms: delay,
            concealed_ratio: Some(concealed),
            concealments: Some(self.sum.concealments),
            slowed_ratio: Some(stretched / played),
            hurried_ratio: Some(shortened / played),
            speech_target_ms: (self.target_rows > 0)
                .then(|| (self.targets / self.target_rows).as_millis_f64()),
            speech_rating: delay.map(|delay| speech_rating(delay.mean, concealed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir::units::Timestamp;
    use weir_sim::trace::Row;

    use super::*;
    use crate::Metrics;

    // [G107 §7.4]
    #[test]
    fn a_delay_of_up_to_100_ms_does_no_harm_and_one_of_400_ms_costs_24_points() {
        assert_eq!(delay_impairment(100.0), 0.0);
        assert!(delay_impairment(150.0) < 1.0);
        // X = 2: 25 ((1 + 64)^(1/6) - 3 (1 + (2/3)^6)^(1/6) + 2).
        assert!((delay_impairment(400.0) - 24.1).abs() < 0.1, "{}", delay_impairment(400.0));
    }

    // [G107 §7.5]
    #[test]
    fn losses_equal_to_the_robustness_take_half_of_what_is_left() {
        let clean = speech_rating(50.0, 0.0);
        assert!((clean - (93.2 - 16.83)).abs() < 1e-9);
        let half = clean - (95.0 - 16.83) / 2.0;
        assert!((speech_rating(50.0, 0.1044) - half).abs() < 1e-9);
        assert_eq!(speech_rating(2_000.0, 0.9), 0.0);
    }

    #[test]
    fn hand_made_speech_has_the_metrics_worked_out_by_hand() {
        let millis = TimeDelta::from_millis;
        let heard = Heard::default()
            .with_played(millis(50))
            .with_delay(Some(millis(90)))
            .with_target(Some(millis(40)));
        let second = heard
            .with_concealed(millis(10))
            .with_concealments(1)
            .with_stretched(millis(10))
            .with_delay(Some(millis(110)));
        let row = |heard| Row::new(Timestamp::ZERO, 0).with_heard(Some(heard));
        let speech = Metrics::of(&[row(heard), row(second)], &[]).speech;
        assert_eq!(speech.mouth_to_ear_ms.map(|ms| (ms.mean, ms.max)), Some((100.0, 110.0)));
        assert_eq!((speech.concealed_ratio, speech.concealments), (Some(0.1), Some(1)));
        assert_eq!((speech.slowed_ratio, speech.hurried_ratio), (Some(0.1), Some(0.0)));
        assert_eq!(speech.speech_target_ms, Some(40.0));
        assert_eq!(speech.speech_rating, Some(speech_rating(100.0, 0.1)));
        let silent = Metrics::of(&[Row::default()], &[]).speech;
        assert_eq!(serde_json::to_string(&silent).unwrap(), "{}");
    }
}
