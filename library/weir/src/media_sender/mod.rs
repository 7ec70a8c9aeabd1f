//! The sending half of a media flow: send history, pacer and controller in one object.
//!
//! The three must be called in a fixed order. The [`SendHistory`] numbers a packet that leaves the
//! [`Pacer`]. The packet is then reported to the [`Controller`]. The new [`Target`] must reach the
//! pacer before the next packet may leave. [`MediaSender`] ensures this order. Three kinds of
//! events drive it:
//!
//! ```text
//! media   -> enqueue, enqueue_as, enqueue_urgent
//! network -> on_feedback, on_receiver_limit, on_round_trip_time, on_route_change
//! time    -> on_timeout, then next_packet until it returns None   (when next_timeout says so)
//! ```
//!
//! Its outputs are packets and a target bitrate for the encoder. It does not handle wire formats.
//! The crate `weir-rtcp` parses feedback packets and offers the same sender with bytes on both
//! sides.

mod encoder;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;

use crate::controller::{Controller, Metrics, RateLimits, Target};
use crate::feedback::{FeedbackReport, Outgoing, RtpNumber, SendHistory, SentPacket};
use crate::pacer::{Pacer, Release};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};
pub use encoder::MAX_QUEUE_FOR_FRAMES;
use encoder::RepairRate;

/// Sends media at the rate that its congestion controller allows.
///
/// `M` is the type of the queued items: a packet, a buffer or a handle. `C` is the controller.
///
/// Each `now` is read from the caller's clock, which may have any origin. If `now` is earlier than
/// in an earlier call, the earlier call's value is used.
///
/// This example sends one packet of 1200 bytes every 10 ms for a second. It omits the network.
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
    /// The latest `now` of all calls so far.
    now: Timestamp,
    history: SendHistory,
    control: Control<M, C>,
    uncounted: DataSize,
    repair: RepairRate,
}

/// The controller and the pacer that follows its target.
#[derive(Clone, Debug)]
struct Control<M, C> {
    controller: C,
    pacer: Pacer<M>,
    /// The controller's target after the last call.
    target: Target,
    change: Option<TargetChange>,
}

/// What a packet carries. It decides when the packet leaves, and what is left to the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketKind {
    /// Sound. It leaves at once, before everything else. It is charged to the pacing rate, and
    /// taken off [`MediaSender::media_bitrate`].
    Audio,
    /// A packet that is sent again. It leaves before the pictures that wait, because it is already
    /// late. It is taken off [`MediaSender::media_bitrate`], too.
    Repair,
    /// Pictures, and everything else: in order, at the pacing rate.
    Video,
}

/// A packet to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacedPacket<P> {
    /// The queued item, or a request for padding.
    pub content: P,
    /// The size given when it was enqueued, or the size of the padding to send.
    pub size: DataSize,
    /// Its transport-wide sequence number, its probe if any, and whether it is padding.
    pub sent: SentPacket,
}

/// A change of the target bitrate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TargetChange {
    /// The target bitrate at the previous call of [`MediaSender::take_change`].
    pub from: Bitrate,
    /// The target bitrate after the newest change.
    pub to: Bitrate,
    /// The controller's metrics at the newest change, including its reason.
    pub metrics: Metrics,
}

impl<M, C: Controller> MediaSender<M, C> {
    /// A sender with an empty queue. Its first packet gets the transport-wide sequence number 0.
    pub fn new(controller: C) -> Self {
        let target = controller.target();
        let control = Control { pacer: Pacer::new(&target), controller, target, change: None };
        Self {
            now: Timestamp::from_nanos(i64::MIN),
            history: SendHistory::default(),
            control,
            uncounted: DataSize::ZERO,
            repair: RepairRate::default(),
        }
    }

    /// Sets the size of the padding packets that the caller sends. The default is
    /// [`PADDING_PACKET`](crate::pacer::PADDING_PACKET).
    ///
    /// # Panics
    /// If the size is zero.
    pub fn set_padding_size(&mut self, size: DataSize) {
        self.control.pacer.set_padding_size(size);
    }

    /// Sets whether each probe begins with a padding packet, which the caller must then be able to
    /// send: see [`Pacer::set_leads_probes`].
    pub fn set_leads_probes(&mut self, leads_probes: bool) {
        self.control.pacer.set_leads_probes(leads_probes);
    }

    /// Limits the send history to this many packets and takes the memory for them now: see
    /// [`SendHistory::set_capacity`].
    pub fn set_history_capacity(&mut self, packets: usize) {
        self.history.set_capacity(packets);
    }

