//! Packet loss that is not caused by congestion: independent or in bursts.

use crate::seed::Stream;

/// A source of loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum LossModel {
    /// No loss.
    #[default]
    None,
    /// Each packet is lost independently with this probability [RFC8868 §4.2].
    ///
    /// [RFC8868 §4.2]: https://www.rfc-editor.org/rfc/rfc8868#section-4.2
    Random(f64),
    /// Two states, each with its own loss probability.
    GilbertElliott(GilbertElliott),
}

/// Parameters of the Gilbert-Elliott model. Each is a probability per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Transition from the good state to the bad one.
    pub to_bad: f64,
    /// Transition from the bad state to the good one.
    pub to_good: f64,
    /// Loss probability in the good state.
    pub loss_good: f64,
    /// Loss probability in the bad state.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// Losses of this ratio in which the fates of successive packets have a correlation, from 0 up
    /// to but not 1.
    pub fn correlated(ratio: f64, correlation: f64) -> Self {
        let leave = 1.0 - correlation;
        let (to_bad, to_good) = (ratio * leave, (1.0 - ratio) * leave);
        Self { to_bad, to_good, loss_good: 0.0, loss_bad: 1.0 }
    }

    /// Mean loss ratio over a long time.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.to_bad / (self.to_bad + self.to_good);
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }
}

/// A loss model with its state.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    model: LossModel,
    bad: bool,
    stream: Stream,
}

impl Loss {
    pub(crate) fn new(model: LossModel, stream: Stream) -> Self {
        Self { model, bad: false, stream }
    }

    /// Switches to another model, which starts in its good state.
    pub(crate) fn set(&mut self, model: LossModel) {
        (self.model, self.bad) = (model, false);
    }

    /// Decides whether the next packet is lost.
    pub(crate) fn draw(&mut self) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Random(probability) => self.stream.chance(probability),
            LossModel::GilbertElliott(model) => {
                let leave = if self.bad { model.to_good } else { model.to_bad };
                self.bad ^= self.stream.chance(leave);
                self.stream.chance(if self.bad { model.loss_bad } else { model.loss_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn draws(model: LossModel) -> Vec<bool> {
        let mut loss = Loss::new(model, Seed::new(1).stream("loss"));
        (0..200_000).map(|_| loss.draw()).collect()
    }

    fn ratio(draws: &[bool]) -> f64 {
        draws.iter().filter(|&&lost| lost).count() as f64 / draws.len() as f64
    }

    #[test]
    fn random_loss_has_its_ratio_and_no_memory() {
        let draws = draws(LossModel::Random(0.05));
        assert!((ratio(&draws) - 0.05).abs() < 0.002);
        let after_loss: Vec<bool> =
            draws.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!((ratio(&after_loss) - 0.05).abs() < 0.01);
    }

    #[test]
    fn gilbert_elliott_has_its_mean_and_its_burst_length() {
        let model = GilbertElliott { to_bad: 0.01, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let draws = draws(LossModel::GilbertElliott(model));
        assert!((ratio(&draws) - model.mean_loss()).abs() < 0.003);
        let bursts = draws.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let lost = draws.iter().filter(|&&lost| lost).count();
        let mean_burst = lost as f64 / bursts as f64;
        assert!((mean_burst - 4.0).abs() < 0.15, "{mean_burst}");
    }

    #[test]
    fn correlated_loss_has_its_ratio_and_its_correlation() {
        for correlation in [0.0, 0.25, 0.9] {
            let model = GilbertElliott::correlated(0.05, correlation);
            let draws = draws(LossModel::GilbertElliott(model));
            assert!((ratio(&draws) - 0.05).abs() < 0.006, "{correlation}");
            let pairs = draws.windows(2).filter(|pair| pair[0]);
            let after: Vec<bool> = pairs.map(|pair| pair[1]).collect();
            let expected = 0.05 + correlation * 0.95;
            assert!((ratio(&after) - expected).abs() < 0.02, "{correlation}");
        }
    }
}
