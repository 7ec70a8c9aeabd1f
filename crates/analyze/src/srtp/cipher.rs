//! Keys of SRTCP, and what they open [RFC3711 §3.4, §4.3], [RFC7714 §9].

use aes::{Aes128, Aes256};
use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, Mac};
use sha1::Sha1;

/// Header and SSRC in the clear [RFC3711 §3.4].
const CLEAR: usize = 8;
/// The E flag and the index.
const INDEX: usize = 4;
const ENCRYPTED: u32 = 1 << 31;
/// Tags of HMAC-SHA1 of SRTCP, also where those of SRTP are shorter [RFC5764 §4.1.2].
const CODE: usize = 10;
const GCM_TAG: usize = 16;
const SALT: usize = 14;

// Labels of the key derivation [RFC3711 §4.3.2].
const ENCRYPTION: u8 = 3;
const AUTHENTICATION: u8 = 4;
const SALTING: u8 = 5;

/// How packets are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// AES in counter mode with HMAC-SHA1.
    Aes128CmSha1,
    /// AES-128 in Galois counter mode.
    Aes128Gcm,
    /// AES-256 in Galois counter mode.
    Aes256Gcm,
}

impl Profile {
    /// By its number in DTLS [RFC5764 §4.1.2], [RFC7714 §14.2].
    pub fn numbered(number: u16) -> Option<Self> {
        match number {
            1 | 2 => Some(Self::Aes128CmSha1),
            7 => Some(Self::Aes128Gcm),
            8 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// Bytes of the master key.
    pub fn key_size(self) -> usize {
        match self {
            Self::Aes128CmSha1 | Self::Aes128Gcm => 16,
            Self::Aes256Gcm => 32,
        }
    }

    /// Bytes of the master salt.
    pub fn salt_size(self) -> usize {
        match self {
            Self::Aes128CmSha1 => SALT,
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
        }
    }
}

/// The keys of one sender's SRTCP.
#[derive(Clone, Debug)]
pub(super) struct Session {
    profile: Profile,
    key: Vec<u8>,
    code_key: Vec<u8>,
    salt: Vec<u8>,
}

impl Session {
    /// From a master key and a master salt.
    pub fn new(profile: Profile, key: &[u8], salt: &[u8]) -> Self {
        let derived = |label, size| derived(profile, key, salt, label, size).unwrap_or_default();
        Self {
            profile,
            key: derived(ENCRYPTION, profile.key_size()),
            code_key: derived(AUTHENTICATION, 20),
            salt: derived(SALTING, profile.salt_size()),
        }
    }

    /// The RTCP of a packet; `None` if this is not its key.
    pub fn open(&self, packet: &[u8]) -> Option<Vec<u8>> {
        match self.profile {
            Profile::Aes128CmSha1 => self.open_counter(packet),
            Profile::Aes128Gcm => {
                self.open_gcm(&Aes128Gcm::new_from_slice(&self.key).ok()?, packet)
            }
            Profile::Aes256Gcm => {
                self.open_gcm(&Aes256Gcm::new_from_slice(&self.key).ok()?, packet)
            }
        }
    }

    /// [RFC3711 §3.4, §4.1.1]
    fn open_counter(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let (body, code) = packet.split_at_checked(packet.len().checked_sub(CODE)?)?;
        let (plain, word) = body.split_at_checked(body.len().checked_sub(INDEX)?)?;
        let ssrc = plain.get(4..CLEAR)?;
        let mut mac = <Hmac<Sha1> as Mac>::new_from_slice(&self.code_key).ok()?;
        mac.update(body);
        mac.verify_truncated_left(code).ok()?;
        let mut plain = plain.to_vec();
        let word = u32::from_be_bytes(word.try_into().ok()?);
        if word & ENCRYPTED != 0 {
            let mut start = [0; 16];
            start[..SALT].copy_from_slice(&self.salt);
            xor(&mut start[4..8], ssrc);
            xor(&mut start[10..14], &(word & !ENCRYPTED).to_be_bytes());
            let mut stream = Ctr128BE::<Aes128>::new_from_slices(&self.key, &start).ok()?;
            stream.apply_keystream(&mut plain[CLEAR..]);
        }
        Some(plain)
    }

    /// [RFC7714 §9]
    fn open_gcm(&self, cipher: &impl Aead, packet: &[u8]) -> Option<Vec<u8>> {
        let (body, word) = packet.split_at_checked(packet.len().checked_sub(INDEX)?)?;
        let index = u32::from_be_bytes(word.try_into().ok()?);
        // The tag alone follows what is in the clear.
        let clear = match index & ENCRYPTED {
            0 => body.len().checked_sub(GCM_TAG)?,
            _ => CLEAR,
        };
        let (head, sealed) = body.split_at_checked(clear)?;
        let mut nonce = [0; 12];
        nonce.copy_from_slice(&self.salt);
        xor(&mut nonce[2..6], head.get(4..CLEAR)?);
        xor(&mut nonce[8..], &(index & !ENCRYPTED).to_be_bytes());
        let payload = Payload { msg: sealed, aad: &[head, word].concat() };
        let opened = cipher.decrypt(nonce.as_slice().into(), payload).ok()?;
        Some([head, &opened].concat())
    }
}

/// A session key [RFC3711 §4.3.1]; the shorter salt of GCM is filled with zeros [RFC7714 §11].
fn derived(profile: Profile, key: &[u8], salt: &[u8], label: u8, size: usize) -> Option<Vec<u8>> {
    let mut start = [0; 16];
    start.get_mut(..salt.len())?.copy_from_slice(salt);
    start[7] ^= label;
    let mut derived = vec![0; size];
    match profile.key_size() {
        16 => Ctr128BE::<Aes128>::new_from_slices(key, &start).ok()?.apply_keystream(&mut derived),
        _ => Ctr128BE::<Aes256>::new_from_slices(key, &start).ok()?.apply_keystream(&mut derived),
    }
    Some(derived)
}

fn xor(to: &mut [u8], with: &[u8]) {
    to.iter_mut().zip(with).for_each(|(to, with)| *to ^= with);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    // The vectors of RFC 3711, appendix B.3, with the labels of SRTP.
    #[test]
    fn keys_are_derived_as_in_the_appendix() {
        let key = bytes("E1F97A0D3E018BE0D64FA32C06DE4139");
        let salt = bytes("0EC675AD498AFEEBB6960B3AABE6");
        let of = |label, size| derived(Profile::Aes128CmSha1, &key, &salt, label, size).unwrap();
        assert_eq!(of(0, 16), bytes("C61E7A93744F39EE10734AFE3FF7A087"));
        assert_eq!(of(2, 14), bytes("30CBBC08863D8C85D49DB34A9AE1"));
        assert_eq!(of(1, 20), bytes("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4"));
    }

    #[test]
    fn what_is_cut_or_changed_does_not_open() {
        for profile in [Profile::Aes128CmSha1, Profile::Aes128Gcm, Profile::Aes256Gcm] {
            let keys =
                Session::new(profile, &vec![7; profile.key_size()], &vec![9; profile.salt_size()]);
            for size in 0..80 {
                assert_eq!(keys.open(&vec![0x80; size]), None);
            }
        }
    }
}
