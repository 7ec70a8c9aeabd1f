//! What was decided and why, for the host and for its log.

use core::fmt;

use weir::units::{Bitrate, DataSize, Timestamp};

use crate::track::TrackId;

/// A decision of a [`Subscriber`](crate::Subscriber) or an [`Allocator`](crate::Allocator).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// When it was made.
    pub at: Timestamp,
    /// The track that it is about; `None` for a probe, which is about the path.
    pub track: Option<TrackId>,
    /// What was decided.
    pub change: Change,
    /// Why.
    pub reason: Reason,
    /// What all pictures could take at that moment: the target less audio and repair.
    pub budget: Bitrate,
    /// What the decision needs: all pictures after it, or what is probed for.
    pub needed: Bitrate,
}

impl Decision {
    /// A decision, for hosts that decide something themselves and keep one log.
    pub const fn new(
        at: Timestamp,
        track: Option<TrackId>,
        change: Change,
        reason: Reason,
        budget: Bitrate,
        needed: Bitrate,
    ) -> Self {
        Self { at, track, change, reason, budget, needed }
    }
}

/// What was decided. Layers are places in [`TrackConfig::layers`](crate::TrackConfig::layers);
/// `None` is a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Another layer is wanted. It is forwarded as soon as it can be decoded.
    Choose {
        /// The layer wanted before.
        from: Option<usize>,
        /// The layer wanted now.
        to: Option<usize>,
    },
    /// The layer that is wanted is forwarded from this packet on.
    Switched {
        /// The stream that was forwarded before.
        from: Option<u8>,
        /// The stream that is forwarded now.
        to: u8,
    },
    /// Ask the publisher for a key frame of this stream.
    RequestKeyFrame {
        /// Number of the simulcast stream or spatial layer.
        stream: u8,
    },
    /// A better layer is not chosen.
    Refuse {
        /// The layer that was refused.
        layer: usize,
    },
    /// Nothing is forwarded until the key frame of the cheaper layer comes.
    Cut,
    /// Data is sent above the media, to learn whether the next layer fits.
    Probe {
        /// The rate of its packets.
        rate: Bitrate,
        /// What it sends, media included.
        size: DataSize,
    },
    /// A probe, or a burst of media, showed that this rate arrives.
    Proved {
        /// The rate.
        rate: Bitrate,
    },
    /// A probe showed that its rate does not arrive.
    Disproved {
        /// The rate at which its packets arrived.
        rate: Bitrate,
    },
}

/// Why something was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The host added or changed the track, or another one.
    Configured,
    /// The budget has had room for the layer for some time.
    Fits,
    /// The budget no longer has room for all layers, and this one is missed least.
    OverBudget,
    /// The publisher no longer sends the layer, or sends it again.
    LayerChanged,
    /// The track is not shown.
    Hidden,
    /// Not even the cheapest layers of all tracks fit.
    NoRoom,
    /// The budget is too small.
    BudgetTooSmall,
    /// There is room, but only since a moment ago.
    TooEarly,
    /// The layer was left for lack of room not long ago, and came back once already.
    Flapping,
    /// The stream can be decoded only from a key frame on.
    KeyFrameNeeded,
    /// The key frame came.
    KeyFrameArrived,
    /// The subscriber asked for a key frame.
    SubscriberAsked,
    /// Temporal layers, or streams of SVC, can be left out at once.
    FrameBoundary,
    /// The send queue is too long to wait for a key frame.
    QueueTooLong,
    /// Whether the next layer fits is not known.
    CapacityUnknown,
    /// The packets of a probe arrived at its rate.
    ProbeArrived,
    /// Media alone was sent fast enough, such as a key frame.
    MediaArrived,
    /// The packets of a probe were lost, or queued up.
    ProbeQueued,
}

impl Reason {
    /// Name in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Fits => "fits",
            Self::OverBudget => "over budget",
            Self::LayerChanged => "layer changed",
            Self::Hidden => "hidden",
            Self::NoRoom => "no room",
            Self::BudgetTooSmall => "budget too small",
            Self::TooEarly => "too early",
            Self::Flapping => "flapping",
            Self::KeyFrameNeeded => "key frame needed",
            Self::KeyFrameArrived => "key frame arrived",
            Self::SubscriberAsked => "subscriber asked",
            Self::FrameBoundary => "frame boundary",
            Self::QueueTooLong => "queue too long",
            Self::CapacityUnknown => "capacity unknown",
            Self::ProbeArrived => "probe arrived",
            Self::MediaArrived => "media arrived",
            Self::ProbeQueued => "probe queued",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        if let Some(TrackId(number)) = self.track {
            write!(f, "track {number}: ")?;
        }
        write!(f, "{:?} because {}", self.change, self.reason)?;
        write!(f, " (budget {}, needed {})", self.budget, self.needed)
    }
}
