//! A sender that works on bytes: RTP packets and RTCP datagrams in, RTP packets and RTCP out.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU8;

use weir::controller::{Controller, Target};
use weir::feedback::LossCounts;
use weir::media_sender::{MediaSender, PacedPacket, TargetChange};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir::{PacketKind, RateLimits};
use weir_wire::Error;
use weir_wire::report::ReportBlock;
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader, View};

use crate::circuit_breaker::{CircuitBreak, CircuitBreaker};
use crate::feedback_input::FeedbackInput;
use crate::interval::Random;
use crate::message::{Message, RtcpEvent, messages};
use crate::outbox::Outbox;
use crate::rtp_packet::{rtp_number, rtp_units, write_element};
use crate::sender_reports::SenderReports;

/// Bytes of padding in a padding packet: the maximum that its last byte can express [RFC3550 §5.1].
const PADDING: NonZeroU8 = NonZeroU8::MAX;
/// Sizes of the extensions' data, in bytes.
const NUMBER_SIZE: usize = 2;
const TIME_SIZE: usize = 3;
/// Maximum number of buffers kept for reuse. At 1200 bytes each, they take 1.2 MB.
const MAX_SPARE: usize = 1_024;

/// Wire-level configuration of a [`Sender`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderConfig {
    /// SSRC of the media stream; sender reports are sent for it.
    pub ssrc: u32,
    /// The header extensions that the sender fills in. Each packet must contain those that have an
    /// id.
    pub extensions: ExtensionIds,
    /// Bytes that other layers add to each RTP packet; they count towards the rate. The default is
    /// 28: IPv4 and UDP. Add the overhead of encryption.
    pub overhead: DataSize,
    /// SSRC of padding packets. The default is `ssrc` plus one. Media must not use it: such packets
    /// are refused. A host that gives padding and repeats one numbering may send
    /// [`PacketKind::Repair`] on it.
    pub padding_ssrc: u32,
    /// Payload type of padding packets. The default is 127. The receiver need not know it. Media
    /// must not use it: such packets are refused, except for [`PacketKind::Repair`].
    pub padding_payload_type: PayloadType,
    /// Clock rate of the RTP timestamps, in Hz. The default is 90,000, as for video.
    pub clock_rate: u32,
    /// Whether to send sender reports. Set it to false if the host sends its own.
    pub sender_reports: bool,
    /// The most packets that the send history keeps, whose memory is then taken at the start: see
    /// [`SendHistory::set_capacity`](weir::SendHistory::set_capacity). The default is `None`: the
    /// memory grows as far as 10 s of packets need.
    pub history_capacity: Option<usize>,
    /// Whether [`Sender::circuit_break`] says when the flow must stop [RFC8083]. The default is
    /// false.
    ///
    /// [RFC8083]: https://www.rfc-editor.org/rfc/rfc8083
    pub circuit_breaker: bool,
}

impl SenderConfig {
    /// The defaults for a stream with this SSRC, whose packets have these extensions.
    pub const fn new(ssrc: u32, extensions: ExtensionIds) -> Self {
        Self {
            ssrc,
            extensions,
            overhead: DataSize::from_bytes(28),
            padding_ssrc: ssrc.wrapping_add(1),
            padding_payload_type: PayloadType::new(127).unwrap(),
            clock_rate: 90_000,
            sender_reports: true,
            history_capacity: None,
            circuit_breaker: false,
        }
    }

    /// The defaults for TWCC: the packets have one extension, the transport-wide sequence number,
    /// under this id.
    pub const fn twcc(ssrc: u32, id: ExtensionId) -> Self {
        Self::new(ssrc, ExtensionIds::NONE.with_transport_sequence_number(Some(id)))
    }

    weir::with! {
        const
        with_overhead: overhead: DataSize,
        with_padding_ssrc: padding_ssrc: u32,
        with_padding_payload_type: padding_payload_type: PayloadType,
        with_clock_rate: clock_rate: u32,
        with_sender_reports: sender_reports: bool,
        with_history_capacity: history_capacity: Option<usize>,
        with_circuit_breaker: circuit_breaker: bool,
    }
}

