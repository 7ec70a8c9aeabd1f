//! The catalogue has the files of `scenarios/`, and pages name what it has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use weir_scenario::catalogue;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The text files below a folder with an ending, by path from the root.
fn with_ending(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.ends_with(ending) {
                let text = read(&path);
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_scenario_file_is_in_the_catalogue_under_its_path() {
    let files = with_ending("scenarios", ".toml");
    let from_files: Vec<&str> = files
        .iter()
        .map(|(path, _)| path.strip_prefix("scenarios/").unwrap().strip_suffix(".toml").unwrap())
        .collect();
    let from_files: BTreeSet<&str> = from_files.into_iter().collect();
    let is_file = |id: &&str| catalogue::find(id).unwrap()[0].variant.is_none();
    assert_eq!(catalogue::ids().filter(is_file).collect::<BTreeSet<_>>(), from_files);
}

#[test]
fn pages_and_scripts_name_only_scenarios_that_exist() {
    let sources: BTreeSet<&str> = catalogue::ids().filter_map(|id| id.split('/').next()).collect();
    let mut pages = with_ending("docs", ".md");
    pages.extend(with_ending("scripts", ".sh"));
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile"];
    pages.extend(others.map(|path| (path.to_owned(), read(path))));
    let (mut named, mut found) = (0, BTreeSet::new());
    for (path, text) in &pages {
        let words = text.split(|c: char| c.is_whitespace() || "`'\"(),;:|".contains(c));
        for word in words.map(|word| word.trim_end_matches('.')) {
            let source = word.split_once('/').map(|(source, _)| source);
            // The stacks have a folder of the same name as their scenarios.
            let is_page = word.ends_with(".md");
            if !is_page && source.is_some_and(|source| sources.contains(source)) {
                named += 1;
                if found.insert(word) {
                    assert!(catalogue::find(word).is_ok(), "{path} names {word}");
                }
            }
        }
    }
    assert!(named > 10, "only {named} scenarios named");
}
