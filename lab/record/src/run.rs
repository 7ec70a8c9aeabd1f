//! Identity of a run: scenario, controller, engine and seed.

use std::path::{Path, PathBuf};

pub use crate::engine::Engine;
use crate::shell::CommandLine;
use crate::subject::{StackRole, Subject};

/// Longest name of a sender in a folder's name, in characters. Longer ones end in a hash.
const NAME_MAX: usize = 40;
/// Longest name of a scenario. The ends of paths differ, so their beginnings are cut off.
const SCENARIO_MAX: usize = 60;

/// Firefox as the sender, as the command names it.
const FIREFOX: &str = "firefox";

/// Identity of a run: the first members of `run.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Scenario id.
    pub scenario: String,
    /// What the run was made with.
    pub subject: Subject,
    /// How the run was made.
    pub engine: Engine,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl RunInfo {
    /// The command that repeats this run.
    pub fn command(&self) -> String {
        self.command_with("--seed", &self.seed.to_string())
    }

    /// The command that repeats runs like this one; the option selects their seeds.
    pub fn command_with(&self, option: &str, seeds: &str) -> String {
        let Self { scenario, subject, engine, .. } = self;
        let call = CommandLine::new("weir call").name(scenario);
        let line = match subject {
            Subject::Analyzed { dump, .. } => CommandLine::new("weir analyze").name(dump),
            Subject::Application { options } => call.option(option, seeds).shell(options),
            // Firefox sends, whatever browsers the scenario names.
            Subject::Browser { name, .. } if name == FIREFOX => {
                call.option("--controller", name).option(option, seeds)
            }
            Subject::Browser { .. } => call.option(option, seeds),
            Subject::Stack { name, driver, role } => {
                let mut line = call.option(option, seeds).option("--stack", name);
                if *role == StackRole::Receiver {
                    line = line.option("--role", role.name());
                }
                match driver {
                    Some(driver) => line.shell_option("--driver", driver),
                    None => line,
                }
            }
            Subject::Command { command, peer } => {
                let line = CommandLine::new("weir link").name(scenario).option(option, seeds);
                match peer {
                    Some(peer) => line.shell_option("--peer", peer).flag("--").shell(command),
                    None => line.flag("--").shell(command),
                }
            }
            Subject::NoController => {
                CommandLine::new("weir run").name(scenario).option(option, seeds)
            }
            Subject::Controller { name } => {
                let words = if *engine == Engine::Call { "weir call" } else { "weir run" };
                let line = CommandLine::new(words).name(scenario);
                line.option("--controller", name).option(option, seeds)
            }
        };
        line.to_string()
    }

    /// Path of the run's folder below the output folder.
    pub fn folder(&self) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let path = self.scenario.trim_start_matches("./");
        let mut scenario: String = path.replace('/', "__").chars().map(safe).collect();
        if scenario.len() > SCENARIO_MAX {
            let end = &scenario[scenario.len() - SCENARIO_MAX..];
            scenario = format!("{:08x}_{}", hash(path), end.trim_start_matches('_'));
        }
        let label = match &self.subject {
            // Its options are a whole command line, which nobody reads in a folder's name.
            Subject::Application { options } => format!("app_{:08x}", hash(options)),
            subject => subject.to_string(),
        };
        let mut controller: String = label.chars().map(safe).take(NAME_MAX).collect();
        if label.chars().count() > NAME_MAX {
            // Long commands may differ in what is cut off.
            controller += &format!("_{:08x}", hash(&label));
        }
        let run = format!("{controller}-{}-seed{}", self.engine.as_str(), self.seed);
        Path::new(scenario.trim_start_matches('.')).join(run.trim_start_matches(['.', '-']))
    }
}

