//! `weir analyze`: what limited a call that was made elsewhere.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use weir_analyze::{Dump, estimate, findings, record, scenario_text};
use weir_lab::report::Report as Document;
use weir_lab::whole_file;

use crate::args::Analyze;
use crate::interrupt::{Interrupt, Interrupted};
use crate::output;

/// Reads the dumps, prints the findings, and writes what was asked for.
pub fn analyze(args: &Analyze) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.scenario.is_none() || args.files.len() == 1,
        "--scenario describes one call: name one dump"
    );
    let interrupt = Interrupt::listen()?;
    let mut dumps = Vec::new();
    for file in &args.files {
        dumps.push((name(file), weir_analyze::read(file)?));
        interrupt.check()?;
    }
    match args.json {
        true => output::line(&as_json(&dumps))?,
        false => dumps.iter().try_for_each(|(name, dump)| print(name, dump))?,
    }
    if let (Some(file), [(name, dump)]) = (&args.scenario, &dumps[..]) {
        let text = scenario_text(name, dump, &estimate(dump));
        whole_file::write(file, text.as_bytes()).with_context(|| file.display().to_string())?;
    }
    if args.output.is_none() && args.out.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    // Without --out, the records are only there for the report.
    let passing = tempfile::tempdir().context("make a temporary folder")?;
    let out = args.out.as_deref().unwrap_or(passing.path());
    let mut folders = Vec::new();
    for (name, dump) in &dumps {
        folders.push(record(name, dump)?.write(out)?);
    }
    if let Some(file) = &args.output {
        let document = Document::of(&folders, &command(args), &interrupt.flag())?;
        document.ok_or(Interrupted)?.write_html(file)?;
        output::line(&output::escaped(&file.display().to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of a dump: that of its file.
fn name(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

fn print(name: &str, dump: &Dump) -> anyhow::Result<()> {
    let streams: usize = dump.connections.iter().map(|it| it.streams.len()).sum();
    let network = estimate(dump);
    output::line(&output::escaped(&format!(
        "{name}: {}, {:.0} s, connections: {}, streams: {streams}",
        dump.format,
        network.duration_s,
        dump.connections.len(),
    )))?;
    let found = findings(dump);
    if found.is_empty() {
        output::line("no rule found a limit")?;
    }
    for finding in found {
        output::line(&output::escaped(&finding.to_string()))?;
    }
    Ok(())
}

fn as_json(dumps: &[(String, Dump)]) -> String {
    let of = |(name, dump): &(String, Dump)| {
        let found: Vec<_> = findings(dump).into_iter().map(|finding| finding.0).collect();
        json!({ "file": name, "format": dump.format.to_string(), "findings": found })
    };
    let all: Vec<_> = dumps.iter().map(of).collect();
    serde_json::to_string_pretty(&all).expect("plain data serializes")
}

fn command(args: &Analyze) -> String {
    let files: Vec<String> = args.files.iter().map(|file| file.display().to_string()).collect();
    let output = args.output.as_ref().map(|file| format!(" -o {}", file.display()));
    format!("weir analyze {}{}", files.join(" "), output.unwrap_or_default())
}
