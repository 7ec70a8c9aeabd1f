//! A call or a link: this program once more, as a process that reports on a socket.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use weir_record::lines;

use super::current::{self, Shared};

/// How often it is looked whether the process has connected or ended.
const TICK: Duration = Duration::from_millis(50);
/// A process that does not take a line for so long is not sent it.
const WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// Bytes of a line of a process that are kept. Such a line may be that of a command in a link.
const SAID_BYTES_MAX: usize = 10_000;
/// Maximum length of a line that it reports.
const REPORT_BYTES_MAX: usize = 16_000_000;

/// The last line that a process has written to an output.
type LastLine = Arc<Mutex<Option<String>>>;

/// Where a real run's results go.
#[derive(Clone, Debug)]
pub struct Task {
    pub shared: Shared,
    pub number: u64,
    /// Folder of the job's records.
    pub out: PathBuf,
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    /// Once the process has connected.
    stream: Arc<Mutex<Option<UnixStream>>>,
    /// Whether the process has ended: its id may belong to another one.
    ended: Arc<AtomicBool>,
}

impl Process {
    /// Sends a line of `--interactive`.
    pub fn send(&mut self, line: &str) -> anyhow::Result<()> {
        anyhow::ensure!(!line.contains(char::is_control), "a change is one line");
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        match stream.as_mut() {
            Some(stream) => {
                stream.write_all(format!("{line}\n").as_bytes()).context("the run has ended")
            }
            None => bail!("the run is still being set up"),
        }
    }

    /// Ends the run and keeps its record. A run that is being set up has none.
    pub fn end(&mut self) {
        if self.send("end").is_err() {
            self.quit();
        }
    }

    /// Ends the run as Ctrl-C does.
    pub fn quit(&mut self) {
        if !self.ended.load(Ordering::Acquire) {
            // It fails if the process has just ended.
            let _ = kill_process(self.pid, Signal::TERM);
        }
    }
}

impl Task {
    /// Starts the process with these words of the command line, a link with the command `inside`
    /// it, and the threads that follow the process. The last of
    /// the threads ends the job. `folder` holds an edited scenario, `place` all records.
    pub fn start(
        self,
        mut words: Vec<String>,
        inside: &[String],
        folder: &Path,
        place: &Path,
    ) -> anyhow::Result<(Process, Vec<JoinHandle<()>>)> {
        let socket = folder.join(format!("live-{}", self.number));
        let listener = UnixListener::bind(&socket).with_context(|| socket.display().to_string())?;
        listener.set_nonblocking(true)?;
        words.extend(["--live".into(), socket.display().to_string()]);
        words.extend(["--out".into(), self.out.display().to_string()]);
        if !inside.is_empty() {
            words.push("--".into());
            words.extend(inside.iter().cloned());
        }
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(program)
            .args(&words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start this program once more")?;
        let process =
            Process { pid: Pid::from_child(&child), stream: Arc::default(), ended: Arc::default() };
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        threads.extend(output.map(|output| self.listen(output, LastLine::default())));
        let last_error = LastLine::default();
        threads.extend(errors.map(|errors| self.listen(errors, last_error.clone())));
        threads.push(self.follow(listener, &process));
        let (ended, place) = (process.ended.clone(), place.to_path_buf());
        let waiter =
            thread::spawn(move || self.finish(child, &ended, threads, &place, &last_error));
        Ok((process, vec![waiter]))
    }

    /// Adds the lines of an output to the job, and keeps the last one.
    fn listen(&self, output: impl Read + Send + 'static, last: LastLine) -> JoinHandle<()> {
        let task = self.clone();
        thread::spawn(move || {
            for line in lines::cut(BufReader::new(output), SAID_BYTES_MAX) {
                current::update(&task.shared, task.number, |job| job.say(&line));
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
            }
        })
    }

    /// Takes what the process reports.
    fn follow(&self, listener: UnixListener, process: &Process) -> JoinHandle<()> {
        let task = self.clone();
        let (stream, ended) = (process.stream.clone(), process.ended.clone());
        thread::spawn(move || {
            let Some(connected) = accept(&listener, &ended) else { return };
            let Ok(reader) = connected.try_clone() else { return };
            *stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(connected);
            for line in lines::cut(BufReader::new(reader), REPORT_BYTES_MAX) {
                current::update(&task.shared, task.number, |job| job.take(&line));
            }
        })
    }

    /// Waits for the process and for all that it said, and ends the job.
    fn finish(
        self,
        mut child: Child,
        ended: &AtomicBool,
        threads: Vec<JoinHandle<()>>,
        place: &Path,
        last_error: &LastLine,
    ) {
        let status = child.wait();
        ended.store(true, Ordering::Release);
        for thread in threads {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        let records = current::names_in(place, &self.out);
        // A link's exit code is that of its command, so the record tells whether the run succeeded.
        let failure = records.is_empty().then(|| {
            let said = last_error.lock().unwrap_or_else(PoisonError::into_inner).take();
            said.unwrap_or_else(|| format!("it left no record ({})", words(status)))
        });
        current::update(&self.shared, self.number, |job| {
            job.records = records;
            job.end(failure);
        });
    }
}

fn words(status: io::Result<std::process::ExitStatus>) -> String {
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// The process's connection; `None` if it ended before.
fn accept(listener: &UnixListener, ended: &AtomicBool) -> Option<UnixStream> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).ok()?;
                stream.set_write_timeout(Some(WRITE_TIMEOUT)).ok()?;
                return Some(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if ended.load(Ordering::Acquire) {
                    return None;
                }
                thread::sleep(TICK);
            }
            Err(_) => return None,
        }
    }
}
