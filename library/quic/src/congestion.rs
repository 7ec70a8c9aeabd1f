//! The state machine between a QUIC stack and a controller.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use weir::controller::{Controller, Target};
use weir::feedback::{ArrivalTimes, PacketReport, SentPacket};
use weir::{Bitrate, DataSize, Metrics, RateLimits, TimeDelta, Timestamp};

use crate::arrival::{Acked, Arrivals};
use crate::batch::Batch;
use crate::history::{History, PacketName, Receipt, Sent, Space};
use crate::pace::{Source, WindowRule, window};
use crate::probe::Probes;
use crate::repeats::Repeats;

/// A queue of this length is usual: the last frame is still leaving.
const USUAL_QUEUE: TimeDelta = TimeDelta::from_millis(50);
/// What waits beyond that leaves within this time, because the encoder makes that much less.
const DRAIN_TIME: TimeDelta = TimeDelta::from_millis(500);
/// The least share of the target that the encoder gets.
const MIN_MEDIA_SHARE: f64 = 0.5;
/// A silence is answered again when it has become this many times longer. While no ACK comes, the
/// window is full and hosts send probes alone [RFC9002 §7.5]: there is no flood to stop, and the
/// longer the silence, the less one more second of it tells.
///
/// [RFC9002 §7.5]: https://www.rfc-editor.org/rfc/rfc9002#section-7.5
const SILENCE_GROWTH: f64 = 3.0;
/// Padding that was not asked for in this time is not made up for.
const PADDING_MEMORY: TimeDelta = TimeDelta::from_millis(100);

/// What a host is like.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The headers below QUIC: 28 bytes for UDP over IPv4, 48 over IPv6. Controllers count them,
    /// because the bottleneck does.
    pub headers: DataSize,
    /// What QUIC adds to the application's bytes in a packet: the short header, the tag, and the
    /// head of a STREAM or DATAGRAM frame, about 38 bytes.
    pub framing: DataSize,
    /// The largest QUIC packet of the path; see [`Congestion::on_mtu`].
    pub mtu: DataSize,
    /// What the host's window does.
    pub window: WindowRule,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            headers: DataSize::from_bytes(28),
            framing: DataSize::from_bytes(38),
            mtu: DataSize::from_bytes(1_200),
            window: WindowRule::Brake,
        }
    }
}

impl Config {
    /// The same for IPv6.
    #[must_use]
    pub const fn with_headers(mut self, headers: DataSize) -> Self {
        self.headers = headers;
        self
    }

    /// The same with this largest packet.
    #[must_use]
    pub const fn with_mtu(mut self, mtu: DataSize) -> Self {
        self.mtu = mtu;
        self
    }

    /// The same with this window.
    #[must_use]
    pub const fn with_window(mut self, window: WindowRule) -> Self {
        self.window = window;
        self
    }
}

/// What an ACK frame says beside its ranges, and what the host knows at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckEnd {
    /// The ACK Delay field: how long the receiver held the newest packet's ACK back
    /// [RFC9000 §13.2.5]. `None` if the host does not tell.
    ///
    /// [RFC9000 §13.2.5]: https://www.rfc-editor.org/rfc/rfc9000#section-13.2.5
    pub delay: Option<TimeDelta>,
    /// The space, and the ECN-CE count of the frame in it [RFC9000 §19.3.2].
    ///
    /// [RFC9000 §19.3.2]: https://www.rfc-editor.org/rfc/rfc9000#section-19.3.2
    pub ce_count: Option<(Space, u64)>,
    /// Whether the application had nothing to send when the host last could have sent. `None` if
    /// the host does not tell.
    pub app_limited: Option<bool>,
    /// The host's smoothed round-trip time.
    pub smoothed_rtt: Option<TimeDelta>,
}

impl AckEnd {
    /// The same with this ACK delay.
    #[must_use]
    pub const fn with_delay(mut self, delay: TimeDelta) -> Self {
        self.delay = Some(delay);
        self
    }

