//! The interface between a congestion controller and the sender that drives it.

mod forward;
mod metrics;

use alloc::boxed::Box;
use core::fmt;

pub use metrics::{Metrics, Reason, Signals};

pub use crate::feedback::ProbeId;
use crate::feedback::{Ecn, FeedbackReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A sender-side congestion controller: a pure state machine.
///
/// To drive a controller, call the `on_*` handlers with a `now` that never goes backwards. Read
/// [`target`] after each call. Call [`on_timeout`] once the time given by [`next_timeout`] has
/// passed. The same calls give the same results.
///
/// [`target`]: Controller::target
/// [`on_timeout`]: Controller::on_timeout
/// [`next_timeout`]: Controller::next_timeout
pub trait Controller {
    /// The media source put `added` bytes into the send queue, which now contains `queued` bytes.
    /// Both sizes count the same headers as [`SentPacket::size`].
    fn on_media_queued(&mut self, _now: Timestamp, _added: DataSize, _queued: DataSize) {}

    /// A packet left the pacer.
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket);

    /// A feedback report arrived from the receiver.
    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport);

    /// A receiver report gave this round-trip time of the path [RFC3550 §6.4.1]. Feedback may take
    /// longer than that, because the receiver waits before it sends feedback. Only controllers that
    /// distinguish the two use this value.
    ///
    /// [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
    fn on_round_trip_time(&mut self, _now: Timestamp, _rtt: TimeDelta) {}

    /// The receiver set (REMB) or lifted (`None`) an upper limit. From now on the target bitrate is
    /// at most this limit, but never below the minimum of the [`RateLimits`].
    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>);

    /// The application changed the range of the target bitrate, for instance because an encoder was
    /// added. The target moves only as far as the new limits demand: what is known of the path
    /// stays known. The start bitrate of the new limits counts from the next new route.
    fn set_limits(&mut self, now: Timestamp, limits: RateLimits);

    /// The most that the source could use now, for instance the sum of the layers that exist;
    /// `None` for an unknown amount. A controller that probes does not probe far above it, and
    /// probes when it rises while the source is application-limited. The target may be higher.
    ///
    /// A controller that ignores this call learns only from what is sent.
    fn set_desired_bitrate(&mut self, _now: Timestamp, _desired: Option<Bitrate>) {}

    /// Packets take another route from now on, for instance because the device left a Wi-Fi
    /// network. What was measured on the old route is forgotten, above all its base delay, and the
    /// target is the start bitrate again. Limits stay. Feedback on packets of the old route must
    /// not be passed on; [`MediaSender`](crate::MediaSender) takes care of that.
    ///
    /// A controller that ignores this call finds out by itself.
    fn on_route_change(&mut self, _now: Timestamp) {}

    /// The coupled flows of this sender ([`crate::coupled`]) gave this flow a new share of their
    /// total rate. The controller continues from this target bitrate.
    ///
    /// A controller that ignores this call cannot be coupled.
    fn on_shared_rate(&mut self, _now: Timestamp, _share: Bitrate) {}

    /// The time given by [`Controller::next_timeout`] has passed.
    fn on_timeout(&mut self, now: Timestamp);

    /// When [`Controller::on_timeout`] is due, or `None`. After that call, this is later than its
    /// `now`, or [`Timestamp::MAX`], which means never.
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

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        (**self).set_limits(now, limits);
    }

    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        (**self).set_desired_bitrate(now, desired);
    }

    fn on_route_change(&mut self, now: Timestamp) {
        (**self).on_route_change(now);
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
    /// `burst_time`: the default burst [GCC §4].
    ///
    /// [GCC §4]: https://datatracker.ietf.org/doc/html/draft-ietf-rmcat-gcc-02#section-4
    pub const BURST: Burst = Burst::Ahead(TimeDelta::from_millis(5));

    /// A target with these two rates, the default burst, and no window, padding or probe.
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
    /// Target bitrate after congestion window push-back: lower than `bitrate` while too much is in
    /// flight, equal to it otherwise. Sources that can drop frames should follow it.
    pub source_bitrate: Bitrate,
    /// Rate at which the pacer releases queued packets.
    pub pacing_rate: Bitrate,
    /// How much may be sent ahead of the pacing rate.
    pub burst: Burst,
    /// The congestion window and its unused part; `None` for a purely rate-based controller.
    pub window: Option<Window>,
    /// Padding is sent while the send rate is below this rate. Zero means no padding.
    pub padding_rate: Bitrate,
    /// A packet burst that measures the capacity of the path. The sender starts it when a new id
    /// appears. It is complete when at least `size` bytes in at least `packets` packets have been
    /// sent.
    pub probe: Option<Probe>,
}

