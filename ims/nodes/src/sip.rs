//! SIP messages ([RFC3261 §7]): text to values and back. Header values stay text.
//!
//! [RFC3261 §7]: https://www.rfc-editor.org/rfc/rfc3261#section-7

use std::fmt;

/// Longest message that is read, in bytes.
pub const MOST_BYTES: usize = 1 << 16;

/// A request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// First line.
    pub start: Start,
    /// Names and values in their order. Compact names are written out.
    pub headers: Vec<(String, String)>,
    /// Body, such as SDP.
    pub body: String,
}

/// First line of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// A request.
    Request {
        /// Method, such as `INVITE`.
        method: String,
        /// Request-URI.
        uri: String,
    },
    /// A response.
    Response {
        /// Status code, 100 to 699.
        code: u16,
        /// Reason phrase.
        reason: String,
    },
}

/// Reason why bytes are not a SIP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// More bytes than [`MOST_BYTES`].
    #[error("message is too long")]
    TooLong,
    /// Not UTF-8.
    #[error("message is not UTF-8")]
    Utf8,
    /// The first line is neither a request line nor a status line of SIP/2.0.
    #[error("first line is not of SIP/2.0")]
    Start,
    /// A header line without name, or no empty line after the headers.
    #[error("headers are malformed")]
    Header,
    /// Content-Length is no number or exceeds the bytes.
    #[error("Content-Length is not right")]
    Length,
    /// Via, From, To, Call-ID or CSeq is missing ([RFC3261 §8.1.1]).
    ///
    /// [RFC3261 §8.1.1]: https://www.rfc-editor.org/rfc/rfc3261#section-8.1.1
    #[error("a mandatory header is missing")]
    Mandatory,
}

/// Compact names ([RFC3261 §7.3.3], [RFC6665 §8.2.1]) and their long forms.
const COMPACT: [(&str, &str); 12] = [
    ("c", "Content-Type"),
    ("e", "Content-Encoding"),
    ("f", "From"),
    ("i", "Call-ID"),
    ("k", "Supported"),
    ("l", "Content-Length"),
    ("m", "Contact"),
    ("o", "Event"),
    ("s", "Subject"),
    ("t", "To"),
    ("u", "Allow-Events"),
    ("v", "Via"),
];
/// Headers without which no message can be answered ([RFC3261 §8.1.1]).
const MANDATORY: [&str; 5] = ["Via", "From", "To", "Call-ID", "CSeq"];

impl Message {
    /// A request without headers.
    pub fn request(method: &str, uri: &str) -> Self {
        let start = Start::Request { method: method.into(), uri: uri.into() };
        Self { start, headers: Vec::new(), body: String::new() }
    }

    /// A response with the headers that it takes from this request ([RFC3261 §8.2.6.2]).
    ///
    /// [RFC3261 §8.2.6.2]: https://www.rfc-editor.org/rfc/rfc3261#section-8.2.6.2
    #[must_use]
    pub fn response(&self, code: u16, reason: &str) -> Self {
        let mut headers = self.headers.clone();
        headers.retain(|(name, _)| {
            MANDATORY.iter().any(|kept| kept.eq_ignore_ascii_case(name))
                || name.eq_ignore_ascii_case("Record-Route")
        });
        let start = Start::Response { code, reason: reason.into() };
        Self { start, headers, body: String::new() }
    }

    /// The same with one more header.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same with this SDP.
    #[must_use]
    pub fn with_sdp(mut self, sdp: String) -> Self {
        self.body = sdp;
        self.with("Content-Type", "application/sdp")
    }

    /// The value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(of, _)| of.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    /// The values of all headers of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.headers.iter().filter(move |(of, _)| of.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The elements of all headers of this name, split at commas outside of quotes and brackets.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.all(name).flat_map(split_list).collect()
    }

    /// The method of a request, or of the request that a response answers.
    pub fn method(&self) -> &str {
        match &self.start {
            Start::Request { method, .. } => method,
            Start::Response { .. } => {
                let sequence = self.header("CSeq").unwrap_or_default();
                sequence.split_whitespace().nth(1).unwrap_or_default()
            }
        }
    }

    /// The status code of a response.
    pub fn code(&self) -> Option<u16> {
        if let Start::Response { code, .. } = self.start { Some(code) } else { None }
    }

    /// A parameter of a header value, such as the branch of a Via.
    pub fn parameter(&self, name: &str, parameter: &str) -> Option<&str> {
        parameter_of(self.header(name)?, parameter)
    }

    /// The message that these bytes are. Bytes behind the body are left out, as in a datagram.
    ///
    /// # Errors
    /// If it is malformed or lacks a mandatory header.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > MOST_BYTES {
            return Err(Error::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| Error::Utf8)?;
        // [RFC3261 §7.5] Empty lines before the first line are left out.
        let text = text.trim_start_matches("\r\n");
        let (head, body) = text.split_once("\r\n\r\n").ok_or(Error::Header)?;
        let mut lines = head.split("\r\n");
        let start = parse_start(lines.next().unwrap_or_default()).ok_or(Error::Start)?;
        let headers = parse_headers(lines).ok_or(Error::Header)?;
        let mut message = Self { start, headers, body: String::new() };
        if MANDATORY.iter().any(|name| message.header(name).is_none()) {
            return Err(Error::Mandatory);
        }
        let length = match message.header("Content-Length") {
            Some(length) => length.trim().parse().map_err(|_| Error::Length)?,
            None => body.len(),
        };
        message.body = body.get(..length).ok_or(Error::Length)?.into();
        Ok(message)
    }
}

