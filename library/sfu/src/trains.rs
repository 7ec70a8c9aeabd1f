//! Trains of packets: what left in one go, and how fast it arrived.
//!
//! A probe is a train that was made on purpose. A key frame is one that comes for nothing.

use weir::feedback::{PacketReport, ProbeId};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A longer gap between two packets, at the sender, ends a train.
const MAX_GAP: TimeDelta = TimeDelta::from_millis(20);
/// A longer train of media is judged in parts. A slow probe of few large packets takes longer.
const MAX_LENGTH: TimeDelta = TimeDelta::from_millis(250);
/// A shorter train says nothing: a radio link delivers packets in groups of some milliseconds.
const MIN_LENGTH: TimeDelta = TimeDelta::from_millis(40);
const MIN_PACKETS: u32 = 6;
/// A packet that waited longer than the first of its train shows that the path is full. It is more
/// than the time for which a radio link holds packets back.
const MAX_BURST_QUEUED: TimeDelta = TimeDelta::from_millis(30);
/// Networks reorder by less. A clock that steps back would make a full path look empty.
const MAX_BACK: TimeDelta = TimeDelta::from_millis(100);
/// Standard deviations of the number of losses that are chance, in a probe and in one of the many
/// trains of media.
const CHANCE: f64 = 2.0;
const MEDIA_CHANCE: f64 = 4.0;

/// A train of packets, as far as feedback reported it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    /// The probe that it was made for.
    pub probe: Option<ProbeId>,
    packets: u32,
    lost: u32,
    /// Bytes sent, whether they arrived or not.
    sent: DataSize,
    /// The part of them after the first packet, which is what the duration carries.
    sent_after_first: DataSize,
    /// Bytes that arrived after the first packet that did.
    arrived_after_first: DataSize,
    first_sent: Timestamp,
    last_sent: Timestamp,
    first_arrived: Option<Timestamp>,
    last_arrived: Option<Timestamp>,
    /// The receiver's clock went back.
    is_broken: bool,
    /// When a path of the rate that is known would have sent all of it.
    drained: Timestamp,
    /// By how much its last packet would wait longer there than its first.
    expected: TimeDelta,
}

impl Train {
    fn new(packet: &PacketReport) -> Self {
        Self {
            probe: packet.probe,
            packets: 1,
            lost: u32::from(packet.arrival_time.is_none()),
            sent: packet.size,
            sent_after_first: DataSize::ZERO,
            arrived_after_first: DataSize::ZERO,
            first_sent: packet.send_time,
            last_sent: packet.send_time,
            first_arrived: packet.arrival_time,
            last_arrived: packet.arrival_time,
            is_broken: false,
            drained: packet.send_time,
            expected: TimeDelta::ZERO,
        }
    }

    /// The next packet. `known`: the rate that the path is known to carry.
    fn add(&mut self, packet: &PacketReport, known: Bitrate) {
        if known > Bitrate::ZERO {
            self.drained = self.drained.max(packet.send_time) + packet.size / known;
            self.expected = self.drained - packet.send_time;
        }
        self.packets += 1;
        self.sent += packet.size;
        self.sent_after_first += packet.size;
        self.last_sent = self.last_sent.max(packet.send_time);
        let Some(arrival) = packet.arrival_time else {
            self.lost += 1;
            return;
        };
        if self.first_arrived.is_some() {
            self.arrived_after_first += packet.size;
        }
        self.is_broken |= self.last_arrived.is_some_and(|last| last - arrival > MAX_BACK);
        self.first_arrived = self.first_arrived.or(Some(arrival));
        self.last_arrived = self.last_arrived.max(Some(arrival));
    }

    fn continues_with(&self, packet: &PacketReport) -> bool {
        let (gap, length) = (packet.send_time - self.last_sent, packet.send_time - self.first_sent);
        let is_near = packet.probe.is_some() || gap <= MAX_GAP && length <= MAX_LENGTH;
        self.probe == packet.probe && is_near
    }

