//! The command line as a user meets it: the contract of `--json`, equal bytes, and bad input.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir::Algorithm;

fn weir() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weir"))
}

fn run(args: &[&str]) -> Output {
    weir().args(args).output().expect("the program starts")
}

/// Bad input: exit 2, nothing on stdout, one line on stderr, which is returned.
fn refused(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    stderr
}

fn json(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// A scenario file with one line replaced.
fn scenario_with(line: &str) -> (tempfile::TempDir, String) {
    const GOOD: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"2s\"\n\
        [network.up]\ncapacity = \"2Mbps\"\ndelay = \"5ms\"\n[[flow]]\n";
    let key = line.split(' ').next().unwrap();
    let text: String = GOOD
        .lines()
        .map(|old| if old.starts_with(&format!("{key} ")) { line } else { old })
        .flat_map(|line| [line, "\n"])
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn json_has_the_contracts_keys_for_each_scenario_controller_and_seed() {
    let runs = json(&["run", "lund/sudden-reduction", "rfc8867/5.1", "--seeds", "2", "--json"]);
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), 2 * Algorithm::all().len() * 2);
    for key in [
        "schema",
        "scenario",
        "controller",
        "engine",
        "seed",
        "duration_s",
        "link",
        "flows",
        "paper",
        "expect",
    ] {
        assert!(runs[0].get(key).is_some(), "{key}");
    }
    assert_eq!(runs[1]["seed"], "2");
    assert_eq!(runs[0]["engine"], "sim");
    let flow = &runs[0]["flows"][0];
    for key in [
        "flow",
        "kind",
        "utilization",
        "rate_mbps",
        "queuing_delay_ms",
        "rtt_ms",
        "loss_ratio",
        "responsiveness_s",
        "convergence_s",
        "sections",
    ] {
        assert!(flow.get(key).is_some(), "{key}");
    }
    for key in ["mean", "p25", "p50", "p90", "p95", "max"] {
        assert!(flow["queuing_delay_ms"][key].is_number(), "{key}");
        assert!(flow["rtt_ms"][key].is_number(), "{key}");
    }
    assert!(flow["sections"][0]["utilization"].is_number());
}

#[test]
fn an_unlimited_link_gives_null_and_not_a_number_made_up() {
    let (_folder, path) = scenario_with("capacity = \"2Mbps\"");
    let text = fs::read_to_string(&path).unwrap().replace("capacity = \"2Mbps\"\n", "");
    fs::write(&path, text).unwrap();
    let runs = json(&["run", &path, "--controller", "nada", "--json"]);
    assert!(runs[0]["link"]["utilization"].is_null());
    assert!(runs[0]["flows"][0]["utilization"].is_null());
}

#[test]
fn the_bytes_of_records_do_not_depend_on_the_number_of_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let made = ["1", "2"].map(|jobs| {
        let out = folder.path().join(jobs);
        let path = out.display().to_string();
        let args = ["run", "lund/sweden-china", "--seeds", "3", "--jobs", jobs, "--out", &path];
        assert!(run(&args).status.success());
        let strip = |(name, bytes): (String, Vec<u8>)| (name.replace(&path, ""), bytes);
        files(&out).into_iter().map(strip).collect::<Vec<_>>()
    });
    assert_eq!(made[0].len(), Algorithm::all().len() * 3 * 4);
    assert_eq!(made[0], made[1]);
}

