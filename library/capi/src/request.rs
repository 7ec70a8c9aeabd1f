//! What packets carry, and what a receiver asks a sender for.

use std::collections::VecDeque;

use weir::PacketKind;

use crate::border::Outcome;
use crate::growing::{Growing, growing};
use crate::status::weir_status;

/// Requests that the host has not taken.
const MAX_REQUESTS: usize = 1_024;

/// What a packet carries. It decides when the packet leaves, and what is left to the encoder.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_packet_kind {
    /// Pictures, and everything else: in order, at the pacing rate.
    Video = 0,
    /// A packet that is sent again: it leaves before the pictures that wait.
    Repair = 1,
    /// Sound: it leaves at once, before everything else.
    Audio = 2,
}

/// The kind with this number of the header.
pub(crate) fn kind_of(kind: u32) -> Outcome<PacketKind> {
    match kind {
        0 => Ok(PacketKind::Video),
        1 => Ok(PacketKind::Repair),
        2 => Ok(PacketKind::Audio),
        _ => Err(weir_status::InvalidArgument),
    }
}

/// What the receiver asks for.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum weir_request_kind {
    /// It misses the packet `sequence_number` (NACK): queue it again as `WEIR_PACKET_KIND_REPAIR`,
    /// if it is still at hand.
    Retransmit = 1,
    /// It cannot go on without a key frame (PLI or FIR): let the encoder make one.
    KeyFrame = 2,
}

/// A request of the receiver. Set `struct_size` to `sizeof(weir_request)`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_request {
    /// `sizeof(weir_request)`.
    pub struct_size: usize,
    /// A `weir_request_kind`.
    pub kind: u32,
    /// The stream that it is about.
    pub media_ssrc: u32,
    /// The packet that is missing; zero for a key frame.
    pub sequence_number: u16,
    /// Zero.
    pub reserved: [u8; 6],
}

growing!(weir_request, reserved: [u8; 6], Self {
    struct_size: size_of::<Self>(),
    kind: 0,
    media_ssrc: 0,
    sequence_number: 0,
    reserved: [0; 6],
});

impl weir_request {
    pub(crate) fn new(kind: weir_request_kind, media_ssrc: u32, sequence_number: u16) -> Self {
        Self { kind: kind as u32, media_ssrc, sequence_number, ..Self::defaults() }
    }

    /// Waits until the host takes it. The oldest go first.
    pub(crate) fn wait_in(self, requests: &mut VecDeque<Self>) {
        if requests.len() == MAX_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(self);
    }
}
