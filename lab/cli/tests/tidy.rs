//! Checks that reviewers would otherwise have to make in every change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs};

use weir_lab::scenario::catalogue;

/// Crates of this workspace on which a crate may depend. Tests and benches may use more.
const DEPENDENCIES: [(&str, &[&str]); 25] = [
    ("library/weir", &[]),
    ("library/wire", &[]),
    ("library/rtcp", &["weir", "weir-wire"]),
    ("library/sfu", &["weir", "weir-rtcp", "weir-wire"]),
    ("library/sfu-wasm", &["weir", "weir-sfu"]),
    ("library/capi", &["weir", "weir-rtcp", "weir-wire"]),
    ("lab/capture", &["weir-wire"]),
    ("lab/vmaf", &[]),
    ("lab/controllers", &["weir", "weir-wire"]),
    ("lab/net", &["weir"]),
    ("lab/sim", &["weir", "weir-controllers", "weir-net", "weir-rtcp", "weir-sfu", "weir-wire"]),
    ("lab/emu", &["weir", "weir-net"]),
    ("lab/lab", &["weir", "weir-controllers", "weir-net", "weir-sim"]),
    (
        "lab/call",
        &[
            "weir",
            "weir-capture",
            "weir-controllers",
            "weir-emu",
            "weir-lab",
            "weir-net",
            "weir-sim",
            "weir-vmaf",
        ],
    ),
    (
        "lab/analyze",
        &[
            "weir",
            "weir-capture",
            "weir-controllers",
            "weir-lab",
            "weir-rtcp",
            "weir-sim",
            "weir-wire",
        ],
    ),
    ("library/gst", &["weir", "weir-rtcp", "weir-wire"]),
    ("library/str0m", &["weir", "weir-rtcp", "weir-wire"]),
    ("library/webrtc-rs", &["weir", "weir-rtcp"]),
    (
        "lab/python",
        &["weir", "weir-analyze", "weir-controllers", "weir-lab", "weir-net", "weir-sim"],
    ),
    ("lab/wasm", &["weir", "weir-controllers", "weir-lab", "weir-net", "weir-sim"]),
    ("lab/watch", &["weir-analyze"]),
    ("ims/diameter", &[]),
    ("ims/ims", &["weir-diameter"]),
    ("ims/testbed", &["weir-diameter", "weir-emu", "weir-ims"]),
    (
        "lab/cli",
        &[
            "weir",
            "weir-analyze",
            "weir-testbed",
            "weir-call",
            "weir-controllers",
            "weir-emu",
            "weir-lab",
            "weir-net",
            "weir-sim",
        ],
    ),
];
/// Crates below the drivers, which get the time as an argument.
const WITHOUT_CLOCK: [&str; 15] = [
    "library/weir",
    "library/wire",
    "library/rtcp",
    "library/sfu",
    "library/sfu-wasm",
    "library/capi",
    "lab/capture",
    "lab/controllers",
    "lab/net",
    "lab/sim",
    "lab/vmaf",
    "lab/lab",
    "lab/analyze",
    "ims/diameter",
    "ims/ims",
];
/// The parts of the project that have crates. The library uses no other part, and the lab's program
/// uses the IMS.
const PARTS: [&str; 3] = ["library", "lab", "ims"];
/// The file that converts times which a driver read from its clock. It reads no clock itself.
const CONVERTS_TIME: &str = "library/weir/src/std_time.rs";
/// Closures with a name, `let x = |..|`, in each crate's product code. A function or a loop reads
/// better. The numbers only fall: lower one when you have replaced a closure.
const NAMED_CLOSURES: [(&str, usize); 24] = [
    ("library/capi", 1),
    ("library/gst", 0),
    ("library/rtcp", 1),
    ("library/sfu", 1),
    ("library/sfu-wasm", 0),
    ("library/str0m", 0),
    ("library/webrtc-rs", 0),
    ("library/weir", 21),
    ("library/wire", 3),
    ("lab/analyze", 5),
    ("lab/call", 9),
    ("lab/capture", 0),
    ("lab/cli", 3),
    ("lab/controllers", 2),
    ("lab/emu", 10),
    ("lab/lab", 37),
    ("lab/net", 14),
    ("lab/python", 0),
    ("lab/sim", 8),
    ("lab/wasm", 0),
    ("lab/watch", 0),
    ("ims/diameter", 0),
    ("ims/ims", 7),
    ("ims/testbed", 5),
];
const LONGEST_FILE: usize = 600;
const LONGEST_LINE: usize = 100;
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text files of the project below a folder, by path from the root.
fn files_below(folder: &str) -> Vec<(String, String)> {
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

fn with_ending(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut files = files_below(folder);
    files.retain(|(path, _)| path.ends_with(ending));
    files
}

/// The Rust files of all crates.
fn sources() -> Vec<(String, String)> {
    PARTS.iter().flat_map(|part| with_ending(part, ".rs")).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// First cells of a page's table rows.
fn first_cells(page: &str) -> BTreeSet<&str> {
    page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect()
}

/// The tags of all citations in a text.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.split('[').skip(1).filter_map(|rest| {
        let (tag, _) = rest.split_once(" §")?;
        let is_tag = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
        (!tag.is_empty() && tag.bytes().all(is_tag)).then_some(tag)
    })
}

