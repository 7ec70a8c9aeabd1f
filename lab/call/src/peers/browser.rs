//! A headless browser on an emulated host. Chromium's camera plays a file; Firefox' camera shows a
//! built-in picture.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_emu::{Child, Host, Limits, User};
use weir_scenario::call::BrowserKind;

use crate::error::{CallError, variable};
use crate::message::{end_of, printable};
use crate::peers::confinement::{self, Confinement, NO_SANDBOX};
use crate::plan::ChromiumMode;

/// Names of a browser's program in distributions, in order of preference.
const fn names(kind: BrowserKind) -> &'static [&'static str] {
    match kind {
        BrowserKind::Chromium => {
            &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
        }
        BrowserKind::Firefox => &["firefox-esr", "firefox"],
    }
}

/// The preferences file that Firefox reads at its start.
const PREFERENCES: &str = "\
user_pref('media.navigator.streams.fake', true);
user_pref('media.navigator.permission.disabled', true);
user_pref('media.devices.insecure.enabled', true);
user_pref('media.getusermedia.insecure.enabled', true);
user_pref('media.autoplay.default', 0);
user_pref('media.peerconnection.ice.obfuscate_host_addresses', false);
user_pref('media.peerconnection.ice.loopback', false);
user_pref('network.captive-portal-service.enabled', false);
user_pref('network.connectivity-service.enabled', false);
user_pref('app.update.enabled', false);
user_pref('app.normandy.enabled', false);
user_pref('browser.safebrowsing.malware.enabled', false);
user_pref('browser.safebrowsing.phishing.enabled', false);
user_pref('browser.shell.checkDefaultBrowser', false);
user_pref('browser.aboutwelcome.enabled', false);
user_pref('datareporting.policy.dataSubmissionEnabled', false);
user_pref('toolkit.telemetry.reportingpolicy.firstRun', false);
user_pref('media.gmp-manager.updateEnabled', false);
";

/// Options for Chromium: no window, no traffic of its own, and a camera without permission prompt.
const FLAGS: [&str; 13] = [
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    // Otherwise a peer without camera hides its address behind an mDNS name, which nothing resolves
    // here.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    // Only the lab's page and the hosts (one may be a relay) are reachable.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE 10.45.0.*",
];

/// A page that is built into every browser.
const EMPTY_PAGE: &str = "about:blank";

/// Takes a certificate with this public key, whoever has signed it.
const TRUSTED_KEY: &str = "--ignore-certificate-errors-spki-list=";

/// What differs between Chromiums.
#[derive(Clone, Copy)]
pub(crate) struct ChromiumOptions<'a> {
    pub(crate) mode: ChromiumMode,
    /// SHA-256 of a trusted public key, in base 64.
    pub(crate) key_hash: Option<&'a str>,
    /// Further options of the command line.
    pub(crate) extra: &'a [String],
}

/// The files that Chromium's devices play; without one, a device has a pattern of the browser's.
#[derive(Clone, Copy, Default)]
pub(crate) struct Devices<'a> {
    pub(crate) camera: Option<&'a Path>,
    pub(crate) microphone: Option<&'a Path>,
}

/// A browser installed on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    kind: BrowserKind,
    path: PathBuf,
    /// Version, as the program reports it.
    pub(crate) version: String,
    confinement: Confinement,
}

impl Program {
    /// Finds the browser that the environment variable names, or else the first one in `PATH`. It
    /// is tried out on `host`, in new folders below `folder`.
    pub(crate) fn find(kind: BrowserKind, host: &Host, folder: &Path) -> Result<Self, CallError> {
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let path = find_in(kind, std::env::var_os(variable(kind)), &search_path)?;
        // Run on a host, so that it ends with the lab.
        let output = weir_emu::output(host.command(&path).arg("--version"), Limits::SHORT)
            .map_err(CallError::system("ask the browser for its version"))?;
        let version = printable(String::from_utf8_lossy(&output.stdout).trim());
        let confinement = Confinement::find(kind, User::ordinary(), |user, sandbox| {
            try_out(kind, &path, host, folder, user, sandbox)
        });
        Ok(Self { kind, path, version, confinement })
    }

    pub(crate) fn kind(&self) -> BrowserKind {
        self.kind
    }

    /// Warning if the browser is less confined than it should be.
    pub(crate) fn warning(&self) -> Option<&String> {
        self.confinement.warning.as_ref()
    }

    /// Opens `url` on `host`. `profile` is the name of a new folder.
    pub(crate) fn open(
        &self,
        host: &Host,
        url: &str,
        profile: &Path,
        devices: Devices<'_>,
        options: ChromiumOptions<'_>,
    ) -> Result<Browser, CallError> {
        let Confinement { user, sandbox, .. } = self.confinement;
        user.make_folder(profile).map_err(CallError::system("make the browser's folder"))?;
        let log = profile.join("weir.log");
        let output = File::create(&log).map_err(CallError::system("make the browser's log"))?;
        let mut command = command(host, user, &self.path, profile);
        match self.kind {
            BrowserKind::Chromium => {
                chromium(&mut command, profile, sandbox);
                command.args(options.mode.argument());
                command.args(options.key_hash.map(|hash| format!("{TRUSTED_KEY}{hash}")));
                command.args(options.extra);
                if let Some(file) = devices.camera {
                    command.arg(option("--use-file-for-fake-video-capture=", file));
                }
                if let Some(file) = devices.microphone {
                    command.arg(option("--use-file-for-fake-audio-capture=", file));
                }
            }
            BrowserKind::Firefox => {
                fs::write(profile.join("user.js"), PREFERENCES)
                    .map_err(CallError::system("write the browser's preferences"))?;
                command.args(["--headless", "--no-remote", "--profile"]).arg(profile);
                command.args(options.extra);
            }
        }
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let mut child = Child::spawn(&mut command)?;
        Ok(Browser { pid: child.inner().id(), child, log })
    }
}

