//! `weir call --serve` as people use it: the peers are their own browsers on their own machines.
//!
//! The three machines are hosts of the test's own emulator, without a bottleneck between them. One
//! runs `weir`, each of the others a Chromium. Needs root and Chromium.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tungstenite::{Message, WebSocket, client::client};
use weir_emu::{Child, Emulator, Error, HostPlan, Plan};
use weir_net::Seed;

/// One test at a time: calls share the processors.
static ALONE: Mutex<()> = Mutex::new(());

/// Flags that weir's own peers would have. A person's browser has none of the lab's other flags.
const CHROMIUM: [&str; 6] = [
    "--headless=new",
    // It runs as root, like the test, and opens only the page of `weir`.
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
];

/// The machines, and a folder for what they write.
struct Lab {
    // Dropped first, because programs on the machines write to the folder.
    emulator: Emulator,
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// `weir call --serve` while it waits for people or calls.
struct Served {
    weir: Child,
    stderr: BufReader<ChildStderr>,
    /// Addresses for the peers: a and b; with two calls a and b of the first, then of the second.
    urls: Vec<String>,
    /// Browser option that gives the page a camera, as printed by weir.
    option: String,
}

impl Lab {
    /// If this machine cannot emulate a network, prints that the test is skipped and returns
    /// `None`.
    fn new() -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let hosts = vec![HostPlan::at(0); 3];
        let plan = Plan {
            access: None,
            hops: Vec::new(),
            own: Vec::new(),
            hosts,
            nats: Vec::new(),
            local_traffic: true,
        };
        let emulator = match Emulator::new(&plan, Seed::new(1)) {
            Err(error @ (Error::NotRoot | Error::NoTun)) => {
                println!("skipped: {error}");
                return None;
            }
            made => made.unwrap(),
        };
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Some(Self { emulator, folder, _alone: alone })
    }

    /// Video between two people, up and, if asked for, down, served to the other machines.
    fn serve(&self, duration: &str, flows: &str, options: &[&str]) -> Served {
        let address = self.emulator.host(0).address().to_string();
        self.serve_at(&address, duration, flows, options)
    }

    /// Like [`Lab::serve`], at one address or at all.
    fn serve_at(&self, address: &str, duration: &str, flows: &str, options: &[&str]) -> Served {
        let scenario = self.folder.path().join("mine.toml");
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"{duration}\"\n\
             [network]\nup = {{ capacity = \"2Mbps\", delay = \"25ms\" }}\n\
             down = {{ capacity = \"2Mbps\", delay = \"25ms\" }}\n\
             [call]\nvideo = {{ width = 480, height = 270, fps = 15 }}\n{flows}"
        );
        fs::write(&scenario, text).unwrap();
        let host = self.emulator.host(0);
        let mut command = host.command(env!("CARGO_BIN_EXE_weir"));
        command.arg("call").arg(&scenario).arg(format!("--serve={address}"));
        command.arg("--out").arg(self.out()).args(options).env("TMPDIR", self.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut weir = Child::spawn(&mut command).unwrap();
        let mut stderr = BufReader::new(weir.inner().stderr.take().unwrap());
        let names: &[&str] =
            if flows.contains("count = 2") { &["a1", "b1", "a2", "b2"] } else { &["a", "b"] };
        // With all addresses weir prints a line for each. The other machines use this one.
        let here = format!("http://{}:", host.address());
        let url = |name: &&str| {
            let rest = after(&format!("weir: {name} opens {here}"), &mut stderr);
            format!("{here}{rest}")
        };
        let urls = names.iter().map(url).collect();
        let named = after("weir: to let this page use the camera", &mut stderr);
        let option = named.rsplit(' ').next().unwrap_or_default().to_owned();
        Served { weir, stderr, urls, option }
    }