/// The numbers of all deviations in a text.
fn deviations(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| {
        let Some((name, number)) = word.split_once("-D") else { return false };
        let in_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        let is_name =
            name.starts_with(|c: char| c.is_ascii_uppercase()) && name.bytes().all(in_name);
        is_name && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[test]
fn every_citation_tag_is_in_the_table_of_specs() {
    let page = read("docs/reference/specs.md");
    let known = first_cells(&page);
    let (mut cited, mut unknown) = (0, Vec::new());
    for (path, text) in sources() {
        cited += citations(&text).count();
        let tags = citations(&text).filter(|tag| !known.contains(tag));
        unknown.extend(tags.map(|tag| format!("{path}: {tag}")));
    }
    assert!(cited > 100, "only {cited} citations found");
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn every_deviation_in_the_code_is_indexed_and_explained() {
    let index = read("docs/reference/deviations.md");
    let indexed = first_cells(&index);
    let mut pages = with_ending("docs/reference/controllers", ".md");
    for page in ["docs/reference/quality.md", "docs/reference/nat.md", "docs/reference/tcp.md"] {
        pages.push((page.into(), read(page)));
    }
    let is_explained = |name: &str| {
        let heads = [format!("**{name}, "), format!("**{name},\n"), format!("| {name} |")];
        pages.iter().any(|(_, text)| heads.iter().any(|head| text.contains(head)))
    };
    let mut missing = BTreeSet::new();
    for (path, text) in sources() {
        let without = deviations(&text).filter(|name| !indexed.contains(name));
        missing.extend(without.map(|name| format!("{path}: {name} is not in deviations.md")));
    }
    let numbers: BTreeSet<&str> = deviations(&index).collect();
    assert!(numbers.len() > 30, "only {} deviations found", numbers.len());
    let bare = numbers.iter().filter(|name| !is_explained(name));
    missing.extend(bare.map(|name| format!("{name} is not on its page")));
    assert_eq!(missing, BTreeSet::new());
}

/// The rules of `sluice` that a text names, such as `S-7`.
fn rules_of_sluice(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.strip_prefix("S-").is_some_and(|number| number.parse::<u32>().is_ok()))
}

// One module of tests is written from the page, rule by rule.
#[test]
fn every_rule_of_sluice_has_a_test_that_names_it() {
    let page = read("docs/reference/controllers/sluice.md");
    let heads = page.lines().filter(|line| line.starts_with("**S-"));
    let stated: BTreeSet<&str> = heads.flat_map(|line| rules_of_sluice(line).next()).collect();
    assert!(stated.len() > 20, "only {} rules found", stated.len());
    let module = read("library/weir/tests/sluice_rules/main.rs")
        + &read("library/weir/tests/sluice_rules/radio.rs")
        + &read("library/weir/tests/sluice_rules/hand_over.rs")
        + &read("library/weir/tests/sluice_rules/policer.rs");
    let lines: Vec<&str> = module.lines().collect();
    let tags = lines.windows(2).filter(|pair| pair[0].starts_with("// ") && pair[1] == "#[test]");
    let tested: BTreeSet<&str> = tags.flat_map(|pair| rules_of_sluice(pair[0])).collect();
    assert_eq!(stated, tested);
}

/// A constant of `sluice` as the page or the code writes it: times in milliseconds.
fn value_of_constant(text: &str) -> Option<f64> {
    let number = |text: &str| text.replace('_', "").parse::<f64>().ok();
    if let Some(call) = text.strip_prefix("TimeDelta::from_") {
        let (unit, argument) = call.strip_suffix(')')?.split_once('(')?;
        return number(argument).map(|value| if unit == "secs" { value * 1e3 } else { value });
    }
    let text = text.replace(" / ", "/");
    let (value, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = match value.split_once('/') {
        Some((part, whole)) => number(part)? / number(whole)?,
        None => number(value)?,
    };
    Some(if unit == "s" { number * 1e3 } else { number })
}

#[test]
fn every_constant_of_sluice_is_on_its_page_with_its_value() {
    let code = read("library/weir/src/controllers/sluice/parameters.rs");
    let mut documented = BTreeMap::new();
    let mut name = None;
    for line in code.lines() {
        if let Some(doc) = line.strip_prefix("    /// `") {
            name = doc.split_once("`:").map(|(name, _)| name.to_owned()).or(name);
        } else if let Some((_, value)) = line.split_once(" = ")
            && let Some(name) = name.take()
        {
            let value = value_of_constant(value.trim_end_matches(';'));
            documented.insert(name, value.unwrap_or_else(|| panic!("{line}")));
        }
    }
    assert!(documented.len() > 90, "only {} constants found", documented.len());
    let page = read("docs/reference/controllers/sluice.md");
    let table = page.split("\n## ").find(|part| part.starts_with("Constants")).unwrap();
    let mut stated = BTreeMap::new();
    for row in table.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (name, rest) = row.split_once("` | ").unwrap();
        let value = value_of_constant(rest.split(" | ").next().unwrap());
        stated.insert(name.to_owned(), value.unwrap_or_else(|| panic!("{row}")));
    }
    assert_eq!(stated, documented);
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let mut folders = BTreeSet::new();
    for part in PARTS {
        for entry in fs::read_dir(root().join(part)).unwrap() {
            let entry = entry.unwrap();
            if entry.path().join("Cargo.toml").is_file() {
                folders.insert(format!("{part}/{}", entry.file_name().to_str().unwrap()));
            }
        }
    }
    let known: BTreeSet<String> = DEPENDENCIES.iter().map(|(name, _)| (*name).into()).collect();
    assert_eq!(folders, known, "say in DEPENDENCIES what a new crate may use");
    for (name, allowed) in DEPENDENCIES {
        let manifest = read(&format!("{name}/Cargo.toml"));
        let section = manifest.split("\n[").find_map(|part| part.strip_prefix("dependencies]"));
        for line in section.unwrap().lines().filter(|line| line.starts_with("weir")) {
            let used = line.split(['.', ' ', '=']).next().unwrap();
            assert!(allowed.contains(&used), "{name} must not depend on {used}");
        }
    }
}

#[test]
fn nothing_below_the_drivers_reads_a_clock() {
    for name in WITHOUT_CLOCK {
        let mut files = with_ending(&format!("{name}/src"), ".rs");
        files.retain(|(path, _)| path != CONVERTS_TIME);
        for (path, text) in files {
            for word in ["std::time", "Instant", "SystemTime"] {
                assert!(!text.contains(word), "{path} names {word}: take `now` as an argument");
            }
        }
    }
}

#[test]
fn no_file_names_a_folder_of_somebodys_machine() {
    let here = root().to_str().unwrap().to_owned();
    let homes = ["home", "root", "Users"].map(|folder| format!("/{folder}/"));
    for (path, text) in files_below("") {
        for folder in homes.iter().chain([&here]) {
            let at = text.lines().position(|line| line.contains(folder.as_str()));
            assert_eq!(at, None, "{path} names {folder}");
        }
    }
}

#[test]
fn every_table_of_a_page_is_whole() {
    // A bar within code does not separate cells.
    let cells = |line: &str| {
        let outside = line.replace("\\|", "").split('`').step_by(2).collect::<String>();
        outside.matches('|').count()
    };
    let mut pages = with_ending("docs", ".md");
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"];
    pages.extend(others.map(|path| (path.to_owned(), read(path))));
    for (path, text) in &pages {
        let text: String = text.split("```").step_by(2).collect();
        let lines: Vec<&str> = text.lines().collect();
        for table in lines.split(|line| !line.starts_with('|')).filter(|table| !table.is_empty()) {
            let head = table[0];
            let rule = table.get(1).is_some_and(|line| line.chars().all(|c| "|-: ".contains(c)));
            assert!(rule, "{path}: a row outside of a table: {head}");
            let odd = table.iter().find(|line| cells(line) != cells(head));
            assert_eq!(odd, None, "{path}: a row with other cells than its table");
        }
    }
}

#[test]
fn no_manifest_has_an_empty_key() {
    for (path, text) in with_ending("", "Cargo.toml") {
        assert!(!text.contains("= \"\""), "{path}: fill the key or leave it out");
    }
}

/// Whether a line gives a closure a name.
fn names_a_closure(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("let ") else { return false };
    let Some((name, value)) = rest.trim_start_matches("mut ").split_once(" = ") else {
        return false;
    };
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_name) && value.trim_start_matches("move ").starts_with('|')
}

#[test]
fn named_closures_become_fewer() {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for (name, _) in NAMED_CLOSURES {
        let mut count = 0;
        for (path, text) in with_ending(&format!("{name}/src"), ".rs") {
            if path.ends_with("/tests.rs") || path.contains("/tests/") {
                continue;
            }
            let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            count += product.lines().filter(|line| names_a_closure(line)).count();
        }
        found.push((name, count));
    }
    assert_eq!(found, NAMED_CLOSURES, "write a function or a loop, or lower the number");
}

#[test]
fn no_line_is_longer_than_100_columns() {
    for (path, text) in with_ending("", ".rs") {
        for (index, line) in text.lines().enumerate() {
            // The address of a citation cannot be broken.
            if line.contains("]: https://") {
                continue;
            }
            let columns = line.chars().count();
            assert!(columns <= LONGEST_LINE, "{path}:{} has {columns} columns", index + 1);
        }
    }
}

#[test]
fn no_source_file_is_too_long() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{path} has {lines} lines");
    }
}

