//! The contract between a congestion controller and the sender that drives it.

mod metrics;

use alloc::boxed::Box;
use core::fmt;

pub use metrics::{Metrics, Reason, Signals};

pub use crate::feedback::ProbeId;
use crate::feedback::{Ecn, FeedbackReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A sender-side congestion controller: a pure state machine.
///
/// Drive it so: call the `on_*` handlers with a `now` that never goes backwards, read [`target`] after
/// each of them, and call [`on_timeout`] once the time given by [`next_timeout`] has passed. Equal
/// calls give equal results.
///
/// [`target`]: Controller::target
/// [`on_timeout`]: Controller::on_timeout
/// [`next_timeout`]: Controller::next_timeout
pub trait Controller {
    /// The media source put `added` bytes into the send queue, which now holds `queued` bytes.
    /// Both count as the packets will: see [`SentPacket::size`].
    fn on_media_queued(&mut self, _now: Timestamp, _added: DataSize, _queued: DataSize) {}

    /// A packet left the pacer.
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket);

    /// A feedback report arrived from the receiver.
    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport);

    /// A receiver report measured this round-trip time of the path [RFC3550 §6.4.1]; feedback takes longer,
    /// since the receiver waits before it sends some. For controllers that tell the two apart.
    ///
    /// [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
    fn on_round_trip_time(&mut self, _now: Timestamp, _rtt: TimeDelta) {}

    /// The receiver says what it wants at most (REMB); `None` takes that back. It caps the target
    /// bitrate from now on, down to the lowest that the limits allow.
    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>);

    /// Another flow of the same sender moved this one's share of their rate ([`crate::coupled`]): the
    /// controller goes on from this target bitrate.
    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate);

    /// The time given by [`Controller::next_timeout`] has passed.
    fn on_timeout(&mut self, now: Timestamp);

    /// When [`Controller::on_timeout`] is due, if ever. After that call it lies later than its `now`.
    fn next_timeout(&self) -> Option<Timestamp>;

    /// What the sender should do now.
    fn target(&self) -> Target;

    /// The internal signals, for traces and reports only.
    fn metrics(&self) -> Metrics;
}

impl<C: Controller + ?Sized> Controller for Box<C> {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        (**self).on_media_queued(now, added, queued);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        (**self).on_packet_sent(now, packet);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        (**self).on_feedback(now, report);
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        (**self).on_round_trip_time(now, rtt);
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        (**self).on_receiver_limit(now, limit);
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        (**self).on_shared_rate(now, share);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        (**self).on_timeout(now);
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        (**self).next_timeout()
    }

    fn target(&self) -> Target {
        (**self).target()
    }

    fn metrics(&self) -> Metrics {
        (**self).metrics()
    }
}

impl Target {
    /// `burst_time`: the burst of a controller that does not ask for another one [GCC §4].
    ///
    /// [GCC §4]: https://datatracker.ietf.org/doc/html/draft-ietf-rmcat-gcc-02#section-4
    pub const BURST: Burst = Burst::Ahead(TimeDelta::from_millis(5));

    /// A target of two rates alone: no window, no padding, no probe.
    pub const fn new(bitrate: Bitrate, pacing_rate: Bitrate) -> Self {
        Self {
            bitrate,
            source_bitrate: bitrate,
            pacing_rate,
            burst: Self::BURST,
            window: None,
            padding_rate: Bitrate::ZERO,
            probe: None,
        }
    }

    with! {
        with_source_bitrate: source_bitrate: Bitrate,
        with_burst: burst: Burst,
        with_window: window: Option<Window>,
        with_padding_rate: padding_rate: Bitrate,
        with_probe: probe: Option<Probe>,
    }
}

/// What a controller asks of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Target {
    /// Bitrate the media source should produce, headers included (see [`SentPacket::size`]).
    /// Always within the [`RateLimits`].
    pub bitrate: Bitrate,
    /// What is left of it while too much is in flight: a source that can leaves frames out. The bitrate
    /// itself at all other times.
    pub source_bitrate: Bitrate,
    /// Rate at which the pacer releases queued packets.
    pub pacing_rate: Bitrate,
    /// What may leave ahead of that rate.
    pub burst: Burst,
    /// The congestion window and what is left of it; `None` for a purely rate-based controller.
    pub window: Option<Window>,
    /// Padding fills what the send rate lacks to this rate; zero for none.
    pub padding_rate: Bitrate,
    /// A burst by which the controller wants to learn what the path carries. The sender starts it when
    /// it sees a new id, and is done with it once `size` has left in at least `packets` packets.
    pub probe: Option<Probe>,
}

/// How packets may leave ahead of the pacing rate, by what it allows in this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Burst {
    /// Always, so that a queue leaves packet by packet once the burst is used up.
    Ahead(TimeDelta),
    /// Then not until all that left is paid off, so that a queue leaves burst by burst.
    Whole(TimeDelta),
}

/// A burst of packets at a rate of its own, media first, then padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Probe {
    /// Tells it from all others of this controller.
    pub id: ProbeId,
    /// Rate at which its packets leave.
    pub rate: Bitrate,
    /// Bytes that it takes at least.
    pub size: DataSize,
    /// Packets that it takes at least.
    pub packets: u32,
}

