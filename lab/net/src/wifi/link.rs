//! One direction between a sender and a receiver: its rate control and its errors.

use weir::units::{DataSize, Timestamp};

use super::config::{Bursts, Errors, Link, Noise};
use super::error_rate::{control_error_rate, error_rate, noise_dbm};
use super::phy::{ControlRate, Mcs};
use super::propagation::{Propagation, RadioPath};
use super::rate::RateSelector;
use crate::load::exponential;
use crate::seed::{Seed, Stream};

/// How much stronger than all overlapping frames a frame must be to survive. Used where errors do
/// not follow from the signal-to-noise ratio.
const CAPTURE_MARGIN_DB: f64 = 10.0;
/// Smallest signal-to-noise ratio at which a receiver detects a preamble.
const PREAMBLE_SNR_DB: f64 = 4.0;

/// A link with its random state.
#[derive(Debug)]
pub(super) struct LinkState {
    /// The receiving node; `None` for an access point outside the cell.
    pub(super) to: Option<usize>,
    pub(super) rate: RateSelector,
    channel: Channel,
    chance: Stream,
}

/// The error model, which decides whether a frame can be decoded.
#[derive(Debug)]
enum Channel {
    Ratio(f64),
    Bursts { bursts: Bursts, is_bad: bool, until: Timestamp },
    Noise { noise_dbm: f64, fading: RadioPath },
}

/// Received power of a frame or a part of it, and of the frames that overlap it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// Mean power, without fading.
    pub(super) power_dbm: f64,
    pub(super) interference_mw: f64,
}

impl LinkState {
    /// `name` identifies the random streams of this link. `path` identifies the stream that it
    /// shares with the opposite direction.
    pub(super) fn new(
        to: Option<usize>,
        config: &Link,
        seed: Seed,
        (name, path): (&str, &str),
    ) -> Self {
        let channel = match config.errors {
            Errors::Ratio(ratio) => Channel::Ratio(ratio),
            // Start at the end of a bad period, so that the first duration drawn is that of a good
            // one.
            Errors::Bursts(bursts) => {
                Channel::Bursts { bursts, is_bad: true, until: Timestamp::ZERO }
            }
            Errors::Noise(Noise { figure_db, fading }) => {
                let unit = Propagation { loss_at_1_m_db: 0.0, fading, ..Propagation::INDOOR };
                let mut fading = RadioPath::new(&unit, 1.0, seed.stream(&format!("{path}/fading")));
                // Fading blocks are counted from the first use. Start them now, equally for both
                // directions.
                fading.gain_db(Timestamp::ZERO);
                Channel::Noise { noise_dbm: noise_dbm(figure_db), fading }
            }
        };
        let rate = RateSelector::new(config.rate.clone(), seed.stream(&format!("{name}/rate")));
        Self { to, rate, channel, chance: seed.stream(&format!("{name}/errors")) }
    }

    /// Signal-to-noise ratio of a frame without overlaps; infinite if the link has no noise model.
    pub(super) fn snr_db(&mut self, now: Timestamp, power_dbm: f64) -> f64 {
        match &mut self.channel {
            Channel::Ratio(_) | Channel::Bursts { .. } => f64::INFINITY,
            Channel::Noise { noise_dbm, fading } => power_dbm + fading.gain_db(now) - *noise_dbm,
        }
    }

    /// Whether the receiver detects a preamble.
    pub(super) fn notices(&mut self, now: Timestamp, signal: Signal) -> bool {
        match &mut self.channel {
            Channel::Ratio(_) | Channel::Bursts { .. } => signal.captures(),
            Channel::Noise { noise_dbm, fading } => {
                signal.sinr_db(fading.gain_db(now), *noise_dbm) >= PREAMBLE_SNR_DB
            }
        }
    }

    /// Whether an MPDU can be decoded.
    pub(super) fn decodes(
        &mut self,
        now: Timestamp,
        mcs: Mcs,
        size: DataSize,
        signal: Signal,
    ) -> bool {
        let error = match &mut self.channel {
            Channel::Ratio(ratio) => signal.captured(*ratio),
            Channel::Bursts { bursts, is_bad, until } => {
                while *until <= now {
                    *is_bad = !*is_bad;
                    let mean = if *is_bad { bursts.bad } else { bursts.good };
                    *until += exponential(mean, &mut self.chance);
                }
                signal.captured(if *is_bad { bursts.error_bad } else { bursts.error_good })
            }
            Channel::Noise { noise_dbm, fading } => {
                error_rate(mcs, signal.sinr_db(fading.gain_db(now), *noise_dbm), size)
            }
        };
        !self.errs(error)
    }

    /// Whether an answer can be decoded. Without a noise model, answers fail only in collisions,
    /// because they are short and sent at low rates.
    pub(super) fn decodes_answer(
        &mut self,
        now: Timestamp,
        rate: ControlRate,
        size: DataSize,
        signal: Signal,
    ) -> bool {
        let error = match &mut self.channel {
            Channel::Ratio(_) | Channel::Bursts { .. } => signal.captured(0.0),
            Channel::Noise { noise_dbm, fading } => {
                control_error_rate(rate, signal.sinr_db(fading.gain_db(now), *noise_dbm), size)
            }
        };
        !self.errs(error)
    }

    /// Draws a random number only if an error is possible, to save time on links without errors.
    fn errs(&mut self, error: f64) -> bool {
        error > 0.0 && self.chance.chance(error)
    }
}

impl Signal {
    fn captures(self) -> bool {
        self.interference_mw == 0.0
            || self.power_dbm - to_dbm(self.interference_mw) >= CAPTURE_MARGIN_DB
    }

    /// The given error ratio, or 1 for a frame that is too weak against an overlapping one.
    fn captured(self, error: f64) -> f64 {
        if self.captures() { error } else { 1.0 }
    }

    fn sinr_db(self, gain_db: f64, noise_dbm: f64) -> f64 {
        let noise_dbm = match self.interference_mw {
            0.0 => noise_dbm,
            interference_mw => to_dbm(to_mw(noise_dbm) + interference_mw),
        };
        self.power_dbm + gain_db - noise_dbm
    }
}

pub(super) fn to_mw(dbm: f64) -> f64 {
    libm::pow(10.0, dbm / 10.0)
}

fn to_dbm(mw: f64) -> f64 {
    10.0 * libm::log10(mw)
}
