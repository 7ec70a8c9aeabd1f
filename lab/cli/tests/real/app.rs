//! Applications that nobody here wrote, PeerJS, Janus's video room and LiveKit, in a scenario's
//! network.
//!
//! The second test also needs Firefox and slirp4netns.
//!
//! Needs root, Chromium, Node, and the packages of `examples/apps/peerjs` (`make npm-deps`); for
//! Janus, Debian's janus and janus-demos, and the viewer's packages (`make web`); for LiveKit, its
//! server (`examples/apps/livekit/get-server.sh`, or LIVEKIT_SERVER).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// 600 kbit/s up, and enough down.
const SCENARIO: &str = r#"
title = "An application on a narrow way up"
source = "a test"
description = "600 kbit/s up"
duration = "8s"
[network.up]
capacity = "600kbps"
queue = "300ms"
delay = "20ms"
[network.down]
capacity = "20Mbps"
delay = "20ms"
[participant.p2]
[call]
video = { width = 640, height = 360, fps = 30 }
[[flow]]
direction = "up"
[[flow]]
direction = "down"
"#;

/// What is expected of three participants of whom one cannot join.
const EXPECTED: &str = r#"
[[expect]]
text = "everybody joins"
participant = "every"
metric = "participant.success_ratio"
above = 1
[[expect]]
text = "p1 keeps to its way up"
participant = "p1"
metric = "participant.send_rate_mbps"
below = 0.9
[[expect]]
text = "p2 sees p1"
participant = "p2/1"
metric = "participant.frame_rate"
above = 5
"#;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/apps/peerjs").canonicalize().unwrap()
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    // SAFETY: geteuid reads a number of the calling process and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    [
        (is_root, "root for network namespaces"),
        (Path::new("/dev/net/tun").exists(), "/dev/net/tun"),
        (runs("chromium"), "chromium"),
        (runs("node"), "node"),
        (example().join("node_modules/peer").exists(), "make npm-deps"),
    ]
    .into_iter()
    .find(|(is_there, _)| !is_there)
    .map(|(_, what)| what)
}

#[test]
fn a_call_of_peerjs_is_judged_and_one_that_cannot_join_fails_alone() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let scenario = place.path().join("narrow.toml");
    fs::write(&scenario, format!("{SCENARIO}{EXPECTED}")).unwrap();
    let junit = place.path().join("check.xml");
    let join = place.path().join("join.mjs");
    let example_join = example().join("join.mjs");
    let script = format!(
        "import join from '{}';\nexport default async (page, number) => {{\n\
         if (number === 3) throw new Error('there is no room');\nawait join(page, number);\n}};\n",
        example_join.display()
    );
    fs::write(&join, script).unwrap();
    let out = place.path().join("runs");
    let output = Command::new(WEIR)
        .current_dir(example())
        .arg("check")
        .arg(&scenario)
        .args(["--engine", "call", "--app", "http://{server}:9000/", "--participants", "3"])
        .args(["--serve-app", "exec node server.mjs"])
        .arg("--join")
        .arg(&join)
        .arg("--out")
        .arg(&out)
        .arg("--junit")
        .arg(&junit)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // One expectation fails, because p3 does.
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("3 expectations: 2 hold, 1 failed"), "{printed}{errors}");
    let junit = fs::read_to_string(junit).unwrap();
    assert!(junit.contains("tests=\"3\" failures=\"1\""), "{junit}");
    assert!(junit.contains("everybody joins") && junit.contains("flow p3"), "{junit}");
    let record = weir_record::find(&out).unwrap().remove(0);
    let call: Value =
        serde_json::from_str(&fs::read_to_string(record.join("call.json")).unwrap()).unwrap();
    let failures: Vec<Option<&str>> =
        call["calls"].as_array().unwrap().iter().map(|call| call["failure"].as_str()).collect();
    assert_eq!(failures, [None, None, Some("there is no room")], "{errors}");
    let peers = call["peers"].as_array().unwrap();
    let names: Vec<&str> = peers.iter().map(|peer| peer["participant"].as_str().unwrap()).collect();
    assert_eq!(names, ["p1", "p2"]);
    let last_rate = |peer: &Value, member: &str| -> f64 {
        let intervals = peer["intervals"].as_array().unwrap();
        intervals.iter().rev().find_map(|it| it[member].as_f64()).unwrap()
    };
    // p1 is behind 600 kbit/s up.
    assert!(last_rate(&peers[0], "send_bps") < 900e3);
    assert!(last_rate(&peers[1], "send_bps") > 900e3);
    assert!(record.join("p1.rtcstats").exists() && record.join("p2.rtcstats").exists());
    let summary = fs::read_to_string(record.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let up = &summary["flows"][0];
    assert!(up["rate_mbps"]["mean"].as_f64().unwrap() > 0.2, "{up}");
}

