//! Starts and stops the parts.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt as _, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::command::run;
use crate::layout::{
    self, CORE, CSCFS, DIAMETER_PORT, Files, GATEWAYS, PARTS, PREFIX, address, terminal_namespace,
};
use crate::{args, certificate, web};

/// Time for the CSCFs to connect to HSS and PCRF.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for parts to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// Connections of Diameter: I-CSCF and S-CSCF to the HSS; P-CSCF, eP-CSCF and application function
/// to the PCRF.
const CONNECTIONS: usize = 5;
const TICK: Duration = Duration::from_millis(100);

/// Starts the IMS, and returns when the CSCFs are connected to HSS and PCRF.
pub(crate) fn up(args: &args::Up) -> anyhow::Result<ExitCode> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "weir ims needs root: it makes network namespaces"
    );
    if let Some(missing) = layout::missing() {
        bail!("{missing}");
    }
    let subscribers = match &args.subscribers {
        Some(path) => layout::read(path)?,
        None => include_str!("../ims/subscribers.toml").into(),
    };
    let policy = match &args.policy {
        Some(path) => layout::read(path)?,
        None => include_str!("../ims/policy.toml").into(),
    };
    let files = Files::parse(&subscribers, &policy)?;
    let running: Vec<String> = namespaces()?;
    ensure!(running.is_empty(), "an IMS is running already: weir ims down");
    let folder = layout::folder();
    make_folder(&folder)?;
    let started = write(&folder, args, [&subscribers, &policy], &files)
        .and_then(|()| start(&folder, &files, args.web.as_deref()));
    if started.is_err() {
        stop()?;
    }
    started?;
    println!(
        "the IMS runs: {} users; weir ims call alice bob; weir ims down",
        files.users().count()
    );
    Ok(ExitCode::SUCCESS)
}

/// An empty folder that only root reads: it gets passwords and keys.
fn make_folder(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        // Logs of the last run.
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot create {}", folder.display()))
}

/// Writes the files of all parts. The texts are those of subscribers and policy.
fn write(folder: &Path, args: &args::Up, texts: [&str; 2], files: &Files) -> anyhow::Result<()> {
    fs::write(folder.join("subscribers.toml"), texts[0])?;
    fs::write(folder.join("policy.toml"), texts[1])?;
    certificate::make(folder, "epcscf", &files.subscribers.realm)?;
    let epcscf_secret = match &args.web {
        Some(web) => Some(web::write(folder, web, args, files)?),
        None => None,
    };
    let extra = layout::Extra { intercept: args.intercept, epcscf_secret };
    layout::write(folder, files, &extra)
}

fn start(folder: &Path, files: &Files, web: Option<&Path>) -> anyhow::Result<()> {
    make_core(folder)?;
    // The first of all, so that it sees every message.
    start_part(folder, "capture")?;
    for (number, user) in files.users().enumerate() {
        make_terminal(number, user)?;
    }
    for server in ["hss", "pcrf"] {
        start_part(folder, server)?;
        wait_for(layout::inner_address(server), DIAMETER_PORT, server)?;
    }
    for name in GATEWAYS.into_iter().chain(["af", "as"]) {
        start_part(folder, name)?;
    }
    if web.is_some() {
        for (server, port) in
            [("waf", web::WAF_PORT), ("wwsf", web::WWSF_PORT), ("facilitator", web::VIDEO_PORT)]
        {
            start_part(folder, server)?;
            wait_for(address(server), port, server)?;
        }
    }
    for name in CSCFS {
        start_part(folder, name)?;
    }
    let start = Instant::now();
    while connections(folder) < CONNECTIONS {
        let alive = processes(CORE)?;
        ensure!(!alive.is_empty(), "all parts have ended; see {}/*.log", folder.display());
        ensure!(
            start.elapsed() < PATIENCE,
            "the CSCFs are not connected to HSS and PCRF after {} s; see {}/*.log",
            PATIENCE.as_secs(),
            folder.display()
        );
        thread::sleep(TICK);
    }
    Ok(())
}

/// How many connections of Diameter HSS and PCRF have accepted since the IMS was started.
fn connections(folder: &Path) -> usize {
    let mut count = 0;
    for log in ["hss.log", "pcrf.log"] {
        let text = fs::read_to_string(folder.join(log)).unwrap_or_default();
        count += text.lines().filter(|line| line.contains("is connected")).count();
    }
    count
}

/// How many Diameter connections a part opens or accepts when it is started. `None` if it does not
/// use Diameter.
fn clients_of(part: &str) -> Option<usize> {
    match part {
        "pcrf" => Some(3),
        "hss" => Some(2),
        "icscf" | "scscf" | "pcscf" | "epcscf" | "af" => Some(1),
        _ => None,
    }
}

