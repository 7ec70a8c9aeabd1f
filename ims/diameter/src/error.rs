use std::fmt;

use crate::base;

/// Reason why bytes are not a Diameter message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before the length in the header says, or before the header's end.
    Truncated,
    /// Bytes remain after the end that the header gives.
    Surplus,
    /// The version is not 1.
    Version,
    /// The message length is no multiple of four, below the header's size or above
    /// [`MOST_BYTES`](crate::MOST_BYTES).
    MessageLength,
    /// The length of this AVP does not fit the bytes around it or its type.
    AvpLength {
        /// Code of the AVP.
        code: u32,
    },
    /// The data of this AVP is not of the type that the dictionary gives.
    AvpValue {
        /// Code of the AVP.
        code: u32,
    },
    /// Grouped AVPs are nested deeper than [`MOST_NESTED`](crate::MOST_NESTED).
    Depth,
}

impl Error {
    /// The Result-Code of an answer to such a request ([RFC6733 §7.1.5]).
    ///
    /// [RFC6733 §7.1.5]: https://www.rfc-editor.org/rfc/rfc6733#section-7.1.5
    pub fn result_code(self) -> u32 {
        match self {
            Self::Truncated | Self::Surplus | Self::MessageLength => base::INVALID_MESSAGE_LENGTH,
            Self::Version => base::UNSUPPORTED_VERSION,
            Self::AvpLength { .. } => base::INVALID_AVP_LENGTH,
            Self::AvpValue { .. } | Self::Depth => base::INVALID_AVP_VALUE,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("message is truncated"),
            Self::Surplus => f.write_str("bytes follow the end of the message"),
            Self::Version => f.write_str("version is not 1"),
            Self::MessageLength => f.write_str("message length is not possible"),
            Self::AvpLength { code } => write!(f, "length of AVP {code} is not possible"),
            Self::AvpValue { code } => write!(f, "value of AVP {code} is not of its type"),
            Self::Depth => f.write_str("AVPs are nested too deeply"),
        }
    }
}

impl std::error::Error for Error {}
