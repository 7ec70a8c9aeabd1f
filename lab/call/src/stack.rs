//! The stacks of the arena: programs with a WebRTC library of others, which send the video of a
//! call under the control that they have.
//!
//! A stack is a folder with the file `stack.toml`. Its driver talks to the lab in the lines of a
//! pipeline.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use weir_emu::{Host, User};

use crate::message::printable;

const FILE: &str = "stack.toml";

/// A stack on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Name of its folder.
    pub name: String,
    /// What its file says.
    pub manifest: Manifest,
    folder: PathBuf,
}

/// The file `stack.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name of the stack, as people know it.
    pub title: String,
    /// Address of its project.
    pub home: String,
    /// Its licence.
    pub licence: String,
    /// What controls the rate, in a few words.
    pub control: String,
    /// Our controller whose simulation should behave alike.
    #[serde(default)]
    pub twin: Option<String>,
    /// The feedback that it asks for.
    pub feedback: Vec<FeedbackKind>,
    /// Where its pictures are encoded, in a few words.
    pub encoder: String,
    /// The driver's program and arguments. Paths are relative to the folder.
    pub driver: Vec<String>,
    /// A shell command that installs it, to be run in the folder.
    pub install: String,
    /// What its users should know, in a sentence.
    #[serde(default)]
    pub note: Option<String>,
}

/// What a receiver tells a sender about its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackKind {
    /// Transport-wide feedback.
    Twcc,
    /// The feedback of RFC 8888.
    Ccfb,
    /// The receiver's own estimate.
    Remb,
    /// Receiver reports alone.
    Rr,
}

impl fmt::Display for FeedbackKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Twcc => "TWCC",
            Self::Ccfb => "CCFB",
            Self::Remb => "REMB",
            Self::Rr => "RR",
        })
    }
}

/// Why a stack cannot be used. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// There is no such folder.
    #[error("no stack '{name}' in {}: {known}", folder.display())]
    Unknown {
        /// The name.
        name: String,
        /// The folder of the stacks.
        folder: PathBuf,
        /// What to write.
        known: String,
    },
    /// The file cannot be read.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The driver does not run.
    #[error("the stack {name} is not installed ({cause}): run `{install}` in {}", folder.display())]
    NotInstalled {
        /// Its name.
        name: String,
        /// Its folder.
        folder: PathBuf,
        /// The command that installs it.
        install: String,
        /// What happened instead.
        cause: String,
    },
}

impl Stack {
    /// Reads the stack of this name below `folder`.
    ///
    /// # Errors
    /// If there is none, or its file is damaged.
    pub fn read(folder: &Path, name: &str) -> Result<Self, StackError> {
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let own = folder.join(name);
        let path = own.join(FILE);
        if name.is_empty() || !is_name || !path.is_file() {
            let names = names(folder);
            let known = match names.is_empty() {
                true => "it has no stacks; name the folder `arena` of Weir's sources".to_owned(),
                false => format!("it has {}", names.join(", ")),
            };
            return Err(StackError::Unknown { name: name.into(), folder: folder.into(), known });
        }
        match manifest(&path) {
            // The driver is started in the folder, whatever that of the lab is.
            Ok(manifest) => {
                let folder = fs::canonicalize(&own).unwrap_or(own);
                Ok(Self { name: name.into(), manifest, folder })
            }
            Err(cause) => Err(StackError::File { path, cause }),
        }
    }

    /// All stacks below `folder`, by name.
    ///
    /// # Errors
    /// If a file is damaged.
    pub fn all(folder: &Path) -> Result<Vec<Self>, StackError> {
        names(folder).iter().map(|name| Self::read(folder, name)).collect()
    }

    /// The version that the driver reports.
    ///
    /// # Errors
    /// If it does not run; the message says how to install it.
    pub fn version(&self) -> Result<String, StackError> {
        let Some((program, arguments)) = self.manifest.driver.split_first() else {
            return Err(self.not_installed("its file names no driver".into()));
        };
        let mut command = Command::new(self.folder.join(program));
        command.args(arguments).arg("--version").current_dir(&self.folder);
        let output = match command.stdin(Stdio::null()).output() {
            Ok(output) => output,
            Err(error) => return Err(self.not_installed(error.to_string())),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        match text.lines().next().filter(|_| output.status.success()) {
            Some(version) => Ok(printable(version)),
            None => {
                let complaint = String::from_utf8_lossy(&output.stderr);
                let last = complaint.lines().rfind(|line| !line.trim().is_empty());
                let cause = last.map_or_else(|| output.status.to_string(), printable);
                Err(self.not_installed(cause))
            }
        }
    }

    /// The driver on a host.
    pub(crate) fn command(&self, host: &Host) -> Command {
        let (program, arguments) =
            self.manifest.driver.split_first().expect("its version was read from it");
        // Only the user who installed it may enter its folder.
        let mut command = host.command_as(User::Own, self.folder.join(program));
        command.args(arguments).current_dir(&self.folder);
        command
    }

    fn not_installed(&self, cause: String) -> StackError {
        StackError::NotInstalled {
            name: self.name.clone(),
            folder: self.folder.clone(),
            install: self.manifest.install.clone(),
            cause,
        }
    }
}

/// Names of the folders with a stack, in order.
fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().join(FILE).is_file() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    names
}

fn manifest(path: &Path) -> Result<Manifest, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let manifest: Manifest = toml::from_str(&text).map_err(|error| {
        let whole = error.to_string();
        printable(&whole.lines().collect::<Vec<_>>().join(" "))
    })?;
    if manifest.driver.is_empty() {
        return Err("driver is empty: name a program".into());
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "title = \"t\"\nhome = \"h\"\nlicence = \"MIT\"\ncontrol = \"c\"\n\
                        feedback = [\"twcc\"]\nencoder = \"e\"\ninstall = \"make\"\n";

    fn folder(driver: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join(FILE), format!("{TEXT}{driver}")).unwrap();
        }
        fs::create_dir(folder.path().join("not-a-stack")).unwrap();
        folder
    }

    #[test]
    fn stacks_are_found_by_name_and_an_unknown_one_is_told_the_others() {
        let folder = folder("driver = [\"/bin/echo\", \"one\"]\n");
        let found = Stack::all(folder.path()).unwrap();
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(found[0].version().unwrap(), "one --version");
        for name in ["c", "", "../a", "not-a-stack"] {
            let error = Stack::read(folder.path(), name).unwrap_err().to_string();
            assert!(error.ends_with("it has a, b"), "{error}");
        }
    }

    #[test]
    fn a_driver_that_does_not_run_says_how_to_install_it() {
        for driver in ["driver = [\"./missing\"]\n", "driver = [\"/bin/false\"]\n"] {
            let folder = folder(driver);
            let stack = Stack::read(folder.path(), "a").unwrap();
            let error = stack.version().unwrap_err().to_string();
            assert!(error.contains("run `make` in"), "{error}");
        }
    }

    #[test]
    fn a_damaged_file_is_one_line_with_its_path() {
        for driver in ["", "driver = []\n", "driver = [\"x\"]\nspeed = 1\n", "driver = 7\n"] {
            let folder = folder(driver);
            let error = Stack::read(folder.path(), "a").unwrap_err().to_string();
            assert!(error.contains("a/stack.toml: ") && !error.contains('\n'), "{error}");
        }
    }
}
