//! What people do next, in a line after a command that succeeded. Only at a terminal: programs and
//! logs need no advice.

use std::io::{IsTerminal, stderr, stdout};
use std::path::Path;

use crate::args::{Command, Output};
use crate::output::escaped;

/// Prints the line for this command, if there is one and a person reads.
pub fn tell(command: &Command) {
    if !stdout().is_terminal() || !stderr().is_terminal() {
        return;
    }
    if let Some(line) = after(command) {
        eprintln!("next: {}", escaped(&line));
    }
}

fn after(command: &Command) -> Option<String> {
    match command {
        Command::List(args) if args.json => None,
        Command::List(args) if args.pattern.is_none() && args.source.is_none() && !args.all => {
            Some("weir run demo/first-call".into())
        }
        Command::List(_) => Some("weir run SCENARIO -o report.html".into()),
        Command::Run(args) => after_runs(&args.output),
        Command::Call(args) => after_runs(&args.output),
        Command::Report(args) => Some(open(&args.output)),
        Command::Link(args) => args.out.as_deref().map(report),
        Command::Analyze(args) => match (&args.output, &args.scenario) {
            _ if args.json || args.ticket => None,
            (Some(page), _) => Some(open(page)),
            (_, Some(scenario)) => {
                Some(format!("weir run {} tries other controllers there", scenario.display()))
            }
            _ => Some(
                "-o report.html draws it; --scenario met.toml makes its network a scenario".into(),
            ),
        },
        Command::Check(args) if args.junit.is_none() => {
            Some("--list shows each expectation, --junit check.xml is for CI".into())
        }
        Command::Compare(_) => Some("weir report BEFORE AFTER -o report.html draws both".into()),
        _ => None,
    }
}

fn after_runs(output: &Output) -> Option<String> {
    match &output.out {
        _ if output.json => None,
        Some(records) => Some(report(records)),
        None => Some("--out records keeps what happened, and weir report shows why".into()),
    }
}

fn report(records: &Path) -> String {
    format!("weir report {} -o report.html", records.display())
}

fn open(page: &Path) -> String {
    format!("open {} in a browser", page.display())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    #[test]
    fn each_first_command_says_what_comes_next() {
        let of = |line: &str| {
            let words = ["weir"].into_iter().chain(line.split(' '));
            after(&Args::try_parse_from(words).unwrap().command)
        };
        assert_eq!(of("list").unwrap(), "weir run demo/first-call");
        assert_eq!(of("list --json"), None);
        assert!(of("run demo/first-call").unwrap().starts_with("--out records"));
        let kept = of("run demo/first-call --out kept").unwrap();
        assert_eq!(kept, "weir report kept -o report.html");
        assert_eq!(of("report kept -o a.html").unwrap(), "open a.html in a browser");
        assert!(of("analyze a.gz").unwrap().contains("--scenario"));
        assert_eq!(of("analyze a.gz --ticket"), None);
    }
}
