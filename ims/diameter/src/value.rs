use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::avp::{Definition, Kind, definition};
use crate::error::Error;

/// Maximum depth of grouped AVPs inside grouped AVPs.
pub const MOST_NESTED: usize = 8;

/// Flag V: a vendor follows the length ([RFC6733 §4.1]).
const VENDOR: u8 = 0x80;
/// Flag M: the receiver must know the AVP ([RFC6733 §4.1]).
const MANDATORY: u8 = 0x40;
/// Flag P: reserved for end-to-end security ([RFC6733 §4.1]).
const PROTECTED: u8 = 0x20;
/// Bytes of code, flags and length.
const HEAD: usize = 8;
/// Largest length of an AVP: 24 bits.
const LONGEST: usize = (1 << 24) - 1;

/// An attribute with its value.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------------------------------+-------------------------------+
/// |                             code                              |
/// |V M P r r r r r|                   length                      |
/// |                      vendor, if V is set                      |
/// |   data, padded with zeros to a multiple of four bytes ...     |
/// +-------------------------------+-------------------------------+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Avp {
    /// Code, unique for each vendor.
    pub code: u32,
    /// Vendor, or none for the codes of the IETF.
    pub vendor: Option<u32>,
    /// Whether a receiver that does not know the AVP must refuse the message.
    pub mandatory: bool,
    /// Reserved for end-to-end security.
    pub protected: bool,
    /// The data.
    pub value: Value,
}

/// Data of an AVP, in the type of the dictionary ([RFC6733 §4.2, 4.3]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Bytes. Also the data of each AVP that is not in the dictionary.
    Octets(Vec<u8>),
    /// UTF8String, DiameterIdentity, DiameterURI and IPFilterRule.
    Text(String),
    /// Unsigned32 and Time.
    Unsigned32(u32),
    /// Unsigned64.
    Unsigned64(u64),
    /// Integer32 and Enumerated.
    Integer32(i32),
    /// Address of family 1 or 2.
    Address(IpAddr),
    /// Grouped.
    Group(Vec<Avp>),
}

impl Definition {
    fn of(&self, value: Value) -> Avp {
        Avp {
            code: self.code,
            vendor: self.vendor,
            mandatory: self.mandatory,
            protected: false,
            value,
        }
    }

    /// An AVP with this text.
    ///
    /// # Panics
    /// If the type is neither text nor bytes.
    pub fn text(&self, text: impl Into<String>) -> Avp {
        match self.kind {
            Kind::Text => self.of(Value::Text(text.into())),
            Kind::Octets => self.of(Value::Octets(text.into().into_bytes())),
            kind => panic!("{} is {kind:?}, not text", self.name),
        }
    }

    /// An AVP with these bytes.
    ///
    /// # Panics
    /// If the type is another one.
    pub fn octets(&self, bytes: &[u8]) -> Avp {
        assert_eq!(self.kind, Kind::Octets, "{}", self.name);
        self.of(Value::Octets(bytes.into()))
    }

    /// An AVP with this number.
    ///
    /// # Panics
    /// If the type has not 32 bits, or cannot hold the number.
    pub fn number(&self, number: u32) -> Avp {
        match self.kind {
            Kind::Unsigned32 => self.of(Value::Unsigned32(number)),
            Kind::Integer32 => {
                self.of(Value::Integer32(i32::try_from(number).expect("an enumeration is small")))
            }
            kind => panic!("{} is {kind:?}, not a number of 32 bits", self.name),
        }
    }

    /// An AVP with this address.
    ///
    /// # Panics
    /// If the type is another one.
    pub fn address(&self, address: IpAddr) -> Avp {
        assert_eq!(self.kind, Kind::Address, "{}", self.name);
        self.of(Value::Address(address))
    }

    /// An AVP with these AVPs.
    ///
    /// # Panics
    /// If the type is another one.
    pub fn group(&self, avps: impl IntoIterator<Item = Avp>) -> Avp {
        assert_eq!(self.kind, Kind::Group, "{}", self.name);
        self.of(Value::Group(avps.into_iter().collect()))
    }
}

