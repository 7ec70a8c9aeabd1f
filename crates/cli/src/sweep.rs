//! `weir sweep`: many runs by Dask, through the Python package, which is where Dask is.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

use crate::args::Sweep;

/// The Python that has the package, if it is not `python3`.
const PYTHON: &str = "WEIR_PYTHON";

/// Makes the sweep of the file, and returns the exit code of the package.
pub fn sweep(args: &Sweep) -> anyhow::Result<ExitCode> {
    let python = env::var_os(PYTHON).unwrap_or_else(|| "python3".into());
    let has_package = Command::new(&python)
        .args(["-c", "import weir_rtc.sweeps, distributed"])
        .output()
        .with_context(|| format!("`weir sweep` needs Python: {}", python.display()))?;
    ensure!(
        has_package.status.success(),
        "`weir sweep` needs the Python package weir-rtc[sweep] in {}: see docs/guide/python.md, or set {PYTHON}",
        python.display()
    );
    let mut command = Command::new(&python);
    command.args(["-m", "weir_rtc"]).arg(&args.file).arg("--out").arg(&args.out);
    if let Some(scheduler) = &args.scheduler {
        command.args(["--scheduler", scheduler]);
    }
    if let Some(workers) = args.workers {
        command.args(["--workers", &workers.to_string()]);
    }
    let status = command.status().with_context(|| python.display().to_string())?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, Into::into))
}