    /// Subtracts this many bytes from each packet's size for the controller and for the sizes of
    /// probes, but not for the pacing rate.
    /// A browser, for instance, does not count the authentication tag that encryption adds later.
    pub fn set_uncounted(&mut self, bytes: DataSize) {
        self.uncounted = bytes;
        self.control.pacer.set_uncounted(bytes);
    }

    /// Puts packets of pictures at the end of the send queue, each with its size.
    /// [`SentPacket::size`] says which headers count. Pass all packets of a frame in one call: the
    /// controller looks at the queue once per call. Sound that is passed here waits behind the
    /// pictures: use [`enqueue_as`](Self::enqueue_as).
    pub fn enqueue(&mut self, now: Timestamp, packets: impl IntoIterator<Item = (DataSize, M)>) {
        self.enqueue_as(now, PacketKind::Video, packets);
    }

    /// Puts packets that are sent again before the pictures: [`PacketKind::Repair`].
    pub fn enqueue_urgent(
        &mut self,
        now: Timestamp,
        packets: impl IntoIterator<Item = (DataSize, M)>,
    ) {
        self.enqueue_as(now, PacketKind::Repair, packets);
    }

    /// Puts packets of this kind into the send queue, each with its size: see
    /// [`enqueue`](Self::enqueue).
    pub fn enqueue_as(
        &mut self,
        now: Timestamp,
        kind: PacketKind,
        packets: impl IntoIterator<Item = (DataSize, M)>,
    ) {
        let mut added = DataSize::ZERO;
        self.change_queue(now, |pacer| {
            for (size, packet) in packets {
                added += size;
                match kind {
                    PacketKind::Audio => pacer.enqueue_audio(size, packet),
                    PacketKind::Repair => pacer.enqueue_urgent(size, packet),
                    PacketKind::Video => pacer.enqueue(size, packet),
                }
            }
        });
        if kind != PacketKind::Video {
            self.repair.on_packet(self.now, added);
        }
    }

    /// Puts a packet at the end of the queue that was computed from packets already sent, such as
    /// parity. It does not count as new media: the controller learns of it only from
    /// [`SentPacket::queued`] of the next packet.
    pub fn enqueue_parity(&mut self, size: DataSize, packet: M) {
        self.repair.on_packet(self.now, size);
        self.control.pacer.enqueue(size, packet);
    }

    /// Discards all queued packets.
    pub fn clear_queue(&mut self, now: Timestamp) {
        self.change_queue(now, Pacer::clear);
    }

    /// Discards all queued packets but those of audio.
    pub fn clear_pictures(&mut self, now: Timestamp) {
        self.change_queue(now, Pacer::clear_pictures);
    }

    fn change_queue(&mut self, now: Timestamp, change: impl FnOnce(&mut Pacer<M>)) {
        let now = self.advance(now);
        let before = self.control.pacer.queued();
        change(&mut self.control.pacer);
        let queued = self.control.pacer.queued();
        self.control.controller.on_media_queued(now, queued.saturating_sub(before), queued);
        self.control.obey(now);
    }

