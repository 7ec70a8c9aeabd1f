//! Citations in the documentation on docs.rs are links to the sections of the standards.
//!
//! A definition at the end of a doc comment turns a citation such as `[NADA §4.3]` into a link.
//! This test writes those definitions from the table of specs, and fails if they are out of date:
//!
//! ```text
//! WEIR_UPDATE=1 cargo test -p weir-tidy citations
//! ```
//!
//! Only items that rustdoc shows have them: public items of public modules, and items exported from
//! others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::files::root;

/// The table of tags and addresses.
const SPECS: &str = "docs/reference/specs.md";
/// Folders of the crates whose documentation is published.
const LIBRARIES: [&str; 12] = [
    "library/weir",
    "library/wire",
    "library/rtcp",
    "lab/net",
    "lab/sim",
    "lab/metrics",
    "lab/scenario",
    "lab/record",
    "lab/report",
    "research",
    "lab/emu",
    "lab/call",
];

/// Address of each tag's document.
fn addresses(page: &str) -> BTreeMap<&str, &str> {
    let row = |line: &'_ str| -> Option<(usize, usize, usize, usize)> {
        let tag = line.strip_prefix("| ")?.find(" |")?;
        let (from, to) = (line.rfind('<')? + 1, line.rfind('>')?);
        Some((2, 2 + tag, from, to))
    };
    let cells = page.lines().filter_map(|line| {
        let (tag, end, from, to) = row(line)?;
        Some((&line[tag..end], &line[from..to]))
    });
    cells.collect()
}

/// The link to a section. Pages of RFCs and drafts have an anchor for each section, others have
/// none.
fn link(address: &str, section: &str) -> String {
    let number = section.split([',', ' ']).next().unwrap_or_default();
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let has_anchors = ["rfc-editor.org/rfc/", "datatracker.ietf.org/doc/html/"];
    let mut rest = number.chars();
    match rest.next() {
        _ if !has_anchors.iter().any(|host| address.contains(host)) => address.into(),
        Some('0'..='9') if is_number(number) => format!("{address}#section-{number}"),
        Some('A'..='Z') if is_number(rest.as_str()) => format!("{address}#appendix-{number}"),
        _ => address.into(),
    }
}

/// The citations of a doc comment, each once, such as `NADA §4.3`, without those in code or in
/// links.
fn citations(lines: &[&str]) -> Vec<String> {
    let mut text = String::new();
    let mut is_code = false;
    for line in lines {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            text += line.trim();
            text.push(' ');
        }
    }
    let mut found = Vec::new();
    for (at, _) in text.match_indices('[') {
        let rest = &text[at + 1..];
        let Some((label, after)) = rest.split_once(']') else { continue };
        let Some((tag, _)) = label.split_once(" §") else { continue };
        let in_tag = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
        let is_code = text[..at].matches('`').count() % 2 == 1;
        let is_link = after.starts_with('(') || after.starts_with('[');
        let is_citation = !tag.is_empty() && tag.chars().all(in_tag) && !is_code && !is_link;
        if is_citation && !found.iter().any(|known| known == label) {
            found.push(label.to_owned());
        }
    }
    found
}

/// Whether a line of a doc comment is a definition that this test wrote.
fn is_definition(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('[') && line.contains(" §") && line.contains("]: http")
}

/// The word after the prefix `word` of a line, such as the name after `pub struct `.
fn name_behind<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(word)?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then_some(&rest[..end])
}

const ITEMS: [&str; 7] = ["struct ", "enum ", "trait ", "fn ", "const ", "type ", "union "];

/// The name of the public item that begins on an unindented line.
fn public_item(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("pub ")?;
    for word in ["const fn ", "unsafe fn ", "async fn "] {
        if rest.starts_with(word) {
            rest = &rest[word.len() - 3..];
        }
    }
    ITEMS.iter().find_map(|word| name_behind(rest, word))
}

/// The type of an `impl` line, and whether it implements a trait.
fn implemented(line: &str) -> Option<(&str, bool)> {
    let rest = line.strip_prefix("impl")?;
    let target = line.rsplit_once(" for ").map(|(_, target)| target);
    let own = match rest.strip_prefix('<') {
        Some(_) => rest.split_once("> ")?.1,
        None => rest.trim_start(),
    };
    let name = name_behind(target.unwrap_or(own), "")?;
    Some((name, target.is_some()))
}

