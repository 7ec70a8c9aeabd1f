//! `weir call --interactive` as a person uses it: at a terminal, while a call of two browsers runs.
//! Needs root and Chromium.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// One test at a time: calls share the processors.
static ALONE: Mutex<()> = Mutex::new(());

const SCENARIO: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"12s\"\n\
                        [network]\nup = { capacity = \"2Mbps\", delay = \"25ms\" }\n\
                        down = { capacity = \"2Mbps\", delay = \"25ms\" }\n\
                        [call]\nvideo = { width = 320, height = 180, fps = 15 }\n[[flow]]\n";

/// A program at a terminal: writing to the terminal is typing, reading from it is the screen.
struct Typist {
    program: Child,
    terminal: File,
    screen: String,
}

impl Typist {
    /// `weir call` of the scenario, with records below the folder.
    fn new(folder: &Path) -> Self {
        let scenario = folder.join("mine.toml");
        fs::write(&scenario, SCENARIO).unwrap();
        let (terminal, programs_end) = terminal();
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.arg("call").arg(&scenario).args(["--interactive", "--attempts", "1", "--out"]);
        weir.arg(folder.join("runs")).stdin(programs_end.try_clone().unwrap());
        weir.stdout(Stdio::null()).stderr(programs_end).env("TERM", "xterm");
        let program = weir.spawn().unwrap();
        Self { program, terminal, screen: String::new() }
    }

    fn type_in(&mut self, lines: &str) {
        self.terminal.write_all(lines.as_bytes()).unwrap();
    }

    /// Reads until `wanted` is true for the screen; `false` if the program ends before.
    fn shows(&mut self, wanted: impl Fn(&str) -> bool) -> bool {
        let mut bytes = [0; 4096];
        while !wanted(&self.screen) {
            // Reading is an error once no program has the terminal open.
            match self.terminal.read(&mut bytes) {
                Ok(0) | Err(_) => return false,
                Ok(read) => self.screen += &String::from_utf8_lossy(&bytes[..read]),
            }
        }
        true
    }

    /// Waits until the call has lasted for 2 s. If this machine cannot make calls, prints that the
    /// test is skipped and returns `false`.
    fn calls(&mut self) -> bool {
        // The very first status may be of the network before the call.
        if self.shows(|screen| statuses(screen).skip(1).any(|status| seconds(status) >= 2.0)) {
            return true;
        }
        assert_eq!(self.program.wait().unwrap().code(), Some(2), "{}", self.screen);
        println!("skipped: {}", self.screen.trim());
        false
    }
}

