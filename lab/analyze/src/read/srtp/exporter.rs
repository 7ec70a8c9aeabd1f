//! Exporters: keys for another protocol, from the secret of a handshake.

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha384};

/// In front of each label of DTLS 1.3 [RFC9147 §5.9].
const PREFIX: &[u8] = b"dtls13";

/// The hash of a cipher suite.
#[derive(Clone, Copy, Debug)]
pub(super) enum Digest {
    Sha256,
    Sha384,
}

impl Digest {
    /// Suites name their hash where it is not SHA-256 [RFC5246 §5], [RFC8446 §B.4].
    pub fn of_suite(number: u16) -> Self {
        match number {
            0x009D | 0x009F | 0xC024 | 0xC028 | 0xC02C | 0xC030 | 0x1302 => Self::Sha384,
            _ => Self::Sha256,
        }
    }

    /// The hash of nothing.
    fn of_nothing(self) -> Vec<u8> {
        use sha2::Digest as _;
        match self {
            Self::Sha256 => Sha256::digest([]).to_vec(),
            Self::Sha384 => Sha384::digest([]).to_vec(),
        }
    }

    /// The authentication code of the parts, one behind the other.
    fn code(self, secret: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            Self::Sha256 => code::<Hmac<Sha256>>(secret, parts),
            Self::Sha384 => code::<Hmac<Sha384>>(secret, parts),
        }
    }
}

fn code<M: Mac + KeyInit>(secret: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
    let mut code = <M as KeyInit>::new_from_slice(secret).ok()?;
    parts.iter().for_each(|part| code.update(part));
    Some(code.finalize().into_bytes().to_vec())
}

/// The exporter of DTLS 1.2: its pseudorandom function [RFC5246 §5], with both randoms as seed
/// [RFC5705 §4].
pub(super) fn before_1_3(
    digest: Digest,
    master: &[u8],
    label: &[u8],
    randoms: &[u8],
    size: usize,
) -> Option<Vec<u8>> {
    let seed = [label, randoms].concat();
    let mut link = digest.code(master, &[&seed])?;
    let mut material = Vec::new();
    while material.len() < size {
        material.extend_from_slice(&digest.code(master, &[&link, &seed])?);
        link = digest.code(master, &[&link])?;
    }
    material.truncate(size);
    Some(material)
}

/// The exporter of DTLS 1.3, without a context [RFC8446 §7.5].
pub(super) fn of_dtls_1_3(
    digest: Digest,
    exporter: &[u8],
    label: &[u8],
    size: usize,
) -> Option<Vec<u8>> {
    let nothing = digest.of_nothing();
    let own = labelled(label, &nothing, nothing.len())?;
    let secret = expanded(digest, exporter, &own, nothing.len())?;
    expanded(digest, &secret, &labelled(b"exporter", &nothing, size)?, size)
}

/// `HkdfLabel`: what `size` bytes are for [RFC8446 §7.1].
fn labelled(label: &[u8], context: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut info = u16::try_from(size).ok()?.to_be_bytes().to_vec();
    for parts in [[PREFIX, label], [context, &[]]] {
        let whole = parts.concat();
        info.push(u8::try_from(whole.len()).ok()?);
        info.extend(whole);
    }
    Some(info)
}

/// HKDF-Expand [RFC5869 §2.3].
fn expanded(digest: Digest, secret: &[u8], info: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut block = Vec::new();
    let mut material = Vec::new();
    for number in 1..=u8::MAX {
        block = digest.code(secret, &[&block, info, &[number]])?;
        material.extend_from_slice(&block);
        if material.len() >= size {
            material.truncate(size);
            return Some(material);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::hex;
    use super::*;

    // The vectors of RFC 5869, appendix A.1.
    #[test]
    fn keys_are_expanded_as_in_the_appendix() {
        let secret = hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
        let info = hex("f0f1f2f3f4f5f6f7f8f9");
        let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf\
                        34007208d5b887185865";
        assert_eq!(expanded(Digest::Sha256, &secret, &info, 42), Some(hex(expected)));
    }

    #[test]
    fn more_than_255_blocks_are_refused() {
        assert!(expanded(Digest::Sha256, &[1; 32], &[], 255 * 32).is_some());
        assert_eq!(expanded(Digest::Sha256, &[1; 32], &[], 255 * 32 + 1), None);
    }
}
