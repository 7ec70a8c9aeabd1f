//! `weir link` as a user sees it: exit codes, signals, rights, and the record of a run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir_call::capture::Reader;
use weir_record::Record;
use weir_record::calls::file::Kind;
use weir_record::run::Engine;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const NETWORK: &str = "demo/first-call";
const SIGINT: i32 = libc::SIGINT;
/// Exit code of [`as_nobody`] if the machine does not let the test prepare its device.
const NOT_PREPARED: i32 = 99;

/// Whether this machine has what most tests here need. If not, prints that the test is skipped.
fn can_link() -> bool {
    if !am_root() {
        println!("skipped: needs root for network namespaces");
        return false;
    }
    let output = Command::new(WEIR).args(["link", NETWORK, "--", "true"]).output().unwrap();
    let told = text(output.stderr);
    let is_lacking = output.status.code() == Some(2) && told.contains("/dev/net/tun");
    if is_lacking {
        println!("skipped: {}", told.trim());
    }
    !is_lacking
}

fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
    if !found.status.success() {
        println!("skipped: {program} is not installed");
    }
    found.status.success()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Runs a shell script in the network, with these options of `weir link`.
fn link(options: &[&str], script: &str) -> Output {
    let mut command = Command::new(WEIR);
    command.args(["link", NETWORK]).args(options).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Starts a shell script in the network. SIGINT has its default action, even if the tests run in
/// the background and ignore it.
fn start(options: &[&str], script: &str) -> Child {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", WEIR, "link", NETWORK]).args(options);
    command.args(["--", "sh", "-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().unwrap()
}

fn signal(process: &Child, signal: i32) {
    // The process is a child that has not been waited for, so the number is still its own.
    let process = Pid::from_raw(process.id().cast_signed()).unwrap();
    kill_process(process, Signal::from_named_raw(signal).unwrap()).unwrap();
}

/// The processes, zombies not counted, whose command line contains a text.
fn processes_with(text: &str) -> usize {
    let folders = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let lines = folders.filter_map(|folder| fs::read(folder.join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

/// Number of processes that are in a network namespace or have it open.
fn holders_of(namespace: &str) -> usize {
    let links_to = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.as_os_str() == namespace);
    let holds = |folder: &PathBuf| {
        let open = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        links_to(folder.join("ns/net")) || open.map(|entry| entry.path()).any(links_to)
    };
    let folders = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    folders.filter(holds).count()
}

/// Waits for something that another process does; gives up after a minute, which is a failure.
fn wait_for(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_exit_code_of_the_command_is_passed_on() {
    if !can_link() {
        return;
    }
    let ended = link(&[], "exit 7");
    assert_eq!(ended.status.code(), Some(7), "{}", text(ended.stderr));
    let missing = Command::new(WEIR).args(["link", NETWORK, "--", "absent-program"]).output();
    assert_eq!(missing.unwrap().status.code(), Some(2));
}

#[test]
fn typed_lines_change_the_network_and_end_the_command() {
    if !can_link() {
        return;
    }
    let mut child = Command::new(WEIR)
        .args(["link", NETWORK, "--interactive", "--", "sleep", "31.4158"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let typed = b"loss up 3%\ncapacity 0Mbps\ncapacity -1Mbps\nquit\n";
    child.stdin.take().unwrap().write_all(typed).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = text(output.stderr);
    assert_eq!(output.status.code(), Some(128 + libc::SIGTERM), "{stderr}");
    assert!(stderr.contains("weir: loss 3 % up\n"), "{stderr}");
    assert!(stderr.contains("weir: capacity 0.000 Mbit/s\n"), "{stderr}");
    assert!(stderr.contains("'-1Mbps' must not be negative"), "{stderr}");
}

/// Sends a signal only to `weir link` while it runs a script that sleeps for `MARK`. No process may
/// be left.
fn is_ended_by(number: i32, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let started = folder.path().join("started");
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let mark = format!("31.{:07}{run:03}", std::process::id());
    let script = script.replace("MARK", &mark);
    let script = format!("readlink /proc/self/ns/net > {}; {script}", started.display());
    let mut child = start(&[], &script);
    wait_for(|| fs::read_to_string(&started).is_ok_and(|text| text.ends_with('\n')));
    // The command lines of the shell, of weir, and of the process that weir runs in its place
    // contain the mark.
    wait_for(|| processes_with(&mark) > 3);
    signal(&child, number);
    assert_eq!(child.wait().unwrap().code(), Some(128 + number), "{script}");
    wait_for(|| processes_with(&mark) == 0);
    let namespace = fs::read_to_string(&started).unwrap();
    wait_for(|| holders_of(namespace.trim()) == 0);
}

#[test]
fn a_signal_to_weir_alone_ends_a_shell_that_waits_for_a_program() {
    if can_link() {
        is_ended_by(SIGINT, "sleep MARK; true");
        is_ended_by(libc::SIGTERM, "sleep MARK; true");
    }
}

#[test]
fn a_signal_to_weir_alone_ends_what_left_the_process_group() {
    if can_link() {
        is_ended_by(SIGINT, "setsid sleep MARK & (setsid sleep MARK &); sleep MARK; true");
    }
}

#[test]
fn a_signal_to_weir_alone_ends_a_command_that_ignores_it() {
    if can_link() {
        is_ended_by(SIGINT, "trap '' INT; sleep MARK; sleep MARK");
    }
}

#[test]
fn a_command_that_ends_itself_at_a_signal_keeps_its_exit_code() {
    if !can_link() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script =
        format!("trap 'exit 5' INT; touch {}; while :; do sleep 0.05; done", ready.display());
    let mut child = start(&[], &script);
    wait_for(|| ready.exists());
    signal(&child, SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

/// Runs a program as nobody, with mounts of its own in which /dev/net/tun has the given mode. The
/// machine's device is not changed.
fn as_nobody(tun_mode: &str, program: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o dev,mode=0755 tmpfs \"$1\" && mknod -m \"$2\" \"$1/tun\" c 10 200 && \
         mount --bind \"$1/tun\" /dev/net/tun || exit {NOT_PREPARED}\n\
         shift 2 && cd / && exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\""
    );
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"])
        .arg(folder.path())
        .arg(tun_mode)
        .args(program)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A copy of the program for the user nobody, and its folder: that user cannot enter the build
/// folder. If that user cannot create a user namespace, prints why and returns `None`.
fn program_of_nobody() -> Option<(tempfile::TempDir, String)> {
    if !am_root() {
        println!("skipped: needs root to become another user");
        return None;
    }
    let tried = as_nobody("0666", &["unshare", "--user", "--map-root-user", "true"]);
    if tried.status.code() == Some(NOT_PREPARED) {
        let told = text(tried.stderr);
        let last = told.lines().last().unwrap_or_default();
        println!(
            "skipped: no device for nobody ({last}): run 'modprobe tun', or give a container \
             '--device /dev/net/tun --cap-add MKNOD --cap-add SYS_ADMIN'"
        );
        return None;
    }
    if !tried.status.success() {
        println!(
            "skipped: this machine lets only root make user namespaces: run 'sysctl -w \
             user.max_user_namespaces=10000'"
        );
        return None;
    }
    let folder = tempfile::Builder::new().prefix("weir-test-").tempdir().unwrap();
    let program = folder.path().join("weir");
    fs::copy(WEIR, &program).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let program = program.display().to_string();
    Some((folder, program))
}

#[test]
fn a_user_namespace_is_enough_to_emulate_a_network() {
    let Some((_folder, program)) = program_of_nobody().filter(|_| has("ping")) else { return };
    let script = "ping -n -c 1 -W 5 $WEIR_PEER && exit 9";
    let output = as_nobody("0666", &[&program, "link", NETWORK, "--", "sh", "-c", script]);
    let (stderr, stdout) = (text(output.stderr), text(output.stdout));
    assert_eq!(output.status.code(), Some(9), "{stderr}{stdout}");
    assert!(stdout.contains(" 0% packet loss"), "{stdout}");
}

#[test]
fn a_device_that_may_not_be_opened_is_told_from_missing_namespaces() {
    let Some((_folder, program)) = program_of_nobody() else { return };
    let output = as_nobody("0600", &[&program, "link", NETWORK, "--", "true"]);
    let stderr = text(output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("'sudo chmod 0666 /dev/net/tun'"), "{stderr}");
    assert!(stderr.contains("'--device /dev/net/tun'"), "{stderr}");
    assert!(!stderr.contains("user_namespaces"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn without_rights_the_emulator_says_in_one_line_what_to_grant() {
    let Some((_folder, program)) = program_of_nobody() else { return };
    // A user namespace that allows neither a further namespace nor any capability.
    let script = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces && \
         exec setpriv --bounding-set=-all {program} link {NETWORK} -- true"
    );
    let args = ["unshare", "--user", "--map-root-user", "sh", "-c", &script];
    let output = as_nobody("0666", &args);
    let stderr = text(output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("sudo") && stderr.contains("max_user_namespaces"), "{stderr}");
    assert!(!stderr.contains("/dev/net/tun"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn the_scripts_say_what_the_program_says_of_a_missing_device() {
    if program_of_nobody().is_none() {
        return;
    }
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/test/missing-for-emulator.sh");
    let script = fs::read_to_string(script).unwrap();
    let told = |mode| text(as_nobody(mode, &["sh", "-c", &script]).stdout);
    assert_eq!(told("0666"), "");
    assert!(told("0600").contains("chmod 0666 /dev/net/tun"), "{}", told("0600"));
}

/// The only record below a folder, and its own folder. There must be no other files.
fn record(out: &Path) -> (PathBuf, Record) {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let [scenario] = entries(out).try_into().unwrap();
    let [folder] = entries(&scenario).try_into().unwrap();
    let record = Record::read(&folder).unwrap();
    assert_eq!(record.info.engine, Engine::Link);
    (folder, record)
}

/// Bytes and packets in a capture: sent, then received.
fn captured(folder: &Path, name: &str) -> [(u64, u64); 2] {
    let mut reader = Reader::new(fs::File::open(folder.join(name)).unwrap()).unwrap();
    let mut counts = [(0, 0); 2];
    while let Some(packet) = reader.packet().unwrap() {
        let count = &mut counts[usize::from(!packet.is_sent)];
        *count = (count.0 + u64::from(packet.length), count.1 + 1);
    }
    counts
}

#[test]
fn a_command_leaves_a_record_with_its_bytes_its_packets_and_its_exit_code() {
    if !can_link() || !has("ping") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("runs").display().to_string();
    let script = "ping -n -c 3 -i 0.2 $WEIR_PEER && exit 7";
    let output = link(&["--out", &out, "--capture", "--seed", "4"], script);
    let told = text(output.stderr);
    assert_eq!(output.status.code(), Some(7), "{told}");
    let (folder, record) = record(Path::new(&out));
    assert!(told.contains(&format!("recorded in {}", folder.display())), "{told}");

    // Three echo requests of 84 bytes, and the answers, as whole IP packets.
    assert_eq!(record.trace.flows, ["link-up", "link-down"]);
    for flow in 0..2 {
        let rows = || record.trace.rows.iter().filter(|row| row.flow == flow);
        assert_eq!(rows().map(|row| row.sent.as_bytes()).sum::<u64>(), 3 * 84);
        assert_eq!(rows().map(|row| row.received.as_bytes()).sum::<u64>(), 3 * 84);
        assert_eq!(rows().map(|row| row.sent_packets).sum::<u64>(), 3);
    }
    for host in ["host-1.pcapng", "host-2.pcapng"] {
        assert_eq!(captured(&folder, host), [(3 * 84, 3), (3 * 84, 3)], "{host}");
    }
    let call = serde_json::to_value(record.call.as_ref().unwrap()).unwrap();
    assert_eq!(call["exit_code"], 7);
    assert_eq!(call["command"], serde_json::json!(["sh", "-c", script]));
    assert_eq!(call["lateness_us"]["counts"].as_array().map(Vec::is_empty), Some(false));
    let again = format!("weir link {NETWORK} --seed 4 -- sh -c '{script}'");
    assert_eq!(record.info.command(), again);

    // Other commands can read the record.
    let page = place.path().join("report.html");
    let reported = Command::new(WEIR).args(["report", &out, "-o"]).arg(&page).output().unwrap();
    assert!(reported.status.success(), "{}", text(reported.stderr));
    assert!(fs::read_to_string(&page).unwrap().contains("\"engine\":\"link\""));
    let compared = Command::new(WEIR).args(["compare", &out, &out, "--json"]).output().unwrap();
    assert!(compared.status.success(), "{}", text(compared.stderr));
    let rows: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert!(rows.as_array().unwrap().iter().all(|row| row["engine"] == "link"));

    let refused = link(&["--out", &out, "--seed", "4"], script);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(refused.stderr).contains("exists already"));
}

#[test]
fn an_interrupted_command_leaves_a_whole_record() {
    if !can_link() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, ready) = (folder.path().join("runs"), folder.path().join("ready"));
    let script = format!("touch {}; sleep 31.4159; true", ready.display());
    let mut child = start(&["--out", &out.display().to_string(), "--capture"], &script);
    wait_for(|| ready.exists());
    signal(&child, SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (folder, record) = record(&out);
    let Kind::Link(link) = record.call.unwrap().kind else { panic!("a command") };
    assert_eq!(link.exit_code, 130);
    assert!(folder.join("host-2.pcapng").is_file());
}

#[test]
fn a_command_that_cannot_be_run_leaves_no_record() {
    if !can_link() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs").display().to_string();
    let args = ["link", NETWORK, "--out", &out, "--capture", "--", "absent-program"];
    let output = Command::new(WEIR).args(args).output().unwrap();
    let stderr = text(output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let below = fs::read_dir(Path::new(&out).join("demo__first-call")).into_iter().flatten();
    assert_eq!(below.count(), 0);
}
