//! The dumps of calls: one file for each end of a call, one event a line, as `weir fleet` reads it.
//!
//! ```text
//! LAKE/dumps/ROOM/.CALL.PEER.rtcstats    while the call runs, or may go on
//! LAKE/dumps/ROOM/CALL.PEER.rtcstats     when it has ended; .2, .3, ... if the name was there
//! ```
//!
//! `weir fleet` passes over hidden files, so it takes each call once, when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use weir_analyze::LiveCall;

use super::access::Seat;

/// First lines of a dump.
const HEADING: &[u8] = b"RTCStatsDump\n{\"fileFormat\":3}\n";
const ENDING: &str = ".rtcstats";
/// A larger file is not read again as a whole when its client comes back.
const REPLAY_MAX: u64 = 8 << 20;
/// What is read of its end in this case. It suffices for clients whose reports are whole.
const REPLAY_TAIL: u64 = 1 << 20;

/// The folder of the dumps.
#[derive(Clone, Debug)]
pub struct Dumps {
    folder: PathBuf,
}

impl Dumps {
    pub fn new(lake: &Path) -> Self {
        Self { folder: lake.join("dumps") }
    }

    fn running(&self, seat: &Seat) -> PathBuf {
        let Seat { room, call, peer } = seat;
        self.folder.join(room).join(format!(".{call}.{peer}{ENDING}"))
    }

    /// Appends whole lines to the dump of a call that runs.
    pub fn append(&self, seat: &Seat, lines: &[u8]) -> io::Result<()> {
        let path = self.running(seat);
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let mut file = match open {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
                OpenOptions::new().create(true).append(true).open(&path)?
            }
            opened => opened?,
        };
        if file.metadata()?.len() > 0 {
            return file.write_all(lines);
        }
        file.write_all(&[HEADING, lines].concat())
    }

    /// What a call had sent before this program started, played into a new [`LiveCall`], with its
    /// size in bytes. `None` if there is nothing.
    pub fn replay(&self, seat: &Seat, window_s: f64) -> io::Result<Option<(LiveCall, u64)>> {
        let path = self.running(seat);
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let size = file.metadata()?.len();
        if size > REPLAY_MAX {
            file.seek(SeekFrom::Start(size - REPLAY_TAIL))?;
        }
        let mut text = Vec::new();
        Read::by_ref(&mut file).take(REPLAY_MAX).read_to_end(&mut text)?;
        // The program was ended within a line: what follows must not become part of it.
        if text.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n")?;
        }
        let mut call = LiveCall::new(window_s);
        for line in text.split(|byte| *byte == b'\n').filter(|line| line.first() == Some(&b'[')) {
            // A broken line was refused when it came, or is the one that was cut.
            let _ = call.take(line);
        }
        Ok(Some((call, size)))
    }

    /// Gives the dump of a call that has ended its name.
    pub fn finish(&self, seat: &Seat) -> io::Result<()> {
        finish(&self.running(seat))
    }

    /// Finishes the dumps that nothing was added to for this time, such as those of calls that
    /// ended while this program did not run.
    pub fn finish_old(&self, age: Duration) -> io::Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        let newest = SystemTime::now() - age;
        for room in fs::read_dir(&self.folder)? {
            let room = room?.path();
            for file in fs::read_dir(&room).into_iter().flatten() {
                let path = file?.path();
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let is_running = name.starts_with('.') && name.ends_with(ENDING);
                if is_running && fs::metadata(&path)?.modified()? < newest {
                    finish(&path)?;
                }
            }
        }
        Ok(())
    }
}

fn finish(running: &Path) -> io::Result<()> {
    let name = running.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name.trim_start_matches('.').trim_end_matches(ENDING);
    for number in 1_u32.. {
        let number = if number == 1 { String::new() } else { format!(".{number}") };
        let whole = running.with_file_name(format!("{stem}{number}{ENDING}"));
        // Takes the name if it is free.
        match File::create_new(&whole) {
            Ok(_) => return fs::rename(running, &whole),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat() -> Seat {
        Seat::new("room", "call", "anna").unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let found = fs::read_dir(folder.join("dumps/room")).unwrap();
        let mut names: Vec<String> =
            found.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_dump_is_hidden_until_its_call_has_ended_and_never_replaces_another() {
        let lake = tempfile::tempdir().unwrap();
        let dumps = Dumps::new(lake.path());
        for _ in 0..2 {
            dumps.append(&seat(), b"[1]\n").unwrap();
            dumps.append(&seat(), b"[2]\n").unwrap();
            assert!(names(lake.path()).contains(&".call.anna.rtcstats".into()));
            dumps.finish(&seat()).unwrap();
        }
        assert_eq!(names(lake.path()), ["call.anna.2.rtcstats", "call.anna.rtcstats"]);
        let text = fs::read(lake.path().join("dumps/room/call.anna.2.rtcstats")).unwrap();
        assert_eq!(text, [HEADING, b"[1]\n[2]\n"].concat());
    }

    #[test]
    fn a_line_that_was_cut_is_closed_before_the_next_one() {
        let lake = tempfile::tempdir().unwrap();
        let dumps = Dumps::new(lake.path());
        assert!(dumps.replay(&seat(), 60.0).unwrap().is_none());
        dumps.append(&seat(), b"[\"ontrack\",\"a\",0,1700000000000,4]\n[\"ontr").unwrap();
        let (call, size) = dumps.replay(&seat(), 60.0).unwrap().unwrap();
        assert_eq!((call.sequence(), size), (Some(4), HEADING.len() as u64 + 40));
        dumps.append(&seat(), b"[3]\n").unwrap();
        let text = fs::read(dumps.running(&seat())).unwrap();
        assert!(text.ends_with(b"\n[\"ontr\n[3]\n"), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn only_dumps_that_are_left_alone_are_finished() {
        let lake = tempfile::tempdir().unwrap();
        let dumps = Dumps::new(lake.path());
        dumps.finish_old(Duration::ZERO).unwrap();
        dumps.append(&seat(), b"[1]\n").unwrap();
        dumps.finish_old(Duration::from_secs(3600)).unwrap();
        assert_eq!(names(lake.path()), [".call.anna.rtcstats"]);
        dumps.finish_old(Duration::ZERO).unwrap();
        assert_eq!(names(lake.path()), ["call.anna.rtcstats"]);
    }
}
