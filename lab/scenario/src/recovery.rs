//! Expectations of a comeback: how long a measure takes until it is back to a share of what it was
//! in an earlier section.

use std::fmt;

use weir_metrics::Better;

use super::error::{ScenarioError, quoted};
use super::reader::Table;
use super::{Section, metric_paths};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Largest `back_to`. A delay may be back at several times what it was.
const MOST: f64 = 100.0;

/// What must come back. The time is from the start of `section` to the end of the first second with
/// the value, after a second without it; 0 if each second of the section has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// Path of the metric, over each second.
    pub metric: String,
    /// Name of the section in which it comes back.
    pub section: String,
    /// Name of the section that has the value from before.
    pub of: String,
    /// The value has come back at this share of the one from before: at least, or at most if a
    /// lower value is better.
    pub share: f64,
}

impl Recovery {
    /// Whether a value is back, beside the one from before.
    pub fn is_back(&self, value: f64, before: f64) -> bool {
        match Better::of(&self.metric) {
            Some(Better::Lower) => value <= self.share * before,
            _ => value >= self.share * before,
        }
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metric, section, of, share } = self;
        write!(f, "seconds from the start of {section} until {metric} is {share} of {of}:")
    }
}

/// Reads `back_to` and `of` of an expectation of this metric in this section.
pub(super) fn recovery(
    table: &Table,
    metric: &str,
    section: Option<&str>,
    sections: &[Section],
) -> Result<Option<Recovery>> {
    let (share, of) = match (table.get("back_to"), table.get("of")) {
        (None, None) => return Ok(None),
        (Some(share), Some(of)) => (share, of),
        (Some(_), None) => {
            let message = "back_to needs the section from before; write of = \"its name\"";
            return Err(table.error(message));
        }
        (None, Some(of)) => return Err(of.error("belongs to back_to; write back_to = 0.9")),
    };
    let value = share.number()?;
    if !(value > 0.0 && value <= MOST) {
        return Err(share.error("must be a share of the value before, such as 0.9"));
    }
    if !metric_paths::is_of_each_second(metric) {
        let known = metric_paths::EACH_SECOND.join(", ");
        let message = format!("{} is not measured each second; there are {known}", quoted(metric));
        return Err(share.error(&message));
    }
    if let Some(above) = table.get("above") {
        return Err(above.error("a comeback is early, not late; write below = 5, in seconds"));
    }
    let name = of.prose()?;
    let Some(later) = section.and_then(|name| section_of(sections, name)) else {
        let message = "back_to needs the section in which it comes back; write section = \"name\"";
        return Err(table.error(message));
    };
    let Some(earlier) = section_of(sections, &name) else {
        return Err(of.error(&format!("there is no section {}; write [[section]]", quoted(&name))));
    };
    if earlier.to > later.from {
        let (of, section) = (quoted(&name), quoted(&later.name));
        let message = format!("{of} must end before {section} begins");
        return Err(table.error(&message));
    }
    Ok(Some(Recovery {
        metric: metric.into(),
        section: later.name.clone(),
        of: name,
        share: value,
    }))
}

/// The section of this name.
fn section_of<'a>(sections: &'a [Section], name: &str) -> Option<&'a Section> {
    sections.iter().find(|section| section.name == name)
}

#[cfg(test)]
mod tests {
    use crate::parse;

    use super::*;

    /// A scenario whose expectation has these lines.
    fn parsed(lines: &str) -> std::result::Result<Recovery, String> {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"20s\"\n[network]\n\
             [[flow]]\n[[section]]\nname = \"before\"\nfrom = \"1s\"\nto = \"5s\"\n\
             [[section]]\nname = \"after\"\nfrom = \"8s\"\nto = \"20s\"\n[[expect]]\n{lines}\n"
        );
        let scenario = parse("x", &text, None).map_err(|error| error.to_string())?;
        Ok(scenario.expectations[0].recovery.clone().expect("the expectation has back_to"))
    }

    #[test]
    fn a_comeback_has_a_measure_a_share_and_two_sections() {
        let good = "metric = \"rate_mbps.mean\"\nsection = \"after\"\nback_to = 0.9\n\
                    of = \"before\"\nbelow = 5";
        let found = parsed(good).unwrap();
        assert_eq!(
            (found.share, found.of.as_str(), found.section.as_str()),
            (0.9, "before", "after")
        );
        for (from, to, words) in [
            ("of = \"before\"\n", "", "back_to needs the section from before"),
            ("back_to = 0.9\n", "", "write back_to"),
            ("back_to = 0.9", "back_to = 0", "must be a share"),
            ("of = \"before\"", "of = \"then\"", "no section 'then'"),
            ("of = \"before\"", "of = \"after\"", "must end before"),
            ("section = \"after\"\n", "", "needs the section in which"),
            ("below", "above", "early, not late"),
            ("rate_mbps.mean", "convergence_s", "not measured each second; there are"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = parsed(&good.replace(from, to)).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_rate_is_back_from_below_and_a_delay_from_above() {
        let of = |metric: &str, share| Recovery {
            metric: metric.into(),
            section: String::new(),
            of: String::new(),
            share,
        };
        let rate = of("rate_mbps.mean", 0.5);
        assert!(rate.is_back(1.0, 2.0) && !rate.is_back(0.9, 2.0));
        let delay = of("rtt_ms.mean", 2.0);
        assert!(delay.is_back(80.0, 40.0) && !delay.is_back(81.0, 40.0));
    }
}
