//! Content and width of the tables of `weir list`, `run` and `compare`, and runs with `--resume`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).env_remove("COLUMNS").output().unwrap()
}

/// The output with `COLUMNS` set to 80.
fn weir_in_80_columns(args: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_weir")).args(args).env("COLUMNS", "80").output().unwrap();
    printed(output)
}

fn printed(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = weir(args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    error
}

fn assert_narrow(text: &str) {
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text}");
}

/// A scenario file with video, random loss, and this queue and loss.
fn scenario(folder: &Path, queue: &str, loss: &str) -> PathBuf {
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"10s\"\n\
         [network.up]\ncapacity = \"2Mbps\"\ndelay = \"20ms\"\nqueue = \"{queue}\"\n\
         loss = \"{loss}\"\n[[flow]]\nrepair = {{ nack = true }}\n"
    );
    fs::create_dir_all(folder).unwrap();
    let path = folder.join("mine.toml");
    fs::write(&path, text).unwrap();
    path
}

/// A scenario file with nothing but one TCP transfer.
fn scenario_without_media(folder: &Path) -> PathBuf {
    let text = fs::read_to_string(scenario(folder, "300ms", "3%")).unwrap();
    let (network, _) = text.split_once("[[flow]]").unwrap();
    let path = folder.join("tcp.toml");
    fs::write(&path, format!("{network}[[flow]]\nkind = \"tcp\"\n")).unwrap();
    path
}

#[test]
fn the_list_has_one_line_a_source_and_says_how_to_go_on() {
    let listed = printed(weir(&["list"]));
    assert_narrow(&listed);
    assert!(listed.lines().count() < 40, "{listed}");
    let all: Vec<Value> = serde_json::from_str(&printed(weir(&["list", "--json"]))).unwrap();
    let mut counted = 0;
    let sources = listed.lines().skip(1).take_while(|line| !line.is_empty());
    for (i, line) in sources.enumerate() {
        let (source, count) = (line.split(' ').next(), line.rsplit(' ').next());
        let count: usize = count.unwrap().parse().unwrap();
        counted += count;
        // Each list takes a second here: those of some sources, and of those with one scenario.
        if i % 8 != 0 && count > 1 {
            continue;
        }
        let own = printed(weir(&["list", source.unwrap()]));
        let singular = if count == 1 { "" } else { "s" };
        let head = format!("{}: {count} scenario{singular}\n", source.unwrap());
        assert!(own.starts_with(&head), "{own}");
    }
    assert_eq!(counted, all.len());
    // The commands of the last line work.
    let last = listed.lines().last().unwrap();
    let commands: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
    assert_eq!(commands.len(), 3, "{last}");
    for command in commands {
        printed(weir(&command.split(' ').skip(1).collect::<Vec<_>>()));
    }
}

#[test]
fn the_name_of_a_source_lists_that_source_alone() {
    let nat = printed(weir(&["list", "nat"]));
    assert!(nat.starts_with("nat: ") && !nat.contains("\n\n"), "{nat}");
    assert_eq!(nat, printed(weir(&["list", "--source", "nat"])));
    assert_eq!(nat, printed(weir(&["list", "NAT"])));
    assert!(refused(&["list", "lund", "--all"]).contains("--all"));
}

#[test]
fn a_run_without_controllers_takes_those_of_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(folder.path(), "300ms", "3%").display().to_string();
    let names = |args: &[&str]| {
        let text = printed(weir(&[&["run", path.as_str(), "--json"][..], args].concat()));
        let runs: Vec<Value> = serde_json::from_str(&text).unwrap();
        runs.iter().map(|run| run["controller"].as_str().unwrap().into()).collect::<Vec<String>>()
    };
    let five = ["gcc", "nada", "scream", "scream-v2", "sluice"];
    assert_eq!(names(&[]), five);
    assert_eq!(names(&["--controller", "library"]), five);
    let all = ["gcc", "gcc-draft", "gcc-2013", "nada", "scream", "scream-v2", "sluice"];
    assert_eq!(names(&["--controller", "all"]), all);
}

