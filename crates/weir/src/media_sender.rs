//! The sending half of a media flow: send history, pacer and controller in one object.
//!
//! The three must be called in a certain order: a packet that leaves the [`Pacer`] is numbered by the
//! [`SendHistory`], then told to the [`Controller`], whose new [`Target`] goes back to the pacer before
//! the next packet may leave. [`MediaSender`] does that, so its caller cannot get it wrong. It is driven
//! by three kinds of events:
//!
//! ```text
//! media   -> enqueue, enqueue_urgent
//! network -> on_feedback, on_receiver_limit, on_round_trip_time
//! time    -> on_timeout, then next_packet until it gives none     (when next_timeout says so)
//! ```
//!
//! and it answers with packets and with a target bitrate for the encoder. It knows nothing of wire
//! formats: the crate `weir-rtcp` reads feedback packets and offers this same sender with bytes on both
//! sides.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use crate::controller::{Controller, Metrics, Target};
use crate::feedback::{FeedbackReport, Outgoing, RtpNumber, SendHistory, SentPacket};
use crate::pacer::{Pacer, Release};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Sends media at the rate that its congestion controller allows.
///
/// `M` is what waits in the send queue: a packet, a buffer, a handle. `C` is the controller.
///
/// Every method that takes a `now` takes the time of the caller's own clock, from any origin. A `now`
/// before that of an earlier call counts as the earlier one.
///
/// A second of media of 1200 bytes each 10 ms, over a network that this example leaves out:
///
/// ```
/// use weir::{Algorithm, Bitrate, DataSize, MediaSender, RateLimits, TimeDelta, Timestamp};
///
/// let kbps = Bitrate::from_kbps;
/// let limits = RateLimits::new(kbps(150), kbps(1_000), kbps(2_500)).expect("min <= start <= max");
/// let mut sender = MediaSender::new(Algorithm::Nada.build(limits));
/// let mut now = Timestamp::ZERO;
/// let mut sent = 0;
/// for frame in 0..100 {
///     sender.enqueue(now, [(DataSize::from_bytes(1_200), frame)]);
///     let next_frame = now + TimeDelta::from_millis(10);
///     while now < next_frame {
///         sender.on_timeout(now);
///         while let Some(packet) = sender.next_packet(now) {
///             // Here the packet goes to the socket, with packet.sent.transport_sequence_number().
///             sent += 1;
///         }
///         now = sender.next_timeout().map_or(next_frame, |due| due.min(next_frame));
///     }
/// }
/// assert!((90..=100).contains(&sent));
/// ```
#[derive(Clone, Debug)]
pub struct MediaSender<M, C = Box<dyn Controller + Send>> {
    /// The latest `now` of all calls.
    now: Timestamp,
    history: SendHistory,
    control: Control<M, C>,
    uncounted: DataSize,
}

/// The controller with the pacer that obeys it.
#[derive(Clone, Debug)]
struct Control<M, C> {
    controller: C,
    pacer: Pacer<M>,
    /// The controller's target after the last call.
    target: Target,
    change: Option<TargetChange>,
}

/// A packet that leaves now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacedPacket<P> {
    /// What leaves.
    pub content: P,
    /// The size with which it was put into the queue, or the size of the padding that is asked for.
    pub size: DataSize,
    /// Its transport-wide number, the probe that it belongs to, whether it is padding.
    pub sent: SentPacket,
}

/// A change of the target bitrate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TargetChange {
    /// The target bitrate when changes were last taken.
    pub from: Bitrate,
    /// The target bitrate after the newest change.
    pub to: Bitrate,
    /// Why it changed, and the controller's internal signals at that time.
    pub metrics: Metrics,
}

impl<M, C: Controller> MediaSender<M, C> {
    /// A sender with an empty queue whose first packet gets the transport-wide number 0.
    pub fn new(controller: C) -> Self {
        let target = controller.target();
        let control = Control { pacer: Pacer::new(&target), controller, target, change: None };
        Self {
            now: Timestamp::from_nanos(i64::MIN),
            history: SendHistory::default(),
            control,
            uncounted: DataSize::ZERO,
        }
    }

    /// Sets the size of the padding packets that the caller makes. The default is
    /// [`PADDING_PACKET`](crate::pacer::PADDING_PACKET).
    ///
    /// # Panics
    /// If the size is zero.
    pub fn set_padding_size(&mut self, size: DataSize) {
        self.control.pacer.set_padding_size(size);
    }

