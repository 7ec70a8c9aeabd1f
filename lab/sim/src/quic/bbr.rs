//! BBRv3 [BBR3]: paces at the delivery rate of the path, and keeps what is in flight below what was
//! lost at [BBR3 §5].
//!
//! ```text
//! Startup -> Drain -> Down -> Cruise -> Refill -> Up -+    ProbeRtt from anywhere
//!                      ^------------------------------+
//! ```
//!
//! Ours, after the draft, without its allowance for aggregated ACKs and its search for the number
//! of lost packets within one sample.

use std::collections::BTreeMap;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::seed::Stream;

use super::packet::MTU;
use super::recovery::{AckFacts, Flight, Lost};

// Parameters [BBR3 §2]. Names in backticks are the draft's.
/// `StartupPacingGain` and `DrainPacingGain`
const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
/// Pacing gains of the probing cycle, and window gains.
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
/// `PacingMarginPercent`
const MARGIN: f64 = 0.99;
/// `LossThresh`, `Beta`, `Headroom`
const LOSS_THRESHOLD: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
/// `FullBwCountThresh` and the growth that resets it; losses that end Startup.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;
const FULL_LOSSES: u64 = 6;
/// `MinRTTFilterLen`, `ProbeRTTInterval`, `ProbeRTTDuration`, `ProbeRTTCwndGain`
const MIN_RTT_LIFE: TimeDelta = TimeDelta::from_secs(10);
const PROBE_RTT_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
const PROBE_RTT_TIME: TimeDelta = TimeDelta::from_millis(200);
const PROBE_RTT_GAIN: f64 = 0.5;
/// `MinPipeCwnd`, and the initial window, in packets.
const LEAST_PACKETS: u64 = 4;
const INITIAL_PACKETS: u64 = 10;
/// Wall-clock time between probes, to which up to a second is added, and rounds.
const PROBE_WAIT: TimeDelta = TimeDelta::from_secs(2);
const PROBE_ROUNDS: u64 = 63;
/// Packets that pacing and ACKs for two add to the product.
const BUDGET_PACKETS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// The connection when a packet left.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    delivered: u64,
    delivered_at: Timestamp,
    first_sent_at: Timestamp,
    lost: u64,
    /// With this packet.
    in_flight: u64,
    app_limited: bool,
}

/// What an ACK says of the path. Rates are in bytes a second.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rate: f64,
    delivered: u64,
    lost: u64,
    in_flight: u64,
    app_limited: bool,
}

/// The model of the path. Bytes are those of QUIC packets.
#[derive(Debug)]
pub(super) struct Bbr3 {
    chance: Stream,
    phase: Phase,
    since: Timestamp,
    stamps: BTreeMap<u64, Stamp>,
    delivered: u64,
    delivered_at: Timestamp,
    first_sent_at: Timestamp,
    lost: u64,
    /// Samples are limited by the application until so much is delivered.
    app_limited_until: Option<u64>,
    /// The round ends when a packet is delivered that left after this many bytes.
    round_end: u64,
    is_round_start: bool,
    rounds_since_probe: u64,
    loss_events: u64,
    /// `max_bw` of this cycle of probing and of the one before.
    max_rates: [f64; 2],
    rate_shortterm: f64,
    rate_latest: f64,
    inflight_latest: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
    has_loss_in_round: bool,
    full_rate: f64,
    full_rounds: u32,
    is_full: bool,
    min_rtt: Option<(TimeDelta, Timestamp)>,
    probe_rtt_at: Timestamp,
    probe_rtt_end: Option<Timestamp>,
    probe_wait: TimeDelta,
    probed_at: Timestamp,
    up_rounds: u32,
    window: u64,
    /// The window before ProbeRtt.
    prior_window: u64,
    pacing: f64,
}

