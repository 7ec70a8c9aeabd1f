//! Files of a crate import each other in one direction only. This test fails on circular imports.
//!
//! An import is a path through modules of the crate, in a `use` or in an expression. It leads to
//! the file that defines the name, not to a file that only re-exports it. The `mod` and `pub use`
//! of a module's own children are therefore not imports. A child may use what its parent modules
//! define, although they use the child. Code below `#[cfg(test)]` does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Longest chain of re-exports that is followed.
const REEXPORTS_MAX: usize = 8;

/// The path of a module from the root of its crate.
type Module = Vec<String>;

/// One name that a `use` brings into a file.
#[derive(Debug)]
struct Import {
    path: Vec<String>,
    /// The name within the file; `*` for a glob.
    name: String,
    is_public: bool,
}

#[derive(Debug, Default)]
struct Source {
    file: String,
    imports: Vec<Import>,
    /// Paths of at least two names in the code.
    paths: Vec<Vec<String>>,
    /// All names in the code outside of `use` and `mod`.
    names: BTreeSet<String>,
    /// Names that the file defines.
    defined: BTreeSet<String>,
    /// Child modules that are compiled only for tests.
    test_modules: Vec<String>,
}

/// The tokens of the code: words, `::` and single characters, without comments, strings and
/// character literals.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut tokens, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let hashes = (i + 1..).take_while(|j| at(*j) == '#').count();
        if at(i) == '/' && at(i + 1) == '/' {
            i += chars[i..].iter().take_while(|c| **c != '\n').count();
        } else if at(i) == 'r' && at(i + 1 + hashes) == '"' {
            let end: String = std::iter::once('"').chain(vec!['#'; hashes]).collect();
            let rest: String = chars[i + 2 + hashes..].iter().collect();
            let length = rest.find(&end).map_or(rest.len(), |byte| byte + end.len());
            i += 2 + hashes + rest[..length].chars().count();
        } else if at(i) == '"' {
            i += 1;
            while i < chars.len() && at(i) != '"' {
                i += if at(i) == '\\' { 2 } else { 1 };
            }
            i += 1;
        } else if at(i) == '\'' && at(i + 1) == '\\' {
            i += 3 + chars[i + 3..].iter().take_while(|c| **c != '\'').count() + 1;
        } else if at(i) == '\'' && at(i + 2) == '\'' {
            i += 3;
        } else if is_word(at(i)) {
            let word: String = chars[i..].iter().take_while(|c| is_word(**c)).collect();
            i += word.chars().count();
            tokens.push(word);
        } else if at(i) == ':' && at(i + 1) == ':' {
            tokens.push("::".into());
            i += 2;
        } else {
            if !at(i).is_whitespace() {
                tokens.push(at(i).into());
            }
            i += 1;
        }
    }
    tokens
}

/// The index after the item that begins at `start`.
fn end_of_item(tokens: &[String], start: usize) -> usize {
    let is_use = tokens[start..].iter().take(6).any(|token| token == "use");
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        let is_end = token == ";" || (token == "}" && !is_use);
        if depth == 0 && is_end {
            return index + 1;
        }
    }
    tokens.len()
}

/// Collects the names of the tree of a `use` that begins at `at`; returns the index of its end.
fn use_tree(
    tokens: &[String],
    mut at: usize,
    mut path: Vec<String>,
    found: &mut Vec<(Vec<String>, String)>,
) -> usize {
    loop {
        match tokens[at].as_str() {
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at = use_tree(tokens, at, path.clone(), found);
                    at += usize::from(tokens[at] == ",");
                }
                return at + 1;
            }
            "as" => {
                found.push((path, tokens[at + 1].clone()));
                return at + 2;
            }
            "::" => at += 1,
            "," | "}" | ";" => {
                if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                    path.pop();
                }
                let name = path.last().cloned().unwrap_or_default();
                found.push((path, name));
                return at;
            }
            word => {
                path.push(word.into());
                at += 1;
            }
        }
    }
}

