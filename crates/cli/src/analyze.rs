//! `weir analyze`: what limited a call that was made elsewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use weir_analyze::{
    AnalyzeError, CaptureOptions, Dump, KeyLog, OpenLoop, WayEstimate, estimate, findings,
    open_loop, open_loop_records, record, scenario_text,
};
use weir_lab::report::Report as Document;
use weir_lab::whole_file;

use crate::COULD_NOT_RUN;
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
    let keys = args.keys.as_deref().map(KeyLog::read).transpose()?;
    let options = CaptureOptions { keys, local: args.local };
    let mut dumps = Vec::new();
    for (file, name) in args.files.iter().zip(names(&args.files)?) {
        match read(file, &options) {
            Ok(dump) => dumps.push((name, dump)),
            // One bad file of many hides nothing of the others.
            Err(error) => eprintln!("weir: {}", output::escaped(&error.to_string())),
        }
        interrupt.check()?;
    }
    if !dumps.is_empty() {
        tell(args, &dumps, &interrupt)?;
    }
    let all_read = dumps.len() == args.files.len();
    Ok(ExitCode::from(if all_read { 0 } else { COULD_NOT_RUN }))
}

fn read(file: &Path, options: &CaptureOptions) -> Result<Dump, AnalyzeError> {
    match (&options.keys, options.local) {
        (None, None) => weir_analyze::read(file),
        _ => weir_analyze::read_capture(file, options),
    }
}

/// Prints what was found, and writes the files that were asked for.
fn tell(args: &Analyze, dumps: &[(String, Dump)], interrupt: &Interrupt) -> anyhow::Result<()> {
    match args.json {
        true => output::line(&as_json(dumps))?,
        false => dumps.iter().try_for_each(|(name, dump)| print(name, dump))?,
    }
    if let (Some(file), [(name, dump)]) = (&args.scenario, dumps) {
        let text = scenario_text(name, dump, &estimate(dump));
        whole_file::write(file, text.as_bytes()).with_context(|| file.display().to_string())?;
    }
    if args.output.is_none() && args.out.is_none() {
        return Ok(());
    }
    // Without --out, the records are only there for the report.
    let passing = tempfile::tempdir().context("make a temporary folder")?;
    let out = args.out.as_deref().unwrap_or(passing.path());
    let mut folders = Vec::new();
    for (name, dump) in dumps {
        folders.push(record(name, dump)?.write(out)?);
        for played in open_loop_records(name, dump)? {
            folders.push(played.write(out)?);
            interrupt.check()?;
        }
    }
    if let Some(file) = &args.output {
        let document = Document::of(&folders, &command(args), &interrupt.flag())?;
        document.ok_or(Interrupted)?.write_html(file)?;
        output::line(&output::escaped(&file.display().to_string()))?;
    }
    Ok(())
}

/// The names of the dumps: those of their files, with as many of the folders as tell them apart. Browsers
/// name every dump alike.
fn names(files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let last = |file: &PathBuf, count: usize| {
        let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
        let name = parts[parts.len().saturating_sub(count)..].join("/");
        if name == "-" { "stdin".to_owned() } else { name }
    };
    for (at, file) in files.iter().enumerate() {
        anyhow::ensure!(!files[..at].contains(file), "{} is named twice", file.display());
    }
    let longest = files.iter().map(|file| file.iter().count()).max().unwrap_or_default();
    for count in 1..longest {
        let names: Vec<String> = files.iter().map(|file| last(file, count)).collect();
        if names.iter().collect::<BTreeSet<_>>().len() == names.len() {
            return Ok(names);
        }
    }
    Ok(files.iter().map(|file| last(file, longest)).collect())
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
    for connection in &dump.connections {
        let Some(log) = &connection.packets else { continue };
        if log.unreadable_rtcp > 0 {
            let count = log.unreadable_rtcp;
            output::line(&format!(
                "{count} packets of RTCP are encrypted or cut: what they say about losses and round trips is unknown"
            ))?;
        }
        if log.is_cut {
            output::line(
                "too many packets: the open loop and the network are those of the first ones",
            )?;
        }
        print_open_loop(&open_loop(log))?;
    }
    Ok(())
}