fn parse_start(line: &str) -> Option<Start> {
    if let Some(rest) = line.strip_prefix("SIP/2.0 ") {
        let (code, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        let code = code.parse().ok().filter(|code| (100..700).contains(code))?;
        return Some(Start::Response { code, reason: reason.into() });
    }
    let mut words = line.split(' ');
    let (method, uri, version) = (words.next()?, words.next()?, words.next()?);
    let mut letters = method.bytes();
    let is_token = letters.all(|it| it.is_ascii_alphanumeric() || b"-_.!%*+`'~".contains(&it));
    let is_request = is_token && !method.is_empty() && !uri.is_empty() && version == "SIP/2.0";
    (is_request && words.next().is_none())
        .then(|| Start::Request { method: method.into(), uri: uri.into() })
}

fn parse_headers<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Vec<(String, String)>> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in lines {
        // [RFC3261 §7.3.1] A line that begins with white space continues the last one.
        if line.starts_with([' ', '\t']) {
            let (_, value) = headers.last_mut()?;
            value.push(' ');
            value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':')?;
        let name = name.trim_end();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        let long = COMPACT.iter().find(|(short, _)| short.eq_ignore_ascii_case(name));
        let name = long.map_or(name, |(_, long)| long);
        headers.push((name.into(), value.trim().into()));
    }
    Some(headers)
}

/// Splits at commas outside of quotes and angle brackets.
fn split_list(value: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut in_quotes, mut in_brackets) = (false, false);
    for c in value.chars() {
        match c {
            '"' => in_quotes = !in_quotes,
            '<' if !in_quotes => in_brackets = true,
            '>' if !in_quotes => in_brackets = false,
            ',' if !in_quotes && !in_brackets => {
                parts.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part.trim().to_owned());
    parts.retain(|part| !part.is_empty());
    parts
}

/// A parameter behind the URI of a header value.
pub fn parameter_of<'a>(value: &'a str, parameter: &str) -> Option<&'a str> {
    let behind = value.rsplit_once('>').map_or(value, |(_, behind)| behind);
    let pairs = behind.split(';').skip(1).filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case(parameter));
    found.next().map(|(_, value)| value.trim())
}

/// The URI in angle brackets, or the value without parameters.
pub fn uri_of(value: &str) -> &str {
    match value.split_once('<') {
        Some((_, rest)) => rest.split('>').next().unwrap_or_default(),
        None => value.split(';').next().unwrap_or_default().trim(),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.start {
            Start::Request { method, uri } => write!(f, "{method} {uri} SIP/2.0\r\n")?,
            Start::Response { code, reason } => write!(f, "SIP/2.0 {code} {reason}\r\n")?,
        }
        for (name, value) in &self.headers {
            if !name.eq_ignore_ascii_case("Content-Length") {
                write!(f, "{name}: {value}\r\n")?;
            }
        }
        write!(f, "Content-Length: {}\r\n\r\n{}", self.body.len(), self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVITE: &str = "INVITE sip:bob@ims.test SIP/2.0\r\n\
        v: SIP/2.0/UDP 10.46.1.2:5060;branch=z9hG4bK1\r\n\
        f: \"A, B\" <sip:alice@ims.test>;tag=1\r\nt: <sip:bob@ims.test>\r\n\
        i: c1\r\nCSeq: 1 INVITE\r\nRoute: <sip:a;lr>, <sip:b;lr>\r\nRoute: <sip:c;lr>\r\n\
        X: one\r\n two\r\nl: 3\r\n\r\nv=0";

    #[test]
    fn a_message_is_read_and_written() {
        let message = Message::parse(INVITE.as_bytes()).unwrap();
        assert_eq!(message.method(), "INVITE");
        assert_eq!(message.parameter("Via", "branch"), Some("z9hG4bK1"));
        assert_eq!(message.parameter("From", "tag"), Some("1"));
        assert_eq!(message.list("Route"), ["<sip:a;lr>", "<sip:b;lr>", "<sip:c;lr>"]);
        assert_eq!(message.header("x"), Some("one two"));
        assert_eq!(message.body, "v=0");
        let again = Message::parse(message.to_string().as_bytes()).unwrap();
        assert_eq!(again.to_string(), message.to_string());
        assert_eq!(uri_of(message.header("From").unwrap()), "sip:alice@ims.test");
    }

    // [RFC3261 §18.3]
    #[test]
    fn every_truncation_is_rejected() {
        for length in 0..INVITE.len() {
            assert!(Message::parse(&INVITE.as_bytes()[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn malformed_messages_are_rejected_with_the_reason() {
        let error =
            |from: &str, to: &str| Message::parse(INVITE.replace(from, to).as_bytes()).unwrap_err();
        assert_eq!(error("INVITE sip", "INV{TE sip"), Error::Start);
        assert_eq!(error("SIP/2.0\r\nv", "SIP/1.0\r\nv"), Error::Start);
        assert_eq!(error("l: 3", "l: 4"), Error::Length);
        assert_eq!(error("l: 3", "l: -1"), Error::Length);
        assert_eq!(error("X: one", "X one"), Error::Header);
        assert_eq!(error("i: c1\r\n", ""), Error::Mandatory);
        assert_eq!(Message::parse(&[0xff; 9]), Err(Error::Utf8));
        assert_eq!(Message::parse(&[b'a'; MOST_BYTES + 1]), Err(Error::TooLong));
    }
}