fn parse(file: &str, text: &str) -> Source {
    let tokens = tokens(text);
    let mut source = Source { file: file.into(), ..Source::default() };
    let is = |at: usize, words: &[&str]| {
        words.iter().enumerate().all(|(i, word)| tokens.get(at + i).is_some_and(|it| it == word))
    };
    let mut at = 0;
    while at < tokens.len() {
        if is(at, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            let end = end_of_item(&tokens, at + 7);
            let item = &tokens[at + 7..end];
            if let Some(module) = item.iter().position(|token| token == "mod")
                && item.get(module + 2).is_some_and(|token| token == ";")
            {
                source.test_modules.push(item[module + 1].clone());
            }
            at = end;
        } else if is(at, &["use"]) && !is(at, &["use", "<"]) {
            let is_public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
            let mut found = Vec::new();
            at = use_tree(&tokens, at + 1, Vec::new(), &mut found);
            let import = |(path, name)| Import { path, name, is_public };
            source.imports.extend(found.into_iter().map(import));
        } else if is(at, &["mod"]) {
            at += 2;
        } else if tokens[at].starts_with(|c: char| c.is_alphabetic() || c == '_') {
            let definers = ["struct", "enum", "fn", "const", "type", "trait", "static", "union"];
            if at > 0 && definers.contains(&tokens[at - 1].as_str()) {
                source.defined.insert(tokens[at].clone());
            }
            let mut path = vec![tokens[at].clone()];
            while is(at + 1, &["::"]) && tokens.get(at + 2).is_some_and(|it| it != "<" && it != "{")
            {
                path.push(tokens[at + 2].clone());
                at += 2;
            }
            source.names.insert(path[0].clone());
            if path.len() > 1 {
                source.paths.push(path);
            }
            at += 1;
        } else {
            at += 1;
        }
    }
    source
}

