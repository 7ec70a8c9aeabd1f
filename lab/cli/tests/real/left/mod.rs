//! What a program under test has left behind.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A variable that marks the program under test, and with it all that the program starts.
pub const MARK: &str = "WEIR_TEST_PLACE";

/// A process that was told to end has ended by then, on a busy machine too.
const END: Duration = Duration::from_secs(20);

/// Waits until no process is marked with this folder. Those that are ending may take a moment.
pub fn wait_until_none_lives(place: &Path) {
    let start = Instant::now();
    while !alive(place).is_empty() {
        assert!(start.elapsed() < END, "they live on: {:?}", alive(place));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Command lines of the processes that are marked with this folder.
pub fn alive(place: &Path) -> Vec<String> {
    let mark = format!("{MARK}={}", place.display());
    let line = |entry: fs::DirEntry| {
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let is_ours = environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes());
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        is_ours.then(|| String::from_utf8_lossy(&line).replace('\0', " "))
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(line).collect()
}
