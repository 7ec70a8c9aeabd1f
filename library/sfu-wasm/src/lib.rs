//! What a forwarding server decides for one subscriber, as WebAssembly: the controller, the prober
//! and the allocator of `weir-sfu`, without its send path.
//!
//! `library/go/sfu` is the other side. Each instance of the module holds one [`Chooser`].

mod border;

use weir::controller::{Controller, Probe, RateLimits};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_sfu::{Allocator, Decision, Probing};

/// Repair takes at most this part of the target away from the pictures, as in
/// [`weir_sfu::Subscriber`].
const MAX_REPAIR_SHARE: f64 = 0.5;

/// Chooses layers and probes for one subscriber, for a server that sends by itself.
///
/// The host says what left and what arrived, and calls [`choose`](Self::choose) every 100 ms and
/// when the target fell.
pub struct Chooser {
    prober: Probing<Box<dyn Controller + Send>>,
    /// The tracks, and what was chosen for them.
    pub allocator: Allocator,
    /// What was last chosen under, everything that is sent included.
    budget: Bitrate,
    seen_outcome: u64,
    outcomes: Vec<Decision>,
}

impl Chooser {
    /// A chooser without tracks over this controller, which has these limits.
    pub fn new(controller: Box<dyn Controller + Send>, limits: RateLimits) -> Self {
        Self {
            prober: Probing::new(controller, limits),
            allocator: Allocator::default(),
            budget: Bitrate::ZERO,
            seen_outcome: 0,
            outcomes: Vec::new(),
        }
    }

