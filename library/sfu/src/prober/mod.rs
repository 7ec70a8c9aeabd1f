//! A controller that learns whether more than the media fits.
//!
//! What a server sends is limited by the layers that exist, so a controller hears nothing of the
//! rate between two layers: it holds its target at some multiple of what is sent. [`Probing`] wraps
//! any controller. Told what the next layer needs, it looks at trains of packets: first at those
//! that media makes anyway, such as key frames, then at probes. A rate at which a train arrived
//! without queuing counts as proved, until the controller sees congestion or some seconds have
//! passed.

mod drive;
mod outcome;
mod starts;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use weir::controller::{Controller, Metrics, Probe, RateLimits, Reason};
use weir::feedback::{FeedbackReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

pub use self::outcome::{ProbeOutcome, ProbeResult};
use crate::ceiling::Ceiling;
use crate::pairs::Pairs;
use crate::trains::{Train, Trains};
use crate::usual_loss::{MOST, UsualLoss};

/// A probe that lost this part of its packets may have lost it by chance, or has packets that come
/// late: a full path loses more, or makes them wait.
const LITTLE: f64 = 0.02;
/// On a busy machine packets leave later than the pacer wants. The next probe asks for more, by the
/// factor that the last one fell short, up to this.
const MAX_SHORTFALL: f64 = 2.0;
/// Share of the media's bytes that padding may take in the long run, unless the host says another.
const PADDING_SHARE: f64 = 0.025;
/// Bytes that padding may take at once, at least.
const MIN_ALLOWANCE: f64 = 60_000.0;
/// A probe that arrived this much faster than the full path's packets shows that the path is
/// another one now. The next probes then look for everything that is wanted, and not for the next
/// layer.
const OPENED: f64 = 1.2;
/// A controller's target trembles. Below this part of its highest of late, it has fallen.
const FALL: f64 = 0.9;
/// Time over which the highest target counts.
const FALL_TIME: TimeDelta = TimeDelta::from_secs(2);
/// A test of a controller's own is seen from this fall on.
const TEST_FALL: f64 = 0.98;
/// A target of this many times what arrives leaves room for it, however far it has fallen.
const SLACK: f64 = 2.0;
/// Time between a probe and the next.
const AFTER_SUCCESS: TimeDelta = TimeDelta::from_millis(500);
/// The same while probes arrive that look for everything: from 300 kbit/s to 1 Gbit/s they take
/// twelve doublings.
const WHILE_OPEN: TimeDelta = TimeDelta::from_millis(200);
const AFTER_FAILURE: TimeDelta = TimeDelta::from_secs(4);
const MAX_AFTER_FAILURE: TimeDelta = TimeDelta::from_secs(8);
/// No probe so soon after the controller reduced its target: its queue may still stand.
const AFTER_FALL: TimeDelta = TimeDelta::from_secs(2);
/// No probe without feedback as young as this, unless nothing was sent either.
const MAX_SILENCE: TimeDelta = TimeDelta::from_millis(1_000);
/// What was proved holds for this time, in which the controller catches up.
const PROOF_TIME: TimeDelta = TimeDelta::from_secs(30);
/// A train of at least this part of what was proved renews it.
const RENEWS: f64 = 0.9;
/// A controller that has not caught up with what was proved falls to a target that says nothing of
/// the path. It has not if its target is below this part of what arrives on the full path.
const BEHIND: f64 = 0.5;
/// Then this part of what arrives counts: the rest drains the queue.
const BACK_OFF: f64 = 0.85;
/// No probe is waited for longer than this.
const MAX_PATIENCE: TimeDelta = TimeDelta::from_secs(10);
/// The time to an answer before the first: a round trip and the time between two reports.
const FIRST_ANSWER: TimeDelta = TimeDelta::from_secs(2);
/// A longer time to an answer is forgotten over this time.
const ANSWER_MEMORY: TimeDelta = TimeDelta::from_secs(4);
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
    /// What is sent to a receiver without feedback.
    fixed: Option<Bitrate>,
    receiver_limit: Option<Bitrate>,
    /// What the next layer needs.
    goal: Option<Bitrate>,
    /// What the best layers need together.
    wanted: Option<Bitrate>,
    /// The path carries more than it did: a probe arrived, or pairs of packets. How much more is
    /// not known.
    is_open: bool,
    /// Probes that arrived since the path was last full.
    arrived: u32,
    proved: Option<Proof>,
    ceiling: Ceiling,
    loss: UsualLoss,
    pairs: Pairs,
    trains: Trains,
    /// Trains that ended with the newest report. Empty between calls.
    ended: Vec<Train>,
    running: Option<Running>,
    /// The longest time of late from a packet to feedback on it.
    answer: TimeDelta,
    next_id: u32,
    not_before: Timestamp,
    after_failure: TimeDelta,
    /// How much faster the last probe was asked for than it was sent.
    shortfall: f64,
    /// Share of the media's bytes that padding may take in the long run.
    padding_share: f64,
    /// Bytes of padding that may be sent.
    allowance: f64,
    /// What media paid of late.
    paid: f64,
    /// The inner target after the last event.
    inner_rate: Bitrate,
    /// The highest inner target of late, and when it was that.
    high: (Bitrate, Timestamp),
    dip: Option<Dip>,
    last_feedback: Option<Timestamp>,
    /// The path was last full, as it seemed, because no feedback came.
    is_unheard: bool,
    /// When a packet last left, or the first event.
    last_sent: Option<Timestamp>,
    /// When media left again after a pause.
    resumed: Option<Timestamp>,
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
    /// It is what a full path left of another one.
    is_rest: bool,
}

