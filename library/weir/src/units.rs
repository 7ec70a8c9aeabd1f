//! Quantities with their unit in the type: point in time, duration, data size, bitrate.
//!
//! All are integers, so that equal inputs give equal outputs on every machine. Arithmetic
//! saturates, so that a hostile peer cannot overflow a controller. Raw numbers enter and leave only
//! through `from_*` and `as_*`, whose names contain the unit.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

const NANOS_PER_MICRO: i64 = 1_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_SEC: i64 = 1_000_000_000;

/// A point in time: nanoseconds since an arbitrary origin that the driver chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Timestamp(i64);

/// A signed duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct TimeDelta(i64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct DataSize(u64);

/// A bitrate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Bitrate(u64);

/// Saturating sum. Only false times from a peer overflow, so the fast path is an addition and a
/// branch that is never taken.
#[inline]
const fn add(one: i64, other: i64) -> i64 {
    match one.checked_add(other) {
        Some(sum) => sum,
        None => limit_with_sign_of(other),
    }
}

/// Saturating difference, like [`add`].
#[inline]
const fn sub(one: i64, other: i64) -> i64 {
    match one.checked_sub(other) {
        Some(difference) => difference,
        None => limit_with_sign_of(one),
    }
}

/// The limit at which a sum or difference saturates. An overflow has the sign of its operand.
#[cold]
#[inline(never)]
const fn limit_with_sign_of(operand: i64) -> i64 {
    if operand < 0 { i64::MIN } else { i64::MAX }
}

/// Added to a number before its fraction is truncated, to round halves away from zero. It is the
/// largest number below one half, because 0.49999999999999994 + 0.5 would give 1.
const ALMOST_HALF: f64 = 0.5 - f64::EPSILON / 4.0;

/// Rounds to the nearest integer, halves away from zero. Saturates; NaN gives zero. The result
/// equals `libm::round` followed by a cast; both truncate the fraction.
#[inline]
fn round_to_i64(value: f64) -> i64 {
    (value + ALMOST_HALF.copysign(value)) as i64
}

/// Like [`round_to_i64`], but negative values give zero.
#[inline]
fn round_to_u64(value: f64) -> u64 {
    (value + ALMOST_HALF.copysign(value)) as u64
}

macro_rules! time_conversions {
    ($type:ident) => {
        impl $type {
            /// Zero: the origin of time, or a duration of nothing.
            pub const ZERO: Self = Self(0);
            /// The largest value. In a deadline it means "never".
            pub const MAX: Self = Self(i64::MAX);

            /// From nanoseconds.
            pub const fn from_nanos(nanos: i64) -> Self {
                Self(nanos)
            }
            /// From microseconds.
            pub const fn from_micros(micros: i64) -> Self {
                Self(micros.saturating_mul(NANOS_PER_MICRO))
            }
            /// From milliseconds.
            pub const fn from_millis(millis: i64) -> Self {
                Self(millis.saturating_mul(NANOS_PER_MILLI))
            }
            /// From seconds.
            pub const fn from_secs(secs: i64) -> Self {
                Self(secs.saturating_mul(NANOS_PER_SEC))
            }
            /// From fractional seconds, rounded to the nearest nanosecond. NaN gives zero.
            pub fn from_secs_f64(secs: f64) -> Self {
                Self(round_to_i64(secs * NANOS_PER_SEC as f64))
            }
            /// From fractional milliseconds, rounded to the nearest nanosecond. NaN gives zero.
            pub fn from_millis_f64(millis: f64) -> Self {
                Self(round_to_i64(millis * NANOS_PER_MILLI as f64))
            }
            /// In nanoseconds.
            pub const fn as_nanos(self) -> i64 {
                self.0
            }
            /// In whole microseconds, rounded toward zero.
            pub const fn as_micros(self) -> i64 {
                self.0 / NANOS_PER_MICRO
            }
            /// In whole milliseconds, rounded toward zero.
            pub const fn as_millis(self) -> i64 {
                self.0 / NANOS_PER_MILLI
            }
            /// In fractional seconds.
            pub fn as_secs_f64(self) -> f64 {
                self.0 as f64 / NANOS_PER_SEC as f64
            }
            /// In fractional milliseconds.
            pub fn as_millis_f64(self) -> f64 {
                self.0 as f64 / NANOS_PER_MILLI as f64
            }
        }

        impl Add<TimeDelta> for $type {
            type Output = Self;
            fn add(self, rhs: TimeDelta) -> Self {
                Self(add(self.0, rhs.0))
            }
        }
        impl AddAssign<TimeDelta> for $type {
            fn add_assign(&mut self, rhs: TimeDelta) {
                *self = *self + rhs;
            }
        }
        impl SubAssign<TimeDelta> for $type {
            fn sub_assign(&mut self, rhs: TimeDelta) {
                *self = *self - rhs;
            }
        }
    };
}
time_conversions!(Timestamp);
time_conversions!(TimeDelta);