/// Why a packet cannot be queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The bytes are not an RTP packet.
    NotRtp(Error),
    /// The packet lacks a configured header extension, or the extension has the wrong length.
    NoExtension(ExtensionId),
    /// The packet has the SSRC of padding: choose another with
    /// [`SenderConfig::with_padding_ssrc`].
    PaddingSsrc(u32),
    /// The packet has the payload type of padding: choose another with
    /// [`SenderConfig::with_padding_payload_type`].
    PaddingPayloadType(PayloadType),
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRtp(error) => write!(f, "not an RTP packet: {error}"),
            Self::NoExtension(id) => write!(f, "no header extension with id {}", id.get()),
            Self::PaddingSsrc(ssrc) => {
                write!(f, "{ssrc:#x} is the SSRC of padding packets; choose another one for them")
            }
            Self::PaddingPayloadType(payload_type) => {
                let number = payload_type.get();
                write!(f, "{number} is the payload type of padding; choose another one for it")
            }
        }
    }
}
impl core::error::Error for EnqueueError {}

/// Sends RTP packets at the rate that a controller allows.
///
/// The input is packets from the host's RTP stack, with space for the header extensions. When a
/// packet may leave, it is returned with the extensions filled in. Padding packets come out between
/// them.
pub struct Sender<C = Box<dyn Controller + Send>> {
    media: MediaSender<Vec<u8>, C>,
    config: SenderConfig,
    reports: Option<SenderReports>,
    breaker: Option<CircuitBreaker>,
    padding_number: u16,
    /// When the last media packet was queued, and its RTP timestamp.
    last_media: Option<(Timestamp, u32)>,
    feedback: FeedbackInput,
    /// The packets of one call that were checked so far. Empty between calls.
    checked: Vec<(DataSize, Vec<u8>)>,
    /// Empty buffers for reuse.
    spare: Vec<Vec<u8>>,
    /// RTCP that the host has not taken yet.
    due: Outbox,
}

impl<C: Controller> Sender<C> {
    /// A sender that starts at `now`. `random` spreads the times of its sender reports.
    pub fn new(now: Timestamp, controller: C, config: SenderConfig, random: Random) -> Self {
        let mut media = MediaSender::new(controller);
        let padding =
            DataSize::from_bytes((header_size(&config) + usize::from(PADDING.get())) as u64);
        media.set_padding_size(padding + config.overhead);
        if let Some(packets) = config.history_capacity {
            media.set_history_capacity(packets);
        }
        Self {
            media,
            config,
            reports: config.sender_reports.then(|| SenderReports::new(now, config.ssrc, random)),
            breaker: if config.circuit_breaker { Some(CircuitBreaker::new(now)) } else { None },
            padding_number: 0,
            last_media: None,
            feedback: FeedbackInput::default(),
            checked: Vec::new(),
            spare: Vec::new(),
            due: Outbox::default(),
        }
    }