    /// When [`MediaSender::on_timeout`] and [`MediaSender::next_packet`] are due next; `None` if
    /// only new media or feedback can change anything. The time may lie in the past.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let timer = self.control.controller.next_timeout();
        [timer, self.next_send_time()].into_iter().flatten().min()
    }

    /// When the next packet may leave. `None` if the queue is empty or the congestion window is
    /// full.
    pub fn next_send_time(&self) -> Option<Timestamp> {
        self.control.pacer.next_send_time()
    }

    /// Calls the controller's timeout handler if it is due. A call before
    /// [`MediaSender::next_timeout`] does nothing.
    pub fn on_timeout(&mut self, now: Timestamp) {
        let now = self.advance(now);
        if self.control.controller.next_timeout().is_some_and(|due| due <= now) {
            self.control.controller.on_timeout(now);
            self.control.obey(now);
        }
    }

    /// Returns the next packet if one may leave now. Call it until it returns `None`.
    ///
    /// If the content is `None`, the caller should send a padding packet of the given size. This
    /// happens when a probe needs more than the queued media, or when media does not reach the
    /// requested padding rate. A caller that cannot send padding ignores it; feedback will then
    /// report this packet as lost.
    ///
    /// For feedback per RTP stream (CCFB, receiver reports), use
    /// [`next_packet_with`](MediaSender::next_packet_with).
    pub fn next_packet(&mut self, now: Timestamp) -> Option<PacedPacket<Option<M>>> {
        self.next_packet_with(now, |release| (release.media, None))
    }

    /// Like [`next_packet`](MediaSender::next_packet), for callers that assign RTP sequence
    /// numbers. `make` receives the released item or padding request, and returns the content and
    /// its RTP number.
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

    /// The host's stack sent a packet past the queue, such as a retransmission from a cache of its
    /// own. It gets the next transport-wide sequence number, and the queued packets wait for it, up
    /// to 200 ms.
    pub fn on_packet_sent(
        &mut self,
        now: Timestamp,
        size: DataSize,
        rtp: Option<RtpNumber>,
    ) -> SentPacket {
        let now = self.advance(now);
        self.repair.on_packet(now, size);
        self.control.pacer.on_packet_sent(now, size);
        let outgoing = Outgoing {
            size: size.saturating_sub(self.uncounted),
            queued: self.control.pacer.queued(),
            probe: None,
            padding: false,
            rtp,
        };
        let sent = self.history.on_packet_sent(now, outgoing);
        self.control.controller.on_packet_sent(now, &sent);
        self.control.obey(now);
        sent
    }

    /// Processes feedback. `join` combines it with the send history into a report, which goes to
    /// the controller. Returns that report. If `join` returns `None`, the feedback contains nothing
    /// new and is ignored.
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

    /// Like [`on_feedback`](MediaSender::on_feedback), for a compound packet that also contains a
    /// round-trip time. The controller gets both before its target is read.
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

    /// A receiver report gave a round-trip time of the path.
    pub fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        let now = self.advance(now);
        self.control.controller.on_round_trip_time(now, rtt);
        self.control.obey(now);
    }

    /// The receiver limits the bitrate (REMB); `None` lifts the limit.
    pub fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        let now = self.advance(now);
        self.control.controller.on_receiver_limit(now, limit);
        self.control.obey(now);
    }

    /// The application changed the range of the target bitrate.
    pub fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        let now = self.advance(now);
        self.control.controller.set_limits(now, limits);
        self.control.obey(now);
    }

    /// The most that the source could use now; `None` for an unknown amount. See
    /// [`Controller::set_desired_bitrate`].
    pub fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        let now = self.advance(now);
        self.control.controller.set_desired_bitrate(now, desired);
        self.control.obey(now);
    }

    /// Changes something of the controller that [`Controller`] has no method for, and obeys its new
    /// target.
    pub fn change_controller<R>(&mut self, now: Timestamp, change: impl FnOnce(&mut C) -> R) -> R {
        let now = self.advance(now);
        let result = change(&mut self.control.controller);
        self.control.obey(now);
        result
    }

    /// Packets take another route from now on. The controller starts anew, and feedback on packets
    /// of the old route is ignored. What waits in the queue takes the new route.
    pub fn on_route_change(&mut self, now: Timestamp) {
        let now = self.advance(now);
        self.history.forget_all();
        self.control.controller.on_route_change(now);
        self.control.obey(now);
    }

    /// Sets this flow's new share of the rate of several coupled flows: see
    /// [`FlowGroup`](crate::coupled::FlowGroup).
    pub fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        let now = self.advance(now);
        self.control.controller.on_shared_rate(now, share);
        self.control.obey(now);
    }

    /// The controller's current target: the bitrate for all packets, and the limits for the pacer.
    pub fn target(&self) -> &Target {
        &self.control.target
    }

    /// What the encoder of the pictures may make, headers included: [`Target::source_bitrate`] less
    /// the rate of audio, retransmissions, parity and packets past the queue in the last second,
    /// less what waits in
    /// the queue for more than 50 ms, and at least half of it. The target is for all of these: an
    /// encoder that has the whole of it makes a link that loses packets lose more, and the queue
    /// stays long.
    pub fn media_bitrate(&self) -> Bitrate {
        encoder::media_bitrate(&self.control.target, self.queued(), self.repair.rate(self.now))
    }

    /// How long the queue takes to leave at the pacing rate.
    pub fn queue_time(&self) -> TimeDelta {
        encoder::queue_time(&self.control.target, self.queued())
    }

    /// Whether a picture that is taken now should be encoded. With more than
    /// [`MAX_QUEUE_FOR_FRAMES`] in the queue it would be late: leave it out before the encoder,
    /// which may not be able to make as little as [`MediaSender::media_bitrate`].
    pub fn wants_frame(&self) -> bool {
        self.queue_time() <= MAX_QUEUE_FOR_FRAMES
    }

    /// The change of the target bitrate since the last call of this method, if any. Several changes
    /// are merged into one, with the metrics of the last.
    pub fn take_change(&mut self) -> Option<TargetChange> {
        self.control.change.take()
    }

    /// Bytes in the send queue.
    pub fn queued(&self) -> DataSize {
        self.control.pacer.queued()
    }

    /// The controller, for its metrics and its own timer.
    pub fn controller(&self) -> &C {
        &self.control.controller
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }
}

impl<M, C: Controller> Control<M, C> {
    /// Reads the controller's target, passes it to the pacer, and records a change of the bitrate.
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
