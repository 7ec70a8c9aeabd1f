//! The GCC of webrtc-rs, with a window through which its driver sees the target.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arena_driver::protocol::Settings;
use rtc::interceptor::{BandwidthEstimator, Gcc, PacketReport};
use weir_webrtc_rs::Control;

/// The target in bit/s, seen from outside.
pub enum Target {
    /// That of the GCC of webrtc-rs.
    Theirs(Arc<AtomicU64>),
    /// That of a controller of ours.
    Ours(Control),
}

impl Target {
    pub fn bps(&self) -> u64 {
        match self {
            Self::Theirs(target) => target.load(Ordering::Relaxed),
            Self::Ours(control) => control.target().as_bps(),
        }
    }
}

/// The estimator, which webrtc-rs keeps to itself.
pub struct Watched {
    gcc: Gcc,
    target: Arc<AtomicU64>,
}

impl Watched {
    pub fn new(settings: &Settings) -> (Self, Target) {
        let [start, min, max] =
            [settings.start_bitrate, settings.min_bitrate, settings.max_bitrate]
                .map(|bps| bps as f64);
        let target = Arc::new(AtomicU64::new(settings.start_bitrate));
        let gcc = Gcc::new(start, min, max);
        (Self { gcc, target: Arc::clone(&target) }, Target::Theirs(target))
    }
}

impl BandwidthEstimator for Watched {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        self.gcc.on_reports(now, reports);
        self.target.store(self.gcc.target_bitrate() as u64, Ordering::Relaxed);
    }

    fn target_bitrate(&self) -> f64 {
        self.gcc.target_bitrate()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.gcc.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.gcc.poll_timeout()
    }
}
