//! Receiver feedback: records which packets arrive, and reports them in the negotiated format.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use weir::feedback::{
    ArrivalRecorder, Ecn, Place, Restarts, RtpArrivalRecorder, RtpNumber, SeqUnwrapper,
};
use weir::units::{TimeDelta, Timestamp};
use weir_wire::report::{
    ReceptionStats, Report, ReportBlock, SenderInfo, compact_ntp, compact_ntp_from_micros,
};
use weir_wire::rtp::{ExtensionId, View};
use weir_wire::{ccfb, twcc};

use crate::interval::{DEFAULT_MEAN, Interval, Random};
use crate::outbox::Outbox;
use crate::rtp_packet::{ecn_to_wire, rtp_number, rtp_units};

/// Maximum size of a feedback packet. With IP and UDP headers it fits the MTU of common paths.
const MAX_SIZE: usize = 1_200;
/// Maximum number of streams counted, and of sender reports remembered. It bounds the memory that a
/// peer can use up with invented SSRCs. Of more, those that were silent for longest are forgotten.
const MAX_STREAMS: usize = 256;
/// More packets than these are not lost at once: the numbers go on elsewhere. `MAX_DROPOUT`
/// [RFC3550 §A.1].
const MAX_DROPOUT: i64 = 3_000;

/// Feedback format: how a receiver reports the packets that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feedback {
    /// Transport-wide feedback: `transport-cc` in SDP.
    Twcc,
    /// Congestion control feedback of RFC 8888: `ack ccfb` in SDP.
    Ccfb,
    /// Only RTCP receiver reports: losses and round-trip times.
    ReceiverReports,
}

/// Configuration of a [`Reporter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReporterConfig {
    /// The receiver's own SSRC.
    pub ssrc: u32,
    /// The negotiated id of the transport-wide sequence number. TWCC needs it.
    pub transport_sequence_number: Option<ExtensionId>,
    /// Time between TWCC or CCFB packets. The default is 100 ms; between 50 and 200 ms is usual.
    pub interval: TimeDelta,
    /// Mean time between receiver reports. The default is one second.
    pub report_interval: TimeDelta,
    /// Clock rate of the RTP timestamps in Hz, for the jitter in receiver reports. The default is
    /// 90,000, as for video.
    pub clock_rate: u32,
}

impl ReporterConfig {
    /// The defaults for a receiver with this SSRC, without TWCC.
    pub const fn new(ssrc: u32) -> Self {
        Self {
            ssrc,
            transport_sequence_number: None,
            interval: TimeDelta::from_millis(100),
            report_interval: DEFAULT_MEAN,
            clock_rate: 90_000,
        }
    }

    weir::with! {
        const
        with_transport_sequence_number: transport_sequence_number: Option<ExtensionId>,
        with_interval: interval: TimeDelta,
        with_report_interval: report_interval: TimeDelta,
        with_clock_rate: clock_rate: u32,
    }
}

/// Reports the packets of one transport. The format can be changed while it runs.
pub struct Reporter {
    config: ReporterConfig,
    report_interval: Interval,
    notes: Notes,
    /// Time of the next report.
    next: Timestamp,
    /// The newest sender report of each stream.
    sender_reports: Vec<LastSenderReport>,
    /// Packets that the host has not taken yet.
    due: Outbox,
}

/// The records that a feedback format keeps about arrived packets.
#[allow(clippy::large_enum_variant, reason = "a reporter has one, and keeps it")]
enum Notes {
    Twcc {
        recorder: ArrivalRecorder,
        /// `None` before the first packet, whose SSRC the feedback contains.
        builder: Option<twcc::Builder>,
    },
    Ccfb {
        recorder: RtpArrivalRecorder,
        builder: ccfb::Builder,
    },
    Counts(Vec<Counts>),
}

/// Reception statistics of one stream, for receiver reports.
struct Counts {
    ssrc: u32,
    unwrapper: SeqUnwrapper,
    restarts: Restarts,
    stats: ReceptionStats,
    last_arrival: Timestamp,
}

