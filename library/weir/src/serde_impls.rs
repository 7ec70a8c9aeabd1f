//! Serde implementations that cannot be derived (feature `serde`).
//!
//! Times are integers in nanoseconds, sizes in bytes, bitrates in bits per second. An algorithm is
//! represented by its name. Settings are deserialized with the checks and defaults of their
//! constructors. The outputs of a controller ([`Target`](crate::Target),
//! [`Metrics`](crate::Metrics)) can only be serialized.

use alloc::string::String;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::controller::{EcnMode, LimitsError, RateLimits, Reason, Settings, Signals};
use crate::controllers::Algorithm;
use crate::units::{Bitrate, TimeDelta};

/// Unchecked limits.
#[derive(Deserialize)]
pub(crate) struct AnyRateLimits {
    min: Bitrate,
    start: Bitrate,
    max: Bitrate,
}

impl TryFrom<AnyRateLimits> for RateLimits {
    type Error = LimitsError;
    fn try_from(any: AnyRateLimits) -> Result<Self, LimitsError> {
        Self::new(any.min, any.start, any.max)
    }
}

/// Settings in which only the limits are required.
#[derive(Deserialize)]
pub(crate) struct AnySettings {
    limits: RateLimits,
    ecn: Option<EcnMode>,
    priority: Option<f64>,
    tolerate_random_loss: Option<bool>,
    compete_with_tcp: Option<bool>,
    probe_when_limited: Option<bool>,
    burst: Option<TimeDelta>,
}

impl From<AnySettings> for Settings {
    fn from(any: AnySettings) -> Self {
        let usual = Self::new(any.limits);
        Self {
            limits: any.limits,
            ecn: any.ecn.unwrap_or(usual.ecn),
            priority: any.priority.unwrap_or(usual.priority),
            tolerate_random_loss: any.tolerate_random_loss.unwrap_or(usual.tolerate_random_loss),
            compete_with_tcp: any.compete_with_tcp.unwrap_or(usual.compete_with_tcp),
            probe_when_limited: any.probe_when_limited.unwrap_or(usual.probe_when_limited),
            burst: any.burst,
        }
    }
}

impl Serialize for Algorithm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Algorithm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for Signals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Metrics, Target};
    use alloc::string::ToString as _;

    const SETTINGS: &str = concat!(
        r#"{"limits":{"min":150000,"start":300000,"max":2500000},"ecn":"l4s","priority":2.0,"#,
        r#""tolerate_random_loss":false,"compete_with_tcp":true,"probe_when_limited":true}"#,
    );

    #[test]
    fn settings_come_back_as_they_were() {
        let settings: Settings = serde_json::from_str(SETTINGS).unwrap();
        assert_eq!(settings.limits.max(), Bitrate::from_kbps(2_500));
        assert_eq!((settings.ecn, settings.priority), (EcnMode::L4s, 2.0));
        assert_eq!(serde_json::to_string(&settings).unwrap(), SETTINGS);
    }

    #[test]
    fn settings_need_limits_alone_and_refuse_those_out_of_order() {
        let read = |text: &str| serde_json::from_str::<Settings>(text);
        let settings = read(r#"{"limits":{"min":1,"start":2,"max":3}}"#).unwrap();
        assert_eq!(settings, Settings::new(settings.limits));
        let error = read(r#"{"limits":{"min":3,"start":2,"max":3}}"#).unwrap_err();
        assert!(error.to_string().contains("min <= start"), "{error}");
        assert!(read("{}").is_err());
    }

    #[test]
    fn an_algorithm_is_its_name() {
        for algorithm in Algorithm::all() {
            let text = serde_json::to_string(&algorithm).unwrap();
            assert_eq!(text, alloc::format!("\"{algorithm}\""));
            assert_eq!(serde_json::from_str::<Algorithm>(&text).unwrap(), algorithm);
        }
        assert!(serde_json::from_str::<Algorithm>("\"bbr\"").is_err());
    }

    #[test]
    fn metrics_and_targets_are_written_with_raw_units() {
        let signals = Signals::new([("gradient_ms", 0.5)]);
        let metrics = Metrics::new(Reason::QueuingDelay, "hold").with_signals(signals);
        let value = serde_json::to_value(metrics).unwrap();
        assert_eq!(value["reason"], "queuing delay");
        assert_eq!(value["signals"]["gradient_ms"], 0.5);
        let kbps = Bitrate::from_kbps;
        let value = serde_json::to_value(Target::new(kbps(300), kbps(450))).unwrap();
        assert_eq!(value["pacing_rate"], 450_000);
        assert_eq!(value["burst"]["ahead"], 5_000_000);
    }
}
