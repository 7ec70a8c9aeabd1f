//! What is sent again for lost packets, and so is not the encoder's.

use weir::{DataSize, TimeDelta, Timestamp};

/// The share is that of this time, by 63 %.
const MEMORY: TimeDelta = TimeDelta::from_secs(1);

/// The share of the rate that repeats take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repeats {
    lost: f64,
    all: f64,
    at: Option<Timestamp>,
    /// What left before and is lost is the silence's: it was sent again by then, or is too old.
    silent_until: Option<Timestamp>,
}

impl Repeats {
    fn fade(&mut self, now: Timestamp) {
        let passed = now - self.at.replace(now).unwrap_or(now);
        if passed == TimeDelta::ZERO {
            return;
        }
        let keep = MEMORY / (MEMORY + passed.max(TimeDelta::ZERO));
        self.lost *= keep;
        self.all *= keep;
    }

    pub(crate) fn on_acked(&mut self, now: Timestamp, size: DataSize) {
        self.fade(now);
        self.all += size.as_bytes() as f64;
    }

    pub(crate) fn on_lost(&mut self, now: Timestamp, sent: Timestamp, size: DataSize) {
        if self.silent_until.is_some_and(|until| sent <= until) {
            return;
        }
        self.fade(now);
        self.lost += size.as_bytes() as f64;
        self.all += size.as_bytes() as f64;
    }

    /// A silence that the controller had answered is over: losses of it are no sign of more.
    pub(crate) fn on_silence_end(&mut self, now: Timestamp) {
        self.silent_until = Some(now);
    }

    /// From 0 to 1; 0 while nothing is known.
    pub(crate) fn share(&self) -> f64 {
        if self.all > 0.0 { self.lost / self.all } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1_200);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// A packet each 10 ms until `end`, of which each tenth is lost.
    fn tenth(end: i64) -> Repeats {
        let mut repeats = Repeats::default();
        for number in 0..end / 10 {
            match number % 10 {
                9 => repeats.on_lost(at(number * 10), at(number * 10 - 100), SIZE),
                _ => repeats.on_acked(at(number * 10), SIZE),
            }
        }
        repeats
    }

    #[test]
    fn the_share_is_that_of_the_last_second() {
        let mut repeats = tenth(10_000);
        assert!((repeats.share() - 0.1).abs() < 0.02, "{}", repeats.share());
        for number in 1_000..1_400 {
            repeats.on_acked(at(number * 10), SIZE);
        }
        assert!(repeats.share() < 0.01, "{}", repeats.share());
    }

    #[test]
    fn what_a_silence_took_is_not_repeated_for_long() {
        let mut repeats = tenth(10_000);
        repeats.on_silence_end(at(13_000));
        let before = repeats.share();
        for _ in 0..100 {
            repeats.on_lost(at(13_001), at(11_000), SIZE);
        }
        assert_eq!(repeats.share(), before);
        repeats.on_lost(at(13_200), at(13_100), SIZE);
        assert!(repeats.share() > before);
    }
}
