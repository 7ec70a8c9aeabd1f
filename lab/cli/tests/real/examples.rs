//! The example programs in the emulator: they build, their rate follows the capacity, and they send
//! what the same controller sends in the simulator.
//!
//! Needs root and the dependencies of the examples. The calls also need Chromium, and ffmpeg or
//! GStreamer.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use weir::{Algorithm, Bitrate, RateLimits};
use weir_net::Seed;
use weir_scenario::{Traffic, catalogue};
use weir_sim::trace::ROW_INTERVAL;
use weir_sim::{EncoderVideo, Source};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// 2 Mbit/s until 15 s, 500 kbit/s until 25 s.
const NETWORK: &str = "demo/first-call";
const DROP_S: f64 = 15.0;
/// The same network for a sender that only sends, with the flow to simulate.
const SIMULATED: &str = "demo/first-call/one-way";
/// The least share of the simulated rate that a program has to send.
const SHARE: f64 = 0.9;
/// The part of a packet that is payload, where two or three packets make a frame: of 1100 bytes, 58
/// are headers of IP, UDP and RTP with its extension, and the tag of SRTP.
const PAYLOAD_SHARE: f64 = 0.947;
/// By then a browser has connected, and the start-up is over.
const CONNECTED_S: f64 = 8.0;
/// The programs run until the end of the drop.
const END_S: f64 = 25.0;
/// How long a controller may take to find the capacity.
const SETTLING_S: f64 = 4.0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Whether `weir link` can run here. If not, prints what is missing.
fn can_emulate() -> bool {
    // SAFETY: geteuid reads a number of the calling process and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: needs root for network namespaces");
        return false;
    }
    if !Path::new("/dev/net/tun").exists() {
        println!("skipped: no /dev/net/tun");
        return false;
    }
    true
}

/// The folder for what the examples build, next to that of this build's own programs.
fn target() -> PathBuf {
    Path::new(WEIR).ancestors().nth(2).unwrap().join("examples")
}

/// The folder of an example's programs, or `None` with a line that says what this machine lacks.
fn build(example: &str) -> Option<PathBuf> {
    can_emulate().then(|| build_in(&format!("examples/{example}"), &target()))?
}

/// Builds a workspace of its own into a folder. Returns the folder of the programs, or `None` with
/// a line that says what this machine lacks.
fn build_in(workspace: &str, target: &Path) -> Option<PathBuf> {
    let manifest = root().join(workspace).join("Cargo.toml");
    let cargo = |command: &str| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.arg(command).arg("--quiet").arg("--locked").arg("--manifest-path").arg(&manifest);
        cargo.stdin(Stdio::null());
        cargo
    };
    if !cargo("fetch").status().unwrap().success() {
        println!("skipped: what {workspace} depends on cannot be fetched");
        return None;
    }
    let status = cargo("build").arg("--target-dir").arg(target).status().unwrap();
    assert!(status.success(), "{workspace} does not build");
    Some(target.join("debug"))
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
    if !found.status.success() {
        println!("skipped: {program} is not installed");
    }
    found.status.success()
}

/// A line of a program's output: names and values in turn.
struct Line(Vec<(String, f64)>);

impl Line {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let value = |pair: &[&str]| Some((pair.first()?.to_string(), pair.get(1)?.parse().ok()?));
        words.chunks(2).map(value).collect::<Option<_>>().map(Self)
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(is, _)| is == name).map(|(_, value)| *value)
    }

    fn time_s(&self) -> f64 {
        self.get("time_s").expect("every line begins with the time")
    }
}

/// Output of a command on host A while another one runs on host B, which writes to it as well, and
/// whether the machine was too slow for the emulator.
fn output_over(network: &str, peer: &str, command: &[&str]) -> (String, bool) {
    let mut weir = Command::new(WEIR);
    weir.args(["link", network, "--peer", peer, "--"]).args(command);
    let output = weir.stdin(Stdio::null()).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    println!("{stdout}");
    eprintln!("{stderr}");
    assert!(output.status.success(), "{}", output.status);
    (stdout, stderr.contains("this machine disturbed the run"))
}

