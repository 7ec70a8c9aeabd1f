//! Chooses the user that a browser runs as, and whether it runs in its sandbox. Both are found by
//! trying, because no kernel setting answers this reliably (AppArmor lets only some programs create
//! user namespaces).
//!
//! ```text
//!   an ordinary user, with the sandbox -> the same without it -> the lab's own user without it
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use weir_emu::{Limits, User};
use weir_scenario::call::BrowserKind;

use crate::message::printable;

/// Chromium's option to run without its sandbox.
pub(crate) const NO_SANDBOX: &str = "--no-sandbox";
/// Chromium's message if no sandbox is available.
const UNUSABLE: &str = "No usable sandbox";
/// Part of the line that Chromium prints before it exits with a fatal error.
const FATAL: &str = ":FATAL:";
const CURE: &str = "users may not make user namespaces here, and there is no setuid helper: \
    'sysctl -w user.max_user_namespaces=10000', or apt-get install chromium-sandbox";

/// How a browser is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Confinement {
    pub(crate) user: User,
    /// Whether Chromium's sandbox is on. False for Firefox, which configures its sandbox itself.
    pub(crate) sandbox: bool,
    /// Missing confinement and its reason: one line for the record.
    pub(crate) warning: Option<String>,
}

impl Confinement {
    /// Finds the strongest confinement that works. `attempt` tries a user, with or without the
    /// sandbox, and returns a one-line reason if that does not work.
    pub(crate) fn find(
        kind: BrowserKind,
        ordinary: User,
        attempt: impl Fn(User, bool) -> Result<(), String>,
    ) -> Self {
        let name = kind.name();
        let name = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
        let has_sandbox = kind == BrowserKind::Chromium;
        let Err(reason) = attempt(ordinary, has_sandbox) else {
            return Self { user: ordinary, sandbox: has_sandbox, warning: None };
        };
        if has_sandbox && attempt(ordinary, false).is_ok() {
            let warning = Some(format!("{name} runs without its sandbox: {reason}"));
            return Self { user: ordinary, sandbox: false, warning };
        }
        let lacks = if has_sandbox { " without its sandbox" } else { "" };
        // In its own user namespace, the lab's user is root in name only.
        let who = if ordinary == User::Nobody { " as root" } else { "" };
        let warning = Some(format!("{name} runs{who}{lacks}: {reason}"));
        Self { user: User::Own, sandbox: false, warning }
    }
}

/// Runs a command to its end. The command shows an empty page or prints its version.
pub(crate) fn try_out(mut command: Command) -> Result<(), String> {
    let Output { status, stdout, stderr } =
        weir_emu::output(&mut command, Limits::SHORT).map_err(|error| error.to_string())?;
    // If Chromium cannot use its sandbox, it exits with success but prints nothing.
    if status.success() && !stdout.is_empty() {
        return Ok(());
    }
    Err(reason(&String::from_utf8_lossy(&stderr), &status.to_string()))
}

/// The reason why a browser did not start.
fn reason(log: &str, status: &str) -> String {
    if log.contains(UNUSABLE) {
        return CURE.into();
    }
    // Lines after the fatal error come from the crash reporter.
    let fatal = log.lines().find(|line| line.contains(FATAL));
    match fatal.or(log.lines().rfind(|line| !line.trim().is_empty())) {
        Some(word) => printable(&format!("it ended ({status}): {}", word.trim())),
        None => format!("it ended ({status})"),
    }
}

/// Why an ordinary user cannot enter a folder, judged by the permissions of its parent folders.
pub(crate) fn closed(folder: &Path) -> Option<String> {
    const ENTERED_BY_ALL: u32 = 0o001;
    let above = folder.ancestors().skip(1).find(|above| {
        fs::metadata(above).is_ok_and(|meta| meta.permissions().mode() & ENTERED_BY_ALL == 0)
    })?;
    Some(format!("only root may enter {}: set TMPDIR to a folder for all", above.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(kind: BrowserKind, ordinary: User, works: &[(User, bool)]) -> Confinement {
        let attempt = |user, sandbox| match works.contains(&(user, sandbox)) {
            true => Ok(()),
            false => Err("it does not".to_owned()),
        };
        Confinement::find(kind, ordinary, attempt)
    }

    #[test]
    fn the_strictest_confinement_that_works_is_used_with_a_warning() {
        use BrowserKind::{Chromium, Firefox};
        let both = [(User::Nobody, true), (User::Nobody, false)];
        let best = find(Chromium, User::Nobody, &both);
        assert_eq!(best, Confinement { user: User::Nobody, sandbox: true, warning: None });
        let open = find(Chromium, User::Renamed, &[(User::Renamed, false)]);
        assert_eq!((open.user, open.sandbox), (User::Renamed, false));
        let warning = open.warning.unwrap();
        assert_eq!(warning, "Chromium runs without its sandbox: it does not");
        let root = find(Chromium, User::Nobody, &[]);
        assert_eq!((root.user, root.sandbox), (User::Own, false));
        let warning = root.warning.unwrap();
        assert_eq!(warning, "Chromium runs as root without its sandbox: it does not");
        let warning = find(Chromium, User::Own, &[]).warning.unwrap();
        assert_eq!(warning, "Chromium runs without its sandbox: it does not");
        assert_eq!(find(Firefox, User::Nobody, &both).warning, None);
        let warning = find(Firefox, User::Nobody, &[]).warning.unwrap();
        assert_eq!(warning, "Firefox runs as root: it does not");
    }

    #[test]
    fn chromiums_advice_to_give_up_the_sandbox_is_replaced_by_what_to_do() {
        let said = "[1:1:ERROR:zygote_host_impl_linux.cc:130] No usable sandbox! If you want to \
            live dangerously, you can try using --no-sandbox.\n";
        assert_eq!(reason(said, "exit status: 0"), CURE);
        assert_eq!(reason("a\nb\n\n", "signal: 6"), "it ended (signal: 6): b");
        assert_eq!(reason("a:FATAL:x\nb\n", "signal: 6"), "it ended (signal: 6): a:FATAL:x");
        assert_eq!(reason("", "signal: 6"), "it ended (signal: 6)");
    }

    #[test]
    fn a_folder_below_one_of_root_alone_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("profile");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let cause = closed(&inside).unwrap();
        assert!(cause.contains(&folder.path().display().to_string()), "{cause}");
        assert_eq!(closed(Path::new("/usr/bin")), None);
    }
}