/// The command to run a browser on a host. Files that belong in the user's folders go to the
/// profile.
fn command(host: &Host, user: User, path: &Path, profile: &Path) -> Command {
    let mut command = host.command_as(user, path);
    for variable in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
        command.env_remove(variable);
    }
    command.current_dir(profile).env("HOME", profile).env("TMPDIR", profile);
    command
}

fn chromium(command: &mut Command, profile: &Path, sandbox: bool) {
    command.args(FLAGS).arg(option("--user-data-dir=", profile));
    if !sandbox {
        command.arg(NO_SANDBOX);
    }
}

/// Tests whether a browser starts as this user: Chromium shows an empty page, Firefox prints its
/// version.
fn try_out(
    kind: BrowserKind,
    path: &Path,
    host: &Host,
    folder: &Path,
    user: User,
    sandbox: bool,
) -> Result<(), String> {
    // Keep the name short: Chromium creates a socket in it, whose path is limited to 107 bytes.
    let letters = [&kind.name()[..1], if user == User::Own { "o" } else { "u" }];
    let profile = folder.join(format!("{}{}", letters.concat(), u8::from(sandbox)));
    if user == User::Nobody
        && let Some(cause) = confinement::closed(folder)
    {
        return Err(cause);
    }
    user.make_folder(&profile).map_err(|error| error.to_string())?;
    let mut command = command(host, user, path, &profile);
    match kind {
        BrowserKind::Chromium => {
            chromium(&mut command, &profile, sandbox);
            command.args(["--dump-dom", EMPTY_PAGE]);
        }
        BrowserKind::Firefox => {
            command.arg("--version");
        }
    }
    confinement::try_out(command)
}

/// A running browser. Dropping it kills the browser.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    pid: u32,
    log: PathBuf,
}

impl Browser {
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.inner().try_wait(), Ok(None))
    }

    /// How it ended, and what it said last; `None` if it has not ended.
    pub(crate) fn how_it_ended(&mut self) -> Option<String> {
        let status = self.child.inner().try_wait().ok()??;
        Some(format!("{status}; it said: {}", self.last_words()))
    }

    /// Root process of the browser.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The line in which the browser says why it ended, or else its last one, for a message about
    /// its end.
    pub(crate) fn last_words(&self) -> String {
        printable(last_words(&String::from_utf8_lossy(&end_of(&self.log))))
    }
}

/// A crash handler may speak after Chromium's last words.
fn last_words(log: &str) -> &str {
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let fatal = lines.clone().rfind(|line| line.contains(":FATAL:"));
    fatal.or(lines.next_back()).unwrap_or_default()
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}

/// Tests whether this machine has a browser.
///
/// # Errors
/// The message says what to install.
pub fn installed(kind: BrowserKind) -> Result<(), CallError> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    find_in(kind, std::env::var_os(variable(kind)), &search_path).map(drop)
}

fn find_in(
    kind: BrowserKind,
    wanted: Option<OsString>,
    search_path: &OsStr,
) -> Result<PathBuf, CallError> {
    let Some(wanted) = wanted else {
        let found = names(kind).iter().find_map(|name| on_path(name.as_ref(), search_path));
        return found.ok_or(CallError::NoBrowser(kind));
    };
    // As in a shell, only a bare name is searched in `PATH`.
    let path = Path::new(&wanted);
    let found = match path.components().count() {
        1 => on_path(&wanted, search_path),
        _ => is_program(path).then(|| path.to_owned()),
    };
    found.ok_or_else(|| CallError::NotThere(kind, wanted.to_string_lossy().into_owned()))
}

/// The first program of this name in the folders of a search path.
fn on_path(name: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    let folders = std::env::split_paths(search_path);
    folders.map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHROMIUM: BrowserKind = BrowserKind::Chromium;

    #[test]
    fn a_missing_browser_is_told_with_what_to_install() {
        let empty = tempfile::tempdir().unwrap();
        let error = find_in(CHROMIUM, None, empty.path().as_os_str()).unwrap_err().to_string();
        assert!(error.contains("apt-get install chromium"), "{error}");
        let error =
            find_in(CHROMIUM, Some("/no/such".into()), OsStr::new("")).unwrap_err().to_string();
        assert!(error.contains("WEIR_BROWSER names '/no/such'"), "{error}");
        let error = find_in(BrowserKind::Firefox, None, OsStr::new("")).unwrap_err().to_string();
        assert!(error.contains("apt-get install firefox-esr"), "{error}");
    }

    #[test]
    fn a_fatal_error_is_told_rather_than_what_the_crash_handler_says() {
        let log = "[1:ERROR:dbus] no bus\n[1:FATAL:singleton] Socket path too long\n\
            [2:ERROR:file_io] open\n\n";
        assert_eq!(last_words(log), "[1:FATAL:singleton] Socket path too long");
        assert_eq!(last_words("one\n two \n\n"), "two");
        assert_eq!(last_words(""), "");
    }

    #[test]
    fn a_file_that_cannot_run_is_no_browser() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chromium");
        File::create(&path).unwrap();
        assert!(find_in(CHROMIUM, None, folder.path().as_os_str()).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_in(CHROMIUM, None, folder.path().as_os_str()).unwrap(), path);
        let named = find_in(CHROMIUM, Some("chromium".into()), folder.path().as_os_str());
        assert_eq!(named.unwrap(), path);
        assert_eq!(find_in(CHROMIUM, Some(path.clone().into()), OsStr::new("")).unwrap(), path);
    }
}
