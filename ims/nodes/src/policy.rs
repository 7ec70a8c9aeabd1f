//! The file of the operator's policy.
//!
//! ```toml
//! capacity_kbps = 8000        # sum of GBR for each direction
//! without_bearer = "continue" # what the P-CSCF does with a call if there is no bearer
//!
//! [media.audio]
//! qci = 1
//! arp = 2
//! most_kbps = 128
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

/// The policy of an operator.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// Guaranteed bit rate that all bearers together may have in each direction, in kbit/s.
    pub capacity_kbps: u32,
    /// Whether a call goes on without a bearer of its own.
    #[serde(default)]
    pub without_bearer: WithoutBearer,
    /// Prefixes of the addresses of known terminals, such as "10.46.". Empty for all addresses.
    #[serde(default)]
    pub terminals: Vec<String>,
    /// What each kind of medium gets: `audio`, `video`, `application`. A kind that is not there is
    /// refused.
    pub media: BTreeMap<String, MediaPolicy>,
}

/// What becomes of a call without a bearer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WithoutBearer {
    /// The call goes on, on the default bearer.
    #[default]
    Continue,
    /// The call is refused.
    Refuse,
}

/// What a kind of medium gets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MediaPolicy {
    /// QoS class identifier ([TS 23.203 §6.1.7]). Classes 1 to 4 have a guaranteed bit rate.
    pub qci: u8,
    /// Priority of allocation and retention: 1 (highest) to 15.
    pub arp: u8,
    /// Whether it may take the resources of bearers with a lower priority.
    #[serde(default)]
    pub may_preempt: bool,
    /// Whether it may lose its resources to bearers with a higher priority.
    #[serde(default)]
    pub preemptable: bool,
    /// Greatest bit rate in each direction, in kbit/s. More is refused.
    pub most_kbps: u32,
    /// Guaranteed bit rate as a share of the requested one, in percent.
    #[serde(default = "all")]
    pub guaranteed_percent: u32,
}

fn all() -> u32 {
    100
}

/// Last QCI with a guaranteed bit rate ([TS 23.203 §6.1.7.2]).
const LAST_GUARANTEED: u8 = 4;

impl MediaPolicy {
    /// Whether its bearers have a guaranteed bit rate.
    pub fn is_guaranteed(&self) -> bool {
        self.qci <= LAST_GUARANTEED
    }
}

impl Policy {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// If it is not TOML of this form, or a value is outside of its range.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let policy: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (name, media) in &policy.media {
            let problem = if media_type(name).is_none() {
                Some("is no kind of medium: write audio, video or application")
            } else if !(1..=9).contains(&media.qci) {
                Some("needs a qci from 1 to 9")
            } else if !(1..=15).contains(&media.arp) {
                Some("needs an arp from 1 to 15")
            } else if media.guaranteed_percent > 100 {
                Some("cannot guarantee more than 100 percent")
            } else {
                None
            };
            if let Some(problem) = problem {
                return Err(format!("media.{name} {problem}"));
            }
        }
        Ok(policy)
    }
}

/// Names of the values of Media-Type, in their order ([TS 29.214 §5.3.19]).
const MEDIA_TYPES: [&str; 7] =
    ["audio", "video", "data", "application", "control", "text", "message"];

/// The value of Media-Type for a medium of SDP.
pub fn media_type(name: &str) -> Option<u32> {
    let at = MEDIA_TYPES.iter().position(|known| *known == name)?;
    u32::try_from(at).ok()
}

/// The medium of SDP for a value of Media-Type.
pub fn media_name(value: u32) -> &'static str {
    let at = usize::try_from(value).ok();
    at.and_then(|at| MEDIA_TYPES.get(at)).copied().unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_of_their_range_are_refused() {
        let media = |text: &str| Policy::from_toml(&format!("capacity_kbps = 1\n{text}"));
        assert!(media("[media.audio]\nqci = 1\narp = 2\nmost_kbps = 64").is_ok());
        let error = media("[media.smell]\nqci = 1\narp = 2\nmost_kbps = 64").unwrap_err();
        assert!(error.starts_with("media.smell is no kind"), "{error}");
        assert!(media("[media.audio]\nqci = 10\narp = 2\nmost_kbps = 64").is_err());
        assert!(media("[media.audio]\nqci = 1\narp = 0\nmost_kbps = 64").is_err());
        assert!(media("[media.audio]\nqci = 1\narp = 1\nmost_kbps = 1\nother = 1").is_err());
    }
}