    /// A packet left. The host has no queue: what comes is sent.
    pub fn on_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        if !packet.padding {
            self.prober.on_media_queued(now, packet.size, packet.size);
        }
        self.prober.on_packet_sent(now, packet);
        self.on_timeout(now);
    }

    /// Feedback came.
    pub fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.prober.on_feedback(now, report);
        self.note_outcome();
        self.on_timeout(now);
    }

    /// A round-trip time was measured.
    pub fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.prober.on_round_trip_time(now, rtt);
    }

    /// The receiver set a limit, or lifted it.
    pub fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.prober.on_receiver_limit(now, limit);
    }

    /// The range of the target changed.
    pub fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.prober.set_limits(now, limits);
    }

    /// Packets take another route from now on.
    pub fn on_route_change(&mut self, now: Timestamp) {
        self.prober.on_route_change(now);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.prober.next_timeout().is_some_and(|due| due <= now) {
            self.prober.on_timeout(now);
            self.note_outcome();
        }
    }

    /// Chooses layers. `repair` is what retransmissions take now.
    pub fn choose(&mut self, now: Timestamp, repair: Bitrate) {
        self.on_timeout(now);
        self.budget = self.prober.budget();
        let other = self.allocator.audio() + repair.min(self.budget * MAX_REPAIR_SHARE);
        let room = self.prober.room().saturating_sub(other);
        self.allocator.allocate_within(now, self.budget.saturating_sub(other), room);
        // Without a better layer, what is chosen must stay known to fit.
        let chosen = self.allocator.total() + other;
        let relied = (chosen > self.prober.inner().target().bitrate).then_some(chosen);
        let next = self.allocator.next_need(now).map(|need| need + other);
        self.prober.set_wanted(Some(self.allocator.most_need() + other));
        self.prober.set_desired_bitrate(now, next.or(relied));
        self.note_outcome();
    }

    /// Whether a fall of the target cannot wait for the next [`choose`](Self::choose).
    pub fn has_fallen(&self) -> bool {
        self.prober.budget() < self.budget * 0.95
    }

    /// The probe that should run now.
    pub fn probe(&self) -> Option<Probe> {
        self.prober.target().probe
    }

    /// The controller's target, or what was proved.
    pub fn target(&self) -> Bitrate {
        self.prober.target().bitrate
    }

    /// Why the target is what it is, for the host's log.
    pub fn why(&self) -> String {
        let metrics = self.prober.inner().metrics();
        let queue = metrics.queuing_delay.unwrap_or(TimeDelta::ZERO).as_millis_f64();
        let loss = metrics.loss_ratio * 100.0;
        let arrived = metrics.acknowledged_bitrate.unwrap_or(Bitrate::ZERO).as_kbps_f64();
        let (reason, target) = (metrics.reason.as_str(), self.prober.inner().target().bitrate);
        format!(
            "{reason}: {target}, queue {queue:.1} ms, loss {loss:.1} %, arrived {arrived:.0} kbit/s"
        )
    }

    fn note_outcome(&mut self) {
        let Some(outcome) = self.prober.last_outcome() else { return };
        if outcome.number != self.seen_outcome {
            self.seen_outcome = outcome.number;
            self.outcomes.push(outcome.decision(self.budget));
        }
    }

    /// The next decision, for the host's log: those on probes come first.
    pub fn next_decision(&mut self) -> Option<Decision> {
        if self.outcomes.is_empty() {
            return self.allocator.next_decision();
        }
        Some(self.outcomes.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::Algorithm;
    use weir::feedback::PacketReport;
    use weir::units::DataSize;
    use weir_sfu::{Layer, TrackConfig, TrackId};

    const CAMERA: TrackId = TrackId(7);
    /// Bytes of a packet of media, and of one of padding.
    const MEDIA: f64 = 1_000.0;
    const PADDING: f64 = 240.0;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    /// A link of one rate, over which the chosen layer and the probes are sent.
    struct Room {
        chooser: Chooser,
        now: Timestamp,
        number: i64,
        /// When the link is free again.
        free: Timestamp,
        /// Nothing passes before this time.
        out_until: Timestamp,
        /// Bytes of media and of padding that are due.
        due: [f64; 2],
        probe: (u32, f64),
        reports: Vec<PacketReport>,
        texts: Vec<String>,
    }

    impl Room {
        fn new() -> Self {
            let limits = RateLimits::new(kbps(50), kbps(300), kbps(10_000)).expect("valid");
            let mut chooser = Chooser::new(Algorithm::Sluice.build(limits), limits);
            let mut layers = Vec::new();
            for (stream, height, rate) in [(0, 180, 100), (1, 360, 500), (2, 720, 1_500)] {
                layers.push(Layer::new(stream, height * 16 / 9, height, kbps(rate)));
            }
            let camera = TrackConfig::camera(layers).with_shown(1280, 720);
            chooser.allocator.set_track(CAMERA, camera);
            let start = Timestamp::ZERO;
            let (reports, texts) = (Vec::new(), Vec::new());
            let (due, probe) = ([0.0; 2], (0, 0.0));
            let (now, free, out_until) = (start, start, start);
            Self { chooser, now, number: 0, free, out_until, due, probe, reports, texts }
        }

        fn send(&mut self, link: Bitrate, is_padding: bool) {
            let bytes = if is_padding { PADDING } else { MEDIA };
            let size = DataSize::from_bytes(bytes as u64);
            self.due[usize::from(is_padding)] -= bytes;
            let probe = self.chooser.probe().filter(|_| self.probe.1 > 0.0).map(|probe| probe.id);
            self.probe.1 -= bytes;
            let packet =
                SentPacket::new(self.number, size).with_padding(is_padding).with_probe(probe);
            self.chooser.on_sent(self.now, &packet);
            let begin = self.now.max(self.out_until);
            let is_lost = self.free - begin > TimeDelta::from_millis(300);
            if !is_lost {
                self.free = self.free.max(begin) + size / link;
            }
            let arrival = (!is_lost).then_some(self.free + TimeDelta::from_millis(20));
            let report = PacketReport::new(self.number, size, self.now);
            self.reports.push(report.with_arrival_time(arrival).with_probe(probe));
            self.number += 1;
        }

        fn run(&mut self, seconds: i64, link: Bitrate) {
            let end = self.now + TimeDelta::from_secs(seconds);
            let rates = [100_000.0, 500_000.0, 1_500_000.0];
            while self.now < end {
                self.now += TimeDelta::from_millis(5);
                let level = self.chooser.allocator.level(CAMERA);
                self.due[0] += level.map_or(0.0, |level| rates[level]) / 8.0 * 0.005;
                if let Some(probe) = self.chooser.probe() {
                    if probe.id.0 != self.probe.0 {
                        self.probe = (probe.id.0, probe.size.as_bytes() as f64);
                        self.due[1] = 0.0;
                    }
                    if self.probe.1 > 0.0 {
                        self.due[1] += probe.rate.as_bps_f64() / 8.0 * 0.005;
                    }
                }
                while self.due[0] >= MEDIA {
                    self.send(link, false);
                }
                while self.due[1] >= PADDING && self.probe.1 > 0.0 {
                    self.send(link, true);
                }
                if self.now.as_nanos() % 50_000_000 == 0 {
                    self.feed_back();
                }
            }
        }

        fn feed_back(&mut self) {
            // A receiver knows of a loss when a later packet comes.
            let mut known = 0;
            for (place, report) in self.reports.iter().enumerate() {
                if report.arrival_time.is_some_and(|at| at < self.now) {
                    known = place + 1;
                }
            }
            let here: Vec<PacketReport> = self.reports.drain(..known).collect();
            if !here.is_empty() {
                self.chooser.on_feedback(self.now, &FeedbackReport::new(here));
            }
            if self.now.as_nanos() % 100_000_000 == 0 || self.chooser.has_fallen() {
                self.chooser.choose(self.now, Bitrate::ZERO);
            }
            while let Some(decision) = self.chooser.next_decision() {
                self.texts.push(decision.to_string());
            }
        }
    }

    #[test]
    fn probes_lead_to_the_best_layer_and_a_fall_to_what_fits() {
        let mut room = Room::new();
        room.run(15, kbps(3_000));
        assert_eq!(room.chooser.allocator.level(CAMERA), Some(2), "{:#?}", room.texts);
        room.run(5, kbps(400));
        assert_eq!(room.chooser.allocator.level(CAMERA), Some(0), "{:#?}", room.texts);
        room.run(30, kbps(3_000));
        assert_eq!(room.chooser.allocator.level(CAMERA), Some(2), "{:#?}", room.texts);
    }

    #[test]
    fn after_an_outage_the_best_layer_comes_back() {
        let mut room = Room::new();
        room.run(15, kbps(3_000));
        room.out_until = room.now + TimeDelta::from_secs(2);
        room.run(13, kbps(3_000));
        assert_eq!(room.chooser.allocator.level(CAMERA), Some(2), "{:#?}", room.texts);
    }

    #[test]
    fn limits_and_routes_reach_the_controller() {
        let mut room = Room::new();
        room.run(15, kbps(3_000));
        room.chooser.on_receiver_limit(room.now, Some(kbps(700)));
        room.run(2, kbps(3_000));
        assert_eq!(room.chooser.allocator.level(CAMERA), Some(1), "{:#?}", room.texts);
        room.chooser.on_receiver_limit(room.now, None);
        room.run(20, kbps(3_000));
        assert_eq!(room.chooser.allocator.level(CAMERA), Some(2), "{:#?}", room.texts);
        let limits = RateLimits::new(kbps(50), kbps(250), kbps(400)).expect("valid");
        room.chooser.set_limits(room.now, limits);
        room.run(2, kbps(3_000));
        assert_eq!(room.chooser.allocator.level(CAMERA), Some(0), "{:#?}", room.texts);
        room.chooser.on_route_change(room.now);
        assert_eq!(room.chooser.target(), kbps(250));
    }

    #[test]
    fn every_decision_says_why() {
        let mut room = Room::new();
        room.run(15, kbps(3_000));
        assert!(room.texts.iter().any(|text| text.contains("Probe {")), "{:#?}", room.texts);
        assert!(room.texts.iter().all(|text| text.contains(" because ")), "{:#?}", room.texts);
        let (why, target) = (room.chooser.why(), room.chooser.prober.inner().target().bitrate);
        assert!(why.starts_with(&format!("ramp-up: {target}, queue ")), "{why}");
    }
}
