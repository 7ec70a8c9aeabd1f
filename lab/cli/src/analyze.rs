//! `weir analyze`: what limited a call that was made elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use weir_analyze::{
    AnalyzeError, Answer, CaptureOptions, Cause, DirectionEstimate, Dump, Finding, KeyLog,
    OpenLoop, answer, clock, date_and_clock, estimate, findings, iso_8601, measured, open_loop,
    open_loop_records, record, scenario_text,
};
use weir_record::shell::CommandLine;
use weir_record::whole_file;
use weir_report::Report as Document;

use crate::COULD_NOT_RUN;
use crate::args::Analyze;
use crate::interrupt::{Interrupt, Interrupted};
use crate::{output, pipe, streams};

/// Reads the dumps, prints the findings, and writes what was asked for.
pub fn analyze(args: &Analyze) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.scenario.is_none() || args.files.len() == 1,
        "--scenario describes one call: name one dump"
    );
    check_outputs(args)?;
    // Until the first file is written, a signal may end the program at once.
    let keys = args.keys.as_deref().map(read_keys).transpose()?;
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
    let has_options = options.keys.is_some() || options.local.is_some();
    let options = has_options.then_some(options);
    if file == Path::new("-") {
        pipe::wait(&stdin(), "the standard input").map_err(|error| failed(file, error))?;
    }
    match (pipe::open(file).map_err(|error| failed(file, error))?, options) {
        (Some(pipe), options) => weir_analyze::read_from(file, Box::new(pipe), options),
        (None, None) => weir_analyze::read(file),
        (None, Some(options)) => weir_analyze::read_capture(file, options),
    }
}

fn read_keys(file: &Path) -> Result<KeyLog, AnalyzeError> {
    match pipe::open(file).map_err(|error| failed(file, error))? {
        Some(pipe) => KeyLog::read_from(file, pipe),
        None => KeyLog::read(file),
    }
}

fn failed(file: &Path, error: io::Error) -> AnalyzeError {
    AnalyzeError::Io { path: file.into(), error }
}

