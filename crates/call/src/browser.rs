//! A headless Chromium on an emulated host, with a camera that plays a file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_emu::{Child, Host};

use crate::error::CallError;
use crate::message::printable;

/// Names that the browser has in distributions, best first.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Chromium without a window, without its own traffic, and with a camera that needs no permission.
const FLAGS: [&str; 13] = [
    "--headless=new",
    // The lab is root, and Chromium has no sandbox for root.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    // A peer without a camera would hide its address behind a name that nobody resolves here.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    // Nothing but the lab's own page has an address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// The browser of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// As it calls itself.
    pub(crate) version: String,
}

impl Program {
    /// The one that `WEIR_BROWSER` names, or the first one on the path.
    pub(crate) fn find() -> Result<Self, CallError> {
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let path = find_in(std::env::var_os("WEIR_BROWSER"), &search_path)?;
        let output = Command::new(&path)
            .arg("--version")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(CallError::system("ask the browser for its version"))?;
        let version = printable(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Self { path, version })
    }

    /// Opens `url` on `host`. `profile` is a new folder's name.
    pub(crate) fn open(
        &self,
        host: &Host,
        url: &str,
        profile: &Path,
        camera: Option<&Path>,
    ) -> Result<Browser, CallError> {
        fs::create_dir(profile).map_err(CallError::system("make the browser's folder"))?;
        let log = profile.join("weir.log");
        let output = File::create(&log).map_err(CallError::system("make the browser's log"))?;
        let mut command = host.command(&self.path);
        command.args(FLAGS).arg(option("--user-data-dir=", profile));
        if let Some(file) = camera {
            command.arg(option("--use-file-for-fake-video-capture=", file));
        }
        // What it wants to keep in the user's folders goes with the profile.
        for variable in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(variable);
        }
        command.env("HOME", profile).env("TMPDIR", profile).arg(url);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        Ok(Browser { child: Child::spawn(&mut command)?, log })
    }
}

/// A running browser; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    log: PathBuf,
}

impl Browser {
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.inner().try_wait(), Ok(None))
    }

    /// The last line that it wrote, for a message about its end.
    pub(crate) fn last_words(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        printable(log.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim())
    }
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}

fn find_in(wanted: Option<OsString>, search_path: &OsStr) -> Result<PathBuf, CallError> {
    let on_path = |name: &OsStr| {
        let folders = std::env::split_paths(search_path);
        folders.map(|folder| folder.join(name)).find(|path| is_program(path))
    };
    let Some(wanted) = wanted else {
        return NAMES.iter().find_map(|name| on_path(name.as_ref())).ok_or(CallError::NoBrowser);
    };
    // As in a shell: only a bare name is looked for.
    let path = Path::new(&wanted);
    let found = match path.components().count() {
        1 => on_path(&wanted),
        _ => is_program(path).then(|| path.to_owned()),
    };
    found.ok_or_else(|| CallError::NotThere(wanted.to_string_lossy().into_owned()))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_browser_is_told_with_what_to_install() {
        let empty = tempfile::tempdir().unwrap();
        let error = find_in(None, empty.path().as_os_str()).unwrap_err().to_string();
        assert!(error.contains("apt-get install chromium"), "{error}");
        let error = find_in(Some("/no/such".into()), OsStr::new("")).unwrap_err().to_string();
        assert!(error.contains("'/no/such'"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_run_is_no_browser() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chromium");
        File::create(&path).unwrap();
        assert!(find_in(None, folder.path().as_os_str()).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_in(None, folder.path().as_os_str()).unwrap(), path);
        let named = find_in(Some("chromium".into()), folder.path().as_os_str());
        assert_eq!(named.unwrap(), path);
        assert_eq!(find_in(Some(path.clone().into()), OsStr::new("")).unwrap(), path);
    }
}
