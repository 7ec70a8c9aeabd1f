//! The emulator with real programs. The tests need root, ping and iperf3. They print a line if
//! something is missing.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use weir::units::{Bitrate, DataSize, TimeDelta};
use weir_emu::{
    Change, Child, Emulation, Emulator, Error, Host, HostPlan, IperfLoad, LoadInterval,
    LoadReceiver, LoadReport, Plan, Property, Running, SAMPLE_INTERVAL, Signals, TrafficTotals,
    User,
};
use weir_net::cellular::{
    BearerChange, BearerConfig, BearerRef, Carrier, CellularConfig, Directions, FILTERED,
    Guarantee, PacketFilter, PortRange, Qci, Scheduler, Signal, Subnet, Terminal,
};
use weir_net::path::{AccessPlan, Attachment, Direction};
use weir_net::{
    Aqm, Capacity, CoDelConfig, Hop, LinkConfig, LossModel, QueueLimit, Schedule, Seed,
};

const DELAY: TimeDelta = TimeDelta::from_millis(25);
const CAPACITY: Bitrate = Bitrate::from_kbps(2_000);
/// Environment variable that is set in the copy of this test program that a test starts.
const COPY: &str = "WEIR_EMU_TEST_COPY";

fn link() -> LinkConfig {
    LinkConfig::unlimited(DELAY)
        .with_capacity(Capacity::Schedule(Schedule::constant(CAPACITY).unwrap()))
        .with_queue(QueueLimit::Time(TimeDelta::from_millis(150)))
}

/// Starts an emulator. Returns `None` and prints the reason if this machine cannot run it.
fn emulator(up: &LinkConfig, down: &LinkConfig) -> Option<Emulator> {
    emulator_of(&Plan::two_hosts(up, down))
}

