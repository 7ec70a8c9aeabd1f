//! Packaging: the program's revision, manual pages, completions, the installation, and the tools of
//! the tests.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const COMMANDS: [&str; 17] = [
    "list",
    "run",
    "call",
    "link",
    "arena",
    "serve",
    "analyze",
    "fleet",
    "collect",
    "report",
    "compare",
    "check",
    "sweep",
    "trace",
    "ims",
    "research",
    "completions",
];

/// Commands of `weir ims`, which have manual pages too.
const IMS: [&str; 10] =
    ["abort", "answer", "call", "check", "dial", "down", "record", "register", "restart", "up"];

/// Commands of `weir arena`, which have manual pages too.
const ARENA: [&str; 1] = ["doctor"];
/// Commands of `weir fleet`, which have manual pages too.
const FLEET: [&str; 2] = ["analyze", "report"];
/// Commands of `weir research`, which have manual pages too.
const RESEARCH: [&str; 5] = ["ablate", "bench", "generate", "score", "validate"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Output of a command, which must succeed.
fn text(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn weir(args: &[&str]) -> String {
    text(Command::new(WEIR).args(args))
}

/// Paths of the files below a folder, relative to it.
fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files_below(&path).iter().map(|below| format!("{name}/{below}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

#[test]
fn the_version_names_the_commit_and_records_do_not() {
    let release = env!("CARGO_PKG_VERSION");
    let git = Command::new("git")
        .args(["log", "-1", "--format=%H %cs"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success() && root().join(".git").exists());
    let revision = match git {
        Some(output) => {
            let line = String::from_utf8(output.stdout).unwrap();
            let (hash, day) = line.trim().split_once(' ').unwrap();
            format!("{} {day}", &hash[..12])
        }
        None => "revision unknown: not built in a clone of its repository".into(),
    };
    assert_eq!(weir(&["--version"]), format!("weir {release} ({revision})\n"));

    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    weir(&["run", "lund/rmcat-ns3", "--controller", "nada", "--out", out]);
    let record = folder.path().join("lund__rmcat-ns3/nada-sim-seed1/run.json");
    let run: serde_json::Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    assert_eq!(run["weir"], release);
}

#[test]
fn a_build_outside_its_repository_says_that_it_knows_no_revision() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("build-script");
    let source = root().join("lab/cli/build.rs");
    text(Command::new("rustc").args(["--edition", "2024", "-o"]).arg(&script).arg(source));
    let unpacked = folder.path().join("clone-of-another/weir/lab/cli");
    fs::create_dir_all(&unpacked).unwrap();
    // Without its own, it would write to that of the program that runs.
    let of_the_script = [("CARGO_MANIFEST_DIR", &unpacked), ("OUT_DIR", &unpacked)];
    let said = || text(Command::new(&script).envs(of_the_script));
    assert!(said().contains("WEIR_REVISION=revision unknown"), "{}", said());
    let another = folder.path().join("clone-of-another");
    text(Command::new("git").arg("init").arg("--quiet").arg(&another));
    let commit =
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "m"];
    text(Command::new("git").args(commit).current_dir(&another));
    assert!(said().contains("WEIR_REVISION=revision unknown"), "{}", said());
}

#[test]
fn every_shell_has_completions_of_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = weir(&["completions", shell]);
        for word in COMMANDS.iter().chain(&["controller", "weir"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page_with_its_examples() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("made/by/it");
    weir(&["man", pages.to_str().unwrap()]);
    let mut expected: Vec<String> = COMMANDS.iter().map(|name| format!("weir-{name}.1")).collect();
    expected.extend(IMS.iter().map(|name| format!("weir-ims-{name}.1")));
    expected.extend(ARENA.iter().map(|name| format!("weir-arena-{name}.1")));
    expected.extend(FLEET.iter().map(|name| format!("weir-fleet-{name}.1")));
    expected.extend(RESEARCH.iter().map(|name| format!("weir-research-{name}.1")));
    expected.push("weir.1".into());
    expected.sort();
    assert_eq!(files_below(&pages), expected);
    let page = fs::read_to_string(pages.join("weir-run.1")).unwrap();
    for part in [".TH", "weir run", "my\\-scenario.toml", "\\-\\-seeds"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn uninstall_removes_what_install_made_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("target/release");
    fs::create_dir_all(&built).unwrap();
    symlink(WEIR, built.join("weir")).unwrap();
    fs::write(built.join("lib_weir.so"), "").unwrap();
    fs::write(folder.path().join("target/THIRD-PARTY.md"), "").unwrap();
    let make = |target: &str| {
        let mut command = Command::new(root().join("scripts/build/install-program.sh"));
        command.arg(target).env("PREFIX", "/opt/w").env("DESTDIR", folder.path().join("stage"));
        command.env("CARGO_TARGET_DIR", folder.path().join("target"));
        command
    };
    let prefix = folder.path().join("stage/opt/w");
    fs::create_dir_all(prefix.join("share/man/man1")).unwrap();
    fs::write(prefix.join("share/man/man1/weir-of-others.1"), "").unwrap();

    // Twice, as an upgrade does.
    text(&mut make("install"));
    assert_eq!(text(&mut make("install")).trim(), prefix.join("bin/weir").to_str().unwrap());
    let mut expected: Vec<String> = [
        "bin/weir",
        "share/bash-completion/completions/weir",
        "share/doc/weir/LICENSE-APACHE",
        "share/doc/weir/LICENSE-MIT",
        "share/doc/weir/THIRD-PARTY.md",
        "share/doc/weir/installed.txt",
        "share/fish/vendor_completions.d/weir.fish",
        "share/man/man1/weir-of-others.1",
        "share/man/man1/weir.1",
        "share/zsh/site-functions/_weir",
    ]
    .map(String::from)
    .into();
    expected.extend(COMMANDS.iter().map(|name| format!("share/man/man1/weir-{name}.1")));
    expected.extend(IMS.iter().map(|name| format!("share/man/man1/weir-ims-{name}.1")));
    expected.extend(ARENA.iter().map(|name| format!("share/man/man1/weir-arena-{name}.1")));
    expected.extend(FLEET.iter().map(|name| format!("share/man/man1/weir-fleet-{name}.1")));
    expected.extend(RESEARCH.iter().map(|name| format!("share/man/man1/weir-research-{name}.1")));
    expected.push("lib/weir/python/weir_rtc/_weir.abi3.so".into());
    // What the tests of the Python package leave in its sources is not installed.
    for file in files_below(&root().join("lab/python/python")) {
        if !file.contains("__pycache__") && !file.ends_with(".so") {
            expected.push(format!("lib/weir/python/{file}"));
        }
    }
    expected.sort();
    assert_eq!(files_below(&prefix), expected);
    let version = text(Command::new(prefix.join("bin/weir")).arg("--version"));
    assert_eq!(version, weir(&["--version"]));

    // As Python leaves it.
    fs::create_dir(prefix.join("lib/weir/python/weir_rtc/__pycache__")).unwrap();
    text(&mut make("uninstall"));
    assert_eq!(files_below(&prefix), ["share/man/man1/weir-of-others.1"]);
    assert!(!prefix.join("share/doc/weir").exists() && !prefix.join("lib/weir").exists());
    let again = make("uninstall").output().unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("nothing is installed"));
}

/// A machine with a shell, whose other programs do what a test says. Each notes its arguments.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for name in
            ["sh", "sed", "grep", "dirname", "date", "mkdir", "rm", "tail", "seq", "cp", "chmod"]
        {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let found = found.iter().find(|path| path.exists()).unwrap();
            symlink(found, machine.path(name)).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A program with this script.
    fn program(&self, name: &str, script: &str) {
        let log = self.path("log");
        let text = format!("#!/bin/sh\necho {name} \"$@\" >> {}\n{script}\n", log.display());
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The programs that were called, with their arguments.
    fn called(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    /// The command that runs a script of the project on it. Its target folder is the machine's.
    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg(root().join(script)).env("PATH", self.0.path());
        command.env("CARGO_TARGET_DIR", self.0.path()).env("CARGO_HOME", self.0.path());
        command.env_remove("CI");
        command
    }
}

/// Without `cargo fuzz`, nextest, the nightly compiler and all other tools.
#[test]
fn what_the_tests_need_is_installed_on_a_new_machine() {
    let machine = Machine::new();
    machine.program("cargo", "echo Compiling\n[ \"$1\" != fuzz ] && [ \"$1\" != nextest ]");
    machine.program("rustup", "[ \"$1 $2\" != 'toolchain install' ]");
    for name in ["node", "npm"] {
        machine.program(name, "");
    }
    machine.program("apt-get", "echo Unpacking");
    machine.program("id", "echo 0");
    let mut deps = machine.command("scripts/build/deps.sh");
    let said = text(&mut deps);
    assert!(said.contains("deps: apt-get install g++") || said.contains("chromium"), "{said}");
    assert!(!said.contains("Unpacking"), "{said}");
    let unpacked = fs::read_to_string(machine.path("logs/apt-install.log")).unwrap();
    assert_eq!(unpacked, "Unpacking\n");
    let asked = machine.called();
    assert!(asked.contains("apt-get install -q -y") && asked.contains(" chromium"), "{asked}");
    assert!(!asked.contains("cargo-fuzz"), "calls need no fuzzer: {asked}");

    // The tests that everybody runs need no other compiler.
    text(machine.command("scripts/build/deps.sh").arg("--test"));
    let asked = machine.called();
    assert!(asked.contains("cargo install cargo-nextest --version"), "{asked}");
    assert!(!asked.contains("rustup"), "{asked}");

    // A tool that cannot be installed is reported, and is not an error.
    let Output { status, stdout, stderr } = deps.arg("--test-all").output().unwrap();
    let [said, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(status.success(), "{stderr}");
    assert!(
        said.contains("deps: installing cargo-fuzz ... ") && !said.contains("Compiling"),
        "{said}"
    );
    let asked = machine.called();
    assert!(asked.contains("rustup toolchain install nightly"), "{asked}");
    assert!(asked.contains("rustup target add x86_64-unknown-linux-musl"), "{asked}");
    assert!(asked.contains("cargo install cargo-fuzz --locked"), "{asked}");
    assert!(stderr.contains("no nightly compiler"), "{stderr}");
}

#[test]
fn packages_that_cannot_be_installed_are_an_error_with_its_log() {
    let machine = Machine::new();
    for name in ["cargo", "node", "npm"] {
        machine.program(name, "");
    }
    machine.program("apt-get", "[ $1 = update ] || { seq 100; exit 7; }");
    machine.program("id", "echo 0");
    let Output { status, stderr, .. } = machine.command("scripts/build/deps.sh").output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(7), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[19]), (21, "81", "100"), "{stderr}");
    let log = machine.path("logs/apt-install.log").display().to_string();
    assert!(lines[20].ends_with(&log), "{stderr}");
}

/// All programs of others talk much, as they do.
#[test]
fn the_demo_prints_at_most_forty_lines_before_its_last() {
    let machine = Machine::new();
    for name in ["node", "npm", "gst-inspect-1.0", "c++", "chromium", "ffmpeg", "ps", "ip"] {
        machine.program(name, "");
    }
    machine.program("id", "echo 0");
    machine.program("make", "seq 1000");
    machine.program("weir", "case $1 in run) seq 100 ;; call) seq 5 ;; esac");
    let [weir, built] = ["weir", "demo"].map(|name| machine.path(name).display().to_string());
    let build = format!("seq 1000\nmkdir -p {built}\ncp {weir} {built}");
    machine.program("cargo", &build);
    let mut demo = machine.command("scripts/build/demo.sh");
    let said = text(demo.env("WEIR_BROWSER", "chromium"));
    assert!(said.lines().count() <= 41, "{said}");
    assert!(said.lines().last().unwrap().ends_with("/report.html"), "{said}");
    let log = fs::read_to_string(machine.path("logs/demo-web.log")).unwrap();
    assert_eq!(log.lines().count(), 1000);
    assert!(machine.called().contains("weir run lund/rmcat-ns3"), "{}", machine.called());
}

/// A git repository with a library and a lab of one file each, for `scripts/test/changed.py`.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        (
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"library/weir\", \"lab/record\"]\n",
        ),
        ("library/weir/Cargo.toml", "[package]\nname = \"weir-rtc\"\nedition = \"2024\"\n"),
        ("library/weir/src/lib.rs", ""),
        ("lab/record/Cargo.toml", "[package]\nname = \"weir-record\"\nedition = \"2024\"\n"),
        ("lab/record/src/lib.rs", ""),
    ];
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let identity = ["-c", "user.name=weir", "-c", "user.email=weir@example.org"];
    for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "all"]] {
        let mut git = Command::new("git");
        text(git.args(identity).args(arguments).current_dir(folder.path()));
    }
    folder
}

