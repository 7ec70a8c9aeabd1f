//! A file with keys: lines of a key log as NSS, OpenSSL and Firefox (`SSLKEYLOGFILE`) write them,
//! and `a=crypto` lines of a session description [RFC4568 §9.1].

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use weir_record::lines::{self, Line};
use weir_scenario::files;

use super::cipher::{Profile, Session};
use super::handshake::Secret;
use crate::error::AnalyzeError;

/// Largest number of secrets. More are ignored.
const SECRETS_MAX: usize = 100_000;

/// Maximum length of a line. Longer ones are no keys.
const LINE_BYTES_MAX: usize = 10_000;
/// What is read of a file.
const FILE_BYTES_MAX: u64 = 1_000_000_000;

/// The keys of a file.
#[derive(Clone, Debug, Default)]
pub struct KeyLog {
    /// Secrets of handshakes, by the client's random.
    pub(super) secrets: BTreeMap<[u8; 32], Secret>,
    /// Keys from session descriptions (a=crypto).
    pub(super) described: Vec<Session>,
}

impl KeyLog {
    /// Reads a regular file with keys. Of a very large one only the beginning counts.
    ///
    /// # Errors
    /// If the file cannot be read, or has no key.
    pub fn read(path: &Path) -> Result<Self, AnalyzeError> {
        let file = files::open(path).map_err(AnalyzeError::of_file(path))?;
        Self::read_from(path, file)
    }

    /// Reads keys from elsewhere, such as a pipe. Errors name it by `path`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_from(path: &Path, from: impl Read) -> Result<Self, AnalyzeError> {
        let mut from = BufReader::new(from.take(FILE_BYTES_MAX));
        let (mut keys, mut line) = (Self::default(), Vec::new());
        loop {
            match lines::read(&mut from, &mut line, LINE_BYTES_MAX) {
                Ok(Line::Whole) => keys.line(&String::from_utf8_lossy(&line)),
                Ok(Line::TooLong) => {}
                Ok(Line::End) => break,
                Err(error) => return Err(AnalyzeError::of_file(path)(error)),
            }
        }
        if keys.secrets.is_empty() && keys.described.is_empty() {
            let what = "it has no CLIENT_RANDOM or EXPORTER_SECRET of a key log, and no a=crypto \
                line with a key";
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
        if self.secrets.len() < SECRETS_MAX {
            self.secrets.extend(secret(line));
        }
    }
}

/// `KIND CLIENT_RANDOM SECRET`, the numbers in hexadecimal.
fn secret(line: &str) -> Option<([u8; 32], Secret)> {
    let mut words = line.split_ascii_whitespace();
    let kind = words.next()?;
    let random = bytes(words.next()?)?.try_into().ok()?;
    let secret = bytes(words.next()?)?;
    let secret = match (kind, secret.len()) {
        ("CLIENT_RANDOM", 48) => Secret::Master(secret),
        ("EXPORTER_SECRET", 32 | 48) => Secret::Exporter(secret),
        _ => return None,
    };
    Some((random, secret))
}

/// Bytes in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for pair in text.as_bytes().chunks(2) {
        let [high, low] = *pair else { return None };
        let [high, low] = [high, low].map(|digit| char::from(digit).to_digit(16));
        bytes.push((high? << 4 | low?) as u8);
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
        keys.line(&format!("EXPORTER_SECRET {} {}", "0a".repeat(32), "0b".repeat(31)));
        keys.line(&format!("EXPORTER_SECRET {} {}b", "0a".repeat(32), "0b".repeat(31)));
        assert!(keys.secrets.is_empty() && keys.described.is_empty());
        keys.line(&format!("CLIENT_RANDOM {} {}\r", "0a".repeat(32), "0B".repeat(48)));
        keys.line(&format!("EXPORTER_SECRET {} {}", "0c".repeat(32), "0d".repeat(32)));
        let expected =
            [([10; 32], Secret::Master(vec![11; 48])), ([12; 32], Secret::Exporter(vec![13; 32]))];
        assert_eq!(keys.secrets, expected.into());
        // [RFC4568 §9.1] has this key.
        keys.line(
            "a=crypto:1 AES_CM_128_HMAC_SHA1_80 \
            inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^20|1:32",
        );
        keys.line("a=crypto:1 AEAD_AES_128_GCM inline:AAAA");
        assert_eq!(keys.described.len(), 1);
    }
}
