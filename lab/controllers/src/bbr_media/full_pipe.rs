//! Whether the pipe is full: the rate has not grown for three rounds [BBR3 §5.3.1.2].

use weir::units::Bitrate;

/// Growth in a round that shows more room, and the number of rounds without it.
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;

/// Watches the delivery rate while a phase tries to raise it.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    rate: Bitrate,
    rounds: u32,
}

impl FullPipe {
    pub(super) fn update(&mut self, rate: Bitrate, source_limited: bool) {
        if source_limited {
            return;
        }
        if self.rate == Bitrate::ZERO || rate >= self.rate * GROWTH {
            *self = Self { rate, rounds: 0 };
        } else {
            self.rounds += 1;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.rounds >= ROUNDS
    }

    pub(super) fn set_full(&mut self) {
        self.rounds = ROUNDS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // [BBR3 §5.3.1.2]
    #[test]
    fn three_rounds_without_a_quarter_more_mean_that_the_pipe_is_full() {
        let mut pipe = FullPipe::default();
        let mut full = Vec::new();
        for (kbps, limited) in
            [(400, false), (500, false), (600, false), (610, true), (620, false), (620, false)]
        {
            pipe.update(Bitrate::from_kbps(kbps), limited);
            full.push(pipe.is_full());
        }
        assert_eq!(full, [false, false, false, false, false, true]);
    }
}
