//! str0m as the transport of a subscriber whose packets the core numbers, paces and repeats.
//!
//! str0m's own estimator is off, so it sends at once what it is given. Three things it would do by
//! itself are the core's here: retransmissions, padding, and the transport-wide number. How, since
//! its interface has no plugs for them, is said where it is done.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

use anyhow::Context;
use str0m::format::{Codec, FormatParams};
use str0m::media::{Frequency, MediaKind};
use str0m::rtp::rtcp::Rtcp;
use str0m::rtp::{
    Extension, ExtensionSerializer, ExtensionValues, RawPacket, RtpWrite, SeqNo, Ssrc,
};
use str0m::{Candidate, Event, Rtc};
use weir_wire::rtp::{ExtensionId, View};

use crate::offer::{self, MID_ID, RTX, SLOTS, TWCC_ID, VP8};
use crate::peer::Peer;

/// SSRC of padding in the core's packets. It leaves as a retransmission of the first slot.
pub const PADDING_SSRC: u32 = 1;
/// str0m finds a stream by m-line and one of these names, which are not sent. A stream without a
/// name would stand for any of its m-line.
const MEDIA_NAME: &str = "media";
const RTX_NAME: &str = "rtx";
const FILLER_ID: u8 = 5;
const FILLER_URI: &str = "urn:weir:filler";
/// Most bytes of a header extension.
const FILLER_BYTES: usize = 255;

/// Fills a packet without payload: a header extension that the browser does not know.
///
/// [`RtpWrite`] cannot set the padding bit, and str0m pads only under its own estimator.
#[derive(Debug)]
struct Filler;

impl ExtensionSerializer for Filler {
    fn write_to(&self, buffer: &mut [u8], values: &ExtensionValues) -> usize {
        if values.user_values.get::<Self>().is_none() || buffer.len() < FILLER_BYTES {
            return 0;
        }
        buffer[..FILLER_BYTES].fill(0);
        FILLER_BYTES
    }

    fn parse_value(&self, _: &[u8], _: &mut ExtensionValues) -> bool {
        false
    }

    fn is_video(&self) -> bool {
        true
    }

    fn is_audio(&self) -> bool {
        false
    }

    fn requires_two_byte_form(&self, values: &ExtensionValues) -> bool {
        values.user_values.get::<Self>().is_some()
    }
}

/// Sequence numbers of a slot's two streams, without wraps.
#[derive(Clone, Copy, Default)]
struct Numbers {
    media: Option<u64>,
    repair: u64,
}

impl Numbers {
    /// The media number nearest to the last one.
    fn unwrap(&mut self, number: u16) -> u64 {
        let next = match self.media {
            None => u64::from(number),
            Some(last) => {
                let step = number.wrapping_sub(last as u16) as i16;
                last.saturating_add_signed(i64::from(step))
            }
        };
        self.media = Some(self.media.map_or(next, |last| last.max(next)));
        next
    }
}

/// The transport.
pub struct Downlink {
    pub peer: Peer,
    numbers: [Numbers; SLOTS as usize],
    /// The core's transport-wide numbers of packets that str0m has not reported as sent.
    leaving: VecDeque<u16>,
    /// By how much str0m's transport-wide numbers are above the core's: packets that str0m has sent
    /// by itself.
    pub offset: u16,
    /// What str0m has received for the core.
    received: Vec<Rtcp>,
}

impl Downlink {
    /// A connection with its offer.
    pub fn offer(now: Instant, local: SocketAddr) -> anyhow::Result<(Self, String)> {
        let mut config = Rtc::builder()
            .set_ice_lite(true)
            .set_rtp_mode(true)
            .enable_raw_packets(true)
            .clear_codecs()
            .clear_extension_map()
            .set_extension(TWCC_ID, Extension::TransportSequenceNumber)
            .set_extension(MID_ID, Extension::RtpMid)
            .set_extension(FILLER_ID, Extension::with_serializer(FILLER_URI, Filler));
        // str0m writes retransmissions from its own cache only. So it is not told that this is one:
        // a codec with a payload type of its own.
        for payload_type in [VP8, RTX] {
            let format = FormatParams::default();
            let clock = Frequency::NINETY_KHZ;
            let codecs = config.codec_config();
            codecs.add_config(payload_type.into(), None, Codec::Vp8, clock, None, format);
        }
        let mut rtc = config.build(now);
        rtc.add_local_candidate(Candidate::host(local, "udp")?).context("candidate")?;
        let mut direct = rtc.direct_api();
        direct.set_ice_controlling(false);
        for slot in 0..SLOTS {
            let (ssrc, rtx) = offer::ssrcs(slot);
            let mid = slot.to_string().as_str().into();
            direct.declare_media(mid, MediaKind::Video);
            direct.declare_stream_tx(ssrc.into(), None, mid, Some(MEDIA_NAME.into()));
            direct.declare_stream_tx(rtx.into(), None, mid, Some(RTX_NAME.into()));
        }
        let ice = direct.local_ice_credentials();
        let sdp = offer::write(local, &ice, direct.local_dtls_fingerprint());
        let numbers = [Numbers::default(); SLOTS as usize];
        let (peer, leaving) = (Peer::new(now, rtc, local), VecDeque::new());
        Ok((Self { peer, numbers, leaving, offset: 0, received: Vec::new() }, sdp))
    }

