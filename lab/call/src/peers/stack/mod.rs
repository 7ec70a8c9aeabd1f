//! The stacks of the arena: programs with a WebRTC library of others, which send the video of a
//! call under the control that they have, or receive it.
//!
//! A stack is a folder with the file `stack.toml`, or a command. Its driver talks to the lab in the
//! lines of a pipeline.

mod manifest;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_emu::{Enclosure, Host, Limits, User};
use weir_record::subject::StackRole;

use crate::message::{complaint, printable};

pub use manifest::{FeedbackKind, Manifest, ServedApplication};

const FILE: &str = "stack.toml";
/// Maximum length of the name of a stack. It becomes part of the names of records.
const NAME_CHARS_MAX: usize = 64;

/// A stack on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Name of its folder, or the name that the user gives to a command.
    pub name: String,
    /// Where its driver comes from.
    pub origin: Origin,
    /// Program and arguments of the driver.
    driver: Vec<String>,
    /// Where the driver is started.
    folder: PathBuf,
}

/// Where the driver of a stack comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A folder with this file.
    Folder(Box<Manifest>),
    /// A command in shell syntax, which its user named.
    Command(String),
}

/// Why a stack cannot be used. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// There is no such folder.
    #[error("no stack '{}' in {}: {known}", printable(name), folder.display())]
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
    /// The name of a command cannot be that of a stack.
    #[error(
        "'{}' cannot be the name of a stack: write up to {NAME_CHARS_MAX} letters, digits, - \
        and _, and no - at the beginning",
        printable(name)
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The command of a driver does not run.
    #[error("the driver of {name} does not run ({cause}): try `{command} --version`")]
    Command {
        /// Its name.
        name: String,
        /// The command in shell syntax.
        command: String,
        /// What happened instead.
        cause: String,
    },
    /// A forwarding server sends no video of its own.
    #[error("{name} is a forwarding server: `weir arena --role sfu` tests it")]
    Server {
        /// Its name.
        name: String,
    },
    /// The driver of a folder cannot do this.
    #[error("{name} is no {}: its {FILE} has only the roles {known}", role.name())]
    Role {
        /// Its name.
        name: String,
        /// What was asked for.
        role: StackRole,
        /// What there is.
        known: String,
    },
    /// The driver of a folder does not run.
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
        let own = folder.join(name);
        let path = own.join(FILE);
        if !is_name(name) || !own.is_dir() {
            let mut names = names(folder);
            names.retain(|name| is_name(name));
            let known = match names.is_empty() {
                true => "it has no stacks; name the folder `arena` of Weir's sources".to_owned(),
                false => format!("it has {}", names.join(", ")),
            };
            return Err(StackError::Unknown { name: name.into(), folder: folder.into(), known });
        }
        let manifest = match manifest::read(&path) {
            Ok(manifest) => manifest,
            Err(cause) => return Err(StackError::File { path, cause }),
        };
        // The driver is started in the folder, whatever that of the lab is.
        let folder = fs::canonicalize(&own).unwrap_or(own);
        let driver = manifest.driver.clone();
        Ok(Self { name: name.into(), origin: Origin::Folder(Box::new(manifest)), driver, folder })
    }

    /// The same, for a stack with this role in a call.
    ///
    /// # Errors
    /// As [`Self::read`], and if it is a forwarding server or has no such role.
    pub fn with_role(folder: &Path, name: &str, role: StackRole) -> Result<Self, StackError> {
        let stack = Self::read(folder, name)?;
        if stack.application().is_some() {
            return Err(StackError::Server { name: name.into() });
        }
        let roles = stack.roles();
        if !roles.contains(&role) {
            let known = roles.into_iter().map(StackRole::name).collect::<Vec<_>>().join(", ");
            return Err(StackError::Role { name: name.into(), role, known });
        }
        Ok(stack)
    }

    /// Whether it asks for this feedback. Of a command that was named nothing is known.
    #[must_use]
    pub fn asks_for(&self, feedback: FeedbackKind) -> bool {
        match &self.origin {
            Origin::Folder(manifest) => manifest.feedback.contains(&feedback),
            Origin::Command(_) => false,
        }
    }

    /// Whether it is at both ends of a call.
    #[must_use]
    pub fn is_at_both_ends(&self) -> bool {
        match &self.origin {
            Origin::Folder(manifest) => manifest.both_ends,
            Origin::Command(_) => false,
        }
    }

    /// What its driver can do in a call. A command is taken at its user's word.
    pub fn roles(&self) -> Vec<StackRole> {
        match &self.origin {
            Origin::Folder(manifest) => manifest.roles.clone(),
            Origin::Command(_) => vec![StackRole::Sender, StackRole::Receiver],
        }
    }

    /// A stack whose driver is a command in shell syntax, started in the present folder.
    ///
    /// # Errors
    /// If the name is not one of a stack.
    pub fn of_command(name: &str, command: &str) -> Result<Self, StackError> {
        if !is_name(name) {
            return Err(StackError::Name { name: name.into() });
        }
        // The shell becomes the driver, so that a signal reaches it.
        let words = ["/bin/sh", "-c", &format!("exec {command} \"$@\""), "driver"];
        Ok(Self {
            name: name.into(),
            origin: Origin::Command(command.into()),
            driver: words.map(str::to_owned).into(),
            folder: PathBuf::from("."),
        })
    }

    /// Where the driver is started.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How its participants use it; `None` for a sender.
    pub fn application(&self) -> Option<&ServedApplication> {
        match &self.origin {
            Origin::Folder(manifest) => manifest.application.as_ref(),
            Origin::Command(_) => None,
        }
    }

    /// The command that its user named; `None` for a stack with a folder.
    pub fn named_command(&self) -> Option<&str> {
        match &self.origin {
            Origin::Folder(_) => None,
            Origin::Command(command) => Some(command),
        }
    }

    /// All stacks below `folder`, by name; or what is wrong with the file of one.
    pub fn all(folder: &Path) -> Vec<Result<Self, StackError>> {
        let mut all = Vec::new();
        for name in names(folder) {
            all.push(match is_name(&name) {
                true => Self::read(folder, &name),
                false => Err(StackError::Name { name }),
            });
        }
        all
    }

    /// The version that the driver reports.
    ///
    /// # Errors
    /// If it does not run; the message says how to install it.
    pub fn version(&self) -> Result<String, StackError> {
        self.version_within(Limits::SHORT)
    }

    fn version_within(&self, limits: Limits) -> Result<String, StackError> {
        let (program, arguments) = self.program();
        let enclosure = Enclosure::new();
        let mut command = enclosure.command(program);
        command.args(arguments).arg("--version").current_dir(&self.folder);
        let output = match weir_emu::output(&mut command, limits) {
            Ok(output) => output,
            Err(error) => return Err(self.not_installed(error.to_string())),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        match text.lines().next().filter(|_| output.status.success()) {
            Some(version) => Ok(printable(version)),
            None => Err(self.not_installed(match complaint(&output.stderr) {
                said if !said.is_empty() => said,
                _ if output.status.success() => "its driver printed no version".into(),
                _ => output.status.to_string(),
            })),
        }
    }

    /// The driver on a host.
    pub(crate) fn command(&self, host: &Host) -> Command {
        let (program, arguments) = self.program();
        // Only the user who installed it may enter its folder.
        let mut command = host.command_as(User::Own, program);
        command.args(arguments).current_dir(&self.folder);
        command
    }

    fn program(&self) -> (PathBuf, &[String]) {
        let (program, arguments) = self.driver.split_first().expect("a driver has a program");
        (self.folder.join(program), arguments)
    }

    fn not_installed(&self, cause: String) -> StackError {
        let name = self.name.clone();
        match &self.origin {
            Origin::Folder(manifest) => StackError::NotInstalled {
                name,
                folder: self.folder.clone(),
                install: manifest.install.clone(),
                cause,
            },
            Origin::Command(command) => {
                StackError::Command { name, command: command.clone(), cause }
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    // One that begins as an option does would be taken for one.
    (1..=NAME_CHARS_MAX).contains(&name.len())
        && !name.starts_with('-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Names of the folders with a stack, in order.
fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Whatever it is: one that cannot be read is told when it is.
        if fs::symlink_metadata(entry.path().join(FILE)).is_ok() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let found = Stack::all(folder.path()).into_iter().map(Result::unwrap);
        let found: Vec<Stack> = found.collect();
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(found[0].version().unwrap(), "one --version");
        let file = Stack::read(folder.path(), "not-a-stack").unwrap_err().to_string();
        assert!(file.contains("not-a-stack/stack.toml: No such file"), "{file}");
        for name in ["c", "", "../a"] {
            let error = Stack::read(folder.path(), name).unwrap_err().to_string();
            assert!(error.ends_with("it has a, b"), "{error}");
        }
    }

    #[test]
    fn a_driver_that_does_not_run_says_why_and_how_to_install_it() {
        for (driver, why) in [
            ("driver = [\"./missing\"]\n", "(No such file"),
            ("driver = [\"/bin/false\"]\n", "(exit status: 1)"),
            ("driver = [\"/bin/sh\", \"-c\", \"exit 0\"]\n", "(its driver printed no version)"),
            ("driver = [\"/bin/sh\", \"-c\", \"echo no camera >&2; exit 3\"]\n", "(no camera)"),
        ] {
            let folder = folder(driver);
            let stack = Stack::read(folder.path(), "a").unwrap();
            let error = stack.version().unwrap_err().to_string();
            assert!(error.contains("run `make` in") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_driver_that_never_tells_its_version_is_given_up() {
        let limits = Limits { time: Duration::from_millis(200), bytes: 1_000 };
        for (command, why) in [
            ("sleep 1000", "(it did not end within 0.2 s)"),
            ("yes", "(it printed more than 1000 bytes)"),
            ("sh -c 'yes >&2'", "(it printed more than 1000 bytes)"),
        ] {
            let stack = Stack::of_command("mine", &format!("{command}; :")).unwrap();
            let error = stack.version_within(limits).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_not_regular_or_too_large_is_told_and_not_read() {
        let folder = folder("driver = [\"/bin/echo\"]\n");
        let at = |name: &str| folder.path().join(name).join(FILE);
        fs::remove_file(at("a")).unwrap();
        assert!(Command::new("mkfifo").arg(at("a")).status().unwrap().success());
        for (name, target) in [("endless", "/dev/zero"), ("gone", "/no/such/file")] {
            fs::create_dir(folder.path().join(name)).unwrap();
            std::os::unix::fs::symlink(target, at(name)).unwrap();
        }
        fs::create_dir_all(at("folder")).unwrap();
        fs::create_dir(folder.path().join("huge")).unwrap();
        fs::File::create(at("huge")).unwrap().set_len(1 << 40).unwrap();
        let mut told = Vec::new();
        fs::create_dir_all(at("--help")).unwrap();
        for found in Stack::all(folder.path()) {
            told.push(found.map_or_else(|error| error.to_string(), |stack| stack.name));
        }
        let wanted = [
            "'--help' cannot be the name of a stack",
            "a/stack.toml: is no regular file",
            "b",
            "endless/stack.toml: is no regular file",
            "folder/stack.toml: is no regular file",
            "gone/stack.toml: No such file",
            "huge/stack.toml: is larger than 1 MB",
        ];
        assert_eq!(told.len(), wanted.len(), "{told:?}");
        for (told, wanted) in told.iter().zip(wanted) {
            assert!(told.contains(wanted) && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn a_command_is_a_stack_and_the_shell_reads_it() {
        let stack = Stack::of_command("mine", "/bin/echo 'a  b'").unwrap();
        assert_eq!(stack.version().unwrap(), "a  b --version");
        assert_eq!(stack.named_command(), Some("/bin/echo 'a  b'"));
        let error = Stack::of_command("mine", "./missing x").unwrap().version().unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("the driver of mine does not run (") && !error.contains('\n'));
        assert!(error.ends_with("try `./missing x --version`"), "{error}");
        for name in ["../mine", "--mine", "-", "", &"x".repeat(65), "a b"] {
            let error = Stack::of_command(name, "x").unwrap_err().to_string();
            assert!(error.contains("cannot be the name of a stack"), "{error}");
        }
    }

    #[test]
    fn a_forwarding_server_is_no_sender() {
        let folder = folder(
            "driver = [\"/bin/echo\"]\n[application]\npage = \"http://{server}:9000/\"\n\
             join = \"join.mjs\"\nserve = \"node server.mjs\"\nparticipants = 3\n",
        );
        let server = Stack::read(folder.path(), "a").unwrap();
        assert_eq!(server.application().map(|application| application.participants), Some(3));
        let error = Stack::with_role(folder.path(), "a", StackRole::Sender).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("--role sfu"), "{error}");
    }

    #[test]
    fn a_stack_has_only_the_roles_of_its_file_and_sends_if_it_names_none() {
        for (roles, sends, receives) in [
            ("", true, false),
            ("roles = [\"receiver\"]\n", false, true),
            ("roles = [\"sender\", \"receiver\"]\n", true, true),
        ] {
            let folder = folder(&format!("driver = [\"/bin/echo\"]\n{roles}"));
            for (role, can) in [(StackRole::Sender, sends), (StackRole::Receiver, receives)] {
                match Stack::with_role(folder.path(), "a", role) {
                    Ok(_) => assert!(can, "{roles}"),
                    Err(error) => {
                        let wanted = format!("a is no {}: ", role.name());
                        assert!(!can && error.to_string().starts_with(&wanted), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_damaged_file_is_one_line_with_its_path() {
        for (driver, wrong) in [
            ("", "missing field `driver`"),
            ("driver = []\n", "driver is empty"),
            ("driver = [\"\"]\n", "driver is empty"),
            ("driver = [\"x\", \"a\\u0000b\"]\n", "driver has a control character"),
            ("driver = [\"x\"]\nnote = \"a\\u001b[2J\"\n", "note has a control character"),
            ("driver = [\"x\"]\nnote = \"a\\nb\"\n", "note has a control character"),
            (&format!("driver = [\"{}\"]\n", "x".repeat(2_001)), "driver is longer than 2000"),
            ("driver = [\"x\"]\nspeed = 1\n", "line 9: unknown field `speed`"),
            ("driver = 7\n", "line 8: invalid type"),
            ("driver = [\"x\"]\ntwin = \"gc\"\n", "twin: no controller 'gc': gcc,"),
        ] {
            let folder = folder(driver);
            let error = Stack::read(folder.path(), "a").unwrap_err().to_string();
            let is_told = error.contains("a/stack.toml: ") && error.contains(wrong);
            assert!(is_told && !error.contains('\n'), "{error}");
        }
    }
}