    /// Puts the RTP packets of a picture at the end of the send queue. Sound that is passed here
    /// waits behind the pictures: use [`enqueue_as`](Self::enqueue_as).
    ///
    /// # Errors
    /// If one of the packets cannot be sent. Then none of them is queued.
    pub fn enqueue(
        &mut self,
        now: Timestamp,
        packets: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<(), EnqueueError> {
        self.enqueue_as(now, PacketKind::Video, packets)
    }

    /// Puts RTP packets of this kind into the send queue: sound leaves at once, before repair and
    /// pictures.
    ///
    /// ```
    /// # use weir::{Algorithm, Bitrate, PacketKind, RateLimits, Timestamp};
    /// # use weir_rtcp::{Sender, SenderConfig, seeded};
    /// # use weir_wire::rtp::{ExtensionIds, PayloadType, RtpHeader};
    /// # let limits = RateLimits::between(Bitrate::from_kbps(50), Bitrate::MAX)?;
    /// # let config = SenderConfig::new(1, ExtensionIds::NONE);
    /// # let now = Timestamp::ZERO;
    /// # let mut sender = Sender::new(now, Algorithm::Gcc.build(limits), config, seeded(1));
    /// # let packet = |ssrc| {
    /// #     let mut bytes = vec![0; 1_200];
    /// #     RtpHeader::new(ssrc, PayloadType::new(96).unwrap(), 0, 0).emit(&mut bytes);
    /// #     bytes
    /// # };
    /// # let (picture, sound) = (vec![packet(1); 20], packet(7));
    /// sender.enqueue(now, picture)?;
    /// sender.enqueue_as(now, PacketKind::Audio, [sound])?;
    /// let first = sender.next_packet(now).expect("sound waits for nothing");
    /// # assert_eq!(first.content[11], 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The same as [`Sender::enqueue`].
    pub fn enqueue_as(
        &mut self,
        now: Timestamp,
        kind: PacketKind,
        packets: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<(), EnqueueError> {
        self.check(now, kind, packets)?;
        self.media.enqueue_as(now, kind, self.checked.drain(..));
        Ok(())
    }

    /// Puts RTP packets before the queued pictures: [`PacketKind::Repair`].
    ///
    /// # Errors
    /// The same as [`Sender::enqueue`].
    pub fn enqueue_urgent(
        &mut self,
        now: Timestamp,
        packets: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<(), EnqueueError> {
        self.enqueue_as(now, PacketKind::Repair, packets)
    }

    /// Puts a packet of padding at the end of the send queue. A probe starts with a queued packet:
    /// this is one where there is no media, for a host that looks whether media would fit.
    pub fn enqueue_padding(&mut self, now: Timestamp) {
        let timestamp = self.last_media.map_or(0, |(_, timestamp)| timestamp);
        let spare = self.spare.pop().unwrap_or_default();
        let packet = padding(&self.config, &mut self.padding_number, timestamp, spare);
        let size = self.size_of(&packet);
        self.media.enqueue(now, [(size, packet)]);
    }

    /// Moves the packets to `self.checked` if all of them can be sent.
    fn check(
        &mut self,
        now: Timestamp,
        kind: PacketKind,
        packets: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<(), EnqueueError> {
        let mut last_media = self.last_media;
        for packet in packets {
            match check(&self.config, kind, &packet) {
                Ok(view) if view.ssrc() == self.config.ssrc => {
                    last_media = Some((now, view.timestamp()));
                }
                Ok(_) => {}
                Err(error) => {
                    self.checked.clear();
                    return Err(error);
                }
            }
            self.checked.push((self.size_of(&packet), packet));
        }
        self.last_media = last_media;
        Ok(())
    }

    fn size_of(&self, packet: &[u8]) -> DataSize {
        DataSize::from_bytes(packet.len() as u64) + self.config.overhead
    }

    /// An RTCP datagram arrived, compound or of reduced size. It may come from anyone and contain
    /// any bytes. Returns everything that is not for congestion control, in the order of the
    /// datagram: the receiver asks for packets again, and for key frames.
    pub fn on_rtcp<'a>(&mut self, now: Timestamp, bytes: &'a [u8]) -> Vec<RtcpEvent<'a>> {
        let mut events = Vec::new();
        for message in messages(bytes) {
            match message {
                Ok(message) => self.on_message(now, message),
                Err(event) => events.push(event),
            }
        }
        events
    }

    /// A message for congestion control arrived that the host parsed itself. If the receiver sends
    /// several kinds of feedback, one of them counts: see [`FeedbackInput`].
    pub fn on_message(&mut self, now: Timestamp, message: Message<'_>) {
        let reports = self.reports.as_ref();
        if reports.is_none() && matches!(message, Message::Report(_)) {
            return; // It answers the host's sender reports, whose times are unknown here.
        }
        let counts = self.feedback.on_message(now, &message, &mut self.media, |block| {
            reports.and_then(|reports| reports.round_trip_time(now, block))
        });
        self.tell_breaker(now, &message, counts);
    }

    /// Like [`on_message`](Self::on_message), for a host with sender reports of its own.
    /// `round_trip_time` computes the round-trip time of a report block: see
    /// [`SenderReports::round_trip_time`].
    pub fn on_message_with(
        &mut self,
        now: Timestamp,
        message: Message<'_>,
        round_trip_time: impl Fn(&ReportBlock) -> Option<TimeDelta>,
    ) {
        let counts = self.feedback.on_message(now, &message, &mut self.media, round_trip_time);
        self.tell_breaker(now, &message, counts);
    }

    /// A limit alone is no report. Feedback that tells nothing new is one.
    fn tell_breaker(&mut self, now: Timestamp, message: &Message<'_>, counts: Option<LossCounts>) {
        if let Some(breaker) = self.breaker.as_mut().filter(|_| message.kind().is_some()) {
            let rtt = self.media.controller().metrics().rtt;
            breaker.on_feedback(now, counts.unwrap_or_default(), rtt);
        }
    }

    /// Why the flow must stop, if it must: with
    /// [`with_circuit_breaker`](SenderConfig::with_circuit_breaker), and about once a second. Then
    /// send nothing until the user or the signalling starts the flow again, with a new sender.
    pub fn circuit_break(&self, now: Timestamp) -> Option<CircuitBreak> {
        self.breaker.as_ref()?.check(now)
    }

    /// The receiver limits the bitrate by signalling of the host's own; `None` lifts the limit. A
    /// limit in RTCP (REMB) is read by [`on_rtcp`](Self::on_rtcp).
    pub fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.media.on_receiver_limit(now, limit);
    }

    /// When [`Sender::on_timeout`] and [`Sender::next_packet`] are due next.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        // No sender reports before the first media packet.
        let reports = self.reports.as_ref().filter(|_| self.last_media.is_some());
        let report = reports.map(SenderReports::next_timeout);
        [report, self.media.next_timeout()].into_iter().flatten().min()
    }

