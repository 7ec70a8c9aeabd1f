//! One congestion control in two hands: the host's and the application's.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use weir::controller::Target;
use weir::{Bitrate, DataSize, Metrics, RateLimits, Timestamp};

use crate::Congestion;

/// What host and application share.
pub struct Shared {
    /// The path's congestion control.
    pub congestion: Congestion,
    /// The instant at which timestamps begin.
    origin: Instant,
    /// The newest time of the host.
    latest: Timestamp,
}

impl Shared {
    /// The time of an event of the host. It does not go back.
    #[inline]
    pub fn time(&mut self, now: Instant) -> Timestamp {
        self.latest = self.latest.max(self.exact_time(now));
        self.latest
    }

    /// The time of any instant, such as the send time by which a host names a packet.
    #[inline]
    pub fn exact_time(&self, instant: Instant) -> Timestamp {
        Timestamp::from_instant(self.origin, instant)
    }
}

/// The congestion control of one path as the application sees it. Clones are the same one. It is
/// `Clone`, `Debug`, `Send` and `Sync`, as hosts want their controllers, whatever controller is
/// inside.
///
/// Time is the host's: what the application tells counts from the host's last event.
#[derive(Clone)]
pub struct Control(Arc<Mutex<Shared>>);

impl Control {
    /// Time begins at `now`.
    pub fn new(now: Instant, congestion: Congestion) -> Self {
        let latest = Timestamp::ZERO;
        Self(Arc::new(Mutex::new(Shared { congestion, origin: now, latest })))
    }

    /// For the host's adapter: the state, locked.
    #[inline]
    pub fn host(&self) -> MutexGuard<'_, Shared> {
        // A panic elsewhere left nothing half done that counts here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the encoder may make; see [`Congestion::media_bitrate`].
    pub fn media_bitrate(&self) -> Bitrate {
        self.host().congestion.media_bitrate()
    }

    /// What the controller asks for, with the headers of IP and UDP.
    pub fn target(&self) -> Target {
        *self.host().congestion.target()
    }

    /// Why the target is what it is, and the controller's signals.
    pub fn metrics(&self) -> Metrics {
        self.host().congestion.metrics()
    }

    /// The most that the application could use now; see
    /// [`weir::Controller::set_desired_bitrate`].
    pub fn set_desired_bitrate(&self, desired: Option<Bitrate>) {
        let mut shared = self.host();
        let now = shared.latest;
        shared.congestion.set_desired_bitrate(now, desired);
    }

    /// The range of the target changes.
    pub fn set_limits(&self, limits: RateLimits) {
        let mut shared = self.host();
        let now = shared.latest;
        shared.congestion.set_limits(now, limits);
    }

    /// The application wrote `added` bytes, and `queued` of its bytes have not left. Hosts do not
    /// tell what waits in their streams, so without this call nobody knows.
    pub fn on_media_queued(&self, added: DataSize, queued: DataSize) {
        let mut shared = self.host();
        let now = shared.latest;
        shared.congestion.on_media_queued(now, added, queued);
    }

    /// Bytes of padding to send now, as DATAGRAM frames that nobody reads. Ask every 5 to 20 ms if
    /// the controller probes, as `gcc` does.
    pub fn take_padding(&self) -> DataSize {
        let mut shared = self.host();
        let now = shared.latest;
        shared.congestion.take_padding(now)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host().congestion.fmt(f)
    }
}
