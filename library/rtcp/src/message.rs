//! Reading RTCP at the sender.

use alloc::vec::Vec;

use weir::feedback::{
    CcfbPacket, CcfbReception, FeedbackReport, ReceiverReport, RtpNumber, SendHistory, TwccHeader,
};
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_wire::header::{Packet, Packets};
use weir_wire::key_frame::{FullIntraView, PictureLoss};
use weir_wire::report::{self, ReportBlock, compact_ntp_from_micros};
use weir_wire::{Error, ccfb, nack, remb, twcc};

use crate::rtp_packet::ecn_from_wire;

/// The kinds of feedback, from the least to the most precise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FeedbackKind {
    /// RTCP receiver reports: losses and round-trip times of a stream.
    ReceiverReports,
    /// Transport-wide feedback: the arrival of each packet.
    Twcc,
    /// RFC 8888: the arrival and the ECN mark of each packet.
    Ccfb,
}

impl FeedbackKind {
    /// The short name, as in a configuration: `rr`, `twcc` or `ccfb`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReceiverReports => "rr",
            Self::Twcc => "twcc",
            Self::Ccfb => "ccfb",
        }
    }
}

/// An RTCP packet that matters to a congestion controller.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
    /// Transport-wide feedback.
    Twcc(twcc::View<'a>),
    /// Congestion control feedback of RFC 8888.
    Ccfb(ccfb::View<'a>),
    /// A sender or receiver report.
    Report(report::View<'a>),
    /// The receiver's upper limit of the bitrate (REMB).
    Remb(remb::View<'a>),
}

impl<'a> Message<'a> {
    /// Parses one packet of a compound packet.
    ///
    /// # Errors
    /// [`Error::PacketType`] if the packet is of another kind, such as NACK or PLI. Another error
    /// if it is of one of the four kinds, but malformed.
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

    /// The kind of feedback; `None` for a limit (REMB).
    pub fn kind(&self) -> Option<FeedbackKind> {
        match self {
            Self::Twcc(_) => Some(FeedbackKind::Twcc),
            Self::Ccfb(_) => Some(FeedbackKind::Ccfb),
            Self::Report(_) => Some(FeedbackKind::ReceiverReports),
            Self::Remb(_) => None,
        }
    }

    /// The receiver's upper limit of the bitrate, if the message is a REMB. Pass it to
    /// [`MediaSender::on_receiver_limit`](weir::MediaSender::on_receiver_limit).
    pub fn limit(&self) -> Option<Bitrate> {
        match self {
            Self::Remb(view) => Some(Bitrate::from_bps(view.bitrate_bps())),
            _ => None,
        }
    }

    /// Joins feedback with the send history; `None` if it contains nothing new. Report blocks count
    /// as feedback if they answer sender reports whose NTP times use the same clock as `now`. Those
    /// of [`SenderReports`](crate::SenderReports) do.
    ///
    /// Use it with [`MediaSender::on_feedback`](weir::MediaSender::on_feedback):
    /// `sender.on_feedback(now, |history| message.join(now, history))`.
    ///
    /// A receiver may send several kinds of feedback: [`FeedbackInput`](crate::FeedbackInput) joins
    /// only one of them.
    pub fn join<'h>(
        &self,
        now: Timestamp,
        history: &'h mut SendHistory,
    ) -> Option<&'h FeedbackReport> {
        self.join_with(now, history, |block| {
            block.round_trip_time(compact_ntp_from_micros(now.as_micros())).map(compact_ntp_to_time)
        })
    }

    /// Like [`join`](Message::join), for hosts that measure the round-trip times of report blocks
    /// themselves.
    pub fn join_with<'h>(
        &self,
        now: Timestamp,
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
            Self::Report(view) => history.on_receiver_report(
                now,
                view.blocks().map(|block| {
                    let rtt = round_trip_time(&block);
                    ReceiverReport {
                        ssrc: block.ssrc,
                        extended_highest_sequence_number: block.extended_highest_sequence_number,
                        fraction_lost: block.fraction_lost,
                        cumulative_lost: block.cumulative_lost.get(),
                        rtt,
                    }
                }),
            ),
        }
    }
}

