//! Checks that reviewers would otherwise have to make in every change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::files::{self, files_below, read, root, sources, with_ending};

/// Crates of this workspace on which a crate may depend. Tests and benches may use more.
const DEPENDENCIES: [(&str, &[&str]); 32] = [
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
    (
        "lab/sim",
        &[
            "weir",
            "weir-controllers",
            "weir-net",
            "weir-quic",
            "weir-rtcp",
            "weir-sfu",
            "weir-wire",
        ],
    ),
    ("lab/emu", &["weir", "weir-net"]),
    ("lab/metrics", &["weir", "weir-sim"]),
    ("lab/scenario", &["weir", "weir-controllers", "weir-metrics", "weir-net", "weir-sim"]),
    (
        "lab/record",
        &["weir", "weir-controllers", "weir-metrics", "weir-net", "weir-scenario", "weir-sim"],
    ),
    (
        "lab/report",
        &[
            "weir",
            "weir-controllers",
            "weir-metrics",
            "weir-net",
            "weir-record",
            "weir-scenario",
            "weir-sim",
        ],
    ),
    (
        "research",
        &[
            "weir",
            "weir-controllers",
            "weir-metrics",
            "weir-net",
            "weir-record",
            "weir-scenario",
            "weir-sim",
        ],
    ),
    (
        "lab/call",
        &[
            "weir",
            "weir-capture",
            "weir-controllers",
            "weir-emu",
            "weir-metrics",
            "weir-net",
            "weir-record",
            "weir-scenario",
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
            "weir-record",
            "weir-rtcp",
            "weir-scenario",
            "weir-sim",
            "weir-wire",
        ],
    ),
    ("library/gst", &["weir", "weir-rtcp", "weir-wire"]),
    ("library/noq", &["weir", "weir-quic"]),
    ("library/quic", &["weir"]),
    ("library/quinn", &["weir", "weir-quic"]),
    ("library/str0m", &["weir", "weir-rtcp", "weir-wire"]),
    ("library/webrtc-rs", &["weir", "weir-rtcp"]),
    (
        "lab/python",
        &[
            "weir",
            "weir-analyze",
            "weir-controllers",
            "weir-metrics",
            "weir-net",
            "weir-record",
            "weir-report",
            "weir-research",
            "weir-scenario",
            "weir-sim",
        ],
    ),
    (
        "lab/wasm",
        &[
            "weir",
            "weir-controllers",
            "weir-net",
            "weir-record",
            "weir-report",
            "weir-scenario",
            "weir-sim",
        ],
    ),
    ("lab/watch", &["weir-analyze"]),
    ("ims/diameter", &[]),
    ("ims/nodes", &["weir-diameter"]),
    ("ims/testbed", &["weir-diameter", "weir-emu", "weir-nodes"]),
    (
        "lab/cli",
        &[
            "weir",
            "weir-analyze",
            "weir-testbed",
            "weir-call",
            "weir-controllers",
            "weir-emu",
            "weir-metrics",
            "weir-net",
            "weir-record",
            "weir-report",
            "weir-research",
            "weir-scenario",
            "weir-sim",
        ],
    ),
];
/// Crates below the drivers, which get the time as an argument.
const WITHOUT_CLOCK: [&str; 20] = [
    "library/weir",
    "library/wire",
    "library/rtcp",
    "library/quic",
    "library/sfu",
    "library/sfu-wasm",
    "library/capi",
    "lab/capture",
    "lab/controllers",
    "lab/net",
    "lab/sim",
    "lab/vmaf",
    "lab/metrics",
    "lab/scenario",
    "lab/record",
    "lab/report",
    "lab/analyze",
    "research",
    "ims/diameter",
    "ims/nodes",
];
/// The files that convert times which a driver read from its clock. They read no clock themselves.
const CONVERT_TIME: [&str; 2] = ["library/quic/src/control.rs", "library/weir/src/std_time.rs"];
/// How the names of scripts end.
const SCRIPTS: [&str; 7] = [".sh", ".py", ".mjs", ".jq", ".awk", ".c", ".md"];
const LONGEST_FILE: usize = 600;
const LONGEST_LINE: usize = 100;
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
    let module = read("library/weir/tests/it/sluice_rules/mod.rs")
        + &read("library/weir/tests/it/sluice_rules/radio.rs")
        + &read("library/weir/tests/it/sluice_rules/hand_over.rs")
        + &read("library/weir/tests/it/sluice_rules/policer.rs")
        + &read("library/weir/tests/it/sluice_rules/clocks.rs");
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
    assert!(documented.len() > 40, "only {} constants found", documented.len());
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
    for part in files::PARTS {
        if root().join(part).join("Cargo.toml").is_file() {
            folders.insert(part.into());
            continue;
        }
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
        files.retain(|(path, _)| !CONVERT_TIME.contains(&path.as_str()));
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
    let others = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "DEPENDENCIES.md",
        "examples/README.md",
    ];
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

