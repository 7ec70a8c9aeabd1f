//! Files of the repository that are generated from the code: the report's types in TypeScript, and
//! tables of `docs/reference/record-format.md`. A test fails if one is out of date;
//! `WEIR_UPDATE=1 cargo test -p weir-lab generated` writes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use ts_rs::{Config, TS, TypeVisitor};
use weir::controller::Reason;

use crate::metrics::{self, Better, Declared, Need};
use crate::record::table::{ColumnGroup, CsvColumn};
use crate::record::{airtime, bearers, blocks, decisions, nodes, series};
use crate::report::{Report, SweepReport};

const COMMAND: &str = "WEIR_UPDATE=1 cargo test -p weir-lab generated";
const RECORD_FORMAT: &str = "docs/reference/record-format.md";
const FORMAT_TS: &str = "lab/web/src/format.ts";

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
    let [every, video, transfer, feedback, forwarded, seen, heard, marked] = series::GROUPS else {
        panic!("eight groups")
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
        ("columns of nodes.csv", columns(&nodes::GROUPS[0])),
        ("columns of airtime.csv", columns(&airtime::GROUPS[0])),
        ("columns of bearers.csv", columns(&bearers::GROUPS[0])),
        ("columns of bearer-events.csv", columns(&bearers::EVENT_GROUPS[0])),
        ("columns of blocks.csv", columns(&blocks::GROUPS[0])),
        ("columns of decisions.csv", columns(&decisions::GROUPS[0])),
        ("reasons", reasons()),
        ("metrics of a flow", metrics_table(metrics::FLOW.into_iter().flatten())),
        ("metrics of all flows", metrics_table(metrics::SHARED.into_iter().flatten())),
        ("metrics of nodes", metrics_table(metrics::NODE.into_iter().flatten())),
        ("metrics of terminals", metrics_table(metrics::TERMINAL.into_iter().flatten())),
        ("metrics of calls", metrics_table(metrics::CALL.into_iter().flatten())),
        ("metrics of participants", metrics_table(metrics::PARTICIPANT.into_iter().flatten())),
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

#[test]
fn generated_types_of_the_report_are_up_to_date() {
    let cfg = Config::new().with_large_int("number");
    let mut types = Types { cfg: &cfg, found: BTreeMap::new() };
    types.visit::<Report>();
    types.visit::<SweepReport>();
    let mut text = format!(
        "// The report's data as the lab writes it: the contract between the Rust side and this \
         page.\n\
         // Generated from lab/lab/src/report/{{format,call_format,server_format,signalling,\
         sweep}}.rs by `{COMMAND}`.\n\
         //\n\
         // Every number carries its unit in its name. `null` means that the value does not apply \
         or that\n\
         // nobody measured it. Seeds are strings, because JavaScript loses integers above 2^53.\n"
    );
    let mut written = BTreeSet::new();
    types.write("Report", &mut written, &mut text);
    types.write("SweepReport", &mut written, &mut text);
    assert_eq!(written.len(), types.found.len());
    hold(FORMAT_TS, &text);
}

/// A type and all types that its members need, each once.
struct Types<'a> {
    cfg: &'a Config,
    /// Declarations by name, because the order in which ts-rs visits types varies.
    found: BTreeMap<String, String>,
}

impl Types<'_> {
    /// Writes a type, then the types that its members name, in their order, each once.
    fn write(&self, name: &str, written: &mut BTreeSet<String>, text: &mut String) {
        let Some(declaration) = self.found.get(name) else { return };
        if !written.insert(name.into()) {
            return;
        }
        text.push('\n');
        text.push_str(declaration);
        for line in declaration.lines() {
            if line.trim_start().starts_with(['*', '/']) {
                continue;
            }
            let words = line.split(|letter: char| !letter.is_alphanumeric());
            words.for_each(|word| self.write(word, written, text));
        }
    }
}

impl TypeVisitor for Types<'_> {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        let name = T::ident(self.cfg);
        if T::output_path().is_none() || self.found.contains_key(&name) {
            return;
        }
        let comment = T::docs().map(|docs| comment(&docs, "")).unwrap_or_default();
        let declaration = format!("{comment}{}", pretty(&name, &T::decl(self.cfg)));
        self.found.insert(name, declaration);
        T::visit_dependencies(self);
    }
}

/// Formats a declaration of ts-rs with one member per line.
fn pretty(name: &str, declaration: &str) -> String {
    let Some(body) = declaration.strip_prefix(&format!("type {name} = {{")) else {
        return format!("export {}\n", declaration.trim());
    };
    let mut body = body.trim().trim_end_matches(';').trim().strip_suffix('}').unwrap().trim();
    let mut text = format!("export interface {name} {{\n");
    while !body.is_empty() {
        if let Some(rest) = body.strip_prefix("/**") {
            let (docs, rest) = rest.split_once("*/").unwrap();
            text.push_str(&comment(docs, "  "));
            body = rest.trim_start();
            continue;
        }
        let end = end_of_member(body);
        writeln!(text, "  {};", body[..end].trim()).unwrap();
        body = body[end..].trim_start_matches(',').trim_start();
    }
    text.push_str("}\n");
    text
}

/// End of a member: the first comma outside all brackets.
fn end_of_member(text: &str) -> usize {
    let mut depth = 0;
    let end = text.bytes().position(|byte| {
        depth += i32::from(b"<([{".contains(&byte)) - i32::from(b">)]}".contains(&byte));
        byte == b',' && depth == 0
    });
    end.unwrap_or(text.len())
}

/// Doc comments in TypeScript, from the lines of one.
fn comment(docs: &str, indent: &str) -> String {
    let mut lines = Vec::new();
    for line in docs.lines() {
        let line = line.trim().trim_start_matches("/**").trim_end_matches("*/");
        lines.push(line.trim().trim_start_matches('*').trim());
    }
    lines.retain(|line| !line.is_empty());
    match lines.as_slice() {
        [] => String::new(),
        [one] => format!("{indent}/** {one} */\n"),
        many => {
            let body: String = many.iter().map(|line| format!("{indent} * {line}\n")).collect();
            format!("{indent}/**\n{body}{indent} */\n")
        }
    }
}