/// A network device of this machine with an address, for a server outside the emulated network.
struct Outside;

impl Outside {
    const DEVICE: &str = "weir-outside";
    const ADDRESS: &str = "198.51.100.1";

    fn new() -> Self {
        let _ = Command::new("ip").args(["link", "delete", Self::DEVICE]).output();
        let outside = Self;
        for words in [
            "link add weir-outside type veth peer name weir-outside-2",
            "address add 198.51.100.1/32 dev weir-outside",
            "link set weir-outside up",
        ] {
            assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success());
        }
        outside
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "delete", Self::DEVICE]).output();
    }
}

/// A server of the test's own, which ends with it.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Chromium sends VP9 in layers; its page and Firefox' have no RTCPeerConnection in workers.
const LAYERS: &str = r#"
export default async (page, number) => {
  const inWorker = await page.evaluate(() => new Promise((resolve) => {
    const script = URL.createObjectURL(new Blob(["postMessage(typeof RTCPeerConnection)"]));
    new Worker(script).onmessage = (event) => resolve(event.data);
  }));
  // Browsers ask the border's name server, through the network.
  if (!readFileSync("/etc/resolv.conf", "utf8").includes("10.0.2.3"))
    throw new Error("another name server");
  if (inWorker !== "undefined") throw new Error(`a worker has RTCPeerConnection: ${inWorker}`);
  // The link's delay is 20 ms each way, and a request to the border crosses it twice.
  const answered = await page.evaluate(() => {
    const [{ requestStart, responseStart }] = performance.getEntriesByType("navigation");
    return responseStart - requestStart;
  });
  if (number === 1 && answered < 39) throw new Error(`an answer came after ${answered} ms`);
  await join(page, number);
  if (number === 1)
    await page.evaluate(async () => {
      const [call] = Object.values(peer.connections).flat();
      const sender = call.peerConnection.getSenders().find(({ track }) => track.kind === "video");
      const parameters = sender.getParameters();
      const codec = parameters.codecs.find(({ mimeType }) => mimeType === "video/VP9");
      Object.assign(parameters.encodings[0], { codec, scalabilityMode: "L1T3" });
      await sender.setParameters(parameters);
    });
};
"#;

#[test]
fn chromium_and_firefox_reach_a_server_elsewhere_through_the_network() {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if missing().is_some() || !runs("firefox-esr") || !runs("slirp4netns") {
        println!("skipped: needs root, chromium, firefox-esr, node, slirp4netns and make npm-deps");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let scenario = place.path().join("narrow.toml");
    fs::write(&scenario, SCENARIO.replace("8s", "5s")).unwrap();
    let join = place.path().join("join.mjs");
    let own = example().join("join.mjs");
    let own = format!(
        "import {{ readFileSync }} from 'node:fs';\nimport join from '{}';\n{LAYERS}",
        own.display()
    );
    fs::write(&join, own).unwrap();
    let _outside = Outside::new();
    let mut server = Command::new("node");
    let _server = Running(server.current_dir(example()).arg("server.mjs").spawn().unwrap());
    let out = place.path().join("runs");
    let mut weir = Command::new(WEIR);
    weir.current_dir(example()).arg("call").arg(&scenario);
    weir.args(["--app", &format!("http://{}:9000/?audio", Outside::ADDRESS)]);
    weir.args(["--browsers", "chromium,firefox", "--attempts", "1", "--seed", "1"]);
    weir.args(["--join-within", "30"]);
    let done = weir.arg("--join").arg(&join).arg("--out").arg(&out).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    let record = weir_record::find(&out).unwrap().remove(0);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(record.join(name)).unwrap()).unwrap()
    };
    let (call, summary) = (read("call.json"), read("summary.json"));
    for one in call["calls"].as_array().unwrap() {
        assert_eq!(one["failure"], Value::Null, "{errors}");
    }
    let program = |index: usize| call["participants"][index]["program"].as_str().unwrap();
    assert!(program(0).contains("Chromium") && program(1).contains("Firefox"), "{call}");
    // Each has sent and received, and p1 no more than its way up carries.
    let each = summary["calls"]["each"].as_array().unwrap();
    let value = |name: &str, metric: &str| {
        let one = each.iter().find(|one| one["name"] == name).unwrap();
        one[metric].as_f64().unwrap_or_else(|| panic!("{name} has no {metric}: {one}"))
    };
    for name in ["p1", "p2"] {
        assert!(value(name, "receive_rate_mbps") > 0.05, "{each:?}");
        assert!((20.0..5_000.0).contains(&value(name, "setup_ms")), "{each:?}");
        assert!(value(name, "first_frame_ms") >= 20.0, "{each:?}");
        assert!((0.0..0.5).contains(&value(name, "audio_concealed_ratio")), "{each:?}");
    }
    assert!(value("p1", "send_rate_mbps") < 0.9, "{each:?}");
    let encoder = &call["peers"][0]["encoder"];
    assert_eq!(
        (&encoder["mimeType"], &encoder["scalabilityMode"]),
        (&"video/VP9".into(), &"L1T3".into())
    );
    let events = call["page_events"].as_array().unwrap();
    let told = |participant: &str, event: &str| {
        let is = |it: &&Value| it["participant"] == participant && it["event"] == event;
        events.iter().find(is).unwrap_or_else(|| panic!("{participant} tells no {event}"))
    };
    for event in
        ["addTrack", "setLocalDescription", "setRemoteDescription", "onconnectionstatechange"]
    {
        told("p1", event);
        told("p2", event);
    }
    assert!(told("p1", "setParameters")["value"].as_str().unwrap().contains("L1T3"));
}