impl Proof {
    fn new(rate: Bitrate, at: Timestamp) -> Self {
        Self { rate, at, is_rest: false }
    }
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
    /// What has left of it: its size, and number and time of the last packet.
    sent: DataSize,
    last: Option<(i64, Timestamp)>,
}

impl Running {
    /// A packet left.
    fn on_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        if packet.probe == Some(self.probe.id) {
            self.sent += packet.size;
            self.last = Some((packet.sequence_number, now));
        }
    }

    /// Whether feedback up to this packet leaves nothing to be heard of it.
    fn is_over(&self, newest: i64) -> bool {
        self.sent >= self.probe.size && self.last.is_some_and(|(last, _)| newest > last)
    }
}

impl<C: Controller> Probing<C> {
    /// A prober around this controller, which has these limits.
    pub fn new(inner: C, limits: RateLimits) -> Self {
        let inner_rate = inner.target().bitrate;
        Self {
            inner,
            limits,
            fixed: None,
            receiver_limit: None,
            goal: None,
            wanted: None,
            is_open: false,
            arrived: 0,
            proved: None,
            ceiling: Ceiling::default(),
            loss: UsualLoss::default(),
            pairs: Pairs::default(),
            trains: Trains::default(),
            ended: Vec::new(),
            running: None,
            answer: FIRST_ANSWER,
            next_id: FIRST_ID,
            not_before: Timestamp::from_nanos(i64::MIN),
            after_failure: AFTER_FAILURE,
            shortfall: 1.0,
            padding_share: PADDING_SHARE,
            allowance: MIN_ALLOWANCE,
            paid: 0.0,
            inner_rate,
            high: (inner_rate, Timestamp::from_nanos(i64::MIN)),
            dip: None,
            last_feedback: None,
            is_unheard: false,
            last_sent: None,
            resumed: None,
            refilled: None,
            next_tick: None,
            outcome: None,
        }
    }

    /// The wrapped controller.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    /// What the best layers need together; `None` if it is unknown. While probes arrive, they look
    /// for all of it. What [`set_desired_bitrate`](Controller::set_desired_bitrate) says is the
    /// next step there.
    pub fn set_wanted(&mut self, wanted: Option<Bitrate>) {
        self.wanted = wanted;
    }

    /// The share of the media's bytes that padding may take in the long run, 0 to 1. The default is
    /// 0.025. If more is wanted and media is below a quarter of what is known to fit, that quarter
    /// counts. If more than four times as much is wanted as is known to fit, four times the share
    /// of all that is known counts, and ten times while nothing is sent. With 0 the first probes
    /// use what padding may take at the start, and then only media shows what fits.
    pub fn set_padding_share(&mut self, share: f64) {
        self.padding_share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    }

    /// The path is not measured, and carries this rate; `None` ends that. For a receiver that sends
    /// no feedback.
    pub fn set_fixed(&mut self, now: Timestamp, rate: Option<Bitrate>) {
        self.fixed = rate;
        self.after_event(now);
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
        self.inner_rate.max(self.within(proved))
    }

    /// What may be relied on for what is sent now: the target, but not a dip that the controller
    /// makes for a test of its own, or after a probe that queued.
    pub fn budget(&self) -> Bitrate {
        if let Some(fixed) = self.fixed() {
            return fixed;
        }
        let dip = self.dip.map_or(Bitrate::ZERO, |dip| dip.rate);
        self.bitrate().max(self.within(dip))
    }