/// Converts a time in units of 1/65536 s, as report blocks have them [RFC3550 §6.4.1].
///
/// [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
pub fn compact_ntp_to_time(units: u32) -> TimeDelta {
    TimeDelta::from_micros((i64::from(units) * 1_000_000) >> 16)
}

/// What an RTCP datagram contains besides congestion control. The host acts on the first two.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RtcpEvent<'a> {
    /// The receiver misses packets of a stream (NACK). Send them again, if they are still at hand:
    /// [`Sender::enqueue_as`](crate::Sender::enqueue_as) with
    /// [`PacketKind::Repair`](weir::PacketKind::Repair).
    Retransmit(nack::View<'a>),
    /// The receiver cannot go on without a key frame (PLI or FIR). Let the encoder make one.
    KeyFrame(KeyFrameRequest<'a>),
    /// A packet of another kind, such as a source description.
    Other(Packet<'a>),
    /// A packet of a known kind with malformed content. The packets after it are still read.
    Damaged(Packet<'a>, Error),
    /// From here on the bytes are not RTCP. The rest of the datagram is not read.
    Malformed(Error),
}

/// A request for a key frame.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum KeyFrameRequest<'a> {
    /// Picture loss indication [RFC4585 §6.3.1].
    ///
    /// [RFC4585 §6.3.1]: https://www.rfc-editor.org/rfc/rfc4585#section-6.3.1
    Pli(PictureLoss),
    /// Full intra request, for one or more streams [RFC5104 §4.3.1].
    ///
    /// [RFC5104 §4.3.1]: https://www.rfc-editor.org/rfc/rfc5104#section-4.3.1
    Fir(FullIntraView<'a>),
}

impl KeyFrameRequest<'_> {
    /// The streams of which a key frame is wanted.
    pub fn media_ssrcs(&self) -> impl Iterator<Item = u32> {
        let (one, several) = match self {
            Self::Pli(loss) => (Some(loss.media_ssrc), None),
            Self::Fir(view) => (None, Some(view.requests().map(|request| request.media_ssrc))),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }
}

impl<'a> RtcpEvent<'a> {
    /// Reads a packet that is not for congestion control.
    fn read(packet: Packet<'a>) -> Self {
        let nack = nack::View::new(packet).map(Self::Retransmit);
        let found = match nack {
            Err(Error::PacketType) => {
                PictureLoss::new(packet).map(|loss| Self::KeyFrame(KeyFrameRequest::Pli(loss)))
            }
            found => found,
        };
        let found = match found {
            Err(Error::PacketType) => {
                FullIntraView::new(packet).map(|view| Self::KeyFrame(KeyFrameRequest::Fir(view)))
            }
            found => found,
        };
        found.unwrap_or_else(|error| match error {
            Error::PacketType => Self::Other(packet),
            error => Self::Damaged(packet, error),
        })
    }
}

/// Reads the packets of one datagram, compound or of reduced size, in its order: messages for
/// congestion control, and everything else as an error. Accepts any bytes.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Message<'_>, RtcpEvent<'_>>> {
    Packets::new(bytes).map(|packet| {
        let packet = packet.map_err(RtcpEvent::Malformed)?;
        Message::read(packet).map_err(|error| match error {
            Error::PacketType => RtcpEvent::read(packet),
            error => RtcpEvent::Damaged(packet, error),
        })
    })
}

/// Builds an RTCP feedback packet from its content ("feedback control information"). This is for
/// hosts whose RTP stack provides the fields one by one, as GStreamer's signal `on-feedback-rtcp`
/// does. `packet_type` is 205 or 206, `format` is the FMT field [RFC4585 §6.1].
///
/// `None` if the format is above 31 or the content is too long for an RTCP packet.
///
/// [RFC4585 §6.1]: https://www.rfc-editor.org/rfc/rfc4585#section-6.1
pub fn rtcp_from_fci(
    packet_type: u8,
    format: u8,
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
