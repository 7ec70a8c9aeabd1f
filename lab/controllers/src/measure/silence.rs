//! Missing feedback: neither Copa nor BBR has a rule for media whose feedback stays away.

use weir::units::{TimeDelta, Timestamp};

/// Feedback is overdue this long after a round-trip time.
const PATIENCE: TimeDelta = TimeDelta::from_millis(800);

/// A timer that starts with the first packet sent after a report and stops at the next report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence {
    deadline: Option<Timestamp>,
}

impl Silence {
    pub(crate) fn on_packet_sent(&mut self, now: Timestamp, rtt: TimeDelta) {
        self.deadline.get_or_insert(now + rtt + PATIENCE);
    }

    pub(crate) fn on_feedback(&mut self) {
        self.deadline = None;
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// True once after the deadline. The next packet sent sets a new one.
    pub(crate) fn has_ended(&mut self, now: Timestamp) -> bool {
        self.deadline.take_if(|deadline| *deadline <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_is_overdue_a_round_trip_and_800_ms_after_the_first_packet() {
        let mut silence = Silence::default();
        let at = Timestamp::from_millis;
        for sent in [0, 300] {
            silence.on_packet_sent(at(sent), TimeDelta::from_millis(100));
        }
        assert!(!silence.has_ended(at(899)));
        assert!(silence.has_ended(at(900)));
        assert!(!silence.has_ended(at(5_000)), "nothing was sent since");
        silence.on_packet_sent(at(6_000), TimeDelta::ZERO);
        silence.on_feedback();
        assert_eq!(silence.deadline(), None);
    }
}
