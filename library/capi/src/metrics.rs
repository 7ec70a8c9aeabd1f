//! A controller's internal state, and why the target changed.

use core::ffi::c_char;

use weir::controller::{Metrics, Reason};

use crate::growing::{Growing, growing};
use crate::{WEIR_MAX_SIGNALS, WEIR_NAME_SIZE, WEIR_NO_TIME, WEIR_NO_VALUE};

/// Why a target bitrate changed. The numbers never change.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_reason {
    /// No feedback has changed the target yet.
    Start = 0,
    /// Fast growth: no sign of congestion, capacity not known.
    RampUp = 1,
    /// Careful growth near the known capacity.
    Increase = 2,
    /// The delay gradient says that the queue grows.
    OverUse = 3,
    /// The queuing delay is above the controller's target delay.
    QueuingDelay = 4,
    /// Packets were lost.
    Loss = 5,
    /// Packets were marked Congestion Experienced.
    Ecn = 6,
    /// A probe found more capacity.
    Probe = 7,
    /// The receiver set or lifted its limit.
    ReceiverLimit = 8,
    /// The coupled flows of the sender share their rate in another way.
    Coupled = 9,
    /// The sender's own queue is too long.
    SendQueue = 10,
    /// The media source sends less than the target allows.
    ApplicationLimited = 11,
    /// A flow that does not react to delay keeps the queue full: the rate follows losses instead.
    Competing = 12,
    /// The sender lets the queue drain for a moment, to measure the delay of the empty path.
    BaseTest = 13,
    /// No feedback arrives.
    FeedbackLost = 14,
    /// The flow has most of a link that others want, and leaves room for them.
    GivingWay = 15,
    /// A policy outside the library, such as one that is being trained, chose another bitrate.
    Policy = 16,
    /// The application changed the range of the target bitrate.
    Limits = 17,
    /// The packets take another route.
    NewRoute = 18,
    /// A reason that this header does not know. `reason_text` names it.
    Other = 255,
}

impl From<Reason> for weir_reason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Start => Self::Start,
            Reason::RampUp => Self::RampUp,
            Reason::Increase => Self::Increase,
            Reason::OverUse => Self::OverUse,
            Reason::QueuingDelay => Self::QueuingDelay,
            Reason::Loss => Self::Loss,
            Reason::Ecn => Self::Ecn,
            Reason::Probe => Self::Probe,
            Reason::ReceiverLimit => Self::ReceiverLimit,
            Reason::Coupled => Self::Coupled,
            Reason::SendQueue => Self::SendQueue,
            Reason::ApplicationLimited => Self::ApplicationLimited,
            Reason::Competing => Self::Competing,
            Reason::BaseTest => Self::BaseTest,
            Reason::GivingWay => Self::GivingWay,
            Reason::Policy => Self::Policy,
            Reason::Limits => Self::Limits,
            Reason::NewRoute => Self::NewRoute,
            Reason::FeedbackLost => Self::FeedbackLost,
            _ => Self::Other,
        }
    }
}

/// A value specific to an algorithm.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_signal {
    /// Its name, which contains the unit, such as `queuing_delay_ms`; ends with NUL.
    pub name: [c_char; WEIR_NAME_SIZE],
    /// The value.
    pub value: f64,
}

