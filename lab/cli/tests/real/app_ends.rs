//! How a run of an application ends when something goes wrong: a page that never joins, a browser
//! that crashes, a server that dies, Ctrl-C, a full disk. Needs root, Chromium, Node and `make
//! npm-deps`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::left::{MARK, alive, wait_until_none_lives};

/// How long a run may take to end once it was asked to.
const END: Duration = Duration::from_secs(20);
/// How long a browser may take to start and to join on a busy machine.
const JOINS: Duration = Duration::from_secs(120);

const SCENARIO: &str = r#"
title = "An application that something happens to"
source = "a test"
description = "2 Mbit/s"
duration = "60s"
[network.up]
capacity = "2Mbps"
delay = "20ms"
[participant.p2]
[participant.p3]
[participant.p4]
[call]
video = { width = 320, height = 180, fps = 15 }
[[flow]]
"#;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/apps/peerjs").canonicalize().unwrap()
}

/// A folder for one run, or `None`, with a line that says so, if this machine lacks something.
fn place() -> Option<TempDir> {
    // SAFETY: geteuid reads a number of the calling process and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let has_packages = example().join("node_modules/peer").exists();
    if !is_root || !Path::new("/dev/net/tun").exists() || !runs("chromium") || !has_packages {
        println!("skipped: needs root, /dev/net/tun, chromium, node and make npm-deps");
        return None;
    }
    let place = tempfile::Builder::new().prefix("weir-test-").tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(place.path().join("tmp")).unwrap();
    fs::write(place.path().join("mine.toml"), SCENARIO).unwrap();
    Some(place)
}

fn call(place: &Path, join: &str, serve: &str) -> Command {
    let script = format!("import join from '{}';\n{join}", example().join("join.mjs").display());
    fs::write(place.join("join.mjs"), script).unwrap();
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.current_dir(example()).arg("call").arg(place.join("mine.toml"));
    weir.args(["--app", "http://{server}:9000/", "--attempts", "1", "--serve-app", serve]);
    weir.arg("--join").arg(place.join("join.mjs")).arg("--out").arg(place.join("runs"));
    weir.env("TMPDIR", place.join("tmp")).env("WEIR_PLAYWRIGHT", example().join("node_modules"));
    weir.env(MARK, place).process_group(0);
    weir.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    weir
}

