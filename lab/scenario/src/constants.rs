//! Constants of `sluice` by name, for experiments and for tuning.

use weir::ControllerFactory;
use weir::controllers::sluice::{Parameters, Sluice};
use weir_controllers::{LabAlgorithm, LabController};

use crate::nearest;

/// Each rule of the page that can be missed, and what switches it off: constants, and a value for
/// each, or the rule itself. S-1, S-4 and S-25 measure, or keep the limits that a user sets.
const RULES: [(&str, &[(&str, f64)]); 36] = [
    ("S-2: the base is forgotten", &[("t_period", 1e9)]),
    ("S-3", &[("noise_gain", 0.0)]),
    ("S-5: noise", &[("k_noise", 0.0)]),
    ("S-5: packet", &[("k_packet", 0.0)]),
    ("S-6", &[("loss_excess", 1.0), ("loss_max", 1.0)]),
    ("S-7: scale", &[("scale_min", 1.0)]),
    ("S-8: additive", &[("S-8-marked", 0.0)]),
    ("S-8: slow growth", &[("g_l4s", 1e6)]),
    ("S-9", &[("S-9", 0.0)]),
    ("S-10: a source that sends little", &[("used", 0.0)]),
    ("S-11: doubling", &[("t_double", 1e9)]),
    ("S-11: rare reports, long paths", &[("q_report", 1e9)]),
    ("S-11: recovery", &[("g_recover", 0.0)]),
    ("S-13", &[("S-13", 0.0)]),
    ("S-13: drain", &[("margin", 1e9)]),
    ("S-15", &[("q_rival", 1e9)]),
    ("S-15: what is kept", &[("share_kept", 0.0)]),
    ("S-16", &[("a_compete", 0.0)]),
    ("S-17", &[("S-17", 0.0)]),
    ("S-19: in a drain", &[("t_flat", 1e9)]),
    ("S-19: longer both ways", &[("S-19-longer", 0.0)]),
    ("S-19: after a cut", &[("S-19-cut", 0.0)]),
    ("S-20", &[("S-20", 0.0)]),
    ("S-21: sent rate", &[("limited", 1e6)]),
    ("S-21: steps", &[("S-21-steps", 0.0)]),
    ("S-23", &[("missed_reports", 1e9)]),
    ("S-24", &[("pacing_drain", 1.4), ("s_pacing", 0.0)]),
    ("S-26", &[("share_alone", 2.0), ("share_fair", 1.0)]),
    ("S-27", &[("share_fair", 1.0)]),
    ("S-28", &[("radio_variation", 1e9)]),
    ("S-29: growth", &[("g_return", 0.9)]),
    ("S-31", &[("S-31", 0.0)]),
    ("S-32", &[("S-32", 0.0)]),
    ("S-36", &[("S-36", 0.0)]),
    ("S-37", &[("S-37", 0.0)]),
    ("S-38", &[("S-38", 0.0)]),
];

/// Constants that are factors near 1. What halves or doubles is their distance to 1.
const NEAR_ONE: [&str; 11] = [
    "used",
    "policed",
    "b_compete",
    "b_loss",
    "pacing",
    "pacing_drain",
    "share_alone",
    "top_decay",
    "recovered",
    "fell",
    "limited",
];

/// One change of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What is changed: `S-13 off`, or `q_min 5 -> 2.5`.
    pub name: String,
    /// The rule or the constant: `S-13` or `q_min`.
    pub of: String,
    /// Settings of the form `sluice.NAME=VALUE`.
    pub settings: Vec<String>,
}

/// Every change by which the worth of a rule or of a constant shows: each rule off, in the order of
/// the page, then each constant halved and doubled.
pub fn changes() -> Vec<Change> {
    let mut all = Vec::new();
    for (name, settings) in RULES {
        let (of, part) = name.split_once(": ").unwrap_or((name, ""));
        let part = if part.is_empty() { String::new() } else { format!(" ({part})") };
        let settings = settings.iter().map(|(name, value)| format!("sluice.{name}={value}"));
        let (name, settings) = (format!("{of} off{part}"), settings.collect());
        all.push(Change { name, of: of.into(), settings });
    }
    for (of, value) in constants() {
        let from = if NEAR_ONE.contains(&of) { 1.0 } else { 0.0 };
        for factor in [0.5, 2.0] {
            // Without the last digits, which are those of the sum.
            let new = ((from + (value - from) * factor) * 1e9).round() / 1e9;
            let settings = vec![format!("sluice.{of}={new}")];
            all.push(Change { name: format!("{of} {value} -> {new}"), of: of.into(), settings });
        }
    }
    all
}

