//! The dumps of calls: one file for each end of a call, one event a line, as `weir fleet` reads it.
//!
//! ```text
//! LAKE/dumps/ROOM/.CALL.PEER.rtcstats    while the call runs, or may go on
//! LAKE/dumps/ROOM/CALL.PEER.rtcstats     when it has ended; .2, .3, ... if the name was there
//! ```
//!
//! `weir fleet` passes over hidden files, so it takes each call once, when it is whole. No time of
//! day decides when a dump is finished, since clocks are set.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use weir_analyze::LiveCall;

use super::access::Participant;

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
    /// One thread writes at a time, so that what one takes back is its own.
    writing: Arc<Mutex<()>>,
}

impl Dumps {
    pub fn new(lake: &Path) -> Self {
        Self { folder: lake.join("dumps"), writing: Arc::default() }
    }

    fn running(&self, participant: &Participant) -> PathBuf {
        let Participant { room, call, peer } = participant;
        self.folder.join(room).join(format!(".{call}.{peer}{ENDING}"))
    }

    /// Appends whole lines to the dump of a call that runs: all of them, or none.
    pub fn append(&self, participant: &Participant, lines: &[u8]) -> io::Result<()> {
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.running(participant);
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        let mut file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
                options.open(&path)?
            }
            opened => opened?,
        };
        let mut size = file.metadata()?.len();
        if size < HEADING.len() as u64 {
            // It is new, or the program was ended within the heading.
            file.set_len(0)?;
            size = 0;
        }
        let written = if size == 0 {
            file.write_all(&[HEADING, lines].concat())
        } else if ends_a_line(&file, size)? {
            file.write_all(lines)
        } else {
            // The program was ended within a line: what follows must not become part of it.
            file.write_all(&[b"\n", lines].concat())
        };
        if written.is_err() {
            // A full disk takes a part.
            file.set_len(size)?;
        }
        written
    }

    /// What a call had sent before this program started, played into a new [`LiveCall`], with its
    /// size in bytes. `None` if there is nothing.
    pub fn replay(
        &self,
        participant: &Participant,
        window_s: f64,
    ) -> io::Result<Option<(LiveCall, u64)>> {
        let path = self.running(participant);
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let size = file.metadata()?.len();
        if size > REPLAY_MAX {
            file.seek(SeekFrom::Start(size - REPLAY_TAIL))?;
        }
        let mut text = Vec::new();
        Read::by_ref(&mut file).take(REPLAY_MAX).read_to_end(&mut text)?;
        let mut call = LiveCall::new(window_s);
        for line in text.split(|byte| *byte == b'\n').filter(|line| line.first() == Some(&b'[')) {
            // A broken line was refused when it came, or is the one that was cut.
            let _ = call.take(line);
        }
        Ok(Some((call, size)))
    }

    /// Gives the dump of a call that has ended its name.
    pub fn finish(&self, participant: &Participant) -> io::Result<()> {
        finish(&self.running(participant))
    }

    /// The participants of calls that run, or ran when the program was ended, by their dumps.
    pub fn running_participants(&self) -> io::Result<Vec<Participant>> {
        let mut participants = Vec::new();
        if !self.folder.exists() {
            return Ok(participants);
        }
        for room in fs::read_dir(&self.folder)? {
            let room = room?.path();
            for file in fs::read_dir(&room).into_iter().flatten() {
                participants.extend(seat_of(&room, &file?.path()));
            }
        }
        Ok(participants)
    }
}

/// Whether a file ends with a line break.
fn ends_a_line(file: &File, size: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, size - 1)?;
    Ok(last == *b"\n")
}

/// The participant whose call runs, by the name of its dump.
fn seat_of(room: &Path, dump: &Path) -> Option<Participant> {
    let name = dump.file_name()?.to_str()?;
    let (call, peer) = name.strip_prefix('.')?.strip_suffix(ENDING)?.split_once('.')?;
    Participant::new(room.file_name()?.to_str()?, call, peer)
}

/// Dumps of calls that no client came back for, such as those that ended while this program did not
/// run.
#[derive(Debug, Default)]
pub struct Abandoned(BTreeMap<Participant, Instant>);

