//! Commands that pages offer to be copied.

use pyo3::prelude::*;
use weir_record::shell::CommandLine;

/// A command in shell syntax: words of our own, names of files and folders, options with values,
/// and options with the name of a file or folder.
#[pyfunction]
#[pyo3(signature = (words, names, options = vec![], paths = vec![]))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands the values over")]
pub fn command_line(
    words: &str,
    names: Vec<String>,
    options: Vec<(String, String)>,
    paths: Vec<(String, String)>,
) -> String {
    let mut line = CommandLine::new(words);
    for name in &names {
        line = line.name(name);
    }
    for (option, value) in &options {
        line = line.option(option, value);
    }
    for (option, path) in &paths {
        line = line.path(option, path);
    }
    line.to_string()
}

/// The command that gives a member of an archive to `weir analyze`, which writes its report.
#[pyfunction]
pub fn unpacking(archive: &str, member: &str, report: &str) -> String {
    let analyze = CommandLine::new("weir analyze").name("-").path("-o", report);
    CommandLine::unpacking(archive, member).piped(&analyze).to_string()
}
