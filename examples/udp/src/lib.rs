//! What the sender and the receiver have agreed on, and made-up video. Programs that speak WebRTC
//! agree on the former in their SDP, and take the latter from an encoder.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::UdpSocket;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use weir::{Bitrate, TimeDelta, Timestamp};
use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader};

/// The sender's RTP stream.
pub const SENDER: u32 = 1;
/// The receiver, in its RTCP.
pub const RECEIVER: u32 = 2;
/// The header extension that TWCC needs.
pub const EXTENSIONS: ExtensionIds =
    ExtensionIds::NONE.with_transport_sequence_number(ExtensionId::new(1));
/// Room for any datagram that crosses an Ethernet.
pub const DATAGRAM: usize = 1500;

/// 25 pictures a second.
pub const FRAME_INTERVAL: TimeDelta = TimeDelta::from_millis(40);
/// IP and UDP headers count against the bitrate too.
const OVERHEAD: usize = 20 + 8;
const PACKET_MAX: usize = 1200 + OVERHEAD;

/// Random numbers from 0 to 1, which spread the reports over time. The standard library has no
/// generator, but it seeds its hash maps.
pub fn random() -> Box<dyn FnMut() -> f64 + Send> {
    let state = RandomState::new();
    let mut count = 0_u64;
    Box::new(move || {
        count += 1;
        state.hash_one(count) as f64 / u64::MAX as f64
    })
}

/// Waits until a datagram arrives, at most for this time.
///
/// Packets leave every millisecond or more often, so the wait has to end on time. `poll` with a
/// `Timespec` does to well below a millisecond. The read timeout of a socket does not: it ends at a
/// tick of the kernel, up to 10 ms later.
pub fn wait_for_datagram(socket: &UdpSocket, time: TimeDelta) -> io::Result<()> {
    let nanos = time.as_nanos().max(0);
    let time = Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 };
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The RTP packets of a frame, as large as the bitrate asks for. `number` counts the packets of all
/// frames.
pub fn frame(now: Timestamp, bitrate: Bitrate, number: &mut u16) -> Vec<Vec<u8>> {
    let mut left = (bitrate * FRAME_INTERVAL).as_bytes() as usize;
    let mut packets = Vec::new();
    while left > 0 {
        let size = left.min(PACKET_MAX);
        left -= size;
        let payload_type = PayloadType::new(96).expect("below 128");
        // The sender fills in the number when the packet leaves.
        let header = RtpHeader::new(SENDER, payload_type, *number, (now.as_millis() * 90) as u32)
            .with_marker(left == 0)
            .with_transport_sequence_number(EXTENSIONS.transport_sequence_number.map(|id| (id, 0)));
        *number = number.wrapping_add(1);
        let mut packet = vec![0; size.saturating_sub(OVERHEAD).max(header.size())];
        header.emit(&mut packet);
        packets.push(packet);
    }
    packets
}
