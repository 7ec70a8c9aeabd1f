//! The processors that a thread may use, and the time that it used.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::check;

/// Keeps the calling thread, and all threads and programs that it starts, off one processor.
/// Returns the number of that processor; `None` if the thread may use only one.
pub(crate) fn leave_a_processor() -> io::Result<Option<usize>> {
    let mut allowed = sched_getaffinity(None)?;
    if allowed.count() < 2 {
        return Ok(None);
    }
    // The first processor often serves the interrupts of devices.
    let last = (0..CpuSet::MAX_CPU).rev().find(|number| allowed.is_set(*number));
    if let Some(last) = last {
        allowed.unset(last);
        sched_setaffinity(None, &allowed)?;
    }
    Ok(last)
}

/// Keeps the calling thread on one processor.
pub(crate) fn stay_on(processor: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor);
    Ok(sched_setaffinity(None, &only)?)
}

/// The processor time of the calling thread.
pub(crate) fn processor_time() -> Duration {
    // SAFETY: timespec is plain data; all zeros is valid.
    let mut time: libc::timespec = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one timespec.
    let read: io::Result<c_int> =
        check(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) });
    read.map_or(Duration::ZERO, |_| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}
