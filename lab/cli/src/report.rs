//! `weir report`: one HTML file over recorded runs.

use std::process::ExitCode;

use weir_record::shell::CommandLine;
use weir_report::Report as Document;

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
        let found = weir_report::find(folder)?;
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
    let mut line = CommandLine::new("weir report");
    for folder in &args.folders {
        line = line.name(&folder.display().to_string());
    }
    line.path("-o", &args.output.display().to_string()).to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn the_command_of_a_report_has_one_word_for_each_name() {
        let words = ["weir", "report", "-o", "a b.html", "--", "-x", "a; id", "plain"];
        let Command::Report(args) = Args::try_parse_from(words).unwrap().command else {
            panic!("a report")
        };
        assert_eq!(command(&args), "weir report ./-x 'a; id' plain -o 'a b.html'");
    }
}
