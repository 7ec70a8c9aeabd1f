//! Embeds the scenario files into the program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // A link to the folder in the clone; in the published package it is the folder itself.
    let root = crate_folder().join("scenarios").canonicalize()?;
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    let mut entries: Vec<(String, String)> = files.iter().map(|file| entry(&root, file)).collect();
    entries.sort();
    let mut source = String::from("&[\n");
    for (id, path) in entries {
        writeln!(source, "    ({id:?}, include_str!({path:?})),").expect("a String takes all text");
    }
    source.push_str("]\n");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    fs::write(Path::new(&out).join("scenarios.rs"), source)
}

/// Folder of this crate, read at run time: a checkout may be moved after this script was compiled.
fn crate_folder() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR").into()
}

/// The id of a scenario file, `lund/rmcat-ns3`, and its whole path.
fn entry(root: &Path, file: &Path) -> (String, String) {
    let relative = file.strip_prefix(root).expect("collect stays below the root");
    let names: Vec<_> = relative
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    (names.join("/"), file.to_string_lossy().into_owned())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
