//! The commands and outputs in the guide and the examples are correct.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A page's blocks of code, each with its language.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("\n```").skip(1).step_by(2);
    parts.map(|block| block.split_once('\n').unwrap()).collect()
}

#[test]
fn the_guide_to_an_own_scenario_works_step_by_step() {
    let page = fs::read_to_string(root().join("docs/guide/test-your-network.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let weir_first = format!(
        "{}:{}",
        Path::new(WEIR).parent().unwrap().display(),
        env::var("PATH").unwrap_or_default()
    );
    let scenario = folder.path().join("office.toml");
    let (mut files, mut commands) = (0, 0);
    for (language, block) in blocks(&page) {
        match language {
            "toml" => {
                let (head, text) = block.split_once('\n').unwrap();
                let text = match head {
                    "# office.toml" => text.to_owned(),
                    "# office.toml, appended" => {
                        fs::read_to_string(&scenario).unwrap() + "\n" + text
                    }
                    _ => panic!("which file is this? {head}"),
                };
                fs::write(&scenario, text).unwrap();
                files += 1;
            }
            // The emulator has tests of its own.
            "sh" => {
                for line in block.lines().filter(|line| !line.starts_with("sudo ")) {
                    if line.starts_with("weir report") && !has_viewer() {
                        println!(
                            "skipped: the report, because this weir was built without its viewer"
                        );
                        continue;
                    }
                    let mut shell = Command::new("sh");
                    shell.args(["-c", line]).current_dir(&folder);
                    shell.env("PATH", &weir_first).env("WEIR_ROOT", root());
                    let output = shell.output().unwrap();
                    let expected = i32::from(line.ends_with("# exit code 1"));
                    let error = String::from_utf8_lossy(&output.stderr);
                    assert_eq!(output.status.code(), Some(expected), "{line}: {error}");
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    assert!(files >= 4 && commands >= 6, "{files} files and {commands} commands found");
}

#[test]
fn every_weir_command_of_the_first_pages_runs() {
    for page in ["first-result", "read-a-report"] {
        let text = fs::read_to_string(root().join(format!("docs/guide/{page}.md"))).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let shell_blocks = blocks(&text).into_iter().filter(|(language, _)| *language == "sh");
        let lines = shell_blocks.flat_map(|(_, block)| block.lines());
        let mut commands = 0;
        for line in lines.filter_map(|line| line.strip_prefix("weir ")) {
            if line.starts_with("report") && !has_viewer() {
                println!("skipped: the report, because this weir was built without its viewer");
                continue;
            }
            let words = line.split_whitespace().map(|word| word.trim_matches('\''));
            run(Command::new(WEIR).args(words).current_dir(&folder));
            commands += 1;
        }
        assert!(commands > 0, "{page} has no command");
    }
}

fn has_viewer() -> bool {
    root().join("web/dist/report.html").is_file()
}

#[test]
fn the_example_trace_is_what_its_script_makes_and_its_scenario_runs() {
    let folder = root().join("examples/train");
    let made = Command::new("node").arg(folder.join("make-trace.mjs")).output();
    match made {
        Ok(made) => {
            let kept = fs::read(folder.join("train.mahi")).unwrap();
            assert!(made.status.success() && made.stdout == kept, "run make-trace.mjs again");
        }
        Err(_) => println!("skipped: the script of the trace: no Node.js"),
    }
    run(Command::new(WEIR).arg("check").arg(folder.join("train.toml")));
}

#[test]
fn the_examples_in_python_read_what_the_program_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (records, summaries) = (folder.path().join("runs"), folder.path().join("runs.json"));
    let arguments = ["run", "demo/first-call", "repair/random-loss", "--controller", "gcc,scream"];
    let output = run(Command::new(WEIR).args(arguments).arg("--json").arg("--out").arg(&records));
    fs::write(&summaries, output.stdout).unwrap();
    // `make test` creates this Python if the system's Python lacks the libraries.
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python/bin/python3");
    let python = if own.is_file() { own } else { "python3".into() };
    for library in ["pandas", "polars"] {
        let has_it = Command::new(&python).args(["-c", &format!("import {library}")]).output();
        if !has_it.is_ok_and(|output| output.status.success()) {
            println!("skipped: no {library}: scripts/deps.sh --test installs it");
            continue;
        }
        let script = root().join(format!("examples/records/with_{library}.py"));
        let output = run(Command::new(&python).arg(script).arg(&records).arg(&summaries));
        let text = String::from_utf8(output.stdout).unwrap();
        for word in ["received_mbps", "over-use", "media-1-down", "utilization"] {
            assert!(text.contains(word), "{library}: {word}: {text}");
        }
    }
}
