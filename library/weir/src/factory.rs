//! Factories of controllers: for the library's algorithms, or for your own.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use crate::controller::{Controller, EcnMode, Settings};
use crate::controllers::Algorithm;

type Build = dyn Fn(Settings) -> Box<dyn Controller + Send> + Send + Sync;
type EcnRule = dyn Fn(EcnMode) -> EcnMode + Send + Sync;

/// Builds controllers of one kind. Programs that drive controllers take a factory, so your own
/// controller runs wherever the library's do.
///
/// Convert an [`Algorithm`] to a factory with `into`. For your own controller, give a name and a
/// function:
///
/// ```
/// use weir::controllers::nada::Nada;
/// use weir::{Algorithm, Bitrate, ControllerFactory, RateLimits};
///
/// let cautious = ControllerFactory::new("nada-half", |settings| {
///     let limits = settings.limits;
///     let half = RateLimits::new(limits.min(), limits.start(), limits.max() * 0.5);
///     Box::new(Nada::new(half.map_or(settings, |half| settings.with_limits(half))))
/// });
/// let kbps = Bitrate::from_kbps;
/// let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("min <= start <= max");
/// assert_eq!(cautious.build(limits).target().bitrate, kbps(300));
/// assert_eq!(ControllerFactory::from(Algorithm::Nada).name(), "nada");
/// ```
#[derive(Clone)]
pub struct ControllerFactory(Kind);

#[derive(Clone)]
enum Kind {
    BuiltIn(Algorithm),
    Own(Arc<Own>),
}

#[derive(Clone)]
struct Own {
    name: String,
    build: Arc<Build>,
    ecn: Arc<EcnRule>,
}

impl ControllerFactory {
    /// A factory of a controller that works only at the sender and does not use ECN. The name
    /// appears in records and reports.
    pub fn new(
        name: impl Into<String>,
        build: impl Fn(Settings) -> Box<dyn Controller + Send> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::Own(Arc::new(Own {
            name: name.into(),
            build: Arc::new(build),
            ecn: Arc::new(|_| EcnMode::Off),
        })))
    }

    /// Returns the factory with a rule for ECN: the mode that the controller uses if a sender
    /// requests one. See [`Algorithm::ecn_mode`].
    ///
    /// A factory made from an [`Algorithm`] keeps the algorithm's rule.
    #[must_use]
    pub fn with_ecn(self, rule: impl Fn(EcnMode) -> EcnMode + Send + Sync + 'static) -> Self {
        self.change(|own| own.ecn = Arc::new(rule))
    }

    fn change(mut self, change: impl FnOnce(&mut Own)) -> Self {
        if let Kind::Own(own) = &mut self.0 {
            change(Arc::make_mut(own));
        }
        self
    }

    /// The name in records and reports.
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::BuiltIn(algorithm) => algorithm.name(),
            Kind::Own(own) => &own.name,
        }
    }

    /// How its controllers use ECN if `wanted` is requested.
    pub fn ecn_mode(&self, wanted: EcnMode) -> EcnMode {
        match &self.0 {
            Kind::BuiltIn(algorithm) => algorithm.ecn_mode(wanted),
            Kind::Own(own) => (own.ecn)(wanted),
        }
    }

    /// A new controller. Its settings contain the ECN mode that it uses, not the requested one.
    pub fn build(&self, settings: impl Into<Settings>) -> Box<dyn Controller + Send> {
        let settings = settings.into();
        match &self.0 {
            Kind::BuiltIn(algorithm) => algorithm.build(settings),
            Kind::Own(own) => (own.build)(settings.with_ecn(self.ecn_mode(settings.ecn))),
        }
    }
}

impl From<Algorithm> for ControllerFactory {
    fn from(algorithm: Algorithm) -> Self {
        Self(Kind::BuiltIn(algorithm))
    }
}

impl From<&Self> for ControllerFactory {
    fn from(factory: &Self) -> Self {
        factory.clone()
    }
}

/// Factories of the same algorithm are equal. A custom factory equals only its clones.
impl PartialEq for ControllerFactory {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::BuiltIn(one), Kind::BuiltIn(other)) => one == other,
            (Kind::Own(one), Kind::Own(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl fmt::Debug for ControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ControllerFactory").field(&self.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::RateLimits;
    use crate::controllers::nada::Nada;
    use crate::units::Bitrate;
    use std::sync::mpsc;

    fn settings(ecn: EcnMode) -> Settings {
        let limits = [150, 300, 2_500].map(Bitrate::from_kbps);
        Settings::new(RateLimits::new(limits[0], limits[1], limits[2]).unwrap()).with_ecn(ecn)
    }

    #[test]
    fn a_controller_hears_of_the_ecn_mode_that_its_rule_allows() {
        let (told, heard) = mpsc::channel();
        let factory = ControllerFactory::new("own", move |settings| {
            told.send(settings.ecn).unwrap();
            Box::new(Nada::new(settings))
        });
        factory.build(settings(EcnMode::L4s));
        assert_eq!(heard.recv(), Ok(EcnMode::Off));
        let factory = factory.with_ecn(|_| EcnMode::Classic);
        factory.build(settings(EcnMode::L4s));
        assert_eq!(heard.recv(), Ok(EcnMode::Classic));
        assert_eq!(factory.ecn_mode(EcnMode::L4s), EcnMode::Classic);
    }

    #[test]
    fn factories_are_equal_to_their_clones_and_to_those_of_the_same_algorithm() {
        let own = || ControllerFactory::new("own", |settings| Box::new(Nada::new(settings)));
        let one = own();
        assert_eq!(one, one.clone());
        assert_ne!(one, own());
        assert_eq!(ControllerFactory::from(Algorithm::Gcc), Algorithm::Gcc.into());
        assert_ne!(ControllerFactory::from(Algorithm::Gcc), one);
    }
}
