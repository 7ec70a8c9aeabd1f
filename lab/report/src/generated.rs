//! The report's types in TypeScript, which are generated from the code. A test fails if they are
//! out of date; `WEIR_UPDATE=1 cargo test -p weir-report generated` writes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use ts_rs::{Config, TS, TypeVisitor};

use crate::{Report, SweepReport};

const COMMAND: &str = "WEIR_UPDATE=1 cargo test -p weir-report generated";
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
fn generated_types_of_the_report_are_up_to_date() {
    let cfg = Config::new().with_large_int("number");
    let mut types = Types { cfg: &cfg, found: BTreeMap::new() };
    types.visit::<Report>();
    types.visit::<SweepReport>();
    let mut text = format!(
        "// The report's data as the lab writes it: the contract between the Rust side and this \
         page.\n\
         // Generated from lab/report/src/{{format,call_format,server_format,signalling,\
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
