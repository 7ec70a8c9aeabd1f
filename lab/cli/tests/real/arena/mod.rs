//! The arena with the stacks that are installed here. It needs root and Chromium.
//!
//! Those of `alone` judge a stack by limits, so `scripts/test/test.sh` runs them when nothing else
//! computes.

mod alone;

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Names of the folders with a stack.
fn stacks() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("arena")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().join("stack.toml").is_file() {
            names.push(entry.file_name().into_string().unwrap());
        }
    }
    names.sort();
    assert!(names.len() > 1, "{names:?}");
    names
}

/// Whether a stack is installed.
fn has(stack: &str) -> bool {
    let doctor = String::from_utf8(weir(&["arena", "doctor"]).stdout).unwrap();
    let row = doctor.lines().find(|line| line.starts_with(&format!("{stack} "))).unwrap();
    let is_there = !row.contains("is not installed");
    if !is_there {
        println!("skipped: no {stack} in the arena: make arena-deps");
    }
    is_there
}

/// Whether a run failed because it may not make a network.
fn needs_root(made: &Output) -> bool {
    let complaint = String::from_utf8_lossy(&made.stderr);
    let needs = made.status.code() == Some(2) && complaint.contains("root");
    if needs {
        println!("skipped: {complaint}");
    }
    needs
}

fn weir(words: &[&str]) -> Output {
    Command::new(WEIR).args(words).current_dir(root()).output().unwrap()
}

/// A short scenario, so that a cell takes seconds.
const SCENARIO: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"8s\"\n\
    [network]\nup = { capacity = \"1Mbps\", delay = \"25ms\" }\ndown = { delay = \"25ms\" }\n\
    [call]\nvideo = { width = 480, height = 270, fps = 15, content = \"film\" }\n\
    [[flow]]\nmax_bitrate = \"800kbps\"\n";

/// A folder with that scenario, and the paths of both: scenario, and where the records go.
fn short() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let [scenario, out] = ["short.toml", "runs"].map(|name| folder.path().join(name));
    fs::write(&scenario, SCENARIO).unwrap();
    let [scenario, out] = [scenario, out].map(|path| path.to_str().unwrap().to_owned());
    (folder, scenario, out)
}

#[test]
fn the_doctor_tells_how_to_install_what_is_missing() {
    let told = weir(&["arena", "doctor"]);
    let text = String::from_utf8(told.stdout).unwrap();
    for stack in stacks() {
        assert!(text.lines().any(|line| line.starts_with(&format!("{stack} "))), "{text}");
        // What does not fit the row: title, licence, home, encoder.
        let about = text.lines().find(|line| line.starts_with(&format!("{stack}: ")));
        assert!(about.is_some_and(|line| line.contains("https://")), "{text}");
    }
    assert_eq!(told.status.success(), !text.contains("is not installed"), "{text}");
}

