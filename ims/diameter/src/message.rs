use std::fmt;

use crate::avp::{self, Definition};
use crate::base;
use crate::error::Error;
use crate::value::{Avp, flag, parse_all};

/// Bytes of the header.
pub const HEADER_SIZE: usize = 20;
/// Longest message that is read or written, in bytes. The protocol allows 16 MiB; a peer must not
/// make us keep that much.
pub const MOST_BYTES: usize = 1 << 16;

/// The version ([RFC6733 §3]).
const VERSION: u8 = 1;
/// Flag R: a request.
const REQUEST: u8 = 0x80;
/// Flag P: may be passed on by an agent.
const PROXIABLE: u8 = 0x40;
/// Flag E: an answer with a protocol error.
const ERROR: u8 = 0x20;
/// Flag T: possibly sent before.
const RETRANSMITTED: u8 = 0x10;

/// A request or an answer.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +---------------+-----------------------------------------------+
/// |    version    |                length, in bytes               |
/// |R P E T r r r r|                    command                    |
/// |                          application                          |
/// |                          hop by hop                           |
/// |                          end to end                           |
/// |  AVPs ...                                                     |
/// +---------------+-----------------------------------------------+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whether it is a request.
    pub is_request: bool,
    /// Whether agents may pass it on.
    pub is_proxiable: bool,
    /// Whether it is an answer with a protocol error.
    pub is_error: bool,
    /// Whether it may have been sent before.
    pub is_retransmitted: bool,
    /// The command, 24 bits.
    pub command: u32,
    /// The application.
    pub application: u32,
    /// Joins an answer with its request on one connection.
    pub hop_by_hop: u32,
    /// Joins an answer with its request between the ends.
    pub end_to_end: u32,
    /// The AVPs in their order.
    pub avps: Vec<Avp>,
}

impl Message {
    /// A request without AVPs. The sender sets the identifiers.
    pub fn request(command: u32, application: u32) -> Self {
        Self {
            is_request: true,
            is_proxiable: application != base::COMMON,
            is_error: false,
            is_retransmitted: false,
            command,
            application,
            hop_by_hop: 0,
            end_to_end: 0,
            avps: Vec::new(),
        }
    }

    /// The answer to this request, with its session and its proxies ([RFC6733 §6.2]).
    #[must_use]
    pub fn answer(&self) -> Self {
        let mut avps = Vec::new();
        for avp in &self.avps {
            if avp.is(&avp::SESSION_ID) || avp.is(&avp::PROXY_INFO) {
                avps.push(avp.clone());
            }
        }
        Self { is_request: false, is_error: false, is_retransmitted: false, avps, ..*self }
    }

    /// The same with one more AVP.
    #[must_use]
    pub fn with(mut self, avp: Avp) -> Self {
        self.avps.push(avp);
        self
    }

    /// The first AVP of this definition.
    pub fn find(&self, definition: &Definition) -> Option<&Avp> {
        self.avps.iter().find(|avp| avp.is(definition))
    }

    /// All AVPs of this definition.
    pub fn all<'a>(&'a self, definition: &'a Definition) -> impl Iterator<Item = &'a Avp> {
        self.avps.iter().filter(|avp| avp.is(definition))
    }

    /// The text of the first AVP of this definition.
    pub fn text(&self, definition: &Definition) -> Option<&str> {
        self.find(definition)?.text()
    }

    /// The number of the first AVP of this definition.
    pub fn number(&self, definition: &Definition) -> Option<u32> {
        self.find(definition)?.number()
    }

    /// The Result-Code, or the code in the Experimental-Result.
    pub fn result(&self) -> Option<u32> {
        if let Some(code) = self.number(&avp::RESULT_CODE) {
            return Some(code);
        }
        let group = self.find(&avp::EXPERIMENTAL_RESULT)?;
        group.find(&avp::EXPERIMENTAL_RESULT_CODE)?.number()
    }

