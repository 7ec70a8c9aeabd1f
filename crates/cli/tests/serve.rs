//! `weir call --serve` as people use it: their own browsers, on machines of their own, are the peers.
//!
//! The three machines are hosts of an emulator that the test has for itself, with nothing between
//! them: one runs `weir`, the others a Chromium each. Needs root and a Chromium.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use weir_emu::{Child, Emulator, Error, HostPlan, Plan};
use weir_net::Seed;

/// One test at a time: calls share the processors.
static ALONE: Mutex<()> = Mutex::new(());

/// That weir's own peers would have; a person's browser has none of the lab's other flags.
const CHROMIUM: [&str; 6] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
];

/// The machines, and a folder for what they write.
struct Lab {
    // Dropped first: what runs on the machines writes to the folder.
    emulator: Emulator,
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// `weir call --serve` while it waits for people or calls.
struct Served {
    weir: Child,
    stderr: BufReader<ChildStderr>,
    /// What peer a and peer b open.
    urls: [String; 2],
    /// What gives the page a camera, so weir says.
    option: String,
}

impl Lab {
    /// `None`, with a line that says so, where this machine cannot have one.
    fn new() -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let hosts = vec![HostPlan::at(0); 3];
        let plan = Plan { cell: None, hops: Vec::new(), hosts, local_traffic: true };
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
        command.arg("call").arg(&scenario).arg(format!("--serve={}", host.address()));
        command.arg("--out").arg(self.out()).args(options).env("TMPDIR", self.temporary());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut weir = Child::spawn(&mut command).unwrap();
        let mut stderr = BufReader::new(weir.inner().stderr.take().unwrap());
        let urls = ["a", "b"].map(|name| after(&format!("weir: {name} opens "), &mut stderr));
        let named = after("weir: a browser gives this page its camera", &mut stderr);
        let option = named.rsplit(' ').next().unwrap_or_default().to_owned();
        Served { weir, stderr, urls, option }
    }

    /// Opens the address of a peer on machine 1 or 2, in a browser with this option.
    /// `None`, with a line that says so, without a Chromium.
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

    /// Of the records.
    fn out(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// Where weir makes its temporary folders.
    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

/// The rest of the line that weir begins so.
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

/// What is in the folder of the one scenario below the folder of the records.
fn of_the_scenario(out: &Path) -> Vec<PathBuf> {
    entries(out).iter().flat_map(|scenario| entries(scenario)).collect()
}

/// How often a peer of `call.json` told that a value was above zero.
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
        // The model can be late, never early: 25 ms each way, whatever lies between the machines.
        assert!(flow["rate_mbps"]["mean"].as_f64() > Some(0.0), "{flow}");
        assert!(flow["rtt_ms"]["p25"].as_f64() >= Some(50.0), "{flow}");
    }
    let [record] = &of_the_scenario(&lab.out())[..] else { panic!("not one record") };
    let call = fs::read_to_string(record.join("call.json")).unwrap();
    let call: Value = serde_json::from_str(&call).unwrap();
    assert_eq!(call["calls"][0]["failure"], Value::Null, "{stderr}");
    for peer in [0, 1] {
        assert!(times(&call, peer, "send_bps") > 0 && times(&call, peer, "receive_bps") > 0);
    }
    assert_eq!(entries(&lab.temporary()), [""; 0].map(PathBuf::from));
}

#[test]
fn ctrl_c_ends_a_call_of_people_and_leaves_its_capture_alone() {
    let Some(lab) = Lab::new() else { return };
    // Peer b only watches: it needs no camera and no option for one, and its browser hides its address.
    let mut served = lab.serve("1000s", "[[flow]]\n", &["--capture"]);
    let Some(_a) = lab.open(1, &served, &served.option) else { return };
    let Some(_b) = lab.open(2, &served, "--mute-audio") else { return };
    let captures = || of_the_scenario(&lab.out());
    // More than a set-up: video arrives at host B.
    wait_for(|| {
        let file = captures().first().map(|folder| folder.join("host-2.pcapng"));
        file.and_then(|file| file.metadata().ok()).is_some_and(|file| file.len() > 50_000)
    });
    let weir = served.weir.inner().id().cast_signed();
    // SAFETY: the process is a child that has not been waited for, so the number is still its own.
    assert_eq!(unsafe { libc::kill(weir, libc::SIGINT) }, 0);
    let mut stderr = String::new();
    served.stderr.read_to_string(&mut stderr).unwrap();
    assert_eq!(served.weir.wait().unwrap().code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
    let [left] = &captures()[..] else { panic!("not the captures alone") };
    assert!(left.display().to_string().ends_with(".captures"), "{}", left.display());
    assert_eq!(entries(&lab.temporary()), [""; 0].map(PathBuf::from));
}
