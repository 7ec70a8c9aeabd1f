//! The part of a DTLS 1.2 handshake that is in the clear and decides the keys of SRTP [RFC5764 §4].
//!
//! DTLS 1.3 hides the profile, and other secrets take part: such handshakes count, and give no keys.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha384};

use super::cipher::{Profile, Session};

/// Source and destination.
pub type Ends = (SocketAddrV4, SocketAddrV4);

/// Header of a record [RFC6347 §4.1], and of a message of the handshake [RFC6347 §4.2.2].
const RECORD_HEADER: usize = 13;
const MESSAGE_HEADER: usize = 12;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// The extension with the chosen profile [RFC5764 §4.1.1].
const USE_SRTP: u16 = 14;
/// Label of the exporter [RFC5764 §4.2].
const LABEL: &[u8] = b"EXTRACTOR-dtls_srtp";
/// Handshakes that wait for the server's answer.
const WAITING_MAX: usize = 4_096;

#[derive(Default)]
pub(super) struct Handshakes {
    masters: BTreeMap<[u8; 32], [u8; 48]>,
    /// The client's random, by its address and the server's.
    clients: BTreeMap<Ends, [u8; 32]>,
    /// Handshakes of which both hellos were seen.
    pub seen: usize,
}

/// What a ServerHello decides.
struct ServerHello {
    random: [u8; 32],
    cipher_suite: u16,
    profile: Profile,
}

impl Handshakes {
    pub fn new(masters: BTreeMap<[u8; 32], [u8; 48]>) -> Self {
        Self { masters, ..Self::default() }
    }

    /// The keys of both directions, if this datagram completes a handshake whose secret is known.
    pub fn add(&mut self, ends: Ends, mut datagram: &[u8]) -> Vec<Session> {
        let mut sessions = Vec::new();
        while let Some((record, rest)) = record(datagram) {
            datagram = rest;
            let Some((kind, body)) = message(record) else { continue };
            if kind == CLIENT_HELLO && self.clients.len() < WAITING_MAX {
                self.clients.extend(random(body).map(|random| (ends, random)));
            } else if kind == SERVER_HELLO
                && let Some(client) = self.clients.get(&(ends.1, ends.0))
            {
                self.seen += 1;
                let master = self.masters.get(client);
                if let (Some(master), Some(hello)) = (master, server_hello(body)) {
                    sessions.extend(keys(master, client, &hello).into_iter().flatten());
                }
            }
        }
        sessions
    }
}

/// The content of a record of the handshake, and the bytes behind it. Other records are empty.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = bytes.first_chunk::<RECORD_HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
    let (content, rest) = bytes[RECORD_HEADER..].split_at_checked(length)?;
    // Encrypted ones have a later epoch.
    let is_plain = header[0] == HANDSHAKE && header[3..5] == [0, 0];
    Some((if is_plain { content } else { &[] }, rest))
}

/// Kind and body of the first message of a record, or of its first fragment.
fn message(record: &[u8]) -> Option<(u8, &[u8])> {
    let header = record.first_chunk::<MESSAGE_HEADER>()?;
    let offset = &header[6..9];
    (offset == [0, 0, 0]).then_some((header[0], &record[MESSAGE_HEADER..]))
}

/// The random behind the version, with which both hellos begin [RFC5246 §7.4.1].
fn random(hello: &[u8]) -> Option<[u8; 32]> {
    hello.get(2..)?.first_chunk().copied()
}

fn server_hello(hello: &[u8]) -> Option<ServerHello> {
    let random = random(hello)?;
    let session_id = usize::from(*hello.get(34)?);
    let rest = hello.get(35 + session_id..)?;
    let word = |bytes: &[u8], at: usize| -> Option<u16> {
        Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
    };
    let cipher_suite = word(rest, 0)?;
    // Behind the compression and the length of all extensions.
    let mut extensions = rest.get(5..)?;
    loop {
        let (kind, length) = (word(extensions, 0)?, usize::from(word(extensions, 2)?));
        let value = extensions.get(4..4 + length)?;
        if kind == USE_SRTP {
            // One profile behind the length of the list.
            let profile = Profile::numbered(word(value, 2)?)?;
            return Some(ServerHello { random, cipher_suite, profile });
        }
        extensions = &extensions[4 + length..];
    }
}

/// The keys of the client and of the server [RFC5764 §4.2].
fn keys(master: &[u8; 48], client: &[u8; 32], hello: &ServerHello) -> Option<[Session; 2]> {
    let profile = hello.profile;
    let (key, salt) = (profile.key_size(), profile.salt_size());
    let seed = [LABEL, client, &hello.random].concat();
    let size = 2 * (key + salt);
    // Suites name the hash of the pseudorandom function where it is not SHA-256 [RFC5246 §5].
    let material = match hello.cipher_suite {
        0x009D | 0x009F | 0xC024 | 0xC028 | 0xC02C | 0xC030 => {
            expanded::<Hmac<Sha384>>(master, &seed, size)
        }
        _ => expanded::<Hmac<Sha256>>(master, &seed, size),
    }?;
    let salts = &material[2 * key..];
    Some([
        Session::new(profile, &material[..key], &salts[..salt]),
        Session::new(profile, &material[key..2 * key], &salts[salt..]),
    ])
}

/// The pseudorandom function of TLS 1.2, whose label is part of the seed [RFC5246 §5].
fn expanded<M: Mac + KeyInit>(secret: &[u8], seed: &[u8], size: usize) -> Option<Vec<u8>> {
    let code = |parts: &[&[u8]]| {
        let mut code = <M as KeyInit>::new_from_slice(secret).ok()?;
        parts.iter().for_each(|part| code.update(part));
        Some(code.finalize().into_bytes())
    };
    let mut link = code(&[seed])?;
    let mut material = Vec::new();
    while material.len() < size {
        material.extend_from_slice(&code(&[&link, seed])?);
        link = code(&[&link])?;
    }
    material.truncate(size);
    Some(material)
}