impl Sub<TimeDelta> for Timestamp {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: TimeDelta) -> Self {
        Self(sub(self.0, rhs.0))
    }
}
impl Sub for Timestamp {
    type Output = TimeDelta;
    #[inline]
    fn sub(self, rhs: Self) -> TimeDelta {
        TimeDelta(sub(self.0, rhs.0))
    }
}
impl Sub for TimeDelta {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: Self) -> Self {
        Self(sub(self.0, rhs.0))
    }
}
impl Neg for TimeDelta {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
impl Mul<i64> for TimeDelta {
    type Output = Self;
    fn mul(self, rhs: i64) -> Self {
        Self(self.0.saturating_mul(rhs))
    }
}
impl Mul<f64> for TimeDelta {
    type Output = Self;
    fn mul(self, rhs: f64) -> Self {
        Self(round_to_i64(self.0 as f64 * rhs))
    }
}
impl Div<i64> for TimeDelta {
    type Output = Self;
    fn div(self, rhs: i64) -> Self {
        Self(self.0 / rhs)
    }
}
impl Div for TimeDelta {
    type Output = f64;
    fn div(self, rhs: Self) -> f64 {
        self.0 as f64 / rhs.0 as f64
    }
}
impl TimeDelta {
    /// The absolute value.
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
}

impl DataSize {
    /// No data.
    pub const ZERO: Self = Self(0);
    /// The largest size.
    pub const MAX: Self = Self(u64::MAX);

