//! The rights that namespaces, devices and routes need: root's, or those of a user namespace.

use std::fs;
use std::io;

use crate::sys;

/// Of capabilities(7): to make namespaces and mounts, and to configure networks.
const NEEDED: [u32; 2] = [21, 12];

/// Makes this process root of a user namespace of its own, unless it has the rights already or the
/// kernel does not allow it: then [`Emulator::new`](crate::Emulator::new) says what is missing.
///
/// Only a process with one thread can do this, so call it first of all. Files that the process makes
/// belong to the user all the same. What the user namespace cannot give is a place before all other
/// programs (SCHED_FIFO): packets are released later on a busy machine, as the record of a run says.
pub fn gain_rights() {
    if !has_rights().unwrap_or(false) {
        // The error comes again, with a cure, when the first namespace is made.
        let _ = sys::enter_user_namespace();
    }
}

fn has_rights() -> io::Result<bool> {
    Ok(holds(&fs::read_to_string("/proc/self/status")?, &NEEDED))
}

/// Whether a status file has these among the effective capabilities.
pub(crate) fn holds(status: &str, needed: &[u32]) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| needed.iter().all(|capability| bits & (1 << capability) != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_the_rights_and_roots_namesake_in_a_container_may_not() {
        assert!(holds("Name:\tweir\nCapEff:\t000001ffffffffff\n", &NEEDED));
        assert!(!holds("CapEff:\t00000000a80425fb\n", &NEEDED));
        assert!(!holds("CapEff:\t0000000000000000\n", &NEEDED));
        assert!(!holds("", &NEEDED));
    }
}