impl Drop for Typist {
    fn drop(&mut self) {
        // The program has ended already, unless the test has failed.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Both ends of a new terminal, wide enough for a status line.
fn terminal() -> (File, OwnedFd) {
    let (mut ours, mut programs) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    let (name, termios) = (std::ptr::null_mut(), std::ptr::null());
    // SAFETY: the two numbers and the size outlive the call; neither name nor settings are asked
    // for.
    let made =
        unsafe { libc::openpty(&raw mut ours, &raw mut programs, name, termios, &raw const size) };
    assert_eq!(made, 0);
    // SAFETY: the call has just made the two descriptors, and nobody else has them.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(programs)) }
}

/// The status lines on a screen: `3 s | up 0.812 of 2.000 Mbit/s, ...`.
fn statuses(screen: &str) -> impl Iterator<Item = &str> {
    // A status begins with its number of seconds. Control sequences precede it.
    let starts = screen.match_indices(" s | up ").map(|(at, _)| at);
    starts.map(|at| {
        let digits =
            screen[..at].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |before| before + 1);
        screen[digits..].lines().next().unwrap_or_default()
    })
}

/// The only entry of a folder.
fn the_one_in(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (one, other) = (entries.next().unwrap(), entries.next());
    assert_eq!(other, None);
    one
}

fn seconds(status: &str) -> f64 {
    status.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Values of a column of `series.csv` in the rows of a flow, each with the end of its interval in
/// ms.
fn column(run: &Path, flow: &str, name: &str) -> Vec<(f64, f64)> {
    let text = fs::read_to_string(run.join("series.csv")).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |wanted: &str| head.iter().position(|name| *name == wanted).unwrap();
    let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.filter(|cells| cells[at("flow")] == flow);
    let number = |cell: &str| cell.parse().ok();
    rows.filter_map(|cells| Some((number(cells[at("time_ms")])?, number(cells[at(name)])?)))
        .collect()
}

#[test]
fn what_is_typed_changes_the_network_of_a_call_and_stands_in_its_record() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let mut typist = Typist::new(folder.path());
    if !typist.calls() {
        return;
    }
    typist.type_in("capacity up 1Mbps\nloss up 50%\ndelay down 60ms\ncapacity -1Mbps\nhelp\n");
    let is_answered = typist.shows(|screen| {
        // Shown once at the start of the command, and once in answer to an unknown word.
        let told = screen.matches("type 'capacity 1Mbps'").count() == 2;
        told && statuses(screen).any(|status| status.contains(" of 1.000 Mbit/s"))
    });
    assert!(is_answered, "{}", typist.screen);
    for answer in [
        "weir: capacity 1.000 Mbit/s up",
        "weir: loss 50 % up",
        "weir: delay 60 ms down",
        "'-1Mbps' must not be negative",
    ] {
        assert!(typist.screen.contains(answer), "{answer}: {}", typist.screen);
    }
    assert!(statuses(&typist.screen).any(|status| status.contains(" ms | round trip ")));
    // To the end of the scenario.
    assert!(!typist.shows(|_| false));
    assert_eq!(typist.program.wait().unwrap().code(), Some(0), "{}", typist.screen);

    let run = the_one_in(&the_one_in(&folder.path().join("runs")));
    let call: Value = serde_json::from_slice(&fs::read(run.join("call.json")).unwrap()).unwrap();
    let changes = call["changes"].as_array().unwrap();
    let told: Vec<&str> = changes.iter().map(|change| change["change"].as_str().unwrap()).collect();
    assert_eq!(told, ["capacity 1.000 Mbit/s up", "loss 50 % up", "delay 60 ms down"]);
    let warnings = call["warnings"].to_string();
    assert!(warnings.contains("changed by hand at ") && warnings.contains(told[0]), "{warnings}");
    let ms = |change: usize| changes[change]["time_s"].as_f64().unwrap() * 1e3;
    the_emulators_log_has_them(&run, ms(0), ms(1));
    the_browsers_round_trip_grows(&call, ms(2));
}

/// A row contains the capacity at its beginning. By chance, one run in 10^9 loses none of thirty
/// packets.
fn the_emulators_log_has_them(run: &Path, capacity_ms: f64, loss_ms: f64) {
    let capacity = column(run, "media-1", "capacity_bps");
    let before = capacity.iter().filter(|row| row.0 <= capacity_ms);
    assert!(before.clone().count() > 0 && before.clone().all(|row| row.1 == 2e6));
    let mut after = capacity.iter().filter(|row| row.0 - 50.0 > capacity_ms);
    assert!(after.all(|row| row.1 == 1e6));
    let lost = column(run, "media-1", "lost_packets");
    assert!(lost.iter().any(|row| row.0 - 50.0 > loss_ms && row.1 > 0.0));
}

/// The emulator may be late, but never early: 25 ms up, now 60 ms down.
fn the_browsers_round_trip_grows(call: &Value, delay_ms: f64) {
    let intervals = call["peers"][0]["intervals"].as_array().unwrap();
    let end = |interval: &Value| interval["time_s"].as_f64().unwrap() * 1e3;
    // A report that was on its way at the change arrives within the old delay plus the queue.
    let later = intervals.windows(2).filter(|pair| end(&pair[0]) > delay_ms + 1_000.0);
    let round_trips: Vec<f64> = later.filter_map(|pair| pair[1]["rtt_ms"].as_f64()).collect();
    assert!(
        !round_trips.is_empty() && round_trips.iter().all(|rtt| *rtt >= 85.0),
        "{round_trips:?}"
    );
}

#[test]
fn quit_ends_a_call_and_keeps_no_record() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let mut typist = Typist::new(folder.path());
    if !typist.calls() {
        return;
    }
    typist.type_in("quit\n");
    assert!(!typist.shows(|_| false));
    assert_eq!(typist.program.wait().unwrap().code(), Some(130), "{}", typist.screen);
    assert!(typist.screen.contains("interrupted"), "{}", typist.screen);
    let records = fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
    assert_eq!(records, 0);
}
