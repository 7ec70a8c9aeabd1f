//! Pacer: spreads the packets of a frame over time at the controller's pacing rate, and sends the
//! probes and the padding that the controller requests.
//!
//! Packets leave in bursts, as [GCC §4] describes; the controller chooses how one burst follows
//! another. If there is a congestion window, it also holds packets back. The packets of a probe
//! leave one by one at the probe's rate. The driver makes padding packets: one each time the pacer
//! asks for it.
//!
//! Drivers wake up late: timers tick every few milliseconds, and other work takes the processor. A
//! packet that waited for its driver is charged as if it had left when it was due, so that the next
//! ones follow at once until the delay is made up for. [`MAX_CATCH_UP`] bounds the burst.
//!
//! Audio waits for nothing: it leaves before all other packets, whatever the pacing rate and the
//! window say, as in libwebrtc. It is small, and is charged like everything else.
//!
//! [GCC §4]: https://datatracker.ietf.org/doc/html/draft-ietf-rmcat-gcc-02#section-4

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;

use crate::controller::{Burst, Probe, ProbeId, Target};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// Size of a padding packet as the lab counts it. RTP counts padding in one byte, so it has 255
/// bytes [RFC3550 §5.1]; the headers and trailers of IP, UDP, RTP and SRTP are added.
///
/// A pacer asks for padding packets of this size unless [`Pacer::set_padding_size`] says otherwise.
///
/// [RFC3550 §5.1]: https://www.rfc-editor.org/rfc/rfc3550#section-5.1
pub const PADDING_PACKET: DataSize = DataSize::from_bytes(255 + 58);
/// Media sent above the padding rate delays padding by at most this time.
const MAX_PADDING_DEBT: TimeDelta = TimeDelta::from_millis(500);

/// Packets that left past the queue delay the queue by at most this time.
const MAX_DEBT_OF_OTHERS: TimeDelta = TimeDelta::from_millis(200);

/// A late driver makes up for at most this time. Beyond the burst that the controller allows, no
/// more data leaves at once than the pacing rate carries in this time.
///
/// It is the time for which libwebrtc's paced sender paid at once after a late call
/// (`kMaxIntervalTimeMs`, 30 ms), and covers timers that are 20 ms late.
pub const MAX_CATCH_UP: TimeDelta = TimeDelta::from_millis(30);
/// The same for a probe. It is shorter, because a probe that leaves in one burst has no rate.
const MAX_PROBE_CATCH_UP: TimeDelta = TimeDelta::from_millis(5);
/// Audio waits for its turn in a probe for at most this time. The packets of a slow probe are
/// further apart.
const MAX_AUDIO_WAIT: TimeDelta = TimeDelta::from_millis(5);

/// A first-in first-out send queue with a rate.
#[derive(Clone, Debug)]
pub struct Pacer<T> {
    queue: VecDeque<(DataSize, T)>,
    queued: DataSize,
    /// Number of packets of audio at the front of the queue.
    audio: usize,
    /// Number of urgent packets behind them.
    urgent: usize,
    /// The latest time that the driver told.
    latest: Timestamp,
    /// Budget of the pacing rate.
    paced: PacingDebt,
    /// Time by which packets may leave ahead of the pacing rate.
    burst: Burst,
    /// A whole burst has left and packets wait. The next burst begins when the budget has
    /// recovered.
    resting: bool,
    /// Budget of the padding rate. All packets count; padding waits until the budget has recovered.
    padded: PacingDebt,
    /// Size of the padding packets.
    padding_size: DataSize,
    /// Whether a probe begins with a padding packet.
    leads_probes: bool,
    /// Bytes of each packet that do not count for the size of a probe.
    uncounted: DataSize,
    /// True if the controller's window has room for a packet.
    window_open: bool,
    probing: Option<Probing>,
    /// The last probe that was started.
    last_probe: Option<ProbeId>,
    /// What the driver has known to be due next, since its last call of [`Pacer::dequeue`].
    awaited: Option<Kind>,
}

/// What leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Audio,
    Probe,
    Media,
    Padding,
}

/// A packet that should be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Release<T> {
    /// Its size.
    pub size: DataSize,
    /// The queued packet; `None` if the driver should make a padding packet of this size.
    pub media: Option<T>,
    /// The probe to which the packet belongs.
    pub probe: Option<ProbeId>,
}

/// Budget of a rate: the time at which everything sent would have left at exactly that rate.
#[derive(Clone, Copy, Debug)]
struct PacingDebt {
    rate: Bitrate,
    ends: Timestamp,
}

impl PacingDebt {
    /// Changes the rate. Data sent ahead of the old rate is paid off at the new rate.
    fn set_rate(&mut self, now: Timestamp, rate: Bitrate) {
        if rate == self.rate {
            return;
        }
        if self.ends > now {
            let ahead = self.rate * (self.ends - now);
            // Nothing is sent at rate zero, so there is nothing to pay off.
            let time = if rate == Bitrate::ZERO { TimeDelta::ZERO } else { ahead / rate };
            self.ends = now + time;
        }
        self.rate = rate;
    }