    /// What a receiver without feedback may be sent.
    fn fixed(&self) -> Option<Bitrate> {
        Some(self.limits.cap(self.limits.clamp(self.fixed?), self.receiver_limit))
    }

    /// What remains of a rate under the limits, which may have changed since.
    fn within(&self, rate: Bitrate) -> Bitrate {
        self.limits.cap(rate, self.receiver_limit).min(self.limits.max())
    }

    /// What may be relied on for more than is sent now: the target, but what lies above the rate
    /// that arrived when the path was last full must be proved first. For what is sent already,
    /// the target counts.
    pub fn room(&self) -> Bitrate {
        if let Some(fixed) = self.fixed() {
            return fixed;
        }
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
        self.look_for_fall(now, rate);
        self.inner_rate = rate;
        if self.dip.is_some_and(|dip| dip.is_over(now, rate)) {
            self.dip = None;
        }
        if self.proved.is_some_and(|proof| now - proof.at > PROOF_TIME) {
            self.proved = None;
        }
    }

    fn look_for_fall(&mut self, now: Timestamp, rate: Bitrate) {
        let (high, since) = self.high;
        let has_fallen = rate < high * FALL;
        let may_be_test = self.dip.is_none() && rate < self.inner_rate * TEST_FALL;
        if has_fallen || may_be_test {
            let metrics = self.inner.metrics();
            let reason = metrics.reason;
            if may_be_test && reason == Reason::BaseTest {
                let (rate, until) = (self.inner_rate, now + TEST_TIME);
                self.dip = Some(Dip { rate, at: now, until, is_probe: false });
            }
            // What a path loses at any rate is no sign of its capacity.
            let is_usual = reason == Reason::Loss && !self.loss.is_congestion();
            // In a pause no feedback could come.
            let is_pause = reason == Reason::FeedbackLost && self.has_resumed(now);
            let may_be_full = is_congestion(&metrics) && !is_usual && !is_pause;
            let counts = may_be_full && !self.is_slack(rate, reason);
            if has_fallen && counts {
                self.on_path_full(now, rate, reason != Reason::FeedbackLost);
            }
        }
        if has_fallen || rate >= high || now - since > FALL_TIME {
            self.high = (rate, now);
        }
    }

    /// Whether a target that fell is still far above what arrives. Targets made of a window and a
    /// round-trip time fall with each longer round trip, although no queue stands.
    fn is_slack(&self, rate: Bitrate, reason: Reason) -> bool {
        let tells_of_path = !matches!(reason, Reason::FeedbackLost | Reason::ReceiverLimit);
        let is_far = self.ceiling.recent().is_some_and(|arrives| rate >= arrives * SLACK);
        tells_of_path && self.dip.is_none() && is_far
    }

    /// What was proved fits no longer, unless a probe has just filled the path. `rate` is the inner
    /// target. `is_heard`: the receiver still sends feedback.
    fn on_path_full(&mut self, now: Timestamp, rate: Bitrate, is_heard: bool) {
        self.not_before = self.not_before.max(now + AFTER_FALL);
        self.is_unheard = !is_heard;
        (self.is_open, self.arrived) = (false, 0);
        self.ceiling.on_full(Bitrate::ZERO);
        self.loss.on_full();
        let was_probe = self.dip.is_some_and(|dip| dip.is_probe && now - dip.at <= BLAME_TIME);
        // A probe that is on its way says more of the path than a controller that notices it.
        let is_probe = self.running.is_some_and(|it| now - it.started <= BLAME_TIME);
        if was_probe || is_probe {
            return;
        }
        self.dip = None;
        let is_new = self.last_feedback.is_some_and(|at| now - at <= MAX_SILENCE);
        // A burst that queues now says more than the time before it.
        let newest = self.trains.full_rate().or(self.ceiling.newest());
        match newest {
            Some(arrives) if is_heard && is_new => self.keep_rest(rate, arrives),
            // After a pause nothing is known of what arrives now. The next reports say it.
            None if is_heard && self.has_resumed(now) => {}
            _ => self.proved = None,
        }
        self.end_climb(rate);
    }

    /// Whether media left again after a pause a moment ago.
    fn has_resumed(&self, now: Timestamp) -> bool {
        self.resumed.is_some_and(|at| now - at <= BLAME_TIME)
    }