#[test]
fn a_record_is_reported_and_compared_and_the_report_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs").display().to_string();
    assert!(run(&["run", "demo/first-call", "--out", &out]).status.success());
    let output = run(&["compare", &out, &out, "--json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows.as_array().unwrap().iter().all(|row| row["change"] == 0.0));
    let report = folder.path().join("report.html");
    let output = run(&["report", &out, "-o", &report.display().to_string()]);
    if output.status.success() {
        let html = fs::read_to_string(report).unwrap();
        assert!(html.contains("demo/first-call"));
        assert!(!html.contains("src=\"http") && !html.contains("href=\"http"));
    } else {
        // Built without the viewer: the error says how to build it.
        assert!(String::from_utf8(output.stderr).unwrap().contains("make web"));
        println!("skipped: the report, because this weir was built without its viewer");
    }
}

#[test]
fn a_call_file_that_does_not_parse_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs").display().to_string();
    let (_place, scenario) = scenario_with("duration = \"2s\"");
    assert!(run(&["run", &scenario, "--controller", "nada", "--out", &out]).status.success());
    let record = weir_record::find(Path::new(&out)).unwrap().remove(0);
    fs::write(record.join("call.json"), "{ \"disturbed\": true, \"calls\": [").unwrap();
    let report = folder.path().join("report.html").display().to_string();
    let told = refused(&["report", &out, "-o", &report]);
    assert!(told.contains("call.json: EOF while parsing") || told.contains("make web"), "{told}");
    let told = refused(&["compare", &out, &out]);
    assert!(told.contains("call.json: EOF while parsing"), "{told}");
    assert!(!Path::new(&report).exists());
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let mut child = weir()
        .args(["list", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn unknown_names_are_refused_with_what_exists() {
    assert!(refused(&["run", "lund/rmcat-ns4"]).contains("did you mean lund/rmcat-ns3"));
    assert!(refused(&["run", "nothing/*"]).contains("no scenario"));
    let error = refused(&["run", "lund/rmcat-ns3", "--controller", "bbr"]);
    for name in ["gcc-draft", "gcc-2013", "nada", "scream"] {
        assert!(error.contains(&format!(" {name}")), "{error}");
    }
    assert!(refused(&["run", "absent.toml"]).contains("absent.toml"));
    assert!(refused(&["report", "absent"]).contains("absent"));
    assert!(refused(&["compare", "absent", "absent"]).contains("absent"));
    assert!(refused(&["link", "absent", "--", "true"]).contains("no scenario"));
    assert!(refused(&["call", "absent"]).contains("no scenario"));
    assert!(refused(&["check", "absent"]).contains("no scenario"));
}

#[test]
fn bad_scenario_files_are_refused_with_their_line() {
    let cases = [
        ("capacity = \"-2Mbps\"", "6: "),
        (
            "capacity = \"0Mbps\"",
            "6: network.up.capacity: a capacity of 0 for ever carries nothing",
        ),
        ("capacity = \"2Mb\"", "Mbps"),
        ("capacity = [[\"0s\", \"0bps\"], [\"1s\", \"0kbps\"]]", "for an outage write steps"),
        ("delay = \"5\"", "7: "),
        ("duration = \"0s\"", "above zero"),
        ("capacity = { trace = \"absent.mahi\" }", "absent.mahi"),
    ];
    for (line, expected) in cases {
        let (_folder, path) = scenario_with(line);
        let error = refused(&["run", &path]);
        assert!(error.contains(expected), "{line}: {error}");
    }
    let (_folder, path) = scenario_with("duration = \"2s\"\nlength = \"3s\"");
    assert!(refused(&["run", &path]).contains("length"));
}

#[test]
fn a_trace_with_text_in_it_is_refused_with_its_line() {
    let (folder, path) = scenario_with("capacity = { trace = \"bad.mahi\" }");
    fs::write(folder.path().join("bad.mahi"), "1\n2\nhello\n").unwrap();
    let error = refused(&["run", &path]);
    assert!(error.contains("bad.mahi") && error.contains("line 3"), "{error}");
}

#[test]
fn an_output_folder_that_holds_the_run_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let args = ["run", "lund/no-jitter", "--controller", "nada", "--out", &out];
    assert!(run(&args).status.success());
    let before = files(folder.path());
    assert!(refused(&args).contains("exists already"));
    let more = ["run", "lund/no-jitter", "--seeds", "2", "--controller", "nada", "--out", &out];
    assert!(refused(&more).contains("exists already"));
    assert_eq!(files(folder.path()), before);
}

#[test]
fn numbers_that_make_no_run_are_refused() {
    assert!(refused(&["run", "lund/no-jitter", "--seeds", "0"]).contains("1 or more"));
    assert!(refused(&["run", "lund/no-jitter", "--jobs", "0"]).contains("1 or more"));
    assert!(refused(&["research", "bench", "--repeat", "0"]).contains("from 1"));
    // So many runs would fill the memory before the first one starts.
    let most = u64::MAX.to_string();
    assert!(refused(&["run", "lund/no-jitter", "--seeds", &most]).contains("at most 1000000"));
    assert!(
        refused(&["call", "lund/no-jitter", "--iterations", &most]).contains("at most 1000000")
    );
    assert!(refused(&["research", "bench", "--repeat", &most]).contains("to 1000"));
}

#[test]
fn a_command_line_with_a_mistake_is_answered_in_one_line_with_the_usage() {
    assert_eq!(
        refused(&["run"]),
        "weir: the following required arguments were not provided: <SCENARIO>...; \
         Usage: weir run <SCENARIO>...; see --help\n"
    );
    assert!(refused(&["frob"]).contains("unrecognized subcommand 'frob'"));
    assert!(refused(&["run", "lund/no-jitter", "--sed", "1"]).contains("'--seed'"));
    assert!(refused(&["run", "lund/no-jitter", "--seed", "-1"]).contains("'-1' for '--seed <K>'"));
    assert!(refused(&["run", "lund/no-jitter", "--seeds", "x"]).contains("'x' for '--seeds <N>'"));
    assert!(refused(&["research", "validate", "phone"]).contains("tcp, wifi, cellular, emulator"));
}

#[test]
fn help_fits_one_screen_and_commands_of_research_stand_apart() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.lines().count() <= 40, "{help}");
    let research = String::from_utf8(run(&["research", "--help"]).stdout).unwrap();
    for name in ["ablate", "generate", "score", "bench", "validate"] {
        let shows = |text: &str| text.lines().any(|line| line.trim_start().starts_with(name));
        assert!(!shows(&help) && shows(&research), "{name}: {help}");
    }
}

