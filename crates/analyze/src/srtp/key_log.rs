//! A file with keys: lines of a key log as NSS, OpenSSL and Firefox (`SSLKEYLOGFILE`) write them, and
//! `a=crypto` lines of a session description [RFC4568 §9.1].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::cipher::{Profile, Session};
use crate::error::AnalyzeError;

/// Largest number of secrets. More are ignored.
const SECRETS_MAX: usize = 100_000;

/// The keys of a file.
#[derive(Clone, Debug, Default)]
pub struct KeyLog {
    /// Master secrets of DTLS 1.2, by the client's random.
    pub(super) masters: BTreeMap<[u8; 32], [u8; 48]>,
    /// Keys that stand in descriptions.
    pub(super) described: Vec<Session>,
}

impl KeyLog {
    /// Reads a file with keys.
    ///
    /// # Errors
    /// If the file cannot be read, or has no key.
    pub fn read(path: &Path) -> Result<Self, AnalyzeError> {
        let failed = |error| AnalyzeError::Io { path: path.into(), error };
        let file = BufReader::new(File::open(path).map_err(failed)?);
        let mut keys = Self::default();
        for line in file.split(b'\n') {
            let line = line.map_err(failed)?;
            keys.line(&String::from_utf8_lossy(&line));
        }
        if keys.masters.is_empty() && keys.described.is_empty() {
            let what =
                "it has neither a CLIENT_RANDOM of a key log nor an a=crypto line with a key";
            return Err(AnalyzeError::Damaged { path: path.into(), what: what.into() });
        }
        Ok(keys)
    }

    fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(description) = line.strip_prefix("a=crypto:") {
            if self.described.len() < super::SESSIONS_MAX {
                self.described.extend(described(description));
            }
            return;
        }
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("CLIENT_RANDOM") || self.masters.len() >= SECRETS_MAX {
            return;
        }
        let random = words.next().and_then(bytes::<32>);
        let secret = words.next().and_then(bytes::<48>);
        self.masters.extend(random.zip(secret));
    }
}

/// Bytes in hexadecimal.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// `1 AES_CM_128_HMAC_SHA1_80 inline:KEY|lifetime|MKI` [RFC4568 §6.1].
fn described(text: &str) -> Option<Session> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let profile = match words.next()? {
        "AES_CM_128_HMAC_SHA1_80" | "AES_CM_128_HMAC_SHA1_32" => Profile::Aes128CmSha1,
        "AEAD_AES_128_GCM" => Profile::Aes128Gcm,
        "AEAD_AES_256_GCM" => Profile::Aes256Gcm,
        _ => return None,
    };
    let key = words.next()?.strip_prefix("inline:")?.split('|').next()?;
    let material = STANDARD.decode(key).ok()?;
    let (key, salt) = material.split_at_checked(profile.key_size())?;
    (salt.len() == profile.salt_size()).then(|| Session::new(profile, key, salt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_other_kinds_are_ignored() {
        let mut keys = KeyLog::default();
        keys.line("# SSL/TLS secrets log file");
        keys.line("SERVER_HANDSHAKE_TRAFFIC_SECRET 00 00");
        keys.line("CLIENT_RANDOM 00 00");
        keys.line(&format!("CLIENT_RANDOM {} {}", "é".repeat(32), "0".repeat(96)));
        assert!(keys.masters.is_empty() && keys.described.is_empty());
        keys.line(&format!("CLIENT_RANDOM {} {}\r", "0a".repeat(32), "0B".repeat(48)));
        assert_eq!(keys.masters, [([10; 32], [11; 48])].into());
        // [RFC4568 §9.1] has this key.
        keys.line("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^20|1:32");
        keys.line("a=crypto:1 AEAD_AES_128_GCM inline:AAAA");
        assert_eq!(keys.described.len(), 1);
    }
}
