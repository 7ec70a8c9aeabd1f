//! Pipes that are read in place of files. Whoever waits for one is told.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a pipe, and waits until something is written to it. `None` if it is something else.
#[cfg(unix)]
pub fn open(path: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

    use rustix::fs::OFlags;

    let found = std::fs::metadata(path);
    if !found.is_ok_and(|found| found.file_type().is_fifo()) {
        return Ok(None);
    }
    // Else opening waits for a writer, without a word.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let pipe = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    wait(&pipe, &path.display().to_string())?;
    rustix::fs::fcntl_setfl(&pipe, OFlags::empty())?;
    Ok(Some(pipe))
}

/// Waits until there is something to read, and says so if that takes long.
#[cfg(unix)]
pub fn wait(from: &impl std::os::fd::AsFd, name: &str) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// What is written at once needs no words.
    const SILENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

    let mut polled = [PollFd::new(from, PollFlags::IN)];
    if poll(&mut polled, Some(&SILENCE))? == 0 {
        let name = crate::output::escaped(name);
        eprintln!("weir: {name}: waiting for a program that writes to it");
        poll(&mut polled, None)?;
    }
    Ok(())
}

/// Elsewhere pipes have no place in the file system.
#[cfg(not(unix))]
pub fn open(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Elsewhere reading waits by itself.
#[cfg(not(unix))]
pub fn wait<T>(_: &T, _: &str) -> io::Result<()> {
    Ok(())
}
