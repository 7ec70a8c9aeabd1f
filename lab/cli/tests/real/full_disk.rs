//! A disk that is full where results go: a line says so, nothing is half made, and what was there
//! stays. Needs root, to mount a small disk.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Room that is left on the disk, in bytes: none, for a file or two, for a part of a large file.
const ROOM: [u64; 4] = [0, 8 << 10, 32 << 10, 128 << 10];
/// A network without a scenario's load.
const NETWORK: &str = "demo/first-call";

/// A disk of its own for a test.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// A disk with this much room. `None`, with a word why, if it cannot be mounted.
    fn with(room: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path());
        let mounted = mount.output().unwrap();
        if !mounted.status.success() {
            println!("skipped: {}", String::from_utf8_lossy(&mounted.stderr).trim());
            return None;
        }
        let disk = Self { folder };
        let mut filler = File::create(disk.at("filler")).unwrap();
        while filler.write_all(&[b'x'; 4096]).is_ok() {}
        let length = filler.metadata().unwrap().len();
        filler.set_len(length - room).unwrap();
        Some(disk)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// All that is on it, but folders that are empty and what the test has put there.
    fn content(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => found.push(entry.path()),
                }
            }
        }
        found.retain(|path| !path.ends_with("filler"));
        found
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

fn weir(words: &[&str], after: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(words).args(after).output().unwrap()
}

/// Checks that a command failed because of the disk, in one line and with the code of bad input.
fn told(words: &[&str], room: u64, done: &Output) {
    let said = String::from_utf8_lossy(&done.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("No space left")).collect();
    assert_eq!(done.status.code(), Some(2), "{words:?}, {room} bytes: {said}");
    assert_eq!(errors.len(), 1, "{words:?}, {room} bytes: {said}");
    assert!(!said.contains("panicked"), "{words:?}, {room} bytes: {said}");
}

#[test]
fn a_record_is_whole_or_not_there_when_the_disk_is_full() {
    for room in ROOM {
        let Some(disk) = Disk::with(room) else { return };
        let out = disk.at("out");
        let out = out.to_str().unwrap();
        for words in [
            &["run", NETWORK, "--controller", "gcc", "--out", out][..],
            &["link", NETWORK, "--out", out, "--", "sleep", "1"],
            &["link", NETWORK, "--capture", "--out", out, "--", "sleep", "1"],
        ] {
            let done = weir(words, &[]);
            // A link's record is small.
            if done.status.success() && words[0] == "link" && room > 0 {
                fs::remove_dir_all(out).unwrap();
                continue;
            }
            told(words, room, &done);
            let mut left = disk.content();
            // The captures of a run without a record are kept, as the error says.
            left.retain(|path| path.extension().is_none_or(|ending| ending != "pcapng"));
            assert!(left.is_empty(), "{words:?}, {room} bytes: {left:?}");
            let _ = fs::remove_dir_all(out);
        }
    }
}

#[test]
fn a_page_is_whole_or_as_it_was_when_the_disk_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("records");
    let made = weir(&["run", NETWORK, "--controller", "gcc", "--out"], &[&records]);
    assert!(made.status.success(), "{made:?}");
    let dump =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyze/tests/dumps/free.rtcstats.gz");
    for room in ROOM {
        let Some(disk) = Disk::with(room) else { return };
        let page = disk.at("page");
        for (words, before) in [(&["report"][..], &records), (&["analyze"], &dump)] {
            // In the place of a part of the filler.
            let _ = File::create(&page);
            let done = weir(words, &[before, Path::new("-o"), &page]);
            told(words, room, &done);
            assert_eq!(fs::read(&page).unwrap(), b"", "{words:?}, {room} bytes");
            assert_eq!(disk.content(), std::slice::from_ref(&page), "{words:?}, {room} bytes");
        }
        fs::remove_file(&page).unwrap();
        let out = disk.at("out");
        let done = weir(&["analyze", "--out"], &[&out, &dump]);
        if !done.status.success() {
            told(&["analyze", "--out"], room, &done);
            assert!(disk.content().is_empty(), "{room} bytes: {:?}", disk.content());
        }
    }
}

#[test]
fn results_that_cannot_be_printed_are_an_error() {
    for words in [&["list"][..], &["run", NETWORK, "--controller", "gcc", "--json"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(words).stdout(File::options().write(true).open("/dev/full").unwrap());
        told(words, 0, &command.output().unwrap());
    }
}
