//! A controller that learns whether more than the media fits.
//!
//! What a server sends is limited by the layers that exist, so a controller hears nothing of the
//! rate between two layers: it holds its target at some multiple of what is sent. [`Probing`] wraps
//! any controller. Told what the next layer needs, it looks at trains of packets: first at those
//! that media makes anyway, such as key frames, then at probes. A rate at which a train arrived
//! without queuing counts as proved, until the controller sees congestion or some seconds have
//! passed.

mod outcome;
#[cfg(test)]
mod tests;

use weir::controller::{Controller, Metrics, Probe, RateLimits, Reason, Target};
use weir::feedback::{FeedbackReport, ProbeId, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

pub use self::outcome::{ProbeOutcome, ProbeResult};
use crate::ceiling::Ceiling;
use crate::pairs::Pairs;
use crate::trains::{Train, Trains};
use crate::usual_loss::UsualLoss;

/// How long a probe lasts. Its queue drains within some hundred milliseconds even if only half of
/// its rate fits.
const LENGTH: TimeDelta = TimeDelta::from_millis(80);
/// A probe is at most this factor above the target.
const MAX_FACTOR: f64 = 2.0;
/// A probe is a little above its goal: pacers wake up late, so less is sent and measured.
const ABOVE_GOAL: f64 = 1.1;
/// On a busy machine packets leave later than the pacer wants. The next probe asks for more, by the
/// factor that the last one fell short, up to this.
const MAX_SHORTFALL: f64 = 2.0;
/// A shortfall above this is a late host's. Packets of different sizes make a smaller one, too.
const LATE: f64 = 1.2;
/// Share of the media's bytes that padding may take in the long run.
const PADDING_SHARE: f64 = 0.025;
/// What padding may take at once: at the start, and after a time without.
const MAX_ALLOWANCE: f64 = 60_000.0;
/// Time between a probe and the next.
const AFTER_SUCCESS: TimeDelta = TimeDelta::from_millis(500);
const AFTER_FAILURE: TimeDelta = TimeDelta::from_secs(4);
const MAX_AFTER_FAILURE: TimeDelta = TimeDelta::from_secs(8);
/// No probe so soon after the controller reduced its target: its queue may still stand.
const AFTER_FALL: TimeDelta = TimeDelta::from_secs(2);
/// No probe without feedback as young as this, unless nothing was sent either.
const MAX_SILENCE: TimeDelta = TimeDelta::from_millis(1_000);
/// Bytes per second that may go into probes while nothing else is sent, so that a paused picture
/// does not wait for feedback that cannot come.
const IDLE_ALLOWANCE: f64 = 1_000.0;
/// Padding packets are small. Without media between them, this much is enough packets to judge.
const MIN_IDLE_SIZE: DataSize = DataSize::from_bytes(2_400);
/// What was proved holds for this time, in which the controller catches up.
const PROOF_TIME: TimeDelta = TimeDelta::from_secs(30);
/// After this time it is probed again, if more than the inner target is needed.
const RENEW_AFTER: TimeDelta = TimeDelta::from_secs(12);
/// A train of at least this part of what was proved renews it.
const RENEWS: f64 = 0.9;
/// Without feedback on its packets, a probe is given up.
const PATIENCE: TimeDelta = TimeDelta::from_secs(3);
/// A train that waited longer than this at its end found less than its rate.
const MAX_QUEUED: TimeDelta = TimeDelta::from_millis(8);
/// The same for media, whose packets also queue behind each other's bursts.
const MAX_MEDIA_QUEUED: TimeDelta = TimeDelta::from_millis(30);
/// The inner controller may send less for a moment to measure its path, or to learn whether what is
/// lost is a policer's. After this time its target counts as it is.
const TEST_TIME: TimeDelta = TimeDelta::from_millis(3_500);
/// After a probe that queued the controller gets this time to come back to what was sent before.
const RECOVERY_TIME: TimeDelta = TimeDelta::from_secs(8);
/// A fall so soon after a probe that queued is the probe's doing.
const BLAME_TIME: TimeDelta = TimeDelta::from_secs(1);
/// Time between two looks at whether to probe.
const TICK: TimeDelta = TimeDelta::from_millis(100);
/// Numbers of probes. The inner controller, which may count probes of its own, must not take these
/// for them.
const FIRST_ID: u32 = 1 << 16;

/// A controller around a controller, which probes for what [`Controller::set_desired_bitrate`]
/// asks.
///
/// Probes and padding of the inner controller are left out, so that there is one prober.
#[derive(Clone, Debug)]
pub struct Probing<C> {
    inner: C,
    limits: RateLimits,
    receiver_limit: Option<Bitrate>,
    /// What the next layer needs.
    goal: Option<Bitrate>,
    proved: Option<Proof>,
    ceiling: Ceiling,
    loss: UsualLoss,
    pairs: Pairs,
    trains: Trains,
    running: Option<Running>,
    next_id: u32,
    not_before: Timestamp,
    after_failure: TimeDelta,
    /// How much faster the last probe was asked for than it was sent.
    shortfall: f64,
    /// Bytes of padding that may be sent.
    allowance: f64,
    /// The inner target after the last event.
    inner_rate: Bitrate,
    dip: Option<Dip>,
    last_feedback: Option<Timestamp>,
    /// When a packet last left, or the first event.
    last_sent: Option<Timestamp>,
    /// When the allowance last grew because nothing was sent.
    refilled: Option<Timestamp>,
    next_tick: Option<Timestamp>,
    outcome: Option<ProbeOutcome>,
}

/// A rate that is known to fit.
#[derive(Clone, Copy, Debug)]
struct Proof {
    rate: Bitrate,
    at: Timestamp,
}

/// A fall of the inner target for which the path is not to blame, but a test or a probe.
#[derive(Clone, Copy, Debug)]
struct Dip {
    /// What counts meanwhile.
    rate: Bitrate,
    at: Timestamp,
    until: Timestamp,
    is_probe: bool,
}

impl Dip {
    /// The controller notices a queue a little later than the probe is judged.
    fn is_over(&self, now: Timestamp, rate: Bitrate) -> bool {
        now > self.until || now - self.at > BLAME_TIME && rate >= self.rate
    }
}

#[derive(Clone, Copy, Debug)]
struct Running {
    probe: Probe,
    started: Timestamp,
    /// The inner target when it started.
    inner_rate: Bitrate,
    /// Nothing else was sent when it started.
    is_alone: bool,
}

impl<C: Controller> Probing<C> {
    /// A prober around this controller, which has these limits.
    pub fn new(inner: C, limits: RateLimits) -> Self {
        let inner_rate = inner.target().bitrate;
        Self {
            inner,
            limits,
            receiver_limit: None,
            goal: None,
            proved: None,
            ceiling: Ceiling::default(),
            loss: UsualLoss::default(),
            pairs: Pairs::default(),
            trains: Trains::default(),
            running: None,
            next_id: FIRST_ID,
            not_before: Timestamp::from_nanos(i64::MIN),
            after_failure: AFTER_FAILURE,
            shortfall: 1.0,
            allowance: MAX_ALLOWANCE,
            inner_rate,
            dip: None,
            last_feedback: None,
            last_sent: None,
            refilled: None,
            next_tick: None,
            outcome: None,
        }
    }

    /// The wrapped controller.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    /// The last outcome. Its number tells whether it is new.
    pub fn last_outcome(&self) -> Option<ProbeOutcome> {
        self.outcome
    }

    fn note(&mut self, now: Timestamp, result: ProbeResult) {
        let number = self.outcome.map_or(0, |outcome| outcome.number) + 1;
        self.outcome = Some(ProbeOutcome { number, at: now, result });
    }

    /// The inner target, or what was proved.
    fn bitrate(&self) -> Bitrate {
        let proved = self.proved.map_or(Bitrate::ZERO, |proof| proof.rate);
        let proved = self.limits.cap(proved, self.receiver_limit).min(self.limits.max());
        self.inner_rate.max(proved)
    }

    /// What may be relied on for what is sent now: the target, but not a dip that the controller
    /// makes for a test of its own, or after a probe that queued.
    pub fn budget(&self) -> Bitrate {
        self.bitrate().max(self.dip.map_or(Bitrate::ZERO, |dip| dip.rate))
    }

    /// What may be relied on for more than is sent now: the target, but what lies above the rate
    /// that arrived when the path was last full must be proved first. For what is sent already,
    /// the target counts.
    pub fn room(&self) -> Bitrate {
        let proved = self.proved.map_or(Bitrate::ZERO, |proof| proof.rate);
        self.unproved().max(proved).min(self.budget())
    }

    /// The part of the inner target that needs no proof.
    fn unproved(&self) -> Bitrate {
        let inner = self.dip.map_or(self.inner_rate, |dip| dip.rate.max(self.inner_rate));
        self.ceiling.rate().map_or(inner, |ceiling| ceiling.min(inner))
    }

    /// Notices that the inner target fell, or that a proof is old.
    fn follow_inner(&mut self, now: Timestamp) {
        let rate = self.inner.target().bitrate;
        if rate < self.inner_rate * 0.98 {
            self.on_inner_fall(now, self.inner.metrics().reason);
        }
        self.inner_rate = rate;
        if self.dip.is_some_and(|dip| dip.is_over(now, rate)) {
            self.dip = None;
        }
        let relied = self.unproved();
        if self.proved.is_some_and(|proof| now - proof.at > PROOF_TIME || proof.rate <= relied) {
            self.proved = None;
        }
    }

    fn on_inner_fall(&mut self, now: Timestamp, reason: Reason) {
        if reason == Reason::BaseTest && self.dip.is_none() {
            let (rate, until) = (self.inner_rate, now + TEST_TIME);
            self.dip = Some(Dip { rate, at: now, until, is_probe: false });
        }
        if is_congestion(reason) {
            self.on_path_full(now);
        }
    }

    /// What was proved fits no longer, unless a probe has just filled the path.
    fn on_path_full(&mut self, now: Timestamp) {
        self.not_before = self.not_before.max(now + AFTER_FALL);
        self.ceiling.on_full(Bitrate::ZERO);
        self.loss.on_full();
        if !self.dip.is_some_and(|dip| dip.is_probe && now - dip.at <= BLAME_TIME) {
            (self.proved, self.dip) = (None, None);
        }
    }

    fn on_train(&mut self, now: Timestamp, train: Train) {
        let running = self.running.filter(|running| Some(running.probe.id) == train.probe);
        if let Some(running) = running {
            self.running = None;
            self.judge_probe(now, running, train);
            return;
        }
        if !self.learn_from_media(now, train)
            && self.proved.is_some_and(|proof| proof.rate >= train.send_rate())
            && (train.queued() > MAX_MEDIA_QUEUED || self.lost_much(&train))
        {
            self.fail(now, train.delivered_rate());
        }
    }

    /// Whether media lost more than a packet, and more than usual.
    fn lost_much(&self, train: &Train) -> bool {
        train.lost() > 1 && !train.lost_as_usual(self.loss.ratio())
    }

    /// A key frame or another busy moment shows the same as a probe, and costs nothing. Returns
    /// whether the train showed more than was known.
    fn learn_from_media(&mut self, now: Timestamp, train: Train) -> bool {
        let (rate, known) = (train.carried_rate(), self.room());
        let has_arrived = train.lost_as_usual(self.loss.ratio()) && train.queued() <= MAX_QUEUED;
        if has_arrived {
            self.ceiling.on_carried(rate);
        }
        if let Some(proof) = &mut self.proved
            && has_arrived
            && rate >= proof.rate * RENEWS
        {
            proof.at = now;
        }
        let is_news = has_arrived && rate > known && self.goal.is_some_and(|goal| goal > known);
        if is_news {
            self.proved = Some(Proof { rate, at: now });
            self.note(now, ProbeResult::MediaArrived(rate));
        }
        is_news
    }

    fn judge_probe(&mut self, now: Timestamp, running: Running, train: Train) {
        self.shortfall = (running.probe.rate / train.send_rate()).clamp(1.0, MAX_SHORTFALL);
        let has_arrived = train.lost_as_usual(self.loss.ratio());
        let rate = if has_arrived { train.carried_rate() } else { train.delivered_rate() };
        if !has_arrived || train.queued() > MAX_QUEUED {
            self.fail(now, rate);
            if has_arrived {
                self.forgive(now, running.inner_rate, rate);
            }
            return;
        }
        self.ceiling.on_carried(rate);
        let held = self.proved.map(|proof| proof.rate).filter(|held| rate >= *held * RENEWS);
        let rate = held.map_or(rate, |held| held.max(rate));
        if rate > self.unproved() {
            self.proved = Some(Proof { rate, at: now });
        }
        self.after_failure = AFTER_FAILURE;
        self.not_before = now + AFTER_SUCCESS;
        self.note(now, ProbeResult::Arrived(rate));
    }

    /// A probe queued, but all of it arrived, at this rate: so much the path carries, whatever the
    /// controller makes of the queue that it did not ask for.
    fn forgive(&mut self, now: Timestamp, inner_before: Bitrate, rate: Bitrate) {
        self.pairs.on_full(rate);
        if rate > self.room() {
            self.proved = Some(Proof { rate, at: now });
            // More is known than before, so the next one need not wait longer.
            self.after_failure = AFTER_FAILURE;
        }
        let (rate, until) = (rate.min(inner_before), now + RECOVERY_TIME);
        self.dip = Some(Dip { rate, at: now, until, is_probe: true });
    }

    /// Pairs of packets arrive faster than the path could before, so a probe need not wait.
    fn look_at_pairs(&mut self, now: Timestamp, report: &FeedbackReport) {
        for packet in &report.packets {
            if self.pairs.on_packet(packet) {
                self.not_before = self.not_before.min(now);
                self.after_failure = AFTER_FAILURE;
            }
        }
    }

    /// The next probe waits, each time twice as long.
    fn fail(&mut self, now: Timestamp, rate: Bitrate) {
        self.ceiling.on_full(rate);
        self.proved = self.proved.filter(|proof| rate >= proof.rate * RENEWS);
        self.not_before = now + self.after_failure;
        self.after_failure = (self.after_failure * 2).min(MAX_AFTER_FAILURE);
        self.note(now, ProbeResult::Queued(rate));
    }

    /// Starts a probe if one is needed, cannot hurt, and is paid for.
    fn consider(&mut self, now: Timestamp) {
        if let Some(running) = self.running
            && now - running.started > PATIENCE
        {
            self.running = None;
            self.not_before = now + self.after_failure;
            self.note(now, ProbeResult::Unanswered);
        }
        let Some(goal) = self.goal else { return };
        let known = self.room();
        // First what is relied on already, then more.
        let stale = self.proved.filter(|proof| now - proof.at > RENEW_AFTER);
        let stale = stale.filter(|_| goal > self.inner_rate);
        let is_known = goal <= known && stale.is_none();
        if is_known || self.running.is_some() || now < self.not_before || !self.may_send(now) {
            return;
        }
        // The bound is for what leaves. A host that wakes up late lets less leave than it is asked.
        let late = if self.shortfall > LATE { self.shortfall } else { 1.0 };
        let rate = (goal * ABOVE_GOAL * self.shortfall).min(known * (MAX_FACTOR * late));
        let rate = stale.map_or(rate, |proof| rate.min(proof.rate * self.shortfall));
        let size = rate * LENGTH;
        let size = if self.is_idle(now) { size.max(MIN_IDLE_SIZE) } else { size };
        let is_most = self.limits.max() <= known && stale.is_none();
        if self.allowance < size.as_bytes() as f64 || is_most {
            return;
        }
        let probe = Probe::new(ProbeId(self.next_id), rate, size, 6);
        self.next_id += 1;
        let (inner_rate, is_alone) = (self.inner_rate, self.is_idle(now));
        self.running = Some(Running { probe, started: now, inner_rate, is_alone });
        self.note(now, ProbeResult::Started(probe));
    }

    /// Whether nothing has been sent for a while.
    fn is_idle(&self, now: Timestamp) -> bool {
        self.last_sent.is_some_and(|last| now - last > MAX_SILENCE)
    }

    /// Whether the path is known to be alive, or nothing was sent that could show it.
    fn may_send(&self, now: Timestamp) -> bool {
        let is_heard = self.last_feedback.is_some_and(|at| now - at <= MAX_SILENCE);
        is_heard || self.is_idle(now)
    }

    /// Lets the allowance grow while nothing is sent.
    fn refill(&mut self, now: Timestamp) {
        self.last_sent.get_or_insert(now);
        let last = self.refilled.replace(now).unwrap_or(now);
        if self.goal.is_some() && self.is_idle(now) {
            let more = IDLE_ALLOWANCE * (now - last).as_secs_f64().max(0.0);
            self.allowance = (self.allowance + more).min(MAX_ALLOWANCE);
        }
    }

    fn after_event(&mut self, now: Timestamp) {
        self.refill(now);
        self.follow_inner(now);
        self.consider(now);
        if self.next_tick.is_none_or(|tick| tick <= now) {
            self.next_tick = self.goal.map(|_| now + TICK);
        }
    }
}

/// Whether the reason for a lower target is the state of the path.
fn is_congestion(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::OverUse
            | Reason::QueuingDelay
            | Reason::Loss
            | Reason::Ecn
            | Reason::Competing
            | Reason::FeedbackLost
            | Reason::ReceiverLimit
    )
}