impl Avp {
    /// Whether it has the code and the vendor of this definition.
    pub fn is(&self, definition: &Definition) -> bool {
        self.code == definition.code && self.vendor == definition.vendor
    }

    /// Its entry in the dictionary.
    pub fn definition(&self) -> Option<&'static Definition> {
        definition(self.code, self.vendor)
    }

    /// Its text, or none if the value has another type.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Octets(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Its bytes, or none if the value has another type.
    pub fn octets(&self) -> Option<&[u8]> {
        if let Value::Octets(bytes) = &self.value { Some(bytes) } else { None }
    }

    /// Its number, or none if the value is not of 32 bits or negative.
    pub fn number(&self) -> Option<u32> {
        match self.value {
            Value::Unsigned32(number) => Some(number),
            Value::Integer32(number) => u32::try_from(number).ok(),
            _ => None,
        }
    }

    /// The AVPs in it; none if it is not grouped.
    pub fn group(&self) -> &[Avp] {
        if let Value::Group(avps) = &self.value { avps } else { &[] }
    }

    /// The first AVP of this definition in this group.
    pub fn find(&self, definition: &Definition) -> Option<&Avp> {
        self.group().iter().find(|avp| avp.is(definition))
    }

    /// Bytes in a message, with the padding.
    pub(crate) fn size(&self) -> usize {
        let header = if self.vendor.is_some() { 12 } else { 8 };
        let data = match &self.value {
            Value::Octets(data) => data.len(),
            Value::Text(text) => text.len(),
            Value::Unsigned32(_) | Value::Integer32(_) => 4,
            Value::Unsigned64(_) => 8,
            Value::Address(IpAddr::V4(_)) => 6,
            Value::Address(IpAddr::V6(_)) => 18,
            Value::Group(avps) => avps.iter().map(Self::size).sum(),
        };
        (header + data).next_multiple_of(4)
    }

    pub(crate) fn emit(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend(self.code.to_be_bytes());
        let flags = flag(self.vendor.is_some(), VENDOR)
            | flag(self.mandatory, MANDATORY)
            | flag(self.protected, PROTECTED);
        bytes.extend([flags, 0, 0, 0]);
        bytes.extend(self.vendor.into_iter().flat_map(u32::to_be_bytes));
        self.value.emit(bytes);
        let length = bytes.len() - start;
        assert!(length <= LONGEST, "an AVP has at most {LONGEST} bytes");
        let length = u32::try_from(length).expect("24 bits fit 32 bits").to_be_bytes();
        bytes[start + 5..start + 8].copy_from_slice(&length[1..]);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
}

impl Value {
    fn emit(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Octets(data) => bytes.extend(data),
            Self::Text(text) => bytes.extend(text.as_bytes()),
            Self::Unsigned32(number) => bytes.extend(number.to_be_bytes()),
            Self::Unsigned64(number) => bytes.extend(number.to_be_bytes()),
            Self::Integer32(number) => bytes.extend(number.to_be_bytes()),
            // [RFC6733 §4.3.1] Address families 1 (IPv4) and 2 (IPv6).
            Self::Address(IpAddr::V4(address)) => {
                bytes.extend([0, 1]);
                bytes.extend(address.octets());
            }
            Self::Address(IpAddr::V6(address)) => {
                bytes.extend([0, 2]);
                bytes.extend(address.octets());
            }
            // Nested AVPs keep the padding of a message: a group starts at a multiple of four.
            Self::Group(avps) => avps.iter().for_each(|avp| avp.emit(bytes)),
        }
    }

    fn parse(kind: Kind, code: u32, data: &[u8], depth: usize) -> Result<Self, Error> {
        let length = Error::AvpLength { code };
        Ok(match kind {
            Kind::Octets => Self::Octets(data.into()),
            Kind::Text => {
                let text = std::str::from_utf8(data).map_err(|_| Error::AvpValue { code })?;
                Self::Text(text.into())
            }
            Kind::Unsigned32 => {
                Self::Unsigned32(u32::from_be_bytes(data.try_into().map_err(|_| length)?))
            }
            Kind::Unsigned64 => {
                Self::Unsigned64(u64::from_be_bytes(data.try_into().map_err(|_| length)?))
            }
            Kind::Integer32 => {
                Self::Integer32(i32::from_be_bytes(data.try_into().map_err(|_| length)?))
            }
            Kind::Address => Self::Address(parse_address(data).ok_or(Error::AvpValue { code })?),
            Kind::Group => Self::Group(parse_all(data, depth + 1)?),
        })
    }
}

