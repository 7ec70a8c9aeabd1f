//! Errors of the emulator, each with its remedy.

use std::io;

/// Error of the emulator. Each message is one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused a namespace or a device.
    #[error(
        "the emulator may not make network namespaces: run it with sudo, or let users make them \
         ('sysctl -w user.max_user_namespaces=10000', and where these exist \
         'kernel.unprivileged_userns_clone=1' and 'kernel.apparmor_restrict_unprivileged_userns=0')"
    )]
    NotRoot,
    /// There is no TUN device.
    #[error(
        "the emulator needs /dev/net/tun: run 'modprobe tun', or give a container '--device \
         /dev/net/tun'"
    )]
    NoTun,
    /// There is a TUN device, but this user may not open it.
    #[error(
        "/dev/net/tun is there, but may not be opened: run weir with sudo, or let every user open \
         it ('sudo chmod 0666 /dev/net/tun', and to keep it so the udev rule \
         'KERNEL==\"tun\", MODE=\"0666\"'); a container needs '--device /dev/net/tun'"
    )]
    TunDenied,
    /// A program could not be started.
    #[error("cannot run '{program}': {error}")]
    Spawn {
        /// The program, as given.
        program: String,
        /// The kernel's reason.
        error: io::Error,
    },
    /// A program failed during the self-test or a load.
    #[error("{program} failed: {reason}")]
    Program {
        /// The program, as given.
        program: String,
        /// Its error message, or the last line of its output.
        reason: String,
    },
    /// Anything else that the kernel refused.
    #[error("cannot {action}: {error}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The kernel's reason.
        error: io::Error,
    },
}

impl Error {
    /// For `map_err`: converts the error of a system call that was part of `action`.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotRoot,
            _ => Self::System { action, error },
        }
    }

    /// For `map_err`: converts the error of a program that could not be started.
    pub(crate) fn spawn(program: &std::ffi::OsStr) -> impl FnOnce(io::Error) -> Self {
        let program = program.to_string_lossy().into_owned();
        move |error| Self::Spawn { program, error }
    }
}