impl<C: Controller> Controller for Probing<C> {
    fn on_media_queued(&mut self, now: Timestamp, added: DataSize, queued: DataSize) {
        self.inner.on_media_queued(now, added, queued);
        self.after_event(now);
    }

    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.inner.on_packet_sent(now, packet);
        if !packet.padding {
            self.last_sent = Some(now);
        }
        let bytes = packet.size.as_bytes() as f64;
        let change = if packet.padding { -bytes } else { PADDING_SHARE * bytes };
        self.allowance = (self.allowance + change).min(MAX_ALLOWANCE);
        // The inner target hardly changes with a packet, and metrics are dear: wait for feedback.
        self.inner_rate = self.inner.target().bitrate;
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        if report.new_clock {
            self.trains.clear();
            self.ceiling.on_new_clock();
        }
        self.ceiling.on_feedback(report);
        self.loss.on_feedback(report);
        // The controller may have less than what was proved, and no reason to fall.
        if self.loss.is_congestion() {
            self.on_path_full(now);
        }
        self.look_at_pairs(now, report);
        self.last_feedback = Some(now);
        self.inner.on_feedback(now, report);
        self.follow_inner(now);
        for packet in &report.packets {
            if let Some(train) = self.trains.on_packet(packet) {
                self.on_train(now, train);
            }
        }
        if let Some(Running { probe, is_alone: true, .. }) = self.running
            && let Some(train) = self.trains.end_probe(probe.id, probe.size)
        {
            self.on_train(now, train);
        }
        if let Some(train) = self.trains.open_media() {
            self.learn_from_media(now, train);
        }
        self.after_event(now);
    }

    fn on_round_trip_time(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.inner.on_round_trip_time(now, rtt);
        self.after_event(now);
    }

    fn on_receiver_limit(&mut self, now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
        self.inner.on_receiver_limit(now, limit);
        self.after_event(now);
    }

    fn set_limits(&mut self, now: Timestamp, limits: RateLimits) {
        self.limits = limits;
        self.inner.set_limits(now, limits);
        self.after_event(now);
    }

    /// Here it is the bitrate that the next layer needs. `None` ends probing.
    fn set_desired_bitrate(&mut self, now: Timestamp, desired: Option<Bitrate>) {
        self.goal = desired;
        self.after_event(now);
    }

    fn on_route_change(&mut self, now: Timestamp) {
        self.inner.on_route_change(now);
        self.trains.clear();
        self.ceiling = Ceiling::default();
        (self.loss, self.pairs) = (UsualLoss::default(), Pairs::default());
        (self.proved, self.running, self.dip) = (None, None, None);
        self.after_failure = AFTER_FAILURE;
        self.after_event(now);
    }

    fn on_shared_rate(&mut self, now: Timestamp, share: Bitrate) {
        self.inner.on_shared_rate(now, share);
        self.proved = None;
        self.after_event(now);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.inner.next_timeout().is_some_and(|due| due <= now) {
            self.inner.on_timeout(now);
        }
        self.after_event(now);
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        [self.inner.next_timeout(), self.next_tick].into_iter().flatten().min()
    }

    fn target(&self) -> Target {
        let inner = self.inner.target();
        let bitrate = self.bitrate().max(inner.bitrate);
        let mut target = inner.with_probe(self.running.map(|running| running.probe));
        target.padding_rate = Bitrate::ZERO;
        if bitrate > inner.bitrate && inner.bitrate > Bitrate::ZERO {
            let factor = bitrate / inner.bitrate;
            target.bitrate = bitrate;
            target.source_bitrate = inner.source_bitrate * factor;
            target.pacing_rate = inner.pacing_rate * factor;
        }
        target
    }

    fn metrics(&self) -> Metrics {
        self.inner.metrics()
    }
}
