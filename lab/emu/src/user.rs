//! The user that runs third-party programs on the hosts, such as browsers, which need no root
//! privileges.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::rights;
use crate::sys;

/// Capabilities(7) to become another user: `CAP_SETGID` and `CAP_SETUID`.
const TO_BECOME_ANOTHER: [u32; 2] = [6, 7];
/// The number of `nobody` and of its group on every Linux.
const NOBODY: u32 = 65_534;
/// File mode of a folder that the group may enter, but not list. Others have no access.
const ENTERED_BY_THE_GROUP: u32 = 0o710;
const OF_ONE_USER: u32 = 0o700;

/// The user that a program on a host runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The user of this process.
    Own,
    /// `nobody`, for a process that is root.
    Nobody,
    /// The user of this process under another number, in a new user namespace. This is for a
    /// process that is root in a user namespace without other users. The program is then not root
    /// and has no capabilities.
    Renamed,
}

impl User {
    /// A user without root privileges. Which one depends on the user of this process.
    pub fn ordinary() -> Self {
        if !sys::is_root() {
            return Self::Own;
        }
        let map = |name| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let may_become_another = rights::holds(&map("status"), &TO_BECOME_ANOTHER)
            && ["uid_map", "gid_map"].iter().all(|name| has_number(&map(name), NOBODY))
            && map("setgroups").trim() != "deny";
        if may_become_another { Self::Nobody } else { Self::Renamed }
    }

    /// Makes the calling process this user. Async-signal-safe.
    pub(crate) fn take_over(self) -> io::Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Nobody => sys::become_ordinary(NOBODY),
            Self::Renamed => sys::become_renamed(),
        }
    }

    /// Creates a folder that belongs to the user.
    pub fn make_folder(self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(OF_ONE_USER))?;
        match self {
            Self::Nobody => std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)),
            // The folder already belongs to the right user.
            Self::Own | Self::Renamed => Ok(()),
        }
    }

    /// Lets the user enter a folder of this process, but not list it.
    pub fn let_in(self, folder: &Path) -> io::Result<()> {
        if self == Self::Nobody {
            std::os::unix::fs::chown(folder, None, Some(NOBODY))?;
            fs::set_permissions(folder, fs::Permissions::from_mode(ENTERED_BY_THE_GROUP))?;
        }
        Ok(())
    }
}

/// Whether the map of a user namespace contains this number inside. Each line contains the first
/// number inside, the first number outside and the count.
fn has_number(map: &str, number: u32) -> bool {
    map.lines().any(|line| {
        let words = line.split_whitespace();
        let numbers: Vec<u32> = words.map_while(|word| word.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if number >= first && number - first < count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_namespace_of_one_user_has_no_nobody() {
        assert!(has_number("         0          0 4294967295\n", NOBODY));
        assert!(has_number("0 1000 1\n1 100000 65536\n", NOBODY));
        assert!(!has_number("         0       1000          1\n", NOBODY));
        assert!(!has_number("0 100000 65534\n", NOBODY));
        assert!(!has_number("", NOBODY));
    }
}
