//! Gates with a real pion. They break its GCC in a copy of its source, so the gate has something to
//! find.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::{WEIR, has, needs_root, root, weir};

/// Builds the driver of pion with a copy of its GCC in which the factor of a decrease is 1.5, so
/// that overuse raises the target.
fn broken_pion(folder: &Path) -> PathBuf {
    let pion = root().join("arena/pion");
    let module = "github.com/pion/interceptor";
    let place = go(&pion, &["list", "-m", "-f", "{{.Dir}}", module]);
    let copy = folder.join("interceptor");
    let copied = Command::new("cp").args(["-r", place.trim()]).arg(&copy).status().unwrap();
    assert!(copied.success());
    let writable = Command::new("chmod").args(["-R", "u+w"]).arg(&copy).status().unwrap();
    assert!(writable.success());
    let controller = copy.join("pkg/gcc/rate_controller.go");
    let text = fs::read_to_string(&controller).unwrap();
    let broken = text.replace("= 0.85\n", "= 1.5\n");
    assert_ne!(broken, text, "pion's GCC has no factor of 0.85 any more");
    fs::write(&controller, broken).unwrap();
    // The encoder's script is beside the folder of the stack.
    std::os::unix::fs::symlink(root().join("arena/encoder.py"), folder.join("encoder.py")).unwrap();
    let (modules, driver) = (folder.join("broken.mod"), folder.join("pion/driver"));
    fs::copy(pion.join("go.mod"), &modules).unwrap();
    fs::copy(pion.join("go.sum"), folder.join("broken.sum")).unwrap();
    let modfile = format!("-modfile={}", modules.display());
    let replaced = format!("{module}={}", copy.display());
    go(&pion, &["mod", "edit", "-replace", &replaced, modules.to_str().unwrap()]);
    go(&pion, &["build", "-mod=mod", &modfile, "-o", driver.to_str().unwrap(), "."]);
    driver
}

fn go(folder: &Path, words: &[&str]) -> String {
    let done = Command::new("go").args(words).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn a_gate_goes_red_for_pion_with_a_broken_gcc_and_names_the_cause() {
    if !has("pion") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sound = root().join("arena/pion/driver");
    for (driver, code, name) in [(sound, 0, "sound"), (broken_pion(folder.path()), 1, "broken")] {
        let (out, junit) = (folder.path().join(name), folder.path().join(format!("{name}.xml")));
        let command = format!("{} gcc", driver.display());
        let made = weir(&[
            "arena",
            "--stacks",
            "mine",
            "--driver",
            &command,
            "--scenarios",
            "arena/steps",
            "--junit",
            junit.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
        ]);
        if needs_root(&made) {
            return;
        }
        let text = String::from_utf8_lossy(&made.stdout);
        assert_eq!(
            made.status.code(),
            Some(code),
            "{text}{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let cases = fs::read_to_string(&junit).unwrap();
        assert!(cases.contains("3 s after the fall the queue stays below 200 ms"), "{cases}");
        let cause = "controller: its target was above the link";
        assert_eq!(cases.contains(cause), code == 1, "{cases}");
        assert_eq!(text.contains(cause), code == 1, "{text}");
        assert_eq!(text.contains("weir call"), code == 1, "{text}");
    }
}

/// The commands of the page's steps for a pipeline.
fn steps() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/guide/arena.md")).unwrap();
    let mut blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains("weir arena")).expect("the page has the steps");
    let mut steps: Vec<String> = Vec::new();
    let mut is_in_step = false;
    for line in block.lines() {
        let text = line.trim_start();
        if let Some(command) = text.strip_prefix("- run: ") {
            steps.push(command.trim_start_matches('|').to_owned());
            is_in_step = command == "|";
        } else if is_in_step && line.starts_with("          ") {
            let step = steps.last_mut().unwrap();
            step.push('\n');
            step.push_str(text);
        } else {
            is_in_step = false;
        }
    }
    assert!(steps.len() > 2, "{steps:?}");
    steps
}

/// Writes a program in shell.
fn program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Packages are not installed and the driver is pion's; everything else is as the page has it, in
/// one of its scenarios.
#[test]
fn the_steps_of_the_page_for_a_pipeline_run() {
    if !has("pion") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (tools, work) = (folder.path().join("tools"), folder.path().join("work"));
    fs::create_dir_all(&tools).unwrap();
    fs::create_dir_all(&work).unwrap();
    // The browser's user may enter.
    let opened = Command::new("chmod").arg("755").arg(folder.path()).status().unwrap();
    assert!(opened.success());
    program(&tools.join("sudo"), "exec \"$@\"");
    program(&tools.join("apt-get"), "echo \"$@\" > packages");
    let driver = root().join("arena/pion/driver");
    let build = format!("printf '#!/bin/sh\\nexec {} gcc \"$@\"\\n' > driver", driver.display());
    program(&tools.join("go"), &format!("{build}; chmod 755 driver"));
    program(&tools.join("weir"), &format!("exec {WEIR} \"$@\""));
    let path = format!("{}:{}", tools.display(), env::var("PATH").unwrap());
    for step in steps() {
        let step = step.replace("arena/steps,arena/outage,arena/loss-5", "arena/steps");
        let made = Command::new("bash")
            .args(["-e", "-c", &step])
            .env("PATH", &path)
            .current_dir(&work)
            .output()
            .unwrap();
        if needs_root(&made) {
            return;
        }
        let told = String::from_utf8_lossy(&made.stdout);
        let complaint = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{step}: {told}{complaint}");
    }
    assert!(fs::read_to_string(work.join("packages")).unwrap().contains("ffmpeg"));
    assert!(fs::read_to_string(work.join("arena.xml")).unwrap().contains("<testsuite "));
    assert!(fs::metadata(work.join("arena.html")).unwrap().len() > 100_000);
}