    /// Hides this many bytes of each packet from the controller, but not from the pacer. A browser, for
    /// instance, does not count the authentication tag that encryption adds later.
    pub fn set_uncounted(&mut self, bytes: DataSize) {
        self.uncounted = bytes;
    }

    /// Puts packets at the end of the send queue, each with its size: see [`SentPacket::size`] for what
    /// counts. Packets of one frame belong into one call, since controllers look at the queue after it.
    pub fn enqueue(&mut self, now: Timestamp, packets: impl IntoIterator<Item = (DataSize, M)>) {
        self.change_queue(now, |pacer| {
            packets.into_iter().for_each(|(size, packet)| pacer.enqueue(size, packet));
        });
    }

    /// Puts packets before all that wait, but behind earlier urgent ones. Retransmissions belong here:
    /// their media is late already.
    pub fn enqueue_urgent(
        &mut self,
        now: Timestamp,
        packets: impl IntoIterator<Item = (DataSize, M)>,
    ) {
        self.change_queue(now, |pacer| {
            packets.into_iter().for_each(|(size, packet)| pacer.enqueue_urgent(size, packet));
        });
    }

    /// Puts a packet at the end of the queue that was made of packets which have just left, as parity
    /// is. It is not new media: the controller learns of it by [`SentPacket::queued`] of the next packet.
    pub fn enqueue_parity(&mut self, size: DataSize, packet: M) {
        self.control.pacer.enqueue(size, packet);
    }

    /// Throws away all packets that wait.
    pub fn clear_queue(&mut self, now: Timestamp) {
        self.change_queue(now, Pacer::clear);
    }

    fn change_queue(&mut self, now: Timestamp, change: impl FnOnce(&mut Pacer<M>)) {
        let now = self.advance(now);
        let before = self.control.pacer.queued();
        change(&mut self.control.pacer);
        let queued = self.control.pacer.queued();
        self.control.controller.on_media_queued(now, queued.saturating_sub(before), queued);
        self.control.obey(now);
    }