    /// The same with this count of marks.
    #[must_use]
    pub const fn with_ce_count(mut self, space: Space, count: u64) -> Self {
        self.ce_count = Some((space, count));
        self
    }

    /// The same, limited by the application or not.
    #[must_use]
    pub const fn with_app_limited(mut self, app_limited: bool) -> Self {
        self.app_limited = Some(app_limited);
        self
    }

    /// The same with this smoothed round-trip time.
    #[must_use]
    pub const fn with_smoothed_rtt(mut self, rtt: TimeDelta) -> Self {
        self.smoothed_rtt = Some(rtt);
        self
    }
}

/// Parts of what the controller counts, in a packet of the path's largest size.
#[derive(Clone, Copy, Debug)]
struct Shares {
    /// The QUIC packet: without the headers below it.
    packet: f64,
    /// The application's bytes.
    media: f64,
}

impl Shares {
    fn of(config: &Config) -> Self {
        let (mtu, headers) = (config.mtu.as_bytes(), config.headers.as_bytes());
        let packet = mtu as f64 / (mtu + headers) as f64;
        let media = packet * mtu.saturating_sub(config.framing.as_bytes()) as f64 / mtu as f64;
        Self { packet, media }
    }
}

/// Congestion control of one path of a QUIC connection.
///
/// Call [`on_packet_sent`] for each ack-eliciting packet. For each ACK frame, name the packets
/// that it acknowledges for the first time, or its ranges, and then call [`on_ack_end`]. Report
/// losses when the host declares them. `now` must not go backwards. Call [`on_timeout`] when
/// [`next_timeout`] has passed; without a timer, any other call does that late.
///
/// [`on_packet_sent`]: Congestion::on_packet_sent
/// [`on_ack_end`]: Congestion::on_ack_end
/// [`on_timeout`]: Congestion::on_timeout
/// [`next_timeout`]: Congestion::next_timeout
pub struct Congestion {
    controller: Box<dyn Controller + Send>,
    config: Config,
    history: History,
    arrivals: Arrivals,
    batch: Batch,
    /// Packets that the ACK acknowledges.
    acked: Vec<Acked>,
    /// Own numbers that a search found.
    found: Vec<i64>,
    /// ECN-CE counts of the three spaces.
    ce_counts: [u64; 3],
    srtt: Option<TimeDelta>,
    source: Source,
    /// When the last ACK with news came, or the path began.
    heard: Option<Timestamp>,
    /// Until then, a silence that the controller has answered is no news.
    answered_until: Option<Timestamp>,
    probes: Probes,
    target: Target,
    /// What the host reads for each packet. Both follow from the target and what is above.
    pacing_rate: Bitrate,
    window: DataSize,
    shares: Shares,
    repeats: Repeats,
    /// The application's bytes that wait, as far as it told.
    queued: DataSize,
    /// Packets that are told to have left since padding was asked for.
    sent_since_padding: DataSize,
    padding_asked: Option<Timestamp>,
}

impl core::fmt::Debug for Congestion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Congestion")
            .field("target", &self.target)
            .field("metrics", &self.controller.metrics())
            .field("srtt", &self.srtt)
            .finish_non_exhaustive()
    }
}

impl Congestion {
    /// A path under this controller. Its settings decide what marks mean: use the ECN mode of the
    /// packets that the host sends.
    pub fn new(controller: Box<dyn Controller + Send>, config: Config) -> Self {
        let target = controller.target();
        let mut path = Self {
            controller,
            config,
            history: History::new(),
            arrivals: Arrivals::default(),
            batch: Batch::default(),
            acked: Vec::new(),
            found: Vec::new(),
            ce_counts: [0; 3],
            srtt: None,
            source: Source::default(),
            heard: None,
            answered_until: None,
            probes: Probes::default(),
            target,
            pacing_rate: Bitrate::ZERO,
            window: DataSize::ZERO,
            shares: Shares::of(&config),
            repeats: Repeats::default(),
            queued: DataSize::ZERO,
            sent_since_padding: DataSize::ZERO,
            padding_asked: None,
        };
        path.settle();
        path
    }

