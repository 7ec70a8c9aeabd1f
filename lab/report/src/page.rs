//! The HTML file: the viewer's page with the report's JSON in it.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use weir_record::whole_file;

use super::Report;

/// The viewer as built by `make web`; empty if it was not built before this crate.
const VIEWER: &str = include_str!(concat!(env!("OUT_DIR"), "/report.html"));
const PLACEHOLDER: &str = "/*WEIR_DATA*/";

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The program was built without the page.
    #[error("this weir was built without the report viewer: run `make web`, then build again")]
    NoViewer,
    /// The file system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// What was written.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
}

impl Report {
    /// One HTML page that opens offline.
    pub fn to_html(&self) -> Result<String, ReportError> {
        page(&self.json())
    }

    /// Writes one HTML file that opens offline, as a whole or not at all.
    pub fn write_html(&self, path: &Path) -> Result<(), ReportError> {
        write(path, &self.json())
    }

    /// The data that the page shows, as JSON that cannot close the HTML element around it, whatever
    /// text a scenario contains.
    pub fn json(&self) -> String {
        json(self)
    }
}

/// The data of a report as JSON without `<`.
pub(super) fn json(report: &impl Serialize) -> String {
    let json = serde_json::to_string(report).expect("plain data serializes");
    json.replace('<', r"\u003c")
}

/// Writes the viewer's page with these data, as a whole or not at all.
pub(super) fn write(path: &Path, json: &str) -> Result<(), ReportError> {
    whole_file::write(path, page(json)?.as_bytes())
        .map_err(|error| ReportError::Io { path: path.into(), error })
}

fn page(json: &str) -> Result<String, ReportError> {
    html(VIEWER, json).ok_or(ReportError::NoViewer)
}

/// The viewer's page with the data in it; `None` if `viewer` has no place for the data.
fn html(viewer: &str, json: &str) -> Option<String> {
    let (head, tail) = viewer.split_once(PLACEHOLDER)?;
    Some([head, json, tail].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_replaces_the_placeholder_and_nothing_else() {
        let report = Report::of_records(&[], "weir report '/*WEIR_DATA*/' $& </script>");
        let html = html("<script>/*WEIR_DATA*/</script>", &report.json()).unwrap();
        let json = html.strip_prefix("<script>").unwrap().strip_suffix("</script>").unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["command"], "weir report '/*WEIR_DATA*/' $& </script>");
        assert!(!json.contains('<'));
        assert_eq!(super::html("", &report.json()), None);
    }

    #[test]
    fn a_program_without_the_viewer_says_how_to_get_it() {
        let error = ReportError::NoViewer.to_string();
        assert!(error.contains("run `make web`, then build again"), "{error}");
    }
}
