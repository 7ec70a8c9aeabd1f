//! A receiver that works on bytes: RTP and RTCP in, RTCP out.

use alloc::vec::Vec;

use weir::feedback::Ecn;
use weir::units::{TimeDelta, Timestamp};
use weir_wire::Error;
use weir_wire::rtp::{ExtensionIds, View};

use crate::interval::Random;
use crate::message::{Message, RtcpEvent, messages};
use crate::reporter::{Feedback, Reporter, ReporterConfig};

/// Configuration of a [`Receiver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiverConfig {
    /// The receiver's own SSRC.
    pub ssrc: u32,
    /// The negotiated ids of the header extensions.
    pub extensions: ExtensionIds,
    /// The feedback format.
    pub feedback: Feedback,
    /// Time between TWCC or CCFB packets. The default is 100 ms.
    pub interval: TimeDelta,
    /// Clock rate of the RTP timestamps, in Hz. The default is 90,000, as for video.
    pub clock_rate: u32,
}

impl ReceiverConfig {
    /// The defaults.
    pub const fn new(ssrc: u32, extensions: ExtensionIds, feedback: Feedback) -> Self {
        Self {
            ssrc,
            extensions,
            feedback,
            interval: TimeDelta::from_millis(100),
            clock_rate: 90_000,
        }
    }

    weir::with! {
        const
        with_interval: interval: TimeDelta,
        with_clock_rate: clock_rate: u32,
    }

    fn reporter(&self) -> ReporterConfig {
        ReporterConfig::new(self.ssrc)
            .with_transport_sequence_number(self.extensions.transport_sequence_number)
            .with_interval(self.interval)
            .with_clock_rate(self.clock_rate)
    }
}

/// Reports arrived packets to a congestion-controlled sender.
///
/// ```
/// use weir::Timestamp;
/// use weir::feedback::Ecn;
/// use weir_rtcp::{Feedback, Receiver, ReceiverConfig, seeded};
/// use weir_wire::rtp::{ExtensionId, ExtensionIds, PayloadType, RtpHeader};
///
/// let id = ExtensionId::new(1); // Of the transport-wide number, from the SDP.
/// let ids = ExtensionIds::NONE.with_transport_sequence_number(id);
/// let mut now = Timestamp::ZERO;
/// let config = ReceiverConfig::new(0xbeef, ids, Feedback::Twcc);
/// let mut receiver = Receiver::new(now, config, seeded(0xbeef));
///
/// let header = RtpHeader::new(0xcafe, PayloadType::new(96).unwrap(), 0, 0)
///     .with_transport_sequence_number(id.map(|id| (id, 0)));
/// let mut packet = vec![0; header.size() + 1_000];
/// header.emit(&mut packet);
/// receiver.on_rtp(now, &packet, Ecn::NotEct)?;
/// now = receiver.next_timeout();
/// receiver.on_timeout(now);
/// assert!(receiver.next_rtcp().is_some(), "feedback, for the socket");
/// # Ok::<(), weir_wire::Error>(())
/// ```
#[derive(Debug)]
pub struct Receiver {
    reporter: Reporter,
}

impl Receiver {
    /// A receiver that starts at `now`. `random` spreads the times of its receiver reports.
    pub fn new(now: Timestamp, config: ReceiverConfig, random: Random) -> Self {
        Self { reporter: Reporter::new(now, config.feedback, config.reporter(), random) }
    }

    /// An RTP packet arrived with these ECN bits in its IP header ([`Ecn::NotEct`] if the host
    /// cannot read them).
    ///
    /// # Errors
    /// If the bytes are not an RTP packet. The receiver is then unchanged.
    pub fn on_rtp(&mut self, now: Timestamp, bytes: &[u8], ecn: Ecn) -> Result<(), Error> {
        // Only the header is parsed: the payload may be encrypted.
        let view = View::parse_header(bytes)?;
        self.reporter.on_packet(now, &view, ecn);
        Ok(())
    }

    /// An RTCP datagram arrived; it may contain any bytes. Sender reports are used. Messages for a
    /// sender's congestion control are dropped. Returns everything else, in the order of the
    /// datagram.
    pub fn on_rtcp<'a>(&mut self, now: Timestamp, bytes: &'a [u8]) -> Vec<RtcpEvent<'a>> {
        let mut events = Vec::new();
        for message in messages(bytes) {
            match message {
                Ok(Message::Report(view)) => {
                    if let Some(info) = view.sender_info() {
                        self.reporter.on_sender_report(now, view.sender_ssrc(), info);
                    }
                }
                Ok(_) => {}
                Err(event) => events.push(event),
            }
        }
        events
    }

    /// When [`Receiver::on_timeout`] is due.
    pub fn next_timeout(&self) -> Timestamp {
        self.reporter.next_timeout()
    }

    /// Writes the RTCP that is due, for [`Receiver::next_rtcp`]. A call before
    /// [`Receiver::next_timeout`] does nothing.
    pub fn on_timeout(&mut self, now: Timestamp) {
        self.reporter.on_timeout(now);
    }

    /// The next RTCP packet to send. Call it until it returns `None`, after each other call.
    pub fn next_rtcp(&mut self) -> Option<&[u8]> {
        self.reporter.next_rtcp()
    }

    /// Switches to another feedback format. Earlier arrivals are first reported in the old format.
    pub fn set_feedback(&mut self, now: Timestamp, feedback: Feedback) {
        self.reporter.set_feedback(now, feedback);
    }
}