    /// This much arrives of a full path. What was proved counts for a part of it if the controller,
    /// whose target is `inner`, has not caught up.
    fn keep_rest(&mut self, inner: Bitrate, arrives: Bitrate) {
        match &mut self.proved {
            Some(proof) if inner < arrives * BEHIND => proof.is_rest = true,
            _ => self.proved = None,
        }
        self.lower_rest(arrives);
    }

    /// This much arrives of a full path, so what was proved before counts up to a part of it.
    fn lower_rest(&mut self, arrives: Bitrate) {
        if let Some(proof) = self.proved.as_mut().filter(|proof| proof.is_rest) {
            proof.rate = proof.rate.min(arrives * BACK_OFF);
        }
    }

    fn on_train(&mut self, now: Timestamp, train: Train) {
        let running = self.running.filter(|running| Some(running.probe.id) == train.probe);
        if let Some(running) = running {
            self.running = None;
            self.judge_probe(now, running, train);
            return;
        }
        if self.learn_from_media(now, train) {
            return;
        }
        let Some(proof) = self.proved else { return };
        let is_full = train.queued_unexpectedly() > MAX_MEDIA_QUEUED;
        // What leaves faster than is known to fit may overflow a queue.
        let lost = proof.rate >= train.send_rate() && self.lost_much(&train);
        if is_full || lost {
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
            self.proved = Some(Proof::new(rate, now));
            self.note(now, ProbeResult::MediaArrived(rate));
        }
        is_news
    }

    fn judge_probe(&mut self, now: Timestamp, running: Running, train: Train) {
        // Packets without a size make no number of it.
        let fell_short = running.probe.rate / train.send_rate();
        self.shortfall = if fell_short > 1.0 { fell_short.min(MAX_SHORTFALL) } else { 1.0 };
        let is_usual = train.lost_as_usual(self.loss.ratio()) || train.lost_at_most(LITTLE);
        let rate = if is_usual { train.carried_rate() } else { train.delivered_rate() };
        // Without media nothing is known of the path's losses. What arrived did fit.
        let is_unknown = self.loss.is_unknown();
        let has_arrived = is_usual || is_unknown && train.lost_at_most(MOST);
        if !has_arrived || train.queued() > MAX_QUEUED {
            self.fail(now, rate);
            if has_arrived {
                self.forgive(now, running.inner_rate, rate);
            }
            return;
        }
        self.is_open = self.ceiling.rate().is_none_or(|full| rate > full * OPENED);
        self.arrived += 1;
        self.ceiling.on_carried(rate);
        let held = self.proved.map_or(Bitrate::ZERO, |proof| proof.rate);
        let renews = rate >= held * RENEWS;
        let rate = rate.max(held);
        // A slower one that did not queue says nothing of what was proved.
        if renews {
            self.proved = Some(Proof::new(rate, now));
        }
        self.after_failure = AFTER_FAILURE;
        let is_free = self.is_open || self.has_fitted(rate);
        self.not_before = now + if is_free { WHILE_OPEN } else { AFTER_SUCCESS };
        self.note(now, ProbeResult::Arrived(rate));
    }

    /// A probe queued, but all of it arrived, at this rate: so much the path carries, whatever the
    /// controller makes of the queue that it did not ask for.
    fn forgive(&mut self, now: Timestamp, inner_before: Bitrate, rate: Bitrate) {
        self.pairs.on_full(rate);
        if rate > self.room() {
            self.proved = Some(Proof::new(rate, now));
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
                self.is_open = true;
            }
        }
    }

    /// The next probe waits, each time twice as long.
    fn fail(&mut self, now: Timestamp, rate: Bitrate) {
        (self.is_open, self.arrived) = (false, 0);
        self.ceiling.on_full(rate);
        if self.proved.is_some_and(|proof| rate < proof.rate * RENEWS) {
            self.keep_rest(self.inner_rate, rate);
        }
        self.end_climb(self.inner_rate);
        self.not_before = now + self.after_failure;
        self.after_failure = (self.after_failure * 2).min(MAX_AFTER_FAILURE);
        self.note(now, ProbeResult::Queued(rate));
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
fn is_congestion(metrics: &Metrics) -> bool {
    match metrics.reason {
        // Some targets tremble with delays that are no queue.
        Reason::QueuingDelay => metrics.queuing_delay.is_none_or(|delay| delay > MAX_QUEUED),
        Reason::OverUse
        | Reason::Loss
        | Reason::Ecn
        | Reason::Competing
        | Reason::FeedbackLost
        | Reason::ReceiverLimit => true,
        _ => false,
    }
}
