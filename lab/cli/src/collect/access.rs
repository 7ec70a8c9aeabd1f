//! Who may send: the token of a room, and the places that addresses name.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Longest name of a room, call or peer.
const NAME_MAX: usize = 64;

/// The end of a call that a client reports of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Participant {
    pub room: String,
    pub call: String,
    pub peer: String,
}

impl Participant {
    /// `None` if a name is empty, long, or has other characters than letters, digits, `-` and `_`:
    /// names become those of files.
    pub fn new(room: &str, call: &str, peer: &str) -> Option<Self> {
        let names = [room, call, peer];
        names.into_iter().all(is_name).then(|| Self {
            room: room.into(),
            call: call.into(),
            peer: peer.into(),
        })
    }

    /// As [`new`](Self::new), with other characters of call and peer replaced. Jitsi's meetings
    /// have names of any kind.
    pub fn lenient(room: &str, call: &str, peer: &str) -> Option<Self> {
        Self::new(room, &plain(call), &plain(peer))
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = name.bytes().all(is_plain);
    is_plain && !name.is_empty() && name.len() <= NAME_MAX
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn plain(name: &str) -> String {
    let bytes = name.bytes().take(NAME_MAX);
    bytes.map(|byte| if is_plain(byte) { char::from(byte) } else { '-' }).collect()
}

/// What makes the tokens of rooms.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    pub fn new(text: &str) -> Self {
        Self(text.as_bytes().into())
    }

    fn mac(&self, room: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        mac.expect("HMAC takes keys of any length").chain_update(room)
    }

    /// The token of a room.
    pub fn token(&self, room: &str) -> String {
        let bytes = self.mac(room).finalize().into_bytes();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether this is the room's token. The time does not tell how much of it is right.
    pub fn admits(&self, room: &str, token: &str) -> bool {
        from_hex(token).is_some_and(|bytes| self.mac(room).verify_slice(&bytes).is_ok())
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|it| it.to_digit(16).and_then(|it| u8::try_from(it).ok())).collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// What a request asks for, by its path with its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To send reports in rtcstats' own form, or snapshots.
    Reports(Participant),
    /// To send reports as Jitsi's client does.
    Jitsi(Participant),
    /// What anyone may read.
    Public,
}

/// What is asked for, if the token is right.
pub fn asked(secret: &Secret, target: &str) -> Option<Asked> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["metrics" | "client.js" | "health"] => Some(Asked::Public),
        ["c", room, call, peer] => {
            let participant = Participant::new(room, call, peer)?;
            secret.admits(room, value(query, "token")?).then_some(Asked::Reports(participant))
        }
        ["jitsi", room, token, ..] if parts.len() > 3 => {
            let peer = value(query, "statsSessionId")?;
            let participant = Participant::lenient(room, &parts[3..].join("/"), peer)?;
            secret.admits(room, token).then_some(Asked::Jitsi(participant))
        }
        _ => None,
    }
}

/// The value of a name in a query.
pub fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: &str = "6c1dc2a8a7b1a7a3";

    #[test]
    fn a_token_opens_its_room_and_no_other() {
        let secret = Secret::new("s");
        let token = secret.token("a");
        assert!(secret.admits("a", &token) && secret.admits("a", &token.to_uppercase()));
        for (room, token) in [
            ("b", token.clone()),
            ("a", token[..62].into()),
            ("a", format!("{token}00")),
            ("a", String::new()),
            ("a", "z".repeat(64)),
            ("a", Secret::new("t").token("a")),
        ] {
            assert!(!secret.admits(room, &token), "{room} {token}");
        }
    }

    #[test]
    fn a_token_is_what_other_programs_make() {
        // RFC 4231, test case 2, with the name in place of the data.
        let token = Secret::new("Jefe").token("what do ya want for nothing?");
        assert_eq!(token, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn addresses_name_participants_and_nothing_outside_the_folder() {
        let secret = Secret::new("s");
        let token = secret.token(ROOM);
        let participant = |call: &str, peer: &str| Participant::new(ROOM, call, peer).unwrap();
        let asked = |target: String| asked(&secret, &target);
        assert_eq!(
            asked(format!("/c/{ROOM}/7/anna?token={token}")),
            Some(Asked::Reports(participant("7", "anna")))
        );
        assert_eq!(
            asked(format!("/jitsi/{ROOM}/{token}/meet.example/Some Room?statsSessionId=a-1")),
            Some(Asked::Jitsi(participant("meet-example-Some-Room", "a-1")))
        );
        assert_eq!(asked("/metrics".into()), Some(Asked::Public));
        for target in [
            format!("/c/{ROOM}/7/anna"),
            format!("/c/{ROOM}/7/anna?token={}", secret.token("b")),
            format!("/c/{ROOM}/../anna?token={token}"),
            format!("/c/{ROOM}/7/a.b?token={token}"),
            format!("/c/{ROOM}/7/?token={token}"),
            format!("/c/{ROOM}/7/{}?token={token}", "a".repeat(65)),
            format!("/c/{ROOM}/7?token={token}"),
            format!("/jitsi/{ROOM}/{token}?statsSessionId=a"),
            format!("/jitsi/{ROOM}/{token}/m"),
            "/".into(),
            String::new(),
        ] {
            assert_eq!(asked(target.clone()), None, "{target}");
        }
    }
}