/// A module with parts is a folder with `mod.rs`, as in `controllers/nada`.
#[test]
fn the_file_of_a_module_is_in_its_folder() {
    for (path, _) in sources() {
        // A file of `tests/` is a crate, and its data may lie beside it.
        let folder = root().join(path.trim_end_matches(".rs"));
        let is_module = path.contains("/src/") && folder.is_dir();
        assert!(!is_module, "{path} belongs into its folder, as mod.rs");
    }
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
    let mut named = 0;
    for (path, text) in &pages {
        let words = text.split(|c: char| c.is_whitespace() || "`'\"(),;:|".contains(c));
        for word in words.map(|word| word.trim_end_matches('.')) {
            let source = word.split_once('/').map(|(source, _)| source);
            if source.is_some_and(|source| sources.contains(source)) {
                named += 1;
                assert!(catalogue::find(word).is_ok(), "{path} names {word}");
            }
        }
    }
    assert!(named > 10, "only {named} scenarios named");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    for (path, text) in with_ending("", ".md") {
        let folder = root().join(&path).parent().unwrap().to_owned();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_elsewhere = target.is_empty() || target.contains("://");
            assert!(is_elsewhere || folder.join(target).exists(), "{path} links to {target}");
        }
    }
}

#[test]
fn the_searches_of_these_tests_find_their_examples() {
    let text = "a [GCC §5.4] b [RFC8868 §4.1, NR-BPDV] [x §1] [NADA] see GCC-D12, SCREAMV2-D1. \
        RFC-D, x-D1 A-D3b";
    assert_eq!(citations(text).collect::<Vec<_>>(), ["GCC", "RFC8868"]);
    assert_eq!(deviations(text).collect::<Vec<_>>(), ["GCC-D12", "SCREAMV2-D1"]);
    assert!(first_cells("| tag | title |\n|---|---|\n| GCC | x |").contains("GCC"));
}
