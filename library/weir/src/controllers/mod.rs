//! The congestion controllers, one folder per standard, and their names.

mod clock_drift;
pub mod gcc;
mod longer_path;
pub mod nada;
mod rare_reports;
mod reported_packets;
pub mod scream;
mod scream_common;
pub mod scream_v2;
mod silence;
pub mod sluice;

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use crate::controller::{Controller, EcnMode, Settings};

/// A congestion-control algorithm by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// `gcc`: Google congestion control as Chromium runs it today.
    Gcc,
    /// `nada`: RFC 8698.
    Nada,
    /// `scream`: RFC 8298.
    Scream,
    /// `scream-v2`: draft-ietf-ccwg-rfc8298bis-screamv2.
    ScreamV2,
    /// `sluice`: Weir's own, described in `docs/reference/controllers/sluice.md`.
    Sluice,
}

impl Algorithm {
    const ALL: [Self; 5] = [Self::Gcc, Self::Nada, Self::Scream, Self::ScreamV2, Self::Sluice];

    /// All algorithms, in the order of reports.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        Self::ALL.into_iter()
    }

    /// The name on the command line and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Nada => "nada",
            Self::Scream => "scream",
            Self::ScreamV2 => "scream-v2",
            Self::Sluice => "sluice",
        }
    }

    /// How this algorithm uses ECN if `wanted` is requested. ECT(1) promises a reaction in
    /// proportion to the share of marks [RFC9331 §4.3]. An algorithm that treats each mark as a
    /// loss cannot keep that promise, so it uses ECT(0): GCC-D17, SCREAM-D12. Sender and controller
    /// must use the same mode, so both call this function.
    ///
    /// [RFC9331 §4.3]: https://www.rfc-editor.org/rfc/rfc9331#section-4.3
    pub const fn ecn_mode(self, wanted: EcnMode) -> EcnMode {
        match (self, wanted) {
            (Self::Gcc | Self::Scream, EcnMode::L4s) => EcnMode::Classic,
            (_, wanted) => wanted,
        }
    }

    /// A new controller with the standard's default parameters.
    pub fn build(self, settings: impl Into<Settings>) -> Box<dyn Controller + Send> {
        let settings = settings.into();
        let settings = Settings { ecn: self.ecn_mode(settings.ecn), ..settings };
        match self {
            Self::Gcc => Box::new(gcc::Gcc::new(settings)),
            Self::Nada => Box::new(nada::Nada::new(settings)),
            Self::Scream => Box::new(scream::Scream::new(settings)),
            Self::ScreamV2 => Box::new(scream_v2::ScreamV2::new(settings)),
            Self::Sluice => Box::new(sluice::Sluice::new(settings)),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error: no algorithm has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown controller; there are")?;
        Self::list(f)
    }
}

impl UnknownAlgorithm {
    fn list(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Algorithm::ALL.iter().try_for_each(|algorithm| write!(f, " {algorithm}"))
    }
}
impl core::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;
    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or(UnknownAlgorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // GCC-D17, SCREAM-D12
    #[test]
    fn l4s_is_for_controllers_whose_response_scales() {
        let l4s = Algorithm::ALL.into_iter().filter(|a| a.ecn_mode(EcnMode::L4s) == EcnMode::L4s);
        let scalable = [Algorithm::Nada, Algorithm::ScreamV2, Algorithm::Sluice];
        assert_eq!(l4s.collect::<alloc::vec::Vec<_>>(), scalable);
        for algorithm in Algorithm::ALL.into_iter() {
            assert_eq!(algorithm.ecn_mode(EcnMode::Classic), EcnMode::Classic);
        }
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.ecn_mode(EcnMode::Off), EcnMode::Off);
        }
    }
}
