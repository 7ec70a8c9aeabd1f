//! Constants of `sluice` by name, for experiments and for tuning.

use weir::ControllerFactory;
use weir::controllers::sluice::{Parameters, Sluice};
use weir_controllers::{LabAlgorithm, LabController};

use crate::nearest;

/// What each box of the controller needs to have no effect: its constants, and a value for each.
const BOXES: [(&str, &[(&str, f64)]); 9] = [
    ("noise", &[("k_noise", 0.0)]),
    ("packet time", &[("k_packet", 0.0)]),
    ("drain", &[("cut_max", 0.0)]),
    ("growth that doubles", &[("t_double", 1e9)]),
    ("recovery", &[("g_recover", 0.0)]),
    ("base test", &[("t_base", 1e9)]),
    ("competition", &[("t_rival", 1e9)]),
    ("losses", &[("loss_excess", 1.0), ("loss_max", 1.0)]),
    ("limit by the sent rate", &[("limited", 1e6)]),
];

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

/// Names of the controller's boxes, each with the settings that switch it off.
pub fn boxes() -> impl Iterator<Item = (&'static str, Vec<String>)> {
    BOXES.into_iter().map(|(name, of)| {
        (name, of.iter().map(|(constant, value)| format!("sluice.{constant}={value}")).collect())
    })
}

/// `sluice` with these settings, each of the form `sluice.NAME=VALUE`.
///
/// # Errors
///
/// A setting has another form, another name, or no number.
pub fn sluice_with(settings: &[String]) -> Result<LabController, ConstantError> {
    let mut parameters = Parameters::DEFAULT;
    for setting in settings {
        set(&mut parameters, setting)?;
    }
    let own = ControllerFactory::new(LabAlgorithm::Sluice.name(), move |settings| {
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
    fn every_box_names_constants() {
        for (name, settings) in boxes() {
            assert!(sluice_with(&settings).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_controller_with_other_constants_keeps_its_name() {
        let changed = sluice_with(&["sluice.q_min=9".into()]).unwrap();
        assert_eq!(changed.name(), "sluice");
        assert_ne!(changed, LabController::from(LabAlgorithm::Sluice));
    }
}
