//! How fast a participant may send: one budget for all its connections, WebSockets and requests
//! alike.
//!
//! Time is an argument, so that tests need no clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::access::Participant;

/// Bytes that a participant may send a second in the long run, and at once: a client that was away
/// sends what it has kept.
const BYTES_S: f64 = 64e3;
const BURST_BYTES: f64 = 4e6;

/// What each participant may send. A participant that is not here may send a whole burst.
#[derive(Debug, Default)]
pub struct Budgets(BTreeMap<Participant, Budget>);

#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Bytes that the participant may send, as of `at`. Below zero after a message that was larger.
    credit: f64,
    at: Instant,
}

impl Budget {
    fn credit(self, now: Instant) -> f64 {
        let passed_s = now.saturating_duration_since(self.at).as_secs_f64();
        (self.credit + passed_s * BYTES_S).min(BURST_BYTES)
    }
}

impl Budgets {
    fn credit(&self, now: Instant, participant: &Participant) -> f64 {
        self.0.get(participant).map_or(BURST_BYTES, |budget| budget.credit(now))
    }

    /// Time until this participant may send again.
    pub fn wait(&self, now: Instant, participant: &Participant) -> Duration {
        Duration::from_secs_f64((-self.credit(now, participant) / BYTES_S).max(0.0))
    }

    /// Notes bytes that came.
    pub fn spend(&mut self, now: Instant, participant: &Participant, bytes: usize) {
        let credit = self.credit(now, participant) - bytes as f64;
        self.0.insert(participant.clone(), Budget { credit, at: now });
    }

    /// Notes that bytes did not come for which room was made.
    pub fn give_back(&mut self, now: Instant, participant: &Participant, bytes: usize) {
        let credit = (self.credit(now, participant) + bytes as f64).min(BURST_BYTES);
        self.0.insert(participant.clone(), Budget { credit, at: now });
    }

    /// Forgets the participants that may send a whole burst again.
    pub fn forget(&mut self, now: Instant) {
        self.0.retain(|_, budget| budget.credit(now) < BURST_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_sends_a_burst_and_then_64_kb_a_second() {
        let (mut budgets, now) = (Budgets::default(), Instant::now());
        let participant = Participant::new("room", "call", "anna").unwrap();
        let mut sent = 0;
        for second in 0..1000 {
            let now = now + Duration::from_secs(second);
            // As often as it may, however its connections come and go.
            while budgets.wait(now, &participant).is_zero() {
                budgets.spend(now, &participant, 1_000_000);
                sent += 1_000_000;
            }
            budgets.forget(now);
        }
        assert!((67_000_000..=69_000_000).contains(&sent), "{sent} B");
    }

    #[test]
    fn a_seat_that_is_forgotten_is_one_that_may_send_a_burst() {
        let (mut budgets, now) = (Budgets::default(), Instant::now());
        let participant = Participant::new("room", "call", "anna").unwrap();
        budgets.spend(now, &participant, 5_000_000);
        budgets.forget(now + Duration::from_secs(60));
        assert_eq!(budgets.wait(now, &participant), Duration::from_secs_f64(1e6 / 64e3));
        budgets.give_back(now, &participant, 2_000_000);
        assert!(budgets.wait(now, &participant).is_zero());
        budgets.forget(now + Duration::from_secs(60));
        assert!(budgets.0.is_empty());
    }
}