/// The lines with a time in the output of a command on host A while another one runs on host B, and
/// whether the machine disturbed them.
fn link_or_disturbed(peer: &str, command: &[&str]) -> (Vec<Line>, bool) {
    let (stdout, is_disturbed) = output_over(NETWORK, peer, command);
    let lines =
        stdout.lines().filter(|line| line.starts_with("time_s ")).filter_map(Line::read).collect();
    (lines, is_disturbed)
}

/// The same lines, whether the machine disturbed them or not.
fn link(peer: &str, command: &[&str]) -> Vec<Line> {
    link_or_disturbed(peer, command).0
}

/// The mean of a value between two times.
fn mean(lines: &[Line], name: &str, from_s: f64, to_s: f64) -> f64 {
    let within = |line: &&Line| (from_s..to_s).contains(&line.time_s());
    let values: Vec<f64> = lines.iter().filter(within).filter_map(|line| line.get(name)).collect();
    assert!(!values.is_empty(), "nothing between {from_s} and {to_s} s");
    values.iter().sum::<f64>() / values.len() as f64
}

fn assert_follows_the_capacity(lines: &[Line], rate: &str) {
    let before = mean(lines, rate, DROP_S - SETTLING_S, DROP_S);
    let after = mean(lines, rate, DROP_S + SETTLING_S, END_S);
    assert!((700.0..2_200.0).contains(&before), "{before} kbit/s of 2 Mbit/s");
    assert!((200.0..600.0).contains(&after), "{after} kbit/s of 500 kbit/s");
}

/// The mean rate that a controller with these limits and this source sends on the same network in
/// the simulator between two times, in kbit/s.
fn simulated_kbps(controller: &str, max_kbps: u64, source: Source, from_s: f64, to_s: f64) -> f64 {
    let algorithm: Algorithm = controller.parse().unwrap();
    let [start, max] = [300, max_kbps].map(Bitrate::from_kbps);
    let mut scenario = catalogue::find(SIMULATED).unwrap().remove(0);
    let Traffic::Media(media) = &mut scenario.flows[0].traffic else { panic!("a media flow") };
    media.settings.limits = RateLimits::new(Bitrate::from_kbps(150), start, max).unwrap();
    media.source = source;
    let trace = weir_sim::run(&scenario.sim_config(algorithm), Seed::new(1));
    let within = |time_s: f64| from_s < time_s && time_s <= to_s;
    let rows = trace.rows.iter().filter(|row| within(row.time.as_secs_f64()));
    let (bits, count) =
        rows.fold((0, 0_u32), |(bits, count), row| (bits + row.sent.as_bytes() * 8, count + 1));
    bits as f64 / 1_000.0 / (f64::from(count) * ROW_INTERVAL.as_secs_f64())
}

/// A line is of the second before it.
fn assert_sends_what_the_simulation_gives(
    lines: &[Line],
    rate: &str,
    from_s: f64,
    simulated: impl Fn(f64, f64) -> f64,
) {
    let last_s = lines.iter().map(Line::time_s).fold(0.0, f64::max).min(END_S);
    let real = mean(lines, rate, from_s + 0.5, last_s + 0.5);
    let simulated = simulated(from_s, last_s);
    println!("{rate} {real:.0} from {from_s} to {last_s} s, simulated {simulated:.0}");
    assert!(real >= SHARE * simulated, "{real:.0} kbit/s, of {simulated:.0} in the simulator");
}

/// A source that always meets its target.
fn filler(fps: f64) -> Source {
    Source::Filler { fps, cap: None }
}

