//! The report's types in TypeScript, which are generated from the code. A test fails if they are
//! out of date; `WEIR_UPDATE=1 cargo test -p weir-report generated` writes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use ts_rs::{Config, TS, TypeVisitor};

use crate::{Report, SweepReport};

const COMMAND: &str = "WEIR_UPDATE=1 cargo test -p weir-report generated";
const FOLDER: &str = "lab/web/src/format";
const HEAD: &str = "\
// The report's data as the lab writes it: the contract between the Rust side and this page.
//
// Every number carries its unit in its name. `null` means that the value does not apply or that
// nobody measured it. Seeds are strings, because JavaScript loses integers above 2^53.
";

/// Fails if the file differs from `wanted`. With `WEIR_UPDATE` in the environment, writes it
/// instead.
fn hold(path: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let found = fs::read_to_string(&path).unwrap_or_default();
    if found == wanted {
        return;
    }
    assert!(env::var_os("WEIR_UPDATE").is_some(), "{} is out of date: {COMMAND}", path.display());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, wanted).unwrap();
}

#[test]
fn generated_types_of_the_report_are_up_to_date() {
    let cfg = Config::new().with_large_int("number");
    let mut types = Types { cfg: &cfg, found: BTreeMap::new() };
    types.visit::<Report>();
    types.visit::<SweepReport>();
    let (mut files, mut written) = (BTreeMap::new(), BTreeSet::new());
    types.write("Report", &mut written, &mut files);
    types.write("SweepReport", &mut written, &mut files);
    assert_eq!(written.len(), types.found.len());
    let mut index = HEAD.to_owned();
    for (name, file) in &files {
        hold(&format!("{FOLDER}/{name}.ts"), &file.text());
        writeln!(index, "export type * from \"./{name}\";").unwrap();
    }
    hold(&format!("{FOLDER}/index.ts"), &index);
}

/// A type in TypeScript.
struct Declaration {
    /// Name of the file that it stands in.
    file: &'static str,
    text: String,
}

/// The file of a type, by the module in Rust that has it.
fn file_of(rust: &str) -> &'static str {
    match rust.split("::").nth(1) {
        Some("call_format" | "calls") => "calls",
        Some("server_format") => "server",
        Some("signalling") => "signalling",
        Some("sweep") => "sweep",
        // Of these all others are made, so no two files need each other.
        Some("typed") => "record",
        _ => "report",
    }
}

/// A file of declarations, and the types that it needs of others.
#[derive(Default)]
struct File {
    imports: BTreeMap<&'static str, BTreeSet<String>>,
    declarations: String,
}

impl File {
    fn text(&self) -> String {
        let mut text = format!("// Generated from the types of lab/report by `{COMMAND}`.\n");
        for (file, names) in &self.imports {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            writeln!(text, "import type {{ {} }} from \"./{file}\";", names.join(", ")).unwrap();
        }
        text + &self.declarations
    }
}

/// A type and all types that its members need, each once.
struct Types<'a> {
    cfg: &'a Config,
    /// By name, because the order in which ts-rs visits types varies.
    found: BTreeMap<String, Declaration>,
}

impl Types<'_> {
    /// Writes a type, then the types that its members name, in their order, each once.
    fn write(
        &self,
        name: &str,
        written: &mut BTreeSet<String>,
        files: &mut BTreeMap<&'static str, File>,
    ) {
        let Some(Declaration { file, text }) = self.found.get(name) else { return };
        if !written.insert(name.into()) {
            return;
        }
        let declarations = &mut files.entry(file).or_default().declarations;
        declarations.push('\n');
        declarations.push_str(text);
        for line in text.lines() {
            if line.trim_start().starts_with(['*', '/']) {
                continue;
            }
            for word in line.split(|letter: char| !letter.is_alphanumeric()) {
                let Some(other) = self.found.get(word) else { continue };
                if other.file != *file {
                    let imports = &mut files.entry(file).or_default().imports;
                    imports.entry(other.file).or_default().insert(word.into());
                }
                self.write(word, written, files);
            }
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
        let text = format!("{comment}{}", pretty(&name, &T::decl(self.cfg)));
        let file = file_of(std::any::type_name::<T>());
        self.found.insert(name, Declaration { file, text });
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