impl Abandoned {
    /// Those that have been seen for this time. `participants` are those that no client has now.
    pub fn see(
        &mut self,
        now: Instant,
        participants: Vec<Participant>,
        age: Duration,
    ) -> Vec<Participant> {
        let before = std::mem::take(&mut self.0);
        let mut old = Vec::new();
        for participant in participants {
            let since = before.get(&participant).copied().unwrap_or(now);
            if now.saturating_duration_since(since) >= age {
                old.push(participant.clone());
            }
            self.0.insert(participant, since);
        }
        old
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
            Ok(_) => {
                let renamed = fs::rename(running, &whole);
                if renamed.is_err() {
                    let _ = fs::remove_file(&whole);
                }
                return renamed;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn participant() -> Participant {
        Participant::new("room", "call", "anna").unwrap()
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
            dumps.append(&participant(), b"[1]\n").unwrap();
            dumps.append(&participant(), b"[2]\n").unwrap();
            assert!(names(lake.path()).contains(&".call.anna.rtcstats".into()));
            dumps.finish(&participant()).unwrap();
        }
        assert_eq!(names(lake.path()), ["call.anna.2.rtcstats", "call.anna.rtcstats"]);
        let text = fs::read(lake.path().join("dumps/room/call.anna.2.rtcstats")).unwrap();
        assert_eq!(text, [HEADING, b"[1]\n[2]\n"].concat());
    }

    #[test]
    fn a_line_that_was_cut_is_closed_before_the_next_one() {
        let lake = tempfile::tempdir().unwrap();
        let dumps = Dumps::new(lake.path());
        assert!(dumps.replay(&participant(), 60.0).unwrap().is_none());
        dumps.append(&participant(), b"[\"ontrack\",\"a\",0,1700000000000,4]\n[\"ontr").unwrap();
        let (call, size) = dumps.replay(&participant(), 60.0).unwrap().unwrap();
        assert_eq!((call.sequence(), size), (Some(4), HEADING.len() as u64 + 40));
        dumps.append(&participant(), b"[3]\n").unwrap();
        let text = fs::read(dumps.running(&participant())).unwrap();
        assert!(text.ends_with(b"\n[\"ontr\n[3]\n"), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn a_line_or_heading_that_was_cut_does_not_swallow_the_next_line() {
        let lake = tempfile::tempdir().unwrap();
        let dumps = Dumps::new(lake.path());
        for (left, expected) in [
            ("RTCStatsDump\n{\"fileFormat\":3}\n[1]\n[\"ontr", "[1]\n[\"ontr\n[2]\n"),
            ("RTCStatsD", "[2]\n"),
            ("", "[2]\n"),
        ] {
            dumps.append(&participant(), b"[0]\n").unwrap();
            fs::write(dumps.running(&participant()), left).unwrap();
            dumps.append(&participant(), b"[2]\n").unwrap();
            let text = fs::read_to_string(dumps.running(&participant())).unwrap();
            let expected = format!("{}{expected}", String::from_utf8_lossy(HEADING));
            assert_eq!(text, expected, "after {left:?}");
        }
    }

    #[test]
    fn a_dump_is_abandoned_when_no_client_had_its_seat_for_some_time() {
        let (mut abandoned, now) = (Abandoned::default(), Instant::now());
        let age = Duration::from_secs(100);
        let at = |s: u64| now + Duration::from_secs(s);
        let other = Participant::new("room", "call", "bert").unwrap();
        assert!(abandoned.see(now, vec![participant(), other.clone()], age).is_empty());
        // A client has the place of the other participant for a while.
        assert!(abandoned.see(at(60), vec![participant()], age).is_empty());
        assert_eq!(
            abandoned.see(at(120), vec![participant(), other.clone()], age),
            [participant()]
        );
        assert!(abandoned.see(at(180), vec![other.clone()], age).is_empty());
        assert_eq!(abandoned.see(at(220), vec![other.clone()], age), [other]);
    }

    #[test]
    fn only_dumps_of_calls_that_run_name_participants() {
        let lake = tempfile::tempdir().unwrap();
        let dumps = Dumps::new(lake.path());
        assert!(dumps.running_participants().unwrap().is_empty());
        dumps.append(&participant(), b"[1]\n").unwrap();
        let room = lake.path().join("dumps/room");
        for name in ["call.bert.rtcstats", ".rtcstats", ".a.b", ".a.b.c.rtcstats", ".a.rtcstats"] {
            fs::write(room.join(name), "").unwrap();
        }
        assert_eq!(dumps.running_participants().unwrap(), [participant()]);
    }
}