/// A table of the targets that each controller would have had.
fn print_open_loop(played: &[OpenLoop]) -> anyhow::Result<()> {
    if played.is_empty() {
        return Ok(());
    }
    output::line(
        "\nopen loop: the recorded feedback, played into each controller. Nothing that it would have sent was carried.",
    )?;
    output::line("controller   target kbit/s: mean  smallest   largest    at end")?;
    for it in played {
        let (smallest, largest) = it.range();
        let at_end = it.at(it.end).unwrap_or_default();
        let [mean, smallest, largest, at_end] =
            [it.mean(), smallest, largest, at_end].map(|rate| rate.as_kbps_f64());
        output::line(&format!(
            "{:<12} {mean:>19.0} {smallest:>9.0} {largest:>9.0} {at_end:>9.0}",
            it.algorithm.name()
        ))?;
    }
    Ok(())
}

fn as_json(dumps: &[(String, Dump)]) -> String {
    let of = |(name, dump): &(String, Dump)| {
        let found: Vec<_> = findings(dump).into_iter().map(|finding| finding.0).collect();
        let played: Vec<_> = dump
            .connections
            .iter()
            .filter_map(|connection| connection.packets.as_ref())
            .flat_map(open_loop)
            .map(|it| json!({ "controller": it.algorithm.name(), "mean_kbps": it.mean().as_kbps_f64().round() }))
            .collect();
        let network = estimate(dump);
        // The metrics of a run, over what the dump knows.
        let flows = record(name, dump).ok().map(|record| json!(record.summary())["flows"].take());
        json!({
            "file": name,
            "format": dump.format.to_string(),
            "duration_s": network.duration_s,
            "findings": found,
            "network": { "up": way_json(&network.up), "down": way_json(&network.down) },
            "open_loop": played,
            "flows": flows,
        })
    };
    let all: Vec<_> = dumps.iter().map(of).collect();
    serde_json::to_string_pretty(&all).expect("plain data serializes")
}

fn way_json(way: &WayEstimate) -> serde_json::Value {
    let kbps = |bps: f64| (bps / 1e3).round();
    let tested: Vec<_> = way
        .tested
        .iter()
        .map(|it| json!({ "from_s": it.from_s, "to_s": it.to_s, "kbps": kbps(it.bps) }))
        .collect();
    json!({
        "capacity": tested,
        "mean_kbps": kbps(way.mean_bps),
        "delay_ms": way.delay_ms,
        "loss_ratio": way.loss,
        "queue_ms": way.queue_ms,
        "queue_was_full": way.overflowed,
    })
}

fn command(args: &Analyze) -> String {
    let mut words: Vec<String> = args.files.iter().map(|file| file.display().to_string()).collect();
    words.extend(args.keys.iter().map(|file| format!("--keys {}", file.display())));
    words.extend(args.local.iter().map(|local| format!("--local {local}")));
    words.extend(args.output.iter().map(|file| format!("-o {}", file.display())));
    format!("weir analyze {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_of_one_name_are_told_apart_by_their_folders() {
        let of = |files: &[&str]| names(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a/dump.gz"]).unwrap(), ["dump.gz"]);
        assert_eq!(of(&["a/x.gz", "a/y.gz", "-"]).unwrap(), ["x.gz", "y.gz", "stdin"]);
        assert_eq!(of(&["a/d/x.gz", "b/d/x.gz"]).unwrap(), ["a/d/x.gz", "b/d/x.gz"]);
        assert_eq!(of(&["x.gz", "b/x.gz"]).unwrap(), ["x.gz", "b/x.gz"]);
        assert_eq!(of(&["a/x.gz", "a/x.gz"]).unwrap_err().to_string(), "a/x.gz is named twice");
    }
}
