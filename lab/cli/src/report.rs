//! `weir report`: one HTML file over recorded runs.

use std::process::ExitCode;

use weir_lab::report::{self, Report as Document};

use crate::args::Report;
use crate::interrupt::{Interrupt, Interrupted};
use crate::{output, sweep};

/// Reads the records and writes the report.
pub fn report(args: &Report) -> anyhow::Result<ExitCode> {
    if let [folder] = args.folders.as_slice()
        && sweep::has_sweep(folder)
    {
        return sweep::report(folder, &args.output);
    }
    let mut folders = Vec::new();
    for folder in &args.folders {
        let found = report::find(folder)?;
        anyhow::ensure!(!found.is_empty(), "{} contains no record of a run", folder.display());
        folders.extend(found);
    }
    // From here on a signal ends the program between two files, not while it writes one.
    let interrupt = Interrupt::listen()?;
    let document = Document::of(&folders, &command(args), &interrupt.flag())?;
    let document = document.ok_or(Interrupted)?;
    document.write_html(&args.output)?;
    output::line(&output::escaped(&args.output.display().to_string()))?;
    Ok(ExitCode::SUCCESS)
}

fn command(args: &Report) -> String {
    let folders: Vec<String> =
        args.folders.iter().map(|folder| folder.display().to_string()).collect();
    format!("weir report {} -o {}", folders.join(" "), args.output.display())
}
