//! When reports are due that no packet asks for.

use weir::units::TimeDelta;
use weir_net::seed::Stream;

/// Mean time between regular reports. RTP/AVPF has no least interval of its own [RFC4585 §3.4]; what
/// endpoints use by custom is this second for video.
const MEAN: TimeDelta = TimeDelta::from_secs(1);

/// Intervals of regular RTCP reports, spread by chance, so that those of several ends do not fall
/// together [RFC3550 §6.3.1].
#[derive(Clone, Debug)]
pub(super) struct RtcpInterval(Stream);

impl RtcpInterval {
    pub(super) const fn new(chance: Stream) -> Self {
        Self(chance)
    }

    /// Between half and one and a half times the mean.
    pub(super) fn draw(&mut self) -> TimeDelta {
        MEAN * (0.5 + self.0.uniform())
    }
}