    /// Opens the address of a peer on machine 1 or 2, in a browser with this option. Without
    /// Chromium, prints that the test is skipped and returns `None`.
    fn open(&self, machine: usize, served: &Served, option: &str) -> Option<Child> {
        let url = &served.urls[machine - 1];
        let browser = std::env::var_os("WEIR_BROWSER").unwrap_or("chromium".into());
        let profile = self.folder.path().join(machine.to_string());
        let mut command = self.emulator.host(machine).command(browser);
        command.args(CHROMIUM).arg(option);
        command.arg(format!("--user-data-dir={}", profile.display())).arg(url);
        command.env("HOME", self.folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        match Child::spawn(&mut command) {
            Err(error) => {
                println!("skipped: {error}");
                None
            }
            spawned => Some(spawned.unwrap()),
        }
    }

    /// A connection from machine 1 to the server of a page on machine 0, and the path of the page.
    fn connect(&self, url: &str) -> (TcpStream, String) {
        let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let stream = self.emulator.host(1).enter(|| TcpStream::connect(host)).unwrap().unwrap();
        (stream, format!("/{path}"))
    }

    /// A peer that is not a browser, and can send any messages.
    fn intrude(&self, url: &str) -> WebSocket<TcpStream> {
        let (stream, _) = self.connect(url);
        client(format!("{}/socket", url.replace("http:", "ws:")), stream).unwrap().0
    }

    /// Folder of the records.
    fn out(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// Folder in which weir creates its temporary folders.
    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

/// The rest of the first line of weir that begins with `beginning`.
fn after(beginning: &str, stderr: &mut impl BufRead) -> String {
    let mut said = String::new();
    while stderr.read_line(&mut said).unwrap() > 0 {
        let line = said.lines().next_back().unwrap_or_default();
        if let Some(rest) = line.strip_prefix(beginning) {
            return rest.to_owned();
        }
    }
    panic!("no line that begins with '{beginning}': {said}");
}

/// Waits for something that other processes do; gives up after five minutes, which is a failure.
fn wait_for(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(300), "waited in vain");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Entries in the folders of scenarios below the folder of the records.
fn of_the_scenario(out: &Path) -> Vec<PathBuf> {
    entries(out).iter().flat_map(|scenario| entries(scenario)).collect()
}

/// The reason that the lab sends to a peer that it refuses.
fn dismissal(intruder: &mut WebSocket<TcpStream>) -> String {
    loop {
        let message = intruder.read().unwrap();
        let message: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
        if message["type"] == "refused" {
            return message["cause"].as_str().unwrap().to_owned();
        }
    }
}

/// The `call.json` of the only record.
fn recorded(out: &Path) -> Value {
    let [record] = &of_the_scenario(out)[..] else { panic!("not one record") };
    serde_json::from_str(&fs::read_to_string(record.join("call.json")).unwrap()).unwrap()
}

/// Number of intervals in which a peer of `call.json` reported a value above zero.
fn times(call: &Value, peer: usize, value: &str) -> usize {
    let intervals = call["peers"][peer]["intervals"].as_array().unwrap();
    intervals.iter().filter(|interval| interval[value].as_f64() > Some(0.0)).count()
}

#[test]
fn two_people_on_other_machines_call_over_the_scenarios_network() {
    let Some(lab) = Lab::new() else { return };
    let flows = "[[flow]]\n[[flow]]\ndirection = \"down\"\n";
    let mut served = lab.serve("8s", flows, &["--json"]);
    let Some(_a) = lab.open(1, &served, &served.option) else { return };
    let Some(_b) = lab.open(2, &served, &served.option) else { return };
    let mut stdout = String::new();
    served.weir.inner().stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let mut stderr = String::new();
    served.stderr.read_to_string(&mut stderr).unwrap();
    assert!(served.weir.wait().unwrap().success(), "{stderr}");

    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary[0]["controller"], "people");
    for flow in summary[0]["flows"].as_array().unwrap() {
        // The emulator can be late, but never early: 25 ms in each direction, whatever is between
        // the machines.
        assert!(flow["rate_mbps"]["mean"].as_f64() > Some(0.0), "{flow}");
        assert!(flow["rtt_ms"]["p25"].as_f64() >= Some(50.0), "{flow}");
    }
    let call = recorded(&lab.out());
    assert_eq!(call["calls"][0]["failure"], Value::Null, "{stderr}");
    for peer in [0, 1] {
        assert!(times(&call, peer, "send_bps") > 0 && times(&call, peer, "receive_bps") > 0);
    }
    assert_eq!(entries(&lab.temporary()), [""; 0].map(PathBuf::from));
}

#[test]
fn people_who_reach_the_machine_at_any_of_its_addresses_call_each_other() {
    let Some(lab) = Lab::new() else { return };
    let mut served = lab.serve_at("all", "4s", "[[flow]]\n", &[]);
    let Some(_a) = lab.open(1, &served, &served.option) else { return };
    let Some(_b) = lab.open(2, &served, "--mute-audio") else { return };
    let mut stderr = String::new();
    served.stderr.read_to_string(&mut stderr).unwrap();
    assert!(served.weir.wait().unwrap().success(), "{stderr}");
    let call = recorded(&lab.out());
    assert_eq!(call["calls"][0]["failure"], Value::Null, "{stderr}");
    assert!(times(&call, 1, "receive_bps") > 0);
}

#[test]
fn strangers_are_dropped_with_their_cause_and_the_others_call_goes_on() {
    let Some(lab) = Lab::new() else { return };
    let mut served = lab.serve("8s", "[[flow]]\ncount = 2\n", &[]);
    let Some(_a) = lab.open(1, &served, &served.option) else { return };
    let Some(_b) = lab.open(2, &served, &served.option) else { return };
    // Without the token the page does not exist.
    let (mut stream, path) = lab.connect(&served.urls[2]);
    let wrong = path.replacen(&path[1..33], &"0".repeat(32), 1);
    write!(stream, "GET {wrong} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    // With the token: garbage, a place that is already taken, and a flood of messages.
    let mut intruder = lab.intrude(&served.urls[2]);
    intruder.send(Message::text("\u{1b}[2J garbage")).unwrap();
    assert!(dismissal(&mut intruder).contains("not part of the protocol"));
    assert!(dismissal(&mut lab.intrude(&served.urls[2])).contains("has already joined this call"));
    let mut flood = lab.intrude(&served.urls[3]);
    // The lab closes the connection at some point.
    while flood.send(Message::text(r#"{"type":"stats","report":{}}"#)).is_ok() {}

    let mut stderr = String::new();
    served.stderr.read_to_string(&mut stderr).unwrap();
    assert!(served.weir.wait().unwrap().success(), "{stderr}");
    assert!(
        stderr.contains("call 2 failed: peer a sent a message that is not part of the protocol")
    );
    assert!(stderr.contains("1 of 2 calls succeeded") && !stderr.contains('\u{1b}'), "{stderr}");
    let call = recorded(&lab.out());
    assert_eq!(call["calls"][0]["failure"], Value::Null, "{stderr}");
    assert!(times(&call, 0, "send_bps") > 0 && times(&call, 1, "receive_bps") > 0);
    assert_eq!(entries(&lab.temporary()), [""; 0].map(PathBuf::from));
}

#[test]
fn ctrl_c_ends_a_call_of_people_and_leaves_its_capture_alone() {
    let Some(lab) = Lab::new() else { return };
    // Peer b only watches: it needs no camera and no option for one, and its browser hides its
    // address.
    let mut served = lab.serve("1000s", "[[flow]]\n", &["--capture"]);
    let Some(_a) = lab.open(1, &served, &served.option) else { return };
    let Some(_b) = lab.open(2, &served, "--mute-audio") else { return };
    let captures = || of_the_scenario(&lab.out());
    // More bytes than in a set-up: video arrives at host B.
    wait_for(|| {
        let file = captures().first().map(|folder| folder.join("host-2.pcapng"));
        file.and_then(|file| file.metadata().ok()).is_some_and(|file| file.len() > 50_000)
    });
    // The process is a child that has not been waited for, so the number is still its own.
    let weir = Pid::from_raw(served.weir.inner().id().cast_signed()).unwrap();
    kill_process(weir, Signal::INT).unwrap();
    let mut stderr = String::new();
    served.stderr.read_to_string(&mut stderr).unwrap();
    assert_eq!(served.weir.wait().unwrap().code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    let [left] = &captures()[..] else { panic!("not the captures alone") };
    assert!(left.display().to_string().ends_with(".captures"), "{}", left.display());
    assert_eq!(entries(&lab.temporary()), [""; 0].map(PathBuf::from));
}
