//! The fixtures for Playwright in `lab/playwright`: their own tests, each behind a network.
//!
//! Needs root, Chromium, Node and the packages of that folder (`make npm-deps`).
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../playwright").canonicalize().unwrap()
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    // SAFETY: geteuid reads a number of the calling process and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Some("root for network namespaces");
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("/dev/net/tun");
    }
    if !Path::new("/usr/bin/chromium").exists() {
        return Some("chromium");
    }
    (!folder().join("node_modules/@playwright/test").exists()).then_some("make npm-deps")
}

/// Makes a device that every user may open, in the mounts of this process alone, and becomes
/// another user.
const AS_USER: &str = "mount -t tmpfs -o dev,mode=0755 tmpfs /dev/net && \
    mknod -m 0666 /dev/net/tun c 10 200 || exit 99\n\
    exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";

#[test]
fn a_test_of_playwright_runs_behind_a_network() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let results = tempfile::tempdir().unwrap();
    let output = Command::new("npx")
        .args(["playwright", "test", "--output"])
        .arg(results.path())
        .env("WEIR", WEIR)
        .current_dir(folder())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("4 passed"), "{told}");
}

/// The command of the README that installs the fixtures, without the folder at its end.
fn install_command() -> Vec<String> {
    let page = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let line = page.lines().find(|line| line.starts_with("npm install ")).unwrap();
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    words.pop();
    words
}

#[test]
fn as_the_readme_installs_them_the_fixtures_are_found_in_another_project() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let project = tempfile::tempdir().unwrap();
    let words = install_command();
    let installed = Command::new(&words[0])
        .args(&words[1..])
        .arg(folder())
        .args(["--no-audit", "--no-fund", "--prefer-offline"])
        .current_dir(&project)
        .output()
        .unwrap();
    if !installed.status.success() {
        println!("skipped: npm reaches no registry");
        return;
    }
    let spec = "import { expect, test } from \"weir-network\";\n\
        test(\"it is found\", async () => { expect(1).toBe(1); });\n";
    std::fs::write(project.path().join("one.spec.mjs"), spec).unwrap();
    let output = Command::new("npx")
        .args(["playwright", "test", "--list"])
        .current_dir(&project)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("Total: 1 test"), "{told}");
}

#[test]
fn it_runs_without_root_where_users_may_make_namespaces() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(home.path(), Some(65_534), Some(65_534)).unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", AS_USER, "sh"])
        .args(["npx", "playwright", "test", "-g", "pictures come", "--output"])
        .arg(home.path().join("results"))
        .env("WEIR", WEIR)
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .current_dir(folder())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(99) || complaint.contains("may not make network namespaces") {
        println!("skipped: needs namespaces of users");
        return;
    }
    assert!(told.contains("1 passed"), "{told}{complaint}");
}
