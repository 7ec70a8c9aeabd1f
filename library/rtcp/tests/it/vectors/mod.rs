//! The conformance vectors. `vectors/` has a few of them, and this test checks that they are what
//! it makes. After a change of a controller, this writes them again, and the hashes of all:
//!
//! ```text
//! scripts/build/vectors.sh --update
//! ```
//!
//! A case is one controller under one scenario. A sender with this controller sends through a small
//! model of a path, and [`record::Recorder`] writes down each call that the controller gets.

mod path;
mod record;
mod scenarios;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use weir::Algorithm;
use weir_rtcp::Feedback;

use scenarios::Scenario;

const COMMAND: &str = "scripts/build/vectors.sh --update";

/// One file.
struct Case {
    algorithm: Algorithm,
    scenario: Scenario,
    feedback: Feedback,
}

impl Case {
    /// The path below `vectors/`.
    fn path(&self) -> String {
        let format = scenarios::feedback_name(self.feedback);
        format!("{}/{}-{format}.jsonl", self.algorithm, self.scenario.name)
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for algorithm in Algorithm::all() {
        for scenario in scenarios::all() {
            for feedback in [Feedback::Twcc, Feedback::Ccfb] {
                // TWCC has no room for ECN marks.
                if scenario.uses_ecn() && feedback == Feedback::Twcc {
                    continue;
                }
                // A controller without L4S would have the vector of classic marks once more.
                if algorithm.ecn_mode(scenario.ecn) != scenario.ecn {
                    continue;
                }
                cases.push(Case { algorithm, scenario: scenario.clone(), feedback });
            }
        }
    }
    cases
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

/// The files of vectors that are stored, as paths below `vectors/`.
fn stored(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for algorithm in Algorithm::all() {
        let Ok(files) = fs::read_dir(folder.join(algorithm.name())) else { continue };
        for file in files {
            let name = file.unwrap().file_name().into_string().unwrap();
            found.insert(format!("{algorithm}/{name}"));
        }
    }
    found
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

// With `WEIR_VECTORS`, all vectors are also written below the folder that it names.
#[test]
fn the_stored_vectors_are_up_to_date() {
    let folder = folder();
    if !folder.exists() {
        println!("skipped: no folder vectors/ beside the library");
        return;
    }
    let update = env::var_os("WEIR_UPDATE").is_some();
    let all = env::var_os("WEIR_VECTORS").map(PathBuf::from);
    let mut unknown = stored(&folder);
    let mut stale = Vec::new();
    for case in cases() {
        let path = case.path();
        let is_stored = unknown.remove(&path);
        if !is_stored && all.is_none() {
            continue;
        }
        let text = path::run(case.algorithm, &case.scenario, case.feedback);
        if let Some(all) = &all {
            write(&all.join(&path), &text);
        }
        let file = folder.join(&path);
        if !is_stored || fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        if update {
            write(&file, &text);
        } else {
            stale.push(path);
        }
    }
    assert!(stale.is_empty() && unknown.is_empty(), "{COMMAND}\nstale: {stale:?}, {unknown:?}");
}

#[test]
fn each_controller_has_stored_vectors() {
    let folder = folder();
    let stored = stored(&folder);
    for algorithm in Algorithm::all() {
        let begin = format!("{algorithm}/");
        assert!(!folder.exists() || stored.iter().any(|path| path.starts_with(&begin)), "{begin}");
    }
}

// A vector in which the target never moves would test nothing.
#[test]
fn each_vector_has_feedback_and_moves_the_target() {
    let mut controllers = BTreeSet::new();
    for case in cases() {
        let text = path::run(case.algorithm, &case.scenario, case.feedback);
        let count = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        let path = case.path();
        assert!(count("[\"feedback\",") > 20, "{path} has little feedback");
        assert!(count("[\"target\",") > 2, "{path} has few targets");
        controllers.insert(case.algorithm.name());
    }
    assert_eq!(controllers.len(), Algorithm::all().len());
}
