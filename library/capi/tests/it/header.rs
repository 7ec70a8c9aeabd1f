//! The committed header and the version script belong to this crate.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The version that writes the committed header.
const CBINDGEN: &str = "cbindgen 0.29.4";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The names of all exported functions, from the sources.
fn exported() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for rest in text.split("extern \"C\" fn ").skip(1) {
            names.insert(rest.split('(').next().unwrap().to_owned());
        }
    }
    assert!(names.len() > 30, "only {} functions found", names.len());
    names
}

#[test]
fn the_header_is_what_cbindgen_writes() {
    let said = Command::new("cbindgen").arg("--version").output();
    let version = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if version.as_deref().ok() != Some(CBINDGEN) {
        println!("skipped: no {CBINDGEN}: scripts/build/deps.sh --test-all installs it");
        return;
    }
    let folder = env!("CARGO_MANIFEST_DIR");
    let output = Command::new("cbindgen")
        .args(["--quiet", "--config", "cbindgen.toml", "."])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = String::from_utf8(output.stdout).unwrap();
    if std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(Path::new(folder).join("include/weir.h"), &written).unwrap();
    }
    let is_same = written == read("include/weir.h");
    let command = "WEIR_UPDATE=1 cargo test -p weir-capi --test it header";
    assert!(is_same, "weir.h is out of date: {command}");
}

#[test]
fn header_and_version_script_have_exactly_the_exported_functions() {
    let exported = exported();
    let script = read("weir.map");
    let listed = script.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let listed: BTreeSet<String> =
        listed.filter(|name| name.starts_with("weir_")).map(str::to_owned).collect();
    assert_eq!(listed, exported, "weir.map");
    let header = read("include/weir.h");
    let missing = exported.iter().filter(|name| !header.contains(&format!("{name}(")));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0], "weir.h");
}

#[test]
fn the_header_has_the_version_of_the_crate() {
    let header = read("include/weir.h");
    let part = |name: &str| {
        let line = header.lines().find(|line| line.contains(name)).unwrap();
        line.rsplit(' ').next().unwrap().to_owned()
    };
    let version = ["WEIR_VERSION_MAJOR", "WEIR_VERSION_MINOR", "WEIR_VERSION_PATCH"].map(part);
    assert_eq!(version.join("."), env!("CARGO_PKG_VERSION"));
}