    fn charge(&mut self, now: Timestamp, size: DataSize) {
        if self.rate > Bitrate::ZERO {
            self.ends = self.ends.max(now) + size / self.rate;
        }
    }
}

/// The probe in progress.
#[derive(Clone, Copy, Debug)]
struct Probing {
    probe: Probe,
    /// Time at which its next packet leaves.
    due: Timestamp,
    sent: DataSize,
    packets: u32,
}

impl Probing {
    fn is_complete(&self) -> bool {
        self.sent >= self.probe.size && self.packets >= self.probe.packets
    }
}

impl<T> Pacer<T> {
    /// An empty pacer.
    pub fn new(target: &Target) -> Self {
        let debt = |rate| PacingDebt { rate, ends: Timestamp::ZERO };
        Self {
            queue: VecDeque::new(),
            queued: DataSize::ZERO,
            audio: 0,
            urgent: 0,
            latest: Timestamp::from_nanos(i64::MIN),
            paced: debt(target.pacing_rate),
            burst: target.burst,
            resting: false,
            padded: debt(target.padding_rate),
            padding_size: PADDING_PACKET,
            leads_probes: false,
            uncounted: DataSize::ZERO,
            window_open: true,
            probing: None,
            last_probe: None,
            awaited: None,
        }
    }

    /// Sets the size of the driver's padding packets, counted like media packets.
    ///
    /// # Panics
    /// If the size is zero: padding would never reach its rate.
    pub fn set_padding_size(&mut self, size: DataSize) {
        assert!(size > DataSize::ZERO, "a padding packet has a size");
        self.padding_size = size;
    }

    /// Sets whether each probe begins with a padding packet, before the media that waits
    /// [LIBWEBRTC §PacingController]. The default is no, for drivers that cannot pad at any time.
    ///
    /// A probe's receive rate leaves out the first packet, its send rate the last one. If a large
    /// packet of media is first and small padding follows, a free path seems to be full.
    ///
    /// [LIBWEBRTC §PacingController]: https://github.com/signalapp/webrtc
    pub fn set_leads_probes(&mut self, leads_probes: bool) {
        self.leads_probes = leads_probes;
    }

    /// Sets how many bytes of a packet do not count for the size of a probe, because the controller
    /// does not count them. It and the pacer must agree when a probe is over.
    pub(crate) fn set_uncounted(&mut self, uncounted: DataSize) {
        self.uncounted = uncounted;
    }

    /// Adopts a new target of the controller. A probe with a newer id replaces the current one.
    pub fn set_target(&mut self, now: Timestamp, target: &Target) {
        self.latest = now;
        let before = (self.next_kind(), self.padded.rate);
        self.window_open = target.window.is_none_or(|window| window.available > DataSize::ZERO);
        self.paced.set_rate(now, target.pacing_rate);
        self.burst = target.burst;
        self.padded.set_rate(now, target.padding_rate);
        match target.probe {
            None => self.probing = None,
            Some(probe) if self.last_probe.is_some_and(|last| last >= probe.id) => {}
            Some(probe) => {
                self.last_probe = Some(probe.id);
                self.probing = Some(Probing { probe, due: now, sent: DataSize::ZERO, packets: 0 });
                self.awaited = None;
            }
        }
        // What could not leave before now has not waited for the driver.
        if before != (self.next_kind(), self.padded.rate) {
            self.awaited = None;
        }
    }

    /// Puts a packet at the end of the queue.
    pub fn enqueue(&mut self, size: DataSize, packet: T) {
        self.queued += size;
        self.queue.push_back((size, packet));
    }

    /// Puts a packet of audio before all others except audio that waits. It leaves at once.
    pub fn enqueue_audio(&mut self, size: DataSize, packet: T) {
        self.queued += size;
        self.queue.insert(self.audio, (size, packet));
        self.audio += 1;
    }

    /// Puts a packet before all others except audio and urgent ones that wait. For repair of media
    /// that was sent long ago, because it is already late.
    pub fn enqueue_urgent(&mut self, size: DataSize, packet: T) {
        self.queued += size;
        self.queue.insert(self.audio + self.urgent, (size, packet));
        self.urgent += 1;
    }

    /// Drops all packets that wait. Packets sent before still count against the pacing rate.
    pub fn clear(&mut self) {
        self.awaited = None;
        self.queue.clear();
        self.queued = DataSize::ZERO;
        (self.audio, self.urgent) = (0, 0);
    }

    /// Drops all packets that wait but those of audio.
    pub fn clear_pictures(&mut self) {
        self.awaited = None;
        self.queue.truncate(self.audio);
        self.queued = DataSize::ZERO;
        for (size, _) in &self.queue {
            self.queued += *size;
        }
        self.urgent = 0;
    }

    /// Bytes in the queue.
    pub fn queued(&self) -> DataSize {
        self.queued
    }