fn nothing_is_left(place: &Path) {
    wait_until_none_lives(place);
    let left: Vec<_> = fs::read_dir(place.join("tmp")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Waits until the run is over, for at most this time.
fn ended(mut weir: Child, within: Duration) -> Output {
    let start = Instant::now();
    while weir.try_wait().unwrap().is_none() {
        if start.elapsed() > within {
            weir.kill().unwrap();
            panic!("it goes on: {:?}", weir.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    weir.wait_with_output().unwrap()
}

#[test]
fn no_join_a_crashed_browser_and_a_dead_server_are_recorded_failures() {
    let Some(place) = place() else { return };
    // p1 and p2 call each other. p3 never joins. The browser of p4 crashes soon after time zero,
    // and the server ends some seconds later.
    let join = format!(
        "import {{ writeFileSync }} from 'node:fs';
export default async (page, number) => {{
  if (number === 3) await new Promise(() => {{}});
  if (number === 4) {{
    const browser = await page.context().browser().newBrowserCDPSession();
    setTimeout(() => browser.send('Browser.crash').catch(() => {{}}), 22_000);
    return;
  }}
  await join(page, number);
  if (number === 1) setTimeout(() => writeFileSync('{}', ''), 26_000);
}};
",
        place.path().join("die").display()
    );
    let serve = format!(
        "node server.mjs & while [ ! -e '{}' ]; do sleep 0.2; done; kill $!; exit 7",
        place.path().join("die").display()
    );
    let mut weir = call(place.path(), &join, &serve);
    weir.args(["--participants", "4", "--join-within", "20"]);
    let output = ended(weir.spawn().unwrap(), Duration::from_secs(100));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let record = weir_record::find(&place.path().join("runs")).unwrap().remove(0);
    let call: Value = serde_json::from_slice(&fs::read(record.join("call.json")).unwrap()).unwrap();
    let failure = |index: usize| call["calls"][index]["failure"].as_str().unwrap_or("none");
    assert!(failure(0).contains("server ended") && failure(1).contains("server ended"), "{errors}");
    assert_eq!(failure(2), "it did not join within 20 s");
    assert!(failure(3).contains("browser ended"), "{errors}");
    // The others went on after the crash.
    let last =
        |peer: &Value| peer["intervals"].as_array().unwrap().last().unwrap()["time_s"].as_f64();
    let peers = call["peers"].as_array().unwrap();
    assert!(peers.iter().all(|peer| last(peer) > Some(4.0)), "{peers:?}");
    nothing_is_left(place.path());
}

#[test]
fn after_ctrl_c_at_any_moment_nothing_is_left() {
    let join = "export default async (page, number) => { await join(page, number); };\n";
    // Before the server listens, while the browsers start, and while the participants join.
    for (moment, more) in
        [("sh -c sleep 3", 0), ("--remote-debugging-port", 0), ("driver.mjs", 3_000)]
    {
        let Some(place) = place() else { return };
        let weir = call(place.path(), join, "sleep 3; exec node server.mjs").spawn().unwrap();
        let start = Instant::now();
        while !alive(place.path()).iter().any(|line| line.contains(moment)) {
            assert!(start.elapsed() < END, "{moment} does not run: {:?}", alive(place.path()));
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(more));
        // A terminal sends the signal to all processes of the group.
        let group = i32::try_from(weir.id()).unwrap();
        // SAFETY: the group is that of the process that was started above and is not waited for
        // yet.
        assert_eq!(unsafe { libc::kill(-group, libc::SIGINT) }, 0);
        let output = ended(weir, END);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{moment}: {errors}");
        assert!(errors.trim_end().ends_with("unfinished ones are removed"), "{moment}: {errors}");
        assert_eq!(weir_record::find(&place.path().join("runs")).unwrap_or_default().len(), 0);
        nothing_is_left(place.path());
    }
}

#[test]
fn a_page_that_stands_still_fails_late_or_calls_nobody_has_failed() {
    let Some(place) = place() else { return };
    let scenario = SCENARIO.replace("60s", "2s");
    fs::write(place.path().join("mine.toml"), scenario).unwrap();
    let join = "export default async (page, number) => {
  console.log(`number ${number} prints`);
  if (number === 1) await page.evaluate(() => { setTimeout(() => { for (;;); }, 0); });
  if (number === 2) setTimeout(() => { throw new Error('too late'); }, 500);
};
";
    let mut weir = call(place.path(), join, "exec node server.mjs");
    weir.args(["--participants", "3"]);
    let output = ended(weir.spawn().unwrap(), Duration::from_secs(60));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let record = weir_record::find(&place.path().join("runs")).unwrap().remove(0);
    let call: Value = serde_json::from_slice(&fs::read(record.join("call.json")).unwrap()).unwrap();
    let calls = call["calls"].as_array().unwrap();
    let failures: Vec<&str> = calls.iter().filter_map(|it| it["failure"].as_str()).collect();
    // PeerJS makes one at its start, to see what the browser can do.
    let silent = "none of its connections was established";
    assert_eq!(failures, ["its page did not answer at the end", "too late", silent], "{errors}");
    for line in ["number 3 prints", &format!("weir: p3 failed: {silent}")] {
        assert!(errors.lines().any(|it| it == line), "{line}: {errors}");
    }
    nothing_is_left(place.path());
}

/// One page that is only opened, for 3 s. It writes a file when it has joined.
fn short(place: &Path) -> Command {
    let scenario = SCENARIO.replace("60s", "3s").replace("[participant.p2]", "");
    let joined = place.join("joined");
    let join = format!(
        "import {{ writeFileSync }} from 'node:fs';\n\
         export default async () => writeFileSync('{}', '');\n",
        joined.display()
    );
    let mut weir = call(place, &join, "exec node server.mjs");
    fs::write(place.join("mine.toml"), scenario).unwrap();
    weir.args(["--participants", "1"]);
    weir
}

/// Waits until its page has joined.
fn await_joined(place: &Path) {
    let start = Instant::now();
    while !place.join("joined").exists() {
        assert!(start.elapsed() < JOINS, "nobody joins: {:?}", alive(place));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ctrl_c_in_the_call_and_at_its_end_leaves_a_whole_record_or_none() {
    for after in [1_000, 3_050] {
        let Some(place) = place() else { return };
        let weir = short(place.path()).spawn().unwrap();
        await_joined(place.path());
        std::thread::sleep(Duration::from_millis(after));
        let group = i32::try_from(weir.id()).unwrap();
        // SAFETY: the group is that of the process that was started above and is not waited for
        // yet.
        assert_eq!(unsafe { libc::kill(-group, libc::SIGINT) }, 0);
        let output = ended(weir, END);
        let errors = String::from_utf8_lossy(&output.stderr);
        let records = weir_record::find(&place.path().join("runs")).unwrap_or_default();
        match output.status.code() {
            Some(0) if after > 3_000 => {
                let [record] = &records[..] else { panic!("{records:?}") };
                assert!(record.join("p1.rtcstats").exists(), "{errors}");
            }
            Some(130) => assert_eq!(records.len(), 0, "{errors}"),
            other => panic!("{other:?} after {after} ms: {errors}"),
        }
        nothing_is_left(place.path());
    }
}

/// Mounts a small file system on a folder of a run; `false`, with a line that says so, if this
/// machine mounts none.
fn small_disk(at: &Path, size: &str) -> bool {
    fs::create_dir_all(at).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", &format!("size={size},mode=1777"), "tmpfs"]).arg(at);
    let is_mounted = mount.status().unwrap().success();
    if !is_mounted {
        println!("skipped: this machine mounts no tmpfs");
    }
    is_mounted
}

#[test]
fn a_disk_that_is_full_in_the_call_or_at_its_record_is_one_line() {
    for is_at_record in [false, true] {
        let Some(place) = place() else { return };
        let (disk, size) = if is_at_record { ("runs", "12k") } else { ("tmp", "300m") };
        let disk = place.path().join(disk);
        if !small_disk(&disk, size) {
            return;
        }
        let weir = short(place.path()).spawn().unwrap();
        await_joined(place.path());
        if !is_at_record {
            let full = fs::File::create(disk.join("full")).and_then(|mut file| {
                let piece = vec![1; 1 << 20];
                (0..400).try_for_each(|_| std::io::Write::write_all(&mut file, &piece))
            });
            assert!(full.is_err(), "the disk is larger");
        }
        let output = ended(weir, END);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let _ = fs::remove_file(disk.join("full"));
        let left: Vec<_> = fs::read_dir(&disk).unwrap().flatten().collect();
        assert!(Command::new("umount").arg(&disk).status().unwrap().success());
        assert!(left.is_empty(), "{left:?}: {errors}");
        assert_eq!(output.status.code(), Some(2), "{errors}");
        // The only participant has nobody to call, and the machine may be busy: that is said too,
        // and is no matter of the disk.
        let others =
            ["p1 failed: none of its connections was established", "this machine disturbed"]
                .map(|other| format!("weir: {other}"));
        let mut of_disk: Vec<&str> = errors.lines().collect();
        of_disk.retain(|line| !others.iter().any(|other| line.starts_with(other)));
        assert_eq!(of_disk.len(), 1, "{errors}");
        assert!(of_disk[0].contains("No space left on device"), "{errors}");
        nothing_is_left(place.path());
    }
}

#[test]
fn a_full_disk_is_one_line_and_nothing_is_left() {
    let Some(place) = place() else { return };
    let tmp = place.path().join("tmp");
    let mount = |words: &[&str]| Command::new("mount").args(words).arg(&tmp).status().unwrap();
    if !mount(&["-t", "tmpfs", "-o", "size=256k,mode=1777", "tmpfs"]).success() {
        println!("skipped: this machine mounts no tmpfs");
        return;
    }
    let join = "export default async (page, number) => { await join(page, number); };\n";
    let mut weir = call(place.path(), join, "exec node server.mjs");
    weir.args(["--join-within", "5"]);
    let output = ended(weir.spawn().unwrap(), Duration::from_secs(60));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let left: Vec<_> = fs::read_dir(&tmp).unwrap().flatten().collect();
    assert!(Command::new("umount").arg(&tmp).status().unwrap().success());
    println!("{:?}: {errors}", output.status);
    assert!(left.is_empty(), "{left:?}: {errors}");
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("No space left on device"), "{errors}");
    nothing_is_left(place.path());
}
