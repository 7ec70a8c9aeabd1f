//! The results of the functions.

use core::ffi::{CStr, c_char};

/// Result of a function. Zero is success; errors are negative. After an error nothing has changed,
/// except where the function says otherwise.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_status {
    /// Success.
    Ok = 0,
    /// Success, but there is nothing to return: no packet may leave now, no RTCP is left, the
    /// target has not changed.
    None = 1,
    /// A required pointer is NULL.
    NullPointer = -1,
    /// A number is outside its range, a pointer is not aligned, or a reserved byte is not zero.
    InvalidArgument = -2,
    /// `struct_size` is wrong. Set it to the `sizeof` of the struct, or call the struct's init
    /// function. If the program was built with a newer header, it uses a member that this library
    /// does not have.
    StructSize = -3,
    /// No controller has this name.
    UnknownAlgorithm = -4,
    /// The bitrates violate 0 < min <= start <= max.
    Limits = -5,
    /// The bytes are not an RTP packet.
    NotRtp = -6,
    /// The bytes are not RTCP, at least from some point on. The packets before it were used.
    NotRtcp = -7,
    /// The RTP packet has no room for a header extension that the sender fills in.
    NoExtension = -8,
    /// A defect of the library; a message is on stderr. The handle can only be freed. Each other
    /// call with it returns this status.
    Internal = -9,
    /// The RTP packet has the SSRC or the payload type of padding packets: choose others for them
    /// in the configuration.
    PaddingClash = -10,
}

impl weir_status {
    const ALL: [Self; 12] = [
        Self::Ok,
        Self::None,
        Self::NullPointer,
        Self::InvalidArgument,
        Self::StructSize,
        Self::UnknownAlgorithm,
        Self::Limits,
        Self::NotRtp,
        Self::NotRtcp,
        Self::NoExtension,
        Self::Internal,
        Self::PaddingClash,
    ];

    const fn text(self) -> &'static CStr {
        match self {
            Self::Ok => c"success",
            Self::None => c"nothing to return",
            Self::NullPointer => c"a required pointer is NULL",
            Self::InvalidArgument => {
                c"a number is outside its range, or a reserved byte is not zero"
            }
            Self::StructSize => {
                c"struct_size is wrong: set it to sizeof, or call the init function"
            }
            Self::UnknownAlgorithm => {
                c"no controller has this name: weir_algorithm_name lists the names"
            }
            Self::Limits => c"the bitrates must satisfy 0 < min <= start <= max",
            Self::NotRtp => c"the bytes are not an RTP packet",
            Self::NotRtcp => c"the bytes are not RTCP from some point on",
            Self::NoExtension => {
                c"the packet lacks a header extension of the configuration: write it with zeros"
            }
            Self::Internal => c"a defect of the library: free the handle and report the message",
            Self::PaddingClash => {
                c"the packet has the SSRC or payload type of padding: choose others for padding"
            }
        }
    }
}

/// A result as text: a line of English without a full stop. The text lives for ever. Any number is
/// allowed.
#[unsafe(no_mangle)]
pub extern "C" fn weir_status_text(status: i32) -> *const c_char {
    let known = weir_status::ALL.into_iter().find(|&known| known as i32 == status);
    known.map_or(c"unknown status", weir_status::text).as_ptr()
}
