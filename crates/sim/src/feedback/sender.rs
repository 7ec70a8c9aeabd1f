//! The sender's side: reads feedback of any format, and sends the reports that receivers answer.

use weir::feedback::{
    CcfbPacket, CcfbReception, Ecn, FeedbackReport, ReceiverReport, RtpNumber, SendHistory,
    TwccHeader,
};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;
use weir_wire::header::Packet;
use weir_wire::report::{
    self, Report, ReportBlock, SenderInfo, compact_ntp_from_micros, ntp_from_micros,
};
use weir_wire::{ccfb, remb, twcc};

use super::rtcp_interval::RtcpInterval;
use super::{Feedback, Plan};

/// Congestion feedback in any format, read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heard<'a> {
    Remb(remb::View<'a>),
    Twcc(twcc::View<'a>),
    Ccfb(ccfb::View<'a>),
    Report(report::View<'a>),
}

impl<'a> Heard<'a> {
    /// Reads an RTCP packet; `None` if it is about something else.
    pub(crate) fn read(packet: Packet<'a>) -> Option<Self> {
        twcc::View::new(packet)
            .map(Self::Twcc)
            .or_else(|_| ccfb::View::new(packet).map(Self::Ccfb))
            .or_else(|_| report::View::new(packet).map(Self::Report))
            .or_else(|_| remb::View::new(packet).map(Self::Remb))
            .ok()
    }

    /// What the receiver wants at most, if it is about that.
    pub(crate) fn limit(&self) -> Option<Bitrate> {
        match self {
            Self::Remb(view) => Some(Bitrate::from_bps(view.bitrate_bps())),
            _ => None,
        }
    }

    /// Joins it with what was sent; `None` if it tells nothing new.
    pub(crate) fn join<'h>(
        &self,
        now: Timestamp,
        history: &'h mut SendHistory,
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
                            ecn: from_wire(reception.ecn),
                            offset: reception.offset.bits(),
                        }),
                    })
                });
                history.on_ccfb(view.timestamp(), packets)
            }
            Self::Report(view) => {
                history.on_receiver_report(view.blocks().map(|block| receiver_report(now, &block)))
            }
        }
    }
}

fn receiver_report(now: Timestamp, block: &ReportBlock) -> ReceiverReport {
    let rtt = block.round_trip_time(compact_ntp_from_micros(now.as_micros()));
    ReceiverReport {
        ssrc: block.ssrc,
        extended_highest_sequence_number: block.extended_highest_sequence_number,
        fraction_lost: block.fraction_lost,
        cumulative_lost: block.cumulative_lost.get(),
        rtt: rtt.map(|units| TimeDelta::from_micros((i64::from(units) * 1_000_000) >> 16)),
    }
}

fn from_wire(ecn: ccfb::Ecn) -> Ecn {
    match ecn {
        ccfb::Ecn::NotEct => Ecn::NotEct,
        ccfb::Ecn::Ect1 => Ecn::Ect1,
        ccfb::Ecn::Ect0 => Ecn::Ect0,
        ccfb::Ecn::Ce => Ecn::Ce,
    }
}

/// The sender reports of a flow whose receiver needs them to tell round-trip times.
#[derive(Clone, Debug)]
pub(crate) struct SenderReports {
    ssrc: u32,
    interval: RtcpInterval,
    next: Timestamp,
    packets: u32,
    octets: u64,
}

impl SenderReports {
    /// `None` if the feedback never comes to receiver reports. `chance` spreads the reports.
    pub(crate) fn new(now: Timestamp, plan: &Plan, ssrc: u32, chance: Stream) -> Option<Self> {
        if plan.iter().all(|&(_, format)| format != Feedback::ReceiverReports) {
            return None;
        }
        let mut interval = RtcpInterval::new(chance);
        // Half the interval before the first, so that a newcomer is soon known [RFC3550 §6.2].
        let next = now + interval.draw() / 2;
        Some(Self { ssrc, interval, next, packets: 0, octets: 0 })
    }

    /// Counts a packet by its payload.
    pub(crate) fn on_packet_sent(&mut self, payload: DataSize) {
        self.packets = self.packets.wrapping_add(1);
        self.octets += payload.as_bytes();
    }

    /// When [`SenderReports::on_deadline`] is due.
    pub(crate) const fn next_deadline(&self) -> Timestamp {
        self.next
    }

    /// Sends the report that is due.
    pub(crate) fn on_deadline(
        &mut self,
        now: Timestamp,
        rtp_time: u32,
        mut send: impl FnMut(&[u8]),
    ) {
        if self.next > now {
            return;
        }
        self.next = now + self.interval.draw();
        let info = SenderInfo {
            ntp_time: ntp_from_micros(now.as_micros()),
            rtp_time,
            packet_count: self.packets,
            // Modulo 2^32, as the field counts.
            octet_count: self.octets as u32,
        };
        let report = Report::new(self.ssrc, Some(info), &[]).expect("no block is not too many");
        let mut bytes = vec![0; report.size()];
        report.emit(&mut bytes);
        send(&bytes);
    }
}