#[test]
fn a_call_of_the_page_of_janus_has_its_four_streams() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = root.join("examples/apps/janus");
    let playwright = folder.join("node_modules/playwright-core");
    let demos = Path::new("/usr/share/janus/demos");
    if missing().is_some() || !demos.exists() || !playwright.exists() {
        println!("skipped: needs root, chromium, node, janus, janus-demos and make npm-deps");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let scenario = place.path().join("narrow.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let out = place.path().join("runs");
    let mut weir = Command::new(WEIR);
    weir.current_dir(folder);
    weir.arg("call").arg(&scenario).args(["--app", "http://{server}:9000/videoroomtest.html"]);
    weir.args(["--join", "join.mjs", "--serve-app", "node server.mjs", "--out"]).arg(&out);
    let done = weir.args(["--attempts", "1", "--seed", "1"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let record = weir_record::find(&out).unwrap().remove(0);
    let call: Value = serde_json::from_slice(&fs::read(record.join("call.json")).unwrap()).unwrap();
    for one in call["calls"].as_array().unwrap() {
        assert_eq!(one["failure"], Value::Null, "{one}");
    }
    // Each sends one video to the room and receives the other's.
    assert_eq!(call["peers"].as_array().unwrap().len(), 4, "{}", call["peers"]);
}

#[test]
fn a_room_of_livekit_gives_a_narrow_participant_smaller_layers() {
    let room = example().join("../livekit").canonicalize().unwrap();
    let server =
        std::env::var_os("LIVEKIT_SERVER").map_or(room.join("livekit-server"), PathBuf::from);
    if missing().is_some() || !server.exists() || !room.join("node_modules/livekit-client").exists()
    {
        println!(
            "skipped: needs root, chromium, node, make npm-deps and \
             examples/apps/livekit/get-server.sh"
        );
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("runs");
    let mut weir = Command::new(WEIR);
    weir.current_dir(&room).env("LIVEKIT_SERVER", server);
    weir.args(["call", "../networks/narrow-receiver.toml", "--app", "http://{server}:9000/"]);
    weir.args(["--join", "join.mjs", "--serve-app", "exec node server.mjs", "--participants", "3"]);
    weir.args(["--attempts", "1", "--seed", "1", "--out"]).arg(&out);
    let done = weir.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let record = weir_record::find(&out).unwrap().remove(0);
    let summary: Value =
        serde_json::from_slice(&fs::read(record.join("summary.json")).unwrap()).unwrap();
    let each = summary["calls"]["each"].as_array().unwrap();
    let of = |name: &str, metric: &str| {
        let one = each.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{each:?}"));
        one[metric].as_f64().unwrap_or(0.0)
    };
    // p1 sends layers and receives two videos; p3 gets no more than its way down carries.
    let sent = each.iter().filter(|one| one["name"].as_str().unwrap().starts_with("p1/"));
    assert!(sent.filter(|one| one["send_rate_mbps"].is_f64()).count() >= 2, "{each:?}");
    assert!(of("p3", "receive_rate_mbps") < 0.55, "{each:?}");
    assert!(of("p3", "receive_rate_mbps") < of("p2", "receive_rate_mbps"), "{each:?}");
    assert!(of("p3", "frame_height") < of("p2", "frame_height"), "{each:?}");
}

#[test]
fn a_gate_of_plain_calls_judges_them_and_writes_junit() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let scenario = place.path().join("gate.toml");
    let expected = "[[expect]]\ntext = \"something\"\nmetric = \"rate_mbps.mean\"\nabove = 0.01\n\
                    [[expect]]\ntext = \"too much\"\nmetric = \"rate_mbps.mean\"\nabove = 10\n";
    let text = SCENARIO.replace("8s", "3s").replace("[participant.p2]", "");
    fs::write(&scenario, format!("{text}{expected}")).unwrap();
    let junit = place.path().join("check.xml");
    let mut weir = Command::new(WEIR);
    weir.arg("check").arg(&scenario).args(["--engine", "call", "--junit"]).arg(&junit);
    let output = weir.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let junit = fs::read_to_string(junit).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}{errors}");
}