/// How far sending may run ahead of the pacing rate, as a duration at that rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Burst {
    /// Sending may always be this far ahead. Once the burst is used up, a queue leaves packet by
    /// packet.
    Ahead(TimeDelta),
    /// After a burst, wait until the pacing budget has recovered. A queue then leaves burst by
    /// burst.
    Whole(TimeDelta),
}

/// A burst of packets sent at its own rate: queued media first, then padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Probe {
    /// Unique among the probes of this controller.
    pub id: ProbeId,
    /// Rate at which the pacer releases the probe's packets.
    pub rate: Bitrate,
    /// Minimum number of bytes.
    pub size: DataSize,
    /// Minimum number of packets.
    pub packets: u32,
}

impl Probe {
    /// A probe of at least `size` bytes in at least `packets` packets, sent at `rate`.
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
    /// Bytes that may be sent now. Any packet may leave while this is above zero, even a larger
    /// one.
    pub available: DataSize,
}

impl Window {
    /// A window of this size, of which `available` bytes are unused.
    pub const fn new(congestion_window: DataSize, available: DataSize) -> Self {
        Self { congestion_window, available }
    }
}

/// The range of the target bitrate, and its start value.
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

/// Error of [`RateLimits::new`]: limits must satisfy `0 < min <= start <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsError;

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bitrate limits must satisfy 0 < min <= start <= max")
    }
}
impl core::error::Error for LimitsError {}

impl RateLimits {
    /// Limits of the target bitrate.
    ///
    /// # Errors
    /// Unless `0 < min <= start <= max`.
    pub fn new(min: Bitrate, start: Bitrate, max: Bitrate) -> Result<Self, LimitsError> {
        if min == Bitrate::ZERO || min > start || start > max {
            return Err(LimitsError);
        }
        Ok(Self { min, start, max })
    }
    /// Limits with the usual start bitrate, 300 kbit/s, or what is nearest to it in the range.
    ///
    /// # Errors
    /// Unless `0 < min <= max`.
    pub fn between(min: Bitrate, max: Bitrate) -> Result<Self, LimitsError> {
        let start = Bitrate::from_kbps(300);
        Self::new(min, if start < min { min } else { start.min(max) }, max)
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
    /// The bitrate, clamped to the limits.
    pub fn clamp(&self, bitrate: Bitrate) -> Bitrate {
        bitrate.clamp(self.min, self.max)
    }
    /// The bitrate, reduced to the receiver's limit, but not below the minimum.
    pub fn cap(&self, bitrate: Bitrate, receiver_limit: Option<Bitrate>) -> Bitrate {
        receiver_limit.map_or(bitrate, |limit| bitrate.min(limit.max(self.min)))
    }
}

/// Configuration of a controller.
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
    /// ECN codepoint of the sent packets. It also decides what a mark means.
    pub ecn: EcnMode,
    /// Weight relative to other flows at the bottleneck. Must be above zero; 1 is usual.
    pub priority: f64,
    /// Enables the controller's documented deviation for paths with random packet loss, if it has
    /// one.
    pub tolerate_random_loss: bool,
    /// Enables the controller's documented deviation against starvation by loss-based flows, if it
    /// has one.
    pub compete_with_tcp: bool,
    /// Whether a controller that probes repeats its probes while the source sends less than the
    /// target. Browsers turn this off for cameras (GOOGCC-D6).
    pub probe_when_limited: bool,
    /// The longest burst in which packets leave, for a controller that sends in bursts; `None` for
    /// the one that its document names. A burst at the rate of a fast stream may be longer than
    /// the buffer of a switch: `gcc` has 40 ms (GOOGCC-D8).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub burst: Option<TimeDelta>,
}

impl Settings {
    /// These limits, no ECN, priority 1, no optional deviations, repeated probes.
    pub const fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            ecn: EcnMode::Off,
            priority: 1.0,
            tolerate_random_loss: false,
            compete_with_tcp: false,
            probe_when_limited: true,
            burst: None,
        }
    }

    with! {
        with_limits: limits: RateLimits,
        with_ecn: ecn: EcnMode,
        with_priority: priority: f64,
        with_tolerate_random_loss: tolerate_random_loss: bool,
        with_compete_with_tcp: compete_with_tcp: bool,
        with_probe_when_limited: probe_when_limited: bool,
        with_burst: burst: Option<TimeDelta>,
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
    /// Packets are Not-ECT: queues drop them instead of marking them.
    #[default]
    Off,
    /// Packets are ECT(0): a mark means the same as a loss [RFC3168 §5].
    ///
    /// [RFC3168 §5]: https://www.rfc-editor.org/rfc/rfc3168#section-5
    Classic,
    /// Packets are ECT(1): marks are frequent, and the controller reacts to the share of marked
    /// packets [RFC9331 §4].
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
    /// The ECN codepoint of sent packets.
    pub const fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            Self::Classic => Ecn::Ect0,
            Self::L4s => Ecn::Ect1,
        }
    }
}