    /// An ack-eliciting packet left.
    pub fn on_packet_sent(&mut self, now: Timestamp, packet: Sent) {
        self.heard.get_or_insert(now);
        self.run_late_timeout(now);
        let size = packet.size + self.config.headers;
        let probe = self.probes.on_packet(size);
        let number = self.history.add(now, &packet, size, probe);
        self.queued = self.queued.saturating_sub(packet.size);
        self.sent_since_padding += size;
        let packet = SentPacket::new(number, size)
            .with_queued(self.with_headers(self.queued))
            .with_probe(probe)
            .with_padding(packet.padding);
        self.controller.on_packet_sent(now, &packet);
        self.take_target();
    }

    /// The ACK frame acknowledges this packet. A packet that the host called lost counts as late.
    /// Returns whether the packet is known.
    pub fn on_packet_acked(&mut self, name: PacketName) -> bool {
        let found = self.history.find(name);
        found.is_some_and(|own| self.acknowledge(own))
    }

    /// The same for a host that tells sizes only in acknowledgements: sizes of packets that left
    /// together may have been guesses.
    pub fn on_sized_packet_acked(&mut self, name: PacketName, size: DataSize) -> bool {
        let Some(own) = self.history.find(name) else { return false };
        let size = size + self.config.headers;
        if let Some(entry) = self.history.get(own) {
            entry.size = size;
        }
        self.acknowledge(own)
    }

    /// The ACK frame has this range. Of what it repeats, nothing counts twice.
    pub fn on_ack_range(&mut self, space: Space, range: RangeInclusive<u64>) {
        let mut found = core::mem::take(&mut self.found);
        self.history.find_range(space, &range, &mut found);
        for own in found.drain(..) {
            self.acknowledge(own);
        }
        self.found = found;
    }

    fn acknowledge(&mut self, own: i64) -> bool {
        let Some(entry) = self.history.get(own) else { return false };
        if entry.receipt == Receipt::Received || entry.is_acked {
            return false;
        }
        // A lost packet keeps its receipt until the frame ends: it is then reported as recovered.
        entry.is_acked = true;
        let arrival = entry.send_time;
        let (sent, size, received) = (entry.send_time, entry.size, entry.receive_time);
        self.acked.push(Acked { own, sent, size, received, arrival });
        true
    }

    /// The receiver tells when a packet arrived, by its own clock, as with
    /// draft-ietf-quic-receive-ts. Call it before the packet is acknowledged.
    pub fn on_receive_time(&mut self, name: PacketName, arrival: Timestamp) {
        if let Some(entry) = self.history.find(name).and_then(|own| self.history.get(own)) {
            entry.receive_time = Some(arrival);
        }
    }

    /// The ACK frame ends.
    pub fn on_ack_end(&mut self, now: Timestamp, ack: AckEnd) {
        self.run_late_timeout(now);
        self.srtt = ack.smoothed_rtt.or(self.srtt);
        if let Some(app_limited) = ack.app_limited {
            self.source.on_flag(now, app_limited);
        }
        if let Some((space, count)) = ack.ce_count {
            let seen = &mut self.ce_counts[space as usize];
            self.batch.mark(count.saturating_sub(*seen));
            *seen = count.max(*seen);
        }
        self.take_acked(now, ack.delay);
        self.report_if_due(now);
        self.settle();
    }