/// The module of a file below `src`.
fn module_of(file: &str) -> Module {
    let mut module: Module = file.trim_end_matches(".rs").split('/').map(String::from).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

struct Crate {
    sources: BTreeMap<Module, Source>,
}

impl Crate {
    /// Parses files, given by their path from `src`.
    fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let parsed = files.into_iter().map(|(file, text)| (module_of(file), parse(file, text)));
        let mut sources: BTreeMap<Module, Source> = parsed.collect();
        let of_tests = sources.iter().flat_map(|(module, source)| {
            let path = |name: &String| [module.as_slice(), std::slice::from_ref(name)].concat();
            source.test_modules.iter().map(path)
        });
        let of_tests: Vec<Module> = of_tests.collect();
        sources.retain(|module, _| !of_tests.iter().any(|tests| module.starts_with(tests)));
        Self { sources }
    }

    /// The module that defines what a path names, as seen from a module; `None` for other crates.
    fn resolve(&self, from: &Module, path: &[String], steps: usize) -> Option<Module> {
        if steps == 0 || path.is_empty() {
            return None;
        }
        let mut module = from.clone();
        let mut rest = path;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => module.truncate(module.len().saturating_sub(1)),
                _ => break,
            }
            rest = others;
        }
        let is_relative = rest.len() == path.len();
        while let Some((first, others)) = rest.split_first() {
            let child = [module.as_slice(), std::slice::from_ref(first)].concat();
            if self.sources.contains_key(&child) {
                (module, rest) = (child, others);
                continue;
            }
            let source = self.sources.get(&module)?;
            if let Some(import) = source.imports.iter().find(|import| import.name == *first) {
                let whole = [import.path.as_slice(), others].concat();
                return self.resolve(&module, &whole, steps - 1);
            }
            let is_glob_here = |import: &&Import| {
                let first = &import.path[0];
                let child = [module.as_slice(), std::slice::from_ref(first)].concat();
                let is_rooted = matches!(first.as_str(), "crate" | "self" | "super");
                import.name == "*" && (is_rooted || self.sources.contains_key(&child))
            };
            let globs = source.imports.iter().filter(is_glob_here);
            let by_glob = globs.filter_map(|glob| {
                let path = &glob.path[..glob.path.len() - 1];
                let target = self.resolve(&module, path, steps - 1)?;
                let defines = self.sources.get(&target)?.defined.contains(first);
                defines.then_some(target)
            });
            // A path that does not begin in this crate belongs to another crate, unless it is
            // defined here.
            let by_glob = by_glob.into_iter().next();
            return by_glob.or_else(|| {
                let is_own = !is_relative || source.defined.contains(first);
                (is_own || module != *from).then_some(module)
            });
        }
        Some(module)
    }

    fn resolved(&self, from: &Module, path: &[String]) -> Option<Module> {
        self.resolve(from, path, REEXPORTS_MAX)
    }

    /// The modules from which a module's code uses names.
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let source = &self.sources[module];
        let mut taken = BTreeSet::new();
        for import in &source.imports {
            let is_glob = import.name == "*";
            let path = &import.path[..import.path.len() - usize::from(is_glob)];
            let Some(target) = self.resolved(module, path) else { continue };
            // If a module is imported as a whole, the paths in the code show which names are used.
            // An item may have its module's name: `answer::answer` is a function.
            let is_item = path.len() > 1 && path[path.len() - 2] == path[path.len() - 1];
            let names_a_module = !is_glob && !is_item && target.last() == path.last();
            let is_reexport = import.is_public && !source.names.contains(&import.name);
            if !names_a_module && !is_reexport {
                taken.insert(target);
            }
        }
        taken.extend(source.paths.iter().filter_map(|path| self.resolved(module, path)));
        // A child may take what its parents define: they are one unit.
        taken.retain(|target| !module.starts_with(target));
        taken
    }

    /// The groups of files in which each file reaches every other by imports.
    fn circles(&self) -> Vec<Vec<&str>> {
        let direct: BTreeMap<&Module, BTreeSet<Module>> =
            self.sources.keys().map(|module| (module, self.imports(module))).collect();
        let reached = |start: &Module| {
            let mut reached = BTreeSet::new();
            let mut waiting: Vec<&Module> = direct[start].iter().collect();
            while let Some(module) = waiting.pop() {
                if reached.insert(module) {
                    waiting.extend(&direct[module]);
                }
            }
            reached
        };
        let all: BTreeMap<&Module, _> =
            direct.keys().map(|module| (*module, reached(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, beyond) in &all {
            let group = beyond.iter().filter(|other| all[**other].contains(module));
            let files: Vec<&str> = group.map(|it| self.sources[*it].file.as_str()).collect();
            if !files.is_empty() {
                circles.insert(files);
            }
        }
        circles.into_iter().collect()
    }
}

fn rust_files(folder: &Path, found: &mut Vec<(String, String)>, root: &Path) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found, root);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn files_of_a_crate_import_each_other_in_one_direction() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let root = Path::new(&manifest).join("..");
    let parts = ["library", "lab", "ims"].map(|part| root.join(part));
    let mut crates = vec![root.join("research")];
    for part in parts {
        crates.extend(fs::read_dir(part).unwrap().map(|entry| entry.unwrap().path()));
    }
    let (mut found, mut imports) = (Vec::new(), 0);
    for folder in crates {
        let source = folder.join("src");
        let mut files = Vec::new();
        if source.is_dir() {
            rust_files(&source, &mut files, &source);
        }
        let texts = files.iter().map(|(file, text)| (file.as_str(), text.as_str()));
        let package = Crate::of(texts);
        imports += package.sources.keys().map(|it| package.imports(it).len()).sum::<usize>();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let circles = package.circles();
        found.extend(circles.iter().map(|files| format!("{name}/src: {files:?}")));
    }
    assert!(imports > 300, "only {imports} imports found");
    assert!(found.is_empty(), "these files import each other:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found_through_a_function_that_has_its_modules_name() {
    let files = [
        ("lib.rs", "mod answer; mod finding;"),
        ("answer.rs", "use crate::finding::Finding; pub fn answer() -> Finding { todo() }"),
        ("finding.rs", "use crate::answer::answer; pub struct Finding; fn all() { answer(); }"),
    ];
    assert_eq!(Crate::of(files).circles(), [["answer.rs", "finding.rs"]]);
}