impl Probe {
    /// A probe at this rate of at least so many bytes in at least so many packets.
    pub const fn new(id: ProbeId, rate: Bitrate, size: DataSize, packets: u32) -> Self {
        Self { id, rate, size, packets }
    }
}

/// A limit on the bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Window {
    /// Bytes that may be in flight.
    pub congestion_window: DataSize,
    /// Bytes that may be sent now; a packet may leave while this is not zero.
    pub available: DataSize,
}

impl Window {
    /// A window of which this much is left.
    pub const fn new(congestion_window: DataSize, available: DataSize) -> Self {
        Self { congestion_window, available }
    }
}

/// The range a target bitrate moves in, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "crate::serde_impls::AnyRateLimits")
)]
pub struct RateLimits {
    min: Bitrate,
    start: Bitrate,
    max: Bitrate,
}

/// Why limits were refused: they must satisfy `0 < min <= start <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsError;

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bitrate limits must satisfy 0 < min <= start <= max")
    }
}
impl core::error::Error for LimitsError {}

impl RateLimits {
    /// Limits with `0 < min <= start <= max`.
    pub fn new(min: Bitrate, start: Bitrate, max: Bitrate) -> Result<Self, LimitsError> {
        if min == Bitrate::ZERO || min > start || start > max {
            return Err(LimitsError);
        }
        Ok(Self { min, start, max })
    }
    /// The lowest target bitrate.
    pub const fn min(&self) -> Bitrate {
        self.min
    }
    /// The target bitrate before the first feedback.
    pub const fn start(&self) -> Bitrate {
        self.start
    }
    /// The highest target bitrate.
    pub const fn max(&self) -> Bitrate {
        self.max
    }
    /// The bitrate moved into the limits.
    pub fn clamp(&self, bitrate: Bitrate) -> Bitrate {
        bitrate.clamp(self.min, self.max)
    }
    /// The bitrate cut to what the receiver allows, but not below the lowest.
    pub fn cap(&self, bitrate: Bitrate, receiver_limit: Option<Bitrate>) -> Bitrate {
        receiver_limit.map_or(bitrate, |limit| bitrate.min(limit.max(self.min)))
    }
}

/// What a product tells a controller before the first packet.
///
/// ```
/// use weir::controller::{EcnMode, Settings};
/// use weir::{Bitrate, RateLimits};
///
/// let kbps = Bitrate::from_kbps;
/// let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500))?;
/// let settings = Settings::new(limits).with_ecn(EcnMode::Classic).with_priority(2.0);
/// assert_eq!(settings.priority, 2.0);
/// # Ok::<(), weir::controller::LimitsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "crate::serde_impls::AnySettings")
)]
#[non_exhaustive]
pub struct Settings {
    /// Range of the target bitrate.
    pub limits: RateLimits,
    /// What the sender puts into the ECN bits of its packets, and so what a mark means.
    pub ecn: EcnMode,
    /// Weight against the other flows of a bottleneck, above zero; 1 is usual.
    pub priority: f64,
    /// Switches on the controller's documented deviation for paths that lose packets at random.
    pub tolerate_random_loss: bool,
    /// Switches on the controller's documented deviation against starvation by loss-based flows, where
    /// it has one.
    pub compete_with_tcp: bool,
    /// Whether a controller that probes does so again and again while the source makes less than it
    /// may; browsers leave it out for cameras (GOOGCC-D6).
    pub probe_when_limited: bool,
}

impl Settings {
    /// These limits, no ECN, priority 1, the standard's response to loss.
    pub const fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            ecn: EcnMode::Off,
            priority: 1.0,
            tolerate_random_loss: false,
            compete_with_tcp: false,
            probe_when_limited: true,
        }
    }

    with! {
        with_limits: limits: RateLimits,
        with_ecn: ecn: EcnMode,
        with_priority: priority: f64,
        with_tolerate_random_loss: tolerate_random_loss: bool,
        with_compete_with_tcp: compete_with_tcp: bool,
        with_probe_when_limited: probe_when_limited: bool,
    }
}

/// How a sender uses ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum EcnMode {
    /// Packets are Not-ECT: queues drop them instead of marking.
    #[default]
    Off,
    /// Packets are ECT(0): a mark weighs as a loss does [RFC3168 §5].
    ///
    /// [RFC3168 §5]: https://www.rfc-editor.org/rfc/rfc3168#section-5
    Classic,
    /// Packets are ECT(1): marks are frequent, and their share counts [RFC9331 §4].
    ///
    /// [RFC9331 §4]: https://www.rfc-editor.org/rfc/rfc9331#section-4
    L4s,
}

impl From<RateLimits> for Settings {
    fn from(limits: RateLimits) -> Self {
        Self::new(limits)
    }
}

impl EcnMode {
    /// The codepoint of the packets.
    pub const fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            Self::Classic => Ecn::Ect0,
            Self::L4s => Ecn::Ect1,
        }
    }
}