    /// When [`MediaSender::on_timeout`] and [`MediaSender::next_packet`] are due next; `None` if only
    /// new media or feedback can change anything. The time may lie in the past.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let timer = self.control.controller.next_timeout();
        [timer, self.next_send_time()].into_iter().flatten().min()
    }

    /// When the next packet may leave; `None` while there is none, or the controller's congestion window
    /// is full.
    pub fn next_send_time(&self) -> Option<Timestamp> {
        self.control.pacer.next_send_time()
    }

    /// Lets the controller act on the time. A call before [`MediaSender::next_timeout`] does nothing.
    pub fn on_timeout(&mut self, now: Timestamp) {
        let now = self.advance(now);
        if self.control.controller.next_timeout().is_some_and(|due| due <= now) {
            self.control.controller.on_timeout(now);
            self.control.obey(now);
        }
    }

    /// The next packet, if one may leave now. Call it until it returns `None`.
    ///
    /// Content `None` asks the caller for a padding packet of the given size: a probe needs more than
    /// the media at hand, or the controller wants a rate that media do not fill. A caller that cannot
    /// send padding throws it away; feedback will then call it lost.
    ///
    /// Feedback by RTP stream (CCFB, receiver reports) needs
    /// [`next_packet_with`](MediaSender::next_packet_with).
    pub fn next_packet(&mut self, now: Timestamp) -> Option<PacedPacket<Option<M>>> {
        self.next_packet_with(now, |release| (release.media, None))
    }

    /// The same for callers that know the RTP sequence number of what leaves. `make` gets what comes out
    /// of the queue, or a request for padding, and returns what leaves and its number.
    pub fn next_packet_with<P>(
        &mut self,
        now: Timestamp,
        make: impl FnOnce(Release<M>) -> (P, Option<RtpNumber>),
    ) -> Option<PacedPacket<P>> {
        let now = self.advance(now);
        let release = self.control.pacer.dequeue(now)?;
        let Release { size, probe, .. } = release;
        let padding = release.media.is_none();
        let (content, rtp) = make(release);
        let counted = size.saturating_sub(self.uncounted);
        let queued = self.control.pacer.queued();
        let outgoing = Outgoing { size: counted, queued, probe, padding, rtp };
        let sent = self.history.on_packet_sent(now, outgoing);
        self.control.controller.on_packet_sent(now, &sent);
        self.control.obey(now);
        Some(PacedPacket { content, size, sent })
    }

    /// Feedback arrived. `join` lays it beside what was sent, and its report goes to the controller;
    /// returns the report. If `join` returns `None`, the feedback told nothing new and nothing happens.
    ///
    /// ```
    /// # use weir::feedback::TwccHeader;
    /// # use weir::{Algorithm, Bitrate, DataSize, MediaSender, RateLimits, TimeDelta, Timestamp};
    /// # let limits = RateLimits::new(Bitrate::from_kbps(1), Bitrate::from_kbps(9), Bitrate::MAX);
    /// # let mut sender = MediaSender::new(Algorithm::Nada.build(limits.unwrap()));
    /// # sender.enqueue(Timestamp::ZERO, [(DataSize::from_bytes(1_200), ())]);
    /// # sender.next_packet(Timestamp::ZERO);
    /// # let now = Timestamp::from_millis(50);
    /// // Packet 0 arrived 20 ms after the receiver's reference time.
    /// let header = TwccHeader { reference_time: 0, feedback_count: 0 };
    /// let arrivals = [(0, Some(80))];
    /// let report = sender.on_feedback(now, |sent| sent.on_twcc(header, arrivals.into_iter()));
    /// assert_eq!(report.unwrap().rtt(now), Some(TimeDelta::from_millis(50)));
    /// ```
    pub fn on_feedback(
        &mut self,
        now: Timestamp,
        join: impl FnOnce(&mut SendHistory) -> Option<&FeedbackReport>,
    ) -> Option<&FeedbackReport> {
        self.on_feedback_with(now, join, |_| None)
    }

    /// The same for feedback that came with a round-trip time, as a compound packet brings it: the
    /// controller hears of both before it changes anything.
    pub fn on_feedback_with(
        &mut self,
        now: Timestamp,
        join: impl FnOnce(&mut SendHistory) -> Option<&FeedbackReport>,
        round_trip_time: impl FnOnce(&FeedbackReport) -> Option<TimeDelta>,
    ) -> Option<&FeedbackReport> {
        let now = self.advance(now);
        let report = join(&mut self.history)?;
        self.control.controller.on_feedback(now, report);
        if let Some(rtt) = round_trip_time(report) {
            self.control.controller.on_round_trip_time(now, rtt);
        }
        self.control.obey(now);
        Some(report)
    }

    /// A receiver report measured the round-trip time of the path.
    pub fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        let now = self.advance(now);
        self.control.controller.on_round_trip_time(now, rtt);
        self.control.obey(now);
    }

    /// The receiver wants at most this bitrate (REMB); `None` lifts its limit.
    pub fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        let now = self.advance(now);
        self.control.controller.on_receiver_limit(now, limit);
        self.control.obey(now);
    }

    /// The flow's share of what several flows of this sender have together changed:
    /// see [`FlowGroup`](crate::coupled::FlowGroup).
    pub fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        let now = self.advance(now);
        self.control.controller.on_shared_rate(now, share);
        self.control.obey(now);
    }

    /// What the controller asks for: the bitrate for the encoder, and what the pacer keeps to.
    pub fn target(&self) -> &Target {
        &self.control.target
    }

    /// How the target bitrate differs from what it was at the last call of this method, if it does.
    /// Several changes count as one, with the reason of the last.
    pub fn take_change(&mut self) -> Option<TargetChange> {
        self.control.change.take()
    }

    /// Bytes that wait in the send queue.
    pub fn queued(&self) -> DataSize {
        self.control.pacer.queued()
    }

    /// The controller, to read its metrics or its own timer.
    pub fn controller(&self) -> &C {
        &self.control.controller
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }
}

impl<M, C: Controller> Control<M, C> {
    /// Reads the controller's target, hands it to the pacer, and notes a change of the bitrate.
    fn obey(&mut self, now: Timestamp) {
        let target = self.controller.target();
        self.pacer.set_target(now, &target);
        let old = core::mem::replace(&mut self.target, target);
        if old.bitrate != target.bitrate {
            let from = self.change.as_ref().map_or(old.bitrate, |change| change.from);
            let metrics = self.controller.metrics();
            let change = TargetChange { from, to: target.bitrate, metrics };
            self.change = (from != target.bitrate).then_some(change);
        }
    }
}