    /// Handles timeouts, and writes the RTCP that is due, for [`Sender::next_rtcp`]. A call before
    /// [`Sender::next_timeout`] does nothing.
    pub fn on_timeout(&mut self, now: Timestamp) {
        self.media.on_timeout(now);
        let rtp_time = self.rtp_time(now);
        if let (Some(reports), Some(rtp_time)) = (&mut self.reports, rtp_time)
            && let Some(report) = reports.on_timeout(now, rtp_time)
        {
            self.due.push(&report);
        }
    }

    /// The next RTCP packet to send. Call it until it returns `None`.
    pub fn next_rtcp(&mut self) -> Option<&[u8]> {
        self.due.pop()
    }

    /// Converts `now` to an RTP timestamp; `None` before the first packet.
    fn rtp_time(&self, now: Timestamp) -> Option<u32> {
        let (queued, timestamp) = self.last_media?;
        let units = rtp_units((now - queued).as_micros(), self.config.clock_rate);
        Some(timestamp.wrapping_add(units))
    }

    /// An empty buffer for a packet to enqueue. It has the memory of a recycled packet, if there is
    /// one. A host that gives back all packets causes no allocations after some time.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives back a packet that [`Sender::next_packet`] returned, after it was sent.
    pub fn recycle(&mut self, mut packet: Vec<u8>) {
        if self.spare.len() < MAX_SPARE {
            packet.clear();
            self.spare.push(packet);
        }
    }

    /// Returns the next RTP packet to send, if one may leave now. Call it until it returns `None`.
    pub fn next_packet(&mut self, now: Timestamp) -> Option<PacedPacket<Vec<u8>>> {
        let (config, number, spare) = (&self.config, &mut self.padding_number, &mut self.spare);
        let timestamp = self.last_media.map_or(0, |(_, timestamp)| timestamp);
        let mut packet = self.media.next_packet_with(now, |release| {
            let bytes = release.media.unwrap_or_else(|| {
                padding(config, number, timestamp, spare.pop().unwrap_or_default())
            });
            let rtp = View::parse_header(&bytes).ok().map(|view| rtp_number(&view));
            (bytes, rtp)
        })?;
        let number = packet.sent.transport_sequence_number();
        let ExtensionIds { transport_sequence_number, abs_send_time, .. } = self.config.extensions;
        if let Some(id) = transport_sequence_number {
            write_element(&mut packet.content, id, &number.to_be_bytes());
        }
        if let Some(id) = abs_send_time {
            let time = AbsSendTime::from_nanos(now.as_nanos());
            write_element(&mut packet.content, id, &time.to_bytes());
        }
        self.count(&packet);
        if let Some(breaker) = &mut self.breaker {
            breaker.on_packet_sent(now, packet.size);
        }
        Some(packet)
    }

    fn count(&mut self, packet: &PacedPacket<Vec<u8>>) {
        let Some(reports) = &mut self.reports else { return };
        let Ok(view) = View::parse(&packet.content) else { return };
        if view.ssrc() == self.config.ssrc {
            reports.on_packet_sent(DataSize::from_bytes(view.payload().len() as u64));
        }
    }

    /// The controller's current target; its `bitrate` is for all packets.
    pub fn target(&self) -> &Target {
        self.media.target()
    }

    /// What the encoder may make: see [`MediaSender::media_bitrate`].
    pub fn media_bitrate(&self) -> Bitrate {
        self.media.media_bitrate()
    }

