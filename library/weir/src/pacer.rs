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
//! [GCC §4]: https://datatracker.ietf.org/doc/html/draft-ietf-rmcat-gcc-02#section-4

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

/// A first-in first-out send queue with a rate.
#[derive(Clone, Debug)]
pub struct Pacer<T> {
    queue: VecDeque<(DataSize, T)>,
    queued: DataSize,
    /// Number of urgent packets at the front of the queue.
    urgent: usize,
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
            urgent: 0,
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

    /// Puts a packet before all others except urgent ones that wait. For repair of media that was
    /// sent long ago, because it is already late.
    pub fn enqueue_urgent(&mut self, size: DataSize, packet: T) {
        self.queued += size;
        self.queue.insert(self.urgent, (size, packet));
        self.urgent += 1;
    }

    /// Drops all packets that wait. Packets sent before still count against the pacing rate.
    pub fn clear(&mut self) {
        self.awaited = None;
        self.queue.clear();
        self.queued = DataSize::ZERO;
        self.urgent = 0;
    }

    /// Bytes in the queue.
    pub fn queued(&self) -> DataSize {
        self.queued
    }

    /// Time at which the next packet may leave; `None` if there is no packet or the window is
    /// closed.
    pub fn next_send_time(&self) -> Option<Timestamp> {
        Some(match self.next_kind()? {
            Kind::Probe => self.running_probe()?.due,
            Kind::Media => self.paced.ends - self.ahead(),
            Kind::Padding => self.padded.ends.max(self.paced.ends),
        })
    }

