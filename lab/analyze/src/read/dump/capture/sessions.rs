//! Session descriptions in SIP: codecs, and which ports belong to which call.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use weir_record::calls::stats::Kind;

/// Most sockets that are described.
const DESCRIBED_MAX: usize = 4_096;

/// A payload type of a session description [RFC8866 §6.6].
///
/// [RFC8866 §6.6]: https://www.rfc-editor.org/rfc/rfc8866#section-6.6
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mapping {
    pub payload_type: u8,
    pub kind: Kind,
    pub codec: String,
    pub clock_hz: u32,
}

/// What is described of the socket that receives a medium.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Described {
    pub call_id: Option<String>,
    pub mappings: Vec<Mapping>,
}

/// All descriptions of a file.
#[derive(Default)]
pub(super) struct Sessions {
    by_socket: BTreeMap<SocketAddr, Described>,
}

impl Sessions {
    /// Reads a datagram, if it is SIP with a session description.
    pub fn add(&mut self, datagram: &[u8]) {
        if !is_sip(datagram) || self.by_socket.len() >= DESCRIBED_MAX {
            return;
        }
        let text = String::from_utf8_lossy(datagram);
        let Some((heading, body)) = text.split_once("\r\n\r\n") else { return };
        let call_id = heading.lines().find_map(call_id);
        let mut address: Option<IpAddr> = None;
        let mut medium: Option<(SocketAddr, Kind)> = None;
        for line in body.lines() {
            let Some((kind, value)) = line.split_once('=') else { continue };
            match kind {
                // Of the session, or of the medium before it.
                "c" => {
                    let stated = value.split_whitespace().nth(2).and_then(|it| it.parse().ok());
                    match &mut medium {
                        Some((socket, _)) => {
                            if let Some(own) = stated {
                                self.move_to(socket, own);
                            }
                        }
                        None => address = stated,
                    }
                }
                "m" => {
                    medium = of_medium(value, address);
                    if let Some((socket, _)) = medium {
                        let described = self.by_socket.entry(socket).or_default();
                        described.call_id = call_id.clone().or(described.call_id.take());
                    }
                }
                "a" => {
                    let Some((socket, kind)) = medium else { continue };
                    if let Some(mapping) = mapping(value, kind) {
                        let known = &mut self.by_socket.entry(socket).or_default().mappings;
                        known.retain(|it| it.payload_type != mapping.payload_type);
                        known.push(mapping);
                    }
                }
                _ => {}
            }
        }
    }

    fn move_to(&mut self, socket: &mut SocketAddr, address: IpAddr) {
        let described = self.by_socket.remove(socket).unwrap_or_default();
        socket.set_ip(address);
        self.by_socket.insert(*socket, described);
    }

    /// What is described of a socket.
    pub fn of(&self, socket: &SocketAddr) -> Option<&Described> {
        self.by_socket.get(socket)
    }
}

fn is_sip(datagram: &[u8]) -> bool {
    let line = datagram.split(|byte| *byte == b'\r').next().unwrap_or_default();
    line.starts_with(b"SIP/2.0 ") || line.ends_with(b" SIP/2.0")
}

/// The value of a Call-ID, whose name may be short [RFC3261 §7.3.3].
fn call_id(line: &str) -> Option<String> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let is_id = name.eq_ignore_ascii_case("call-id") || name.eq_ignore_ascii_case("i");
    is_id.then(|| value.trim().to_owned())
}

/// Socket and kind of a medium: `audio 49170 RTP/AVP 0`.
fn of_medium(value: &str, address: Option<IpAddr>) -> Option<(SocketAddr, Kind)> {
    let mut words = value.split_whitespace();
    let kind = match words.next()? {
        "audio" => Kind::Audio,
        "video" => Kind::Video,
        _ => return None,
    };
    let port = words.next()?.split('/').next()?.parse().ok()?;
    Some((SocketAddr::new(address.unwrap_or([0, 0, 0, 0].into()), port), kind))
}

/// `rtpmap:97 opus/48000/2`
fn mapping(value: &str, kind: Kind) -> Option<Mapping> {
    let (number, codec) = value.strip_prefix("rtpmap:")?.split_once(' ')?;
    let mut parts = codec.trim().split('/');
    Some(Mapping {
        payload_type: number.trim().parse().ok()?,
        kind,
        codec: parts.next()?.to_owned(),
        clock_hz: parts.next()?.parse().ok().filter(|clock| *clock > 0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_codec_clock_and_call_of_its_socket() {
        let text = "INVITE sip:b@example.org SIP/2.0\r\ni: 7@example.org\r\n\r\nv=0\r\n\
                    c=IN IP4 192.0.2.1\r\nm=audio 4000 RTP/AVP 97 0\r\na=rtpmap:97 opus/48000/2\r\n\
                    m=video 4002 RTP/AVP 98\r\nc=IN IP4 192.0.2.9\r\na=rtpmap:98 VP8/90000\r\n";
        let mut sessions = Sessions::default();
        sessions.add(text.as_bytes());
        let audio = sessions.of(&"192.0.2.1:4000".parse().unwrap()).unwrap();
        assert_eq!(audio.call_id.as_deref(), Some("7@example.org"));
        assert_eq!(
            (audio.mappings[0].codec.as_str(), audio.mappings[0].clock_hz),
            ("opus", 48_000)
        );
        let video = sessions.of(&"192.0.2.9:4002".parse().unwrap()).unwrap();
        assert_eq!(video.mappings[0].kind, Kind::Video);
        sessions.add(b"GET / HTTP/1.1\r\n\r\nm=audio 1 RTP/AVP 0\r\n");
        assert_eq!(sessions.by_socket.len(), 2);
    }
}