    /// The subscriber's answer.
    pub fn accept(&mut self, answer: &str) -> anyhow::Result<()> {
        let answer = offer::read_answer(answer)?;
        let mut direct = self.peer.rtc.direct_api();
        direct.set_remote_ice_credentials(answer.ice);
        direct.set_remote_fingerprint(answer.fingerprint);
        direct.start_dtls(answer.is_passive)?;
        Ok(())
    }

    /// Lets str0m work. RTCP that comes meanwhile waits for [`Downlink::take_received`].
    pub fn poll(&mut self, socket: &UdpSocket) {
        for event in self.peer.poll(socket) {
            let Event::RawPacket(packet) = event else { continue };
            match *packet {
                RawPacket::RtcpRx(message) => self.received.push(message),
                RawPacket::RtpTx(header, _) => {
                    if let Some(theirs) = header.ext_vals.transport_cc
                        && let Some(ours) = self.leaving.pop_front()
                    {
                        self.offset = theirs.wrapping_sub(ours);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether RTCP waits.
    pub fn has_received(&self) -> bool {
        !self.received.is_empty()
    }

    /// The RTCP that came since the last call.
    pub fn take_received(&mut self) -> Vec<Rtcp> {
        std::mem::take(&mut self.received)
    }

    /// Sends a packet of the core, with this transport-wide number, at once.
    ///
    /// str0m counts packets itself. It sends one at a time here, so its order is the core's.
    pub fn send(&mut self, now: Instant, socket: &UdpSocket, packet: &[u8], number: u16) {
        let Some((ssrc, write)) = self.write(now, packet) else { return };
        let mut direct = self.peer.rtc.direct_api();
        let Some(stream) = direct.stream_tx(&ssrc) else { return };
        stream.write_rtp(write);
        self.leaving.push_back(number);
        self.peer.on_timeout(now);
        self.poll(socket);
    }

    fn write(&mut self, now: Instant, packet: &[u8]) -> Option<(Ssrc, RtpWrite)> {
        let view = View::parse(packet).ok()?;
        let (time, marker) = (view.timestamp(), view.marker());
        if view.ssrc() == PADDING_SSRC {
            let mut values = ExtensionValues::default();
            values.user_values.set(Filler);
            let number = next(&mut self.numbers[0].repair);
            let write = RtpWrite::new(RTX.into(), number, time, now, Vec::new());
            return Some((offer::ssrcs(0).1.into(), write.ext_vals(values)));
        }
        let slot = (0..SLOTS).find(|&slot| {
            let (ssrc, rtx) = offer::ssrcs(slot);
            view.ssrc() == ssrc || view.ssrc() == rtx
        })?;
        let numbers = &mut self.numbers[slot as usize];
        let is_media = view.ssrc() == offer::ssrcs(slot).0;
        // Padding shares the stream of retransmissions, whose numbers mean nothing.
        let (payload_type, number) = if is_media {
            (VP8, numbers.unwrap(view.sequence_number()).into())
        } else {
            (RTX, next(&mut numbers.repair))
        };
        let payload = view.payload().to_vec();
        let write = RtpWrite::new(payload_type.into(), number, time, now, payload);
        Some((view.ssrc().into(), write.marker(marker)))
    }
}

fn next(number: &mut u64) -> SeqNo {
    *number += 1;
    (*number - 1).into()
}

/// The id of the transport-wide number.
pub fn twcc_id() -> ExtensionId {
    ExtensionId::new(TWCC_ID).expect("1 to 255")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_a_wrap_and_late_ones_stay_behind_it() {
        let mut numbers = Numbers::default();
        let mut found = Vec::new();
        for number in [65_534, 65_535, 1, 0, 65_533, 2] {
            found.push(numbers.unwrap(number));
        }
        assert_eq!(found, [65_534, 65_535, 65_537, 65_536, 65_533, 65_538]);
    }
}