/// FNV-1a with 32 bits: short, and the same on every machine.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(engine: Engine, label: &str) -> RunInfo {
        let subject = Subject::of_label(engine, label);
        RunInfo { scenario: "demo/first-call".into(), subject, engine, seed: 7 }
    }

    fn link(command: &str) -> RunInfo {
        of(Engine::Link, command)
    }

    #[test]
    fn a_call_under_a_controller_of_ours_names_it() {
        let call = |label: &str| of(Engine::Call, label).command();
        assert_eq!(call("nada"), "weir call demo/first-call --controller nada --seed 7");
        assert_eq!(call("chromium"), "weir call demo/first-call --seed 7");
        assert_eq!(call("firefox"), "weir call demo/first-call --controller firefox --seed 7");
    }

    #[test]
    fn a_stack_that_is_a_command_names_it() {
        let (driver, role) = (Some("'./driver x'".into()), StackRole::Sender);
        let subject = Subject::Stack { name: "mine".into(), driver, role };
        let info = RunInfo { subject, ..of(Engine::Call, "gcc") };
        let command = "weir call demo/first-call --seed 7 --stack mine --driver './driver x'";
        assert_eq!(info.command(), command);
        assert_eq!(info.folder().display().to_string(), "demo__first-call/stack_mine-call-seed7");
    }

    #[test]
    fn the_run_of_a_command_says_how_to_make_it_again() {
        let ping = link("ping -c 3 10.45.0.2").command();
        assert_eq!(ping, "weir link demo/first-call --seed 7 -- ping -c 3 10.45.0.2");
        let iperf3 = link("--peer 'iperf3 -s -1' -- iperf3 -c 10.45.0.2").command();
        assert_eq!(
            iperf3,
            "weir link demo/first-call --seed 7 --peer 'iperf3 -s -1' -- iperf3 -c 10.45.0.2"
        );
    }

    #[test]
    fn the_folder_of_a_command_has_a_plain_name() {
        let folder = |command: &str| link(command).folder().display().to_string();
        let ping = "demo__first-call/ping_-c_3_10.45.0.2-link-seed7";
        assert_eq!(folder("ping -c 3 10.45.0.2"), ping);
        assert_eq!(folder("../../x\n"), "demo__first-call/_.._x_-link-seed7");
        assert!(folder(&"x".repeat(1_000)).len() < 150);
        let [one, other] = ["a", "b"].map(|end| folder(&("x".repeat(1_000) + end)));
        assert_ne!(one, other);
    }

    #[test]
    fn folders_have_short_names_that_differ() {
        let folder = |scenario: &str, options: &str| {
            let subject = Subject::Application { options: options.into() };
            let info = RunInfo { scenario: scenario.into(), subject, ..of(Engine::Call, "gcc") };
            info.folder().display().to_string()
        };
        let options = "--app 'http://{server}:9000/' --join join.mjs --serve-app 'node server.mjs'";
        let own = folder("./network/release.toml", options);
        assert!(own.starts_with("network__release.toml/app_"), "{own}");
        assert!(own.len() <= 50, "{own}");
        assert_ne!(own, folder("network/release.toml", &format!("{options} --participants 3")));
        let deep =
            |name: &str| folder(&format!("/srv/ci/{}/{name}", "builds/".repeat(20)), "--app x");
        let [one, other] = [deep("one/release.toml"), deep("other/release.toml")];
        assert!(one.len() < 110 && one.contains("release.toml/app_"), "{one}");
        assert_ne!(one, other);
        let [one, other] =
            ["a", "b"].map(|root| folder(&format!("/{root}/{}", "x".repeat(99)), "y"));
        assert_ne!(one, other);
    }

    /// Names that other people's records may hold.
    const NAMES: [&str; 12] = [
        "--out=written",
        "-x",
        "a; touch written",
        "$(touch written)",
        "`touch written`",
        "it's; touch written #",
        "two\nlines; touch written",
        "\u{1b}[201~touch written",
        "a && b | c > written",
        "*",
        "~",
        "=ls",
    ];

    /// What a shell gives to `weir` for this line. `None` without a shell.
    fn taken(line: &str) -> Option<Vec<String>> {
        let script = format!("weir() {{ printf '%s\\0' \"$@\"; }}\n{line}\n");
        let mut bash = std::process::Command::new("bash");
        let folder = tempfile::tempdir().unwrap();
        bash.args(["-c", &script]).current_dir(folder.path()).env("LC_ALL", "C.UTF-8");
        let output = bash.output().ok()?;
        assert!(output.status.success(), "{line}: {output:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{line}");
        let text = String::from_utf8(output.stdout).unwrap();
        Some(text.split_terminator('\0').map(String::from).collect())
    }

    #[test]
    fn each_name_in_a_command_is_one_word_and_no_option() {
        for name in NAMES {
            let text = || name.to_owned();
            let driver = Some(text());
            let subjects = [
                Subject::controller(name),
                Subject::browser(name),
                Subject::Application { options: text() },
                Subject::Stack { name: text(), driver, role: StackRole::Receiver },
                Subject::Command { command: text(), peer: Some(text()) },
                Subject::Analyzed { dump: text(), open_loop: None },
            ];
            for subject in subjects {
                for engine in [Engine::Sim, Engine::Call, Engine::Link] {
                    let subject = subject.clone();
                    let info = RunInfo { scenario: text(), subject, engine, seed: 7 };
                    let line = info.command();
                    assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
                    let Some(words) = taken(&line) else { return };
                    assert!(["call", "run", "link", "analyze"].contains(&words[0].as_str()));
                    let given = if name.starts_with('-') { format!("./{name}") } else { text() };
                    assert_eq!(words[1], given, "{line}");
                    let options = ["--seed", "--controller", "--stack", "--role", "--driver"];
                    // The words of a command or an application are what the record says.
                    for word in &words[2..] {
                        let is_ours = options.iter().any(|it| word.starts_with(it));
                        let is_known = ["7", "receiver", "--peer", "--", name].contains(&&**word);
                        let is_value = word.ends_with(name);
                        assert!(is_ours || is_known || is_value, "{line}: {word}");
                    }
                }
            }
        }
    }
}
