#![doc = include_str!("../README.md")]

mod feedback;
mod filler;
mod numbers;

use std::sync::Arc;
use std::time::Instant;

use str0m::media::{Mid, Pt};
use str0m::rtp::rtcp::Rtcp;
use str0m::rtp::{ExtensionValues, RawPacket, RtpHeader, RtpWrite, SeqNo, Ssrc};
use str0m::{Event, Input, Rtc, RtcError};
use weir::controller::Controller;
use weir::feedback::SentPacket;
use weir::media_sender::{MediaSender, TargetChange};
use weir::units::{Bitrate, DataSize, TimeDelta};
use weir::{RateLimits, Timestamp};

use filler::Filler;
pub use filler::{configure, with_filler};
use numbers::Numbers;

/// IPv4, UDP, and the authentication tag of SRTP.
const OVERHEAD_BYTES: usize = 20 + 8 + 10;
/// RTP's header with the extensions that str0m writes: time, transport-wide number, name.
const HEADER_BYTES: usize = 12 + 4 + 12;

/// A packet of media.
#[derive(Clone, Debug)]
pub struct Packet {
    /// What follows RTP's header.
    pub payload: Arc<[u8]>,
    /// The payload type of its codec, one that the other peer has agreed to.
    pub payload_type: Pt,
    /// RTP's timestamp.
    pub timestamp: u32,
    /// When the picture was taken. Sender reports tell the receiver which time a timestamp means,
    /// by which it plays sound and picture together.
    pub captured: Instant,
    /// Whether it is the last one of its picture.
    pub marker: bool,
}

/// What was agreed for an m-line.
struct Line {
    /// The first that the peer prefers.
    payload_type: Pt,
    /// Whether padding can be filled.
    has_filler: bool,
}

/// What padding has of the media before it.
#[derive(Clone, Copy)]
struct Place {
    payload_type: Pt,
    timestamp: u32,
    captured: Instant,
}

/// The sender of one stream, without layers: an m-line with names of layers (`rid`) does not send.
pub struct Congestion {
    origin: Instant,
    mid: Mid,
    /// Whether the connection is up.
    is_started: bool,
    /// Whether packets could leave when the host asked last.
    can_send: bool,
    /// SSRC of the media, once a packet has left.
    ssrc: Option<Ssrc>,
    media: MediaSender<Packet>,
    numbers: Numbers,
    /// The packet that str0m has not reported as sent, with its number.
    leaving: Option<(u16, SentPacket)>,
    /// RTP's number of the next packet, without wraps.
    next_number: u64,
    /// Of the last packet of media.
    last: Option<Place>,
}

impl Congestion {
    /// Controls the stream of this m-line, whose time starts at `now`.
    pub fn new(now: Instant, mid: Mid, controller: Box<dyn Controller + Send>) -> Self {
        Self {
            origin: now,
            mid,
            is_started: false,
            can_send: false,
            ssrc: None,
            media: MediaSender::new(controller),
            numbers: Numbers::default(),
            leaving: None,
            next_number: 0,
            last: None,
        }
    }

    /// The connection is up ([`Event::Connected`]): packets may leave from now on.
    pub fn start(&mut self) {
        self.is_started = true;
    }

    /// Queues the packets of a picture. Before the connection is up they are discarded: they
    /// would be old when they can leave. So ask for a key frame then.
    pub fn enqueue(&mut self, now: Instant, packets: impl IntoIterator<Item = Packet>) {
        if !self.is_started {
            return;
        }
        let now = self.time(now);
        let sized = packets.into_iter().map(|packet| (size_of(packet.payload.len()), packet));
        self.media.enqueue(now, sized);
    }

    /// Takes what str0m tells about packets: those that left, and the feedback on them.
    pub fn on_event(&mut self, now: Instant, event: &Event) {
        let Event::RawPacket(packet) = event else { return };
        match &**packet {
            RawPacket::RtpTx(header, bytes) => self.on_sent(now, header, bytes.len()),
            RawPacket::RtcpRx(Rtcp::Twcc(report)) => {
                let now = self.time(now);
                feedback::on_report(now, self.origin, report, &self.numbers, &mut self.media);
            }
            _ => {}
        }
    }

