//! What the newest peers measure alike: bytes in flight, delivered rate, round trips, silence.

mod delivered;
mod extreme;
mod flight;
mod reports;
mod silence;

pub(crate) use delivered::{Delivered, Round};
pub(crate) use extreme::{Extreme, RecentExtreme};
pub(crate) use flight::Flight;
pub(crate) use reports::Reports;
pub(crate) use silence::Silence;

use weir::units::{DataSize, TimeDelta};

/// Size of a full packet, in which the papers count.
pub(crate) const PACKET: DataSize = DataSize::from_bytes(1_200);
/// Round-trip time assumed before the first report.
pub(crate) const INITIAL_RTT: TimeDelta = TimeDelta::from_millis(200);
