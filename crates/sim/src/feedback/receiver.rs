//! The receiver's side: notes what arrives and reports it.

use weir::feedback::{ArrivalRecorder, Ecn, RtpArrivalRecorder, RtpNumber, SeqUnwrapper};
use weir::units::{TimeDelta, Timestamp};
use weir_net::seed::Stream;
use weir_wire::report::{
    ReceptionStats, Report, ReportBlock, SenderInfo, compact_ntp, compact_ntp_from_micros,
};
use weir_wire::rtp::{ExtensionId, View};
use weir_wire::{ccfb, twcc};

use super::rtcp_interval::RtcpInterval;
use super::{Feedback, Plan, in_force};

/// Largest feedback packet.
const MAX_SIZE: usize = 1_200;
/// Ticks of the video's RTP clock in a millisecond.
const RTP_TICKS_PER_MS: i64 = 90;

/// Reports packets in the format in force.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    plan: Vec<(Timestamp, Feedback)>,
    /// When the format changes next.
    next_change: Option<Timestamp>,
    interval: TimeDelta,
    extension_id: ExtensionId,
    ssrc: u32,
    rtcp_interval: RtcpInterval,
    notes: Notes,
    /// When the notes are reported next.
    next_report: Timestamp,
    last_sender_report: Option<LastSenderReport>,
}

/// What a format needs to know of the packets that arrived.
#[derive(Clone, Debug)]
enum Notes {
    Twcc { recorder: ArrivalRecorder, builder: twcc::Builder },
    Ccfb { recorder: RtpArrivalRecorder, builder: ccfb::Builder },
    Counts(Vec<Counts>),
}

/// One stream of a receiver that only counts.
#[derive(Clone, Debug)]
struct Counts {
    ssrc: u32,
    unwrapper: SeqUnwrapper,
    stats: ReceptionStats,
}

/// What answers the question how old a sender report is.
#[derive(Clone, Copy, Debug)]
struct LastSenderReport {
    compact_ntp: u32,
    arrival: Timestamp,
}

impl Reporter {
    /// A reporter with this SSRC that starts now, and sends transport-wide and congestion control
    /// feedback once an interval. `chance` spreads its receiver reports.
    pub(crate) fn new(
        now: Timestamp,
        plan: &Plan,
        interval: TimeDelta,
        (ssrc, extension_id): (u32, ExtensionId),
        chance: Stream,
    ) -> Self {
        let (format, next_change) = in_force(plan, now);
        let mut reporter = Self {
            plan: plan.to_vec(),
            next_change,
            interval,
            extension_id,
            ssrc,
            rtcp_interval: RtcpInterval::new(chance),
            notes: Notes::new(format, ssrc),
            next_report: now,
            last_sender_report: None,
        };
        reporter.schedule(now);
        reporter
    }

    /// When [`Reporter::on_deadline`] is due.
    pub(crate) fn next_deadline(&self) -> Timestamp {
        self.next_change.map_or(self.next_report, |change| change.min(self.next_report))
    }

    /// A packet arrived.
    pub(crate) fn on_packet(&mut self, now: Timestamp, view: &View<'_>, ecn: Ecn) {
        let rtp = RtpNumber { ssrc: view.ssrc(), sequence_number: view.sequence_number() };
        match &mut self.notes {
            Notes::Twcc { recorder, .. } => {
                let number = view
                    .transport_sequence_number(self.extension_id)
                    .expect("the simulator's own sender numbers every packet");
                recorder.on_packet(now, number.sequence_number);
            }
            Notes::Ccfb { recorder, .. } => recorder.on_packet(now, rtp, ecn),
            Notes::Counts(streams) => count(streams, now, rtp, view.timestamp()),
        }
    }

    /// A sender report arrived.
    pub(crate) fn on_sender_report(&mut self, now: Timestamp, info: SenderInfo) {
        let compact_ntp = compact_ntp(info.ntp_time);
        self.last_sender_report = Some(LastSenderReport { compact_ntp, arrival: now });
    }

