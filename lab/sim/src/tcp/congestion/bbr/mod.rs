//! BBR version 1: paces at the estimated bottleneck rate and keeps at most two bandwidth-delay
//! products in flight [BBR].
//!
//! ```text
//! Startup -> Drain -> ProbeBandwidth <-> ProbeRtt
//! ```
//!
//! Follows Linux, but without the detection of policers.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::seed::Stream;

use super::super::segment::MSS;
use super::{AckEvent, CongestionControl, INITIAL_WINDOW, Pacing, Repair, Window};
use filters::{Aggregation, MaxRate};

mod filters;

// Parameters [BBR §4]. Names in backticks are the draft's.
/// `BBRHighGain`: the minimum gain that doubles the delivery rate each round trip, 2/ln 2.
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
/// Pacing gains of a cycle. Each phase lasts one minimum round-trip time.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// `cwnd_gain` while probing for bandwidth. Delayed acknowledgements require more than one
/// bandwidth-delay product.
const WINDOW_GAIN: f64 = 2.0;
/// `RTpropFilterLen`: maximum age of the minimum round-trip time.
const MIN_RTT_LIFE: TimeDelta = TimeDelta::from_secs(10);
/// `ProbeRTTDuration` and `BBRMinPipeCwnd`: duration of a round-trip probe, and data in flight
/// during it.
const PROBE_RTT_TIME: TimeDelta = TimeDelta::from_millis(200);
const LEAST_WINDOW: f64 = 4.0;
/// `BBRStartupFullBwThresh`, `BBRStartupFullBwCount`: startup ends after this many rounds in which
/// the rate has not grown by this factor [BBR §4.3.2.2].
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Factor on the pacing rate, so that estimation errors do not build up a queue (Linux:
/// `bbr_pacing_margin_percent`).
const PACING_MARGIN: f64 = 0.99;
/// Minimum rate for bursts of two segments (Linux: `bbr_min_tso_rate`).
const PAIRS_FROM: Bitrate = Bitrate::from_kbps(1_200);
/// At high rates, a burst is the data of this time (Linux: `sk_pacing_shift`).
const BURST_TIME: TimeDelta = TimeDelta::from_micros(977);
/// Round-trip time assumed before the first sample (Linux: `bbr_init_pacing_rate_from_rtt`).
const ASSUMED_RTT: TimeDelta = TimeDelta::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// BBR's model of the path and its state.
#[derive(Debug)]
pub(super) struct Bbr {
    mode: Mode,
    chance: Stream,
    /// `BtlBw`, in segments a second.
    rate: MaxRate,
    aggregation: Aggregation,
    /// `RTprop`, and the time of its measurement.
    min_rtt: Option<TimeDelta>,
    min_rtt_since: Timestamp,
    /// `next_round_delivered`: the round ends when a segment is delivered that was sent after this
    /// many deliveries.
    round_end: u64,
    is_round_start: bool,
    /// `full_bw`, and number of rounds without sufficient growth above it.
    full_rate: f64,
    full_rounds: u32,
    cycle: usize,
    cycle_start: Timestamp,
    /// Earliest end of the round-trip probe, and whether a round has passed during it.
    probe_rtt_end: Option<Timestamp>,
    probe_rtt_round: bool,
    /// `prior_cwnd`: the window before a recovery or a round-trip probe.
    prior_window: f64,
    repair: Repair,
    conserves_packets: bool,
    has_rtt: bool,
    pacing: Pacing,
}

impl Bbr {
    pub(super) fn new(chance: Stream) -> Self {
        let mut bbr = Self {
            mode: Mode::Startup,
            chance,
            rate: MaxRate::default(),
            aggregation: Aggregation::default(),
            min_rtt: None,
            min_rtt_since: Timestamp::ZERO,
            round_end: 0,
            is_round_start: false,
            full_rate: 0.0,
            full_rounds: 0,
            cycle: 0,
            cycle_start: Timestamp::ZERO,
            probe_rtt_end: None,
            probe_rtt_round: false,
            prior_window: 0.0,
            repair: Repair::None,
            conserves_packets: false,
            has_rtt: false,
            pacing: Pacing { rate: Bitrate::ZERO, burst: 1 },
        };
        bbr.set_pacing(bits(INITIAL_WINDOW / ASSUMED_RTT.as_secs_f64() * HIGH_GAIN));
        bbr
    }

    fn has_filled_pipe(&self) -> bool {
        self.full_rounds >= FULL_ROUNDS
    }

    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle], WINDOW_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        }
    }

    /// `BBRInflight`, in segments: a multiple of the bandwidth-delay product, plus an allowance for
    /// segment aggregation in the host and delayed acknowledgements.
    fn inflight(&self, gain: f64) -> f64 {
        self.with_budget(self.product(gain))
    }

    fn product(&self, gain: f64) -> f64 {
        self.min_rtt.map_or(INITIAL_WINDOW, |min_rtt| {
            libm::ceil(self.rate.maximum() * min_rtt.as_secs_f64() * gain)
        })
    }

    /// Adds room for three bursts and rounds up to an even number. Adds two more in the phase that
    /// probes for more bandwidth.
    fn with_budget(&self, window: f64) -> f64 {
        let bundled = window + 3.0 * self.pacing.burst as f64;
        let even = libm::ceil(bundled / 2.0) * 2.0;
        let probing = self.mode == Mode::ProbeBandwidth && self.cycle == 0;
        even + if probing { 2.0 } else { 0.0 }
    }

    /// Segments that will be in flight when the pacer releases the next segment.
    fn in_flight_at_departure(&self, ack: &AckEvent, in_flight: u64) -> f64 {
        let sending = if self.gains().0 > 1.0 { self.pacing.burst as f64 } else { 0.0 };
        let arriving = libm::floor(self.rate.maximum() * ack.departure_wait.as_secs_f64());
        (in_flight as f64 + sending - arriving).max(0.0)
    }

    /// `BBRUpdateBtlBw` [BBR §4.1.1.3].
    fn update_rate(&mut self, ack: &AckEvent) {
        self.is_round_start = false;
        let Some(sample) = ack.sample else { return };
        if sample.prior_delivered >= self.round_end {
            self.round_end = ack.total_delivered;
            self.rate.on_round();
            self.is_round_start = true;
            self.conserves_packets = false;
        }
        let rate = sample.delivered as f64 / sample.interval.as_secs_f64();
        if !sample.app_limited || rate >= self.rate.maximum() {
            self.rate.on_sample(rate);
        }
        let full = self.has_filled_pipe();
        let round = self.is_round_start;
        self.aggregation.on_ack(ack.now, ack.delivered, self.rate.maximum(), round, full);
    }

    /// `BBRCheckCyclePhase` [BBR §4.3.4.3].
    fn update_cycle(&mut self, ack: &AckEvent) {
        if self.mode != Mode::ProbeBandwidth {
            return;
        }
        let min_rtt = self.min_rtt.unwrap_or_default();
        let is_over = ack.now - self.cycle_start > min_rtt;
        let in_flight = self.in_flight_at_departure(ack, ack.prior_in_flight);
        let gain = CYCLE[self.cycle];
        let ends = if gain > 1.0 {
            // Until the data in flight matches the gain, or the queue has overflowed.
            is_over && (ack.lost > 0 || in_flight >= self.inflight(gain))
        } else if gain < 1.0 {
            // Until the queue of the previous phase is empty.
            is_over || in_flight <= self.inflight(1.0)
        } else {
            is_over
        };
        if ends {
            self.enter_phase((self.cycle + 1) % CYCLE.len(), ack.now);
        }
    }

    fn enter_phase(&mut self, cycle: usize, now: Timestamp) {
        (self.cycle, self.cycle_start) = (cycle, now);
    }

    /// `BBRCheckFullPipe` [BBR §4.3.2.2].
    fn check_full_pipe(&mut self, ack: &AckEvent) {
        let limited = ack.sample.is_none_or(|sample| sample.app_limited);
        if self.has_filled_pipe() || !self.is_round_start || limited {
            return;
        }
        if self.rate.maximum() >= self.full_rate * FULL_GROWTH {
            (self.full_rate, self.full_rounds) = (self.rate.maximum(), 0);
        } else {
            self.full_rounds += 1;
        }
    }

    /// `BBRCheckDrain` [BBR §4.3.3].
    fn check_drain(&mut self, window: &mut Window, ack: &AckEvent) {
        if self.mode == Mode::Startup && self.has_filled_pipe() {
            self.mode = Mode::Drain;
            window.threshold = self.inflight(1.0);
        }
        let in_flight = self.in_flight_at_departure(ack, ack.in_flight);
        if self.mode == Mode::Drain && in_flight <= self.inflight(1.0) {
            self.probe_bandwidth(ack.now);
        }
    }

    /// Starts the cycle at a random phase other than the draining one, so that flows do not probe
    /// at the same time.
    fn probe_bandwidth(&mut self, now: Timestamp) {
        self.mode = Mode::ProbeBandwidth;
        let others = CYCLE.len() - 1;
        let drawn = (self.chance.uniform() * others as f64) as usize;
        self.enter_phase(if drawn == 0 { 0 } else { drawn + 1 }, now);
    }

    /// `BBRUpdateRTprop` and `BBRCheckProbeRTT` [BBR §4.1.2.3] [BBR §4.3.5].
    fn update_min_rtt(&mut self, window: &mut Window, ack: &AckEvent) {
        let expired = ack.now - self.min_rtt_since > MIN_RTT_LIFE;
        if let Some(rtt) = ack.rtt
            && (self.min_rtt.is_none_or(|min_rtt| rtt < min_rtt) || expired)
        {
            (self.min_rtt, self.min_rtt_since) = (Some(rtt), ack.now);
        }
        if expired && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(window);
            self.probe_rtt_end = None;
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        match self.probe_rtt_end {
            None if ack.in_flight as f64 <= LEAST_WINDOW => {
                self.probe_rtt_end = Some(ack.now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.round_end = ack.total_delivered;
            }
            None => {}
            Some(end) => {
                self.probe_rtt_round |= self.is_round_start;
                if self.probe_rtt_round && ack.now > end {
                    self.min_rtt_since = ack.now;
                    window.congestion = window.congestion.max(self.prior_window);
                    if self.has_filled_pipe() {
                        self.probe_bandwidth(ack.now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
        }
    }

    fn save_window(&mut self, window: &Window) {
        let keeps = self.repair == Repair::None && self.mode != Mode::ProbeRtt;
        self.prior_window =
            if keeps { window.congestion } else { self.prior_window.max(window.congestion) };
    }

    /// `BBRSetPacingRate` [BBR §4.2.1].
    fn update_pacing(&mut self, window: &Window, ack: &AckEvent) {
        if !self.has_rtt && ack.smoothed_rtt > TimeDelta::ZERO {
            self.has_rtt = true;
            let rate = window.congestion / ack.smoothed_rtt.as_secs_f64();
            self.set_pacing(bits(rate * HIGH_GAIN * PACING_MARGIN));
        }
        let rate = bits(self.rate.maximum() * self.gains().0 * PACING_MARGIN);
        if self.has_filled_pipe() || rate > self.pacing.rate {
            self.set_pacing(rate);
        }
    }

    fn set_pacing(&mut self, rate: Bitrate) {
        let least = if rate < PAIRS_FROM { 1 } else { 2 };
        let burst = ((rate * BURST_TIME).as_bytes() / MSS).max(least);
        self.pacing = Pacing { rate, burst };
    }

    /// `BBRSetCwnd` [BBR §4.2.3].
    fn update_window(&mut self, window: &mut Window, ack: &AckEvent) {
        let delivered = ack.delivered as f64;
        if delivered > 0.0 && !self.modulate_for_recovery(window, ack) {
            let extra = self.aggregation.window(self.rate.maximum(), self.has_filled_pipe());
            let target = self.with_budget(self.product(self.gains().1) + extra);
            let cwnd = window.congestion;
            if self.has_filled_pipe() {
                window.congestion = (cwnd + delivered).min(target);
            } else if cwnd < target || ack.total_delivered < INITIAL_WINDOW as u64 {
                window.congestion = cwnd + delivered;
            }
            window.congestion = window.congestion.max(LEAST_WINDOW);
        }
        if self.mode == Mode::ProbeRtt {
            window.congestion = window.congestion.min(LEAST_WINDOW);
        }
    }

    /// `BBRModulateCwndForRecovery` [BBR §4.2.3.5]: packet conservation in the first round of a
    /// recovery. Returns whether it applies.
    fn modulate_for_recovery(&mut self, window: &mut Window, ack: &AckEvent) -> bool {
        let was = std::mem::replace(&mut self.repair, ack.repair);
        let conserved = (ack.in_flight + ack.delivered) as f64;
        window.congestion = (window.congestion - ack.lost as f64).max(1.0);
        if ack.repair == Repair::Recovery && was != Repair::Recovery {
            self.conserves_packets = true;
            self.round_end = ack.total_delivered;
            window.congestion = conserved;
        } else if was != Repair::None && ack.repair == Repair::None {
            window.congestion = window.congestion.max(self.prior_window);
            self.conserves_packets = false;
        }
        if self.conserves_packets {
            window.congestion = window.congestion.max(conserved);
        }
        self.conserves_packets
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        self.update_rate(ack);
        self.update_cycle(ack);
        self.check_full_pipe(ack);
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
        self.update_pacing(window, ack);
        self.update_window(window, ack);
    }

    /// Loss does not reduce the threshold. The window is saved and restored after the recovery.
    fn on_congestion(&mut self, _: Timestamp, window: &Window) -> f64 {
        self.save_window(window);
        window.threshold
    }

    fn on_timeout(&mut self) {
        self.repair = Repair::Timeout;
        self.full_rate = 0.0;
        self.is_round_start = true;
    }

    fn on_undo(&mut self) {
        self.full_rate = 0.0;
        self.full_rounds = 0;
    }

    fn pacing(&self) -> Option<Pacing> {
        Some(self.pacing)
    }

    fn rules_in_recovery(&self) -> bool {
        true
    }
}

/// Converts segments a second to the bitrate of their payload.
fn bits(segments_per_second: f64) -> Bitrate {
    Bitrate::from_bps_f64(segments_per_second * DataSize::from_bytes(MSS).as_bits() as f64)
}
