//! The RTCP inside SRTCP, if its keys are known.
//!
//! ```text
//! key log: client's random -> its secret ---+
//! capture: ClientHello, ServerHello --------+-> exporter -> master keys and salts -> session keys
//! a=crypto lines ---------------------------------------------> one of them --------^
//! ```
//!
//! Which key belongs to which end is not asked: the authentication tag tells.

mod cipher;
mod exporter;
mod handshake;
mod key_log;

use std::collections::BTreeMap;

pub use key_log::KeyLog;

use cipher::Session;
use handshake::Handshakes;

/// Largest number of keys that are tried.
const SESSIONS_MAX: usize = 1_024;

/// Opens the RTCP of a capture.
#[derive(Default)]
pub(crate) struct Opener {
    handshakes: Handshakes,
    sessions: Vec<Session>,
    /// The key that opened a sender's last packet.
    known: BTreeMap<u32, usize>,
    /// Packets that were opened.
    pub opened: u64,
    is_given: bool,
}

impl Opener {
    /// With the keys of a log, or without any.
    pub fn new(keys: Option<&KeyLog>) -> Self {
        let mut opener = Self { is_given: keys.is_some(), ..Self::default() };
        if let Some(keys) = keys {
            opener.sessions = keys.described.clone();
            opener.handshakes = Handshakes::new(keys.secrets.clone());
        }
        opener
    }

    /// A datagram of DTLS between two ends.
    pub fn dtls(&mut self, ends: handshake::Ends, datagram: &[u8]) {
        if self.is_given && self.sessions.len() < SESSIONS_MAX {
            self.sessions.extend(self.handshakes.add(ends, datagram));
        }
    }

    /// The RTCP inside a packet of SRTCP; `None` without its key.
    pub fn open(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let ssrc = u32::from_be_bytes(*packet.get(4..)?.first_chunk()?);
        let known = self.known.get(&ssrc).copied();
        // Later keys first: a connection that was made again has new ones.
        let order = known.into_iter().chain((0..self.sessions.len()).rev());
        let (index, plain) =
            order.into_iter().find_map(|at| Some((at, self.sessions[at].open(packet)?)))?;
        self.known.insert(ssrc, index);
        self.opened += 1;
        Some(plain)
    }

    /// Why nothing could be opened, although keys were given.
    pub fn complaint(&self) -> Option<String> {
        if !self.is_given || self.opened > 0 {
            return None;
        }
        Some(match (self.sessions.is_empty(), self.handshakes.seen) {
            (true, 0) => {
                "the capture has no DTLS handshake to which the key log could belong".into()
            }
            (true, seen) => {
                format!(
                    "the key log has the secret of none of the {seen} DTLS handshakes in the \
                     capture"
                )
            }
            (false, _) => "none of the given keys opens the RTCP of the capture".into(),
        })
    }
}

/// Bytes of a vector of a standard.
#[cfg(test)]
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
