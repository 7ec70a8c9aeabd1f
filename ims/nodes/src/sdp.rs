//! The session descriptions of a call with preconditions ([RFC4566 §5], [RFC3312 §5]).

use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// A medium that an agent offers or accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Medium {
    /// `audio` or `video`.
    pub kind: String,
    /// Port of RTP; RTCP is on the next one. 0: refused.
    pub port: u16,
    /// Bandwidth in `b=AS`, in kbit/s.
    pub kbps: u32,
}

/// Where the resources of a medium stand ([RFC3312 §5.1.1]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Reserved on the side of the author.
    pub local: bool,
    /// Reserved on the other side.
    pub remote: bool,
}

/// A description by one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Address of the media.
    pub address: Ipv4Addr,
    /// Version in `o=`, one more at each change.
    pub version: u32,
    /// The media in the order of the offer.
    pub media: Vec<Medium>,
    /// Resources, the same for each medium.
    pub resources: Resources,
    /// Whether the author asks to be told when the other side has its resources.
    pub asks_confirmation: bool,
    /// `sendrecv`, or `sendonly` of a party that holds.
    pub direction: String,
}

impl Description {
    /// The text of the description.
    pub fn to_text(&self) -> String {
        let address = self.address;
        let mut text = format!(
            "v=0\r\no=- 1 {} IN IP4 {address}\r\ns=-\r\nc=IN IP4 {address}\r\nt=0 0\r\n",
            self.version
        );
        for medium in &self.media {
            let (payload, codec) = match medium.kind.as_str() {
                "audio" => (0, "PCMU/8000"),
                _ => (96, "VP8/90000"),
            };
            let state = |reserved| if reserved { "sendrecv" } else { "none" };
            write!(
                text,
                "m={} {} RTP/AVP {payload}\r\nb=AS:{}\r\na=rtpmap:{payload} {codec}\r\na={}\r\n\
                 a=curr:qos local {}\r\na=curr:qos remote {}\r\n\
                 a=des:qos mandatory local sendrecv\r\na=des:qos {} remote sendrecv\r\n",
                medium.kind,
                medium.port,
                medium.kbps,
                self.direction,
                state(self.resources.local),
                state(self.resources.remote),
                // [RFC3312 §6] The answerer needs the resources of both sides.
                if self.asks_confirmation { "mandatory" } else { "optional" },
            )
            .expect("a string can be written");
            if self.asks_confirmation && !self.resources.remote {
                text += "a=conf:qos remote sendrecv\r\n";
            }
        }
        text
    }

    /// Reads a description. Attributes that are not known are left out.
    ///
    /// # Errors
    /// The reason in words, if there is no address or no medium.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut read = Self {
            address: Ipv4Addr::UNSPECIFIED,
            version: 0,
            media: Vec::new(),
            resources: Resources { local: true, remote: true },
            asks_confirmation: false,
            direction: "sendrecv".into(),
        };
        let mut has_preconditions = false;
        for line in text.lines().map(str::trim_end) {
            let Some((kind, value)) = line.split_once('=') else { continue };
            match kind {
                "c" if read.address.is_unspecified() => {
                    let address = value.strip_prefix("IN IP4 ").unwrap_or_default();
                    read.address = address.parse().map_err(|_| format!("no IPv4 in '{line}'"))?;
                }
                "m" => {
                    let words: Vec<&str> = value.split(' ').collect();
                    let [kind, port, ..] = words[..] else { return Err(format!("'{line}'")) };
                    let port = port.parse().map_err(|_| format!("no port in '{line}'"))?;
                    read.media.push(Medium { kind: kind.into(), port, kbps: 0 });
                }
                "b" => {
                    let rate = value.strip_prefix("AS:").and_then(|rate| rate.parse().ok());
                    if let (Some(medium), Some(rate)) = (read.media.last_mut(), rate) {
                        medium.kbps = rate;
                    }
                }
                "a" => {
                    has_preconditions |= value.starts_with("curr:qos");
                    match value {
                        "curr:qos local none" => read.resources.local = false,
                        "curr:qos remote none" => read.resources.remote = false,
                        "conf:qos remote sendrecv" => read.asks_confirmation = true,
                        "sendrecv" | "sendonly" | "recvonly" | "inactive" => {
                            read.direction = value.into();
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        // Without preconditions nothing has to be waited for.
        if !has_preconditions {
            read.resources = Resources { local: true, remote: true };
        }
        if read.media.is_empty() || read.address.is_unspecified() {
            return Err("no medium or no address".into());
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_written_and_read() {
        let description = Description {
            address: Ipv4Addr::new(10, 46, 1, 2),
            version: 2,
            media: vec![
                Medium { kind: "audio".into(), port: 4000, kbps: 64 },
                Medium { kind: "video".into(), port: 4002, kbps: 2000 },
            ],
            resources: Resources { local: true, remote: false },
            asks_confirmation: true,
            direction: "sendrecv".into(),
        };
        let text = description.to_text();
        assert!(text.contains("a=curr:qos local sendrecv\r\na=curr:qos remote none\r\n"));
        let read = Description::parse(&text).unwrap();
        assert_eq!(read, Description { version: 0, ..description });
    }

    // [RFC3312 §5]
    #[test]
    fn without_preconditions_nothing_is_waited_for() {
        let read = Description::parse("c=IN IP4 10.46.1.2\r\nm=audio 9 RTP/AVP 0\r\n").unwrap();
        assert_eq!(read.resources, Resources { local: true, remote: true });
        assert!(Description::parse("m=audio 9 RTP/AVP 0\r\n").is_err());
        assert!(Description::parse("c=IN IP4 10.46.1.2\r\n").is_err());
        assert!(Description::parse("c=IN IP6 ::1\r\n").is_err());
    }
}
