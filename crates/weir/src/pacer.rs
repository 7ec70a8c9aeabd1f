//! Pacer: spreads the packets of a frame over time at the controller's pacing rate.
//!
//! Packets leave in groups of [`BURST`], as [GCC §4] describes; a congestion window, where the
//! controller has one, holds them back as well.

use alloc::collections::VecDeque;

use crate::controller::Target;
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// `burst_time`: what the pacing rate allows in this time may leave at once [GCC §4].
pub const BURST: TimeDelta = TimeDelta::from_millis(5);

/// A first-in first-out send queue with a rate.
#[derive(Clone, Debug)]
pub struct Pacer<T> {
    queue: VecDeque<(DataSize, T)>,
    queued: DataSize,
    rate: Bitrate,
    /// When the packets sent so far would have left at exactly the pacing rate.
    paid_until: Timestamp,
    /// Whether the controller's send window has room for a packet.
    window_open: bool,
}

impl<T> Pacer<T> {
    /// An empty pacer.
    pub fn new(target: &Target) -> Self {
        Self {
            queue: VecDeque::new(),
            queued: DataSize::ZERO,
            rate: target.pacing_rate,
            paid_until: Timestamp::ZERO,
            window_open: true,
        }
    }

    /// Takes over a controller's new target. What was sent ahead of the old rate is paid off at the
    /// new one.
    pub fn set_target(&mut self, now: Timestamp, target: &Target) {
        self.window_open = target.window.is_none_or(|window| window.available > DataSize::ZERO);
        if target.pacing_rate == self.rate {
            return;
        }
        if self.paid_until > now {
            let ahead = self.rate * (self.paid_until - now);
            self.paid_until = now + ahead / target.pacing_rate;
        }
        self.rate = target.pacing_rate;
    }

    /// Puts a packet at the end of the queue.
    pub fn enqueue(&mut self, size: DataSize, packet: T) {
        self.queued += size;
        self.queue.push_back((size, packet));
    }

    /// Bytes in the queue.
    pub fn queued(&self) -> DataSize {
        self.queued
    }

    /// When the next packet may leave; `None` while the queue is empty or the window closed.
    pub fn next_send_time(&self) -> Option<Timestamp> {
        (self.window_open && !self.queue.is_empty()).then(|| self.paid_until - BURST)
    }

    /// The next packet, if it may leave now.
    pub fn dequeue(&mut self, now: Timestamp) -> Option<(DataSize, T)> {
        if self.next_send_time()? > now {
            return None;
        }
        let (size, packet) = self.queue.pop_front()?;
        self.queued = self.queued.saturating_sub(size);
        self.paid_until = self.paid_until.max(now) + size / self.rate;
        Some((size, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Window;

    const SIZE: DataSize = DataSize::from_bytes(1250);

    fn target(pacing_kbps: u64, available: Option<u64>) -> Target {
        let rate = Bitrate::from_kbps(pacing_kbps);
        let window = available.map(|bytes| Window {
            congestion_window: DataSize::from_bytes(10_000),
            available: DataSize::from_bytes(bytes),
        });
        Target { window, ..Target::new(rate, rate) }
    }

    fn drain(pacer: &mut Pacer<u32>) -> alloc::vec::Vec<(i64, u32)> {
        let mut sent = alloc::vec::Vec::new();
        let mut now = Timestamp::ZERO;
        while let Some(next) = pacer.next_send_time() {
            now = now.max(next);
            while let Some((_, packet)) = pacer.dequeue(now) {
                sent.push((now.as_millis(), packet));
            }
        }
        sent
    }

    #[test]
    fn packets_leave_in_order_at_the_pacing_rate_after_a_burst_of_5_ms() {
        let mut pacer = Pacer::new(&target(1000, None)); // 1250 B take 10 ms
        (0..4).for_each(|packet| pacer.enqueue(SIZE, packet));
        assert_eq!(drain(&mut pacer), [(0, 0), (5, 1), (15, 2), (25, 3)]);
        assert_eq!(pacer.queued(), DataSize::ZERO);
    }

    #[test]
    fn an_idle_time_saves_up_no_credit() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        assert!(pacer.dequeue(Timestamp::from_secs(9)).is_some());
        pacer.enqueue(SIZE, 1);
        assert_eq!(pacer.next_send_time(), Some(Timestamp::from_millis(9_005)));
    }

    #[test]
    fn a_new_rate_applies_to_what_is_not_paid_yet() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        pacer.dequeue(Timestamp::ZERO);
        pacer.enqueue(SIZE, 1);
        pacer.set_target(Timestamp::ZERO, &target(500, None));
        assert_eq!(pacer.next_send_time(), Some(Timestamp::from_millis(15)));
    }

    #[test]
    fn a_closed_window_holds_the_queue_and_an_open_one_lets_it_go() {
        let mut pacer = Pacer::new(&target(1000, None));
        pacer.enqueue(SIZE, 0);
        pacer.set_target(Timestamp::ZERO, &target(1000, Some(0)));
        assert_eq!(pacer.next_send_time(), None);
        assert_eq!(pacer.dequeue(Timestamp::from_secs(1)), None);
        pacer.set_target(Timestamp::ZERO, &target(1000, Some(1)));
        assert!(pacer.dequeue(Timestamp::from_secs(1)).is_some());
    }
}
