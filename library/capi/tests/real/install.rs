//! What `make install-c` installs: a program finds it by pkg-config, the shared library has its
//! SONAME and exactly the functions of the version script, and uninstalling leaves nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = "#include <stdio.h>\n#include <weir.h>\n\
    int main(void) { puts(weir_version()); return weir_status_text(WEIR_STATUS_OK) == NULL; }\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}\n{stderr}");
    String::from_utf8(stdout).unwrap()
}

/// Runs the script with a prefix of the test's own, in a folder beside that of this build.
fn script(command: &str, prefix: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().nth(3).unwrap().join("examples");
    let mut script = Command::new(root().join("scripts/build/c-library.sh"));
    script.arg(command).env("PREFIX", prefix).env("PROFILE", "dev").env_remove("DESTDIR");
    succeed(script.env("CARGO_TARGET_DIR", target).env_remove("CARGO_BUILD_TARGET"))
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}

/// Functions that the shared library offers, with their versions.
fn symbols(library: &Path) -> BTreeSet<String> {
    let listed = succeed(Command::new("nm").args(["--dynamic", "--defined-only"]).arg(library));
    let names = listed.lines().filter_map(|line| line.split(' ').nth(2));
    // The version itself is a symbol of kind A.
    names.filter(|name| !name.starts_with("WEIR_")).map(str::to_owned).collect()
}

fn listed_in_the_version_script() -> BTreeSet<String> {
    let script = std::fs::read_to_string(root().join("library/capi/weir.map")).unwrap();
    let names = script.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let names = names.filter(|name| name.starts_with("weir_"));
    names.map(|name| format!("{name}@@WEIR_0.1")).collect()
}

#[test]
fn an_installed_library_is_found_and_has_its_name_and_functions() {
    for tool in ["cc", "nm", "readelf", "pkg-config"] {
        if Command::new(tool).arg("--version").output().is_err() {
            println!("skipped: {tool} is not installed");
            return;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let library = PathBuf::from(script("install", &prefix).trim());
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("[libweir.so.0]"), "{dynamic}");
    assert_eq!(symbols(&library), listed_in_the_version_script());

    let source = folder.path().join("program.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--cflags", "--libs", "weir"]);
    let flags = succeed(pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    let program = folder.path().join("program");
    let mut cc = Command::new("cc");
    succeed(cc.arg("-o").arg(&program).arg(source).args(flags.split_whitespace()));
    let mut run = Command::new(program);
    let said = succeed(run.env("LD_LIBRARY_PATH", prefix.join("lib")));
    assert_eq!(said.trim(), env!("CARGO_PKG_VERSION"));

    script("uninstall", &prefix);
    assert_eq!(files_below(&prefix), 0);
}