    /// The message that these bytes are, from first to last.
    ///
    /// # Errors
    /// If the header, the length of an AVP or the value of a known AVP is not possible.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let length = frame(bytes)?.filter(|length| *length <= bytes.len());
        let length = length.ok_or(Error::Truncated)?;
        if bytes.len() > length {
            return Err(Error::Surplus);
        }
        let mut message = Self::parse_header(bytes);
        message.avps = parse_all(&bytes[HEADER_SIZE..], 0)?;
        Ok(message)
    }

    /// The header alone, to answer a request whose AVPs cannot be read.
    ///
    /// # Panics
    /// If there are fewer than [`HEADER_SIZE`] bytes.
    pub fn parse_header(bytes: &[u8]) -> Self {
        let header: &[u8; HEADER_SIZE] = bytes.first_chunk().expect("the bytes of a header");
        let (words, _) = header.as_chunks::<4>();
        let flags = header[4];
        Self {
            is_request: flags & REQUEST != 0,
            is_proxiable: flags & PROXIABLE != 0,
            is_error: flags & ERROR != 0,
            is_retransmitted: flags & RETRANSMITTED != 0,
            command: u32::from_be_bytes(words[1]) & 0x00ff_ffff,
            application: u32::from_be_bytes(words[2]),
            hop_by_hop: u32::from_be_bytes(words[3]),
            end_to_end: u32::from_be_bytes(words[4]),
            avps: Vec::new(),
        }
    }

    /// Whether it has at most [`MOST_BYTES`], so that [`to_bytes`](Self::to_bytes) can write it.
    pub fn fits(&self) -> bool {
        let size: usize = self.avps.iter().map(Avp::size).sum();
        HEADER_SIZE + size <= MOST_BYTES
    }

    /// The bytes of the message.
    ///
    /// # Panics
    /// If it is longer than [`MOST_BYTES`] (see [`fits`](Self::fits)), or the command does not fit
    /// 24 bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        assert!(self.command < 1 << 24, "a command has 24 bits");
        let flags = flag(self.is_request, REQUEST)
            | flag(self.is_proxiable, PROXIABLE)
            | flag(self.is_error, ERROR)
            | flag(self.is_retransmitted, RETRANSMITTED);
        let mut bytes = vec![0; 4];
        bytes.extend((u32::from(flags) << 24 | self.command).to_be_bytes());
        bytes.extend(self.application.to_be_bytes());
        bytes.extend(self.hop_by_hop.to_be_bytes());
        bytes.extend(self.end_to_end.to_be_bytes());
        for avp in &self.avps {
            avp.emit(&mut bytes);
        }
        assert!(bytes.len() <= MOST_BYTES, "a message has at most {MOST_BYTES} bytes");
        let length = u32::try_from(bytes.len()).expect("24 bits fit 32 bits");
        bytes[..4].copy_from_slice(&(u32::from(VERSION) << 24 | length).to_be_bytes());
        bytes
    }

    /// Its name, such as `AAR`, or the number of its command.
    pub fn name(&self) -> String {
        let name = base::command_name(self.command, self.is_request);
        name.map_or_else(|| format!("command {}", self.command), Into::into)
    }
}

