//! A dump without what names people, machines and networks, for collections of many calls.

use std::collections::BTreeMap;

use weir_record::calls::stats::Candidate;

use crate::read::dump::{ConnectionChange, Dump};

/// Types of candidates; other words of a dump may be anything.
const CANDIDATE_TYPES: [&str; 4] = ["host", "srflx", "prflx", "relay"];
/// Protocols of candidates.
const PROTOCOLS: [&str; 4] = ["udp", "tcp", "tls", "ssltcp"];
/// What a browser may refuse.
const METHODS: [&str; 7] = [
    "getUserMedia",
    "getDisplayMedia",
    "createOffer",
    "createAnswer",
    "setLocalDescription",
    "setRemoteDescription",
    "addIceCandidate",
];
/// Networks of a device.
const NETWORKS: [&str; 7] =
    ["bluetooth", "cellular", "ethernet", "wifi", "wimax", "vpn", "unknown"];
/// The program of dumps of simulated runs, which must not pass for real ones.
const SIMULATED: &str = "weir (simulated)";
/// Browsers by the words of a user agent, the more special ones first.
const BROWSERS: [(&str, &str); 8] = [
    ("Edg/", "Edge"),
    ("Edge/", "Edge"),
    ("Firefox/", "Firefox"),
    ("Firefox ", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Chrome ", "Chrome"),
    ("Chromium ", "Chrome"),
    ("Version/", "Safari"),
];

impl Dump {
    /// Replaces connections, SSRCs and layers by numbers, keeps of servers only that they are STUN
    /// or TURN, of the browser only name and major version, and of candidates only type and
    /// protocol. What is analyzed after this contains no other text of the dump.
    pub fn forget_names(&mut self) {
        let mut connections = Numbers::default();
        let mut ssrcs = Numbers::default();
        let mut layers = Numbers::default();
        for connection in &mut self.connections {
            connection.name = connections.of(&connection.name).to_string();
            for stream in &mut connection.streams {
                stream.ssrc = ssrcs.of(&stream.ssrc.to_string());
                if let Some(rid) = &mut stream.rid {
                    *rid = layers.of(rid).to_string();
                }
                for report in &mut stream.reports {
                    if let Some(pair) = &mut report.timed.report.pair {
                        forget_candidate(&mut pair.local);
                        forget_candidate(&mut pair.remote);
                    }
                }
            }
        }
        for log in self.connections.iter_mut().filter_map(|it| it.packets.as_mut()) {
            log.forget_names();
            for facts in &mut log.streams {
                facts.ssrc = ssrcs.of(&facts.ssrc.to_string());
            }
        }
        for event in &mut self.events {
            // An event of the page has no connection.
            if !event.connection.is_empty() {
                event.connection = connections.of(&event.connection).to_string();
            }
            match &mut event.change {
                ConnectionChange::ServerError { url, text, .. } => {
                    *url = server(url).into();
                    text.clear();
                }
                ConnectionChange::Refused { method, error } => {
                    keep_known(method, &METHODS);
                    *error = error_name(error).into();
                }
                _ => {}
            }
        }
        self.program = self.program.as_deref().and_then(browser);
        self.warnings.clear();
    }
}

/// Numbers from 1 for names, by their first use.
#[derive(Default)]
struct Numbers(BTreeMap<String, u32>);

impl Numbers {
    fn of(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32 + 1;
        *self.0.entry(name.into()).or_insert(next)
    }
}

fn forget_candidate(candidate: &mut Candidate) {
    keep_known(&mut candidate.candidate_type, &CANDIDATE_TYPES);
    keep_known(&mut candidate.protocol, &PROTOCOLS);
    if let Some(network) = &mut candidate.network_type {
        keep_known(network, &NETWORKS);
    }
    candidate.url = None;
}

fn keep_known(word: &mut String, known: &[&str]) {
    if !word.is_empty() && !known.iter().any(|it| it.eq_ignore_ascii_case(word)) {
        *word = "other".into();
    }
}

/// The name of an error, such as `NotAllowedError`: its message may say anything.
fn error_name(error: &str) -> &str {
    let name = error.split(':').next().unwrap_or_default();
    let is_name = name.ends_with("Error") && name.bytes().all(|it| it.is_ascii_alphabetic());
    if is_name { name } else { "" }
}

fn server(url: &str) -> &'static str {
    match url.split(':').next() {
        Some("stun" | "stuns") => "a STUN server",
        Some("turn" | "turns") => "a TURN server",
        _ => "",
    }
}

/// Name and major version, such as `Chrome 120`. A user agent also names devices.
fn browser(program: &str) -> Option<String> {
    if program.starts_with(SIMULATED) {
        return Some(SIMULATED.into());
    }
    for (word, name) in BROWSERS {
        let Some((_, version)) = program.split_once(word) else { continue };
        let digits = version.bytes().take(4).take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            return Some(format!("{name} {}", &version[..digits]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_user_agent_only_browser_and_major_version_remain() {
        let android = "Mozilla/5.0 (Linux; Android 14; Anna's Pixel 8) AppleWebKit/537.36 \
            (KHTML, like Gecko) Chrome/120.0.6099.43 Mobile Safari/537.36";
        assert_eq!(browser(android).as_deref(), Some("Chrome 120"));
        assert_eq!(browser("Chromium 131.0.1").as_deref(), Some("Chrome 131"));
        assert_eq!(browser("Mozilla/5.0 Gecko/20100101 Firefox/121.0").unwrap(), "Firefox 121");
        assert_eq!(browser("Anna's own client"), None);
    }

    #[test]
    fn of_a_server_only_its_kind_remains() {
        assert_eq!(server("turn:192.0.2.1:3478?transport=udp"), "a TURN server");
        assert_eq!(server("stun:host.example"), "a STUN server");
        assert_eq!(server("host.example"), "");
    }
}