/// A real encoder fills nine tenths of its target, so that a controller which rises by the received
/// rate, as NADA does, takes twice the time of one with a filler.
fn encoder() -> Source {
    Source::Encoder { fps: 30.0, cap: None, video: EncoderVideo::DEFAULT }
}

/// The programs of `examples/c`, built with a library that the script installed, or `None` with a
/// line that says what this machine lacks. The first value is the folder of the shared library.
fn build_c(place: &Path) -> Option<(PathBuf, PathBuf)> {
    if !can_emulate() || !["cc", "make", "pkg-config"].into_iter().all(has) {
        return None;
    }
    let succeed = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let mut install = Command::new(root().join("scripts/build/c-library.sh"));
    install.arg("install").env("PREFIX", place).env("PROFILE", "dev").env_remove("DESTDIR");
    succeed(install.env("CARGO_TARGET_DIR", target()).env_remove("CARGO_BUILD_TARGET"));
    let programs = place.join("c");
    let copy = Command::new("cp").arg("-R").arg(root().join("examples/c")).arg(&programs).status();
    assert!(copy.unwrap().success());
    let mut make = Command::new("make");
    make.arg("--always-make").current_dir(&programs);
    succeed(make.env("PKG_CONFIG_PATH", place.join("lib/pkgconfig")));
    Some((place.join("lib"), programs))
}

#[test]
fn the_rate_of_the_c_example_follows_the_capacity_as_in_the_simulator() {
    let place = tempfile::tempdir().unwrap();
    let Some((libraries, programs)) = build_c(place.path()) else { return };
    let program = |name: &str| {
        format!("env LD_LIBRARY_PATH={} {}", libraries.display(), programs.join(name).display())
    };
    let address = "10.45.0.2:5004";
    let receiver = format!("{} {address}", program("receiver"));
    let (sender, seconds) = (program("sender"), END_S.to_string());
    let mut command: Vec<&str> = sender.split(' ').collect();
    command.extend([address, "gcc", &seconds]);
    let lines = link(&receiver, &command);
    assert_follows_the_capacity(&lines, "sent_kbps");
    assert_sends_what_the_simulation_gives(&lines, "sent_kbps", 0.0, |from_s, to_s| {
        simulated_kbps("gcc", 5_000, filler(25.0), from_s, to_s)
    });
}

#[test]
fn the_rate_of_the_udp_example_follows_the_capacity_as_in_the_simulator() {
    let Some(programs) = build("udp") else { return };
    let program = |name: &str| programs.join(name).display().to_string();
    for controller in ["gcc", "scream-v2", "sluice"] {
        let address = "10.45.0.2:5004";
        let receiver = format!("{} {address}", program("receiver"));
        let seconds = END_S.to_string();
        let lines = link(&receiver, &[&program("sender"), address, controller, &seconds]);
        assert_follows_the_capacity(&lines, "sent_kbps");
        assert_sends_what_the_simulation_gives(&lines, "sent_kbps", 0.0, |from_s, to_s| {
            simulated_kbps(controller, 5_000, filler(25.0), from_s, to_s)
        });
    }
}

#[test]
fn a_camera_with_a_real_encoder_follows_the_capacity_and_misses_little() {
    let (Some(udp), Some(camera)) = (build("udp"), build("camera")) else { return };
    let address = "10.45.0.2:5004";
    let receiver = format!("{} {address}", udp.join("receiver").display());
    let camera = camera.join("camera").display().to_string();
    let seconds = END_S.to_string();
    let lines = link(&receiver, &[&camera, "live", address, "480p", "nada", &seconds]);
    assert_follows_the_capacity(&lines, "sent_kbps");
    // OpenH264 meets its target at this picture size.
    assert_sends_what_the_simulation_gives(&lines, "sent_kbps", 0.0, |from_s, to_s| {
        simulated_kbps("nada", 2_500, filler(30.0), from_s, to_s)
    });
    let pictures = mean(&lines, "pictures", SETTLING_S, END_S);
    assert!(pictures >= 25.0, "{pictures} pictures a second of 30");
}