    /// What leaves next; `None` if there is nothing or the window is closed.
    fn next_kind(&self) -> Option<Kind> {
        if !self.window_open {
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
        let kind = self.next_kind();
        let due = self.next_send_time().filter(|&due| due <= now);
        let (Some(kind), Some(due)) = (kind, due) else {
            self.awaited = kind;
            return None;
        };
        let due = self.due_time(now, kind, due);
        let probe = self.running_probe().map(|probing| probing.probe.id);
        let begins = self.running_probe().is_some_and(|probing| probing.packets == 0);
        let leads = self.leads_probes && begins;
        let next = if leads { None } else { self.queue.pop_front() };
        let (size, media) = match next {
            Some((size, packet)) => (size, Some(packet)),
            None => (self.padding_size, None),
        };
        if media.is_some() {
            self.urgent = self.urgent.saturating_sub(1);
            self.queued = self.queued.saturating_sub(size);
        }
        self.charge(now, kind, due, size);
        if let Some(probing) = self.probing.as_mut().filter(|_| probe.is_some()) {
            probing.due = due + size / probing.probe.rate;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Window;
    use alloc::vec::Vec;

    const SIZE: DataSize = DataSize::from_bytes(1250);

    fn target(pacing_kbps: u64, available: Option<u64>) -> Target {
        let rate = Bitrate::from_kbps(pacing_kbps);
        let window = available.map(|bytes| Window {
            congestion_window: DataSize::from_bytes(10_000),
            available: DataSize::from_bytes(bytes),
        });
        Target { window, ..Target::new(rate, rate) }
    }

    fn probe(id: u32, kbps: u64, bytes: u64, packets: u32) -> Option<Probe> {
        let (rate, size) = (Bitrate::from_kbps(kbps), DataSize::from_bytes(bytes));
        Some(Probe { id: ProbeId(id), rate, size, packets })
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// The packets that leave up to a time: their time in ms, the media (`None` for padding), the
    /// probe.
    fn sent_until(pacer: &mut Pacer<u32>, until_ms: i64) -> Vec<(i64, Option<u32>, Option<u32>)> {
        let mut sent = Vec::new();
        let mut now = Timestamp::ZERO;
        while let Some(next) = pacer.next_send_time().filter(|&next| next <= at(until_ms)) {
            now = now.max(next);
            let release = pacer.dequeue(now).expect("it said so");
            sent.push((now.as_millis(), release.media, release.probe.map(|id| id.0)));
        }
        sent
    }

    fn drain(pacer: &mut Pacer<u32>) -> Vec<(i64, u32)> {
        let sent = sent_until(pacer, 1_000_000);
        sent.into_iter().map(|(ms, media, _)| (ms, media.expect("no padding"))).collect()
    }

    #[test]
    fn packets_leave_in_order_at_the_pacing_rate_after_a_burst_of_5_ms() {
        let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
        (0..4).for_each(|packet| pacer.enqueue(SIZE, packet));
        assert_eq!(drain(&mut pacer), [(0, 0), (5, 1), (15, 2), (25, 3)]);
        assert_eq!(pacer.queued(), DataSize::ZERO);
    }

    // [LIBWEBRTC §PacingController]
    #[test]
    fn whole_bursts_leave_one_after_the_other_and_what_comes_later_joins_a_burst_with_room() {
        let burst = Burst::Whole(TimeDelta::from_millis(25));
        let mut pacer = Pacer::new(&Target { burst, ..target(1000, None) }); // 1250 B take 10 ms
        (0..7).for_each(|packet| pacer.enqueue(SIZE, packet));
        let sent = drain(&mut pacer);
        assert_eq!(sent, [(0, 0), (0, 1), (0, 2), (30, 3), (30, 4), (30, 5), (60, 6)]);
        // Paid up to 70 ms: a packet at 61 ms is 9 ms ahead.
        pacer.enqueue(SIZE, 7);
        assert_eq!(pacer.next_send_time(), Some(at(45)));
    }

    #[test]
    fn urgent_packets_overtake_those_that_wait_and_keep_their_own_order() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        pacer.enqueue_urgent(SIZE, 7);
        pacer.enqueue_urgent(SIZE, 8);
        pacer.enqueue(SIZE, 1);
        assert_eq!(pacer.dequeue(at(0)).unwrap().media, Some(7));
        pacer.enqueue_urgent(SIZE, 9);
        let rest: Vec<u32> = drain(&mut pacer).into_iter().map(|(_, packet)| packet).collect();
        assert_eq!(rest, [8, 9, 0, 1]);
        assert_eq!(pacer.queued(), DataSize::ZERO);
    }

    #[test]
    fn queued_packets_wait_for_one_that_left_past_the_queue() {
        let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
        pacer.enqueue(SIZE, 0);
        pacer.on_packet_sent(at(0), SIZE);
        assert_eq!(drain(&mut pacer), [(5, 0)], "5 ms is the burst that is allowed");
        pacer.enqueue(SIZE, 1);
        (0..1_000).for_each(|_| pacer.on_packet_sent(at(1_000), SIZE));
        assert_eq!(pacer.next_send_time(), Some(at(1_195)), "and not 10 s");
    }

    #[test]
    fn an_idle_time_saves_up_no_credit() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        assert!(pacer.dequeue(Timestamp::from_secs(9)).is_some());
        pacer.enqueue(SIZE, 1);
        assert_eq!(pacer.next_send_time(), Some(at(9_005)));
    }

    #[test]
    fn a_late_driver_makes_up_for_30_ms_and_no_more() {
        let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
        (0..20).for_each(|packet| pacer.enqueue(SIZE, packet));
        let mut sent_at = |ms| core::iter::from_fn(|| pacer.dequeue(at(ms))).count();
        assert_eq!(sent_at(0), 1, "the next one is due at 5 ms, the third at 15 ms");
        assert_eq!(sent_at(24), 2);
        assert_eq!(sent_at(26), 1, "the delay of 19 ms is made up for");
        assert_eq!(sent_at(1_000), 4, "30 ms, and one that leaves now");
        assert_eq!(sent_at(1_004), 0);
    }

    #[test]
    fn what_the_window_held_back_is_not_made_up_for() {
        let mut pacer = Pacer::new(&target(1000, None));
        (0..9).for_each(|packet| pacer.enqueue(SIZE, packet));
        assert!(pacer.dequeue(at(0)).is_some());
        pacer.set_target(at(0), &target(1000, Some(0)));
        pacer.set_target(at(1_000), &target(1000, Some(99_000)));
        let sent = core::iter::from_fn(|| pacer.dequeue(at(1_000))).count();
        assert_eq!(sent, 1, "as a driver that is on time");
    }

    #[test]
    fn a_late_driver_sends_a_probe_in_bursts_of_5_ms() {
        let mut pacer = Pacer::new(&target(1000, None));
        (0..40).for_each(|packet| pacer.enqueue(SIZE, packet));
        let probe = probe(1, 10_000, 50_000, 40); // 1250 B take 1 ms
        pacer.set_target(at(0), &Target { probe, ..target(1000, None) });
        let mut sent_at = |ms| core::iter::from_fn(|| pacer.dequeue(at(ms))).count();
        assert_eq!([sent_at(0), sent_at(5), sent_at(10), sent_at(30)], [1, 5, 5, 6]);
    }

    #[test]
    fn a_new_rate_applies_to_what_is_not_paid_yet() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        pacer.dequeue(Timestamp::ZERO);
        pacer.enqueue(SIZE, 1);
        pacer.set_target(Timestamp::ZERO, &target(500, None));
        assert_eq!(pacer.next_send_time(), Some(at(15)));
    }

    #[test]
    fn a_closed_window_holds_the_queue_and_an_open_one_lets_it_go() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        pacer.set_target(Timestamp::ZERO, &target(1000, Some(0)));
        assert_eq!(pacer.next_send_time(), None);
        assert_eq!(pacer.dequeue(Timestamp::from_secs(1)), None);
        pacer.set_target(Timestamp::ZERO, &target(1000, Some(1)));
        assert!(pacer.dequeue(Timestamp::from_secs(1)).is_some());
    }