#[test]
fn a_scenario_without_media_runs_once_and_under_no_controller() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario_without_media(folder.path()).display().to_string();
    let out = folder.path().join("runs").display().to_string();
    for controller in ["all", "nada"] {
        let args = ["run", &path, "--controller", controller, "--seeds", "2", "--json"];
        let runs: Vec<Value> = serde_json::from_str(&printed(weir(&args))).unwrap();
        assert_eq!(runs.len(), 2, "one run a seed");
        assert!(runs.iter().all(|run| run["controller"] == "none"), "{runs:?}");
    }
    printed(weir(&["run", &path, "--out", &out]));
    let [of_scenario] = fs::read_dir(&out).unwrap().collect::<Vec<_>>().try_into().unwrap();
    let record = of_scenario.unwrap().path().join("none-sim-seed1");
    let text = fs::read_to_string(record.join("run.json")).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(run["subject"]["kind"], "none");
    assert_eq!(run["command"], format!("weir run {path} --seed 1"));
    // It is read again: by --resume, a report, and a comparison.
    let resumed = printed(weir(&["run", &path, "--out", &out, "--resume", "--json"]));
    let read: Vec<Value> = serde_json::from_str(&resumed).unwrap();
    assert_eq!((read.len(), &read[0]["controller"]), (1, &"none".into()));
    printed(weir(&["compare", &out, &out]));
}

#[test]
fn the_list_is_grouped_with_titles_and_at_most_80_columns_wide() {
    let all = printed(weir(&["list", "--all"]));
    assert_narrow(&all);
    assert!(all.starts_with("aalto: ") && all.contains("\n\nlund: "), "{all}");
    let titled = all.lines().find(|line| line.starts_with("  lund/rmcat-ns3 ")).unwrap();
    assert!(titled.contains("200 s  Capacity in steps"), "{titled}");
    let lund = printed(weir(&["list", "--source", "Lund"]));
    assert!(lund.starts_with("lund: ") && !lund.contains("rfc8867"), "{lund}");
    let some = printed(weir(&["list", "rfc8867/5.1*"]));
    assert!(some.contains("rfc8867/5.1/udp") && !some.contains("rfc8867/5.2"), "{some}");
    let word = printed(weir(&["list", "JITTER", "--source", "lund"]));
    assert!(word.contains("lund/no-jitter") && !word.contains("lund/rmcat-ns3"), "{word}");
    assert!(refused(&["list", "--source", "ludn"]).contains("did you mean lund?"));
    assert!(refused(&["list", "rmcat_ns3"]).contains("did you mean lund/rmcat-ns3"));
}

#[test]
fn the_list_as_json_keeps_its_shape() {
    let entries: Vec<Value> =
        serde_json::from_str(&printed(weir(&["list", "lund/*", "--json"]))).unwrap();
    assert!(entries.len() > 5);
    for key in ["scenario", "title", "source", "duration_s", "network", "flows", "sections"] {
        assert!(entries[0].get(key).is_some(), "{key}");
    }
}

#[test]
fn a_misspelt_controller_or_scenario_is_told_what_it_may_be() {
    let error = refused(&["run", "lund/rmcat-ns3", "--controller", "scream_v2"]);
    assert!(error.contains("did you mean 'scream-v2'?"), "{error}");
    let error = refused(&["run", "rmcat-ns3"]);
    assert!(error.contains("did you mean lund/rmcat-ns3"), "{error}");
    assert!(refused(&["run", "LUND/rmcat-ns3"]).contains("did you mean lund/rmcat-ns3"));
}

