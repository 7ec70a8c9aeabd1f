//! Proportional rate reduction: limits the data sent while the window shrinks [RFC6937 §3].

/// One reduction of the window, in segments. Names in backticks are the RFC's.
#[derive(Clone, Debug)]
pub(super) struct RateReduction {
    /// `ssthresh`: the window at the end of the reduction.
    target: u64,
    /// `RecoverFS`: the window before.
    prior_window: u64,
    /// `prr_delivered` and `prr_out`.
    delivered: u64,
    sent: u64,
}

impl RateReduction {
    /// Starts a reduction.
    pub(super) fn new(prior_window: u64, target: u64) -> Self {
        Self { target, prior_window: prior_window.max(1), delivered: 0, sent: 0 }
    }

    /// A segment left.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// Returns the window after an acknowledgement of `delivered` segments. `is_safe` is true if it
    /// advanced and showed no further loss. Only then the window may grow as in slow start, as in
    /// Linux.
    pub(super) fn on_ack(&mut self, delivered: u64, in_flight: u64, is_safe: bool) -> u64 {
        self.delivered += delivered;
        let may_send = if in_flight > self.target {
            // Proportional part: `target` segments are sent while `prior_window` are delivered.
            let due = (self.delivered * self.target).div_ceil(self.prior_window);
            due.saturating_sub(self.sent)
        } else {
            let owed = self.delivered.saturating_sub(self.sent).max(delivered);
            (owed + u64::from(is_safe)).min(self.target - in_flight)
        };
        // The first retransmission is always allowed, as in Linux.
        in_flight + may_send.max(u64::from(self.sent == 0))
    }

    /// The window at the end of the reduction.
    pub(super) fn target(&self) -> u64 {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a recovery: the first `lost` of `flight` segments are lost, and each
    /// acknowledgement reports one delivery. Returns the number of segments sent after each,
    /// retransmissions included.
    fn sent_per_ack(flight: u64, lost: u64, target: u64) -> Vec<u64> {
        let mut reduction = RateReduction::new(flight, target);
        let mut pipe = flight - lost;
        (0..flight - lost)
            .map(|_| {
                pipe -= 1;
                let window = reduction.on_ack(1, pipe, false);
                let sent = window.saturating_sub(pipe);
                for _ in 0..sent {
                    reduction.on_sent();
                }
                pipe += sent;
                sent
            })
            .collect()
    }

    // [RFC6937 §4]: one segment of 20 is lost and the window is halved, so every second
    // acknowledgement releases a segment.
    #[test]
    fn one_loss_sends_on_every_other_acknowledgement() {
        let sent = sent_per_ack(20, 1, 10);
        assert_eq!(&sent[..6], [1, 0, 1, 0, 1, 0]);
        assert_eq!(sent.iter().sum::<u64>(), 10);
    }

    // [RFC6937 §4]: 15 of 20 are lost. The pipe is below the target, so packet conservation
    // applies.
    #[test]
    fn a_burst_of_losses_sends_one_for_one() {
        assert_eq!(sent_per_ack(20, 15, 10), [1, 1, 1, 1, 1]);
    }

    #[test]
    fn an_acknowledgement_that_advances_may_send_one_more() {
        let mut reduction = RateReduction::new(20, 10);
        assert_eq!(reduction.on_ack(1, 4, false), 5);
        reduction.on_sent();
        assert_eq!(reduction.on_ack(2, 4, true), 7);
        // The window never exceeds the target.
        assert_eq!(reduction.on_ack(9, 9, true), 10);
    }
}
