//! `weir sweep`: many runs, by the Python package, which also makes the report of a sweep.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};

use crate::args::Sweep;

/// The Python that has the package, if it is not `python3`.
const PYTHON: &str = "WEIR_PYTHON";
/// The package's module that needs most of it.
const OWN: &str = "weir_rtc.sweeps";
/// A module that came with the language's version that the package needs.
const LANGUAGE: &str = "tomllib";

/// Makes the sweep of the file, or one of its runs again, and returns the exit code of the package.
pub fn sweep(args: &Sweep) -> anyhow::Result<ExitCode> {
    let out = args.out.as_os_str();
    if let Some(key) = &args.replay {
        let key = OsString::from(format!("--replay={key}"));
        return package(
            "weir sweep",
            &["duckdb"],
            &["sweep".as_ref(), &key, "--out".as_ref(), out],
        );
    }
    let workers = args.workers.map(|count| count.to_string());
    let mut words: Vec<&OsStr> = vec!["sweep".as_ref(), "--out".as_ref(), out];
    if let Some(scheduler) = &args.scheduler {
        words.extend([OsStr::new("--scheduler"), OsStr::new(scheduler)]);
    }
    if let Some(workers) = &workers {
        words.extend([OsStr::new("--workers"), OsStr::new(workers)]);
    }
    // Last, because a file's name may begin like an option.
    let file = args.file.as_ref().expect("clap requires it without --replay");
    words.extend([OsStr::new("--"), file.as_os_str()]);
    package("weir sweep", &["pyarrow"], &words)
}

/// Whether a sweep has written into this folder: it has folders with Parquet files.
pub fn has_sweep(folder: &Path) -> bool {
    entries(folder)
        .any(|part| entries(&part).any(|file| file.extension() == Some("parquet".as_ref())))
}

/// Paths of the entries of a folder; none if it cannot be read.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Writes the report of a sweep.
pub fn report(folder: &Path, file: &Path) -> anyhow::Result<ExitCode> {
    let [verb, output] = ["report", "--output"].map(OsStr::new);
    let words = [verb, folder.as_os_str(), output, file.as_os_str()];
    package("the report of a sweep", &["duckdb"], &words)
}

/// Runs the package with these words. It needs these packages of others, too.
pub fn package(what: &str, others: &[&str], words: &[&OsStr]) -> anyhow::Result<ExitCode> {
    let python = Python::of_this_machine();
    let name = python.program.display();
    let missing = python.missing(others).with_context(|| format!("{what} needs Python: {name}"))?;
    if let Some(package) = missing {
        let remedy = match package {
            LANGUAGE => format!("Python 3.11 or later, and {name} is older: set {PYTHON}"),
            OWN => format!(
                "the Python package weir-rtc in {name}: `make install` brings it along \
                 (docs/guide/install.md), or set {PYTHON}"
            ),
            other => {
                format!("{other}: {name} -m pip install {}, or set {PYTHON}", others.join(" "))
            }
        };
        bail!("{what} needs {remedy}");
    }
    let mut command = python.command();
    command.args(["-m", "weir_rtc"]).args(words);
    become_program(command).with_context(|| name.to_string())
}

/// The Python that runs the package.
struct Python {
    program: PathBuf,
    /// Where the package is, if `make install` brought it along.
    installed: Option<PathBuf>,
}

impl Python {
    /// The one that the user chose has packages of its own.
    fn of_this_machine() -> Self {
        match env::var_os(PYTHON) {
            Some(program) => Self { program: program.into(), installed: None },
            None => Self { program: "python3".into(), installed: installed() },
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(folder) = &self.installed {
            let others = env::var_os("PYTHONPATH").unwrap_or_default();
            let others = env::split_paths(&others).filter(|it| !it.as_os_str().is_empty());
            let folders = std::iter::once(folder.clone()).chain(others);
            // A folder whose name has a colon cannot be passed on, and Python finds nothing there.
            if let Ok(path) = env::join_paths(folders) {
                command.env("PYTHONPATH", path);
            }
        }
        command
    }

    /// The first that is missing of what the package and these need.
    fn missing<'a>(&self, others: &[&'a str]) -> std::io::Result<Option<&'a str>> {
        let needed = [&[LANGUAGE, OWN][..], others].concat();
        if self.imports(&needed.join(", "))? {
            return Ok(None);
        }
        for module in needed {
            if !self.imports(module)? {
                return Ok(Some(module));
            }
        }
        Ok(Some(OWN))
    }

    /// What it says is not read, so that it cannot be too much.
    fn imports(&self, modules: &str) -> std::io::Result<bool> {
        let mut command = self.command();
        command.args(["-c", &format!("import {modules}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.status()?.success())
    }
}

/// The folder in which `make install` puts the package.
fn installed() -> Option<PathBuf> {
    let program = env::current_exe().ok()?.canonicalize().ok()?;
    let folder = program.parent()?.parent()?.join("lib/weir/python");
    folder.is_dir().then_some(folder)
}

/// Runs the command in place of this program, so that whoever ends this process ends the sweep.
#[cfg(unix)]
fn become_program(mut command: Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

/// Runs the command, and returns its exit code.
#[cfg(not(unix))]
fn become_program(mut command: Command) -> std::io::Result<ExitCode> {
    let status = command.status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_a_folder_with_parquet_files_in_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("rfc8867__5.1");
        fs::create_dir(&inner).unwrap();
        assert!(!has_sweep(folder.path()));
        fs::write(inner.join("0.parquet"), "").unwrap();
        assert!(has_sweep(folder.path()));
        assert!(!has_sweep(&inner) && !has_sweep(Path::new("/no/such/folder")));
    }
}