#[test]
fn a_stack_that_nobody_knows_is_one_line_with_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let refused = weir(&["arena", "--stacks", "no-such", "--out", out]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains(&format!("it has {}", stacks().join(", "))), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn an_installed_stack_sends_a_call_and_a_second_run_finds_it_done() {
    if !has("pion") {
        return;
    }
    let (_folder, scenario, out) = short();
    let words = ["arena", "--stacks", "pion", "--scenarios", &scenario, "--out", &out];
    let made = weir(&words);
    if needs_root(&made) {
        return;
    }
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = String::from_utf8(made.stdout).unwrap();
    let row = text.lines().find(|line| line.starts_with("pion")).unwrap();
    let used: f64 = row.split_whitespace().nth(3).unwrap().parse().expect(row);
    assert!(used > 0.1, "{row}");
    if text.contains("not judged: disturbed") {
        println!("skipped: this machine disturbed the run, so it would be made again");
        return;
    }
    let again = weir(&words);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
}

#[test]
fn a_stack_at_both_ends_of_a_call_tells_of_the_frames_there() {
    if !has("noq-weir") {
        return;
    }
    let (_folder, scenario, out) = short();
    let words = ["call", &scenario, "--stack", "noq-weir", "--quality", "--attempts", "1"];
    let made = weir(&[&words[..], &["--out", &out]].concat());
    if needs_root(&made) {
        return;
    }
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let record = fs::read_to_string(only(&only(Path::new(&out))).join("call.json")).unwrap();
    assert_eq!(record.matches("\"program\": \"noq ").count(), 2, "{record}");
    // Each frame that was shown has the time at which the camera had it.
    let frames = only(&only(Path::new(&out))).join("frames.csv");
    assert!(fs::read_to_string(frames).unwrap().lines().count() > 10);
}

/// At once, or after its camera is open; it may also say what is no message.
#[test]
fn a_driver_that_ends_or_babbles_is_a_red_cell_with_what_it_said() {
    let (folder, scenario, out) = short();
    for (index, (does, said)) in [
        ("echo 'cannot open the camera' >&2; exit 3", "(it said: cannot open the camera)"),
        (
            "read line; echo 'Error: no camera' >&2; echo 'Node.js v20' >&2",
            "(it said: Error: no camera)",
        ),
        (
            "read line; echo hello; sleep 9",
            "wrote a line to standard output that is not part of the protocol",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let driver = folder.path().join("driver.sh");
        let text = format!("[ \"$1\" != --version ] || {{ echo 1; exit; }}\n{does}\n");
        fs::write(&driver, text).unwrap();
        let driver = format!("sh {}", driver.display());
        let out = format!("{out}{index}");
        let words = ["call", &scenario, "--stack", "mine", "--driver", &driver, "--out", &out];
        let made = weir(&words);
        if needs_root(&made) {
            return;
        }
        let file = only(&only(Path::new(&out))).join("call.json");
        let record = fs::read_to_string(file).unwrap();
        assert!(record.contains(said), "{does}: {record}");
    }
}

/// The only entry of a folder.
fn only(folder: &Path) -> PathBuf {
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

/// What peer b of the only run received, in bit/s and pictures a second. A run that this machine
/// disturbs has it too.
fn received(out: &Path) -> (f64, f64) {
    let text = fs::read_to_string(only(&only(out)).join("call.json")).unwrap();
    let call: serde_json::Value = serde_json::from_str(&text).unwrap();
    let peers = call["peers"].as_array().unwrap();
    let b = peers.iter().find(|peer| peer["participant"] == "b").expect("the call has failed");
    let intervals = b["intervals"].as_array().unwrap();
    let mut sums = (0.0, 0.0);
    for interval in intervals {
        sums.0 += interval["receive_bps"].as_f64().unwrap_or(0.0);
        sums.1 += interval["frame_rate"].as_f64().unwrap_or(0.0);
    }
    let count = intervals.len().max(1) as f64;
    (sums.0 / count, sums.1 / count)
}

#[test]
fn a_stack_receives_the_video_of_chromium_and_tells_of_its_pictures() {
    let stacks = ["pion", "aiortc", "werift", "libdatachannel", "str0m", "webrtc-rs", "gstreamer"];
    for stack in stacks {
        if !has(stack) {
            continue;
        }
        let (_folder, scenario, out) = short();
        let words = ["arena", "--role", "receiver", "--stacks", stack, "--scenarios", &scenario];
        let made = weir(&[&words[..], &["--out", &out]].concat());
        if needs_root(&made) {
            return;
        }
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let (received, pictures) = received(Path::new(&out));
        assert!(received > 30e3 && pictures > 3.0, "{stack}: {received} bit/s, {pictures}/s");
    }
}

/// The encoder of such a stack tells when each frame went in, so the delay to the screen is known.
#[test]
fn what_is_seen_of_a_stack_has_the_delay_of_its_camera_s_frames() {
    if !has("pion") {
        return;
    }
    let (_folder, scenario, out) = short();
    let words = ["arena", "--stacks", "pion", "--scenarios", &scenario, "--quality"];
    let made = weir(&[&words[..], &["--out", &out]].concat());
    if needs_root(&made) {
        return;
    }
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let text = fs::read_to_string(only(&only(Path::new(&out))).join("frames.csv")).unwrap();
    let mut rows = text.lines();
    let head: Vec<&str> = rows.next().unwrap().split(',').collect();
    let [captured, shown] = ["captured_ms", "shown_ms"].map(|name| {
        head.iter().position(|column| *column == name).unwrap_or_else(|| panic!("{head:?}"))
    });
    let mut delays = Vec::new();
    for row in rows {
        let row: Vec<&str> = row.split(',').collect();
        if let (Ok(from), Ok(to)) = (row[captured].parse::<f64>(), row[shown].parse::<f64>()) {
            delays.push(to - from);
        }
    }
    // The path has 25 ms, and a picture waits for the screen.
    assert!(delays.len() > 30, "{text}");
    assert!(delays.iter().all(|delay| (25.0..5e3).contains(delay)), "{delays:?}");
}

/// SRTCP leaves the type of a feedback packet in the clear, so the capture says which one ran.
/// SCReAM v2 marks each packet of media as ECT(1).
#[test]
fn by_field_trials_libwebrtc_runs_scream_v2_as_its_packets_show() {
    if !has("wrtc-scream-v2") {
        return;
    }
    let (_folder, scenario, out) = short();
    let made = weir(&["call", &scenario, "--stack=wrtc-scream-v2", "--capture", "--out", &out]);
    if needs_root(&made) {
        return;
    }
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let told = Command::new("python3")
        .arg(root().join("scripts/results/feedback-kinds.py"))
        .arg(only(&only(Path::new(&out))).join("host-1.pcapng"))
        .output()
        .unwrap();
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains(" ccfb") && !text.contains("twcc"), "{text}");
    assert!(text.contains(" ECT(1)") && !text.contains("not ECT"), "{text}");
}

/// Firefox' own picture needs little of a link, so the rate shows that the film is sent.
#[test]
fn firefox_sends_the_film_that_its_page_draws() {
    let (_folder, scenario, out) = short();
    let made = weir(&["arena", "--stacks", "firefox", "--scenarios", &scenario, "--out", &out]);
    if needs_root(&made) {
        return;
    }
    let complaint = String::from_utf8_lossy(&made.stderr);
    if complaint.contains("apt-get install firefox-esr") {
        println!("skipped: {complaint}");
        return;
    }
    assert!(made.status.success(), "{complaint}");
    let (received, pictures) = received(Path::new(&out));
    assert!(received > 200e3 && pictures > 3.0, "{received} bit/s, {pictures}/s");
}

#[test]
fn a_stack_without_a_role_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for (words, wanted) in [
        (["arena", "--role", "receiver", "--stacks", "wrtc"], "wrtc is no receiver"),
        (["arena", "--role", "receiver", "--stacks", "mediasoup"], "is a forwarding server"),
        (["call", "arena/steps", "--role", "receiver", "--stack=wrtc"], "wrtc is no receiver"),
    ] {
        let refused = weir(&[&words[..], &["--out", out]].concat());
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted) && text.lines().count() == 1, "{text}");
    }
}