    /// Time at which the next packet may leave; `None` if there is no packet or the window is
    /// closed. For audio it is the latest time that was told.
    pub fn next_send_time(&self) -> Option<Timestamp> {
        Some(match self.next_kind()? {
            Kind::Audio => self.latest,
            Kind::Probe => {
                let due = self.running_probe()?.due;
                let is_early = self.audio > 0 && due - self.latest > MAX_AUDIO_WAIT;
                if is_early { self.latest } else { due }
            }
            Kind::Media => self.paced.ends - self.ahead(),
            Kind::Padding => self.padded.ends.max(self.paced.ends),
        })
    }

    /// What leaves next; `None` if there is nothing or the window is closed.
    fn next_kind(&self) -> Option<Kind> {
        // During a probe audio is a part of it, because one packet that is none of its own would
        // cut it in two. It hardly waits: in a slow probe it leaves before its turn.
        let is_probing = self.window_open && self.running_probe().is_some();
        if self.audio > 0 && !is_probing {
            Some(Kind::Audio)
        } else if !self.window_open {
            None
        } else if self.running_probe().is_some() {
            Some(Kind::Probe)
        } else if !self.queue.is_empty() {
            Some(Kind::Media)
        } else {
            (self.padded.rate > Bitrate::ZERO).then_some(Kind::Padding)
        }
    }

    /// The time at which a packet that leaves now should have left.
    fn due_time(&self, now: Timestamp, kind: Kind, due: Timestamp) -> Timestamp {
        if self.awaited != Some(kind) {
            return now;
        }
        let most = if kind == Kind::Probe { MAX_PROBE_CATCH_UP } else { MAX_CATCH_UP };
        due.max(now - most).min(now)
    }

    /// Time by which the next packet may leave ahead of the pacing rate.
    fn ahead(&self) -> TimeDelta {
        match self.burst {
            Burst::Whole(_) if self.resting => TimeDelta::ZERO,
            Burst::Ahead(time) | Burst::Whole(time) => time,
        }
    }

    /// Returns the next packet if one may leave now.
    pub fn dequeue(&mut self, now: Timestamp) -> Option<Release<T>> {
        self.latest = self.latest.max(now);
        let kind = self.next_kind();
        let due = self.next_send_time().filter(|&due| due <= now);
        let (Some(kind), Some(due)) = (kind, due) else {
            self.awaited = kind;
            return None;
        };
        let due = self.due_time(now, kind, due);
        let running = self.running_probe().filter(|_| kind == Kind::Probe);
        let probe = running.map(|probing| probing.probe.id);
        let begins = running.is_some_and(|probing| probing.packets == 0);
        let leads = self.leads_probes && begins;
        let next = if leads { None } else { self.queue.pop_front() };
        let (size, media) = match next {
            Some((size, packet)) => (size, Some(packet)),
            None => (self.padding_size, None),
        };
        if media.is_some() {
            let first = if self.audio > 0 { &mut self.audio } else { &mut self.urgent };
            *first = first.saturating_sub(1);
            self.queued = self.queued.saturating_sub(size);
        }
        if kind == Kind::Audio {
            self.on_packet_sent(now, size);
        } else {
            self.charge(now, kind, due, size);
        }
        if let Some(probing) = self.probing.as_mut().filter(|_| probe.is_some()) {
            // What left before its turn makes the probe no faster.
            let turn = if probing.due > now { probing.due } else { due };
            probing.due = turn + size / probing.probe.rate;
            probing.sent += size.saturating_sub(self.uncounted);
            probing.packets += 1;
        }
        self.probing = self.probing.filter(|probing| !probing.is_complete());
        self.awaited = self.next_kind();
        Some(Release { size, media, probe })
    }

    /// A packet of this size left past the queue. What is queued waits for it, but not until all of
    /// a burst is paid: a stack that repeats a lost second at once would silence its media.
    pub fn on_packet_sent(&mut self, now: Timestamp, size: DataSize) {
        let most = self.paced.ends.max(now + MAX_DEBT_OF_OTHERS);
        self.charge(now, Kind::Media, now, size);
        self.paced.ends = self.paced.ends.min(most);
    }

    /// Charges a packet that leaves now and was due before.
    fn charge(&mut self, now: Timestamp, kind: Kind, due: Timestamp, size: DataSize) {
        self.paced.charge(due, size);
        let is_whole = matches!(self.burst, Burst::Whole(all) if self.paced.ends - now >= all);
        self.resting = is_whole && !self.queue.is_empty();
        // The padding did not wait for the driver while something else was to leave.
        self.padded.charge(if kind == Kind::Padding { due } else { now }, size);
        self.padded.ends = self.padded.ends.min(now + MAX_PADDING_DEBT);
    }

    /// A probe waits for a media packet, because there is nothing to pad before the first one.
    fn running_probe(&self) -> Option<&Probing> {
        self.probing.as_ref().filter(|probing| probing.packets > 0 || !self.queue.is_empty())
    }
}
