//! What a run of the lab takes as its controller.

use std::fmt;

use weir::controller::EcnMode;
use weir::{Algorithm, Controller, ControllerFactory, Settings};

use crate::algorithm::LabAlgorithm;
use crate::receiver::ReceiverEstimator;

/// Builds the two halves of a controller: at the sender, and for some at the receiver.
///
/// Convert an algorithm of the library or of the lab, or a [`ControllerFactory`] of your own, with
/// `into`.
#[derive(Clone, PartialEq)]
pub enum LabController {
    /// One that the lab knows by name.
    Known(LabAlgorithm),
    /// Your own.
    Own(ControllerFactory),
}

impl LabController {
    /// The name in records and reports.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(algorithm) => algorithm.name(),
            Self::Own(factory) => factory.name(),
        }
    }

    /// Whether it is one of the newest peers, which `all` leaves out.
    pub fn is_peer(&self) -> bool {
        matches!(self, Self::Known(algorithm) if algorithm.is_peer())
    }

    /// Whether only the lab has it: no product embeds it.
    pub fn is_lab_only(&self) -> bool {
        matches!(self, Self::Known(algorithm) if algorithm.of_library().is_none())
    }

    /// How its controllers use ECN if `wanted` is requested.
    pub fn ecn_mode(&self, wanted: EcnMode) -> EcnMode {
        match self {
            Self::Known(algorithm) => algorithm.ecn_mode(wanted),
            Self::Own(factory) => factory.ecn_mode(wanted),
        }
    }

    /// A new controller. Its settings contain the ECN mode that it uses, not the requested one.
    pub fn build(&self, settings: impl Into<Settings>) -> Box<dyn Controller + Send> {
        match self {
            Self::Known(algorithm) => algorithm.build(settings),
            Self::Own(factory) => factory.build(settings),
        }
    }

    /// A new receiver's half, for controllers that have one.
    pub fn build_receiver(&self) -> Option<Box<dyn ReceiverEstimator + Send>> {
        match self {
            Self::Known(algorithm) => algorithm.build_receiver(),
            Self::Own(_) => None,
        }
    }
}

impl From<LabAlgorithm> for LabController {
    fn from(algorithm: LabAlgorithm) -> Self {
        Self::Known(algorithm)
    }
}

impl From<Algorithm> for LabController {
    fn from(algorithm: Algorithm) -> Self {
        Self::Known(algorithm.into())
    }
}

impl From<ControllerFactory> for LabController {
    fn from(factory: ControllerFactory) -> Self {
        Self::Own(factory)
    }
}

impl From<&Self> for LabController {
    fn from(controller: &Self) -> Self {
        controller.clone()
    }
}

impl fmt::Debug for LabController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LabController").field(&self.name()).finish()
    }
}
