use core::fmt;

/// Why bytes are not the packet they were read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before what they announce.
    Truncated,
    /// There is more than the packet announces.
    Surplus,
    /// The version is not 2.
    Version,
    /// The packet is well-formed, but of another type.
    PacketType,
    /// The padding count is zero, or larger than what could be padding.
    Padding,
    /// A TWCC packet without a packet status.
    NoStatus,
    /// A TWCC packet with the reserved packet status symbol.
    ReservedSymbol,
    /// A REMB packet whose bitrate needs more than 64 bits.
    Overflow,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "packet is truncated",
            Self::Surplus => "bytes follow the end of the packet",
            Self::Version => "version is not 2",
            Self::PacketType => "packet is of another type",
            Self::Padding => "padding count does not fit the packet",
            Self::NoStatus => "feedback has no packet status",
            Self::ReservedSymbol => "feedback uses the reserved packet status symbol",
            Self::Overflow => "bitrate does not fit 64 bits",
        })
    }
}

impl core::error::Error for Error {}