/// Starts one part of the core.
fn start_part(folder: &Path, name: &str) -> anyhow::Result<()> {
    let mut command = in_namespace(CORE);
    match name {
        "hss" | "pcrf" | "af" | "as" | "capture" => {
            let own = std::env::current_exe().context("cannot find this program")?;
            // As `weir ims serve hss`, or as `weir-ims serve hss`.
            let is_whole = own.file_name().is_some_and(|name| name == "weir");
            command.arg(&own);
            if is_whole {
                command.arg("ims");
            }
            command.args(["serve", name]);
        }
        "agw" | "eagw" => {
            let own = address(name);
            // The file of the package has ports that two gateways cannot share.
            command.args(["rtpengine", "--config-file=none", "--table=-1", "--foreground"]);
            let control = layout::inner_address(name);
            command.args([format!("--interface={own}"), format!("--listen-ng={control}:2223")]);
            command.arg("--log-stderr");
            command.args(["--port-min=30000", "--port-max=30999"]);
        }
        "waf" | "wwsf" | "facilitator" => {
            let scripts = fs::read_to_string(folder.join("web.folder"))
                .context("the IMS was started without --web")?;
            command.arg("node").arg(Path::new(&scripts).join(format!("{name}.mjs")));
            command.arg(folder.join("web.json"));
        }
        _ => {
            command.args(["kamailio", "-DD", "-E", "-m", "96", "-M", "8"]);
            command.arg("-f").arg(folder.join(format!("{name}.cfg")));
            command.arg("-P").arg(folder.join(format!("{name}.pid")));
            command.arg("-Y").arg(folder.join(name)).arg("-w").arg(folder);
        }
    }
    spawn(folder, name, &mut command)
}

/// Ends one part, and starts it again unless it is to stay away.
pub(crate) fn restart(args: &args::Restart) -> anyhow::Result<ExitCode> {
    let name = args.part.as_str();
    let known: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    ensure!(known.contains(&name), "no part '{name}': the parts are {}", known.join(", "));
    let folder = layout::folder();
    Files::of_running()?;
    let pid = fs::read_to_string(folder.join(format!("{name}.process"))).unwrap_or_default();
    let pid: i32 = pid.trim().parse().with_context(|| format!("no process of {name} is known"))?;
    // The number may belong to somebody else by now, but not within our namespace.
    let runs = || Ok::<bool, anyhow::Error>(processes(CORE)?.contains(&pid));
    if let Some(process) = Pid::from_raw(pid) {
        // SIGTERM does not end a P-CSCF with open dialogs: Kamailio deadlocks on one of its own
        // locks.
        for signal in [Signal::TERM, Signal::KILL] {
            let start = Instant::now();
            if runs()? {
                kill_process(process, signal).with_context(|| format!("cannot end {name}"))?;
            }
            while runs()? && start.elapsed() < GRACE {
                thread::sleep(TICK);
            }
        }
        ensure!(!runs()?, "{name} does not end");
    }
    // Kamailio does not start while this file names a zombie process.
    let _ = fs::remove_file(folder.join(format!("{name}.pid")));
    if !args.stop {
        let before = connections(&folder);
        start_part(&folder, name)?;
        if let Some(count) = clients_of(name) {
            let start = Instant::now();
            while connections(&folder) < before + count {
                ensure!(
                    start.elapsed() < PATIENCE,
                    "{name} has no connection of Diameter after {} s; see {}/{name}.log",
                    PATIENCE.as_secs(),
                    folder.display()
                );
                thread::sleep(TICK);
            }
        }
    }
    println!("{name} {}", if args.stop { "is stopped" } else { "is started again" });
    Ok(ExitCode::SUCCESS)
}

/// Stops the IMS.
pub(crate) fn down() -> anyhow::Result<ExitCode> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "weir ims needs root: it removes network namespaces"
    );
    let stopped = stop()?;
    println!("{stopped} namespaces removed");
    Ok(ExitCode::SUCCESS)
}

/// Ends the processes of our namespaces, and removes them and what they knew. Returns how many
/// there were.
fn stop() -> anyhow::Result<usize> {
    let names = namespaces()?;
    let mut result = Ok(names.len());
    for name in &names {
        // If one cannot be removed, the others and the secrets are removed all the same.
        let removed = end_processes(name).and_then(|()| ip(&["netns", "delete", name]));
        if let Err(error) = removed {
            result = Err(error);
        }
        let _ = fs::remove_dir_all(Path::new("/etc/netns").join(name));
    }
    remove_pipes();
    remove_all_but_logs(&layout::folder())?;
    result
}

