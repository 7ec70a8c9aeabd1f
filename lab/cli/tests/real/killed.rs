//! SIGKILL at several moments of `weir call`: all processes that it started end with it, and the
//! next call removes its folders. Needs root, Chromium and ffmpeg; two tests also need Firefox,
//! coturn, iperf3 or Janus.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// One test at a time: calls share the processors.
static ALONE: Mutex<()> = Mutex::new(());
/// Variable in the environment of all processes that a call starts; its value is the folder of one
/// test.
const MARK: &str = "WEIR_TEST_KILLED";

/// A place for the temporary folders and the cache of calls.
struct Place {
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix("weir-test-").tempdir().unwrap();
        // The browsers run as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder, _alone: alone }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A call over 2 Mbit/s that is too long to reach its end.
    fn call(&self, picture: &str, call: &str, network: &str, flows: &str) -> Command {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"600s\"\n{network}\n\
             [call]\nvideo = {picture}\n{call}\n{flows}"
        );
        fs::write(self.path("mine.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("call").arg(self.path("mine.toml")).arg("--iterations=1");
        command.env("TMPDIR", self.path("tmp")).env("XDG_CACHE_HOME", self.path("cache"));
        command.env(MARK, self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(self.path("stderr")).unwrap());
        command
    }

    /// Starts a call, kills it at a moment and looks for remains: for processes at once, for
    /// folders after the next call. The moment is when all of `programs` run and `captured_bytes`
    /// of media have passed.
    fn kill_when(&self, mut call: Command, programs: &[&str], captured_bytes: u64) {
        let mut weir = call.spawn().unwrap();
        let Some(seen) = self.wait_for_the_moment(&mut weir, programs, captured_bytes) else {
            return;
        };
        weir.kill().unwrap();
        weir.wait().unwrap();
        let mark = format!("{MARK}={}", self.folder.path().display());
        let alive = || -> Vec<String> {
            let is_ours = |it: &&Process| seen.contains(&it.id) || it.environment.contains(&mark);
            processes().iter().filter(is_ours).map(|it| it.line.clone()).collect()
        };
        let killed = Instant::now();
        while !alive().is_empty() {
            assert!(killed.elapsed() < Duration::from_secs(20), "they live on: {:?}", alive());
            std::thread::sleep(Duration::from_millis(20));
        }
        // The next call fails when it looks for its browser.
        let output = call.env("WEIR_BROWSER", "/absent/browser").status().unwrap();
        assert_eq!(output.code(), Some(2), "{}", self.stderr());
        assert!(self.stderr().contains("/absent/browser"), "{}", self.stderr());
        assert_eq!(entries(&self.path("tmp")), [""; 0]);
        // The file of the camera. The second call creates it if the first one could not.
        let cached = entries(&self.path("cache/weir"));
        assert_eq!(cached.len(), 1, "{cached:?}");
    }

    /// Returns everything below `weir`; `None`, with a line that says so, if the machine lacks
    /// something.
    fn wait_for_the_moment(
        &self,
        weir: &mut Child,
        programs: &[&str],
        captured_bytes: u64,
    ) -> Option<BTreeSet<(u32, String)>> {
        let start = Instant::now();
        loop {
            let below = below(weir.id());
            let runs = |program: &&str| below.iter().any(|process| process.line.contains(*program));
            if programs.iter().all(runs) && self.captured_bytes() >= captured_bytes {
                return Some(below.into_iter().map(|process| process.id).collect());
            }
            if let Some(status) = weir.try_wait().unwrap() {
                let stderr = self.stderr();
                let lacks = ["apt-get install", "/dev/net/tun", "sudo"];
                assert!(lacks.iter().any(|it| stderr.contains(it)), "{status}: {stderr}");
                println!("skipped: {}", stderr.trim());
                return None;
            }
            if start.elapsed() > Duration::from_secs(120) {
                // Leave no remains for the next test to find.
                weir.kill().unwrap();
                let lines: Vec<_> = below.iter().map(|process| &process.line).collect();
                panic!("{programs:?} did not run: {lines:#?} {}", self.stderr());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Size of the call's own captures of what the hosts sent and received.
    fn captured_bytes(&self) -> u64 {
        let folders = fs::read_dir(self.path("tmp")).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
        let files =
            files.flatten().filter(|file| file.path().extension() == Some("pcapng".as_ref()));
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }
}

/// A process of this machine.
struct Process {
    /// Process id and start time, because ids are reused.
    id: (u32, String),
    parent: u32,
    line: String,
    environment: String,
}

/// All processes except zombies.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| process(&entry.path())).collect()
}

fn process(folder: &Path) -> Option<Process> {
    let number = folder.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The name may contain blanks and brackets. State, parent and start time are the fields 3, 4
    // and 22.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    if matches!(fields[0], "Z" | "X") {
        return None;
    }
    let text = |name| {
        let bytes = fs::read(folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    Some(Process {
        id: (number, fields[19].to_owned()),
        parent: fields[1].parse().ok()?,
        line: format!("{number} {}", text("cmdline")),
        environment: text("environ"),
    })
}

/// All processes below a process. These include the first process of the hosts, and orphans below
/// that.
fn below(root: u32) -> Vec<Process> {
    let mut rest = processes();
    let mut parents = BTreeSet::from([root]);
    let mut below = Vec::new();
    loop {
        let (children, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|process| parents.contains(&process.parent));
        if children.is_empty() {
            return below;
        }
        parents = children.iter().map(|process| process.id.0).collect();
        below.extend(children);
        rest = others;
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn am_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: needs root for network namespaces");
    }
    root
}

const SMALL: &str = "{ width = 480, height = 270, fps = 15 }";
const NETWORK: &str = "[network]\nup = { capacity = \"2Mbps\", delay = \"25ms\" }\n\
                       down = { capacity = \"2Mbps\", delay = \"25ms\" }";
/// Size of the packet captures from which on media must be flowing.
const MEDIA: u64 = 100_000;

#[test]
fn a_kill_while_the_camera_is_made_leaves_nothing() {
    if !am_root() {
        return;
    }
    let place = Place::new();
    // A picture that takes long enough to generate.
    let call = place.call("{ width = 1920, height = 1080, fps = 60 }", "", NETWORK, "[[flow]]\n");
    place.kill_when(call, &["ffmpeg"], 0);
}

#[test]
fn a_kill_while_the_browsers_start_leaves_nothing() {
    if !am_root() {
        return;
    }
    let place = Place::new();
    // First the test of the sandbox, then the browser of the call.
    for program in ["--dump-dom", "/call/0/a"] {
        place.kill_when(place.call(SMALL, "", NETWORK, "[[flow]]\n"), &[program], 0);
    }
}

#[test]
fn a_kill_in_a_call_over_a_relay_beside_tcp_leaves_nothing() {
    if !am_root() {
        return;
    }
    let place = Place::new();
    let hop = "[[network.hop]]\nup = { delay = \"5ms\" }\ndown = { delay = \"5ms\" }\n";
    let call = "relay = \"udp\"\nbrowser = { b = \"firefox\" }";
    let flows = "[[flow]]\n[[flow]]\nkind = \"tcp\"\n";
    let call = place.call(SMALL, call, &hop.repeat(2), flows);
    place.kill_when(call, &["chromium", "firefox", "turnserver", "iperf3"], MEDIA);
}

#[test]
fn a_kill_in_a_call_over_a_forwarding_server_leaves_nothing() {
    if !am_root() {
        return;
    }
    let place = Place::new();
    let call = "topology = \"forwarding-server\"";
    let call = place.call(SMALL, call, NETWORK, "[[flow]]\ncount = 2\n");
    place.kill_when(call, &["chromium", "janus"], MEDIA);
}