/// A snapshot of a controller's internals. Set `struct_size` to `sizeof(weir_metrics)` before the
/// call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_metrics {
    /// `sizeof(weir_metrics)`.
    pub struct_size: usize,
    /// Round-trip time as the controller measures it, in ns, including the receiver's feedback
    /// interval; `WEIR_NO_TIME` if unknown.
    pub rtt_ns: i64,
    /// Queuing delay as the controller estimates it, in ns; `WEIR_NO_TIME` if unknown.
    pub queuing_delay_ns: i64,
    /// Rate at which the receiver received data, in bit/s, computed from feedback; `WEIR_NO_VALUE`
    /// if unknown.
    pub acknowledged_bitrate_bps: u64,
    /// Loss ratio as the controller estimates it, 0 to 1.
    pub loss_ratio: f64,
    /// A `weir_reason`: why the target bitrate last changed.
    pub reason: u32,
    /// Number of elements of `signals` in use.
    pub signal_count: u32,
    /// The reason as text, such as `over-use`; ends with NUL.
    pub reason_text: [c_char; WEIR_NAME_SIZE],
    /// The controller's state, as its standard names it; ends with NUL.
    pub state: [c_char; WEIR_NAME_SIZE],
    /// Values specific to the algorithm.
    pub signals: [weir_signal; WEIR_MAX_SIGNALS],
}

const NO_SIGNAL: weir_signal = weir_signal { name: [0; WEIR_NAME_SIZE], value: 0.0 };

growing!(weir_metrics, signals: [weir_signal; WEIR_MAX_SIGNALS], Self {
    struct_size: size_of::<Self>(),
    rtt_ns: WEIR_NO_TIME,
    queuing_delay_ns: WEIR_NO_TIME,
    acknowledged_bitrate_bps: WEIR_NO_VALUE,
    loss_ratio: 0.0,
    reason: weir_reason::Start as u32,
    signal_count: 0,
    reason_text: [0; WEIR_NAME_SIZE],
    state: [0; WEIR_NAME_SIZE],
    signals: [NO_SIGNAL; WEIR_MAX_SIGNALS],
});

/// Copies a text, shortened if it is too long, with a NUL at its end.
fn name(text: &str) -> [c_char; WEIR_NAME_SIZE] {
    let mut name = [0; WEIR_NAME_SIZE];
    let bytes = text.bytes().take(WEIR_NAME_SIZE - 1);
    for (to, from) in name.iter_mut().zip(bytes) {
        *to = from as c_char;
    }
    name
}

impl From<&Metrics> for weir_metrics {
    fn from(metrics: &Metrics) -> Self {
        let time = |time: Option<weir::TimeDelta>| time.map_or(WEIR_NO_TIME, |t| t.as_nanos());
        let bitrate = metrics.acknowledged_bitrate;
        let mut raw = Self {
            rtt_ns: time(metrics.rtt),
            queuing_delay_ns: time(metrics.queuing_delay),
            acknowledged_bitrate_bps: bitrate.map_or(WEIR_NO_VALUE, |bitrate| bitrate.as_bps()),
            loss_ratio: metrics.loss_ratio,
            reason: weir_reason::from(metrics.reason) as u32,
            reason_text: name(metrics.reason.as_str()),
            state: name(metrics.state),
            ..Self::defaults()
        };
        for (to, &(signal, value)) in raw.signals.iter_mut().zip(metrics.signals.iter()) {
            *to = weir_signal { name: name(signal), value };
            raw.signal_count += 1;
        }
        raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::controller::Signals;

    #[test]
    fn every_reason_has_a_number_of_its_own_and_its_text_fits() {
        let numbers: Vec<u32> =
            Reason::ALL.iter().map(|&reason| weir_reason::from(reason) as u32).collect();
        assert_eq!(numbers, (0..Reason::ALL.len() as u32).collect::<Vec<_>>());
        for reason in Reason::ALL {
            assert!(reason.as_str().len() < WEIR_NAME_SIZE, "{reason:?}");
        }
    }

    #[test]
    fn there_is_room_for_all_signals() {
        const { assert!(Signals::CAPACITY <= WEIR_MAX_SIGNALS) };
    }

    #[test]
    fn a_long_name_is_shortened_and_ends_with_nul() {
        let long = name(&"x".repeat(100));
        assert_eq!(long[WEIR_NAME_SIZE - 1], 0);
        assert!(long[..WEIR_NAME_SIZE - 1].iter().all(|&byte| byte == b'x' as c_char));
    }
}
