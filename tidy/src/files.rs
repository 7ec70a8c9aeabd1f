//! The files of the project, as the tests of this crate read them.

use std::fs;
use std::path::{Path, PathBuf};

/// The parts of the project that have crates; the last is one crate. The library uses no other
/// part, and the lab's program uses research and the IMS.
pub const PARTS: [&str; 4] = ["library", "lab", "ims", "research"];
/// Folders with generated files.
const MADE: [&str; 10] = [
    "target",
    "node_modules",
    ".venv",
    "worker",
    "dist",
    "screenshots",
    "runs",
    "corpus",
    "artifacts",
    ".git",
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The text files of the project below a folder, by path from the root.
pub fn files_below(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let is_made =
                MADE.contains(&name.as_str()) || name == "report.html" || path.is_symlink();
            if path.is_dir() && !is_made {
                folders.push(path);
            } else if path.is_file() && !is_made {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let path = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                found.push((path, text));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "nothing below {folder}");
    found
}

pub fn with_ending(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut files = files_below(folder);
    files.retain(|(path, _)| path.ends_with(ending));
    files
}

/// The Rust files of all crates.
pub fn sources() -> Vec<(String, String)> {
    PARTS.iter().flat_map(|part| with_ending(part, ".rs")).collect()
}

pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}
