//! Every block of code of README, book, examples and crates is run, or says in a comment above it
//! why it is not:
//!
//! ```text
//! <!-- not run: root -->
//! ```
//!
//! Here run shell, console, TOML and C. Python blocks run in `lab/python/tests/test_pages.py`, Rust
//! blocks as doctests of the crates that include their page.

#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Why a block need not run. Whatever is `excerpt FILE` or `part` is still checked here.
const REASONS: [(&str, &str); 9] = [
    ("root", "it needs the emulator, whose tests are real_*: real_link, real_examples, real_app"),
    ("ims", "it needs the IMS testbed, whose tests are those of weir-testbed"),
    ("network", "it downloads something"),
    ("build", "it builds for minutes or installs; CI's jobs do it"),
    ("long", "it computes for more than some seconds"),
    ("file", "it reads a file that the reader has"),
    ("desktop", "it needs a browser, a camera or a screen"),
    ("excerpt", "its lines stand in a file that is tested, which the comment names"),
    ("part", "it is a part of a program, or a file that another program reads"),
];
/// Pages whose Rust blocks are doctests, because a crate includes them.
const DOCTESTS: [&str; 20] = [
    "README.md",
    "docs/guide/embed-a-controller.md",
    "docs/guide/forward-media.md",
    "lab/analyze/README.md",
    "lab/call/README.md",
    "ims/diameter/README.md",
    "lab/emu/README.md",
    "lab/net/README.md",
    "lab/record/README.md",
    "lab/scenario/README.md",
    "library/rtcp/README.md",
    "library/sfu/README.md",
    "library/noq/README.md",
    "library/quic/README.md",
    "library/quinn/README.md",
    "library/str0m/README.md",
    "library/webrtc-rs/README.md",
    "lab/sim/README.md",
    "library/weir/README.md",
    "library/wire/README.md",
];
/// Pages whose Python blocks run in the tests of the Python package.
const PYTHON_PAGES: [&str; 2] = ["docs/guide/python.md", "lab/python/README.md"];
/// What a scenario needs besides the keys that a page shows.
const REST_OF_A_SCENARIO: [(&str, &str); 6] = [
    ("title = ", "title = \"A part\""),
    ("source = ", "source = \"A page\""),
    ("description = ", "description = \"What a page shows.\""),
    ("duration = ", "duration = \"60s\""),
    (
        "[network",
        "[network.up]\ncapacity = \"2Mbps\"\ndelay = \"20ms\"\n[network.down]\ndelay = \"20ms\"",
    ),
    ("[[flow]]", "[[flow]]"),
];
/// What the C blocks of the guide take for granted.
const C_PRELUDE: &str = "#include <stdio.h>\n#include <sys/socket.h>\n#include \"weir.h\"\n\
    void page(int64_t now_ns, int fd, const weir_bytes *packets, size_t count, uint8_t *datagram, \
    size_t length);\n\
    void page(int64_t now_ns, int fd, const weir_bytes *packets, size_t count, uint8_t *datagram, \
    size_t length) {\n(void)packets; (void)count; (void)datagram; (void)length;\n";

struct Block {
    page: String,
    line: usize,
    language: String,
    text: String,
    /// What the comment above says, if there is one.
    not_run: Option<String>,
}

impl Block {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }

    fn reason(&self) -> Option<&str> {
        self.not_run.as_deref().map(|reason| reason.split(' ').next().unwrap_or(reason))
    }

    fn is(&self, language: &str) -> bool {
        self.language == language && self.not_run.is_none()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Folders of the crates.
fn crates() -> Vec<PathBuf> {
    let mut found = vec![root().join("research")];
    for part in ["library", "lab", "ims"] {
        found.extend(fs::read_dir(root().join(part)).unwrap().map(|entry| entry.unwrap().path()));
    }
    found
}

/// The pages below a folder, by path from the root.
fn pages_below(folder: &Path, found: &mut Vec<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["node_modules", "target", "results"].contains(&name) {
            pages_below(&path, found);
        } else if name.ends_with(".md") {
            found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
        }
    }
}

/// README, book without the results, examples, and the crates' pages. The tables in the results
/// have their commands beside them, which take minutes to hours.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "examples"] {
        pages_below(&root().join(folder), &mut pages);
    }
    for folder in crates() {
        let page = folder.join("README.md");
        if page.is_file() {
            pages.push(page.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
        }
    }
    pages.sort();
    pages
}

