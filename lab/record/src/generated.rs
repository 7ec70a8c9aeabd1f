//! Tables of `docs/reference/record-format.md`, which are generated from the code. A test fails if
//! one is out of date; `WEIR_UPDATE=1 cargo test -p weir-record generated` writes them again.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use weir::controller::Reason;
use weir_metrics::{Better, Declared, Need};

use crate::folder::table::{ColumnGroup, CsvColumn};
use crate::folder::{airtime, bearers, blocks, decisions, nodes, series};

const COMMAND: &str = "WEIR_UPDATE=1 cargo test -p weir-record generated";
const RECORD_FORMAT: &str = "docs/reference/record-format.md";

/// Fails if the file differs from `wanted`. With `WEIR_UPDATE` in the environment, writes it
/// instead.
fn hold(path: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let found = fs::read_to_string(&path).unwrap_or_default();
    if found == wanted {
        return;
    }
    assert!(env::var_os("WEIR_UPDATE").is_some(), "{} is out of date: {COMMAND}", path.display());
    fs::write(&path, wanted).unwrap();
}

#[test]
fn generated_tables_of_the_record_format_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(RECORD_FORMAT);
    let mut text = fs::read_to_string(path).unwrap();
    for (name, table) in tables() {
        let begin = format!("<!-- generated: {name} -->\n");
        let end = "<!-- end of what is generated -->\n";
        let (head, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
        let (_, tail) = rest.split_once(end).unwrap_or_else(|| panic!("no end of {name}"));
        text = format!("{head}{begin}{table}{end}{tail}");
    }
    hold(RECORD_FORMAT, &text);
}

fn tables() -> Vec<(&'static str, String)> {
    let [every, video, transfer, feedback, forwarded, seen, heard, marked, mean_capacity, carried] =
        series::GROUPS
    else {
        panic!("ten groups")
    };
    vec![
        ("columns of series.csv", columns(every)),
        ("columns of the video", columns(video)),
        ("columns of TCP", columns(transfer)),
        ("columns of feedback", columns(feedback)),
        ("columns of forwarding", columns(forwarded)),
        ("columns of what is seen", columns(seen)),
        ("columns of what is heard", columns(heard)),
        ("columns of marks", columns(marked)),
        ("columns of a capacity that changes", columns(mean_capacity)),
        ("columns of what a link carried", columns(carried)),
        ("columns of nodes.csv", columns(&nodes::GROUPS[0])),
        ("columns of airtime.csv", columns(&airtime::GROUPS[0])),
        ("columns of bearers.csv", columns(&bearers::GROUPS[0])),
        ("columns of bearer-events.csv", columns(&bearers::EVENT_GROUPS[0])),
        ("columns of blocks.csv", columns(&blocks::GROUPS[0])),
        ("columns of decisions.csv", columns(&decisions::GROUPS[0])),
        ("reasons", reasons()),
        ("metrics of a flow", metrics_table(weir_metrics::FLOW.into_iter().flatten())),
        ("metrics of all flows", metrics_table(weir_metrics::SHARED.into_iter().flatten())),
        ("metrics of nodes", metrics_table(weir_metrics::NODE.into_iter().flatten())),
        ("metrics of terminals", metrics_table(weir_metrics::TERMINAL.into_iter().flatten())),
        ("metrics of calls", metrics_table(weir_metrics::CALL.into_iter().flatten())),
        ("metrics of participants", metrics_table(weir_metrics::PARTICIPANT.into_iter().flatten())),
    ]
}

/// Table of a group of columns. It has a column for real calls if any value differs there.
fn columns<R>(group: &ColumnGroup<R>) -> String {
    let differs = group.columns.iter().any(|column| !column.in_call.is_empty());
    let mut table = String::from(if differs {
        "| column | unit | simulated run | real call |\n|---|---|---|---|\n"
    } else {
        "| column | unit | meaning |\n|---|---|---|\n"
    });
    for CsvColumn { name, unit, meaning, in_call, .. } in group.columns {
        write!(table, "| `{name}` | {unit} | {meaning} |").unwrap();
        if differs {
            write!(table, " {} |", if in_call.is_empty() { "the same" } else { in_call }).unwrap();
        }
        table.push('\n');
    }
    table.replace("|  |", "| |")
}

fn reasons() -> String {
    let mut table = String::from("| reason | meaning |\n|---|---|\n");
    for reason in Reason::ALL {
        writeln!(table, "| `{}` | {} |", reason.as_str(), reason.meaning()).unwrap();
    }
    table
}

fn metrics_table<'a>(declared: impl Iterator<Item = &'a Declared>) -> String {
    let mut table = String::from(
        "| metric | values below it | unit | better | needs | meaning |\n\
         |---|---|---|---|---|---|\n",
    );
    for Declared { path, unit, meaning, in_call, parts, better, needs, .. } in declared {
        let parts: Vec<String> = parts.iter().map(|part| format!("`{part}`")).collect();
        let better = match better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "",
        };
        let needs: Vec<&str> = needs.iter().copied().map(words).collect();
        let (parts, needs) = (parts.join(", "), needs.join(", "));
        let meaning = meaning.trim();
        write!(table, "| `{path}` | {parts} | {unit} | {better} | {needs} | {meaning}").unwrap();
        if !in_call.is_empty() {
            write!(table, " Real call: {in_call}").unwrap();
        }
        table.push_str(" |\n");
    }
    table.replace("|  |", "| |").replace("|  |", "| |")
}

fn words(need: Need) -> &'static str {
    match need {
        Need::Media => "a media flow",
        Need::Repair => "a media flow with `repair`",
        Need::Quality => "a media flow with `quality`",
        Need::Watched => "a media flow with `quality`, or a subscriber",
        Need::Speech => "an audio flow with `quality`",
        Need::Tcp => "a TCP flow",
        Need::Capacity => "a limited capacity",
        Need::Change => "a change of the capacity",
        Need::Rivals => "two media flows",
        Need::Server => "a subscriber of a forwarding server",
    }
}