#[test]
fn a_browser_decodes_video_of_webrtc_rs_whose_rate_follows_the_capacity() {
    if !has("chromium") || !has("ffmpeg") {
        return;
    }
    let Some(programs) = build("webrtc-rs") else { return };
    let place = tempfile::tempdir().unwrap();
    let browser = root().join("examples/webrtc-rs/browser.sh").display().to_string();
    let make_video = root().join("examples/webrtc-rs/make-video.sh");
    assert!(Command::new(make_video).arg(place.path()).status().unwrap().success());
    let program = programs.join("weir-with-webrtc-rs").display().to_string();
    let (address, folder) = ("10.45.0.1:8000", place.path().display().to_string());
    let seconds = END_S.to_string();
    let peer = format!("{browser} http://{address}/");
    let lines = link(&peer, &[&program, "gcc", address, &folder, &seconds]);
    assert_follows_the_capacity(&lines, "target_kbps");
    assert_picture_moves(&lines);
}

/// What the server of `examples/sfu` says of the one track of its one subscriber: per second, and
/// per decision.
struct ServerLog {
    /// Time in s, the chosen layer, and pictures decoded so far.
    seconds: Vec<(f64, Option<u64>, u64)>,
    decisions: Vec<Value>,
}

impl ServerLog {
    fn read(output: &str) -> Self {
        let (mut seconds, mut decisions) = (Vec::new(), Vec::new());
        for line in output.lines().filter(|line| line.starts_with('{')) {
            let line: Value = serde_json::from_str(line).unwrap();
            if line.get("change").is_some() {
                decisions.push(line);
                continue;
            }
            let Some(track) = line["tracks"].as_array().and_then(|tracks| tracks.first()) else {
                continue;
            };
            let time_s = line["time_s"].as_f64().unwrap();
            let pictures = track["pictures"].as_u64().unwrap();
            seconds.push((time_s, track["level"].as_u64(), pictures));
        }
        Self { seconds, decisions }
    }

    /// The best layer in a time.
    fn best(&self, from_s: f64, to_s: f64) -> Option<u64> {
        let mut best = None;
        for &(time_s, level, _) in &self.seconds {
            if (from_s..to_s).contains(&time_s) {
                best = best.max(level);
            }
        }
        best
    }

    fn pictures_per_second(&self, from_s: f64, to_s: f64) -> f64 {
        let mut within = Vec::new();
        for &(time_s, _, pictures) in &self.seconds {
            if (from_s..to_s).contains(&time_s) {
                within.push((time_s, pictures));
            }
        }
        let (first, last) = (within[0], within[within.len() - 1]);
        (last.1 - first.1) as f64 / (last.0 - first.0)
    }
}

#[test]
fn a_servers_layer_falls_with_the_link_and_returns_each_with_a_reason() {
    if !has("chromium") {
        return;
    }
    let Some(programs) = build("sfu") else { return };
    let folder = root().join("examples/sfu");
    let (address, browser) = ("10.45.0.1:8000", folder.join("browser.sh").display().to_string());
    let program = programs.join("weir-sfu-example").display().to_string();
    let network = folder.join("network.toml").display().to_string();
    // The browser watches its own camera. Only the way to it changes.
    let peer = format!("{browser} http://{address}/?name=p1&own");
    let log =
        ServerLog::read(&output_over(&network, &peer, &[&program, address, "sluice", "90"]).0);
    let best = log.best(20.0, 30.0);
    assert!(best >= Some(1), "{best:?} before the fall");
    assert_eq!(log.best(45.0, 50.0), Some(0), "over 300 kbit/s");
    assert!(log.best(60.0, 90.0) >= Some(1), "after the return");
    let pictures = log.pictures_per_second(40.0, 50.0);
    assert!(pictures > 5.0, "{pictures} pictures a second over 300 kbit/s");
    for decision in &log.decisions {
        assert!(!decision["reason"].as_str().unwrap().is_empty(), "{decision}");
    }
    let fell = log
        .decisions
        .iter()
        .any(|decision| decision["change"] == "choose" && decision["reason"] == "over budget");
    assert!(fell, "no layer was left for lack of room");
}

