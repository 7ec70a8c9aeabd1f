//! Generates random scripts, and shortens scripts that break a rule.

use alloc::vec::Vec;

use super::driver::{Feedback, Format, Op, Violation, mix};
use crate::controller::{EcnMode, RateLimits, Settings};
use crate::units::{Bitrate, TimeDelta};

/// A random number generator; equal seeds give equal numbers.
pub(super) struct Rng {
    seed: u64,
    drawn: u64,
}

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.seed, self.drawn)
    }

    /// A random number in 0..`end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }

    fn between(&mut self, from: i64, end: i64) -> i64 {
        from + self.below((end - from) as u64) as i64
    }

    /// Random settings with limits between 1 kbit/s and 9 Mbit/s.
    pub(super) fn settings(&mut self) -> Settings {
        let limits = self.limits();
        let ecn = [EcnMode::Off, EcnMode::Classic, EcnMode::L4s][self.below(3) as usize];
        Settings::new(limits).with_ecn(ecn)
    }

    fn limits(&mut self) -> RateLimits {
        let min = 1 + self.below(2_000);
        let start = min + self.below(2_000);
        let max = start + self.below(5_000);
        super::limits(min, start, max)
    }

    fn desired(&mut self) -> Option<Bitrate> {
        let kbps = self.below(5_000);
        if kbps < 4_000 { Some(Bitrate::from_kbps(kbps)) } else { None }
    }

    /// A random script of fewer than `most` steps.
    pub(super) fn script(&mut self, most: u64) -> Vec<Op> {
        (0..self.below(most)).map(|_| self.op()).collect()
    }

    /// A random script of fewer than `most` steps whose times, sizes and rates come from the whole
    /// range of their types.
    pub(super) fn far_script(&mut self, most: u64) -> Vec<Op> {
        (0..self.below(most)).map(|_| self.far_op()).collect()
    }

    fn far_op(&mut self) -> Op {
        match self.below(16) {
            0 => Op::Jump(self.far_delta()),
            1 => Op::Send { packets: 1 + self.below(8) as usize, bytes: self.far_size() },
            2 => Op::Queue { bytes: self.far_size() },
            3 => Op::ReceiverClock(self.far_delta()),
            4 => Op::Format(Format::Ccfb(self.far_delta())),
            5 => Op::RoundTrip(self.far_delta()),
            6 => Op::Limits(self.far_limits()),
            7 => Op::Desired(Some(Bitrate::from_bps(self.far_size()))),
            8 => Op::Feedback(Feedback { jitter: self.far_delta(), ..self.feedback() }),
            _ => self.op(),
        }
    }

    /// A duration: up to years, or from the ends of the range.
    fn far_delta(&mut self) -> TimeDelta {
        match self.below(8) {
            0 => TimeDelta::MAX,
            1 => TimeDelta::from_nanos(i64::MIN),
            2 => TimeDelta::from_nanos(self.draw().cast_signed()),
            _ => TimeDelta::from_secs(self.between(-100_000_000, 100_000_000)),
        }
    }

    /// A size in bytes or a rate in bit/s: usual ones, or from the ends of the range.
    fn far_size(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => self.draw(),
            _ => self.below(10_000_000),
        }
    }

    fn far_limits(&mut self) -> RateLimits {
        let mut bps = [self.far_size(), self.far_size(), self.far_size()];
        bps.sort_unstable();
        let [min, start, max] = bps.map(|bps| Bitrate::from_bps(bps.max(1)));
        RateLimits::new(min, start, max).expect("they are sorted")
    }

    fn op(&mut self) -> Op {
        match self.below(23) {
            0..4 => Op::Advance(TimeDelta::from_millis(self.between(1, 300))),
            4 => Op::Advance(TimeDelta::from_secs(self.between(1, 20_000))),
            5..9 => {
                let packets = 1 + self.below(59) as usize;
                Op::Send { packets, bytes: 40 + self.below(1_460) }
            }
            9..15 => Op::Feedback(self.feedback()),
            15 => Op::ReceiverClock(TimeDelta::from_secs(self.between(-100_000, 100_000))),
            16 => Op::Queue { bytes: self.below(2_000_000) },
            17 => Op::Format(self.format()),
            18 => Op::NewRoute,
            19 => Op::Limits(self.limits()),
            20 => Op::Desired(self.desired()),
            _ => Op::RoundTrip(TimeDelta::from_millis(self.between(-1_000, 100_000))),
        }
    }

    fn feedback(&mut self) -> Feedback {
        let loss = self.below(1_000) as f64 / 1_000.0;
        Feedback {
            packets: self.below(200) as usize,
            loss: if self.below(8) == 0 { 1.0 } else { loss * loss },
            jitter: TimeDelta::from_millis(self.between(0, 400)),
            salt: self.draw(),
            repeat: self.below(2) == 0,
        }
    }

    fn format(&mut self) -> Format {
        match self.below(3) {
            0 => Format::Measured,
            1 => Format::Ccfb(TimeDelta::from_millis(self.between(-100_000, 100_000))),
            _ => Format::RoundTrip,
        }
    }
}

/// Removes steps from a script as long as it still breaks the rule: first halves, then smaller
/// parts, finally single steps.
pub(super) fn shortened(
    mut script: Vec<Op>,
    mut violation: Violation,
    broken: impl Fn(&[Op]) -> Option<Violation>,
) -> (Vec<Op>, Violation) {
    let mut part = script.len().div_ceil(2);
    while part > 0 {
        let mut from = 0;
        while from < script.len() {
            let end = (from + part).min(script.len());
            let rest: Vec<Op> = script[..from].iter().chain(&script[end..]).cloned().collect();
            if let Some(found) = broken(&rest) {
                (script, violation) = (rest, found);
            } else {
                from = end;
            }
        }
        part /= 2;
    }
    (script, violation)
}
