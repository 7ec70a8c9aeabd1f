//! `weir analyze`: what it refuses to write, and that it ends when it is told to.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

fn dump(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyze/tests/dumps").join(name)
}

fn analyze(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("analyze").args(args).current_dir(folder).output().unwrap()
}

fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn a_dump_is_not_replaced_by_what_is_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(dump("free.rtcstats.gz")).unwrap();
    let file = folder.path().join("same.gz");
    fs::write(&file, &bytes).unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    std::os::unix::fs::symlink(&file, folder.path().join("link")).unwrap();
    fs::hard_link(&file, folder.path().join("hard")).unwrap();
    for option in ["-o", "--scenario"] {
        for output in ["same.gz", "./sub/../same.gz", "link", "hard"] {
            let refused = complaint(&analyze(folder.path(), &["same.gz", option, output]));
            assert!(refused.contains("would replace same.gz"), "{refused}");
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
    }
    let both = ["same.gz", "-o", "x.html", "--scenario", "x.html"];
    assert!(complaint(&analyze(folder.path(), &both)).contains("name the same file"));
}

#[test]
fn a_missing_file_is_named_as_the_user_wrote_it() {
    let folder = tempfile::tempdir().unwrap();
    let missing = complaint(&analyze(folder.path(), &["none.gz"]));
    assert!(missing.contains("none.gz: No such file") && missing.contains("check the name"));
    let file = dump("free.rtcstats.gz");
    let refused =
        complaint(&analyze(folder.path(), &[file.to_str().unwrap(), "-o", "no/such/page.html"]));
    assert!(refused.contains("there is no folder no/such: make it first"), "{refused}");
}

/// A line with a report of one video.
fn report(packets: u32, time: f64) -> String {
    let kind = r#""type":"outbound-rtp","kind":"video""#;
    let sent = format!(r#""packetsSent":{packets},"bytesSent":{packets}000"#);
    let report = format!(r#"{{{kind},"ssrc":7,{sent},"timestamp":{time}}}"#);
    format!(r#"["getstats","c",{{"O":{report}}},{time}]"#)
}

#[test]
fn a_call_that_is_no_scenario_is_not_written_as_one() {
    let folder = tempfile::tempdir().unwrap();
    // Two reports that are years apart.
    let text = format!("{}\n{}\n", report(9, 1.7e12), report(20, 2.7e12));
    fs::write(folder.path().join("years.jsonl"), text).unwrap();
    let refused = analyze(folder.path(), &["years.jsonl", "--scenario", "made.toml"]);
    let refused = complaint(&refused);
    assert!(refused.contains("this call cannot be a scenario"), "{refused}");
    assert!(!folder.path().join("made.toml").exists());
}

#[test]
fn a_warning_is_on_stderr_and_in_the_json() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{}\n[\"odd\",null,{{}}]\n{}\n", report(9, 1.7e12), report(20, 1.701e12));
    fs::write(folder.path().join("odd.txt"), text).unwrap();
    let output = analyze(folder.path(), &["odd.txt", "--json"]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("an event without a time"), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let warning = json[0]["warnings"][0].as_str().unwrap();
    assert!(said.contains(warning), "{warning}");
}

#[test]
fn a_signal_ends_it_while_it_waits_for_its_input() {
    for signal in ["INT", "TERM"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["analyze", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // More than a pipe holds: once it is written, the program reads. Its input never ends.
        let mut input = child.stdin.take().unwrap();
        let line = format!("[\"x\",\"{}\",1.7e12]\n", "y".repeat(1_000));
        input.write_all(line.repeat(300).as_bytes()).unwrap();
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert!(!child.wait().unwrap().success());
    }
}

/// Starts `weir analyze`, to which nothing is written yet.
fn started(folder: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("analyze").args(args).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The first line that it says on standard error.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    // Byte by byte, so that nothing of the rest is taken.
    while !line.ends_with('\n') {
        let mut byte = [0];
        assert_eq!(stderr.read(&mut byte).unwrap(), 1, "it ended after: {line}");
        line.push(byte[0].into());
    }
    line
}

fn make_pipe(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn who_waits_for_a_pipe_is_told_and_may_end_it() {
    let folder = tempfile::tempdir().unwrap();
    make_pipe(folder.path(), "pipe");
    for (args, name) in [(["pipe"], "pipe"), (["-"], "the standard input")] {
        let mut child = started(folder.path(), &args);
        let said = first_line(&mut child);
        assert_eq!(said, format!("weir: {name}: waiting for a program that writes to it\n"));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(child.wait_with_output().unwrap().status.signal(), Some(libc::SIGTERM));
    }
}

#[test]
fn a_dump_that_comes_late_through_a_pipe_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = make_pipe(folder.path(), "pipe");
    let bytes = fs::read(dump("free.rtcstats.gz")).unwrap();
    let mut child = started(folder.path(), &["pipe"]);
    first_line(&mut child);
    fs::write(&pipe, &bytes).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    fs::write(folder.path().join("file"), &bytes).unwrap();
    let file = analyze(folder.path(), &["file"]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(said.replace("pipe:", "file:"), String::from_utf8(file.stdout).unwrap());
}

#[test]
fn what_is_neither_file_nor_pipe_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("endless")).unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::copy(dump("free.rtcstats.gz"), folder.path().join("file")).unwrap();
    for name in ["/dev/zero", "/dev/null", "endless", "socket"] {
        for args in [&[name][..], &["file", "--keys", name]] {
            let refused = complaint(&analyze(folder.path(), args));
            assert!(refused.contains(&format!("{name}: is no regular file")), "{refused}");
        }
    }
    let refused = complaint(&analyze(folder.path(), &["sub"]));
    assert!(refused.contains("sub: this is a folder: name the files in it"), "{refused}");
}

#[test]
fn a_text_without_an_end_does_not_take_all_memory() {
    let folder = tempfile::tempdir().unwrap();
    // 200 MB, which gzip makes small.
    let file = fs::File::create(folder.path().join("endless.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    packed.write_all(b"{\"PeerConnections\":{\"").unwrap();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        packed.write_all(&chunk).unwrap();
    }
    packed.finish().unwrap();
    let script = "ulimit -v 600000; exec \"$0\" analyze endless.gz";
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_weir")]).current_dir(folder.path());
    let refused = complaint(&command.output().unwrap());
    assert!(refused.contains("a text is longer than 64 MB"), "{refused}");
}

#[test]
fn the_answers_of_the_pages_are_those_that_are_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["README.md", "docs/guide/analyze.md"] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let mut shown = 0;
        for block in text.split("```text\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let Some((name, _)) = block.split_once(": ") else { continue };
            if !name.ends_with(".gz") || name.contains('\n') {
                continue;
            }
            let file = dump(name);
            let file = file.to_str().unwrap();
            let outputs = [analyze(&root, &[file]), analyze(&root, &["--ticket", file])];
            let printed = outputs.map(|it| String::from_utf8(it.stdout).unwrap()).concat();
            for line in block.lines() {
                assert!(printed.lines().any(|it| it == line), "{page}: {line}\n{printed}");
            }
            shown += 1;
        }
        assert!(shown > 0, "{page} shows no answer");
    }
}
