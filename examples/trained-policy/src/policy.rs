//! A policy that was trained in `weir_rtc/Rtc-v0`, as a controller: the observations of that
//! environment, a network with one hidden layer, and a change of the bitrate every 60 ms.

use weir::controller::Settings;
use weir::observation::Observer;
use weir::{
    Bitrate, Controller, FeedbackReport, Metrics, RateLimits, Reason, SentPacket, Target,
    TimeDelta, Timestamp,
};

const INPUTS: usize = 6;
const HIDDEN: usize = 8;
/// First layer with biases, then the last layer with its bias.
const SIZE: usize = HIDDEN * (INPUTS + 1) + HIDDEN + 1;
const INTERVAL: TimeDelta = TimeDelta::from_millis(60);
/// Largest change of the bitrate in an interval, in doublings, as in `train.py`.
const CHANGE_MAX: f64 = 0.2;
/// The scale of the environment's observations.
const MIN_BPS: f64 = 10_000.0;
const MAX_BPS: f64 = 8_000_000.0;
/// Without feedback for this long, the rate sinks, and again after each further time. The policy
/// never saw silence during its training, so a rule answers it.
const SILENCE: TimeDelta = TimeDelta::from_millis(500);

/// At the lowest bitrate for this long, a delay that is left is not the policy's own queue: the
/// receiver's clock may have jumped, which the policy never saw during its training, either. What
/// is the lowest delay is then found anew.
const LOW: TimeDelta = TimeDelta::from_secs(5);
/// What counts as the lowest bitrate, as a multiple of the limit.
const LOW_FACTOR: f64 = 1.2;

/// The weights that `train.py` wrote.
const WEIGHTS: &str = include_str!("../weights.txt");

/// The trained policy.
pub struct Policy {
    weights: [f64; SIZE],
    limits: RateLimits,
    bitrate: Bitrate,
    receiver_limit: Option<Bitrate>,
    reason: Reason,
    due: Timestamp,
    /// The last feedback, or the first packet.
    silent_since: Option<Timestamp>,
    /// When a silence lowers the rate again.
    next_cut: Timestamp,
    /// Since when the bitrate has been the lowest.
    low_since: Option<Timestamp>,
    /// Counts as the environment does.
    observer: Observer,
}

impl Policy {
    /// # Panics
    ///
    /// The file of weights is not one of `train.py`.
    pub fn new(settings: Settings) -> Self {
        let mut weights = [0.0; SIZE];
        let mut lines = WEIGHTS.lines();
        for weight in &mut weights {
            let line = lines.next().expect("a line for each weight");
            *weight = line.parse().expect("a weight is a number");
        }
        Self {
            weights,
            limits: settings.limits,
            bitrate: settings.limits.start(),
            receiver_limit: None,
            reason: Reason::Start,
            due: Timestamp::ZERO + INTERVAL,
            silent_since: None,
            next_cut: Timestamp::ZERO,
            low_since: None,
            observer: Observer::new(INTERVAL),
        }
    }

    /// Forgets the lowest delay after a long time at the lowest bitrate.
    fn doubt_delay(&mut self, now: Timestamp) {
        if self.bitrate > self.limits.min() * LOW_FACTOR {
            self.low_since = None;
        } else if now - *self.low_since.get_or_insert(now) > LOW {
            self.low_since = None;
            self.observer = Observer::new(INTERVAL);
        }
    }

    /// What the environment shows at the end of an interval.
    fn observe(&mut self) -> [f64; INPUTS] {
        let interval = self.observer.take();
        let share = |time: Option<TimeDelta>| {
            time.map_or(0.0, |time| (time.as_micros().max(0) as f64 / 1e6).min(1.0))
        };
        let seen = [
            to_unit(interval.received_bps),
            share(interval.queuing_delay),
            interval.loss_ratio,
            to_unit(self.bitrate.as_bps() as f64),
            share(interval.rtt),
            to_unit(interval.sent_bps),
        ];
        // The environment gives single precision.
        seen.map(|value| f64::from(value as f32))
    }

    /// The factor from the bitrate in force to the next one.
    fn act(&self, seen: &[f64; INPUTS]) -> f64 {
        let (first, last) = self.weights.split_at(HIDDEN * (INPUTS + 1));
        let mut sum = last[HIDDEN];
        for (row, weight) in first.chunks_exact(INPUTS + 1).zip(last) {
            let input: f64 = row.iter().zip(seen).map(|(weight, value)| weight * value).sum();
            sum += weight * softsign(input + row[INPUTS]);
        }
        (CHANGE_MAX * sum.clamp(-1.0, 1.0)).exp2()
    }
}

fn softsign(x: f64) -> f64 {
    x / (1.0 + x.abs())
}

fn to_unit(bps: f64) -> f64 {
    ((bps.max(MIN_BPS) / MIN_BPS).ln() / (MAX_BPS / MIN_BPS).ln()).clamp(0.0, 1.0)
}

impl Controller for Policy {
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket) {
        self.silent_since.get_or_insert(now);
        self.observer.on_packet_sent(packet);
    }

    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport) {
        self.silent_since = Some(now);
        self.observer.on_feedback(now, report);
    }

    fn on_receiver_limit(&mut self, _now: Timestamp, limit: Option<Bitrate>) {
        self.receiver_limit = limit;
    }

    fn set_limits(&mut self, _now: Timestamp, limits: RateLimits) {
        self.limits = limits;
        self.bitrate = limits.clamp(self.bitrate);
        self.reason = Reason::Limits;
    }

    fn on_route_change(&mut self, _now: Timestamp) {
        self.bitrate = self.limits.start();
        self.observer = Observer::new(INTERVAL);
        self.reason = Reason::NewRoute;
    }

    fn on_shared_rate(&mut self, _now: Timestamp, share: Bitrate) {
        self.bitrate = self.limits.clamp(share);
        self.reason = Reason::Coupled;
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if now < self.due {
            return;
        }
        self.due = now + INTERVAL;
        let seen = self.observe();
        self.doubt_delay(now);
        if self.silent_since.is_some_and(|since| now - since > SILENCE) {
            if now >= self.next_cut {
                self.next_cut = now + SILENCE;
                self.bitrate = self.limits.clamp(self.bitrate * 0.8);
                self.reason = Reason::FeedbackLost;
            }
            return;
        }
        // The environment takes whole bits.
        let bps = (self.bitrate.as_bps() as f64 * self.act(&seen)) as u64;
        let wanted = self.limits.clamp(Bitrate::from_bps(bps));
        if wanted != self.bitrate {
            self.bitrate = wanted;
            self.reason = Reason::Policy;
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        Some(self.due)
    }

    fn target(&self) -> Target {
        let bitrate = self.limits.cap(self.bitrate, self.receiver_limit);
        Target::new(bitrate, bitrate * 1.5)
    }

    fn metrics(&self) -> Metrics {
        Metrics::new(self.reason, "policy")
    }
}
