//! The phases of BBR, and when one follows another [BBR3 §5.3].

use super::bounds::Bounds;
use super::full_pipe::FullPipe;
use crate::measure::{PACKET, Round};
use weir::units::{DataSize, TimeDelta, Timestamp};

// Parameters [BBR3 §5.3].
/// Shortest time between two probes for bandwidth, and the part that varies. BBRM-D5: it varies by
/// the golden ratio in place of chance.
const PROBE_WAIT: TimeDelta = TimeDelta::from_secs(2);
const PROBE_WAIT_SPREAD: TimeDelta = TimeDelta::from_secs(1);
const GOLDEN: f64 = 0.618_033_988_75;
/// Most rounds between two probes: as long as a Reno flow takes to recover.
const RENO_ROUNDS: u32 = 63;
/// `ProbeRTTInterval`: age of the lowest round-trip time at which it is measured anew.
const PROBE_RTT_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
/// `ProbeRTTDuration`.
const PROBE_RTT_TIME: TimeDelta = TimeDelta::from_millis(200);

/// A phase of [BBR3 §5.3].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Phase {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Down => "down",
            Self::Cruise => "cruise",
            Self::Refill => "refill",
            Self::Up => "up",
            Self::ProbeRtt => "probe rtt",
        }
    }

    /// `pacing_gain`. BBRM-D4: while the round-trip time is probed the media yields, too.
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain | Self::ProbeRtt => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill => 1.0,
            Self::Up => 1.25,
        }
    }

    /// `cwnd_gain`.
    pub(super) const fn window_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// Whether losses answer a probe.
    pub(super) const fn probes(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// What a report shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    /// The round that ended with this report.
    pub round: Option<&'a Round>,
    pub source_limited: bool,
    pub in_flight: DataSize,
    /// Bandwidth-delay product, with what reports hold back.
    pub product: DataSize,
    /// Whether this report has the lowest round-trip time.
    pub lowest_rtt: bool,
}

/// What the model has to do after a phase changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Stay,
    /// A new phase.
    Enter,
    /// A probe for bandwidth is over: a cycle ends.
    EndCycle,
    /// The round-trip time is measured anew.
    MeasureRtt,
}

/// The current phase and its clocks.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    phase: Phase,
    phase_start: Timestamp,
    /// Rounds since the phase began, and since the last probe.
    rounds: u32,
    rounds_since_probe: u32,
    cycle_start: Timestamp,
    cycles: u32,
    pipe: FullPipe,
    has_filled: bool,
    min_rtt_at: Timestamp,
}

impl Cycle {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Startup,
            phase_start: Timestamp::ZERO,
            rounds: 0,
            rounds_since_probe: 0,
            cycle_start: Timestamp::ZERO,
            cycles: 0,
            pipe: FullPipe::default(),
            has_filled: false,
            min_rtt_at: Timestamp::ZERO,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Takes a report and moves to the next phase if it is time.
    pub(super) fn update(&mut self, now: Timestamp, seen: &Seen<'_>, bounds: &mut Bounds) -> Step {
        if seen.lowest_rtt || self.min_rtt_at == Timestamp::ZERO {
            self.min_rtt_at = now;
        }
        if let Some(round) = seen.round {
            self.rounds += 1;
            self.rounds_since_probe += 1;
            self.pipe.update(round.rate, seen.source_limited);
            if self.phase.probes() && self.judge(round, seen, bounds) {
                return self.leave_probe(now);
            }
        }
        if self.phase != Phase::ProbeRtt && now - self.min_rtt_at > PROBE_RTT_INTERVAL {
            return self.enter(now, Phase::ProbeRtt, Step::MeasureRtt);
        }
        match self.phase {
            Phase::Startup if self.pipe.is_full() => {
                self.has_filled = true;
                self.enter(now, Phase::Drain, Step::Enter)
            }
            Phase::Drain if seen.in_flight <= seen.product => self.start_cycle(now),
            Phase::Down | Phase::Cruise if self.is_time_to_probe(now, seen) => {
                bounds.refill();
                self.enter(now, Phase::Refill, Step::Enter)
            }
            Phase::Down if seen.in_flight <= bounds.cap_flight(seen.product, true) => {
                self.enter(now, Phase::Cruise, Step::Enter)
            }
            Phase::Refill if self.rounds >= 1 => {
                self.pipe = FullPipe::default();
                self.enter(now, Phase::Up, Step::Enter)
            }
            Phase::Up if self.pipe.is_full() => self.leave_probe(now),
            Phase::ProbeRtt => self.probe_rtt(now),
            _ => Step::Stay,
        }
    }