    /// Handles timeouts, and writes the next packet that may leave. Returns whether there was one.
    /// Then poll str0m until it waits, before the next call: it sends and numbers the packet then.
    ///
    /// While the m-line may not send, what is queued is discarded.
    ///
    /// # Errors
    /// Those of [`Rtc::handle_input`].
    pub fn release(&mut self, now: Instant, rtc: &mut Rtc) -> Result<bool, RtcError> {
        let time = self.time(now);
        self.media.on_timeout(time);
        let line = self.line(rtc);
        let mut direct = rtc.direct_api();
        let stream = direct.stream_tx_by_mid(self.mid, None);
        // Asked without a name, str0m gives any layer.
        let stream = stream.filter(|stream| stream.rid().is_none());
        self.can_send = line.is_some() && stream.is_some();
        let (Some(line), Some(stream)) = (line, stream) else {
            self.media.clear_queue(time);
            return Ok(false);
        };
        self.media.set_padding_size(size_of(if line.has_filler { filler::BYTES } else { 0 }));
        let Some(released) = self.media.next_packet(time) else { return Ok(false) };
        let number = SeqNo::from(self.next_number);
        self.next_number += 1;
        let write = match released.content {
            Some(Packet { payload, payload_type, timestamp, captured, marker }) => {
                self.last = Some(Place { payload_type, timestamp, captured });
                let write = RtpWrite::new(payload_type, number, timestamp, captured, payload);
                write.marker(marker).nackable(true)
            }
            // The queue is empty, so the last picture is whole: padding inside of one breaks it.
            None => {
                let mut values = ExtensionValues::default();
                values.user_values.set(Filler);
                let before_media =
                    Place { payload_type: line.payload_type, timestamp: 0, captured: now };
                let Place { payload_type, timestamp, captured } = self.last.unwrap_or(before_media);
                let nothing: &[u8] = &[];
                let write = RtpWrite::new(payload_type, number, timestamp, captured, nothing);
                write.ext_vals(values)
            }
        };
        self.ssrc = Some(stream.ssrc());
        stream.write_rtp(write);
        // The wire has the low 16 bits.
        self.leaving = Some((*number as u16, released.sent));
        rtc.handle_input(Input::Timeout(now))?;
        Ok(true)
    }

    /// When [`Congestion::release`] is due next; `None` if only media or feedback can change that.
    pub fn next_timeout(&self) -> Option<Instant> {
        let next = self.media.next_timeout().filter(|_| self.can_send)?;
        next.to_instant(self.origin)
    }

    /// The target in bit/s, headers included.
    pub fn target(&self) -> Bitrate {
        self.media.target().bitrate
    }

    /// What the encoder may make of the target: what str0m sent past the queue in the last second
    /// (repeats, other streams with transport-wide numbers), and what waits, is taken off.
    pub fn media_bitrate(&self) -> Bitrate {
        self.media.media_bitrate()
    }

    /// Whether a picture that is taken now should be encoded. It would be late if too much waits.
    pub fn wants_frame(&self) -> bool {
        self.media.wants_frame()
    }

    /// The change of the target since the last call, if any, and its reason.
    pub fn take_change(&mut self) -> Option<TargetChange> {
        self.media.take_change()
    }

    /// Bytes that wait for the pacer.
    pub fn queued(&self) -> DataSize {
        self.media.queued()
    }

    /// Discards what waits for the pacer, as when a newer picture replaces it. Ask for a key frame
    /// then.
    pub fn clear_queue(&mut self, now: Instant) {
        let now = self.time(now);
        self.media.clear_queue(now);
    }

    /// The application changed the range of the target.
    pub fn set_limits(&mut self, now: Instant, limits: RateLimits) {
        let now = self.time(now);
        self.media.set_limits(now, limits);
    }

    /// The most that the source could use now; `None` for an unknown amount.
    pub fn set_desired_bitrate(&mut self, now: Instant, desired: Option<Bitrate>) {
        let now = self.time(now);
        self.media.set_desired_bitrate(now, desired);
    }

