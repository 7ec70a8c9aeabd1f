//! What a finding means for those in the call.

use super::{Evidence, Refusal};

/// What a finding means for those in the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// There was no call, or it broke off.
    NoCall,
    /// It made the call worse.
    Cause,
    /// People saw or heard it, whatever its cause.
    Effect,
    /// People may have wanted it: a mute, a camera that is off.
    Choice,
    /// It did no harm that is known.
    Remark,
}

impl Evidence {
    /// What it means by itself. What else was found may change it.
    pub fn meaning(&self) -> Meaning {
        match self {
            Self::ConnectionFailed(_) | Self::NeverConnected(_) => Meaning::NoCall,
            Self::Interruption
            | Self::NoTurnServer { .. }
            | Self::Stall { .. }
            | Self::StoodStill { .. }
            | Self::OneWay { is_begin: false, .. }
            | Self::Hole { was_asleep: true, .. }
            | Self::Capacity(_)
            | Self::Bandwidth { .. }
            | Self::Pauses { .. }
            | Self::Spikes { .. }
            | Self::Loss { .. }
            | Self::RandomLoss { .. }
            | Self::Delay { .. }
            | Self::LossRule { .. }
            | Self::Recovery(_)
            | Self::StartUp(_)
            | Self::Underestimate(_)
            | Self::PictureSize(_)
            | Self::NotEncoded { .. }
            | Self::Processor { .. }
            | Self::Decoder { .. }
            | Self::Source(_)
            | Self::FarLoss { .. }
            | Self::SmallPicture { .. }
            | Self::FewFrames { .. } => Meaning::Cause,
            Self::NotDecoded { .. }
            | Self::Late { .. }
            | Self::Freeze { .. }
            | Self::Concealment(_) => Meaning::Effect,
            // The tone before someone answers is a way that only begins so.
            Self::OneWay { is_begin: true, .. }
            | Self::StreamEnds { .. }
            | Self::NotSent
            | Self::SilentSource
            | Self::SilentSound
            | Self::NothingReceived { .. } => Meaning::Choice,
            Self::Refused(refusal) => refusal.meaning(),
            Self::Restart
            | Self::ServerError(_)
            | Self::Path(_)
            | Self::PathChange(_)
            | Self::Hole { was_asleep: false, .. }
            | Self::LateBegin { .. } => Meaning::Remark,
        }
    }
}

impl Refusal {
    /// A browser takes no candidate of a form that it does not know, and needs none of them.
    fn meaning(&self) -> Meaning {
        if self.is_of_candidate() { Meaning::Remark } else { Meaning::Cause }
    }
}
