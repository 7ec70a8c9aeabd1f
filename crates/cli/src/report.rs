//! `weir report`: one HTML file over recorded runs.

use std::process::ExitCode;

use weir_lab::record::{self, Record};
use weir_lab::report::Report as Document;

use crate::args::Report;
use crate::output;

/// Reads the records and writes the report.
pub fn report(args: &Report) -> anyhow::Result<ExitCode> {
    let mut records = Vec::new();
    for folder in &args.folders {
        let folders = record::find(folder)?;
        anyhow::ensure!(!folders.is_empty(), "{} holds no record of a run", folder.display());
        for folder in folders {
            records.push(Record::read(&folder)?);
        }
    }
    let document = Document::of(&records, &command(args));
    document.write_html(&args.output)?;
    output::line(&args.output.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn command(args: &Report) -> String {
    let folders: Vec<String> =
        args.folders.iter().map(|folder| folder.display().to_string()).collect();
    format!("weir report {} -o {}", folders.join(" "), args.output.display())
}
