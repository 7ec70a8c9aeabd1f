//! The names of the lab's controllers.

use std::fmt;

use weir::controller::EcnMode;
use weir::{Algorithm, Controller, Settings};

use crate::bbr_media::BbrMedia;
use crate::copa::Copa;
use crate::gcc_2013::{self, Gcc2013};
use crate::gcc_draft::GccDraft;
use crate::receiver::ReceiverEstimator;
use crate::scream_v2;

/// A congestion-control algorithm by name: one of the library, a historical one, or one of the
/// newest peers.
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
    /// `scream-v2-webrtc`: SCReAMv2 with the values of libwebrtc.
    ScreamV2Webrtc,
    /// `scream-v2-policer`: SCReAMv2 with the draft's guard against rate policers.
    ScreamV2Policer,
    /// `copa`: NSDI 2018, the base of Vidaptive.
    Copa,
    /// `bbr-media`: draft-ietf-ccwg-bbr for media.
    BbrMedia,
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

    /// What others run or publish today, besides the standards. They are compared on demand.
    const PEERS: [Self; 4] =
        [Self::ScreamV2Webrtc, Self::ScreamV2Policer, Self::Copa, Self::BbrMedia];

    /// The algorithms that `all` stands for, in the order of reports: without the newest peers.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        Self::ALL.into_iter()
    }

    /// The newest peers, in the order of reports.
    pub fn peers() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        Self::PEERS.into_iter()
    }

    /// Every algorithm that has a name: all, then the newest peers.
    pub fn named() -> impl DoubleEndedIterator<Item = Self> + Clone {
        Self::all().chain(Self::peers())
    }

    /// Whether it is one of the newest peers.
    pub fn is_peer(self) -> bool {
        Self::PEERS.contains(&self)
    }

    /// The library's algorithm; `None` for one that only the lab has.
    pub const fn of_library(self) -> Option<Algorithm> {
        match self {
            Self::Gcc => Some(Algorithm::Gcc),
            Self::GccDraft | Self::Gcc2013 => None,
            Self::ScreamV2Webrtc | Self::ScreamV2Policer | Self::Copa | Self::BbrMedia => None,
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
            Self::ScreamV2Webrtc => "scream-v2-webrtc",
            Self::ScreamV2Policer => "scream-v2-policer",
            Self::Copa => "copa",
            Self::BbrMedia => "bbr-media",
            of_library => of_library.of_library().expect("the others are the lab's").name(),
        }
    }

    /// How this algorithm uses ECN if `wanted` is requested, as [`Algorithm::ecn_mode`].
    pub fn ecn_mode(self, wanted: EcnMode) -> EcnMode {
        match (self, wanted) {
            // It treats each mark as a loss: GCC-D17.
            (Self::GccDraft, EcnMode::L4s) => EcnMode::Classic,
            // Its feedback reports losses and the receiver's estimate, but no marks.
            (Self::Gcc2013, _) => EcnMode::Off,
            // Neither has a rule for marks.
            (Self::Copa | Self::BbrMedia, _) => EcnMode::Off,
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
            Self::ScreamV2Webrtc => Box::new(scream_v2::webrtc(settings)),
            Self::ScreamV2Policer => Box::new(scream_v2::policer(settings)),
            Self::Copa => Box::new(Copa::new(settings)),
            Self::BbrMedia => Box::new(BbrMedia::new(settings)),
            _ => self.of_library().expect("the others are the lab's").build(settings),
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
    fn the_lab_has_each_algorithm_of_the_library_and_builds_the_same() {
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
