//! What a controller asks of the sender.

use weir::controller::{Burst, ProbeId, Target};

use crate::growing::{Growing, growing};
use crate::{WEIR_NO_PROBE, WEIR_NO_VALUE};

/// How bursts of a queue follow each other.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_burst {
    /// Sending may always be ahead of the pacing rate by the burst time. Once it is used up, a
    /// queue leaves packet by packet.
    Ahead = 0,
    /// After a burst, wait until the pacing budget has recovered. A queue leaves burst by burst.
    Whole = 1,
}

/// What the sender should do now. Set `struct_size` to `sizeof(weir_target)` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_target {
    /// `sizeof(weir_target)`.
    pub struct_size: usize,
    /// Bitrate of the media, headers included, in bit/s. Always within the limits.
    pub bitrate_bps: u64,
    /// The same after congestion window push-back, in bit/s: lower while too much is in flight. For
    /// encoders that can drop frames.
    pub source_bitrate_bps: u64,
    /// Rate at which queued packets leave, in bit/s.
    pub pacing_rate_bps: u64,
    /// How far sending may run ahead of the pacing rate, in ns at that rate.
    pub burst_time_ns: i64,
    /// Bytes that may be in flight; `WEIR_NO_VALUE` if the controller has no window.
    pub congestion_window_bytes: u64,
    /// Bytes that may be sent now; `WEIR_NO_VALUE` if the controller has no window. Any packet may
    /// leave while this is above zero.
    pub available_bytes: u64,
    /// Padding is sent while the send rate is below this rate, in bit/s. Zero means no padding.
    pub padding_rate_bps: u64,
    /// Number of the probe to send; `WEIR_NO_PROBE` if there is none. It starts when a new number
    /// appears.
    pub probe_id: u64,
    /// Rate of the probe's packets, in bit/s.
    pub probe_rate_bps: u64,
    /// Minimum number of bytes of the probe.
    pub probe_size_bytes: u64,
    /// Minimum number of packets of the probe.
    pub probe_packets: u32,
    /// A `weir_burst`.
    pub burst: u32,
}

growing!(weir_target, burst: u32, Self {
    struct_size: size_of::<Self>(),
    bitrate_bps: 0,
    source_bitrate_bps: 0,
    pacing_rate_bps: 0,
    burst_time_ns: 0,
    congestion_window_bytes: WEIR_NO_VALUE,
    available_bytes: WEIR_NO_VALUE,
    padding_rate_bps: 0,
    probe_id: WEIR_NO_PROBE,
    probe_rate_bps: 0,
    probe_size_bytes: 0,
    probe_packets: 0,
    burst: weir_burst::Ahead as u32,
});

/// The number of a probe as the header counts: from 1.
pub(crate) fn number_of(probe: Option<ProbeId>) -> u64 {
    probe.map_or(WEIR_NO_PROBE, |id| u64::from(id.0) + 1)
}

impl From<&Target> for weir_target {
    fn from(target: &Target) -> Self {
        let (burst, burst_time) = match target.burst {
            Burst::Ahead(time) => (weir_burst::Ahead, time),
            Burst::Whole(time) => (weir_burst::Whole, time),
        };
        let mut raw = Self {
            bitrate_bps: target.bitrate.as_bps(),
            source_bitrate_bps: target.source_bitrate.as_bps(),
            pacing_rate_bps: target.pacing_rate.as_bps(),
            burst_time_ns: burst_time.as_nanos(),
            padding_rate_bps: target.padding_rate.as_bps(),
            burst: burst as u32,
            ..Self::defaults()
        };
        if let Some(window) = target.window {
            raw.congestion_window_bytes = window.congestion_window.as_bytes();
            raw.available_bytes = window.available.as_bytes();
        }
        if let Some(probe) = target.probe {
            raw.probe_id = number_of(Some(probe.id));
            raw.probe_rate_bps = probe.rate.as_bps();
            raw.probe_size_bytes = probe.size.as_bytes();
            raw.probe_packets = probe.packets;
        }
        raw
    }
}
