//! The pacers of noq and quinn: a bucket that fills at the pacing rate [RFC9002 §7.7].

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use super::QuicStack;
use super::packet::MTU;

/// noq's bucket holds what leaves in this time, if its controller has a pacing rate.
const NOQ_BURST: TimeDelta = TimeDelta::from_millis(10);
/// The bucket of a window holds this much of the time, and packets between these numbers.
const WINDOW_BURST: TimeDelta = TimeDelta::from_millis(2);
const LEAST_PACKETS: u64 = 10;
const MOST_PACKETS: u64 = 256;

/// A bucket of bytes.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Whether a controller gives the rate, and not the window.
    has_rate: bool,
    tokens: f64,
    at: Timestamp,
}

impl Pacer {
    pub(super) fn new(stack: QuicStack, has_rate: bool, now: Timestamp) -> Self {
        let has_rate = has_rate && stack == QuicStack::Noq;
        Self { has_rate, tokens: (LEAST_PACKETS * MTU) as f64, at: now }
    }

    fn capacity(&self, rate: Bitrate) -> f64 {
        let bytes = if self.has_rate {
            (rate * NOQ_BURST).as_bytes().max(MTU)
        } else {
            (rate * WINDOW_BURST).as_bytes().clamp(LEAST_PACKETS * MTU, MOST_PACKETS * MTU)
        };
        bytes as f64
    }

    /// When a packet of the largest size may leave; `None` if now. A bucket of a window is waited
    /// for until it is full, so that packets leave in bursts.
    pub(super) fn next_departure(&mut self, now: Timestamp, rate: Bitrate) -> Option<Timestamp> {
        let capacity = self.capacity(rate);
        let earned = rate.as_bps_f64() / 8.0 * (now - self.at).as_secs_f64();
        (self.tokens, self.at) = ((self.tokens + earned).min(capacity), now);
        if self.tokens >= MTU as f64 {
            return None;
        }
        let wanted = if self.has_rate { MTU as f64 } else { capacity };
        let missing = DataSize::from_bytes((wanted - self.tokens) as u64 + 1);
        Some(if rate == Bitrate::ZERO { Timestamp::MAX } else { now + missing / rate })
    }

    pub(super) fn on_sent(&mut self, size: u64) {
        self.tokens -= size as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Departures in a second at this rate, in ms.
    fn departures(stack: QuicStack, has_controller: bool, rate: Bitrate) -> Vec<i64> {
        let mut pacer = Pacer::new(stack, has_controller, Timestamp::ZERO);
        let (mut now, mut times) = (Timestamp::ZERO, Vec::new());
        while now < Timestamp::from_millis(1_000) {
            match pacer.next_departure(now, rate) {
                Some(next) => now = next,
                None => {
                    pacer.on_sent(MTU);
                    times.push(now.as_millis());
                }
            }
        }
        times
    }

    #[test]
    fn each_pacer_keeps_the_rate_and_only_that_of_a_window_sends_bursts() {
        let rate = DataSize::from_bytes(MTU * 500) / TimeDelta::from_secs(1);
        for (stack, has_controller, longest) in [
            (QuicStack::Noq, true, 2..=3),
            (QuicStack::Noq, false, 18..=20),
            (QuicStack::Quinn, true, 18..=20),
        ] {
            let times = departures(stack, has_controller, rate);
            assert!((490..=520).contains(&times.len()), "{stack:?}: {}", times.len());
            let gaps = times[20..].windows(2).map(|pair| pair[1] - pair[0]);
            assert!(longest.contains(&gaps.max().unwrap()), "{stack:?} {has_controller}");
        }
    }
}