#[test]
fn a_check_takes_the_parts_that_a_changed_file_can_affect() {
    let folder = repository();
    let choice = |since: &str| -> Vec<String> {
        let mut script = Command::new(root().join("scripts/test/changed.py"));
        let printed = text(script.arg(since).current_dir(folder.path()));
        printed.lines().map(String::from).collect()
    };
    let first = choice("");
    assert_eq!(first[1], "all()", "no check before: everything");
    assert_eq!(first[3], "--workspace");
    let nothing = choice(&first[0]);
    let readers = "rdeps(=weir-cli) | rdeps(=weir-tidy)";
    assert!(nothing[1].starts_with(&format!("({readers}) - (")), "nothing changed: {}", nothing[1]);
    assert_eq!(nothing[2..], ["", ""], "nothing changed");

    fs::write(folder.path().join("lab/record/src/lib.rs"), "//! Changed.\n").unwrap();
    let after_record = choice(&first[0]);
    let begin = "(rdeps(=weir-cli) | rdeps(=weir-record) | rdeps(=weir-tidy)) - (";
    assert!(after_record[1].starts_with(begin), "{}", after_record[1]);
    assert!(
        !after_record[1].contains("test(/^bounds::/)"),
        "a long test of the record: {}",
        after_record[1]
    );
    assert!(
        after_record[1].contains("(binary_id(=weir-net::it) & test(/^wifi::/))"),
        "long, of another package: {}",
        after_record[1]
    );
    assert_eq!(after_record[2..], ["", "--package weir-record"]);

    fs::write(folder.path().join("library/weir/src/new.rs"), "").unwrap();
    let after_library = choice(&after_record[0]);
    let begin = "(rdeps(=weir-cli) | rdeps(=weir-rtc) | rdeps(=weir-tidy)) - (";
    assert!(after_library[1].starts_with(begin), "new file: {}", after_library[1]);
    assert_eq!(after_library[2..], ["", "--package weir-rtc"]);

    fs::write(folder.path().join("Cargo.toml"), "[workspace]\nmembers = [\"lab/record\"]\n")
        .unwrap();
    assert_eq!(choice(&after_library[0])[1], "all()", "the build of every part changed");
}

#[test]
fn the_long_tests_that_a_check_leaves_out_exist() {
    let script = fs::read_to_string(root().join("scripts/test/changed.py")).unwrap();
    let mut found = 0;
    for line in script.lines() {
        let Some((binary, folders)) = line.trim().split_once("\": (") else { continue };
        let Some((package, test)) = binary.trim_start_matches('"').split_once("::") else {
            continue;
        };
        let folder = ["lab", "library"]
            .map(|part| root().join(part).join(package.trim_start_matches("weir-")));
        let files = [format!("tests/it/{test}.rs"), format!("tests/it/{test}/mod.rs")];
        let exists = |folder: &PathBuf| files.iter().any(|file| folder.join(file).is_file());
        assert!(folder.iter().any(exists), "{line}");
        for folder in folders.split('"').filter(|part| part.ends_with('/')) {
            assert!(root().join(folder).is_dir(), "{line}");
        }
        found += 1;
    }
    assert!(found > 5, "{found}");
}
