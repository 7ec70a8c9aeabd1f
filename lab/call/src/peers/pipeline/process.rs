//! A Python program with GStreamer on a host: how it is found, started and talked to.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use weir_emu::{Child, Host, Limits, User};

use super::messages::{LabLine, PipelineLine};
use crate::error::CallError;
use crate::message::{LabMessage, complaint, end_of, printable};
use crate::peers::confinement;
use crate::run::signalling::MESSAGE_BYTES_MAX;

/// Python programs, in order of preference. The first is the one that Debian's packages extend.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "python3"];
/// The program that reports what is installed.
const CHECK: Script = Script { files: &[("check.py", include_str!("check.py"))] };
/// What the check may take. It also makes GStreamer's list of plugins.
const CHECK_LIMITS: Limits = Limits { time: Duration::from_secs(120), ..Limits::SHORT };
/// File mode: readable by all, because the program may run as another user.
const READ_BY_ALL: u32 = 0o644;
/// How the names of the plugin's elements begin. Other elements are in Debian's packages.
const OWN_ELEMENTS: &str = "weir";

/// A Python program of one or more files. The first file is started and imports the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    /// Names and texts.
    pub(crate) files: &'static [(&'static str, &'static str)],
}

impl Script {
    /// Writes the files to a folder. Returns the path of the first.
    fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        for (name, text) in self.files {
            let path = folder.join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(READ_BY_ALL))?;
        }
        Ok(folder.join(self.files[0].0))
    }
}

/// GStreamer with its Python binding and the plugin `weir`, as installed on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Gstreamer {
    python: &'static str,
    user: User,
    /// Where GStreamer keeps its list of plugins, so that only the first program looks for them.
    registry: PathBuf,
    /// Versions of GStreamer and of the plugin, as they report them.
    pub(crate) version: String,
    /// Set if the programs are less confined than they should be: one line for the record.
    pub(crate) warning: Option<String>,
}

/// The answer of the check.
#[derive(Debug, Deserialize)]
struct Installed {
    version: String,
    /// The elements that are missing.
    missing: Vec<String>,
}

impl Gstreamer {
    /// Finds GStreamer and checks that it has these elements. The check runs on `host`, in a new
    /// folder below `folder`.
    ///
    /// # Errors
    /// If a part is missing; the message says what to install.
    pub(crate) fn find(host: &Host, folder: &Path, elements: &[&str]) -> Result<Self, CallError> {
        let ordinary = User::ordinary();
        let first = match confinement::closed(folder).filter(|_| ordinary == User::Nobody) {
            Some(cause) => Err(CallError::NoGstreamer(cause)),
            None => attempt(host, folder, ordinary, elements),
        };
        let Err(cause) = first else { return first };
        if ordinary == User::Own {
            return Err(cause);
        }
        // The plugin may be in a folder that only root may enter.
        let mut found = attempt(host, folder, User::Own, elements)?;
        let who = if ordinary == User::Nobody { " as root" } else { "" };
        found.warning = Some(format!("pipelines run{who}: {cause}"));
        Ok(found)
    }

    /// Starts a program on `host`. `folder` is the name of a new folder. `settings` become the
    /// first line of its input.
    pub(crate) fn start(
        &self,
        host: &Host,
        folder: &Path,
        script: &Script,
        settings: &impl Serialize,
    ) -> Result<(PipelineProcess, Pipes), CallError> {
        let failed = CallError::system;
        self.user.make_folder(folder).map_err(failed("make the pipeline's folder"))?;
        let main = script.write(folder).map_err(failed("write the pipeline's program"))?;
        let log = folder.join("weir.log");
        let output = File::create(&log).map_err(failed("make the pipeline's log"))?;
        let mut command = self.command(host, folder);
        command.arg(main).stderr(output);
        PipelineProcess::start(command, log, settings)
    }

    fn command(&self, host: &Host, folder: &Path) -> std::process::Command {
        let mut command = host.command_as(self.user, self.python);
        command.current_dir(folder).env("HOME", folder).env("TMPDIR", folder);
        command.env("GST_REGISTRY", &self.registry).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// Checks what is installed, as this user.
fn attempt(
    host: &Host,
    folder: &Path,
    user: User,
    elements: &[&str],
) -> Result<Gstreamer, CallError> {
    let failed = CallError::system;
    let own = folder.join(if user == User::Own { "gst-own" } else { "gst" });
    user.make_folder(&own).map_err(failed("make a folder for GStreamer"))?;
    let script = CHECK.write(&own).map_err(failed("write the check of GStreamer"))?;
    let registry = own.join("registry.bin");
    let mut causes = Vec::new();
    for python in PYTHONS {
        let (version, warning) = (String::new(), None);
        let mut found = Gstreamer { python, user, registry: registry.clone(), version, warning };
        let mut command = found.command(host, &own);
        let output = match weir_emu::output(command.arg(&script).args(elements), CHECK_LIMITS) {
            Ok(output) => output,
            Err(error) => {
                causes.push(format!("{python}: {error}"));
                continue;
            }
        };
        match serde_json::from_slice::<Installed>(&output.stdout) {
            Ok(installed) => {
                found.version = printable(&installed.version);
                return missing(&installed).map_or(Ok(found), Err);
            }
            Err(_) => causes.push(format!("{python}: {}", complaint(&output.stderr))),
        }
    }
    Err(CallError::NoGstreamer(causes.join("; ")))
}

/// The error about a missing element.
fn missing(installed: &Installed) -> Option<CallError> {
    let own = installed.missing.iter().find(|name| name.starts_with(OWN_ELEMENTS));
    if own.is_some() {
        return Some(CallError::NoPlugin);
    }
    let other = installed.missing.first()?;
    Some(CallError::NoGstreamer(format!("it has no element {}", printable(other))))
}

/// A running pipeline. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct PipelineProcess {
    child: Child,
    pid: u32,
    log: PathBuf,
}

impl PipelineProcess {
    /// Starts a program that talks to the lab in lines. `log` is the file of its standard error.
    /// `settings` become the first line of its input.
    pub(super) fn start(
        mut command: std::process::Command,
        log: PathBuf,
        settings: &impl Serialize,
    ) -> Result<(Self, Pipes), CallError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Child::spawn(&mut command)?;
        let pid = child.inner().id();
        let mut stdin = child.inner().stdin.take().expect("it is piped");
        let stdout = child.inner().stdout.take().expect("it is piped");
        let mut first = serde_json::to_vec(settings).expect("settings have only text keys");
        first.push(b'\n');
        match io::Write::write_all(&mut stdin, &first) {
            // It has ended already: its calls fail, and its last words say why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.map_err(CallError::system("configure the pipeline"))?,
        }
        let pipes = Pipes { stdin: stdin.into(), stdout: stdout.into() };
        Ok((Self { pid, child, log }, pipes))
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.inner().try_wait(), Ok(None))
    }

    /// What it complained about on standard error, for a message about its end.
    pub(crate) fn last_words(&self) -> String {
        complaint(&end_of(&self.log))
    }
}