#[test]
fn a_table_has_intervals_and_freezes_and_fits_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(folder.path(), "300ms", "3%").display().to_string();
    let args = ["run", &path, "--seeds", "2", "--controller", "gcc,scream-v2"];
    let whole = printed(weir(&args));
    let head = whole.lines().next().unwrap();
    for column in ["scenario", "utilization", "RTT mean ms", "loss %", "freezes", "frozen s"] {
        assert!(head.contains(column), "{head}");
    }
    assert!(whole.lines().nth(1).unwrap().matches('±').count() == 7, "{whole}");
    let narrow = weir_in_80_columns(&args);
    let id_is_longer = path.len() + ", engine sim, seeds 2".len() > 80;
    let text: Vec<&str> =
        narrow.lines().filter(|line| !id_is_longer || !line.starts_with(&path)).collect();
    assert_narrow(&text.join("\n"));
    assert!(narrow.contains("freezes") && narrow.contains("not shown in 80 columns: utilization"));
    // Without video there are no freezes, and one run has no confidence interval.
    let plain = printed(weir(&["run", "lund/no-jitter", "--controller", "gcc"]));
    assert!(!plain.contains("freezes") && !plain.contains('±'), "{plain}");
    assert_narrow(&weir_in_80_columns(&["run", "lund/no-jitter", "--seeds", "2"]));
    assert_narrow(&weir_in_80_columns(&["check", "rfc8867/5.4", "--seeds", "2", "--list"]));
}

#[test]
fn a_run_that_goes_on_reads_what_is_there_and_makes_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(folder.path(), "300ms", "3%");
    let [file, out] = [path.clone(), folder.path().join("runs")].map(|p| p.display().to_string());
    let args = |seeds| ["run", &file, "--controller", "nada", "--seeds", seeds, "--out", &out];
    printed(weir(&args("2")));
    assert!(refused(&args("3")).contains("--resume"));
    // No run measures this value, so it can only have been read.
    let find = |name: &str| {
        let mut folders = fs::read_dir(&out).unwrap();
        let scenario = folders.next().unwrap().unwrap().path();
        scenario.join("nada-sim-seed1").join(name)
    };
    let summary = find("summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    let rate = "\"rate_mbps\": {\n        \"mean\": ";
    let (head, tail) = text.split_once(rate).unwrap();
    let rest = tail.split_once(',').unwrap().1;
    fs::write(&summary, format!("{head}{rate}4711.0,{rest}")).unwrap();
    let resumed = weir(&[&args("3")[..], &["--resume", "--json"]].concat());
    let runs: Vec<Value> = serde_json::from_str(&printed(resumed)).unwrap();
    let rates: Vec<f64> =
        runs.iter().map(|run| run["flows"][0]["rate_mbps"]["mean"].as_f64().unwrap()).collect();
    assert_eq!((rates.len(), rates[0]), (3, 4711.0));
    assert!(rates[1] < 2.0 && rates[2] < 2.0, "{rates:?}");
    // First another version, then another scenario text.
    let run = find("run.json");
    let text = fs::read_to_string(&run).unwrap();
    let version = format!("\"weir\": \"{}\"", env!("CARGO_PKG_VERSION"));
    fs::write(&run, text.replace(&version, "\"weir\": \"0.0.1\"")).unwrap();
    let again = [&args("3")[..], &["--resume"]].concat();
    assert!(refused(&again).contains("made by weir 0.0.1"));
    fs::write(&run, text).unwrap();
    scenario(folder.path(), "100ms", "3%");
    assert!(refused(&again).contains("another version of the scenario"));
}