/// The newest sender report of a stream, and when it arrived.
struct LastSenderReport {
    ssrc: u32,
    compact_ntp: u32,
    arrival: Timestamp,
}

impl Reporter {
    /// A reporter that starts at `now`. `random` spreads the times of its receiver reports.
    pub fn new(now: Timestamp, feedback: Feedback, config: ReporterConfig, random: Random) -> Self {
        let mut reporter = Self {
            config,
            report_interval: Interval::new(config.report_interval, random),
            notes: Notes::new(feedback, config.ssrc),
            next: now,
            sender_reports: Vec::new(),
            due: Outbox::default(),
        };
        reporter.schedule(now);
        reporter
    }

    /// A packet arrived with these ECN bits in its IP header. TWCC ignores packets without a
    /// transport-wide sequence number.
    pub fn on_packet(&mut self, now: Timestamp, view: &View<'_>, ecn: Ecn) {
        match &mut self.notes {
            Notes::Twcc { recorder, builder } => {
                let id = self.config.transport_sequence_number;
                let Some(number) = id.and_then(|id| view.transport_sequence_number(id)) else {
                    return;
                };
                let ssrc = self.config.ssrc;
                builder.get_or_insert_with(|| twcc::Builder::new(ssrc, view.ssrc()));
                recorder.on_packet(now, number.sequence_number);
            }
            Notes::Ccfb { recorder, .. } => recorder.on_packet(now, rtp_number(view), ecn),
            Notes::Counts(streams) => {
                let rtp_arrival = rtp_units(now.as_micros(), self.config.clock_rate);
                count(streams, now, rtp_number(view), (view.timestamp(), rtp_arrival));
            }
        }
    }

    /// A sender report of the stream with this SSRC arrived. The next receiver report answers it.
    pub fn on_sender_report(&mut self, now: Timestamp, ssrc: u32, info: SenderInfo) {
        self.sender_reports.retain(|known| known.ssrc != ssrc);
        if self.sender_reports.len() >= MAX_STREAMS {
            // Remove the sender report that arrived first.
            self.sender_reports.remove(0);
        }
        let compact_ntp = compact_ntp(info.ntp_time);
        self.sender_reports.push(LastSenderReport { ssrc, compact_ntp, arrival: now });
    }

    /// When [`Reporter::on_timeout`] is due.
    pub const fn next_timeout(&self) -> Timestamp {
        self.next
    }

    /// Writes the feedback that is due, for [`Reporter::next_rtcp`]. Writes nothing if there is
    /// nothing to report.
    pub fn on_timeout(&mut self, now: Timestamp) {
        if self.next <= now {
            self.report(now);
            self.schedule(now);
        }
    }

    /// The next RTCP packet to send. Call it until it returns `None`.
    pub fn next_rtcp(&mut self) -> Option<&[u8]> {
        self.due.pop()
    }

    /// Switches to another format. Earlier arrivals are first reported in the old format.
    pub fn set_feedback(&mut self, now: Timestamp, feedback: Feedback) {
        self.report(now);
        self.notes = Notes::new(feedback, self.config.ssrc);
        self.schedule(now);
    }

    fn schedule(&mut self, now: Timestamp) {
        let interval = match self.notes {
            Notes::Twcc { .. } | Notes::Ccfb { .. } => self.config.interval,
            Notes::Counts(_) => self.report_interval.draw(),
        };
        self.next = now + interval;
    }

