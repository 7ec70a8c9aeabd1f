//! `weir fleet`: many dumps, by the Python package, as with sweeps.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use crate::args::{Fleet, FleetAnalyze, FleetCommand, FleetReport};
use crate::sweep::package;

/// Does what was asked for, and returns the exit code of the package.
pub fn fleet(args: &Fleet) -> anyhow::Result<ExitCode> {
    let words = match &args.command {
        FleetCommand::Analyze(args) => analyze(args),
        FleetCommand::Report(args) => report(args),
    };
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    package("weir fleet", &["duckdb", "pyarrow", "numpy"], &words)
}

fn analyze(args: &FleetAnalyze) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["fleet".into(), "analyze".into()];
    words.extend(["--out".into(), args.out.clone().into()]);
    if let Some(workers) = args.workers {
        words.extend(["--workers".into(), workers.to_string().into()]);
    }
    if args.seconds {
        words.push("--seconds".into());
    }
    if let Some(scheduler) = &args.scheduler {
        words.push(format!("--scheduler={scheduler}").into());
    }
    // Last, because a file's name may begin like an option.
    words.push("--".into());
    words.extend(args.files.iter().map(|file| file.clone().into()));
    words
}

fn report(args: &FleetReport) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["fleet".into(), "report".into()];
    words.extend(["--output".into(), args.output.clone().into()]);
    let texts = [
        ("--by", &args.by),
        ("--before", &args.before),
        ("--after", &args.after),
        ("--user", &args.user),
        ("--over", &args.over),
        ("--controllers", &args.controllers),
    ];
    for (option, value) in texts {
        if let Some(value) = value {
            words.push(format!("{option}={value}").into());
        }
    }
    if let Some(calls) = args.what_if {
        words.push(format!("--what-if={calls}").into());
    }
    for (option, path) in [("--metadata", &args.metadata), ("--calls", &args.calls)] {
        if let Some(path) = path {
            words.extend([option.into(), path.clone().into()]);
        }
    }
    words.extend(["--".into(), args.lake.clone().into()]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_like_options_come_after_two_dashes() {
        let args = FleetAnalyze {
            files: vec!["-x.gz".into()],
            out: "lake".into(),
            workers: None,
            scheduler: None,
            seconds: false,
        };
        assert_eq!(analyze(&args), ["fleet", "analyze", "--out", "lake", "--", "-x.gz"]);
    }
}
