//! RTCP as bytes, made again from what str0m has parsed: the core reads bytes.

use std::time::Instant;

use str0m::rtp::rtcp::{Rtcp, Twcc};
use weir_wire::key_frame::PictureLoss;
use weir_wire::nack::Nack;
use weir_wire::twcc::Builder;

/// Most bytes of a feedback packet.
const MAX_SIZE: usize = 1_200;
const MASK_BITS: u16 = 16;
/// How many transport-wide numbers there are.
const NUMBERS: u64 = 1 << 16;

/// Writes the RTCP of one subscriber.
pub struct Writer {
    builder: Builder,
    /// Any instant: arrival times are compared with each other only.
    origin: Instant,
    /// The last transport-wide number, without wraps.
    last: u64,
}

impl Writer {
    pub fn new(now: Instant) -> Self {
        Self { builder: Builder::new(1, 2), origin: now, last: 0 }
    }

    /// The bytes of a message, or nothing if the core has no use for it. `offset` is the difference
    /// between str0m's transport-wide numbers and the core's.
    pub fn write(&mut self, message: Rtcp, offset: u16) -> Vec<Vec<u8>> {
        match message {
            Rtcp::Twcc(feedback) => self.write_feedback(feedback, offset),
            Rtcp::Nack(nack) => {
                let mut numbers = Vec::new();
                for entry in &nack.reports {
                    numbers.push(entry.pid);
                    for bit in (0..MASK_BITS).filter(|bit| entry.blp >> bit & 1 == 1) {
                        numbers.push(entry.pid.wrapping_add(bit + 1));
                    }
                }
                let Some(nack) = Nack::new(*nack.sender_ssrc, *nack.ssrc, &numbers) else {
                    return Vec::new();
                };
                let mut bytes = vec![0; nack.size()];
                nack.emit(&mut bytes);
                vec![bytes]
            }
            Rtcp::Pli(loss) => vec![picture_loss(*loss.sender_ssrc, *loss.ssrc)],
            Rtcp::Fir(request) => {
                let mut all = Vec::new();
                for entry in &request.reports {
                    all.push(picture_loss(*request.sender_ssrc, *entry.ssrc));
                }
                all
            }
            _ => Vec::new(),
        }
    }

    fn write_feedback(&mut self, feedback: Twcc, offset: u16) -> Vec<Vec<u8>> {
        let mut arrivals = Vec::new();
        for (number, _, arrival) in feedback.into_iter(self.origin, self.last.into()) {
            let Some(arrival) = arrival else { continue };
            self.last = self.last.max(*number);
            let arrival_us = arrival.saturating_duration_since(self.origin).as_micros() as i64;
            // Both numbers are whole only modulo 2^16.
            let number = *number + NUMBERS - u64::from(offset);
            arrivals.push((number as i64, arrival_us));
        }
        let mut packets = Vec::new();
        self.builder.build(&arrivals, MAX_SIZE, |bytes| packets.push(bytes.to_vec()));
        packets
    }
}

fn picture_loss(sender_ssrc: u32, media_ssrc: u32) -> Vec<u8> {
    let mut bytes = vec![0; PictureLoss::SIZE];
    PictureLoss { sender_ssrc, media_ssrc }.emit(&mut bytes);
    bytes
}