fn parse_address(data: &[u8]) -> Option<IpAddr> {
    match data {
        [0, 1, address @ ..] => Some(Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?).into()),
        [0, 2, address @ ..] => Some(Ipv6Addr::from(<[u8; 16]>::try_from(address).ok()?).into()),
        _ => None,
    }
}

/// The bit of a flag if it is set, and no bit otherwise.
pub(crate) fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

/// The 32 bits at an offset; `None` if the bytes end before.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

/// Reads AVPs until the end of the bytes.
pub(crate) fn parse_all(mut bytes: &[u8], depth: usize) -> Result<Vec<Avp>, Error> {
    if depth > MOST_NESTED {
        return Err(Error::Depth);
    }
    let mut avps = Vec::new();
    while !bytes.is_empty() {
        let (avp, rest) = parse_one(bytes, depth)?;
        avps.push(avp);
        bytes = rest;
    }
    Ok(avps)
}

/// Reads one AVP, and returns what follows its padding.
fn parse_one(bytes: &[u8], depth: usize) -> Result<(Avp, &[u8]), Error> {
    let code = word(bytes, 0).ok_or(Error::AvpLength { code: 0 })?;
    let invalid = Error::AvpLength { code };
    let second = word(bytes, 4).ok_or(invalid)?;
    let flags = second.to_be_bytes()[0];
    let length = usize::try_from(second & 0x00ff_ffff).map_err(|_| invalid)?;
    let has_vendor = flags & VENDOR != 0;
    let head = if has_vendor { HEAD + 4 } else { HEAD };
    let data = bytes.get(head..length).ok_or(invalid)?;
    let vendor = if has_vendor { Some(word(bytes, HEAD).ok_or(invalid)?) } else { None };
    // A vendor of 0 stands for the codes of the IETF, and is kept so that the bytes stay the same.
    let kind = definition(code, vendor).map_or(Kind::Octets, |definition| definition.kind);
    let avp = Avp {
        code,
        vendor,
        mandatory: flags & MANDATORY != 0,
        protected: flags & PROTECTED != 0,
        value: Value::parse(kind, code, data, depth)?,
    };
    // [RFC6733 §4.1] The length leaves out the padding. The last AVP must be padded too.
    let rest = bytes.get(length.next_multiple_of(4)..).ok_or(invalid)?;
    Ok((avp, rest))
}

impl fmt::Display for Avp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.definition() {
            Some(definition) => write!(f, "{}=", definition.name)?,
            None => write!(f, "{}/{}=", self.vendor.unwrap_or(0), self.code)?,
        }
        match &self.value {
            Value::Text(text) => write!(f, "{}", text.escape_debug()),
            Value::Unsigned32(number) => write!(f, "{number}"),
            Value::Unsigned64(number) => write!(f, "{number}"),
            Value::Integer32(number) => write!(f, "{number}"),
            Value::Address(address) => write!(f, "{address}"),
            Value::Octets(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains(char::is_control) => f.write_str(text),
                _ => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            },
            Value::Group(avps) => {
                f.write_str("{")?;
                for (number, avp) in avps.iter().enumerate() {
                    write!(f, "{}{avp}", if number == 0 { "" } else { " " })?;
                }
                f.write_str("}")
            }
        }
    }
}