#[test]
fn a_circle_is_found_through_a_file_that_only_re_exports() {
    let files = [
        ("lib.rs", "mod plan; mod capture; pub use plan::Plan;"),
        ("plan.rs", "use crate::capture::Role; pub struct Plan(Role);"),
        ("capture.rs", "mod host; mod ends; pub use host::Role;"),
        ("capture/host.rs", "use super::ends::Ends; pub enum Role { A } fn f(_: Ends) {}"),
        ("capture/ends.rs", "pub struct Ends; fn g(_: &crate::Plan) {}"),
    ];
    let circle = vec!["capture/ends.rs", "capture/host.rs", "plan.rs"];
    assert_eq!(Crate::of(files).circles(), [circle]);
    let without = files.map(|(file, text)| (file, text.replace("crate::Plan", "u8")));
    let without = without.each_ref().map(|(file, text)| (*file, text.as_str()));
    assert_eq!(Crate::of(without).circles(), [[""; 0]; 0]);
}

#[test]
fn a_module_that_is_imported_as_a_whole_leads_to_what_is_taken_from_it() {
    let files = [
        ("run.rs", "use crate::witness; pub fn run() { witness::window(); }"),
        ("witness.rs", "mod log; mod ends; pub use log::window; pub use ends::Ends;"),
        ("witness/log.rs", "pub fn window() {}"),
        ("witness/ends.rs", "use crate::run::run; pub struct Ends; fn f() { run(); }"),
    ];
    assert_eq!(Crate::of(files).circles(), [[""; 0]; 0]);
    let log = ("witness/log.rs", "use crate::run; pub fn window() { run::run(); }");
    let closed = [files[0], files[1], log, files[3]];
    assert_eq!(Crate::of(closed).circles(), [["run.rs", "witness/log.rs"]]);
}

#[test]
fn a_child_may_use_what_its_parent_defines() {
    let child = ("a/b.rs", "use super::Name; pub struct Part(Name);");
    let reexport = ("a.rs", "mod b; pub use b::Part; pub struct Name;");
    assert_eq!(Crate::of([child, reexport]).circles(), [[""; 0]; 0]);
    for parent in [
        "mod b; pub use b::Part; pub struct Name; fn f(_: Part) {}",
        "mod b; use b::Part; pub struct Name;",
        "mod b; pub struct Name; fn f() { b::part() }",
    ] {
        assert_eq!(Crate::of([child, ("a.rs", parent)]).circles(), [[""; 0]; 0]);
    }
}

#[test]
fn code_for_tests_alone_and_text_that_is_no_code_are_no_imports() {
    let user = ("b.rs", "use crate::a::A; pub struct B(A);");
    for text in [
        "pub struct A; #[cfg(test)] mod tests { use super::*; use crate::b::B; }",
        "pub struct A; #[cfg(test)] use crate::{b::B};",
        "pub struct A; // use crate::b::B;",
        "pub struct A; const T: &str = \"use crate::b::B;\";",
        "pub struct A; const T: &str = r#\"use crate::b::B;\"#; const C: char = '\"';",
        "use other::b::B; pub struct A;",
        "pub struct A; fn f(_: &A) -> impl Iterator + use<'_> { let x = [1]; x.iter() }",
    ] {
        assert_eq!(Crate::of([user, ("a.rs", text)]).circles(), [[""; 0]; 0], "{text}");
    }
    let parent = ("a.rs", "#[cfg(test)] mod tests; pub struct A;");
    let tests = ("a/tests.rs", "use super::A; use crate::b::B;");
    assert_eq!(Crate::of([user, parent, tests]).circles(), [[""; 0]; 0]);
}