/// The length of the first message in a stream, in bytes. `None` if more bytes must come before
/// that is known.
///
/// # Errors
/// If no message can begin like this: the stream cannot be read further.
pub fn frame(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(first) = bytes.first() else { return Ok(None) };
    if *first != VERSION {
        return Err(Error::Version);
    }
    let Some(length) = bytes.get(1..4) else { return Ok(None) };
    let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    // [RFC6733 §3] The length counts the header and padded AVPs.
    if !length.is_multiple_of(4) || !(HEADER_SIZE..=MOST_BYTES).contains(&length) {
        return Err(Error::MessageLength);
    }
    Ok(Some(length))
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        self.avps.iter().try_for_each(|avp| write!(f, " {avp}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{MOST_NESTED, Value};

    /// A watchdog request: hop by hop 0x01020304, end to end 0x05060708, Origin-Host "a.b" and
    /// Origin-State-Id 7.
    const WATCHDOG: [u8; 44] = [
        1, 0, 0, 44, 0x80, 0, 1, 24, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, //
        0, 0, 1, 8, 0x40, 0, 0, 11, b'a', b'.', b'b', 0, //
        0, 0, 1, 22, 0x40, 0, 0, 12, 0, 0, 0, 7,
    ];

    fn watchdog() -> Message {
        let message = Message::request(base::DEVICE_WATCHDOG, base::COMMON)
            .with(avp::ORIGIN_HOST.text("a.b"))
            .with(avp::ORIGIN_STATE_ID.number(7));
        Message { hop_by_hop: 0x0102_0304, end_to_end: 0x0506_0708, ..message }
    }

    // [RFC6733 §3, 4.1]
    #[test]
    fn literal_bytes_are_read_and_written() {
        assert_eq!(Message::parse(&WATCHDOG), Ok(watchdog()));
        assert_eq!(watchdog().to_bytes(), WATCHDOG);
        assert_eq!(watchdog().to_string(), "DWR Origin-Host=a.b Origin-State-Id=7");
    }

    #[test]
    fn every_truncation_is_rejected() {
        for length in 0..WATCHDOG.len() {
            assert_eq!(Message::parse(&WATCHDOG[..length]), Err(Error::Truncated), "{length}");
        }
        // The same with a length that agrees with the cut.
        for length in (HEADER_SIZE + 4..WATCHDOG.len()).step_by(4).filter(|length| *length != 32) {
            let mut bytes = WATCHDOG[..length].to_vec();
            bytes[3] = u8::try_from(length).unwrap();
            let error = Message::parse(&bytes).unwrap_err();
            assert!(matches!(error, Error::AvpLength { .. }), "{length}: {error}");
        }
    }

    #[test]
    fn bytes_after_the_end_are_rejected() {
        let mut bytes = WATCHDOG.to_vec();
        bytes.push(0);
        assert_eq!(Message::parse(&bytes), Err(Error::Surplus));
    }

    #[test]
    fn a_stream_that_cannot_be_a_message_is_rejected_at_its_first_bytes() {
        assert_eq!(frame(b""), Ok(None));
        assert_eq!(frame(b"GET "), Err(Error::Version));
        assert_eq!(frame(&[1, 0, 0]), Ok(None));
        assert_eq!(frame(&[1, 0, 0, 44]), Ok(Some(44)));
        assert_eq!(frame(&[1, 0, 0, 45]), Err(Error::MessageLength));
        assert_eq!(frame(&[1, 0, 0, 16]), Err(Error::MessageLength));
        assert_eq!(frame(&[1, 1, 0, 4]), Err(Error::MessageLength));
    }

    // [RFC6733 §7.1.5]
    #[test]
    fn a_value_of_another_type_is_an_error_with_its_result_code() {
        let mut bytes = WATCHDOG;
        bytes[28] = 0xff;
        assert_eq!(Message::parse(&bytes), Err(Error::AvpValue { code: 264 }));
        assert_eq!(Error::AvpValue { code: 264 }.result_code(), 5004);
        let mut bytes = WATCHDOG;
        bytes[39] = 11;
        assert_eq!(Message::parse(&bytes), Err(Error::AvpLength { code: 278 }));
        assert_eq!(Error::AvpLength { code: 278 }.result_code(), 5014);
        // Shorter than the head of an AVP.
        bytes[39] = 7;
        assert_eq!(Message::parse(&bytes), Err(Error::AvpLength { code: 278 }));
    }

    #[test]
    fn an_unknown_avp_keeps_its_bytes() {
        let avp = Avp {
            code: 99_999,
            vendor: Some(4_242),
            mandatory: false,
            protected: true,
            value: Value::Octets(vec![1, 2, 3, 4, 5]),
        };
        let message = watchdog().with(avp);
        assert_eq!(Message::parse(&message.to_bytes()), Ok(message));
    }

    #[test]
    fn what_fits_is_exactly_what_can_be_written() {
        let of = |bytes: usize| {
            watchdog().with(avp::FAILED_AVP.group([avp::PROXY_STATE.octets(&vec![0; bytes])]))
        };
        let room = MOST_BYTES - watchdog().to_bytes().len() - 16;
        assert!(of(room).fits());
        assert_eq!(of(room).to_bytes().len(), MOST_BYTES);
        assert!(!of(room + 1).fits());
        assert!(!of(1 << 24).fits());
    }

    #[test]
    fn groups_are_read_up_to_the_greatest_depth() {
        let nested = |depth: usize| {
            let innermost = avp::PROXY_STATE.octets(b"x");
            let avp = (0..depth).fold(innermost, |avp, _| avp::FAILED_AVP.group([avp]));
            watchdog().with(avp)
        };
        let deepest = nested(MOST_NESTED);
        assert_eq!(Message::parse(&deepest.to_bytes()), Ok(deepest));
        let too_deep = nested(MOST_NESTED + 1);
        assert_eq!(Message::parse(&too_deep.to_bytes()), Err(Error::Depth));
    }

    // [RFC6733 §6.2]
    #[test]
    fn an_answer_keeps_identifiers_session_and_proxies() {
        let request = watchdog()
            .with(avp::SESSION_ID.text("s;1"))
            .with(avp::PROXY_INFO.group([avp::PROXY_HOST.text("p")]));
        let answer = request.answer();
        assert!(!answer.is_request);
        assert_eq!((answer.hop_by_hop, answer.end_to_end), (0x0102_0304, 0x0506_0708));
        assert_eq!(answer.to_string(), "DWA Session-Id=s;1 Proxy-Info={Proxy-Host=p}");
    }
}