impl Bbr3 {
    pub(super) fn new(now: Timestamp, rtt: TimeDelta, chance: Stream) -> Self {
        let window = INITIAL_PACKETS * MTU;
        let first = window as f64 / rtt.as_secs_f64().max(1e-3);
        Self {
            chance,
            phase: Phase::Startup,
            since: now,
            stamps: BTreeMap::new(),
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            app_limited_until: None,
            round_end: 0,
            is_round_start: false,
            rounds_since_probe: 0,
            loss_events: 0,
            max_rates: [0.0; 2],
            rate_shortterm: f64::INFINITY,
            rate_latest: 0.0,
            inflight_latest: 0,
            inflight_shortterm: u64::MAX,
            inflight_longterm: u64::MAX,
            has_loss_in_round: false,
            full_rate: 0.0,
            full_rounds: 0,
            is_full: false,
            min_rtt: Some((rtt, now)),
            probe_rtt_at: now + PROBE_RTT_INTERVAL,
            probe_rtt_end: None,
            probe_wait: PROBE_WAIT,
            probed_at: now,
            up_rounds: 0,
            window,
            prior_window: window,
            pacing: first * STARTUP_GAIN * MARGIN,
        }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    pub(super) fn pacing_rate(&self) -> Bitrate {
        Bitrate::from_bps_f64(self.pacing * 8.0)
    }

    /// What the path carries, for an application; `None` before the first sample.
    pub(super) fn estimate(&self) -> Option<Bitrate> {
        let rate = self.rate();
        if rate > 0.0 { Some(Bitrate::from_bps_f64(rate * 8.0)) } else { None }
    }

    fn max_rate(&self) -> f64 {
        self.max_rates[0].max(self.max_rates[1])
    }

    /// `bw`
    fn rate(&self) -> f64 {
        self.max_rate().min(self.rate_shortterm)
    }

    /// `BBRInflight`: a multiple of what the path holds.
    fn inflight(&self, gain: f64) -> u64 {
        let Some((min_rtt, _)) = self.min_rtt else { return INITIAL_PACKETS * MTU };
        if self.max_rate() == 0.0 {
            return INITIAL_PACKETS * MTU;
        }
        (self.rate() * min_rtt.as_secs_f64() * gain) as u64 + BUDGET_PACKETS * MTU
    }

    fn with_headroom(&self) -> u64 {
        if self.inflight_longterm == u64::MAX {
            return u64::MAX;
        }
        let less = (self.inflight_longterm as f64 * (1.0 - HEADROOM)) as u64;
        less.max(LEAST_PACKETS * MTU)
    }

    /// A packet leaves, with which so much is in flight.
    pub(super) fn on_sent(&mut self, now: Timestamp, number: u64, size: u64, in_flight: u64) {
        if in_flight <= size {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let (delivered, delivered_at) = (self.delivered, self.delivered_at);
        let (first_sent_at, lost) = (self.first_sent_at, self.lost);
        let app_limited = self.app_limited_until.is_some();
        let stamp = Stamp { delivered, delivered_at, first_sent_at, lost, in_flight, app_limited };
        self.stamps.insert(number, stamp);
    }

    pub(super) fn on_lost(&mut self, lost: &Lost) {
        for packet in &lost.packets {
            let size = packet.content.size();
            self.lost += size;
            self.loss_events += 1;
            self.has_loss_in_round = true;
            let Some(stamp) = self.stamps.remove(&packet.number) else { continue };
            let since = self.lost - stamp.lost;
            if since as f64 > stamp.in_flight as f64 * LOSS_THRESHOLD && self.is_probing() {
                self.on_too_high(stamp.in_flight, stamp.app_limited);
            }
        }
        if lost.is_persistent {
            self.window = LEAST_PACKETS * MTU;
        }
    }

    /// `BBRHandleInflightTooHigh`
    fn on_too_high(&mut self, in_flight: u64, app_limited: bool) {
        if !app_limited {
            let least = (self.inflight(1.0).min(self.window) as f64 * BETA) as u64;
            self.inflight_longterm = in_flight.max(least);
        }
        if self.phase == Phase::Up {
            self.up_rounds = 0;
            self.begin_down(self.delivered_at);
        }
    }

    fn is_probing(&self) -> bool {
        matches!(self.phase, Phase::Up | Phase::Refill)
    }

    pub(super) fn on_ack(&mut self, now: Timestamp, acked: &[Flight], facts: AckFacts) {
        let Some(sample) = self.sample(now, acked, facts) else { return };
        self.update_rates(&sample);
        self.check_startup(now, facts.in_flight);
        self.update_cycle(now, &sample, facts.in_flight);
        self.update_min_rtt(now, facts);
        self.set_control(sample.delivered);
    }

    /// `GenerateRateSample`, and the round.
    fn sample(&mut self, now: Timestamp, acked: &[Flight], facts: AckFacts) -> Option<Sample> {
        if facts.app_limited {
            self.app_limited_until = Some(self.delivered + facts.in_flight.max(1));
        }
        let mut newest: Option<(Stamp, Timestamp)> = None;
        let before = self.delivered;
        for packet in acked {
            self.delivered += packet.content.size();
            let Some(stamp) = self.stamps.remove(&packet.number) else { continue };
            if newest.is_none_or(|(newest, _)| stamp.delivered >= newest.delivered) {
                newest = Some((stamp, packet.sent));
            }
        }
        let (stamp, sent) = newest?;
        self.delivered_at = now;
        self.first_sent_at = sent;
        self.app_limited_until = self.app_limited_until.filter(|&until| self.delivered <= until);
        self.is_round_start = stamp.delivered >= self.round_end;
        if self.is_round_start {
            self.round_end = self.delivered;
            self.rounds_since_probe += 1;
        }
        let interval = (sent - stamp.first_sent_at).max(now - stamp.delivered_at);
        let bytes = self.delivered - stamp.delivered;
        let least = self.min_rtt.map_or(TimeDelta::ZERO, |(rtt, _)| rtt);
        let is_long = interval >= least && interval > TimeDelta::ZERO;
        Some(Sample {
            rate: if is_long { bytes as f64 / interval.as_secs_f64() } else { 0.0 },
            delivered: self.delivered - before,
            lost: self.lost - stamp.lost,
            in_flight: stamp.in_flight,
            app_limited: stamp.app_limited,
        })
    }

    /// `BBRUpdateLatestDeliverySignals`, `BBRUpdateMaxBw` and the short-term bounds.
    fn update_rates(&mut self, sample: &Sample) {
        self.rate_latest = self.rate_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.rate >= self.max_rate() || !sample.app_limited {
            self.max_rates[1] = self.max_rates[1].max(sample.rate);
        }
        if !self.is_round_start {
            return;
        }
        if self.has_loss_in_round && self.is_full && !self.is_probing() {
            let rate = self.rate_shortterm.min(self.max_rate());
            self.rate_shortterm = self.rate_latest.max(rate * BETA);
            let inflight = self.inflight_shortterm.min(self.window);
            let least = (inflight as f64 * BETA) as u64;
            self.inflight_shortterm = self.inflight_latest.max(least);
        }
        self.has_loss_in_round = false;
        self.rate_latest = sample.rate;
        self.inflight_latest = sample.delivered;
        self.check_full(sample);
        self.loss_events = 0;
    }

    /// `BBRCheckFullBWReached` and `BBRCheckStartupHighLoss`, at the start of a round.
    fn check_full(&mut self, sample: &Sample) {
        let is_lossy = sample.lost as f64 > sample.in_flight as f64 * LOSS_THRESHOLD;
        if !self.is_full && self.loss_events >= FULL_LOSSES && is_lossy {
            self.is_full = true;
            self.inflight_longterm = self.inflight(1.0).max(self.inflight_latest);
        }
        if sample.app_limited {
            return;
        }
        if self.max_rate() >= self.full_rate * FULL_GROWTH {
            (self.full_rate, self.full_rounds) = (self.max_rate(), 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full |= self.full_rounds >= FULL_ROUNDS;
    }

    fn enter(&mut self, now: Timestamp, phase: Phase) {
        (self.phase, self.since) = (phase, now);
    }

    fn check_startup(&mut self, now: Timestamp, in_flight: u64) {
        if self.phase == Phase::Startup && self.is_full {
            self.enter(now, Phase::Drain);
        }
        if self.phase == Phase::Drain && in_flight <= self.inflight(1.0) {
            self.begin_down(now);
        }
    }

    /// `BBRStartProbeBW_DOWN`
    fn begin_down(&mut self, now: Timestamp) {
        self.probe_wait = PROBE_WAIT + TimeDelta::from_secs(1) * self.chance.uniform();
        (self.probed_at, self.rounds_since_probe) = (now, 0);
        // The rates of the cycle before last are forgotten.
        self.max_rates = [self.max_rates[1], 0.0];
        self.enter(now, Phase::Down);
    }

    /// `BBRUpdateProbeBWCyclePhase`
    fn update_cycle(&mut self, now: Timestamp, sample: &Sample, in_flight: u64) {
        let is_lossy = sample.lost as f64 > sample.in_flight as f64 * LOSS_THRESHOLD;
        match self.phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(now) => {
                (self.rate_shortterm, self.inflight_shortterm) = (f64::INFINITY, u64::MAX);
                self.round_end = self.delivered;
                self.enter(now, Phase::Refill);
            }
            Phase::Down => {
                let least = self.with_headroom().min(self.inflight(1.0));
                if in_flight <= least {
                    self.enter(now, Phase::Cruise);
                }
            }
            Phase::Refill if self.is_round_start && now > self.since => {
                (self.full_rate, self.full_rounds, self.up_rounds) = (self.max_rate(), 0, 0);
                self.enter(now, Phase::Up);
            }
            Phase::Up if is_lossy => self.on_too_high(sample.in_flight, sample.app_limited),
            Phase::Up => self.probe_up(now, sample, in_flight),
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Timestamp) -> bool {
        let rounds = (self.inflight(1.0) / MTU).min(PROBE_ROUNDS);
        now - self.probed_at > self.probe_wait || self.rounds_since_probe >= rounds
    }

    /// `BBRProbeInflightLongtermUpward`, and the end of probing [BBR3 §5.3.3.6].
    fn probe_up(&mut self, now: Timestamp, sample: &Sample, in_flight: u64) {
        let fills = self.window <= in_flight + sample.delivered + MTU;
        if fills && self.inflight_longterm != u64::MAX && self.window >= self.inflight_longterm {
            let part = 1_u64 << self.up_rounds.min(20);
            self.inflight_longterm += (sample.delivered * part * MTU / self.window.max(1)).max(1);
        }
        self.up_rounds += u32::from(self.is_round_start);
        let min_rtt = self.min_rtt.map_or(TimeDelta::ZERO, |(rtt, _)| rtt);
        let has_queue = now - self.since > min_rtt && in_flight >= self.inflight(UP_GAIN);
        let is_flat = self.full_rounds >= FULL_ROUNDS;
        if has_queue || is_flat {
            self.begin_down(now);
        }
    }

    /// `BBRUpdateMinRTT` and `BBRCheckProbeRTT`
    fn update_min_rtt(&mut self, now: Timestamp, facts: AckFacts) {
        let rtt = facts.rtt.latest;
        let (least, seen) = self.min_rtt.unwrap_or((rtt, now));
        if rtt <= least || now - seen > MIN_RTT_LIFE {
            self.min_rtt = Some((rtt, now));
            self.probe_rtt_at = now + PROBE_RTT_INTERVAL;
        }
        if self.phase != Phase::ProbeRtt && now > self.probe_rtt_at && self.is_full {
            self.probe_rtt_end = None;
            self.prior_window = self.window;
            self.enter(now, Phase::ProbeRtt);
        }
        if self.phase != Phase::ProbeRtt {
            return;
        }
        let small = self.inflight(PROBE_RTT_GAIN).max(LEAST_PACKETS * MTU);
        match self.probe_rtt_end {
            None if facts.in_flight <= small => {
                self.probe_rtt_end = Some(now + PROBE_RTT_TIME);
                self.min_rtt = Some((rtt, now));
            }
            Some(end) if now >= end => {
                self.probe_rtt_at = now + PROBE_RTT_INTERVAL;
                self.begin_down(now);
                self.window = self.window.max(self.prior_window);
                self.enter(now, Phase::Cruise);
            }
            _ => {}
        }
    }

    /// `BBRSetPacingRate` and `BBRSetCwnd`
    fn set_control(&mut self, delivered: u64) {
        let (pacing, window) = match self.phase {
            Phase::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            Phase::Drain => (DRAIN_GAIN, WINDOW_GAIN),
            Phase::Down => (DOWN_GAIN, WINDOW_GAIN),
            Phase::Cruise | Phase::Refill => (1.0, WINDOW_GAIN),
            Phase::Up => (UP_GAIN, UP_WINDOW_GAIN),
            Phase::ProbeRtt => (1.0, PROBE_RTT_GAIN),
        };
        let rate = self.rate() * pacing * MARGIN;
        if rate > 0.0 && (self.is_full || rate > self.pacing) {
            self.pacing = rate;
        }
        let most = self.inflight(window);
        self.window = match self.is_full {
            true => (self.window + delivered).min(most),
            false if self.window < most => self.window + delivered,
            false => self.window,
        };
        let bound = match self.phase {
            Phase::Cruise | Phase::Down | Phase::ProbeRtt => self.with_headroom(),
            _ => self.inflight_longterm,
        };
        let bound = bound.min(self.inflight_shortterm);
        self.window = self.window.min(bound).max(LEAST_PACKETS * MTU);
    }
}