    /// Sends the feedback that is due, and changes the format when that is.
    pub(crate) fn on_deadline(&mut self, now: Timestamp, send: impl FnMut(&[u8])) {
        let changes = self.next_change.is_some_and(|change| change <= now);
        if !changes && self.next_report > now {
            return;
        }
        self.report(now, send);
        if changes {
            let (format, next_change) = in_force(&self.plan, now);
            self.next_change = next_change;
            self.notes = Notes::new(format, self.ssrc);
        }
        self.schedule(now);
    }

    fn schedule(&mut self, now: Timestamp) {
        let interval = match self.notes {
            Notes::Twcc { .. } | Notes::Ccfb { .. } => self.interval,
            Notes::Counts(_) => self.rtcp_interval.draw(),
        };
        self.next_report = now + interval;
    }

    fn report(&mut self, now: Timestamp, mut send: impl FnMut(&[u8])) {
        match &mut self.notes {
            Notes::Twcc { recorder, builder } => {
                builder.build(recorder.take_batch(now), MAX_SIZE, send);
            }
            Notes::Ccfb { recorder, builder } => {
                let streams = recorder.take_batches(now).map(|batch| ccfb::Stream {
                    ssrc: batch.ssrc,
                    // The number on the wire is the low half.
                    begin_sequence_number: batch.begin as u16,
                    packets: batch
                        .packets
                        .iter()
                        .map(|packet| packet.map(|(arrival_us, ecn)| (arrival_us, on_wire(ecn)))),
                });
                builder.build(now.as_micros(), streams, MAX_SIZE, send);
            }
            Notes::Counts(streams) => {
                let last = self.last_sender_report;
                let blocks: Vec<_> = streams.iter_mut().map(|s| s.block(now, last)).collect();
                for blocks in blocks.chunks(Report::MAX_BLOCKS) {
                    let report = Report::new(self.ssrc, None, blocks).expect("not too many blocks");
                    let mut bytes = vec![0; report.size()];
                    report.emit(&mut bytes);
                    send(&bytes);
                }
            }
        }
    }
}

impl Notes {
    fn new(format: Feedback, ssrc: u32) -> Self {
        match format {
            Feedback::Twcc => Self::Twcc {
                recorder: ArrivalRecorder::default(),
                builder: twcc::Builder::new(ssrc, ssrc),
            },
            Feedback::Ccfb => Self::Ccfb {
                recorder: RtpArrivalRecorder::default(),
                builder: ccfb::Builder::new(ssrc),
            },
            Feedback::ReceiverReports => Self::Counts(Vec::new()),
        }
    }
}

fn count(streams: &mut Vec<Counts>, now: Timestamp, rtp: RtpNumber, rtp_timestamp: u32) {
    // The low 32 bits: the RTP clock wraps there.
    let rtp_arrival = (now.as_micros() * RTP_TICKS_PER_MS / 1_000) as u32;
    let number = u32::from(rtp.sequence_number);
    if let Some(stream) = streams.iter_mut().find(|stream| stream.ssrc == rtp.ssrc) {
        let number = stream.unwrapper.unwrap(number);
        stream.stats.on_packet(number, rtp_timestamp, rtp_arrival);
        return;
    }
    let mut unwrapper = SeqUnwrapper::default();
    let number = unwrapper.unwrap(number);
    let stats = ReceptionStats::new(number, rtp_timestamp, rtp_arrival);
    streams.push(Counts { ssrc: rtp.ssrc, unwrapper, stats });
}

impl Counts {
    fn block(&mut self, now: Timestamp, last: Option<LastSenderReport>) -> ReportBlock {
        let (last_sender_report, delay) = last.map_or((0, 0), |last| {
            let delay_us = (now - last.arrival).as_micros();
            (last.compact_ntp, compact_ntp_from_micros(delay_us))
        });
        self.stats.report(self.ssrc, last_sender_report, delay)
    }
}

fn on_wire(ecn: Ecn) -> ccfb::Ecn {
    match ecn {
        Ecn::NotEct => ccfb::Ecn::NotEct,
        Ecn::Ect1 => ccfb::Ecn::Ect1,
        Ecn::Ect0 => ccfb::Ecn::Ect0,
        Ecn::Ce => ccfb::Ecn::Ce,
    }
}