    /// Moves the acknowledged packets to the batch, with their arrival times.
    fn take_acked(&mut self, now: Timestamp, delay: Option<TimeDelta>) {
        let Some(newest) = self.acked.iter().map(|packet| packet.sent).max() else { return };
        if self.answered_until.take().is_some() {
            self.repeats.on_silence_end(now);
        }
        self.heard = Some(now);
        self.acked.sort_unstable_by_key(|packet| packet.own);
        let knows_delay = delay.is_some();
        // The delay is the receiver's word: the packet did not arrive before it was sent.
        let delay = delay.unwrap_or(TimeDelta::ZERO).max(TimeDelta::ZERO);
        let acked = (now - delay).max(newest.min(now));
        let rate = self.target.bitrate;
        self.arrivals.on_ack(acked, &mut self.acked, rate, knows_delay);
        let times = self.arrivals.times();
        if self.batch.is_on_another_clock(times) {
            self.report(now);
        }
        for packet in self.acked.drain(..) {
            let Some(entry) = self.history.get(packet.own) else { continue };
            let report = PacketReport::new(packet.own, packet.size, packet.sent)
                .with_arrival_time(Some(packet.arrival))
                .with_recovered(entry.receipt == Receipt::Lost)
                .with_probe(entry.probe);
            entry.receipt = Receipt::Received;
            self.repeats.on_acked(now, packet.size);
            self.batch.add(now, report, times);
        }
    }

    /// The host declared this packet lost.
    pub fn on_packet_lost(&mut self, now: Timestamp, name: PacketName) {
        if let Some(own) = self.history.find(name) {
            self.lose(now, own);
        }
    }

    /// The host declared so many bytes of packets lost, all of them sent at this time or before,
    /// and does not name them. The newest of which nothing is known are taken.
    pub fn on_bytes_lost(&mut self, now: Timestamp, sent_by: Timestamp, bytes: DataSize) {
        let mut found = core::mem::take(&mut self.found);
        self.history.newest_unknown(sent_by, bytes, self.config.headers, &mut found);
        for own in found.drain(..) {
            self.lose(now, own);
        }
        self.found = found;
    }

    fn lose(&mut self, now: Timestamp, own: i64) {
        let Some(entry) = self.history.get(own) else { return };
        if !entry.is_unknown() {
            return;
        }
        entry.receipt = Receipt::Lost;
        self.repeats.on_lost(now, entry.send_time, entry.size);
        let report = PacketReport::new(own, entry.size, entry.send_time).with_probe(entry.probe);
        self.batch.add(now, report, ArrivalTimes::Acknowledged);
    }

    /// The host found that its losses of packets sent since this time were none, and does not name
    /// them. Call it before [`Congestion::on_ack_end`] of the ACK that shows it.
    pub fn on_losses_taken_back(&mut self, since: Timestamp) {
        let mut found = core::mem::take(&mut self.found);
        self.history.lost_since(since, &mut found);
        for own in found.drain(..) {
            self.acknowledge(own);
        }
        self.found = found;
    }

    /// So many packets were marked Congestion Experienced. For hosts that tell of marks, and not
    /// of the counts of ACK frames.
    pub fn on_marks(&mut self, count: u64) {
        self.batch.mark(count);
    }

