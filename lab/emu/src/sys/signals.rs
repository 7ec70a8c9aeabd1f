//! Signals that would end this process, as a descriptor to wait for.

use std::ffi::c_int;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::OFlags;
use rustix::process::{Signal, pidfd_send_signal};

use super::open_process;

const CAUGHT: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Stands for no descriptor.
const NONE: c_int = -1;
/// Maximum number of searches for processes that were forked in the meantime. A process that forks
/// forever is killed later.
const PASSES: usize = 10;
/// Descriptor to which the handler writes.
static HANDLER_PIPE: AtomicI32 = AtomicI32::new(NONE);

/// While this object exists, signals from other processes that would end this one are collected
/// here instead.
///
/// Ctrl-C at a terminal is not collected. The terminal also sends it to the command, and a command
/// such as a shell continues after it.
#[derive(Debug)]
pub struct Signals {
    old: [libc::sigaction; CAUGHT.len()],
    received: PipeReader,
    _sender: PipeWriter,
}

impl Signals {
    /// Starts to collect signals. Fails if another `Signals` exists.
    pub fn listen() -> io::Result<Self> {
        let (received, sender) = io::pipe()?;
        for end in [received.as_fd(), sender.as_fd()] {
            // The handler must not block.
            rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK)?;
        }
        let taken = HANDLER_PIPE.compare_exchange(
            NONE,
            sender.as_raw_fd(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        taken.map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        Ok(Self { old: CAUGHT.map(catch), received, _sender: sender })
    }

    /// Returns the next signal; `None` if there is none.
    pub(crate) fn take(&self) -> Option<c_int> {
        let mut byte = [0];
        (&self.received).read_exact(&mut byte).ok()?;
        Some(byte[0].into())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.received.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, old) in CAUGHT.iter().zip(&self.old) {
            // SAFETY: `old` is what sigaction gave for this signal.
            unsafe { libc::sigaction(*signal, old, ptr::null_mut()) };
        }
        HANDLER_PIPE.store(NONE, Ordering::SeqCst);
    }
}

/// Installs the handler. Returns the previous action.
fn catch(signal: c_int) -> libc::sigaction {
    // SAFETY: the handler is async-signal-safe and has the signature that SA_SIGINFO asks for;
    // sigaction is plain data.
    unsafe {
        let mut new: libc::sigaction = mem::zeroed();
        new.sa_sigaction = on_signal as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        let mut old: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &new, &mut old);
        // Keeps SIGHUP ignored, as under nohup.
        if signal == libc::SIGHUP && old.sa_sigaction == libc::SIG_IGN {
            libc::sigaction(signal, &old, ptr::null_mut());
        }
        old
    }
}

/// The handler. Async-signal-safe.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let sender = HANDLER_PIPE.load(Ordering::SeqCst);
    // SAFETY: the kernel passes a valid siginfo; `byte` is one byte; errno is the calling thread's.
    unsafe {
        // Signals sent by the kernel have a positive code. They are ignored.
        if sender != NONE && (*info).si_code <= 0 {
            let errno = *libc::__errno_location();
            let byte = signal as u8;
            libc::write(sender, ptr::from_ref(&byte).cast(), 1);
            *libc::__errno_location() = errno;
        }
    }
}

/// Device and inode of a file.
fn file_of(path: &str) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Sends a signal to every process whose main thread is in a network namespace, and to the children
/// of `stand_in`. The process `stand_in` itself is left out, because it would forward the signal
/// and so send it twice. Signals without a name are ignored.
pub(crate) fn signal_network(network: BorrowedFd<'_>, stand_in: u32, signal: c_int) {
    let Some(signal) = Signal::from_named_raw(signal) else { return };
    let own = file_of(&format!("/proc/self/fd/{}", network.as_raw_fd()));
    let mut done = vec![stand_in];
    for _ in 0..PASSES {
        let before = done.len();
        for number in processes() {
            // The descriptor always refers to this process, even if its number is reused later.
            let Ok(process) = open_process(number.cast_signed()) else { continue };
            let found = file_of(&format!("/proc/{number}/ns/net"));
            let is_of_command =
                (found.is_some() && found == own) || parent(number) == Some(stand_in);
            if is_of_command && !done.contains(&number) {
                // An error means that the process has ended, which is fine.
                let _ = pidfd_send_signal(&process, signal);
                done.push(number);
            }
        }
        // Searches again, because a process may have forked after the list was read.
        if done.len() == before {
            return;
        }
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, can contain any character. After it come the state and the parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