    /// Whether it is long enough to say something.
    pub fn is_meaningful(&self) -> bool {
        let is_long = self.last_sent - self.first_sent >= MIN_LENGTH;
        self.packets >= MIN_PACKETS && is_long && !self.is_broken
    }

    /// The rate at which it was sent.
    pub fn send_rate(&self) -> Bitrate {
        self.sent_after_first / (self.last_sent - self.first_sent)
    }

    /// The rate at which it arrived, but not more than it was sent with: packets that waited
    /// together arrive together.
    pub fn delivered_rate(&self) -> Bitrate {
        (self.arrived_after_first / self.arrival_time()).min(self.send_rate())
    }

    /// The rate that the path carried, if it loses packets at any rate: with those lost.
    pub fn carried_rate(&self) -> Bitrate {
        let arrived = f64::from(self.packets - self.lost) / f64::from(self.packets);
        (self.delivered_rate() * (1.0 / arrived.max(0.5))).min(self.send_rate())
    }

    /// Whether what it lost, if anything, is no more than usual.
    pub fn lost_as_usual(&self, usual: f64) -> bool {
        let chance = if self.probe.is_some() { CHANCE } else { MEDIA_CHANCE };
        let expected = usual * f64::from(self.packets);
        f64::from(self.lost) <= expected + chance * libm::sqrt(expected)
    }

    /// Whether this part of its packets was lost, or less.
    pub fn lost_at_most(&self, part: f64) -> bool {
        f64::from(self.lost) <= part * f64::from(self.packets)
    }

    fn arrival_time(&self) -> TimeDelta {
        match (self.first_arrived, self.last_arrived) {
            (Some(first), Some(last)) => last - first,
            _ => TimeDelta::MAX,
        }
    }

    /// By how much its last packet waited longer than its first.
    pub fn queued(&self) -> TimeDelta {
        self.arrival_time() - (self.last_sent - self.first_sent)
    }

    /// The same, less what it would have waited on a path of the rate that was known: a burst that
    /// leaves faster than that queues by itself.
    pub fn queued_unexpectedly(&self) -> TimeDelta {
        self.queued() - self.expected
    }

    /// Packets that did not arrive.
    pub fn lost(&self) -> u32 {
        self.lost
    }
}

/// Finds the trains in reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trains {
    open: Option<Train>,
}

impl Trains {
    /// The next packet of the reports. `known`: the rate that the path is known to carry, zero if
    /// there is none. Returns the train that ended before it, if it is meaningful.
    pub fn on_packet(&mut self, packet: &PacketReport, known: Bitrate) -> Option<Train> {
        if packet.recovered {
            return None;
        }
        if let Some(train) = &mut self.open
            && train.continues_with(packet)
        {
            train.add(packet, known);
            return None;
        }
        self.open.replace(Train::new(packet)).filter(Train::is_meaningful)
    }

    /// The open train, if it is no probe and already says something.
    pub fn open_media(&self) -> Option<Train> {
        self.open.filter(|train| train.probe.is_none() && train.is_meaningful())
    }

    /// The rate at which the open train arrives, if it queues for long enough to tell.
    pub fn full_rate(&self) -> Option<Bitrate> {
        let train = self.open.filter(|train| !train.is_broken)?;
        let is_full = train.queued() > MAX_BURST_QUEUED && train.arrival_time() >= MIN_LENGTH;
        is_full.then(|| train.delivered_rate())
    }

    /// Ends the open train if it is a probe that is over, and no media has left since: no packet
    /// follows that would end it. `media` is when media last left.
    pub fn end_probe(
        &mut self,
        id: ProbeId,
        size: DataSize,
        media: Option<Timestamp>,
    ) -> Option<Train> {
        let is_over = self.open.is_some_and(|train| {
            let is_last = media.is_none_or(|media| media <= train.last_sent);
            train.probe == Some(id) && train.sent >= size && is_last && train.is_meaningful()
        });
        if is_over { self.open.take() } else { None }
    }

    /// Forgets the open train: the clock changed, or the route.
    pub fn clear(&mut self) {
        self.open = None;
    }
}