#[test]
fn own_files_are_compared_by_name_and_what_changed_in_them_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let made = [("old", "1s", "3%"), ("new", "300ms", "1%")].map(|(name, queue, loss)| {
        let path = scenario(&folder.path().join(name), queue, loss).display().to_string();
        let out = folder.path().join(format!("{name}-runs")).display().to_string();
        let args = ["run", &path, "--controller", "gcc", "--seeds", "6", "--out", &out];
        printed(weir(&args));
        out
    });
    let [old, new] = &made;
    assert!(refused(&["compare", old, new]).contains("--match name"));
    let by_name = ["compare", "--match", "name", old, new];
    let text = printed(weir(&by_name));
    assert!(text.contains("mine.toml: network.up.queue \"1s\" -> \"300ms\"\n"), "{text}");
    assert_narrow(&weir_in_80_columns(&by_name));
    let rows: Vec<Value> =
        serde_json::from_str(&printed(weir(&[&by_name[..], &["--json"]].concat()))).unwrap();
    let of = |metric: &str| rows.iter().find(|row| row["metric"] == metric).unwrap();
    let loss = of("loss_ratio.mean");
    assert_eq!((&loss["verdict"], &loss["better"]), (&"better".into(), &"lower".into()));
    assert_eq!((&loss["test"], &loss["p"]), (&"signed-rank".into(), &0.03125.into()));
    assert!(loss["change_percent"].as_f64().unwrap() < -30.0, "{loss}");
    assert!(loss["before_confidence"].is_number() && loss["after_confidence"].is_number());
    assert_eq!((&loss["before_runs"], &loss["after_runs"]), (&6.into(), &6.into()));
    for metric in ["freeze_count", "freeze_duration_s", "frame_delay_ms.p95", "frame_rate"] {
        assert!(of(metric)["before"].is_number(), "{metric}");
    }
    let changed: Vec<&Value> = rows.iter().filter_map(|row| row.get("changed_key")).collect();
    assert_eq!(changed, ["network.up.loss", "network.up.queue"]);
    // A set compared with itself.
    let same = printed(weir(&["compare", old, old]));
    let verdicts = same.lines().skip(1).take_while(|line| !line.is_empty());
    assert!(verdicts.clone().count() > 10 && verdicts.clone().all(|line| line.contains("  =  ")));
    assert!(!same.contains("changed"), "{same}");
}

#[test]
fn too_few_seeds_have_no_verdict_and_chance_is_mentioned() {
    let folder = tempfile::tempdir().unwrap();
    let path = scenario(folder.path(), "1s", "3%").display().to_string();
    let made = ["1", "2", "3", "4", "5", "6", "7", "8"].map(|seed| {
        let half = if seed < "5" { "early" } else { "late" };
        let out = folder.path().join(half).display().to_string();
        printed(weir(&["run", &path, "--controller", "nada", "--seed", seed, "--out", &out]));
        out
    });
    let verdict = |before: &str, after: &str| {
        let rows = printed(weir(&["compare", before, after, "--json"]));
        let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
        let row = rows.into_iter().find(|row| row["metric"] == "loss_ratio.mean").unwrap();
        (row["verdict"].clone(), row["test"].clone())
    };
    // Four seeds and four other seeds of one scenario differ only by chance.
    assert_eq!(verdict(&made[0], &made[7]), ("chance".into(), "rank-sum".into()));
    let one = format!("{}/{}", made[0], "one");
    printed(weir(&["run", &path, "--controller", "nada", "--seed", "9", "--out", &one]));
    let only = printed(weir(&["compare", &one, &made[7]]));
    assert!(only.lines().nth(1).unwrap().contains("  ?  "), "{only}");
}

// Four equal runs are one sample: a test would call any difference significant.
#[test]
fn runs_without_chance_are_compared_without_a_p_value() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let runs = ["lund/rmcat-ns3", "--controller", "gcc,sluice", "--seeds", "4", "--out", &out];
    printed(weir(&[&["run"], &runs[..]].concat()));
    let by = ["compare", "--by", "controller", "gcc,sluice", &out];
    let rows: Vec<Value> =
        serde_json::from_str(&printed(weir(&[&by[..], &["--json"]].concat()))).unwrap();
    let used = rows.iter().find(|row| row["metric"] == "utilization").unwrap();
    assert_eq!((&used["verdict"], &used["p"]), (&"better".into(), &Value::Null));
    assert_eq!((&used["before_runs"], &used["has_chance"]), (&4.into(), &false.into()));
    assert!(printed(weir(&by)).contains("better, always"));
}
