//! The HTML file: the viewer's page with the report's JSON in it.

use std::io;
use std::path::{Path, PathBuf};

use super::Report;
use crate::whole_file;

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
        self.html(VIEWER).ok_or(ReportError::NoViewer)
    }

    /// Writes one HTML file that opens offline, as a whole or not at all.
    pub fn write_html(&self, path: &Path) -> Result<(), ReportError> {
        let html = self.to_html()?;
        whole_file::write(path, html.as_bytes())
            .map_err(|error| ReportError::Io { path: path.into(), error })
    }

    /// The viewer's page with the data in it; `None` if `viewer` has no place for the data.
    fn html(&self, viewer: &str) -> Option<String> {
        let (head, tail) = viewer.split_once(PLACEHOLDER)?;
        Some([head, &self.json(), tail].concat())
    }

    /// The data that the page shows, as JSON that cannot close the HTML element around it, whatever text a
    /// scenario contains.
    pub fn json(&self) -> String {
        let json = serde_json::to_string(self).expect("plain data serializes");
        json.replace('<', r"\u003c")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_replaces_the_placeholder_and_nothing_else() {
        let report = Report::of_records(&[], "weir report '/*WEIR_DATA*/' $& </script>");
        let html = report.html("<script>/*WEIR_DATA*/</script>").unwrap();
        let json = html.strip_prefix("<script>").unwrap().strip_suffix("</script>").unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["command"], "weir report '/*WEIR_DATA*/' $& </script>");
        assert!(!json.contains('<'));
        assert_eq!(report.html(""), None);
    }

    #[test]
    fn a_program_without_the_viewer_says_how_to_get_it() {
        let error = ReportError::NoViewer.to_string();
        assert!(error.contains("run `make web`, then build again"), "{error}");
    }
}