/// The Python of the folder of scripts/build/deps.sh, or `None` with a line if it has no libwebrtc.
fn python_with_libwebrtc() -> Option<PathBuf> {
    let python = target().with_file_name("python/bin/python3");
    let output = Command::new(&python).args(["-c", "import webrtc"]).output();
    let has_it = output.is_ok_and(|output| output.status.success());
    if !has_it {
        println!("skipped: no libwebrtc for Python: scripts/build/deps.sh --test-all");
    }
    has_it.then_some(python)
}

/// A program that ends with the test.
struct Running(Child);

impl Running {
    fn start(program: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn libwebrtc_without_a_browser_gets_the_best_layer_of_a_room() {
    let Some(python) = python_with_libwebrtc() else { return };
    if !has("ffmpeg") {
        return;
    }
    let Some(programs) = build("sfu") else { return };
    let (folder, video) = (root().join("examples/sfu"), tempfile::tempdir().unwrap());
    let script = folder.join("make-video.sh");
    assert!(Command::new(script).arg(video.path()).status().unwrap().success());
    let (program, address) = (programs.join("weir-sfu-example"), "127.0.0.1:18437");
    let _server = Running::start(&program, &[address, "sluice", "60"]);
    let is_up = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::net::TcpStream::connect(address).is_ok()
    });
    assert!(is_up, "nobody listens at {address}");
    let video = video.path().display().to_string();
    let _publisher = Running::start(&program, &["load", address, &video, "0", "1", "50"]);
    let mut watch = Command::new(python);
    watch.arg(folder.join("watch.py")).args([&format!("http://{address}"), "12"]);
    let output = watch.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // "12 connected [1234]": what has come until then.
    let packets = |line: &str| line.split(['[', ']']).nth(1)?.split(", ").next()?.parse().ok();
    let seconds: Vec<u64> = text.lines().filter_map(packets).collect();
    assert!(seconds.len() >= 6, "{text}");
    // The largest layer takes 1.5 Mbit/s, so some 150 packets a second; the middle one 60.
    let last_s = seconds[seconds.len() - 1] - seconds[seconds.len() - 2];
    assert!(last_s > 100, "{text}");
}

/// Calls with a GStreamer sender: a command that gets controller, seconds and folder.
fn call_from_gstreamer(sender: &[&str], controller: &str) {
    if !has("chromium") || !can_emulate() {
        return;
    }
    let Some(plugin) = build_plugin() else { return };
    let folder = root().join("examples/gstreamer");
    let program = |name: &str| folder.join(name).display().to_string();
    let (address, seconds) = ("10.45.0.1:8000", END_S.to_string());
    let path = format!("GST_PLUGIN_PATH={}", plugin.display());
    let call = program("call.py");
    let mut command = vec!["env", &path, &call, address];
    command.extend(sender.iter().chain(&[controller, &seconds]));
    let peer = format!("{} http://{address}/", program("browser.sh"));
    let (lines, is_disturbed) = link_or_disturbed(&peer, &command);
    // A target may be above the capacity for a moment, and there are few of them. What arrives
    // cannot.
    assert_follows_the_capacity(&lines, "received_kbps");
    let target = mean(&lines, "target_kbps", DROP_S + SETTLING_S, END_S);
    assert!((200.0..600.0).contains(&target), "target {target} kbit/s of 500 kbit/s");
    assert_decodes_until_the_drop(&lines);
    assert_decodes_after_the_drop(&lines);
    if is_disturbed {
        println!("skipped: this machine disturbed the call, so its rate says nothing");
        return;
    }
    // A browser counts what arrives, without headers; the simulator what is sent, with them.
    assert_sends_what_the_simulation_gives(&lines, "received_kbps", CONNECTED_S, |from_s, to_s| {
        PAYLOAD_SHARE * simulated_kbps(controller, 2_500, encoder(), from_s, to_s)
    });
}