/// The versions that a manifest gives its package and the crates of this project, such as `0.1.0`.
fn versions(manifest: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim_start) {
        let is_own = line.starts_with("weir") && line.contains("path = ");
        let rest = line.strip_prefix("version = \"").or(line.strip_prefix("\"version\": \""));
        let rest =
            rest.or(line.split_once("version = \"").filter(|_| is_own).map(|(_, rest)| rest));
        found.extend(rest.and_then(|rest| rest.split('"').next()));
    }
    found
}

#[test]
fn changelog_header_and_packages_have_one_version() {
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## [")?.split(']').next());
    let newest = newest.expect("the changelog has a version");
    let mut checked = 0;
    for name in ["Cargo.toml", "pyproject.toml", "package.json"] {
        for (path, text) in with_ending("", name) {
            // What is never published has 0.0.0.
            for version in versions(&text).into_iter().filter(|version| *version != "0.0.0") {
                assert_eq!(version, newest, "{path}, beside CHANGELOG.md");
                checked += 1;
            }
        }
    }
    assert!(checked > 30, "only {checked} versions found");
    let header = read("library/capi/include/weir.h");
    let mut parts = Vec::new();
    for part in ["MAJOR", "MINOR", "PATCH"] {
        let name = format!("#define WEIR_VERSION_{part} ");
        parts.extend(header.lines().find_map(|line| line.strip_prefix(&name)));
    }
    assert_eq!(parts.join("."), newest, "weir.h, beside CHANGELOG.md");
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

/// The scripts of this project that a text names by path, such as `scripts/test/lint.sh`.
fn named_scripts(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c))) {
        let Some(at) = word.find("scripts/") else { continue };
        let path = word[at..].trim_end_matches(['.', '-', '/']);
        let is_folder = at == 0 || word[..at].ends_with('/');
        if is_folder && SCRIPTS.iter().any(|ending| path.ends_with(ending)) {
            found.insert(path);
        }
    }
    found
}

#[test]
fn every_script_that_a_file_names_exists() {
    let mut named = 0;
    for (path, text) in files_below("") {
        // It names files as they were in its time.
        if path == "CHANGELOG.md" {
            continue;
        }
        for script in named_scripts(&text) {
            named += 1;
            assert!(root().join(script).is_file(), "{path} names {script}");
        }
    }
    assert!(named > 300, "only {named} scripts named");
}

#[test]
fn every_script_of_the_results_has_a_line_in_their_readme() {
    let readme = read("scripts/results/README.md");
    let listed: BTreeSet<String> = first_cells(&readme)
        .into_iter()
        .filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`').map(str::to_owned))
        .collect();
    let mut scripts = BTreeSet::new();
    for entry in fs::read_dir(root().join("scripts/results")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if SCRIPTS.iter().any(|ending| name.ends_with(ending)) && name != "README.md" {
            scripts.insert(name);
        }
    }
    assert_eq!(listed, scripts);
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
    let text = "../../scripts/test/lint.sh; `scripts/usage.sh`. --ignore-scripts/c.sh, scripts/d/";
    let scripts = BTreeSet::from(["scripts/test/lint.sh", "scripts/usage.sh"]);
    assert_eq!(named_scripts(text), scripts);
    assert!(first_cells("| tag | title |\n|---|---|\n| GCC | x |").contains("GCC"));
}
