//! The names of the lab's controllers.

use std::fmt;

use weir::controller::EcnMode;
use weir::{Algorithm, Controller, Settings};

use crate::gcc_2013::{self, Gcc2013};
use crate::gcc_draft::GccDraft;
use crate::receiver::ReceiverEstimator;

/// A congestion-control algorithm by name: one of the library, or a historical one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabAlgorithm {
    /// `gcc`: Google congestion control as Chromium runs it today.
    Gcc,
    /// `gcc-draft`: draft-ietf-rmcat-gcc-02, sender side.
    GccDraft,
    /// `gcc-2013`: receiver side, with REMB.
    Gcc2013,
    /// `nada`: RFC 8698.
    Nada,
    /// `scream`: RFC 8298.
    Scream,
    /// `scream-v2`: draft-ietf-ccwg-rfc8298bis-screamv2.
    ScreamV2,
    /// `sluice`: Weir's own.
    Sluice,
}

impl LabAlgorithm {
    const ALL: [Self; 7] = [
        Self::Gcc,
        Self::GccDraft,
        Self::Gcc2013,
        Self::Nada,
        Self::Scream,
        Self::ScreamV2,
        Self::Sluice,
    ];

    /// All algorithms, in the order of reports.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        Self::ALL.into_iter()
    }

    /// The library's algorithm; `None` for a historical one.
    pub const fn of_library(self) -> Option<Algorithm> {
        match self {
            Self::Gcc => Some(Algorithm::Gcc),
            Self::GccDraft | Self::Gcc2013 => None,
            Self::Nada => Some(Algorithm::Nada),
            Self::Scream => Some(Algorithm::Scream),
            Self::ScreamV2 => Some(Algorithm::ScreamV2),
            Self::Sluice => Some(Algorithm::Sluice),
        }
    }

    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::GccDraft => "gcc-draft",
            Self::Gcc2013 => "gcc-2013",
            of_library => of_library.of_library().expect("the others are historical").name(),
        }
    }

    /// How this algorithm uses ECN if `wanted` is requested, as [`Algorithm::ecn_mode`].
    pub fn ecn_mode(self, wanted: EcnMode) -> EcnMode {
        match (self, wanted) {
            // It treats each mark as a loss: GCC-D17.
            (Self::GccDraft, EcnMode::L4s) => EcnMode::Classic,
            // Its feedback reports losses and the receiver's estimate, but no marks.
            (Self::Gcc2013, _) => EcnMode::Off,
            _ => self.of_library().map_or(wanted, |algorithm| algorithm.ecn_mode(wanted)),
        }
    }

    /// A new controller with the standard's default parameters.
    pub fn build(self, settings: impl Into<Settings>) -> Box<dyn Controller + Send> {
        let settings = settings.into();
        let settings = settings.with_ecn(self.ecn_mode(settings.ecn));
        match self {
            Self::GccDraft => Box::new(GccDraft::new(settings)),
            Self::Gcc2013 => Box::new(Gcc2013::new(settings)),
            _ => self.of_library().expect("the others are historical").build(settings),
        }
    }

    /// The receiver's half, for algorithms that have one.
    pub fn build_receiver(self) -> Option<Box<dyn ReceiverEstimator + Send>> {
        match self {
            Self::Gcc2013 => Some(Box::new(gcc_2013::Receiver::new())),
            _ => None,
        }
    }
}

impl From<Algorithm> for LabAlgorithm {
    fn from(algorithm: Algorithm) -> Self {
        let same = Self::ALL.into_iter().find(|it| it.of_library() == Some(algorithm));
        same.expect("the lab has all algorithms of the library")
    }
}

impl fmt::Display for LabAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_has_every_algorithm_of_the_library_and_builds_the_same_controller() {
        for algorithm in Algorithm::all() {
            let of_lab = LabAlgorithm::from(algorithm);
            assert_eq!(of_lab.of_library(), Some(algorithm));
            assert_eq!(of_lab.name(), algorithm.name());
            for wanted in [EcnMode::Off, EcnMode::Classic, EcnMode::L4s] {
                assert_eq!(of_lab.ecn_mode(wanted), algorithm.ecn_mode(wanted));
            }
        }
        assert_eq!(LabAlgorithm::all().len(), Algorithm::all().len() + 2);
    }

    // GCC-D17
    #[test]
    fn the_historical_controllers_do_not_promise_the_reaction_of_l4s() {
        assert_eq!(LabAlgorithm::GccDraft.ecn_mode(EcnMode::L4s), EcnMode::Classic);
        assert_eq!(LabAlgorithm::GccDraft.ecn_mode(EcnMode::Classic), EcnMode::Classic);
        for wanted in [EcnMode::Off, EcnMode::Classic, EcnMode::L4s] {
            assert_eq!(LabAlgorithm::Gcc2013.ecn_mode(wanted), EcnMode::Off);
        }
    }
}