/// A crate's files, and the parts of them that its users see.
struct Library {
    files: Vec<PathBuf>,
    /// Files of public modules.
    public: BTreeSet<PathBuf>,
    /// Names of public types, functions and the like.
    names: BTreeSet<String>,
}

impl Library {
    fn read(source: &Path) -> Self {
        let mut library =
            Self { files: Vec::new(), public: BTreeSet::new(), names: BTreeSet::new() };
        library.visit(&source.join("lib.rs"), source, true);
        for file in library.files.clone() {
            let text = fs::read_to_string(&file).unwrap();
            if library.public.contains(&file) {
                library.names.extend(text.lines().filter_map(public_item).map(Into::into));
            }
            // An item of a private module is public if a public module exports it.
            for part in text.split("pub use ").skip(1) {
                let words = part.split(';').next().unwrap_or_default();
                let words = words.split(|c: char| !c.is_alphanumeric() && c != '_');
                library.names.extend(words.filter(|word| !word.is_empty()).map(Into::into));
            }
        }
        library
    }

    /// Adds a module's file and its child modules below `folder`.
    fn visit(&mut self, file: &Path, folder: &Path, is_public: bool) {
        self.files.push(file.into());
        if is_public {
            self.public.insert(file.into());
        }
        let text = fs::read_to_string(file).unwrap();
        for line in text.lines() {
            let is_public_module = line.starts_with("pub mod ");
            let declared = line.trim_start_matches("pub ").trim_start_matches("pub(super) ");
            let declared = declared.trim_start_matches("pub(crate) ");
            let Some(name) = name_behind(declared, "mod ") else { continue };
            if !line.ends_with(';') {
                continue;
            }
            let (flat, inner) = (folder.join(format!("{name}.rs")), folder.join(name));
            let file = if flat.is_file() { flat } else { inner.join("mod.rs") };
            // The file of a test module may be elsewhere.
            if file.is_file() {
                self.visit(&file, &inner, is_public && is_public_module);
            }
        }
    }

    /// Whether rustdoc shows the comment before `lines[next]`.
    fn shows(&self, file: &Path, lines: &[&str], next: usize) -> bool {
        let mut next = next;
        while lines.get(next).is_some_and(|line| line.trim_start().starts_with("#[")) {
            while !lines[next].trim_end().ends_with(']') {
                next += 1;
            }
            next += 1;
        }
        let Some(line) = lines.get(next) else { return false };
        if !line.starts_with(' ') {
            return public_item(line).is_some_and(|name| self.names.contains(name))
                || (line.starts_with("pub mod ") && self.public.contains(file));
        }
        let item = line.trim_start();
        let is_head = |line: &&&str| {
            line.starts_with(|c: char| c.is_ascii_lowercase()) && !line.starts_with("where")
        };
        let Some(head) = lines[..next].iter().rev().find(is_head) else { return false };
        if let Some((name, is_trait)) = implemented(head) {
            return self.names.contains(name) && (is_trait || item.starts_with("pub "));
        }
        let Some(name) = public_item(head) else { return false };
        let all_public = head.contains("enum ") || head.contains("trait ");
        self.names.contains(name) && (all_public || item.starts_with("pub "))
    }
}

