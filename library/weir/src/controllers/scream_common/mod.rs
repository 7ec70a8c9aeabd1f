//! Measurements that both versions of SCReAM share: [SCREAM §4.1.2] and [SCREAMV2 §4.1].
//!
//! The second version repeats these sections of the first. Where neither text specifies a detail,
//! the choice made here is listed as a deviation of both controllers.

mod bytes_in_flight;
mod delay_target;
mod loss_events;
mod lost_packets;
mod queuing_delay;
mod silence;
#[cfg(test)]
pub(super) mod testing;

pub(super) use bytes_in_flight::{Acknowledgement, BytesInFlight};
pub(super) use delay_target::DelayTarget;
pub(super) use loss_events::LossEventRate;
pub(super) use lost_packets::LostPackets;
pub(super) use queuing_delay::{INITIAL_RTT, QueuingDelay, RTT_MAX, SmoothedRtt};
pub(super) use silence::Silence;

use crate::units::Bitrate;

/// `MSS`: maximum segment size, bytes [SCREAM §4.1.1.1] [SCREAMV2 §4.2.2].
pub(super) const MSS: f64 = 1000.0;
/// `RATE_PACE_MIN`: minimum pacing rate, and the send rate during silence (SCREAM-D2, SCREAMV2-D2)
/// [SCREAM §4.1.1.1] [SCREAMV2 §4.3.2].
pub(super) const RATE_PACE_MIN: Bitrate = Bitrate::from_kbps(50);