fn emulator_of(plan: &Plan) -> Option<Emulator> {
    match Emulator::new(plan, Seed::new(1)) {
        Ok(emulator) => Some(emulator),
        Err(error @ (Error::NotRoot | Error::NoTun | Error::TunDenied)) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a program to its end. Returns `None` and prints a line if it is not installed.
fn run(host: &Host, program: &str, arguments: &[&str]) -> Option<(ExitStatus, String)> {
    let mut command = host.command(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = match Child::spawn(&mut command) {
        Ok(child) => child,
        Err(Error::Spawn { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            println!("skipped: {program} is not installed");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let mut output = String::new();
    child.inner().stdout.take().unwrap().read_to_string(&mut output).unwrap();
    Some((child.wait().unwrap(), output))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// Runs a command. Returns its exit code and the record of the run.
fn run_command(
    emulator: Emulator,
    command: &[&str],
    peer: Option<&[OsString]>,
) -> Result<(u8, Emulation), Error> {
    let mut running = Running::start(emulator, &words(command), peer, Stdio::inherit(), None)?;
    Ok((running.wait()?, running.stop()?))
}

/// Processes, except zombies, whose command line contains a text.
fn processes_with(text: &str) -> Vec<PathBuf> {
    let folders = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    folders
        .filter(|folder| {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(text)
        })
        .collect()
}

/// Waits until a condition is true. Fails after a minute.
fn wait_for(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Processes that are in a network namespace or have it open.
fn holders_of(namespace: &str) -> Vec<PathBuf> {
    let links_to = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.as_os_str() == namespace);
    let holds = |folder: &PathBuf| {
        let open = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        links_to(folder.join("ns/net")) || open.map(|entry| entry.path()).any(links_to)
    };
    let folders = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    folders.filter(holds).collect()
}

/// Waits up to 20 s until a condition is true. Returns whether it is.
fn eventually(condition: impl Fn() -> bool) -> bool {
    let give_up = Instant::now() + Duration::from_secs(20);
    while !condition() {
        if Instant::now() > give_up {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

fn namespace(host: &Host) -> String {
    let link = host.enter(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap();
    link.into_os_string().into_string().unwrap()
}

#[test]
fn no_ping_returns_before_the_path_allows() {
    let Some(mut emulator) = emulator(&link(), &link()) else { return };
    emulator.start();
    let arguments = ["-n", "-c", "10", "-i", "0.05", "10.45.0.2"];
    let Some((status, output)) = run(emulator.host(0), "ping", &arguments) else { return };
    assert!(status.success(), "{output}");
    // Delay and serialization of 84 bytes in each direction. The model is never early, so neither
    // is ping.
    let least = ((DELAY + DataSize::from_bytes(84) / CAPACITY) * 2).as_millis_f64();
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(times.len(), 10, "{output}");
    // ping prints three digits, so the resolution is 0.1 ms.
    assert!(times.iter().all(|time| *time >= least - 0.1), "{least} {times:?}");
    // A packet appears in the samples when its interval is over.
    std::thread::sleep(Duration::from_nanos(2 * SAMPLE_INTERVAL.as_nanos() as u64));
    let run = emulator.stop().unwrap();
    let hop = &run.hops[0];
    assert_eq!((hop.up.counters.delivered_packets, run.foreign_packets), (10, 0));
    assert_eq!((hop.down.counters.delivered_packets, run.refused_packets), (10, 0));
    assert!(run.lateness.count() == 20 && run.lateness.max() > Duration::ZERO);
    let sampled: u64 = hop.up.samples.iter().map(|sample| sample.traffic.delivered_packets).sum();
    assert_eq!(sampled, 10);
}

#[test]
fn nothing_comes_through_a_link_that_loses_everything() {
    let dead = link().with_loss(LossModel::Random(1.0));
    let Some(mut emulator) = emulator(&link(), &dead) else { return };
    emulator.start();
    let arguments = ["-n", "-c", "3", "-i", "0.05", "-W", "0.3", "10.45.0.2"];
    let Some((status, output)) = run(emulator.host(0), "ping", &arguments) else { return };
    assert!(!status.success() && output.contains(" 0 received"), "{output}");
    let run = emulator.stop().unwrap();
    assert_eq!(run.hops[0].up.counters.delivered_packets, 3);
    let down = run.hops[0].down.counters;
    assert_eq!((down.lost_packets, down.delivered_packets), (3, 0));
}

#[test]
fn tcp_never_gets_more_than_the_capacity() {
    let Some(mut emulator) = emulator(&link(), &link()) else { return };
    let mut server = emulator.host(1).command("iperf3");
    server.args(["-s", "--forceflush"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = match Child::spawn(&mut server) {
        Ok(server) => server,
        Err(error) => return println!("skipped: {error}"),
    };
    let mut lines = BufReader::new(server.inner().stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("listening")));
    emulator.start();
    let arguments = ["-c", "10.45.0.2", "-C", "cubic", "-t", "2", "-f", "k", "-i", "0"];
    let (status, output) = run(emulator.host(0), "iperf3", &arguments).unwrap();
    assert!(status.success(), "{output}");
    let line = output.lines().find(|line| line.contains("receiver")).unwrap();
    let before_unit = line.split(" Kbits/sec").next().unwrap();
    let kbps: f64 = before_unit.split_whitespace().last().unwrap().parse().unwrap();
    assert!(kbps > 0.0 && kbps <= CAPACITY.as_kbps_f64(), "{line}");
    let run = emulator.stop().unwrap();
    // A late thread also delivers packets that became due in the meantime. One packet may have
    // started in the interval before.
    let late = TimeDelta::from_secs_f64(run.lateness.max().as_secs_f64());
    let most = CAPACITY * (weir_emu::SAMPLE_INTERVAL + late) + DataSize::from_bytes(1500);
    for sample in &run.hops[0].up.samples {
        assert!(sample.traffic.delivered <= most, "{most} {sample:?}");
        assert!(sample.queuing_delay <= TimeDelta::from_millis(150), "{sample:?}");
    }
    assert!(run.hops[0].up.counters.dropped_packets > 0, "cubic fills a drop-tail queue");
}

#[test]
fn a_queue_that_marks_slows_tcp_down_without_losing_a_packet() {
    let aqm = Aqm::FqCoDel(CoDelConfig::default());
    let Some(mut emulator) = emulator(&link().with_aqm(aqm), &link()) else { return };
    let ask_for_ecn = || fs::write("/proc/sys/net/ipv4/tcp_ecn", "1");
    if let Err(error) = emulator.host(0).enter(ask_for_ecn).unwrap() {
        return println!("skipped: cannot switch on ECN: {error}");
    }
    let mut server = emulator.host(1).command("iperf3");
    server.args(["-s", "--forceflush"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = match Child::spawn(&mut server) {
        Ok(server) => server,
        Err(error) => return println!("skipped: {error}"),
    };
    let mut lines = BufReader::new(server.inner().stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("listening")));
    emulator.start();
    let arguments = ["-c", "10.45.0.2", "-C", "cubic", "-t", "3", "-f", "k", "-i", "0"];
    let (status, output) = run(emulator.host(0), "iperf3", &arguments).unwrap();
    assert!(status.success(), "{output}");
    let line = output.lines().find(|line| line.contains("sender")).unwrap();
    let retransmissions = line.trim_end_matches("sender").split_whitespace().last().unwrap();
    let counters = emulator.stop().unwrap().hops[0].up.counters;
    assert!(counters.marked_packets > 0, "{counters:?}");
    // No retransmissions, so the checksums of marked packets were correct.
    assert_eq!((retransmissions, counters.managed_packets, counters.dropped_packets), ("0", 0, 0));
}

#[test]
fn packets_to_anyone_but_the_other_host_are_dropped_and_counted() {
    let Some(mut emulator) = emulator(&link(), &link()) else { return };
    emulator.start();
    let arguments = ["-n", "-c", "1", "-W", "0.2", "192.0.2.1"];
    let Some((status, _)) = run(emulator.host(0), "ping", &arguments) else { return };
    assert!(!status.success());
    let run = emulator.stop().unwrap();
    assert_eq!((run.foreign_packets, run.hops[0].up.counters.offered_packets), (1, 0));
}

#[test]
fn a_hosts_loopback_is_its_own() {
    let Some(emulator) = emulator(&link(), &link()) else { return };
    let listener = emulator.host(0).bind_tcp((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let connect = || TcpStream::connect(address).is_ok();
    assert!(emulator.host(0).enter(connect).unwrap());
    assert!(!emulator.host(1).enter(connect).unwrap());
    assert!(!connect());
}

#[test]
fn a_command_finds_its_peer_and_its_exit_code_is_passed_on() {
    let Some(emulator) = emulator(&link(), &link()) else { return };
    let expected = env::current_dir().unwrap();
    let script = format!(
        "test $WEIR_HOST = 10.45.0.1 && test $WEIR_PEER = 10.45.0.2 && test \"$PWD\" = '{}' && \
         test $(readlink $WEIR_PEER_NETNS) != $(readlink /proc/self/ns/net) && exit 7",
        expected.display()
    );
    let (code, _) = run_command(emulator, &["sh", "-c", &script], None).unwrap();
    assert_eq!(code, 7);
}

#[test]
fn a_command_that_a_signal_ends_gives_the_code_that_shells_give() {
    let Some(emulator) = emulator(&link(), &link()) else { return };
    let (code, _) = run_command(emulator, &["sh", "-c", "kill -TERM $$"], None).unwrap();
    assert_eq!(code, 128 + 15);
}

#[test]
fn a_command_that_does_not_exist_is_named_in_one_line() {
    let Some(emulator) = emulator(&link(), &link()) else { return };
    let error = run_command(emulator, &["no-such-program"], None).unwrap_err().to_string();
    assert_eq!(error, "cannot run 'no-such-program': No such file or directory (os error 2)");
}

#[test]
fn a_peer_command_runs_at_the_far_end() {
    let Some(emulator) = emulator(&link(), &link()) else { return };
    let peer = words(&["sh", "-c", "ip -4 -o address show weir0 | grep -q 10.45.0.2 && touch $0"]);
    let made = env::temp_dir().join(format!("weir-emu-peer-{}", process::id()));
    let peer: Vec<OsString> = peer.into_iter().chain([made.clone().into()]).collect();
    // The peer never listens, so the command starts when the peer has ended.
    let ended = run_command(emulator, &["test", "-e", made.to_str().unwrap()], Some(&peer));
    let _ = fs::remove_file(&made);
    assert_eq!(ended.unwrap().0, 0);
}

/// Runs two loads over one queue and returns their reports; `None` without iperf3.
fn two_loads(emulator: &Emulator, load: &IperfLoad) -> Option<Vec<LoadReport>> {
    let receivers: Result<Vec<_>, Error> =
        [1, 3].iter().map(|to| LoadReceiver::start(emulator.host(*to), 5_201)).collect();
    let receivers = match receivers {
        Err(Error::Spawn { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            println!("skipped: iperf3 is not installed");
            return None;
        }
        receivers => receivers.unwrap(),
    };
    let start = |(receiver, from): (LoadReceiver, usize)| {
        receiver.load(emulator.host(from), load, 2).unwrap()
    };
    let running: Vec<_> = receivers.into_iter().zip([0, 2]).map(start).collect();
    Some(running.into_iter().map(|load| load.finish().unwrap()).collect())
}

#[test]
fn loads_of_hosts_on_one_side_share_the_queue_and_are_counted_apart() {
    let hop = Hop::new(link(), link());
    let hosts = [0, 1, 0, 1].map(HostPlan::at).to_vec();
    let plan = Plan {
        access: None,
        hops: vec![hop],
        own: Vec::new(),
        hosts,
        nats: Vec::new(),
        local_traffic: false,
    };
    let Some(mut emulator) = emulator_of(&plan) else { return };
    emulator.start();
    // The two loads together are 1.5 times the capacity.
    let packet = DataSize::from_bytes(1_228);
    let load = IperfLoad::Udp { rate: CAPACITY * 0.75, packet };
    let Some(reports) = two_loads(&emulator, &load) else { return };
    let run = emulator.stop().unwrap();
    let flows = [run.flow(0, 1).unwrap(), run.flow(2, 3).unwrap()];
    for (report, flow) in reports.iter().zip(flows) {
        let payload: u64 = report.received.iter().map(|interval| interval.payload.as_bytes()).sum();
        let packets = payload / 1_200;
        assert!(packets > 0 && report.received.len() > 1, "{report:?}");
        // The flow also includes iperf3's control connection.
        assert!(flow.total.delivered_packets >= packets);
        assert!(flow.total.delivered.as_bytes() >= packets * 1_228);
    }
    assert!(run.flow(0, 3).is_none() && run.flow(0, 2).is_none());
    // The phase of the two constant rates decides which one loses packets in the full queue. The
    // sums do not depend on it.
    let sum =
        |count: fn(&TrafficTotals) -> u64| flows.iter().map(|flow| count(&flow.total)).sum::<u64>();
    let queue = run.hops[0].up.counters;
    assert_eq!(sum(|traffic| traffic.delivered_packets), queue.delivered_packets);
    assert_eq!(sum(|traffic| traffic.dropped_packets), queue.dropped_packets);
}

#[test]
fn a_tcp_load_reports_both_ends() {
    let hosts = [0, 1, 0, 1].map(HostPlan::at).to_vec();
    let hop = Hop::new(link(), link());
    let plan = Plan {
        access: None,
        hops: vec![hop],
        own: Vec::new(),
        hosts,
        nats: Vec::new(),
        local_traffic: false,
    };
    let Some(mut emulator) = emulator_of(&plan) else { return };
    emulator.start();
    let load = IperfLoad::Tcp { congestion_control: "reno".into() };
    let Some(reports) = two_loads(&emulator, &load) else { return };
    for LoadReport { sent, received } in &reports {
        let sum = |all: &[LoadInterval]| all.iter().map(|i| i.payload.as_bytes()).sum::<u64>();
        assert!(sum(received) > 0 && sum(received) <= sum(sent), "{sent:?} {received:?}");
        assert!(sent.iter().all(|i| i.retransmitted_packets.is_some() && i.rtt.is_some()));
    }
    let load = IperfLoad::Tcp { congestion_control: "absent".into() };
    let receiver = LoadReceiver::start(emulator.host(1), 5_202).unwrap();
    let error = receiver.load(emulator.host(0), &load, 1).unwrap().finish().unwrap_err();
    assert!(error.to_string().starts_with("iperf3 failed: "), "{error}");
}

#[test]
fn a_change_by_hand_holds_at_once_and_is_in_the_record() {
    let Some(mut emulator) = emulator(&link(), &link()) else { return };
    emulator.start();
    let property = Property::Delay(TimeDelta::from_millis(100));
    emulator.handle().set(Change { hop: 0, direction: Some(Direction::Down), property });
    let arguments = ["-n", "-c", "3", "-i", "0.05", "10.45.0.2"];
    let Some((status, output)) = run(emulator.host(0), "ping", &arguments) else { return };
    assert!(status.success(), "{output}");
    let least = output.lines().find(|line| line.starts_with("rtt ")).unwrap();
    let least: f64 = least.split(" = ").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    assert!(least >= 125.0, "{output}");
    let shown = emulator.handle().status();
    assert!(shown.round_trip() >= TimeDelta::from_millis(125), "{shown:?}");
    let changes = emulator.stop().unwrap().changes;
    assert_eq!(changes.iter().map(|(_, change)| change.property).collect::<Vec<_>>(), [property]);
}

#[test]
fn bearers_of_a_cell_are_added_changed_and_removed_by_hand() {
    let rate = |kbps| Directions::both(Bitrate::from_kbps(kbps));
    let guarantee = |kbps| Guarantee { rate: rate(kbps), limit: rate(kbps) };
    let signal = Directions::both(Signal::constant(20.0));
    let mut cell = CellularConfig::new(Carrier::lte(25), vec![Terminal::new("phone", signal)]);
    cell.scheduler = Scheduler::QualityOfService;
    let phone = Some(Attachment { terminal: 1, class: FILTERED });
    let plan = Plan {
        access: Some(AccessPlan::new(cell)),
        hops: vec![Hop::new(link(), link())],
        hosts: vec![HostPlan { attachment: phone, ..HostPlan::at(0) }, HostPlan::at(1)],
        local_traffic: false,
        nats: Vec::new(),
        own: Vec::new(),
    };
    let Some(mut emulator) = emulator_of(&plan) else { return };
    emulator.start();
    let socket = |host: usize, port| {
        let address = (emulator.host(host).address(), port);
        emulator.host(host).enter(|| UdpSocket::bind(address)).unwrap().unwrap()
    };
    let (own, other, server) = (socket(0, 5_005), socket(0, 6_000), socket(1, 9));
    let handle = emulator.handle();
    // Two datagrams each way of the port of the filter, and one of another.
    let exchange = || {
        for socket in [&own, &own, &other] {
            socket.send_to(&[0; 100], server.local_addr().unwrap()).unwrap();
            let (_, back) = server.recv_from(&mut [0; 200]).unwrap();
            server.send_to(&[0; 100], back).unwrap();
            socket.recv_from(&mut [0; 200]).unwrap();
        }
    };
    // The emulator's thread takes a command before it takes the next sample.
    let change = |change: BearerChange| {
        let sent = handle.status().time;
        handle.set_access(change);
        wait_for(|| handle.status().time >= sent + SAMPLE_INTERVAL * 3);
    };
    let name = || BearerRef { terminal: 0, bearer: "video".into() };
    let mut video = BearerConfig::default();
    video.name = "video".into();
    video.qci = Qci::new(2).unwrap();
    video.guarantee = Some(guarantee(500));
    let remote = Subnet { address: emulator.host(1).address(), prefix: 32 };
    let (ports, remote_ports) =
        (PortRange { first: 5_000, last: 5_010 }, PortRange { first: 9, last: 9 });
    video.filters = vec![PacketFilter::Packets { protocol: 17, ports, remote, remote_ports }];
    exchange();
    change(BearerChange::Add { terminal: 0, bearer: video });
    exchange();
    change(BearerChange::Guarantee { bearer: name(), guarantee: Some(guarantee(1_000)) });
    exchange();
    change(BearerChange::Remove(name()));
    exchange();
    let end = handle.status().time;
    wait_for(|| handle.status().time >= end + SAMPLE_INTERVAL * 3);
    let run = emulator.stop().unwrap();
    assert_eq!(run.access_changes.len(), 3);
    let cellular = run.access.unwrap().cellular;
    let kinds: Vec<String> = cellular.events.iter().map(|it| it.kind.to_string()).collect();
    assert_eq!(kinds, ["added", "changed", "removed"]);
    // A datagram of 100 bytes has 128 with its headers.
    let delivered = |bearer: &str, direction: Direction| {
        let rows =
            cellular.rows.iter().filter(|row| row.bearer == bearer && row.direction == direction);
        rows.map(|row| row.delivered.as_bytes()).sum::<u64>() / 128
    };
    for &direction in Direction::BOTH {
        assert_eq!(
            (delivered("video", direction), delivered("default", direction)),
            (4, 8),
            "{direction:?}"
        );
    }
}

#[test]
fn nothing_is_left_when_the_emulator_is_dropped() {
    let Some(emulator) = emulator(&link(), &link()) else { return };
    let namespaces = [namespace(emulator.host(0)), namespace(emulator.host(1))];
    // One process in the child's process group, one that leaves the group, and one that also
    // detaches from its parent.
    let mark = format!("3600.{}1", process::id());
    let script = format!("sleep {mark} & setsid sleep {mark} & (setsid sleep {mark} &); wait");
    let mut command = emulator.host(1).command("sh");
    let _child = Child::spawn(command.args(["-c", &script])).unwrap();
    // The shell's own command line also contains the mark.
    assert!(eventually(|| processes_with(&mark).len() >= 4));
    assert!(namespaces.iter().all(|namespace| !holders_of(namespace).is_empty()));
    drop(command);
    drop(emulator);
    // Dropping waits for the processes on the hosts. Only the process outside that represents them
    // may end slightly later.
    assert!(eventually(|| processes_with(&mark).is_empty()));
    for namespace in &namespaces {
        assert!(eventually(|| holders_of(namespace).is_empty()), "{:?}", holders_of(namespace));
    }
}

/// Starts a copy of this program that runs one function. Returns its process and its lines of
/// output.
fn start_copy(function: &str) -> (process::Child, impl Iterator<Item = String>) {
    let mut copy = Command::new(env::current_exe().unwrap())
        .args(["--exact", function, "--nocapture", "--include-ignored"])
        .env(COPY, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(copy.stdout.take().unwrap()).lines();
    (copy, lines.map(|line| line.unwrap()))
}

#[test]
fn nothing_is_left_when_the_process_is_killed() {
    let Some(_) = emulator(&link(), &link()) else { return };
    let (mut copy, mut lines) = start_copy("hosts::copy_that_is_killed");
    let ready = lines.find(|line| line.starts_with("ready ")).unwrap();
    let namespaces: Vec<&str> = ready.split(' ').skip(1).collect();
    let mark = format!("3600.{}2", copy.id());
    assert!(eventually(|| processes_with(&mark).len() >= 3));
    copy.kill().unwrap();
    copy.wait().unwrap();
    assert!(eventually(|| processes_with(&mark).is_empty()), "{:?}", processes_with(&mark));
    for namespace in namespaces {
        assert!(eventually(|| holders_of(namespace).is_empty()), "{:?}", holders_of(namespace));
    }
}

#[test]
#[ignore = "no test: a part of nothing_is_left_when_the_process_is_killed"]
fn copy_that_is_killed() {
    if env::var_os(COPY).is_none() {
        return;
    }
    let emulator = emulator(&link(), &link()).unwrap();
    let mark = format!("3600.{}2", process::id());
    let script = format!("setsid sleep {mark} & (setsid sleep {mark} &); wait");
    let _child = Child::spawn(emulator.host(0).command("sh").args(["-c", &script])).unwrap();
    println!("ready {} {}", namespace(emulator.host(0)), namespace(emulator.host(1)));
    // If the input ends, the other test has failed.
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_signal_to_this_process_reaches_the_command_instead() {
    let Some(_) = emulator(&link(), &link()) else { return };
    let (mut copy, mut lines) = start_copy("hosts::copy_that_gets_a_signal");
    assert!(lines.any(|line| line == "ready"));
    assert!(eventually(|| catches_sigterm(copy.id())));
    let sent = Command::new("kill").args(["-TERM", &copy.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(copy.wait().unwrap().code(), Some(5));
}

fn catches_sigterm(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (15 - 1)) != 0
}

#[test]
#[ignore = "no test: a part of a_signal_to_this_process_reaches_the_command_instead"]
fn copy_that_gets_a_signal() {
    if env::var_os(COPY).is_none() {
        return;
    }
    let emulator = emulator(&link(), &link()).unwrap();
    let script = "trap 'exit 5' TERM; echo ready; for i in $(seq 1000); do sleep 0.02; done";
    let signals = Signals::listen().unwrap();
    let command = words(&["sh", "-c", script]);
    let running = Running::start(emulator, &command, None, Stdio::inherit(), Some(&signals));
    process::exit(running.unwrap().wait().unwrap().into());
}

#[test]
fn an_ordinary_user_on_a_host_has_no_rights_and_goes_with_the_emulator() {
    let Some(emulator) = emulator(&link(), &link()) else { return };
    let mut command = emulator.host(0).command_as(User::ordinary(), "sh");
    // Prints its user and capabilities, then waits, with a child that has left its session.
    let script = "id -u; grep CapEff /proc/self/status; setsid sleep 7331.5 & exec sleep 7331.25";
    command.args(["-c", script]).current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = Child::spawn(&mut command).unwrap();
    let mut output = BufReader::new(child.inner().stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let user = line();
    assert!(user.trim().parse::<u32>().unwrap() > 0, "{user}");
    assert_eq!(line(), "CapEff:\t0000000000000000\n");
    wait_for(|| ["7331.5", "7331.25"].iter().all(|it| !processes_with(it).is_empty()));
    drop(child);
    wait_for(|| processes_with("7331.25").is_empty());
    drop(emulator);
    wait_for(|| processes_with("7331.5").is_empty());
}