fn blocks_of(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    let mut above = "";
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start();
        if let Some(mut block) = open.take() {
            if content.starts_with("```") {
                blocks.push(block);
            } else {
                block.text += content_of(line, &block.language);
                block.text.push('\n');
                open = Some(block);
            }
        } else if let Some(language) = content.strip_prefix("```") {
            let comment = above.trim().strip_prefix("<!-- not run: ");
            let not_run = comment.and_then(|rest| rest.strip_suffix(" -->")).map(str::to_owned);
            let (page, language) = (page.to_owned(), language.to_owned());
            open = Some(Block { page, line: index + 1, language, text: String::new(), not_run });
        }
        if !content.is_empty() {
            above = line;
        }
    }
    assert!(open.is_none(), "{page}: a block without an end");
    blocks
}

/// A line of a block. Blocks of shell within a list are indented.
fn content_of<'a>(line: &'a str, language: &str) -> &'a str {
    if language == "sh" { line.strip_prefix("   ").unwrap_or(line) } else { line }
}

fn all_blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for page in pages() {
        blocks.extend(blocks_of(&page));
    }
    blocks
}

#[test]
fn every_block_runs_or_says_why_not() {
    let (mut run, mut kept) = (0, 0);
    for block in all_blocks() {
        let place = block.place();
        if let Some(reason) = block.reason() {
            let is_known = REASONS.iter().any(|(known, _)| *known == reason);
            assert!(is_known, "{place}: '{reason}' is no reason: {REASONS:?}");
            kept += 1;
            continue;
        }
        let runs = match block.language.as_str() {
            // What a program prints, and drawings.
            "" | "text" => {
                let command = block.text.lines().find(|line| is_command(line));
                assert_eq!(command, None, "{place}: a command is a block of sh or console");
                continue;
            }
            "sh" | "console" | "toml" | "c" => true,
            "python" => PYTHON_PAGES.contains(&block.page.as_str()),
            "rust" | "rust,no_run" => DOCTESTS.contains(&block.page.as_str()),
            _ => false,
        };
        assert!(
            runs,
            "{place}: nothing runs this block of '{}'. Write <!-- not run: REASON --> above it, \
             with one of {REASONS:?}",
            block.language
        );
        run += 1;
    }
    println!("{run} blocks run, {kept} do not");
    assert!(run >= 40, "only {run} blocks run, {kept} do not");
}

fn is_command(line: &str) -> bool {
    let line = line.trim_start_matches("$ ").trim_start_matches("sudo ");
    let command = ["weir ", "cargo ", "make ", "npm ", "pip ", "apt-get "];
    command.iter().any(|start| line.starts_with(start))
}

#[test]
fn every_page_of_doctests_is_included_by_a_crate() {
    let mut sources = String::new();
    for folder in crates() {
        let source = fs::read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
        let own = folder.strip_prefix(root()).unwrap().display();
        for line in source.lines().filter(|line| line.contains("include_str!(\"")) {
            let target = line.split('"').nth(1).unwrap();
            sources += &match target.strip_prefix("../../../") {
                Some(page) => format!("{page}\n"),
                None => format!("{own}/{}\n", target.trim_start_matches("../")),
            };
        }
    }
    for page in DOCTESTS {
        assert!(sources.lines().any(|line| line == page), "no crate includes {page}: {sources}");
    }
}

#[test]
fn excerpts_stand_in_the_files_that_they_name() {
    let mut excerpts = 0;
    for block in all_blocks().iter().filter(|block| block.reason() == Some("excerpt")) {
        let file = block.not_run.as_ref().unwrap().strip_prefix("excerpt ").unwrap_or_default();
        let place = block.place();
        let text = fs::read_to_string(root().join(file))
            .unwrap_or_else(|error| panic!("{place}: excerpt of which file? '{file}': {error}"));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for line in block.text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            assert!(lines.contains(&line), "{place}: not in {file}: {line}");
        }
        excerpts += 1;
    }
    assert!(excerpts > 0, "no page has an excerpt");
}

#[test]
fn every_command_of_the_pages_runs() {
    let mut commands = 0;
    for page in pages() {
        let folder = tempfile::tempdir().unwrap();
        // The front page is read in a clone.
        if page == "README.md" {
            symlink(root().join("lab"), folder.path().join("lab")).unwrap();
        }
        for block in blocks_of(&page) {
            if block.is("toml") {
                write_file_of(&block, folder.path());
            } else if block.is("sh") {
                run_in_shell(&block, &block.text, folder.path());
                commands += 1;
            } else if block.is("console") {
                let script: Vec<&str> =
                    block.text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
                run_in_shell(&block, &script.join("\n"), folder.path());
                commands += 1;
            }
        }
    }
    assert!(commands >= 12, "only {commands} blocks of commands found");
}