/// Why a setting was refused; its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantError {
    /// It is not of the form `sluice.NAME=VALUE`.
    #[error("'{0}' is not of the form sluice.NAME=VALUE")]
    Form(String),
    /// There is no constant of this name.
    #[error("sluice has no constant '{name}'; {hint}")]
    Name {
        /// The name as given.
        name: String,
        /// What to write instead.
        hint: String,
    },
    /// The value is not a number, or not one that is possible.
    #[error("'{0}' is not a value: write a number of zero or more, times in ms")]
    Value(String),
}

/// Names and values of all constants; times in ms.
pub fn constants() -> impl Iterator<Item = (&'static str, f64)> {
    Parameters::NAMES.iter().filter_map(|name| Some((*name, Parameters::DEFAULT.get(name)?)))
}

/// `sluice` with these settings, each of the form `sluice.NAME=VALUE`.
///
/// # Errors
///
/// A setting has another form, another name, or no number.
pub fn sluice_with(settings: &[String]) -> Result<LabController, ConstantError> {
    sluice_named(LabAlgorithm::Sluice.name(), settings)
}

/// The same under another name, by which its scores can be told from those of others.
///
/// # Errors
///
/// As [`sluice_with`].
pub fn sluice_named(name: &str, settings: &[String]) -> Result<LabController, ConstantError> {
    let mut parameters = Parameters::DEFAULT;
    for setting in settings {
        set(&mut parameters, setting)?;
    }
    let own = ControllerFactory::new(name, move |settings| {
        Box::new(Sluice::with_parameters(settings, parameters)) as Box<_>
    });
    Ok(own.with_ecn(|wanted| LabAlgorithm::Sluice.ecn_mode(wanted)).into())
}

fn set(parameters: &mut Parameters, setting: &str) -> Result<(), ConstantError> {
    let form = || ConstantError::Form(setting.into());
    let (name, value) = setting.split_once('=').ok_or_else(form)?;
    let name = name.trim().strip_prefix("sluice.").ok_or_else(form)?;
    if parameters.get(name).is_none() {
        let near = nearest(name, Parameters::NAMES.iter().copied());
        let hint = match near.first() {
            Some(near) => format!("did you mean '{near}'?"),
            None => "docs/reference/controllers/sluice.md lists them".into(),
        };
        return Err(ConstantError::Name { name: name.into(), hint });
    }
    let number: Option<f64> = value.trim().parse().ok();
    // A time of 1e9 ms is eleven days, far beyond any run, and still fits its type.
    let number = number.filter(|value| (0.0..=1e9).contains(value));
    let number = number.ok_or_else(|| ConstantError::Value(value.into()))?;
    assert!(parameters.set(name, number), "a constant that can be read can be set");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(setting: &str) -> String {
        sluice_with(&[setting.into()]).unwrap_err().to_string()
    }

    #[test]
    fn every_constant_can_be_set() {
        for (name, value) in constants() {
            let mut parameters = Parameters::DEFAULT;
            set(&mut parameters, &format!("sluice.{name}={}", value + 7.0)).unwrap();
            assert_eq!(parameters.get(name), Some(value + 7.0), "{name}");
        }
        assert!(constants().count() > 30);
    }

    #[test]
    fn a_setting_that_is_wrong_says_what_to_write() {
        assert_eq!(error("q_min=3"), "'q_min=3' is not of the form sluice.NAME=VALUE");
        assert_eq!(
            error("sluice.q_mim=3"),
            "sluice has no constant 'q_mim'; did you mean 'q_min'?"
        );
        assert!(error("sluice.q_min=").contains("is not a value"));
        assert!(error("sluice.q_min=-1").contains("is not a value"));
        assert!(error("sluice.q_min=NaN").contains("is not a value"));
    }

    #[test]
    fn every_change_is_one() {
        let all = changes();
        for change in &all {
            let changed = sluice_named(&change.name, &change.settings).unwrap();
            assert_eq!(changed.name(), change.name);
        }
        assert_eq!(all.len(), RULES.len() + 2 * constants().count());
        let shown = |of: &str| -> Vec<&str> {
            let with = all.iter().filter(|change| change.of == of);
            with.map(|change| change.name.as_str()).collect()
        };
        assert_eq!(shown("S-13"), ["S-13 off", "S-13 off (drain)"]);
        assert_eq!(shown("q_min"), ["q_min 5 -> 2.5", "q_min 5 -> 10"]);
        assert_eq!(shown("share_alone"), ["share_alone 0.9 -> 0.95", "share_alone 0.9 -> 0.8"]);
        for name in NEAR_ONE {
            assert_eq!(shown(name).len(), 2, "{name}");
        }
    }

    #[test]
    fn a_controller_with_other_constants_keeps_its_name() {
        let changed = sluice_with(&["sluice.q_min=9".into()]).unwrap();
        assert_eq!(changed.name(), "sluice");
        assert_ne!(changed, LabController::from(LabAlgorithm::Sluice));
    }
}
