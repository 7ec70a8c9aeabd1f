//! Sockets of this machine.

use std::collections::BTreeSet;
use std::fs;

/// The local addresses of this machine's root network on which something listens or waits for
/// datagrams, with a port of the IMS.
pub fn listening() -> BTreeSet<String> {
    const PORTS: [&str; 8] = ["5060", "8080", "8443", "8081", "8444", "8445", "3868", "2223"];
    let ports: Vec<String> =
        PORTS.iter().map(|port| format!("{:04X}", port.parse::<u16>().unwrap())).collect();
    let mut found = BTreeSet::new();
    for name in ["tcp", "tcp6", "udp", "udp6"] {
        let text = fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let port = words[1].rsplit(':').next().unwrap();
            // 0A: LISTEN; 07: a socket of UDP without a peer.
            if ports.iter().any(|one| one == port) && ["0A", "07"].contains(&words[3]) {
                found.insert(format!("{name} {}", words[1]));
            }
        }
    }
    found
}