/// A block whose first line is `# NAME.toml` is that file for the commands after it.
fn write_file_of(block: &Block, folder: &Path) {
    let Some((head, text)) = block.text.split_once('\n') else { return };
    let Some(name) = head.strip_prefix("# ") else { return };
    if let Some(name) = name.strip_suffix(", appended") {
        let path = folder.join(name);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(path, before + "\n" + text).unwrap();
    } else if name.ends_with(".toml") && !name.contains(' ') {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// Runs a block with this `weir` first in the path. `# exit code N` in it is what it ends with.
fn run_in_shell(block: &Block, script: &str, folder: &Path) {
    let has_viewer = root().join("lab/web/dist/report.html").is_file();
    let mut lines: Vec<&str> = script.lines().collect();
    if !has_viewer {
        println!("{}: without reports, because this weir has no viewer", block.place());
        lines.retain(|line| !line.starts_with("weir ") || !line.contains(" -o "));
    }
    let own = Path::new(WEIR).parent().unwrap().display();
    let path = format!("{own}:{}", env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-euc", &lines.join("\n")]).current_dir(folder);
    let output = shell.env("PATH", path).env("WEIR_ROOT", root()).output().unwrap();
    let expected = script.split_once("# exit code ").map_or("0", |(_, code)| code.trim());
    let found = output.status.code().map(|code| code.to_string()).unwrap_or_default();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(found, expected, "{}:\n{script}\n{error}", block.place());
}

#[test]
fn every_scenario_of_the_pages_is_read() {
    let mut scenarios = 0;
    for block in all_blocks().iter().filter(|block| block.is("toml")) {
        // Cargo reads the dependencies: see `dependency_lines_name_crates_of_this_project`.
        if block.text.contains("[dependencies]") {
            continue;
        }
        let text = completed(&block.text);
        if let Err(error) = weir_scenario::parse(&block.place(), &text, None) {
            panic!("{}: {error}\n{text}", block.place());
        }
        scenarios += 1;
    }
    assert!(scenarios >= 5, "only {scenarios} scenarios found");
}

/// A scenario with what the block leaves out. Keys without a table come first.
fn completed(shown: &str) -> String {
    if shown.contains("# office.toml, appended") || shown.contains("title = ") {
        let evening = shown.contains(", appended") && !shown.starts_with("title");
        if !evening {
            return shown.to_owned();
        }
    }
    let mut before = String::new();
    let mut after = String::new();
    for (key, text) in REST_OF_A_SCENARIO {
        let has_it = shown.lines().any(|line| line.starts_with(key)) && !shown.contains("appended");
        if !has_it {
            let place = if key.starts_with('[') { &mut after } else { &mut before };
            *place += &format!("{text}\n");
        }
    }
    let shown = shown.replace("section = \"backup\"\n", "");
    format!("{before}{shown}\n{after}")
}

#[test]
fn dependency_lines_name_crates_of_this_project() {
    let mut lines = 0;
    for block in all_blocks().iter().filter(|block| block.text.contains("[dependencies]")) {
        for line in block.text.lines().filter(|line| line.contains("path = ")) {
            let path = line.split("path = \"").nth(1).and_then(|rest| rest.split('"').next());
            let folder = path.and_then(|path| path.strip_prefix("../weir/")).unwrap_or_default();
            let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml"))
                .unwrap_or_else(|_| panic!("{}: {line}", block.place()));
            let key = line.split(' ').next().unwrap();
            let renamed = line.split("package = \"").nth(1).and_then(|rest| rest.split('"').next());
            let name = format!("name = \"{}\"", renamed.unwrap_or(key));
            assert!(manifest.contains(&name), "{}: {line}", block.place());
            lines += 1;
        }
        let from_a_registry = block.text.lines().find(|line| line.contains("version = \"0."));
        assert_eq!(from_a_registry, None, "{}: no registry has it", block.place());
    }
    assert!(lines > 3, "only {lines} dependencies found");
}

#[test]
fn the_c_of_the_pages_compiles() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: no C compiler");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut compiled = 0;
    for page in pages() {
        let mut body = String::new();
        for block in blocks_of(&page).iter().filter(|block| block.is("c")) {
            body += &block.text;
            compiled += 1;
        }
        if body.is_empty() {
            continue;
        }
        let source = folder.path().join("page.c");
        fs::write(&source, format!("{C_PRELUDE}{body}}}\n")).unwrap();
        let include = root().join("library/capi/include");
        let output = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I"])
            .args([&include, &source])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{page}: {error}");
    }
    assert!(compiled >= 3, "only {compiled} blocks of C found");
}
