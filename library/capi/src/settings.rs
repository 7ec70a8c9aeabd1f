//! The configuration of a controller.

use core::ffi::{CStr, c_char};

use weir::controller::{EcnMode, RateLimits, Settings};
use weir::units::Bitrate;
use weir::{Algorithm, Controller};

use crate::border::{Outcome, contain, switch};
use crate::growing::{get, growing, init};
use crate::status::weir_status;

/// How a sender uses ECN.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_ecn_mode {
    /// Packets are Not-ECT.
    Off = 0,
    /// Packets are ECT(0): a mark means the same as a loss.
    Classic = 1,
    /// Packets are ECT(1): marks are frequent, and the controller reacts to their share.
    L4s = 2,
}

/// Configuration of a controller. Call `weir_settings_init`, then change what you need.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_settings {
    /// `sizeof(weir_settings)`; the init function sets it.
    pub struct_size: usize,
    /// The lowest target bitrate, in bit/s, above zero. The default is 150,000.
    pub min_bitrate_bps: u64,
    /// The target bitrate before the first feedback, in bit/s. The default is 300,000.
    pub start_bitrate_bps: u64,
    /// The highest target bitrate, in bit/s. The default is 2,500,000.
    pub max_bitrate_bps: u64,
    /// Weight relative to other flows at the bottleneck, above zero. The default is 1.
    pub priority: f64,
    /// A `weir_ecn_mode`. The default is off. Controllers without L4S use classic ECN instead.
    pub ecn: u32,
    /// 1: tolerate random packet loss, if the controller has this option. The default is 0.
    pub tolerate_random_loss: u8,
    /// 1: resist starvation by loss-based flows, if the controller has this option. The default is
    /// 0.
    pub compete_with_tcp: u8,
    /// 1: repeat probes while the source sends less than the target. The default is 1.
    pub probe_when_limited: u8,
    /// Zero.
    pub reserved: u8,
}

growing!(weir_settings, reserved: u8, Self {
    struct_size: size_of::<Self>(),
    min_bitrate_bps: 150_000,
    start_bitrate_bps: 300_000,
    max_bitrate_bps: 2_500_000,
    priority: 1.0,
    ecn: weir_ecn_mode::Off as u32,
    tolerate_random_loss: 0,
    compete_with_tcp: 0,
    probe_when_limited: 1,
    reserved: 0,
});

/// Fills the settings with the defaults. `size` is `sizeof(weir_settings)`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_settings_init(
    settings: *mut weir_settings,
    size: usize,
) -> weir_status {
    // SAFETY: as this function requires.
    contain(|| unsafe { init(settings, size) })
}

/// The name of a controller, by index from zero; NULL after the last one.
#[unsafe(no_mangle)]
pub extern "C" fn weir_algorithm_name(index: usize) -> *const c_char {
    const NAMES: [&CStr; 5] = [c"gcc", c"nada", c"scream", c"scream-v2", c"sluice"];
    NAMES.get(index).map_or(core::ptr::null(), |name| name.as_ptr())
}

/// The limits, if they are in order.
pub(crate) fn limits(min_bps: u64, start_bps: u64, max_bps: u64) -> Outcome<RateLimits> {
    let [min, start, max] = [min_bps, start_bps, max_bps].map(Bitrate::from_bps);
    RateLimits::new(min, start, max).map_err(|_| weir_status::Limits)
}

/// New limits of a flow; a start of zero stands for the default.
pub(crate) fn new_limits(min_bps: u64, start_bps: u64, max_bps: u64) -> Outcome<RateLimits> {
    if start_bps > 0 {
        return limits(min_bps, start_bps, max_bps);
    }
    let [min, max] = [min_bps, max_bps].map(Bitrate::from_bps);
    RateLimits::between(min, max).map_err(|_| weir_status::Limits)
}

impl weir_settings {
    fn checked(&self) -> Outcome<Settings> {
        if !(self.priority > 0.0 && self.priority.is_finite() && self.reserved == 0) {
            return Err(weir_status::InvalidArgument);
        }
        let limits = limits(self.min_bitrate_bps, self.start_bitrate_bps, self.max_bitrate_bps)?;
        let ecn = match self.ecn {
            0 => EcnMode::Off,
            1 => EcnMode::Classic,
            2 => EcnMode::L4s,
            _ => return Err(weir_status::InvalidArgument),
        };
        Ok(Settings::new(limits)
            .with_ecn(ecn)
            .with_priority(self.priority)
            .with_tolerate_random_loss(switch(self.tolerate_random_loss)?)
            .with_compete_with_tcp(switch(self.compete_with_tcp)?)
            .with_probe_when_limited(switch(self.probe_when_limited)?))
    }
}

/// The algorithm with this name.
///
/// # Safety
/// The pointer is NULL or points to a string that ends with NUL.
pub(crate) unsafe fn algorithm(name: *const c_char) -> Outcome<Algorithm> {
    if name.is_null() {
        return Err(weir_status::NullPointer);
    }
    // SAFETY: as this function requires.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_str().ok().and_then(|name| name.parse().ok()).ok_or(weir_status::UnknownAlgorithm)
}

/// Builds the controller with this name and these settings.
///
/// # Safety
/// The name as for [`algorithm`]; the settings are NULL or initialised.
pub(crate) unsafe fn build(
    name: *const c_char,
    settings: *const weir_settings,
) -> Outcome<Box<dyn Controller + Send>> {
    // SAFETY: as this function requires.
    let (algorithm, settings) = unsafe { (algorithm(name)?, get(settings)?) };
    Ok(algorithm.build(settings.checked()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_its_name() {
        for (index, algorithm) in Algorithm::all().enumerate() {
            // SAFETY: the string lives for ever.
            let name = unsafe { CStr::from_ptr(weir_algorithm_name(index)) };
            assert_eq!(name.to_str(), Ok(algorithm.name()));
        }
        assert!(weir_algorithm_name(Algorithm::all().len()).is_null());
        assert!(weir_algorithm_name(usize::MAX).is_null());
    }
}
