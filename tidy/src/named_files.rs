//! The files that pages name in their text.

use crate::files::{root, with_ending};

const FOLDERS: [&str; 9] = [
    "docs/",
    "examples/",
    "ims/",
    "lab/",
    "library/",
    "research/",
    "scripts/",
    "tidy/",
    "vectors/",
];
const ENDINGS: [&str; 9] = [".rs", ".md", ".toml", ".py", ".mjs", ".ts", ".c", ".h", ".sh"];

/// The paths of files in backticks. A part in capitals, such as `NAME`, stands for any name.
fn named_files(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for span in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
        let is_path =
            span.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-_".contains(&byte))
                && FOLDERS.iter().any(|folder| span.starts_with(folder))
                && ENDINGS.iter().any(|ending| span.ends_with(ending));
        if is_path && !span.contains("NAME") {
            found.push(span);
        }
    }
    found
}

#[test]
fn every_file_that_a_page_names_exists() {
    let root = root();
    let mut named = 0;
    for (path, text) in with_ending("", ".md") {
        // It names files as they were in its time.
        if path == "CHANGELOG.md" {
            continue;
        }
        let folder = root.join(&path).parent().unwrap().to_owned();
        for file in named_files(&text) {
            named += 1;
            let exists = root.join(file).is_file() || folder.join(file).is_file();
            assert!(exists, "{path} names {file}");
        }
    }
    assert!(named > 100, "only {named} files named");
}

#[test]
fn files_are_found_in_the_text_of_a_page() {
    let text = "The test `lab/sim/tests/it/ecn.rs` and `docs/NAME.md`, `lab/sim`, `lab/*/x.rs`,\n\
        `ecn.rs`, lab/a.rs";
    assert_eq!(named_files(text), ["lab/sim/tests/it/ecn.rs"]);
}