    /// Whether a picture that is taken now should be encoded: see [`MediaSender::wants_frame`].
    pub fn wants_frame(&self) -> bool {
        self.media.wants_frame()
    }

    /// The change of the target bitrate since the last call, if any, and its reason.
    pub fn take_change(&mut self) -> Option<TargetChange> {
        self.media.take_change()
    }

    /// Sets this flow's new share of the rate of several coupled flows: see
    /// [`FlowGroup`](weir::coupled::FlowGroup).
    pub fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.media.on_shared_rate(now, share);
    }

    /// The application changed the range of the target bitrate.
    pub fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.media.set_limits(now, limits);
    }

    /// The most that the source could use now; `None` for an unknown amount. See
    /// [`Controller::set_desired_bitrate`].
    pub fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.media.set_desired_bitrate(now, desired);
    }

    /// Packets take another route from now on: see
    /// [`MediaSender::on_route_change`](weir::MediaSender::on_route_change).
    pub fn on_route_change(&mut self, now: Timestamp) {
        self.media.on_route_change(now);
    }

    /// The host's RTP stack measured the round-trip time of the path.
    pub fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.media.on_round_trip_time(now, rtt);
    }

    /// Changes something of the controller that [`Controller`] has no method for: see
    /// [`MediaSender::change_controller`].
    pub fn change_controller<R>(&mut self, now: Timestamp, change: impl FnOnce(&mut C) -> R) -> R {
        self.media.change_controller(now, change)
    }

    /// Discards all queued packets.
    pub fn clear_queue(&mut self, now: Timestamp) {
        self.media.clear_queue(now);
    }

    /// Discards all queued packets but those of audio.
    pub fn clear_pictures(&mut self, now: Timestamp) {
        self.media.clear_pictures(now);
    }

    /// The inner sender, to read the state of queue, pacer and controller.
    pub fn media(&self) -> &MediaSender<Vec<u8>, C> {
        &self.media
    }
}

/// Checks that a packet has space for everything that the sender fills in.
fn check<'a>(
    config: &SenderConfig,
    kind: PacketKind,
    packet: &'a [u8],
) -> Result<View<'a>, EnqueueError> {
    let view = View::parse(packet).map_err(EnqueueError::NotRtp)?;
    // A host may pad in the stream of its repeats, and number both.
    if kind != PacketKind::Repair {
        check_padding(config, &view)?;
    }
    let ExtensionIds { transport_sequence_number, abs_send_time, .. } = config.extensions;
    let lengths = [(transport_sequence_number, NUMBER_SIZE), (abs_send_time, TIME_SIZE)];
    for (id, length) in lengths {
        let Some(id) = id else { continue };
        if view.element(id).is_none_or(|data| data.len() != length) {
            return Err(EnqueueError::NoExtension(id));
        }
    }
    Ok(view)
}

fn check_padding(config: &SenderConfig, view: &View<'_>) -> Result<(), EnqueueError> {
    if view.ssrc() == config.padding_ssrc {
        return Err(EnqueueError::PaddingSsrc(config.padding_ssrc));
    }
    if view.payload_type() == config.padding_payload_type {
        return Err(EnqueueError::PaddingPayloadType(config.padding_payload_type));
    }
    Ok(())
}

fn padding_header(config: &SenderConfig, number: u16, timestamp: u32) -> RtpHeader {
    let ExtensionIds { transport_sequence_number, abs_send_time, .. } = config.extensions;
    RtpHeader::new(config.padding_ssrc, config.padding_payload_type, number, timestamp)
        .with_transport_sequence_number(transport_sequence_number.map(|id| (id, 0)))
        .with_abs_send_time(abs_send_time.map(|id| (id, AbsSendTime::from_ticks(0))))
}

fn header_size(config: &SenderConfig) -> usize {
    padding_header(config, 0, 0).size()
}

/// Writes a padding packet into an empty buffer.
fn padding(config: &SenderConfig, number: &mut u16, timestamp: u32, mut bytes: Vec<u8>) -> Vec<u8> {
    let header = padding_header(config, *number, timestamp);
    *number = number.wrapping_add(1);
    bytes.resize(header.size() + usize::from(PADDING.get()), 0);
    header.emit_padding(PADDING, &mut bytes);
    bytes
}

impl<C> fmt::Debug for Sender<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("config", &self.config)
            .field("reports", &self.reports)
            .finish_non_exhaustive()
    }
}