/// The folder of the GStreamer plugin, or `None` with a line that says what this machine lacks.
fn build_plugin() -> Option<PathBuf> {
    let script = root().join("scripts/test/missing-for-gst.sh");
    let missing = String::from_utf8(Command::new(script).output().unwrap().stdout).unwrap();
    if !missing.is_empty() {
        println!("skipped: no GStreamer: apt-get install {missing}");
        return None;
    }
    // The folder of scripts/test/test.sh, which has built it before.
    build_in("library/gst", &target().with_file_name("gst"))
}

/// Compiler flags of C programs that use webrtcbin, or `None` with a line.
fn flags_for_c() -> Option<String> {
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", "gstreamer-webrtc-1.0", "gstreamer-sdp-1.0"])
        .output();
    let output = output.ok().filter(|output| output.status.success());
    if output.is_none() {
        println!(
            "skipped: no headers of webrtcbin: apt-get install libgstreamer-plugins-bad1.0-dev"
        );
    }
    output.map(|output| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_gstreamer_sender_in_python_follows_the_capacity() {
    let sender = root().join("examples/gstreamer/sender.py").display().to_string();
    call_from_gstreamer(&["/usr/bin/python3", &sender], "gcc");
}

#[test]
fn the_gstreamer_sender_in_c_follows_the_capacity() {
    let Some(flags) = flags_for_c() else { return };
    let place = tempfile::tempdir().unwrap();
    let sender = place.path().join("sender");
    let source = root().join("examples/gstreamer/sender.c");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Werror", "-o"]).arg(&sender).arg(source).args(flags.split_whitespace());
    assert!(cc.status().unwrap().success());
    call_from_gstreamer(&[&sender.display().to_string()], "nada");
}

#[test]
fn the_gstreamer_sender_in_rust_follows_the_capacity() {
    if flags_for_c().is_none() {
        return;
    }
    let Some(programs) = build("gstreamer") else { return };
    call_from_gstreamer(&[&programs.join("sender").display().to_string()], "scream-v2");
}

/// The newest value of a name up to a time.
fn last(lines: &[Line], name: &str, until_s: f64) -> f64 {
    let before = lines.iter().filter(|line| line.time_s() <= until_s);
    before.filter_map(|line| line.get(name)).next_back().unwrap_or(0.0)
}

fn assert_decodes_until_the_drop(lines: &[Line]) {
    let at_the_drop = last(lines, "frames_decoded", DROP_S);
    assert!(at_the_drop >= 100.0, "{at_the_drop} frames before the drop");
}

/// Of 30 pictures a second. A sender whose pacer is full of retransmissions or of key frames makes
/// one to four.
fn assert_decodes_after_the_drop(lines: &[Line]) {
    let from_s = DROP_S + SETTLING_S;
    let frames = last(lines, "frames_decoded", END_S) - last(lines, "frames_decoded", from_s);
    let per_second = frames / (END_S - from_s);
    assert!(per_second >= 12.0, "{per_second} pictures a second after the drop");
}

fn assert_picture_moves(lines: &[Line]) {
    assert_decodes_until_the_drop(lines);
    let at_the_drop = last(lines, "frames_decoded", DROP_S);
    let at_the_end = last(lines, "frames_decoded", f64::INFINITY);
    // A frozen picture would add a handful. How many there are depends on how long the frames of
    // the old rate take to leave: 73 to 225 have been seen.
    assert!(at_the_end >= at_the_drop + 40.0, "{at_the_end} frames, {at_the_drop} at the drop");
}