    // At 5 Mbit/s, 1250 B take 2 ms, a padding packet of 313 B half a ms.
    #[test]
    fn a_probe_sends_media_first_and_then_padding_at_its_own_rate() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        pacer.enqueue(SIZE, 1);
        pacer.set_target(at(0), &Target { probe: probe(7, 5_000, 3_000, 5), ..target(1000, None) });
        let sent = sent_until(&mut pacer, 1_000);
        let padding = (None, Some(7));
        assert_eq!(sent[..2], [(0, Some(0), Some(7)), (2, Some(1), Some(7))]);
        assert_eq!(sent[2..].iter().map(|s| (s.1, s.2)).collect::<Vec<_>>(), [padding; 3]);
        assert_eq!(sent[2..].iter().map(|s| s.0).collect::<Vec<_>>(), [4, 4, 5]);
    }

    // [LIBWEBRTC §PacingController]
    #[test]
    fn a_small_packet_leads_each_probe_if_the_driver_can_pad_and_waits_for_media_itself() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.set_leads_probes(true);
        pacer.set_target(at(0), &Target { probe: probe(7, 5_000, 3_000, 4), ..target(1000, None) });
        assert_eq!(pacer.next_send_time(), None);
        pacer.enqueue(SIZE, 0);
        pacer.enqueue(SIZE, 1);
        let sent = sent_until(&mut pacer, 1_000);
        let media: Vec<_> = sent.iter().map(|s| s.1).collect();
        assert_eq!(media, [None, Some(0), Some(1), None]);
        assert!(sent.iter().all(|s| s.2 == Some(7)));
    }

    #[test]
    fn a_probe_ends_only_with_its_bytes_and_its_packets() {
        for (bytes, packets, expect) in [(1, 4, 4), (1_000, 1, 4), (1_253, 5, 5)] {
            let mut pacer = Pacer::new(&target(1000, None));
            pacer.enqueue(PADDING_PACKET, 0);
            let probe = probe(1, 5_000, bytes, packets);
            pacer.set_target(at(0), &Target { probe, ..target(1000, None) });
            assert_eq!(sent_until(&mut pacer, 1_000).len(), expect, "{bytes} B, {packets} packets");
        }
    }

    #[test]
    fn a_probe_waits_for_a_media_packet_and_is_sent_once() {
        let mut pacer = Pacer::new(&target(1000, None));
        let wanted = Target { probe: probe(1, 5_000, 2_000, 1), ..target(1000, None) };
        pacer.set_target(at(0), &wanted);
        assert_eq!(pacer.next_send_time(), None);
        pacer.enqueue(SIZE, 0);
        assert_eq!(sent_until(&mut pacer, 1_000).len(), 4, "one packet and three of padding");
        pacer.set_target(at(100), &wanted);
        pacer.enqueue(SIZE, 1);
        assert_eq!(sent_until(&mut pacer, 1_000).len(), 1);
    }

    #[test]
    fn a_new_probe_takes_the_place_of_an_old_one_and_none_ends_it() {
        let mut pacer = Pacer::new(&target(1000, None));
        let wanted = |probe| Target { probe, ..target(1000, None) };
        (0..3).for_each(|packet| pacer.enqueue(SIZE, packet));
        pacer.set_target(at(0), &wanted(probe(1, 5_000, 9_000, 9)));
        assert_eq!(pacer.dequeue(at(0)).unwrap().probe, Some(ProbeId(1)));
        pacer.set_target(at(0), &wanted(probe(2, 5_000, 9_000, 9)));
        assert_eq!(pacer.dequeue(at(0)).unwrap().probe, Some(ProbeId(2)));
        pacer.set_target(at(0), &wanted(None));
        // Two packets of 10 ms have been sent. The burst lets the third one leave 5 ms earlier.
        assert_eq!(sent_until(&mut pacer, 1_000), [(15, Some(2), None)]);
    }

    #[test]
    fn a_cleared_queue_is_empty_and_what_left_before_still_counts() {
        let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
        (0..3).for_each(|packet| pacer.enqueue(SIZE, packet));
        pacer.enqueue_urgent(SIZE, 9);
        assert_eq!(pacer.dequeue(at(0)).unwrap().media, Some(9));
        pacer.clear();
        assert_eq!((pacer.queued(), pacer.next_send_time()), (DataSize::ZERO, None));
        pacer.enqueue(SIZE, 7);
        assert_eq!(drain(&mut pacer), [(5, 7)]);
    }

    #[test]
    fn padding_packets_have_the_size_that_the_driver_makes() {
        let padding_rate = Bitrate::from_kbps(800);
        let mut pacer: Pacer<u32> = Pacer::new(&Target { padding_rate, ..target(10_000, None) });
        pacer.set_padding_size(DataSize::from_bytes(100)); // 1 ms
        let release = pacer.dequeue(at(0)).unwrap();
        assert_eq!((release.size.as_bytes(), release.media), (100, None));
        assert_eq!(pacer.next_send_time(), Some(at(1)));
    }

    // At 626 kbit/s, 313 B take 4 ms. Media counts too.
    #[test]
    fn padding_fills_up_to_the_padding_rate() {
        let padding_rate = Bitrate::from_kbps(626);
        let mut pacer = Pacer::new(&Target { padding_rate, ..target(10_000, None) });
        let times = |sent: Vec<(i64, Option<u32>, Option<u32>)>| -> Vec<i64> {
            sent.iter().map(|s| s.0).collect()
        };
        assert_eq!(times(sent_until(&mut pacer, 10)), [0, 4, 8]);
        pacer.enqueue(PADDING_PACKET, 0);
        assert_eq!(pacer.dequeue(at(11)).unwrap().media, Some(0));
        assert_eq!(pacer.next_send_time(), Some(at(16)), "12 ms were paid, and the media packet");
    }

    #[test]
    fn media_above_the_padding_rate_keeps_padding_away_for_half_a_second_at_most() {
        let padding_rate = Bitrate::from_kbps(10);
        let mut pacer = Pacer::new(&Target { padding_rate, ..target(10_000, None) });
        (0..10).for_each(|packet| pacer.enqueue(SIZE, packet));
        while pacer.queued() > DataSize::ZERO {
            pacer.dequeue(at(20)).unwrap();
            if pacer.queued() > DataSize::ZERO {
                pacer.set_target(at(20), &Target { padding_rate, ..target(1_000_000, None) });
            }
        }
        assert_eq!(pacer.next_send_time(), Some(at(520)));
    }
}
