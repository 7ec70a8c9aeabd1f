//! Memory of long runs, remains of killed runs, and input that is never read or printed.

use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn weir(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Bad input: exit 2, one line on stderr, which is returned.
fn refused(args: &[&str]) -> String {
    let Output { status, stderr, .. } = weir(args).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    stderr
}

/// Peak memory of the program, in MB.
#[expect(clippy::zombie_processes, reason = "wait4 reaps it, and tells what it used")]
fn peak_mb(args: &[&str]) -> i64 {
    let child = weir(args).stdout(Stdio::null()).spawn().unwrap();
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to places of these types that live until the call returns.
    let pid = unsafe { libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) };
    assert_eq!((pid, status), (child.id() as i32, 0), "{args:?}");
    // SAFETY: zeroes are a value of it, and the call has filled it.
    let usage = unsafe { usage.assume_init() };
    usage.ru_maxrss / 1024
}

/// A scenario file of four flows.
fn four_flows(folder: &Path, duration: &str, flow: &str) -> String {
    let path = folder.join("four.toml");
    let head =
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\n[network.up]\ncapacity = \"2Mbps\"\n";
    let head = head.replace("[network", &format!("duration = \"{duration}\"\n[network"));
    fs::write(&path, format!("{head}{}", format!("[[flow]]\n{flow}").repeat(4))).unwrap();
    path.display().to_string()
}

fn hidden(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |entry: fs::DirEntry| {
        let is_hidden = entry.file_name().as_bytes().starts_with(b".");
        let below = if entry.path().is_dir() { hidden(&entry.path()) } else { Vec::new() };
        is_hidden.then(|| entry.path()).into_iter().chain(below)
    };
    entries.flat_map(of_entry).collect()
}

#[test]
fn the_length_of_a_run_takes_no_memory() {
    let place = tempfile::tempdir().unwrap();
    // 1.7 million rows; keeping them all would take 232 bytes each.
    let long = four_flows(place.path(), "6h", "kind = \"udp\"\nrate = \"24kbps\"\n");
    let at = |name: &str| place.path().join(name).display().to_string();
    let (runs, page) = (at("runs"), at("page.html"));
    let run = peak_mb(&["run", &long, "--controller", "nada", "--out", &runs]);
    let measured = peak_mb(&["run", &long, "--controller", "nada"]);
    assert!(run < 100 && measured < 100, "{run} MB with a record, {measured} MB without");
    // A program built without the page writes no report. That is not tested here.
    let output = weir(&["report", &runs, "-o", &page]).output().unwrap();
    if !output.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let report = peak_mb(&["report", &runs, "-o", &page]);
    assert!(report < 100, "{report} MB for the report");
}

#[test]
fn a_killed_run_hinders_no_later_one_and_is_cleaned_away() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("runs");
    let file = four_flows(place.path(), "60s", "");
    let args = ["run", &file, "--controller", "gcc", "--out", out.to_str().unwrap()];
    let record = || {
        let folders = fs::read_dir(&out).into_iter().flatten().flatten();
        folders.map(|folder| folder.path().join("gcc-sim-seed1")).find(|record| record.exists())
    };
    for kill in 0..20 {
        let mut child = weir(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Kill it at a moment between the first file and the end.
        while hidden(&out).is_empty() && child.try_wait().unwrap().is_none() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(kill * 500));
        child.kill().unwrap();
        child.wait().unwrap();
        // A run that was faster than the kill has finished.
        if let Some(record) = record() {
            fs::remove_dir_all(record).unwrap();
        }
    }
    let output = weir(&args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(record().is_some_and(|record| record.join("summary.json").is_file()));
    let left = hidden(&out);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn scenario_files_that_are_no_files_are_refused_at_once() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).display().to_string();
    let (zero, pipe, large) = (at("zero.toml"), at("pipe.toml"), at("large.toml"));
    symlink("/dev/zero", &zero).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for name in [zero, pipe] {
        let error = refused(&["run", &name]);
        assert!(error.contains("is no regular file: only such files are read"), "{error}");
    }
    fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    assert!(refused(&["run", &large]).contains("is larger than 16 MB"));
}

#[test]
fn names_of_others_reach_the_terminal_escaped() {
    let place = tempfile::tempdir().unwrap();
    let file = four_flows(place.path(), "1s", "");
    let out = place.path().join(OsStr::from_bytes(b"a\x1b[31m\nb"));
    let name = out.to_str().unwrap();
    let run = weir(&["run", &file, "--controller", "nada", "--out", name]).output().unwrap();
    assert!(run.status.success());
    let hostile = |output: &[u8]| output.iter().any(|byte| *byte < 32 && *byte != b'\n');
    assert!(!hostile(&run.stdout), "{}", String::from_utf8_lossy(&run.stdout));
    assert!(String::from_utf8(run.stdout).unwrap().contains(r"a\u{1b}[31m\nb"));
    let folder = fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let path = folder.join("nada-sim-seed1/run.json");
    let text = fs::read_to_string(&path).unwrap();
    let id = format!("\"scenario\": {}", serde_json::to_string(&file).unwrap());
    let changed = text.replace(&id, r#""scenario": "x\u001b[2J\ny""#);
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    let compared = weir(&["compare", name, name]).output().unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    assert!(!hostile(&compared.stdout), "{}", String::from_utf8_lossy(&compared.stdout));
    assert!(String::from_utf8(compared.stdout).unwrap().contains(r"x\u{1b}[2J\ny"));
    fs::write(&path, "{").unwrap();
    let error = refused(&["compare", name, name]);
    assert!(error.contains(r"a\u{1b}[31m\nb"), "{error}");
}
