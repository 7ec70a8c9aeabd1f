//! `weir sweep`: many runs, by the Python package, which also makes the report of a sweep.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, ensure};

use crate::args::Sweep;

/// The Python that has the package, if it is not `python3`.
const PYTHON: &str = "WEIR_PYTHON";

/// Makes the sweep of the file, or one of its runs again, and returns the exit code of the package.
pub fn sweep(args: &Sweep) -> anyhow::Result<ExitCode> {
    let out = args.out.as_os_str();
    if let Some(key) = &args.replay {
        let key = OsString::from(format!("--replay={key}"));
        return package("weir sweep", "duckdb", &["sweep".as_ref(), &key, "--out".as_ref(), out]);
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
    package("weir sweep", "pyarrow", &words)
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
    package("the report of a sweep", "duckdb", &words)
}

/// Runs the package with these words. It must be there with its part `sweep`, to which this module
/// belongs.
pub fn package(what: &str, module: &str, words: &[&OsStr]) -> anyhow::Result<ExitCode> {
    let python = env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
    // What it says is not read, so that it cannot be too much.
    let status = Command::new(&python)
        .args(["-c", &format!("import weir_rtc.sweeps, {module}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("{what} needs Python: {}", python.display()))?;
    ensure!(
        status.success(),
        "{what} needs the Python package weir-rtc[sweep] in {}: see docs/guide/python.md, or set \
         {PYTHON}",
        python.display()
    );
    let mut command = Command::new(&python);
    command.args(["-m", "weir_rtc"]).args(words);
    become_program(command).with_context(|| python.display().to_string())
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