/// A file's text with the definitions that its citations need.
fn with_definitions(
    library: &Library,
    file: &Path,
    text: &str,
    known: &BTreeMap<&str, &str>,
) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let trimmed = lines[at].trim_start();
        let Some(mark) = ["//!", "///"].into_iter().find(|mark| trimmed.starts_with(mark)) else {
            out.push(lines[at].into());
            at += 1;
            continue;
        };
        let indent = &lines[at][..lines[at].len() - trimmed.len()];
        let comment = |line: &&&str| line.trim_start().starts_with(mark);
        let end = at + lines[at..].iter().take_while(comment).count();
        let content: Vec<&str> =
            lines[at..end].iter().map(|line| line.trim_start().trim_start_matches(mark)).collect();
        let own = |line: &&&str| !is_definition(line);
        let mut kept: Vec<&str> = content.iter().filter(own).copied().collect();
        let had_definitions = kept.len() < content.len();
        while had_definitions && kept.last().is_some_and(|line| line.trim().is_empty()) {
            kept.pop();
        }
        let is_shown = match mark {
            "//!" => library.public.contains(file),
            _ => library.shows(file, &lines, end),
        };
        let cited = if is_shown { citations(&kept) } else { Vec::new() };
        out.extend(kept.iter().map(|line| format!("{indent}{mark}{line}")));
        // An empty line separates text and definitions, unless other definitions are there already.
        let is_after_text = kept.last().is_some_and(|line| !line.contains("]: http"));
        if !cited.is_empty() && is_after_text {
            out.push(format!("{indent}{mark}"));
        }
        for label in cited {
            let (tag, section) = label.split_once(" §").expect("that is what a citation has");
            let address = known.get(tag).unwrap_or_else(|| panic!("{SPECS} has no {tag}"));
            out.push(format!("{indent}{mark} [{label}]: {}", link(address, section)));
        }
        at = end;
    }
    out.join("\n") + "\n"
}

#[test]
fn every_citation_that_rustdoc_shows_is_a_link() {
    let page = fs::read_to_string(root().join(SPECS)).unwrap();
    let known = addresses(&page);
    assert!(known.len() > 40, "only {} tags in {SPECS}", known.len());
    let update = env::var_os("WEIR_UPDATE").is_some();
    let (mut links, mut stale) = (0, Vec::new());
    for name in LIBRARIES {
        let source = root().join(name).join("src");
        let library = Library::read(&source);
        for file in &library.files {
            let text = fs::read_to_string(file).unwrap();
            let wanted = with_definitions(&library, file, &text, &known);
            links += wanted.matches("]: http").count();
            if wanted == text {
                continue;
            }
            if update {
                fs::write(file, wanted).unwrap();
            } else {
                stale.push(file.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    assert!(links > 50, "only {links} links");
    assert!(stale.is_empty(), "WEIR_UPDATE=1 cargo test -p weir-tidy citations\n{stale:#?}");
}

#[test]
fn a_section_of_an_rfc_or_a_draft_has_an_anchor() {
    let rfc = "https://www.rfc-editor.org/rfc/rfc8698";
    assert_eq!(link(rfc, "4.3"), format!("{rfc}#section-4.3"));
    assert_eq!(link(rfc, "4.1, NR-BPDV"), format!("{rfc}#section-4.1"));
    assert_eq!(link(rfc, "A.2"), format!("{rfc}#appendix-A.2"));
    let source = "https://github.com/signalapp/webrtc";
    assert_eq!(link(source, "GoogCcNetworkController"), source);
}

#[test]
fn citations_are_found_over_line_ends_and_not_in_code() {
    let lines =
        [" As [NADA §4.3] and [RFC8836 §2,", " requirement 10].", "```text", " [GCC §1]", "```"];
    assert_eq!(citations(&lines), ["NADA §4.3", "RFC8836 §2, requirement 10"]);
    assert_eq!(citations(&[" `[GCC §2]`, [GCC §3](x) and [NADA]"]), [""; 0]);
}

#[test]
fn definitions_stand_at_the_end_of_shown_comments_alone() {
    let library = Library {
        files: Vec::new(),
        public: BTreeSet::new(),
        names: BTreeSet::from(["Shown".to_owned()]),
    };
    let known = BTreeMap::from([("NADA", "https://www.rfc-editor.org/rfc/rfc8698")]);
    let text = "/// As [NADA §4].\npub struct Shown {\n    /// [NADA §5].\n    own: u8,\n}\n";
    let written = with_definitions(&library, Path::new("x.rs"), text, &known);
    let definition = "///\n/// [NADA §4]: https://www.rfc-editor.org/rfc/rfc8698#section-4\n";
    assert_eq!(written, text.replace("pub struct", &format!("{definition}pub struct")));
    assert_eq!(with_definitions(&library, Path::new("x.rs"), &written, &known), written);
}