#[test]
fn a_command_of_research_has_no_second_name() {
    for name in ["ablate", "generate", "score", "bench", "validate"] {
        let error = refused(&[name, "--help"]);
        assert!(error.ends_with(&format!("it is `weir research {name}`\n")), "{error}");
    }
}

#[test]
fn help_that_was_asked_for_is_a_result() {
    for args in [&["--help"][..], &["run", "--help"], &["help", "call"], &["--version"]] {
        let output = run(args);
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}");
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn an_error_of_the_system_is_printed_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let error = refused(&["report", &format!("{path}/absent")]);
    assert_eq!(error.matches("No such file").count(), 1, "{error}");
    let occupied = format!("{path}/file");
    fs::write(&occupied, "").unwrap();
    let error = refused(&["run", "lund/no-jitter", "--controller", "nada", "--out", &occupied]);
    assert_eq!(error.matches("os error").count(), 1, "{error}");
}

#[test]
fn more_jobs_than_runs_are_as_many_as_the_runs() {
    let most = usize::MAX.to_string();
    let args = ["run", "lund/no-jitter", "--controller", "nada", "--jobs", &most];
    assert!(run(&args).status.success());
}

#[test]
fn a_link_is_one_scenario() {
    let error = refused(&["link", "lund/no-jitter*", "--", "true"]);
    assert!(error.contains("3 scenarios: name one of them, such as lund/no-jitter"), "{error}");
}