    /// Packets take another route from now on, as after an ICE restart. The controller starts anew,
    /// and feedback on packets of the old route is ignored.
    pub fn on_route_change(&mut self, now: Instant) {
        let now = self.time(now);
        self.media.on_route_change(now);
    }

    /// The receiver set a limit of its own, or lifted it with `None`, for instance by signalling:
    /// str0m shows no REMB.
    pub fn on_receiver_limit(&mut self, now: Instant, limit: Option<Bitrate>) {
        let now = self.time(now);
        self.media.on_receiver_limit(now, limit);
    }

    /// The round-trip time of the path was measured, for instance by its ICE agent.
    pub fn on_round_trip_time(&mut self, now: Instant, rtt: TimeDelta) {
        let now = self.time(now);
        self.media.on_round_trip_time(now, rtt);
    }

    /// This flow's new share of the rate of several coupled flows.
    pub fn on_shared_rate(&mut self, now: Instant, share: Bitrate) {
        let now = self.time(now);
        self.media.on_shared_rate(now, share);
    }

    /// What was agreed for the m-line; `None` while it may not send.
    fn line(&self, rtc: &Rtc) -> Option<Line> {
        let media = rtc.media(self.mid)?;
        let may_send = self.is_started && media.direction().is_sending() && !media.disabled();
        let payload_type = media.remote_pts().first().copied().filter(|_| may_send)?;
        Some(Line { payload_type, has_filler: filler::is_agreed(media) })
    }

    /// A packet left: one of the queue, a repeat of str0m's, or one of another stream.
    fn on_sent(&mut self, now: Instant, header: &RtpHeader, bytes: usize) {
        let is_ours = self.ssrc == Some(header.ssrc);
        let own = self.leaving.take_if(|(number, _)| is_ours && *number == header.sequence_number);
        let Some(theirs) = header.ext_vals.transport_cc else { return };
        let sent = match own {
            Some((_, sent)) => sent,
            None => {
                let size = DataSize::from_bytes((bytes + OVERHEAD_BYTES) as u64);
                let now = self.time(now);
                self.media.on_packet_sent(now, size, None)
            }
        };
        self.numbers.insert(theirs, sent.sequence_number);
    }

    fn time(&self, now: Instant) -> Timestamp {
        Timestamp::from_instant(self.origin, now)
    }
}

fn size_of(payload_bytes: usize) -> DataSize {
    DataSize::from_bytes((payload_bytes + HEADER_BYTES + OVERHEAD_BYTES) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::testing::Counted;

    #[test]
    fn every_call_for_the_controller_arrives() {
        let start = Instant::now();
        let mut control = Congestion::new(start, Mid::from("0"), Box::<Counted>::default());
        let mut plain = Counted::default();
        let (kbps, rtt) = (Bitrate::from_kbps, TimeDelta::from_millis(70));
        let limits = RateLimits::new(kbps(100), kbps(200), kbps(900)).unwrap();
        let (instant, now) = (start + std::time::Duration::from_secs(1), Timestamp::from_secs(1));
        for call in 0..6 {
            match call {
                0 => {
                    control.on_route_change(instant);
                    plain.on_route_change(now);
                }
                1 => {
                    control.on_receiver_limit(instant, Some(kbps(800)));
                    plain.on_receiver_limit(now, Some(kbps(800)));
                }
                2 => {
                    control.on_round_trip_time(instant, rtt);
                    plain.on_round_trip_time(now, rtt);
                }
                3 => {
                    control.on_shared_rate(instant, kbps(400));
                    plain.on_shared_rate(now, kbps(400));
                }
                4 => {
                    control.set_limits(instant, limits);
                    plain.set_limits(now, limits);
                }
                _ => {
                    control.set_desired_bitrate(instant, Some(kbps(700)));
                    plain.set_desired_bitrate(now, Some(kbps(700)));
                }
            }
            assert_eq!(control.media.controller().metrics(), plain.metrics(), "call {call}");
        }
    }
}
