//! Reading RTCP at the sender.

use alloc::vec::Vec;

use weir::feedback::{
    CcfbPacket, CcfbReception, FeedbackReport, ReceiverReport, RtpNumber, SendHistory, TwccHeader,
};
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_wire::header::{Packet, Packets};
use weir_wire::report::{self, ReportBlock, compact_ntp_from_micros};
use weir_wire::{Error, ccfb, remb, twcc};

use crate::rtp_packet::ecn_from_wire;

/// An RTCP packet that has something to say to a congestion controller.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// Transport-wide feedback.
    Twcc(twcc::View<'a>),
    /// Congestion control feedback of RFC 8888.
    Ccfb(ccfb::View<'a>),
    /// A sender or receiver report.
    Report(report::View<'a>),
    /// The highest bitrate that the receiver wants.
    Remb(remb::View<'a>),
}

impl<'a> Message<'a> {
    /// Reads one packet of a compound.
    ///
    /// # Errors
    /// [`Error::PacketType`] if the packet is about something else, as NACK and PLI are; another error if
    /// it is of one of these four kinds and damaged.
    pub fn read(packet: Packet<'a>) -> Result<Self, Error> {
        let is_other = |error: &Error| matches!(error, Error::PacketType);
        let message = twcc::View::new(packet).map(Self::Twcc);
        let Err(Error::PacketType) = message else { return message };
        let message = ccfb::View::new(packet).map(Self::Ccfb);
        let Err(Error::PacketType) = message else { return message };
        let message = report::View::new(packet).map(Self::Report);
        if message.as_ref().is_err_and(is_other) {
            return remb::View::new(packet).map(Self::Remb);
        }
        message
    }

    /// The highest bitrate that the receiver wants, if the message is about that. It goes to
    /// [`MediaSender::on_receiver_limit`](weir::MediaSender::on_receiver_limit).
    pub fn limit(&self) -> Option<Bitrate> {
        match self {
            Self::Remb(view) => Some(Bitrate::from_bps(view.bitrate_bps())),
            _ => None,
        }
    }

    /// Joins feedback with what was sent; `None` if it tells nothing new. A report counts as feedback
    /// too, as far as it answers sender reports whose NTP times were made of the clock of `now`, as those
    /// of [`SenderReports`](crate::SenderReports) are.
    ///
    /// It fits [`MediaSender::on_feedback`](weir::MediaSender::on_feedback):
    /// `sender.on_feedback(now, |history| message.join(now, history))`.
    ///
    /// A receiver that sends TWCC or CCFB and plain reports beside it uses two clocks at once. Joining
    /// both would make the controller find its base delay anew at each change, so such reports should
    /// only serve as [round-trip times](crate::SenderReports::round_trip_time). [`Sender`](crate::Sender)
    /// does so.
    pub fn join<'h>(
        &self,
        now: Timestamp,
        history: &'h mut SendHistory,
    ) -> Option<&'h FeedbackReport> {
        self.join_with(history, |block| {
            block.round_trip_time(compact_ntp_from_micros(now.as_micros())).map(compact_ntp_to_time)
        })
    }

    /// The same for a host that measures the round-trip times of report blocks itself.
    pub fn join_with<'h>(
        &self,
        history: &'h mut SendHistory,
        mut round_trip_time: impl FnMut(&ReportBlock) -> Option<TimeDelta>,
    ) -> Option<&'h FeedbackReport> {
        match self {
            Self::Remb(_) => None,
            Self::Twcc(view) => {
                let header = TwccHeader {
                    reference_time: view.reference_time().units(),
                    feedback_count: view.feedback_packet_count(),
                };
                history.on_twcc(header, view.arrivals())
            }
            Self::Ccfb(view) => {
                let packets = view.blocks().flat_map(|block| {
                    let ssrc = block.ssrc();
                    block.reports().map(move |(sequence_number, reception)| CcfbPacket {
                        rtp: RtpNumber { ssrc, sequence_number },
                        reception: reception.map(|reception| CcfbReception {
                            ecn: ecn_from_wire(reception.ecn),
                            offset: reception.offset.bits(),
                        }),
                    })
                });
                history.on_ccfb(view.timestamp(), packets)
            }
            Self::Report(view) => history.on_receiver_report(view.blocks().map(|block| {
                let rtt = round_trip_time(&block);
                ReceiverReport {
                    ssrc: block.ssrc,
                    extended_highest_sequence_number: block.extended_highest_sequence_number,
                    fraction_lost: block.fraction_lost,
                    cumulative_lost: block.cumulative_lost.get(),
                    rtt,
                }
            })),
        }
    }
}

/// A time in 1/65536 s.
pub(crate) fn compact_ntp_to_time(units: u32) -> TimeDelta {
    TimeDelta::from_micros((i64::from(units) * 1_000_000) >> 16)
}

/// What a datagram of RTCP holds besides messages for congestion control.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Ignored<'a> {
    /// A whole packet about something else: a request for retransmission or for a key frame, a
    /// description of the source. The host may want to read it.
    Other(Packet<'a>),
    /// A packet for congestion control with damaged content. The packets after it are read.
    Damaged(Packet<'a>, Error),
    /// From here on the bytes are no RTCP; nothing after this is read.
    Malformed(Error),
}

/// Walks the packets of one datagram, compound or of reduced size: messages for congestion control go to
/// `take`, everything else to `ignore`, both in the order of the datagram. Takes any bytes.
pub fn read_compound<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(Message<'a>),
    mut ignore: impl FnMut(Ignored<'a>),
) {
    for packet in Packets::new(bytes) {
        match packet.map(|packet| (packet, Message::read(packet))) {
            Ok((_, Ok(message))) => take(message),
            Ok((packet, Err(Error::PacketType))) => ignore(Ignored::Other(packet)),
            Ok((packet, Err(error))) => ignore(Ignored::Damaged(packet, error)),
            Err(error) => ignore(Ignored::Malformed(error)),
        }
    }
}

/// The feedback packet around its content ("feedback control information"), for hosts whose RTP stack
/// hands out the fields one by one, as GStreamer's signal `on-feedback-rtcp` does. `packet_type` is 205
/// or 206, `format` the FMT field [RFC4585 §6.1].
///
/// `None` if the format is above 31 or the content longer than an RTCP packet can be.
///
/// [RFC4585 §6.1]: https://www.rfc-editor.org/rfc/rfc4585#section-6.1
pub fn rtcp_from_fci(
    (packet_type, format): (u8, u8),
    sender_ssrc: u32,
    media_ssrc: u32,
    fci: &[u8],
) -> Option<Vec<u8>> {
    const WORD: usize = 4;
    const VERSION: u8 = 2 << 6;
    const MAX_FORMAT: u8 = (1 << 5) - 1;
    let words = 2 + fci.len().div_ceil(WORD);
    let length = u16::try_from(words).ok().filter(|_| format <= MAX_FORMAT)?;
    let mut bytes = Vec::with_capacity((words + 1) * WORD);
    bytes.extend_from_slice(&[VERSION | format, packet_type]);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&sender_ssrc.to_be_bytes());
    bytes.extend_from_slice(&media_ssrc.to_be_bytes());
    bytes.extend_from_slice(fci);
    bytes.resize((words + 1) * WORD, 0);
    Some(bytes)
}