    /// Judges a round of a probe by its losses. Returns whether the probe is over.
    fn judge(&mut self, round: &Round, seen: &Seen<'_>, bounds: &mut Bounds) -> bool {
        let over = match self.phase {
            Phase::Startup => Bounds::fills_the_pipe(round),
            _ => Bounds::is_too_much(round),
        };
        if over {
            bounds.probe_failed(round, seen.product);
        } else if self.phase == Phase::Up {
            bounds.raise();
        }
        over
    }

    fn leave_probe(&mut self, now: Timestamp) -> Step {
        if self.phase == Phase::Startup {
            self.pipe.set_full();
            self.has_filled = true;
            return self.enter(now, Phase::Drain, Step::Enter);
        }
        self.start_cycle(now)
    }

    fn start_cycle(&mut self, now: Timestamp) -> Step {
        self.cycles = self.cycles.wrapping_add(1);
        (self.cycle_start, self.rounds_since_probe) = (now, 0);
        self.enter(now, Phase::Down, Step::EndCycle)
    }

    fn is_time_to_probe(&self, now: Timestamp, seen: &Seen<'_>) -> bool {
        let fraction = libm::modf(f64::from(self.cycles) * GOLDEN).0;
        let wait = PROBE_WAIT + PROBE_WAIT_SPREAD * fraction;
        let packets = seen.product.as_bytes() / PACKET.as_bytes();
        let rounds = u32::try_from(packets).unwrap_or(RENO_ROUNDS).clamp(1, RENO_ROUNDS);
        now - self.cycle_start >= wait || self.rounds_since_probe >= rounds
    }

    fn probe_rtt(&mut self, now: Timestamp) -> Step {
        if self.rounds < 1 || now - self.phase_start < PROBE_RTT_TIME {
            return Step::Stay;
        }
        self.min_rtt_at = now;
        let next = if self.has_filled { Phase::Cruise } else { Phase::Startup };
        self.cycle_start = now;
        self.enter(now, next, Step::Enter)
    }

    fn enter(&mut self, now: Timestamp, phase: Phase, step: Step) -> Step {
        (self.phase, self.phase_start, self.rounds) = (phase, now, 0);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::units::Bitrate;

    /// Feeds a round every 100 ms with these properties and returns the phases, without repeats.
    fn phases(rounds: u32, kbps: fn(u32) -> u64, lost: u64, lowest_rtt: bool) -> Vec<Phase> {
        let (mut cycle, mut bounds) = (Cycle::new(), Bounds::default());
        let bytes = DataSize::from_bytes(24_000);
        let mut seen_phases = vec![cycle.phase()];
        for number in 0..rounds {
            let rate = Bitrate::from_kbps(kbps(number));
            let loss_ratio = if lost > 0 { 0.1 } else { 0.0 };
            let round = Round { rate, sent: rate, loss_ratio, lost, max_in_flight: bytes };
            let seen = Seen {
                round: Some(&round),
                source_limited: false,
                in_flight: DataSize::from_bytes(10_000),
                product: bytes,
                lowest_rtt,
            };
            let now = Timestamp::from_millis(1_000 + 100 * i64::from(number));
            cycle.update(now, &seen, &mut bounds);
            if seen_phases.last() != Some(&cycle.phase()) {
                seen_phases.push(cycle.phase());
            }
        }
        seen_phases
    }

    // [BBR3 §5.3]
    #[test]
    fn the_phases_follow_each_other_as_in_the_draft() {
        use Phase::{Cruise, Down, Drain, Refill, Startup, Up};
        let seen = phases(60, |_| 1_000, 0, true);
        assert_eq!(seen[..8], [Startup, Drain, Down, Cruise, Refill, Up, Down, Cruise]);
    }

    // [BBR3 §5.3.1.2]
    #[test]
    fn the_start_goes_on_while_the_rate_grows() {
        assert_eq!(phases(6, |number| 100 << number, 0, true), [Phase::Startup]);
    }

    // [BBR3 §5.5.10]
    #[test]
    fn a_start_with_six_losses_in_a_round_is_over() {
        assert_eq!(phases(1, |_| 1_000, 6, true), [Phase::Startup, Phase::Drain]);
    }

    // [BBR3 §5.3.4]
    #[test]
    fn a_lowest_round_trip_time_of_five_seconds_ago_is_measured_anew() {
        let seen = phases(120, |_| 1_000, 0, false);
        let probe = seen.iter().position(|phase| *phase == Phase::ProbeRtt).unwrap();
        assert_eq!(seen[probe + 1], Phase::Cruise);
        assert!(!phases(120, |_| 1_000, 0, true).contains(&Phase::ProbeRtt));
    }
}
