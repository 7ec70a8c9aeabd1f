//! Fields of RTP packets and their IP headers.

use weir::feedback::Ecn;
use weir_wire::rtp::{ExtensionId, ExtensionIds};

use crate::border::{Outcome, packet};
use crate::status::weir_status;

/// Whether a datagram on a port that carries both RTP and RTCP is RTCP: 1 if it is, 0 if it is RTP,
/// anything else or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_is_rtcp(data: *const u8, length: usize) -> i32 {
    // SAFETY: as this function requires.
    unsafe { packet(&data, length) }.is_ok_and(weir_rtcp::is_rtcp).into()
}

/// The two ECN bits of the IP header.
pub(crate) fn ecn(bits: u8) -> Outcome<Ecn> {
    match bits {
        0 => Ok(Ecn::NotEct),
        1 => Ok(Ecn::Ect1),
        2 => Ok(Ecn::Ect0),
        3 => Ok(Ecn::Ce),
        _ => Err(weir_status::InvalidArgument),
    }
}

/// The ids of the header extensions. Zero means that there is none; they must differ.
pub(crate) fn extensions(sequence_number: u8, send_time: u8) -> Outcome<ExtensionIds> {
    if sequence_number != 0 && sequence_number == send_time {
        return Err(weir_status::InvalidArgument);
    }
    Ok(ExtensionIds::NONE
        .with_transport_sequence_number(ExtensionId::new(sequence_number))
        .with_abs_send_time(ExtensionId::new(send_time)))
}