/// Prints what was found, and writes the files that were asked for.
fn tell(args: &Analyze, dumps: &[(String, Dump)]) -> anyhow::Result<()> {
    match (args.json, args.ticket) {
        (true, _) => print_json(dumps)?,
        (_, true) => dumps.iter().try_for_each(|(name, dump)| print_ticket(name, dump))?,
        _ => {
            dumps.iter().try_for_each(|(name, dump)| print(name, dump))?;
            print_side_by_side(dumps)?;
        }
    }
    if let (Some(file), [(name, dump)]) = (&args.scenario, dumps) {
        let text = scenario_text(name, dump, &estimate(dump));
        weir_scenario::parse("scenario", &text, None)
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

fn print_ticket(name: &str, dump: &Dump) -> anyhow::Result<()> {
    output::line(&output::escaped(&format!("{name}: {}", answer(dump).ticket)))
}

fn print(name: &str, dump: &Dump) -> anyhow::Result<()> {
    let count: usize = dump.connections.iter().map(|it| it.streams.len()).sum();
    let Answer { verdict, findings, details, streams: rows, network, .. } = answer(dump);
    output::line(&output::escaped(&format!("{name}: {verdict}")))?;
    if !findings.is_empty() {
        output::line("\nfindings, the largest effect on the call first:")?;
    }
    for finding in findings {
        output::line(&output::escaped(&format!("  {}", finding.at_clock(dump.zero_ms))))?;
    }
    if !rows.is_empty() {
        output::line("\nstreams:")?;
        for line in streams::table(&rows).lines() {
            output::line(&output::escaped(&format!("  {line}")))?;
        }
    }
    let began = dump.zero_ms.and_then(date_and_clock);
    let began = began.map(|at| format!(" from {at} on")).unwrap_or_default();
    output::line(&format!(
        "\ndetails: {}, {:.0} s{began}, connections with media: {}, streams: {count}",
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

/// The findings of calls that went on at one time, such as the two ends of one, on one clock.
fn print_side_by_side(dumps: &[(String, Dump)]) -> anyhow::Result<()> {
    if dumps.len() < 2 {
        return Ok(());
    }
    let mut all: Vec<(f64, String)> = Vec::new();
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for (name, dump) in dumps {
        let Some(zero_ms) = dump.zero_ms else { continue };
        spans.push((zero_ms, zero_ms + estimate(dump).duration_s * 1e3));
        for finding in findings(dump) {
            let [from_ms, to_ms] =
                [finding.0.from_s, finding.0.to_s].map(|seconds| zero_ms + seconds * 1e3);
            let Some((from, to)) = clock(from_ms).zip(clock(to_ms)) else { continue };
            let time = if from == to { from } else { format!("{from} to {to}") };
            let says = format!("{time}  {name}: {}: {}", finding.0.stream, finding.0.says);
            all.push((from_ms, says));
        }
    }
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let go_together = spans.windows(2).any(|pair| pair[1].0 < pair[0].1);
    if all.is_empty() || !go_together {
        return Ok(());
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    output::line("\nall findings on one clock (UTC, by the device that wrote each):")?;
    for (_, line) in all {
        output::line(&output::escaped(&format!("  {line}")))?;
    }
    Ok(())
}

/// What is missing of a capture, and how to get it.
fn unreadable_rtcp(count: u64) -> String {
    let packets = if count == 1 { "packet" } else { "packets" };
    format!(
        "{count} {packets} of RTCP unread, encrypted or cut: losses of what this end sent, and \
         round \
         trips, are known from the rest alone. --keys FILE opens the encrypted \
         ones with the key log of a browser (SSLKEYLOGFILE)"
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

/// Prints a list with an object for each dump, one after the other, so that it never is in memory
/// as a whole.
fn print_json(dumps: &[(String, Dump)]) -> anyhow::Result<()> {
    for (at, (name, dump)) in dumps.iter().enumerate() {
        let begin = if at == 0 { "[\n" } else { "" };
        let end = if at + 1 == dumps.len() { "\n]" } else { "," };
        output::line(&format!("{begin}{}{end}", as_json(name, dump)))?;
    }
    Ok(())
}

fn as_json(name: &str, dump: &Dump) -> String {
    let Answer {
        verdict,
        ticket,
        outcome,
        main_cause,
        findings,
        details,
        good_time,
        streams,
        connections,
        network,
        ..
    } = answer(dump);
    let found: Vec<_> = findings.iter().map(|it| finding_json(it, dump.zero_ms)).collect();
    let logs = dump.connections.iter().filter_map(|connection| connection.packets.as_ref());
    let mut played = Vec::new();
    for it in logs.flat_map(open_loop) {
        let mean_kbps = it.mean().as_kbps_f64().round();
        played.push(json!({ "controller": it.algorithm.name(), "mean_kbps": mean_kbps }));
    }
    // The metrics of a run, over what the dump knows.
    let flows = measured(name, dump).ok().map(|summary| summary.flows);
    let value = json!({
        "file": name,
        "format": dump.format.to_string(),
        "warnings": dump.warnings,
        "began": dump.zero_ms.and_then(iso_8601),
        "duration_s": network.duration_s,
        "outcome": outcome.name(),
        "main_cause": main_cause.map(Cause::name),
        "verdict": verdict,
        "ticket": ticket,
        "findings": found,
        "details": details,
        "streams": streams.iter().map(streams::stream_json).collect::<Vec<_>>(),
        "connections": connections.iter().map(streams::connection_json).collect::<Vec<_>>(),
        "good_time": {
            "good_s": good_time.good_s,
            "no_picture_s": good_time.no_picture_s,
            "late_s": good_time.late_s,
        },
        "network": { "up": direction_json(&network.up), "down": direction_json(&network.down) },
        "open_loop": played,
        "flows": flows,
    });
    let text = serde_json::to_string_pretty(&value).expect("plain data serializes");
    // As in a list.
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// A finding with its times of day, where they are known.
fn finding_json(finding: &Finding, zero_ms: Option<f64>) -> serde_json::Value {
    let mut value = json!(finding.0);
    for (name, seconds) in [("from", finding.0.from_s), ("to", finding.0.to_s)] {
        value[name] = json!(zero_ms.and_then(|zero_ms| iso_8601(zero_ms + seconds * 1e3)));
    }
    value
}

fn direction_json(direction: &DirectionEstimate) -> serde_json::Value {
    let mut tested = Vec::new();
    for it in &direction.tested {
        let kbps = (it.bps / 1e3).round();
        let mut span = json!({ "from_s": it.from_s, "to_s": it.to_s, "kbps": kbps });
        if let Some(bps) = it.rivals_bps {
            span["rivals_kbps"] = (bps / 1e3).round().into();
        }
        tested.push(span);
    }
    json!({
        "capacity": tested,
        "mean_kbps": (direction.mean_bps / 1e3).round(),
        "delay_ms": direction.delay_ms,
        "loss_ratio": direction.loss,
        "queue_ms": direction.queue_ms,
        "queue_was_full": direction.overflowed,
    })
}

fn command(args: &Analyze) -> String {
    let mut line = CommandLine::new("weir analyze");
    for file in &args.files {
        line = line.name(&file.display().to_string());
    }
    if let Some(keys) = &args.keys {
        line = line.path("--keys", &keys.display().to_string());
    }
    if let Some(local) = args.local {
        line = line.option("--local", &local.to_string());
    }
    if let Some(output) = &args.output {
        line = line.path("-o", &output.display().to_string());
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

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
        assert_eq!(all[0]["streams"].as_array().map(Vec::len), Some(2));
        let began = all[0]["began"].as_str().unwrap();
        assert!(began.starts_with("20") && began.ends_with('Z'), "{began}");
        assert_ne!(all[0]["findings"][0]["from"], serde_json::Value::Null);
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

    #[test]
    fn the_command_of_an_analysis_has_one_word_for_each_name() {
        let of = |words: &[&str]| {
            let words = ["weir", "analyze"].into_iter().chain(words.iter().copied());
            let Command::Analyze(args) = Args::try_parse_from(words).unwrap().command else {
                panic!("an analysis")
            };
            command(&args)
        };
        assert_eq!(of(&["-", "-o", "a.html"]), "weir analyze - -o a.html");
        let line = of(&["-o", "$(id)", "--keys", "k; id", "--", "-x", "a b", "it's"]);
        assert_eq!(line, r"weir analyze ./-x 'a b' 'it'\''s' --keys 'k; id' -o '$(id)'");
    }
}
