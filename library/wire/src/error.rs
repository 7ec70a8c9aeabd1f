use core::fmt;

/// Reason why bytes could not be parsed as the requested packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before the length or counts in the packet say.
    Truncated,
    /// Bytes remain after the end that the packet gives.
    Surplus,
    /// The version is not 2.
    Version,
    /// The packet is well-formed, but of another type.
    PacketType,
    /// The padding count is zero or exceeds the bytes available for padding.
    Padding,
    /// A TWCC packet without a packet status, or a FlexFEC header that protects no packet.
    NoStatus,
    /// A TWCC packet with the reserved packet status symbol.
    ReservedSymbol,
    /// A REMB packet whose bitrate needs more than 64 bits.
    Overflow,
    /// A CCFB block with more reports than half the sequence-number space.
    TooManyReports,
    /// A FlexFEC header of a variant that is not supported: only the one with flexible masks is.
    Variant,
    /// A dependency descriptor whose template no structure has, or a structure with too many.
    UnknownTemplate,
    /// A frame of a dependency descriptor that depends on more frames than can be kept.
    TooManyReferences,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "packet is truncated",
            Self::Surplus => "bytes follow the end of the packet",
            Self::Version => "version is not 2",
            Self::PacketType => "packet is of another type",
            Self::Padding => "padding count does not fit the packet",
            Self::NoStatus => "packet says nothing of any packet",
            Self::ReservedSymbol => "feedback uses the reserved packet status symbol",
            Self::Overflow => "bitrate does not fit 64 bits",
            Self::TooManyReports => "feedback reports more packets than it may",
            Self::Variant => "FEC header is of a variant without masks",
            Self::UnknownTemplate => "no structure has the template of the frame",
            Self::TooManyReferences => "frame depends on too many frames",
        })
    }
}

impl core::error::Error for Error {}
