//! The parameters of NADA, in the same form as Table 2 of the standard.

use crate::units::TimeDelta;

/// The parameters of Table 2 [NADA §4.1], named by the standard's symbols. `RMIN` and `RMAX` are
/// the controller's [`RateLimits`](crate::RateLimits). Times and reference ratios must be positive.
///
/// [NADA §4.1]: https://www.rfc-editor.org/rfc/rfc8698#section-4.1
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// `PRIO`: weight of the flow among flows that share a bottleneck.
    pub prio: f64,
    /// `XREF`: congestion signal at which a flow of weight 1 is in equilibrium at `RMAX`.
    pub xref: TimeDelta,
    /// `KAPPA`: overall gain of the gradual update.
    pub kappa: f64,
    /// `ETA`: gain of the signal's change, relative to the gain of its offset.
    pub eta: f64,
    /// `TAU`: upper bound of the round-trip time that the gains are designed for.
    pub tau: TimeDelta,
    /// `DELTA`: interval between updates.
    pub delta: TimeDelta,
    /// `LOGWIN`: length of the statistics window.
    pub logwin: TimeDelta,
    /// `QEPS`: queuing delay at which a queue counts as building up.
    pub qeps: TimeDelta,
    /// `DFILT`: bound on the delay of the filters.
    pub dfilt: TimeDelta,
    /// `GAMMA_MAX`: upper bound of the ramp-up gain.
    pub gamma_max: f64,
    /// `QBOUND`: maximum queuing delay that the ramp-up may cause.
    pub qbound: TimeDelta,
    /// `MULTILOSS`: number of mean loss intervals after which the last loss expires.
    pub multiloss: f64,
    /// `QTH`: queuing delay above which warping applies.
    pub qth: TimeDelta,
    /// `LAMBDA`: exponent of the warping.
    pub lambda: f64,
    /// `PLRREF`: reference loss ratio.
    pub plrref: f64,
    /// `PMRREF`: reference marking ratio.
    pub pmrref: f64,
    /// `DLOSS`: penalty at the reference loss ratio.
    pub dloss: TimeDelta,
    /// `DMARK`: penalty at the reference marking ratio.
    pub dmark: TimeDelta,
    /// `FPS`: frame rate of the video, in frames per second.
    pub fps: f64,
    /// `BETA_S`: gain by which the shaping buffer raises the sending rate.
    pub beta_s: f64,
    /// `BETA_V`: gain by which the shaping buffer lowers the video target rate.
    pub beta_v: f64,
    /// `ALPHA`: smoothing factor of the loss and marking ratios.
    pub alpha: f64,
}

impl Parameters {
    /// The standard's defaults.
    pub const DEFAULT: Self = Self {
        prio: 1.0,
        xref: TimeDelta::from_millis(10),
        kappa: 0.5,
        eta: 2.0,
        tau: TimeDelta::from_millis(500),
        delta: TimeDelta::from_millis(100),
        logwin: TimeDelta::from_millis(500),
        qeps: TimeDelta::from_millis(10),
        dfilt: TimeDelta::from_millis(120),
        gamma_max: 0.5,
        qbound: TimeDelta::from_millis(50),
        multiloss: 7.0,
        qth: TimeDelta::from_millis(50),
        lambda: 0.5,
        plrref: 0.01,
        pmrref: 0.01,
        dloss: TimeDelta::from_millis(10),
        dmark: TimeDelta::from_millis(2),
        fps: 30.0,
        beta_s: 0.1,
        beta_v: 0.1,
        alpha: 0.1,
    };
}

impl Default for Parameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}

// The standard requires that a loss weighs more than a mark [NADA §4.1].
const _: () = assert!(Parameters::DEFAULT.dloss.as_nanos() > Parameters::DEFAULT.dmark.as_nanos());