/// Input and output of a pipeline, before a task talks over them.
#[derive(Debug)]
pub(crate) struct Pipes {
    stdin: OwnedFd,
    stdout: OwnedFd,
}

impl Pipes {
    /// The two directions, for a task of the server.
    pub(super) fn open(self) -> io::Result<(LineReader, LineWriter)> {
        let reader = pipe::Receiver::from_owned_fd(self.stdout)?;
        let writer = pipe::Sender::from_owned_fd(self.stdin)?;
        Ok((LineReader { inner: BufReader::new(reader), text: Vec::new() }, LineWriter(writer)))
    }
}

/// Reads a pipeline's lines.
#[derive(Debug)]
pub(super) struct LineReader {
    inner: BufReader<pipe::Receiver>,
    /// A line that is not complete yet. It is kept here because [`next`](Self::next) may be
    /// cancelled.
    text: Vec<u8>,
}

impl LineReader {
    /// The next line; `None` at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<PipelineLine, String>> {
        // One byte more than a line may have.
        let left = MESSAGE_BYTES_MAX + 1 - self.text.len().min(MESSAGE_BYTES_MAX);
        let read = (&mut self.inner).take(left as u64).read_until(b'\n', &mut self.text).await;
        if self.text.len() > MESSAGE_BYTES_MAX {
            return Some(Err(format!(
                "the program wrote a line of more than {} kB to standard output",
                MESSAGE_BYTES_MAX / 1024
            )));
        }
        if !matches!(read, Ok(1..)) {
            return None;
        }
        let line = serde_json::from_slice(&self.text).map_err(|error| {
            let line = printable(&String::from_utf8_lossy(&self.text));
            format!(
                "the program wrote a line to standard output that is not part of the protocol: \
                 {error}: {line}"
            )
        });
        self.text.clear();
        Some(line)
    }
}

/// Writes lines to a pipeline.
#[derive(Debug)]
pub(super) struct LineWriter(pipe::Sender);

impl LineWriter {
    pub(super) async fn write(&mut self, call: usize, message: &LabMessage) -> io::Result<()> {
        let line = LabLine { call, message };
        let mut text = serde_json::to_vec(&line).expect("a message has only text keys");
        text.push(b'\n');
        self.0.write_all(&text).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(missing_elements: &[&str]) -> Option<String> {
        let missing_elements = missing_elements.iter().map(|name| (*name).to_owned()).collect();
        let installed = Installed { version: String::new(), missing: missing_elements };
        missing(&installed).map(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_line_of_a_pipeline_has_a_bound() {
        let (input, stdin) = io::pipe().unwrap();
        let (stdout, mut output) = io::pipe().unwrap();
        let pipes = Pipes { stdin: stdin.into(), stdout: stdout.into() };
        let (mut reader, _writer) = pipes.open().unwrap();
        // It writes on until nobody reads.
        let endless =
            std::thread::spawn(
                move || {
                    while io::Write::write_all(&mut output, &[b'x'; 4096]).is_ok() {}
                },
            );
        let error = reader.next().await.unwrap().unwrap_err();
        assert!(error.ends_with("a line of more than 256 kB to standard output"), "{error}");
        assert!(reader.text.len() <= MESSAGE_BYTES_MAX + 1);
        // A second look at the same line says the same.
        assert!(reader.next().await.unwrap().is_err());
        drop((reader, input));
        endless.join().unwrap();
    }

    #[test]
    fn a_missing_part_is_told_with_what_to_do() {
        assert_eq!(cause(&[]), None);
        assert!(cause(&["weircc"]).unwrap().contains("make install-gst"));
        let vp8 = cause(&["vp8enc"]).unwrap();
        assert!(vp8.contains("vp8enc") && vp8.contains("apt-get install"), "{vp8}");
        // Without its packages the plugin's absence says little, and the other way round.
        assert!(cause(&["vp8enc", "weircc"]).unwrap().contains("make install-gst"));
    }
}
