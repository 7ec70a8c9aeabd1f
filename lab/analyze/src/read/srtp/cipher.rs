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
    pub const ALL: [Self; 3] = [Self::Aes128CmSha1, Self::Aes128Gcm, Self::Aes256Gcm];

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

    /// Bytes of key and salt of one sender.
    pub fn material_size(self) -> usize {
        self.key_size() + self.salt_size()
    }

    /// The keys of the client and of the server: two keys, then two salts [RFC5764 §4.2].
    pub fn sessions(self, material: &[u8]) -> Vec<Session> {
        let (keys, salts) = material.split_at(2 * self.key_size());
        let pairs = keys.chunks(self.key_size()).zip(salts.chunks(self.salt_size()));
        pairs.map(|(key, salt)| Session::new(self, key, salt)).collect()
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
    use super::super::hex;
    use super::*;

    // The vectors of RFC 3711, appendix B.3, with the labels of SRTP.
    #[test]
    fn keys_are_derived_as_in_the_appendix() {
        let key = hex("E1F97A0D3E018BE0D64FA32C06DE4139");
        let salt = hex("0EC675AD498AFEEBB6960B3AABE6");
        let of = |label, size| derived(Profile::Aes128CmSha1, &key, &salt, label, size).unwrap();
        assert_eq!(of(0, 16), hex("C61E7A93744F39EE10734AFE3FF7A087"));
        assert_eq!(of(2, 14), hex("30CBBC08863D8C85D49DB34A9AE1"));
        assert_eq!(of(1, 20), hex("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4"));
    }

    // The vectors of RFC 6188, section 7.2, with the labels of SRTP.
    #[test]
    fn keys_of_256_bits_are_derived_as_in_the_standard() {
        let key = hex("f0f04914 b513f276 3a1b1fa1 30f10e29 98f6f6e4 3e4309d1 e622a0e3 32b9f1b6");
        let salt = hex("3b04803d e51ee7c9 6423ab5b 78d2");
        let of = |label, size| derived(Profile::Aes256Gcm, &key, &salt, label, size).unwrap();
        let derived_key = "5ba1064e 30ec5161 3cad926c 5a28ef73 1ec7fb39 7f70a960 653caf06 554cd8c4";
        assert_eq!(of(0, 32), hex(derived_key));
        assert_eq!(of(2, 14), hex("fa317916 85ca444a 9e07c6c6 4e93"));
    }

    // The vectors of RFC 7714, sections 17.1 to 17.4: session keys, a packet, and what it becomes.
    #[test]
    fn packets_open_as_in_the_standard_of_galois_counter_mode() {
        let whole = "81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61
                     deadbeef deadbeef deadbeef deadbeef deadbeef";
        let key = "00010203 04050607 08090a0b 0c0d0e0f 10111213 14151617 18191a1b 1c1d1e1f";
        let keys = |profile: Profile| Session {
            profile,
            key: hex(key)[..profile.key_size()].to_vec(),
            code_key: Vec::new(),
            salt: hex("51756964 2070726f 2071756f"),
        };
        let sealed_128 = "81c8000d 4d617273 63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d
                          c676a5f1 730d6fda 4ce09b46 86303ded 0bb9275b c84aa458 96cf4d2f c5abf872
                          45d9eade 800005d4";
        let tagged_128 = "81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61
                          deadbeef deadbeef deadbeef deadbeef deadbeef 841dd968 3dd78ec9 2ae58790
                          125f62b3 000005d4";
        let sealed_256 = "81c8000d 4d617273 d50ae4d1 f5ce5d30 4ba297e4 7d470c28 2c3ece5d bffe0a50
                          a2eaa5c1 110555be 8415f658 c61de047 6f1b6fad 1d1eb30c 4446839f 57ff6f6c
                          b26ac3be 800005d4";
        for (profile, packet) in [
            (Profile::Aes128Gcm, sealed_128),
            (Profile::Aes128Gcm, tagged_128),
            (Profile::Aes256Gcm, sealed_256),
        ] {
            let mut packet = hex(packet);
            assert_eq!(keys(profile).open(&packet), Some(hex(whole)), "{profile:?}");
            packet[9] ^= 1;
            assert_eq!(keys(profile).open(&packet), None, "{profile:?}");
        }
    }

    #[test]
    fn a_packet_that_was_cut_or_changed_is_not_decrypted() {
        for profile in Profile::ALL {
            let keys =
                Session::new(profile, &vec![7; profile.key_size()], &vec![9; profile.salt_size()]);
            for size in 0..80 {
                assert_eq!(keys.open(&vec![0x80; size]), None);
            }
        }
    }
}
