//! The part of a DTLS handshake that is in the clear and decides the keys of SRTP [RFC5764 §4].
//!
//! DTLS 1.2 names the profile in the clear. DTLS 1.3 encrypts that answer [RFC8446 §4.3.1], so
//! there are keys for every profile, and the authentication tag tells which one was chosen.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::cipher::{Profile, Session};
use super::exporter::{self, Digest};

/// Source and destination.
pub type Ends = (SocketAddr, SocketAddr);

/// Header of a record [RFC6347 §4.1], and of a message of the handshake [RFC6347 §4.2.2].
const RECORD_HEADER: usize = 13;
const MESSAGE_HEADER: usize = 12;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// The extension with the chosen profile [RFC5764 §4.1.1].
const USE_SRTP: u16 = 14;
/// The random of a ServerHello that asks for another ClientHello [RFC8446 §4.1.3].
const RETRY: [u8; 32] = [
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
    0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
];
/// Label of the exporter [RFC5764 §4.2].
const LABEL: &[u8] = b"EXTRACTOR-dtls_srtp";
/// Handshakes that wait for the server's answer.
const WAITING_MAX: usize = 4_096;

/// The secret of a handshake, from which the keys of SRTP follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Secret {
    /// Master secret of DTLS 1.2 [RFC5246 §8.1].
    Master(Vec<u8>),
    /// Exporter secret of DTLS 1.3 [RFC8446 §7.1], as long as the hash of the cipher suite.
    Exporter(Vec<u8>),
}

#[derive(Default)]
pub(super) struct Handshakes {
    /// By the client's random.
    secrets: BTreeMap<[u8; 32], Secret>,
    /// The client's random, by its address and the server's.
    clients: BTreeMap<Ends, [u8; 32]>,
    /// Handshakes of which both hellos were seen.
    pub seen: usize,
}

impl Handshakes {
    pub fn new(secrets: BTreeMap<[u8; 32], Secret>) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// The keys of both directions, if this datagram completes a handshake whose secret is known.
    pub fn add(&mut self, ends: Ends, mut datagram: &[u8]) -> Vec<Session> {
        let mut sessions = Vec::new();
        while let Some((record, rest)) = record(datagram) {
            datagram = rest;
            let Some((kind, body)) = message(record) else { continue };
            if kind == CLIENT_HELLO && self.clients.len() < WAITING_MAX {
                self.clients.extend(random(body).map(|random| (ends, random)));
            } else if kind == SERVER_HELLO && random(body).is_some_and(|it| it != RETRY) {
                // A repeated answer finds no client any more.
                let Some(client) = self.clients.remove(&(ends.1, ends.0)) else { continue };
                self.seen += 1;
                let secret = self.secrets.get(&client);
                sessions.extend(secret.and_then(|it| keys(it, &client, body)).unwrap_or_default());
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

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The keys of the client and of the server, in each profile that they may have chosen [RFC5764
/// §4.2].
fn keys(secret: &Secret, client: &[u8; 32], server_hello: &[u8]) -> Option<Vec<Session>> {
    let session_id = usize::from(*server_hello.get(34)?);
    let rest = server_hello.get(35 + session_id..)?;
    let digest = Digest::of_suite(word(rest, 0)?);
    match secret {
        Secret::Master(master) => {
            // Behind the compression and the length of all extensions.
            let profile = profile(rest.get(5..)?)?;
            let seed = [client, &random(server_hello)?[..]].concat();
            let material =
                exporter::before_1_3(digest, master, LABEL, &seed, 2 * profile.material_size())?;
            Some(profile.sessions(&material))
        }
        Secret::Exporter(exporter) => {
            let mut sessions = Vec::new();
            for profile in Profile::ALL {
                let size = 2 * profile.material_size();
                if let Some(material) = exporter::of_dtls_1_3(digest, exporter, LABEL, size) {
                    sessions.extend(profile.sessions(&material));
                }
            }
            Some(sessions)
        }
    }
}

/// The chosen profile, among the extensions of a ServerHello.
fn profile(mut extensions: &[u8]) -> Option<Profile> {
    loop {
        let (kind, length) = (word(extensions, 0)?, usize::from(word(extensions, 2)?));
        let value = extensions.get(4..4 + length)?;
        if kind == USE_SRTP {
            // One profile behind the length of the list.
            return Profile::numbered(word(value, 2)?);
        }
        extensions = &extensions[4 + length..];
    }
}
