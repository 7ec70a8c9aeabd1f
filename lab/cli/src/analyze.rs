//! `weir analyze`: what limited a call that was made elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use weir_analyze::{
    AnalyzeError, Answer, CaptureOptions, Dump, KeyLog, OpenLoop, WayEstimate, answer, estimate,
    open_loop, open_loop_records, record, scenario_text,
};
use weir_lab::report::Report as Document;
use weir_lab::{scenario, whole_file};

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
    check_outputs(args)?;
    // Until the first file is written, a signal may end the program at once.
    let keys = args.keys.as_deref().map(KeyLog::read).transpose()?;
    let options = CaptureOptions { keys, local: args.local };
    let mut dumps = Vec::new();
    for (file, name) in args.files.iter().zip(names(&args.files)?) {
        match read(file, &options) {
            Ok(dump) => {
                for warning in &dump.warnings {
                    eprintln!("weir: {}", output::escaped(&format!("{name}: {warning}")));
                }
                dumps.push((name, dump));
            }
            // One bad file of many hides nothing of the others.
            Err(error) => eprintln!("weir: {}", output::escaped(&error.to_string())),
        }
    }
    if !dumps.is_empty() {
        tell(args, &dumps)?;
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
fn tell(args: &Analyze, dumps: &[(String, Dump)]) -> anyhow::Result<()> {
    match args.json {
        true => output::line(&as_json(dumps))?,
        false => dumps.iter().try_for_each(|(name, dump)| print(name, dump))?,
    }
    if let (Some(file), [(name, dump)]) = (&args.scenario, dumps) {
        let text = scenario_text(name, dump, &estimate(dump));
        scenario::parse("scenario", &text, None)
            .map_err(|error| anyhow::anyhow!("this call cannot be a scenario: {error}"))?;
        whole_file::write(file, text.as_bytes()).with_context(|| file.display().to_string())?;
    }
    if args.output.is_none() && args.out.is_none() {
        return Ok(());
    }
    let interrupt = Interrupt::listen()?;
    // Without --out, the records are only there for the report.
    let passing = tempfile::tempdir().context("make a temporary folder")?;
    let out = args.out.as_deref().unwrap_or(passing.path());
    let mut folders = Vec::new();
    for (name, dump) in dumps {
        if dump.connections.is_empty() {
            let name = output::escaped(name);
            eprintln!("weir: {name}: no stream of video or audio, so there is no record of it");
            continue;
        }
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

/// Refuses to write over what is read, or into a folder that does not exist.
fn check_outputs(args: &Analyze) -> anyhow::Result<()> {
    let outputs = [("-o", &args.output), ("--scenario", &args.scenario)];
    for (option, file) in outputs {
        let Some(file) = file else { continue };
        for read in args.files.iter().chain(&args.keys) {
            anyhow::ensure!(
                !is_same(file, read),
                "{option} {} would replace {}, which is read: name another file",
                file.display(),
                read.display()
            );
        }
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.exists()) {
            anyhow::bail!(
                "{option} {}: there is no folder {}: make it first",
                file.display(),
                folder.display()
            );
        }
    }
    if let (Some(page), Some(scenario)) = (&args.output, &args.scenario) {
        anyhow::ensure!(
            page != scenario && !is_same(page, scenario),
            "-o and --scenario name the same file: {}",
            page.display()
        );
    }
    Ok(())
}

/// Whether two paths lead to one file, through links of either kind, too.
fn is_same(a: &Path, b: &Path) -> bool {
    let paths = (fs::canonicalize(a), fs::canonicalize(b));
    let (Ok(a), Ok(b)) = paths else { return false };
    if !a.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if let (Ok(a), Ok(b)) = (fs::metadata(&a), fs::metadata(&b)) {
            return (a.dev(), a.ino()) == (b.dev(), b.ino());
        }
    }
    a == b
}

/// The names of the dumps: those of their files, with as many of the folders as tell them apart.
/// Browsers name every dump alike.
fn names(files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    for (at, file) in files.iter().enumerate() {
        anyhow::ensure!(!files[..at].contains(file), "{} is named twice", file.display());
    }
    let longest = files.iter().map(|file| file.iter().count()).max().unwrap_or_default();
    let mut names = Vec::new();
    for count in 1..=longest {
        names = files.iter().map(|file| last_parts(file, count)).collect();
        if names.iter().collect::<BTreeSet<_>>().len() == names.len() {
            break;
        }
    }
    Ok(names)
}

/// The file's name with its last folders, `count` parts together.
fn last_parts(file: &Path, count: usize) -> String {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    let name = parts[parts.len().saturating_sub(count)..].join("/");
    if name == "-" { "stdin".to_owned() } else { name }
}

fn print(name: &str, dump: &Dump) -> anyhow::Result<()> {
    let streams: usize = dump.connections.iter().map(|it| it.streams.len()).sum();
    let network = estimate(dump);
    let Answer { verdict, findings, details, .. } = answer(dump);
    output::line(&output::escaped(&format!("{name}: {verdict}")))?;
    if !findings.is_empty() {
        output::line("\nfindings, the largest effect on the call first:")?;
    }
    for finding in findings {
        output::line(&output::escaped(&format!("  {finding}")))?;
    }
    output::line(&format!(
        "\ndetails: {}, {:.0} s, connections with media: {}, streams: {streams}",
        dump.format,
        network.duration_s,
        dump.connections.len(),
    ))?;
    for detail in details {
        output::line(&output::escaped(&format!("  {detail}")))?;
    }
    for connection in &dump.connections {
        let Some(log) = &connection.packets else { continue };
        if log.unreadable_rtcp > 0 {
            output::line(&unreadable_rtcp(log.unreadable_rtcp))?;
        }
        print_open_loop(&open_loop(log))?;
    }
    Ok(())
}

/// What is missing of a capture, and how to get it.
fn unreadable_rtcp(count: u64) -> String {
    let packets = if count == 1 { "packet" } else { "packets" };
    format!(
        "{count} {packets} of RTCP unread, encrypted or cut: losses and round trips are unknown. \
         --keys FILE opens the encrypted ones with the key log of a browser (SSLKEYLOGFILE)"
    )
}

/// A table of the targets that each controller would have had.
fn print_open_loop(played: &[OpenLoop]) -> anyhow::Result<()> {
    if played.is_empty() {
        return Ok(());
    }
    output::line(
        "\nopen loop: the recorded feedback, played into each controller. \
         Nothing that it would have sent was carried.",
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
    let cut = played.iter().filter(|it| it.is_cut);
    let cut: Vec<&str> = cut.map(|it| it.algorithm.name()).collect();
    if !cut.is_empty() {
        let cut = cut.join(", ");
        output::line(&format!("stopped before the end, after too many timeouts: {cut}"))?;
    }
    Ok(())
}

fn as_json(dumps: &[(String, Dump)]) -> String {
    let mut all = Vec::new();
    for (name, dump) in dumps {
        let Answer { verdict, findings, details, good_time, .. } = answer(dump);
        let found: Vec<_> = findings.into_iter().map(|finding| finding.0).collect();
        let logs = dump.connections.iter().filter_map(|connection| connection.packets.as_ref());
        let mut played = Vec::new();
        for it in logs.flat_map(open_loop) {
            let mean_kbps = it.mean().as_kbps_f64().round();
            played.push(json!({ "controller": it.algorithm.name(), "mean_kbps": mean_kbps }));
        }
        let network = estimate(dump);
        // The metrics of a run, over what the dump knows.
        let flows = record(name, dump).ok().map(|record| json!(record.summary())["flows"].take());
        all.push(json!({
            "file": name,
            "format": dump.format.to_string(),
            "warnings": dump.warnings,
            "duration_s": network.duration_s,
            "verdict": verdict,
            "findings": found,
            "details": details,
            "good_time": {
                "good_s": good_time.good_s,
                "no_picture_s": good_time.no_picture_s,
                "late_s": good_time.late_s,
            },
            "network": { "up": way_json(&network.up), "down": way_json(&network.down) },
            "open_loop": played,
            "flows": flows,
        }));
    }
    serde_json::to_string_pretty(&all).expect("plain data serializes")
}

fn way_json(way: &WayEstimate) -> serde_json::Value {
    let mut tested = Vec::new();
    for it in &way.tested {
        let kbps = (it.bps / 1e3).round();
        let mut span = json!({ "from_s": it.from_s, "to_s": it.to_s, "kbps": kbps });
        if let Some(bps) = it.rivals_bps {
            span["rivals_kbps"] = (bps / 1e3).round().into();
        }
        tested.push(span);
    }
    json!({
        "capacity": tested,
        "mean_kbps": (way.mean_bps / 1e3).round(),
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
    fn the_verdict_comes_before_the_findings_in_json() {
        let place = "../analyze/tests/dumps/drop.rtcstats.gz";
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
        let dump = weir_analyze::read(&place).unwrap();
        let all: serde_json::Value =
            serde_json::from_str(&as_json(&[("drop".into(), dump)])).unwrap();
        let verdict = all[0]["verdict"].as_str().unwrap();
        assert!(verdict.starts_with("Uplink fell to 0.4 Mbit/s from 5 to 15 s"), "{verdict}");
        assert!(all[0]["findings"].as_array().is_some_and(|it| !it.is_empty()));
        assert!(all[0]["details"].is_array());
    }

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