#[test]
fn a_gate_passes_fails_or_cannot_run() {
    let check = |limit: &str| {
        let (_folder, path) = scenario_with("duration = \"2s\"");
        let text = fs::read_to_string(&path).unwrap();
        let expect = format!("[[expect]]\ntext = \"e\"\nmetric = \"utilization\"\n{limit}\n");
        fs::write(&path, text + &expect).unwrap();
        let junit = format!("{path}.xml");
        let output = run(&["check", &path, "--junit", &junit]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.contains(&format!("\nreplay: weir run {path} ")), !output.status.success());
        (output.status.code(), fs::read_to_string(junit).unwrap())
    };
    let (code, junit) = check("above = 0.01");
    assert_eq!(code, Some(0));
    assert!(junit.contains("failures=\"0\""));
    let (code, junit) = check("above = 0.99");
    assert_eq!(code, Some(1));
    assert!(junit.contains("replay: weir run"));
    let known = "[[known_miss]]\nexpect = \"e\"\nwhy = \"w\"\n\
                 controllers = [\"gcc-draft\", \"nada\", \"scream\"]\n";
    let only = ["--controller", "gcc-draft,nada,scream"];
    let known_miss = |limit: &str| {
        let (_folder, path) = scenario_with("duration = \"2s\"");
        let text = fs::read_to_string(&path).unwrap();
        let expect = format!("[[expect]]\ntext = \"e\"\nmetric = \"utilization\"\n{limit}\n");
        fs::write(&path, text + &expect + known).unwrap();
        let output = run(&[&["check", &path][..], &only].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = known_miss("above = 0.99");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("known miss  e (w)") && text.contains("3 known misses,"), "{text}");
    let (code, text) = known_miss("above = 0.01");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("KNOWN MISS HOLDS"), "{text}");
    let (_folder, path) = scenario_with("duration = \"2s\"");
    assert!(refused(&["check", &path]).contains("[[expect]]"));
}

