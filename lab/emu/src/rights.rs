//! Capabilities for namespaces, devices and routes: root's, or those of a user namespace.

use std::fs;
use std::io;

use crate::sys;

/// Needed capabilities(7): `CAP_SYS_ADMIN` for namespaces and mounts, `CAP_NET_ADMIN` to configure
/// networks.
const NEEDED: [u32; 2] = [21, 12];

/// Makes this process root of a new user namespace, unless it already has the capabilities or the
/// kernel does not allow it. In the latter case [`Emulator::new`](crate::Emulator::new) returns an
/// error that says what is missing.
///
/// This works only in a process with a single thread, so call it before anything else. Files that
/// the process creates still belong to the user. A user namespace cannot provide real-time priority
/// (SCHED_FIFO). Without it, packets are released later on a busy machine, as the record of a run
/// shows.
pub fn gain_rights() {
    if !has_rights().unwrap_or(false) {
        // If this fails, creating the first namespace will fail, too, with a message that includes
        // the remedy.
        let _ = sys::enter_user_namespace();
    }
}

fn has_rights() -> io::Result<bool> {
    Ok(holds(&fs::read_to_string("/proc/self/status")?, &NEEDED))
}

/// Whether the effective capabilities in a status file include these.
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
