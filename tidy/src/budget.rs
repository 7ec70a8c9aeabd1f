//! What a build costs is bounded: the packages that the program reaches are counted.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::read;

/// Packages of Cargo.lock that `weir-cli` reaches, on any system, tests included. A new dependency
/// raises it: say in DEPENDENCIES.md what it brings, and why ten lines of our own would not do.
/// Twelve are there only because the Python package asks for chrono's clock: they name the time
/// zone on other systems.
const PACKAGES: usize = 255;

/// Each package of a lock file with the names in its dependencies. A name that stands twice in the
/// file has its version behind it.
fn dependencies(lock: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim_matches('"').to_owned())
        };
        let (Some(name), Some(version)) = (value("name = "), value("version = ")) else { continue };
        let list = package.split_once("dependencies = [").map_or("", |(_, list)| list);
        let list = list.split(']').next().unwrap_or_default();
        let used: Vec<String> =
            list.split('"').skip(1).step_by(2).map(|name| name.to_owned()).collect();
        found.insert(format!("{name} {version}"), used.clone());
        found.insert(name, used);
    }
    found
}

/// All packages that one reaches, itself included.
fn reached(dependencies: &BTreeMap<String, Vec<String>>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(name) = open.pop() {
        if let Some(used) = dependencies.get(&name)
            && found.insert(name)
        {
            open.extend(used.iter().cloned());
        }
    }
    found
}

#[test]
fn the_program_reaches_no_more_packages_than_it_did() {
    let found = reached(&dependencies(&read("Cargo.lock")), "weir-cli").len();
    assert_eq!(found, PACKAGES, "see what `cargo tree -p weir-cli` brings, then change PACKAGES");
}

#[test]
fn packages_are_counted_through_their_dependencies_and_by_version() {
    let package = |name: &str, version: &str, used: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{used}\n")
    };
    let lock = package("a", "1.0.0", "dependencies = [\n \"b 1.0.0\",\n \"c\",\n]")
        + &package("b", "1.0.0", "")
        + &package("b", "2.0.0", "")
        + &package("c", "1.0.0", "dependencies = [\n \"a\",\n]");
    let found = reached(&dependencies(&lock), "a");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "b 1.0.0", "c"]);
}