    /// The application queued `added` bytes, and `queued` wait now.
    pub fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.queued = queued;
        let (added, queued) = (self.with_headers(added), self.with_headers(queued));
        self.controller.on_media_queued(now, added, queued);
        self.take_target();
    }

    /// The largest QUIC packet of the path changed.
    pub fn on_mtu(&mut self, mtu: DataSize) {
        self.config.mtu = mtu.max(DataSize::from_bytes(1));
        self.shares = Shares::of(&self.config);
        self.settle();
    }

    /// Packets take another path from now on. What was sent on the old one is forgotten.
    pub fn on_new_path(&mut self, now: Timestamp) {
        self.history.clear();
        self.acked.clear();
        self.batch.discard();
        self.arrivals = Arrivals::default();
        self.srtt = None;
        self.source = Source::default();
        (self.heard, self.answered_until) = (None, None);
        self.controller.on_route_change(now);
        self.take_target();
    }

    /// See [`Controller::set_limits`].
    pub fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.controller.set_limits(now, limits);
        self.take_target();
    }

    /// See [`Controller::set_desired_bitrate`].
    pub fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.controller.set_desired_bitrate(now, desired);
        self.take_target();
    }

    /// The time of [`Congestion::next_timeout`] has passed.
    pub fn on_timeout(&mut self, now: Timestamp) {
        self.run_late_timeout(now);
        self.report_if_due(now);
        self.probes.update(now, self.target.probe);
        self.settle();
    }

    /// When [`Congestion::on_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        self.controllers_timeout().into_iter().chain(self.batch.due()).min()
    }

    /// When the controller's timer is due, or the silence that it has answered is news again.
    fn controllers_timeout(&self) -> Option<Timestamp> {
        let due = self.controller.next_timeout().filter(|&due| due < Timestamp::MAX)?;
        Some(self.answered_until.map_or(due, |until| until.max(due)))
    }

    fn run_late_timeout(&mut self, now: Timestamp) {
        if self.controllers_timeout().is_none_or(|due| now < due) {
            return;
        }
        let before = self.target.bitrate;
        self.controller.on_timeout(now);
        self.take_target();
        if self.target.bitrate < before {
            let heard = self.heard.unwrap_or(now);
            self.answered_until = Some(heard + (now - heard) * SILENCE_GROWTH);
        }
    }

    fn report_if_due(&mut self, now: Timestamp) {
        if self.batch.due().is_some_and(|due| due <= now) {
            self.report(now);
        }
    }

    fn report(&mut self, now: Timestamp) {
        if self.batch.is_empty() {
            return;
        }
        self.controller.on_feedback(now, self.batch.complete(now));
        self.batch.clear();
        self.take_target();
        self.probes.update(now, self.target.probe);
    }

    fn take_target(&mut self) {
        self.target = self.controller.target();
        self.settle();
    }

    fn settle(&mut self) {
        let paced = self.source.pacing_rate(&self.target);
        let probe = self.probes.running().map_or(paced, |(probe, _)| probe.rate.max(paced));
        let share = self.shares.packet;
        self.pacing_rate = probe * share;
        let host = window(self.config.window, self.pacing_rate, self.srtt, self.config.mtu);
        self.window = match self.target.window {
            Some(own) => (own.congestion_window * share).max(self.config.mtu * 2.0).min(host),
            None => host,
        };
    }

    /// What the controller asks for, with the headers of IP and UDP.
    pub fn target(&self) -> &Target {
        &self.target
    }

    fn with_headers(&self, bytes: DataSize) -> DataSize {
        bytes * (1.0 / self.shares.packet)
    }

    /// What the encoder may make, in the application's bytes: the target without headers, without
    /// what is sent again for lost packets, and without what has waited for long. At least half of
    /// the target.
    pub fn media_bitrate(&self) -> Bitrate {
        let whole = self.target.source_bitrate * self.shares.media;
        let waits = match self.queued {
            DataSize::ZERO => Bitrate::ZERO,
            queued => queued.saturating_sub(self.pacing_rate * USUAL_QUEUE) / DRAIN_TIME,
        };
        let first = whole * (1.0 - self.repeats.share());
        first.saturating_sub(waits).max(whole * MIN_MEDIA_SHARE)
    }

    /// The rate at which the host sends QUIC packets.
    pub fn pacing_rate(&self) -> Bitrate {
        self.pacing_rate
    }

    /// What may be in flight, in bytes of QUIC packets.
    pub fn window(&self) -> DataSize {
        self.window
    }

    /// Bytes of padding that the application should send now, as DATAGRAM frames that nobody
    /// reads: of a probe, or up to the rate of padding. Zero for most controllers, most of the
    /// time.
    pub fn take_padding(&mut self, now: Timestamp) -> DataSize {
        self.probes.update(now, self.target.probe);
        self.settle();
        let asked = self.padding_asked.replace(now).unwrap_or(now);
        let since = (now - asked).clamp(TimeDelta::ZERO, PADDING_MEMORY);
        let sent = core::mem::take(&mut self.sent_since_padding);
        let wanted = (self.target.padding_rate * since).saturating_sub(sent);
        let probe = self.probes.running().map_or(DataSize::ZERO, |(_, left)| left);
        wanted.max(probe.saturating_sub(self.with_headers(self.queued)))
    }

    /// The controller's reason, state and signals.
    pub fn metrics(&self) -> Metrics {
        self.controller.metrics()
    }
}
