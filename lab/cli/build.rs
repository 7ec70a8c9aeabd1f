//! Builds the commit's revision into the program, for `weir --version`, and the page of `weir
//! serve`. Also names what this build of the program can do.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const UNKNOWN: &str = "revision unknown: not built in a clone of its repository";

fn main() {
    name_parts();
    // Without this, cargo runs a build script after every change of its crate.
    println!("cargo::rerun-if-changed=build.rs");
    let revision = revision().unwrap_or_else(|| UNKNOWN.into());
    println!("cargo::rustc-env=WEIR_REVISION={revision}");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    fs::write(Path::new(&out).join("serve.html"), page()).expect("the build folder takes a file");
}

/// `cfg(calls)`: the emulator is built in, which only Linux has. `cfg(ims)`: the operator's IMS
/// too.
fn name_parts() {
    println!("cargo::rustc-check-cfg=cfg(calls, ims)");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    if env::var_os("CARGO_FEATURE_CALLS").is_some() {
        println!("cargo::rustc-cfg=calls");
    }
    if env::var_os("CARGO_FEATURE_IMS").is_some() {
        println!("cargo::rustc-cfg=ims");
    }
}

/// The page of `weir serve`. Empty if it has not been built: the rest builds without it. In the
/// clone, `serve.html` is a link to the page that `make web` builds; the published package contains
/// the page.
fn page() -> String {
    let folder: PathBuf =
        env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR").into();
    let page = folder.join("serve.html");
    let web = folder.join("../web");
    // Cargo treats a missing path as changed in every build, so watch one that exists.
    let watched = [&page, &web.join("dist"), &web].into_iter().find(|path| path.exists()).cloned();
    if let Some(path) = watched {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    fs::read_to_string(page).unwrap_or_default()
}

/// Revision and day of the last commit, in a clone of this project.
fn revision() -> Option<String> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let root = fs::canonicalize(Path::new(&manifest).join("../..")).ok()?;
    // A tarball may be unpacked inside a clone of another project.
    let top = fs::canonicalize(git(&root, &["rev-parse", "--show-toplevel"])?).ok()?;
    if top != root {
        return None;
    }
    watch_commits(&root);
    // Always twelve digits: the length of git's own abbreviation depends on the clone.
    let line = git(&root, &["log", "-1", "--format=%H %cs"])?;
    let (hash, day) = line.split_once(' ')?;
    Some(format!("{} {day}", hash.get(..12)?))
}

/// Runs this script again after a commit, but not after other changes of the repository.
fn watch_commits(root: &Path) {
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "logs/HEAD"].into_iter().chain(branch.as_deref()) {
        let Some(path) = git(root, &["rev-parse", "--git-path", name]) else { continue };
        let path: PathBuf = root.join(path);
        // Cargo treats a missing path as changed in every build.
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
}

fn git(folder: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(folder).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