#[test]
fn a_missing_browser_is_named() {
    let output = weir()
        .args(["call", "demo/first-call"])
        .env("WEIR_BROWSER", "/absent/browser")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("/absent/browser"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn people_are_told_what_cannot_be_served() {
    let refusal = refused(&["call", "aalto/unconstrained", "--serve"]);
    assert!(refusal.contains("without one"), "{refusal}");
    for address in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "239.255.255.250", "everywhere"] {
        let refusal = refused(&["call", "demo/first-call", &format!("--serve={address}")]);
        assert!(refusal.contains("`ip address`") && refusal.contains("--serve=all"), "{refusal}");
    }
    if !am_root() {
        return println!("skipped: needs root for network namespaces");
    }
    // An address of a documentation network, which no machine has.
    let refusal = refused(&["call", "demo/first-call", "--serve=192.0.2.1"]);
    let is_told = refusal.contains("this machine has no address 192.0.2.1");
    assert!(is_told || refusal.contains("/dev/net/tun"), "{refusal}");
    // Most machines have an interface with a broadcast address.
    let own = weir_emu::own_addresses().unwrap();
    let Some(broadcast) = own.iter().find_map(|own| own.broadcast) else {
        return println!("skipped: no interface of this machine has a broadcast address");
    };
    let refusal = refused(&["call", "demo/first-call", &format!("--serve={broadcast}")]);
    let is_told = refusal.contains("broadcast address") && refusal.contains("--serve=all");
    assert!(is_told || refusal.contains("/dev/net/tun"), "{refusal}");
}

#[test]
fn an_interrupted_run_leaves_no_half_made_record() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let mut child = weir()
        .args(["run", "lund/*", "--seeds", "2000", "--out", &out])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_run = |entry: fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
    wait_for(|| fs::read_dir(folder.path()).unwrap().flatten().any(is_run));
    signal(child.id(), libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let below = |name: String| name.replace(&out, "");
    let names: Vec<String> =
        files(folder.path()).into_iter().map(|(name, _)| below(name)).collect();
    assert!(names.iter().all(|name| !name.contains("/.")), "a half-made record is left");
    let count = |file: &str| names.iter().filter(|name| name.ends_with(file)).count();
    assert_eq!(count("run.json"), count("summary.json"));
    assert!(count("run.json") > 0);
}

#[test]
fn a_long_run_is_interrupted_within_itself() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("long.toml").display().to_string();
    let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"24h\"\n\
                [network]\nkind = \"wifi\"\n[network.station.sta]\ncount = 50\nrate = 7\n\
                load = [{ kind = \"saturated\", packet = \"1500B\" }]\n\
                [[flow]]\nstation = \"sta\"\n";
    fs::write(&long, text).unwrap();
    let out = folder.path().join("runs");
    let path = out.display().to_string();
    // With one job, the first record exists while the second run is in progress: a day in a full
    // cell.
    let args = ["run", "lund/no-jitter", &long, "--controller", "nada", "--jobs", "1"];
    let mut child = weir().args(args).args(["--out", &path]).stderr(Stdio::null()).spawn().unwrap();
    wait_for(|| out.join("lund__no-jitter/nada-sim-seed1").exists());
    signal(child.id(), libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn signal(process: u32, signal: libc::c_int) {
    // The process is a child that has not been waited for, so the number is still its own.
    let process = Pid::from_raw(process.cast_signed()).unwrap();
    kill_process(process, Signal::from_named_raw(signal).unwrap()).unwrap();
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
fn a_real_call_is_compared_with_a_simulated_run_section_by_section() {
    let folder = tempfile::tempdir().unwrap();
    let [calls, runs] = ["calls", "runs"].map(|name| folder.path().join(name));
    for out in [&calls, &runs] {
        let out = out.display().to_string();
        let args = ["run", "delft/wired-2/rtt50", "--controller", "gcc", "--out", &out];
        assert!(run(&args).status.success());
    }
    // No browser is needed: the engine is what the record says.
    let record = files(&calls).into_iter().find(|(path, _)| path.ends_with("run.json")).unwrap();
    let text = String::from_utf8(record.1).unwrap();
    let text = text.replace("\"engine\": \"sim\"", "\"engine\": \"call\"");
    fs::write(record.0, text).unwrap();
    let [calls, runs] = [calls, runs].map(|path| path.display().to_string());
    let rows = json(&["compare", &calls, &runs, "--json"]);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 5, "four sections and all of it");
    for row in rows {
        assert_eq!(row["rate_mbps"]["error"], 0.0);
        assert_eq!(row["queuing_delay_p95_ms"]["pass"], true);
    }
    let output = run(&["compare", &calls, &runs]);
    assert!(String::from_utf8(output.stdout).unwrap().contains(" meet their goal"));
}

#[test]
fn a_sweep_without_its_python_package_says_where_to_get_it() {
    let asked = |python: &str| {
        let mut command = weir();
        command.env("WEIR_PYTHON", python).args(["sweep", "x.toml", "--out", "y"]);
        let output = command.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(asked("/nowhere/python").contains("needs Python: /nowhere/python"));
    assert!(asked("/bin/false").contains("needs Python 3.11 or later"));
}

#[test]
fn a_trace_is_described_converted_and_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drive.csv");
    fs::write(&path, "t;run;DL\n0;1;8000\n1;1;4000\n0;2;9000\n").unwrap();
    let path = path.to_str().unwrap();
    let keys = ["column=DL", "unit=kbps", "time=t", "where.run=1"];
    let told = run(&[&["trace", path], &keys[..]].concat());
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains("2.0 s; mean 6.000 Mbit/s"), "{text}");
    let line = format!(
        "capacity = {{ trace = \"{path}\", column = \"DL\", unit = \"kbps\", time = \"t\", \
         where.\"run\" = 1 }}"
    );
    assert!(text.contains(&line), "{text}");
    let lines = run(&[&["trace", path, "--to", "mahimahi"], &keys[..]].concat());
    assert_eq!(String::from_utf8(lines.stdout).unwrap().lines().count(), 1_000);
    let refused = run(&["trace", path, "column=DL", "unit=kbps", "time=t"]);
    assert_eq!(refused.status.code(), Some(2));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(error.ends_with("until there, to = \"1s\" is in order\n"), "{error}");
    assert_eq!(error.lines().count(), 1);
    // The file is named once, and no line of a scenario that nobody wrote.
    let error = String::from_utf8(run(&["trace", path, "units=kbps"]).stderr).unwrap();
    assert_eq!(error, format!("weir: {path}: unknown key 'units'; did you mean 'unit'?\n"));
    let error = String::from_utf8(run(&["trace", path]).stderr).unwrap();
    assert!(error.starts_with(&format!("weir: {path}: line 1: no known table; ")), "{error}");
    let error = String::from_utf8(run(&["trace", "absent.up"]).stderr).unwrap();
    assert!(error.starts_with("weir: there is no trace file and no scenario 'absent.up'"));
}
