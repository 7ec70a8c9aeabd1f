//! How late packets come relative to the fastest one of the last two seconds [LIBWEBRTC
//! §PacketArrivalHistory].

use std::collections::VecDeque;

use weir::units::{TimeDelta, Timestamp};

const WINDOW: TimeDelta = TimeDelta::from_secs(2);
/// Resolution of its clock.
const TICK_NANOS: i64 = 10_000_000;

/// Arrivals of recent packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// When a packet came, and how long after its speech began.
    recent: VecDeque<(Timestamp, TimeDelta)>,
    last: Timestamp,
}

/// The time as NetEq's clock shows it.
fn tick(now: Timestamp) -> Timestamp {
    Timestamp::from_nanos(now.as_nanos() / TICK_NANOS * TICK_NANOS)
}

impl Arrivals {
    /// A packet came whose speech begins at `start`. Returns its delay; `None` for the first.
    pub(super) fn on_packet(&mut self, now: Timestamp, start: Timestamp) -> Option<TimeDelta> {
        self.last = now;
        let at = tick(now);
        while self.recent.front().is_some_and(|(came, _)| at - *came > WINDOW) {
            self.recent.pop_front();
        }
        self.recent.push_back((at, at - start));
        if self.recent.len() > 1 { Some(self.delay(now, start)) } else { None }
    }

    /// How much later than the fastest packet's this moment of the speech is.
    pub(super) fn delay(&self, now: Timestamp, moment: Timestamp) -> TimeDelta {
        let least = self.recent.iter().map(|(_, delay)| *delay).min().unwrap_or_default();
        ((tick(now) - moment) - least).max(TimeDelta::ZERO)
    }

    /// The largest delay of a packet.
    pub(super) fn largest(&self) -> TimeDelta {
        let delays = self.recent.iter().map(|(_, delay)| *delay);
        match (delays.clone().min(), delays.max()) {
            (Some(least), Some(most)) => most - least,
            _ => TimeDelta::ZERO,
        }
    }

    /// Time since the last packet.
    pub(super) fn since_last(&self, now: Timestamp) -> TimeDelta {
        now - self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_packet_is_forgotten_after_two_seconds() {
        let mut arrivals = Arrivals::default();
        let (at, ms) = (Timestamp::from_millis, TimeDelta::from_millis);
        assert_eq!(arrivals.on_packet(at(50), at(0)), None);
        for number in 1..=100 {
            let delay = arrivals.on_packet(at(number * 20 + 90), at(number * 20));
            assert_eq!(delay, Some(if number < 99 { ms(40) } else { ms(0) }), "{number}");
        }
        assert_eq!(arrivals.largest(), ms(0));
    }
}