    /// From bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }
    /// In bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
    /// In bits.
    pub const fn as_bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
    /// The difference; zero if `rhs` is larger.
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
impl Add for DataSize {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}
impl AddAssign for DataSize {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}
impl core::iter::Sum for DataSize {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}
impl Mul<f64> for DataSize {
    type Output = Self;
    fn mul(self, rhs: f64) -> Self {
        Self(round_to_u64(self.0 as f64 * rhs))
    }
}
impl Div<TimeDelta> for DataSize {
    type Output = Bitrate;
    /// The bitrate that carries this size in time `rhs`; zero if `rhs` is not positive.
    fn div(self, rhs: TimeDelta) -> Bitrate {
        if rhs.0 <= 0 {
            return Bitrate::ZERO;
        }
        // 64 bits are enough for all realistic sizes.
        if let Some(scaled) = self.0.checked_mul(8 * NANOS_PER_SEC as u64) {
            return Bitrate(scaled / rhs.0 as u64);
        }
        let bits = u128::from(self.0) * 8 * NANOS_PER_SEC as u128 / rhs.0 as u128;
        Bitrate(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}
impl Div<Bitrate> for DataSize {
    type Output = TimeDelta;
    /// The time to send this size at bitrate `rhs`, rounded up; `MAX` if the bitrate is zero.
    fn div(self, rhs: Bitrate) -> TimeDelta {
        if rhs.0 == 0 {
            return TimeDelta::MAX;
        }
        // 64 bits are enough for every packet and frame. Only unrealistic sizes need 128-bit
        // division.
        if let Some(scaled) = self.0.checked_mul(8 * NANOS_PER_SEC as u64) {
            return TimeDelta(i64::try_from(scaled.div_ceil(rhs.0)).unwrap_or(i64::MAX));
        }
        let nanos = (u128::from(self.0) * 8 * NANOS_PER_SEC as u128).div_ceil(u128::from(rhs.0));
        TimeDelta(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

impl Bitrate {
    /// No data at all.
    pub const ZERO: Self = Self(0);
    /// The largest bitrate. As a limit it means "no limit".
    pub const MAX: Self = Self(u64::MAX);

    /// From bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// From kilobits (1000 bits) per second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps.saturating_mul(1_000))
    }
    /// From fractional bits per second, rounded. Negative values and NaN give zero.
    pub fn from_bps_f64(bps: f64) -> Self {
        Self(round_to_u64(bps))
    }
    /// In bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// In bits per second as a float, for formulas.
    pub const fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }
    /// In kilobits per second.
    pub fn as_kbps_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// In megabits per second.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The difference; zero if `rhs` is larger.
    pub const fn saturating_sub(self, rhs: Self) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
impl Add for Bitrate {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}
impl Mul<f64> for Bitrate {
    type Output = Self;
    fn mul(self, rhs: f64) -> Self {
        Self(round_to_u64(self.0 as f64 * rhs))
    }
}
impl Mul<TimeDelta> for Bitrate {
    type Output = DataSize;
    /// The data carried in time `rhs`, rounded down; zero if `rhs` is not positive.
    fn mul(self, rhs: TimeDelta) -> DataSize {
        if rhs.0 <= 0 {
            return DataSize::ZERO;
        }
        const NANOS_PER_BYTE: u64 = 8 * NANOS_PER_SEC as u64;
        // 64 bits are enough for 18 Gbit/s over a second. Only unrealistic products need 128-bit
        // division.
        if let Some(product) = self.0.checked_mul(rhs.0 as u64) {
            return DataSize(product / NANOS_PER_BYTE);
        }
        let bytes = u128::from(self.0) * rhs.0 as u128 / u128::from(NANOS_PER_BYTE);
        DataSize(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
impl Div for Bitrate {
    type Output = f64;
    fn div(self, rhs: Self) -> f64 {
        self.0 as f64 / rhs.0 as f64
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}
impl fmt::Display for TimeDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.as_millis_f64())
    }
}
impl fmt::Display for DataSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}
impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} kbit/s", self.as_kbps_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_over_a_bitrate_is_the_time_rounded_up() {
        let time = DataSize::from_bytes(1500) / Bitrate::from_kbps(2000);
        assert_eq!(time, TimeDelta::from_millis(6));
        let third = DataSize::from_bytes(1) / Bitrate::from_bps(3);
        assert_eq!(third, TimeDelta::from_nanos(2_666_666_667));
        assert_eq!(DataSize::from_bytes(1) / Bitrate::ZERO, TimeDelta::MAX);
    }

    #[test]
    fn a_bitrate_times_a_time_is_the_size_rounded_down() {
        assert_eq!(
            Bitrate::from_kbps(2000) * TimeDelta::from_millis(6),
            DataSize::from_bytes(1500)
        );
        assert_eq!(Bitrate::from_kbps(1) * TimeDelta::from_millis(-6), DataSize::ZERO);
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp::MAX + TimeDelta::from_secs(1), Timestamp::MAX);
        assert_eq!(Bitrate::from_kbps(1).saturating_sub(Bitrate::from_kbps(2)), Bitrate::ZERO);
        assert_eq!(DataSize::MAX / TimeDelta::from_nanos(1), Bitrate::MAX);
        assert_eq!(DataSize::MAX / Bitrate::from_bps(1), TimeDelta::MAX);
    }

    #[test]
    fn times_beyond_the_range_end_at_the_limit_of_their_sign() {
        let (most, least) = (Timestamp::MAX, Timestamp::from_nanos(i64::MIN));
        let (step, back) = (TimeDelta::from_nanos(1), TimeDelta::from_nanos(-1));
        assert_eq!((most + step, least + back), (most, least));
        assert_eq!((most - back, least - step), (most, least));
        assert_eq!((most - least, least - most), (TimeDelta::MAX, TimeDelta(i64::MIN)));
    }

    #[test]
    fn rounding_is_that_of_libm() {
        let edges = [0.0, 0.5, 1.5, 2.5, 1e15 + 0.5, 9.3e18, 1.9e19, f64::INFINITY, f64::NAN];
        let next = |value: f64| f64::from_bits(value.to_bits() + 1);
        let before = |value: f64| f64::from_bits(value.to_bits().saturating_sub(1));
        for edge in edges {
            for value in [edge, next(edge), before(edge)] {
                assert_eq!(round_to_u64(value), libm::round(value) as u64, "{value}");
                assert_eq!(round_to_i64(value), libm::round(value) as i64, "{value}");
                assert_eq!(round_to_i64(-value), libm::round(-value) as i64, "-{value}");
            }
        }
    }

    #[test]
    fn not_a_number_becomes_zero_not_a_huge_rate() {
        assert_eq!(Bitrate::from_bps_f64(f64::NAN), Bitrate::ZERO);
        assert_eq!(Bitrate::from_bps_f64(-1.0), Bitrate::ZERO);
    }
}