    fn report(&mut self, now: Timestamp) {
        let due = &mut self.due;
        match &mut self.notes {
            Notes::Twcc { recorder, builder } => {
                if let Some(builder) = builder {
                    builder.build(recorder.take_batch(now), MAX_SIZE, |bytes| due.push(bytes));
                }
            }
            Notes::Ccfb { recorder, builder } => {
                let streams = recorder.take_batches(now).map(|batch| ccfb::Stream {
                    ssrc: batch.ssrc,
                    // Only the low 16 bits are sent.
                    begin_sequence_number: batch.begin as u16,
                    packets: batch.packets.iter().map(|packet| {
                        packet.map(|(arrival_us, ecn)| (arrival_us, ecn_to_wire(ecn)))
                    }),
                });
                builder.build(now.as_micros(), streams, MAX_SIZE, |bytes| due.push(bytes));
            }
            Notes::Counts(streams) => {
                let known = &self.sender_reports;
                let blocks: Vec<_> = streams.iter_mut().map(|s| s.block(now, known)).collect();
                for blocks in blocks.chunks(Report::MAX_BLOCKS) {
                    let report =
                        Report::new(self.config.ssrc, None, blocks).expect("not too many blocks");
                    let mut bytes = vec![0; report.size()];
                    report.emit(&mut bytes);
                    due.push(&bytes);
                }
            }
        }
    }
}

impl Notes {
    fn new(feedback: Feedback, ssrc: u32) -> Self {
        match feedback {
            Feedback::Twcc => Self::Twcc { recorder: ArrivalRecorder::default(), builder: None },
            Feedback::Ccfb => Self::Ccfb {
                recorder: RtpArrivalRecorder::default(),
                builder: ccfb::Builder::new(ssrc),
            },
            Feedback::ReceiverReports => Self::Counts(Vec::new()),
        }
    }

    const fn feedback(&self) -> Feedback {
        match self {
            Self::Twcc { .. } => Feedback::Twcc,
            Self::Ccfb { .. } => Feedback::Ccfb,
            Self::Counts(_) => Feedback::ReceiverReports,
        }
    }
}

/// Counts a packet. `times` are its RTP timestamp and its arrival time, both in RTP clock units.
fn count(streams: &mut Vec<Counts>, now: Timestamp, rtp: RtpNumber, times: (u32, u32)) {
    if let Some(stream) = streams.iter_mut().find(|stream| stream.ssrc == rtp.ssrc) {
        stream.on_packet(now, rtp, times);
        return;
    }
    if streams.len() >= MAX_STREAMS {
        let silent = streams.iter().enumerate().min_by_key(|(_, stream)| stream.last_arrival);
        let (index, _) = silent.expect("there are many");
        streams.remove(index);
    }
    streams.push(Counts::new(now, rtp, times));
}

impl Counts {
    /// A stream that begins with this packet.
    fn new(now: Timestamp, rtp: RtpNumber, times: (u32, u32)) -> Self {
        let (mut unwrapper, mut restarts) = (SeqUnwrapper::default(), Restarts::default());
        let number = unwrapper.unwrap(rtp.sequence_number.into());
        restarts.begin(now, number);
        let stats = ReceptionStats::new(number, times.0, times.1);
        Self { ssrc: rtp.ssrc, unwrapper, restarts, stats, last_arrival: now }
    }

    fn on_packet(&mut self, now: Timestamp, rtp: RtpNumber, times: (u32, u32)) {
        let number = self.unwrapper.peek(rtp.sequence_number.into());
        match self.restarts.place(now, number, MAX_DROPOUT) {
            Place::Newer => self.unwrapper.set_last(number),
            Place::Late => {}
            Place::Far => return,
            Place::Anew => {
                *self = Self::new(now, rtp, times);
                return;
            }
        }
        self.stats.on_packet(number, times.0, times.1);
        self.last_arrival = now;
    }

    fn block(&mut self, now: Timestamp, sender_reports: &[LastSenderReport]) -> ReportBlock {
        let last = sender_reports.iter().find(|report| report.ssrc == self.ssrc);
        let (last_sender_report, delay) = last.map_or((0, 0), |last| {
            let delay_us = (now - last.arrival).as_micros();
            (last.compact_ntp, compact_ntp_from_micros(delay_us))
        });
        self.stats.report(self.ssrc, last_sender_report, delay)
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ssrc, feedback, next) = (self.config.ssrc, self.notes.feedback(), self.next);
        write!(f, "Reporter {{ ssrc: {ssrc:#x}, feedback: {feedback:?}, next: {next:?} }}")
    }
}