/// Kamailio's module for Diameter makes named pipes, `/tmp/cdp_send_PID_PEER_TIME`, and leaves them
/// there. Removes those whose process has ended.
fn remove_pipes() {
    let Ok(entries) = fs::read_dir("/tmp") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("cdp_send_")) else {
            continue;
        };
        let process = rest.split('_').next().unwrap_or_default();
        let is_pipe = entry.file_type().is_ok_and(|kind| kind.is_fifo());
        if is_pipe && !Path::new("/proc").join(process).exists() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes everything but the parts' logs: subscribers, keys, configurations, traces (vectors of
/// authentication pass between the parts) and core dumps. The logs stay until the next start.
fn remove_all_but_logs(folder: &Path) -> anyhow::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    let what = || format!("cannot empty {}", folder.display());
    fs::set_permissions(folder, Permissions::from_mode(0o700)).with_context(what)?;
    for entry in fs::read_dir(folder).with_context(what)? {
        let entry = entry.with_context(what)?;
        let path = entry.path();
        if entry.file_type().with_context(what)?.is_dir() {
            fs::remove_dir_all(&path).with_context(what)?;
        } else if path.extension().is_none_or(|ending| ending != "log") {
            fs::remove_file(&path).with_context(what)?;
        }
    }
    Ok(())
}

fn end_processes(namespace: &str) -> anyhow::Result<()> {
    for signal in [Signal::TERM, Signal::KILL] {
        for pid in processes(namespace)?.into_iter().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
        let start = Instant::now();
        while signal == Signal::TERM && !processes(namespace)?.is_empty() && start.elapsed() < GRACE
        {
            thread::sleep(TICK);
        }
    }
    Ok(())
}

/// Processes whose network is this namespace.
fn processes(namespace: &str) -> anyhow::Result<Vec<i32>> {
    let text = ip(&["netns", "pids", namespace])?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

/// Our namespaces.
fn namespaces() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    // `ip netns list` prints names that cannot be told from what follows them.
    let entries = match fs::read_dir("/run/netns") {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(names),
        Err(error) => return Err(error).context("cannot read /run/netns"),
    };
    for entry in entries {
        let name = entry.context("cannot read /run/netns")?.file_name();
        if let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn make_core(folder: &Path) -> anyhow::Result<()> {
    ip(&["netns", "add", CORE])?;
    ip(&["-n", CORE, "link", "set", "lo", "up"])?;
    for part in PARTS.iter().filter(|part| !part.is_inner()) {
        ip(&["-n", CORE, "address", "add", &format!("{}/32", part.address()), "dev", "lo"])?;
    }
    // Media between terminals pass through the core.
    let mut sysctl = in_namespace(CORE);
    run(sysctl.args(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]))?;
    let names = Path::new("/etc/netns").join(CORE);
    fs::create_dir_all(&names)?;
    fs::copy(folder.join("hosts"), names.join("hosts"))
        .context("cannot write the names of the parts")?;
    Ok(())
}

fn make_terminal(number: usize, user: &str) -> anyhow::Result<()> {
    let namespace = terminal_namespace(user);
    let (own, core) = layout::terminal_addresses(number);
    let link = format!("ue{number}");
    ip(&["netns", "add", &namespace])?;
    ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
    ip(&[
        "-n", CORE, "link", "add", &link, "type", "veth", "peer", "name", "ue", "netns", &namespace,
    ])?;
    ip(&["-n", CORE, "address", "add", &format!("{core}/30"), "dev", &link])?;
    ip(&["-n", CORE, "link", "set", &link, "up"])?;
    ip(&["-n", &namespace, "address", "add", &format!("{own}/30"), "dev", "ue"])?;
    ip(&["-n", &namespace, "link", "set", "ue", "up"])?;
    ip(&["-n", &namespace, "route", "add", "default", "via", &core.to_string()])?;
    Ok(())
}

fn in_namespace(name: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name]);
    command
}

/// Starts a part that outlives this program. Its output goes to its log.
fn spawn(folder: &Path, name: &str, command: &mut Command) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.log"));
    let log = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let again = log.try_clone()?;
    command.stdin(Stdio::null()).stdout(again).stderr(log).process_group(0);
    let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    // `ip netns exec` becomes the program, so the number stays.
    fs::write(folder.join(format!("{name}.process")), child.id().to_string())?;
    Ok(())
}

/// Waits until a part of the core listens.
fn wait_for(address: Ipv4Addr, port: u16, name: &str) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let connected = crate::user::enter(CORE, || TcpStream::connect((address, port)))?;
        if connected.is_ok() {
            return Ok(());
        }
        ensure!(
            start.elapsed() < GRACE,
            "{name} does not listen; see {}/{name}.log",
            layout::folder().display()
        );
        thread::sleep(TICK);
    }
}

fn ip(arguments: &[&str]) -> anyhow::Result<String> {
    run(Command::new("ip").args(arguments))
}
