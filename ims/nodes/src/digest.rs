//! The client's side of Digest: passwords ([RFC2617 §3.2.2]) and AKA ([RFC3310 §3]).

use crate::md5::{hex, md5};
use crate::milenage::Secrets;

/// What a user knows.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Password of SIP Digest.
    Password(String),
    /// Secrets of an ISIM.
    Aka(Secrets),
}

/// A challenge, from WWW-Authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    realm: String,
    pub(crate) nonce: String,
    algorithm: String,
    has_qop: bool,
}

impl Challenge {
    /// Reads a header value.
    pub fn parse(value: &str) -> Option<Self> {
        let rest = value.strip_prefix("Digest ")?;
        Some(Self {
            realm: field(rest, "realm")?.into(),
            nonce: field(rest, "nonce")?.into(),
            algorithm: field(rest, "algorithm").unwrap_or("MD5").into(),
            has_qop: field(rest, "qop").is_some(),
        })
    }

    /// The value of Authorization.
    ///
    /// # Errors
    /// The reason in words, if the credentials do not fit or the network's proof is wrong.
    pub fn answer(
        &self,
        credentials: &Credentials,
        username: &str,
        method: &str,
        uri: &str,
        cnonce: &str,
    ) -> Result<String, String> {
        let secret = match credentials {
            Credentials::Password(password) => password.clone().into_bytes(),
            Credentials::Aka(secrets) => self.aka(secrets)?,
        };
        let (realm, nonce) = (&self.realm, &self.nonce);
        let a1 = [format!("{username}:{realm}:").as_bytes(), &secret].concat();
        let (ha1, ha2) = (hex(&md5(&a1)), hex(&md5(format!("{method}:{uri}").as_bytes())));
        let (middle, fields) = if self.has_qop {
            (
                format!("00000001:{cnonce}:auth:"),
                format!(",qop=auth,nc=00000001,cnonce=\"{cnonce}\""),
            )
        } else {
            (String::new(), String::new())
        };
        let response = hex(&md5(format!("{ha1}:{nonce}:{middle}{ha2}").as_bytes()));
        Ok(format!(
            "Digest username=\"{username}\",realm=\"{realm}\",nonce=\"{nonce}\",uri=\"{uri}\",\
             response=\"{response}\",algorithm={}{fields}",
            self.algorithm
        ))
    }

    /// RES, after the check of AUTN ([RFC3310 §3.1], [TS 33.102 §6.3.3]).
    fn aka(&self, secrets: &Secrets) -> Result<Vec<u8>, String> {
        if self.algorithm != "AKAv1-MD5" {
            return Err(format!("an ISIM cannot answer {}", self.algorithm));
        }
        let nonce = from_base64(&self.nonce).ok_or("the nonce is not base64")?;
        let short = || "the nonce has no RAND and AUTN".to_owned();
        let (rand, autn) = nonce.split_at_checked(16).ok_or_else(short)?;
        let rand = rand.try_into().map_err(|_| short())?;
        let autn: [u8; 16] = autn.get(..16).ok_or_else(short)?.try_into().map_err(|_| short())?;
        let amf = [autn[6], autn[7]];
        let ak = secrets.vector(rand, [0; 6], amf).ak;
        let sqn = std::array::from_fn(|at| autn[at] ^ ak[at]);
        let vector = secrets.vector(rand, sqn, amf);
        if vector.mac_a != autn[8..] {
            return Err("the network does not know the key of this ISIM".into());
        }
        Ok(vector.res.to_vec())
    }
}

/// The value of a challenge's field, without quotation marks.
fn field<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    for (at, _) in fields.match_indices(name) {
        let is_start = at == 0 || fields[..at].ends_with([' ', ',']);
        if let (true, Some(value)) = (is_start, fields[at + name.len()..].strip_prefix('=')) {
            return match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split([',', ' ']).next(),
            };
        }
    }
    None
}

/// Bytes of base64 with padding ([RFC4648 §4]).
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for c in text.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("eight bits"));
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    // [RFC2617 §3.5]
    #[test]
    fn the_example_of_the_standard_is_answered() {
        let challenge = Challenge::parse(
            "Digest realm=\"testrealm@host.com\", qop=\"auth,auth-int\", \
             nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", opaque=\"5ccc069c\"",
        )
        .unwrap();
        let password = Credentials::Password("Circle Of Life".into());
        let answer =
            challenge.answer(&password, "Mufasa", "GET", "/dir/index.html", "0a4f113b").unwrap();
        assert!(answer.contains("response=\"6629fae49393a05397450978507c4ef1\""), "{answer}");
    }

    #[test]
    fn an_isim_answers_only_a_network_that_knows_its_key() {
        // RAND and AUTN of test set 1 of TS 35.208: SQN ff9bb4d0b607, AMF b9b9.
        let challenge = |last: &str| Challenge {
            realm: "ims.test".into(),
            nonce: format!("I1U8vpY3qJ0hiuZNrke/NVXzKLQ1d7m5Sp/6w1Tfr{last}="),
            algorithm: "AKAv1-MD5".into(),
            has_qop: false,
        };
        let secrets = Secrets {
            k: *b"\x46\x5b\x5c\xe8\xb1\x99\xb4\x9f\xaa\x5f\x0a\x2e\xe2\x38\xa6\xbc",
            opc: *b"\xcd\x63\xcb\x71\x95\x4a\x9f\x4e\x48\xa5\x99\x4e\x37\xa0\x2b\xaf",
        };
        let res = challenge("7M").aka(&secrets);
        assert_eq!(res.map(|res| hex(&res)), Ok("a54211d5e3ba50bf".into()));
        assert!(challenge("7A").aka(&secrets).unwrap_err().contains("does not know"));
    }

    // [RFC4648 §10]
    #[test]
    fn base64_is_read() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(from_base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(from_base64("Z!"), None);
    }
}
