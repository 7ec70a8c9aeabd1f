//! Programs that are asked something and end by themselves, such as one that tells its version.
//!
//! Such a program may also never end, print without end, or leave processes behind. Each is
//! therefore run in a process group of its own, with a time limit and a bound on its output.

use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::sys::{self, Poll};

/// How often it is checked whether the wait was interrupted.
const TICK: Duration = Duration::from_millis(50);
/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;
/// Set when this process was asked to stop. Signals are sent to a process as a whole, so there is
/// one flag.
static INTERRUPT: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// What a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time until its end.
    pub time: Duration,
    /// Bytes of its output, and as many of its standard error.
    pub bytes: usize,
}

impl Limits {
    /// For a program that says little and needs no time besides its own start.
    pub const SHORT: Self = Self { time: Duration::from_secs(30), bytes: 1_000_000 };
}

/// From here on, [`output`] and [`status`] give up once this flag is set.
pub fn interrupt_answers(flag: Arc<AtomicBool>) {
    *INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(flag);
}

/// Runs a command without input to its end. Returns what it wrote until then. Processes that it
/// leaves in its group are killed.
///
/// # Errors
/// If it does not start, goes beyond the limits, or is interrupted. It is killed then.
pub fn output(command: &mut Command, limits: Limits) -> io::Result<Output> {
    let (stdout, to_stdout) = io::pipe()?;
    let (stderr, to_stderr) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(to_stdout).stderr(to_stderr);
    let mut group = Group::spawn(command, limits.time)?;
    let mut streams = [Stream::new(stdout)?, Stream::new(stderr)?];
    loop {
        let open = streams.iter().filter(|stream| stream.is_open);
        let mut poll =
            Poll::new(open.map(|stream| stream.from.as_fd()).chain([group.ends.as_fd()]));
        poll.wait(TICK)?;
        // Asked before reading, so that all that it wrote before its end is read.
        let has_ended = group.has_ended()?;
        for stream in &mut streams {
            stream.read(limits.bytes)?;
        }
        if has_ended {
            break;
        }
        group.check()?;
    }
    let [stdout, stderr] = streams.map(|stream| stream.text);
    Ok(Output { status: group.end()?, stdout, stderr })
}

/// Runs a command to its end, with input and output as the caller has set them.
///
/// # Errors
/// If it does not start, goes beyond the time, or is interrupted. It is killed then.
pub fn status(command: &mut Command, time: Duration) -> io::Result<ExitStatus> {
    let mut group = Group::spawn(command, time)?;
    while !group.has_ended()? {
        group.check()?;
        Poll::new([group.ends.as_fd()]).wait(TICK)?;
    }
    group.end()
}

/// A program with the processes of its group. Dropping it kills all of them.
struct Group {
    leader: Child,
    /// Readable once the leader has ended.
    ends: OwnedFd,
    give_up: Instant,
    time: Duration,
}

impl Group {
    fn spawn(command: &mut Command, time: Duration) -> io::Result<Self> {
        let spawned = command.process_group(0).spawn();
        // Else the pipes' other ends stay open here.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let leader = spawned?;
        let ends = sys::open_process(leader.id().cast_signed())?;
        Ok(Self { leader, ends, give_up: Instant::now() + time, time })
    }

    /// Whether the leader has ended. It is not reaped, so its group keeps its number.
    fn has_ended(&self) -> io::Result<bool> {
        let mut poll = Poll::new([self.ends.as_fd()]);
        poll.wait(Duration::ZERO)?;
        Ok(poll.is_readable(0))
    }

    /// An error if the wait is over.
    fn check(&self) -> io::Result<()> {
        let interrupt = INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner);
        if interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(io::Error::other("interrupted"));
        }
        if Instant::now() >= self.give_up {
            let why = format!("it did not end within {} s", self.time.as_secs_f64());
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        Ok(())
    }

    /// Reaps a leader that has ended.
    fn end(&mut self) -> io::Result<ExitStatus> {
        sys::kill_group(self.leader.id());
        self.leader.wait()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once the leader is reaped, its number may be reused for another process group.
        if let Ok(None) = self.leader.try_wait() {
            // This fails only if there is no process to wait for.
            let _ = self.end();
        }
    }
}

/// One of a program's outputs.
struct Stream {
    from: PipeReader,
    text: Vec<u8>,
    is_open: bool,
}

impl Stream {
    fn new(from: PipeReader) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&from, OFlags::NONBLOCK)?;
        Ok(Self { from, text: Vec::new(), is_open: true })
    }

    /// Reads what is there. An error if that is too much.
    fn read(&mut self, max: usize) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        while self.is_open {
            match self.from.read(&mut chunk) {
                Ok(0) => self.is_open = false,
                Ok(length) => self.text.extend(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.text.len() > max {
                let why = format!("it printed more than {max} bytes");
                return Err(io::Error::new(ErrorKind::FileTooLarge, why));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const FEW: Limits = Limits { time: Duration::from_secs(60), bytes: 100 };
    const AT_ONCE: Limits = Limits { time: Duration::from_millis(200), bytes: 100 };

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    /// Waits for the end of the process whose number is in this file: a signal kills a process
    /// that is not a child some time after it was sent.
    fn ends(file: &Path) {
        let begun = Instant::now();
        while runs(file) {
            assert!(begun.elapsed() < FEW.time, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether it still runs.
    fn runs(file: &Path) -> bool {
        let number = fs::read_to_string(file).unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
        // A process that nobody has reaped yet is dead, too.
        !stat.is_empty() && !stat.contains(") Z ")
    }

    #[test]
    fn what_a_program_prints_before_its_end_is_its_answer() {
        let done = output(&mut shell("echo one; echo two >&2; exit 3"), FEW).unwrap();
        assert_eq!((done.stdout, done.stderr), (b"one\n".to_vec(), b"two\n".to_vec()));
        assert_eq!(done.status.code(), Some(3));
        assert_eq!(status(&mut shell("exit 4"), FEW.time).unwrap().code(), Some(4));
        assert!(output(&mut Command::new("/no/such/program"), FEW).is_err());
    }

    #[test]
    fn a_program_that_never_ends_is_given_up_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        for error in [
            output(&mut shell(&script), AT_ONCE).unwrap_err(),
            status(&mut shell(&script), AT_ONCE.time).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), "it did not end within 0.2 s");
            ends(&file);
        }
    }

    #[test]
    fn a_program_that_prints_without_end_is_given_up() {
        for script in ["yes", "yes >&2", "while :; do printf x; done"] {
            let error = output(&mut shell(script), FEW).unwrap_err();
            assert_eq!(error.to_string(), "it printed more than 100 bytes", "{script}");
        }
    }

    #[test]
    fn a_program_has_ended_even_if_its_children_hold_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let script = format!("sleep 1000 & echo $! > {}; echo 1.0", file.display());
        assert_eq!(output(&mut shell(&script), FEW).unwrap().stdout, b"1.0\n");
        ends(&file);
    }

    #[test]
    fn a_program_without_output_is_waited_for() {
        let script = "exec >&- 2>&-; sleep 0.1; exit 5";
        assert_eq!(output(&mut shell(script), FEW).unwrap().status.code(), Some(5));
    }
}