/// Its browser says when a picture came, and nobody when the stack's own did.
#[test]
fn what_is_seen_of_a_stack_that_receives_is_refused_in_one_line() {
    if !has("pion") {
        return;
    }
    let words = ["call", "arena/steps", "--stack=pion", "--role", "receiver", "--quality"];
    let refused = weir(&words);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(text.contains("or a stack that sends"), "{text}");
}

/// Without it the stacks that have no encoder of their own connect and send nothing.
#[test]
fn the_encoder_of_the_stacks_makes_a_key_frame() {
    let settings =
        r#"{"width":320,"height":180,"frameRate":15,"startBitrate":200000,"camera":null}"#;
    let python = "/usr/bin/python3";
    let gstreamer = ["-c", "import gi; gi.require_version('GstVideo', '1.0')"];
    if !Command::new(python).args(gstreamer).status().is_ok_and(|status| status.success()) {
        println!("skipped: no GStreamer for Python");
        return;
    }
    let mut encoder = Command::new(python)
        .arg(root().join("arena/encoder.py"))
        .arg(settings)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    encoder.stdin.as_mut().unwrap().write_all(b"start\n").unwrap();
    let mut head = [0; 5];
    let read = encoder.stdout.as_mut().unwrap().read_exact(&mut head);
    let _ = encoder.kill();
    let _ = encoder.wait();
    read.expect("the encoder ended without a frame: it says why above");
    // In VP8 the lowest bit of the first byte is zero in a key frame.
    assert_eq!(head[4] & 1, 0, "{head:?}");
}

#[test]
fn a_driver_is_the_command_of_one_stack() {
    for (words, wanted) in [
        (["--stacks", "a,b", "--driver", "true"], "--driver is the command of one stack"),
        (["--stacks", "mine", "--driver", "./no-such-driver"], "the driver of mine does not run"),
        (["--stacks", "../mine", "--driver", "true"], "cannot be the name of a stack"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("runs");
        let refused = weir(&[&["arena"][..], &words, &["--out", out.to_str().unwrap()]].concat());
        let text = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted) && text.lines().count() == 1, "{text}");
    }
}
