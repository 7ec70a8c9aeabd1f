//! A controller's internal state, for traces and reports.

use core::fmt;
use core::ops::Deref;

use crate::units::{Bitrate, TimeDelta};

/// Declares the reasons; generates the enum, its list and its texts.
macro_rules! reasons {
    ($($(#[doc = $meaning:literal])+ $name:ident = $word:literal,)+) => {
        /// Why a target bitrate last changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[doc = $meaning])+ $name,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Name in traces and reports.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The meaning of the reason, as a sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }
    };
}

reasons! {
    /// No feedback has changed the target yet.
    Start = "start",
    /// Fast growth: no sign of congestion, capacity not known.
    RampUp = "ramp-up",
    /// Careful growth near the known capacity.
    Increase = "increase",
    /// The delay gradient says that the queue grows.
    OverUse = "over-use",
    /// The queuing delay is above the controller's target delay.
    QueuingDelay = "queuing delay",
    /// Packets were lost.
    Loss = "loss",
    /// Packets were marked Congestion Experienced.
    Ecn = "ECN",
    /// A probe found more capacity.
    Probe = "probe",
    /// The receiver set or lifted its limit.
    ReceiverLimit = "receiver limit",
    /// The coupled flows of the sender share their rate in another way.
    Coupled = "coupled",
    /// The sender's own queue is too long.
    SendQueue = "send queue",
    /// The media source sends less than the target allows.
    ApplicationLimited = "application-limited",
    /// A flow that does not react to delay keeps the queue full: the rate follows losses instead.
    Competing = "competing",
    /// The sender lets the queue drain for a moment, to measure the delay of the empty path.
    BaseTest = "base test",
    /// No feedback arrives.
    FeedbackLost = "feedback lost",
    /// The flow has most of a link that others want, and leaves room for them.
    GivingWay = "giving way",
    /// A policy outside the library, such as one that is being trained, chose another bitrate.
    Policy = "policy",
    /// The application changed the range of the target bitrate.
    Limits = "limits",
    /// The packets take another route.
    NewRoute = "new route",
}

/// Named internal values that decided the last change, as a slice of pairs. Each name contains the
/// unit.
///
/// ```
/// use weir::controller::Signals;
///
/// let signals = Signals::new([("gradient_ms", 0.25), ("threshold_ms", 12.5)]);
/// assert_eq!(signals[1], ("threshold_ms", 12.5));
/// ```
#[derive(Clone, Copy)]
pub struct Signals {
    values: [(&'static str, f64); Signals::CAPACITY],
    len: usize,
}

impl Signals {
    /// Maximum number of signals. Later versions may raise it.
    pub const CAPACITY: usize = 8;
    /// No signals.
    pub const NONE: Self = Self { values: [("", 0.0); Self::CAPACITY], len: 0 };

    /// Takes up to [`Signals::CAPACITY`] signals; more do not compile.
    pub const fn new<const N: usize>(signals: [(&'static str, f64); N]) -> Self {
        const { assert!(N <= Self::CAPACITY, "more signals than there is room for") };
        let mut all = Self { len: N, ..Self::NONE };
        let mut index = 0;
        while index < N {
            all.values[index] = signals[index];
            index += 1;
        }
        all
    }

    /// The first [`Signals::CAPACITY`] of these signals.
    pub fn first_of(signals: &[(&'static str, f64)]) -> Self {
        let len = signals.len().min(Self::CAPACITY);
        let mut all = Self { len, ..Self::NONE };
        all.values[..len].copy_from_slice(&signals[..len]);
        all
    }
}

impl Deref for Signals {
    type Target = [(&'static str, f64)];
    fn deref(&self) -> &Self::Target {
        &self.values[..self.len]
    }
}

impl PartialEq for Signals {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().copied()).finish()
    }
}

/// A snapshot of a controller's internals.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Metrics {
    /// Why the target bitrate last changed.
    pub reason: Reason,
    /// The controller's state, as its standard names it.
    pub state: &'static str,
    /// Round-trip time as the controller measures it. It includes the receiver's feedback interval.
    pub rtt: Option<TimeDelta>,
    /// Queuing delay as the controller estimates it.
    pub queuing_delay: Option<TimeDelta>,
    /// Loss ratio as the controller estimates it, 0.0..=1.0.
    pub loss_ratio: f64,
    /// Rate at which the receiver received data, computed from feedback.
    pub acknowledged_bitrate: Option<Bitrate>,
    /// Values specific to the algorithm.
    pub signals: Signals,
}

impl Metrics {
    /// Metrics with a reason and a state, but no measurements and no signals.
    pub const fn new(reason: Reason, state: &'static str) -> Self {
        Self {
            reason,
            state,
            rtt: None,
            queuing_delay: None,
            loss_ratio: 0.0,
            acknowledged_bitrate: None,
            signals: Signals::NONE,
        }
    }

    with! {
        with_rtt: rtt: Option<TimeDelta>,
        with_queuing_delay: queuing_delay: Option<TimeDelta>,
        with_loss_ratio: loss_ratio: f64,
        with_acknowledged_bitrate: acknowledged_bitrate: Option<Bitrate>,
        with_signals: signals: Signals,
    }
}
